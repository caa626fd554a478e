"""The planner that docs/extending.md shows is short, and passes the suite that it recommends."""

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.testing import AgentConformance, ModelConformance

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
EXAMPLE = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.S).group(1)

if "likeliest" not in KINDS:
    exec(compile(EXAMPLE.split("for kind in")[0], str(PAGE), "exec"), {"__name__": "docs_example"})


def test_the_example_is_under_forty_lines():
    assert len(EXAMPLE.strip().splitlines()) <= 45
    planner = EXAMPLE[EXAMPLE.index("@part") : EXAMPLE.index("for kind in")]
    assert len(planner.strip().splitlines()) < 40


class TestLikeliest(AgentConformance, ModelConformance):
    kind = "likeliest"


PUSH = """
from typing import NamedTuple
from backcast.core.compiling import part
from backcast.agents.kinds import register
from backcast.models import NoModel

@part
class Push(NamedTuple):
    how_far: {type}
    unused: float

    def plan(self, model, values, step, discount, rates):
        values.put(step.s, step.a, {amount})
        return 1

@register("push-{amount}-{type}", plans=True)
def push(setup, agent):
    'Writes {amount} into every state it leaves.'
    return NoModel(), Push({type}(1), 0.0)
"""


@pytest.mark.parametrize("type", ["int", "float"])  # Numba has a type of its own for tuples of equal types
def test_parts_of_the_same_name_and_fields_do_not_share_compiled_code(type):
    for amount in (3, 7):
        module = ModuleType(f"somebody_{amount}_{type}")
        exec(PUSH.format(amount=amount, type=type), module.__dict__)
    for amount in (3, 7):
        runs = bc.run(bc.worlds.chain((4, 2), seed=0), bc.agent(f"push-{amount}-{type}", learn=False), 20, 1)
        np.testing.assert_array_equal(runs.values[0, :4], amount)
