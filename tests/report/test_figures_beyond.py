"""Figures of studies beyond the paper, of results that are made up."""

import functools
import itertools

import numpy as np
import pytest

from backcast.agents.kinds import KINDS, register
from backcast.report import colours, comparisons, computation, figures, scores, style
from backcast.studies import check_study, named_study
from drawn import assert_text_can_be_read, named_lines
from made_up import WholeStudy

BEYOND = [
    (name, plot) for name in ("estimation", "horizons", "neighbours", "off-policy") for plot in named_study(name).plots
]


@functools.cache
def beyond(name, plot, **size):
    return figures.PLOTS[plot](WholeStudy(named_study(name), **size))


@pytest.mark.parametrize("seeds", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "plot"), BEYOND)
def test_text_is_inside_the_figure_and_none_over_another(name, plot, seeds):
    assert_text_can_be_read(beyond(name, plot, seeds=seeds))


def test_error_by_agent_has_a_row_for_each_agent_and_a_line_at_the_first():
    results = WholeStudy(named_study("estimation"))
    figure = beyond("estimation", "error-by-agent")
    for axes, world in zip(figure.axes, results.worlds, strict=True):
        places = dict(zip(results.agents(world), axes.get_yticks(), strict=True))
        dots = [line for line in axes.get_lines() if line.get_marker() == "o"]
        means = {float(line.get_ydata()[0]): float(line.get_xdata()[0]) for line in dots}
        assert means == {
            place: pytest.approx(results.means(world, agent, "rmsve").mean()) for agent, place in places.items()
        }
        bars = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_ydata()[0] in means]
        ends = {float(line.get_ydata()[0]): tuple(line.get_xdata()) for line in bars if line.get_marker() == "None"}
        found = scores.mean_score(results, world, "counts, sample=4")
        assert ends[places["counts, sample=4"]] == (found.low, found.high)
        assert axes.get_lines()[0].get_xdata() == [means[places["td"]]] * 2
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][:3] == [
        "TD", "softmax", "softmax, only what was seen",
    ]  # fmt: skip
    key = {text.get_text(): line.get_color() for text, line in key_entries(figure.legends[0])}
    assert key == {kind.replace("-", " ").replace("td", "TD"): colours.colour(kind) for kind in (
        "td", "backward", "true-backward", "forward", "true-forward",
    )}  # fmt: skip


def key_entries(legend):
    return zip(legend.get_texts(), legend.get_lines(), strict=True)


def test_what_all_agents_have_in_common_is_said_once():
    figure = beyond("off-policy", "error-by-agent")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][:3] == [
        "Q-learning", "softmax", "softmax, forget = 0.01",
    ]  # fmt: skip
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["Q-learning", "backward from s"]


def test_groups_keep_variations_together():
    agents = ["td", "soft", "soft, seen", "soft that", "counts", "true", "soft, sample=1", "soft, sample=20", "forward"]
    assert comparisons.groups(agents) == [
        ["td"], ["soft", "soft, seen", "soft that"], ["counts", "true"], ["soft, sample=1", "soft, sample=20"],
        ["forward"],
    ]  # fmt: skip
    assert comparisons.groups(["q", "q-lambda", "dyna"]) == [["q"], ["q-lambda", "dyna"]]


def test_error_by_horizon_joins_what_differs_by_n_and_by_lambda():
    results = WholeStudy(named_study("horizons"))
    figure = beyond("horizons", "error-by-horizon")
    world = results.worlds[1]
    left, right = figure.axes[2:4]

    def means(agents):
        return [results.means(world, agent, "rmsve").mean() for agent in agents]

    one = "backward,model=counts,horizon=1"
    by_n, by_lambda = (named_lines(axes)["backward, counts"].get_ydata() for axes in (left, right))
    np.testing.assert_allclose(by_n, means(one.replace("1", n) for n in "1234"))
    np.testing.assert_allclose(by_lambda, means([one, *(f"backward,model=counts,lam=0.{i}" for i in (3, 6, 9))]))
    by_td = named_lines(right)["backward, λ-model by TD"]
    np.testing.assert_allclose(by_td.get_ydata(), means(f"backward,lam=0.{i},lam_by=td" for i in (3, 6, 9)))
    np.testing.assert_allclose(by_td.get_xdata(), [0.3, 0.6, 0.9], atol=0.05)
    assert named_lines(left)["TD"].get_ydata() == means(["td", "td"])
    assert [axes.get_xticks().tolist() for axes in (left, right)] == [[1, 2, 3, 4], [0, 0.3, 0.6, 0.9]]
    assert left.get_ylim() == right.get_ylim()


