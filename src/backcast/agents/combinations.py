"""Which settings cannot be together, and why."""

from typing import Any

import numpy as np

from backcast.agents.kinds import Kind
from backcast.agents.settings import LINEAR
from backcast.core.errors import InputError

_DEEPEST = 5
_OF_TABLES = ("horizon", "weights", "lam", "option", "conditioned", "forget", "importance", "top", "depth")
_OF_LINEAR = ("model_features", "learn_by", "ridge", "memory", "buffer")


def refuse_what_makes_no_sense(kind: Kind, chosen: dict[str, Any]) -> None:
    """Raise InputError if settings cannot be together, with the reason."""
    for applies, reason in _reasons_about_features(kind, chosen) + _reasons(kind, chosen):
        if applies:
            raise InputError(reason)


def _reasons(kind: Kind, chosen: dict[str, Any]) -> list[tuple[bool, str]]:
    """What cannot be together, and why; of every pair whether it is the case."""
    forward, plans = kind.direction == "forward", kind.direction in ("forward", "backward")
    model = "true" if kind.true else chosen.get("model")
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
            kind.direction == "both" and softmax,
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


def _reasons_about_features(kind: Kind, chosen: dict[str, Any]) -> list[tuple[bool, str]]:
    """What cannot be together with features, or without them, and why."""
    plans = kind.direction in ("forward", "backward") and not kind.true
    features, forward = "features" in chosen, plans and kind.direction == "forward"
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
        ("memory" in chosen and not features, "memory: it is for values of features; give features as well"),
        (
            kind.direction == "both" and linear,
            f"model: {model!r} is a model of features, in one direction; for both at once use 'counts'",
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
            features and kind.direction in ("backward", "both") and bool(selects),
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
