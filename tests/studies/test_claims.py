"""Claims: what is supported, contradicted or left open, and how often by chance."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from backcast.studies import PAPER, named_study
from backcast.studies.claims import (
    CLAIMS,
    CONTRADICTED,
    FEWEST_SEEDS,
    SUPPORTED,
    UNDECIDED,
    Claim,
    Contrast,
    Part,
    Verdict,
    judge,
)
from backcast.studies.statistics import Interval, bootstrap, simultaneous

SIMULATION = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "measurements" / "intervals.py"))


def part(low, high, *, wider=0.0, n=20, needed=None, otherwise=None):
    middle = (low + high) / 2
    together = Interval(middle, low - wider, high + wider, n)
    return Part("x", Interval(middle, low, high, n), together, "steps", needed, otherwise=otherwise)


def test_a_verdict_can_come_out_any_way():
    assert [part(1, 2).verdict, part(-2, -1).verdict, part(-1, 1).verdict] == [SUPPORTED, CONTRADICTED, UNDECIDED]
    assert Verdict(1, "s", (part(1, 2), part(3, 4)), 20).verdict == SUPPORTED
    assert Verdict(1, "s", (part(1, 2), part(-1, 4)), 20).verdict == UNDECIDED
    mixed = Verdict(1, "s", (part(1, 2), part(-1, 4), part(-2, -1)), 20)
    assert mixed.verdict == CONTRADICTED
    assert mixed.decisive.effect.high == -1


def test_to_contradict_takes_the_interval_that_holds_for_all_and_to_support_does_not():
    supported, not_yet = part(1, 2, wider=3), part(-2, -1, wider=3)
    assert (supported.verdict, str(supported.interval)) == (SUPPORTED, str(supported.effect))
    assert (not_yet.verdict, str(not_yet.interval)) == (UNDECIDED, str(not_yet.together))


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        ((-2, -1), (1, 2), SUPPORTED),
        ((-1, 1), (1, 2), SUPPORTED),
        ((1, 2), (-2, -1), SUPPORTED),
        ((-2, -1), (-1, 1), UNDECIDED),
        ((-1, 1), (-2, -1), UNDECIDED),
        ((-2, -1), (-2, -1), CONTRADICTED),
    ],
)
def test_of_two_alternatives_one_has_to_hold(first, second, verdict):
    either = part(*first, otherwise=part(*second))
    assert either.verdict == verdict
    assert "; or x: " in either.outcome


def test_what_is_undecided_says_why():
    assert (
        part(-1, 1, needed=30).remark
        == "the effect is within its error: at least 10 more seeds decide, if there is one"
    )
    assert part(-1, 1, needed=15).remark == "the effect is within its error: more seeds decide only if there is one"
    assert part(0, 0).remark == "no number of seeds would decide it: all differences are 0"
    assert part(1, 2, n=4).remark == f"4 seeds are too few for a verdict, which takes {FEWEST_SEEDS}"
    assert part(1, 2, n=1).remark == f"1 seed is too few for a verdict, which takes {FEWEST_SEEDS}"
    assert part(1, 2).remark == part(-2, -1).remark == ""
    assert str(Verdict(1, "s", (part(-1, 1, needed=15),), 20)).endswith(
        "; 20 seeds; " + part(-1, 1, needed=15).remark + "]"
    )


class Results:
    """Results made up of the means of agents in one world."""

    missing = ()

    def __init__(self, **means):
        self._means = {agent: np.array(mean) for agent, mean in means.items()}
        self.name, self.seeds = "made-up", len(next(iter(self._means.values())))

    def means(self, world, agent, metric):
        return self._means[agent]

    def diverged(self, world, agent):
        return np.zeros(self.seeds, dtype=np.int64)


def test_parts_are_paired_differences_and_their_intervals():
    rng = np.random.default_rng(0)
    q, forward, backward = rng.normal(size=(3, 15)) + np.array([[0.0], [0.2], [0.4]])
    instead = Contrast("forward", "steps", ((1, "maze", "forward"),))
    comparisons = (
        Contrast("q − backward", "steps", ((1, "maze", "q"), (-1, "maze", "backward"))),
        Contrast("half of q", "steps", ((0.5, "maze", "q"),), instead),
    )
    verdict = Claim(1, "made-up", "s", comparisons).judge(Results(q=q, forward=forward, backward=backward))
    first, second = verdict.parts
    joint = simultaneous(np.column_stack([q - backward, q / 2, forward]), seed=0)
    for found, differences, together in (
        (first, q - backward, joint[0]),
        (second, q / 2, joint[1]),
        (second.otherwise, forward, joint[2]),
    ):
        expected = bootstrap(differences, seed=0)
        assert (found.effect.low, found.effect.high) == pytest.approx((expected.low, expected.high))
        assert (found.together.low, found.together.high) == pytest.approx((together.low, together.high))
    told = json.loads(json.dumps(verdict.as_dict()))
    assert [each["name"] for each in told["parts"]] == ["q − backward", "half of q"]
    assert told["parts"][1]["otherwise"]["name"] == "forward"


@pytest.mark.parametrize("seeds", [1, 3, FEWEST_SEEDS - 1, FEWEST_SEEDS])
def test_few_seeds_give_no_verdict(seeds):
    comparison = Contrast("q", "steps", ((1, "maze", "q"),))
    verdict = Claim(1, "made-up", "s", (comparison,)).judge(Results(q=5 + np.arange(seeds) / seeds))
    assert verdict.verdict == (SUPPORTED if seeds == FEWEST_SEEDS else UNDECIDED)
    assert ("too few for a verdict" in str(verdict)) == (seeds < FEWEST_SEEDS)


class Stub:
    """Results made up so that every claim holds, or none."""

    missing = ()

    def __init__(self, study, holds):
        self.name, self.seeds, self.study = study, 20, named_study(study)
        self.holds = holds

    def means(self, world, agent, metric):
        noise = np.random.default_rng(list(f"{world} {agent}".encode())).normal(size=self.seeds) * 0.01
        return (self.level(world, agent) if self.holds else -self.level(world, agent)) + noise

    def diverged(self, world, agent):
        return np.zeros(self.seeds, dtype=np.int64)

    def level(self, world, agent):
        if world.startswith("chain"):
            sizes = [int(size) for size in world.split("-")[1:]]
            channels = sizes[0] > sizes[-1]
            lost = 0.5 if agent == "pure:forward" else 0.0
            return lost + (1.0 if ("backward" in agent) == channels else 2.0)
        better = {
            "backward@previous", "forward@current", "pure:backward@current", "pure:forward@previous",
        }  # fmt: skip
        if self.name == "frames":
            return 1.0 if agent in better else 2.0
        if world == "maze-reward-0.1":
            return 50.0
        slip = 10.0 if world == "maze-slip-0.5" and agent == "forward@current" else 0.0
        return {"backward@previous": 1.0, "true-forward@current": 1.0, "q": 2.0, "forward@current": 3.0}[agent] + slip


@pytest.mark.parametrize("study", PAPER)
def test_claims_hold_or_fail_with_the_data(study):
    good, bad = judge(Stub(study, True)), judge(Stub(study, False))
    assert {verdict.verdict for verdict in good} == {SUPPORTED}
    assert {v.verdict for v in bad if v.number != 10} <= {CONTRADICTED}
    assert all(verdict.seeds == 20 for verdict in good)


def test_one_ratio_that_is_a_tie_does_not_spoil_a_single_switch_but_a_way_back_does():
    class Tie(Stub):
        def level(self, world, agent):
            return 1.5 if world == "chain-5-5" else super().level(world, agent)

    class Back(Stub):
        def level(self, world, agent):
            swapped = {"chain-50-5": "chain-5-50", "chain-5-50": "chain-50-5"}
            return super().level(swapped.get(world, world), agent)

    verdicts = [judge(results("fan-ratios", True))[0] for results in (Tie, Back)]
    assert [verdict.verdict for verdict in verdicts] == [SUPPORTED, CONTRADICTED]
    assert "backward ahead at " in verdicts[1].decisive.name
    assert "; or forward ahead at 5-50: " in verdicts[1].decisive.outcome


def test_misspecification_hurts_forward_more_only_if_it_loses_more():
    """Both lose by learning their models; forward less."""

    class BackwardLosesMore(Stub):
        def level(self, world, agent):
            return {"pure:forward": 3.0, "pure:backward": 5.0}.get(agent, 1.0)

    verdict = next(each for each in judge(BackwardLosesMore("fan-ratios", True)) if each.number == 11)
    assert verdict.verdict == CONTRADICTED
    assert {round(each.effect.estimate) for each in verdict.parts} == {-2}


@pytest.mark.parametrize("number", SIMULATION["STRUCTURES"])
def test_a_claim_without_substance_rarely_gets_a_verdict(number):
    """In 5 % of 120 made-up studies, or a little more by chance: 3 standard errors."""
    claim = next(claim for claim in CLAIMS if claim.number == number)
    rates = SIMULATION["wrong_verdicts"](claim, SIMULATION["NOISE"]["exponential"], 20, 120, seed=1)
    assert max(rates) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
