from zlib import crc32

import numpy as np
import pytest
from matplotlib.figure import Figure

from backcast.core.errors import InputError
from backcast.report import colours, drawing, sensitivity
from backcast.report.figures import PLOTS, plots_of, save
from backcast.report.sensitivity import DOT, DOTS
from backcast.studies import check_study
from backcast.studies.statistics import bootstrap
from drawn import assert_text_can_be_read, named_lines

ALPHAS = [1.0, 0.5, 0.1, 0.01]
CHAINS = [{"kind": "chain", "levels": levels} for levels in ([50, 5], [5, 50], [5, 5], [50, 50], [6, 6, 6])]
LOG = {"low": 0.01, "high": 1.0, "scale": "log"}


class StandIn:
    """Made-up results: the error is least at α = 0.1 and α of the model 0.5, more for later agents, with noise.

    The second agent diverges with α = 1, whatever its other settings.
    """

    def __init__(self, seeds=5, **given):
        whole = {"name": "made-up", "episodes": 3, "worlds": CHAINS[:1], "agents": [{"kind": "td"}], **given}
        self.study = check_study(whole, "made-up")
        self.seeds = seeds
        self._cells = {}
        for cell in self.study.runs():
            self._cells.setdefault(cell.world.name, {})[cell.label] = cell
        self.worlds = list(self._cells)

    def agents(self, world):
        return list(self._cells[world])

    def picture(self, world):
        return self.cells(world)[0].world.picture

    def cells(self, world):
        return list(self._cells[world].values())

    def metrics(self, world, agent):
        return ["steps", "reward"] if "maze" in world else ["rmsve", "rmsve_inner"]

    def means(self, world, agent, metric):
        cell = self._cells[world][agent]
        point = dict(cell.point)
        if cell.place == 1 and point.get("alpha", 0) == 1:
            return np.full(self.seeds, np.inf)
        error = (1 + cell.place) * (1 + abs(np.log10(point.get("alpha", 0.1)) + 1)) + point.get("horizon", 0)
        noise = np.random.default_rng(crc32(f"{world} {agent}".encode())).uniform(0.9, 1.1, size=self.seeds)
        return (error + abs(point.get("alpha_model", 0.5) - 0.5)) * noise


def draw(**given):
    results = StandIn(**given)
    return results, sensitivity.sensitivity(results)


def rings(axes):
    return [line for line in axes.get_lines() if line.get_markerfacecolor() == "none"]


def test_a_point_is_the_best_over_the_other_settings_and_a_circle_is_around_the_best_of_all():
    agents = [{"kind": "td"}, {"kind": "forward"}]
    results, figure = draw(agents=agents, grid={"alpha": ALPHAS, "alpha_model": [1.0, 0.5, 0.1]})
    above, below = figure.axes
    world = results.worlds[0]
    means = {label: results.means(world, label, "rmsve").mean() for label in results.agents(world)}
    td = named_lines(above)["TD"]
    np.testing.assert_allclose(td.get_xdata(), sorted(ALPHAS), rtol=0.03)
    np.testing.assert_allclose(td.get_ydata(), [means[f"td,alpha={a:g}"] for a in sorted(ALPHAS)])
    forward = [min(means[f"forward,alpha={a:g},alpha_model={m:g}"] for m in (1, 0.5, 0.1)) for a in sorted(ALPHAS)]
    np.testing.assert_allclose(named_lines(above)["forward"].get_ydata(), forward[:3])  # it diverges with α = 1
    by_model = [min(means[f"forward,alpha={a:g},alpha_model={m:g}"] for a in ALPHAS) for m in (0.1, 0.5, 1)]
    np.testing.assert_allclose(named_lines(below)["forward"].get_ydata(), by_model)
    assert {float(ring.get_ydata()[0]) for ring in rings(above)} == {td.get_ydata().min(), min(forward)}
    assert set(named_lines(below)["TD"].get_ydata()) == {td.get_ydata().min()}  # it has no model: a level at its best
    crosses = [line for line in above.get_lines() if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in crosses] == [[pytest.approx(1, rel=0.03)]]
    assert crosses[0].get_color() == colours.FORWARD
    interval = bootstrap(results.means(world, "td,alpha=0.1", "rmsve"), seed=0)
    ends = [tuple(path[:, 1]) for each in above.collections for path in each.get_segments()]
    assert (interval.low, interval.high) in ends
    assert "line: the best over all other settings" in figure.get_supxlabel()
    assert "×: all diverged" in figure.get_supxlabel()


def test_axes_are_logarithmic_where_values_span_a_decade_or_the_search_says_so():
    _, figure = draw(agents=[{"kind": "forward"}], grid={"alpha": [1.0, 0.1], "horizon": [1, 2, 3], "forget": [0, 0.5]})
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "linear", "linear"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["step size α", "horizon", "forget"]
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1", "2", "3"]
    _, figure = draw(search={"samples": 4, "alpha": {"low": 0.2, "high": 0.9, "scale": "log"}})
    assert figure.axes[0].get_xscale() == "log"
    assert {axes.get_yscale() for axes in figure.axes} == {"log"}


