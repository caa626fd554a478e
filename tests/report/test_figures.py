import functools
import itertools

import matplotlib
import numpy as np
import pytest

from backcast.report import comparisons, computation, figures, numbers, style
from backcast.studies import check_study, named_study
from backcast.studies.spec import PLOT_NAMES
from drawn import words

FRAMES = [
    f"{mode}{kind}@{frame}"
    for mode in ("", "pure:")
    for kind in ("forward", "backward")
    for frame in ("previous", "current")
]
LEARNED, TRUE = ["forward", "backward"], ["pure:true-forward", "pure:true-backward"]
MAZES = ["maze", "maze-slip-0.5", "maze-reward-0.5", "maze-reward-0.1"]
STUDIES = {
    "fan-levels": ("error-curves", ["chain-500-50-5", "chain-5-50-500"], ["td", *LEARNED, *TRUE]),
    "fan-ratios": (
        "error-by-ratio",
        ["chain-500-5", "chain-50-5", "chain-5-5", "chain-5-50", "chain-5-500"],
        ["td", *LEARNED, *(f"pure:{kind}" for kind in LEARNED), *TRUE],
    ),
    "frames-reward": ("reward-over-steps", ["maze"], ["q", *FRAMES]),
    "frames-steps": ("steps-per-episode", ["maze"], ["q", *FRAMES]),
    "stochasticity": (
        "steps-per-episode",
        MAZES,
        ["q", "forward@current", "backward@previous", "true-forward@current"],
    ),
    "sweep": ("steps-per-episode", MAZES[:3], [f"{k},alpha={a}" for k in ("q", "forward") for a in (1, 0.5, 0.1)]),
    "pure": ("steps-per-episode", MAZES[:1], ["pure:forward", "pure:backward"]),
}


class StandIn:
    """Results whose curves fall, each agent's by another rate, with a little noise."""

    def __init__(self, worlds, agents, seeds=3, episodes=12):
        self.worlds, self._agents, self.seeds, self.episodes = worlds, agents, seeds, episodes

    def agents(self, world):
        return self._agents

    def curves(self, world, agent, metric):
        rng = np.random.default_rng([self.worlds.index(world), self._agents.index(agent), len(metric)])
        if metric == "reward":
            return np.ones((self.seeds, self.episodes))
        falling = 400 / (1 + (1 + self._agents.index(agent)) * np.arange(self.episodes))
        noisy = falling * rng.uniform(0.8, 1.2, size=(self.seeds, self.episodes))
        return np.ceil(noisy) if metric == "steps" else noisy

    def diverged(self, world, agent):
        return np.zeros(self.seeds, dtype=np.int64)


@functools.cache
def draw(study, **size):
    plot, worlds, agents = STUDIES[study]
    return figures.PLOTS[plot](StandIn(worlds, agents, **size))


def end_labels(axes):
    return [text for text in axes.texts if text.get_text()]


def named_lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def names(axes):
    return sorted(text.get_text() for text in end_labels(axes))


@pytest.mark.parametrize("study", STUDIES)
def test_every_curve_is_named_once_and_no_label_is_over_another(study):
    figure = draw(study)
    figure.canvas.draw()
    for axes in figure.axes:
        labels = end_labels(axes)
        assert names(axes) == sorted(named_lines(axes))
        assert len(set(names(axes))) == len(labels) > 0
        boxes = sorted((text.get_window_extent() for text in labels), key=lambda box: box.y0)
        heights = [(box.y0 + box.y1) / 2 for box in boxes]
        assert np.diff(heights).min() > 0.9 * style.MEDIUM / 72 * figure.dpi
        assert all(box.x0 > axes.get_window_extent().x1 and box.x1 <= figure.bbox.x1 for box in boxes)


@pytest.mark.parametrize("study", STUDIES)
def test_axes_say_what_they_show_and_nothing_drawn_is_nan(study):
    figure = draw(study)
    assert figure.get_supxlabel().startswith("mean ± standard error over 3 seeds")
    assert {axes.get_xlabel() for axes in figure.axes} - {""}
    assert figure.axes[0].get_ylabel()
    for axes in figure.axes:
        assert np.isfinite(np.concatenate([line.get_xydata() for line in axes.get_lines()])).all()
        shapes = [path.vertices for collection in axes.collections for path in collection.get_paths()]
        assert np.isfinite(np.concatenate(shapes)).all()


