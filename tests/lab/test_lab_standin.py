"""Agents that live interpreted in another process until theirs are compiled, and what is compiled for whom."""

import asyncio
import json
import threading

import numpy as np
import pytest
from test_lab_session import Page

from backcast.lab import compile_in_child, scene_opening, standin
from backcast.lab.config import read_config
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.pair import Here
from backcast.lab.presets import PRESETS
from backcast.lab.scene_opening import Ahead, Opening, warmed_up
from backcast.lab.standin import StandInEndedError
from lab_scenes import LONG, config, scene
from patience import PATIENCE, until

pytestmark = pytest.mark.interpreted
MAZE = {"kind": "maze", "text": "S.X.\n..X.\n...G", "slip": 0.2}


@pytest.fixture(autouse=True)
def _although_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(standin, "INTERPRETED", False)
    yield
    standin.end_all()
    assert not standin._running


def given(**others):
    return read_config(config("forward", "blend", world=MAZE, seed=3, **others)).given()


def test_it_computes_what_is_computed_here():
    there, here = standin.take(given()), Here(Lockstep(scene("forward", "blend", world=MAZE, seed=3)))
    for pair in (there, here):
        assert pair.way_to(40, NEVER)(LONG)
        pair.play(3, LONG)
    assert there.moment == here.moment
    assert there.moment.at == 43
    assert there.frame({"frame": 1}, 0) == here.frame({"frame": 1}, 0)
    assert json.dumps(there.answer(4)) == json.dumps(here.answer(4))
    assert there.way_to(NEVER, NEVER)(LONG)
    assert there.moment.finished


def test_whoever_asks_when_it_is_ended_is_told():
    there = standin.take(given())
    there.close()
    with pytest.raises(StandInEndedError):
        there.play(1, LONG)


def test_there_are_few_and_one_waits_for_the_next_scene(monkeypatch):
    monkeypatch.setattr(standin, "MOST", 2)
    standin.prepare()
    (waiting,) = standin._waiting
    first = standin.take(given())
    assert first._process is waiting
    second = standin.take(given())
    assert standin._waiting == []
    assert standin.take(given()) is None
    second.close()
    assert len(standin._waiting) == 1
    assert len(standin._running) == 2


