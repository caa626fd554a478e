"""Options: temporally extended actions, from their initiation to their termination."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from backcast.core.arrays import Vector, as_floats
from backcast.core.errors import InputError


@dataclass(frozen=True)
class Option:
    """An option (π_o, ι_o, β_o), as in the paper's appendix A.3.

    Attributes:
        initiation: ι(s̃), the probability that the option was initiated at s̃; a number or one for each state.
        termination: β(s), the probability that it terminates at s, a number or one for each state. A backward path does
            not pass states at which the option terminated, and planning from s is weighted by β(s). None: the paper's
            model, which has no termination and is planned with from every state.
        policy: π_o(a | s), (S, A), for control; None: the behaviour policy, or the policy that is evaluated.

    Examples:
        >>> Option(initiation=[1, 0, 0, 1], termination=0.5).initiation
        (1.0, 0.0, 0.0, 1.0)
    """

    initiation: float | Sequence[float]
    termination: float | Sequence[float] | None = None
    policy: ArrayLike | None = None

    def __post_init__(self) -> None:
        for name in ("initiation", "termination"):
            given = getattr(self, name)
            if given is None and name == "termination":
                continue
            chances = as_floats(f"option.{name}", given)
            if chances.ndim > 1 or chances.size == 0 or not ((chances >= 0) & (chances <= 1)).all():
                raise InputError(f"option.{name}: expected a probability in [0, 1], or a list with one for each state")
            object.__setattr__(self, name, float(chances) if chances.ndim == 0 else tuple(chances.tolist()))
        if not np.any(np.asarray(self.initiation) > 0):
            raise InputError("option.initiation: it is 0 everywhere, so that the option begins nowhere")
        if self.policy is not None:
            policy = as_floats("option.policy", self.policy)
            if policy.ndim != 2 or not np.allclose(policy.sum(axis=1), 1) or (policy < 0).any():
                raise InputError("option.policy: expected (S, A) probabilities, each row summing to 1")
            object.__setattr__(self, "policy", tuple(map(tuple, policy.tolist())))


def per_state(name: str, given: float | Sequence[float], n_states: int) -> Vector:
    """Return (S,) from a number or from one number for each state."""
    values = np.asarray(given, dtype=np.float64)
    if values.shape not in ((), (n_states,)):
        raise InputError(f"{name}: {values.size} numbers given, but this world has {n_states} states")
    return np.broadcast_to(values, n_states).copy()


def option_chances(option: Option, n_states: int) -> tuple[Vector, Vector]:
    """Looking back, the probabilities ι(s̃) of stopping at s̃ and (1 − ι(s̃)) (1 − β(s̃)) of continuing."""
    stop = per_state("option.initiation", option.initiation, n_states)
    ends = 0.0 if option.termination is None else per_state("option.termination", option.termination, n_states)
    return stop, (1.0 - stop) * (1.0 - ends)
