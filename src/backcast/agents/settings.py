"""What can be set about an agent: one table, from which checks, studies, the lab's form, lists and docs are made."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from backcast.core.arrays import as_floats, as_whole, refuse_non_finite
from backcast.core.errors import InputError
from backcast.core.settings import Check, Form, Setting, choice, number, switch, whole
from backcast.features import FeatureMap, as_features
from backcast.models.options import Option

Settings = tuple[tuple[str, Any], ...]

TABULAR = ("softmax", "counts", "true")
LINEAR_VALUES = ("features", "memory")  # of kinds whose values may be linear in features of whatever is observed
LINEAR = ("expectation", "naive", "likelihood", "planner-aware", "gaussian", "abstract", "meta")


def _lam(name: str, given: Any) -> Any:
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


def _rate(words: str, least: Callable[[Any], Any]) -> Check:
    """A step size or a probability: a number, or a list with one for each episode, which may end with 0."""

    def check(name: str, given: Any) -> Any:
        try:
            values = np.atleast_1d(np.asarray(np.nan if given is None else given, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: {given!r} given, expected {words} or a list of them") from error
        good = (least(values) & (values <= 1)) | ((values == 0) & (np.ndim(given) > 0))
        if values.ndim != 1 or values.size == 0 or not good.all():
            raise InputError(f"{name}: {given!r} given, expected {words}")
        return given if np.ndim(given) == 0 else tuple(float(rate) for rate in given)

    return check


def _step_size(name: str, meaning: str, symbol: str, default: float | None) -> Setting:
    words = "a step size in (0, 1]"
    form, check = Form(0, 1, above=True), _rate(words, lambda rates: rates > 0)
    return Setting(
        name, meaning, check, float | tuple[float, ...], f"{words}, or one for each episode", symbol, default, form
    )


def _frame(name: str, given: Any) -> Any:
    if given not in ("previous", "current"):
        raise InputError(f"frame: {given!r} given, expected 'previous' (plan from s) or 'current' (plan from s')")
    return given


def _learn(name: str, given: Any) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise InputError(f"learn: {given!r} given, expected True or False (pure planning)")
    return bool(given)


def _schedule(name: str, given: Any) -> str:
    if given not in ("linear", "constant"):
        raise InputError(f"schedule: {given!r} given, expected 'linear' or 'constant'")
    return str(given)


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


_FRAMES, _SCHEDULES = ("previous", "current"), ("linear", "constant")
_FRAME: Any = Literal[_FRAMES]
_SCHEDULE: Any = Literal[_SCHEDULES]
_PROBABILITY, _FEATURES = "a probability in [0, 1]", "a map of `backcast.features`, or a matrix (S, d)"
_RECIPE: Any = dict[str, Any] | str
_NUMBERS: Any = float | tuple[float, ...]
COMMON = _table(  # what all kinds take, as far as it applies; arguments of `backcast.agent`
    Setting(
        "frame", "which state to plan from: s or s'", _frame, _FRAME, '"previous" or "current"',
        form=Form(choices=_FRAMES),
    ),
    Setting(
        "learn", "learn from real steps beside planning; without it: pure planning", _learn, bool, "True or False",
        default=True, form=Form(),
    ),
    _step_size("alpha", "step size of learning", "α", 1.0),
    _step_size("alpha_model", "step size of the model", "αₘ", 1.0),
    _step_size("alpha_plan", "step size of planning (by default that of learning)", "αₚ", None),
    Setting(
        "epsilon", "probability of a random action", _rate(_PROBABILITY, lambda rates: rates >= 0),
        _NUMBERS, f"{_PROBABILITY}, or one for each episode", "ε", 0.5, Form(0, 1),
    ),
    Setting(
        "schedule", "rates fall to 0 over the run, or stay", _schedule, _SCHEDULE, '"linear" or "constant"',
        default="linear", form=Form(choices=_SCHEDULES),
    ),
)  # fmt: skip
SETTINGS = _table(  # what some kinds take besides
    Setting("features", "values are linear in these", _features, _RECIPE, _FEATURES),
    Setting(
        "model_features", "features that a linear model is conditioned on, if they are others", _features,
        _RECIPE, _FEATURES,
    ),
    choice("model", "how the model is estimated", *TABULAR, *LINEAR, lab=TABULAR),
    choice("learn_by", "how a linear model is learned: by gradient steps or by least squares", "lms", "rls", lab=()),
    number("ridge", "ridge of least squares", 0, np.inf, "a number above 0"),
    Setting("memory", "observations of a Box that are remembered", _memory, int, "a whole number, 2 or more"),
    whole("horizon", "steps that the model looks back or ahead", 1, 1000, symbol="n", form=Form(1, 20)),
    Setting("weights", "a mixture of models over 1, 2, … steps", _weights, tuple[float, ...], "numbers that sum to 1"),
    Setting(
        "lam", "decay λ of a λ-model or of traces", _lam, _NUMBERS, "a number in [0, 1], or one for each state", "λ",
        form=Form(0, 1),
    ),
    choice("lam_by", "how a λ-model is learned: along the trajectory, or by rows that bootstrap", "mc", "td"),
    Setting("option", "the model of an option", _option, dict[str, Any], "`backcast.Option`"),
    switch("conditioned", "a row for each action that led here, and a backward policy"),
    whole("sample", "sampled updates after each step", form=Form(1, 200)),
    whole("top", "only the most probable states", form=Form(1, 1000)),
    whole("depth", "levels of predecessors that are corrected", form=Form(1, 4)),
    number("forget", "rate at which the model forgets", 0, 1, "a rate in [0, 1)", below=True, form=Form(0, 0.999)),
    switch("importance", "weight steps, to model the greedy policy", symbol="importance weights"),
    choice("traces", "what a second visit does to a trace", "accumulating", "replacing"),
    choice("variant", "whose priorities", "moore-atkeson", "peng-williams", "mcmahan-gordon"),
    number("bonus", "imagined reward for what was not tried for long", 0, form=Form(0, 1)),
    whole("buffer", "transitions, or residuals, that are remembered", form=Form(1, 100_000)),
    number("exponent", "how much priorities count", 0, form=Form(0, 4)),
)  # fmt: skip


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
