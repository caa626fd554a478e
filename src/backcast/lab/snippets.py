"""The scene on the screen as a Python script and as a study, which give the same numbers.

Both take a configuration as plain data, `LabConfig.given()`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from backcast.agents import agent
from backcast.drivers.metrics import METRICS
from backcast.lab.config import homes_of
from backcast.studies.worldspec import WorldSpec
from backcast.worlds.kinds import WORLDS

_WIDTH = 100
_FEWEST_SEEDS = 20
_SIDES = ("left", "right")
_PRINTED = {
    "rmsve": ("RMSVE of the states that do not end an episode", "runs.rmsve_inner[0].round(4).tolist()"),
    "steps": ("steps of each episode", "runs.steps[0].tolist()"),
    "reward": ("reward of each episode", "runs.reward[0].tolist()"),
}


def as_python(given: Mapping[str, Any]) -> str:
    """A script that runs both agents and prints the metric of the first chart and the number of value updates."""
    world = WorldSpec(**given["world"])
    what, numbers = _PRINTED[world.judged_by]
    lines = [
        *_about_changes(given),
        *(f"import {module}" for module in homes_of(given)),
        "import backcast as bc",
        "",
        f"world = {_python_world(world)}",
        *(f"{side} = {_python_agent(given[side])}" for side in _SIDES),
        "",
        "for agent in (left, right):",
        f"    runs = bc.run(world, agent, episodes={given['episodes']}, seeds=[{given['seed']}])",
        "    print(agent.name)",
        f'    print("  {what}:", {numbers})',
        '    print("  value updates, learning and planning:", runs.updates.learning[0], runs.updates.planning[0])',
    ]
    return "\n".join(lines) + "\n"


def as_toml(given: Mapping[str, Any]) -> str:
    """A study for `backcast sweep`; for the seed on the screen, its result is that of the screen."""
    world, seed = WorldSpec(**given["world"]), given["seed"]
    its = WORLDS[world.kind]
    keys, plugins = {"kind": world.kind, **its.sketch.tidy(world.arguments)}, homes_of(given)
    seeds = max(_FEWEST_SEEDS, seed + 1)
    blocks = [
        [
            "# backcast sweep lab.toml --out lab",
            *_about_changes(given),
            f"title = {_quoted('From the lab: ' + world.name)}",
            f"episodes = {given['episodes']}",
            f"seeds = {seeds}  # 0 to {seeds - 1}; the lab shows seed {seed}",
            f"plots = [{_quoted(METRICS[world.judged_by].plot)}]",
            *([f"plugins = {_toml(plugins)}"] if plugins else []),
        ],
        ["[[worlds]]", *(f"{name} = {_toml(value)}" for name, value in keys.items())],
        *(["[[agents]]", *(f"{name} = {_toml(value)}" for name, value in each.items())] for each in _labelled(given)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _about_changes(given: Mapping[str, Any]) -> list[str]:
    """A comment if the world was changed by hand, which scripts and studies cannot describe."""
    changes = len(given.get("changes", ()))
    many = "a cell was changed" if changes == 1 else f"{changes} cells were changed"
    return [f"# In the lab {many} during the run; here the maze stays as it was at the start."] if changes else []


def _python_world(world: WorldSpec) -> str:
    kind = WORLDS[world.kind]
    given = kind.sketch.tidy(world.arguments)
    if kind.drawn:
        given.setdefault("seed", None)  # as in a study: every seed draws its own
    needed = [_python(given.pop(name)) for name in kind.required]
    return _call(f"{'bc.worlds' if kind.is_builtin else kind.home}.{kind.function.__name__}", needed, given)


def _python_agent(given: Mapping[str, Any]) -> str:
    rest = _settings(given)
    return _call("bc.agent", [_quoted(rest.pop("kind"))], rest)


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """The given settings of an agent, without `learn` if it is True."""
    return {name: value for name, value in given.items() if (name, value) != ("learn", True)}


def _labelled(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Both agents, with labels if they have the same name."""
    agents = [_settings(given[side]) for side in _SIDES]
    names = [agent(**each).name for each in agents]
    if names[0] == names[1]:
        return [{**each, "label": f"{names[0]},side={side}"} for each, side in zip(agents, _SIDES, strict=True)]
    return agents


def _call(function: str, first: list[str], named: Mapping[str, Any]) -> str:
    """A call on one line or, if that is too long, with one argument per line."""
    arguments = [*first, *(f"{name}={_python(value)}" for name, value in named.items())]
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return f"{function}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def _python(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_python, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """Text in quotes; text that begins with a newline is in triple quotes."""
    return f'"""{text}"""' if re.fullmatch(r'\n[^"\\]+', text) else _quoted(text)


def _quoted(text: str) -> str:
    """Text in double quotes, as Python and TOML both read it."""
    return json.dumps(text, ensure_ascii=False)
