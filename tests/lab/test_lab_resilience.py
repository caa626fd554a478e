"""The lab when things go wrong: lost connections, busy pages, many pages, nonsense and strangers."""

import http.server
import json
import random
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest
from websockets.exceptions import InvalidStatus

from browser import (  # noqa: F401  three are fixtures
    a_browser,
    a_lab,
    a_page,
    address,
    frame,
    lab_process,
    open_lab,
    said,
    tab,
    until,
    values,
)
from lab_client import SMALL, final_values, play_to_the_end, raw, reply, small_scene

INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
RECORD = """() => {
  window.seen = [];
  const { setFrame } = lab.boards[0].constructor.prototype;
  lab.boards[0].setFrame = function (...given) { seen.push(given[3].at); setFrame.apply(this, given); };
}"""


# ----------------------------------------------------------------------------------------------------------------------
# a connection that is lost, a page that is busy, many pages


def test_after_a_lost_connection_it_goes_on_from_the_same_moment(page, lab):
    open_lab(page, lab, seed=4, at=300)
    shown = values(page, 1)
    assert any(shown)
    assert drop(page) == frame(page)["at"] == 300
    assert (values(page, 1), frame(page)["playing"]) == (shown, False)
    page.evaluate(RECORD)
    page.keyboard.press("Space")
    until(page, "lab.frame.at > 303")
    at = drop(page)
    until(page, f"lab.frame?.at > {at + 3} && lab.frame.playing")
    assert min(page.evaluate("seen")) >= 300
    assert page.evaluate("seen") == sorted(page.evaluate("seen"))


def drop(page):
    """Cut the connection as a failing network would, and wait for what comes after; the moment it was lost at."""
    at = page.evaluate("{ window.before = lab.scene; lab.socket.drop(); lab.frame.at }")
    until(page, "document.getElementById('connection').dataset.state === 'lost'")
    until(page, "lab.scene !== before && lab.frame")
    return at


@pytest.mark.slow
def test_a_lab_that_died_and_was_started_again_is_found_again(browser):
    with tab(browser) as page:
        with lab_process(**INTERPRETED) as (process, lab):
            open_lab(page, lab, seed=4, at=300)
            shown = values(page, 1)
            process.kill()
            until(page, "document.getElementById('connection').dataset.state === 'lost'")
            assert said(page, "#connection") == "connection lost, trying again…"
            page.keyboard.press("ArrowRight")  # nobody hears it
        page.evaluate("window.before = lab.scene")
        with lab_process(urlsplit(lab).port, **INTERPRETED):
            page.evaluate("dispatchEvent(new Event('online'))")  # or it would wait some seconds more
            until(page, "lab.scene !== before && lab.frame?.at === 300")
            assert values(page, 1) == shown
            page.keyboard.press("ArrowRight")
            until(page, "lab.frame.at === 301")
            assert said(page, "#connection") == "connected"


@pytest.mark.slow
def test_a_page_that_was_busy_does_not_fall_behind(page, lab):
    """It has not drawn for seconds: the next frames are of the moments after them, none of those between."""
    open_lab(page, lab, seed=4, episodes=50, speed=50)
    page.evaluate(RECORD)
    page.keyboard.press("Space")
    until(page, "lab.frame.at >= 10")
    before = page.evaluate("{ const end = performance.now() + 1500; while (performance.now() < end); seen.length }")
    until(page, f"seen.length >= {before + 4}")
    seen = page.evaluate("seen")[before - 1 :]
    assert max(np.diff(seen[:4])) > 40  # of 75; of frames that had waited in a queue it would be 1 or 2


@pytest.mark.slow
def test_the_largest_maze_is_played(page, lab):
    floor = "/".join(["S" + 49 * ".", *48 * [50 * "."], 49 * "." + "G"])
    open_lab(page, lab, world_text=floor, seed=1, episodes=5, speed=400, world_max_steps=100_000)
    assert len(values(page, 0)) == 2500
    page.keyboard.press("Space")
    until(page, "lab.frame.at > 400")
    drawn = page.evaluate("lab.framesDrawn")
    until(page, f"lab.framesDrawn >= {drawn + 30}")


