"""Agents whose values are linear in features: their values, and the models of forward and backward planning."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from backcast.agents import neural_makers
from backcast.agents.estimators import ESTIMATORS, Estimated, register_estimator
from backcast.agents.kinds import Agent
from backcast.agents.settings import RESIDUALS, RIDGE, with_setting
from backcast.agents.setup import Setup
from backcast.core.arrays import Indices
from backcast.core.setting_types import Depends
from backcast.models.contract import ModelPart
from backcast.models.linear.abstract import CorrectionModel
from backcast.models.linear.expectation import BackwardExpectation, BackwardFeatures, ForwardExpectation
from backcast.models.linear.exponential import (
    LIKELIHOOD,
    META,
    PLANNER_AWARE,
    ExponentialBackward,
    ExponentialFamily,
    ExponentialForward,
)
from backcast.models.linear.least_squares import forward_least_squares
from backcast.models.linear.regression import Regression, regression
from backcast.models.linear.rewards import BilinearReward
from backcast.planners.linear import (
    DrawnFeatures,
    ExpectedOutcomes,
    ExpectedTargets,
    LearnedCorrection,
    MeanFeatures,
    SampledOutcomes,
)
from backcast.values.linear import constant

_ALONG_NO_STATE = "its updates are along the features of no state, and those of states are counted"


class LinearModels:
    """Makes the models of one agent: each is a regression on features z(s).

    Attributes:
        inputs: z(s), of width D.
        values: the agent's values.
        forward: whether models look forward.
    """

    def __init__(self, setup: Setup, agent: Agent, forward: bool) -> None:
        assert setup.values is not None
        self.setup, self.agent, self.values, self.forward = setup, agent, setup.values, forward
        self.inputs, self.n_inputs = self.values.features, self.values.n_features
        if agent.shared("model_features") is not None:
            self.inputs, self.n_inputs, _ = setup.features(agent.shared("model_features"))
        self.width = int(np.diff(self.values.features.offset).max(initial=0))
        by_rls = agent.shared("learn_by") == "rls"
        self.ridge = agent.shared("ridge", RIDGE) if by_rls else None

    def abstract(self) -> Estimated:
        """A model of the corrections themselves."""
        return CorrectionModel(self._fit(self.values.w.size, self._corrected()), self.forward), LearnedCorrection()

    def naive(self) -> Estimated:
        """A model of the mean of the preceding features."""
        return self._of_features(0), MeanFeatures()

    def gaussian(self) -> Estimated:
        """A model of the mean of the preceding features, with residuals to sample around it."""
        samples, residuals = self.agent.shared("sample", 1), self.agent.shared("buffer", RESIDUALS)
        return self._of_features(residuals), DrawnFeatures(samples, np.zeros(self.values.w.size), self.setup.stream())

    def expectation(self) -> Estimated:
        """A model of expected features, or of a measure over pairs."""
        return self._planned(self._expectation())

    def exponential(self, objective: int) -> Estimated:
        """An exponential family, learned by this objective."""
        return self._planned(self._exponential(objective))

    def _planned(self, model: ModelPart) -> Estimated:
        """A model of outcomes, and how to plan with it."""
        samples, step_sizes = self.agent.shared("sample"), self.agent.step_sizes(self.setup)
        if samples is not None:
            return model, SampledOutcomes(samples, self.setup.stream(), step_sizes)
        if self.forward:
            return model, ExpectedTargets(step_sizes)
        return model, ExpectedOutcomes(np.zeros(self.setup.n_states * self.setup.n_actions), step_sizes)

    def _expectation(self) -> ModelPart:
        n, actions = self.values.n_features, self.setup.n_actions
        if self.forward and self.ridge is not None:
            return forward_least_squares(self.inputs, self.n_inputs, n, actions, self.ridge)
        if self.forward:
            return ForwardExpectation(self._fit(n + 1, self._fan(self.width, beside=1), actions))
        measure = self._fit(self.setup.n_states * actions, self._fan(1), ridge=self.ridge)
        return BackwardExpectation(measure, self._rewards())

    def _of_features(self, residuals: int) -> BackwardFeatures:
        outputs = self.values.w.size
        return BackwardFeatures(
            mean=self._fit(outputs, self._fan(self.width), ridge=self.ridge),
            rewards=self._rewards(),
            residuals=np.zeros((residuals, outputs)),
            seen=np.zeros(1),
            by_pair=self.setup.is_prediction,
        )

    def _exponential(self, objective: int) -> ModelPart:
        setup, branches = self.setup, 1 if self.forward else self.setup.n_actions
        outcomes, outputs = setup.n_states * branches, self.n_inputs * branches
        family = ExponentialFamily(
            psi=self._fit(outputs, None, setup.n_actions if self.forward else 1),
            outcomes=self.inputs,
            chance=np.zeros(outcomes),
            delta=np.zeros(outcomes),
            known=np.array([setup.n_states]) if setup.observations is None else setup.observations.known,
            n_inputs=self.n_inputs,
            branches=branches,
        )
        scale = np.zeros(2)
        if self.forward:
            goes_on = np.ones(setup.n_states) if setup.is_prediction else np.zeros(setup.n_states)
            return ExponentialForward(family, self._rewards(), goes_on, scale, objective)
        return ExponentialBackward(family, self._rewards(), np.zeros(self.values.w.size), scale, objective)

    def _rewards(self) -> BilinearReward:
        """A reward model: bilinear in the features of both states in prediction; of the later state only in control."""
        setup, n = self.setup, self.values.n_features
        if setup.is_prediction:
            return BilinearReward(self._fit(n, self._fan(self.width), fills=False), self.values.features)
        only = constant(setup.n_states)
        if self.forward:
            return BilinearReward(regression(only, 1, n, np.array([n])), self.values.features)
        return BilinearReward(self._fit(1, self._fan(1), fills=False), only)

    def _fan(self, width: int, beside: int = 0) -> Indices | None:
        """The number of outputs that can follow or lead to each state, plus `beside`; None if unknown."""
        world = self.setup.world
        if world is None:
            return None
        if not self.forward:
            return world.fan_in * width + beside
        return world.fan_out.reshape(-1, self.setup.n_actions).max(axis=1) * width + beside

    def _corrected(self) -> Indices | None:
        """The number of weights that the correction of each state can change; looking forward, its own."""
        if not self.forward:
            return self._fan(self.width)
        return np.full(self.setup.n_states, self.setup.n_actions * self.width)

    def _fit(
        self, outputs: int, fan: Indices | None, n_actions: int = 1, fills: bool = True, ridge: float | None = None
    ) -> Regression:
        """A regression on z(s), with room for everything that can be observed.

        In a step of LMS a feature takes over outputs from all others that are active, and over time from all.
        """
        known = self.setup.world is not None
        lone = int(np.diff(self.inputs.offset).max(initial=0)) <= 1
        if not known:
            room = np.zeros(self.n_inputs, dtype=np.int64)
        elif fan is None or (fills and ridge is None and not lone):
            room = np.full(self.n_inputs, outputs)
        else:
            states = np.repeat(np.arange(self.setup.n_states), np.diff(self.inputs.offset))
            reach = np.bincount(self.inputs.which, fan[states], self.n_inputs)
            room = np.minimum(reach.astype(np.int64), outputs)
        return regression(self.inputs, self.n_inputs, outputs, np.tile(room, n_actions), n_actions, ridge)


@register_estimator("expectation", linear=True, takes=("learn_by",))
def expectation(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """Expected features of the successor; looking backward, a measure over the preceding pairs."""
    return LinearModels(setup, agent, forward).expectation()


@register_estimator(
    "naive",
    linear=True,
    takes=("learn_by",),
    not_forward="the mean of the next features is enough there; use 'expectation'",
    not_averaged=_ALONG_NO_STATE,
)
def naive(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """Looking backward, the mean of the preceding features, used as if it were the features of one pair."""
    return LinearModels(setup, agent, forward).naive()


@register_estimator("likelihood", linear=True, takes=("sample",))
def likelihood(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """An exponential family over the known states, learned by maximum likelihood: the softmax of linear models."""
    return LinearModels(setup, agent, forward).exponential(LIKELIHOOD)


@register_estimator("planner-aware", linear=True, takes=("sample",))
def planner_aware(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """The same family as "likelihood", learned from the error of its expected correction."""
    return LinearModels(setup, agent, forward).exponential(PLANNER_AWARE)


@register_estimator(
    "gaussian",
    linear=True,
    takes=("learn_by", "buffer", "sample"),
    not_forward="its samples would make the update of 'expectation' on average; use 'expectation'",
    not_averaged=_ALONG_NO_STATE,
)
def gaussian(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """Looking backward, features drawn around their mean."""
    return LinearModels(setup, agent, forward).gaussian()


@register_estimator(
    "abstract",
    linear=True,
    by_network=neural_makers.abstract,
    not_planner_aware="it learns the correction itself, and has no outcomes",
    not_averaged=_ALONG_NO_STATE,
)
def abstract(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """The expected corrections themselves, as functions of the features."""
    return LinearModels(setup, agent, forward).abstract()


@register_estimator(
    "meta",
    linear=True,
    takes=("sample",),
    not_averaged="it is learned for one step size of planning, but each state would have its own",
)
def meta(setup: Setup, agent: Agent, forward: bool) -> Estimated:
    """The same family as "likelihood", learned to minimise the error that is left after planning with it."""
    return LinearModels(setup, agent, forward).exponential(META)


def _learn_by(given: Mapping[str, Any]) -> str | None:
    """The default, LMS, for models to which the setting applies."""
    model = ESTIMATORS.get(given.get("model", "expectation"))
    return "lms" if "features" in given and model is not None and "learn_by" in model.takes else None


LEARN_BY = Depends(_learn_by, "lms with features")
BUFFER = with_setting("model", RESIDUALS, "gaussian")
