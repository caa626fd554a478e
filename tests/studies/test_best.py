"""The best settings of studies whose results are made up: by hand, in groups, over worlds, and before all is done."""

import json

import numpy as np
import pytest

import backcast as bc
from backcast.studies.best import best, of_study
from made_up import ALPHAS, CHAIN, LUCKY, MAZE, Scores

INF = np.inf


def test_the_best_by_hand():
    """The even seeds would choose α = 1, which costs 20 in the odd ones; the odd ones 0.5, which costs 12.

    Of α = 1 the resampled mean of −2, 8, −2, 8 is at most 0 once in 16 times, of α = 0.1 that of −1, 2, −1, 2 five
    times: both are within what chance does.
    """
    (found,) = best(Scores(LUCKY, grid=ALPHAS))
    assert found.group == (("study", "made-up"), ("world", "custom-maze"), ("agent", "q"))
    assert found.settings == (("alpha", 0.5),)
    assert (found.score.estimate, found.score.low, found.score.high, found.score.n) == (12, 12, 12, 4)
    assert found.fresh.estimate == 16
    assert (found.metric, found.tried, found.alike, found.diverged, found.warnings) == ("steps", 3, 2, 0, ())


def test_what_is_worse_in_every_seed_is_told_apart():
    (found,) = best(Scores({**LUCKY, "q,alpha=1": [13, 14, 13, 13], "q,alpha=0.1": [12, 12, 12, 12]}, grid=ALPHAS))
    assert (found.settings, found.alike) == ((("alpha", 0.5),), 1)  # the first of two equal ones


def test_runs_that_diverged_are_never_the_best():
    (found,) = best(Scores({**LUCKY, "q,alpha=0.5": [0, 0, 0, INF]}, grid=ALPHAS))
    assert found.settings == (("alpha", 0.1),)
    assert found.diverged == 1
    assert found.score.estimate == 12.5
    assert (found.alike, found.warnings) == (1, ())


def test_where_all_diverged_it_is_said():
    every = {"q,alpha=1": [1, INF, INF, 1], "q,alpha=0.5": [1, INF, 1, 1], "q,alpha=0.1": [INF, INF, INF, INF]}
    (found,) = best(Scores(every, grid=ALPHAS))
    assert (found.settings, found.diverged, found.tried) == ((("alpha", 0.5),), 3, 3)
    assert found.warnings == ("all 3 settings diverged",)
    assert found.as_dict()["mean"] is None
    assert found.as_row()["mean"] == "diverged"


def test_a_choice_may_diverge_on_fresh_seeds():
    (found,) = best(Scores({**LUCKY, "q,alpha=1": [1, INF, 1, 5]}, grid=ALPHAS))
    assert found.score.estimate == 12
    assert found.as_dict()["fresh"]["mean"] is None
    assert found.as_row()["on fresh seeds"] == "diverged"


def test_more_reward_is_better_and_diverging_costs_all_of_it():
    rewards = {"q,alpha=1": [1, 3, 1, 3], "q,alpha=0.5": [2, 3, 3, 2], "q,alpha=0.1": [-INF, 9, 9, -INF]}
    (found,) = best(Scores(rewards, grid=ALPHAS), metric="reward")
    assert found.settings == (("alpha", 0.5),)
    assert (found.metric, found.score.estimate) == ("reward", 2.5)
    assert found.score.low < 2.5 < found.score.high
    assert found.fresh.estimate == (1 + 3 + 1 + 2) / 4  # the odd seeds choose α = 1, the even ones 0.5


def test_the_last_episodes_alone():
    (found,) = best(Scores(LUCKY, grid=ALPHAS), last=1)
    assert found.score.estimate == 12
    (found,) = best(Scores(LUCKY, grid=ALPHAS), last=2)
    assert found.score.estimate == 56
    assert best(Scores(LUCKY, grid=ALPHAS), last=99)[0].score.estimate == pytest.approx(212 / 3)


def test_of_a_run_whose_budget_is_used_up_the_last_episodes_are_those_that_it_ran():
    class UsedUp(Scores):
        """The budget of 10 updates is used up in the first episode of one seed, in the second of the others."""

        def updates(self, world, agent):
            return np.array([[10, 10, 10], [5, 10, 10], [5, 10, 10], [5, 10, 10]])

        def curves(self, world, agent, metric):
            scored = self.means(world, agent, metric)
            return np.column_stack([np.where(np.arange(4) == 0, scored, 100.0), scored, scored])

    for last, mean in ((1, 12), (2, (12 + 3 * 56) / 4), (3, (12 + 3 * 56) / 4)):
        (found,) = best(UsedUp(LUCKY, grid=ALPHAS, updates=10), last=last)
        assert found.score.estimate == mean


def test_one_seed_tells_nothing_apart():
    (found,) = best(Scores({label: row[:1] for label, row in LUCKY.items()}, grid=ALPHAS))
    assert (found.settings, found.alike, found.fresh) == ((("alpha", 1.0),), 2, None)
    row = found.as_row()
    assert (row["mean"], row["on fresh seeds"]) == ("10", "–")
    assert json.loads(json.dumps(found.as_dict()))["low"] is None


