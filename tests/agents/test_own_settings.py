"""Settings that other people's kinds register belong to these kinds, whatever Backcast's own are called."""

import copy
import pickle

import numpy as np
import pyarrow.csv as pv
import pytest

import backcast as bc
from backcast.extending import KINDS, Setting, choice, number, register, whole

pytestmark = pytest.mark.interpreted


def add(kind, *settings, **more):
    """Register Q-learning by another name, with these settings."""

    @register(kind, settings=settings, **more)
    def build(setup, agent):
        """Q-learning by another name."""
        return KINDS["q"].build(setup, agent)


# names that Backcast uses as well


def test_a_kind_is_asked_by_its_own_table():
    add("patient", number("sample", "a share", 0, 1))
    assert bc.agent("patient", sample=0.5).name == "patient,sample=0.5"
    with pytest.raises(bc.InputError, match=r"sample: 5 given, expected a number in \[0, 1\]"):
        bc.agent("patient", sample=5)
    assert bc.agent("dyna", sample=5).get("sample") == 5


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ((number("ridge", "mine", 0),), {"ridge": 0}),
        ((whole("memory", "mine"),), {"memory": 7}),
        ((whole("horizon", "mine"), number("lam", "mine", 0, 1)), {"horizon": 2, "lam": 1.0}),
        (("horizon", "lam"), {"horizon": 2, "lam": 1.0}),
        (("sample", "top"), {"sample": 2, "top": 3}),
        ((choice("depth", "mine", "shallow", "deep"),), {"depth": "deep"}),
        ((choice("model", "mine", "expectation", "softmax"), "sample"), {"model": "expectation", "sample": 2}),
        ((choice("traces", "mine", "none"), choice("lam_by", "mine", "td")), {"lam_by": "td"}),
    ],
)
@pytest.mark.parametrize("direction", [None, "backward", "both"])
def test_combinations_of_backcasts_kinds_are_no_business_of_others(settings, given, direction):
    add("patient", *settings, direction=direction)
    chosen = bc.agent("patient", **given)
    assert {name: chosen.get(name) for name in given} == given
    assert bc.run(bc.worlds.maze("S.G"), chosen, 2, 1).steps.shape == (1, 2)


def test_a_kind_may_share_the_combinations_of_another():
    add("patient", "sample", "top", number("ridge", "mine", 0), rules=KINDS["backward"].rules)
    with pytest.raises(bc.InputError, match="sample and top: sample draws from the whole row"):
        bc.agent("patient", sample=2, top=3)
    assert bc.agent("patient", ridge=0).get("ridge") == 0  # the rule about `ridge` is about Backcast's


def test_a_kind_may_have_combinations_of_its_own():
    def rule(kind, given, schedule):
        yield {"low", "high"} <= given.keys(), f"low and high: {kind.name!r} takes one of them"

    add("patient", "low", "high", rules=(rule,))
    assert bc.agent("patient", low=1).get("low") == 1
    with pytest.raises(bc.InputError, match="low and high: 'patient' takes one of them"):
        bc.agent("patient", low=1, high=2)


def test_a_word_of_ones_own_makes_no_claims():
    add("patient", choice("model", "mine", "true", "false"), whole("weights", "mine"), "option")
    assert not bc.agent("patient", model="true").knows_the_truth
    assert bc.agent("backward", model="true").knows_the_truth
    assert not bc.agent("patient", weights=3).looks_far
    add("sharing", "model")
    assert bc.agent("sharing", model="true").knows_the_truth


def test_features_of_ones_own_make_no_linear_values():
    add("patient", whole("features", "mine"), table_only="it has a table")
    runs = bc.run(bc.worlds.maze("S.G"), bc.agent("patient", features=3), 2, 1)
    assert runs.weights is None


@pytest.mark.parametrize("name", ["kind", "label", "only", "grid", "search", "alpha", "epsilon_schedule"])
def test_keys_of_every_agent_are_not_registered_again(name):
    with pytest.raises(bc.InputError, match=f"settings: '{name}' is an argument of every agent"):
        add("patient", name)


# free settings


@pytest.mark.parametrize(
    ("given", "kept", "name"),
    [
        ({"any": ["thing", 1]}, {"any": ("thing", 1)}, "patient,beta={'any': ('thing', 1)}"),
        (np.array([[1.0, 2.0], [3.0, 4.5]]), ((1.0, 2.0), (3.0, 4.5)), "patient,beta=1-2-3-4.5"),
        (np.array(0.5), 0.5, "patient,beta=0.5"),
        (np.float64(0.5), 0.5, "patient,beta=0.5"),
        ([1, [2, 3]], (1, (2, 3)), "patient,beta=1-2-3"),
        (["a", True], ("a", True), "patient,beta=a-true"),
        ({1, 2}, frozenset({1, 2}), "patient,beta=frozenset({1, 2})"),
        (None, None, "patient"),
    ],
)
def test_what_is_given_freely_is_kept_as_something_that_can_be_compared(given, kept, name, tmp_path):
    add("patient", "beta")
    chosen = bc.agent("patient", beta=given)
    assert (chosen.get("beta"), chosen.name) == (kept, name)
    assert chosen == bc.agent("patient", beta=copy.deepcopy(given))
    assert len({chosen, copy.deepcopy(chosen), pickle.loads(pickle.dumps(chosen))}) == 1
    agents = {"one": chosen, "two": bc.agent("patient", beta="other")}
    bc.compare(bc.worlds.maze("S.G"), agents, 1, 2).export(tmp_path / "t.csv")
    assert pv.read_csv(tmp_path / "t.csv")["beta"].to_pylist()[-1] == "other"


def test_a_table_that_is_kept_does_not_change():
    add("patient", "beta")
    given = {"inner": {"x": 1}}
    kept = bc.agent("patient", beta=given).get("beta")
    given["inner"]["x"] = 2
    assert kept == {"inner": {"x": 1}}
    for change in (lambda: kept.update(x=1), lambda: kept["inner"].pop("x"), lambda: kept.__setitem__("x", 1)):
        with pytest.raises(TypeError, match="settings do not change"):
            change()


def test_what_cannot_be_compared_is_refused():
    add("patient", "beta")

    class Odd:
        __hash__ = None

        def __repr__(self):
            return "Odd()"

    with pytest.raises(bc.InputError, match=r"beta: \[1, Odd\(\)\] given, expected something that can be hashed"):
        bc.agent("patient", beta=[1, Odd()])


def test_runs_with_a_table_are_saved_and_loaded(tmp_path):
    add("patient", "beta")
    runs = bc.run(bc.worlds.maze("S.G"), bc.agent("patient", beta={"x": [1, {"y": 2}]}), 2, 1)
    runs.save(tmp_path / "runs.npz")
    assert bc.Runs.load(tmp_path / "runs.npz").agent == runs.agent
    del KINDS["patient"]
    assert hash(bc.Runs.load(tmp_path / "runs.npz").agent) == hash(runs.agent)


def test_a_default_may_be_a_list():
    assert hash(Setting("x", "", lambda name, given: given, int, "", default=[1, 2])) is not None
