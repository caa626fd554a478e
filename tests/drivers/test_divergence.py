"""Runs that diverge, from the store to the report: infinite where they must be, NaN nowhere, and said in words."""

import csv
import json
import re
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis.extra import numpy as hnp

import backcast as bc
from backcast.core.errors import InputError
from backcast.drivers.metrics import lost_episodes
from backcast.report import capacity, comparisons, figures, numbers, page
from backcast.studies import check_study, export, resampling, results
from backcast.studies.claims import CONTRADICTED, UNDECIDED, Part, Verdict, judge
from backcast.studies.divergence import divergences, in_words
from backcast.studies.results import Results
from backcast.studies.runner import run_study
from backcast.studies.spec import PLOT_NAMES
from backcast.studies.statistics import (
    Interval,
    align_by_steps,
    bootstrap,
    iqm,
    mean_and_error,
    on_update_grid,
    paired_difference,
    probability_of_improvement,
    seeds_needed,
)
from backcast.studies.store import Store

INF = np.inf
FEATURES = {"kind": "random_binary", "d": 20, "active": 10}
CHAIN, SHORT = "chain-5-10-20", "chain-5-20"


def linear_td(alpha):
    label = f"td,alpha={alpha:g}"
    return {"kind": "td", "label": label, "features": FEATURES, "alpha": alpha, "schedule": "constant"}


# with a step size of 0.2 values grow slowly in the first chain: after 200 episodes those of few seeds have exploded
PREDICTION = {
    "name": "predict",
    "episodes": 200,
    "seeds": 20,
    "worlds": [{"kind": "chain", "levels": [5, 10, 20], "updates": 700}, {"kind": "chain", "levels": [5, 20]}],
    "agents": [{"kind": "td"}, *map(linear_td, (0.05, 0.2, 1.0))],
    "plots": ["error-curves", "error-by-agent", "error-by-ratio", "error-against-updates", "error-against-seconds"],
}
CONTROL = {
    "name": "control",
    "episodes": 40,
    "seeds": 5,
    "worlds": [{"kind": "maze", "max_steps": 300}],
    "agents": [
        {"kind": "q"},
        {"kind": "expected-trace", "lam": 1.0, "alpha": 1.0, "alpha_model": 0.01, "schedule": "constant"},
    ],
    "plots": ["steps-per-episode", "reward-over-steps", "error-by-agent", "error-against-updates"],
}
DRAWN = [(study["name"], plot) for study in (PREDICTION, CONTROL) for plot in study["plots"]]