def test_where_it_cannot_be_started_there_is_none(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nothing/here")
    assert standin.take(given()) is None


class Compiler:
    """Stands for the compiler: scenes are compiled when it is free."""

    def __init__(self, monkeypatch):
        self.free = threading.Event()
        monkeypatch.setattr(Opening, "loaded", lambda _: None)
        monkeypatch.setattr(
            Opening, "compiled", lambda made: self.free.wait(PATIENCE) and warmed_up(made.scene, made._stop)
        )


def played(scenario):
    async def run():
        async with Page() as page:
            await scenario(page)

    asyncio.run(run())


def test_a_page_plays_while_its_agents_are_compiled_and_goes_on_where_it_is(monkeypatch):
    compiler = Compiler(monkeypatch)

    async def scenario(page):
        _, first = await page.opens(config("forward", "blend", world=MAZE, seed=3), at=5)
        assert first["waits"] == "compiling"
        await page.say(do="play", speed=50)
        moved = await page.sees(lambda header: header["at"] > 10)
        compiler.free.set()
        after = await page.sees(lambda header: header["waits"] is None)
        assert after["at"] >= moved["at"]
        assert isinstance(page.session._pair, Here)
        await page.say(do="seek", at=60)
        there = await page.sees(lambda header: header["at"] == 60)
        walked = Lockstep(scene("forward", "blend", world=MAZE, seed=3))
        assert walked.way_to(60)(LONG)
        for side, walker in enumerate(walked.walkers):
            np.testing.assert_array_equal(there["values"][side], walker.action_values.max(axis=1).astype(np.float32))

    played(scenario)


def test_what_was_asked_of_a_process_that_is_ended_is_answered_by_the_compiled_agents(monkeypatch):
    compiler = Compiler(monkeypatch)

    def ended(stand_in, s):
        compiler.free.set()
        stand_in.close()
        raise StandInEndedError

    monkeypatch.setattr(standin.StandIn, "answer", ended)

    async def scenario(page):
        await page.opens(config(world=MAZE))
        await page.say(do="ask", state=3)
        assert (await page.told("answer"))["state"] == 3

    played(scenario)


def test_where_there_is_none_the_page_waits_for_the_compiler(monkeypatch):
    compiler = Compiler(monkeypatch)
    monkeypatch.setattr(standin, "MOST", 0)

    async def scenario(page):
        await page.say(do="open", config=config(world=MAZE))
        await page.told("scene")
        assert (await page.told("busy"))["about"] == "compiling"
        await page.say(do="step")
        compiler.free.set()
        assert (await page.sees(lambda _: True))["at"] in (0, 1)
        await page.session.receive(json.dumps({"do": "seek", "at": 3}))
        await page.sees(lambda header: header["at"] == 3)

    played(scenario)


def test_a_page_that_leaves_lets_its_process_go(monkeypatch):
    compiler = Compiler(monkeypatch)

    async def scenario(page):
        await page.opens(config(world=MAZE))
        assert len(standin._running) == 1

    played(scenario)
    until(lambda: not standin._running)
    compiler.free.set()


class Children:
    """Stands for processes that compile; each takes until it is told, or nobody wants it."""

    def __init__(self, monkeypatch):
        self.begun, self.free = [], threading.Event()
        monkeypatch.setattr(compile_in_child, "_compile", self)

    def __call__(self, what, scene_given, compilation):
        self.begun.append(scene_given)
        until(lambda: self.free.is_set() or not compilation.is_wanted)
        return compilation.is_wanted


def test_who_wants_the_same_waits_for_the_same_process(monkeypatch):
    children, stops, done = Children(monkeypatch), [np.zeros(1, np.uint8) for _ in range(3)], []

    def wait(stop):
        done.append(compile_in_child.compile_elsewhere("open", given(), stop))

    threads = [threading.Thread(target=wait, args=(stop,)) for stop in stops]
    threads[0].start()
    until(lambda: children.begun)
    for thread in threads[1:]:
        thread.start()
    until(lambda: len(next(iter(compile_in_child._compilations.values())).waiting) == 3)
    stops[0][0] = 1  # who began it leaves, who waits with it stays
    stops[1][0] = 1
    until(lambda: done == [False])
    children.free.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert (len(children.begun), sorted(done)) == (1, [False, True, True])
    assert not compile_in_child._compilations


def test_a_process_that_nobody_wants_any_more_is_ended_and_begun_anew_for_the_next(monkeypatch):
    children, stop = Children(monkeypatch), np.ones(1, np.uint8)
    assert not compile_in_child.compile_elsewhere("open", given(), stop)
    children.free.set()
    assert compile_in_child.compile_elsewhere("open", given(), np.zeros(1, np.uint8))
    assert len(children.begun) == 2


def test_the_panels_that_follow_are_compiled_while_one_is_read(monkeypatch):
    monkeypatch.setattr(scene_opening, "_compiled_ahead", [])
    children = Children(monkeypatch)
    children.free.set()
    panels = [read_config(preset.config).given() for preset in PRESETS]
    Ahead(panels[2]).compile()
    assert children.begun == [*panels[3:], *panels[:2]]
    Ahead(panels[0]).compile()
    assert children.begun[-1] == panels[2]
    assert len(children.begun) == len(panels)
    Ahead(given()).compile()
    assert len(children.begun) == len(panels)


def test_of_the_panels_ahead_the_one_that_is_begun_is_finished_unless_the_page_is_closed(monkeypatch):
    monkeypatch.setattr(scene_opening, "_compiled_ahead", [])
    children = Children(monkeypatch)
    panels = [read_config(preset.config).given() for preset in PRESETS]
    first, second = Ahead(panels[0]), Ahead(panels[0])
    threads = [threading.Thread(target=ahead.compile) for ahead in (first, second)]
    threads[0].start()
    until(lambda: children.begun)
    first.finish()
    children.free.set()
    threads[0].join(PATIENCE)
    assert scene_opening._compiled_ahead == children.begun == [panels[1]]
    children.free.clear()
    threads[1].start()
    until(lambda: len(children.begun) == 2)
    second.stop()
    threads[1].join(PATIENCE)
    assert scene_opening._compiled_ahead == [panels[1]]
