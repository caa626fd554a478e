"""Warnings of settings at the edge of what was tried, and refusals."""

import numpy as np
import pytest

import backcast as bc
from backcast.studies.best import best, of_study
from made_up import ALPHAS, CHAIN, LUCKY, MAZE, Scores

INF = np.inf


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([4 * [5], 4 * [5], 4 * [5]], 0),
        ([[4, 5, 5, 5], 4 * [5], [5, 4, 5, 5]], 0),
        ([4 * [5], 4 * [5], 4 * [6]], 1),
        ([4 * [5], 4 * [6], [5, 5, 6, 5]], 0),
        ([4 * [5], 4 * [6], 4 * [INF]], 1),
    ],
)
def test_no_edge_where_the_setting_makes_no_difference(rows, words):
    """What is at the other end, or in the far half, has to be told from the best."""
    scores = dict(zip(("q,alpha=0.1", "q,alpha=0.5", "q,alpha=1"), rows, strict=True))
    (found,) = best(Scores(scores, grid={"alpha": [0.1, 0.5, 1.0]}))
    assert found.settings == (("alpha", 0.1),)
    assert found.warnings == words * ("alpha = 0.1 is the smallest value tried: better ones may lie beyond",)


def test_a_wide_plateau_has_no_edge_though_the_last_value_diverges():
    scores = {f"q,alpha={alpha}": 4 * [5] for alpha in (0.1, 0.2, 0.5, 0.7)} | {"q,alpha=1": 4 * [INF]}
    assert best(Scores(scores, grid={"alpha": [0.1, 0.2, 0.5, 0.7, 1.0]}))[0].warnings == ()
    scores["q,alpha=0.7"] = 4 * [6]
    assert len(best(Scores(scores, grid={"alpha": [0.1, 0.2, 0.5, 0.7, 1.0]}))[0].warnings) == 1


def test_the_other_end_is_judged_by_the_best_of_what_else_was_tried_with_it():
    """α makes a difference with ε = 0.1 and none with 0.2, which is as good; ε makes one with the best α."""
    scores = {"q,alpha=0.1,epsilon=0.1": 4 * [1], "q,alpha=0.1,epsilon=0.2": 4 * [2], "q,alpha=1,epsilon=0.1": 4 * [9],
              "q,alpha=1,epsilon=0.2": 4 * [1]}  # fmt: skip
    grid = {"alpha": [0.1, 1.0], "epsilon": [0.1, 0.2]}
    assert best(Scores(scores, grid=grid))[0].warnings == ()
    scores["q,alpha=1,epsilon=0.2"] = 4 * [2]
    assert [words.partition(" is ")[0] for words in best(Scores(scores, grid=grid))[0].warnings] == [
        "alpha = 0.1",
        "epsilon = 0.1",
    ]


def test_words_and_single_values_have_no_edge():
    scores = {"forward,model=counts,horizon=2": 4 * [1], "forward,model=softmax,horizon=2": 4 * [2]}
    grid = {"model": ["counts", "softmax"], "horizon": [2]}
    (found,) = best(Scores(scores, agents=[{"kind": "forward"}], grid=grid))
    assert found.warnings == ()
    assert found.as_dict()["settings"] == {"model": "counts", "horizon": 2}


def test_the_edge_is_that_of_what_was_tried_of_the_best_agent():
    agents = [{"kind": "q"}, {"kind": "backward", "grid": {"alpha": [0.5, 0.2]}}]
    scores = {**LUCKY, "backward,alpha=0.5": 4 * [1], "backward,alpha=0.2": 4 * [2]}
    (found,) = best(Scores(scores, agents=agents, grid=ALPHAS), ["world"])
    assert found.settings == (("agent", "backward"), ("alpha", 0.5))
    assert found.warnings == ("alpha = 0.5 is the largest value tried: better ones may lie beyond",)


def test_edges_of_a_search_are_those_of_its_range():
    search = {"samples": 5, "alpha": {"low": 0.03, "high": 0.35, "scale": "log"}}
    stub = Scores({}, search=search)
    alphas = sorted(dict(cell.point)["alpha"] for cell in stub.study.runs())
    stub.scores = {f"q,alpha={alpha:g}": 4 * [abs(alpha - alphas[2])] for alpha in alphas}
    assert best(stub)[0].warnings == ()
    stub.scores = {f"q,alpha={alpha:g}": 4 * [alpha] for alpha in alphas}
    near = stub.study.spaces[0].drawn["alpha"].place(alphas[0]) < 0.05
    assert bool(best(stub)[0].warnings) == near


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["wrld"]}, r"by: 'wrld' given, expected some of study, world, agent, alpha; did you mean 'world'\?"),
        ({"by": ["epsilon"]}, r"by: 'epsilon' given, expected some of study, world, agent, alpha$"),
        ({"by": []}, "by: nothing given"),
        ({"metric": "step"}, r"metric: 'step' given, expected one of rmsve, .*did you mean 'steps'\?"),
        ({"metric": "rmsve"}, "metric: 'rmsve' given, but it is measured in none of the worlds"),
        ({"last": 0}, "last: 0 given, expected a whole number, 1 or more"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(bc.InputError, match=message):
        best(Scores(LUCKY, grid=ALPHAS), **arguments)


def test_agents_that_share_no_world_cannot_be_compared_over_worlds():
    scores = {"custom-maze": {"q": 4 * [1]}, "chain-3-2": {"td": 4 * [1]}}
    agents = [{"kind": "q", "only": "control"}, {"kind": "td", "only": "prediction"}]
    stub = Scores(scores, worlds=[MAZE, CHAIN], agents=agents)
    with pytest.raises(bc.InputError, match="by: not all agents run in the same worlds"):
        best(stub, ["study"])
    assert [each.worlds for each in best(stub, ["study", "agent"])] == [("custom-maze",), ("chain-3-2",)]
    with pytest.raises(bc.InputError, match="study: 'mad' given, expected one of made-up"):
        of_study([stub], "mad")
    with pytest.raises(bc.InputError, match="no finished results"):
        of_study([], None)
