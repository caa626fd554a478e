import json
import subprocess
import sys
import textwrap
import time
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.studies import check_study, read_study, results
from backcast.studies.best import best, of_study
from backcast.studies.choice import MANY, alike, on_fresh_seeds, over_worlds, winner
from backcast.studies.runner import run_study
from backcast.studies.statistics import paired_difference
from backcast.studies.store import Store

MAZE, CHAIN = {"kind": "maze", "text": "S.G"}, {"kind": "chain", "levels": [3, 2]}
INF = np.inf


class Stub:
    """Results of a study that are made up: what each label scored in each seed, everywhere or in each world."""

    def __init__(self, scores, **given):
        whole = {"name": "made-up", "episodes": 3, "seeds": 4, "worlds": [MAZE], "agents": [{"kind": "q"}], **given}
        self.study = check_study(whole, "made-up")
        self.scores = scores
        self.seeds = 4

    def _of(self, world):
        return self.scores.get(world, self.scores)

    def cells(self, world):
        return [cell for cell in self.study.runs() if cell.world.name == world and cell.label in self._of(world)]

    @property
    def worlds(self):
        return [world.name for world in self.study.worlds if self.cells(world.name)]

    @property
    def missing(self):
        pairs = [(cell.world.name, cell.label) for cell in self.study.runs()]
        return [(world, label) for world, label in pairs if label not in self._of(world)]

    @property
    def complete(self):
        return not self.missing and self.seeds >= self.study.seeds

    def metrics(self, world, agent):
        return ["rmsve", "rmsve_inner"] if world.startswith("chain") else ["steps", "reward"]

    def means(self, world, agent, metric):
        return np.array(self._of(world)[agent], dtype=np.float64)

    def curves(self, world, agent, metric):
        """The last episode alone is what was scored; the others are worth 100."""
        scored = self.means(world, agent, metric)
        return np.stack([np.full_like(scored, 100.0), np.full_like(scored, 100.0), scored], axis=1)


ALPHAS = {"alpha": [1.0, 0.5, 0.1]}
LUCKY = {"q,alpha=1": [10, 20, 10, 20], "q,alpha=0.5": [12, 12, 12, 12], "q,alpha=0.1": [11, 14, 11, 14]}


def test_the_best_by_hand():
    """The even seeds would choose α = 1, which costs 20 in the odd ones; the odd ones 0.5, which costs 12.

    Of α = 1 the resampled mean of −2, 8, −2, 8 is at most 0 once in 16 times, of α = 0.1 that of −1, 2, −1, 2 five
    times: both are within what chance does.
    """
    (found,) = best(Stub(LUCKY, grid=ALPHAS))
    assert found.group == (("study", "made-up"), ("world", "custom-maze"), ("agent", "q"))
    assert found.settings == (("alpha", 0.5),)
    assert (found.score.estimate, found.score.low, found.score.high, found.score.n) == (12, 12, 12, 4)
    assert found.fresh.estimate == 16
    assert (found.metric, found.tried, found.alike, found.diverged, found.warnings) == ("steps", 3, 2, 0, ())


def test_what_is_worse_in_every_seed_is_told_apart():
    (found,) = best(Stub({**LUCKY, "q,alpha=1": [13, 14, 13, 13], "q,alpha=0.1": [12, 12, 12, 12]}, grid=ALPHAS))
    assert (found.settings, found.alike) == ((("alpha", 0.5),), 1)  # the first of two equal ones


def test_runs_that_diverged_are_never_the_best():
    (found,) = best(Stub({**LUCKY, "q,alpha=0.5": [0, 0, 0, INF]}, grid=ALPHAS))
    assert found.settings == (("alpha", 0.1),)
    assert found.diverged == 1
    assert found.score.estimate == 12.5
    assert (found.alike, found.warnings) == (1, ())


def test_where_all_diverged_it_is_said():
    every = {"q,alpha=1": [1, INF, INF, 1], "q,alpha=0.5": [1, INF, 1, 1], "q,alpha=0.1": [INF, INF, INF, INF]}
    (found,) = best(Stub(every, grid=ALPHAS))
    assert (found.settings, found.diverged, found.tried) == ((("alpha", 0.5),), 3, 3)
    assert found.warnings == ("all 3 settings diverged",)
    assert found.as_dict()["mean"] is None
    assert found.as_row()["mean"] == "diverged"


