"""The options of commands that run studies, and what is refused at the door."""

import os
import signal
import subprocess

import pytest

from commands import a_command_line, backcast, started  # noqa: F401  a fixture
from patience import until

psutil = pytest.importorskip("psutil")

SPECIFICATION = 'episodes = 2\nseeds = 3\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n'
UNHEARD = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # its jobs would keep pipes open


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--scheduler", "tcp://10.0.0.1:8786"], "--scheduler: it belongs to --engine dask, and the engine is local"),
        (["--slurm-local"], "--slurm-local: it belongs to --engine slurm, and the engine is local"),
        (["--engine", "dask", "--slurm-jobs", "3"], "--slurm-jobs: it belongs to --engine slurm"),
        (["--engine", "dask", "--slurm-option", "mem=4G"], "--slurm-option: it belongs to --engine slurm"),
        (["--engine", "slurm", "--slurm-option", "mem"], "--slurm-option: 'mem' given, expected KEY=VALUE"),
        (["--engine", "slurm", "--slurm-local", "--shard", "1/2"], "--shard: it is for job scripts"),
        (["--engine", "dask", "--scheduler", "tcp://a:1", "--workers", "2"], "--workers: the cluster of --scheduler"),
        (["--shard", "3/2"], "--shard: 3/2 given, expected I/N"),
        (["--engine", "cloud"], "'cloud' is not one of 'local', 'dask', 'slurm'"),
        (["--time-limit", "inf"], "Invalid value for '--time-limit'"),
        (["--time-limit", "0"], "Invalid value for '--time-limit'"),
    ],
)
@pytest.mark.parametrize("also", [[], ["--dry-run"]])
def test_options_that_do_not_fit_are_refused(options, sentence, also, tmp_path, cli):
    (tmp_path / "s.toml").write_text(SPECIFICATION)
    code, _, complaint = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "out", *options, *also)
    assert code == 2
    assert sentence in " ".join(complaint.split())
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_no_name_of_a_file(tmp_path, cli):
    (tmp_path / "my study.toml").write_text(SPECIFICATION)
    code, _, complaint = cli("sweep", tmp_path / "my study.toml")
    assert code == 2
    assert (
        "name: \"my study\" given, expected letters, digits, '.', '_' and '-', such as name = \"my-study\"" in complaint
    )


def test_no_other_engine_while_jobs_are_at_work(tmp_path):
    """The command that started them was killed; what they do would be done twice."""
    text = 'episodes = 2000\nseeds = 40\n[[worlds]]\nkind = "maze"\nmax_steps = 100000000\ntext = "S{}G"\n'
    (tmp_path / "s.toml").write_text(text.format("." * 2000) + '[[agents]]\nkind = "q"\nepsilon = 1.0\n')
    command = ("sweep", "s.toml", "--out", "out")
    first = started(*command, "--engine", "slurm", "--slurm-local", "--slurm-jobs", 1, cwd=tmp_path, **UNHEARD)
    folder = tmp_path / "out" / "jobs" / "local"
    (submitted,) = until(lambda: list(folder.glob("*_submitted.pkl")))
    job = int(submitted.name.partition("_")[0])
    first.kill()
    first.wait()
    try:
        result = backcast(*command, cwd=tmp_path)
        assert result.returncode == 2
        assert f"jobs of an earlier --engine slurm --slurm-local still work there ({job})" in result.stderr
    finally:
        os.kill(job, signal.SIGTERM)
        for process in psutil.process_iter(["cmdline"]):
            if str(folder) in " ".join(process.info["cmdline"] or ()):
                process.kill()
    until(lambda: not psutil.pid_exists(job) or psutil.Process(job).status() == psutil.STATUS_ZOMBIE)
    (tmp_path / "s.toml").write_text(SPECIFICATION)
    assert backcast(*command, "--quiet", cwd=tmp_path).returncode == 0