def test_the_plots_a_study_may_name_are_the_plots_there_are():
    assert set(figures.PLOTS) == set(PLOT_NAMES)


def test_error_curves_over_all_and_over_inner_states_with_a_picture_of_the_world():
    figure = draw("fan-levels")
    assert [axes.get_ylabel() for axes in figure.axes] == 2 * ["RMSVE, all states"] + 2 * ["RMSVE, non-terminal states"]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Channelling: 500 → 50 → 5 states", "Broadcasting: 5 → 50 → 500 states", "", ""]
    assert [len(axes.child_axes) for axes in figure.axes] == [1, 1, 0, 0]
    assert names(figure.axes[0]) == ["TD", "backward", "forward", "true backward (pure)", "true forward (pure)"]


def test_error_by_ratio_is_normalised_at_each_ratio_and_raw_below():
    figure = draw("fan-ratios")
    results = StandIn(*STUDIES["fan-ratios"][1:])
    above, _, below, _ = figure.axes
    assert [text.get_text() for text in below.get_xticklabels()] == ["100:1", "10:1", "1:1", "1:10", "1:100"]
    assert names(above) == ["TD", "backward", "forward"]
    assert names(figure.axes[1]) == ["TD", "backward", "forward", "true backward", "true forward"]
    normal = np.array([line.get_ydata() for line in named_lines(above).values()])
    np.testing.assert_allclose(normal.min(axis=0), 0)
    np.testing.assert_allclose(normal.max(axis=0), 1)
    raw = [results.curves(world, "backward", "rmsve").mean() for world in results.worlds]
    np.testing.assert_allclose(named_lines(below)["backward"].get_ydata(), raw)


def test_equal_agents_are_all_0_when_normalised():
    class Equal(StandIn):
        def curves(self, world, agent, metric):
            return np.ones((self.seeds, self.episodes))

    figure = figures.error_by_ratio(Equal(["chain-5-5", "chain-5-50"], ["td", "forward"]))
    assert all((line.get_ydata() == 0).all() for line in named_lines(figure.axes[0]).values())


def test_reward_over_steps_ends_with_the_shortest_run_of_all():
    figure = draw("frames-reward")
    results = StandIn(*STUDIES["frames-reward"][1:])
    shortest = min(results.curves("maze", agent, "steps").sum(axis=1).min() for agent in results.agents("maze"))
    left, right = figure.axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("Learning and planning", "Pure planning")
    for axes in figure.axes:
        assert names(axes) == ["Q-learning", *(f"{k} from {s}" for k in ("backward", "forward") for s in ("s", "s′"))]
        assert {line.get_xdata()[-1] for line in named_lines(axes).values()} == {shortest}


def test_steps_per_episode_has_a_panel_per_world_and_smooths_nothing():
    figure = draw("stochasticity")
    results = StandIn(*STUDIES["stochasticity"][1:])
    titles = [
        "deterministic",
        *(f"{what} with probability {p}" for what, p in (("slips", 0.5), ("reward", 0.5), ("reward", 0.1))),
    ]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"Maze, {title}" for title in titles]
    line = named_lines(figure.axes[1])["forward from s′"]
    np.testing.assert_allclose(
        line.get_ydata(), results.curves("maze-slip-0.5", "forward@current", "steps").mean(axis=0)
    )


def test_there_are_as_many_panels_as_there_is_to_show():
    assert {study: len(draw(study).axes) for study in ("sweep", "pure", "frames-steps")} == {
        "sweep": 3,
        "pure": 1,
        "frames-steps": 2,
    }


def test_long_curves_are_thinned_not_averaged():
    figure = draw("stochasticity", episodes=1000)
    results = StandIn(*STUDIES["stochasticity"][1:], episodes=1000)
    episode, steps = named_lines(figure.axes[0])["Q-learning"].get_xydata().T
    assert len(episode) == figures.POINTS
    assert (episode[0], episode[-1]) == (1, 1000)
    np.testing.assert_allclose(steps, results.curves("maze", "q", "steps").mean(axis=0)[episode.astype(int) - 1])


