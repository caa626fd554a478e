"""Sessions of the lab: what ends them, and what they never notice of each other."""

import contextlib
import re
import socket
import time

import pytest
from websockets.exceptions import ConnectionClosed

from backcast.lab import app, serving
from lab_server import StandIn, an_open_lab, answer, ask, ending, page, running  # noqa: F401  fixtures
from patience import PATIENCE, until

CUT = (1009, 1006)  # too large; its goodbye may be lost, because the server reads no further


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
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with page(port) as opened, contextlib.suppress(ConnectionClosed):
            yield answer(opened)
            return


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
    assert re.fullmatch(r"backcast lab: a session failed: ValueError\('two\\nlines'\) \(lab_server.py:\d+\)", line)
    assert rest == []


def test_what_fails_when_the_page_has_gone_is_told_too(capfd):
    with running(StandIn) as port, page(port) as opened:
        opened.send("fail later")
        assert (opened.recv(), opened.recv()) == ("started", "fail later")
        opened.close()
    assert capfd.readouterr().err.startswith("backcast lab: a session failed: ValueError(")


def test_a_silent_session_ends():
    with running(StandIn, idle=0.1 / 60) as port, page(port) as opened:
        assert ending(opened) == (4000, "no message for 0.00166667 minutes; reload the page to continue")


def test_a_connection_that_asks_for_nothing_is_given_up(monkeypatch):
    with running() as port, page(port) as opened, socket.create_connection(("127.0.0.1", port), PATIENCE) as slow:
        slow.sendall(b"GET / HT")
        monkeypatch.setattr(serving, "SILENCE", 0.2)
        with contextlib.suppress(ConnectionResetError):
            assert slow.recv(1) == b""
        monkeypatch.setattr(serving, "SILENCE", PATIENCE)
        assert answer(opened)["is"] == "hello"
        assert ask(port)[0] == 200


def test_too_many_messages_have_to_wait():
    with running(StandIn) as port, page(port) as opened:
        begun = time.monotonic()
        for number in range(app.MOST + 20):
            opened.send(str(number))
        assert opened.recv() == "started"
        for number in range(app.MOST + 20):
            assert opened.recv() == str(number)
        assert time.monotonic() - begun >= app.PER


def test_others_do_not_wait_for_a_page_that_sends_too_many_messages(monkeypatch):
    """One more message than may come within an hour: it is not answered while others are."""
    monkeypatch.setattr(app, "PER", 3600.0)
    with running(StandIn) as port, page(port) as other, page(port) as opened:
        for number in range(app.MOST + 1):
            opened.send(str(number))
        assert opened.recv() == "started"
        for number in range(app.MOST):
            assert opened.recv() == str(number)
        other.send("quick")
        assert (other.recv(), other.recv()) == ("started", "quick")
        with pytest.raises(TimeoutError):
            opened.recv(0)


def test_a_page_that_goes_away_while_much_is_sent_leaves_nothing_behind(capfd):
    with running(StandIn) as port:
        with page(port) as opened:
            opened.send("much")
            assert opened.recv() == "started"
            opened.socket.shutdown(socket.SHUT_RDWR)
        assert len(until(lambda: StandIn.closed)) == 1
    assert capfd.readouterr().err == ""


def test_the_end_of_the_lab_is_the_end_of_every_session(capfd):
    with contextlib.ExitStack() as pages:
        with running(StandIn) as port:
            opened = [pages.enter_context(page(port, close_timeout=0.1)) for _ in range(3)]
            opened[0].send("hang")
            opened[1].send("much")
            assert all(each.recv() == "started" for each in opened)
        assert [ending(each) for each in (opened[0], opened[2])] == [(1001, "the lab was stopped")] * 2
    assert len(StandIn.closed) == 3
    assert "Traceback" not in capfd.readouterr().err
