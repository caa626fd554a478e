"""The files of the lab's page as they are served, and the headers of every answer."""

import socket

import pytest

from backcast.lab.app import PAGE, TYPES, page_routes
from backcast.lab.guard import HEADERS
from lab_client import answers, ask_raw, lacking
from lab_server import TOKEN, a_locked_lab, an_open_lab, ask, ending, page  # noqa: F401  fixtures


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
