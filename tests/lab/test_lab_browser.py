"""The lab as one sees and uses it, in a real browser, compared with numbers that Python computes itself."""

import io
import re

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

import backcast as bc
from backcast.lab.presets import PRESETS
from backcast.studies.statistics import band
from browser import (  # noqa: F401  four are fixtures
    a_browser,
    a_compiled_lab,
    a_lab,
    a_page,
    address,
    config,
    finish,
    frame,
    let_draw,
    normalised,
    notice,
    open_lab,
    remembered,
    said,
    tab,
    until,
    values,
)

BOARDS = ("#left-board", "#right-board")
SEED, EPISODES = 4, 12
SMALL = "S.X.\n..X.\n...G"


def runs_of(kind, seeds=(SEED,), text=None, episodes=EPISODES):
    return bc.run(bc.worlds.maze(text), bc.agent(kind), episodes=episodes, seeds=seeds)


# ----------------------------------------------------------------------------------------------------------------------
# start, values, colours


def test_it_starts_plays_and_pauses(page, lab):
    listen = "addEventListener('securitypolicyviolation', (event) => violations.push(event.blockedURI))"
    page.add_init_script(f"window.violations = []; {listen}")
    page.goto(lab)
    until(page, "window.lab?.frame?.at === 0")
    assert set(values(page, 0)) == set(values(page, 1)) == {0.0}
    assert page.locator("#connection").get_attribute("data-state") in ("open", "busy")  # it compiles, if it has to
    drawn = page.evaluate("lab.framesDrawn")
    page.keyboard.press("Space")
    until(page, "lab.frame.at >= 6 && lab.frame.playing")
    assert page.evaluate("lab.framesDrawn") >= drawn + 3
    assert any(values(page, 0))
    assert any(values(page, 1))
    page.keyboard.press("Space")
    until(page, "!lab.frame.playing")
    at = frame(page)["at"]
    page.wait_for_timeout(500)  # at 6 steps a second
    assert frame(page)["at"] == at
    assert page.evaluate("violations") == []


