"""What an agent is told about a world when its parts are built."""

from dataclasses import dataclass

import numpy as np

from backcast.core.arrays import Indices
from backcast.core.errors import InputError
from backcast.core.randomness import Stream, imagination
from backcast.features.maps import FeatureMap
from backcast.values.linear import Features, LinearValues
from backcast.values.observations import Observations
from backcast.values.state_features import features_of_states
from backcast.worlds.world import World


@dataclass(frozen=True)
class Setup:
    """The description of a world from which an agent builds its parts.

    Only true models read the transitions of `world`. Other models read only its graph, its terminal states and its
    layout.

    Attributes:
        n_states: S.
        n_actions: A, 1 in prediction.
        discount: γ.
        world: the world, if it is known.
        seed: seed of the run.
        max_steps: number of steps after which episodes are truncated, if they are.
        observations: the memory of observations, with room for n_states of them, if states are not numbered.
        values: the agent's values, if they are linear in features.
    """

    n_states: int
    n_actions: int
    discount: float
    world: World | None = None
    seed: int = 0
    max_steps: int | None = None
    observations: Observations | None = None
    values: LinearValues | None = None

    def stream(self, purpose: int = 0) -> Stream:
        """A random stream apart from those of the world and the actions: 0 planning, 1 models, 2 planning forward."""
        return imagination(self.seed, purpose)

    def features(self, recipe: FeatureMap) -> tuple[Features, int, int]:
        """The features of all states, their number, and how many of them were given."""
        if self.observations is not None:
            return self.observations.features(recipe)
        return features_of_states(recipe, self.world or self.n_states, self.seed if recipe.drawn_by_seeds else 0)

    @property
    def is_prediction(self) -> bool:
        """Whether there is nothing to choose."""
        return self.n_actions == 1

    def refuse_observations(self, agent: str) -> None:
        """Raise InputError if states are not numbered, for models that need numbered states."""
        if self.observations is not None:
            raise InputError(
                f"agent: {agent!r} has a model of numbered states; the observation space is {self.observations.space}"
            )

    def fan_in(self) -> Indices:
        """Room for each row of a backward model, (S,): 0 where the graph is unknown (rows then grow)."""
        return np.zeros(self.n_states, dtype=np.int64) if self.world is None else self.world.fan_in

    def fan_out(self) -> Indices:
        """Room for each row of a forward model, (S·A,)."""
        rows = self.n_states * self.n_actions
        return np.zeros(rows, dtype=np.int64) if self.world is None else self.world.fan_out
