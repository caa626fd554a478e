"""Settings of linear models that are refused, with the reason."""

import numpy as np
import pytest
from scipy import sparse

import backcast as bc


@pytest.mark.parametrize(
    ("kind", "settings", "words"),
    [
        ("backward", {"model": "expectation"}, "model: 'expectation' is linear in features; give features as well"),
        ("backward", {"model": "counts", "learn_by": "rls", "ridge": 1}, "learn_by and ridge: only for models of feat"),
        (
            "forward",
            {"features": "onehot", "model": "softmax"},
            "model: a softmax gives some probability to all states, which needs a table of values",
        ),
        ("backward", {"features": "onehot", "horizon": 2, "forget": 0.1}, "horizon and forget: for models of states"),
        ("backward", {"features": "onehot", "model": "counts", "top": 2}, "top: with features all predecessors"),
        (
            "forward",
            {"features": "onehot", "model": "naive"},
            "model: 'naive' does not look forward: the mean of the next",
        ),
        (
            "forward",
            {"features": "onehot", "model": "gaussian"},
            "model: 'gaussian' does not look forward: its samples would make",
        ),
        (
            "backward",
            {"features": "onehot", "model": "meta", "learn_by": "rls"},
            "learn_by: 'rls' solves least squares",
        ),
        ("backward", {"features": "onehot", "ridge": 1}, "ridge: it belongs to learn_by='rls'"),
        ("backward", {"features": "onehot", "learn_by": "rls", "ridge": 0}, "ridge: 0 given, expected a number above"),
        ("backward", {"features": "onehot", "buffer": 5}, "buffer: only for model='gaussian', which remembers"),
        ("backward", {"features": "onehot", "sample": 2}, "sample: 'expectation' makes its expected update at once"),
        ("backward", {"features": "onehot", "learn_by": "ols"}, "learn_by: 'ols' given, expected one of lms, rls"),
        (
            "td",
            {"features": "onehot", "model": "expectation"},
            "model: 'expectation' given, but 'td' takes horizon, features",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, settings, words):
    with pytest.raises(bc.InputError) as error:
        bc.agent(kind, **settings)
    assert words in str(error.value)


def test_models_too_large_for_memory_are_refused():
    large = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 19_999])), shape=(3, 20_000))
    agent = bc.agent("backward", features=large, learn_by="rls")
    with pytest.raises(bc.InputError, match="'rls' keeps the root of a matrix of 20,001 × 20,001 features"):
        bc.run(bc.worlds.chain((2, 1), seed=0), agent, 1, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: bc.agent("backward", features="onehot", memory=1),
            "memory: 1 given, expected a whole number, 2 or more",
        ),
        (lambda: bc.agent("td", features=bc.features.onehot), "features: a function given, expected what it returns"),
        (lambda: bc.agent("both", model="expectation"), "use 'forward' or 'backward', with features"),
        (
            lambda: bc.exact.lstd(bc.worlds.boyan().mdp, None, bc.features.tiles()),
            r"features: tiles-8x8 belongs to no world yet; bind it, as in tiles\(world\)",
        ),
        (
            lambda: bc.run(bc.worlds.boyan(), bc.agent("td", features=1e200 * np.ones((13, 1))), 1, 1),
            r"features: an entry is 1e\+200; expected at most 1e\+100",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(bc.InputError, match=message):
        make()
