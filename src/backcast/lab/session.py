"""A session: one page, its two agents, and the frames sent to it.

Messages only set what is requested. One task does the work, in short slices in threads beside the event loop. So the
latest request counts, and pages take turns. A frame is sent when the page has drawn the previous one; frames are never
queued. While agents are being compiled, interpreted ones run in another process.
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from backcast.core.errors import InputError
from backcast.lab import standin
from backcast.lab.compile_in_child import AbandonedError
from backcast.lab.further_seeds import Further
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.memory import give_back
from backcast.lab.messages import Ask, Drawn, Go, Message, More, Open, Play, Seek, error_message, hello, read_message
from backcast.lab.pair import Here, Moment, Pair
from backcast.lab.scene_opening import Ahead, Opening

T = TypeVar("T")

_SLICE = 0.025  # seconds of work at a time
_FRAME = 1 / 45  # seconds between frames, at least
_PATIENCE = 0.3  # seconds of silence before a page is told that work is under way
_ASLEEP = 10.0  # seconds after which a page that draws nothing is considered asleep
_threads = ThreadPoolExecutor(4, thread_name_prefix="backcast-lab")
_openers = ThreadPoolExecutor(2, thread_name_prefix="backcast-lab-open")  # longer work, which must not delay the short
_compilers = ThreadPoolExecutor(2, thread_name_prefix="backcast-lab-compile")  # they wait for processes for a long time
_ahead = ThreadPoolExecutor(1, thread_name_prefix="backcast-lab-ahead")  # for scenes that are not open yet
_others = ThreadPoolExecutor(standin.MOST, thread_name_prefix="backcast-lab-other")  # for agents in other processes


class Session:
    """One page.

    Args:
        send_text: sends a message.
        send_bytes: sends a frame.
    """

    def __init__(
        self, send_text: Callable[[str], Awaitable[None]], send_bytes: Callable[[bytes], Awaitable[None]]
    ) -> None:
        self._send_text, self._send_bytes = send_text, send_bytes
        self._wake = asyncio.Event()
        self._pair: Pair | None = None
        self._further: Further | None = None
        self._opening: Open | None = None  # the requested scene
        self._shown: Opening | None = None  # the scene on the screen
        self._preparing: Opening | None = None  # the scene that is being made
        self._compiled: Future[Lockstep] | None = None  # the agents on the screen, if they have to be compiled
        self._ahead: Ahead | None = None  # the scenes that may be opened next
        self._wanted: Go | Seek | None = None  # the requested moment
        self._aim: tuple[int, int] | None = None  # the same as a tick and an episode, whichever comes first
        self._goal: Callable[[float], bool] | None = None  # the function that goes there, called until it returns True
        self._seen = 0  # earlier moments were on the screen and are not shown again
        self._asked: int | None = None  # the state to inspect
        self._report: dict[str, Any] | None = None  # on further seeds, not sent yet
        self._speed, self._playing, self._clock = 10.0, False, 0.0
        self._number, self._sent_at, self._drawn, self._changed, self._known = 0, 0.0, True, False, 0

    async def start(self) -> None:
        """Greet the page."""
        await self._tell(hello())

    async def receive(self, text: str) -> None:
        """Process a message; an invalid one is answered and otherwise ignored."""
        try:
            message = read_message(text)
            self._want(message)
        except InputError as error:
            await self._send_text(error_message(error, "message"))
        self._wake.set()

    def close(self) -> None:
        """Stop all work in threads soon."""
        self._abandon_opening()
        if self._further is not None:
            self._further.stop()
        if self._ahead is not None:
            self._ahead.stop()
        self._leave()
        self._further = self._goal = None
        _threads.submit(give_back)

    def _leave(self) -> None:
        """Release the agents on the screen, and stop compiling for them."""
        if self._shown is not None:
            self._shown.abandon()
        if self._pair is not None:
            _threads.submit(self._pair.close)
        self._pair = self._shown = self._compiled = None

    def _want(self, message: Message) -> None:
        """Set the request of a message, in place of an earlier one."""
        if isinstance(message, Drawn):
            self._drawn = self._drawn or message.frame == self._number
        elif isinstance(message, Open):
            self._abandon_opening()
            self._opening, self._wanted, self._goal, self._aim, self._playing = message, None, None, None, False
        elif self._opening is None and self._shown is None and self._preparing is None:
            raise InputError(f"{message.do}: there is no scene yet; open one first")
        elif isinstance(message, Play):
            self._playing, self._speed, self._clock = True, message.speed, time.monotonic()
        elif isinstance(message, Ask):
            self._asked = message.state
        elif isinstance(message, More):
            self._want_further(message.on)
        else:
            self._playing, self._changed, self._wanted, self._seen = False, True, message, 0

    def _abandon_opening(self) -> None:
        if self._preparing is not None:
            self._preparing.abandon()

    def _want_further(self, on: bool) -> None:
        if self._further is not None:
            self._further.stop()
            self._further = self._report = None
        if on and self._shown is not None:
            loop = asyncio.get_running_loop()
            self._further = further = Further(
                self._shown.scene, lambda report: loop.call_soon_threadsafe(self._take_report, further, report)
            )
            further.start()

    def _take_report(self, further: Further, report: dict[str, Any]) -> None:
        """Store the last report on further seeds, unless they are no longer requested."""
        if further is self._further:
            self._report = report
            self._wake.set()

    async def work(self) -> None:
        """Process requests until cancelled."""
        while True:
            self._wake.clear()
            if self._opening is not None:
                await self._open(self._opening)
            elif self._compiled is not None and self._compiled.done():
                await self._relieve(self._compiled)
            elif self._pair is not None:
                await self._go_on(self._pair)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._wake.wait()

    async def _open(self, wanted: Open) -> None:
        """Make a scene. If that fails, or another is requested meanwhile, the previous one stays."""
        self._opening, opening = None, Opening(wanted.config)
        self._preparing = opening
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell_of_long_work(opening))
            made = await self._made(opening)
            telling.cancel()
        self._preparing = None
        if made is None or self._opening is not None:
            return
        told, lockstep = made
        self._want_further(False)
        self._leave()
        if self._ahead is not None:
            self._ahead.finish()
        self._shown, self._known, self._changed, self._asked = opening, 0, True, None
        self._clock, self._seen = time.monotonic(), wanted.at if wanted.again else 0
        await self._send_text(told)
        if self._aim is None:
            self._aim = (wanted.at, NEVER)
        if lockstep is not None:
            self._pair = Here(lockstep)
            self._look_ahead(opening)
        else:
            await self._begin_elsewhere(opening)

    async def _made(self, opening: Opening) -> tuple[str, Lockstep | None] | None:
        """The description of a scene, and its agents unless they have to be compiled.

        None if it cannot be made, in which case the page gets an error, or is no longer requested.
        """
        try:
            told = await _beside(opening.describe, _openers)
            return told, await _beside(opening.loaded, _openers)
        except AbandonedError:
            return None
        except InputError as error:
            await self._send_text(error_message(error, "open"))
            self._changed = True
            return None

    async def _begin_elsewhere(self, opening: Opening) -> None:
        """Compile the agents; until then run them interpreted in another process, if one is available."""
        loop = asyncio.get_running_loop()
        self._compiled = compiled = _compilers.submit(opening.compiled)
        compiled.add_done_callback(lambda _: _call(loop, self._hurry, compiled))
        taken = _others.submit(standin.take, opening.given)
        taken.add_done_callback(lambda _: _call(loop, self._enter, opening, taken))
        await self._tell({"is": "busy", "about": "compiling", "words": ""})

    def _enter(self, opening: Opening, taken: "Future[standin.StandIn | None]") -> None:
        """Use interpreted agents when they are ready, unless the compiled ones are."""
        stand_in = taken.result()
        if stand_in is not None and opening is self._shown and self._pair is None and self._compiled is not None:
            self._pair = stand_in
            self._wake.set()
        elif stand_in is not None:
            _threads.submit(stand_in.close)

    def _hurry(self, compiled: "Future[Lockstep]") -> None:
        """The agents are compiled: stop the interpreted ones."""
        if compiled is self._compiled:
            if self._pair is not None and not compiled.cancelled() and compiled.exception() is None:
                _threads.submit(self._pair.close)
            self._wake.set()

    async def _relieve(self, compiled: "Future[Lockstep]") -> None:
        """Replace interpreted agents by compiled ones, at the same moment of the same run."""
        self._compiled = None
        try:
            lockstep = compiled.result()
        except AbandonedError:
            return
        except InputError as error:
            await self._send_text(error_message(error, "open"))
            return
        before = self._pair.moment if self._pair is not None else Moment(0, 0, -1, True, False)
        self._pair = here = Here(lockstep)
        self._goal, self._changed = _catch_up(here, before, self._aim), True
        self._seen = max(self._seen, before.at)
        if self._shown is not None:
            self._look_ahead(self._shown)

    def _look_ahead(self, opening: Opening) -> None:
        """While the page shows a panel, compile for the next ones."""
        if self._ahead is not None:
            self._ahead.stop()
        self._ahead = Ahead(opening.given)
        _ahead.submit(self._ahead.compile)

    async def _go_on(self, pair: Pair) -> None:
        """Do a slice of the requested work, then send a frame if the page is ready for one."""
        try:
            await self._do_what_is_wanted(pair)
        except standin.StandInEndedError:
            if self._compiled is None or not self._compiled.done():
                self._pair = None  # it was ended elsewhere: wait for the compiler

    async def _do_what_is_wanted(self, pair: Pair) -> None:
        if self._wanted is not None:
            self._aim, self._wanted, self._goal = _aim(pair.moment, self._wanted), None, None
        if self._goal is None and self._aim is not None:
            self._goal = pair.way_to(*self._aim)
        if self._goal is not None:
            await self._reach(pair, self._goal)
        elif self._playing and not self._asleep:
            await self._play(pair)
        if self._changed and self._drawn and self._goal is None and time.monotonic() - self._sent_at >= _FRAME:
            await self._send_frame(pair)
        if self._asked is not None:
            await self._answer(pair, self._asked)
        if self._report is not None:
            report, self._report = self._report, None
            await self._send_text(await _beside(partial(json.dumps, report, allow_nan=False)))

    async def _reach(self, pair: Pair, goal: Callable[[float], bool]) -> None:
        """Go towards the requested moment; if that takes long, show some moments in between."""
        started, done = time.monotonic(), False
        while not done and self._wanted is None and self._opening is None and not self._is_relieved(pair):
            done = await _beside(partial(goal, _SLICE), self._threads_for(pair))
            if not done and time.monotonic() - started > _PATIENCE:
                started = time.monotonic()
                await self._tell({"is": "busy", "about": "running", "at": pair.moment.at})
                if self._drawn and pair.moment.at >= self._seen:
                    await self._send_frame(pair)
        if done:
            self._goal, self._aim, self._changed, self._clock = None, None, True, time.monotonic()

    def _is_relieved(self, pair: Pair) -> bool:
        """Whether compiled agents are about to replace these."""
        return self._compiled is not None and self._compiled.done()

    async def _play(self, pair: Pair) -> None:
        """Make the ticks that are due, or as many as there is time for."""
        now = time.monotonic()
        due = math.floor((now - self._clock) * self._speed)
        if due < 1:
            return
        self._clock = now if now - self._clock > 10 * _SLICE + 1 / self._speed else self._clock + due / self._speed
        await _beside(partial(pair.play, due, _SLICE), self._threads_for(pair))
        self._changed = True
        self._playing = self._playing and not pair.moment.finished

    async def _answer(self, pair: Pair, s: int) -> None:
        self._asked = None
        try:
            await self._tell(await _beside(partial(pair.answer, s), self._threads_for(pair)))
        except InputError as error:
            await self._send_text(error_message(error, "ask"))
        except standin.StandInEndedError:
            self._asked = s if self._asked is None else self._asked  # the compiled agents will answer
            raise

    async def _send_frame(self, pair: Pair) -> None:
        self._number += 1
        state = {"frame": self._number, "playing": self._playing, "speed": self._speed, "waits": self._waits}
        state["reaching"] = self._goal is not None
        frame, self._known = await _beside(partial(pair.frame, state, self._known), self._threads_for(pair))
        self._drawn, self._changed, self._sent_at = False, False, time.monotonic()
        await self._send_bytes(frame)

    @property
    def _waits(self) -> str | None:
        """The progress of compiling the agents on the screen, in words; None if they are compiled."""
        if self._compiled is None or self._shown is None:
            return None
        return self._shown.words or "compiling"

    def _threads_for(self, pair: Pair) -> ThreadPoolExecutor:
        """The threads for this pair: those that wait for another process, or those that compute."""
        return _threads if isinstance(pair, Here) else _others

    @property
    def _asleep(self) -> bool:
        """Whether the page has not drawn a frame for a long time."""
        return not self._drawn and time.monotonic() - self._sent_at > _ASLEEP

    def _pause(self) -> float | None:
        """Seconds until there is something to do without a message; None if nothing is."""
        if self._opening is not None or (self._compiled is not None and self._compiled.done()):
            return 0.0
        if self._pair is None:
            return None
        if self._wanted is not None or self._goal is not None or self._aim is not None:
            return 0.0
        now = time.monotonic()
        waits = []
        if self._playing and not self._asleep:
            waits.append(self._clock + 1 / self._speed - now)
        if self._changed and self._drawn:
            waits.append(self._sent_at + _FRAME - now)
        return max(0.001, min(waits)) if waits else None

    async def _tell_of_long_work(self, opening: Opening) -> None:
        await asyncio.sleep(_PATIENCE)
        told = None
        while True:
            if opening.words != told:
                told = opening.words
                await self._tell({"is": "busy", "about": "opening", "words": told})
            await asyncio.sleep(_PATIENCE)

    async def _tell(self, message: dict[str, Any]) -> None:
        await self._send_text(json.dumps(message, allow_nan=False))


async def _beside(work: Callable[[], T], threads: ThreadPoolExecutor = _threads) -> T:
    """Run a function in a thread, beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *given: object) -> None:
    """Call a function in the thread of an event loop, if the loop is still running."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *given)


def _aim(moment: Moment, message: Go | Seek) -> tuple[int, int]:
    """The requested tick and episode, whichever comes first."""
    if isinstance(message, Seek):
        return message.at, NEVER
    if message.do == "step":
        return moment.at + 1, NEVER
    if message.do == "episode":
        return NEVER, moment.episode + (1 if moment.between else 0)
    return (NEVER, NEVER) if message.do == "end" else (moment.at, NEVER)


def _catch_up(pair: Pair, before: Moment, aim: tuple[int, int] | None) -> Callable[[float], bool]:
    """Let new agents go as far as the old ones ever were, then to the requested moment."""
    ways = [pair.way_to(before.furthest, NEVER)]

    def go_on(seconds: float) -> bool:
        if len(ways) == 1:
            if not ways[0](seconds):
                return False
            ways.append(pair.way_to(*(aim or (before.at, NEVER))))
        return ways[1](seconds)

    return go_on
