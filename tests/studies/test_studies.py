import json
import os
import resource
import signal
import textwrap
import time

import numpy as np
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

import backcast as bc
from backcast.report.page import write_report
from backcast.studies import BEYOND, PAPER, check_study, export, named_study, read_study, results
from backcast.studies.claims import CLAIMS, UNDECIDED
from backcast.studies.engines.local import LocalEngine
from backcast.studies.results import Results
from backcast.studies.runner import missing_units, run_study
from backcast.studies.store import Store
from commands import a_command_line, backcast, started  # noqa: F401  one is a fixture
from patience import PATIENCE, until

TINY = """
    title = "A small study"
    episodes = 6
    seeds = 4

    [[worlds]]
    kind = "chain"
    levels = [6, 3, 2]

    [[worlds]]
    kind = "maze"
    text = "S.G"
    episodes = 4
    settings = { alpha = 0.5 }

    [[agents]]
    kind = "forward"

    [[agents]]
    kind = "backward"
    learn = false
"""


def tiny(tmp_path, text=TINY, name="tiny"):
    path = tmp_path / f"{name}.toml"
    path.write_text(textwrap.dedent(text))
    return read_study(path)


def table_bytes(store, tmp_path, name="table"):
    target = tmp_path / f"{name}.csv"
    export(store.directory, target)
    return target.read_bytes()


def stored_runs(store):
    """How many runs the files of a store hold, one that is there twice counted twice."""
    return sum(len(unit["seeds"]) for _, record in store.batches() for unit in record["units"])


# specifications


def test_the_papers_studies_have_the_papers_settings():
    levels = named_study("fan-levels")
    assert [cell.label for cell in levels.runs()[:5]] == [
        "td", "forward", "backward", "pure:true-forward", "pure:true-backward",
    ]  # fmt: skip
    assert {cell.episodes for cell in levels.runs()} == {4000}
    ratios = {cell.world.levels: cell.episodes for cell in named_study("fan-ratios").runs()}
    assert ratios == {(500, 5): 4000, (50, 5): 2500, (5, 5): 2500, (5, 50): 2500, (5, 500): 2000}
    stochastic = {
        (cell.world.build().name, cell.agent.alpha, cell.agent.alpha_model)
        for cell in named_study("stochasticity").runs()
    }
    assert stochastic == {
        ("maze", 1.0, 1.0), ("maze-slip-0.5", 0.1, 0.5), ("maze-reward-0.5", 0.1, 0.5), ("maze-reward-0.1", 0.05, 0.05),
    }  # fmt: skip
    assert len(named_study("frames").runs()) == 9
    assert sorted(number for name in PAPER for number in named_study(name).claims) == list(range(1, 12))
    for claim in CLAIMS:
        assert claim.number in named_study(claim.study).claims


def test_a_grid_runs_every_combination(tmp_path):
    study = tiny(tmp_path, TINY + "\n    [grid]\n    alpha = [1.0, 0.1]\n    alpha_model = [0.5, 0.05]\n")
    labels = [cell.label for cell in study.runs()]
    assert len(labels) == len(set(labels[:8])) * 2 == 16
    assert labels[0] == "forward,alpha=1,alpha_model=0.5"
    assert study.runs()[3].agent.alpha_model == 0.05


@pytest.mark.interpreted
def test_agents_have_settings_labels_and_worlds_of_their_own(tmp_path):
    more = """
    [[agents]]
    kind = "q"
    only = "control"

    [[agents]]
    kind = "backward"
    label = "looks far"
    model = "counts"
    horizon = 3

    [[agents]]
    kind = "sweeping"
    variant = "peng-williams"
    """
    study = tiny(tmp_path, TINY.replace("seeds = 4", "seeds = 4\n    updates = 50") + more)
    labels = {name: [cell.label for cell in study.runs() if cell.world.kind == name] for name in ("chain", "maze")}
    assert labels["chain"][-2:] == ["looks far", "sweeping,variant=peng-williams"]
    assert labels["maze"] == [*labels["chain"][:2], "q", *labels["chain"][2:]]
    store = Store(tmp_path / "out", create=True)
    run_study(store, study)
    result = Results(store, study)
    for world in result.worlds:
        for agent in result.agents(world):
            made = result.updates(world, agent)
            over = made >= 50
            assert (np.diff(made) >= 0).all()
            assert (made == np.where(over, made[:, -1:], made)).all()  # nothing more after the budget is used up
            assert result.seconds(world, agent) > 0
    with pytest.raises(bc.InputError, match="agents: none of them is for chain-6-3-2"):
        tiny(
            tmp_path,
            TINY.replace('kind = "forward"', 'kind = "forward"\n    only = "control"').replace(
                "learn = false", 'learn = false\n    only = "control"'
            ),
        )


