"""Worlds without a table: their states are vectors, and a function says what follows them.

They have no finite MDP, so that agents with tables, features or true models cannot live in them, and nothing exact is
known of them. Agents with a network can.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.errors import InputError
from backcast.mdp import FiniteMDP
from backcast.worlds.motion import Motion
from backcast.worlds.world import Judge, World


@dataclass(frozen=True, eq=False, repr=False)
class VectorWorld(World):
    """A world that moves from vector to vector; a world of control.

    Attributes:
        given_discount: γ.
    """

    given_discount: float = 0.99

    def __repr__(self) -> str:
        return f"World({self.name!r}, vectors {self._moves.shape}, max_steps={self.max_steps})"

    @property
    def _moves(self) -> Motion:
        assert self.motion is not None
        return self.motion

    @cached_property
    def mdp(self) -> FiniteMDP:
        """There is none."""
        raise InputError(
            f"{self.name}: states are vectors, and there is no table of what follows them; agents need a network here,"
            " such as network=backcast.networks.mlp(64, 64), and nothing exact is known"
        )

    def view(self, how: object) -> World:
        """Vectors are observed as they are."""
        raise InputError(f"view: {how!r} given, but states of {self.name} are vectors, which are observed as they are")

    @cached_property
    def observations(self) -> Vector:
        """Of no states, (0, …): they have no numbers."""
        return np.zeros((0, *self._moves.shape))

    @property
    def n_states(self) -> int:
        """0: states have no numbers."""
        return 0

    @property
    def n_actions(self) -> int:
        """The actions an agent chooses from."""
        return self._moves.n_actions

    @property
    def is_prediction(self) -> bool:
        """There is something to choose."""
        return False

    @cached_property
    def judged_by(self) -> Judge:
        """The reward of an episode; higher is better."""
        return "reward"

    @property
    def discount(self) -> float:
        """γ."""
        return self.given_discount
