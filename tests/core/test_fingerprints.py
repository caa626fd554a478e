"""A kernel is compiled again if, and only if, something that it is made of has changed."""

import os
import subprocess
import sys
from types import ModuleType

import pytest

from backcast.core.compiling import compiled_methods
from backcast.core.fingerprints import IndescribableError, fingerprint

SOURCE = '''
"""A module."""
import math
from functools import partial
from typing import NamedTuple
import numpy as np
from backcast.core.compiling import kernel, optional, part

STEP = 0.5
TABLE = np.array([1.0, 2.0])
OTHER = 7.0

@kernel
def inner(x):
    """Doubles."""
    return 2.0 * x + STEP + TABLE[0]

@kernel
def unrelated(x):
    return x + OTHER

@part
class Push(NamedTuple):
    least: float

    def amount_of_push(self, x):
        return self.least + inner(x)

    def never_called(self, x):
        return x

@optional("default_of_push")
def _default(self, x):
    return x + 1.0

@kernel
def outer(part, x):
    # a comment
    return part.amount_of_push(x) * part.default_of_push(x) + math.sqrt(x)
'''
SAME = {
    "a docstring": ("Doubles.", "Twice, and a step."),
    "a comment": ("# a comment", "# another\n    # comment"),
    "where it stands": ("STEP = 0.5", "\n\n\nSTEP = 0.5"),
    "a function it does not call": ("x + OTHER", "x - OTHER"),
    "a constant it does not see": ("OTHER = 7.0", "OTHER = 8.0"),
    "a method it does not call": ("        return x\n", "        return -x\n"),
}
DIFFERENT = {
    "itself": ("+ math.sqrt(x)", "- math.sqrt(x)"),
    "what it calls": ("2.0 * x", "x * 2.0"),
    "a number in what it calls": ("2.0 * x", "3.0 * x"),
    "a constant": ("STEP = 0.5", "STEP = 0.25"),
    "the type of a constant": ("STEP = 0.5", "STEP = 1"),
    "an array": ("np.array([1.0, 2.0])", "np.array([1.0, 3.0])"),
    "a method": ("self.least + inner(x)", "self.least - inner(x)"),
    "a default": ("x + 1.0", "x + 2.0"),
    "a method in place of a default": (
        "    def never",
        "    def default_of_push(self, x):\n        return x\n\n    def never",
    ),
    "the options of what it calls": ("@kernel\ndef inner", "@partial(kernel, fastmath=True)\ndef inner"),
    "what a name stands for": ("import math", "import cmath as math"),
    "the fields of a part": ("    least: float\n", "    least: float\n    most: float\n"),
}


def code_of(source):
    module = ModuleType("somebodys")
    exec(source, module.__dict__)
    return fingerprint(module.outer.py_func, [module.Push], compiled_methods)


def changed(change):
    old, new = change
    assert SOURCE.count(old) == 1
    return SOURCE.replace(old, new)


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_what_makes_no_difference(change):
    assert code_of(changed(change)) == code_of(SOURCE)


@pytest.mark.parametrize("change", DIFFERENT.values(), ids=DIFFERENT)
def test_what_makes_a_difference(change):
    assert code_of(changed(change))[0] != code_of(SOURCE)[0]


def test_the_functions_in_reach_are_counted():
    assert code_of(SOURCE)[1] == 4  # outer, the two methods, inner


def test_what_nobody_can_describe_has_no_fingerprint():
    with pytest.raises(IndescribableError, match="object"):
        code_of(SOURCE.replace("STEP = 0.5", "STEP = object()"))


def test_classes_of_python_are_described_by_name():
    """An inner function mentions those in its annotations. Their instances have no name."""
    with_sequence, with_set = (
        code_of(SOURCE.replace("STEP = 0.5", f"from collections.abc import {name} as STEP"))[0]
        for name in ("Sequence", "Set")
    )
    assert with_sequence != with_set
    with pytest.raises(IndescribableError, match="Counter"):
        code_of(SOURCE.replace("STEP = 0.5", "from collections import Counter\nSTEP = Counter()"))


THEIRS = """
from typing import NamedTuple
from backcast.extending import NoModel, NoPlanner, part, register

@part
class Shy(NamedTuple):
    share: float

    def update(self, values, step, discount, rates):
        '''Half a step.'''
        values.move(step.s, step.r, self.share * 0.5)
        return 1

@register("shy")
def shy(setup, agent):
    '''Learns too little.'''
    return NoModel(), NoPlanner(), Shy(1.0)
"""
RUN = """
import backcast as bc, theirs
from backcast.drivers.loop import run_seeds
runs = bc.run(bc.worlds.chain((3, 2), seed=0), bc.agent("shy", schedule="constant"), 1, 1)
print(round(float(abs(runs.values).max()), 6), sum(run_seeds.stats.cache_hits.values()))
"""


@pytest.mark.slow
def test_parts_of_others_are_kept_until_they_are_edited(tmp_path):
    environment = {
        **os.environ,
        "BACKCAST_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }

    def run_with(source):
        (tmp_path / "theirs.py").write_text(source, encoding="utf-8")
        command = [sys.executable, "-B", "-c", RUN]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        value, hits = done.stdout.split()
        return float(value), int(hits)

    first, hits = run_with(THEIRS)
    assert hits == 0
    assert run_with(THEIRS.replace("Half a step.", "A small step.")) == (first, 1)
    second, hits = run_with(THEIRS.replace("0.5", "0.25"))
    assert (second, hits) == (pytest.approx(first / 2), 0)
    assert run_with(THEIRS) == (first, 1)
