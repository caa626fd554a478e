"""The best settings of real runs, and the command that shows them."""

import json
import textwrap

import pytest

from backcast.studies import read_study, results
from backcast.studies.best import best
from backcast.studies.runner import run_study
from backcast.studies.store import Store
from commands import a_command_line, backcast  # noqa: F401  one is a fixture

SPEC = """
    episodes = 20
    seeds = 12

    [grid]
    alpha = [1.0, 0.01]

    [search]
    samples = 2
    epsilon = { low = 0.1, high = 0.9 }

    [[worlds]]
    kind = "maze"
    text = "S...G"
    max_steps = 100

    [[worlds]]
    kind = "maze"
    max_steps = 100

    [[agents]]
    kind = "q"

    [[agents]]
    kind = "backward"
    frame = "previous"
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("best")
    (path / "mazes.toml").write_text(textwrap.dedent(SPEC))
    run_study(Store(path / "out", create=True), read_study(path / "mazes.toml"))
    return path / "out"


def test_the_best_of_real_runs_is_that_of_their_means(directory):
    (result,) = results(directory)
    for found in best(result):
        group = dict(found.group)
        labels = [label for label in result.agents(group["world"]) if label.startswith(group["agent"])]
        means = {label: result.means(group["world"], label, "steps").mean() for label in labels}
        lowest = min(means, key=means.__getitem__)
        settings = dict(found.settings)
        assert lowest == f"{group['agent']},alpha={settings['alpha']:g},epsilon={settings['epsilon']:g}"
        assert found.score.estimate == pytest.approx(means[lowest])
        assert found.score.low <= found.score.estimate <= found.score.high
        assert (found.tried, found.score.n, found.diverged) == (4, result.seeds, 0)


def test_the_command_prints_a_table_and_warns(directory, cli):
    shown = backcast("best", directory, "--by", "world, agent", "--metric", "steps", "--last", 10)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].split()[:4] == ["world", "agent", "best", "settings"]
    assert [line.split()[:2] for line in lines[1:5]] == [
        [world, agent] for world in ("custom-maze", "maze") for agent in ("q", "backward@previous")
    ]
    assert "on fresh seeds: chosen on every other seed" in shown.stdout
    assert shown.stderr.splitlines() == [
        "maze, backward@previous: alpha = 1 is the largest value tried, and the largest allowed",
    ]
    (result,) = results(directory)
    printed = json.loads(cli("best", directory, "--by", "world,agent", "--last", 10, "--json")[1])
    expected = [each.as_dict() for each in best(result, ["world", "agent"], last=10)]
    assert printed == [{**each, "missing_runs": result.missing_runs} for each in expected]
    assert any("largest allowed" in warning for each in printed for warning in each["warnings"])
    assert "÷ best: the mean over worlds" in cli("best", directory, "--by", "study")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "wolrd"), "by: 'wolrd' given, expected some of study, world, agent, alpha, epsilon; did you mean"),
        (("--metric", "rmsve"), "measured in none of the worlds"),
        (("--study", "maze"), "study: 'maze' given, expected one of mazes; did you mean 'mazes'?"),
        (("--last", "0"), "greater than or equal to 1"),
    ],
)
def test_the_command_refuses(directory, arguments, message, cli):
    code, _, complaint = cli("best", directory, *arguments)
    assert code == 2
    assert message in complaint


def test_the_command_has_help_with_an_example():
    assert "Example: backcast best" in backcast("best", "--help").stdout
