"""Where states are drawn: places and names worked out by hand, and what holds of every world."""

import json
from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.core.errors import InputError
from backcast.lab.layout import EDGES, layout_of
from backcast.worlds.layouts import CLOCKWISE, full_grid

TWO_STATES = bc.FiniteMDP([[[0.5, 0.5], [1.0, 0.0]]] * 2, [[0.0, 0.0]] * 2, 0.9, [1.0, 0.0], [False, True])


def from_gymnasium(name, **given):
    return bc.worlds.from_gymnasium(gymnasium.make(name, **given))


WORLDS = [
    bc.worlds.maze(),
    bc.worlds.maze("S #\n# G"),
    bc.worlds.chain((24, 6, 2)),
    bc.worlds.chain((500, 50, 5)),
    bc.worlds.chain((5, 50, 500)),
    bc.worlds.chain((4,) * 20),
    bc.worlds.chain((1, 1)),
    bc.worlds.boyan(),
    bc.worlds.boyan(98),
    bc.worlds.random_walk(3, jump=1),
    bc.worlds.random_walk(),
    bc.worlds.noisy_tv(),
    bc.worlds.random_maze(6),
    bc.worlds.garnet(2, 1, 1),
    bc.worlds.garnet(60, 4, 3),
    bc.worlds.garnet(1000, 1, 5),
    bc.worlds.from_mdp(TWO_STATES),
    *map(from_gymnasium, ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "Taxi-v4")),
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_state_has_a_place_of_its_own_within_the_picture_and_a_name(world):
    layout = layout_of(world)
    assert json.loads(json.dumps(layout)) == layout
    assert len(layout["x"]) == len(layout["y"]) == len(layout["kinds"]) == len(layout["names"]) == world.n_states
    assert len(layout["actions"]) == world.n_actions
    assert len(set(layout["names"])) == world.n_states
    x, y = np.array(layout["x"]), np.array(layout["y"])
    before, after = (0, 1) if layout["shape"] == "grid" else (layout["radius"], layout["radius"])
    assert x.min() >= before
    assert y.min() >= before
    assert x.max() + after <= layout["width"]
    assert y.max() + after <= layout["height"]
    apart = np.hypot(x[:, None] - x, y[:, None] - y) + 9 * np.eye(len(x))
    assert apart.min() >= (1 if layout["shape"] == "grid" else 2 * layout["radius"])


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_groups_enclose_their_states_and_have_room_for_a_title_above(world):
    layout = layout_of(world)
    inside = np.zeros(world.n_states, dtype=int)
    x, y = np.array(layout["x"]), np.array(layout["y"])
    for group in layout["groups"]:
        assert group["y"] > 0
        across = (group["x"] <= x) & (x < group["x"] + group["width"])
        inside += across & (group["y"] <= y) & (y < group["y"] + group["height"])
    assert (inside == (1 if layout["groups"] else 0)).all()


def test_a_maze_is_its_characters():
    layout = layout_of(bc.worlds.maze("S.#\n..G", slip=0.1))
    assert layout["shape"] == "grid"
    assert (layout["width"], layout["height"]) == (3, 2)
    assert (layout["x"], layout["y"]) == ([0, 1, 2, 0, 1, 2], [0, 0, 0, 1, 1, 1])
    assert layout["kinds"] == "S.X..G"
    assert layout["names"][2] == "row 1, column 3"
    assert [(a["name"], a["dx"], a["dy"]) for a in layout["actions"]] == [
        ("up", 0, -1),
        ("right", 1, 0),
        ("down", 0, 1),
        ("left", -1, 0),
    ]
    assert layout["editable"]


def test_frozen_lakes_are_their_maps():
    small, large = layout_of(from_gymnasium("FrozenLake-v1")), layout_of(from_gymnasium("FrozenLake8x8-v1"))
    assert small["kinds"] == "S....T.T...TT..G"
    assert (large["width"], large["height"]) == (8, 8)
    assert large["kinds"].count("T") == 10
    assert small["names"][6] == "row 2, column 3"
    assert [a["name"] for a in small["actions"]] == ["left", "down", "right", "up"]
    assert [(a["dx"], a["dy"]) for a in small["actions"]] == [(-1, 0), (0, 1), (1, 0), (0, -1)]
    assert not small["editable"]