def backcast(*arguments):
    command = [sys.executable, "-m", "backcast", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for study in (PREDICTION, CONTROL):
        run_study(Store(folder, create=True), check_study(study, study["name"]))
    return folder


@pytest.fixture(scope="module")
def found(directory):
    return {result.name: result for result in results(directory)}


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


# statistics


def test_a_mean_is_infinite_if_one_run_diverged():
    mean, error = mean_and_error([[1, INF, INF], [3, 5, INF]])
    assert mean.tolist() == [2, INF, INF]
    assert error.tolist() == [1, INF, INF]


def test_the_interquartile_mean_is_infinite_if_more_than_a_quarter_diverged():
    assert iqm([4, INF, 1, 2]) == 3
    assert iqm([4, INF, 1, INF]) == INF
    assert iqm([[1, 2, INF, 4], [INF, INF, 1, 1]], axis=1).tolist() == [3, INF]
    assert iqm([[1, INF], [2, 1], [INF, INF], [4, 1]]).tolist() == [3, INF]


def test_intervals_may_end_at_infinity():
    """Of the resamples of (0, ∞), a quarter is without infinity."""
    assert bootstrap([0, INF], seed=0) == Interval(INF, 0, INF, 2)
    assert bootstrap([0, INF], seed=0, level=0.4) == Interval(INF, INF, INF, 2, 0.4)
    assert bootstrap([INF] * 3, seed=0) == Interval(INF, INF, INF, 3)
    assert str(bootstrap([0, INF], seed=0)) == "inf [0, inf]"
    assert not bootstrap([0, INF], seed=0).excludes_zero


def test_the_ends_among_infinite_values_are_some_of_them_outwards():
    """Among four values, a quarter of the way is at 0.75 and three quarters at 2.25."""
    assert resampling.middle(np.array([2, INF, 0, 1]), level=0.5) == (0, INF)
    assert resampling.middle(np.array([2, 3, 0, 1]), level=0.5) == (0.75, 2.25)


@given(hnp.arrays(np.float64, st.integers(2, 12), elements=st.sampled_from([0.0, 1.5, 3.0, INF])), st.sampled_from([
    np.mean, iqm,
]), st.sampled_from([0.5, 0.9, 0.95]))  # fmt: skip
@example(np.array([1.0, INF, INF, 3.0]), iqm, 0.5)
@example(np.array([1.5, INF, INF, INF]), iqm, 0.95)
@example(np.array([0.0, 1.5, 3.0, 3.0, INF]), iqm, 0.95)  # finite, but infinite in some resamples
@example(np.array([0, INF, INF, 0, INF, 0, INF, 0, INF]), iqm, 0.95)  # its lower end lies between finite and infinite
def test_no_interval_is_nan_and_each_holds_what_the_infinite_was_before(values, statistic, level):
    interval = bootstrap(values, statistic, seed=1, level=level, resamples=200)
    assert interval.low <= interval.high
    assert not np.isnan([interval.estimate, interval.low, interval.high]).any()
    huge = bootstrap(np.where(np.isinf(values), 1e200, values), statistic, seed=1, level=level, resamples=200)
    assert min(interval.low, 1e150) <= huge.low
    assert interval.high >= min(huge.high, 1e150)


def test_who_diverged_is_worse():
    chance = probability_of_improvement([1, INF, INF, 2], [2, 1, INF, INF], better="lower", seed=0)
    assert chance.estimate == (1 + 0 + 0.5 + 1) / 4
    unpaired = probability_of_improvement([1, INF], [INF, 2], better="lower", paired=False, seed=0)
    assert unpaired.estimate == (1 + 1 + 0.5 + 0) / 4


def test_an_infinite_error_is_read_at_numbers_of_updates():
    read = on_update_grid([[2, 4, 4]], [[1, INF, INF]], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(read, [[np.nan, 1, 1, INF, np.nan]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: paired_difference(x, [1, 2], seed=0),
        lambda x: probability_of_improvement(x, [1, 2], better="higher", seed=0),
        lambda x: align_by_steps([[1, 2]], [x], [1], between="linear"),
        lambda x: seeds_needed(x, Interval(1, 1, 1, 2)),
    ],
)
def test_what_has_no_meaning_with_infinity_is_refused(call):
    with pytest.raises(InputError, match=r"entry 1 is inf; every entry must be finite$"):
        call([1, INF])


@pytest.mark.parametrize("call", [mean_and_error, iqm, lambda x: bootstrap(x, seed=0)])
def test_minus_infinity_is_no_error_of_a_run(call):
    with pytest.raises(InputError, match="values: entry 1 is -inf"):
        call([1, -INF])


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


# figures


class Without:
    """The same results without agents that diverged in a world."""

    def __init__(self, result):
        self._result = result

    def __getattr__(self, name):
        return getattr(self._result, name)

    def agents(self, world):
        return [agent for agent in self._result.agents(world) if not self._result.diverged(world, agent).any()]


def panels(figure):
    figure.canvas.draw()
    return [axes for axes in figure.axes if axes.axison]


@pytest.mark.parametrize(("name", "plot"), DRAWN)
def test_all_that_is_drawn_is_finite_and_who_diverged_does_not_set_the_limits(found, name, plot):
    figure, healthy = (figures.PLOTS[plot](result) for result in (found[name], Without(found[name])))
    for axes, other in zip(panels(figure), panels(healthy), strict=True):
        assert all(np.isfinite(line.get_xydata()).all() for line in axes.get_lines())
        paths = [path.vertices for shape in axes.collections for path in shape.get_paths()]
        assert np.isfinite(np.concatenate([np.zeros((1, 2)), *paths])).all()
        np.testing.assert_allclose(axes.get_xlim(), other.get_xlim())
        if plot not in ("error-by-ratio", "error-by-agent"):  # whose panels have other rows
            np.testing.assert_allclose(axes.get_ylim(), other.get_ylim())


@pytest.mark.parametrize(("name", "plot"), DRAWN)
def test_a_note_says_who_diverged_and_when(found, name, plot):
    note = figures.PLOTS[plot](found[name]).get_supxlabel()
    for world, agent, words in divergences(found[name]):
        where = re.escape(words) if name == "control" else rf"{re.escape(words)} \(Broadcasting: 5 → .*20 states\)"
        assert re.search(rf"^× .* {where}$", note, re.MULTILINE), (world, agent)
    assert note.count("×") == len(list(divergences(found[name])))


def test_a_curve_ends_in_a_cross_where_a_seed_diverged(found):
    figure = figures.error_curves(found["predict"])
    curves = found["predict"].curves(CHAIN, "td,alpha=0.2", "rmsve")
    last = int(np.isfinite(curves).all(axis=0).sum())
    assert 100 < last < 200
    (line,) = [line for line in figure.axes[0].get_lines() if line.get_label() == "TD, α = 0.2 ×"]
    x, y = line.get_xydata().T
    assert (x[-1], y[-1]) == (last, pytest.approx(curves[:, last - 1].mean()))
    crosses = [each.get_xydata()[0] for each in figure.axes[0].get_lines() if each.get_marker() == "x"]
    assert [last, y[-1]] in [list(each) for each in crosses]
    assert "TD, α = 0.05" in [text.get_text() for text in figure.axes[0].texts]


def test_reward_is_drawn_until_a_seed_diverged(found):
    result, (_, agent) = found["control"], found["control"].agents("maze")
    (axes,) = [axes for axes in figures.reward_over_steps(result).axes if axes.get_xlabel()]
    (line,) = [line for line in axes.get_lines() if line.get_label().endswith("×")]
    steps = result.curves("maze", agent, "steps")
    whole = np.isfinite(steps).all(axis=0)
    assert line.get_xdata()[-1] == steps[:, whole].sum(axis=1).min()


def test_reward_beyond_the_shortest_run_is_not_drawn_of_who_diverged_later():
    class Slow:
        """Q-learning takes 40 steps; the other agent 300, and then diverges."""

        worlds, seeds = ("maze",), 2

        def agents(self, world):
            return ["q", "dyna"]

        def diverged(self, world, agent):
            return np.array([350, 0]) * (agent == "dyna")

        def curves(self, world, agent, metric):
            curves = np.full((2, 4), {"reward": 1.0, "steps": 10.0 if agent == "q" else 100.0}[metric])
            if agent == "dyna":
                curves[0, 3] = INF if metric == "steps" else -INF
            return curves

    figure = figures.reward_over_steps(Slow())
    axes = panels(figure)[0]
    lines = {line.get_label(): line.get_xdata() for line in axes.get_lines() if not line.get_label().startswith("_")}
    assert list(lines) == ["Q-learning", "Dyna"]
    assert lines["Dyna"].max() <= lines["Q-learning"].max() == axes.get_xlim()[1] == 40
    assert "× Dyna diverged in 1 of 2 seeds, at step 350" in figure.get_supxlabel()


def test_bars_leave_out_who_diverged_and_say_so(found):
    axes = comparisons.error_by_agent(found["predict"]).axes[0]
    assert [text.get_text() for text in axes.texts] == ["× diverged"] * 2
    assert len([line for line in axes.get_lines() if line.get_marker() == "o"]) == 2


def test_points_are_joined_but_for_those_that_diverged(found):
    """The step size 0.2 diverges in the first chain alone."""
    below = figures.error_by_ratio(found["predict"]).axes[1]
    (line,) = [line for line in below.get_lines() if line.get_label() == "TD, α = 0.2"]
    assert line.get_xdata().tolist() == [1]
    crosses = [line.get_xdata().tolist() for line in below.get_lines() if line.get_marker() == "x"]
    assert sorted(crosses) == [[0], [0, 1]]
    lower, upper = below.get_ylim()
    assert 0.1 < lower < upper < 1000


@pytest.mark.parametrize("plot", PREDICTION["plots"])
@pytest.mark.parametrize("at_once", [False, True])
def test_if_all_diverged_there_still_is_a_figure(found, plot, at_once):
    class Lost(Without):
        def agents(self, world):
            return ["td,alpha=1"]

        def curves(self, world, agent, metric):
            curves = self._result.curves(world, agent, metric)
            return np.full_like(curves, INF) if at_once else curves

    figure = figures.PLOTS[plot](Lost(found["predict"]))
    for axes in panels(figure):
        assert np.isfinite([axes.get_xlim(), axes.get_ylim()]).all()
    assert "× TD, α = 1 diverged in 20 of 20 seeds, first at step" in figure.get_supxlabel()


def test_notes_do_not_grow_without_end():
    class Many:
        worlds = ("maze",)

        def agents(self, world):
            return [f"q,alpha={i}" for i in range(10)]

        def diverged(self, world, agent):
            return np.array([1, 2])

    lines = numbers.with_divergences(Many(), "two seeds").splitlines()
    assert lines[:2] == ["two seeds", "× Q-learning, α = 0 diverged in 2 of 2 seeds, first at step 1"]
    assert lines[numbers.MOST_LINES + 1 :] == ["… and 4 more, in the table"]


# the report, the command line and the export


def test_the_table_has_a_sentence_instead_of_a_mean(found):
    rows = {row["agent"]: row for row in page._table(found["predict"], CHAIN)["rows"]}
    some, all_lost = rows["td,alpha=0.2"], rows["td,alpha=1"]
    assert some["diverged"] == in_words(found["predict"].diverged(CHAIN, "td,alpha=0.2"))
    assert some["cells"] == all_lost["cells"] == []
    assert re.fullmatch(r"[\d.e+]+ \[[\d.e+]+, inf\]", some["iqm"])
    assert (all_lost["iqm"], all_lost["wins"]) == ("–", "0%")
    assert rows["td"]["diverged"] == ""
    assert len(rows["td"]["cells"]) == 2


def test_after_equal_numbers_of_updates_a_run_that_diverged_has_not_come_to_its_end(found):
    table = page._table(found["predict"], CHAIN)["equal"]["rows"]
    cells = {row["agent"]: row["cells"] for row in table}
    assert cells["td,alpha=1"] == ["diverged", "diverged", "diverged"]
    assert cells["td"][2] == "over"
    result, (_, agent) = found["control"], found["control"].agents("maze")
    made = int(result.updates("maze", agent)[:, -1].max())
    (_, row) = page._at_equal_updates(result, "maze", 2 * made)["rows"]
    assert (row["cells"][2], row["per_step"]) == ("diverged", "–")


def test_the_page_and_its_figures_know_no_nan(directory, found):
    text = page.write_report(directory).read_text()
    for _, _, words in divergences(found["predict"]):
        assert f">{words}</td>" in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_the_command_line_says_who_diverged(tmp_path):
    specification = tmp_path / "lost.toml"
    specification.write_text(
        'episodes = 20\n[[worlds]]\nkind = "chain"\nlevels = [5, 10, 20]\n[[agents]]\nkind = "td"\nalpha = 1.0\n'
        'label = "linear"\nschedule = "constant"\nfeatures = {kind = "random_binary", d = 20, active = 10}\n'
    )
    agent = bc.agent("td", features=FEATURES, alpha=1.0, schedule="constant")
    diverged = bc.run(bc.worlds.chain(levels=[5, 10, 20], seed=None), agent, episodes=20, seeds=3).diverged
    first = f"diverged in 3 of 3 seeds, first at step {diverged.min()}"
    plain = backcast("sweep", specification, "--seeds", 3, "--out", tmp_path / "out", "--quiet")
    assert plain.stderr.splitlines() == [f"lost: linear in {CHAIN} {first}"]
    lines = backcast("sweep", specification, "--seeds", 3, "--out", tmp_path / "out", "--json").stdout.splitlines()
    expected = {"study": "lost", "world": CHAIN, "agent": "linear", "diverged": diverged.tolist()}
    assert json.loads(lines[0]) == expected


def test_exports_write_infinity_as_such(directory, tmp_path):
    export(directory, tmp_path / "all.csv")
    lines = (tmp_path / "all.csv").read_text().splitlines()
    rows = list(csv.DictReader(lines))
    assert f'"predict","{CHAIN}","td,alpha=1",0,199,"rmsve",inf,' in "\n".join(lines)
    assert {row["value"] for row in rows if row["metric"] == "reward"} >= {"-inf"}
    assert not [row for row in rows if row["value"] in ("nan", "NaN", "")]


# error by capacity


def test_families_and_capacities_are_read_from_labels():
    agents = ["td", "backward likelihood 16", "backward likelihood 2", "planner-aware 2", "backward exact", "7"]
    assert capacity.capacities(agents) == (
        {
            "backward likelihood": {2: "backward likelihood 2", 16: "backward likelihood 16"},
            "planner-aware": {2: "planner-aware 2"},
        },
        ["td", "backward exact", "7"],
    )


class Capacities:
    """Errors of three seeds, the same around the capacity; one agent diverged."""

    study = check_study(
        {
            "name": "capacity",
            "episodes": 1,
            "worlds": [{"kind": "chain", "levels": [3, 2]}],
            "agents": [
                {"kind": "td", "label": "td"},
                *({"kind": kind, "label": f"{kind} model {d}"} for kind in ("backward", "forward") for d in (2, 4, 8)),
            ],
            "plots": ["error-by-capacity"],
        },
        "capacity",
    )
    worlds, seeds = ("chain-3-2",), 3

    def agents(self, world):
        return [agent.label for agent in self.study.agents]

    def metrics(self, world, agent):
        return ["rmsve"]

    def diverged(self, world, agent):
        return np.array([0, 0, 99]) * (agent == "forward model 4")

    def means(self, world, agent, metric):
        level = int(agent.split()[-1]) if " " in agent else 5
        return np.where(self.diverged(world, agent) > 0, INF, level + np.array([-0.5, 0, 0.5]))


def test_error_by_capacity_has_a_line_for_each_family_less_the_first_of_the_others():
    """TD's error is 5 on average, and as far from it in every seed as those of the others from theirs."""
    assert "error-by-capacity" in PLOT_NAMES
    figure = figures.PLOTS["error-by-capacity"](Capacities())
    (axes,) = panels(figure)
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    assert list(lines) == ["TD", "backward model", "forward model"]
    assert lines["TD"].get_ydata() == [0, 0]
    assert lines["TD"].is_dashed()
    np.testing.assert_allclose(lines["backward model"].get_ydata(), [2 - 5, 4 - 5, 8 - 5])
    np.testing.assert_allclose(lines["backward model"].get_xdata(), [2, 4, 8], rtol=0.05)
    np.testing.assert_allclose(lines["forward model"].get_ydata(), [8 - 5])
    (cross,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
    np.testing.assert_allclose(cross.get_xdata(), [4], rtol=0.05)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "4", "8"]
    assert "× forward model 4 diverged in 1 of 3 seeds, at step 99" in figure.get_supxlabel()


def test_curves_of_many_worlds_are_three_across(found):
    class Again(Without):
        worlds = (CHAIN, SHORT) * 2

    figure = figures.error_curves(Again(found["predict"]))
    shapes = [axes.get_subplotspec().get_geometry()[:2] for axes in panels(figure)]
    assert shapes == [(4, 3)] * 8
    assert [axes.get_title(loc="left").partition(":")[0] for axes in panels(figure)].count("Broadcasting") == 4


def test_a_value_far_from_zero_has_not_diverged():
    """The reward of 10⁹ comes once in a hundred episodes: until then true values are far beyond what was earned."""
    P, R = np.zeros((3, 1, 3)), np.zeros((3, 1, 3))
    P[0, 0] = [0, 0.99, 0.01]
    P[1:, 0, 0] = 1.0
    R[0, 0, 2] = 1e9
    world = bc.worlds.from_mdp(bc.FiniteMDP(P, R, 0.9, [1, 0, 0], [False, True, True]))
    runs = bc.run(world, bc.agent("td", alpha=0.1), episodes=50, seeds=3)
    assert not runs.diverged.any()
    assert np.isfinite(runs.rmsve).all()


def one_state(discount, reward):
    """Stays where it is and earns; truncated after 50 steps."""
    mdp = bc.FiniteMDP(np.ones((1, 1, 1)), [[reward]], discount, [1.0])
    return bc.worlds.from_mdp(mdp, max_steps=50)


def test_a_value_as_large_as_a_return_may_be_has_not_diverged():
    """q → 1 / (1 − γ) = 10⁷ (1 − e⁻²) after 2 · 10⁷ steps with α = 1."""
    mdp = bc.FiniteMDP(np.ones((1, 2, 1)), [[1.0, 1.0]], 1 - 1e-7, [1.0])
    world = bc.worlds.from_mdp(mdp, max_steps=20_000_000)
    runs = bc.run(world, bc.agent("q", schedule="constant"), episodes=1, seeds=1)
    assert not runs.diverged.any()
    assert runs.values.max() == pytest.approx(1e7 * (1 - np.exp(-2)), rel=1e-3)


def test_with_discount_1_values_grow_with_the_length_of_episodes():
    """A line of one state that is left with probability 10⁻⁹: v = 10⁹ rewards."""
    P = np.zeros((2, 1, 2))
    P[0, 0] = [1 - 1e-9, 1e-9]
    P[1, 0, 1] = 1.0
    world = bc.worlds.from_mdp(bc.FiniteMDP(P, [[1.0], [0.0]], 1.0, [1.0, 0.0], [False, True]), max_steps=2_000_000)
    runs = bc.run(world, bc.agent("td", schedule="constant"), episodes=1, seeds=1)
    assert not runs.diverged.any()
    assert runs.values[0, 0] == pytest.approx(2_000_000, rel=0.01)


def test_errors_of_huge_rewards_do_not_overflow():
    for reward in (1e155, 1e300):
        runs = bc.run(one_state(0.5, reward), bc.agent("td", alpha=0.5, schedule="constant"), episodes=3, seeds=1)
        assert not runs.diverged.any()
        assert np.isfinite(runs.rmsve).all()
        assert runs.values[0, 0] == pytest.approx(2 * reward, rel=1e-3)
        assert runs.rmsve[0, -1] < 1e-3 * reward


def test_after_a_control_agent_diverged_its_episodes_are_as_long_as_they_may_be():
    features = 10 * np.random.default_rng(0).normal(size=(48, 10))
    wild = bc.agent("q", features=features, alpha=1.0, schedule="constant")
    runs = bc.run(bc.worlds.maze(), wild, episodes=20, seeds=2, max_steps=150)
    assert runs.diverged.all()
    assert (runs.steps[:, -1] == 150).all()
    assert "2 of 2 seeds diverged" in repr(runs)