@pytest.mark.slow
def test_twenty_pages_at_once(browser, lab):
    with tab(browser, viewport={"width": 700, "height": 500}) as first:
        pages = [first, *(first.context.new_page() for _ in range(19))]
        for seed, page in enumerate(pages):
            page.goto(address(lab, world_text=SMALL, seed=seed, episodes=20, speed=20), wait_until="commit")
        for page in pages:
            until(page, "window.lab?.frame?.at === 0")
        for page in pages:
            page.keyboard.press("Space")
        until(first, "lab.frame.at > 1")
        assert sum(frame(page)["playing"] for page in pages) > 10
        for page in pages:
            page.evaluate("lab.socket.send({ do: 'play', speed: 200 })")
        for seed, page in enumerate(pages):
            until(page, "lab.frame.finished")
            assert page.evaluate("lab.framesDrawn") >= 3
            for side, kind in enumerate(["forward", "backward"]):
                assert np.array_equal(np.float32(values(page, side)), final_values(kind, seed))


# ----------------------------------------------------------------------------------------------------------------------
# nonsense


def test_nonsense_is_answered_and_the_session_lives_on(lab):
    messages = nonsense(random.Random(8))
    assert len(messages) == 200
    with raw(lab) as opened:
        assert reply(opened)["is"] == "hello"
        for message in messages:
            opened.send(message)
            told = reply(opened)
            assert (told["is"], bool(told["message"])) == ("error", True), message[:200]
        shown = play_to_the_end(opened, small_scene(4))
        assert np.array_equal(shown, np.concatenate([final_values(kind, 4) for kind in ("forward", "backward")]))


def nonsense(chance):
    """Two hundred messages that no page should send."""
    good = {"world": {"kind": "maze"}, "left": {"kind": "forward"}, "right": {"kind": "backward"}}
    worlds = [
        {"kind": "maze", "text": "S" * 3000},
        {"kind": "maze", "text": "../../etc/passwd"},
        {"kind": "maze", "slip": float("nan")},
        {"kind": "maze", "slip": -1},
        {"kind": "maze", "max_steps": 10**30},
        {"kind": "chain", "levels": [10**9, 10**9]},
        {"kind": "chain", "levels": [0]},
        {"kind": "chain", "levels": "5,5"},
        {"kind": "gymnasium", "id": "os:system"},
        {"kind": "random-walk", "n": 10**7},
        {"kind": "file", "path": "/etc/passwd"},
        {"kind": None},
        [],
    ]
    agents = [{"kind": "__class__"}, {"kind": "forward", "alpha": 1e308}, {"kind": "backward", "horizon": 10**6}, 7]
    numbers = [-1, 10**400, 0.5, float("nan"), float("inf"), "1", None, True, [], {}, 2**53]
    names = ["", "Open", "open ", "\0", "été", "🙂", "__init__", "dropTable", None, 1, [], {}]
    deep = "[" * 20_000 + "]" * 20_000
    messages = [
        *({"do": "open", "config": {**good, "world": world}} for world in worlds),
        *({"do": "open", "config": {**good, "left": agent}} for agent in agents),
        *({"do": "open", "config": {**good, "seed": number}} for number in [-1, 0.5, 10**30, "x", None]),
        *({"do": "open", "config": good, "at": number} for number in numbers[:5]),
        *({"do": "open", "config": config} for config in [None, 5, "maze", [good], {}, {**good, "extra": 1}]),
        *({"do": "seek", "at": number} for number in numbers[:5]),
        *({"do": "play", "speed": number} for number in [0, -5, 1e300, float("nan"), float("inf"), None, [], "fast"]),
        *({"do": "ask", "state": number} for number in numbers[:5]),
        *({"do": "drawn", "frame": number} for number in numbers[:5]),
        *({"do": "further", "on": value} for value in [2, None, [], {}, "perhaps"]),
        *({"do": name} for name in names),
        *({"do": "pause", name: 1} for name in ("at", "constructor", "é" * 100)),
        *([None, True, 3, -0.0, "open", [], [{"do": "pause"}], {}, {"is": "hello"}]),
    ]
    texts = [json.dumps(message) for message in messages]
    texts += [deep, '{"do":' + deep + "}", "{" * 30_000, "9" * 60_000, '{"do":"pau', "\ud7ff\ufffe\0", "x" * 70_000, ""]
    texts += [
        '{"do":"seek","at":1e',
        '{"do":"seek","do":"sook","at":1}',
        "\ufeff{}",
        "NaN",
        "\u202e" * 9_000,
        '"\\ud800"',
    ]
    while len(texts) < 200:
        texts.append(chance.randbytes(chance.randrange(1, 2_000)).decode("latin-1"))
    return texts


