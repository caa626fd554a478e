"""Worlds and agents that were made in Python, written down as the plain data of a study."""

from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.core.errors import InputError
from backcast.drivers.saving import plain_agent
from backcast.studies.reading import check_study
from backcast.studies.spec import Study
from backcast.worlds import World
from backcast.worlds.recipes import recipe_of
from backcast.worlds.world import outcomes_of

FOLDER = "worlds"  # of a directory of results: the files of worlds
MOST_ENTRIES = 100_000  # of a matrix of features in a study
PLOTS = {"rmsve": "error-curves", "steps": "steps-per-episode", "reward": "reward-per-episode"}


def describe_study(
    name: str, directory: Path, worlds: Mapping[str, World], agents: Mapping[str, Agent], episodes: int, seeds: int
) -> Study:
    """A study of these worlds and agents, by the names that they have in tables.

    Worlds that are described by no arguments are saved in the directory of the results.

    Raises:
        InputError: if a study cannot describe a world or an agent; it says which and why.
    """
    described = [
        _world(label, world, directory / FOLDER / f"{name}-{place}.npz")
        for place, (label, world) in enumerate(worlds.items())
    ]
    study = check_study(
        {
            "name": name,
            "episodes": episodes,
            "seeds": seeds,
            "worlds": described,
            "agents": [_agent(label, agent) for label, agent in agents.items()],
            "plugins": _plugins(agents),
            "plots": _plots({world.judged_by for world in worlds.values()}),
        },
        f"study {name!r}",
        folder=directory,
    )
    for cell in study.runs():
        if cell.agent != agents[cell.label]:
            raise InputError(f"agents: {cell.label!r} is another agent after it was written down as part of a study")
    return study


def _plots(metrics: set[str]) -> list[str]:
    """Curves where all worlds have them; where values are predicted in some and improved in others, means."""
    return (
        ["error-by-agent"] if "rmsve" in metrics and len(metrics) > 1 else [PLOTS[metric] for metric in sorted(metrics)]
    )


def _world(label: str, world: World, file: Path) -> dict[str, Any]:
    """A world: how it was made or, if it is nothing but an MDP and a policy, a file that has it."""
    recipe = recipe_of(world)
    given = None if recipe is None else _arguments(*recipe)
    if given is not None:
        return {**given, "label": label}
    if not _is_only_an_mdp(world):
        raise InputError(
            f"worlds: {label!r} cannot be described in a study; expected a world that was made by a function of"
            " backcast.worlds from plain arguments, of Gymnasium from an id alone, or from an MDP"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    world.mdp.save(file, world.policy)
    limit = {} if world.max_steps is None else {"max_steps": world.max_steps}
    return {"kind": "mdp", "file": str(file.absolute()), "label": label, **limit}


def _arguments(kind: str, given: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a world as keys of a study; None if a study has no such keys."""
    if kind != "gymnasium":
        return {"kind": kind, **{name: _plain(value) for name, value in given.items()}}
    options = dict(given.get("options", {}))
    limit = {"max_steps": options.pop("max_episode_steps")} if "max_episode_steps" in options else {}
    if not isinstance(given["env"], str) or options or "start" in given:
        return None
    discount = {"discount": given["discount"]} if "discount" in given else {}
    return {"kind": kind, "id": given["env"], **discount, **limit}


def _plain(value: Any) -> Any:
    """The same with Python's own numbers in place of NumPy's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _is_only_an_mdp(world: World) -> bool:
    """Whether an MDP and a policy say all about a world: it does not change, and rewards and draws are the MDP's."""
    if world.redraw is not None or world.later is not None or world.layout is not None:
        return False
    if world.outcomes is None:
        return True
    return all(
        np.array_equal(mine, theirs)
        for mine, theirs in zip(vars(world.outcomes).values(), vars(outcomes_of(world.mdp)).values(), strict=True)
    )


def _plugins(agents: Mapping[str, Agent]) -> list[str]:
    """The modules that register kinds that are not Backcast's own."""
    kinds = {label: KINDS[agent.kind] for label, agent in agents.items()}
    modules = {label: kind.build.__module__ for label, kind in kinds.items() if not kind.is_builtin}
    for label, module in modules.items():
        if not _is_importable(module):
            raise InputError(
                f"agents: the kind of {label!r}, {agents[label].kind!r}, was registered in {module}, which cannot be"
                " imported from elsewhere; put it into a module of its own"
            )
    return list(dict.fromkeys(modules.values()))


def _is_importable(module: str) -> bool:
    """Whether another process can import a module of this name."""
    try:
        return module != "__main__" and find_spec(module) is not None
    except (ImportError, ValueError):  # a package that is not there, or a module that was made by hand
        return False


def _agent(label: str, agent: Agent) -> dict[str, Any]:
    """An agent: what differs from the defaults."""
    plain = plain_agent(agent)
    settings = {name: _dense(label, value) for name, value in plain.pop("settings").items()}
    usual = {each.name: each.default for each in fields(Agent)}
    given = {name: _plain(value) for name, value in plain.items() if value != usual[name]}
    return {**given, **settings, "label": label}


def _dense(label: str, value: Any) -> Any:
    """A setting whose matrices are lists of rows."""
    if not isinstance(value, dict):
        return value
    if "entry" not in value:
        return {name: _dense(label, each) for name, each in value.items() if each is not None}
    rows, columns = value["shape"]
    if rows * columns > MOST_ENTRIES:
        raise InputError(
            f"agents: {label!r} has features of {rows:,} × {columns:,} entries, more than the {MOST_ENTRIES:,} that are"
            " written down in a study"
        )
    matrix = np.zeros((rows, columns))
    matrix[value["row"], value["column"]] = value["entry"]
    return matrix.tolist()
