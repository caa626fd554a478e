"""Studies with runs that diverge: infinite where they must be, NaN nowhere, and said in words."""

import csv
import json

import numpy as np

import backcast as bc
from backcast.drivers.metrics import lost_episodes
from backcast.studies import check_study, export
from backcast.studies.claims import CONTRADICTED, UNDECIDED, Part, Verdict, judge
from backcast.studies.divergence import divergences, in_words
from backcast.studies.results import Results
from backcast.studies.runner import run_study
from backcast.studies.statistics import Interval
from backcast.studies.store import Store
from commands import a_command_line  # noqa: F401  a fixture
from diverging import CHAIN, CONTROL, FEATURES, SHORT, a_directory, found_there  # noqa: F401  fixtures

INF = np.inf


# in words


def test_in_words():
    assert in_words(np.array([0, 0])) == ""
    assert in_words(np.array([0, 2345, 1234])) == "diverged in 2 of 3 seeds, first at step 1,234"
    assert in_words(np.array([0, 7, 0])) == "diverged in 1 of 3 seeds, at step 7"
    assert in_words(np.array([7])) == "diverged at step 7"


def test_a_run_is_lost_from_the_episode_in_which_it_diverged():
    steps = np.array([[3, 4, 2, 2], [3, 4, 2, 2], [5, 5, 5, 5]])
    assert lost_episodes(steps, np.array([7, 8, 0])).tolist() == [
        [False, True, True, True], [False, False, True, True], [False] * 4,
    ]  # fmt: skip


# the store


def test_results_say_when_each_seed_diverged(found):
    world = bc.worlds.chain(levels=[5, 10, 20], seed=None)
    agent = bc.agent("td", features=FEATURES, alpha=0.2, schedule="constant")
    runs = bc.run(world, agent, episodes=200, seeds=20, updates=700)
    diverged = found["predict"].diverged(CHAIN, "td,alpha=0.2")
    assert diverged.tolist() == runs.diverged.tolist()
    assert 0 < (diverged > 0).sum() <= 5  # at most a quarter
    curves = found["predict"].curves(CHAIN, "td,alpha=0.2", "rmsve")
    np.testing.assert_array_equal(curves, runs.rmsve)
    np.testing.assert_array_equal(np.isinf(curves[:, -1]), diverged > 0)
    (world, agent, words), *others = divergences(found["predict"])
    assert (world, agent, words) == (CHAIN, "td,alpha=0.2", in_words(runs.diverged))
    assert [(world, agent) for world, agent, _ in others] == [(CHAIN, "td,alpha=1"), (SHORT, "td,alpha=1")]
    assert all(words.startswith("diverged in 20 of 20 seeds, first at step ") for *_, words in others)


def test_in_control_steps_and_reward_are_as_bad_as_can_be_from_then_on(found):
    result, (_, agent) = found["control"], found["control"].agents("maze")
    diverged, world = result.diverged("maze", agent), bc.worlds.maze(max_steps=300)
    runs = bc.run(world, bc.agent("expected-trace", lam=1.0, alpha=1.0, alpha_model=0.01, schedule="constant"), 40, 5)
    assert diverged.all()
    lost = runs.steps.cumsum(axis=1) >= diverged[:, None]
    np.testing.assert_array_equal(result.curves("maze", agent, "steps"), np.where(lost, INF, runs.steps))
    np.testing.assert_array_equal(result.curves("maze", agent, "reward"), np.where(lost, -INF, runs.reward))
    np.testing.assert_array_equal(result.updates("maze", agent), runs.updates.by_episode)
    assert (result.means("maze", agent, "steps") == INF).all()
    assert not lost[:, 0].any()
    assert np.isfinite(result.means("maze", "q", "steps")).all()


