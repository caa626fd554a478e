"""What determines a run has the hash that it had when results were stored: they are known as done, and found again."""

import pytest

from backcast.studies import check_study

STORED = {
    "a74f8b5e5badfab2985a8bd6": {"kind": "chain", "levels": [5, 3, 2.0], "seed": 3, "discount": 1, "branches": 2},
    "b0fc198a9d0af0fb71564869": {
        **{"kind": "maze", "text": "S.G", "slip": 0, "reward_probability": 1, "max_steps": 7, "discount": 0.5}
    },
    "0bdf6d9cb2a912b998618881": {"kind": "blocking-maze", "step": 7, "slip": 0.1},
    "a92ed19f3f014aa5baa15e66": {"kind": "shortcut-maze", "max_steps": 9},
    "bb6012ebe6194a0e5627cc11": {"kind": "noisy-tv", "signals": 4, "channels": 2, "structure": 1},
    "1effed8261bdae81b67e390f": {"kind": "boyan", "n": 5, "discount": 0.5},
    "d64388a3b5edc3f8affe22c9": {"kind": "random-walk", "n": 7, "jump": 2},
    "7d2d82fac2b630aff6e960c9": {"kind": "garnet", "states": 9, "actions": 2, "branching": 3, "end": 0},
    "742462ebfdf73f871f1c33d9": {"kind": "random-maze", "size": [3, 4], "walls": 0.2, "seed": 1},
    "dfc22094c57c9ff6d69b06c2": {"kind": "gymnasium", "id": "FrozenLake-v1", "max_steps": 5},
    "42b556d6ef961de6499bc03b": {"kind": "gymnasium", "id": "CliffWalking-v1", "discount": 1, "label": "cliff"},
}


@pytest.mark.parametrize(("group", "world"), STORED.items())
def test_a_run_in_each_kind_of_world_is_known_by_its_hash(group, world):
    agents = [{"kind": "backward", "alpha": [1, 0.5]}]
    (cell,) = check_study({"name": "stored", "episodes": 2, "worlds": [world], "agents": agents}, "test").runs()
    assert cell.group == group


def test_settings_of_a_world_count_and_its_episodes_too():
    settings = {"alpha": 0.5, "schedule": "constant"}
    world = {"kind": "maze", "text": "S.G", "later": [5, "S.G"], "episodes": 3, "settings": settings}
    given = {"name": "stored", "episodes": 2, "worlds": [world], "agents": [{"kind": "backward"}]}
    (cell,) = check_study(given, "test").runs()
    assert cell.group == "596b1508de9da13e8347c81d"
