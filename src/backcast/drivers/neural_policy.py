"""The action values of an observation, from the stored parameters of a run's network."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from backcast.agents import Agent
from backcast.agents.neural import DTYPES
from backcast.core.arrays import Vector, as_floats, refuse_non_finite
from backcast.core.errors import InputError
from backcast.networks.backend import wide
from backcast.networks.modules import Head, Params, make


def in_a_row(params: Params) -> Vector:
    """All parameters of a network, (P,), in the order of the pytree."""
    return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(params)])


def values_of(agent: Agent, weights: Vector, n_actions: int, observation: object) -> Vector:
    """Return the values of all actions, (A,), for an observation.

    Args:
        agent: the agent.
        weights: the parameters of its network, (P,).
        n_actions: A.
        observation: an observation of the shape used in training; uint8 is divided by 255.
    """
    given = np.asarray(observation)
    seen = as_floats("observation", given) / (255 if given.dtype == np.uint8 else 1)
    refuse_non_finite("observation", seen)
    dtype = DTYPES[agent.get("precision")]
    with wide():
        function, params = make(agent.get("network"), jax.random.key(0), seen.shape, {"q": Head(n_actions)}, dtype)
        flat, unravel = ravel_pytree(params)
        if flat.size != weights.size:
            raise InputError(
                f"observation: shape {seen.shape} given, for which the network has {flat.size:,} parameters; those"
                f" of these runs have {weights.size:,}, for another shape"
            )
        q = function(unravel(jnp.asarray(weights, dtype)), jnp.asarray(seen, dtype)[None], "q")
        return np.asarray(q[0], dtype=np.float64)
