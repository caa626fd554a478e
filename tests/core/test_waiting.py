"""Whoever waits for the compiler is told what it compiles and how far it is."""

import logging
import threading

import pytest

from backcast.core import waiting
from backcast.core.waiting import Compilation, compiling_for, listening


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves, as a list of one number."""
    now = [100.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    return now


def test_nothing_is_said_within_a_second_and_then_every_second(clock, caplog):
    caplog.set_level(logging.INFO, "backcast.compiling")
    told = []
    with compiling_for("td in maze"), listening(told.append):
        waiting.begin("run_episodes", 4)
        for clock[0] in (100.5, 101.0, 101.5, 102.5):
            waiting.count()
    assert told == [Compilation("td in maze", 2, 4, 1.0), Compilation("td in maze", 4, 4, 2.5)]
    assert caplog.messages == [
        "compiling td in maze: 2 of 4 functions",
        "compiling td in maze: 4 of 4 functions",
    ]


def test_a_kernel_that_nobody_named_has_its_own_name_and_never_more_functions_than_there_are(clock):
    told = []
    with listening(told.append):
        waiting.begin("walk", 1)
        clock[0] += 1
        waiting.count()
        clock[0] += 1
        waiting.count()
    waiting.begin("walk", 1)
    clock[0] += 2
    waiting.count()
    assert list(map(str, told)) == ["compiling walk: 1 of 1 functions"] * 2


def test_compilations_of_others_do_not_count():
    told = []
    with listening(told.append):
        counting = threading.Thread(target=waiting.count)
        counting.start()
        counting.join()
    assert told == []


def test_names_are_those_of_the_innermost_block(clock):
    told = []
    with listening(told.append), compiling_for("outer"):
        with compiling_for("inner"):
            pass
        waiting.begin("walk", 1)
        clock[0] += 1
        waiting.count()
    assert told[0].what == "outer"
