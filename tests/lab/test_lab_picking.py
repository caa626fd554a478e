"""Cells that are changed by a click while agents live in them, and keys beside checkboxes, in a real browser."""

from browser import (  # noqa: F401  three are fixtures
    a_browser,
    a_lab,
    a_page,
    config,
    frame,
    notice,
    open_lab,
    until,
)

BOARDS = ("#left-board", "#right-board")


def click(page, side, cell):
    place = page.evaluate(f"lab.boards[{side}].centreOf({cell})")
    page.locator(BOARDS[side]).click(position=place)


def test_a_click_builds_a_wall_or_sets_a_reward_from_this_moment_on(page, lab):
    open_lab(page, lab, left="q", right="blend", seed=4, at=60, episodes=5, world_text="S..G/.X../....")
    taken = [agent["taken"] for agent in frame(page)["agents"]]
    page.locator("#pick").select_option("wall")
    click(page, 0, 1)
    until(page, "lab.scene.config.changes?.length === 1 && lab.frame?.at === 60")
    click(page, 1, 5)  # a wall, which is torn down
    until(page, "lab.scene.config.changes?.length === 2 && lab.frame?.at === 60")
    page.locator("#pick").select_option("reward")
    page.locator("#pick-reward").fill("-0.5")
    click(page, 1, 10)
    until(page, "lab.scene.config.changes?.length === 3 && lab.frame?.at === 60")
    assert config(page)["changes"] == [[*taken, 1, "X"], [*taken, 5, "."], [*taken, 10, -0.5]]
    assert page.evaluate("lab.boards.map((board) => board.scene.layout.kinds)") == ["SX.G........"] * 2
    assert page.evaluate("lab.boards[0].scene.layout.rewards") == [[10, -0.5]]
    until(page, "location.hash.includes(':1:X,')")
    page.locator("#pick").select_option("wall")
    click(page, 0, 0)
    assert notice(page) == "A start or a goal cannot become a wall."
    page.locator("#to-start").click()
    until(page, "lab.frame.at === 0")
    assert page.evaluate("lab.boards[0].scene.layout.kinds") == "S..G.X......"
    click(page, 0, 7)  # from the start on: what was changed later is no longer there
    until(page, "lab.scene.config.changes?.length === 1 && lab.frame?.at === 0")
    click(page, 0, 2)
    until(page, "document.getElementById('notice-words').textContent.includes('cannot be reached')")
    assert config(page)["changes"] == [[0, 0, 7, "X"]]
    page.locator("#world-slip").fill("0.5")
    page.locator("#world-slip").press("Enter")
    until(page, "lab.scene.config.world.slip === 0.5 && lab.frame")
    assert "changes" not in config(page)


def test_keys_work_while_a_checkbox_has_the_focus(page, lab):
    open_lab(page, lab, left="q", right="q", world_text="S..G")
    page.locator("#further").focus()
    page.keyboard.press("ArrowRight")
    until(page, "lab.frame.at === 1")
    page.keyboard.press("Space")
    until(page, "document.getElementById('further').checked && location.hash.includes('further')")
    assert not frame(page)["playing"]
