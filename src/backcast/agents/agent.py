"""`backcast.agent`: describe an agent, checked."""

from typing import Any

import numpy as np

from backcast.agents.kinds import KINDS, Agent, StepSize
from backcast.agents.settings import check_settings
from backcast.core.errors import InputError, nearest


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
