"""Agents whose values are linear in features: their values, and the models of forward and backward planning."""

from typing import Any

import numpy as np

from backcast.agents.kinds import Agent, Setup
from backcast.core.arrays import Indices
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

_OBJECTIVES = {"likelihood": LIKELIHOOD, "planner-aware": PLANNER_AWARE, "meta": META}
RIDGE = 1e-6
_RESIDUALS = 50


class LinearModels:
    """Makes the models of one agent: each is a regression on the features z(s) that models are conditioned on.

    Attributes:
        inputs: z(s), of width D.
        values: of the agent.
        forward: whether models look forward.
    """

    def __init__(self, setup: Setup, agent: Agent, forward: bool) -> None:
        assert setup.values is not None
        self.setup, self.agent, self.values, self.forward = setup, agent, setup.values, forward
        self.inputs, self.n_inputs = self.values.features, self.values.n_features
        if agent.get("model_features") is not None:
            self.inputs, self.n_inputs, _ = setup.features(agent.get("model_features"))
        self.width = int(np.diff(self.values.features.offset).max(initial=0))
        by_rls = agent.get("learn_by") == "rls"
        self.ridge = agent.get("ridge", RIDGE) if by_rls else None

    def build(self) -> tuple[Any, Any]:
        """The model that the agent's settings name, and how it is planned with."""
        name, samples, weights = self.agent.get("model", "expectation"), self.agent.get("sample"), self.values.w.size
        if name == "abstract":
            return CorrectionModel(self._fit(weights, self._corrected()), self.forward), LearnedCorrection()
        if name == "naive":
            return self._of_features(0), MeanFeatures()
        if name == "gaussian":
            drawn = DrawnFeatures(samples or 1, np.zeros(weights), self.setup.stream())
            return self._of_features(self.agent.get("buffer", _RESIDUALS)), drawn
        model = self._exponential(_OBJECTIVES[name]) if name in _OBJECTIVES else self._expectation()
        if samples is not None:
            return model, SampledOutcomes(samples, self.setup.stream())
        pairs = self.setup.n_states * self.setup.n_actions
        return model, ExpectedTargets() if self.forward else ExpectedOutcomes(np.zeros(pairs))

    def _expectation(self) -> Any:
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

    def _exponential(self, objective: int) -> Any:
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
        """Between features of both states in prediction, of the later state alone in control."""
        setup, n = self.setup, self.values.n_features
        if setup.is_prediction:
            return BilinearReward(self._fit(n, self._fan(self.width), fills=False), self.values.features)
        only = constant(setup.n_states)
        if self.forward:
            return BilinearReward(regression(only, 1, n, np.array([n])), self.values.features)
        return BilinearReward(self._fit(1, self._fan(1), fills=False), only)

    def _fan(self, width: int, beside: int = 0) -> Indices | None:
        """How many outputs can follow from, or lead to, each state, and `beside` them; None if that is not known."""
        world = self.setup.world
        if world is None:
            return None
        if not self.forward:
            return world.fan_in * width + beside
        return world.fan_out.reshape(-1, self.setup.n_actions).max(axis=1) * width + beside

    def _corrected(self) -> Indices | None:
        """How many weights the correction of each state can touch; looking forward, its own of all actions."""
        if not self.forward:
            return self._fan(self.width)
        return np.full(self.setup.n_states, self.setup.n_actions * self.width)

    def _fit(
        self, outputs: int, fan: Indices | None, n_actions: int = 1, fills: bool = True, ridge: float | None = None
    ) -> Regression:
        """A regression on z(s), with room for what can be observed.

        In a step of LMS a feature takes over outputs from all others that are present, and in the end from all.
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