def test_units_of_before_can_still_be_read(tmp_path):
    study = check_study({**CONTROL, "agents": [{"kind": "q"}], "episodes": 2, "plots": []}, "old")
    store = Store(tmp_path, create=True)
    run_study(store, study, seeds=2)
    for path in (tmp_path / "units").glob("*.json"):
        record = json.loads(path.read_text())
        (unit,) = record.pop("units")
        assert unit.pop("diverged") == [0, 0]
        path.write_text(json.dumps({**unit, "finished": record["finished"], "machine": record["machine"]}))
    result = Results(store, study)
    assert result.diverged("maze", "q").tolist() == [0, 0]
    assert run_study(store, study, seeds=2).runs == 0


# claims


class Planners:
    """Forward planning diverges at 1:100; else every direction is ahead where the paper says, in 20 seeds."""

    name, seeds, missing = "fan-ratios", 20, ()

    def means(self, world, agent, metric):
        before, after = (int(size) for size in world.split("-")[1:])
        ahead = "backward" if before > after else "forward"
        mean = np.linspace(1, 2, 20) + (ahead not in agent)
        return np.where(self.diverged(world, agent) > 0, INF, mean)

    def diverged(self, world, agent):
        lost = world == "chain-5-500" and agent == "forward"
        return np.array([0, 1234, 2345] + [0] * 17) * lost


def test_a_claim_about_an_agent_that_diverged_says_so():
    verdict = next(each for each in judge(Planners()) if each.number == 3)
    assert verdict.verdict == UNDECIDED
    part = verdict.decisive
    assert part.effect is None
    assert part.outcome == "forward in chain-5-500 diverged in 2 of 20 seeds, first at step 1,234"
    assert str(verdict).endswith(f"[learned model, all states: forward ahead at 1:100: {part.outcome}; 20 seeds]")
    assert [each.effect is None for each in verdict.parts].count(True) == 2  # all states and non-terminal states
    json.dumps(verdict.as_dict(), allow_nan=False)


def test_what_contradicts_a_claim_still_does():
    lost = Part("a", None, None, "RMSVE", None, "q in maze diverged at step 7")
    against = Part("b", Interval(-1, -2, -0.5, 20), Interval(-1, -2, -0.5, 20), "RMSVE")
    verdict = Verdict(1, "s", (lost, against), 20)
    assert (verdict.verdict, verdict.decisive) == (CONTRADICTED, against)


def test_the_command_line_says_who_diverged(tmp_path, cli):
    specification = tmp_path / "lost.toml"
    specification.write_text(
        'episodes = 20\n[[worlds]]\nkind = "chain"\nlevels = [5, 10, 20]\n[[agents]]\nkind = "td"\nalpha = 1.0\n'
        'label = "linear"\nschedule = "constant"\nfeatures = {kind = "random_binary", d = 20, active = 10}\n'
    )
    agent = bc.agent("td", features=FEATURES, alpha=1.0, schedule="constant")
    diverged = bc.run(bc.worlds.chain(levels=[5, 10, 20], seed=None), agent, episodes=20, seeds=3).diverged
    first = f"diverged in 3 of 3 seeds, first at step {diverged.min()}"
    sweep = ("sweep", specification, "--seeds", 3, "--out", tmp_path / "out")
    assert cli(*sweep, "--quiet")[2].splitlines() == [f"lost: linear in {CHAIN} {first}"]
    lines = cli(*sweep, "--json")[1].splitlines()
    expected = {"study": "lost", "world": CHAIN, "agent": "linear", "diverged": diverged.tolist()}
    assert json.loads(lines[0]) == expected


def test_exports_write_infinity_as_such(directory, tmp_path):
    export(directory, tmp_path / "all.csv")
    lines = (tmp_path / "all.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert f'"predict","{CHAIN}","td,alpha=1",0,199,"rmsve",inf,' in "\n".join(lines)
    assert {row["value"] for row in rows if row["metric"] == "reward"} >= {"-inf"}
    assert not [row for row in rows if row["value"] in ("nan", "NaN", "")]
