"""Studies that are wrong are refused in few words, those that are too large are described and not run."""

import json
import re
import resource

import pytest

from commands import a_command_line  # noqa: F401  a fixture

MAZE = 'episodes = 2\nseeds = 2\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n'
TABLE = 'episodes = 2\nseeds = 2\n[[agents]]\nkind = "q"\n[[worlds]]\nkind = "gymnasium"\n'
WALK = 'episodes = 2\nseeds = 2\n[[agents]]\nkind = "td"\n[[worlds]]\nkind = "random-walk"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABLE + 'id = "Nope-v9"', r"worlds\.0: env: 'Nope-v9' cannot be made \(.*doesn't exist"),
        (TABLE + 'id = "FrozenLake-v0"', r"worlds\.0: env: 'FrozenLake-v0' cannot be made \(.*deprecated"),
        (TABLE + 'id = "FrozenLake-v1"\nmax_steps = 0', r"worlds\.0\.max_steps: 0 given, expected a whole number, 1"),
        (MAZE + "x = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (MAZE + "x = " + "9" * 5000, "a number in it has more digits than any number needs"),
        (MAZE.replace('"q"', '"' + "q" * 100_000 + '"'), r"agents\.0\.kind: \"q{70,}\.\.\. given"),
        (MAZE + "\n".join(f"bad{i} = 1" for i in range(1000)), "and 995 lines more"),
        ("x" * 2**20 + MAZE, "larger than 1,048,576 bytes"),
        ('name = "' + "a" * 5000 + '"\n' + MAZE, "expected at most 100 characters"),
        (MAZE.replace('"maze"', '"maze"\ntext = "S?G"'), r"worlds\.0: text: line 1, column 2 is '\?'"),
        (MAZE.replace("episodes = 2", 'episodes = "2"'), 'episodes: "2" given, input should be a valid integer'),
        (MAZE.replace('"maze"', '"maze"\nslip = "0.2"'), r'worlds\.0\.slip: "0.2" given, input should be a valid num'),
        (WALK + 'discount = "0.9"', r'worlds\.0\.discount: "0.9" given, input should be a valid number'),
        (MAZE + 'alpha = "0.5"', r'agents\.0\.alpha\.float: "0.5" given, input should be a valid number'),
        ('plots = ["sensitivity"]\n' + MAZE, "plots: 'sensitivity' draws agents against the numbers .* leave the plot"),
        (MAZE.replace("episodes = 2", "episodes = 1" + "0" * 4000), "episodes: .* less than or equal to"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_bad_study_is_refused_in_few_words(tmp_path, cli, text, words, dry):
    (tmp_path / "s.toml").write_text(text)
    code, told, complaint = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r", *dry)
    assert (code, told, len(complaint) < 4000) == (2, "", True)
    assert re.search(words, complaint), complaint
    assert not (tmp_path / "r").exists()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("text", "plot", "why"),
    [
        (TABLE + 'id = "FrozenLake-v1"', "updates-to-solve", "in no world of s agents are judged by an error or by"),
        (WALK, "steps-per-episode", "'steps-per-episode' is drawn of control worlds, and random-walk-1000 is for pred"),
        (WALK, "reward-over-steps", "'reward-over-steps' is drawn of control worlds"),
        (MAZE, "error-curves", "'error-curves' is drawn of prediction worlds, and maze is for control"),
        (MAZE, "error-by-ratio", "'error-by-ratio' is drawn of prediction worlds"),
    ],
)
def test_a_plot_that_the_worlds_do_not_allow_is_refused_before_anything_runs(tmp_path, cli, text, plot, why):
    (tmp_path / "s.toml").write_text(f'plots = ["{plot}"]\n{text}')
    code, told, complaint = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r")
    assert (code, told) == (2, "")
    assert f"plots: {why}" in complaint
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("path", ["/dev/zero", "/", "."])
def test_what_is_no_file_is_no_study(tmp_path, cli, path):
    code, _, complaint = cli("sweep", path, "--out", tmp_path / "r")
    assert (code, complaint.count("\n")) == (2, 1)


RATES = "".join(f"{name} = {[(i + 1) / 100 for i in range(100)]}\n" for name in ("alpha", "alpha_model", "alpha_plan"))


@pytest.mark.parametrize(
    ("text", "count", "words"),
    [
        (MAZE + "[search]\nsamples = 1000000000\nalpha = { low = 0.1, high = 1.0 }\n", 10**9, "combinations"),
        (MAZE.replace('"q"', '"forward"') + "[grid]\n" + RATES + "epsilon = [0.1, 0.2]\n", 2 * 10**6, "combinations"),
        (MAZE.replace("seeds = 2", "seeds = 1000000000"), 1, "runs"),
        (MAZE.replace("episodes = 2", "episodes = 1000000000"), 1, "episodes"),
        (WALK + "n = 10000000", 1, "states"),
        (WALK + "n = 1000000", 1, "transitions"),
    ],
)
def test_a_study_that_is_too_large_is_described_and_not_run(tmp_path, cli, text, count, words):
    (tmp_path / "s.toml").write_text(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code, told, complaint = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r", "--dry-run", "--json")
    plan = json.loads(told)
    assert (code, plan["combinations"], plan["missing"], complaint) == (0, count, None, "")
    assert f"BACKCAST_MOST_{words.upper()}=" in plan["refused"]
    told = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r", "--dry-run")[1]
    assert f"running it would be refused: {plan['refused']}" in told
    code, _, complaint = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r")
    assert (code, complaint) == (2, f"backcast: {plan['refused']}\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_large_mazes_are_described_unmade(tmp_path, cli):
    maze = '[[worlds]]\nkind = "maze"\ntext = "S{}G"\n'
    (tmp_path / "s.toml").write_text(MAZE + maze.format("." * 20_000) + maze.format("." * 20_001))
    code, told, _ = cli("sweep", tmp_path / "s.toml", "--out", tmp_path / "r", "--dry-run")
    assert (code, "3 combinations" in told) == (0, True)
    assert "not checked: worlds.1: the maze is large, and was not made" in told


def test_more_seeds_than_are_allowed_are_refused_on_the_command_line_too(tmp_path, cli):
    (tmp_path / "s.toml").write_text(MAZE)
    for command in (["sweep", tmp_path / "s.toml"], ["reproduce", "frames"]):
        code, _, complaint = cli(*command, "--seeds", 10**9, "--out", tmp_path / "r")
        assert (code, "combinations × seeds" in complaint, "BACKCAST_MOST_RUNS" in complaint) == (2, True, True)


def test_a_place_that_cannot_be_written_is_refused_without_a_word_about_results(tmp_path, cli):
    (tmp_path / "s.toml").write_text(MAZE)
    (tmp_path / "file").write_text("")
    for out in ("/proc/x", tmp_path / "file", tmp_path / "file" / "x", tmp_path / ("a" * 300), "/dev/null/x"):
        code, _, complaint = cli("sweep", tmp_path / "s.toml", "--out", out)
        assert (code, complaint.count("\n"), "kept" in complaint) == (2, 1, False), complaint
        assert "cannot be used for results" in complaint
