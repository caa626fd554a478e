"""Limits: what is larger is refused before it is made, with a sentence that says how to have it all the same.

A digit too many in a study should not take all memory of a machine. Who means it raises the limit in the environment:
`BACKCAST_MOST_STATES=50000000`.
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
    """How many are allowed: what the environment says, or the usual number."""
    name = _variable(what)
    given = os.environ.get(name)
    if given is None:
        return LIMITS[what]
    if not given.isdecimal() or not 0 < len(given) < 19:
        raise InputError(f"{name}: {given[:40]!r} given, expected a whole number, such as {LIMITS[what]}")
    return int(given)


def refuse_many(where: str, what: str, number: int) -> None:
    """Raise if there are more than are allowed, saying how many there are, how many may be, and how to raise that."""
    most = limit(what)
    if number > most:
        raise TooManyError(
            f"{where}: {number:,} {what}, expected at most {most:,};"
            f" {_variable(what)}={number} in the environment raises the limit"
        )


def _variable(what: str) -> str:
    return f"BACKCAST_MOST_{what.upper()}"
