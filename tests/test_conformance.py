"""Backcast's own kinds pass the suite that it offers to others."""

from backcast.testing import AgentConformance, ExpectedPlanningConformance, ModelConformance


class TestTD(AgentConformance):
    kind = "td"
    test_without_planning_it_is_model_free = None


class TestQ(AgentConformance):
    kind = "q"
    test_without_planning_it_is_model_free = None


class TestForward(AgentConformance, ModelConformance):
    kind = "forward"


class TestForwardFromNext(AgentConformance, ModelConformance):
    kind = "forward"
    options = {"frame": "current", "alpha": 0.5}  # noqa: RUF012


class TestBackward(AgentConformance, ModelConformance):
    kind = "backward"


class TestBackwardFromPrevious(AgentConformance, ModelConformance):
    kind = "backward"
    options = {"frame": "previous", "alpha": 0.5}  # noqa: RUF012


class TestTrueForward(AgentConformance, ModelConformance, ExpectedPlanningConformance):
    kind = "true-forward"
    true = True


class TestTrueBackward(AgentConformance, ModelConformance, ExpectedPlanningConformance):
    kind = "true-backward"
    true = True
