"""Scenes in the making: abandoned, and compiled in another process."""

import os
import threading
import time

import numba
import numpy as np
import pytest

from backcast.core.compiling import cache_directory
from backcast.lab import compile_in_child
from backcast.lab.compile_in_child import AbandonedError, with_kernels
from backcast.lab.further_seeds import Further, _background
from backcast.lab.scene_opening import Opening
from lab_client import children
from lab_scenes import scene
from patience import PATIENCE

CONFIG = {"world": {"kind": "chain", "levels": [2, 1]}, "left": {"kind": "td"}, "right": {"kind": "td"}}


class ThisProcess:
    """As `children` wants it."""

    pid = os.getpid()


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where a child leaves what it compiles; this process never reads it, for it has chosen its own before."""
    cache_directory()
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache_of_its_own(monkeypatch, cache):
    monkeypatch.setenv("BACKCAST_CACHE_DIR", str(cache))
    monkeypatch.setattr(compile_in_child, "_no_cache", threading.Event())


def uncached():
    """Work that needs a kernel which no cache has, and a list of when it was begun."""
    kernel, begun = numba.njit(lambda x: x + 1), []

    def work():
        begun.append(time.monotonic())
        return kernel(1)

    return work, begun


def test_an_opening_is_made_unless_it_is_abandoned():
    opening = Opening(CONFIG)
    assert opening.describe()[:14] == '{"is": "scene"'
    lockstep = opening.compiled()
    assert (lockstep.at, lockstep.walkers[0].action_values.any()) == (0, False)
    assert opening.loaded().at == 0
    opening.abandon()
    for work in (opening.describe, opening.loaded, opening.compiled):
        with pytest.raises(AbandonedError):
            work()


@pytest.mark.slow
def test_what_no_cache_has_is_left_to_another_process_and_if_that_does_not_help_is_compiled_here(cache):
    work, begun = uncached()
    assert with_kernels("further", CONFIG, np.zeros(1, dtype=np.uint8), work) == 2
    assert (
        len(begun) == 3
    )  # before and after the other process, which knows nothing of this kernel; then it was compiled
    assert any("loop.run_seeds" in file.name for file in cache.rglob("*.nbc"))
    work, begun = uncached()
    assert with_kernels("further", CONFIG, np.zeros(1, dtype=np.uint8), work) == 2
    assert len(begun) == 1


def test_what_another_process_did_not_come_to_is_compiled_here_and_all_else_is_still_left_to_it():
    (first, begun), (second, _) = uncached(), uncached()
    assert with_kernels("further", CONFIG, np.zeros(1, dtype=np.uint8), lambda: (second if begun else first)()) == 2
    assert not compile_in_child._no_cache.is_set()


def test_what_was_compiled_is_not_compiled_elsewhere(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nothing/here")
    work, begun = uncached()
    work()
    assert with_kernels("open", CONFIG, np.zeros(1, dtype=np.uint8), work) == 2
    assert len(begun) == 2


def test_where_no_other_process_can_be_started_it_is_compiled_here(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nothing/here")
    work, begun = uncached()
    assert with_kernels("open", CONFIG, np.zeros(1, dtype=np.uint8), work) == 2
    assert len(begun) == 2


def test_a_compilation_that_nobody_waits_for_is_ended():
    stop, (work, begun) = np.zeros(1, dtype=np.uint8), uncached()
    before, ended = set(children(ThisProcess)), []

    def wait_for_it():
        with pytest.raises(AbandonedError):
            with_kernels("open", CONFIG, stop, work)
        ended.append(True)

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    while waiting.is_alive() and set(children(ThisProcess)) == before:
        time.sleep(0.01)
    stop[0] = 1
    waiting.join(PATIENCE)
    assert (ended, len(begun)) == ([True], 1)
    assert set(children(ThisProcess)) == before


def test_further_seeds_that_wait_for_others_and_are_no_longer_wanted_never_begin():
    free, told = threading.Event(), []
    _background.submit(free.wait)
    further = Further(scene("forward", "backward"), told.append)
    further.start()
    further.stop()
    free.set()
    further.wait()
    _background.submit(int).result(PATIENCE)
    assert told == []
    assert further._done.cancelled()
