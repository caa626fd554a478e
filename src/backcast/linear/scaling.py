"""The scale of gradients: steps of models whose gradient has the units of rewards are taken relative to it."""

from backcast.arrays import Vector
from backcast.compiling import kernel

_SLOW = 0.01


@kernel
def follow(scale: Vector, size: float) -> float:
    """The mean of `size` over all steps at first, over about the last hundred later; never 0."""
    scale[1] += 1.0
    scale[0] += max(_SLOW, 1.0 / scale[1]) * (size - scale[0])
    return max(scale[0], 1e-12)