def test_a_choice_may_diverge_on_fresh_seeds():
    (found,) = best(Stub({**LUCKY, "q,alpha=1": [1, INF, 1, 5]}, grid=ALPHAS))
    assert found.score.estimate == 12
    assert found.as_dict()["fresh"]["mean"] is None
    assert found.as_row()["on fresh seeds"] == "diverged"


def test_more_reward_is_better_and_diverging_costs_all_of_it():
    rewards = {"q,alpha=1": [1, 3, 1, 3], "q,alpha=0.5": [2, 3, 3, 2], "q,alpha=0.1": [-INF, 9, 9, -INF]}
    (found,) = best(Stub(rewards, grid=ALPHAS), metric="reward")
    assert found.settings == (("alpha", 0.5),)
    assert (found.metric, found.score.estimate) == ("reward", 2.5)
    assert found.score.low < 2.5 < found.score.high
    assert found.fresh.estimate == (1 + 3 + 1 + 2) / 4  # the odd seeds choose α = 1, the even ones 0.5


def test_the_last_episodes_alone():
    (found,) = best(Stub(LUCKY, grid=ALPHAS), last=1)
    assert found.score.estimate == 12
    (found,) = best(Stub(LUCKY, grid=ALPHAS), last=2)
    assert found.score.estimate == 56
    assert best(Stub(LUCKY, grid=ALPHAS), last=99)[0].score.estimate == pytest.approx(212 / 3)


def test_one_seed_tells_nothing_apart():
    (found,) = best(Stub({label: row[:1] for label, row in LUCKY.items()}, grid=ALPHAS))
    assert (found.settings, found.alike, found.fresh) == ((("alpha", 1.0),), 2, None)
    row = found.as_row()
    assert (row["mean"], row["on fresh seeds"]) == ("10", "–")
    assert json.loads(json.dumps(found.as_dict()))["low"] is None


# groups

TWO_AGENTS = {"agents": [{"kind": "q"}, {"kind": "backward", "label": "back"}]}
BOTH = {"q": [15, 16, 17, 14], "back": [4, 4, 4, 4]}


def test_without_a_grid_agents_are_compared():
    stub = Stub(BOTH, **TWO_AGENTS)
    assert [found.settings for found in best(stub)] == [(), ()]
    (found,) = best(stub, ["world"])
    assert (found.group, found.settings) == ((("world", "custom-maze"),), (("agent", "back"),))
    assert (found.tried, found.alike, found.fresh.estimate) == (2, 0, 4)


def test_over_worlds_by_hand():
    """In the first world 10 and 20, in the second 40 and 30: (1 + 4/3)/2 = 7/6 against (2 + 1)/2."""
    scores = {
        "custom-maze": {"q,alpha=1": 4 * [10], "q,alpha=0.1": 4 * [20]},
        "maze": {"q,alpha=1": 4 * [40], "q,alpha=0.1": 4 * [30]},
    }
    stub = Stub(scores, worlds=[MAZE, {"kind": "maze"}], grid={"alpha": [1.0, 0.1]})
    (found,) = best(stub, ["agent"])
    assert (found.group, found.settings) == ((("agent", "q"),), (("alpha", 1.0),))
    assert found.score.estimate == pytest.approx(7 / 6)
    assert found.relative
    assert found.worlds == ("custom-maze", "maze")
    assert found.as_row()["metric"] == "steps ÷ best, 2 worlds"
    assert [each.settings for each in best(stub, ["world"])] == [
        (("agent", "q"), ("alpha", 1.0)),
        (("agent", "q"), ("alpha", 0.1)),
    ]
    (found,) = best(stub, ["agent"], "reward")  # the mean of 20 and 30 against that of 10 and 40: equal, the first
    assert (found.settings, found.score.estimate, found.relative) == ((("alpha", 1.0),), 25, False)


