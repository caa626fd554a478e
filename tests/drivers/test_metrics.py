"""The registry of metrics: what runs have of them, and what is refused."""

import numpy as np
import pytest

import backcast as bc
from backcast.drivers.metrics import METRICS, register_metric

MAZE, CHAIN = bc.worlds.maze("S.G", max_steps=20), bc.worlds.chain((3, 2))


@pytest.fixture
def pace():
    """A metric of all worlds, of which more is better."""

    @register_metric("pace", label="episodes per step", higher_is_better=True)
    def pace(runs):
        return 1 / runs.steps

    return METRICS["pace"]


def test_backcasts_own_are_what_runs_have():
    control, prediction = bc.run(MAZE, bc.agent("q"), 3, 2), bc.run(CHAIN, bc.agent("td"), 3, 2)
    assert (control.metrics, prediction.metrics) == (("steps", "reward"), ("rmsve", "rmsve_inner"))
    for runs in (control, prediction):
        for name in runs.metrics:
            np.testing.assert_array_equal(runs.measured(name), getattr(runs, name))
    assert {name: metric.better for name, metric in METRICS.items() if metric.is_builtin} == {
        "rmsve": "lower is better",
        "rmsve_inner": "lower is better",
        "steps": "lower is better",
        "reward": "higher is better",
    }


def test_one_that_is_registered_is_measured(pace):
    runs = bc.run(MAZE, bc.agent("q"), 3, 2)
    assert runs.metrics == ("steps", "reward", "pace")
    np.testing.assert_array_equal(runs.measured("pace"), 1 / runs.steps)
    table = runs.to_arrow().to_pydict()
    assert table["metric"] == ["steps"] * 6 + ["reward"] * 6 + ["pace"] * 6
    assert table["value"][12:] == (1 / runs.steps).ravel().tolist()
    assert bc.run(CHAIN, bc.agent("td"), 3, 2).metrics == ("rmsve", "rmsve_inner", "pace")


def test_it_is_as_bad_as_can_be_when_a_run_diverged(pace):
    features = np.array([[1.0], [2.0], [0.0]])
    steps = np.array([[[0.0, 1.0, 0.0]], [[0.0, 0.99, 0.01]], [[0.0, 0.0, 1.0]]])
    world = bc.worlds.from_mdp(
        bc.FiniteMDP(steps, [[0.0], [1.0], [0.0]], 0.99, [1, 0, 0], [False, False, True]), max_steps=50
    )
    runs = bc.run(world, bc.agent("td", features=features * 10, schedule="constant"), 30, 2)
    lost = np.isinf(runs.rmsve)
    assert lost.any(axis=1).all()
    assert (runs.measured("pace")[lost] == -np.inf).all()
    np.testing.assert_array_equal(runs.measured("pace")[~lost], (1 / runs.steps)[~lost])


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (lambda runs: runs.steps[0], r"metric: 'odd' is an array of shape \(3,\) and type int64, expected numbers"),
        (lambda runs: runs.steps.astype(str), r"expected numbers \(seeds, episodes\), \(2, 3\)"),
        (lambda runs: None, r"metric: 'odd' is an array of shape \(\) and type object"),
    ],
)
def test_what_is_no_number_for_each_episode_is_refused(array, sentence):
    register_metric("odd")(array)
    with pytest.raises(bc.InputError, match=sentence):
        bc.run(MAZE, bc.agent("q"), 3, 2).measured("odd")


@pytest.mark.parametrize("name", ["seed", "updates", "", "two words", "1st", "a" * 51])
def test_names_are_those_of_columns(name):
    with pytest.raises(bc.InputError, match=r"metric: .* given, expected a name of letters, digits, '_' and '-' other"):
        register_metric(name)(lambda runs: runs.steps)


def test_names_of_backcasts_own_are_taken():
    with pytest.raises(bc.InputError, match="metric: 'steps' is one of Backcast's own; choose another name"):
        register_metric("steps")(lambda runs: runs.steps)


def test_a_metric_that_is_not_measured_is_named():
    with pytest.raises(bc.InputError, match="metric: 'rmsve' given, expected one of steps, reward"):
        bc.run(MAZE, bc.agent("q"), 3, 2).measured("rmsve")


def test_a_comparison_by_a_metric_of_ones_own(pace, tmp_path):
    found = bc.compare({"maze": MAZE, "chain": CHAIN}, [bc.agent("backward"), bc.agent("forward")], 3, 4, metric="pace")
    assert found.judged_by == {"maze": "pace", "chain": "pace"}
    assert str(found).startswith("maze: episodes per step, higher is better; 4 seeds × 3 episodes\n")
    assert found.rows()[1].mean.estimate == pytest.approx((1 / found.runs["maze", "forward"].steps).mean())
    assert [axes.get_ylabel() for axes in found.plot().axes] == ["episodes per step"] * 2
    found.export(tmp_path / "t.csv")
    assert '"maze","forward",3,2,"pace",' in (tmp_path / "t.csv").read_text()


def test_a_comparison_by_what_is_not_measured_is_refused_before_anything_runs(pace):
    with pytest.raises(bc.InputError, match="metric: 'steps' is measured in control worlds, and chain-3-2 is none"):
        bc.compare(CHAIN, bc.agent("td"), 10**6, 100, metric="steps")
    with pytest.raises(bc.InputError, match=r"metric: 'pac' given, expected one of .*; did you mean 'pace'"):
        bc.compare(CHAIN, bc.agent("td"), 10**6, 100, metric="pac")
