"""The C programs that Backcast's speed is compared with do the same work: their agents learn as ours do."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import backcast as bc
from backcast.cli.bench import DENSE_PROGRAMS, _compile
from backcast.studies.statistics import mean_and_error

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler"),
]


def printed(tmp_path, name, *arguments):
    """The first number that a program prints, and the steps per second, which come last."""
    program = _compile(DENSE_PROGRAMS / f"{name}.c", tmp_path)
    text = subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout
    first, last = re.fullmatch(r"\D+([\d.]+), steps per second (\d+)\n", text).groups()
    assert int(last) > 0
    return float(first)


def test_the_dense_maze_is_walked_as_fast_as_by_our_agent(tmp_path):
    runs = bc.run(bc.worlds.maze(), bc.agent("backward", frame="previous"), episodes=100, seeds=200)
    mean, error = mean_and_error(runs.steps.mean(axis=1))
    assert printed(tmp_path, "dense_maze", "200") == pytest.approx(float(mean), abs=6 * float(error))


@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_the_dense_chain_is_learned_as_well_as_by_our_agent(tmp_path, kind):
    runs = bc.run(bc.worlds.chain((20, 10, 5), seed=None), bc.agent(kind), episodes=4000, seeds=30)
    errors = runs.rmsve.mean(axis=1)
    among_three = np.std(errors, ddof=1) / np.sqrt(3)  # the program draws three chains
    assert printed(tmp_path, "dense_chain", kind, "20", "10", "5") == pytest.approx(errors.mean(), abs=5 * among_three)
