"""Agents do not know in which unit rewards are: rewards times 2^±30 give the same run, with values times 2^±30.

A power of two changes no digit, so that results are compared byte for byte. Nothing passes that adds a constant to
rewards or values, or compares them with one.
"""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.estimators import ESTIMATORS
from backcast.agents.kinds import KINDS
from random_worlds import random_world

pytestmark = pytest.mark.interpreted

BONUS = 0.01
LINEAR = {
    "features": bc.features.random_binary(d=4, active=2, seed=1),
    "alpha": 0.05,
    "alpha_model": 0.05,
    "alpha_plan": 0.05,
}
SETTINGS = [
    *((kind, {"bonus": BONUS} if kind == "dyna-plus" else {}) for kind in KINDS),
    ("td", {"horizon": 3}),
    ("forward", {"model": "counts", "horizon": 2}),
    ("backward", {"model": "counts", "sample": 2, "schedule": "average"}),
    ("backward", {"horizon": 2}),
    ("backward", {"lam": 0.5, "model": "counts"}),
    ("backward", {"conditioned": True, "frame": "previous"}),
    ("dyna", {"forget": 0.1}),
    ("prioritized-replay", {"exponent": 1.0}),
    ("sweeping", {"variant": "peng-williams"}),
    ("sweeping", {"variant": "mcmahan-gordon"}),
    ("sweeping", {"forget": 0.1}),
    ("blend", {"prior": False}),
    ("blend", {"gate": 0.0, "forget": 0.1}),
    *(
        (kind, {"model": each.name, **LINEAR})
        for each in ESTIMATORS.values()
        for kind, refused in (("forward", each.not_forward), ("backward", each.not_backward))
        if each.linear and not refused
    ),
    ("backward", {"model": "expectation", "learn_by": "rls", **LINEAR}),
    ("q-lambda", LINEAR),
    ("td-lambda", LINEAR),
]


def cases():
    """Each kind with its settings, where it works: in prediction, in control, or in both."""
    for kind, settings in SETTINGS:
        for task in ("prediction", "control"):
            if KINDS[kind].only in (None, task):
                words = (f"{name}={value}" for name, value in settings.items() if name not in LINEAR)
                yield pytest.param(kind, settings, task == "control", id="-".join([kind, task, *words]))


@pytest.mark.parametrize(("kind", "settings", "control"), list(cases()))
@pytest.mark.parametrize("bits", [-30, 30])
def test_rewards_times_a_power_of_two_give_values_times_the_same(kind, settings, control, bits):
    def run(unit):
        world = random_world(3, control, terminals=1, max_steps=12, unit=unit)
        rewarded = settings | ({"bonus": BONUS * unit} if "bonus" in settings else {})
        return bc.run(world, bc.agent(kind, **rewarded), episodes=6, seeds=1)

    once, scaled = run(1.0), run(2.0**bits)
    assert once.values.any()
    np.testing.assert_array_equal(np.ldexp(once.values, bits), scaled.values)
    np.testing.assert_array_equal(once.steps, scaled.steps)
    np.testing.assert_array_equal(once.updates, scaled.updates)
