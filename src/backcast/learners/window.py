"""The last n steps of an episode, and the n-step returns over them.

    G_{t:t+n} = R_{t+1} + γ R_{t+2} + … + γⁿ⁻¹ R_{t+n} + γⁿ v        v: the value of the state reached

A sum over n steps after each step would cost O(n). So steps are kept in blocks of n. The last n steps are the end of
one block and the beginning of the next. For the first block, the sums from each of its steps to its end were computed
when it was full; for the second, one sum grows with it. The cost does not depend on n, and nothing is subtracted.
"""

from typing import NamedTuple

import numpy as np

from backcast.core.arrays import Indices, Vector
from backcast.core.compiling import in_python, part
from backcast.core.interaction import ALPHA
from backcast.values.contract import Values
from backcast.values.step_sizes import SCHEDULED, StepSizes


@part
class Window(NamedTuple):
    """Up to n steps that were not learned from yet.

    Attributes:
        pairs: (n,), s·A + a at each place of a block; −1 if the number of the state was reused.
        earned: (n,), the reward of each.
        onward: (n,), discounted rewards from each to the end of the previous block: R + γ R + ….
        begun: (1,), discounted rewards since this block began.
        powers: (n + 1,) 1, γ, …, γⁿ.
        clock: (2,), the number of steps held, and the place of the next one.
        step_size: step size of an update of a pair.
    """

    pairs: Indices
    earned: Vector
    onward: Vector
    begun: Vector
    powers: Vector
    clock: Indices
    step_size: StepSizes

    def clear(self) -> None:
        """Drop all steps."""
        self.clock[0] = self.clock[1] = 0

    def enter(self, pair: int, r: float) -> None:
        """Add a step; there must be room for it."""
        place = self.clock[1]
        if place == 0:
            self.begun[0] = 0.0
            if self.clock[0] > 0:
                g = 0.0
                for k in range(self.pairs.size - 1, 0, -1):
                    g = self.earned[k] + self.powers[1] * g
                    self.onward[k] = g
        self.pairs[place], self.earned[place] = pair, r
        self.begun[0] += self.powers[place] * r
        self.clock[0] += 1
        self.clock[1] = place + 1 if place + 1 < self.pairs.size else 0

    def is_full(self) -> bool:
        """Whether n steps are held."""
        return self.clock[0] == self.pairs.size

    def learn_oldest(self, values: Values, v: float, rates: Vector) -> int:
        """Learn from the oldest of n steps and drop it; v is the value of the state reached."""
        n, place = self.pairs.size, self.clock[1]
        g = self.begun[0] if place == 0 else self.onward[place] + self.powers[n - place] * self.begun[0]
        self.clock[0] -= 1
        return self.move_towards(values, place, g + self.powers[n] * v, rates)

    def learn_all(self, values: Values, v: float, rates: Vector) -> int:
        """Learn from all steps held, the oldest first, and drop them; v is as in `learn_oldest`."""
        n, held, place, g = self.pairs.size, self.clock[0], self.clock[1], v
        for _ in range(held):
            place = place - 1 if place > 0 else n - 1
            g = self.earned[place] + self.powers[1] * g
            self.onward[place] = g
        updates = 0
        for _ in range(held):
            updates += self.move_towards(values, place, self.onward[place], rates)
            place = place + 1 if place + 1 < n else 0
        self.clear()
        return updates

    def move_towards(self, values: Values, place: int, target: float, rates: Vector) -> int:
        """Move the value of a pair towards its return; return the number of value updates."""
        if self.pairs[place] < 0:
            return 0
        pair = self.pairs[place]
        values.move(pair, target, self.step_size.of(pair, rates[ALPHA], 1.0))
        return 1

    @in_python
    def forget_states(self, states: Indices, n_actions: int) -> None:
        """Drop visits to these states, whose numbers are reused."""
        self.pairs[np.isin(self.pairs // n_actions, states)] = -1


def empty_window(n: int, discount: float, step_size: StepSizes = SCHEDULED) -> Window:
    """A window for n steps, with these step sizes."""
    powers = np.cumprod(np.append(1.0, np.full(n, float(discount))))
    pairs, clock = np.zeros(n, dtype=np.int64), np.zeros(2, dtype=np.int64)
    return Window(pairs, np.zeros(n), np.zeros(n), np.zeros(1), powers, clock, step_size)
