"""The lab as an application: the page from memory, and a socket with a session for every tab."""

import asyncio
import hashlib
import json
import sys
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router, WebSocketRoute
from starlette.types import ASGIApp, Message
from starlette.websockets import WebSocket, WebSocketDisconnect

from backcast.lab.guard import Admission, Guard

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
LONGEST = 64 * 1024  # most bytes of a message
MOST, PER = 200, 1.0  # most messages within this many seconds; further ones have to wait
STALLED = 30.0  # seconds after which a tab that reads nothing is dropped
FAREWELL = 0.5  # seconds for closing a socket

Ending = tuple[int, str]
GONE: Ending = (1000, "")
STOPPED: Ending = (1001, "the lab was stopped")
FAILED: Ending = (1011, "the session failed")


class LabSession(Protocol):
    """The interface of a session for a socket."""

    async def start(self) -> None:
        """Greet."""

    async def work(self) -> None:
        """Process messages until cancelled."""

    async def receive(self, text: str) -> None:
        """Process a message; errors in it are answered, not raised."""

    def close(self) -> None:
        """Stop work in threads soon."""


MakeSession = Callable[[Callable[[str], Awaitable[None]], Callable[[bytes], Awaitable[None]]], LabSession]


@dataclass(frozen=True)
class LabSettings:
    """Limits of a lab.

    Attributes:
        admission: Who is admitted.
        sessions: The most simultaneous sessions.
        idle: Minutes without any message after which a session ends.
    """

    admission: Admission
    sessions: int = 32
    idle: float = 30.0


class Lab:
    """The application and its open sockets.

    Args:
        settings: The limits.
        make_session: Makes a session from two functions that send text and bytes.

    Attributes:
        app: The application to serve.
    """

    def __init__(self, settings: LabSettings, make_session: MakeSession) -> None:
        self._settings = settings
        self._make_session = make_session
        self._open: set[asyncio.Task[None]] = set()
        routes = [*page_routes(PAGE), WebSocketRoute("/ws", self._attend)]
        self.app: ASGIApp = Guard(Router(routes, redirect_slashes=False), settings.admission)

    async def close(self) -> None:
        """End all sessions."""
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=2 * FAREWELL)

    async def _attend(self, socket: WebSocket) -> None:
        """Serve a socket to its end; errors do not affect other sockets."""
        await socket.accept()
        wire = Wire(socket)
        ending: Ending = (1013, f"all {self._settings.sessions} sessions of this lab are in use; close another tab")
        task = asyncio.current_task()
        if task and len(self._open) < self._settings.sessions:
            self._open.add(task)
            try:
                ending = await self._hold_session(wire)
            finally:
                self._open.discard(task)
        if ending == FAILED:
            await wire.send_error("the lab made a mistake and wrote it down where it was started; reload the page")
        await wire.close(ending)

    async def _hold_session(self, wire: "Wire") -> Ending:
        """Run a session and read from its page until one of them ends; then all its tasks have ended, too."""
        session = self._make_session(wire.send_text, wire.send_bytes)
        try:
            await session.start()
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(session.work())
                ending = await self._converse(wire, session)
                work.cancel()
        except asyncio.CancelledError:
            return STOPPED
        except Exception as error:
            _tell(error)
            return FAILED
        finally:
            session.close()
        return ending

    async def _converse(self, wire: "Wire", session: LabSession) -> Ending:
        """Pass messages to a session as long as they arrive."""
        idle = self._settings.idle
        recent = deque[float](maxlen=MOST)
        while wire.open:
            try:
                async with asyncio.timeout(60 * idle):
                    message = await wire.receive()
            except TimeoutError:
                return 4000, f"no message for {idle:g} minutes; reload the page to continue"
            if message["type"] == "websocket.disconnect":
                break
            await _keep_pace(recent)
            text = message.get("text")
            if text is None:
                await wire.send_error("a message of bytes was given, expected text")
            elif (length := len(text.encode())) > LONGEST:
                await wire.send_error(f"a message of {length:,} bytes was given, expected at most {LONGEST:,}")
            else:
                await session.receive(text)
        return GONE


class Wire:
    """A socket to which sending is always safe: after its end, nothing happens.

    Attributes:
        open: Whether messages may still arrive.
    """

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self.open = True

    async def receive(self) -> Message:
        """The next message."""
        return await self._socket.receive()

    async def send_text(self, text: str) -> None:
        """Send a text message."""
        await self._send({"type": "websocket.send", "text": text}, STALLED)

    async def send_bytes(self, content: bytes) -> None:
        """Send a message of bytes."""
        await self._send({"type": "websocket.send", "bytes": content}, STALLED)

    async def send_error(self, sentence: str) -> None:
        """Report an invalid message."""
        await self.send_text(json.dumps({"is": "error", "message": sentence, "about": "message"}))

    async def close(self, ending: Ending) -> None:
        """Close the socket, with a code and a reason."""
        code, reason = ending
        await self._send({"type": "websocket.close", "code": code, "reason": reason}, FAREWELL)
        self.open = False

    async def _send(self, message: Message, patience: float) -> None:
        if not self.open:
            return
        try:
            async with asyncio.timeout(patience):
                await self._socket.send(message)
        except (OSError, WebSocketDisconnect, RuntimeError):  # errors of a lost or slow socket
            self.open = False


async def _keep_pace(recent: deque[float]) -> None:
    """Wait if messages come too fast, so that one tab cannot starve the others."""
    clock = asyncio.get_running_loop().time
    if len(recent) == MOST:
        await asyncio.sleep(recent[0] + PER - clock())
    recent.append(clock())


def _tell(error: Exception) -> None:
    """Log in one line what went wrong, and where; only the first of several errors."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(repr(error).split())
    print(f"backcast lab: a session failed: {words} ({Path(place.filename).name}:{place.lineno})", file=sys.stderr)


def page_routes(directory: Path) -> list[Route]:
    """One route for each file of the page, read at start-up: no name from a request ever reaches the disk."""
    files = {file.name: file.read_bytes() for file in sorted(directory.iterdir()) if file.suffix in TYPES}
    routes = [Route(f"/{name}", _from_memory(name, content)) for name, content in files.items()]
    if "index.html" in files:
        routes.append(Route("/", _from_memory("index.html", files["index.html"])))
    return routes


def _from_memory(name: str, content: bytes) -> Callable[[Request], Awaitable[Response]]:
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Content-Type": TYPES[Path(name).suffix]}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(content, headers=headers)

    return answer