# groups

TWO_AGENTS = {"agents": [{"kind": "q"}, {"kind": "backward", "label": "back"}]}
BOTH = {"q": [15, 16, 17, 14], "back": [4, 4, 4, 4]}


def test_without_a_grid_agents_are_compared():
    stub = Scores(BOTH, **TWO_AGENTS)
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
    stub = Scores(scores, worlds=[MAZE, {"kind": "maze"}], grid={"alpha": [1.0, 0.1]})
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
    stub = Scores(scores, worlds=[MAZE, CHAIN], agents=[{"kind": "forward"}, {"kind": "backward"}])
    (found,) = best(stub, ["study"])
    assert (found.settings, found.score.estimate) == ((("agent", "backward"),), 1.5)
    assert found.metric == "steps, rmsve"
    assert [each.worlds for each in best(stub, metric="rmsve_inner")] == 2 * [("chain-3-2",)]


def test_by_a_setting():
    scores = {"q,alpha=1,epsilon=0.1": 4 * [1], "q,alpha=1,epsilon=0.2": 4 * [2], "q,alpha=0.5,epsilon=0.1": 4 * [4],
              "q,alpha=0.5,epsilon=0.2": 4 * [3]}  # fmt: skip
    found = best(Scores(scores, grid={"alpha": [1.0, 0.5], "epsilon": [0.1, 0.2]}), ["alpha", "world"])
    assert [(each.group[0], each.settings[1:], each.score.estimate) for each in found] == [
        (("alpha", 1.0), (("epsilon", 0.1),), 1),
        (("alpha", 0.5), (("epsilon", 0.2),), 3),
    ]
    assert [each.warnings[0].partition(" is ")[0] for each in found] == ["epsilon = 0.1", "epsilon = 0.2"]
    assert found[0].where == "alpha = 1, custom-maze"


