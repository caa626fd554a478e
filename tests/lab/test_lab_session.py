"""A session with a page that is played by the test: messages in, messages and frames out."""

import asyncio
import json
import re
import struct

import numpy as np
import pytest

import backcast as bc
from backcast.lab import memory, pair
from backcast.lab import session as session_module
from backcast.lab.session import Session
from patience import PATIENCE

CONFIG = {"world": {"kind": "maze"}, "left": {"kind": "forward"}, "right": {"kind": "backward"}, "episodes": 20}
SMALL = {**CONFIG, "world": {"kind": "maze", "text": "S..G"}, "episodes": 5}


class Page:
    """A page without a browser: it draws frames at once, unless it is told not to."""

    def __init__(self, draws=True):
        self.draws, self.texts, self.frames = draws, asyncio.Queue(), asyncio.Queue()
        self.n_frames = 0
        self.session = Session(self._hear, self._see)

    async def __aenter__(self):
        await self.session.start()
        assert (await self.told("hello"))["is"] == "hello"
        self.work = asyncio.create_task(self.session.work())
        return self

    async def __aexit__(self, *_):
        self.session.close()
        self.work.cancel()
        await asyncio.wait([self.work], timeout=PATIENCE)
        assert self.work.done()

    async def _hear(self, text):
        self.texts.put_nowait(json.loads(text))

    async def _see(self, frame):
        (length,) = struct.unpack_from("<I", frame)
        header = json.loads(frame[4 : 4 + length])
        n_states = (len(frame) - -(-(4 + length) // 4) * 4) // 10
        header["values"] = np.frombuffer(frame, "<f4", 2 * n_states, len(frame) - 10 * n_states).reshape(2, -1)
        self.n_frames += 1
        self.frames.put_nowait(header)
        if self.draws:
            await self.say(do="drawn", frame=header["frame"])

    async def say(self, **message):
        await self.session.receive(json.dumps(message))

    async def told(self, what):
        while True:
            message = await asyncio.wait_for(self.texts.get(), PATIENCE)
            if message["is"] == what:
                return message

    async def sees(self, test):
        while True:
            header = await asyncio.wait_for(self.frames.get(), PATIENCE)
            if not header["reaching"] and test(header):
                return header

    async def walks_to(self, at):
        while self.session._pair.moment.at < at:
            await asyncio.sleep(0.01)

    async def opens(self, config=CONFIG, at=0):
        await self.say(do="open", config=config, at=at)
        scene = await self.told("scene")
        return scene, await self.sees(lambda header: header["at"] == at)


def play(scenario, **page):
    async def run():
        async with Page(**page) as opened:
            await scenario(opened)

    asyncio.run(run())


def test_a_scene_is_opened_stepped_and_played_to_its_end():
    async def scenario(page):
        scene, header = await page.opens()
        assert (scene["name"], scene["purpose"], header["episode"]) == ("maze", "control", -1)
        assert len(scene["truth"]) == 48
        await page.say(do="step")
        assert (await page.sees(lambda header: header["at"] == 1))["step"] == 1
        await page.say(do="episode")
        ended = await page.sees(lambda header: header["at"] > 1)
        assert [agent["over"] for agent in ended["agents"]] == [True, True]
        await page.say(do="play", speed=100_000)
        last = await page.sees(lambda header: header["finished"])
        assert not last["playing"]
        for side, kind in enumerate(("forward", "backward")):
            runs = bc.run(bc.worlds.maze(), bc.agent(kind), 20, 1)
            np.testing.assert_array_equal(last["values"][side], runs.values[0].max(axis=1).astype(np.float32))

    play(scenario)


@pytest.mark.interpreted
def test_curves_come_in_pieces_that_fit():
    async def scenario(page):
        curves = []
        await page.opens(SMALL)
        await page.say(do="play", speed=30)
        finished = False
        while not finished:
            header = await page.sees(lambda _: True)
            piece = header["agents"][0]["curves"]
            assert piece["from"] == len(curves)
            curves += piece["steps"]
            finished = header["finished"]
        assert curves == bc.run(bc.worlds.maze("S..G"), bc.agent("forward"), 5, 1).steps[0].tolist()

    play(scenario)


@pytest.mark.interpreted
def test_a_moment_is_opened_and_sought_in_any_order():
    async def scenario(page):
        _, there = await page.opens(at=900)
        await page.say(do="seek", at=3)
        assert (await page.sees(lambda header: header["at"] == 3))["furthest"] == 900
        await page.say(do="seek", at=900)
        again = await page.sees(lambda header: header["at"] == 900)
        np.testing.assert_array_equal(again["values"], there["values"])
        assert again["agents"][1]["credit"] == there["agents"][1]["credit"]
        await page.say(do="end")
        assert (await page.sees(lambda header: header["finished"]))["episode"] == 19

    play(scenario)


@pytest.mark.interpreted
def test_frames_are_dropped_not_queued():
    async def scenario(page):
        await page.opens({**CONFIG, "episodes": 2000})
        await page.say(do="drawn", frame=1)
        await page.say(do="play", speed=2000)
        first = await page.sees(lambda _: True)
        await page.walks_to(first["at"] + 200)
        assert page.n_frames == 2
        await page.say(do="drawn", frame=first["frame"])
        second = await page.sees(lambda _: True)
        assert second["frame"] == first["frame"] + 1
        assert second["at"] >= first["at"] + 200  # what happened meanwhile is skipped

    play(scenario, draws=False)


@pytest.mark.interpreted
def test_a_page_that_draws_nothing_for_long_is_let_sleep(monkeypatch):
    monkeypatch.setattr(session_module, "_ASLEEP", 0.2)

    async def scenario(page):
        await page.opens({**CONFIG, "episodes": 5000})
        await page.say(do="drawn", frame=1)
        await page.say(do="play", speed=1000)
        first = await page.sees(lambda _: True)
        here = -1
        while here != page.session._pair.moment.at:
            here = page.session._pair.moment.at
            await asyncio.sleep(0.2)
        assert page.session._asleep
        assert not page.session._pair.moment.finished
        await page.say(do="drawn", frame=first["frame"])
        await page.sees(lambda header: header["at"] >= here)
        assert page.session._playing

    play(scenario, draws=False)


BAD = ["", "{", "[]", "null", "7", '"do"', "{}", '{"do": 1}', '{"do": "fly"}', '{"do": "open"}', '{"do": "seek"}']
BAD += ['{"do": "seek", "at": -1}', '{"do": "seek", "at": 1e300}', '{"do": "play", "speed": "x"}', '{"do": "play"}']
BAD += ['{"do": "play", "speed": NaN}', '{"do": "play", "speed": 0}', '{"do": "step", "more": 1}', "[" * 5000]
BAD += ['{"do": "seek", "at": true}', '{"do": "play", "speed": "5"}', '{"do": "ask", "state": "1"}']
BAD += ['{"do": "open", "config": {}}', '{"do": "open", "config": []}', '{"do": "ask", "state": 48}', "\ud800"]


@pytest.mark.interpreted
def test_a_bad_message_is_answered_and_the_session_lives_on():
    async def scenario(page):
        await page.opens(SMALL)
        for text in BAD:
            await page.session.receive(text)
            told = await page.told("error")
            assert told["message"], text
        await page.say(do="step")
        await page.sees(lambda header: header["at"] == 1)

    play(scenario)


@pytest.mark.interpreted
def test_before_a_scene_there_is_nothing_to_play():
    async def scenario(page):
        await page.say(do="play", speed=10)
        assert (await page.told("error"))["message"] == "play: there is no scene yet; open one first"
        await page.opens(SMALL)

    play(scenario)


@pytest.mark.interpreted
def test_a_scene_that_cannot_be_made_leaves_the_one_before():
    async def scenario(page):
        await page.opens(SMALL)
        await page.say(do="open", config={**SMALL, "world": {"kind": "maze", "text": "S.XG"}})
        told = await page.told("error")
        assert (told["about"], "cannot be reached" in told["message"]) == ("open", True)
        await page.say(do="step")
        await page.sees(lambda header: header["at"] == 1)

    play(scenario)


@pytest.mark.interpreted
def test_a_scene_that_was_replaced_while_it_was_made_is_never_shown():
    async def scenario(page):
        await page.opens(SMALL)
        wider = {**SMALL, "world": {"kind": "maze", "text": "S.......G"}}
        await page.say(do="open", config=wider)
        await asyncio.sleep(0)
        await page.say(do="open", config={**SMALL, "world": {"kind": "maze", "text": "S.XG"}})
        assert "cannot be reached" in (await page.told("error"))["message"]
        await page.say(do="step")
        frame = await page.sees(lambda header: header["at"] == 1)
        assert frame["values"].shape == (2, 4)

    play(scenario)


@pytest.mark.interpreted
def test_one_may_play_while_the_first_scene_is_made():
    async def scenario(page):
        await page.say(do="open", config=SMALL)
        await asyncio.sleep(0)
        await page.say(do="play", speed=1000)
        await page.sees(lambda header: header["finished"])
        assert page.texts.empty() or (await page.told("scene"))

    play(scenario)


@pytest.mark.interpreted
def test_the_latest_scene_counts():
    async def scenario(page):
        for n in range(2, 8):
            await page.say(do="open", config={**SMALL, "world": {"kind": "maze", "text": "S" + "." * n + "G"}})
        await page.say(do="play", speed=1000)
        while len((await page.told("scene"))["truth"]) != 9:
            pass
        await page.sees(lambda header: header["finished"] and header["values"].shape == (2, 9))

    play(scenario)


@pytest.mark.interpreted
def test_states_are_explained_and_further_seeds_are_run():
    async def scenario(page):
        scene, _ = await page.opens(SMALL, at=4)
        await page.say(do="ask", state=2)
        told = await page.told("answer")
        assert (told["state"], told["name"], told["at"]) == (2, scene["layout"]["names"][2], 4)
        assert told["agents"][0]["true_successors"][1]["to"] == [[3, 1.0]]
        await page.say(do="further", on=True)
        report = await page.told("further")
        while report["done"] < 100:
            report = await page.told("further")
        steps = bc.run(bc.worlds.maze("S..G"), bc.agent("backward"), 5, range(1, 101)).steps
        assert report["agents"][1]["mean"] == pytest.approx(steps.mean(axis=0).tolist())
        await page.say(do="further", on=False)

    play(scenario)


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.interpreted
def test_a_session_ends_whenever_it_is_told_to(turns):
    async def run():
        async with Page() as page:
            await page.opens(SMALL)
            await page.say(do="play", speed=0.2)
            await asyncio.sleep(0.1)
            await page.say(do="drawn", frame=1)  # wakes a session that waits for its next tick
            for _ in range(turns):
                await asyncio.sleep(0)
        assert page.work.cancelled()

    asyncio.run(run())


@pytest.mark.interpreted
def test_a_mistake_in_the_background_is_raised(monkeypatch):
    def mistaken(*_):
        raise ZeroDivisionError("of our own making")

    async def scenario(page):
        await page.opens(SMALL)
        monkeypatch.setattr(pair, "encode", mistaken)
        await page.say(do="step")
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(page.work, PATIENCE)

    play(scenario)


@pytest.mark.interpreted
def test_long_work_is_announced_and_can_be_replaced(monkeypatch):
    monkeypatch.setattr(session_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(session_module, "_SLICE", 0.0)

    async def scenario(page):
        await page.opens({**CONFIG, "episodes": 5000})
        await page.say(do="end")
        assert (await page.told("busy"))["about"] in ("running", "compiling")
        await page.say(do="seek", at=5)
        await page.sees(lambda header: header["at"] == 5)

    play(scenario)


@pytest.mark.interpreted
@pytest.mark.parametrize("again", [False, True])
def test_of_a_long_way_moments_are_shown_unless_the_page_has_seen_later_ones(monkeypatch, again):
    monkeypatch.setattr(session_module, "_PATIENCE", 0.0)
    monkeypatch.setattr(session_module, "_SLICE", 0.0)

    async def scenario(page):
        await page.say(do="open", config=SMALL | {"episodes": 500}, at=300, again=again)
        shown, reaching = [], True
        while reaching:
            header = await asyncio.wait_for(page.frames.get(), PATIENCE)
            reaching = header["reaching"]
            shown.append(header["at"])
        assert (shown[-1], min(shown) < 300) == (300, not again)

    play(scenario)


def test_of_two_wishes_at_once_the_last_one_is_shown():
    async def scenario(page):
        await page.say(do="open", config=CONFIG)
        await asyncio.sleep(0)
        scene, _ = await page.opens(SMALL)
        others = [page.texts.get_nowait()["is"] for _ in range(page.texts.qsize())]  # of what is compiled, perhaps
        assert (scene["config"]["episodes"], "scene" in others) == (5, False)

    play(scenario)


@pytest.mark.skipif(memory.held() == 0, reason="the system does not say how much memory there is")
@pytest.mark.interpreted
def test_a_lab_that_holds_much_memory_opens_nothing_more(monkeypatch):
    async def scenario(page):
        await page.opens(SMALL)
        monkeypatch.setattr(memory, "MOST", 1)
        await page.say(do="open", config=CONFIG)
        told = await page.told("error")
        words = (
            r"the lab holds [\d,]+ MB of memory, expected at most 1 to open a scene: close other tabs, or start it.*"
        )
        assert (told["about"], bool(re.fullmatch(words, told["message"]))) == ("open", True)
        await page.say(do="step")
        await page.sees(lambda header: header["at"] == 1)  # what was open stays

    play(scenario)