def test_a_lambda_for_each_state_has_no_place_on_the_axis():
    names = {
        "one": "backward",
        "two": "backward,lam=0.1-0.5",
        "three": "backward,lam=1e-05",
        "four": "backward,horizon=2",
    }
    assert comparisons._spans(names) == (
        {"backward": {1: "one", 2: "four"}}, {"backward": {1e-05: "three", 0: "one"}},
    )  # fmt: skip


def test_a_family_of_ones_own_has_a_row_before_those_of_no_family():
    register("plain")(KINDS["q"].build)
    register("odd", family="Odd ones")(KINDS["q"].build)
    agents = [{"kind": kind} for kind in ("q", "plain", "odd", "backward")]
    worlds = [{"kind": "maze", "text": "S.G"}]
    study = check_study({"name": "s", "episodes": 3, "seeds": 2, "worlds": worlds, "agents": agents}, "s")
    assert list(computation._families(WholeStudy(study))) == ["Backward planning", "Odd ones", "Others"]


def test_error_against_updates_has_a_row_per_family_and_the_first_agent_in_all_of_them():
    results = WholeStudy(named_study("neighbours"))
    figure = beyond("neighbours", "error-against-updates")
    panels = np.reshape(figure.axes, (5, 5))
    legends = [axes.get_legend() for axes in panels[:, -1]]
    assert [legend.get_title().get_text() for legend in legends] == list(colours.FAMILIES)[1:]
    assert [text.get_text() for text in legends[-1].get_texts()] == [
        "backward, counts", "backward, counts, sample = 5", "backward, counts, top = 5", "backward, softmax",
        "forward and backward",
    ]  # fmt: skip
    for row, column in itertools.product(range(5), range(5)):
        world = results.worlds[column]
        inked = [line for line in panels[row, column].get_lines() if line.get_color() == style.INK]
        assert len(inked) == 1
        named = named_lines(panels[row, column]).values()
        assert {line.get_color() for line in named} <= {list(colours.FAMILIES.values())[row + 1]}
        assert panels[row, column].get_xlim()[1] < 1.5 * scores.budget(results, world)
        assert len(panels[row, column].get_lines()) == sum(
            results.updates(world, agent)[:, 0].max() <= scores.budget(results, world)
            for agent in results.agents(world)
        )


def test_curves_against_updates_and_seconds_are_errors_at_updates():
    results = WholeStudy(named_study("neighbours"))
    world, agent, label = results.worlds[0], "monte-carlo", "Monte Carlo"
    x, mean = named_lines(beyond("neighbours", "error-against-updates").axes[0])[label].get_xydata().T
    np.testing.assert_allclose(mean, scores.score_at(results, world, agent, x).mean(axis=0))
    seconds, same = named_lines(beyond("neighbours", "error-against-seconds").axes[0])[label].get_xydata().T
    np.testing.assert_allclose(
        seconds, 1e6 * x * results.seconds(world, agent) / results.updates(world, agent)[:, -1].mean()
    )
    np.testing.assert_allclose(same, mean)


def test_processor_time_is_computed_where_the_costs_of_all_agents_are_known(monkeypatch):
    agents = [{"kind": "td"}, {"kind": "monte-carlo"}]
    study = {"name": "two", "episodes": 12, "updates": 500, "worlds": [{"kind": "chain"}], "agents": agents}

    def drawn():
        (axes,) = computation.error_against_seconds(WholeStudy(check_study(study, "two"))).axes
        return named_lines(axes)["Monte Carlo"].get_xydata(), axes.get_xlabel()

    measured, words = drawn()
    assert words == "measured time, µs"
    monkeypatch.setattr(WholeStudy, "computed_nanoseconds", lambda self, world, agent: 2e9 * self.seconds(world, agent))
    computed, words = drawn()
    assert words == "computed time, µs"
    np.testing.assert_allclose(computed, measured * [2, 1])
    monkeypatch.setattr(WholeStudy, "computed_nanoseconds", lambda self, world, agent: None if agent == "td" else 1.0)
    np.testing.assert_allclose(drawn()[0], measured)


def test_a_study_without_a_budget_and_with_a_single_agent_can_be_drawn():
    study = check_study(
        {"name": "one", "episodes": 12, "worlds": [{"kind": "chain"}], "agents": [{"kind": "td"}]}, "one"
    )
    figure = computation.error_against_updates(WholeStudy(study))
    assert list(named_lines(figure.axes[0])) == ["TD"]


@pytest.mark.parametrize(("name", "plot"), BEYOND)
def test_notes_say_what_the_intervals_are(name, plot):
    interval = "95 % bootstrap interval over seeds" if "-by-" in plot else "mean ± standard error over 3 seeds"
    assert interval in beyond(name, plot).get_supxlabel()
    assert "one seed" in beyond(name, plot, seeds=1).get_supxlabel()
    for axes in beyond(name, plot, seeds=1).axes:
        assert all(np.isfinite(line.get_xydata()).all() for line in axes.get_lines())
