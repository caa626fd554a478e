"""The parts that docs/extending.md shows are short, and pass the suites that it recommends."""

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import backcast as bc
from backcast.extending import number, register
from conforming import AgentConformance, ModelConformance
from registries import unchanged_registries

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture(scope="module", autouse=True)
def _parts_of_the_docs():
    """The planner, the model, the estimator and the learner, without the runs that end each; forgotten afterwards."""
    with unchanged_registries():
        for example in EXAMPLES[:5]:
            exec(compile(re.split(r"\n(?:for|runs) ", example)[0], str(PAGE), "exec"), {"__name__": "docs_example"})
        yield


def test_the_planner_is_under_forty_lines():
    planner = EXAMPLES[0][EXAMPLES[0].index("@part") : EXAMPLES[0].index("for kind in")]
    assert len(planner.strip().splitlines()) < 40


@pytest.mark.interpreted
class TestLikeliest(AgentConformance, ModelConformance):
    kind = "likeliest"


@pytest.mark.interpreted
class TestSurprised(AgentConformance, ModelConformance):
    kind = "surprised"


@pytest.mark.interpreted
class TestSurprisedWithFeatures(AgentConformance, ModelConformance):
    kind = "surprised"
    options = {"features": "onehot", "alpha": 0.5}  # noqa: RUF012


@pytest.mark.interpreted
class TestLast(AgentConformance):
    kind = "last"


@pytest.mark.interpreted
class TestLastWithFeatures(AgentConformance):
    kind = "last"
    options = {"features": "onehot", "alpha": 0.5}  # noqa: RUF012


@pytest.mark.interpreted
class TestDirichlet(AgentConformance, ModelConformance):
    kind = "backward"
    options = {"model": "dirichlet"}  # noqa: RUF012


@pytest.mark.interpreted
class TestDirichletForward(AgentConformance, ModelConformance):
    kind = "forward"
    options = {"model": "dirichlet"}  # noqa: RUF012


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_author_imports_from_one_module(example):
    assert set(re.findall(r"from (backcast[.\w]*) import", example)) <= {"backcast.extending"}


def test_a_bare_name_is_a_free_setting():
    @register("free", settings=("beta", "sample", number("kappa", "how much", 0, 1)))
    def build(setup, agent):
        """Takes anything as beta."""

    chosen = bc.agent("free", beta={"any": "thing"}, sample=3, kappa=0.5)
    assert chosen.get("beta") == {"any": "thing"}
    assert bc.agent("free", beta=[1, [2, 3]]).get("beta") == (1, (2, 3))
    assert chosen.name == "free,sample=3,beta={'any': 'thing'},kappa=0.5"
    with pytest.raises(bc.InputError, match=r"kappa: 2 given, expected a number in \[0, 1\]"):
        bc.agent("free", kappa=2)
    with pytest.raises(bc.InputError, match=r"sample: -1 given, expected a whole number, 0 or more"):
        bc.agent("free", sample=-1)
    with pytest.raises(bc.InputError, match=r"no setting 'bet'; 'free' takes beta, sample, kappa; did you mean"):
        bc.agent("free", bet=1)


def test_settings_of_every_agent_are_not_registered_again():
    with pytest.raises(
        bc.InputError, match="settings: 'alpha' is an argument of every agent; 'greedy' needs another name"
    ):
        register("greedy", settings=("alpha",))(lambda setup, agent: None)


def test_a_name_makes_no_claims():
    """A kind knows the truth if it says so, not if it is called so."""

    @register("true-grit", frame="current")
    def build(setup, agent):
        """Perseveres."""

    assert not bc.agent("true-grit").knows_the_truth
    assert bc.agent("true-backward").knows_the_truth


PUSH = """
from typing import NamedTuple
from backcast.extending import NoModel, part, register

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