def test_an_agent_looks_the_same_everywhere_and_true_models_are_dashed():
    looks = {}
    for study in ("fan-levels", "fan-ratios", "frames-steps", "stochasticity"):
        for axes in draw(study).axes:
            for label, line in named_lines(axes).items():
                looks.setdefault(label.split(" from")[0].removesuffix(" (pure)"), set()).add(line.get_color())
                assert line.is_dashed() == ("true" in label or (study == "frames-steps" and "s′" in label))
    assert all(len(colours) == 1 for colours in looks.values())
    assert len(set.union(*looks.values())) == 5  # TD and Q-learning are the same grey


def test_one_seed_has_no_error_and_says_so():
    for study in STUDIES:
        assert draw(study, seeds=1).get_supxlabel().startswith("one seed")


def test_saved_bytes_depend_on_the_results_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    saved = []
    for directory in (tmp_path / "first", tmp_path / "second"):
        directory.mkdir()
        svg, png = figures.save(draw.__wrapped__("fan-levels"), directory, "levels")
        saved.append((svg.read_bytes(), png.read_bytes()))
        assert sorted(path.name for path in directory.iterdir()) == ["levels.png", "levels.svg"]
    assert saved[0] == saved[1]
    assert b"<dc:date>" not in saved[0][0]
    assert saved[0][1].startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before


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
    assert style.world_title("FrozenLake-v1") == "FrozenLake-v1"
    assert style.agent_label("sampled-backward", []) == "sampled backward"
    assert style.agent_label("pure:forward@current,alpha_model=0.1", []) == "forward from s′, αₘ = 0.1"
    assert style.colour("sampled-backward") in style.OTHERS


def test_every_kind_of_chain_has_a_title_and_levels():
    assert style.levels("chain-500-50-6-branches-2") == (500, 50, 6)
    title = "Channelling: 500 → 50 → 6 states, two branches of opposite sign"
    assert style.world_title("chain-500-50-6-branches-2") == title
    assert style.world_title("chain-3-9-branches-3") == "Broadcasting: 3 → 9 states, 3 branches of alternating sign"
    assert style.levels("chain-of-command") == ()
    assert style.world_title("chain-of-command") == "chain-of-command"
    assert style.stacked_title("chain-500-50-6-branches-2", 20) == (
        "Channelling:\n500 → 50 → 6 states,\ntwo branches of\nopposite sign"
    )


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


# Studies beyond the paper

BEYOND = [
    (name, plot) for name in ("estimation", "horizons", "neighbours", "off-policy") for plot in named_study(name).plots
]


class Whole(StandIn):
    """Results of a study, which also know their updates.

    In turn agents use up the budget in the first episode, in the 5th, and not at all.
    """

    def __init__(self, study, **size):
        self.study = study
        self._by_world = {}
        for cell in study.runs():
            self._by_world.setdefault(cell.world.build().name, []).append(cell.label)
        everyone = list(dict.fromkeys(agent for agents in self._by_world.values() for agent in agents))
        super().__init__(list(self._by_world), everyone, **size)

    def agents(self, world):
        return self._by_world[world]

    def metrics(self, world, agent):
        return ["rmsve", "rmsve_inner"] if world.startswith("chain") else ["steps", "reward"]

    def means(self, world, agent, metric):
        return self.curves(world, agent, metric).mean(axis=1)

    def updates(self, world, agent):
        limit = numbers.budget(self, world) or 1000
        share = (0.05, 0.2, 1.5)[self._agents.index(agent) % 3]
        made = limit * share * np.arange(1, self.episodes + 1) + np.arange(self.seeds)[:, None]
        end = np.where(made >= limit, made, np.inf).min(axis=1, keepdims=True)
        return np.minimum(made, end)

    def seconds(self, world, agent):
        return 1e-3 * (1 + self._agents.index(agent))


@functools.cache
def beyond(name, plot, **size):
    return figures.PLOTS[plot](Whole(named_study(name), **size))


