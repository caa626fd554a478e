"""The lab under torture: nonsense, pages that come and go, scenes that change, and what is no HTTP.

One lab, in which nothing was compiled before, suffers all of it. After each part it has to be well: no traceback in its
log, nothing to compute, the same numbers as before, and no more memory than docs/lab.md says. BACKCAST_TORTURE_MINUTES
is for how long scenes change.
"""

import collections
import contextlib
import itertools
import json
import os
import random
import threading
import time
from urllib.parse import urlsplit

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed

from backcast.agents.kinds import KINDS
from backcast.lab.memory import MOST
from browser import lab_process
from lab_client import (
    answers,
    ask_raw,
    children,
    final_values,
    lacking,
    memory,
    play_to_the_end,
    processor_seconds,
    raw,
    reply,
    small_scene,
)
from patience import PATIENCE

MESSAGES = 8_000
VISITS = 400
REQUESTS = 1_500
MINUTES = float(os.environ.get("BACKCAST_TORTURE_MINUTES", "2"))
BOUND = MOST + 100  # megabytes, as docs/lab.md says
IDLE = 0.15  # of a processor


class Victim:
    """A lab, what it has logged, and how it feels.

    Attributes:
        address: where it is.
        process: its process.
    """

    def __init__(self, address, process, log):
        self.address, self.process, self._log = address, process, log
        self.before = memory(process)

    def becomes_idle(self):
        """Seconds until it uses nearly no processor time and no process works for it; None if it goes on.

        One process waits for the next scene all the time.
        """
        begun = time.monotonic()
        while time.monotonic() - begun < PATIENCE:
            used = processor_seconds(self.process)
            time.sleep(1)
            if processor_seconds(self.process) - used < IDLE and len(children(self.process)) <= 1:
                return time.monotonic() - begun
        return None

    def examine(self):
        """What came of it, in words, and what is wrong with it."""
        idle, log, held = self.becomes_idle(), self._log.read_text(), memory(self.process)
        with raw(self.address) as opened:
            assert reply(opened)["is"] == "hello"
            same = np.array_equal(play_to_the_end(opened, small_scene(4)), expected_values())
        wrong = {
            f"the log: {log[:2_000]}": log,
            "busy": idle is None,
            "other numbers": not same,
            "memory": held > BOUND,
        }
        calm = "still busy" if idle is None else f"idle after {idle:.0f} s"
        numbers = "same numbers" if same else "OTHER NUMBERS"
        words = f"{log.count('Traceback')} tracebacks, {calm}, {numbers}, {self.before:.0f} → {held:.0f} MB"
        self.before = held
        self._log.write_text("")
        return words, [what for what, is_so in wrong.items() if is_so]


def expected_values():
    """What a lab that is well shows at the end of `small_scene(4)`."""
    return np.concatenate([final_values(kind, 4) for kind in ("forward", "backward")])


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    """A lab that has shown one scene."""
    place = tmp_path_factory.mktemp("lab")
    with lab_process(log=place / "log", BACKCAST_CACHE_DIR=str(place)) as (process, address):
        lab = Victim(address, process, place / "log")
        assert lab.examine()[1] == []
        yield lab


def counted(counts):
    """Counts in words, the most frequent first."""
    return ", ".join(f"{n:,} {what}" for what, n in collections.Counter(counts).most_common())


# ----------------------------------------------------------------------------------------------------------------------
# nonsense


def test_messages(victim, tell):
    """Whatever a page says, and whenever it leaves."""
    chance, seen, sent, visits = random.Random(16), collections.Counter(), 0, 0
    while sent < MESSAGES:
        batch = [hostile(chance) for _ in range(chance.randrange(1, 60))]
        sent, visits = sent + len(batch), visits + 1
        with contextlib.suppress(OSError, ConnectionClosed), raw(victim.address) as opened:
            seen.update(converse(opened, batch, chance))
            leave(opened, chance)
    words, wrong = victim.examine()
    tell("lab: messages", f"{sent:,} in {visits} visits, left at any moment", f"{counted(seen)}; {words}")
    assert wrong == []


