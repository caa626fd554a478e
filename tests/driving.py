"""Runs of parts that were put together before, in the kernel that `backcast.run` calls: nothing else is compiled."""

import numpy as np

from backcast.core.randomness import streams
from backcast.drivers.loop import Run, run_seeds
from backcast.drivers.seed_blocks import empty_record
from backcast.worlds.stepping import FOREVER


def drive(world, parts, schedule, max_steps, seed=0):
    """Episodes of at most so many steps, as many as the schedule (episodes, 4) has; the parts learn."""
    run = Run(parts, empty_record(len(schedule), world), *streams(seed))
    run_seeds(world.tables, run, schedule, max_steps, FOREVER, np.zeros(1, dtype=np.uint8), 0, 1, 0)
    return run.record
