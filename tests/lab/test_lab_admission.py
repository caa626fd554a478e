"""Who is let into the lab: its own pages by its own names, and with the token."""

import asyncio
import re
import signal
import socket

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import backcast as bc
from backcast.lab.guard import Admission, Guard
from backcast.lab.serving import hosts_of, token_for
from lab_server import TOKEN, a_locked_lab, an_open_lab, answer, ask, command, page, stopped  # noqa: F401  fixtures


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