def converse(opened, messages, chance):
    """Send messages, half of the time to a scene that plays, and mostly wait for what is answered; its kinds."""
    try:
        if chance.random() < 0.5:
            opened.send(json.dumps({"do": "open", "config": small_scene(5) | {"episodes": 5_000}}))
            opened.send(json.dumps({"do": "play", "speed": 200.0}))
            while (told := heard(opened))["is"] != "frame":
                yield told["is"]
        for message in messages:
            opened.send(message)
        if chance.random() < 0.3:
            return
        opened.send('{"do":"the last"}')
        while (told := heard(opened))["is"] != "error" or "the last" not in told["message"]:
            yield told["is"]
    except ConnectionClosed:
        yield "cut"


def heard(opened):
    """The next message, of which a frame is only named; it is drawn at once."""
    message = opened.recv(120)
    if isinstance(message, str):
        return json.loads(message)
    number = int(message.partition(b'"frame":')[2].partition(b",")[0])
    opened.send(json.dumps({"do": "drawn", "frame": number}))
    return {"is": "frame"}


def leave(opened, chance):
    """Properly, in the middle of a frame, with a last wish, or without a word."""
    way = chance.randrange(4)
    if way == 1:
        opened.socket.sendall(b"\x81\xfe\xff\x00" + chance.randbytes(chance.randrange(200)))
    if way == 2:
        opened.send(json.dumps({"do": "open", "config": chance.choice([{"nope": 1}, small_scene(1)])}))
    if way > 0:
        opened.socket.shutdown(2)


ODD = [
    -1,
    0,
    1.5,
    1e308,
    10**400,
    2**53,
    float("nan"),
    float("inf"),
    "",
    "1",
    "\0",
    "é🙂",
    None,
    True,
    [],
    {},
    [[]],
    "x" * 999,
]
GOOD = [
    {"do": "open", "config": small_scene(3), "at": 5},
    {
        "do": "open",
        "config": small_scene(2) | {"world": {"kind": "chain", "levels": [5, 3, 2]}, "left": {"kind": "td"}},
    },
    {"do": "play", "speed": 50.0},
    {"do": "step"},
    {"do": "episode"},
    {"do": "end"},
    {"do": "pause"},
    {"do": "seek", "at": 30},
    {"do": "drawn", "frame": 1},
    {"do": "ask", "state": 3},
    {"do": "further", "on": True},
]


def hostile(chance):
    """A message that no page sends, or one that it does at a bad moment."""
    good = json.dumps(chance.choice(GOOD))
    makers = [
        lambda: good[: chance.randrange(len(good))],
        lambda: chance.randbytes(chance.randrange(1, 3_000)).decode("latin-1"),
        lambda: chance.randbytes(chance.randrange(1, 3_000)),
        lambda: "[" * (n := chance.randrange(1, 30_000)) + "]" * n,
        lambda: good.replace("3", "[" * 10_000 + "]" * 10_000, 1),
        lambda: good.replace("5", "9" * chance.randrange(1, 60_000), 1),
        lambda: "x" * chance.choice([65_536, 65_537, 200_000, 300_000]),
        lambda: json.dumps(chance.choice(ODD)),
        lambda: good,
        *3 * [lambda: json.dumps(mutated(json.loads(good), chance))],
        *3
        * [lambda: json.dumps({"do": chance.choice(["open", "seek", "play", "ask", "nope"]), "config": {"nope": 1}})],
    ]
    return chance.choice(makers)()


def mutated(message, chance):
    """The same with one field changed, taken away or added, anywhere in it."""
    inner = [message]
    for each in inner:
        inner += [value for value in each.values() if isinstance(value, dict)]
    where = chance.choice(inner)
    name = chance.choice([*where, "nope", "__class__"])
    if chance.random() < 0.2:
        where.pop(name, None)
    else:
        where[name] = chance.choice(ODD)
    return message


# ----------------------------------------------------------------------------------------------------------------------
# pages that come and go


