"""Runs in one file: a .npz archive of arrays, and JSON text for everything else. No pickle.

The file may come from anyone. It is read as `FiniteMDP.load` reads a world (`backcast.core.archive`): names, types and
sizes are checked before any array is read, and nothing is imported.
"""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from backcast.agents import Agent, agent
from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from backcast.core.archive import Archive, opened_archive, refusing_damage
from backcast.core.errors import InputError, in_a_line
from backcast.core.files import atomic_path
from backcast.core.freezing import freeze
from backcast.features.maps import Content, FeatureMap
from backcast.models.options import Option
from backcast.networks import Network

_FORMAT = 1
_KINDS = {
    "runs_format": "i",
    "text": "u",
    "steps": "i",
    "reward": "f",
    "rmsve": "f",
    "rmsve_inner": "f",
    "learning": "i",
    "planning": "i",
    "by_episode": "i",
    "edges": "i",
    "values": "f",
    "weights": "f",
    "seconds": "f",
    "diverged": "i",
}  # the arrays of a file and their dtype kinds
_PER_EPISODE = ("reward", "by_episode")
_PER_SEED = ("learning", "planning", "seconds", "diverged")
_NEWER = ("edges",)  # arrays that older files do not have
_OPTIONAL = ("rmsve", "rmsve_inner", "weights")  # empty if they do not apply
_PEAK = 3  # reading a file needs this many times the size of its arrays


def write_runs(path: Path, text: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write arrays and plain data atomically."""
    given = {name: np.empty(0) if array is None else array for name, array in arrays.items()}
    content = np.frombuffer(json.dumps(text).encode(), dtype=np.uint8)
    with atomic_path(path) as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, runs_format=np.array(_FORMAT), text=content, **given)


def read_runs(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the plain data and the arrays that `write_runs` wrote, and check that their sizes agree.

    Raises:
        InputError: if the file was not written by `write_runs`, or needs more memory than this machine has.
        OSError: if the file is missing or cannot be read.
    """
    with refusing_damage(path, "Runs saved by Backcast"), opened_archive(path, _KINDS, _NEWER) as archive:
        _refuse_bad_sizes(archive)
        text = json.loads(archive["text"].tobytes())
        there = [name for name in _KINDS if name not in ("runs_format", "text") and name in archive]
        read = {name: archive[name] for name in there}
        _refuse_bad_text(text, len(read["steps"]))
        text["agent"] = _agent_from(text["agent"])
        text["seeds"] = freeze(text["seeds"])
        return text, {name: None if name in _OPTIONAL and not array.size else array for name, array in read.items()}


def _refuse_bad_sizes(archive: Archive) -> None:
    """Raise unless this version knows the format, the shapes agree and there is enough memory."""
    archive.refuse_other_shape("runs_format", ())
    if int(archive["runs_format"]) != _FORMAT:
        raise ValueError(f"format {int(archive['runs_format'])}, this version reads format {_FORMAT}")
    archive.length("text")
    shape = archive.shape("steps")
    if len(shape) != 2:
        raise ValueError(f"steps has the shape {shape}, expected (seeds, episodes)")
    errors = [name for name in ("rmsve", "rmsve_inner") if archive.shape(name) != (0,)]
    for name in (*_PER_EPISODE, *errors):
        archive.refuse_other_shape(name, shape)
    for name in (*_PER_SEED, *(name for name in _NEWER if name in archive)):
        archive.refuse_other_shape(name, shape[:1])
    for name in ("values", "weights"):
        found = archive.shape(name)
        if found != (0,) and not (len(found) in (2, 3) and found[0] == shape[0]):
            raise ValueError(f"{name} has the shape {found}, expected one entry for each of {shape[0]} seeds")
    archive.refuse_too_large(_PEAK)


def _refuse_bad_text(text: object, seeds: int) -> None:
    """Raise unless the text has a world's name, an agent and one seed per row."""
    if not isinstance(text, dict) or set(text) != {"world", "agent", "seeds"} or not isinstance(text["world"], str):
        raise ValueError("its text does not say which world, agent and seeds")
    found = text["seeds"]
    if not isinstance(found, list) or len(found) != seeds or not all(map(_is_seed, found)):
        raise ValueError(f"its seeds are not {seeds} whole numbers or lists of them")


def _is_seed(given: object) -> bool:
    numbers = given if isinstance(given, list) and given else [given]
    return all(type(number) is int and number >= 0 for number in numbers)


def plain_agent(chosen: Agent) -> dict[str, Any]:
    """An agent's settings as plain data (numbers, text, lists and tables), from which it can be rebuilt."""
    settings = {name: _plain(name, value) for name, value in chosen.settings}
    return {**{each.name: getattr(chosen, each.name) for each in fields(chosen)}, "settings": settings}


def _plain(name: str, value: object) -> Any:
    """A setting as plain data."""
    if isinstance(value, FeatureMap):
        return {"kind": value.kind, **{key: _plain(key, setting) for key, setting in value.settings}}
    if isinstance(value, Network):
        return value.plain()
    if isinstance(value, Option):
        return {key: each for key, each in vars(value).items() if each is not None}
    if isinstance(value, Content):
        if name == "coordinates":  # few per state, and not mostly 0
            return value.rows.toarray().tolist()
        entries = value.rows.tocoo()
        place = {"row": entries.row.tolist(), "column": entries.col.tolist()}
        return {**place, "entry": entries.data.tolist(), "shape": list(value.shape)}
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"agent: its setting {name!r} cannot be saved as plain data ({in_a_line(error)})") from error
    return value


def _agent_from(plain: dict[str, Any]) -> Agent:
    """Rebuild an agent from `plain_agent`; its settings are validated if this process knows the kind and the model."""
    plain = {"epsilon_schedule": None, **plain}  # files may be older than this setting
    given = {each.name: freeze(plain[each.name]) for each in fields(Agent) if each.name != "settings"}
    kind, settings = given["kind"], plain["settings"]
    if kind in KINDS and (KINDS[kind].has_own("model") or settings.get("model") in (None, *ESTIMATORS)):
        return agent(**given, **{name: _whole(value) for name, value in settings.items()})
    if not isinstance(kind, str):
        raise ValueError("its agent has no kind")
    return Agent(**given, settings=tuple((str(name), freeze(value)) for name, value in settings.items()))


def _whole(value: object) -> Any:
    """Rebuild a setting from plain data, with matrices in place of lists of their entries."""
    if not isinstance(value, dict):
        return value
    if set(value) == {"row", "column", "entry", "shape"}:
        return sparse.csr_array((value["entry"], (value["row"], value["column"])), shape=tuple(value["shape"]))
    return {name: _whole(each) for name, each in value.items()}
