"""The scale of gradients: steps of models whose gradient has the units of rewards are taken relative to it."""

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel

_SLOW = 0.01


@kernel
def running_mean(scale: Vector, size: float) -> float:
    """The mean of `size` over all steps at first, over about the last hundred later.

    While it is 0 nothing is known of the unit of rewards: then infinite, so that no step is taken.
    """
    scale[1] += 1.0
    scale[0] += max(_SLOW, 1.0 / scale[1]) * (size - scale[0])
    return scale[0] if scale[0] > 0.0 else np.inf
