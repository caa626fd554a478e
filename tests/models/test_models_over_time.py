"""Counted, time-extended, conditioned and λ-models, and planning with parts of them, against a plain twin."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import backcast as bc
from backcast.agents.setup import Setup
from plain_models import PlainBackward, PlainLambda
from random_worlds import random_steps, random_world
from twinned import feed_both

pytestmark = pytest.mark.interpreted

MODELS = [
    {"model": "counts"},
    {"model": "counts", "horizon": 3},
    {"model": "softmax", "horizon": 2},
    {"model": "counts", "weights": (0.5, 0.2, 0.3)},
    {"model": "softmax", "weights": (0.0, 0.4, 0.6)},
    {"model": "counts", "lam": 0.7},
    {"model": "softmax", "lam": 0.4},
    {"model": "counts", "conditioned": True},
    {"model": "counts", "horizon": 2, "conditioned": True},
    {"model": "counts", "forget": 0.1},
    {"model": "softmax", "horizon": 2, "forget": 0.1},
    {"lam": 0.6, "lam_by": "td"},
]
PLANS = [{}, {"sample": 3}, {"top": 2}, {"depth": 2}, {"sample": 2, "depth": 3}, {"top": 2, "depth": 3}]


def twin_of(agent, setup):
    return (PlainLambda if agent.get("lam_by") == "td" else PlainBackward)(agent, setup)


def assert_equal_to_the_twin(world, agent, seed, rates=(0.5, 0.6, 0.4, 0.3)):
    """Values and counted updates, after the same random transitions; some episodes are cut off."""
    setup = Setup(world.n_states, world.n_actions, world.discount, world, seed)
    parts, twin, rates = agent.build(setup), twin_of(agent, setup), np.array(rates)
    feed_both(parts, twin, random_steps(world, np.random.default_rng(seed), 300, cut=0.05), lambda _: rates)
    np.testing.assert_allclose(parts.values.as_array(), twin.q, rtol=1e-9, atol=1e-9)
    assert parts.updates.tolist() == twin.made


seeds = st.integers(0, 10_000)
frames = st.sampled_from(["previous", "current"])


@pytest.mark.parametrize(
    "plan", [pytest.param(plan, marks=[pytest.mark.slow] if len(plan) > 1 else []) for plan in PLANS], ids=str
)
@pytest.mark.parametrize("model", MODELS, ids=str)
@settings(max_examples=2)
@given(seed=seeds, control=st.booleans(), frame=frames, learn=st.booleans())
def test_models_and_ways_to_plan(model, plan, seed, control, frame, learn):
    agent = bc.agent("backward", frame=frame, learn=learn, **model, **plan)
    assert_equal_to_the_twin(random_world(seed, control, terminals=seed % 3), agent, seed)


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
@settings(max_examples=2)
@given(seed=seeds, control=st.booleans(), frame=frames, learn=st.booleans())
def test_models_and_ways_to_plan_in_averages(model, plan, seed, control, frame, learn):
    """What is known of a pair counts as much as the pair is probable; rewards of a softmax are averaged, too."""
    if model.get("model") == "softmax" and not {"sample", "top"} & plan.keys():
        return  # it is refused
    agent = bc.agent("backward", frame=frame, learn=learn, schedule="average", **model, **plan)
    assert_equal_to_the_twin(random_world(seed, control, terminals=seed % 3), agent, seed)


@pytest.mark.parametrize(
    "options",
    [
        {"model": "counts"},
        {"model": "counts", "horizon": 2},
        {"model": "counts", "forget": 0.05},
        {"model": "softmax", "horizon": 2},  # rewards of the paper's one-step softmax belong to states: by hand
    ],
    ids=str,
)
@settings(max_examples=6)
@given(seed=seeds)
def test_importance_weights(options, seed):
    """With α_model = 1 and ε = 0.8 a step counts up to 4 times: a softmax takes at most one whole step."""
    world = random_world(seed, True, terminals=seed % 3)
    assert_equal_to_the_twin(world, bc.agent("backward", importance=True, **options), seed, (0.5, 1.0, 0.4, 0.8))


@pytest.mark.parametrize("plan", PLANS, ids=str)
@settings(max_examples=6)
@given(seed=seeds, control=st.booleans(), ends=st.booleans())
@example(seed=0, control=True, ends=True)  # it never terminates in one of the states
def test_options(plan, seed, control, ends):
    rng = np.random.default_rng(seed)
    policy = rng.dirichlet(np.ones(3), size=6) if control and seed % 2 else None
    option = bc.Option(rng.random(6).round(2), rng.random(6).round(2) if ends else None, policy)
    agent = bc.agent("backward", model="counts", option=option, **plan)
    assert_equal_to_the_twin(random_world(seed, control, terminals=seed % 3), agent, seed)
