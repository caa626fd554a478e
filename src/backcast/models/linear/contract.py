"""The interface of models of features for planners."""

from typing import Protocol

from backcast.values.linear import LinearValues


class WeighedOutcomes(Protocol):
    """A weight for each of a number of outcomes, conditioned on a state and an action."""

    def outcomes_of(self, s: int, a: int) -> int:
        """Condition on s and, looking forward, a; return the number of outcomes with a weight."""

    def chance_of(self, k: int) -> float:
        """The weight of the k-th of them: a probability, or an estimate of one, which may be negative."""


class OutcomesBefore(WeighedOutcomes, Protocol):
    """The outcomes are pairs that may have led to s."""

    def outcome(self, k: int) -> int:
        """The k-th of the pairs s̃·A + ã."""

    def reward_of(self, s: int) -> float:
        """The expected reward between s̃ and the state conditioned on."""


class OutcomesAfter(WeighedOutcomes, Protocol):
    """The outcomes are states that may follow."""

    def worth(self, values: LinearValues, s: int, discount: float) -> float:
        """The target of arriving in s: the reward, plus the discounted value unless s is terminal."""


class ExpectedTarget(Protocol):
    """The target of a forward update."""

    def expected_target(self, values: LinearValues, s: int, a: int, discount: float) -> float:
        """E[R + γ max_a' q(S', a') | s, a]."""
