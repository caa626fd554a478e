"""Backcast's own kinds pass the suite that it offers to others.

The kinds of the paper are compiled, with all that is made of the same parts. Settings that make other parts are
interpreted: `tests/drivers/test_interpreted.py` compiles their runs, and finds the same bits.
"""

import pytest

from backcast import testing
from backcast.testing import ExpectedPlanningConformance
from conforming import AgentConformance, ModelConformance


class TestTD(testing.AgentConformance):
    kind = "td"
    test_without_planning_it_is_model_free = None


class TestQ(testing.AgentConformance):
    kind = "q"
    test_without_planning_it_is_model_free = None


class TestForward(testing.AgentConformance, testing.ModelConformance):
    kind = "forward"


@pytest.mark.interpreted
class TestTDThatAverages(AgentConformance):
    kind = "td"
    options = {"schedule": "average"}  # noqa: RUF012
    test_without_planning_it_is_model_free = None


@pytest.mark.slow
class TestForwardThatAverages(AgentConformance, ModelConformance):
    kind = "forward"
    options = {"schedule": "average", "alpha": 0.9}  # noqa: RUF012


@pytest.mark.slow
class TestBackwardThatAverages(AgentConformance, ModelConformance):
    kind = "backward"
    options = {"schedule": "average", "model": "counts", "epsilon_schedule": "linear"}  # noqa: RUF012


class TestForwardFromNext(testing.AgentConformance, testing.ModelConformance):
    kind = "forward"
    options = {"frame": "current", "alpha": 0.5}  # noqa: RUF012


class TestBackward(testing.AgentConformance, testing.ModelConformance):
    kind = "backward"


class TestBackwardFromPrevious(testing.AgentConformance, testing.ModelConformance):
    kind = "backward"
    options = {"frame": "previous", "alpha": 0.5}  # noqa: RUF012


class TestTrueForward(testing.AgentConformance, testing.ModelConformance, ExpectedPlanningConformance):
    kind = "true-forward"
    true = True


class TestTrueBackward(testing.AgentConformance, testing.ModelConformance, ExpectedPlanningConformance):
    kind = "true-backward"
    true = True


@pytest.mark.interpreted
class TestBackwardCounts(AgentConformance, ModelConformance):
    kind = "backward"
    options = {"model": "counts", "alpha": 0.5}  # noqa: RUF012


@pytest.mark.interpreted
class TestBackwardConditioned(AgentConformance, ModelConformance):
    kind = "backward"
    options = {"conditioned": True, "frame": "previous"}  # noqa: RUF012


@pytest.mark.interpreted
class TestForwardCounts(AgentConformance, ModelConformance):
    kind = "forward"
    options = {"model": "counts", "alpha": 0.5}  # noqa: RUF012
    test_value_updates_are_counted = None  # an action never tried is not updated, and some may be right already


@pytest.mark.interpreted
class TestBackwardOverThreeSteps(AgentConformance):
    kind = "backward"
    options = {"horizon": 3, "alpha": 0.5}  # noqa: RUF012


@pytest.mark.interpreted
class TestBackwardLambda(AgentConformance):
    kind = "backward"
    options = {"lam": 0.5, "model": "counts"}  # noqa: RUF012


@pytest.mark.interpreted
class TestBackwardLambdaByTD(AgentConformance):
    kind = "backward"
    options = {"lam": 0.5, "lam_by": "td"}  # noqa: RUF012
    test_value_updates_are_counted = None  # the first state's row may hold ends, whose values are right already


@pytest.mark.interpreted
class TestForwardOverThreeSteps(AgentConformance):
    kind = "forward"
    options = {"horizon": 3, "model": "counts"}  # noqa: RUF012
    test_value_updates_are_counted = None  # as for counts


@pytest.mark.interpreted
class TestSampledBackward(AgentConformance):
    kind = "backward"
    options = {"sample": 4}  # noqa: RUF012
    test_value_updates_are_counted = None  # one value may be drawn twice


@pytest.mark.interpreted
class TestBoth(AgentConformance):
    kind = "both"
    options = {"alpha": 0.5}  # noqa: RUF012
    test_value_updates_are_counted = None  # one value may be planned forward and backward


@pytest.mark.interpreted
class TestBlend(AgentConformance):
    kind = "blend"
    test_without_planning_it_is_model_free = None  # it has no step size
    test_value_updates_are_counted = None  # its planner learns from real steps


@pytest.mark.interpreted
class TestTrueBackwardOverTwoSteps(AgentConformance):
    kind = "true-backward"
    options = {"horizon": 2}  # noqa: RUF012
