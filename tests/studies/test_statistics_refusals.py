"""What statistics refuse, with the reason."""

import numpy as np
import pytest

from backcast.core.errors import InputError
from backcast.studies.statistics import (
    Interval,
    align_by_episode,
    align_by_steps,
    band,
    bootstrap,
    cumulative_on_grid,
    iqm,
    mean_and_error,
    normalised,
    on_update_grid,
    paired_difference,
    probability_of_improvement,
    seeds_needed,
    simultaneous,
    stratified_bootstrap,
)

NAN = np.nan


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_and_error([1, NAN]), "values: entry 1 is nan; every entry must be finite"),
        (lambda: mean_and_error([1, np.inf, NAN], ragged=True), "values: entry 1 is inf; every entry must be finite"),
        (lambda: mean_and_error(3), "values: shape () given, expected at least one value along axis 0"),
        (lambda: mean_and_error(["a"]), "values: expected an array of numbers (<U1 given)"),
        (lambda: iqm([[1, 2]], axis=2), "values: shape (1, 2) given, expected at least one value along axis 2"),
        (lambda: iqm(np.ones((0, 3))), "values: shape (0, 3) given, expected at least one value along axis 0"),
        (lambda: iqm([[1, NAN]]), "values: entry (0, 1) is nan; every entry must be finite"),
        (lambda: bootstrap([], seed=0), "values: shape (0,) given, expected (n,), at least one number"),
        (lambda: bootstrap([[1, 2]], seed=0), "values: shape (1, 2) given, expected (n,), at least one number"),
        (lambda: bootstrap([1, NAN], seed=0), "values: entry 1 is nan; every entry must be finite"),
        (lambda: bootstrap([1, 2], seed=-1), "seed: -1 given, expected a whole number, 0 or more"),
        (lambda: bootstrap([1, 2], seed=0, resamples=0), "resamples: 0 given, expected a whole number, 1 or more"),
        (lambda: bootstrap([1, 2], seed=0, level=95), "level: 95 given, expected a number above 0 and below 1"),
        (
            lambda: stratified_bootstrap([], seed=0),
            "groups: none given, expected one array of numbers per stratum, at least one",
        ),
        (
            lambda: stratified_bootstrap([[1], []], seed=0),
            "groups[1]: shape (0,) given, expected (n,), at least one number",
        ),
        (lambda: paired_difference([1, 2], [1], seed=0), "b: 1 numbers given, expected 2, one for each of a"),
        (
            lambda: probability_of_improvement([1], [1, 2], better="lower", seed=0),
            "b: 2 numbers given, expected 1, one for each of a",
        ),
        (
            lambda: probability_of_improvement([1], [1], better="smaller", seed=0),
            "better: 'smaller' given, expected one of lower, higher",
        ),
        (
            lambda: seeds_needed([1], Interval(1, 1, 1, 1)),
            "differences: 1 value given, expected at least 2; one has no spread",
        ),
        (
            lambda: band([1, 2], seed=0),
            "curves: shape (2,) given, expected (n, m), a row for each seed, at least one number",
        ),
        (lambda: band([[1, np.inf]], seed=0), "curves: entry (0, 1) is inf; every entry must be finite"),
        (lambda: band([[1, 2]], seed=0, level=0), "level: 0 given, expected a number above 0 and below 1"),
        (lambda: simultaneous([[1, NAN]], seed=0), "values: entry (0, 1) is nan; every entry must be finite"),
        (lambda: align_by_episode([]), "curves: none given, expected one array of numbers per run, at least one"),
        (lambda: align_by_episode([[1], [NAN]]), "curves[1]: entry 0 is nan; every entry must be finite"),
        (
            lambda: align_by_steps([[1]], [[1]], [1], between="cubic"),
            "between: 'cubic' given, expected one of step, linear",
        ),
        (
            lambda: align_by_steps([[1], [2]], [[1]], [1]),
            "values: 1 runs given, 2 of positions; expected as many, not 0",
        ),
        (lambda: align_by_steps([], [], [1]), "values: 0 runs given, 0 of positions; expected as many, not 0"),
        (
            lambda: align_by_steps([[1, 2]], [[1]], [1]),
            "values[0]: 1 numbers given, expected 2, one for each of positions[0]",
        ),
        (
            lambda: align_by_steps([[1, 1]], [[1, 2]], [1]),
            "positions[0]: they do not increase; each must be larger than the one before",
        ),
        (
            lambda: cumulative_on_grid([1, 2], [1, 2], 3),
            "steps: shape (2,) given, expected (n, E), E episodes of n runs, at least one",
        ),
        (
            lambda: cumulative_on_grid([[1]], [[1, 2]], 3),
            "reward: shape (1, 2) given, expected (1, 1), as that of steps",
        ),
        (
            lambda: cumulative_on_grid([[2, 0]], [[1, 2]], 3),
            "steps: 0 given, expected whole numbers, 1 or more in each episode",
        ),
        (
            lambda: cumulative_on_grid([[1.5]], [[1]], 3),
            "steps: 1.5 given, expected whole numbers, 1 or more in each episode",
        ),
        (lambda: cumulative_on_grid([[1]], [[NAN]], 3), "reward: entry (0, 0) is nan; every entry must be finite"),
        (lambda: cumulative_on_grid([[NAN]], [[1]], 3), "steps: entry (0, 0) is nan; every entry must be finite"),
        (lambda: cumulative_on_grid([[1]], [[1]], 1), "points: 1 given, expected a whole number, 2 or more"),
        (
            lambda: on_update_grid([[1, 2]], [[1]], [1]),
            "values: shape (1, 1) given, expected (1, 2), as that of updates",
        ),
        (lambda: on_update_grid([[1]], [[NAN]], [1]), "values: entry (0, 0) is nan; every entry must be finite"),
        (
            lambda: on_update_grid([[2, 1]], [[1, 1]], [1]),
            "updates: they fall within a run; expected how many were made up to the end of each episode",
        ),
        (lambda: normalised({}), "values: shape (0,) given, expected (n,), at least one number"),
        (lambda: normalised({"q": NAN}), "values: entry 0 is nan; every entry must be finite"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError) as refused:
        call()
    assert str(refused.value) == message
