import copy
import pickle
import stat
import zipfile

import numpy as np
import pytest
from hypothesis import given
from scipy import sparse

import backcast as bc
from random_worlds import densified, random_mdp, worlds_and_policies

T = np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.2, 0.8]]])
R = np.arange(8.0).reshape(2, 2, 2)
START = [1.0, 0.0]


def make(transition=T, reward=R, discount=0.9, start=START, terminal=None):
    return bc.FiniteMDP(transition, reward, discount, start, terminal)


def changed(array, place, value):
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


def test_dense_world_comes_back_as_given():
    mdp = make()
    assert (mdp.n_states, mdp.n_actions, mdp.discount) == (2, 2, 0.9)
    np.testing.assert_array_equal(mdp.transition, T)
    # impossible transitions earn nothing: P(0|0,1) = P(1|1,0) = 0
    np.testing.assert_array_equal(mdp.reward, [[[0, 1], [0, 3]], [[4, 0], [6, 7]]])
    np.testing.assert_allclose(mdp.expected_reward, [[0.5, 3.0], [4.0, 0.2 * 6 + 0.8 * 7]])


def test_rewards_by_state_and_action_and_by_ends():
    by_action = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    three_actions = np.repeat(T[:, :1], 3, axis=1)
    np.testing.assert_allclose(make(three_actions, by_action).expected_reward, by_action)
    by_ends = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(make(three_actions, by_ends).expected_reward[:, 0], [1.5, 3.0])


