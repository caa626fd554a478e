"""Networks are described by values; nothing of JAX is imported before one is used."""

import subprocess
import sys

import pytest

import backcast as bc
from backcast.agents.kinds import KINDS
from backcast.networks import as_network

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(
    ("network", "name", "plain"),
    [
        (bc.networks.mlp(64, 32), "mlp-64-32", {"kind": "mlp", "widths": [64, 32]}),
        (bc.networks.linear(), "linear", {"kind": "linear"}),
        (
            bc.networks.conv(8, 16, kernel=2, widths=[4]),
            "conv-8-16-4",
            {"kind": "conv", "channels": [8, 16], "kernel": 2, "stride": 1, "widths": [4]},
        ),
    ],
)
def test_a_network_is_a_value_with_a_name_and_plain_data(network, name, plain):
    assert (network.name, network.plain()) == (name, plain)
    assert as_network("network", plain) == network
    assert hash(as_network("network", plain)) == hash(network)


def test_agents_are_named_by_their_network():
    agent = bc.agent("backward", network=bc.networks.mlp(64, 64), model="contrastive")
    assert agent.name == "backward,model=contrastive,network=mlp-64-64"
    assert bc.agent("q", network={"kind": "mlp", "widths": [8]}) == bc.agent("q", network=bc.networks.mlp(8))


def test_these_are_the_defaults_of_agents_with_a_network():
    agent = bc.agent("backward", network=bc.networks.mlp(64, 64))
    settings = ("batch", "every", "memory", "target_every", "double", "optimiser", "loss", "candidates", "precision")
    assert [agent.get(name) for name in settings] == [32, 1, 10_000, 100, False, "adam", "squared", 64, "float32"]
    assert (agent.get("encoder"), agent.get("model"), agent.alpha, agent.alpha_model) == (
        "separate",
        "contrastive",
        1e-3,
        1e-3,
    )
    assert bc.agent("both", network=bc.networks.linear(), memory=0).get("model") == "softmax"
    tabular = bc.agent("backward")
    assert [tabular.get(name) for name in settings] == [None] * 9
    assert (tabular.alpha, tabular.alpha_model) == (1.0, 1.0)


def my_network(key):
    return None


def test_a_function_is_a_network_that_cannot_be_stored():
    agent = bc.agent("q", network=my_network)
    assert agent.name == "q,network=my_network"
    with pytest.raises(bc.InputError, match="network: my_network is a function, which cannot be stored; use mlp"):
        agent.get("network").plain()


NET = bc.networks.mlp(4)
REFUSALS = [
    ("q", {"network": 5}, r"network: 5 given, expected backcast\.networks\.mlp\(64, 64\), conv"),
    ("q", {"network": {"kind": "mpl"}}, r"network: kind 'mpl' given, expected one of mlp, conv, linear.*'mlp'"),
    ("q", {"network": {"kind": "mlp", "width": [3]}}, r"network: 'width' given, but 'mlp' takes widths"),
    ("q", {"network": {"kind": "mlp"}}, r"widths: \(\) given, expected whole numbers, 1 or more"),
    ("q", {"network": {"kind": "mlp", "widths": [0]}}, r"widths: 0 given, expected a whole number, 1 or more"),
    ("q", {"batch": 3}, r"batch: only for agents with a network; give network as well"),
    ("backward", {"model": "contrastive"}, r"model: 'contrastive' is computed by a network; give network as well"),
    ("backward", {"network": NET, "features": "onehot"}, r"network and features: values are computed by a network or"),
    ("backward", {"network": NET, "weights": (0.5, 0.5)}, r"weights: not for agents with a network"),
    ("backward", {"network": NET, "model": "counts"}, r"model: 'counts' is not computed by a network; use 'softmax'"),
    ("q", {"network": NET, "schedule": "average"}, r"schedule: 'average' counts the updates of an entry of a table"),
    ("backward", {"network": NET, "memory": 0, "model": "contrastive"}, r"'contrastive' plans with pairs that are rem"),
    ("replay", {"network": NET, "memory": 0}, r"memory: 0 given, but 'replay' learns again from what is remembered"),
    ("q", {"network": NET, "memory": 0, "double": True}, r"double: with memory=0 an agent learns from each transition"),
    ("q", {"network": NET, "memory": 10}, r"memory: 10 transitions cannot fill a batch of 32"),
    ("forward", {"network": NET, "sample": 3}, r"sample: with a network, forward planning takes the expectation"),
    ("q", {"network": NET, "optimiser": "adm"}, r"optimiser: 'adm' given, expected 'adam', 'sgd' or a transformation"),
    ("q", {"network": NET, "loss": "l1"}, r"loss: 'l1' given, expected 'squared', 'huber' or a function of errors"),
    ("q", {"network": NET, "precision": "float16"}, r"precision: 'float16' given, expected one of float32, float64"),
    ("sarsa", {"network": NET}, r"network: .* given, but 'sarsa' takes"),
    ("q", {"memory": 100}, r"memory: only for agents with features or a network; give one of these as well"),
    ("q", {"features": "onehot", "memory": 1}, r"memory: 1 given, expected a whole number, 2 or more"),
    ("backward", {"alpha_model": 0}, r"alpha_model: 0 given, expected a step size in \(0, 1\]"),
]


@pytest.mark.parametrize(("kind", "settings", "message"), REFUSALS)
def test_refusals(kind, settings, message):
    with pytest.raises(bc.InputError, match=message):
        bc.agent(kind, **settings)


def test_an_untrained_model_is_allowed_as_a_control():
    assert bc.agent("backward", network=NET, alpha_model=0).alpha_model == 0


def test_kinds_with_a_network():
    assert [name for name, kind in KINDS.items() if "network" in kind.settings] == [
        *("td", "q", "forward", "backward", "both", "replay"),
    ]


def test_agents_without_a_network_import_nothing_of_jax():
    code = """
import sys
import backcast as bc
bc.agent("q", network=bc.networks.mlp(64, 64))
bc.run(bc.worlds.maze("S.G").view("pixels"), bc.agent("q"), episodes=1, seeds=1)
assert not {"jax", "equinox", "optax"} & set(sys.modules), "imported"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setattr("backcast.networks.backend.importlib.util.find_spec", lambda name: None)
    with pytest.raises(bc.InputError, match=r"network: jax and optax and equinox missing; .*pip install 'backcast"):
        bc.run(bc.worlds.maze(), bc.agent("q", network=NET), 1, 1)


def test_others_who_run_agents_say_that_they_do_not_run_these():
    from backcast.agents.setup import Setup

    with pytest.raises(bc.InputError, match=r"agent: 'q,network=mlp-4' has a network, which backcast\.run and"):
        bc.agent("q", network=NET).build(Setup(3, 2, 0.9))