def test_a_garnet_is_a_ring_around_its_end():
    layout = layout_of(bc.worlds.garnet(9, 2, 3))
    assert (layout["shape"], layout["kinds"], layout["names"][3]) == ("graph", "S.......G", "state 3")
    x, y = np.array(layout["x"]), np.array(layout["y"])
    middle = 8 / (2 * np.pi) + 0.5  # neighbours are 1 apart along the ring
    np.testing.assert_allclose([x[8], y[8], layout["width"] / 2, layout["height"] / 2], middle, atol=1e-3)
    np.testing.assert_allclose(np.hypot(x[:8] - x[8], y[:8] - y[8]), 8 / (2 * np.pi), atol=2e-3)
    assert x[2] > x[8]  # clockwise from the top
    assert y[0] < y[8]
    ways = bc.worlds.garnet(9, 2, 3).mdp.graph
    assert {tuple(edge) for edge in layout["edges"]} == {(s, t) for s, t in np.argwhere(ways.toarray()) if s != 8}
    assert layout_of(bc.worlds.garnet(200, 1, 3))["shape"] == "grid"


def test_a_lake_that_is_no_square_is_its_map_as_well():
    layout = layout_of(from_gymnasium("FrozenLake-v1", desc=["SFF", "FHG"]))
    assert (layout["width"], layout["height"]) == (3, 2)
    assert layout["names"][5] == "row 2, column 3"
    assert layout["kinds"] == "S...TG"
    assert layout["actions"][1] == {"name": "down", "dx": 0, "dy": 1}


