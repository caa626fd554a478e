"""Settings of models of states that are refused, with the reason."""

import numpy as np
import pytest

import backcast as bc


def test_models_without_enough_room_are_refused():
    with pytest.raises(bc.InputError, match=r"would connect up to .* pairs of states.*smaller horizon"):
        bc.run(bc.worlds.chain((4000, 1500)), bc.agent("backward", lam=0.5), 1, 1)


REFUSALS = [
    ({"horizon": 2, "lam": 0.5}, "horizon and lam: each of them sets the number of steps"),
    ({"lam_by": "td"}, "lam_by: .* give lam as well"),
    (
        {"lam": 0.5, "lam_by": "td", "model": "softmax"},
        "lam_by: 'td' does not use a softmax, because it moves probabilities",
    ),
    ({"conditioned": True, "model": "softmax"}, "conditioned: a softmax for each action"),
    ({"sample": 2, "top": 3}, "sample and top"),
    ({"model": "true", "forget": 0.1}, "forget: a true model"),
    ({"importance": True, "option": bc.Option(1.0)}, "importance and option"),
    ({"lam": 1.0}, "lam: 1 everywhere"),
    ({"lam": -0.1}, r"lam: -0.1 given, expected a number in \[0, 1\]"),
    ({"weights": (0.5, 0.2)}, "weights: .* which sum to 1"),
    ({"horizon": 0}, "horizon: 0 given"),
    ({"forget": 1.0}, r"forget: 1.0 given, expected a rate in \[0, 1\)"),
    ({"model": "count"}, "model: .count. given, expected one of softmax, counts, true, .*; did you mean 'counts'"),
    ({"horizn": 2}, "no setting 'horizn'; 'backward' takes .*did you mean 'horizon'"),
    ({"variant": "moore-atkeson"}, "variant: 'moore-atkeson' given, but 'backward' takes"),
    ({"option": 3}, r"option: 3 given, expected backcast.Option"),
    ({"option": {"init": 1}}, r"option: .* given, expected backcast.Option"),
    ({"option": bc.Option(1.0, 0.5), "model": "softmax"}, "option: with a termination some paths have no initiation"),
    ({"model": np.arange(2)}, r"model: .* given, expected one of softmax"),
    ({"depth": 6}, "depth: 6 levels of all predecessors are exponentially many"),
    ({"horizon": 2000}, "horizon: 2000 given, expected at most 1,000"),
]


@pytest.mark.parametrize(("options", "message"), REFUSALS)
def test_settings_that_make_no_sense_are_refused_with_the_reason(options, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent("backward", **options)


def test_more_refusals():
    with pytest.raises(bc.InputError, match="'forward' takes"):
        bc.agent("forward", depth=2)
    with pytest.raises(bc.InputError, match="lam: one for each state"):
        bc.agent("forward", lam=(0.1, 0.2))
    with pytest.raises(bc.InputError, match=r"option\.initiation: it is 0 everywhere"):
        bc.Option(0.0)
    with pytest.raises(bc.InputError, match=r"option\.termination: none given, but looking forward"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("forward", model="counts", option=bc.Option(1.0)), 1, 1)
    with pytest.raises(bc.InputError, match="lam: 2 numbers given, but this world has 3 states"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("backward", model="counts", lam=(0.1, 0.2)), 1, 1)
    with pytest.raises(bc.InputError, match="importance: in a prediction world"):
        bc.run(bc.worlds.chain((2, 1)), bc.agent("backward", importance=True), 1, 1)
    with pytest.raises(bc.InputError, match="the model is tied to a policy"):
        bc.run(bc.worlds.maze(), bc.agent("true-forward", horizon=2), 1, 1)
    with pytest.raises(bc.InputError, match="model: backward planning with a softmax changes all values"):
        bc.agent("both", model="softmax")