def test_worlds_of_different_kinds_are_judged_by_what_each_measures():
    scores = {"custom-maze": {"forward": 4 * [10], "backward": 4 * [20]},
              "chain-3-2": {"forward": 4 * [0.4], "backward": 4 * [0.1]}}  # fmt: skip
    stub = Stub(scores, worlds=[MAZE, CHAIN], agents=[{"kind": "forward"}, {"kind": "backward"}])
    (found,) = best(stub, ["study"])
    assert (found.settings, found.score.estimate) == ((("agent", "backward"),), 1.5)
    assert found.metric == "steps, rmsve"
    assert [each.worlds for each in best(stub, metric="rmsve_inner")] == 2 * [("chain-3-2",)]


def test_by_a_setting():
    scores = {"q,alpha=1,epsilon=0.1": 4 * [1], "q,alpha=1,epsilon=0.2": 4 * [2], "q,alpha=0.5,epsilon=0.1": 4 * [4],
              "q,alpha=0.5,epsilon=0.2": 4 * [3]}  # fmt: skip
    found = best(Stub(scores, grid={"alpha": [1.0, 0.5], "epsilon": [0.1, 0.2]}), ["alpha", "world"])
    assert [(each.group[0], each.settings[1:], each.score.estimate) for each in found] == [
        (("alpha", 1.0), (("epsilon", 0.1),), 1),
        (("alpha", 0.5), (("epsilon", 0.2),), 3),
    ]
    assert [each.warnings[0].partition(" is ")[0] for each in found] == ["epsilon = 0.1", "epsilon = 0.2"]
    assert found[0].where == "alpha = 1, custom-maze"


def test_an_agent_without_the_setting_is_a_group_of_its_own():
    stub = Stub(
        {"q": 4 * [3], "backward,alpha_model=1": 4 * [2], "backward,alpha_model=0.1": 4 * [1]},
        agents=[{"kind": "q"}, {"kind": "backward"}],
        grid={"alpha_model": [1.0, 0.1]},
    )
    found = best(stub, ["alpha_model"])
    assert [each.group[0][1] for each in found] == [None, 1.0, 0.1]
    assert found[0].as_row()["alpha_model"] == "–"


def test_several_worlds_of_one_name_are_never_compared():
    """Mazes of a text all have the same name; the first and the third are the same, the fourth is lived in longer."""
    longer = {"kind": "maze", "text": "S......G"}
    given = [("m1", MAZE, {}), ("m2", longer, {}), ("m3", MAZE, {}), ("m4", MAZE, {"episodes": 9})]
    stubs = [Stub({"q": 4 * [i + 1]}, name=name, worlds=[world], **more) for i, (name, world, more) in enumerate(given)]
    names = ["custom-maze (m1, m3)", "custom-maze (m2)", "custom-maze (m4)"]
    for by in (["world", "agent"], ["world"]):
        found = best(stubs, by)
        assert [dict(each.group)["world"] for each in found] == names
        assert [each.worlds for each in found] == [(name,) for name in names]
        assert [each.score.estimate for each in found] == [1, 2, 4]
        assert [each.tried for each in found] == [2, 1, 1]
    with pytest.raises(bc.InputError, match=r"by: not all agents live in the same worlds, .*; add world or study$"):
        best(stubs, ["agent"])
    assert [dict(each.group)["world"] for each in best(stubs)] == 4 * ["custom-maze"]
    assert [each.worlds for each in best(stubs, ["study"])] == 4 * [("custom-maze",)]
    limited = [Stub({"q": 4 * [1]}, name=f"s{i}", updates=i) for i in (1, 2)]
    assert [each.where for each in best(limited, ["world"])] == ["custom-maze (s1)", "custom-maze (s2)"]