@pytest.mark.parametrize("name", ["boyan-7", "random-walk-7", "FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_a_world_is_not_drawn_by_its_name(name):
    """Whatever it is called, it is drawn as any world of its size."""
    sizes = {"FrozenLake-v1": (16, 4), "CliffWalking-v1": (48, 4), "Taxi-v4": (500, 6)}
    n, actions = sizes.get(name, (8, 1))
    nowhere = bc.FiniteMDP(np.tile(np.eye(n)[:, None], (1, actions, 1)), np.zeros((n, actions)), 0.9, np.full(n, 1 / n))
    layout = layout_of(bc.worlds.from_mdp(nowhere, name=name, max_steps=5))
    assert (layout["shape"], layout["names"][n - 1]) == ("grid", f"state {n - 1}")
    assert layout["actions"][0]["name"] == ("on" if actions == 1 else "action 0")


def test_a_walk_by_another_name_is_a_walk():
    assert layout_of(replace(bc.worlds.boyan(4), name="mine"))["shape"] == "graph"


def test_a_world_of_ones_own_says_where_its_states_are():
    world = bc.worlds.from_mdp(bc.worlds.maze("S.\n.G").mdp, max_steps=5)
    layout = layout_of(replace(world, layout=full_grid(2, 2, ("north", "east", "south", "west"), across="place")))
    assert (layout["width"], layout["names"][3], layout["kinds"]) == (2, "row 2, place 2", "S..G")
    assert layout["actions"][1] == {"name": "east", "dx": 1, "dy": 0}
    with_policy = replace(world, layout=full_grid(2, 2, CLOCKWISE), policy=np.full((4, 4), 0.25))
    assert layout_of(with_policy)["actions"] == [{"name": "on", "dx": 0, "dy": 0}]
    with pytest.raises(InputError, match="layout: that of mdp is for 4 or 6 states, expected 4"):
        layout_of(replace(world, layout=full_grid(2, 3)))


@pytest.mark.parametrize("name", ["CliffWalking-v1", "CliffWalkingSlippery-v1"])
def test_a_cliff_looks_like_one_though_nobody_is_ever_there(name):
    layout = layout_of(from_gymnasium(name))
    assert (layout["width"], layout["height"]) == (12, 4)
    assert layout["kinds"] == 36 * "." + "S" + 10 * "T" + "G"
    assert [a["name"] for a in layout["actions"]] == ["up", "right", "down", "left"]


def test_the_taxi_is_twenty_grids():
    layout = layout_of(from_gymnasium("Taxi-v4"))
    state = ((3 * 5 + 2) * 5 + 1) * 4 + 2  # in row 4 and column 3, passenger at Green, to Yellow
    assert layout["names"][state] == "passenger at Green, to Yellow: row 4, column 3"
    assert layout["names"][499] == "passenger in the taxi, to Blue: row 5, column 5"
    assert (layout["x"][state], layout["y"][state]) == (6 + 2, 2 * 6.5 + 1.5 + 3)
    assert len(layout["groups"]) == 20
    assert layout["groups"][4 + 2] == {"x": 6, "y": 14.5, "width": 5, "height": 5, "title": "Green → Yellow"}
    assert [s for s, kind in enumerate(layout["kinds"]) if kind == "G"] == [0, 85, 410, 475]
    assert set(layout["kinds"]) == {".", "G"}  # it begins anywhere
    names = [a["name"] for a in layout["actions"]]
    assert names == ["south", "north", "east", "west", "pickup", "dropoff"]
    assert (layout["actions"][1]["dy"], layout["actions"][4]["dy"]) == (-1, 0)


def test_levels_of_a_chain_are_columns_spread_over_the_height():
    layout = layout_of(bc.worlds.chain((4, 2, 1)))
    top, rows = 0.5, 6
    assert layout["shape"] == "graph"
    assert layout["width"] == 9  # three columns, 2 apart, and half of that at each side
    assert layout["x"] == [1.5, 1.5, 1.5, 1.5, 4.5, 4.5, 7.5]
    assert layout["y"] == [top + rows * part for part in (1 / 8, 3 / 8, 5 / 8, 7 / 8, 1 / 4, 3 / 4, 1 / 2)]
    assert layout["names"][5] == "level 2, state 2"
    assert [group["title"] for group in layout["groups"]] == [
        "level 1: 4 states",
        "level 2: 2 states",
        "level 3: 1 state",
    ]
    assert layout["edges"] == [[s, t] for s in range(4) for t in (4, 5)] + [[4, 6], [5, 6]]
    assert layout["kinds"] == "......T"


@pytest.mark.parametrize("sizes", [(500, 50, 5), (5, 50, 500)])
def test_large_levels_are_blocks_and_still_layers(sizes):
    layout = layout_of(bc.worlds.chain(sizes))
    assert 1.1 < layout["width"] / layout["height"] < 1.6
    assert layout["edges"] == []
    for left, right in pairwise(layout["groups"]):
        assert right["x"] - (left["x"] + left["width"]) > 5  # between layers there is room
    assert {group["height"] for group in layout["groups"]} == {32}
    assert sorted(group["width"] for group in layout["groups"]) == [1, 2, 16]  # 16 columns of 32 for 500


def test_many_levels_have_short_titles():
    assert layout_of(bc.worlds.chain((2,) * 5))["groups"][4]["title"] == "level 5: 2 states"
    assert layout_of(bc.worlds.chain((2,) * 6))["groups"][5]["title"] == "level 6"


def test_edges_are_drawn_while_they_can_be_seen():
    assert len(layout_of(bc.worlds.chain((60, 50)))["edges"]) == EDGES
    assert layout_of(bc.worlds.chain((61, 50)))["edges"] == []
    assert len(layout_of(bc.worlds.chain((40, 40), branches=2))["edges"]) == 2 * 20 * 20


def test_a_walk_is_a_row_whose_ends_are_marked():
    layout = layout_of(bc.worlds.random_walk(3, jump=1))
    assert layout["x"] == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert layout["y"] == [1] * 5
    assert layout["kinds"] == "T.S.T"
    assert layout["edges"] == [[1, 0], [1, 2], [2, 1], [2, 3], [3, 2], [3, 4]]
    assert layout["actions"] == [{"name": "on", "dx": 0, "dy": 0}]


def test_a_walk_that_passes_over_neighbours_zigzags():
    layout = layout_of(bc.worlds.boyan(4))
    assert layout["y"] == [0.55, 1.45, 0.55, 1.45]
    assert layout["kinds"] == "S..T"


def test_a_long_walk_winds_down():
    layout = layout_of(bc.worlds.random_walk(28, jump=1))  # 30 states in rows of 9
    assert layout["width"] == 9
    assert (layout["x"][8], layout["y"][8]) == (8.5, 1)
    assert (layout["x"][9], layout["y"][9]) == (8.5, 3)
    assert (layout["x"][17], layout["y"][17]) == (0.5, 3)


def test_television_is_signals_by_channels():
    layout = layout_of(bc.worlds.noisy_tv(signals=3, channels=5))
    assert (layout["width"], layout["height"]) == (5, 3)
    assert layout["names"][7] == "signal 2, channel 3"
    assert layout["kinds"] == 10 * "." + 5 * "T"


def test_any_other_world_is_a_block_of_cells():
    n = 48
    nowhere = bc.FiniteMDP(np.tile(np.eye(n)[:, None], (1, 2, 1)), np.zeros((n, 2)), 0.9, np.full(n, 1 / n))
    layout = layout_of(bc.worlds.from_mdp(nowhere, max_steps=5))
    assert (layout["width"], layout["height"]) == (8, 6)
    assert (layout["x"][15], layout["y"][15], layout["names"][15]) == (7, 1, "state 15")
    assert layout["kinds"] == 48 * "."


def test_a_world_that_every_seed_draws_anew_must_be_drawn():
    with pytest.raises(InputError, match="every seed draws its own world"):
        layout_of(bc.worlds.chain((4, 2), seed=None))
