"""The memory of the lab's process: its size, its limit, and returning free memory to the system."""

import ctypes
import os
from pathlib import Path

from backcast.core.errors import InputError

MOST = 1_500  # megabytes; while the lab has more, no scene is opened
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None  # of glibc


def held() -> float:
    """The memory of this process in megabytes; 0 if unknown."""
    told = Path("/proc/self/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if told.exists() else 0.0


def refuse_if_full() -> None:
    """Raise InputError if the lab has reached its memory limit."""
    if (now := held()) > MOST:
        raise InputError(
            f"the lab holds {now:,.0f} MB of memory, expected at most {MOST:,} to open a scene: close other tabs, or"
            " start it again"
        )


def give_back() -> None:
    """Return free memory to the system: glibc would keep the temporary arrays of every thread, some 40 MB each."""
    if _trim is not None:
        _trim(0)
