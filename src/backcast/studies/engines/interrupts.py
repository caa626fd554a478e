"""Ctrl-C is for the main process: a terminal sends it to all processes, but the main process should end the others."""

import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def call_undisturbed(start: Callable[[], None]) -> None:
    """Call a function that starts processes, which will never receive Ctrl-C, nor will their children.

    A Ctrl-C in the meantime is raised after the function has returned, so that it is known what was started. The
    processes inherit the blocked signal from the thread that starts them, whose own handlers stay as they are.
    """
    with ThreadPoolExecutor(1, initializer=_block) as thread:
        thread.submit(start).result()


def _block() -> None:
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        from multiprocessing import resource_tracker

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # if it was killed, it is restarted: nothing of ours is lost
            resource_tracker.ensure_running()  # when Python starts it, it no longer blocks the signal afterwards
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
