"""Estimators: how a model is estimated, which is what the setting `model` names.

An estimator is a function from a setup, an agent and whether to look forward to a model and to how it is planned with.
`register_estimator` adds one; Backcast's own are registered in the same way. What it can be combined with follows from
what it says of itself.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from backcast.agents.settings import MODEL, SETTINGS
from backcast.core.errors import InputError
from backcast.core.registry import Registered, first_line, refuse_taken
from backcast.core.setting_types import choice
from backcast.models.contract import ModelPart
from backcast.planners.backward import Correction
from backcast.planners.forward import Reevaluation

Estimated = tuple[ModelPart, Correction[Any, Any] | Reevaluation[Any, Any]]
Estimate = Callable[..., Estimated]  # from a `Setup`, an `Agent` and whether to look forward
E = TypeVar("E", bound=Estimate)


@dataclass(frozen=True)
class Estimator(Registered):
    """One way to estimate the model of forward and backward planning.

    Attributes:
        name: what the setting `model` calls it.
        summary: one line for lists and docs.
        build: from a setup, an agent and whether to look forward to a model and how it is planned with.
        called: what sentences call it; by default its name in quotes.
        linear: whether it is of features, and needs them, rather than of states that have numbers.
        true: whether it knows the world, rather than learns.
        network: whether it is computed by a network, and needs one.
        leaves: whether it leaves some probability to outcomes that were never observed (`rows.width` above 0).
        takes: which of the settings `learn_by`, `buffer` and `sample`, which make no difference to all models of
            features, make one to it.
        not_forward: why it cannot look forward; empty if it can.
        not_backward: why it cannot look backward; empty if it can.
        not_averaged: why its updates cannot be averaged, schedule="average"; empty if they can.
    """

    name: str
    summary: str
    build: Estimate
    called: str = ""
    linear: bool = False
    true: bool = False
    network: bool = False
    leaves: bool = False
    takes: tuple[str, ...] = ()
    not_forward: str = ""
    not_backward: str = ""
    not_averaged: str = ""

    @property
    def function(self) -> Estimate:
        """What was registered."""
        return self.build

    @property
    def words(self) -> str:
        """What sentences call it."""
        return self.called or repr(self.name)


ESTIMATORS: dict[str, Estimator] = {}


def register_estimator(name: str, **more: Any) -> Callable[[E], E]:
    """Decorator: make a function (setup, agent, forward) → (model, how) available as model="name".

    Its docstring is shown by `backcast list`. All kinds that take Backcast's setting `model` then take it.

    Args:
        name: what the setting `model` calls it: small letters, digits and "-".
        more: the other attributes of `Estimator`.
    """

    def add(build: E) -> E:
        if not is_name(name):
            raise InputError(f"model: {name!r} given, expected small letters, digits and '-'")
        refuse_taken("model", name, ESTIMATORS.get(name))
        add_estimator(Estimator(name, first_line(build.__doc__), build, **more))
        return build

    return add


def is_name(name: object) -> bool:
    """Whether an estimator may be called so: small letters, digits and "-"."""
    return isinstance(name, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) is not None


def add_estimator(estimator: Estimator) -> None:
    """Have an estimator, and a setting `model` that allows it."""
    ESTIMATORS[estimator.name] = estimator
    of_states = tuple(name for name, each in ESTIMATORS.items() if not each.linear and not each.network)
    meaning = SETTINGS["model"].meaning
    SETTINGS["model"] = choice("model", meaning, *ESTIMATORS, lab=of_states, default=MODEL)


def linear_names() -> list[str]:
    """The names of the models of features."""
    return [name for name, each in ESTIMATORS.items() if each.linear]