def test_an_axis_with_zero_on_it_is_not_logarithmic():
    """One agent draws on a logarithmic scale, and another has 0 in its grid, of few values or of many."""
    for many in (3, 70):
        values = [i / many for i in range(many)]
        agents = [{"kind": "q"}, {"kind": "q", "label": "b", "grid": {"epsilon": values}}]
        search = {"samples": 5, "epsilon": LOG}
        _, figure = draw(worlds=[{"kind": "maze", "text": "S.G"}], agents=agents, search=search)
        figure.canvas.draw()
        (axes,) = figure.axes
        assert axes.get_xscale() == "linear"
        assert set(named_lines(axes)) == {"Q-learning", "b"}
        assert named_lines(axes)["b"].get_xdata().min() < 0.1


def test_of_many_worlds_twelve_are_drawn_and_the_rest_counted():
    worlds = [{"kind": "boyan", "n": 5 + 4 * i} for i in range(15)]
    results, figure = draw(worlds=worlds, grid={"alpha": [0.5, 0.1]})
    assert [axes.get_title(loc="left") for axes in figure.axes] == results.worlds[:12]
    assert figure.get_supxlabel().endswith("; and 3 more worlds")
    assert draw(worlds=worlds[:13], grid={"alpha": [0.5, 0.1]})[1].get_supxlabel().endswith("; and 1 more world")
    assert "more world" not in draw(worlds=worlds[:12], grid={"alpha": [0.5, 0.1]})[1].get_supxlabel()


def test_a_random_search_shows_dots_and_the_best_of_each_stretch():
    search = {"samples": 80, "alpha": LOG, "alpha_model": LOG}
    results, figure = draw(agents=[{"kind": "forward"}], search=search)
    for axes, setting in zip(figure.axes, ("alpha", "alpha_model"), strict=True):
        (dots,) = [line for line in axes.get_lines() if line.get_marker() == DOT]
        assert len(dots.get_xdata()) == 80
        line = named_lines(axes)["forward"]
        means = np.array(
            [results.means(results.worlds[0], a, "rmsve").mean() for a in results.agents(results.worlds[0])]
        )
        x = np.array([dict(cell.point)[setting] for cell in results.study.runs()])
        edges = np.geomspace(x.min(), x.max(), 12)[1:-1]  # stretches of eight settings or so
        expected = [means[np.searchsorted(edges, x) == stretch].min() for stretch in range(11)]
        np.testing.assert_allclose(line.get_ydata(), expected)
        np.testing.assert_array_equal(np.searchsorted(edges, line.get_xdata()), np.arange(11))
        (ring,) = rings(axes)
        assert ring.get_xydata().tolist() == [[x[means.argmin()], means.min()]]
    assert "dots: settings tried" in figure.get_supxlabel()


def test_few_samples_of_several_settings_are_dots_too():
    _, figure = draw(agents=[{"kind": "forward"}], search={"samples": 20, "alpha": LOG, "alpha_model": LOG})
    assert all(len(named_lines(axes)["forward"].get_xdata()) <= 3 for axes in figure.axes)
    assert all(DOT in {line.get_marker() for line in axes.get_lines()} for axes in figure.axes)


def test_narrow_panels_have_few_ticks():
    values = [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01]
    ticks = []
    for worlds in (CHAINS[:1], CHAINS[:4]):
        axes = draw(worlds=worlds, grid={"alpha": values})[1].axes[0]
        ticks.append([x for x in axes.get_xticks() if axes.get_xlim()[0] <= x <= axes.get_xlim()[1]])
    assert ticks[0] == sorted(values)
    np.testing.assert_allclose(ticks[1], [0.01, 0.1, 1])


def test_samples_of_one_setting_alone_are_a_line():
    _, figure = draw(search={"samples": 30, "alpha": LOG})
    line = named_lines(figure.axes[0])["TD"]
    assert len(line.get_xdata()) == 30
    assert line.get_marker() == "None"
    assert not [each for each in figure.axes[0].get_lines() if each.get_marker() == DOT]
    _, figure = draw(search={"samples": 30, "alpha": LOG}, grid={"schedule": ["linear", "constant"]})
    assert len(named_lines(figure.axes[0])["TD"].get_xdata()) == 30


def test_agents_have_the_colours_of_their_kinds_and_those_of_a_kind_are_told_apart():
    agents = [
        {"kind": "td"},
        {"kind": "backward"},
        {"kind": "backward", "label": "mine", "model": "counts"},
        {"kind": "backward", "label": "other", "horizon": 2},
        {"kind": "true-backward", "learn": False},
    ]
    _, figure = draw(agents=agents, grid={"alpha": ALPHAS})
    found = named_lines(figure.axes[0])
    assert [line.get_color() for line in found.values()] == [
        colours.GREY, colours.BACKWARD, colours.BACKWARD, colours.BACKWARD, colours.colour("true-backward"),
    ]  # fmt: skip
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in found.values()}
    assert len(looks) == len(found) == 5
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(found)