def test_features_may_belong_to_the_world(tmp_path):
    """An agent whose settings make sense with the world's features only, and that has no label of its own."""
    study = check_study(
        {
            "name": "features",
            "episodes": 5,
            "worlds": [{"kind": "boyan", "settings": {"features": {"kind": "interpolate"}, "alpha": 0.2}}],
            "agents": [{"kind": "backward", "learn_by": "rls"}, {"kind": "td"}],
            "plots": ["error-by-agent"],
        },
        "features",
    )
    store = Store(tmp_path, create=True)
    run_study(store, study, 2)
    assert "features error by agent" in write_report(tmp_path).read_text()
    assert [cell.label for cell in study.runs()] == [
        "backward,features=interpolate-4,learn_by=rls",
        "td,features=interpolate-4",
    ]


def smaller(world):
    """The same world with a tenth of the states, if it has levels, and few steps."""
    levels = [max(2, n // 10) for n in world.arguments.get("levels", ())]
    changes = {"levels": tuple(levels)} if levels else {}
    return world.model_copy(update={"episodes": 5, "updates": 200, **changes})


@pytest.mark.slow
@pytest.mark.interpreted  # some fifty kinds of parts, for a few steps each
@pytest.mark.parametrize("name", BEYOND)
def test_the_studies_beyond_the_paper_can_be_run(name, tmp_path):
    """Each in small worlds, with all its figures and tables: every agent works in every world."""
    study = named_study(name)
    grid = {setting: values if setting == "schedule" else values[:1] for setting, values in study.grid.items()}
    small = {"worlds": [smaller(world) for world in study.worlds], "episodes": 5, "grid": grid}
    study = study.model_copy(update=small)
    store = Store(tmp_path, create=True)
    run_study(store, study, 2)
    page = write_report(tmp_path).read_text()
    assert all(f"{name} {plot}".replace("-", " ") in page for plot in study.plots)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('kind = "forward"', 'kind = "foreward"'),
            r"tiny\.toml: agents\.0\.kind: \"foreward\" given, expected one of td.*'forward'\?",
        ),
        (('kind = "maze"', 'kind = "mazes"'), r"tiny\.toml: worlds\.1\.kind: \"mazes\" given.*did you mean 'maze'\?"),
        (("learn = false", "lern = false"), r"agents\.1\.lern: no such key; allowed are .*did you mean 'learn'\?"),
        (("episodes = 4", "slpi = 0.5"), r"worlds\.1\.slpi: no such key; .*did you mean 'slip'\?"),
        (("alpha = 0.5", "alpah = 0.5"), r"worlds\.1\.settings\.alpah: no such key; allowed are alpha"),
        (("alpha = 0.5", "alpha = 5.0"), r"tiny\.toml: alpha: 5\.0 given, expected a step size in \(0, 1\]"),
        (
            ("episodes = 6", "episodes = 0"),
            r"tiny\.toml: episodes: 0 given, input should be greater than or equal to 1",
        ),
        (("episodes = 6", 'episodes = "many"'), r"episodes: \"many\" given, input should be a valid integer"),
        (("episodes = 6", ""), r"tiny\.toml: episodes: missing"),
        (
            ("levels = [6, 3, 2]", "levels = [6]"),
            r"tiny\.toml: worlds\.0: levels: .* expected two or more whole numbers",
        ),
        (("levels = [6, 3, 2]", "slip = 0.5"), r"slip does not belong to a chain; its keys are levels, seed"),
        (('text = "S.G"', 'text = "S.?"'), r"tiny\.toml: worlds\.1: text: line 1, column 3 is '\?'"),
        (
            ("seeds = 4", 'seeds = 4\nplots = ["error-curve"]'),
            r"plots: .*'error-curve' is not a plot; .*did you mean 'error-curves'\?",
        ),
        (
            ("seeds = 4", "seeds = 4\ngrid = { alfa = [1.0] }"),
            r"grid\.alfa: no agent .*; theirs are .*did you mean 'alpha'\?",
        ),
        (('kind = "backward"\n    learn = false', 'kind = "forward"'), r"agents: 'forward' is there twice"),
        (("seeds = 4", "seeds = = 4"), r"tiny\.toml: not valid TOML \(.*line"),
    ],
)
def test_specifications_are_refused_with_file_key_given_and_allowed(tmp_path, change, message):
    with pytest.raises(bc.InputError, match=message):
        tiny(tmp_path, TINY.replace(*change, 1))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(bc.InputError, match=r"none\.toml: cannot be read \(No such file"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(bc.InputError, match="study: 'fan' given, expected some of fan-levels"):
        named_study("fan")


# the store


def test_what_exists_is_done_and_more_seeds_add_only_the_new_ones(tmp_path):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    assert run_study(store, study).runs == 4 * 4
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "r" / "units").iterdir()}
    assert run_study(store, study).runs == 0
    assert run_study(store, study, seeds=7).runs == 4 * 3
    for path, modified in before.items():
        assert path.stat().st_mtime_ns == modified
    (result,) = results(store.directory)
    assert result.seeds == 7
    assert len(store.index().seed) == stored_runs(store) == 4 * 7


