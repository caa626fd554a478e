"""Plugins of pytest: which functions each test reaches and how long it takes; properties on few examples."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import settings

# Seconds of a processor that a test may take while it is watched; slower ones are not asked. JAX compiles for seconds.
SLOWEST = 5.0
EXAMPLES = 6  # of a property that is tested, at most


class FewExamples:
    """Tests properties on few examples: interpreted, they take their time."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Lower the number that a test asks for."""
        for item in items:
            test = getattr(item, "obj", None)
            given = getattr(test, "_hypothesis_internal_use_settings", None) or settings.default
            if hasattr(test, "hypothesis") and given.max_examples > EXAMPLES:
                test._hypothesis_internal_use_settings = settings(given, max_examples=EXAMPLES)


class Watch:
    """Notes what each test reaches, if it passes in time.

    Functions are noted by their file in the package and their first line, as in models/rows.py:77. Functions are short:
    to note every line would cost more than it tells.
    """

    def __init__(self, package: Path, results: Path) -> None:
        self._package = f"{package}{os.sep}"
        self._results = results
        self._reached: dict[str, tuple[float, list[str]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """One test."""
        entered: dict[int, CodeType] = {}

        def enter(frame: FrameType, event: str, argument: Any) -> None:
            entered[id(frame.f_code)] = frame.f_code

        began = time.process_time()
        signal.signal(signal.SIGPROF, _give_up)
        signal.setitimer(signal.ITIMER_PROF, SLOWEST)
        _trace_all(enter)
        try:
            result = yield
        finally:
            _trace_all(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
        functions = {
            f"{code.co_filename.removeprefix(self._package)}:{code.co_firstlineno}"
            for code in entered.values()
            if code.co_filename.startswith(self._package)
        }
        self._reached[item.nodeid] = (round(time.process_time() - began, 3), sorted(functions))
        return result

    def pytest_sessionfinish(self) -> None:
        """Write what was found."""
        self._results.write_text(json.dumps(self._reached), encoding="utf-8")


def _trace_all(function: Any) -> None:
    threading.settrace(function)
    sys.settrace(function)


def _give_up(*_: Any) -> None:
    pytest.skip("it takes too long to be asked about mutants")
