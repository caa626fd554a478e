"""Estimators: how a model is estimated, chosen by the setting `model`.

An estimator is a function from a setup, an agent and a direction (whether to look forward) to a model and how to plan
with it. `register_estimator` adds one; Backcast's own are registered in the same way. Its attributes determine what it
can be combined with.
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
    """A way to estimate the model of forward or backward planning.

    Attributes:
        name: value of the setting `model`.
        summary: one line for lists and docs.
        build: function from a setup, an agent and whether to look forward to a model and how to plan with it.
        called: its name in messages; by default the name in quotes.
        linear: whether it is a model of features, and needs them, rather than of numbered states.
        true: whether it knows the world instead of learning it.
        network: whether it needs a network.
        by_network: function that makes it with a network (`backcast.agents.neural_makers`); None if not possible.
        far_by_network: whether a network can also compute it over several steps, looking backward.
        leaves: whether it leaves some probability to outcomes that were never observed (`rows.width` above 0).
        takes: which of the settings `learn_by`, `buffer` and `sample`, which only apply to some models of features,
            apply to it.
        not_forward: why it cannot look forward; empty if it can.
        not_backward: why it cannot look backward; empty if it can.
        not_planner_aware: why a network cannot learn it by objective="planner-aware"; empty if it can.
        not_averaged: why its updates cannot be averaged, schedule="average"; empty if they can.
    """

    name: str
    summary: str
    build: Estimate
    called: str = ""
    linear: bool = False
    true: bool = False
    network: bool = False
    by_network: Callable[..., Any] | None = None
    far_by_network: bool = False
    leaves: bool = False
    takes: tuple[str, ...] = ()
    not_forward: str = ""
    not_backward: str = ""
    not_planner_aware: str = ""
    not_averaged: str = ""

    @property
    def function(self) -> Estimate:
        """The registered function."""
        return self.build

    @property
    def words(self) -> str:
        """Its name in messages."""
        return self.called or repr(self.name)


ESTIMATORS: dict[str, Estimator] = {}


def register_estimator(name: str, **more: Any) -> Callable[[E], E]:
    """Decorator: make a function (setup, agent, forward) → (model, how) available as model="name".

    Its docstring is shown by `backcast list`. All kinds with Backcast's setting `model` then accept it.

    Args:
        name: value of the setting `model`: lower-case letters, digits and "-".
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
    """Whether a name is valid for an estimator: lower-case letters, digits and "-"."""
    return isinstance(name, str) and re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) is not None


def add_estimator(estimator: Estimator) -> None:
    """Add an estimator, and allow it in the setting `model`."""
    ESTIMATORS[estimator.name] = estimator
    of_states = tuple(name for name, each in ESTIMATORS.items() if not each.linear and not each.network)
    meaning = SETTINGS["model"].meaning
    SETTINGS["model"] = choice("model", meaning, *ESTIMATORS, lab=of_states, default=MODEL)


def neural_names() -> list[str]:
    """The names of the models that a network can compute."""
    return [name for name, each in ESTIMATORS.items() if each.by_network is not None]


def linear_names() -> list[str]:
    """The names of the models of features."""
    return [name for name, each in ESTIMATORS.items() if each.linear]
