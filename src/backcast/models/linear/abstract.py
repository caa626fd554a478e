"""Abstract models: learn the correction of planning directly (appendix C.3).

An abstract model says neither what follows nor what came before, only how the weights should change when planning
from a state: Δ(z) = D z, and planning is w ← w + α Δ(z(s)).
"""

from typing import NamedTuple

from backcast.core.arrays import Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import ALPHA_MODEL, Step
from backcast.models.linear.readable import LearnedCorrections, LearnedLinear
from backcast.models.linear.regression import Regression
from backcast.values.linear import LinearValues
from backcast.values.targets import td_error


@part
class CorrectionModel(NamedTuple):
    """Corrections Δ(z) of the weights, for the state after a step (looking backward) or the one before it (forward).

    Δ(z) is the expected semi-gradient correction: D by regression of δ φ(s, a) on z, with the error δ before each step
    is learned from. Errors change while the agent learns, and D tracks them with some lag. Looking forward in control,
    it averages the corrections of actions in proportion to how often they were taken.

    Attributes:
        correction: regression with an output for each weight.
        ahead: whether it is conditioned on the state before a step.
    """

    correction: Regression
    ahead: bool

    def learn(self, values: LinearValues, step: Step, discount: float, rates: Vector) -> None:
        """One step of D."""
        s = step.s if self.ahead else step.s2
        features, start = values.features, step.a * values.n_features
        delta = td_error(values, step, discount)
        self.correction.prepare(s, 0)
        for k in range(features.offset[step.s], features.offset[step.s + 1]):
            self.correction.subtract(start + features.which[k], delta * features.size[k])
        self.correction.adjust(s, 0, rates[ALPHA_MODEL])

    @in_python
    def readable(self, values: LinearValues) -> LearnedLinear:
        """Its corrections, and nothing else."""
        return LearnedCorrections(self, values)
