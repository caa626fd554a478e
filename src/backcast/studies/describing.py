"""Describe worlds and agents made in Python as the plain data of a study."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from backcast.agents import Agent
from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from backcast.core.errors import InputError, in_a_line
from backcast.core.registry import Registered
from backcast.drivers.metrics import METRICS, Metric, metrics_in
from backcast.drivers.saving import plain_agent
from backcast.studies.plugins import homes, is_importable
from backcast.studies.reading import check_study
from backcast.studies.spec import Study
from backcast.worlds import World
from backcast.worlds.kinds import WORLDS, recipe_of
from backcast.worlds.layouts import Drawing
from backcast.worlds.world import Purpose, outcomes_of

FOLDER = "worlds"  # subdirectory of results for the files of worlds
MOST_ENTRIES = 100_000  # limit for a matrix of features in a study


def describe_study(
    name: str,
    directory: Path,
    worlds: Mapping[str, World],
    agents: Mapping[str, Agent],
    episodes: int,
    seeds: int,
    metrics: Iterable[str],
) -> Study:
    """Describe worlds and agents, by their names in tables, as a study with plots of the given metrics.

    Worlds that cannot be described by arguments are saved in the directory of the results.

    Raises:
        InputError: if a study cannot describe a world or an agent; the message says which and why.
    """
    described = {
        label: _world(label, world, directory / FOLDER / f"{name}-{place}.npz")
        for place, (label, world) in enumerate(worlds.items())
    }
    study = check_study(
        {
            "name": name,
            "episodes": episodes,
            "seeds": seeds,
            "worlds": list(described.values()),
            "agents": [_agent(label, agent) for label, agent in agents.items()],
            "plugins": _plugins(agents, described, {world.purpose for world in worlds.values()}),
            "plots": _plots({METRICS[metric] for metric in metrics}),
        },
        f"study {name!r}",
        folder=directory,
    )
    for cell in study.runs():
        if cell.agent != agents[cell.label]:
            raise InputError(f"agents: {cell.label!r} is another agent after it was written down as part of a study")
    return study


def _plots(metrics: set[Metric]) -> list[str]:
    """Plots of curves if all worlds have the metric; means if worlds differ in purpose."""
    if len({metric.purpose for metric in metrics}) > 1:
        return ["error-by-agent"]
    return [metric.plot for metric in sorted(metrics, key=lambda metric: metric.name)]


def _world(label: str, world: World, file: Path) -> dict[str, Any]:
    """Describe a world by how it was made or, if it is only an MDP and a policy, by a file."""
    recipe = recipe_of(world)
    if recipe is not None and _is_for_studies(*recipe):
        own = {} if label == world.name else {"label": label}
        return {"kind": recipe.kind, **_arguments(label, recipe.arguments), **own}
    if not _is_only_an_mdp(world):
        raise InputError(
            f"worlds: {label!r} cannot be described in a study; expected a world that was made by a function of"
            " backcast.worlds from plain arguments, of Gymnasium from an id alone, by a kind of your own that is"
            " registered in a module, or from an MDP"
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    world.mdp.save(file, world.policy)
    limit = {} if world.max_steps is None else {"max_steps": world.max_steps}
    return {"kind": "mdp", "file": str(file.absolute()), "label": label, **limit}


def _is_for_studies(kind: str, arguments: Mapping[str, Any]) -> bool:
    """Whether other processes know a kind of world, and whether it has keys for these arguments."""
    its = WORLDS.get(kind)
    return its is not None and is_importable(its.home) and arguments.keys() <= its.keys.keys()


def _arguments(label: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a world as keys of a study."""
    plain = {name: _plain(value) for name, value in given.items()}
    try:
        json.dumps(plain)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"worlds: {label!r} was made from arguments that are not plain data ({in_a_line(error)})"
        ) from error
    return plain


def _plain(value: object) -> Any:
    """Convert NumPy numbers to Python's, and make paths absolute."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return str(value.absolute())
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _is_only_an_mdp(world: World) -> bool:
    """Whether a world is fully described by an MDP and a policy."""
    if not isinstance(world.seen_as, str) or world.seen_as != "onehot":
        return False
    if world.redraw is not None or world.later is not None or not isinstance(world.layout, Drawing | None):
        return False
    if world.outcomes is None:
        return True
    return all(
        np.array_equal(mine, theirs)
        for mine, theirs in zip(vars(world.outcomes).values(), vars(outcomes_of(world.mdp)).values(), strict=True)
    )


def _plugins(
    agents: Mapping[str, Agent], worlds: Mapping[str, Mapping[str, Any]], purposes: Collection[Purpose]
) -> list[str]:
    """The modules that register third-party kinds and metrics."""
    used: dict[str, Registered] = {}
    for label, agent in agents.items():
        used[f"agents: the kind of {label!r}, {agent.kind!r},"] = KINDS[agent.kind]
        if (model := agent.shared("model")) in ESTIMATORS:
            used[f"agents: the model of {label!r}, {model!r},"] = ESTIMATORS[model]
    for label, world in worlds.items():
        used[f"worlds: the kind of {label!r}, {world['kind']!r},"] = WORLDS[world["kind"]]
    for metric in (each for purpose in sorted(purposes) for each in metrics_in(purpose)):
        used[f"metrics: {metric.name!r}"] = metric
    return homes(used)


def _agent(label: str, agent: Agent) -> dict[str, Any]:
    """Describe an agent by the settings that differ from the defaults."""
    plain = plain_agent(agent)
    settings = {name: _dense(label, value) for name, value in plain.pop("settings").items()}
    usual = {each.name: each.default for each in fields(Agent)}
    given = {name: _plain(value) for name, value in plain.items() if value != usual[name]}
    return {**given, **settings, "label": label}


def _dense(label: str, value: object) -> Any:
    """Convert the matrices of a setting to lists of rows."""
    if not isinstance(value, dict):
        return value
    if value.keys() != {"row", "column", "entry", "shape"}:
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
