"""Versions that must be the same wherever the runs of a study are made."""

from importlib.metadata import version

SAME = ("backcast", "numba", "numpy")


def versions() -> dict[str, str]:
    """Of what must be the same everywhere, so that numbers are."""
    return {name: version(name) for name in SAME}
