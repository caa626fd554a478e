"""The expected reward of a step between two states, bilinear in their features (the paper's Θ_r, appendix C.1)."""

from typing import NamedTuple

from backcast.core.compiling import part
from backcast.models.linear.regression import Regression
from backcast.values.linear import Features


@part
class BilinearReward(NamedTuple):
    """Rewards o(s̃)ᵀ Θ z(s) ≈ E[R | s̃, s]: for a state s conditioned on and an outcome s̃.

    In prediction both are features. In control the reward belongs to the later state only, as in the paper's
    experiments: the features of the earlier one are a constant.

    Attributes:
        theta: row j holds Θ's weights of feature z_j; estimate(s) gives Θ z(s).
        outcomes: o(s̃).
    """

    theta: Regression
    outcomes: Features

    def fit_reward(self, s: int, outcome: int, r: float, alpha: float) -> None:
        """Make a step of LMS: Θ ← Θ + α (r − oᵀ Θ z) o zᵀ, relative to the largest ‖o‖² ‖z‖²."""
        self.theta.estimate(s, 0)
        error = (r - self.between(outcome)) / self.outcomes.norm
        self.theta.clear()
        for k in range(self.outcomes.offset[outcome], self.outcomes.offset[outcome + 1]):
            self.theta.subtract(self.outcomes.which[k], error * self.outcomes.size[k])
        self.theta.adjust(s, 0, alpha)

    def condition_on(self, s: int) -> None:
        """Condition on s: theta.y is Θ z(s), which `between` multiplies by the features of an outcome."""
        self.theta.estimate(s, 0)

    def between(self, outcome: int) -> float:
        """The expected reward between an outcome and the state conditioned on."""
        return self.outcomes.product(outcome, self.theta.y, 0)