def test_an_agent_without_the_setting_is_a_group_of_its_own():
    stub = Scores(
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
    stubs = [
        Scores({"q": 4 * [i + 1]}, name=name, worlds=[world], **more) for i, (name, world, more) in enumerate(given)
    ]
    names = ["custom-maze (m1, m3)", "custom-maze (m2)", "custom-maze (m4)"]
    for by in (["world", "agent"], ["world"]):
        found = best(stubs, by)
        assert [dict(each.group)["world"] for each in found] == names
        assert [each.worlds for each in found] == [(name,) for name in names]
        assert [each.score.estimate for each in found] == [1, 2, 4]
        assert [each.tried for each in found] == [2, 1, 1]
    with pytest.raises(bc.InputError, match=r"by: not all agents run in the same worlds, .*; add world or study$"):
        best(stubs, ["agent"])
    assert [dict(each.group)["world"] for each in best(stubs)] == 4 * ["custom-maze"]
    assert [each.worlds for each in best(stubs, ["study"])] == 4 * [("custom-maze",)]
    limited = [Scores({"q": 4 * [1]}, name=f"s{i}", updates=i) for i in (1, 2)]
    assert [each.where for each in best(limited, ["world"])] == ["custom-maze (s1)", "custom-maze (s2)"]


def test_worlds_that_are_left_out_are_named():
    agents = [{"kind": "forward"}, {"kind": "q", "only": "control"}]
    chains = [{"kind": "chain", "levels": [3, levels]} for levels in range(2, 9)]
    scores = {"q": 4 * [3], "forward": 4 * [2]}
    (found,) = best(Scores(scores, worlds=[MAZE, CHAIN], agents=agents), ["study"])
    assert (found.worlds, found.left_out, found.relative) == (("custom-maze",), ("chain-3-2",), False)
    assert found.as_row()["metric"] == "steps, 1 of 2 worlds"
    assert (found.as_dict()["worlds"], found.as_dict()["left_out"]) == (["custom-maze"], ["chain-3-2"])
    assert found.warnings == ("left out, as not all of these are run there: chain-3-2",)
    (found,) = best(Scores(scores, worlds=[*MAZES, *chains], agents=agents), ["study"])
    assert found.as_row()["metric"] == "steps ÷ best, 2 of 9 worlds"
    names = ", ".join(f"chain-3-{levels}" for levels in range(2, 7))
    assert found.warnings == (f"left out, as not all of these are run there: {names} and 2 more",)
    (found,) = best(Scores(scores, worlds=[*MAZES, CHAIN], agents=agents), ["study"], "reward")
    assert (found.as_row()["metric"], found.left_out) == ("reward, mean of 2 worlds", ())  # there is none in the chain
    assert [each.left_out for each in best(Scores(scores, worlds=[MAZE, CHAIN], agents=agents), ["agent"])] == [(), ()]


def test_several_studies_together_and_apart():
    one, two = Scores(BOTH, **TWO_AGENTS), Scores({"q": [1, 2, 3]}, name="other")
    assert [each.group[0][1] for each in best([one, two])] == ["made-up", "made-up", "other"]
    found = best([one, two], ["agent", "world"])
    assert [each.settings for each in found] == [(("study", "other"),), ()]
    assert found[0].score.n == 3  # the seeds that both have
    assert of_study([one, two], "other") == [two]
    assert of_study([one, two], None) == [one, two]


# what is not done yet


def test_what_was_not_run_yet_is_left_out_with_a_warning():
    (found,) = best(Scores({label: LUCKY[label] for label in list(LUCKY)[1:]}, grid=ALPHAS))
    assert (found.settings, found.tried) == ((("alpha", 0.5),), 2)
    assert found.warnings == ("made-up is not complete: 1 of 3 settings have runs that are not done",)
    assert found.as_dict()["warnings"] == list(found.warnings)


def test_the_edge_is_that_of_what_is_to_be_tried():
    """Of 0.1, 0.2, 0.5 and 1 the first is not done: 0.2 is no edge, and 1 is one."""
    grid = {"alpha": [0.1, 0.2, 0.5, 1.0]}
    (found,) = best(Scores({"q,alpha=0.2": 4 * [1], "q,alpha=0.5": 4 * [2], "q,alpha=1": 4 * [3]}, grid=grid))
    assert found.warnings == ("made-up is not complete: 1 of 4 settings have runs that are not done",)
    (found,) = best(Scores({"q,alpha=0.2": 4 * [3], "q,alpha=0.5": 4 * [2], "q,alpha=1": 4 * [1]}, grid=grid))
    assert found.warnings[1:] == ("alpha = 1 is the largest value tried, and the largest allowed",)
    (found,) = best(Scores({"q,alpha=1": 4 * [1]}, grid=grid))
    assert found.warnings == ("made-up is not complete: 3 of 4 settings have runs that are not done",)


MAZES = [MAZE, {"kind": "maze"}]


def test_over_worlds_what_is_done_in_all_of_them_is_compared():
    scores = {
        "custom-maze": {"q,alpha=1": 4 * [9], "q,alpha=0.5": 4 * [1], "q,alpha=0.1": 4 * [8]},
        "maze": {"q,alpha=1": 4 * [3], "q,alpha=0.1": 4 * [2]},
    }
    (found,) = best(Scores(scores, worlds=MAZES, grid=ALPHAS), ["agent"])
    assert (found.worlds, found.left_out, found.tried) == (("custom-maze", "maze"), (), 2)
    assert (found.settings, found.score.estimate) == ((("alpha", 0.1),), 1)
    assert found.warnings[0] == "made-up is not complete: 1 of 3 settings have runs that are not done"
    scores["maze"] = {}
    (found,) = best(Scores(scores, worlds=MAZES, grid=ALPHAS), ["agent"])
    assert (found.worlds, found.tried, found.settings) == (("custom-maze",), 3, (("alpha", 0.5),))
    assert (found.left_out, found.as_row()["metric"]) == (("maze",), "steps, 1 of 2 worlds")
    assert found.warnings == (
        "made-up is not complete: 3 of 3 settings have runs that are not done",
        "left out, as nothing is done there yet: maze",
    )
    scores = {"custom-maze": {"q,alpha=1": 4 * [9]}, "maze": {"q,alpha=0.1": 4 * [2]}}
    with pytest.raises(bc.InputError, match=r"by: no settings are done in all of the worlds yet, .*; add world"):
        best(Scores(scores, worlds=MAZES, grid=ALPHAS), ["agent"])


def test_a_world_that_another_study_has_not_begun_is_shared_all_the_same():
    ready = Scores({"q": 4 * [5]}, worlds=[MAZE])
    begun = Scores({"maze": {"q": 4 * [1]}, "custom-maze": {}}, name="other", worlds=MAZES)
    (found,) = best([ready, begun], ["agent"])
    assert (found.worlds, found.left_out, found.tried) == (("custom-maze",), ("maze",), 1)
    assert found.score.estimate == 5
    assert found.warnings == (
        "other is not complete: 1 of 1 settings have runs that are not done",
        "left out, as not all of these are run there: maze",
    )


def test_of_a_study_that_is_not_complete_every_group_says_so():
    scores = {"custom-maze": LUCKY, "maze": {}}
    (found,) = best(Scores(scores, worlds=MAZES, grid=ALPHAS))
    assert found.warnings == ("made-up is not complete: other runs of it are not done",)
    (found,) = best(Scores(LUCKY, grid=ALPHAS, seeds=20))
    assert found.warnings == ("made-up is not complete: 4 of 20 seeds are done",)
    (found,) = best(Scores({"custom-maze": LUCKY}, worlds=[MAZE, CHAIN], grid=ALPHAS), ["study"], "steps")
    assert found.warnings == ("made-up is not complete: other runs of it are not done",)  # it has no steps in the chain
    both = [Scores(LUCKY, grid=ALPHAS), Scores({"q": 4 * [1]}, name="other", seeds=9)]
    assert [len(each.warnings) for each in best(both)] == [0, 1]
    assert best(both, ["world"])[0].warnings == ("other is not complete: 4 of 9 seeds are done",)
