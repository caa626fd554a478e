"""Networks in JAX: a body that maps an observation to a vector, and linear heads on top of it.

A `Function` is a network without its parameters. These are a pytree of arrays, passed as an argument:
{"body": …, "heads": {name: {"w": (d, outputs), "b": (outputs,)}}}. A linear network has no biases, and its body is the
observation itself.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from backcast.core.errors import InputError
from backcast.networks import Network

Params = Any  # a pytree of arrays
Body = Callable[[Params, jax.Array], jax.Array]  # maps parameters and an observation to a vector (d,)


class Head(NamedTuple):
    """A linear layer on top of a body.

    Attributes:
        outputs: number of outputs.
        zero: whether weights are initially 0, rather than random with variance 1 / d.
    """

    outputs: int
    zero: bool = True


class Function(NamedTuple):
    """A network without its parameters.

    Attributes:
        body: function from the body's parameters and an observation to a vector (d,).
    """

    body: Body

    def __call__(self, params: Params, seen: jax.Array, *heads: str) -> Any:
        """The outputs of some heads for observations (n, …), each (n, outputs); for one head, its outputs alone."""
        features = jax.vmap(lambda one: self.body(params["body"], one))(seen)
        found = tuple(_head(params["heads"][name], features) for name in heads)
        return found[0] if len(heads) == 1 else found


def _head(head: Params, features: jax.Array) -> jax.Array:
    outputs: jax.Array = features @ head["w"]
    return outputs + head["b"] if "b" in head else outputs


def make(
    network: Network, key: jax.Array, shape: tuple[int, ...], heads: Mapping[str, Head], dtype: DTypeLike
) -> tuple[Function, Params]:
    """Make a network for observations of a shape; return it with its initial parameters.

    Args:
        network: the description of the network.
        key: random key of JAX.
        shape: shape of an observation.
        heads: the heads, by name.
        dtype: dtype of the parameters.
    """
    first, *keys = jax.random.split(key, 1 + len(heads))
    body: Body
    if network.is_linear:
        body, params, width = _observation, {}, math.prod(shape)
    else:
        module = _module(network, first, shape)
        arrays, rest = eqx.partition(module, eqx.is_inexact_array)
        params = jax.tree.map(lambda array: array.astype(dtype), arrays)
        body = _body(rest)
        width = _width(network, body, params, shape, dtype)
    made = {
        name: _first_head(head, key, width, dtype, not network.is_linear)
        for (name, head), key in zip(heads.items(), keys, strict=True)
    }
    return Function(body), {"body": params, "heads": made}


def _observation(params: Params, seen: jax.Array) -> jax.Array:
    return seen.reshape(-1)


def _body(rest: Params) -> Body:
    """The function from parameters and an observation to the output of a module."""
    return lambda arrays, one: eqx.combine(arrays, rest)(one)


def _first_head(head: Head, key: jax.Array, width: int, dtype: DTypeLike, bias: bool) -> Params:
    w = jnp.zeros((width, head.outputs), dtype)
    if not head.zero:
        w = jax.random.normal(key, w.shape, dtype) / math.sqrt(width)
    return {"w": w, "b": jnp.zeros(head.outputs, dtype)} if bias else {"w": w}


def _width(network: Network, body: Body, params: Params, shape: tuple[int, ...], dtype: DTypeLike) -> int:
    """The length of a body's output; raise InputError if this is not a vector."""
    try:
        made = jax.eval_shape(body, params, jax.ShapeDtypeStruct(shape, dtype))
        found = getattr(made, "shape", None)
    except Exception as error:  # anybody's code may raise anything
        raise InputError(f"network: {network.name} does not take observations of shape {shape} ({error})") from error
    if found is None or len(found) != 1:
        raise InputError(
            f"network: {network.name} makes shape {found} of an observation {shape}, expected a vector (d,)"
        )
    return int(found[0])


class _Dense(eqx.Module):
    """Layers with ReLUs, weights of variance 2 / inputs initially, after any number of convolutions."""

    convolutions: tuple[eqx.nn.Conv2d, ...]
    weights: tuple[jax.Array, ...]
    biases: tuple[jax.Array, ...]

    def __call__(self, seen: jax.Array) -> jax.Array:
        for convolution in self.convolutions:
            seen = jax.nn.relu(convolution(seen))
        seen = seen.reshape(-1)
        for w, b in zip(self.weights, self.biases, strict=True):
            seen = jax.nn.relu(seen @ w + b)
        return seen


def _module(network: Network, key: jax.Array, shape: tuple[int, ...]) -> Callable[[jax.Array], jax.Array]:
    """An Equinox module that maps an observation to a vector."""
    if network.kind == "own":
        module = network.get("function")(key)
        if not callable(module):
            raise InputError(f"network: {network.name} made a {type(module).__name__}, expected an Equinox module")
        return module
    convolutions: list[eqx.nn.Conv2d] = []
    if network.kind == "conv":
        convolutions, shape = _convolutions(network, key, shape)
    widths = network.get("widths")
    keys = jax.random.split(jax.random.fold_in(key, 1), len(widths))
    sizes = [math.prod(shape), *widths]
    weights = [
        jax.random.normal(each, (inputs, outputs)) * math.sqrt(2.0 / inputs)
        for each, inputs, outputs in zip(keys, sizes[:-1], sizes[1:], strict=True)
    ]
    return _Dense(tuple(convolutions), tuple(weights), tuple(jnp.zeros(width) for width in widths))


def _convolutions(
    network: Network, key: jax.Array, shape: tuple[int, ...]
) -> tuple[list[eqx.nn.Conv2d], tuple[int, ...]]:
    """The convolutions of a network, and the shape of their output."""
    if len(shape) != 3:
        raise InputError(
            f"network: {network.name} takes observations (channels, rows, columns), shape {shape} given; use"
            ' world.view("pixels"), or mlp'
        )
    kernel, stride, made = network.get("kernel"), network.get("stride"), []
    channels, rows, columns = shape
    for number, outputs in enumerate(network.get("channels")):
        if kernel > min(rows, columns):
            raise InputError(
                f"network: a kernel of {kernel} given for {rows} × {columns} pixels, expected a smaller one"
            )
        each = jax.random.fold_in(key, 2 + number)
        made.append(eqx.nn.Conv2d(channels, outputs, kernel, stride, key=each))
        channels, rows, columns = outputs, (rows - kernel) // stride + 1, (columns - kernel) // stride + 1
    return made, (channels, rows, columns)
