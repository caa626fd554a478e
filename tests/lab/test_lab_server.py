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
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import backcast as bc
from backcast.lab import serving
from backcast.lab.app import PAGE, TYPES, Lab, LabSettings, page_routes
from backcast.lab.guard import HEADERS, Admission, Guard, with_port
from backcast.lab.serving import LabServer, hosts_of, listen, serve, token_for
from backcast.lab.session import Session
from lab_client import answers, ask_raw, children, lacking, reply, still_runs

TOKEN = "a-token-for-testing"
CUT = (1009, 1006)  # too large; its goodbye may be lost, because the server reads no further


class StandIn:
    """A session that does what the real one never should."""

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
            await asyncio.sleep(60)
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
        assert started.wait(10)
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive()


@pytest.fixture(scope="module")
def port():
    with running(allowed=["lab.example.org", "localhost:9000"]) as port:
        yield port


@pytest.fixture(scope="module")
def locked():
    with running(token=TOKEN) as port:
        yield port


@pytest.fixture(autouse=True)
def _forget_stand_ins():
    StandIn.closed = []


def ask(port, target="/", method="GET", at="127.0.0.1", **headers):
    """One request, byte for byte as it was given: status, headers and body."""
    connection = http.client.HTTPConnection(at, port, timeout=10)
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
    plain = socket.create_connection(("127.0.0.1", port))
    with plain, connect(f"ws://{host}/ws", sock=plain, origin=origin, compression=None, **options) as opened:
        yield opened


def answer(opened):
    return json.loads(opened.recv(10))


def ending(opened):
    """Code and reason with which a socket was closed, whatever was sent before."""
    with pytest.raises(ConnectionClosed) as closed:  # noqa: PT012
        while True:
            opened.recv(10)
    last = closed.value.rcvd
    return (last.code, last.reason) if last else (1006, "")


# ----------------------------------------------------------------------------------------------------------------------
# the page


def test_the_page_and_every_file_of_it_is_served(port):
    index = (PAGE / "index.html").read_text()
    assert ask(port)[2] == index
    for file in PAGE.iterdir():
        status, headers, body = ask(port, f"/{file.name}")
        assert (status, headers["Content-Type"]) == (200, TYPES[file.suffix]), file.name
        assert body == file.read_text()


def test_a_file_is_sent_again_only_if_it_changed(port):
    tag = ask(port)[1]["ETag"]
    status, headers, body = ask(port, **{"If-None-Match": tag})
    assert (status, headers["ETag"], body) == (304, tag, "")
    assert ask(port, **{"If-None-Match": '"another"'})[0] == 200
    assert ask(port, "/index.html")[1]["ETag"] == tag != ask(port, "/favicon.svg")[1]["ETag"]


