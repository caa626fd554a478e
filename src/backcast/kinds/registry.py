"""The kinds of agents: which model, planner and learner each is made of.

A kind is a function from a `Setup` (the world's sizes and, if known, the world) and an agent's settings to a model,
a planner and, if it is not TD or Q-learning, a learner. `register` adds one; Backcast's own are registered in the same
way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from backcast.arrays import Indices
from backcast.errors import InputError
from backcast.randomness import Stream, imagination

if TYPE_CHECKING:
    from backcast.agents import Agent
    from backcast.linear.values import LinearValues
    from backcast.observations import Observations
    from backcast.worlds.world import World


@dataclass(frozen=True)
class Setup:
    """What an agent is told about where it will live.

    Only the true models look at the transitions of `world`; others take from it what can follow what, where it ends and
    where its states lie.

    Attributes:
        n_states: S.
        n_actions: A, 1 in prediction.
        discount: γ.
        world: the world, if it is known.
        seed: of the run.
        max_steps: where episodes are cut off, if they are.
        observations: the memory of observations, n_states of them, if states have no numbers of their own.
        values: the agent's values, if they are linear in features.
    """

    n_states: int
    n_actions: int
    discount: float
    world: "World | None" = None
    seed: int = 0
    max_steps: int | None = None
    observations: "Observations | None" = None
    values: "LinearValues | None" = None

    def stream(self, purpose: int = 0) -> Stream:
        """Random numbers apart from those of the world and of actions: 0 planning, 1 models, 2 planning forward."""
        return imagination(self.seed, purpose)

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
        name: what `backcast.agent` calls it.
        summary: one line for `backcast list`.
        build: makes a model, a planner and perhaps a learner for a setup.
        frame: the usual frame of its planner ("each": of each of its planners); None if it plans from neither s nor s'.
        only: "prediction" or "control" if it works in one of them only.
        plans: whether it can do without learning beside (pure planning).
        settings: the names of the settings that it takes.
        reference: where it was published.
    """

    name: str
    summary: str
    build: "Callable[[Setup, Agent], tuple[Any, ...]]"
    frame: str | None = None
    only: str | None = None
    plans: bool = False
    settings: tuple[str, ...] = ()
    reference: str = ""

    def check(self, setup: Setup, agent: "Agent") -> None:
        """Refuse a world in which this agent makes no sense."""
        here = "prediction" if setup.is_prediction else "control"
        tied = self.name.endswith(("backward", "both")) or agent.looks_far  # to a policy
        only = "prediction" if agent.knows_the_truth and tied else self.only
        if only is not None and only != here:
            other = {"td": "q", "q": "td", "td-lambda": "q-lambda", "q-lambda": "td-lambda"}.get(self.name)
            hint = f"; in {here} use {other!r}" if other else ""
            if agent.knows_the_truth:
                hint = (
                    ": the model is tied to a policy, and a control agent's changes all the time. Give the world"
                    " a fixed policy, backcast.worlds.from_mdp(mdp, policy)"
                )
            raise InputError(f"agent: {agent.name!r} works in {only} worlds, this one is for {here}{hint}")
        if not agent.knows_the_truth:
            return
        if setup.world is None:
            raise InputError(f"agent: {agent.name!r} plans with the true model, but this environment carries no table")
        if setup.world.later is not None:
            raise InputError(
                f"agent: {agent.name!r} plans with the true model, but {setup.world.name} changes after"
                f" {setup.world.later.step:,} steps, and what is true with it; use a model that is learned"
            )


KINDS: dict[str, Kind] = {}


def register(
    name: str,
    *,
    frame: str | None = None,
    only: str | None = None,
    plans: bool | None = None,
    settings: tuple[str, ...] = (),
    reference: str = "",
) -> Callable[[Any], Any]:
    """Decorator: make a function (setup, agent) → (model, planner[, learner]) available as a kind.

    Its docstring is shown by `backcast list`; the other arguments are the attributes of `Kind`.
    """

    def add(build: Any) -> Any:
        if name in KINDS and (KINDS[name].build.__module__ or "").startswith("backcast."):
            raise InputError(f"kind: {name!r} is one of Backcast's own; choose another name")
        summary = (build.__doc__ or "").strip().splitlines()[0] if build.__doc__ else ""
        can_plan = frame is not None if plans is None else plans
        KINDS[name] = Kind(name, summary, build, frame, only, can_plan, settings, reference)
        return build

    return add
