"""`backcast.agent`: what an agent is, checked; and how it is put together for a world."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backcast.arrays import Vector
from backcast.errors import InputError, nearest
from backcast.kinds import KINDS, Setup
from backcast.kinds.linear import linear_values
from backcast.learners import TD
from backcast.loop import Parts
from backcast.settings import Settings, check_settings, describe
from backcast.values import zeros

StepSize = float | Sequence[float]


@dataclass(frozen=True)
class Agent:
    """An agent's settings; made by `backcast.agent`, which checks them.

    Attributes:
        kind: which models, planners and learners it is made of (`backcast list` names the kinds).
        frame: "previous" (plan from s), "current" (plan from s') or None for the kind's usual one.
        learn: False for pure planning.
        alpha: step size of learning; a number, or one per episode.
        alpha_model: step size of model learning.
        alpha_plan: step size of planning; None: alpha.
        epsilon: how often a control agent acts at random.
        schedule: "linear" (numbers fall to 0 over the run) or "constant".
        settings: what else the kind takes, such as ("model", "counts"); `get` looks one up.
    """

    kind: str
    frame: str | None = None
    learn: bool = True
    alpha: StepSize = 1.0
    alpha_model: StepSize = 1.0
    alpha_plan: StepSize | None = None
    epsilon: StepSize = 0.5
    schedule: str = "linear"
    settings: Settings = ()

    @property
    def name(self) -> str:
        """As in exported tables: `kind` or `kind@frame`, with `pure:` before it where there is no learning.

        Settings of the kind follow: `backward@previous,model=counts`.
        """
        frame = f"@{self.frame}" if self.frame else ""
        return ("" if self.learn else "pure:") + self.kind + frame + describe(self.settings)

    def get(self, setting: str, usual: Any = None) -> Any:
        """The value of a setting, or the usual one if it was not given."""
        return dict(self.settings).get(setting, usual)

    @property
    def knows_the_truth(self) -> bool:
        """Whether it plans with the true model."""
        return self.kind.startswith("true-") or self.get("model") == "true"

    @property
    def span(self) -> tuple[str, Any]:
        """Which setting says how far its model looks, and its value: `horizon`, 1 if nothing else is said."""
        given = ((name, self.get(name)) for name in ("weights", "lam", "option") if self.get(name) is not None)
        return next(given, ("horizon", self.get("horizon", 1)))

    @property
    def looks_far(self) -> bool:
        """Whether its model spans several steps."""
        return self.span != ("horizon", 1)

    @property
    def plans_from_current(self) -> bool:
        """Whether planning starts from s' rather than from s."""
        return (self.frame or KINDS[self.kind].frame) == "current"

    def rates(self, episodes: int) -> Vector:
        """(episodes, 4): α, α of the model, α of planning and ε in each episode."""
        given = {
            "alpha": self.alpha,
            "alpha_model": self.alpha_model,
            "alpha_plan": self.alpha if self.alpha_plan is None else self.alpha_plan,
            "epsilon": self.epsilon,
        }
        return np.stack([_per_episode(name, rate, episodes, self.schedule) for name, rate in given.items()], axis=1)

    def build(self, setup: Setup) -> Parts:
        """The parts of this agent, at work in a world."""
        kind = KINDS[self.kind]
        kind.check(setup, self)
        values: Any = zeros(setup.n_states, setup.n_actions)
        if self.get("features") is not None:
            values = linear_values(setup, self)
            setup = replace(setup, values=values)
        model, planner, *learner = kind.build(setup, self)
        return Parts(
            model,
            planner,
            learner[0] if learner else TD(self.learn),
            values,
            setup.discount,
            np.zeros(2, dtype=np.int64),
        )


def agent(
    kind: str,
    frame: str | None = None,
    learn: bool = True,
    alpha: StepSize = 1.0,
    alpha_model: StepSize = 1.0,
    alpha_plan: StepSize | None = None,
    epsilon: StepSize = 0.5,
    schedule: str = "linear",
    **settings: Any,
) -> Agent:
    """Describe an agent.

    Args:
        kind: `td` (prediction) and `q` (control) only learn; `forward` and `backward` also learn a model and plan with
            it; `true-forward` and `true-backward` plan with the true model. `backcast list` shows them all.
        frame: where planners plan from when s led to s': "previous" (s) or "current" (s'). By default backward planning
            is from s', forward planning from s, as in the paper's prediction studies.
        learn: False for pure planning, without the learning update beside it.
        alpha: step size of learning in (0, 1]; a number, or a list with one per episode.
        alpha_model: the same for the model.
        alpha_plan: the same for planning; by default alpha.
        epsilon: probability in [0, 1] of a random action, in control.
        schedule: "linear": numbers fall linearly to 0 over the run; "constant": they stay. Lists are taken as they are.
        settings: what the kind takes besides. `backward` and, where it applies, `forward` take:

            - model: "softmax" (the paper's, and the usual one), "counts" (maximum likelihood) or "true";
            - features: from `backcast.features`, or a matrix (S, d), for values that are linear in them (also `td` and
              `q`). The model is then "expectation" (the usual one), "naive", "likelihood", "planner-aware", "gaussian",
              "abstract", "meta", "counts" or "true"; model_features are those it is conditioned on, if they are others;
              learn_by="lms" or "rls" (with a ridge) says how; memory=N bounds the observations remembered in a Box;
            - how far the model looks, one of horizon=n (n steps), weights=(w₁, w₂, …) (a mixture of 1, 2, … steps),
              lam=λ (a number, or one for each state; lam_by="mc" or "td" says how it is learned) and
              option=`backcast.Option`;
            - conditioned=True: rows P←(s̃ | s, ã) and a backward policy instead of joint rows;
            - sample=N: N sampled updates a step (Algorithm 1) instead of one expected update over all predecessors;
            - top=k: only the k most probable; depth=d: then from each of them to its own, d levels deep;
            - forget=ρ: draw a row back by this rate before each observation, because policies and worlds change;
            - importance=True: weight steps by π(a | s) / b(a | s), so that the model is that of the greedy policy.

            docs/agents.md says what the other kinds take.

    Raises:
        InputError: with a sentence that says what was given and what is allowed.

    Examples:
        >>> agent("backward", frame="previous", alpha=0.5).name
        'backward@previous'
        >>> agent("forward", learn=False).name
        'pure:forward'
        >>> agent("backward", model="counts", horizon=3).name
        'backward,model=counts,horizon=3'
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind: {kind!r} given, expected one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    if frame is not None and frame not in ("previous", "current"):
        raise InputError(f"frame: {frame!r} given, expected 'previous' (plan from s) or 'current' (plan from s')")
    if frame is not None and KINDS[kind].frame is None:
        raise InputError(f"frame: {frame!r} given, but {kind!r} does not plan from s or s'; leave frame out")
    if not learn and not KINDS[kind].plans:
        raise InputError(f"learn: False given, but {kind!r} does nothing else; pure planning needs a kind that plans")
    if not isinstance(learn, (bool, np.bool_)):
        raise InputError(f"learn: {learn!r} given, expected True or False (pure planning)")
    if schedule not in ("linear", "constant"):
        raise InputError(f"schedule: {schedule!r} given, expected 'linear' or 'constant'")
    for name, size in (("alpha", alpha), ("alpha_model", alpha_model), ("alpha_plan", alpha_plan)):
        _check_rate(name, size, "a step size in (0, 1]", lambda x: (x > 0) & (x <= 1))
    _check_rate("epsilon", epsilon, "a probability in [0, 1]", lambda x: (x >= 0) & (x <= 1))
    alpha, alpha_model, alpha_plan, epsilon = map(_hashable, (alpha, alpha_model, alpha_plan, epsilon))
    chosen = check_settings(kind, KINDS[kind].settings, settings)
    return Agent(kind, frame, bool(learn), alpha, alpha_model, alpha_plan, epsilon, schedule, chosen)


def _hashable(rate: Any) -> Any:
    return rate if rate is None or np.ndim(rate) == 0 else tuple(float(r) for r in rate)


def _check_rate(name: str, rate: Any, allowed: str, test: Any) -> None:
    if rate is None and name == "alpha_plan":
        return
    try:
        values = np.atleast_1d(np.asarray(np.nan if rate is None else rate, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {rate!r} given, expected {allowed} or a list of them") from error
    # a list may end with 0: that is where a falling schedule arrives
    good = test(values) | ((values == 0) & (np.ndim(rate) > 0))
    if values.ndim != 1 or values.size == 0 or not good.all():
        raise InputError(f"{name}: {rate!r} given, expected {allowed}")


def _per_episode(name: str, rate: StepSize, episodes: int, schedule: str) -> Vector:
    if np.ndim(rate) > 0:
        values = np.asarray(rate, dtype=np.float64)
        if len(values) != episodes:
            raise InputError(f"{name}: a list of {len(values)} given for {episodes} episodes; expected one per episode")
        return values
    falling = (episodes - np.arange(episodes)) / episodes if schedule == "linear" else np.ones(episodes)
    return float(rate) * falling  # type: ignore[arg-type]
