"""The scale of gradients: steps of models whose gradient has the units of rewards are relative to it."""

import numpy as np

from backcast.core.arrays import Vector
from backcast.core.compiling import kernel

_SLOW = 0.01


@kernel
def running_mean(scale: Vector, size: float) -> float:
    """Update the mean of `size`: over all steps at first, later over about the last hundred.

    While it is 0, the unit of rewards is unknown: the result is then infinite, so that no step is made.
    """
    scale[1] += 1.0
    scale[0] += max(_SLOW, 1.0 / scale[1]) * (size - scale[0])
    return scale[0] if scale[0] > 0.0 else np.inf
