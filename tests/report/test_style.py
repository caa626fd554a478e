"""Names, colours and places of labels in figures."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from backcast.agents.kinds import KINDS, register
from backcast.report import colours, style
from backcast.worlds.kinds import Picture


@pytest.mark.parametrize(
    ("heights", "gap", "expected"),
    [
        ([0.5], 0.1, [0.5]),
        ([0.2, 0.8], 0.1, [0.2, 0.8]),
        ([0.5, 0.5], 0.1, [0.45, 0.55]),
        ([0.0, 0.0, 0.9], 0.2, [0.0, 0.2, 0.9]),
        ([1.0, 1.0], 0.2, [0.8, 1.0]),
        ([0.3, 0.3, 0.3], 0.9, [0.0, 0.5, 1.0]),
    ],
)
def test_labels_move_no_further_than_they_must(heights, gap, expected):
    np.testing.assert_allclose(style.spread(np.array(heights), gap), expected, atol=1e-12)


def test_names_that_are_not_the_papers_are_shown_as_they_are():
    assert style.agent_label("sampled-backward", []) == "sampled backward"
    assert style.agent_label("pure:forward@current,alpha_model=0.1", []) == "forward from s′, αₘ = 0.1"
    assert colours.colour("sampled-backward") in colours.OTHERS


def test_titles_are_broken_at_commas_and_where_they_are_too_long():
    title = "Channelling: 500 → 50 → 6 states, two branches of opposite sign"
    assert style.stacked_title(Picture(title), 20) == (
        "Channelling:\n500 → 50 → 6 states,\ntwo branches of\nopposite sign"
    )


@pytest.mark.parametrize(
    ("picture", "drawn"),
    [
        (Picture("chain-of-command"), None),
        (Picture(levels=(500, 5)), ((8 * 2) + 2, [])),  # edges, and a line of dots for each level
        (Picture(levels=(31**3, 5)), None),
        (Picture(levels=(2,) * 31), None),
        (Picture(cells="S.X\n..G"), (0, ["S", "G"])),
        (Picture(cells="S\n..G"), (0, ["S", "G"])),
        (Picture(cells=".\n" * 31), None),
        (Picture(cells="." * 901), None),
    ],
)
def test_thumbnails_are_what_a_world_says_unless_that_is_too_much(picture, drawn):
    axes = Figure().subplots()
    style.thumbnail(axes, picture)
    insets = axes.child_axes
    found = [(len(inset.get_lines()), [text.get_text() for text in inset.texts]) for inset in insets]
    assert found == ([] if drawn is None else [drawn])


@pytest.mark.parametrize("title", ["Maze", "A maze whose name is much longer than its panel is wide"])
def test_thumbnails_are_beside_titles(title):
    figure, ((axes, _),) = style.sheet(1, 2)
    style.thumbnail(axes, Picture(cells="S.X\n..G"))
    style.caption(axes, title)
    style.lay_out(figure)
    (inset,), (words,) = axes.child_axes, axes.findobj(lambda artist: artist.get_gid() == style.TITLE)
    left = inset.get_tightbbox().x0
    assert left > words.get_window_extent().x1
    assert left > axes.get_window_extent().x1


GREY, ROSE, GREEN, INDIGO, BLUE, ORANGE = "#4d4d4d", "#cc79a7", "#009e73", "#5e4fa2", "#0072b2", "#d55e00"
LOOKS = {
    "td": (GREY, "TD"),
    "q": (GREY, "Q-learning"),
    "monte-carlo": (ROSE, "Monte Carlo"),
    "td-lambda": (ROSE, "TD(λ)"),
    "q-lambda": (ROSE, "Q(λ)"),
    "expected-trace": (ROSE, "expected trace"),
    "replay": (GREEN, "replay"),
    "prioritized-replay": (GREEN, "prioritized replay"),
    "dyna": (GREEN, "Dyna"),
    "dyna-plus": (GREEN, "Dyna+"),
    "sweeping": (INDIGO, "sweeping"),
    "small-backups": (INDIGO, "small backups"),
    "certainty-equivalence": (INDIGO, "certainty equivalence"),
    "forward": (BLUE, "forward"),
    "true-forward": ("#56b4e9", "true forward"),
    "backward": (ORANGE, "backward"),
    "true-backward": ("#e69f00", "true backward"),
    "both": (ORANGE, "forward and backward"),
    "sarsa": ("#4d4d4d", "SARSA"),
    "expected-sarsa": ("#4d4d4d", "expected SARSA"),
    "blend": (INDIGO, "blend"),
}


def test_backcasts_own_kinds_have_their_colours_and_names():
    own = [name for name, kind in KINDS.items() if kind.is_builtin]
    assert {name: (colours.colour(name), style.agent_label(name, [])) for name in own} == LOOKS
    assert {KINDS[name].family for name in own} == set(colours.FAMILIES)
    learners = ("td", "q", "sarsa", "expected-sarsa", "monte-carlo", "td-lambda", "q-lambda", "expected-trace")
    assert [name for name in own if not style.plans(name)] == sorted(learners, key=own.index)


def test_other_kinds_look_as_they_say():
    register("clipped")(lambda setup, agent: ())
    register("likeliest", frame="current", family="Backward planning", label="the likeliest")(lambda setup, agent: ())
    register("known", frame="current", family="Forward planning", true=True)(lambda setup, agent: ())
    register("odd", family="Odd ones")(lambda setup, agent: ())
    assert [style.plans(name) for name in ("clipped", "likeliest", "not a kind")] == [False, True, True]
    assert colours.colour("clipped") in colours.OTHERS
    assert colours.colour("likeliest@current,alpha=0.5") == ORANGE
    assert colours.colour("known") == "#56b4e9"
    assert style.agent_label("likeliest@current", []) == "the likeliest from s′"
    assert [colours.family(name) for name in ("clipped", "likeliest", "odd")] == [
        "Others",
        "Backward planning",
        "Odd ones",
    ]
    assert colours.colour("odd") in colours.OTHERS


@pytest.mark.parametrize(
    ("agent", "among", "words"),
    [
        ("backward@previous,model=counts,forget=0.05,importance=true", [],
         "backward from s, counts, forget = 0.05, importance weights"),
        ("softmax, only what was seen", [], "softmax, only what was seen"),
        ("counts, sample=4", [], "counts, sample = 4"),
        ("sweeping,variant=moore-atkeson", [], "sweeping, Moore and Atkeson"),
        ("backward,lam=0.3,lam_by=td", ["backward,model=counts"], "backward, λ = 0.3, λ-model by TD"),
        ("backward", ["backward", "backward,model=counts"], "backward, softmax"),
        ("backward", ["backward", "forward,model=counts"], "backward"),
        ("q-lambda", [], "Q(λ)"),
    ],
)  # fmt: skip
def test_agents_in_words(agent, among, words):
    assert style.agent_label(agent, among) == words
