"""Figures and tables of runs of which some diverged: all that is drawn is finite, and a note says who is left out."""

import re

import numpy as np
import pytest

from backcast.report import agent_tables, comparisons, figures, page, scores
from backcast.studies.divergence import divergences, in_words
from diverging import CHAIN, CONTROL, PREDICTION, SHORT, a_directory, found_there  # noqa: F401  fixtures
from drawn import panels
from made_up import picture_by_name

INF = np.inf
DRAWN = [(study["name"], plot) for study in (PREDICTION, CONTROL) for plot in study["plots"]]


class Without:
    """The same results without agents that diverged in a world."""

    def __init__(self, result):
        self._result = result

    def __getattr__(self, name):
        return getattr(self._result, name)

    def agents(self, world):
        return [agent for agent in self._result.agents(world) if not self._result.diverged(world, agent).any()]


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

        def picture(self, world):
            return picture_by_name(world)

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

    lines = scores.with_divergences(Many(), "two seeds").splitlines()
    assert lines[:2] == ["two seeds", "× Q-learning, α = 0 diverged in 2 of 2 seeds, first at step 1"]
    assert lines[scores.MOST_LINES + 1 :] == ["… and 4 more, in the table"]


@pytest.mark.slow
def test_curves_of_many_worlds_are_three_across(found):
    class Again(Without):
        worlds = (CHAIN, SHORT) * 2

    figure = figures.error_curves(Again(found["predict"]))
    shapes = [axes.get_subplotspec().get_geometry()[:2] for axes in panels(figure)]
    assert shapes == [(4, 3)] * 8
    assert [axes.get_title(loc="left").partition(":")[0] for axes in panels(figure)].count("Broadcasting") == 4


def test_the_table_has_a_sentence_instead_of_a_mean(found):
    rows = {row["agent"]: row for row in agent_tables.table(found["predict"], CHAIN)["rows"]}
    some, all_lost = rows["td,alpha=0.2"], rows["td,alpha=1"]
    assert some["diverged"] == in_words(found["predict"].diverged(CHAIN, "td,alpha=0.2"))
    assert some["cells"] == all_lost["cells"] == []
    assert re.fullmatch(r"[\d.e+]+ \[[\d.e+]+, inf\]", some["iqm"])
    assert (all_lost["iqm"], all_lost["wins"]) == ("–", "0%")
    assert rows["td"]["diverged"] == ""
    assert len(rows["td"]["cells"]) == 2


def test_after_equal_numbers_of_updates_a_run_that_diverged_has_not_come_to_its_end(found):
    table = agent_tables.table(found["predict"], CHAIN)["equal"]["rows"]
    cells = {row["agent"]: row["cells"] for row in table}
    assert cells["td,alpha=1"] == ["diverged", "diverged", "diverged"]
    assert cells["td"][2] == "over"
    result, (_, agent) = found["control"], found["control"].agents("maze")
    made = int(result.updates("maze", agent)[:, -1].max())
    (_, row) = agent_tables.at_equal_updates(result, "maze", 2 * made)["rows"]
    assert (row["cells"][2], row["per_step"]) == ("diverged", "–")


@pytest.mark.slow
def test_the_page_and_its_figures_know_no_nan(directory, found):
    text = page.write_report(directory).read_text()
    for _, _, words in divergences(found["predict"]):
        assert f">{words}</td>" in text
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)
