"""The command that serves the lab: its ports, its browser and its end."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

import backcast as bc
from backcast.lab.guard import with_port
from backcast.lab.serving import listen, serve
from lab_client import children, command_line, reply, still_runs
from lab_server import answer, ask, command, ending, page, stopped
from patience import until


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
        until(seen.exists)
        assert seen.read_text() == address + "\n"
        config = {"world": {"kind": "maze", "text": "S.G"}, "left": {"kind": "forward"}, "right": {"kind": "backward"}}
        opened[0].send(json.dumps({"do": "open", "config": config, "at": 0}))
        while (told := answer(opened[0])).get("about") != "compiling":
            assert told["is"] in ("busy", "scene")
        compilers = until(lambda: [child for child in children(process) if b"lab.compiler" in command_line(child)])
        for compiler in compilers:
            os.kill(compiler, signal.SIGSTOP)  # it would never come to its end
        assert stopped(process, signal.SIGINT) == (0, "backcast: the lab was stopped\n")
        assert {ending(each) for each in opened} == {(1001, "the lab was stopped")}
        until(lambda: not any(map(still_runs, compilers)))


@pytest.mark.slow
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
        assert stopped(process, signal.SIGINT) == (0, "backcast: the lab was stopped\n")


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
        assert stopped(process, signal.SIGTERM) == (143, "backcast: the lab was stopped\n")
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
