"""The parts of an agent in a run."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.learners.contract import Learner
from backcast.models.contract import Model
from backcast.planners.contract import AnyPlanner
from backcast.values.contract import Values


class Parts(NamedTuple):
    """An agent in a run: its model, planner, learner, values and update counts."""

    model: Model
    planner: AnyPlanner
    learner: Learner
    values: Values
    discount: float
    updates: NDArray[np.int64]  # (2,): value updates by learning and by planning
