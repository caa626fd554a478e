"""Files that are whole or not there, locks, and what is no file."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import backcast as bc
from backcast.core.files import atomic_path, locked, read_regular, remove_remains
from patience import PATIENCE


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


SPECIAL = {"a FIFO": os.mkfifo, "a directory": Path.mkdir, "a socket": make_socket}


@pytest.mark.parametrize("kind", SPECIAL)
def test_what_is_no_file_is_neither_read_nor_locked(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    path = Path("thing")
    SPECIAL[kind](path)
    refusal = f"^thing: {kind}, expected a regular file; move it away$"
    with pytest.raises(bc.InputError, match=refusal):
        read_regular(path, 100)
    with pytest.raises(bc.InputError, match=refusal), locked(path, lambda: None):
        pass


def test_a_link_is_read_but_not_locked_and_its_target_is_not_made(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to(target)
    with pytest.raises(bc.InputError, match="link: a symbolic link, expected a regular file"), locked(link, print):
        pass
    assert not target.exists()
    target.write_bytes(b"content")
    assert read_regular(link, 7) == b"content"


def test_no_more_is_read_than_is_allowed(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(bc.InputError, match="large: larger than 1,000 bytes"):
        read_regular(path, 1000)
    path.write_bytes(bytes(1000))
    assert read_regular(path, 1000) == bytes(1000)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "missing", 1000)


def test_devices_are_not_read():
    with pytest.raises(bc.InputError, match="/dev/zero: a device"):
        read_regular(Path("/dev/zero"), 1000)


def test_nobody_takes_what_is_being_written_for_a_remnant(tmp_path):
    """Not even in the moment between its beginning and its lock."""
    done = threading.Event()

    def clean():
        while not done.is_set():
            remove_remains(tmp_path)

    cleaners = [threading.Thread(target=clean) for _ in range(4)]
    for cleaner in cleaners:
        cleaner.start()
    try:
        for number in range(150):
            with atomic_path(tmp_path / str(number % 3)) as part:
                part.write_text(str(number))
    finally:
        done.set()
        for cleaner in cleaners:
            cleaner.join()
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["147", "148", "149"]


def test_a_part_that_fails_vanishes_and_the_file_stays(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")
    with contextlib.suppress(KeyError), atomic_path(path) as part:
        part.write_text("half")
        raise KeyError
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("file", "before")]


@pytest.mark.parametrize("shard", [(), ("--shard", "1/2")])
def test_a_lock_that_is_no_file_is_refused_by_commands(shard, tmp_path):
    (tmp_path / "out").mkdir()
    lock = tmp_path / "out" / (".lock-1-of-2" if shard else ".lock")
    os.mkfifo(lock)
    study = tmp_path / "study.toml"
    study.write_text('name = "s"\nepisodes = 1\nseeds = 1\n[[worlds]]\nkind = "maze"\n[[agents]]\nkind = "q"\n')
    command = [sys.executable, "-m", "backcast", "sweep", study, "--out", tmp_path / "out", *shard]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert f"{lock}: a FIFO, expected a regular file; move it away" in done.stderr
    assert "Traceback" not in done.stderr