def test_worlds_that_are_left_out_are_named():
    agents = [{"kind": "forward"}, {"kind": "q", "only": "control"}]
    chains = [{"kind": "chain", "levels": [3, levels]} for levels in range(2, 9)]
    scores = {"q": 4 * [3], "forward": 4 * [2]}
    (found,) = best(Stub(scores, worlds=[MAZE, CHAIN], agents=agents), ["study"])
    assert (found.worlds, found.left_out, found.relative) == (("custom-maze",), ("chain-3-2",), False)
    assert found.as_row()["metric"] == "steps, 1 of 2 worlds"
    assert (found.as_dict()["worlds"], found.as_dict()["left_out"]) == (["custom-maze"], ["chain-3-2"])
    assert found.warnings == ("left out, as not all of these are run there: chain-3-2",)
    (found,) = best(Stub(scores, worlds=[*MAZES, *chains], agents=agents), ["study"])
    assert found.as_row()["metric"] == "steps ÷ best, 2 of 9 worlds"
    names = ", ".join(f"chain-3-{levels}" for levels in range(2, 7))
    assert found.warnings == (f"left out, as not all of these are run there: {names} and 2 more",)
    (found,) = best(Stub(scores, worlds=[*MAZES, CHAIN], agents=agents), ["study"], "reward")
    assert (found.as_row()["metric"], found.left_out) == ("reward, mean of 2 worlds", ())  # there is none in the chain
    assert [each.left_out for each in best(Stub(scores, worlds=[MAZE, CHAIN], agents=agents), ["agent"])] == [(), ()]


def test_several_studies_together_and_apart():
    one, two = Stub(BOTH, **TWO_AGENTS), Stub({"q": [1, 2, 3]}, name="other")
    assert [each.group[0][1] for each in best([one, two])] == ["made-up", "made-up", "other"]
    found = best([one, two], ["agent", "world"])
    assert [each.settings for each in found] == [(("study", "other"),), ()]
    assert found[0].score.n == 3  # the seeds that both have
    assert of_study([one, two], "other") == [two]
    assert of_study([one, two], None) == [one, two]


# what is not done yet


def test_what_was_not_run_yet_is_left_out_with_a_warning():
    (found,) = best(Stub({label: LUCKY[label] for label in list(LUCKY)[1:]}, grid=ALPHAS))
    assert (found.settings, found.tried) == ((("alpha", 0.5),), 2)
    assert found.warnings == ("made-up is not complete: 1 of 3 settings have runs that are not done",)
    assert found.as_dict()["warnings"] == list(found.warnings)


def test_the_edge_is_that_of_what_is_to_be_tried():
    """Of 0.1, 0.2, 0.5 and 1 the first is not done: 0.2 is no edge, and 1 is one."""
    grid = {"alpha": [0.1, 0.2, 0.5, 1.0]}
    (found,) = best(Stub({"q,alpha=0.2": 4 * [1], "q,alpha=0.5": 4 * [2], "q,alpha=1": 4 * [3]}, grid=grid))
    assert found.warnings == ("made-up is not complete: 1 of 4 settings have runs that are not done",)
    (found,) = best(Stub({"q,alpha=0.2": 4 * [3], "q,alpha=0.5": 4 * [2], "q,alpha=1": 4 * [1]}, grid=grid))
    assert found.warnings[1:] == ("alpha = 1 is the largest value tried, and the largest allowed",)
    (found,) = best(Stub({"q,alpha=1": 4 * [1]}, grid=grid))
    assert found.warnings == ("made-up is not complete: 3 of 4 settings have runs that are not done",)


MAZES = [MAZE, {"kind": "maze"}]


def test_over_worlds_what_is_done_in_all_of_them_is_compared():
    scores = {
        "custom-maze": {"q,alpha=1": 4 * [9], "q,alpha=0.5": 4 * [1], "q,alpha=0.1": 4 * [8]},
        "maze": {"q,alpha=1": 4 * [3], "q,alpha=0.1": 4 * [2]},
    }
    (found,) = best(Stub(scores, worlds=MAZES, grid=ALPHAS), ["agent"])
    assert (found.worlds, found.left_out, found.tried) == (("custom-maze", "maze"), (), 2)
    assert (found.settings, found.score.estimate) == ((("alpha", 0.1),), 1)
    assert found.warnings[0] == "made-up is not complete: 1 of 3 settings have runs that are not done"
    scores["maze"] = {}
    (found,) = best(Stub(scores, worlds=MAZES, grid=ALPHAS), ["agent"])
    assert (found.worlds, found.tried, found.settings) == (("custom-maze",), 3, (("alpha", 0.5),))
    assert (found.left_out, found.as_row()["metric"]) == (("maze",), "steps, 1 of 2 worlds")
    assert found.warnings == (
        "made-up is not complete: 3 of 3 settings have runs that are not done",
        "left out, as nothing is done there yet: maze",
    )
    with pytest.raises(bc.InputError, match=r"by: no settings are done in all of the worlds yet, .*; add world"):
        best(Stub({"custom-maze": {"q,alpha=1": 4 * [9]}, "maze": {"q,alpha=0.1": 4 * [2]}}, worlds=MAZES, grid=ALPHAS),
             ["agent"])  # fmt: skip


