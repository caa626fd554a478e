"""Serve the lab: find a port, print the address, open the browser, and stop at once on Ctrl-C."""

import asyncio
import errno
import ipaddress
import logging
import os
import re
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Collection
from typing import Any

from backcast.core.errors import InputError

try:
    import uvicorn
    import websockets  # noqa: F401  uvicorn needs it, and would find that out too late

    from backcast.lab.app import Lab, LabSettings
    from backcast.lab.guard import Admission, with_port
    from backcast.lab.protocols import Http, Socket
except ModuleNotFoundError as missing:
    if missing.name not in ("starlette", "uvicorn", "websockets"):
        raise
    raise InputError(f"lab: {missing.name} is not installed; pip install 'backcast[lab]'") from missing

PORT, TRIED = 8765, 10  # the default port, and the number of ports tried from there on
CONNECTIONS = 256  # the most simultaneous connections; others are refused as busy
SILENCE = 10.0  # seconds within which a connection must send a request
LOOPBACK = ("localhost", "127.0.0.1", "::1")
TOKEN = re.compile(r"[A-Za-z0-9._~-]{16,200}")  # valid in an address and in a cookie without escaping
NAME = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?")


def serve(
    host: str = "127.0.0.1",
    port: int | None = None,
    open_browser: bool = True,
    token: str | None = None,
    allow_hosts: Collection[str] = (),
) -> None:
    """Serve the lab until Ctrl-C, which is raised as KeyboardInterrupt after everything is closed.

    Args:
        host: Name or address to listen on; if other machines can reach it, a token is required.
        port: Port; 0 is any free port, None is 8765 or the first free one of the nine after it.
        open_browser: Whether to open the page in a browser, if there is one; not with a token, which would be visible
            in the list of processes.
        token: The required token; None is BACKCAST_LAB_TOKEN of the environment, or a new one if one is needed.
        allow_hosts: Further host names of this lab, such as that of a proxy; a token is then required.
    """
    from backcast.lab import standin
    from backcast.lab.session import Session

    _check_names(allow_hosts)
    with listen(host, port) as listening:
        address, bound = listening.getsockname()[:2]
        reach = ipaddress.ip_address(address)
        token = token_for(reach.is_loopback and not allow_hosts, token)
        names = [socket.gethostname(), socket.getfqdn()] if reach.is_unspecified else [host]
        admission = Admission(hosts_of(names, allow_hosts, bound), token, f"backcast-lab-{bound}")
        lab = Lab(LabSettings(admission), Session)
        url = f"http://{with_port(names[0], bound)}/"

        def ready() -> None:
            print(f"Backcast lab: {url}{f'?token={token}' if token else ''}  (Ctrl-C stops it)", flush=True)
            if open_browser and token is None and _has_browser():
                threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()

        standin.prepare()
        try:
            LabServer(lab, ready).run([listening])
        finally:
            standin.end_all()


class LabServer(uvicorn.Server):
    """Serves a lab, reports when it is ready, and closes the connection of every page before it ends.

    Args:
        lab: The lab to serve.
        ready: Called when pages can be opened.
    """

    def __init__(self, lab: Lab, ready: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                lab.app,
                loop="asyncio",
                http=Http,
                ws=Socket,
                ws_max_size=256 * 1024,
                ws_ping_interval=20.0,
                ws_per_message_deflate=False,  # costs more time than it saves on one machine
                lifespan="off",
                log_config=None,
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=1,
                limit_concurrency=CONNECTIONS,
            )
        )
        self._lab = lab
        self._ready = ready
        self._silent: dict[Any, float] = {}  # connections without a request yet, and since when

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second; at intervals, closes connections that send no request."""
        if counter % 10 == 0:
            now, connections = time.monotonic(), self.server_state.connections
            asking = (connection for connection in connections if getattr(connection, "cycle", connection) is None)
            self._silent = {connection: self._silent.get(connection, now) for connection in asking}
            for connection in [connection for connection, since in self._silent.items() if now - since > SILENCE]:
                connection.transport.abort()
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the sessions, then everything else."""
        await self._lab.close()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # no message about pages that do not respond
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


def token_for(loopback: bool, given: str | None = None) -> str | None:
    """The token given or set in the environment, otherwise a new one; None if no other machine can reach the lab."""
    token = given or os.environ.get("BACKCAST_LAB_TOKEN")
    if not token:
        return None if loopback else secrets.token_urlsafe(24)
    if TOKEN.fullmatch(token) is None:
        expected = "16 to 200 letters, digits, dots, hyphens, underscores and tildes"
        raise InputError(f"BACKCAST_LAB_TOKEN: {len(token)} characters given, expected {expected}")
    return token


def _check_names(names: Collection[str]) -> None:
    for name in names:
        if NAME.fullmatch(name) is None:
            raise InputError(f"--allow-host: {name!r} given, expected a name like lab.example.org or localhost:9000")


def hosts_of(names: Collection[str], allowed: Collection[str], port: int) -> frozenset[str]:
    """The Host headers of a lab at a port; a further name without a port is valid with and without it."""
    own = [with_port(name, port) for name in (*LOOPBACK, *names)]
    usual = [host.removesuffix(":80") for host in own if port == 80]
    proxied = [f"{name}:{port}" for name in allowed if not re.search(r":\d+$", name)]
    return frozenset(host.lower() for host in (*own, *usual, *allowed, *proxied))


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens on the given port, or near the default port."""
    for candidate in [port] if port is not None else range(PORT, PORT + TRIED):
        try:
            listening = _bound(host, candidate)
        except (OSError, UnicodeError) as error:
            if getattr(error, "errno", None) == errno.EADDRINUSE:
                continue
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"--host {host!r}, --port {candidate}: cannot listen there ({reason})") from error
        if port is None and candidate != PORT:
            print(f"Port {PORT} is taken, perhaps by another lab; this one is at {candidate}.", file=sys.stderr)
        return listening
    wanted = f"port {port} is" if port is not None else f"ports {PORT} to {PORT + TRIED - 1} are"
    raise InputError(f"--port: {wanted} taken; end what uses it, or give another (0: any that is free)")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would share the port with another program
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def _has_browser() -> bool:
    """Whether a browser can be opened that does not run in the terminal."""
    shown = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in shown)