def test_the_table_has_the_same_bytes_whatever_the_way(tmp_path):
    study = tiny(tmp_path)
    tables = []
    for way, (workers, halves) in enumerate([(1, (7,)), (2, (7,)), (1, (3, 7)), (2, (1, 2, 5, 7))]):
        store = Store(tmp_path / f"r{way}", create=True)
        for seeds in halves:
            run_study(store, study, seeds, LocalEngine(workers))
        tables.append(table_bytes(store, tmp_path, f"t{way}"))
    assert tables[0] == tables[1] == tables[2] == tables[3]


def test_the_long_table(tmp_path):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    run_study(store, study)
    export(store.directory, tmp_path / "t.csv")
    export(store.directory, tmp_path / "t.parquet")
    table = pv.read_csv(tmp_path / "t.csv")
    assert table.column_names == ["study", "world", "agent", "seed", "episode", "metric", "value", "alpha", "learn"]
    assert len(table) == 2 * 4 * 6 * 2 + 2 * 4 * 4 * 2
    assert set(table["agent"].to_pylist()) == {"forward", "pure:backward"}
    assert set(table["world"].to_pylist()) == {"chain-6-3-2", "custom-maze"}
    assert set(table["metric"].to_pylist()) == {"rmsve", "rmsve_inner", "steps", "reward"}
    assert pq.read_table(tmp_path / "t.parquet")["value"].to_pylist() == pytest.approx(table["value"].to_pylist())
    assert bc.load(store.directory).equals(pq.read_table(tmp_path / "t.parquet"))
    direct = bc.run(bc.worlds.chain((6, 3, 2), None), bc.agent("forward"), 6, 4)
    np.testing.assert_array_equal(results(store.directory)[0].curves("chain-6-3-2", "forward", "rmsve"), direct.rmsve)
    assert results(store.directory)[0].value_updates("chain-6-3-2", "forward") == direct.updates.total.mean()
    for bad, message in (("t.xlsx", r"ends in \.csv or \.parquet"), ("no/t.csv", "no directory")):
        with pytest.raises(bc.InputError, match=message):
            export(store.directory, tmp_path / bad)


def test_records_say_what_determined_a_unit(tmp_path):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    run_study(store, study)
    for key, record in store.batches():
        assert len(key) == 24
        assert {"backcast", "numpy", "numba", "python", "commit"} <= set(record["machine"])
        for unit in record["units"]:
            assert {"world", "agent", "episodes", "seeds", "seconds", "steps", "value_updates"} <= set(unit)
    other = check_study({**study.model_dump(), "episodes": 7}, "changed")
    assert len(missing_units(store, other, 4)) == 2  # the maze has its own number of episodes
    assert not (tmp_path / "r" / "units" / "x").exists()


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_gives_the_same_table(tmp_path):
    """SIGKILL at random moments, again and again; what is left is always readable, and at last complete."""
    text = TINY.replace("episodes = 6", "episodes = 3000").replace("seeds = 4", "seeds = 200")
    study = tiny(tmp_path, text)
    directory = tmp_path / "killed"
    command = ("sweep", tmp_path / "tiny.toml", "--out", directory, "--quiet")
    rng, kills = np.random.default_rng(0), 0
    for before in range(4):  # so many batches are there at least
        with started(*command) as process:
            until(lambda: process.poll() is not None or len(list(directory.glob("units/*.json"))) > before)  # noqa: B023
            time.sleep(0.3 * rng.random())
            process.kill()
        kills += process.returncode == -signal.SIGKILL
        store = Store(directory)
        for key, _ in store.batches():
            assert len(pq.read_table(store.table(key))) > 0
    assert kills >= 2
    assert backcast(*command).returncode == 0
    calm = Store(tmp_path / "calm", create=True)
    run_study(calm, study)
    assert table_bytes(Store(directory), tmp_path, "a") == table_bytes(calm, tmp_path, "b")


def test_a_unit_without_its_record_is_run_again(tmp_path):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    run_study(store, study)
    whole = table_bytes(store, tmp_path)
    key, record = next(store.batches())
    (store.directory / "units" / f"{key}.json").unlink()
    assert run_study(store, study).runs == sum(len(unit["seeds"]) for unit in record["units"])
    assert table_bytes(store, tmp_path) == whole


