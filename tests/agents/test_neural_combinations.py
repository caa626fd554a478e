"""What models by networks cannot be combined with is refused with the reason, before anything is compiled."""

import pytest

import backcast as bc
from backcast.core.errors import InputError

NETWORK = {"network": bc.networks.mlp(8)}
FAR = r"horizon: 2 given; with a network only backward planning with model='contrastive' spans several steps, not "


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("backward", {"components": 2}, "components: only for model='generative'; 'contrastive' has no mixture"),
        ("forward", {"model": "generative"}, "model: 'generative' does not look forward: it draws previous"),
        ("both", {"model": "generative"}, "model: 'generative' does not look forward"),
        ("backward", {"model": "deterministic"}, "model: 'deterministic' does not look backward: the mean of several"),
        (
            "backward",
            {"model": "generative", "objective": "planner-aware"},
            "objective: 'planner-aware' is not for 'generative': no gradient passes through its samples",
        ),
        (
            "backward",
            {"model": "abstract", "objective": "planner-aware"},
            "objective: 'planner-aware' is not for 'abstract': it learns the correction itself",
        ),
        ("backward", {"model": "abstract", "sample": 3}, "sample: 'abstract' makes its correction at once; there is"),
        ("td", {"horizon": 2}, FAR + "'td'; leave it out"),
        ("forward", {"horizon": 2}, FAR + "'forward' with 'contrastive'; leave it out"),
        ("backward", {"horizon": 2, "model": "softmax"}, FAR + "'backward' with a softmax; leave it out"),
        ("backward", {"horizon": 2, "model": "generative"}, FAR + "'backward' with 'generative'; leave it out"),
        ("backward", {"horizon": 2, "memory": 0}, FAR + "'backward' with a softmax; leave it out"),
        (
            "backward",
            {"horizon": 2, "objective": "planner-aware"},
            "horizon and objective: 'planner-aware' compares corrections of single steps; give one of them",
        ),
        (
            "backward",
            {"horizon": 50, "memory": 40},
            "horizon: 50 steps given, but 40 transitions are remembered; expected at most as many",
        ),
        ("backward", {"model": "counts"}, "model: 'counts' is not computed by a network; use 'softmax' or"),
        ("backward", {"objective": "guess"}, "objective: 'guess' given, expected"),
        ("backward", {"model": "generative", "components": 0}, "components: 0 given, expected a whole number, 1 or"),
    ],
)
def test_what_a_network_cannot_compute_is_refused(kind, settings, message):
    with pytest.raises(InputError, match=message):
        bc.agent(kind, **NETWORK, **settings)


@pytest.mark.parametrize("model", ["generative", "deterministic"])
def test_models_by_networks_need_one(model):
    kind = "forward" if model == "deterministic" else "backward"
    with pytest.raises(InputError, match=f"model: '{model}' is computed by a network; give network as well"):
        bc.agent(kind, model=model)
    with pytest.raises(InputError, match="objective: only for agents with a network; give network as well"):
        bc.agent(kind, objective="planner-aware")


def test_what_looks_one_step_far_may_say_so():
    assert bc.agent("backward", horizon=1, **NETWORK).name == "backward,horizon=1,network=mlp-8"
