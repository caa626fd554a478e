"""Figures of the paper's studies, of results that are made up."""

import functools

import matplotlib
import numpy as np
import pytest

from backcast.report import figures, style
from backcast.studies.spec import PLOTS
from drawn import named_lines
from made_up import FallingCurves

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


@functools.cache
def draw(study, **size):
    plot, worlds, agents = STUDIES[study]
    return figures.PLOTS[plot](FallingCurves(worlds, agents, **size))


def end_labels(axes):
    return [text for text in axes.texts if text.get_text()]


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
    assert set(figures.PLOTS) == set(PLOTS)


def test_error_curves_over_all_and_over_inner_states_with_a_picture_of_the_world():
    figure = draw("fan-levels")
    assert [axes.get_ylabel() for axes in figure.axes] == 2 * ["RMSVE, all states"] + 2 * ["RMSVE, non-terminal states"]
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["Channelling: 500 → 50 → 5 states", "Broadcasting: 5 → 50 → 500 states", "", ""]
    assert [len(axes.child_axes) for axes in figure.axes] == [1, 1, 0, 0]
    assert names(figure.axes[0]) == ["TD", "backward", "forward", "true backward (pure)", "true forward (pure)"]


def test_error_by_ratio_is_normalised_at_each_ratio_and_raw_below():
    figure = draw("fan-ratios")
    results = FallingCurves(*STUDIES["fan-ratios"][1:])
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
    class Equal(FallingCurves):
        def curves(self, world, agent, metric):
            return np.ones((self.seeds, self.episodes))

    figure = figures.error_by_ratio(Equal(["chain-5-5", "chain-5-50"], ["td", "forward"]))
    assert all((line.get_ydata() == 0).all() for line in named_lines(figure.axes[0]).values())


def test_reward_over_steps_ends_with_the_shortest_run_of_all():
    figure = draw("frames-reward")
    results = FallingCurves(*STUDIES["frames-reward"][1:])
    shortest = min(results.curves("maze", agent, "steps").sum(axis=1).min() for agent in results.agents("maze"))
    left, right = figure.axes
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("Learning and planning", "Pure planning")
    for axes in figure.axes:
        assert names(axes) == ["Q-learning", *(f"{k} from {s}" for k in ("backward", "forward") for s in ("s", "s′"))]
        assert {line.get_xdata()[-1] for line in named_lines(axes).values()} == {shortest}


def test_steps_per_episode_has_a_panel_per_world_and_smooths_nothing():
    figure = draw("stochasticity")
    results = FallingCurves(*STUDIES["stochasticity"][1:])
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
    results = FallingCurves(*STUDIES["stochasticity"][1:], episodes=1000)
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
