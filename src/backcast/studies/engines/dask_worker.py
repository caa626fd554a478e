"""The task of a dask worker for `engines.on_dask`: compare versions, perform units, and return outcomes.

A task carries its own code, and its order and its reply are bytes: the scheduler, which handles both, need not have
Backcast installed, and a worker without it can report so.
"""

import pickle
import threading
from collections.abc import Callable
from typing import Any

from backcast.studies.engines.supervised import Child
from backcast.studies.store import machine
from backcast.studies.units import perform


def travelling_task() -> Callable[[bytes, dict[str, str]], Any]:
    """A function that takes an order and the versions wanted, and returns address, name, versions and the reply.

    It is a nested function so that it is sent with its code. The reply is None if versions differ, and a
    traceback if the order could not be carried out.
    """

    def task(order: bytes, wanted: dict[str, str]) -> Any:
        import traceback
        from importlib.metadata import PackageNotFoundError, version

        from distributed import get_worker

        worker = get_worker()
        name = worker.name if isinstance(worker.name, str) else f"worker {worker.name}"
        found: dict[str, str | None] = {}
        for package in wanted:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = None
        if found != wanted:
            return worker.address, name, found, None
        try:
            from backcast.studies.engines.dask_worker import perform_order

            return worker.address, name, found, perform_order(order)
        except Exception:  # as text, because dask cannot transfer every exception
            return worker.address, name, found, traceback.format_exc()

    return task


_of_this_thread = threading.local()


def perform_order(order: bytes) -> bytes:
    """Perform units on a worker; those with a time limit run in a reusable child process."""
    units, time_limit = pickle.loads(order)
    if time_limit is None:
        outcomes = tuple(perform(unit) for unit in units)
    else:
        if not hasattr(_of_this_thread, "child"):
            _of_this_thread.child = Child()
        outcomes = tuple(_of_this_thread.child.perform(unit, time_limit) for unit in units)
    return pickle.dumps((outcomes, machine()))