def test_both_boards_show_the_values_of_python(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    finish(page)
    world = bc.worlds.maze()
    exact = bc.exact.optimal(world.mdp).v
    for side, kind in enumerate(["forward", "backward"]):
        expected = runs_of(kind).values[0].max(axis=-1)
        assert np.array_equal(np.float32(values(page, side)), expected.astype(np.float32))
        assert expected.std() > 0.02
        compare_colours(page, side, world, expected, exact)
    page.locator("#view").select_option("exact")
    for side in (0, 1):
        compare_colours(page, side, world, exact, exact)
    page.locator("#view").select_option("values")
    page.keyboard.press("Home")
    until(page, "lab.frame.at === 0")
    compare_colours(page, 1, world, np.zeros(48), exact)


@pytest.mark.slow
def test_compiled_agents_start_play_and_show_the_values_of_python(page, compiled_lab):
    test_it_starts_plays_and_pauses(page, compiled_lab)
    test_both_boards_show_the_values_of_python(page, compiled_lab)


def compare_colours(page, side, world, expected, exact):
    """Every cell has the colour of its value on matplotlib's scale, from 0 to the largest exact value."""
    inner = world.mdp.reachable & ~world.mdp.terminal
    wanted = 255 * matplotlib.colormaps["viridis"](expected / exact[inner].max())[:, :3]
    seen = cell_colours(page, side, *world.layout.shape)
    assert inner.sum() == 40
    assert np.abs(seen - wanted)[inner].max() < 4
    assert {tuple(colour) for colour in seen[world.mdp.terminal]} == {(255, 255, 255)}


def cell_colours(page, side, rows, columns):
    """The most frequent colour of each cell, (S, 3) from 0 to 255, in a screenshot of a board."""
    let_draw(page)
    shot = imread(io.BytesIO(page.locator(BOARDS[side]).screenshot()))
    picture = np.round(255 * shot[:, :, :3]).astype(int)
    first, last = (page.evaluate(f"lab.boards[{side}].centreOf({s})") for s in (0, rows * columns - 1))
    half = int(0.4 * (last["x"] - first["x"]) / (columns - 1))
    found = []
    for row, column in np.ndindex(rows, columns):
        x = round(first["x"] + column * (last["x"] - first["x"]) / (columns - 1))
        y = round(first["y"] + row * (last["y"] - first["y"]) / (rows - 1))
        cell = picture[y - half : y + half, x - half : x + half].reshape(-1, 3)
        colours, counts = np.unique(cell, axis=0, return_counts=True)
        found.append(colours[counts.argmax()])
    return np.array(found)


@pytest.mark.slow
def test_a_maze_that_changes_is_chosen_from_the_list_and_shown_as_it_is(page, lab):
    """Where a gap is, the board shows a value, where a wall is, none; also when one has gone back."""
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    page.locator("#world-kind").select_option("blocking-maze")
    until(page, "lab.scene.config.world.kind === 'blocking-maze' && lab.frame")
    page.locator("#world-step").fill("200")
    page.locator("#world-step").press("Enter")
    until(page, "lab.scene.config.world.step === 200 && lab.frame?.at === 0")
    assert gaps(page) == [False, True]
    assert page.locator("#draw-maze").is_hidden()
    page.locator("#left-board").focus()
    finish(page)
    assert [agent["era"] for agent in frame(page)["agents"]] == [1, 1]
    assert gaps(page) == [True, False]
    page.keyboard.press("Home")
    until(page, "lab.frame.at === 0")
    assert gaps(page) == [False, True]


def gaps(page, row=3, columns=9):
    """Whether the left board has a gap at each end of the barrier."""
    let_draw(page)
    places = (page.evaluate(f"lab.boards[0].centreOf({row * columns + column})") for column in (0, columns - 1))
    edge = page.locator(BOARDS[0]).bounding_box()
    shown = "([x, y]) => lab.boards[0].stateAt(x, y) !== null"  # no state is found where a wall is
    return [page.evaluate(shown, [edge["x"] + place["x"], edge["y"] + place["y"]]) for place in places]


def test_the_address_holds_a_maze_that_changes(page, lab):
    open_lab(page, lab, world_text="S.G/.X.", world_later="20,SXG/...", episodes=EPISODES)
    assert config(page)["world"] == {"kind": "maze", "text": "S.G\n.X.", "later": [20, "SXG\n..."]}
    finish(page)
    until(page, "location.hash.includes('world.later=20,SXG/...') && !location.hash.includes('&at=0&')")
    page.reload()
    until(page, "window.lab?.scene?.config.world.later?.[0] === 20 && lab.frame?.finished")


@pytest.mark.slow
def test_the_scale_grows_with_values_beyond_the_exact_ones_and_starts_anew_with_a_scene(page, lab):
    given = {"world": "random-walk", "world_n": 5, "left": "td", "right": "td", "left_alpha": 1, "right_alpha": 0.1}
    open_lab(page, lab, **given, episodes=EPISODES)
    low, high = page.evaluate("lab.scene.range")
    assert legend(page) == pytest.approx((low, high), abs=0.01)
    finish(page)
    seen = [low, high, *np.ravel([np.array(values(page, side))[1:-1] for side in (0, 1)])]
    assert min(seen) < low - 0.03
    wide = legend(page)
    assert wide == pytest.approx((min(seen), max(seen)), abs=0.001)
    page.keyboard.press("Home")
    until(page, "lab.frame.at === 0")
    assert legend(page) == wide
    page.locator("#left-kind").select_option("forward")
    until(page, "lab.scene.config.left.kind === 'forward' && lab.frame")
    assert legend(page) == pytest.approx((low, high), abs=0.01)


def legend(page):
    """The numbers at both ends of the colours."""
    return tuple(float(said(page, f"#scale-{end}").replace("−", "-")) for end in ("low", "high"))


@pytest.mark.slow
def test_charts_show_the_curves_of_runs_and_the_mean_of_further_seeds(page, compiled_lab):
    open_lab(page, compiled_lab, seed=SEED, episodes=EPISODES)
    page.evaluate(
        """() => {
          window.shown = {};
          for (const [i, name] of ["steps", "reward", "error", "updates"].entries()) {
            const { setData } = lab.charts[i].constructor.prototype;
            lab.charts[i].setData = function (data) { shown[name] = data; setData.call(this, data); };
          }
        }"""
    )
    finish(page)
    until(page, f"shown.steps?.series[1].values.length === {EPISODES} && shown.steps.cursor === {EPISODES - 1}")
    exact = bc.exact.optimal(bc.worlds.maze().mdp)
    inner = bc.worlds.maze().mdp.reachable & ~bc.worlds.maze().mdp.terminal
    page.locator("#further").check()
    arrived = runs_of("backward", range(SEED + 1, SEED + 101)).steps[:, 0].mean()
    until(page, f"Math.abs(shown.steps.series[1].band?.mean[0] - {arrived}) < 1e-9")
    assert said(page, "#further-words") == ""
    shown = page.evaluate("shown")
    assert shown["steps"]["length"] == EPISODES
    for side, kind in enumerate(["forward", "backward"]):
        runs, further = runs_of(kind), runs_of(kind, range(SEED + 1, SEED + 101)).steps
        line = {name: shown[name]["series"][side] for name in shown}
        assert line["steps"]["values"] == runs.steps[0].tolist()
        assert line["reward"]["values"] == runs.reward[0].tolist()
        assert line["updates"]["values"] == runs.updates.by_episode[0].tolist()
        error = np.sqrt(np.mean((runs.values[0].max(axis=1) - exact.v)[inner] ** 2))
        assert line["error"]["values"][-1] == pytest.approx(error)
        for name, expected in zip(("mean", "low", "high"), band(further, seed=0, resamples=1_000), strict=True):
            assert line["steps"]["band"][name] == pytest.approx(expected)
        first, last = runs.steps[0][[0, -1]]
        label = page.locator("#chart-steps").get_attribute("aria-label")
        assert re.search(rf"{kind}: {first}(\.0)? in episode 1, {last}(\.0)? in episode {EPISODES}", label)


ICE = {"world": "gymnasium", "world_id": "FrozenLake-v1", "left": "q"}


@pytest.mark.parametrize(
    ("given", "chart", "words"),
    [
        ({}, "steps", "judged by steps per episode: lower is better"),
        (ICE, "reward", "judged by reward per episode: higher is better"),
        (
            {"world": "chain", "world_levels": "6,3,2", "left": "td"},
            "error",
            "judged by RMSVE, non-terminal states: lower is better",
        ),
    ],
)
def test_the_chart_beside_the_boards_is_what_the_world_is_judged_by(page, lab, given, chart, words):
    open_lab(page, lab, seed=SEED, episodes=EPISODES, **given)
    assert page.locator("#beside canvas").get_attribute("id") == f"chart-{chart}"
    assert said(page, "#judged") == words
    others = page.locator("#charts canvas").evaluate_all("every => every.map(({ id }) => id.slice(6))")
    assert {chart, *others} == {"steps", "reward", "error", "updates"}


@pytest.mark.slow
def test_the_line_of_rewards_is_the_mean_of_the_last_ten_episodes(page, lab):
    open_lab(page, lab, seed=2, episodes=60, left_alpha=0.3, right_alpha=0.3, **ICE)
    finish(page)
    world = bc.worlds.from_gymnasium("FrozenLake-v1")
    earned = [bc.run(world, bc.agent(kind, alpha=0.3), 60, [2]).reward[0] for kind in ("q", "backward")]
    for name, reward in zip(("Q-learning", "backward"), earned, strict=True):
        assert set(reward[-10:]) == {0.0, 1.0}
        until(page, f"document.getElementById('chart-reward').ariaLabel.includes('{name}: ') && lab.frame.finished")
        label = page.locator("#chart-reward").get_attribute("aria-label")
        first, last = re.search(rf"{name}: (\S+) in episode 1, (\S+) in episode 60", label).groups()
        assert (float(first), float(last)) == pytest.approx((reward[0], reward[-10:].mean()))


# ----------------------------------------------------------------------------------------------------------------------
# the story, the address, the past


def test_every_panel_of_the_story_is_opened_and_plays(page, lab):
    page.goto(lab)
    until(page, "window.lab?.frame")
    for preset in PRESETS:
        page.get_by_role("link", name=preset.title, exact=False).click()
        until(page, f"location.hash.includes('story={preset.name}') && lab.frame?.at > {preset.at}")
        until(page, "lab.frame.playing")
        assert config(page) == normalised(preset.config)
        assert said(page, "#story-words").startswith(printed(preset.sentence))
        assert printed(preset.look) in said(page, "#story-words")
        assert page.evaluate("lab.frame.speed") == preset.speed
        assert said(page, "[aria-current=true] .title") == preset.title
    assert page.locator("[aria-current=true]").count() == 1


def test_a_baseline_that_a_panel_mentions_can_be_put_on_the_left(page, lab):
    page.goto(lab)
    until(page, "window.lab?.frame")
    page.get_by_role("link", name="Stochastic transitions").click()
    until(page, "location.hash.includes('story=stochastic-transitions')")
    page.get_by_role("link", name="put Q-learning on the left").click()
    until(page, "lab.scene.config.left.kind === 'q' && lab.frame")
    assert config(page)["right"] == normalised(PRESETS[4].config)["right"]
    assert said(page, "[aria-current=true] .title") == "Stochastic transitions"


def printed(words):
    """With the apostrophes that the page shows."""
    return re.sub(r"(?<=\w)'(?=\w)", "’", words)


@pytest.mark.slow
def test_the_back_button_goes_back_to_the_scene_before(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    page.keyboard.press("ArrowRight")
    until(page, "location.hash.includes('&at=1&')")
    page.locator("#right-kind").select_option("q")
    until(page, "location.hash.includes('right.kind=q&') && lab.frame?.at === 0")
    page.get_by_role("link", name=PRESETS[1].title).click()
    until(page, f"location.hash.includes('story={PRESETS[1].name}')")
    page.go_back()
    until(page, "lab.scene.config.right.kind === 'q' && lab.frame")
    assert page.locator("[aria-current=true]").count() == 0
    page.go_back()
    until(page, "lab.scene.config.right.kind === 'backward' && lab.frame?.at === 1")
    assert page.locator("#right-kind").input_value() == "backward"
    page.go_forward()
    until(page, "lab.scene.config.right.kind === 'q' && lab.frame")


def test_who_goes_back_while_it_plays_is_not_held_up(page, lab):
    """The history is elsewhere before the page hears of it: what is then on the screen is not written into it."""
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    until(page, "history.state")
    page.evaluate("history.replaceState('elsewhere', '')")
    page.keyboard.press("ArrowRight")
    until(page, "lab.frame.at === 1")
    page.wait_for_timeout(1000)  # several times what lies between two addresses
    assert page.evaluate("history.state") == "elsewhere"


@pytest.mark.slow
def test_another_world_and_back_keeps_the_maze_and_tells_what_had_to_change(page, lab):
    open_lab(page, lab, world_text=SMALL.replace("\n", "/"), world_slip=0.2)
    page.locator("#world-kind").select_option("chain")
    until(page, "lab.scene.config.world.kind === 'chain' && lab.frame")
    page.locator("#right-kind").select_option("true-backward")
    until(page, "lab.scene.config.right.kind === 'true-backward' && lab.frame")
    assert page.locator("#notice").is_hidden()
    page.locator("#world-kind").select_option("maze")
    until(page, "lab.scene.config.world.kind === 'maze' && lab.frame")
    assert config(page)["world"] == {"kind": "maze", "text": SMALL, "slip": 0.2}
    assert notice(page) == "True backward works only in prediction; it was replaced by backward."
    page.locator("#right-more").click()
    page.locator("#right-learn").uncheck()
    until(page, "lab.scene.config.right.learn === false && lab.frame")
    assert said(page, "[data-side=right] .tag") == "learning off"
    assert page.locator("[data-side=left] .tag").count() == 0


@pytest.mark.slow
def test_a_garnet_is_for_control_if_it_has_several_actions(page, lab):
    """Agents that work for one purpose only give way to others when the number of actions is changed."""
    open_lab(page, lab, left="q", seed=SEED, episodes=EPISODES)
    page.locator("#world-kind").select_option("garnet")
    until(page, "lab.scene.config.world.kind === 'garnet' && lab.frame")
    assert (config(page)["left"]["kind"], page.evaluate("lab.scene.purpose")) == ("td", "prediction")
    assert page.locator("#left-epsilon").count() == 0
    page.locator("#world-actions").fill("3")
    page.locator("#world-actions").press("Enter")
    until(page, "lab.scene.config.world.actions === 3 && lab.frame")
    assert (config(page)["left"]["kind"], page.evaluate("lab.scene.purpose")) == ("q", "control")
    assert page.locator("#left-epsilon").count() == 1


@pytest.mark.slow
def test_step_sizes_that_average_are_chosen_in_the_form_and_refused_with_the_reason(page, lab):
    open_lab(page, lab, left="q", world_text=SMALL.replace("\n", "/"))
    page.locator("#left-more").click()
    let_draw(page)
    page.locator("#left-schedule").select_option("average")
    until(page, "lab.scene.config.left.schedule === 'average' && lab.frame")
    page.locator("#left-epsilon_schedule").select_option("linear")
    until(page, "lab.scene.config.left.epsilon_schedule === 'linear' && lab.frame")
    assert config(page)["left"] == {"kind": "q", "learn": True, "schedule": "average", "epsilon_schedule": "linear"}
    page.locator("#right-more").click()
    page.locator("#right-schedule").select_option("average")
    page.locator("#right-error").wait_for()
    assert "a backward step of a softmax moves all values by one map" in said(page, "#right-error")


def test_the_past_is_as_it_was(page, lab):
    open_lab(page, lab, world_text=SMALL.replace("\n", "/"), seed=SEED, episodes=30)
    past = [remembered(page)]
    for at in range(1, 16):
        page.keyboard.press("ArrowRight")
        until(page, f"lab.frame.at === {at}")
        past.append([*remembered(page), said(page, "#right-words")])
    assert len({str(moment) for moment in past}) == 16
    finish(page)
    for at in (6, 15, 1):
        page.locator("#scrubber").fill(str(at))
        until(page, f"lab.frame.at === {at}")
        assert [*remembered(page), said(page, "#right-words")] == past[at]
    page.locator("#back").click()
    until(page, "lab.frame.at === 0")
    assert remembered(page) == past[0]
    assert page.locator("#scrubber").input_value() == "0"
    assert frame(page)["furthest"] > 15
