"""A scene: the world and the two agents of a configuration, with what is true about the world."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

import numpy as np

from backcast import exact
from backcast.agents import Agent
from backcast.agents.kinds import KINDS
from backcast.agents.parts import Parts
from backcast.core.arrays import Mask, Vector
from backcast.core.errors import InputError
from backcast.drivers.metrics import METRICS
from backcast.drivers.run import check_limit
from backcast.drivers.seed_blocks import setup_for
from backcast.lab.config import CONNECTIONS, CORRECTIONS, LabConfig
from backcast.lab.layout import layout_of
from backcast.lab.snippets import as_python, as_toml
from backcast.report.style import colour
from backcast.worlds.world import World

T = TypeVar("T")


class Era:
    """What is true while a world does not change: all the time, unless the world is one that changes.

    Attributes:
        world: the world of this time.
        layout: where states are drawn.
    """

    def __init__(self, world: World) -> None:
        self.world, self.layout = world, layout_of(world)

    @cached_property
    def truth(self) -> Vector:
        """v_π in prediction, v* in control, (S,)."""
        return self.world.truth if self.world.is_prediction else exact.optimal(self.world.mdp).v

    @cached_property
    def visits(self) -> Vector:
        """How often each state is visited under the policy of a prediction world, (S,)."""
        return exact.stationary(self.world.mdp, self.world.policy)

    @cached_property
    def judged(self) -> Mask:
        """States whose error counts: those that do not end an episode and, in control, can be reached."""
        inner = ~self.world.mdp.terminal
        return inner if self.world.is_prediction else inner & self.world.mdp.reachable

    def error(self, values: Vector) -> float:
        """The root mean squared error of v(s), or max_a q(s, a), against the exact values."""
        return float(np.sqrt(np.mean((values[self.judged] - self.truth[self.judged]) ** 2)))

    @property
    def shown_truth(self) -> list[float | None]:
        """The exact values for the page; None where no way leads."""
        shown = self.world.mdp.reachable | self.judged
        return [float(v) if known else None for v, known in zip(self.truth, shown, strict=True)]


class Scene:
    """What both agents share.

    Attributes:
        config: what was asked for.
        world: as drawn for the seed.
        agents: left and right.
        limit: where episodes are cut off.
        eras: what is true at the beginning and, in a world that changes, later.
    """

    def __init__(self, config: LabConfig) -> None:
        self.config = config
        self.agents: tuple[Agent, Agent] = (_named("left", config.left.build), _named("right", config.right.build))
        self.family = _named("world", config.world.build)  # of which the seed may draw one
        self.world: World = self.family.draw(config.seed)
        self.limit = check_limit(self.world, None)
        for side, agent in zip(("left", "right"), self.agents, strict=True):
            _refuse_large(side, agent, self.world)
        later = self.world.later
        self.eras = tuple(Era(world) for world in (self.world, *(() if later is None else (later.world,))))

    @property
    def episodes(self) -> int:
        """How many there are."""
        return self.config.episodes

    def parts_of(self, agent: Agent) -> Parts:
        """An agent that has not begun."""
        side = "left" if agent is self.agents[0] else "right"
        return _named(side, partial(agent.build, setup_for(self.world, self.config.seed, self.limit)))

    @property
    def metric(self) -> Literal["rmsve_inner", "steps", "reward"]:
        """What agents are compared by: what the world is judged by, without terminal states in prediction."""
        by = self.world.judged_by
        return "rmsve_inner" if by == "rmsve" else by

    def era(self, taken: int) -> int:
        """The number of the era in which a run is that has taken so many real steps."""
        return 0 if self.world.at(taken) is self.world else 1

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest exact value, 0 included: the ends of the colour scale."""
        known = np.concatenate([era.truth[era.judged] for era in self.eras])
        low, high = min(0.0, float(known.min())), max(0.0, float(known.max()))
        return (low, high) if high > low else (low, low + 1.0)

    def name_of(self, s: int) -> str:
        """What a state is called."""
        return str(self.eras[0].layout["names"][s])

    def describe(self) -> dict[str, Any]:
        """All that the page must know about the scene."""
        given = self.config.given()
        first, *later = self.eras
        of_the_moment = " of the moment" if later else ""
        return {
            "is": "scene",
            "config": given,
            "name": self.world.name,
            "purpose": self.world.purpose,
            "layout": first.layout,
            "truth": first.shown_truth,
            "later": [{"kinds": era.layout["kinds"], "truth": era.shown_truth} for era in later],
            "range": self.value_range,
            "agents": [{"name": agent.name, "colour": colour(agent.name)} for agent in self.agents],
            "python": as_python(given),
            "toml": as_toml(given),
            "metric": self.metric,
            "judged": f"judged by {METRICS[self.metric].label}: {METRICS[self.metric].better}",
            "error": "v(s) against the exact values, all states alike"
            if self.world.is_prediction
            else f"max q(s, a) against the optimal values{of_the_moment}, all reachable states alike",
        }


def _named(field: str, build: Callable[[], T]) -> T:
    """What is built; an error says of which part of the configuration it speaks."""
    try:
        return build()
    except InputError as error:
        raise InputError(f"{field}: {error}") from None


def _refuse_large(side: str, agent: Agent, world: World) -> None:
    """Refuse models that connect everything with everything, and planning that branches too often."""
    pairs = world.n_states * world.n_actions
    all_pairs = KINDS[agent.kind].connects_pairs
    rows = pairs if all_pairs else world.n_states
    if (agent.looks_far or all_pairs) and rows * pairs > CONNECTIONS:
        raise InputError(
            f"{side}: {agent.name!r} may connect every state with every other, {rows * pairs:,} times in this world;"
            f" in the lab at most {CONNECTIONS:,}: take a smaller world, or a model of one step"
        )
    if agent.shared("sample") is not None:
        return
    corrections = min(agent.shared("top", pairs), int(world.fan_in.max())) ** agent.shared("depth", 1)
    if corrections > CORRECTIONS:
        raise InputError(
            f"{side}: {agent.name!r} may correct {corrections:,} states after one step of this world; in the lab at"
            f" most {CORRECTIONS:,}: take a smaller depth, or give top or sample"
        )