def test_head_is_get_without_the_body(port):
    status, headers, body = ask(port, method="HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) == (PAGE / "index.html").stat().st_size


@pytest.mark.parametrize(
    "target",
    [
        "/../guard.py",
        "/../../cli.py",
        "/page/index.html",
        "/%2e%2e/guard.py",
        "/..%2fguard.py",
        "/%2e%2e%2f%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/..%5cguard.py",
        "//etc/passwd",
        "//evil.test/",
        "/index.html/",
        "/./index.html",
        "/index.html%00.js",
        "/%ff",
        "http://evil.test/",
        "/INDEX.HTML",
        "/.",
        "/ws",
        "/" + "a" * 5_000,
    ],
)
def test_nothing_but_the_files_of_the_page_can_be_read(port, target):
    status, _, body = ask(port, target)
    assert (status, body) == (404, "Not Found")


def test_only_files_that_a_page_is_made_of_are_taken_up(tmp_path):
    for name in ("index.html", "page.js", "page.js~", ".page.js.swp", "notes.txt", "LICENSE"):
        (tmp_path / name).write_text("here")
    assert {route.path for route in page_routes(tmp_path)} == {"/", "/index.html", "/page.js"}


def test_every_answer_has_the_headers(port, locked):
    answers = {
        200: ask(port),
        304: ask(port, **{"If-None-Match": ask(port)[1]["ETag"]}),
        404: ask(port, "/nothing"),
        405: ask(port, method="POST"),
        403: ask(port, Origin="http://evil.test"),
        421: ask(port, Host="evil.test"),
        401: ask(locked),
        303: ask(locked, f"/?token={TOKEN}"),
    }
    for status, (given, headers, _) in answers.items():
        assert given == status
        for name, value in HEADERS.items():
            expected = value if name != "Cache-Control" or status in (200, 304, 404) else "no-store"
            assert headers.get_all(name) == [expected], (status, name)
        assert "Server" not in headers


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
UNREADABLE = {
    "no request": (400, "nonsense"),
    "no host": (400, "GET / HTTP/1.1"),
    "a head without an end": (400, "GET / HTTP/1.1\r\nX: " + 40_000 * "x"),
    "no number": (400, "POST / HTTP/1.1\r\nHost: HERE\r\nContent-Length: -3"),
    "no chunk": (400, "POST / HTTP/1.1\r\nHost: HERE\r\nTransfer-Encoding: chunked\r\n\r\nZZZ"),
    "wrong host": (421, "GET / HTTP/1.1\r\nHost: evil.test"),
    "another upgrade": (200, "GET / HTTP/1.1\r\nHost: HERE\r\nConnection: Upgrade\r\nUpgrade: h2c"),
    "a handshake": (101, "GET /ws HTTP/1.1"),
    "a handshake by another page": (403, "GET /ws HTTP/1.1\r\nOrigin: http://evil.test"),
    "a handshake of another version": (400, "GET /ws HTTP/1.1\r\nSec-WebSocket-Version: 8"),
    "a handshake with two upgrades": (426, "GET /ws HTTP/1.1\r\nUpgrade: websocket"),
    "a handshake with a body": (400, "GET /ws HTTP/1.1\r\nContent-Length: 3"),
    "a handshake with many headers": (431, "GET /ws HTTP/1.1\r\n" + "\r\n".join(f"X{n}: 1" for n in range(150))),
    "a handshake with a long header": (431, "GET /ws HTTP/1.1\r\nX: " + 9_000 * "x"),
    "a handshake at a long address": (414, f"GET /ws?{9_000 * 'x'} HTTP/1.1"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_answers_that_the_lab_itself_does_not_make_have_the_headers_too(port, what, caplog, capfd):
    status, head = UNREADABLE[what]
    host = f"127.0.0.1:{port}"
    if "handshake" in what:
        origin = {} if "Origin" in head else {"Origin": f"http://{host}"}
        head += "".join(f"\r\n{name}: {value}" for name, value in ({"Host": host} | HANDSHAKE | origin).items())
    end = "" if "without an end" in what else "\r\n\r\n"
    came = answers(ask_raw(f"http://{host}/", (head.replace("HERE", host) + end).encode()))
    assert [status for status, _ in came] == [status]
    assert lacking(came[0][1]) == []
    assert ask(port)[0] == 200
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def test_what_is_no_body_after_an_answer_and_no_text_in_a_socket_end_the_connection_quietly(port, caplog, capfd):
    host = f"127.0.0.1:{port}"
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        plain.sendall(f"POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        assert plain.recv(12) == b"HTTP/1.1 405"
        plain.sendall(b"ZZZ\r\n")
        assert plain.makefile("rb").read().endswith(b"only.\n")
    with page(port) as opened:
        opened.socket.sendall(b"\x81\x82\0\0\0\0\xff\xfe")
        assert ending(opened) == (1007, "a text message has to be UTF-8")
    assert ask(port)[0] == 200
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def test_the_policy_lets_nothing_in_from_elsewhere():
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"


# ----------------------------------------------------------------------------------------------------------------------
# who is let in


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_refused(port, method):
    status, headers, body = ask(port, method=method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert body == f"{method}: this lab answers GET and HEAD only.\n"


def strangers(port):
    """Host headers of which none is this lab's."""
    names = ["evil.test", f"evil.test:{port}", f"localhost.evil.test:{port}", f"127.0.0.1.evil.test:{port}"]
    others = ["localhost", "127.0.0.1", "127.0.0.1:1", f"127.0.0.2:{port}", f"0.0.0.0:{port}", f"[::]:{port}"]
    odd = ["", f":{port}", f"localhost:{port}:{port}", f"localhost:{port}, evil.test", f"user@localhost:{port}"]
    return names + others + odd


def friends(port):
    loopback = [f"localhost:{port}", f"LOCALHOST:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"]
    return [*loopback, "lab.example.org", f"lab.example.org:{port}", "localhost:9000"]


def test_only_the_names_of_the_lab_are_answered(port):
    for host in friends(port):
        assert ask(port, Host=host)[0] == 200, host
    for host in strangers(port):
        status, _, body = ask(port, Host=host)
        assert (status, body) == (421, f"This lab is not {host!r}; see backcast lab --allow-host.\n")
    assert ask(port, Host=f"lab.example.org:{port + 1}")[0] == ask(port, Host="localhost:9001")[0] == 421


def test_a_request_without_a_host_or_with_two_is_refused(port):
    for lines in ("GET / HTTP/1.0", f"GET / HTTP/1.1\r\nHost: localhost:{port}\r\nHost: evil.test", "GET / HTTP/1.1"):
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(f"{lines}\r\n\r\n".encode())
            assert re.match(rb"HTTP/1.1 4(00|21) ", plain.makefile("rb").read())


def test_a_name_that_was_pointed_here_opens_no_socket(port):
    for host in ["evil.test", f"evil.test:{port}", "localhost", f"localhost.evil.test:{port}"]:
        with pytest.raises(InvalidStatus) as refused, page(port, host=host):
            pass
        assert refused.value.response.status_code == 403


def test_sockets_of_the_labs_own_pages_are_opened(port):
    for host in [f"localhost:{port}", f"127.0.0.1:{port}", "lab.example.org"]:
        with page(port, host=host) as opened:
            assert answer(opened)["is"] == "hello"
    with page(port, host="lab.example.org", origin="https://lab.example.org") as opened:
        assert answer(opened)["is"] == "hello"


def test_sockets_of_other_pages_are_refused(port):
    others = [
        None,
        "null",
        "http://evil.test",
        f"http://localhost:{port}",  # a name of the lab, but not the one that was called
        f"http://127.0.0.1:{port + 1}",
        "http://127.0.0.1",
        f"ftp://127.0.0.1:{port}",
        f"http://127.0.0.1:{port}.evil.test",
        f"http://127.0.0.1:{port}/",
        "file://",
    ]
    for origin in others:
        with pytest.raises(InvalidStatus) as refused, page(port, origin=origin):
            pass
        assert refused.value.response.status_code == 403, origin
    own = {"Origin": f"http://127.0.0.1:{port}"}
    with pytest.raises(InvalidStatus) as refused, page(port, origin="http://evil.test", additional_headers=own):
        pass
    assert refused.value.response.status_code == 400


def test_requests_of_other_pages_are_refused(port):
    assert ask(port, Origin=f"http://127.0.0.1:{port}")[0] == 200
    for origin in ("null", "http://evil.test", f"http://localhost:{port}"):
        assert ask(port, "/index.html", Origin=origin)[0] == 403


def test_another_path_has_no_socket(port):
    plain = socket.create_connection(("127.0.0.1", port))
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{port}/other", sock=plain, origin=f"http://127.0.0.1:{port}")
    assert refused.value.response.status_code == 403


def test_an_address_that_was_called_through_another_protocol_is_the_same():
    passed = []

    async def app(scope, receive, send):
        passed.append(scope["path"])

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"10.0.0.5:90")]}
    guard = Guard(app, Admission(frozenset()))
    asyncio.run(guard(scope | {"server": ("::ffff:10.0.0.5", 90)}, None, None))
    assert passed == ["/"]


def test_the_names_of_a_lab():
    assert hosts_of(["Box"], ["proxy.test", "other.test:8443", "[2001:DB8::1]"], 9000) == {
        "localhost:9000",
        "127.0.0.1:9000",
        "[::1]:9000",
        "box:9000",
        "proxy.test",
        "proxy.test:9000",
        "other.test:8443",
        "[2001:db8::1]",
        "[2001:db8::1]:9000",
    }
    assert {"localhost", "127.0.0.1", "[::1]", "localhost:80"} < hosts_of([], [], 80)


# ----------------------------------------------------------------------------------------------------------------------
# the token


def test_the_token_is_shown_once_and_kept_in_a_cookie(locked):
    status, headers, body = ask(locked, f"/?token={TOKEN}")
    assert (status, headers["Location"], body) == (303, "/", "")
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert cookie == f"backcast-lab-{locked}={TOKEN}"
    assert sorted(attributes) == ["HttpOnly", "Path=/", "SameSite=Lax"]
    assert ask(locked, Cookie=cookie)[0] == ask(locked, "/index.html", Cookie=f"a=b; {cookie}")[0] == 200
    assert ask(locked, "/nothing", Cookie=cookie)[0] == 404
    with page(locked, additional_headers={"Cookie": cookie}) as opened:
        assert answer(opened)["is"] == "hello"


def test_without_the_token_nothing_is_answered(locked):
    name = f"backcast-lab-{locked}"
    for cookie in (None, f"{name}=", f"{name}={TOKEN}x", f"{name}={TOKEN[:-1]}", f"backcast-lab={TOKEN}", TOKEN, "é"):
        status, _, body = ask(locked, Cookie=cookie)
        assert (status, "paste the address that it printed where it was started" in body) == (401, True), cookie
    for target in ("/?token=", "/?token=wrong", "/?token=%ff%00", f"/index.html?token={TOKEN}", "/nothing", "/?"):
        assert ask(locked, target)[0] == 401
    for headers in ({}, {"Cookie": f"{name}=wrong"}):
        with pytest.raises(InvalidStatus) as refused, page(locked, additional_headers=headers):
            pass
        assert refused.value.response.status_code == 403


def test_the_token_opens_no_door_to_other_sites(locked):
    cookie = f"backcast-lab-{locked}={TOKEN}"
    assert ask(locked, f"/?token={TOKEN}", Host="evil.test")[0] == 421
    assert ask(locked, Cookie=cookie, Origin="http://evil.test")[0] == 403
    with (
        pytest.raises(InvalidStatus) as refused,
        page(locked, origin="http://evil.test", additional_headers={"Cookie": cookie}),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_a_name_for_other_machines_asks_for_a_token():
    with command("--allow-host", "lab.example.org") as (process, address):
        assert "?token=" in address
        assert stopped(process, signal.SIGINT)[0] == 0


def test_a_token_is_made_where_one_is_needed_and_none_was_given(monkeypatch):
    monkeypatch.delenv("BACKCAST_LAB_TOKEN", raising=False)
    assert token_for(loopback=True) is None
    made = {token_for(loopback=False) for _ in range(3)}
    assert len(made) == 3
    assert all(re.fullmatch(r"[\w-]{32}", token) for token in made)
    monkeypatch.setenv("BACKCAST_LAB_TOKEN", TOKEN)
    assert token_for(loopback=True) == token_for(loopback=False) == TOKEN
    assert token_for(loopback=False, given="another-given-token") == "another-given-token"
    monkeypatch.setenv("BACKCAST_LAB_TOKEN", "fifteen-letters")
    with pytest.raises(bc.InputError, match="BACKCAST_LAB_TOKEN: 15 characters given, expected 16 to 200 letters"):
        token_for(loopback=True)


# ----------------------------------------------------------------------------------------------------------------------
# sockets


def test_messages_that_are_no_messages_are_answered_and_the_session_lives_on(port):
    with page(port) as opened:
        assert answer(opened)["is"] == "hello"
        opened.send(b"bytes")
        assert answer(opened) == {
            "is": "error",
            "message": "a message of bytes was given, expected text",
            "about": "message",
        }
        opened.send("é" * 32_769)
        message = "a message of 65,538 bytes was given, expected at most 65,536"
        assert answer(opened) == {"is": "error", "message": message, "about": "message"}
        opened.send("é" * 32_768)
        nonsense = answer(opened)
        assert nonsense["is"] == "error"
        assert "65,536" not in nonsense["message"]
        opened.send("{}")
        assert answer(opened)["is"] == "error"


def test_a_message_beyond_all_bounds_ends_the_session_and_no_other(port):
    with page(port) as other, page(port) as opened:
        opened.send("x" * 300_000)
        assert ending(opened)[0] in CUT
        assert answer(other)["is"] == "hello"
        other.send("nonsense")
        assert answer(other)["is"] == "error"


def test_a_session_that_sends_while_its_socket_is_ended_notices_nothing(caplog, capfd):
    with running(StandIn) as port, page(port, max_queue=None) as opened:
        opened.send("much")
        opened.send("x" * 300_000)
        assert ending(opened)[0] in CUT
    assert len(StandIn.closed) == 1
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def test_there_are_only_so_many_sessions_and_places_become_free():
    with running(sessions=2) as port, page(port) as first:
        assert answer(first)["is"] == "hello"
        with page(port) as second:
            assert answer(second)["is"] == "hello"
            with page(port) as third:
                assert ending(third) == (1013, "all 2 sessions of this lab are in use; close another tab")
        with until_there_is_room(port) as fourth:
            assert fourth["is"] == "hello"


@contextlib.contextmanager
def until_there_is_room(port):
    for _ in range(50):
        with page(port) as opened, contextlib.suppress(ConnectionClosed):
            yield answer(opened)
            return
        time.sleep(0.02)


@pytest.mark.parametrize("where", ["now", "beside"])
def test_a_failure_ends_its_session_at_once_and_no_other(capfd, where):
    with running(StandIn) as port, page(port) as other, page(port) as opened:
        assert opened.recv() == "started"
        opened.send(f"fail {where}")
        assert where == "now" or opened.recv() == "fail beside"
        told = answer(opened)
        assert (told["is"], told["about"]) == ("error", "message")
        assert ending(opened) == (1011, "the session failed")
        assert len(StandIn.closed) == 1
        other.send("hello")
        assert (other.recv(), other.recv()) == ("started", "hello")
    line, *rest = capfd.readouterr().err.splitlines()
    assert re.fullmatch(r"backcast lab: a session failed: ValueError\('two\\nlines'\) \(test_lab_server.py:\d+\)", line)
    assert rest == []


def test_what_fails_when_the_page_has_gone_is_told_too(capfd):
    with running(StandIn) as port, page(port) as opened:
        opened.send("fail later")
        assert (opened.recv(), opened.recv()) == ("started", "fail later")
        opened.close()
    assert capfd.readouterr().err.startswith("backcast lab: a session failed: ValueError(")


def test_a_silent_session_ends():
    with running(StandIn, idle=0.1 / 60) as port, page(port) as opened:
        begun = time.monotonic()
        assert ending(opened) == (4000, "no message for 0.00166667 minutes; reload the page to go on")
        assert 0.05 < time.monotonic() - begun < 2


def test_a_connection_that_asks_for_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(serving, "SILENCE", 0.2)
    with running() as port, page(port) as opened, socket.create_connection(("127.0.0.1", port), 10) as slow:
        slow.sendall(b"GET / HT")
        slow.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(1) == b""
        assert answer(opened)["is"] == "hello"
        assert ask(port)[0] == 200


def test_too_many_messages_have_to_wait_and_others_do_not():
    with running(StandIn) as port, page(port) as other, page(port) as opened:
        begun = time.monotonic()
        for number in range(220):
            opened.send(str(number))
        assert opened.recv() == "started"
        for number in range(200):
            assert opened.recv() == str(number)
        asked = time.monotonic()
        other.send("quick")
        assert (other.recv(), other.recv()) == ("started", "quick")
        assert time.monotonic() - asked < 0.7
        for number in range(200, 220):
            assert opened.recv() == str(number)
        assert 1.0 <= time.monotonic() - begun < 5


def test_a_page_that_goes_away_while_much_is_sent_leaves_nothing_behind(capfd):
    with running(StandIn) as port:
        with page(port) as opened:
            opened.send("much")
            assert opened.recv() == "started"
            opened.socket.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 5
        while not StandIn.closed and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(StandIn.closed) == 1
    assert capfd.readouterr().err == ""


def test_the_end_of_the_lab_is_the_end_of_every_session(capfd):
    with contextlib.ExitStack() as pages:
        with running(StandIn) as port:
            opened = [pages.enter_context(page(port, close_timeout=0.1)) for _ in range(3)]
            opened[0].send("hang")
            opened[1].send("much")
            assert all(each.recv() == "started" for each in opened)
            begun = time.monotonic()
        assert time.monotonic() - begun < 4
        assert [ending(each) for each in (opened[0], opened[2])] == [(1001, "the lab was stopped")] * 2
    assert len(StandIn.closed) == 3
    assert "Traceback" not in capfd.readouterr().err


# ----------------------------------------------------------------------------------------------------------------------
# ports and the command


def test_a_port_that_is_taken_is_named():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(bc.InputError, match=rf"--port: port {port} is taken; .* \(0: any that is free\)"):
            serve(port=port)


def test_the_next_port_is_taken_if_the_usual_one_is_not_free(capsys):
    with contextlib.ExitStack() as usual:
        take(8765, usual)
        with listen("127.0.0.1", None) as near:
            port = near.getsockname()[1]
        assert 8765 < port < 8775
        assert capsys.readouterr().err == f"Port 8765 is taken, perhaps by another lab; this one is at {port}.\n"
        for further in range(8766, 8775):
            take(further, usual)
        with pytest.raises(bc.InputError, match="--port: ports 8765 to 8774 are taken"):
            listen("127.0.0.1", None)


def take(port, until):
    with contextlib.suppress(bc.InputError):  # somebody has it already: as good
        until.enter_context(listen("127.0.0.1", port))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(host="nowhere.invalid"), "--host 'nowhere.invalid', --port 8765: cannot listen there"),
        (dict(host="a..b"), "--host 'a..b', --port 8765: cannot listen there"),
        (dict(host="203.0.113.7"), "--host '203.0.113.7', --port 8765: cannot listen there"),
        (dict(allow_hosts=["http://a.test"]), "--allow-host: 'http://a.test' given, expected a name like"),
        (dict(allow_hosts=["*"]), "--allow-host: '*' given, expected a name like"),
        (dict(token="short"), "BACKCAST_LAB_TOKEN: 5 characters given, expected 16 to 200 letters"),
        (dict(token="with a space in it; yes"), "BACKCAST_LAB_TOKEN: 23 characters given"),
    ],
)
def test_what_cannot_be_served_is_refused(given, words):
    with pytest.raises(bc.InputError, match=re.escape(words)):
        serve(**given)