def test_sessions(victim, tell):
    """Hundreds of pages come and go while some play."""
    chance, done, frames = random.Random(17), threading.Event(), [[] for _ in range(6)]
    players = [
        threading.Thread(target=keep_playing, args=[victim.address, seed, done, seen])
        for seed, seen in enumerate(frames)
    ]
    for player in players:
        player.start()
    begun = time.monotonic()
    outcomes = collections.Counter(visit(victim.address, chance) for _ in range(VISITS))
    seconds = time.monotonic() - begun
    done.set()
    for player in players:
        player.join(60)
    assert all(len(seen) > 10 for seen in frames)
    words, wrong = victim.examine()
    tried = f"{VISITS} visits ({counted(outcomes)}) while {len(players)} pages play"
    tell("lab: sessions", tried, f"done in {seconds:.0f} s, {sum(map(len, frames)):,} frames seen meanwhile; {words}")
    assert wrong == []


def keep_playing(lab, seed, done, seen):
    """Play the same scene again and again, and draw each frame."""
    with raw(lab) as opened:
        opened.send(json.dumps({"do": "open", "config": small_scene(seed) | {"episodes": 5_000}}))
        opened.send(json.dumps({"do": "play", "speed": 100.0}))
        while not done.is_set():
            seen.append(heard(opened)["is"])


LARGE = "\n".join(["S" + 49 * ".", *48 * [50 * "."], 49 * "." + "G"])
HEAVY = [
    {"kind": "backward", "depth": 2, "top": 3},
    {"kind": "dyna", "sample": 200},
    {"kind": "sweeping", "sample": 200},
]


def visit(lab, chance):
    """Come, want something, and leave; what it was."""
    what = chance.choice(["looked", "asked and left", "large and left", "played", "further and left"])
    with contextlib.suppress(OSError), raw(lab) as opened:
        assert reply(opened)["is"] == "hello"
        config = small_scene(chance.randrange(1_000))
        if what == "large and left":
            config |= {"world": {"kind": "maze", "text": LARGE, "slip": 0.1}, "left": chance.choice(HEAVY)}
        if what != "looked":
            opened.send(json.dumps({"do": "open", "config": config, "at": 100}))
        if what == "further and left":
            assert reply(opened)["is"] == "scene"
            opened.send(json.dumps({"do": "further", "on": True}))
        if what == "played":
            assert reply(opened)["is"] == "scene"
            opened.send(json.dumps({"do": "play", "speed": 1_000.0}))
            opened.recv(60)
        if "left" in what:
            opened.socket.shutdown(2)
    return what


# ----------------------------------------------------------------------------------------------------------------------
# scenes that change

WORLDS = [
    ({"kind": "maze"}, "control"),
    ({"kind": "maze", "text": LARGE}, "control"),
    ({"kind": "blocking-maze"}, "control"),
    ({"kind": "gymnasium", "id": "FrozenLake-v1"}, "control"),
    ({"kind": "chain", "levels": [50, 20, 5]}, "prediction"),
    ({"kind": "boyan"}, "prediction"),
    ({"kind": "random-walk"}, "prediction"),
    ({"kind": "noisy-tv"}, "prediction"),
    ({"kind": "garnet"}, "prediction"),
    ({"kind": "garnet", "actions": 3, "branching": 2}, "control"),
    ({"kind": "random-maze"}, "control"),
]
SETTINGS = {
    "model": ["softmax", "counts", "true"],
    "horizon": [2, 5],
    "lam": [0.5],
    "conditioned": [True],
    "sample": [1, 5],
    "top": [3],
    "depth": [2],
    "forget": [0.5],
    "importance": [True],
    "variant": ["moore-atkeson", "peng-williams", "mcmahan-gordon"],
    "frame": ["previous", "current"],
}