@pytest.mark.parametrize("seeds", [3, 1])
@pytest.mark.parametrize(("name", "plot"), BEYOND)
def test_text_is_inside_the_figure_and_none_over_another(name, plot, seeds):
    figure = beyond(name, plot, seeds=seeds)
    boxes = words(figure)
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0 <= box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0 <= box.y1 <= figure.bbox.y1, text
    for (text, box), (other, place) in itertools.combinations(boxes, 2):
        width, height = min(box.x1, place.x1) - max(box.x0, place.x0), min(box.y1, place.y1) - max(box.y0, place.y0)
        assert width <= 1 or height <= 1, (text, other)


def test_error_by_agent_has_a_row_for_each_agent_and_a_line_at_the_first():
    results = Whole(named_study("estimation"))
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
        found = numbers.mean_score(results, world, "counts, sample=4")
        assert ends[places["counts, sample=4"]] == (found.low, found.high)
        assert axes.get_lines()[0].get_xdata() == [means[places["td"]]] * 2
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][:3] == [
        "TD", "softmax", "softmax, only what was seen",
    ]  # fmt: skip
    key = {text.get_text(): line.get_color() for text, line in key_entries(figure.legends[0])}
    assert key == {kind.replace("-", " ").replace("td", "TD"): style.COLOURS[kind] for kind in (
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
    results = Whole(named_study("horizons"))
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


def test_error_against_updates_has_a_row_per_family_and_the_first_agent_in_all_of_them():
    results = Whole(named_study("neighbours"))
    figure = beyond("neighbours", "error-against-updates")
    panels = np.reshape(figure.axes, (5, 5))
    legends = [axes.get_legend() for axes in panels[:, -1]]
    assert [legend.get_title().get_text() for legend in legends] == list(style.FAMILIES)[1:]
    assert [text.get_text() for text in legends[-1].get_texts()] == [
        "backward, counts", "backward, counts, sample = 5", "backward, counts, top = 5", "backward, softmax",
        "forward and backward",
    ]  # fmt: skip
    for row, column in itertools.product(range(5), range(5)):
        world = results.worlds[column]
        inked = [line for line in panels[row, column].get_lines() if line.get_color() == style.INK]
        assert len(inked) == 1
        named = named_lines(panels[row, column]).values()
        assert {line.get_color() for line in named} <= {style.FAMILIES[list(style.FAMILIES)[row + 1]][0]}
        assert panels[row, column].get_xlim()[1] < 1.5 * numbers.budget(results, world)
        assert len(panels[row, column].get_lines()) == sum(
            results.updates(world, agent)[:, 0].max() <= numbers.budget(results, world)
            for agent in results.agents(world)
        )


def test_curves_against_updates_and_seconds_are_errors_at_updates():
    results = Whole(named_study("neighbours"))
    world, agent, label = results.worlds[0], "monte-carlo", "Monte Carlo"
    x, mean = named_lines(beyond("neighbours", "error-against-updates").axes[0])[label].get_xydata().T
    np.testing.assert_allclose(mean, numbers.score_at(results, world, agent, x).mean(axis=0))
    seconds, same = named_lines(beyond("neighbours", "error-against-seconds").axes[0])[label].get_xydata().T
    np.testing.assert_allclose(
        seconds, 1e6 * x * results.seconds(world, agent) / results.updates(world, agent)[:, -1].mean()
    )
    np.testing.assert_allclose(same, mean)


def test_a_study_without_a_budget_and_with_a_single_agent_can_be_drawn():
    study = check_study(
        {"name": "one", "episodes": 12, "worlds": [{"kind": "chain"}], "agents": [{"kind": "td"}]}, "one"
    )
    figure = computation.error_against_updates(Whole(study))
    assert list(named_lines(figure.axes[0])) == ["TD"]


@pytest.mark.parametrize(("name", "plot"), BEYOND)
def test_notes_say_what_the_intervals_are(name, plot):
    interval = "95 % bootstrap interval over seeds" if "-by-" in plot else "mean ± standard error over 3 seeds"
    assert interval in beyond(name, plot).get_supxlabel()
    assert "one seed" in beyond(name, plot, seeds=1).get_supxlabel()
    for axes in beyond(name, plot, seeds=1).axes:
        assert all(np.isfinite(line.get_xydata()).all() for line in axes.get_lines())
