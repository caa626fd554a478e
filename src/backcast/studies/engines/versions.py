"""Versions that must be the same wherever the runs of a study are made."""

from importlib.metadata import version

SAME = ("backcast", "numba", "numpy")


def versions() -> dict[str, str]:
    """The versions that affect the numbers."""
    return {name: version(name) for name in SAME}
