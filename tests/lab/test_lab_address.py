"""The address of the lab's page: it brings back a moment, and says what is wrong with it."""

import pytest

from backcast.lab.presets import PRESETS
from browser import (  # noqa: F401  three are fixtures
    a_browser,
    a_lab,
    a_page,
    address,
    config,
    frame,
    normalised,
    notice,
    open_lab,
    remembered,
    said,
    tab,
    until,
    values,
)

SEED = 4


def test_an_address_brings_back_the_same_moment(page, lab, browser):
    open_lab(page, lab, right="q", right_epsilon=0.25, world_slip=0.1, seed=SEED, episodes=9, at=437, speed=70)
    page.locator("#view").select_option("error")
    page.keyboard.press("ArrowRight")
    until(page, "lab.frame.at === 438 && location.hash.includes('at=438') && location.hash.includes('view=error')")
    shown = remembered(page)
    assert any(values(page, 0))
    page.reload()
    until(page, "window.lab?.frame?.at === 438")
    assert remembered(page) == shown
    with tab(browser) as other:
        other.goto(page.url)
        until(other, "window.lab?.frame?.at === 438")
        assert remembered(other) == shown
    world, left, right = {"kind": "maze", "slip": 0.1}, {"kind": "forward"}, {"kind": "q", "epsilon": 0.25}
    given = {"world": world, "left": left, "right": right, "seed": SEED, "episodes": 9}
    assert config(page) == normalised(given)
    assert said(page, "#speed-words") == "70 steps/s"
    assert page.locator("#view").input_value() == "error"


@pytest.mark.parametrize(
    ("broken", "words", "kept"),
    [
        ("#nonsense", "The address has “nonsense”, which is unknown; ", {}),
        ("#world.kind=maze&seed=5", "The address has no left.kind and no right.kind.", {"seed": 5}),
        (
            "#world.kind=maze&left.kind=q&left.alpha=0.5&right.kind=backwards&episodes=7",
            "The address cannot be opened as it is. right.kind: ",
            {"world": {"kind": "maze"}, "left": {"kind": "q", "learn": True, "alpha": 0.5}, "episodes": 7},
        ),
        (
            "#world.kind=garnet&world.states=9999&left.kind=dyna&right.kind=td&right.bogus=1",
            "The address cannot be opened as it is. world: states is 9,999, expected at most 1,000 in the lab",
            {"world": {"kind": "garnet"}, "right": {"kind": "td", "learn": True}},
        ),
        (
            "#world.kind=mze&left.kind=q&left.alpha=0.5&right.kind=dyna",
            "The address cannot be opened as it is. world.kind: ",
            {"world": {"kind": "maze"}, "left": {"kind": "q", "learn": True, "alpha": 0.5}},
        ),
        (
            "#world.kind=maze&left.kind=q&left.alpha=5&right.kind=q&view=nice&world.slip=0.5",
            "The address has view=nice; allowed are values, exact, error. The address cannot be opened as it is. lef",
            {"world": {"kind": "maze", "slip": 0.5}, "left": {"kind": "q", "learn": True}},
        ),
    ],
)
def test_a_broken_address_says_what_is_wrong_and_keeps_what_is_right(page, lab, broken, words, kept):
    page.goto(lab + broken)
    until(page, "window.lab?.frame")
    told = notice(page)
    assert told.startswith(words)
    assert told.count("cannot be opened") <= 1
    assert "?." not in told
    shown = config(page)
    assert {name: shown[name] for name in kept} == kept
    if not kept:
        assert shown == normalised(PRESETS[0].config)
    page.keyboard.press("ArrowRight")
    until(page, "lab.frame.at > 0")


@pytest.mark.slow
def test_an_address_that_is_broken_later_says_so(page, lab):
    open_lab(page, lab, at=20, seed=SEED)
    shown = remembered(page)
    for broken, words in {
        "#left=&=": "The address has “left”",
        "#view=nice": "The address has view=nice; allowed are",
        "#story=%E0%A4%A": "The address has story=%E0%A4%A, which cannot be read.",
    }.items():
        page.evaluate(f"location.hash = {broken!r}")
        until(page, f"document.getElementById('notice-words').textContent.startsWith({words!r})")
        page.locator("#notice-close").click()
        assert remembered(page) == shown
    for broken, words in {
        address("", at=-3, seed=7): "The address has at=-3; a number",
        address("", world_text="S..", seed=8): "The address cannot be opened as it is. world: ",
        address("", episodes="1e99", seed=9): "The address cannot be opened as it is. episodes: ",
    }.items():
        page.evaluate(f"location.hash = {broken!r}")
        until(page, f"document.getElementById('notice-words').textContent.startsWith({words!r})")
        until(page, f"lab.scene.config.seed === {broken[-1]} && lab.frame?.at === 0")
        assert (config(page)["left"]["kind"], config(page)["right"]["kind"]) == ("forward", "backward")
    page.keyboard.press("ArrowRight")
    until(page, "lab.frame.at === 1")
