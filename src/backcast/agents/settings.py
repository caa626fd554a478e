"""The settings of agents: one table, from which validation, studies, the lab's form, lists and docs are made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from backcast.core.arrays import as_floats, as_whole, refuse_non_finite
from backcast.core.errors import InputError
from backcast.core.setting_types import Check, Depends, Form, Setting, choice, number, switch, whole
from backcast.features import FeatureMap, as_features
from backcast.models.options import Option
from backcast.networks import Network, as_network

Settings = tuple[tuple[str, Any], ...]

LINEAR_VALUES = ("features", "memory")  # settings of kinds whose values may be linear in features of observations
NEURAL_VALUES = (
    *("network", "batch", "every", "memory", "target_every", "double", "optimiser", "loss", "precision"),
)  # settings of kinds whose values may be computed by a network
NEURAL_MODELS = ("candidates", "components", "objective", "encoder")  # of kinds that also learn a model with a network
PIECES = ("shrinkage", "unseen", "untried")  # pieces of the prior of `blend`
RIDGE, MEMORY, RESIDUALS = 1e-6, 4096, 50
TRANSITIONS, RATE = 10_000, 1e-3  # memory size and step size of agents with a network


def usual_model(given: Mapping[str, Any]) -> str | None:
    """Return the default model: the paper's softmax; "expectation" with features; counts where a softmax is impossible.

    With a network it is "contrastive", or "softmax" if memory=0. None for rows that are learned by TD.
    """
    if given.get("network") is not None:
        return "softmax" if given.get("memory") == 0 else "contrastive"
    if given.get("features") is not None:
        return "expectation"
    if given.get("lam_by") == "td":
        return None
    ends = getattr(given.get("option"), "termination", None) is not None
    return "counts" if given.get("conditioned") or ends else "softmax"


MODEL = Depends(
    usual_model, "softmax; expectation with features; contrastive with a network; counts where a softmax cannot be"
)


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


def _option(name: str, given: object) -> Option:
    if isinstance(given, Mapping) and "initiation" in given and set(given) <= {"initiation", "termination", "policy"}:
        return Option(**given)
    if not isinstance(given, Option):
        raise InputError(f"{name}: {given!r} given, expected backcast.Option(initiation=…, termination=…, policy=…)")
    return given


def _memory(name: str, given: object) -> int:
    return min(as_whole(name, given, 0), 1_000_000)


def _usual_memory(given: Mapping[str, Any]) -> int | None:
    if given.get("network") is not None:
        return TRANSITIONS
    return None if given.get("features") is None else MEMORY


def _network(name: str, given: object) -> Network:
    return as_network(name, given)


def _optimiser(name: str, given: Any) -> Any:
    if given in ("adam", "sgd") or all(callable(getattr(given, each, None)) for each in ("init", "update")):
        return given
    raise InputError(f"{name}: {given!r} given, expected 'adam', 'sgd' or a transformation of optax")


def _loss(name: str, given: Any) -> Any:
    if given in ("squared", "huber") or callable(given):
        return given
    raise InputError(f"{name}: {given!r} given, expected 'squared', 'huber' or a function of errors")


def _features(name: str, given: object) -> FeatureMap:
    return as_features(name, given).recipe


def _prior(name: str, given: object) -> Any:
    """Validate a prior: True or False, or some of its pieces, returned as one word: "shrinkage+untried"."""
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    pieces = given.split("+") if isinstance(given, str) else given
    if not isinstance(pieces, (list, tuple)) or not pieces or not set(pieces) <= set(PIECES):
        raise InputError(f"{name}: {given!r} given, expected True, False or some of {', '.join(PIECES)}, as a list")
    return "+".join(piece for piece in PIECES if piece in pieces)


def _rate(words: str, above: bool = False) -> Check:
    """Return the check of a probability or, `above` 0, a step size: a number, or a list by episode, which may be 0."""

    def check(name: str, given: Any) -> Any:
        try:
            values = np.atleast_1d(as_floats(name, np.nan if given is None else given))
        except InputError as error:
            raise InputError(f"{name}: {given!r} given, expected {words} or a list of them") from error
        zero_allowed = not above or np.ndim(given) > 0
        good = (values <= 1) & ((values >= 0) if zero_allowed else (values > 0))
        if values.ndim != 1 or values.size == 0 or not good.all():
            raise InputError(f"{name}: {given!r} given, expected {words}")
        return given if np.ndim(given) == 0 else tuple(float(rate) for rate in given)

    return check


def _usual_step_size(given: Mapping[str, Any]) -> float:
    return 1.0 if given.get("network") is None else RATE


USUAL_STEP_SIZE = Depends(_usual_step_size, f"1, or {RATE:g} with a network", 1.0)


def _step_size(
    name: str, meaning: str, symbol: str, default: float | Depends, label: str, or_zero: str = ""
) -> Setting:
    words = f"a step size in [0, 1], 0 {or_zero}" if or_zero else "a step size in (0, 1]"
    form, check = Form(0, 1, above=True), _rate(words, above=not or_zero)
    many = f"{words}, or one for each episode"
    return Setting(name, meaning, check, float | tuple[float, ...], many, symbol, default, form, label)


def _frame(name: str, given: object) -> Any:
    if given not in _FRAMES:
        raise InputError(f"frame: {given!r} given, expected 'previous' (plan from s) or 'current' (plan from s')")
    return given


def _learn(name: str, given: object) -> bool:
    if not isinstance(given, (bool, np.bool_)):
        raise InputError(f"learn: {given!r} given, expected True or False (pure planning)")
    return bool(given)


def _schedule(name: str, meaning: str, default: str | Depends, *allowed: str, label: str = "") -> Setting:
    def check(name: str, given: object) -> str:
        if given not in allowed:
            words = " or ".join((", ".join(map(repr, allowed[:-1])), repr(allowed[-1])))
            raise InputError(f"{name}: {given!r} given, expected {words}")
        return str(given)

    word, of = choice(name, meaning, *allowed, label=label), cast(Any, Literal[allowed])
    return replace(word, check=check, of=of, default=default)


def _schedule_of_epsilon(given: Mapping[str, Any]) -> str:
    return "linear" if given["schedule"] == "linear" else "constant"


def _horizon(given: Mapping[str, Any]) -> int | None:
    return None if any(given.get(name) is not None for name in ("weights", "lam", "option")) else 1


def with_setting(setting: str, default: object, *values: Any) -> Depends:
    """A default that applies if another setting has one of these values (by default: any value)."""
    words = f"{default} with {setting}" + ("" if not values else f" {' or '.join(map(repr, values))}")

    def on(given: Mapping[str, Any]) -> Any:
        found = given.get(setting)
        return default if found is not None and (not values or found in values) else None

    return Depends(on, words)


def _table(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


_FRAMES = "previous", "current"
_FRAME: Any = Literal[_FRAMES]
_PROBABILITY, _FEATURES = "a probability in [0, 1]", "a map of `backcast.features`, or a matrix (S, d)"
_RECIPE: Any = dict[str, Any] | str
_NUMBERS: Any = float | tuple[float, ...]
COMMON = _table(  # settings of all kinds, where they apply; arguments of `backcast.agent`
    Setting(
        "frame", "which state to plan from: s or s'", _frame, _FRAME, '"previous" or "current"',
        form=Form(choices=_FRAMES, words=("s, the previous", "s′, the current")), label="plans from",
    ),
    Setting(
        "learn", "learn from real steps as well; False: pure planning", _learn, bool, "True or False",
        default=True, form=Form(), label="learns from real steps too",
    ),
    _step_size("alpha", "step size of learning", "α", USUAL_STEP_SIZE, "step size α"),
    _step_size(
        "alpha_model", "step size of the model", "αₘ", USUAL_STEP_SIZE, "model’s step size αₘ", "with a network only",
    ),
    _step_size(
        "alpha_plan", "step size of planning", "αₚ", Depends(lambda given: given["alpha"], "alpha"),
        "planning’s step size αₚ",
    ),
    Setting(
        "epsilon", "probability of a random action", _rate(_PROBABILITY),
        _NUMBERS, f"{_PROBABILITY}, or one for each episode", "ε", 0.5, Form(0, 1), "exploration ε",
    ),
    _schedule(
        "schedule",
        "step sizes and ε fall to 0, stay constant, or step sizes are divided by an entry's number of updates",
        "linear", "linear", "constant", "average",
    ),
    _schedule(
        "epsilon_schedule", "ε falls to 0 over the run, or stays constant",
        Depends(_schedule_of_epsilon, "linear if schedule is, else constant"), "linear", "constant",
        label="schedule of ε",
    ),
)  # fmt: skip
SETTINGS = _table(  # settings of some kinds
    Setting("features", "features in which the values are linear", _features, _RECIPE, _FEATURES),
    Setting(
        "model_features", "features on which a linear model is conditioned, if not the same", _features,
        _RECIPE, _FEATURES,
    ),
    choice("model", "how the model is estimated", "", default=MODEL),  # see `backcast.agents.estimators`
    choice("learn_by", "how a linear model is learned: by gradient steps or by least squares", "lms", "rls", lab=()),
    number(
        "ridge", "ridge of least squares", 0, np.inf, "a number above 0", form=None,
        default=with_setting("learn_by", RIDGE, "rls"),
    ),
    Setting(
        "memory", "number of remembered observations of a Box, or (with a network) transitions", _memory, int,
        "a whole number; with features 2 or more; with a network 0 means no replay and no target network",
        default=Depends(_usual_memory, f"{MEMORY} with features, {TRANSITIONS} with network"),
    ),
    whole(
        "horizon", "number of steps of a model or of a return", 1, 1000, symbol="n", form=Form(1, 20),
        default=Depends(_horizon, "1 unless weights, lam or option is given"),
    ),
    Setting(
        "weights", "weights of a mixture of models over 1, 2, … steps", _weights, tuple[float, ...],
        "numbers that sum to 1",
    ),
    Setting(
        "lam", "λ of a λ-model or of traces", _lam, _NUMBERS, "a number in [0, 1], or one for each state", "λ",
        form=Form(0, 1), label="λ",
    ),
    choice(
        "lam_by", "how a λ-model is learned: by Monte Carlo along the trajectory, or by TD", "mc", "td",
        default=with_setting("lam", "mc"), label="λ-model learned by",
    ),
    Setting("option", "option whose model is learned", _option, dict[str, Any], "`backcast.Option`"),
    switch(
        "conditioned", "separate rows for the actions that led here, and a backward policy", default=False,
        label="conditioned on the action",
    ),
    whole("sample", "planning updates after each step", 0, form=Form(0, 200), label="samples"),
    whole("top", "number of the most probable states to plan with", form=Form(1, 1000), label="most likely only"),
    whole("depth", "number of levels of predecessors that are corrected", form=Form(1, 4), default=1),
    number(
        "forget", "rate at which the model forgets", 0, 1, "a rate in [0, 1)", below=True, form=Form(0, 0.999),
        default=0.0,
    ),
    switch(
        "importance", "importance weights, to model the greedy policy", symbol="importance weights", default=False,
        label="importance weights",
    ),
    choice("traces", "what a second visit does to a trace", "accumulating", "replacing", default="accumulating"),
    choice(
        "variant", "whose algorithm, which determines the priorities", "moore-atkeson", "peng-williams",
        "mcmahan-gordon", default="moore-atkeson",
    ),
    number("bonus", "bonus κ in imagined rewards of pairs not tried for long", 0, form=Form(0, 1)),
    whole("buffer", "number of remembered transitions or residuals", form=Form(1, 100_000)),
    Setting(
        "prior", "prior assumptions about pairs seen rarely or never", _prior, bool | str | tuple[str, ...],
        f"True or False, or some of {', '.join(PIECES)}", form=Form(),
    ),
    number(
        "gate", "smallest gain of an update, relative to the mean gain of real steps", 0, symbol="κ", form=Form(0, 100)
    ),
    number("exponent", "exponent of priorities", 0, form=Form(0, 4)),
    Setting(
        "network", "network that computes the values", _network, _RECIPE,
        "a network of `backcast.networks`, or a function from a key to an Equinox module",
    ),
    whole("batch", "number of transitions in a batch", form=None, default=with_setting("network", 32)),
    whole("every", "real steps between two updates of a network", form=None, default=with_setting("network", 1)),
    whole(
        "target_every", "real steps between two updates of the target network", form=None,
        default=with_setting("network", 100),
    ),
    replace(
        switch("double", "double Q-learning: the online network selects the action, the target network evaluates it"),
        form=None, default=with_setting("network", False),
    ),
    Setting(
        "optimiser", "optimiser of the networks", _optimiser, str,
        '"adam", "sgd" or a transformation of optax',
        default=with_setting("network", "adam"),
    ),
    Setting(
        "loss", "loss of the value network, as a function of the TD error", _loss, str,
        '"squared", "huber" or a function of errors',
        default=with_setting("network", "squared"),
    ),
    whole(
        "candidates", "number of remembered pairs that a contrastive model plans with, besides those of the batch",
        form=None, default=with_setting("network", 64),
    ),
    whole(
        "components", "number of components of a generative model's mixture", form=None,
        default=with_setting("model", 4, "generative"),
    ),
    choice(
        "objective", "objective of a network's model: the likelihood, or the error of its expected correction",
        "likelihood", "planner-aware", lab=(), default=with_setting("network", "likelihood"),
    ),
    choice(
        "precision", "floating-point type of the networks", "float32", "float64", lab=(),
        default=with_setting("network", "float32"),
    ),
    choice(
        "encoder", "whether models have their own bodies or share that of the values", "separate", "shared", lab=(),
        default=with_setting("network", "separate"),
    ),
)  # fmt: skip


def describe(settings: Settings) -> str:
    """Settings as part of an agent's name: `,model=counts,horizon=2`."""
    return "".join(f",{name}={_short(value)}" for name, value in settings)


def _short(value: object) -> str:
    if isinstance(value, Option):
        return "given"
    if isinstance(value, FeatureMap | Network):
        return value.name
    if callable(value) or (hasattr(value, "init") and hasattr(value, "update")):
        return str(getattr(value, "__name__", "given")).strip("<>")
    if isinstance(value, tuple):
        return "-".join(map(_in_a_list, value[:6])) + ("…" if len(value) > 6 else "")
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def _in_a_list(value: object) -> str:
    return f"{value:g}" if type(value) in (int, float) else _short(value)
