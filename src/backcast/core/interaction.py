"""One interaction with the world, as passed to every learner, model and planner."""

from typing import NamedTuple

ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON = 0, 1, 2, 3  # the columns of a schedule; `rates` is one row of it, (4,)


class Step(NamedTuple):
    """Action a in state s earned r and led to s2; `ends` if s2 ends the episode, `first` if s began it."""

    s: int
    a: int
    r: float
    s2: int
    ends: bool
    first: bool
