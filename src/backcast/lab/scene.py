"""A scene: the world and the two agents of a configuration, with the truth about the world."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
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
from backcast.lab.config import CONNECTIONS, CORRECTIONS, LabConfig, RefusedError
from backcast.lab.layout import layout_of
from backcast.lab.snippets import as_python, as_toml
from backcast.report.colours import colour
from backcast.worlds.maze import altered_maze
from backcast.worlds.world import Change, World

T = TypeVar("T")


class Era:
    """The truth during a period in which a world does not change.

    Attributes:
        world: the world in this period.
        begins: the numbers of real steps of the left and of the right agent at which it begins.
        layout: the positions of states.
    """

    def __init__(
        self, world: World, begins: tuple[int, int] = (0, 0), rewards: Mapping[int, float] | None = None
    ) -> None:
        self.world, self.begins = world, begins
        self.layout = layout_of(world) | {"rewards": list((rewards or {}).items())}

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
        """The states whose error counts: non-terminal states that, in control, can be reached."""
        inner = ~self.world.mdp.terminal
        return inner if self.world.is_prediction else inner & self.world.mdp.reachable

    def error(self, values: Vector) -> float:
        """The root mean squared error of v(s), or max_a q(s, a), against the exact values."""
        return float(np.sqrt(np.mean((values[self.judged] - self.truth[self.judged]) ** 2)))

    @property
    def shown_truth(self) -> list[float | None]:
        """The exact values for the page; None for unreachable states."""
        shown = self.world.mdp.reachable | self.judged
        return [float(v) if known else None for v, known in zip(self.truth, shown, strict=True)]


class Scene:
    """The common data of both agents.

    Attributes:
        config: the configuration.
        world: the world drawn for the seed.
        agents: left and right.
        limit: number of steps after which episodes are truncated.
        eras: the truth at the beginning and, in a world that changes, later.
        is_changeable: whether cells can be changed during a run.
    """

    def __init__(self, config: LabConfig) -> None:
        self.config = config
        self.agents: tuple[Agent, Agent] = (_named("left", config.left.build), _named("right", config.right.build))
        self.family = _named("world", config.world.build)  # which may be drawn anew by every seed
        drawn = self.family.draw(config.seed)
        self.is_changeable = isinstance(drawn.layout, np.ndarray) and drawn.later is None
        self.eras: tuple[Era, ...] = (
            _named("changes", partial(self._changed, drawn)) if config.changes else _eras(drawn)
        )
        self.world: World = self.eras[0].world
        self.limit = check_limit(self.world, None)
        for side, agent in zip(("left", "right"), self.agents, strict=True):
            _refuse_large(side, agent, self.world)

    def _changed(self, drawn: World) -> tuple[Era, ...]:
        """The mazes after manual changes during a run; simultaneous changes are combined."""
        if not self.is_changeable:
            raise InputError(f"{drawn.name} cannot be changed; mazes can that do not change by themselves")
        given = self.config.world.arguments
        how = {name: given[name] for name in ("slip", "reward_probability", "discount") if name in given}
        changes = [((left, right), cell, to) for left, right, cell, to in self.config.changes]
        moments = sorted({moment for moment, _, _ in changes})
        until = [[(cell, to) for moment, cell, to in changes if moment <= last] for last in moments]
        worlds = [altered_maze(drawn, so_far, **how) for so_far in until]
        rewards = [{cell: to for cell, to in so_far if not isinstance(to, str)} for so_far in until]
        eras = [Era(*era) for era in zip(worlds, moments, rewards, strict=True)]
        ever = functools.reduce(_then, reversed(list(zip(moments, worlds, strict=True))), None)
        return Era(replace(drawn, later=ever)), *eras

    @property
    def episodes(self) -> int:
        """The number of episodes."""
        return self.config.episodes

    def parts_of(self, agent: Agent) -> Parts:
        """An agent before its first episode."""
        side = "left" if agent is self.agents[0] else "right"
        return _named(side, partial(agent.build, setup_for(self.world, self.config.seed, self.limit)))

    @property
    def metric(self) -> Literal["rmsve_inner", "steps", "reward"]:
        """The metric by which agents are compared: the world's; in prediction, over non-terminal states."""
        by = self.world.judged_by
        return "rmsve_inner" if by == "rmsve" else by

    def era(self, side: int, taken: int) -> int:
        """The number of the era of agent 0 (left) or 1 after a number of real steps."""
        return max(k for k, era in enumerate(self.eras) if era.begins[side] <= taken)

    def holds_until(self, side: int, taken: int, most: int) -> int:
        """The number of real steps, at most `most`, up to which that era lasts."""
        return min((era.begins[side] for era in self.eras if taken < era.begins[side] < most), default=most)

    @cached_property
    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest exact value, 0 included: the ends of the colour scale."""
        known = np.concatenate([era.truth[era.judged] for era in self.eras])
        low, high = min(0.0, float(known.min())), max(0.0, float(known.max()))
        return (low, high) if high > low else (low, low + 1.0)

    def name_of(self, s: int) -> str:
        """The name of a state."""
        return str(self.eras[0].layout["names"][s])

    def describe(self) -> dict[str, Any]:
        """The page's data on the scene."""
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
            "later": [
                {"kinds": era.layout["kinds"], "rewards": era.layout["rewards"], "truth": era.shown_truth}
                for era in later
            ],
            "changeable": self.is_changeable,
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


def _eras(world: World) -> tuple[Era, ...]:
    """The eras of a world, which has two if it changes by itself."""
    later = world.later
    return (Era(world),) if later is None else (Era(world), Era(later.world, (later.step, later.step)))


def _then(later: Change | None, era: tuple[tuple[int, int], World]) -> Change:
    """A world with a later change, so that agents have room for all transitions that may become possible."""
    (step, _), world = era
    return Change(step, replace(world, later=later))


def _named(field: str, build: Callable[[], T]) -> T:
    """Build a part of the configuration; errors name that part."""
    try:
        return build()
    except InputError as error:
        raise RefusedError(f"{field}: {error}", field) from None


def _refuse_large(side: str, agent: Agent, world: World) -> None:
    """Raise on models that connect too many pairs, and on planning that branches too often."""
    pairs = world.n_states * world.n_actions
    all_pairs = KINDS[agent.kind].connects_pairs
    rows = pairs if all_pairs else world.n_states
    if (agent.looks_far or all_pairs) and rows * pairs > CONNECTIONS:
        raise RefusedError(
            f"{side}: {agent.name!r} may connect every state with every other, {rows * pairs:,} times in this world;"
            f" in the lab at most {CONNECTIONS:,}: take a smaller world, or a model of one step",
            side,
        )
    if agent.shared("sample") is not None:
        return
    corrections = min(agent.shared("top", pairs), int(world.fan_in.max())) ** agent.shared("depth", 1)
    if corrections > CORRECTIONS:
        raise RefusedError(
            f"{side}: {agent.name!r} may correct {corrections:,} states after one step of this world; in the lab at"
            f" most {CORRECTIONS:,}: take a smaller depth, or give top or sample",
            side,
        )