def test_ambiguous_reward_is_taken_by_action_with_a_warning():
    with pytest.warns(UserWarning, match=r"fits both \(S, A\) and \(S, S\); taken as r\(s, a\)"):
        mdp = make(reward=[[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(mdp.expected_reward, [[1.0, 2.0], [3.0, 4.0]])


def test_terminal_rows_are_replaced_and_need_not_be_distributions():
    mdp = make(changed(T, 1, 0.0), R, terminal=[False, True])
    np.testing.assert_array_equal(mdp.transition[1], [[0, 1], [0, 1]])
    np.testing.assert_array_equal(mdp.reward[1], 0)
    assert make(T, R, terminal=[False, True]) == mdp


@given(worlds_and_policies())
def test_sparse_and_dense_hold_the_same(world_and_policy):
    mdp, _ = world_and_policy
    same = densified(mdp)
    assert same == mdp
    assert not same.is_sparse
    again = bc.FiniteMDP(mdp.table, mdp.table_reward, mdp.discount, mdp.start, mdp.terminal)
    assert again.is_sparse
    assert sparse.issparse(again.transition)
    assert again == mdp


def test_sparse_input_is_not_changed_and_duplicates_add_up():
    entries = sparse.coo_array(([0.5, 0.5, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    mdp = bc.FiniteMDP(entries, sparse.csr_array((2, 2)), 0.9, START)
    assert mdp.table.nnz == 2
    assert entries.nnz == 3


def test_it_is_immutable():
    mdp = make()
    with pytest.raises(AttributeError, match="immutable"):
        mdp.discount = 0.5
    for array in (mdp.start, mdp.terminal, mdp.transition, mdp.reward, mdp.expected_reward, mdp.table.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_repr():
    assert repr(make()) == "FiniteMDP(2 states, 2 actions, 6 transitions, discount 0.9, no terminal state, dense)"
    mdp = random_mdp(np.random.default_rng(0), 5, 1, terminals=2, as_sparse=True)
    assert "5 states, 1 action," in repr(mdp)
    assert repr(mdp).endswith("discount 0.9, 2 terminal, sparse)")


def test_reachable():
    line = np.zeros((4, 1, 4))
    line[[0, 1, 2, 3], 0, [1, 1, 1, 2]] = 1
    mdp = bc.FiniteMDP(line, np.zeros((4, 1)), 0.9, [1, 0, 0, 0])
    np.testing.assert_array_equal(mdp.reachable, [True, True, False, False])


@pytest.mark.parametrize("as_sparse", [False, True])
def test_save_and_load(tmp_path, as_sparse):
    mdp = random_mdp(np.random.default_rng(1), 6, 2, terminals=1, as_sparse=as_sparse)
    path = tmp_path / "world.npz"
    mdp.save(path)
    loaded = bc.FiniteMDP.load(path)
    assert loaded == mdp
    assert loaded.is_sparse == as_sparse
    assert [p.name for p in tmp_path.iterdir()] == ["world.npz"]
    assert path.stat().st_mode & stat.S_IRGRP or path.stat().st_mode & stat.S_IRUSR
    mdp.save(path)  # over itself
    assert bc.FiniteMDP.load(path) == mdp


def test_load_refuses_what_is_not_a_world(tmp_path):
    path = tmp_path / "foreign.npz"
    path.write_bytes(b"not a zip file")
    with pytest.raises(bc.InputError, match=r"foreign\.npz: not a FiniteMDP saved by Backcast"):
        bc.FiniteMDP.load(path)
    np.savez(path, something=np.zeros(3))
    with pytest.raises(bc.InputError, match="not a FiniteMDP saved by Backcast"):
        bc.FiniteMDP.load(path)
    np.savez(path, format=np.array([object()], dtype=object))
    with pytest.raises(bc.InputError, match="not a FiniteMDP saved by Backcast"):
        bc.FiniteMDP.load(path)
    make().save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(bc.InputError, match="not a FiniteMDP saved by Backcast"):
        bc.FiniteMDP.load(path)
    with pytest.raises(FileNotFoundError):
        bc.FiniteMDP.load(tmp_path / "missing.npz")


def test_copies_and_pickles_are_immutable_too():
    mdp = random_mdp(np.random.default_rng(2), 4, 2, terminals=1)
    for copied in (copy.deepcopy(mdp), pickle.loads(pickle.dumps(mdp))):
        assert copied == mdp
        assert copied.is_sparse == mdp.is_sparse
        with pytest.raises(ValueError, match="read-only"):
            copied.table.data[0] = 1


def test_saved_file_holds_no_pickle(tmp_path):
    make().save(tmp_path / "world.npz")
    with zipfile.ZipFile(tmp_path / "world.npz") as archive:
        for name in archive.namelist():
            assert b"|O" not in archive.read(name)[:200]


REFUSALS = {
    "row sum": (
        dict(transition=changed(T, (1, 0, 0), 0.9)),
        r"state 1, action 0 sums to 0\.9; it must sum to 1",
    ),
    "negative": (
        dict(transition=changed(T, (0, 0), [-0.5, 1.5])),
        r"P\(s'=0 \| s=0, a=0\) is -0\.5; .*not negative",
    ),
    "nan": (dict(transition=changed(T, (1, 1, 1), np.nan)), r"P\(s'=1 \| s=1, a=1\) is nan; .*finite"),
    "transition shape": (
        dict(transition=np.eye(2)),
        r"transition: shape \(2, 2\) given, expected \(S, A, S\); for",
    ),
    "no states": (dict(transition=np.zeros((0, 1, 0))), r"transition: shape \(0, 1, 0\) given"),
    "actions first": (
        {"transition": np.ones((1, 2, 2))},
        r"if it is \(A, S, S\), write transition.transpose\(1, 0, 2\)",
    ),
    "single precision": (
        {"transition": changed(T, (0, 0), [0.5, 0.4999999])},
        r"single precision\? normalise it in float64",
    ),
    "complex": ({"transition": T.astype(complex)}, r"transition: expected an array of numbers \(complex128 given\)"),
    "sparse 1-D": ({"transition": sparse.coo_array([1.0, 0.0])}, r"transition: sparse shape \(2,\) given"),
    "no reward": ({"reward": None}, r"reward: expected an array of numbers \(object given\)"),
    "sparse reward nan": (
        {
            "transition": sparse.csr_array(T.reshape(4, 2)),
            "reward": sparse.csr_array([[0, 0], [0, np.nan], [0, 0], [0, 0]]),
        },
        r"reward: entry \(1, 1\) is nan",
    ),
    "terminal ragged": ({"terminal": [[True], [True, False]]}, r"terminal: expected \(2,\), one bool per state"),
    "not square": (dict(transition=np.ones((2, 1, 3))), r"transition: shape \(2, 1, 3\) given"),
    "words": (dict(transition="abc"), r"transition: expected an array of numbers"),
    "sparse shape": (dict(transition=sparse.csr_array((5, 2))), r"5 rows are not a multiple of 2 states"),
    "reward shape": (
        dict(reward=np.zeros((2, 3))),
        r"reward: shape \(2, 3\) given, expected \(S, A, S\) = \(2, 2, 2\)",
    ),
    "sparse reward": (dict(reward=sparse.csr_array((3, 2))), r"reward: sparse shape \(3, 2\) given"),
    "reward infinite": (dict(reward=changed(R, (0, 1, 1), np.inf)), r"reward: entry \(0, 1, 1\) is inf"),
    "discount high": (dict(discount=1.5), r"discount: 1\.5 given, expected a number in \[0, 1\]"),
    "discount negative": (dict(discount=-0.1), r"discount: -0\.1 given"),
    "discount text": (dict(discount="0.9"), r"discount: '0\.9' given, expected a number in \[0, 1\]"),
    "discount bool": (dict(discount=True), r"discount: True given, expected a number"),
    "discount array": (dict(discount=np.array([0.9])), r"discount: array\(\[0\.9\]\) given, expected a number"),
    "discount none": (dict(discount=None), r"discount: None given, expected a number"),
    "discount nan": (dict(discount=float("nan")), r"discount: nan given"),
    "discount word": (dict(discount="high"), r"discount: 'high' given"),
    "discount one": (
        dict(discount=1.0),
        r"discount: 1 given, but no terminal state can be reached from the start",
    ),
    "start shape": (dict(start=[1.0]), r"start: shape \(1,\) given, expected \(2,\)"),
    "start empty": (dict(start=[0.0, 0.0]), r"start: it is empty"),
    "start sum": (dict(start=[0.5, 0.4]), r"start: the probabilities sum to 0\.9; they must sum to 1"),
    "start negative": (dict(start=[1.5, -0.5]), r"start: entry 1 is -0\.5"),
    "start nan": (dict(start=[np.nan, 1.0]), r"start: entry 0 is nan"),
    "terminal shape": (dict(terminal=[True]), r"terminal: shape \(1,\) given, expected \(2,\)"),
    "terminal values": (dict(terminal=[0, 2]), r"terminal: int64 values given, expected True or False"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_name_field_place_and_value(case):
    arguments, message = REFUSALS[case]
    with pytest.raises(bc.InputError, match=message):
        make(**arguments)


def test_discount_one_needs_a_reachable_end():
    assert make(discount=1.0, terminal=[False, True]).discount == 1
    island = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    with pytest.raises(bc.InputError, match="no terminal state can be reached"):
        bc.FiniteMDP(island, np.zeros((2, 1)), 1.0, [1, 0], [False, True])