def test_damaged_and_foreign_files_are_named_and_left_alone(tmp_path, cli):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    run_study(store, study)
    units = store.directory / "units"
    (units / "notes.txt").write_text("mine")
    assert [path.name for path in store.foreign_files()] == ["notes.txt"]
    code, _, errors = cli("sweep", tmp_path / "tiny.toml", "--out", store.directory, "--quiet")
    assert code == 0
    assert "notes.txt is not a file of Backcast's and is left alone" in errors
    key, _ = next(store.batches())
    damaged = units / f"{key}.parquet"
    damaged.write_bytes(damaged.read_bytes()[:50])
    code, _, errors = cli("export", store.directory, "--to", tmp_path / "t.csv")
    assert code == 2
    assert f"{key}.parquet: it was changed after it was written" in errors
    assert not (tmp_path / "t.csv").exists()
    assert len(damaged.read_bytes()) == 50
    (units / f"{key}.json").write_text("{")
    code, _, errors = cli("claims", store.directory)
    assert code == 2
    assert f"{key}.json: not valid JSON" in errors


def test_a_plot_that_does_not_fit_its_worlds_is_refused(tmp_path, cli):
    text = textwrap.dedent(TINY).replace("seeds = 4", 'seeds = 4\nplots = ["error-curves"]')
    (tmp_path / "tiny.toml").write_text(text)
    code, _, errors = cli("sweep", tmp_path / "tiny.toml", "--out", tmp_path / "r")
    assert code == 2
    assert "plots: 'error-curves' is drawn of prediction worlds, and custom-maze is for control" in errors
    assert not (tmp_path / "r").exists()


def test_directories_that_cannot_be_used(tmp_path, cli):
    (tmp_path / "file").write_text("")
    code, _, errors = cli("reproduce", "frames", "--seeds", 1, "--out", tmp_path / "file")
    assert code == 2
    assert "file: cannot be used for results" in errors
    code, _, errors = cli("report", tmp_path / "nothing")
    assert code == 2
    assert "no results of Backcast there; make some with: backcast reproduce --out" in errors


@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of JAX; the limit is set in a fork, without threads
def test_a_full_disk_ends_with_a_sentence_and_keeps_what_is_finished(tmp_path):
    study, store = tiny(tmp_path), Store(tmp_path / "r", create=True)
    run_study(store, study)
    before = {path: path.read_bytes() for path in (tmp_path / "r" / "units").iterdir()}

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))  # what the disk can still hold

    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    arguments = ("sweep", tmp_path / "tiny.toml", "--seeds", 30, "--out", store.directory, "--quiet")
    result = backcast(*arguments, preexec_fn=small_files, env=environment)
    assert result.returncode == 1, result.stderr
    assert "finished runs are kept" in result.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "r" / "units").iterdir()} == before


def test_ctrl_c_says_how_to_go_on(tmp_path):
    tiny(tmp_path, TINY.replace("episodes = 6", "episodes = 200000").replace("seeds = 4", "seeds = 400"))
    process = started("sweep", tmp_path / "tiny.toml", "--out", tmp_path / "r")
    until(lambda: process.poll() is not None or (tmp_path / "r" / "units").exists())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "run the same command again to continue" in errors


# command line


@pytest.mark.slow
def test_reproduce_writes_results_figures_report_and_claims(tmp_path, cli):
    out = tmp_path / "results"
    result = backcast("reproduce", "frames", "--seeds", 3, "--out", out)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line[:2].strip().isdigit()]
    assert [int(line[:2]) for line in lines] == [4, 5, 6, 7]
    assert all("3 seeds" in line and line.split()[1] == UNDECIDED for line in lines)  # too few to say
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg", ".png"}
    page = (out / "report.html").read_text()
    for words in ("Which state to plan from", "backcast reproduce frames --seeds 3", "<svg", "value updates", "numba"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )
    assert "<script" not in page
    assert cli("claims", out)[1].splitlines() == lines
    judged = json.loads(cli("claims", out, "--json")[1])
    assert [claim["claim"] for claim in judged] == [4, 5, 6, 7]
    assert cli("reproduce", "frames", "--seeds", 3, "--out", out, "--quiet") == (0, "", "")


def test_every_command_has_help_with_an_example():
    for command in ("list", "reproduce", "sweep", "report", "claims", "export", "bench", "lab", "doctor"):
        assert f"Example: backcast {command}" in backcast(command, "--help").stdout


def test_doctor_examines_this_installation():
    result = backcast("doctor")
    assert result.returncode == 0
    assert result.stdout.count("ok  ") == 4
    assert "cache" in result.stdout
