"""Agents whose values are linear in features pass the suites as well."""

import pytest

from backcast.testing import ExpectedPlanningConformance
from conforming import AgentConformance, ModelConformance

pytestmark = pytest.mark.interpreted
FEATURES = {"features": "onehot", "alpha": 0.5}


class TestQWithFeatures(AgentConformance):
    kind = "q"
    options = FEATURES
    test_without_planning_it_is_model_free = None


class TestBackwardCountsWithFeatures(AgentConformance, ModelConformance):
    kind = "backward"
    options = {**FEATURES, "model": "counts"}  # noqa: RUF012


class TestForwardCountsWithFeatures(AgentConformance, ModelConformance):
    kind = "forward"
    options = {**FEATURES, "model": "counts"}  # noqa: RUF012


class TestBackwardExpectation(AgentConformance):
    kind = "backward"
    options = FEATURES


class TestTrueForwardWithFeatures(ExpectedPlanningConformance):
    kind = "true-forward"
    options = FEATURES


class TestTrueBackwardWithFeatures(ExpectedPlanningConformance):
    kind = "true-backward"
    options = FEATURES


class TestTrueBackwardWithSharedFeatures(ExpectedPlanningConformance):
    """Of two features that states share."""

    kind = "true-backward"
    options = {"features": [[1.0, 0.5 * (s % 3)] for s in range(13)], "alpha": 0.5}  # noqa: RUF012
