"""The suites of `backcast.testing`, quicker: without what would compile every agent twice, and with less experience."""

import pytest

from backcast import testing


class AgentConformance(testing.AgentConformance):
    """Runs are compiled; their comparison with the stepwise driver, whose kernels are others, is interpreted.

    Compiled, it is made for the kinds of the paper (`tests/agents/test_conformance.py`) and, slow, for all kinds
    (`tests/drivers/test_interpreted.py`).
    """

    @pytest.mark.interpreted
    def test_stepwise_and_compiled_are_the_same(self):
        super().test_stepwise_and_compiled_are_the_same()


class ModelConformance(testing.ModelConformance):
    """A third of the experience has to be enough: interpreted, 600 episodes take seconds."""

    experience = 200