def test_a_world_that_another_study_has_not_begun_is_shared_all_the_same():
    ready = Stub({"q": 4 * [5]}, worlds=[MAZE])
    begun = Stub({"maze": {"q": 4 * [1]}, "custom-maze": {}}, name="other", worlds=MAZES)
    (found,) = best([ready, begun], ["agent"])
    assert (found.worlds, found.left_out, found.tried) == (("custom-maze",), ("maze",), 1)
    assert found.score.estimate == 5
    assert found.warnings == (
        "other is not complete: 1 of 1 settings have runs that are not done",
        "left out, as not all of these are run there: maze",
    )


def test_of_a_study_that_is_not_complete_every_group_says_so():
    scores = {"custom-maze": LUCKY, "maze": {}}
    (found,) = best(Stub(scores, worlds=MAZES, grid=ALPHAS))
    assert found.warnings == ("made-up is not complete: other runs of it are not done",)
    (found,) = best(Stub(LUCKY, grid=ALPHAS, seeds=20))
    assert found.warnings == ("made-up is not complete: 4 of 20 seeds are done",)
    (found,) = best(Stub({"custom-maze": LUCKY}, worlds=[MAZE, CHAIN], grid=ALPHAS), ["study"], "steps")
    assert found.warnings == ("made-up is not complete: other runs of it are not done",)  # it has no steps in the chain
    both = [Stub(LUCKY, grid=ALPHAS), Stub({"q": 4 * [1]}, name="other", seeds=9)]
    assert [len(each.warnings) for each in best(both)] == [0, 1]
    assert best(both, ["world"])[0].warnings == ("other is not complete: 4 of 9 seeds are done",)


# edges


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
    (found,) = best(Stub(scores, grid={"alpha": [0.1, 0.5, 1.0]}))
    assert found.settings == (("alpha", 0.1),)
    assert found.warnings == words * ("alpha = 0.1 is the smallest value tried: better ones may lie beyond",)


def test_a_wide_plateau_has_no_edge_though_the_last_value_diverges():
    scores = {f"q,alpha={alpha}": 4 * [5] for alpha in (0.1, 0.2, 0.5, 0.7)} | {"q,alpha=1": 4 * [INF]}
    assert best(Stub(scores, grid={"alpha": [0.1, 0.2, 0.5, 0.7, 1.0]}))[0].warnings == ()
    scores["q,alpha=0.7"] = 4 * [6]
    assert len(best(Stub(scores, grid={"alpha": [0.1, 0.2, 0.5, 0.7, 1.0]}))[0].warnings) == 1


def test_the_other_end_is_judged_by_the_best_of_what_else_was_tried_with_it():
    """α makes a difference with ε = 0.1 and none with 0.2, which is as good; ε makes one with the best α."""
    scores = {"q,alpha=0.1,epsilon=0.1": 4 * [1], "q,alpha=0.1,epsilon=0.2": 4 * [2], "q,alpha=1,epsilon=0.1": 4 * [9],
              "q,alpha=1,epsilon=0.2": 4 * [1]}  # fmt: skip
    grid = {"alpha": [0.1, 1.0], "epsilon": [0.1, 0.2]}
    assert best(Stub(scores, grid=grid))[0].warnings == ()
    scores["q,alpha=1,epsilon=0.2"] = 4 * [2]
    assert [words.partition(" is ")[0] for words in best(Stub(scores, grid=grid))[0].warnings] == [
        "alpha = 0.1",
        "epsilon = 0.1",
    ]


