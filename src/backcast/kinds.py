"""The kinds of agents: which model and which planner each is made of.

A kind is a function from a `Setup` (the world's sizes and, if known, the world) and an agent's settings to a model
and a planner. `register` adds one; the kinds below are registered in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from backcast.arrays import Indices
from backcast.errors import InputError
from backcast.models import BackwardModel, ForwardModel, NoModel
from backcast.models.rows import empty_rows
from backcast.models.truth import backward_rows, forward_rows
from backcast.planners import BackwardPlanner, ForwardPlanner, NoPlanner

if TYPE_CHECKING:
    from backcast.agents import Agent
    from backcast.worlds.world import World


@dataclass(frozen=True)
class Setup:
    """What an agent is told about where it will live. Only the true models look at `world`."""

    n_states: int
    n_actions: int
    discount: float
    world: "World | None" = None

    @property
    def is_prediction(self) -> bool:
        """Whether there is nothing to choose."""
        return self.n_actions == 1

    def fan_in(self) -> Indices:
        """Places for the rows of a backward model, (S,): 0 where the graph is not known (rows then grow)."""
        return np.zeros(self.n_states, dtype=np.int64) if self.world is None else self.world.fan_in

    def fan_out(self) -> Indices:
        """Places for the rows of a forward model, (S·A,)."""
        rows = self.n_states * self.n_actions
        return np.zeros(rows, dtype=np.int64) if self.world is None else self.world.fan_out


@dataclass(frozen=True)
class Kind:
    """A kind of agent.

    Attributes:
        summary: one line for `backcast list`.
        build: makes a model and a planner for a setup.
        frame: the usual frame of its planner; None if it does not plan.
        only: "prediction" or "control" if it works in one of them only.
        needs_world: whether it plans with the true model.
    """

    name: str
    summary: str
    build: "Callable[[Setup, Agent], tuple[Any, Any]]"
    frame: str | None = None
    only: str | None = None
    needs_world: bool = False

    def check(self, setup: Setup) -> None:
        """Refuse a world in which this kind makes no sense."""
        here = "prediction" if setup.is_prediction else "control"
        if self.only is not None and self.only != here:
            other = {"td": "q", "q": "td"}.get(self.name)
            hint = f"; in {here} use {other!r}" if other else ""
            if self.name == "true-backward":
                hint = (
                    ": a backward model is tied to a policy, and a control agent's changes all the time. Give the world"
                    " a fixed policy, backcast.worlds.from_mdp(mdp, policy)"
                )
            raise InputError(f"agent: {self.name!r} works in {self.only} worlds, this one is for {here}{hint}")
        if self.needs_world and setup.world is None:
            raise InputError(f"agent: {self.name!r} plans with the true model, but this environment carries no table")


KINDS: dict[str, Kind] = {}


def register(
    name: str, *, frame: str | None = None, only: str | None = None, needs_world: bool = False
) -> Callable[[Any], Any]:
    """Decorator: make a function (setup, agent) → (model, planner) available as a kind; its docstring is shown."""

    def add(build: Any) -> Any:
        if name in KINDS and KINDS[name].build.__module__ == __name__:
            raise InputError(f"kind: {name!r} is one of Backcast's own; choose another name")
        summary = (build.__doc__ or "").strip().splitlines()[0] if build.__doc__ else ""
        KINDS[name] = Kind(name, summary, build, frame, only, needs_world)
        return build

    return add


@register("td", only="prediction")
def td(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Learns values from real steps only: TD(0)."""
    return NoModel(), NoPlanner()


@register("q", only="control")
def q(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Learns values from real steps only: Q-learning."""
    return td(setup, agent)


@register("forward", frame="previous")
def forward(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Learns a forward model and re-evaluates a state from its imagined successors (Algorithm 3)."""
    n, control = setup.n_states, not setup.is_prediction
    goes_on = np.zeros(n) if control else np.ones(n)
    rows = empty_rows(setup.fan_out(), n)
    model = ForwardModel(
        rows, np.zeros(n), goes_on, np.zeros(n), np.zeros(2), setup.n_actions, not control, control, True
    )
    return model, ForwardPlanner(agent.plans_from_current, not agent.learn)


@register("backward", frame="current")
def backward(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Learns a backward model and corrects all states that lead to a state (Algorithms 2 and 4)."""
    rows = empty_rows(setup.fan_in(), setup.n_states * setup.n_actions)
    model = BackwardModel(rows, np.zeros(setup.n_states), setup.n_actions, setup.is_prediction, True)
    return model, BackwardPlanner(agent.plans_from_current, not agent.learn)


@register("true-forward", frame="previous", needs_world=True)
def true_forward(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Plans forward with the true transitions, rewards and terminations."""
    assert setup.world is not None
    n = setup.n_states
    goes_on = np.where(setup.world.mdp.terminal, -1.0, 1.0)
    rows = forward_rows(setup.world)
    model = ForwardModel(rows, np.zeros(n), goes_on, np.zeros(n), np.zeros(2), setup.n_actions, True, False, False)
    return model, ForwardPlanner(agent.plans_from_current, not agent.learn)


@register("true-backward", frame="current", only="prediction", needs_world=True)
def true_backward(setup: Setup, agent: "Agent") -> tuple[Any, Any]:
    """Plans backward with the true backward model of the policy that is evaluated."""
    assert setup.world is not None
    rows = backward_rows(setup.world)
    model = BackwardModel(rows, np.zeros(setup.n_states), setup.n_actions, True, False)
    return model, BackwardPlanner(agent.plans_from_current, not agent.learn)
