"""A session: one page, its two agents, and the frames it is sent.

Messages only say what is wanted; one task does it, in short slices of compiled work beside the event loop, so that the
latest wish counts and pages take turns. A frame is sent when the page has drawn the one before: what
happens meanwhile is never queued.
"""

import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from backcast.core.errors import InputError
from backcast.lab.compile_in_child import AbandonedError
from backcast.lab.frames import encode
from backcast.lab.further_seeds import Further
from backcast.lab.inspection import answer
from backcast.lab.lockstep import NEVER, Lockstep
from backcast.lab.memory import give_back
from backcast.lab.messages import Ask, Drawn, Go, Message, More, Open, Play, Seek, error_message, hello, read_message
from backcast.lab.scene_opening import Opening

T = TypeVar("T")

_SLICE = 0.025  # seconds of work at a time
_FRAME = 1 / 45  # seconds between frames, at least
_PATIENCE = 0.3  # seconds of silence before a page is told that work is under way
_ASLEEP = 10.0  # seconds after which a page that draws nothing is taken to be asleep
_threads = ThreadPoolExecutor(4, thread_name_prefix="backcast-lab")
_openers = ThreadPoolExecutor(2, thread_name_prefix="backcast-lab-open")  # long work: it must not hold up the short


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
        self._lockstep: Lockstep | None = None
        self._further: Further | None = None
        self._opening: Open | None = None  # a scene that is wanted
        self._preparing: Opening | None = None  # one that is being made
        self._wanted: Go | Seek | None = None  # a moment that is wanted
        self._goal: Callable[[float], bool] | None = None  # the way there: to be called until it says that it is done
        self._asked: int | None = None  # a state that is asked about
        self._report: dict[str, Any] | None = None  # of further seeds, not told yet
        self._speed, self._playing, self._clock = 10.0, False, 0.0
        self._number, self._sent_at, self._drawn, self._changed, self._known = 0, 0.0, True, False, 0

    async def start(self) -> None:
        """Greet the page."""
        await self._tell(hello())

    async def receive(self, text: str) -> None:
        """Take in a message; a bad one is answered, and nothing else happens."""
        try:
            message = read_message(text)
            self._want(message)
        except InputError as error:
            await self._send_text(error_message(str(error), "message"))
        self._wake.set()

    def close(self) -> None:
        """Let all that runs in threads end soon, and forget it."""
        self._abandon_opening()
        if self._further is not None:
            self._further.stop()
        if self._lockstep is not None:
            self._lockstep.stop[0] = 1
        self._lockstep = self._further = self._goal = None
        _threads.submit(give_back)

    def _want(self, message: Message) -> None:
        """Note what a message wants; what it replaces is forgotten."""
        if isinstance(message, Drawn):
            self._drawn = self._drawn or message.frame == self._number
        elif isinstance(message, Open):
            self._abandon_opening()
            self._opening, self._wanted, self._goal, self._playing = message, None, None, False
        elif self._opening is None and self._lockstep is None and self._preparing is None:
            raise InputError(f"{message.do}: there is no scene yet; open one first")
        elif isinstance(message, Play):
            self._playing, self._speed, self._clock = True, message.speed, time.monotonic()
        elif isinstance(message, Ask):
            self._asked = message.state
        elif isinstance(message, More):
            self._want_further(message.on)
        else:
            self._playing, self._changed, self._wanted = False, True, message

    def _abandon_opening(self) -> None:
        if self._preparing is not None:
            self._preparing.abandon()

    def _want_further(self, on: bool) -> None:
        if self._further is not None:
            self._further.stop()
            self._further = self._report = None
        if on and self._lockstep is not None:
            loop = asyncio.get_running_loop()
            self._further = further = Further(
                self._lockstep.scene, lambda report: loop.call_soon_threadsafe(self._take_report, further, report)
            )
            further.start()

    def _take_report(self, further: Further, report: dict[str, Any]) -> None:
        """Note what further seeds found, unless they are no longer wanted; only the last report is of interest."""
        if further is self._further:
            self._report = report
            self._wake.set()

    async def work(self) -> None:
        """Do what messages want, until it is cancelled."""
        while True:
            self._wake.clear()
            if self._opening is not None:
                await self._open(self._opening)
            elif self._lockstep is not None:
                await self._go_on(self._lockstep)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):  # wait_for of Python 3.11 may swallow a cancellation
                    await self._wake.wait()

    async def _open(self, wanted: Open) -> None:
        """Make a scene; if it cannot be made, or another is wanted meanwhile, the one before stays."""
        self._opening, self._preparing = None, Opening(wanted.config)
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(self._tell_of_long_work(self._preparing))
            made = await self._made(self._preparing)
            telling.cancel()
        self._preparing = None
        if made is None or self._opening is not None:
            return
        lockstep, scene = made
        self._want_further(False)
        if self._lockstep is not None:
            self._lockstep.stop[0] = 1
        self._lockstep, self._known, self._changed, self._asked = lockstep, 0, True, None
        self._clock = time.monotonic()
        await self._send_text(scene)
        self._goal = lockstep.way_to(wanted.at)

    async def _made(self, opening: Opening) -> tuple[Lockstep, str] | None:
        """A scene; None if it cannot be made, which the page is told, or is no longer wanted."""
        try:
            made: tuple[Lockstep, str] = await _beside(opening.make, _openers)
        except AbandonedError:
            return None
        except InputError as error:
            await self._send_text(error_message(str(error), "open"))
            self._changed = True
            return None
        return made

    async def _go_on(self, lockstep: Lockstep) -> None:
        """A slice of what is wanted, then a frame if the page is ready for one."""
        if self._wanted is not None:
            self._goal, self._wanted = _goal(lockstep, self._wanted), None
        if self._goal is not None:
            await self._reach(lockstep, self._goal)
        elif self._playing and not self._asleep:
            await self._play(lockstep)
        if self._changed and self._drawn and self._goal is None and time.monotonic() - self._sent_at >= _FRAME:
            await self._send_frame(lockstep)
        if self._asked is not None:
            await self._answer(lockstep, self._asked)
        if self._report is not None:
            report, self._report = self._report, None
            await self._send_text(await _beside(partial(json.dumps, report, allow_nan=False)))

    async def _reach(self, lockstep: Lockstep, goal: Callable[[float], bool]) -> None:
        """Some of the way to a moment that is wanted."""
        started, done = time.monotonic(), False
        while not done and self._wanted is None and self._opening is None:
            done = await _beside(partial(goal, _SLICE))
            if not done and time.monotonic() - started > _PATIENCE:
                started = time.monotonic()
                await self._tell({"is": "busy", "about": "running", "at": lockstep.at})
        if done:
            self._goal, self._changed, self._clock = None, True, time.monotonic()

    async def _play(self, lockstep: Lockstep) -> None:
        """The ticks that are due; what there is no time for is left out."""
        now = time.monotonic()
        due = math.floor((now - self._clock) * self._speed)
        if due < 1:
            return
        self._clock = now if now - self._clock > 10 * _SLICE + 1 / self._speed else self._clock + due / self._speed
        await _beside(partial(lockstep.play, due, _SLICE))
        self._changed = True
        self._playing = self._playing and not lockstep.finished

    async def _answer(self, lockstep: Lockstep, s: int) -> None:
        self._asked = None
        try:
            await self._tell(await _beside(partial(answer, lockstep, s)))
        except InputError as error:
            await self._send_text(error_message(str(error), "ask"))

    async def _send_frame(self, lockstep: Lockstep) -> None:
        self._number += 1
        state = {"frame": self._number, "playing": self._playing, "speed": self._speed}
        frame = await _beside(partial(encode, lockstep, state, self._known))
        self._known = len(lockstep.curves[0].steps)
        self._drawn, self._changed, self._sent_at = False, False, time.monotonic()
        await self._send_bytes(frame)

    @property
    def _asleep(self) -> bool:
        """Whether the page has not drawn a frame for long."""
        return not self._drawn and time.monotonic() - self._sent_at > _ASLEEP

    def _pause(self) -> float | None:
        """Seconds until there is something to do even if no message comes; None: until one comes."""
        if self._opening is not None or self._wanted is not None or self._goal is not None:
            return 0.0
        now = time.monotonic()
        waits = []
        if self._playing and self._lockstep is not None and not self._asleep:
            waits.append(self._clock + 1 / self._speed - now)
        if self._changed and self._drawn and self._lockstep is not None:
            waits.append(self._sent_at + _FRAME - now)
        return max(0.001, min(waits)) if waits else None

    async def _tell_of_long_work(self, opening: Opening) -> None:
        await asyncio.sleep(_PATIENCE)
        told = None
        while True:
            if opening.words != told:
                told = opening.words
                await self._tell({"is": "busy", "about": "compiling", "words": told})
            await asyncio.sleep(_PATIENCE)

    async def _tell(self, message: dict[str, Any]) -> None:
        await self._send_text(json.dumps(message, allow_nan=False))


async def _beside(work: Callable[[], T], threads: ThreadPoolExecutor = _threads) -> T:
    """Work in a thread, beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(threads, work)


def _goal(lockstep: Lockstep, message: Go | Seek) -> Callable[[float], bool]:
    """The way to a moment."""
    if isinstance(message, Seek):
        return lockstep.way_to(message.at)
    if message.do == "step":
        return lockstep.way_to(lockstep.at + 1)
    if message.do == "episode":
        return lockstep.way_to(NEVER, lockstep.episode + (1 if lockstep.between else 0))
    if message.do == "end":
        return lockstep.way_to(NEVER)
    return lambda seconds: True