def test_scenes(victim, tell):
    """Minutes of ever other scenes."""
    chance, outcomes, held = random.Random(18), collections.Counter(), []
    begun = time.monotonic()
    with raw(victim.address) as opened:
        assert reply(opened)["is"] == "hello"
        while time.monotonic() - begun < 60 * MINUTES:
            outcomes[change_scene(opened, chance)] += 1
            held.append(memory(victim.process))
    words, wrong = victim.examine()
    course = " → ".join(f"{each:.0f}" for each in held[:: max(1, len(held) // 8)])
    tell(
        "lab: scenes",
        f"changed for {MINUTES:g} min: {counted(outcomes)}",
        f"MB: {course}, at most {max(held):.0f}; {words}",
    )
    assert wrong == []
    assert max(held) < BOUND


def change_scene(opened, chance):
    """Another world with other agents, played a little, one in three with further seeds; what came of it."""
    world, purpose = chance.choice(WORLDS)
    left, right = (any_agent(chance, purpose) for _ in range(2))
    config = {"world": world, "left": left, "right": right, "episodes": 50}
    opened.send(json.dumps({"do": "open", "config": config}))
    while (told := heard(opened))["is"] not in ("scene", "error"):
        pass
    if told["is"] == "error":
        return "refused for memory" if "of memory" in told["message"] else "refused"
    opened.send(json.dumps({"do": "play", "speed": 1_000.0}))
    opened.send(json.dumps({"do": "further", "on": chance.random() < 0.3}))
    return "shown"


def any_agent(chance, purpose):
    """Any kind for a purpose, two in five with one setting of its own."""
    kind = chance.choice([name for name, kind in KINDS.items() if kind.only in (None, purpose)])
    possible = [name for name in SETTINGS if name in KINDS[kind].settings or name == "frame"]
    given = [chance.choice(possible)] if chance.random() < 0.4 else []
    return {"kind": kind} | {name: chance.choice(SETTINGS[name]) for name in given}


# ----------------------------------------------------------------------------------------------------------------------
# what is no HTTP


def test_requests(victim, tell):
    """Every answer has the headers, whoever makes it."""
    chance, statuses, wanting = random.Random(19), collections.Counter(), []
    host = urlsplit(victim.address).netloc
    for request in itertools.islice(requests(host, chance), REQUESTS):
        came = answers(ask_raw(victim.address, *request))
        statuses.update([status for status, _ in came] or ["without an answer"])
        wanting += [(request, status, lacking(head)) for status, head in came if lacking(head)]
    words, wrong = victim.examine()
    lack = f"{len(wanting):,} without the headers"
    tell("lab: requests", f"{REQUESTS:,} malformed requests", f"{counted(statuses)}; {lack}; {words}")
    assert wrong == []
    assert wanting == []


def requests(host, chance):
    """Requests and handshakes, most of them damaged somewhere, in one or two pieces."""
    upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Origin: http://{host}"]
    handshake = [*upgrade, "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    heads = [
        ["GET / HTTP/1.1", f"Host: {host}"],
        ["POST / HTTP/1.1", f"Host: {host}", "Transfer-Encoding: chunked"],
        ["POST / HTTP/1.1", f"Host: {host}", "Content-Length: 7"],
        ["GET /ws HTTP/1.1", f"Host: {host}", *handshake],
        ["GET /ws HTTP/1.1", f"Host: {host}", *handshake, *(f"X-{n}: 1" for n in range(150))],
        ["GET /ws HTTP/1.1", f"Host: {host}", *handshake, "X: " + 9_000 * "x"],
        ["GET /ws?" + 9_000 * "x" + " HTTP/1.1", f"Host: {host}", *handshake],
    ]
    bodies = [
        b"",
        b"ZZZ\r\nnonsense",
        b"5\r\nabcde\r\n0\r\n\r\n",
        b"\x81\x82\0\0\0\0\xff\xfe",
        b"\x81\xff" + 8 * b"\xff",
    ]
    while True:
        head = damaged(list(chance.choice(heads)), chance)
        close = [] if "Upgrade: websocket" in head else ["Connection: close"]
        request = "\r\n".join([*head, *close, "", ""]).encode("latin-1", "replace")
        body = chance.choice(bodies)
        yield (request, body) if chance.random() < 0.5 else (request + body,)


def damaged(head, chance):
    """The same with a line taken away, doubled, cut, or with other characters in it; one in five as it was."""
    place = chance.randrange(len(head))
    line = head[place]
    cut = chance.randrange(len(line))
    others = [[], [line, line], [line[:cut]], [line[:cut] + chance.choice("\0\xff: \t\r\n,;") + line[cut:]], [line]]
    return [*head[:place], *chance.choice(others), *head[place + 1 :]]