# ----------------------------------------------------------------------------------------------------------------------
# strangers

ATTEMPTS = """async (lab) => {
  const socket = new Promise((done) => {
    const opened = new WebSocket(lab.replace("http", "ws") + "ws");
    opened.onmessage = () => done("heard");
    opened.onclose = () => done("refused");
  });
  const outcome = (promise, good) => promise.then(good, () => "refused");
  const element = (name, source) => new Promise((done) => {
    const made = Object.assign(document.createElement(name), { src: lab + source });
    made.onload = () => done("heard");
    made.onerror = () => done("refused");
    document.head.append(made);
  });
  return {
    socket: await socket,
    read: await outcome(fetch(lab), (answer) => (answer.ok ? "heard" : "refused")),
    blind: await outcome(fetch(lab, { mode: "no-cors" }), (answer) => (answer.status === 421 ? "refused" : "heard")),
    image: await element("img", "favicon.svg"),
    script: await element("script", "dom.js?again"),
  };
}"""


@pytest.fixture(scope="module")
def stranger():
    """The port of a server with a page of somebody else."""

    class Somebody(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Somebody) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_pages_of_others_cannot_use_the_lab(browser, lab, stranger):
    port = urlsplit(lab).port
    with tab(browser) as page:
        page.goto(lab)
        assert set(page.evaluate(ATTEMPTS, lab).values()) == {"heard"}
        for host in ("127.0.0.1", "localhost", "evil.test"):
            page.goto(f"http://{host}:{stranger}/")
            assert page.title() == "elsewhere"
            for name in {host, "127.0.0.1"}:
                assert set(page.evaluate(ATTEMPTS, f"http://{name}:{port}/").values()) == {"refused"}, (host, name)


@pytest.mark.slow
def test_a_name_that_somebody_else_pointed_here_is_not_answered(browser, lab, stranger):
    port = urlsplit(lab).port
    with tab(browser) as page:
        for host in ("evil.test", "evil.localhost"):
            assert page.goto(f"http://{host}:{port}/").status == 421
            assert "Backcast" not in page.title()
            assert set(page.evaluate(ATTEMPTS, f"http://{host}:{port}/").values()) == {"refused"}
        page.goto(f"http://evil.test:{stranger}/")
        page.set_content(f'<iframe src="{lab}"></iframe>')
        page.wait_for_timeout(500)
        assert page.frames[1].evaluate("document.title") != "Backcast lab"


def test_a_handshake_of_a_stranger_is_refused(lab):
    with raw(lab) as opened:
        assert reply(opened)["is"] == "hello"
    for host, origin in [
        (None, "http://evil.test"),
        ("evil.test", None),
        ("evil.test", "http://evil.test"),
        (None, "null"),
    ]:
        with pytest.raises(InvalidStatus) as refused, raw(lab, host, origin):
            pass
        assert refused.value.response.status_code == 403
