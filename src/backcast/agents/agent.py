"""`backcast.agent`: describe an agent and validate its settings."""

from collections.abc import Mapping
from typing import Any

from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS, Agent, Kind, StepSize
from backcast.agents.settings import COMMON, SETTINGS, Settings
from backcast.core.errors import InputError, nearest


def agent(
    kind: str,
    frame: str | None = None,
    learn: bool = True,
    alpha: StepSize | None = None,
    alpha_model: StepSize | None = None,
    alpha_plan: StepSize | None = None,
    epsilon: StepSize = 0.5,
    schedule: str = "linear",
    epsilon_schedule: str | None = None,
    **settings: Any,
) -> Agent:
    """Describe an agent and validate its settings.

    Args:
        kind: `td` (prediction) and `q` (control) only learn; `forward` and `backward` also learn a model and plan with
            it; `true-forward` and `true-backward` plan with the true model. `backcast list` shows all kinds.
        frame: the state to plan from after a step from s to s': "previous" (s) or "current" (s'). By default backward
            planning starts from s' and forward planning from s, as in the paper's prediction studies.
        learn: False for pure planning, without learning updates from real steps.
        alpha: step size of learning in (0, 1]; a number, or a list with one per episode. By default 1, or 0.001 with a
            network.
        alpha_model: the same for the model; with a network it may be 0, for a model that does not learn.
        alpha_plan: the same for planning; by default alpha.
        epsilon: probability in [0, 1] of a random action, in control.
        schedule: "linear": rates fall linearly to 0 over the run; "constant": they are constant; "average": they are
            constant, and the n-th update of an entry has the step size α / n. Lists are used unchanged.
        epsilon_schedule: "linear" or "constant", for epsilon only; by default "linear" if `schedule` is, otherwise
            "constant".
        settings: further settings of the kind. `backcast list backward` shows those of `backward`; docs/agents.md
            explains them all. Invalid combinations are refused with the reason.

    Raises:
        InputError: if a setting is invalid; the message says what was given and what is allowed.

    Examples:
        >>> agent("backward", frame="previous", alpha=0.5).name
        'backward@previous'
        >>> agent("forward", learn=False).name
        'pure:forward'
        >>> agent("backward", model="counts", horizon=3).name
        'backward,model=counts,horizon=3'
    """
    given = {name: value for name, value in locals().items() if name in COMMON}
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind: {kind!r} given, expected one of {', '.join(KINDS)}{nearest(kind, KINDS)}")
    chosen = KINDS[kind]
    left_out = [name for name, value in given.items() if value is None and name not in ("learn", "epsilon", "schedule")]
    common = {name: COMMON[name].check(name, value) for name, value in given.items() if name not in left_out}
    if frame is not None and chosen.frame is None:
        raise InputError(f"frame: {frame!r} given, but {kind!r} does not plan from s or s'; leave frame out")
    if not learn and not chosen.plans:
        raise InputError(f"learn: False given, but {kind!r} does nothing else; pure planning needs a kind that plans")
    own = check_settings(chosen, settings)
    _refuse_combinations(chosen, dict(own), schedule)
    usual = {name: COMMON[name].usual(dict(own)) for name in ("alpha", "alpha_model")}
    if alpha_model == 0 and "network" not in dict(own):
        raise InputError("alpha_model: 0 given, expected a step size in (0, 1]")
    return Agent(kind, settings=own, **{**usual, **common})


def _refuse_combinations(kind: Kind, given: Mapping[str, Any], schedule: str) -> None:
    """Raise InputError, with the reason, if settings of a kind cannot be combined."""
    model = None if kind.has_own("model") else ESTIMATORS.get(given.get("model", ""))
    known_by_name_alone = model is not None and model.is_absent
    for rule in () if known_by_name_alone else kind.rules:
        for applies, reason in rule(kind, given, schedule):
            if applies:
                raise InputError(reason)
    if schedule == "average" and not kind.averages:
        raise InputError(
            f"schedule: 'average' divides a step by the number of updates of an entry, and {kind.name!r} does not count"
            " them; use 'linear' or 'constant'"
        )


def check_settings(kind: Kind, given: Mapping[str, Any]) -> Settings:
    """Return the validated settings of a kind in a fixed order; None counts as not given."""
    takes = kind.table
    what = f"{kind.name!r} takes {', '.join(dict.fromkeys(kind.settings)) if takes else 'no settings of its own'}"
    if kind.table_only and "features" not in takes and given.get("features") is not None:
        raise InputError(f"features: {kind.name!r} needs a table of values: {kind.table_only}")
    for name in given:
        if name not in takes and name not in SETTINGS:
            raise InputError(f"agent: no setting {name!r}; {what}{nearest(name, [*takes, *COMMON])}")
        if name not in takes and given[name] is not None:
            raise InputError(f"{name}: {given[name]!r} given, but {what}")
    chosen = {name: setting.check(name, given[name]) for name, setting in takes.items() if given.get(name) is not None}
    return tuple(chosen.items())
