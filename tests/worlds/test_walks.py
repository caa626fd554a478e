import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import backcast as bc
from backcast.studies import check_study, read_study
from backcast.worlds.kinds import WORLDS

worlds = bc.worlds
exact = bc.exact


def information(joint):
    """I(X; Y) in nats of a joint distribution (X, Y) without zeros."""
    return float((joint * np.log(joint / np.outer(joint.sum(axis=1), joint.sum(axis=0)))).sum())


def test_boyans_chain_by_hand():
    world = worlds.boyan(4)
    np.testing.assert_array_equal(
        world.mdp.transition[:, 0], [[0, 0.5, 0.5, 0], [0, 0, 0.5, 0.5], [0, 0, 0, 1], [0, 0, 0, 1]]
    )
    np.testing.assert_array_equal(world.mdp.reward[:, 0], [[0, -3, -3, 0], [0, 0, -3, -3], [0, 0, 0, -2], [0, 0, 0, 0]])
    np.testing.assert_array_equal(world.mdp.start, [1, 0, 0, 0])
    np.testing.assert_array_equal(world.mdp.terminal, [False, False, False, True])
    np.testing.assert_allclose(exact.value(worlds.boyan(4, discount=0.5).mdp), [-4.375, -3.5, -2, 0], atol=1e-14)


def test_values_of_boyans_chain_are_twice_the_distance():
    world = worlds.boyan()
    assert (world.name, world.n_states, world.discount, world.is_prediction) == ("boyan-13", 13, 1.0, True)
    np.testing.assert_allclose(world.truth, -2.0 * np.arange(12, -1, -1), atol=1e-12)
    assert world.truth[0] == pytest.approx(-24)


@given(st.integers(3, 60))
def test_boyans_chain_of_any_length(n):
    world = worlds.boyan(n)
    np.testing.assert_allclose(world.truth, -2.0 * np.arange(n - 1, -1, -1), atol=1e-10)
    np.testing.assert_allclose(exact.stationary(world.mdp) @ exact.chain(world.mdp), exact.stationary(world.mdp))


