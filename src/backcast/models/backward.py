"""Backward models: which state and action led here?"""

from typing import NamedTuple

from backcast.arrays import Vector
from backcast.compiling import part
from backcast.models.rows import Rows


@part
class BackwardModel(NamedTuple):
    """P←(s̃, ã | s): a row for each state s over the pairs s̃·A + ã that may precede it.

    The reward belongs to the pair (s̃, s) in prediction, r(s̃, s), and to the state s in control, r(s), as in the
    paper's experiments.

    Attributes:
        rows: probabilities and, in prediction, rewards of the predecessors.
        state_reward: (S,) r(s), used in control.
        n_actions: A.
        by_pair: whether rewards belong to pairs.
        learns: False for a true model.
    """

    rows: Rows
    state_reward: Vector
    n_actions: int
    by_pair: bool
    learns: bool

    def learn(self, s: int, a: int, r: float, s2: int, ends: bool, alpha: float) -> None:
        """Cross-entropy step for the row of s' towards (s, a); regression step for the reward."""
        if not self.learns:
            return
        place = self.rows.observe(s2, s * self.n_actions + a, alpha)
        if self.by_pair:
            self.rows.reward[place] += alpha * (r - self.rows.reward[place])
        else:
            self.state_reward[s2] += alpha * (r - self.state_reward[s2])
