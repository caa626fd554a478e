"""Ctrl-C is for the process that the user sees: a terminal sends it to all, but some are better ended by that one."""

import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def call_undisturbed(start: Callable[[], None]) -> None:
    """Call a function that starts processes, which will never see Ctrl-C, nor will those that they start.

    If Ctrl-C comes meanwhile it is raised when the function has returned, so that it is known what was started. They
    inherit that the signal is blocked from the thread that starts them, whose own handlers stay as they are.
    """
    with ThreadPoolExecutor(1, initializer=_block) as thread:
        thread.submit(start).result()


def _block() -> None:
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        from multiprocessing import resource_tracker

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # if somebody has killed it, it is started again: nothing of ours is lost
            resource_tracker.ensure_running()  # when Python starts it, it no longer blocks the signal afterwards
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
