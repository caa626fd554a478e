"""A real lab without a browser: its sockets, its log, its memory and its processor time."""

import contextlib
import json
import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from websockets.sync.client import connect

import backcast as bc
from backcast.lab.guard import HEADERS
from patience import PATIENCE

SMALL = "S.X./..X./...G"


@contextlib.contextmanager
def raw(lab, host=None, origin=None):
    """A socket without a page, at the lab's own name if no other is given."""
    place = urlsplit(lab)
    host = host or place.netloc
    plain = socket.create_connection((place.hostname, place.port))
    with plain, connect(f"ws://{host}/ws", sock=plain, origin=origin or f"http://{host}", max_size=None) as opened:
        yield opened


def reply(opened):
    """The next message that is more than a sign of life."""
    while (told := json.loads(opened.recv(PATIENCE)))["is"] == "busy":
        pass
    return told


def read_frame(message):
    """The header of a frame, and the values of both sides."""
    length = int.from_bytes(message[:4], "little")
    header = json.loads(message[4 : 4 + length])
    start = -(-(4 + length) // 4) * 4
    states = (len(message) - start) // 10
    return header, np.frombuffer(message, "<f4", 2 * states, start)


def small_scene(seed):
    """Both directions in a small maze."""
    world = {"kind": "maze", "text": SMALL.replace("/", "\n")}
    return {"world": world, "left": {"kind": "forward"}, "right": {"kind": "backward"}, "seed": seed, "episodes": 20}


def play_to_the_end(opened, config):
    """Open a scene and play it; the values of both sides at its end."""
    opened.send(json.dumps({"do": "open", "config": config}))
    assert reply(opened)["is"] == "scene"
    opened.send(json.dumps({"do": "play", "speed": 1000}))
    header, shown = {"finished": False}, b""
    while not header["finished"]:
        message = opened.recv(PATIENCE)
        if isinstance(message, bytes):
            header, shown = read_frame(message)
            opened.send(json.dumps({"do": "drawn", "frame": header["frame"]}))
    return shown


def final_values(kind, seed, text=SMALL, episodes=20):
    """The same for one side, without a lab."""
    runs = bc.run(bc.worlds.maze(text.replace("/", "\n")), bc.agent(kind), episodes=episodes, seeds=[seed])
    return runs.values[0].max(axis=-1).astype(np.float32)


def ask_raw(lab, *pieces):
    """Send bytes as they are; what comes back until the connection ends, or is silent after an answer."""
    place = urlsplit(lab)
    came, here = b"", (place.hostname, place.port)
    with contextlib.suppress(ConnectionError), socket.create_connection(here, PATIENCE) as plain:
        for piece in pieces:
            plain.sendall(piece)
        with contextlib.suppress(TimeoutError):
            while more := plain.recv(65_536):
                came += more
                if b"\r\n\r\n" in came:
                    plain.settimeout(0.3)
    return came


def answers(came):
    """Status and headers of each answer."""
    heads = re.findall(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n(.*?)\r\n\r\n", came, re.DOTALL)
    return [(int(status), head.decode("latin-1").lower().split("\r\n")) for status, head in heads]


def lacking(head):
    """The headers that each answer must have and that one does not have exactly once."""
    names = [line.partition(":")[0] for line in head]
    return [name for name in HEADERS if names.count(name.lower()) != 1]


def memory(process):
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def processor_seconds(process):
    """Processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(process):
    """The numbers of the processes that a process has started and that still run."""
    listed = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(number) for file in listed for number in file.read_text().split()]


def command_line(number):
    """How a process was started, as bytes; empty if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{number}/cmdline").read_bytes()
    return b""


def still_runs(number):
    """Whether a process has not ended, as far as it knows."""
    told = Path(f"/proc/{number}/stat")
    return told.exists() and told.read_text().rpartition(")")[2].split()[0] != "Z"