@contextlib.contextmanager
def command(*options, **environment):
    """The real command, and the address that it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backcast", "lab", "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    )
    try:
        line = process.stdout.readline()
        assert re.fullmatch(r"Backcast lab: http://\S+:\d+/\S*  \(Ctrl-C stops it\)\n", line), process.stderr.read()
        yield process, line.split()[2]
    finally:
        process.kill()
        process.communicate()


def stopped(process, by):
    begun = time.monotonic()
    process.send_signal(by)
    _, errors = process.communicate(timeout=10)
    return process.returncode, errors, time.monotonic() - begun


def test_ctrl_c_ends_it_at_once_with_twenty_pages_open_and_one_of_them_compiling(tmp_path):
    browser, seen = a_browser(tmp_path)
    nothing_compiled = {"BACKCAST_CACHE_DIR": str(tmp_path)}
    with (
        command(BROWSER=browser, **nothing_compiled) as (process, address),
        contextlib.ExitStack() as pages,
    ):
        port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", address)[1])
        opened = [pages.enter_context(page(port)) for _ in range(20)]
        assert all(answer(each)["is"] == "hello" for each in opened)
        wait_for(seen.exists)
        assert seen.read_text() == address + "\n"
        config = {"world": {"kind": "maze", "text": "S.G"}, "left": {"kind": "forward"}, "right": {"kind": "backward"}}
        opened[0].send(json.dumps({"do": "open", "config": config, "at": 0}))
        assert answer(opened[0]) == {"is": "busy", "about": "compiling"}
        compilers = wait_for(lambda: children(process))
        code, errors, seconds = stopped(process, signal.SIGINT)
        assert (code, errors) == (0, "backcast: the lab was stopped\n")
        assert seconds < 2
        assert {ending(each) for each in opened} == {(1001, "the lab was stopped")}
        assert wait_for(lambda: not any(map(still_runs, compilers)))


def test_pages_that_leave_at_any_moment_leave_nothing_in_the_log():
    scene = {"world": {"kind": "maze", "text": "S.G"}, "left": {"kind": "q"}, "right": {"kind": "q"}}
    wishes = [{"nope": 1}, scene, {**scene, "left": {"kind": "q", "alpha": 7}}]
    with command("--no-browser") as (process, address):
        port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", address)[1])
        for turn in range(30):
            with page(port) as opened:
                opened.send(json.dumps({"do": "open", "config": wishes[turn % 3]}))
                if turn % 2:
                    assert answer(opened)["is"] == "hello"
                opened.socket.shutdown(socket.SHUT_RDWR)
        with page(port) as opened:
            assert reply(opened)["is"] == "hello"
            opened.send(json.dumps({"do": "open", "config": {"nope": 1}}))
            assert reply(opened)["is"] == "error"
        assert stopped(process, signal.SIGINT)[:2] == (0, "backcast: the lab was stopped\n")


def wait_for(condition):
    """What it becomes, once it is true."""
    deadline = time.monotonic() + 10
    while not (value := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


def a_browser(directory):
    """What starts a browser that writes the address it is given to a file, and that file."""
    script, seen = directory / "browser", directory / "seen"
    script.write_text(f'#!/bin/sh\necho "$1" > {seen}.part && mv {seen}.part {seen}\n')
    script.chmod(0o755)
    return f"{script} %s", seen


def test_where_others_can_reach_it_a_token_is_made_and_no_browser_is_told(tmp_path):
    browser, seen = a_browser(tmp_path)
    with command("--host", "0.0.0.0", "--allow-host", "lab.test", BROWSER=browser) as (process, address):
        host, port, token = re.fullmatch(r"http://(\S+):(\d+)/\?token=([\w-]{32})", address).groups()
        port = int(port)
        assert host == socket.gethostname()
        for name in ("lab.test", with_port(host, port), f"127.0.0.1:{port}"):
            assert ask(port, Host=name)[0] == 401
        assert ask(port, Host=f"127.0.0.2:{port}", at="127.0.0.2")[0] == 401  # the very address that was called
        assert ask(port, Host=f"127.0.0.2:{port}")[0] == ask(port, Host=f"0.0.0.0:{port}")[0] == 421
        assert ask(port, f"/?token={token}")[0] == 303
        assert ask(port, Cookie=f"backcast-lab-{port}={token}")[0] == 200
        code, errors, _ = stopped(process, signal.SIGTERM)
        assert (code, errors) == (143, "backcast: the lab was stopped\n")
    assert not seen.exists()


def test_without_the_extra_it_says_what_to_install():
    code = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['backcast', 'lab']; import backcast.cli as c; c.main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (
        2,
        "backcast: lab: uvicorn is not installed; pip install 'backcast[lab]'\n",
    )
