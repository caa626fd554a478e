"""The textbook's studies: their worlds are the book's, and what the book says of them holds."""

import numpy as np
import pytest

import backcast as bc
from backcast.core.graph import breadth_first
from backcast.studies import BEYOND, BLEND, GROUPS, NEURAL, PAPER, STUDIES, TEXTBOOK, in_group, named_study
from commands import backcast


@pytest.mark.interpreted
def test_groups_of_studies():
    assert set(GROUPS["all"]) == {*PAPER, *BEYOND, *TEXTBOOK, *BLEND} == set(STUDIES) - set(NEURAL)
    assert in_group(["textbook", "frames", "textbook-maze"]) == [*TEXTBOOK, "frames"]
    assert in_group(["all", "neural"]) == list(STUDIES)
    assert [named_study(name).name for name in TEXTBOOK] == list(TEXTBOOK)


def test_a_group_is_reproduced_by_its_name():
    shown = backcast("reproduce", "textbook", "--dry-run").stdout
    assert [line.partition(":")[0] for line in shown.splitlines()] == list(TEXTBOOK)
    refused = backcast("reproduce", "textbooks")
    assert refused.returncode == 2
    assert "study: 'textbooks' given, expected some of fan-levels," in refused.stderr


@pytest.mark.interpreted
def test_the_dyna_maze_and_its_larger_copies():
    """47 states and a shortest way of 14 steps; at k times the resolution k² as many states."""
    maze = named_study("textbook-maze").worlds[0].build()
    larger = [world.build() for world in named_study("textbook-sweeping").worlds]
    assert larger[0].mdp == maze.mdp
    assert [int((world.layout != "X").sum()) for world in larger] == [47, 188, 752, 3008]
    assert [world.layout.shape for world in larger] == [(6 * k, 9 * k) for k in (1, 2, 4, 8)]
    optimal = bc.exact.optimal(maze.mdp)
    assert optimal.v[np.argmax(maze.mdp.start)] == pytest.approx(0.95**13)
    for world in larger:
        reached = breadth_first(world.mdp.graph, world.mdp.start > 0)
        assert world.mdp.terminal[reached].sum() == 1


@pytest.mark.interpreted
def test_states_of_the_long_walk_are_visited_as_the_book_says():
    """1.37 % of the time at the start, 0.17 % one jump away, 0.0147 % at the ends."""
    mdp = named_study("textbook-groups").worlds[0].build().mdp
    d = bc.exact.stationary(mdp) * ~mdp.terminal
    d /= d.sum()
    np.testing.assert_allclose(d[[500, 499, 1, 1000]], [0.0137, 0.0017, 0.000147, 0.000147], rtol=0.02)


def error(study, alpha, seeds=60, **given):
    """Mean error over the states that do not end an episode and the episodes of a study."""
    spec = named_study(study)
    features = spec.worlds[0].settings.given().get("features")
    agent = bc.agent(alpha=alpha, schedule="constant", features=features, **given)
    return bc.run(spec.worlds[0].build(), agent, spec.episodes, seeds).rmsve_inner.mean()


@pytest.mark.parametrize("study", ["textbook-walk", "textbook-steps"])
def test_an_intermediate_n_is_best(study):
    """In both walks: n = 4 with a step size of 0.4, and an error of somewhat more than a quarter."""
    errors = {n: error(study, alpha, kind="td", horizon=n) for n, alpha in ((1, 0.8), (4, 0.4), (64, 0.05))}
    assert errors[4] < 0.9 * errors[1] < errors[64]
    assert 0.24 < errors[4] < 0.31


def test_an_intermediate_lambda_is_best():
    errors = {lam: error("textbook-lambda", alpha, kind="td-lambda", lam=lam) for lam, alpha in ((0, 0.8), (0.8, 0.3))}
    assert errors[0] == pytest.approx(error("textbook-walk", 0.8, kind="td", horizon=1))
    assert errors[0.8] < 0.9 * errors[0]
    assert error("textbook-lambda", 0.05, kind="td-lambda", lam=1.0) > errors[0]


def test_planning_steps_save_episodes():
    """With 50 planning steps the third episode is near the optimum; with 5 the sixth; without any it takes over 20."""
    study = named_study("textbook-maze")
    runs = [bc.run(study.worlds[0].build(), cell.agent, 30, 30).steps.mean(axis=0) for cell in study.runs()]
    without, five, fifty = runs
    assert without[0] == five[0] == fifty[0]
    assert fifty[2:].max() < 1.3 * 15.9
    assert five[6:].max() < 1.3 * 15.9 < five[2]
    assert without[15] > 3 * 15.9
    assert without[-3:].max() < 1.5 * 15.9
