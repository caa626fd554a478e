"""Abstract models by networks: learn the correction of planning directly (appendix C.3 of the paper)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from backcast.models.neural.contract import Lesson, ModelNet
from backcast.models.neural.objectives import experienced, squares
from backcast.models.neural.tables import Tabled, TabledCorrections
from backcast.networks.modules import Head


class NeuralCorrections(NamedTuple):
    """Δ(s), an output for each parameter of the values: E[δ ∇q(s̃, ã)] over steps to s; if `ahead`, over steps from s.

    δ is the TD error of a step before it is learned from. Looking forward in control, Δ(s) averages the corrections of
    actions in proportion to how often they were taken.

    Attributes:
        size: P.
        n_actions: A.
        ahead: whether it is conditioned on the state before a step.
    """

    size: int
    n_actions: int
    ahead: bool

    @property
    def tabled(self) -> type[Tabled]:
        """The table of corrections."""
        return TabledCorrections

    def heads(self) -> dict[str, Head]:
        """A head with an output for each parameter."""
        return {"correction": Head(self.size)}

    def loss(self, network: ModelNet, lesson: Lesson) -> jax.Array:
        """½ |Δ(s) − δ ∇q(s̃, ã)|², the mean over transitions."""
        states = lesson.batch.s if self.ahead else lesson.batch.s2
        return squares(self.corrections(network, states) - experienced(network, lesson))

    def corrections(self, network: ModelNet, refs: jax.Array) -> jax.Array:
        """The corrections of n states, (n, P)."""
        rows: jax.Array = network(refs, "correction")
        return rows

    def table(self, network: ModelNet, times: jax.Array, discount: jax.Array) -> tuple[jax.Array]:
        """The corrections of S numbered states, (S, P)."""
        n_states = times.size if self.ahead else times.size // self.n_actions
        return (self.corrections(network, jnp.arange(n_states)),)
