"""Worlds without a table: their states are vectors, and a function defines their dynamics.

They have no finite MDP and no exact values. Only agents with a network can run in them.
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
    """A control world whose states are vectors.

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
        """Raise InputError: there is none."""
        raise InputError(
            f"{self.name}: states are vectors, so there is no transition table and nothing exact; agents need a"
            " network, such as network=backcast.networks.mlp(64, 64)"
        )

    def view(self, how: object) -> World:
        """Raise InputError: vectors are observed as they are."""
        raise InputError(f"view: {how!r} given, but states of {self.name} are vectors, which are observed as they are")

    @cached_property
    def observations(self) -> Vector:
        """An empty array (0, …), because states are not numbered."""
        return np.zeros((0, *self._moves.shape))

    @property
    def n_states(self) -> int:
        """0, because states are not numbered."""
        return 0

    @property
    def n_actions(self) -> int:
        """The number of actions to choose from."""
        return self._moves.n_actions

    @property
    def is_prediction(self) -> bool:
        """False: there are actions to choose."""
        return False

    @cached_property
    def judged_by(self) -> Judge:
        """The reward of an episode; higher is better."""
        return "reward"

    @property
    def discount(self) -> float:
        """γ."""
        return self.given_discount
