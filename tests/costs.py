"""A plugin of pytest: processor seconds of each test, with those of the processes that it starts, and what it compiles.

`make costs ARGUMENTS=tests/models` runs tests with it, on a cold cache of kernels.
"""

import json
import os
import threading
import time
from pathlib import Path

import pytest
from numba.core import event

SHOWN = 40


class Compiled(event.Listener):
    """Kernels that were compiled in this process because Python called them: names and processor seconds."""

    def __init__(self):
        self.kernels = []
        self.under_way = threading.local()

    def on_start(self, event):
        self.stack.append(time.thread_time())

    def on_end(self, event):
        began = self.stack.pop()
        if not self.stack:
            function = event.data["dispatcher"].py_func
            self.kernels.append((f"{function.__module__}.{function.__qualname__}", time.thread_time() - began))

    @property
    def stack(self):
        return self.under_way.__dict__.setdefault("stack", [])


class Costs:
    """Each worker of pytest-xdist adds a line of JSON for each test; the process that started them reads the file."""

    def __init__(self, file):
        self.file, self.compiled = file.resolve(), Compiled()
        event.register("numba:compile", self.compiled)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        self.compiled.kernels.clear()
        before, began = spent(), time.monotonic()
        result = yield
        own, children = (after - then for after, then in zip(spent(), before, strict=True))
        cost = {
            "test": item.nodeid,
            "seconds": own + children,
            "clock": time.monotonic() - began,
            "processes": children,
            "kernels": self.compiled.kernels,
        }
        with self.file.open("a") as file:
            file.write(json.dumps(cost) + "\n")
        return result

    def pytest_terminal_summary(self, terminalreporter):
        costs = [json.loads(line) for line in self.file.read_text().splitlines()]
        costs.sort(key=lambda cost: -cost["seconds"])
        total = sum(cost["seconds"] for cost in costs)
        terminalreporter.section(f"{total:.0f} processor seconds")
        terminalreporter.line("  total, in processes, compiling, kernels")
        for cost in costs[:SHOWN]:
            compiling = sum(seconds for _, seconds in cost["kernels"])
            numbers = f"{cost['seconds']:7.2f} {cost['processes']:7.2f} {compiling:7.2f} {len(cost['kernels']):3d}"
            terminalreporter.line(f"{numbers}  {cost['test']}")


def spent():
    """Processor seconds of this process, and of processes that it started and waited for."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


def pytest_addoption(parser):
    parser.addoption("--costs", metavar="FILE", type=Path, required=True, help="gets a line of JSON for each test")


def pytest_configure(config):
    config.pluginmanager.register(Costs(config.getoption("--costs")))