def test_a_single_seed_has_no_intervals_and_says_so():
    _, figure = draw(seeds=1, grid={"alpha": ALPHAS})
    assert "one seed" in figure.get_supxlabel()
    assert not [path for each in figure.axes[0].collections for path in each.get_segments()]


def test_where_everything_diverged_nothing_but_crosses_is_drawn():
    agents = [{"kind": "td"}, {"kind": "forward", "grid": {"alpha": [1.0], "alpha_model": [1.0, 0.1]}}]
    _, figure = draw(agents=agents, grid={"alpha": ALPHAS})
    assert list(named_lines(figure.axes[0])) == ["TD"]
    assert len([line for line in figure.axes[1].get_lines() if line.get_marker() == "x"]) == 1


@pytest.mark.parametrize("worlds", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5))])
@pytest.mark.parametrize("tables", [{"grid": {"alpha": [1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01]}},
                                    {"grid": {"alpha": ALPHAS}, "search": {"samples": 30, "alpha_model": LOG}},
                                    {"search": {"samples": 40, "alpha": LOG, "alpha_model": LOG}}])  # fmt: skip
@pytest.mark.parametrize("number", [2, 6])
def test_text_is_inside_the_figure_and_none_over_another(worlds, tables, number):
    kinds = ["td", "forward", "backward", "true-forward", "monte-carlo", "expected-trace"]
    _, figure = draw(worlds=CHAINS[:worlds], agents=[{"kind": kind} for kind in kinds[:number]], **tables)
    assert len(figure.axes) == worlds * len(figure_study(tables).searched_numbers)
    assert_text_can_be_read(figure)


def figure_study(tables):
    return StandIn(agents=[{"kind": "forward"}], **tables).study


@pytest.mark.parametrize(
    ("tables", "names"),
    [
        ({}, []),
        ({"grid": {"alpha": [0.5]}}, []),
        ({"grid": {"model": ["counts", "softmax"], "importance": [True, False]}}, []),
        ({"grid": {"alpha": [0.5, 1.0], "alpha_model": [1.0]}}, ["alpha"]),
        ({"search": {"alpha_model": [1.0, 0.5], "horizon": {"low": 1, "high": 4}}}, ["alpha_model", "horizon"]),
    ],
)
def test_a_study_that_searches_numbers_shows_how_sensitive_agents_are(tables, names):
    given = {"agents": [{"kind": "backward"}], "worlds": [{"kind": "maze", "text": "S.G"}]}
    study = StandIn(**given, **tables).study
    assert study.searched_numbers == names
    assert plots_of(study) == (["sensitivity"] if names else [])
    named = study.model_copy(update={"plots": ["sensitivity", "steps-per-episode"]})
    if names:
        assert plots_of(named) == ["sensitivity", "steps-per-episode"]
    else:
        with pytest.raises(InputError, match="plots: 'sensitivity' draws agents against the numbers that are searched"):
            plots_of(named)


def test_saved_bytes_depend_on_the_results_alone(tmp_path):
    saved = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        results = StandIn(agents=[{"kind": "forward"}], search={"samples": 30, "alpha": LOG, "alpha_model": LOG})
        saved.append([path.read_bytes() for path in save(PLOTS["sensitivity"](results), tmp_path / name, "figure")])
    assert saved[0] == saved[1]


def test_of_twenty_thousand_settings_few_are_drawn():
    n = 10_000
    grid = {"alpha": [(i + 1) / n for i in range(n)], "alpha_model": [0.5, 0.1]}
    results = StandIn(agents=[{"kind": "forward"}], grid=grid)
    figure = sensitivity.sensitivity(results)
    figure.canvas.draw()
    assert sum(line.get_xdata().size for axes in figure.axes for line in axes.get_lines()) < DOTS + 50


def test_many_agents_of_one_kind_fade_instead_of_being_dashed():
    few, many = (sensitivity._looks({f"td,horizon={n}": "td" for n in range(1, last)}) for last in (5, 7))
    assert len({looks["linestyle"] for looks in few.values()}) == 4
    assert {looks["alpha"] for looks in few.values()} == {1.0}
    assert {looks["linestyle"] for looks in many.values()} == {"solid"}
    strengths = [looks["alpha"] for looks in many.values()]
    assert strengths == sorted(strengths, reverse=True)
    assert len(set(strengths)) == 6


@pytest.mark.parametrize(("low", "high"), [(85, 180), (0.3, 0.55), (70, 280), (3, 900)])
def test_logarithmic_axes_have_at_least_two_ticks(low, high):
    axes = Figure().subplots()
    axes.plot([low, high])
    drawing.log_axis(axes)
    bottom, top = axes.get_ylim()
    assert sum(bottom <= tick <= top for tick in axes.get_yticks()) >= 2