def test_the_random_walk_by_hand():
    world = worlds.random_walk(4, jump=2)
    transition = [
        [1, 0, 0, 0, 0, 0],
        [0.5, 0, 0.25, 0.25, 0, 0],
        [0.25, 0.25, 0, 0.25, 0.25, 0],
        [0, 0.25, 0.25, 0, 0.25, 0.25],
        [0, 0, 0.25, 0.25, 0, 0.5],
        [0, 0, 0, 0, 0, 1],
    ]
    np.testing.assert_array_equal(world.mdp.transition[:, 0], transition)
    np.testing.assert_array_equal(world.mdp.reward[:, 0, 0], [0, -1, -1, 0, 0, 0])
    np.testing.assert_array_equal(world.mdp.reward[:, 0, 5], [0, 0, 0, 1, 1, 0])
    assert not world.mdp.reward[:, 0, 1:5].any()
    np.testing.assert_array_equal(world.mdp.start, [0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(world.mdp.terminal, [True, False, False, False, False, True])
    # v1 = −1/2 + (v2 + v3)/4 and v2 = −1/4 + (v1 + v3 + v4)/4, with v3 = −v2 and v4 = −v1
    np.testing.assert_allclose(world.truth, [0, -0.5, -0.2, 0.2, 0.5, 0], atol=1e-14)


def test_the_random_walk_of_the_book():
    world = worlds.random_walk()
    assert (world.name, world.n_states, world.discount) == ("random-walk-1000", 1002, 1.0)
    assert world.mdp.start[500] == 1
    row = world.mdp.transition[30, 0]
    assert row[0] == pytest.approx(71 / 200)  # 71 of the hundred places on the left are state 0 or beyond
    np.testing.assert_allclose(row[[1, 29, 31, 130]], 1 / 200)
    assert row[30] == row[131] == 0
    inner = world.truth[1:-1]
    np.testing.assert_allclose(inner, -inner[::-1], atol=1e-10)
    assert (np.diff(inner) > 0).all()
    line = np.linspace(-1, 1, 1002)[1:-1]
    assert 0.01 < np.abs(inner - line).max() < 0.1  # nearly linear, a little steeper at the ends
    np.testing.assert_allclose(exact.stationary(world.mdp)[1:4] > 0, True)


@given(st.integers(1, 40))
def test_a_walk_by_single_steps_has_values_on_a_line(n):
    world = worlds.random_walk(n, jump=1)
    np.testing.assert_allclose(world.truth[1:-1], np.linspace(-1, 1, n + 2)[1:-1], atol=1e-10)
    assert np.argmax(world.mdp.start) == (n + 1) // 2


def test_names_say_what_is_unusual_and_large_walks_are_sparse():
    assert worlds.random_walk(19, jump=1).name == "random-walk-19-jump-1"
    assert worlds.random_walk(19).name == "random-walk-19"  # jumps of up to 19
    assert worlds.noisy_tv(5, 4, structure=0.5).name == "noisy-tv-5x4-structure-0.5"
    large = worlds.random_walk(3000, jump=2).mdp
    assert large.is_sparse
    assert large.table[7].nnz == 4
    assert worlds.boyan(3000).mdp.is_sparse


@pytest.mark.parametrize("structure", [0.0, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("channels", [1, 2, 8])
def test_values_depend_on_the_signal_alone(channels, structure):
    world = worlds.noisy_tv(6, channels, seed=3, structure=structure)
    radio = worlds.noisy_tv(6, 1, seed=3)
    np.testing.assert_allclose(world.truth, np.repeat(radio.truth, channels), atol=1e-12)
    assert np.ptp(radio.truth) > 0.1
    d = exact.stationary(world.mdp)
    np.testing.assert_allclose(d, np.repeat(exact.stationary(radio.mdp) / channels, channels), atol=1e-14)
    assert (d > 0).all()


def test_signal_and_channel_of_the_noisy_tv():
    world = worlds.noisy_tv(seed=1)
    assert (world.name, world.n_states, world.discount, world.is_prediction) == ("noisy-tv-8x8", 64, 0.9, True)
    np.testing.assert_array_equal(np.flatnonzero(world.mdp.terminal), np.arange(56, 64))
    np.testing.assert_allclose(world.mdp.start, np.where(world.mdp.terminal, 0, 1 / 56))
    transition = world.mdp.transition[:, 0].reshape(8, 8, 8, 8)  # signal, channel, next signal, next channel
    signal = transition[:-1].sum(axis=3)
    np.testing.assert_allclose(signal, signal[:, :1].repeat(8, axis=1), atol=1e-14)
    np.testing.assert_allclose(signal[:, 0, -1], 1 / 8)
    channel = transition[0].sum(axis=1)
    np.testing.assert_allclose(transition[:-1], np.einsum("ij,cd->icjd", signal[:, 0], channel), atol=1e-14)
    np.testing.assert_allclose(np.sort(channel, axis=1)[:, [0, 6, 7]], np.tile([0.0125, 0.0125, 0.9125], (8, 1)))
    c, cycle = 0, set()
    for _ in range(8):
        c = int(channel[c].argmax())
        cycle.add(c)
    assert (c, cycle) == (0, set(range(8)))  # one cycle through all channels
    reward = world.mdp.reward[:56, 0].reshape(56, 8, 8)
    earned = reward[0, :, 0]
    np.testing.assert_array_equal(reward, np.broadcast_to(earned[:, None], (56, 8, 8)))
    assert earned[-1] == 0
    assert earned.sum() == pytest.approx(0, abs=1e-14)
    assert np.ptp(earned) > 1


def test_the_television_is_as_predictable_backward_as_forward():
    world = worlds.noisy_tv(4, 3, seed=2, structure=0.7)
    back = exact.backward(world.mdp).states.reshape(4, 3, 4, 3)  # signal, channel, earlier signal, earlier channel
    signal = exact.backward(worlds.noisy_tv(4, 1, seed=2).mdp).states
    channel = world.mdp.transition[:, 0].reshape(4, 3, 4, 3)[0].sum(axis=1)
    np.testing.assert_allclose(back[:, :, :3], np.einsum("sp,dc->scpd", signal[:, :3], channel), atol=1e-14)
    np.testing.assert_array_equal(world.fan_in, np.full(12, 9))
    np.testing.assert_array_equal(world.fan_out[:9], np.full(9, 12))


def test_the_television_is_more_to_know_than_the_signal():
    knowing = []
    for seed in range(12):
        world = worlds.noisy_tv(seed=seed)
        joint = (exact.stationary(world.mdp)[:56, None] * world.mdp.transition[:56, 0]).reshape(7, 8, 8, 8)
        joint = joint / joint.sum() + 1e-300
        assert information(joint.sum(axis=(0, 2))) == pytest.approx(1.6124, abs=1e-4)  # log 8 − 0.4670
        knowing.append(information(joint.sum(axis=(1, 3))))
    assert 0.2 < min(knowing) < max(knowing) < 1.0
    assert np.mean(knowing) == pytest.approx(0.6, abs=0.1)


def test_extremes_of_structure():
    noise = worlds.noisy_tv(3, 4, structure=0).mdp.transition[:8, 0].reshape(2, 4, 3, 4)
    np.testing.assert_allclose(noise, noise[:, :1, :, :1].repeat(4, axis=1).repeat(4, axis=3))
    cycle = worlds.noisy_tv(3, 4, structure=1)
    np.testing.assert_array_equal(cycle.fan_out[:8], np.full(8, 3))
    np.testing.assert_array_equal(cycle.fan_in, np.full(12, 2))


def test_groups_of_the_signal_are_an_exact_abstraction():
    world = worlds.noisy_tv(5, 3)
    groups = worlds.signal_groups(world)
    np.testing.assert_array_equal(groups, np.arange(15) // 3)
    np.testing.assert_array_equal(worlds.signal_groups(worlds.noisy_tv(5, 3, seed=None)), groups)
    onto = np.eye(5)[groups]
    merged = world.mdp.transition[:, 0] @ onto
    np.testing.assert_allclose(merged, merged[::3][groups], atol=1e-14)
    with pytest.raises(bc.InputError, match=r"world: boyan-13 given, expected one from backcast\.worlds\.noisy_tv"):
        worlds.signal_groups(worlds.boyan())


@pytest.mark.parametrize("make", [partial(worlds.noisy_tv, structure=0.5), partial(worlds.chain, branches=2)])
def test_every_seed_draws_its_own_and_worlds_can_be_pickled(make):
    family = make(seed=None, discount=0.8)
    assert family.draw(5).mdp == make(seed=5, discount=0.8).mdp
    assert family.draw(5) is family.draw(5)
    assert family.draw(5).mdp != family.draw(6).mdp
    copy = pickle.loads(pickle.dumps(family))
    assert (copy.name, copy.layout) == (family.name, family.layout)
    assert copy.draw(5).mdp == family.draw(5).mdp
    assert copy.draw(5) is copy.draw(5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: worlds.boyan(2), "n: 2 given, expected a whole number, 3 or more"),
        (lambda: worlds.boyan(discount=1.5), r"discount: 1\.5 given, expected a number in \[0, 1\]"),
        (lambda: worlds.random_walk(0), "n: 0 given, expected a whole number, 1 or more"),
        (lambda: worlds.random_walk(jump=0), "jump: 0 given, expected a whole number, 1 or more"),
        (lambda: worlds.random_walk(19, 20), "jump: 20 given, expected at most 19, the number of states"),
        (lambda: worlds.random_walk(discount="near"), r"discount: 'near' given, expected a number in \[0, 1\]"),
        (lambda: worlds.noisy_tv(2), "signals: 2 given, expected a whole number, 3 or more"),
        (lambda: worlds.noisy_tv(channels=0), "channels: 0 given, expected a whole number, 1 or more"),
        (lambda: worlds.noisy_tv(seed=-1), "seed: -1 given"),
        (lambda: worlds.noisy_tv(structure=1.2), r"structure: 1\.2 given, expected a number in \[0, 1\]"),
        (lambda: worlds.noisy_tv(seed=None, discount=-1), r"discount: -1 given, expected a number in \[0, 1\]"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(bc.InputError, match=message):
        make()


@pytest.mark.parametrize(
    "world", [worlds.boyan(), worlds.random_walk(50, jump=5), worlds.noisy_tv(4, 3), worlds.noisy_tv(4, 3, seed=None)]
)
def test_agents_learn_there(world):
    for kind in ("td", "backward", "forward"):
        runs = bc.run(world, bc.agent(kind, alpha=0.3), 300, 3)
        assert runs.rmsve[:, -20:].mean() < 0.6 * runs.rmsve[:, 0].mean(), kind


def test_studies_have_them(tmp_path):
    path = tmp_path / "walks.toml"
    path.write_text("""
        episodes = 3
        seeds = 2
        [[agents]]
        kind = "td"
        only = "prediction"
        [[worlds]]
        kind = "boyan"
        n = 7
        [[worlds]]
        kind = "random-walk"
        n = 30
        jump = 4
        discount = 0.95
        [[worlds]]
        kind = "noisy-tv"
        signals = 4
        channels = 3
        structure = 0.5
        seed = 2
        [[worlds]]
        kind = "noisy-tv"
    """)
    study = read_study(path)
    built = [world.build() for world in study.worlds]
    assert built[0].mdp == worlds.boyan(7).mdp
    assert built[1].mdp == worlds.random_walk(30, 4, 0.95).mdp
    assert built[2].mdp == worlds.noisy_tv(4, 3, 2, structure=0.5).mdp
    assert built[3].draw(6).mdp == worlds.noisy_tv(seed=6).mdp  # every seed of a study draws its own
    assert len(study.runs()) == 4


def test_the_purpose_of_a_kind_is_that_of_its_worlds():
    for name, kind in WORLDS.items():
        if kind.purpose is not None:  # that of a table or a file is its own
            world = kind.make()
            assert kind.purpose == ("prediction" if world.is_prediction else "control"), name


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"kind": "boyan", "jump": 2}, "jump does not belong to a boyan; its keys are n"),
        (
            {"kind": "chain", "max_steps": 9},
            "max_steps does not belong to a chain; its keys are levels, seed, branches",
        ),
        ({"kind": "noisytv"}, "expected one of chain, .*garnet, maze, .*; did you mean 'noisy-tv'?"),
        ({"kind": "random-walk", "n": 5, "jump": 9}, "jump: 9 given, expected at most 5"),
    ],
)
def test_studies_refuse_what_does_not_fit(world, message):
    with pytest.raises(bc.InputError, match=message):
        check_study({"name": "x", "episodes": 1, "worlds": [world], "agents": [{"kind": "td"}]}, "x.toml")


def test_list_shows_them():
    from backcast.cli import app

    shown = CliRunner().invoke(app, ["list"]).stdout
    for name in ("boyan", "random_walk", "noisy_tv", "garnet", "random_maze", "blocking_maze", "shortcut_maze"):
        assert f"  {name} " in shown
