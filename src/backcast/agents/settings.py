"""What can be set about an agent besides its kind: each setting checked, alone and together with the others."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from backcast.core.arrays import as_floats, as_whole, refuse_non_finite
from backcast.core.errors import InputError, nearest
from backcast.features import FeatureMap, as_features
from backcast.models.options import Option

Settings = tuple[tuple[str, Any], ...]
_DEEPEST = 5
_OF_TABLES = ("horizon", "weights", "lam", "option", "conditioned", "forget", "importance", "top", "depth")
_OF_LINEAR = ("model_features", "learn_by", "ridge", "memory", "buffer")


def _one_of(*allowed: str) -> Callable[[str, Any], Any]:
    def check(name: str, given: Any) -> str:
        if not isinstance(given, str) or given not in allowed:
            raise InputError(f"{name}: {given!r} given, expected one of {', '.join(allowed)}{nearest(given, allowed)}")
        return str(given)

    return check


def _whole(name: str, given: Any) -> int:
    return as_whole(name, given, 1)


def _at_most(most: int) -> Callable[[str, Any], Any]:
    def check(name: str, given: Any) -> int:
        if _whole(name, given) > most:
            raise InputError(f"{name}: {given} given, expected at most {most:,}")
        return int(given)

    return check


def _switch(name: str, given: Any) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise InputError(f"{name}: {given!r} given, expected True or False")
    return bool(given)


def _number(low: float, high: float, words: str, *, below: bool = False) -> Callable[[str, Any], Any]:
    def check(name: str, given: Any) -> float:
        number = as_floats(name, given)
        if number.ndim or not low <= number <= high or (below and number == high):
            raise InputError(f"{name}: {given!r} given, expected {words}")
        return float(number)

    return check


def _lam(name: str, given: Any) -> Any:
    """λ: a number, or one for each state."""
    lam = as_floats(name, given)
    if lam.ndim > 1 or lam.size == 0 or not ((lam >= 0) & (lam <= 1)).all():
        raise InputError(f"{name}: {given!r} given, expected a number in [0, 1], or a list with one for each state")
    return float(lam) if lam.ndim == 0 else tuple(lam.tolist())


def _weights(name: str, given: Any) -> tuple[float, ...]:
    """The weights of 1, 2, … steps."""
    weights = as_floats(name, given)
    refuse_non_finite(name, weights)
    if weights.ndim != 1 or weights.size == 0 or (weights < 0).any() or abs(weights.sum() - 1) > 1e-8:
        raise InputError(f"{name}: {given!r} given, expected the weights of 1, 2, … steps, which sum to 1")
    return tuple(weights.tolist())


def _option(name: str, given: Any) -> Option:
    if isinstance(given, Mapping) and "initiation" in given and set(given) <= {"initiation", "termination", "policy"}:
        return Option(**given)
    if not isinstance(given, Option):
        raise InputError(f"{name}: {given!r} given, expected backcast.Option(initiation=…, termination=…, policy=…)")
    return given


def _memory(name: str, given: Any) -> int:
    return min(as_whole(name, given, 2), 1_000_000)  # the state before a step and the one after it


def _features(name: str, given: Any) -> FeatureMap:
    return as_features(name, given).recipe


TABULAR = ("softmax", "counts", "true")
LINEAR = ("expectation", "naive", "likelihood", "planner-aware", "gaussian", "abstract", "meta")

CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "features": _features,
    "model_features": _features,
    "model": _one_of(*TABULAR, *LINEAR),
    "learn_by": _one_of("lms", "rls"),
    "ridge": _number(0, np.inf, "a number above 0", below=True),
    "memory": _memory,
    "horizon": _at_most(1000),
    "weights": _weights,
    "lam": _lam,
    "lam_by": _one_of("mc", "td"),
    "option": _option,
    "conditioned": _switch,
    "sample": _whole,
    "top": _whole,
    "depth": _whole,
    "forget": _number(0, 1, "a rate in [0, 1)", below=True),
    "importance": _switch,
    "traces": _one_of("accumulating", "replacing"),
    "variant": _one_of("moore-atkeson", "peng-williams", "mcmahan-gordon"),
    "bonus": _number(0, np.inf, "a number, 0 or more", below=True),
    "buffer": _whole,
    "exponent": _number(0, np.inf, "a number, 0 or more", below=True),
}


def check_settings(kind: str, takes: tuple[str, ...], given: Mapping[str, Any]) -> Settings:
    """The settings in a fixed order, each checked; those that are None are left out."""
    for name in given:
        if name not in CHECKS:
            raise InputError(f"agent: no setting {name!r}; {_what(kind, takes)}{nearest(name, takes)}")
        if name not in takes and given[name] is not None:
            raise InputError(f"{name}: {given[name]!r} given, but {_what(kind, takes)}")
    chosen = {
        name: check(name, given[name])
        for name, check in CHECKS.items()
        if given.get(name) is not None and name in takes
    }
    _refuse_what_makes_no_sense(kind, chosen)
    return tuple(chosen.items())


def _what(kind: str, takes: tuple[str, ...]) -> str:
    return f"{kind!r} takes {', '.join(takes) if takes else 'no settings of its own'}"


def _refuse_what_makes_no_sense(kind: str, chosen: dict[str, Any]) -> None:
    for applies, reason in _reasons_about_features(kind, chosen) + _reasons(kind, chosen):
        if applies:
            raise InputError(reason)


def _reasons(kind: str, chosen: dict[str, Any]) -> list[tuple[bool, str]]:
    """What cannot be together, and why; of every pair whether it is the case."""
    forward, plans = kind.endswith("forward"), kind.endswith(("forward", "backward"))
    model = "true" if kind.startswith("true-") else chosen.get("model")
    softmax, true, by_td = model == "softmax", model == "true", chosen.get("lam_by") == "td"
    spans = [name for name in ("horizon", "weights", "lam", "option") if name in chosen]
    lam, depth, ends = chosen.get("lam"), chosen.get("depth", 1), getattr(chosen.get("option"), "termination", None)
    conditioned, importance = chosen.get("conditioned", False), chosen.get("importance", False)
    sample, top, forget = (name in chosen for name in ("sample", "top", "forget"))
    return [
        (len(spans) > 1, f"{' and '.join(spans)}: each of them says how far the model looks; give one"),
        (plans and "lam_by" in chosen and lam is None, "lam_by: it says how a λ-model is learned; give lam as well"),
        (
            by_td and softmax,
            "lam_by: 'td' moves probabilities towards each other, not the logits of a softmax; leave model out",
        ),
        (by_td and true, "lam_by: there is nothing to learn about the true model; leave lam_by out"),
        (
            forward and isinstance(lam, tuple),
            "lam: one for each state belongs to the predecessor at which looking back stops; looking forward give one",
        ),
        (plans and lam is not None and bool(np.all(np.asarray(lam) == 1)), "lam: 1 everywhere never stops"),
        (
            conditioned and softmax,
            "conditioned: a softmax for each action leaves to the pairs never seen a different probability for each,"
            " which no single map of the table can apply; use model='counts'",
        ),
        (conditioned and by_td, "conditioned: rows learned by TD are joint; use lam_by='mc'"),
        (conditioned and true, "conditioned: the true model is for prediction, where there is one action"),
        (
            ends is not None and softmax,
            "option: with a termination some ways lead to no initiation, and a softmax cannot say 'none of them';"
            " use model='counts'",
        ),
        (
            kind == "both" and softmax,
            "model: a softmax backward step moves every state, and forward planning would have to sum over all of them"
            " anew; for both at once use 'counts'",
        ),
        (sample and top, "sample and top: one draws from the whole row, the other cuts it off; give one"),
        (
            depth > _DEEPEST and not (sample or top),
            f"depth: {depth} levels of all predecessors are exponentially many; add sample or top, or at most"
            f" {_DEEPEST} levels",
        ),
        (forget and true, "forget: a true model has nothing to forget"),
        (forget and by_td, "forget: rows learned by TD forget with the step size alpha_model"),
        (importance and true, "importance: a true model is not learned"),
        (importance and by_td, "importance: rows learned by TD are not weighted; use lam_by='mc'"),
        (
            importance and "option" in chosen,
            "importance and option: the option says which policy is meant; leave importance out",
        ),
    ]


def _reasons_about_features(kind: str, chosen: dict[str, Any]) -> list[tuple[bool, str]]:
    """What cannot be together with features, or without them, and why."""
    plans = kind in ("forward", "backward")
    features, forward = "features" in chosen, kind == "forward"
    model = chosen.get("model", "expectation" if features and plans else None)
    linear, by_rls = model in LINEAR, chosen.get("learn_by") == "rls"
    of_tables = [name for name in _OF_TABLES if name in chosen]
    selects = [name for name in ("top", "depth") if name in chosen]
    of_linear = [name for name in _OF_LINEAR if name in chosen]
    return [
        (
            linear and not features,
            f"model: {model!r} is linear in features; "
            + ("give features as well" if plans else "use 'forward' or 'backward', with features"),
        ),
        (
            plans and not (features and linear) and bool(of_linear),
            f"{' and '.join(of_linear)}: only for models of features; give features, and model one of"
            f" {', '.join(LINEAR)}",
        ),
        (
            features and model == "softmax",
            "model: a softmax over all states cannot be applied to linear values by one map of a table; 'likelihood' is"
            " the softmax of linear models",
        ),
        (
            features and linear and bool(of_tables),
            f"{' and '.join(of_tables)}: for models of states, 'counts' or 'true', not for {model!r}",
        ),
        (
            features and kind.endswith("backward") and bool(selects),
            f"{' and '.join(selects)}: with features all predecessors are corrected at once",
        ),
        (
            forward and model == "naive",
            "model: looking forward, to plan with the mean of the features alone is right; use 'expectation'",
        ),
        (
            forward and model == "gaussian",
            "model: looking forward, samples around the mean make on average the update of 'expectation'; use that",
        ),
        (
            by_rls and model not in ("expectation", "naive", "gaussian"),
            f"learn_by: 'rls' solves least squares, and {model!r} is learned by gradient steps; leave it out",
        ),
        ("ridge" in chosen and not by_rls, "ridge: it belongs to learn_by='rls'"),
        (chosen.get("ridge") == 0, "ridge: 0 given, expected a number above 0"),
        (
            plans and "buffer" in chosen and model != "gaussian",
            "buffer: how many residuals model='gaussian' remembers; leave it out",
        ),
        (
            linear and "sample" in chosen and model not in ("gaussian", "likelihood", "planner-aware", "meta"),
            f"sample: {model!r} makes its expected update at once; there is nothing to draw",
        ),
    ]


def describe(settings: Settings) -> str:
    """Settings as part of an agent's name: `,model=counts,horizon=2`."""
    return "".join(f",{name}={_short(value)}" for name, value in settings)


def _short(value: Any) -> str:
    if isinstance(value, Option):
        return "given"
    if isinstance(value, FeatureMap):
        return value.name
    if isinstance(value, tuple):
        return "-".join(f"{number:g}" for number in value[:6]) + ("…" if len(value) > 6 else "")
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)
