"""Labs to be asked without a browser: one in a thread of this process, and the real command."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from backcast.lab.app import Lab, LabSettings
from backcast.lab.guard import Admission
from backcast.lab.serving import LabServer, hosts_of, listen
from backcast.lab.session import Session
from patience import PATIENCE

TOKEN = "a-token-for-testing"


class StandIn:
    """A session that does what the real one never should."""

    closed: list["StandIn"]

    def __init__(self, send_text, send_bytes):
        self.send_text, self.failure, self.fails = send_text, None, asyncio.Event()

    async def start(self):
        await self.send_text("started")

    async def receive(self, text):
        if text.startswith("fail"):
            self.failure = ValueError("two\nlines")
        if text == "fail now":
            raise self.failure
        if text == "fail beside":
            self.fails.set()
        if text == "hang":
            await asyncio.sleep(10 * PATIENCE)
        if text == "much":
            for _ in range(1_000):
                await self.send_text("x" * 100_000)
        await self.send_text(text)

    async def work(self):
        try:
            await self.fails.wait()
        finally:
            if self.failure:
                raise self.failure

    def close(self):
        StandIn.closed.append(self)


@contextlib.contextmanager
def running(make_session=Session, token=None, allowed=(), **settings):
    """A lab on a port of its own, and that port."""
    with listen("127.0.0.1", 0) as listening:
        port, started = listening.getsockname()[1], threading.Event()
        admission = Admission(hosts_of([], allowed, port), token, f"backcast-lab-{port}")
        server = LabServer(Lab(LabSettings(admission, **settings), make_session), started.set)
        thread = threading.Thread(target=server.run, args=[[listening]])
        thread.start()
        assert started.wait(PATIENCE)
        StandIn.closed = []
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
            assert not thread.is_alive()


@pytest.fixture(scope="module", name="port")
def an_open_lab():
    """The port of a lab that asks for no token."""
    with running(allowed=["lab.example.org", "localhost:9000"]) as port:
        yield port


@pytest.fixture(scope="module", name="locked")
def a_locked_lab():
    """The port of a lab that asks for a token."""
    with running(token=TOKEN) as port:
        yield port


def ask(port, target="/", method="GET", at="127.0.0.1", **headers):
    """One request, byte for byte as it was given: status, headers and body."""
    connection = http.client.HTTPConnection(at, port, timeout=PATIENCE)
    connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": f"127.0.0.1:{port}"} | headers).items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body.decode()


@contextlib.contextmanager
def page(port, host=None, origin="", **options):
    """A socket as a page at that host opens it."""
    host = host or f"127.0.0.1:{port}"
    origin = f"http://{host}" if origin == "" else origin
    options = {"open_timeout": PATIENCE, "compression": None} | options
    plain = socket.create_connection(("127.0.0.1", port))
    with plain, connect(f"ws://{host}/ws", sock=plain, origin=origin, **options) as opened:
        yield opened


def answer(opened):
    """The next message."""
    return json.loads(opened.recv(PATIENCE))


def ending(opened):
    """Code and reason with which a socket was closed, whatever was sent before."""
    with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012
        while True:
            opened.recv(PATIENCE)
    last = closed.value.rcvd
    return (last.code, last.reason) if last else (1006, "")


@contextlib.contextmanager
def command(*options, **environment):
    """The real command, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backcast", "lab", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
        start_new_session=True,
    )
    try:
        line = process.stdout.readline()
        assert re.fullmatch(r"Backcast lab: http://\S+:\d+/\S*  \(Ctrl-C stops it\)\n", line), process.stderr.read()
        yield process, line.split()[2]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started: whoever has its pipes is waited for
        process.communicate()


def stopped(process, by):
    """Exit code and complaints of a command that is sent a signal."""
    process.send_signal(by)
    _, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, errors
