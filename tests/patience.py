"""How long tests wait for other threads and processes: no test depends on how fast or busy the machine is."""

import time

PATIENCE = 120.0  # seconds; only what would never come takes longer, however busy the machine is


def until(condition, every=0.02):
    """Wait until something is true, and give what it is; look every so many seconds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s for {condition}"
        time.sleep(every)
    return found
