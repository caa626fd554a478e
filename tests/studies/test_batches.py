"""How units are put together and cut up."""

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.studies import check_study
from backcast.studies.batches import MOST_UNITS, SECONDS, Batches
from backcast.studies.units import BLOCK, Failed, Finished, Unit, all_units

MAZES = [{"kind": "maze"}, {"kind": "maze", "slip": 0.5}]


def study(seeds=45, agents=("q", "backward"), **more):
    given = {"name": "s", "episodes": 3, "worlds": MAZES, "agents": [{"kind": kind} for kind in agents]}
    return check_study({**given, "seeds": seeds, **more}, "test")


def finished(unit, seconds):
    each = seconds / len(unit.seeds)
    return Finished(unit, {"seconds": seconds, "run_seconds": [each] * len(unit.seeds), "steps": 1}, None)


def units(seeds, **more):
    made = study(seeds, **more)
    return list(all_units(made, made.seeds))


def test_units_share_a_world_and_a_block_of_seeds_before_the_next():
    order = [(unit.cell.world.name, unit.seeds[0], unit.cell.label) for unit in units(45)]
    names = [world.name for world in study().worlds]
    assert order == [(name, first, who) for name in names for first in (0, 20, 40) for who in ("q", "backward")]
    assert [len(unit.seeds) for unit in units(45)[::2]] == [20, 20, 5, 20, 20, 5]


def test_what_is_not_known_is_tried_one_by_one():
    batches = Batches(units(40))
    assert [len(next(batches).units) for _ in range(3)] == [1, 1, 1]
    cutting = Batches(units(40))
    cutting.cutting = True
    assert [unit.seeds for unit in next(cutting).units] == [(0,)]
    assert [unit.seeds for unit in next(cutting).units] == [(1,)]


def test_batches_take_a_few_seconds():
    """Units of 20 seeds that take 0.19 s: fifteen of them fit into 3 s."""
    batches = Batches(units(10_000, agents=["q"]))
    first = next(batches)
    batches.learn(finished(first.units[0], 0.19))
    assert [len(unit.seeds) for unit in next(batches).units] == [20] * 15
    batches.learn(finished(first.units[0], 0.57))  # the mean of what was known and this is 0.38 s
    assert len(next(batches).units) == 7


def test_slow_units_are_cut_up():
    """Runs of half a second: six of them in three seconds."""
    batches = Batches(units(400, agents=["q"]))
    batches.cutting = True
    first = next(batches)
    batches.learn(finished(first.units[0], 0.5))
    assert [unit.seeds for unit in next(batches).units] == [tuple(range(1, 7))]
    assert [unit.seeds for unit in next(batches).units] == [tuple(range(7, 13))]
    whole = Batches(units(400, agents=["q"]))
    whole.learn(finished(next(whole).units[0], 10.0))
    assert [len(unit.seeds) for unit in next(whole).units] == [20]


def test_towards_the_end_everybody_has_something_to_do():
    """40 runs of 0.1 s left for four workers: half a second each."""
    batches = Batches([unit for unit in units(41, agents=["q"]) if "slip" not in unit.cell.world.arguments])
    batches.workers, batches.cutting = 4, True
    batches.learn(finished(next(batches).units[0], 0.1))
    assert [unit.seeds for unit in next(batches).units] == [(1, 2, 3, 4, 5)]


def test_a_batch_is_bounded_and_of_one_world():
    many = Batches(units(1, agents=["q"], grid={"alpha": [i / 5000 for i in range(1, 5001)]}))
    many.learn(finished(next(many).units[0], 1e-5))
    batch = next(many)
    assert len(batch.units) == MOST_UNITS
    assert len({unit.cell.world for batch in many for unit in batch.units}) == 2
    long = Batches(units(200, agents=["q"], episodes=50_000))
    long.learn(finished(next(long).units[0], 1e-5))
    assert len(next(long).units) == 2  # a million rows each


def test_compiling_is_no_part_of_what_a_run_costs():
    """The first unit took ten seconds, but its 20 runs only 0.2 s."""
    batches = Batches(units(10_000, agents=["q"]))
    first = next(batches).units[0]
    batches.learn(Finished(first, {"seconds": 10.0, "run_seconds": [0.0095] * 20, "steps": 1}, None))
    assert len(next(batches).units) == 15


def test_what_fails_is_not_cut_up_again():
    """Else an agent that always hangs would cost the time limit with every seed."""
    batches = Batches(units(60, agents=["q"]))
    batches.cutting = True
    batches.learn(Failed(next(batches).units[0], "no"))
    assert [len(unit.seeds) for unit in next(batches).units] == [19]
    assert [len(unit.seeds) for unit in next(batches).units] == [20]


@given(
    st.integers(1, 70),
    st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=6),
    st.booleans(),
    st.integers(1, 5),
)
def test_every_run_is_in_one_batch(seeds, costs, cutting, workers):
    batches = Batches(units(seeds))
    batches.cutting, batches.workers = cutting, workers
    met = []
    for batch, cost in zip(batches, cycle(costs), strict=False):
        assert len({unit.cell.world for unit in batch.units}) == 1
        for unit in batch.units:
            assert 1 <= len(unit.seeds) <= BLOCK
            met += [(unit.cell, seed) for seed in unit.seeds]
            batches.learn(finished(unit, cost * len(unit.seeds)))
    assert sorted(met, key=repr) == sorted(((u.cell, seed) for u in units(seeds) for seed in u.seeds), key=repr)


def test_the_target_is_a_few_seconds():
    assert 1 <= SECONDS <= 10
    assert Unit(units(1)[0].cell, (3,)).key != units(1)[0].key
    with pytest.raises(StopIteration):
        next(Batches([]))


def test_runs_of_very_many_episodes_are_units_of_few_seeds():
    sizes = {
        episodes: len(next(all_units(study(3, episodes=episodes), 45)).seeds) for episodes in (10**5, 10**6, 10**8)
    }
    assert sizes == {10**5: 20, 10**6: 2, 10**8: 1}
