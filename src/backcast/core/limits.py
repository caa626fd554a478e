"""Limits: larger objects are refused before they are made, with a message that says how to raise the limit.

An extra digit in a study should not take all memory of a machine. To raise a limit deliberately, set it in the
environment: `BACKCAST_MOST_STATES=50000000`.
"""

import os

from backcast.core.errors import InputError, TooManyError

LIMITS = {
    "states": 10_000_000,  # of a world
    "transitions": 50_000_000,  # of a world: 24 bytes each, and several times as much while it is made
    "episodes": 100_000_000,  # of all seeds of one `backcast.run`: 40 bytes each
    "combinations": 1_000_000,  # of world, agent and settings in a study: 2 kB each
    "runs": 20_000_000,  # of a study: 65 bytes each when results are read
}


def limit(what: str) -> int:
    """The limit: from the environment, or the default."""
    name = _variable(what)
    given = os.environ.get(name)
    if given is None:
        return LIMITS[what]
    if not given.isdecimal() or not 0 < len(given) < 19:
        raise InputError(f"{name}: {given[:40]!r} given, expected a whole number, such as {LIMITS[what]}")
    return int(given)


def refuse_many(where: str, what: str, number: int) -> None:
    """Raise InputError if a number exceeds its limit; the message says how to raise the limit."""
    most = limit(what)
    if number > most:
        raise TooManyError(
            f"{where}: {number:,} {what}, expected at most {most:,};"
            f" {_variable(what)}={number} in the environment raises the limit"
        )


def _variable(what: str) -> str:
    return f"BACKCAST_MOST_{what.upper()}"