def test_words_and_single_values_have_no_edge():
    scores = {"forward,model=counts,horizon=2": 4 * [1], "forward,model=softmax,horizon=2": 4 * [2]}
    grid = {"model": ["counts", "softmax"], "horizon": [2]}
    (found,) = best(Stub(scores, agents=[{"kind": "forward"}], grid=grid))
    assert found.warnings == ()
    assert found.as_dict()["settings"] == {"model": "counts", "horizon": 2}


def test_the_edge_is_that_of_what_was_tried_of_the_best_agent():
    agents = [{"kind": "q"}, {"kind": "backward", "grid": {"alpha": [0.5, 0.2]}}]
    scores = {**LUCKY, "backward,alpha=0.5": 4 * [1], "backward,alpha=0.2": 4 * [2]}
    (found,) = best(Stub(scores, agents=agents, grid=ALPHAS), ["world"])
    assert found.settings == (("agent", "backward"), ("alpha", 0.5))
    assert found.warnings == ("alpha = 0.5 is the largest value tried: better ones may lie beyond",)


def test_edges_of_a_search_are_those_of_its_range():
    search = {"samples": 5, "alpha": {"low": 0.03, "high": 0.35, "scale": "log"}}
    stub = Stub({}, search=search)
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
        best(Stub(LUCKY, grid=ALPHAS), **arguments)


def test_agents_that_share_no_world_cannot_be_compared_over_worlds():
    scores = {"custom-maze": {"q": 4 * [1]}, "chain-3-2": {"td": 4 * [1]}}
    agents = [{"kind": "q", "only": "control"}, {"kind": "td", "only": "prediction"}]
    stub = Stub(scores, worlds=[MAZE, CHAIN], agents=agents)
    with pytest.raises(bc.InputError, match="by: not all agents live in the same worlds"):
        best(stub, ["study"])
    assert [each.worlds for each in best(stub, ["study", "agent"])] == [("custom-maze",), ("chain-3-2",)]
    with pytest.raises(bc.InputError, match="study: 'mad' given, expected one of made-up"):
        of_study([stub], "mad")
    with pytest.raises(bc.InputError, match="no finished results"):
        of_study([], None)


# choosing


def test_choosing_by_hand():
    costs = np.array([[10, 20, 10, 20], [12, 12, 12, 12], [11, 14, 11, 14]], dtype=float)
    assert winner(costs) == 1
    assert on_fresh_seeds(costs).tolist() == [12, 20, 12, 20]
    assert winner(np.array([[1.0, INF], [3.0, 3.0]])) == 1
    assert winner(np.array([[INF, INF], [3.0, INF]])) == 1
    assert on_fresh_seeds(np.array([[1.0, 5.0, 3.0], [2.0, 2.0, 2.0]])).tolist() == [2, 5, 2]  # a tie: the first


def test_relative_costs_by_hand():
    first, second = np.array([[2.0, 4.0], [6.0, 6.0]]), np.array([[10.0, 30.0], [5.0, 15.0]])
    np.testing.assert_allclose(over_worlds([first, second], True), [[5 / 6, 13 / 6], [1.25, 1.75]])
    np.testing.assert_allclose(over_worlds([first], False), first)
    lost = np.full((2, 2), INF)
    assert np.isinf(over_worlds([first, lost], True)).all()
    zero = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert over_worlds([zero], True).tolist() == [[1, 1], [INF, INF]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(2, 12), st.floats(0.01, 3.0))
def test_all_at_once_tells_the_same_apart_as_one_by_one(seed, n, candidates, spread):
    """Up to ties of rounding: where 0 is all but the end of an interval, either may be said."""
    rng = np.random.default_rng(seed)
    costs = rng.uniform(0, 2, size=(candidates, 1)) + spread * rng.standard_exponential(size=(candidates, n))
    chosen = winner(costs)
    lows = [paired_difference(row, costs[chosen], seed=0).low for i, row in enumerate(costs) if i != chosen]
    surely = sum(low < -0.02 * spread for low in lows)
    perhaps = sum(low < 0.02 * spread for low in lows)
    assert surely <= alike(costs, chosen).sum() - 1 <= perhaps
    assert alike(costs, chosen)[chosen]


