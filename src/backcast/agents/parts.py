"""What an agent is made of when it is at work."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from backcast.learners.contract import Learner
from backcast.models.contract import Model
from backcast.planners.contract import AnyPlanner
from backcast.values.contract import Values


class Parts(NamedTuple):
    """An agent at work: its model, its planner, its learner, its values, and what it counts."""

    model: Model
    planner: AnyPlanner
    learner: Learner
    values: Values
    discount: float
    updates: NDArray[np.int64]  # (2,): value updates by learning and by planning
