"""The lab in the hands of somebody: drawing mazes, asking about states, taking things away, keys alone, all screens."""

import math
import re
from pathlib import Path

import axe_playwright_python
import numpy as np
import pytest
from matplotlib.image import imread

import backcast as bc
from backcast.lab.config import read_config
from backcast.lab.scene import Scene
from backcast.lab.snippets import as_python, as_toml
from browser import (  # noqa: F401  three are fixtures
    a_browser,
    a_lab,
    a_page,
    config,
    finish,
    frame,
    let_draw,
    open_lab,
    said,
    tab,
    tab_to,
    until,
    values,
)

pytestmark = pytest.mark.slow
BOARDS = ("#left-board", "#right-board")
SEED, EPISODES = 4, 12
SMALL = "S.X.\n..X.\n...G"


def runs_of(kind, text=None):
    return bc.run(bc.worlds.maze(text), bc.agent(kind), episodes=EPISODES, seeds=[SEED])


# ----------------------------------------------------------------------------------------------------------------------
# drawing a maze


def test_a_maze_is_drawn_with_the_mouse(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    page.locator("#draw-maze").click()
    for field, size in {"#editor-rows": "3", "#editor-columns": "4"}.items():
        page.locator(field).fill(size)
        page.locator(field).press("Tab")
    page.locator("#editor-clear").click()
    assert page.locator("#editor-text").input_value() == "...G\n....\nS..."
    draw(page, "Wall", 2, 6, 10)
    page.locator("#editor-use").click()
    until(page, "!document.getElementById('editor-error').hidden")
    assert said(page, "#editor-error") == refusal("..XG\n..X.\nS.X.")
    assert page.locator("#editor").is_visible()
    assert "text" not in config(page)["world"]
    draw(page, "Start", 0)
    draw(page, "Goal", 11)
    draw(page, "Floor", 3, 8, 10)
    assert page.locator("#editor-error").is_hidden()
    assert page.locator("#editor-text").input_value() == SMALL
    page.locator("#editor-use").click()
    compare_small(page)


def test_a_random_maze_is_edited_as_it_was_drawn(page, lab):
    """What is drawn is a maze of its own: it keeps the slips, and loses the seed and the share of walls."""
    open_lab(page, lab, seed=SEED, episodes=EPISODES, world="random-maze", world_size=5, world_slip=0.2)
    page.locator("#draw-maze").click()
    drawn = bc.worlds.random_maze(5, seed=SEED).layout
    assert page.locator("#editor-text").input_value() == "\n".join("".join(row) for row in drawn)
    page.locator("#editor-text").fill(SMALL)
    page.locator("#editor-use").click()
    until(page, "lab.scene.config.world.kind === 'maze' && lab.frame")
    assert config(page)["world"] == {"kind": "maze", "slip": 0.2, "text": SMALL}


def draw(page, tool, *cells):
    """Press the mouse at the first cell and draw to the last; or click each cell, if they are no line."""
    page.locator(".tools label", has_text=tool).click()
    edge = page.locator(BOARDS[0]).bounding_box()
    places = [page.evaluate(f"lab.boards[0].centreOf({cell})") for cell in cells]
    line = len(set(np.diff(cells))) == 1
    for number, place in enumerate(places):
        page.mouse.move(edge["x"] + place["x"], edge["y"] + place["y"])
        if number == 0 or not line:
            page.mouse.down()
        if not line or number == len(cells) - 1:
            page.mouse.up()


def refusal(text):
    given = {"world": {"kind": "maze", "text": text}, "left": {"kind": "forward"}, "right": {"kind": "backward"}}
    with pytest.raises(bc.InputError) as refused:
        Scene(read_config(given))
    return str(refused.value)


def compare_small(page):
    """What was drawn is opened, is in the address, and is what Python makes of it."""
    until(page, "document.getElementById('editor').hidden")
    until(page, "lab.frame?.at === 0 && location.hash.includes('world.text=S.X./..X./...G')")
    assert config(page)["world"] == {"kind": "maze", "text": SMALL}
    finish(page)
    for side, kind in enumerate(["forward", "backward"]):
        expected = runs_of(kind, SMALL).values[0].max(axis=-1)
        assert np.array_equal(np.float32(values(page, side)), expected.astype(np.float32))


def test_a_text_that_is_no_maze_is_not_used(page, lab):
    open_lab(page, lab, world_text="S../..G")
    page.locator("#draw-maze").click()
    for text, words in {
        "S.\n...\n.G": "Line 2 has 3 characters, line 1 has 2.",
        "": "Draw at least one row.",
        "S" * 50 + "G": "This one has 1 row and 51 columns; a maze has at most 50 of each.",
    }.items():
        page.locator("#editor-text").fill(text)
        page.locator("#editor-use").click()
        assert said(page, "#editor-error").removeprefix("⚠ ") == words
        assert page.locator("#editor").is_visible()
    assert config(page)["world"]["text"] == "S..\n..G"


def test_what_was_drawn_is_taken_back_and_commands_of_the_browser_do_not_draw(page, lab):
    open_lab(page, lab, world_text="S../..G")
    page.locator("#draw-maze").click()
    texts = []
    for key in ["ArrowRight", "x", "ArrowDown", "x", "Control+x", "Alt+g", "Meta+s", *3 * ["Control+z"]]:
        page.keyboard.press(key)
        texts.append(page.locator("#editor-text").input_value())
    first, second, third = "S..\n..G", "SX.\n..G", "SX.\n.XG"
    assert texts == [first, second, second, third, third, third, third, second, first, first]


def test_what_a_field_does_not_take_is_said_at_the_field(page, lab):
    open_lab(page, lab, seed=SEED)
    page.locator("#left-more").click()
    for field, wrong, words in [
        ("world-run-seed", "-1", "A whole number from 0 to 9,999."),
        ("world-slip", "1.5", "A number from 0 to 1."),
        ("left-alpha_model", "2", "A number from 0 to 1."),
    ]:
        page.locator(f"#{field}").fill(wrong)
        page.locator(f"#{field}").press("Enter")
        assert page.locator(f"#{field}").get_attribute("aria-invalid") == "true"
        described = page.locator(f"#{field}").get_attribute("aria-describedby")
        assert said(page, f"#{described}").removeprefix("⚠ ") == words
        assert page.locator(f"#{field}").input_value() == wrong
    assert config(page)["seed"] == SEED
    page.locator("#left-alpha_model").fill("0")  # allowed is more than 0, which only the lab itself knows
    page.locator("#left-alpha_model").press("Enter")
    until(page, "document.getElementById('left-error').textContent.endsWith(': 0 given, expected more than 0')")
    assert said(page, "#left-error").removeprefix("⚠ ").startswith("Model’s step size αₘ: ")
    assert page.locator("#left-alpha_model").input_value() == "0"
    assert page.locator("#world-error").is_hidden()


def test_a_maze_is_drawn_with_keys_alone(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES, world_text="G../.../S..")
    tab_to(page, "draw-maze")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'left-board'")
    tab_to(page, "editor-columns")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    tab_to(page, "left-board", "Shift+Tab")
    keys = "s Right Right x Down x Down . Right g Left Left Left .".replace("Right", "ArrowRight")
    for key in keys.replace("Left", "ArrowLeft").replace("Down", "ArrowDown").split():
        page.keyboard.press(key)
    assert page.locator("#editor-text").input_value() == SMALL
    tab_to(page, "editor-use")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'draw-maze'")
    compare_small(page)


# ----------------------------------------------------------------------------------------------------------------------
# one state, and what can be taken away


def test_a_state_under_the_pointer_or_in_focus_is_explained(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES)
    finish(page)
    edge = page.locator(BOARDS[1]).bounding_box()
    place = page.evaluate("lab.boards[1].centreOf(15)")
    page.mouse.move(edge["x"] + place["x"], edge["y"] + place["y"])
    compare_explanation(page, 15, "Row 2, column 8")
    page.mouse.move(1, 1)
    tab_to(page, "right-board")
    page.keyboard.press("Enter")
    agent = frame(page)["agents"][1]["state"]
    assert agent == 7  # the goal, at the end of the run
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    compare_explanation(page, 23, "Row 3, column 8")
    page.keyboard.press("Escape")
    assert said(page, "#inspector-title") == "How to read the boards"
    page.keyboard.press("Enter")
    until(page, "document.getElementById('inspector-title').textContent === 'Row 1, column 8'")
    assert said(page, "#inspector").endswith("Nothing: the episode ends here.")


def compare_explanation(page, s, title):
    until(page, f"document.getElementById('inspector-title').textContent === {title!r}")
    forward, backward = runs_of("forward"), runs_of("backward")
    exact = bc.exact.optimal(bc.worlds.maze().mdp)
    ((_, q, q_backward), *_, exactly) = table(page, ".values")
    assert (q, q_backward) == tuple(f"{runs.values[0, s, 0]:.3g}" for runs in (forward, backward))
    assert exactly == ["exact, of the best", f"{exact.v[s]:.3g}"]
    back = {(name_of(before), a): p for before, a, p in backward.models[0].predict(s)}
    joint = bc.exact.backward(bc.worlds.maze().mdp, last_policy(backward)).joint[s]
    true = {(name_of(before), a): joint[before, a] for before, a in np.argwhere(joint > 0).tolist()}
    *shown, others = table(page, ".chances >> nth=0")
    compare_chances(shown, back, true)
    assert others == ["all others, never seen together", percent(1 - sum(back.values())), "0 %"]
    moves = bc.worlds.maze().mdp.transition[s]
    shown = iter(table(page, ".chances >> nth=1"))
    for a, arrow in enumerate("↑→↓←"):
        ahead = [(name_of(s2), percent(p)) for s2, _, p in forward.models[0].predict(s, a)]
        ((s2,),) = np.nonzero(moves[a])
        learned = dict(ahead).get(name_of(s2), "0 %")
        assert next(shown) == [arrow, name_of(s2), learned, "100 %"]
    assert next(shown, None) is None


def table(page, selector):
    rows = page.locator(selector).locator("tbody tr").all()
    return [[" ".join(cell.split()) for cell in row.locator("th, td").all_inner_texts()] for row in rows]


def name_of(s):
    return f"row {s // 8 + 1}, column {s % 8 + 1}"


def last_policy(runs):
    """ε-greedy, as in the last episode."""
    q, epsilon = runs.values[0], runs.agent.rates(EPISODES)[-1, 3]
    best = q == q.max(axis=1, keepdims=True)
    return epsilon / 4 + (1 - epsilon) * best / best.sum(axis=1, keepdims=True)


def compare_chances(shown, learned, true):
    """The table shows the likeliest rows, as learned and in truth."""
    chances = {key: (learned.get(key, 0.0), true.get(key, 0.0)) for key in [*learned, *true]}
    rows = {f"{name} {'↑→↓←'[a]}": pair for (name, a), pair in chances.items() if max(pair) >= 0.0005}
    assert len(shown) == (len(rows) if len(rows) <= 7 else 6)
    for name, *cells in shown:
        assert cells == [percent(chance) for chance in rows[name]]
    likelihood = [max(rows[name]) for name, *_ in shown]
    assert likelihood == sorted(map(max, rows.values()), reverse=True)[: len(shown)]


def percent(chance):
    return f"{'<1' if 0 < chance < 0.005 else math.floor(100 * chance + 0.5)} %"


def test_what_is_on_the_screen_can_be_taken_away(browser, lab):
    with tab(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        open_lab(page, lab, seed=SEED, episodes=EPISODES, at=60, world_text=SMALL.replace("\n", "/"))
        for button, text in {"#copy-python": as_python(config(page)), "#copy-toml": as_toml(config(page))}.items():
            page.locator(button).click()
            until(page, "document.getElementById('told').textContent.startsWith('Copied')")
            assert page.evaluate("navigator.clipboard.readText()") == text
        page.evaluate("void (navigator.clipboard.writeText = () => Promise.reject(new Error('closed')))")
        page.locator("#copy-python").click()
        assert page.locator("#text-area").input_value() == as_python(config(page))
        page.keyboard.press("Escape")
        with page.expect_download() as download:
            page.locator("#picture").click()
        assert re.fullmatch(r"backcast-custom-maze-60\.png", download.value.suggested_filename)
        picture = imread(download.value.path())
        assert picture.shape[1] == 2400
        assert 1200 < picture.shape[0] < 3200
        assert len(np.unique(picture[::8, ::8].reshape(-1, picture.shape[2]), axis=0)) > 30
        assert page.told == []


# ----------------------------------------------------------------------------------------------------------------------
# keys alone, all screens, no barriers


FOCUSABLE = """[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((each) => !each.disabled && each.checkVisibility() && !each.closest("dialog:not([open])"))"""


def test_tab_reaches_every_control_in_order_and_one_sees_where_it_is(page, lab):
    open_lab(page, lab, seed=SEED, at=20)
    page.evaluate(f"window.wanted = {FOCUSABLE}")
    assert page.evaluate("wanted.length") > 35
    reached, hidden = [], []
    for _ in range(page.evaluate("wanted.length")):
        page.keyboard.press("Tab")
        number, name, style = page.evaluate(
            """() => {
              const here = document.activeElement;
              const { outlineStyle, outlineWidth } = getComputedStyle(here);
              return [wanted.indexOf(here), here.id || here.className, `${outlineStyle} ${outlineWidth}`];
            }"""
        )
        reached.append(number)
        if style.startswith("none") or style.endswith(" 0px"):
            hidden.append(name)
    assert reached == list(range(len(reached)))
    assert hidden == []


def test_time_moves_by_keys(page, lab):
    open_lab(page, lab, seed=SEED, episodes=EPISODES, speed=20)
    for key, moment in {
        "ArrowRight": "at === 1",
        "e": "agents.every(({ over }) => over) && lab.frame.episode === 0",
        "E": "agents.every(({ over }) => over) && lab.frame.episode === 1",
        "ArrowLeft": "step > 1 && lab.frame.at === lab.frame.furthest - 1",
        "End": "finished",
        "Home": "at === 0",
        "Space": "playing",
    }.items():
        page.keyboard.press(key)
        until(page, f"lab.frame.{moment}")
    page.keyboard.press("+")
    until(page, "lab.frame.speed > 20")
    page.keyboard.press("-")
    page.keyboard.press("-")
    until(page, "lab.frame.speed < 20")
    page.keyboard.press("Space")
    until(page, "!lab.frame.playing")
    at = frame(page)["at"]
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    assert page.locator("#help").is_hidden()
    assert frame(page)["at"] == at
    tab_to(page, "world-run-seed")
    page.keyboard.type("7e")  # typed into a field, it moves nothing
    assert frame(page)["at"] == at


def test_there_are_no_barriers_in_light_and_dark_on_phones_and_desks(page, lab):
    open_lab(page, lab, seed=SEED, at=300)
    page.locator(BOARDS[1]).focus()
    page.keyboard.press("Enter")
    until(page, "document.getElementById('inspector-title').textContent.startsWith('Row')")
    page.evaluate(Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text())
    faults = []
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.locator("#draw-maze").click()
            faults += serious(page, f"editor, {theme}, {width} pixels")
            page.keyboard.press("Escape")
            assert page.locator("#editor").is_hidden()
            page.keyboard.press("?")
            faults += serious(page, f"help, {theme}, {width} pixels", "#help")
            page.keyboard.press("Escape")
            faults += serious(page, f"inspector, {theme}, {width} pixels")
    assert faults == []


def serious(page, where, part="html"):
    """What axe-core finds in a part of the page and takes to be serious or critical."""
    let_draw(page)
    found = page.evaluate("(part) => axe.run(part, { resultTypes: ['violations'] })", part)["violations"]
    return [
        (where, each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1366, 768)])
def test_boards_sentences_and_time_are_seen_together(page, lab, width, height):
    page.set_viewport_size({"width": width, "height": height})
    for given in ({}, {"world": "chain", "story": "channelling"}, {"world": "gymnasium", "world_id": "FrozenLake-v1"}):
        open_lab(page, lab, seed=SEED, at=60, **given)
        let_draw(page)
        let_draw(page)
        for side in ("left", "right"):
            board, words = (page.locator(f"#{side}-{part}").bounding_box() for part in ("board", "words"))
            assert board["height"] > 200
            assert board["y"] + board["height"] <= words["y"]
            assert words["y"] + words["height"] <= page.locator("#transport").bounding_box()["y"]
        assert page.locator("#to-end").bounding_box()["y"] + 30 < height
        assert page.evaluate("scrollY") == 0


def test_nothing_lies_beside_the_screen(page, lab):
    open_lab(page, lab, seed=SEED, at=300)
    page.locator(BOARDS[0]).focus()
    page.keyboard.press("Enter")
    until(page, "document.getElementById('inspector-title').textContent.startsWith('Row')")
    for width in (360, 390, 768, 1440, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        compare_width(page, width)
        page.locator("#draw-maze").click()
        compare_width(page, width)
        page.locator("#editor-cancel").click()
        page.locator("#help-button").click()
        compare_width(page, width)
        page.keyboard.press("Escape")


def compare_width(page, width):
    let_draw(page)
    assert page.evaluate("[document.documentElement.scrollWidth, document.body.scrollWidth]") == [width, width]
    ends = page.evaluate(f"{FOCUSABLE}.map((each) => [each.id, each.getBoundingClientRect().right])")
    assert [name for name, right in ends if name and right > width + 1] == []