def test_fresh_seeds_are_free_of_the_winners_curse():
    """Fifty settings that are all the same: the best looks better than it is, but not on fresh seeds."""
    rng = np.random.default_rng(3)
    studies = rng.normal(10, 1, size=(200, 50, 20))
    looks = np.mean([costs.mean(axis=1).min() for costs in studies])
    fresh = np.mean([on_fresh_seeds(costs).mean() for costs in studies])
    assert looks < 9.6
    assert fresh == pytest.approx(10, abs=0.05)


def test_a_hundred_thousand_settings_take_seconds():
    n = 100_000
    stub = Stub({}, grid={"alpha": [(i + 1) / n for i in range(n)]})
    rows = np.random.default_rng(0).normal(10, 1, size=(n, 20)) + np.abs(np.linspace(-5, 5, n))[:, None]
    stub.scores = {cell.label: row for cell, row in zip(stub.study.runs(), rows, strict=True)}
    started = time.perf_counter()
    (found,) = best(stub)
    assert time.perf_counter() - started < 40  # 3 on an idle core
    assert found.tried == n
    assert 0 < found.alike < n / 2
    assert abs(dict(found.settings)["alpha"] - 0.5) < 0.1


# real runs

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


def backcast(*arguments):
    command = [sys.executable, "-m", "backcast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
        assert (found.tried, found.score.n, found.diverged) == (4, 12, 0)


def test_the_command_prints_a_table_and_warns(directory):
    shown = backcast("best", directory, "--by", "world, agent", "--metric", "steps", "--last", 10)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].split()[:4] == ["world", "agent", "best", "settings"]
    assert [line.split()[:2] for line in lines[1:5]] == [
        [world, agent] for world in ("custom-maze", "maze") for agent in ("q", "backward@previous")
    ]
    assert "on fresh seeds: chosen on every other seed" in shown.stdout
    assert shown.stderr.splitlines() == [
        "custom-maze, backward@previous: alpha = 0.01 is the smallest value tried: better ones may lie beyond",
        "maze, backward@previous: alpha = 1 is the largest value tried, and the largest allowed",
    ]
    (result,) = results(directory)
    printed = json.loads(backcast("best", directory, "--by", "world,agent", "--last", 10, "--json").stdout)
    expected = [each.as_dict() for each in best(result, ["world", "agent"], last=10)]
    assert printed == [{**each, "missing_runs": result.missing_runs} for each in expected]
    assert any("largest allowed" in warning for each in printed for warning in each["warnings"])
    over_all = backcast("best", directory, "--by", "study")
    assert "÷ best: the mean over worlds" in over_all.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "wolrd"), "by: 'wolrd' given, expected some of study, world, agent, alpha, epsilon; did you mean"),
        (("--metric", "rmsve"), "measured in none of the worlds"),
        (("--study", "maze"), "study: 'maze' given, expected one of mazes; did you mean 'mazes'?"),
        (("--last", "0"), "greater than or equal to 1"),
    ],
)
def test_the_command_refuses(directory, arguments, message):
    shown = backcast("best", directory, *arguments)
    assert shown.returncode == 2
    assert message in shown.stderr


def test_the_command_has_help_with_an_example():
    assert "Example: backcast best" in backcast("best", "--help").stdout


@pytest.mark.parametrize("seeds", [MANY, MANY + 1])
def test_of_many_seeds_the_mean_is_as_good_as_normal(seeds):
    """Differences of mean 0.1 and 0.2 and deviation 2.24: 0.1 is 1.4 standard errors of the mean, 0.2 is 2.8."""
    noise = np.random.default_rng(0).normal(size=(3, seeds))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True)
    best = np.zeros(seeds)
    costs = np.stack([best, 0.1 + sqrt(5) * noise[1], 0.2 + sqrt(5) * noise[2]])
    assert alike(costs, 0).tolist() == [True, True, False]
