"""FiniteMDP: the description of a finite world that everything else works from.

A finite Markov decision process (section 2 of the paper) is (S, A, P, r, γ) with a start distribution and a
set of terminal states. Whatever the input, it is stored as one sparse table with a row for each state and
action, `row = s * A + a`, and one reward for each possible transition. Results come back in
the form of the input: dense arrays for dense input, scipy.sparse for sparse input.
"""

import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.archive import Archive, opened_archive, refusing_damage
from backcast.core.arrays import (
    SUM_TOLERANCE,
    Indices,
    Mask,
    Matrix,
    Vector,
    as_distribution,
    as_floats,
    as_fraction,
    frozen,
    refuse_non_finite,
)
from backcast.core.errors import InputError
from backcast.core.files import atomic_path
from backcast.core.graph import reachable

_FORMAT = 1
_PARTS = {
    "format": "i",
    "n_actions": "i",
    "discount": "f",
    "is_sparse": "b",
    "start": "f",
    "terminal": "b",
    "row_start": "i",
    "probability": "f",
    "next_state": "i",
    "reward": "f",
}  # the arrays of a file and their dtype kinds
SAVED = "a FiniteMDP saved by Backcast"
_PEAK = 5  # reading a file needs this many times the size of its arrays


class FiniteMDP:
    """A finite Markov decision process; immutable, dense or sparse.

    Args:
        transition: P(s' | s, a), dense (S, A, S) or scipy.sparse (S*A, S) with row s*A + a.
        reward: r(s, a, s') as (S, A, S), r(s, a) as (S, A), or r(s, s') as (S, S) [earlier, later]; sparse
            rewards have the shape (S*A, S) or (S, S). If S = A, a dense (S, S) array is ambiguous: it is
            taken as r(s, a), with a warning.
        discount: γ in [0, 1]; 1 only if a terminal state can be reached from the start.
        start: distribution (S,) of the first state of an episode.
        terminal: bool (S,), or None if no state is terminal. A terminal state ends the episode: its rows of
            `transition` and `reward` are replaced by a self-loop that earns nothing. In the recurrent chain
            (`backcast.exact.chain`) it leads to `start`.

    Raises:
        InputError: if an input is invalid; the message names the field, the place and the value.

    Examples:
        >>> mdp = FiniteMDP([[[0.5, 0.5]], [[1.0, 0.0]]], [[0.0], [1.0]], 0.9, [1.0, 0.0])
        >>> mdp
        FiniteMDP(2 states, 1 action, 3 transitions, discount 0.9, no terminal state, dense)
    """

    n_states: int
    n_actions: int
    discount: float
    start: Vector
    terminal: Mask
    is_sparse: bool
    table: sparse.csr_array
    table_reward: sparse.csr_array

    def __init__(
        self,
        transition: object,
        reward: object,
        discount: float,
        start: ArrayLike,
        terminal: ArrayLike | None = None,
    ) -> None:
        table, n_states, n_actions = _read_transition(transition)
        ends = _read_terminal(terminal, n_states)
        rows, columns = table.nonzero()
        earned = _read_reward(reward, rows.astype(np.int64), columns.astype(np.int64), n_states, n_actions)
        _refuse_bad_rows(table, ends, n_actions)
        table, table_reward = _make_absorbing(table, earned, ends, n_actions)
        fields = {
            "n_states": n_states,
            "n_actions": n_actions,
            "discount": as_fraction("discount", discount),
            "start": frozen(as_distribution("start", start, n_states)),
            "terminal": frozen(ends),
            "is_sparse": sparse.issparse(transition),
            "table": frozen(table),
            "table_reward": frozen(table_reward),
        }
        self.__dict__.update(fields)
        if self.discount == 1 and not (ends & self.reachable).any():
            raise InputError(
                "discount: 1 given, but no terminal state can be reached from the start, so that returns need"
                " not be finite; give a discount below 1 or a reachable terminal state"
            )

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a FiniteMDP is immutable; make a new one instead of setting {name!r}")

    @cached_property
    def transition(self) -> Matrix:
        """P(s' | s, a): (S, A, S), or csr (S*A, S) for a sparse world."""
        return self._given_form(self.table)

    @cached_property
    def reward(self) -> Matrix:
        """r(s, a, s') of the possible transitions, 0 elsewhere: (S, A, S), or csr (S*A, S)."""
        return self._given_form(self.table_reward)

    @cached_property
    def expected_reward(self) -> Vector:
        """r(s, a) = Σ_s' P(s' | s, a) r(s, a, s'), (S, A)."""
        gain = sparse.csr_array(
            (self.table.data * self.table_reward.data, self.table.indices, self.table.indptr),
            self.table.shape,
        )
        return frozen(np.asarray(gain.sum(axis=1)).reshape(self.n_states, self.n_actions))

    @property
    def graph(self) -> sparse.csr_array:
        """The graph of possible transitions: entry (s, s') is stored if some action leads from s to s', csr (S, S)."""
        rows = self.table.indptr[:: self.n_actions]
        return sparse.csr_array((self.table.data, self.table.indices, rows), (self.n_states, self.n_states))

    @cached_property
    def reachable(self) -> Mask:
        """The states that can be reached from the start distribution, bool (S,)."""
        return frozen(reachable(self.graph, self.start > 0))

    def save(self, path: str | Path, policy: ArrayLike | None = None) -> None:
        """Save to a plain .npz file (no pickle). The write is atomic.

        Args:
            path: path of the file.
            policy: (S, A), stored with the world for studies that evaluate it (`backcast.worlds.from_file`).
        """
        parts = {
            "format": np.array(_FORMAT),
            "probability": self.table.data,
            "next_state": self.table.indices,
            "row_start": self.table.indptr,
            "reward": self.table_reward.data,
            "discount": np.array(self.discount),
            "start": self.start,
            "terminal": self.terminal,
            "n_actions": np.array(self.n_actions),
            "is_sparse": np.array(self.is_sparse),
        }
        if policy is not None:
            parts["policy"] = as_floats("policy", policy)
        with atomic_path(Path(path)) as part, part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **parts)

    @classmethod
    def load(cls, path: str | Path) -> "FiniteMDP":
        """Load a file written by `save`. Names, types and sizes are checked before any array is read.

        Raises:
            InputError: if the file was not written by `save`, is invalid, or needs more memory than this machine has.
            OSError: if the file is missing or cannot be read.
        """
        with refusing_damage(Path(path), SAVED):
            with opened_archive(Path(path), _PARTS) as archive:
                _refuse_bad_sizes(archive)
                part = {name: archive[name] for name in _PARTS}
            if part["row_start"][-1] != len(part["probability"]):
                raise ValueError("row_start does not end where the transitions end")
            place = (part["next_state"], part["row_start"])
            shape = (len(part["start"]) * int(part["n_actions"]), len(part["start"]))
            table = sparse.csr_array((part["probability"], *place), shape=shape)
            table.check_format(full_check=True)
            reward = sparse.csr_array((part["reward"], *place), shape=shape)
            settings = float(part["discount"]), part["start"], part["terminal"], bool(part["is_sparse"])
            return from_rows(table, reward, *settings)

    def __reduce__(self) -> tuple[Any, ...]:
        settings = self.discount, self.start, self.terminal, self.is_sparse
        return from_rows, (self.table, self.table_reward, *settings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMDP):
            return NotImplemented
        return (
            self.table.shape == other.table.shape
            and self.discount == other.discount
            and all(np.array_equal(mine, theirs) for mine, theirs in zip(self._arrays(), other._arrays(), strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        ends = int(self.terminal.sum())
        terminal = f"{ends:,} terminal" if ends else "no terminal state"
        return (
            f"FiniteMDP({_count(self.n_states, 'state')}, {_count(self.n_actions, 'action')}, "
            f"{_count(self.table.nnz, 'transition')}, discount {self.discount:g}, {terminal}, "
            f"{'sparse' if self.is_sparse else 'dense'})"
        )

    def _arrays(self) -> tuple[Any, ...]:
        table = self.table
        return table.data, table.indices, table.indptr, self.table_reward.data, self.start, self.terminal

    def _given_form(self, table: sparse.csr_array) -> Matrix:
        if self.is_sparse:
            return table
        return frozen(table.toarray().reshape(self.n_states, self.n_actions, self.n_states))


def saved_size(path: Path) -> tuple[int, int]:
    """Return the numbers of states and transitions of the world in a file, without reading its arrays."""
    with refusing_damage(path, SAVED), opened_archive(path, _PARTS) as archive:
        return archive.length("start"), archive.length("probability")


def saved_policy(path: Path) -> Vector | None:
    """Return the policy that was stored with a world, unchecked; None if there was none."""
    with refusing_damage(path, SAVED):
        with opened_archive(path, {}) as archive:
            if "policy" not in archive:
                return None
        with opened_archive(path, {"policy": "f"}) as archive:
            archive.refuse_too_large(_PEAK)
            return np.asarray(archive["policy"])


def _refuse_bad_sizes(archive: Archive) -> None:
    """Raise unless this version knows the format, the shapes agree and there is enough memory."""
    for name in ("format", "n_actions", "discount", "is_sparse"):
        archive.refuse_other_shape(name, ())
    if int(archive["format"]) != _FORMAT:
        raise ValueError(f"format {int(archive['format'])}, this version reads format {_FORMAT}")
    n_states, n_entries = archive.length("start"), archive.length("probability")
    archive.refuse_other_shape("terminal", (n_states,))
    archive.refuse_other_shape("row_start", (n_states * int(archive["n_actions"]) + 1,))
    for name in ("next_state", "reward"):
        archive.refuse_other_shape(name, (n_entries,))
    archive.refuse_too_large(_PEAK)


def from_rows(
    table: Matrix, reward: Matrix, discount: float, start: ArrayLike, terminal: ArrayLike, is_sparse: bool
) -> FiniteMDP:
    """Make an MDP from sparse matrices (S*A, S). Its results are dense unless `is_sparse`."""
    mdp = FiniteMDP(table, reward, discount, start, terminal)
    mdp.__dict__["is_sparse"] = is_sparse
    return mdp


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _read_transition(given: Any) -> tuple[sparse.csr_array, int, int]:
    if sparse.issparse(given):
        rows, n_states = given.shape if given.ndim == 2 else (0, 0)
        if n_states == 0 or rows == 0 or rows % n_states:
            raise InputError(
                f"transition: sparse shape {given.shape} given, expected (S*A, S) with row s*A + a; "
                f"{rows} rows are not a multiple of {n_states} states"
            )
        table = sparse.csr_array(given, dtype=np.float64, copy=True)
    else:
        dense = as_floats("transition", given)
        if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or dense.size == 0:
            hint = "; for one action write transition[:, None, :]" if dense.ndim == 2 else ""
            if dense.ndim == 3 and dense.shape[1] == dense.shape[2]:
                hint = "; if it is (A, S, S), write transition.transpose(1, 0, 2)"
            raise InputError(f"transition: shape {dense.shape} given, expected (S, A, S){hint}")
        n_states = dense.shape[0]
        table = sparse.csr_array(dense.reshape(-1, n_states))
    table.sum_duplicates()
    n_actions = table.shape[0] // n_states
    _refuse_bad_entries(table, n_actions)
    table.eliminate_zeros()
    return table, n_states, n_actions


def _refuse_bad_entries(table: sparse.csr_array, n_actions: int) -> None:
    bad = ~np.isfinite(table.data) | (table.data < 0)
    if bad.any():
        entry = int(np.argmax(bad))
        row = int(np.searchsorted(table.indptr, entry, side="right")) - 1
        raise InputError(
            f"transition: P(s'={table.indices[entry]} | s={row // n_actions}, a={row % n_actions}) is "
            f"{table.data[entry]:g}; probabilities must be finite and not negative"
        )


def _refuse_bad_rows(table: sparse.csr_array, terminal: Mask, n_actions: int) -> None:
    sums = np.asarray(table.sum(axis=1)).ravel()
    bad = (np.abs(sums - 1) > SUM_TOLERANCE) & ~np.repeat(terminal, n_actions)
    if bad.any():
        row = int(np.argmax(bad))
        hint = " (computed in single precision? normalise it in float64)" if abs(sums[row] - 1) < 1e-4 else ""
        raise InputError(
            f"transition: the row of state {row // n_actions}, action {row % n_actions} sums to "
            f"{sums[row]:.10g}; it must sum to 1{hint}"
        )


def _read_terminal(given: ArrayLike | None, n_states: int) -> Mask:
    if given is None:
        return np.zeros(n_states, dtype=np.bool_)
    try:
        terminal = np.array(given)
    except ValueError as error:
        raise InputError(f"terminal: expected ({n_states},), one bool per state ({error})") from error
    if terminal.shape != (n_states,):
        raise InputError(f"terminal: shape {terminal.shape} given, expected ({n_states},), one bool per state")
    if terminal.dtype != np.bool_ and not np.isin(terminal, (0, 1)).all():
        raise InputError(f"terminal: {terminal.dtype} values given, expected True or False for each state")
    return terminal.astype(np.bool_)


def _read_reward(given: Any, rows: Indices, columns: Indices, n_states: int, n_actions: int) -> Vector:
    """The reward of each stored transition (row s*A + a, column s'), in the order of the table."""
    states, actions = np.divmod(rows, n_actions)
    if sparse.issparse(given):
        reward = sparse.csr_array(given, dtype=np.float64)
        if not np.isfinite(reward.data).all():
            refuse_non_finite("reward", reward.toarray() if reward.shape[1] <= 10_000 else reward.data)
        if reward.shape == (n_states * n_actions, n_states):
            return _lookup(reward, rows, columns)
        if reward.shape == (n_states, n_states):
            return _lookup(reward, states, columns)
        raise InputError(
            f"reward: sparse shape {reward.shape} given, expected (S*A, S) = "
            f"({n_states * n_actions}, {n_states}) or (S, S) = ({n_states}, {n_states})"
        )
    dense = as_floats("reward", given)
    refuse_non_finite("reward", dense)
    if dense.shape == (n_states, n_actions, n_states):
        return dense[states, actions, columns]
    if dense.shape == (n_states, n_actions):
        if n_states == n_actions and np.ptp(dense) > 0:
            warnings.warn(
                f"reward: shape {dense.shape} fits both (S, A) and (S, S); taken as r(s, a). "
                "Give (S, A, S) to say which you mean.",
                stacklevel=3,
            )
        return dense[states, actions]
    if dense.shape == (n_states, n_states):
        return dense[states, columns]
    raise InputError(
        f"reward: shape {dense.shape} given, expected (S, A, S) = {(n_states, n_actions, n_states)}, "
        f"(S, A) = {(n_states, n_actions)} or (S, S) = {(n_states, n_states)}"
    )


def _lookup(matrix: sparse.csr_array, rows: Indices, columns: Indices) -> Vector:
    return np.asarray(matrix[rows, columns], dtype=np.float64).ravel()


def _make_absorbing(
    table: sparse.csr_array, earned: Vector, terminal: Mask, n_actions: int
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Replace the rows of terminal states by self-loops that earn nothing; align rewards with the table."""
    if terminal.any():
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        kept = ~terminal[rows // n_actions]
        ends = np.repeat(np.flatnonzero(terminal), n_actions)
        end_rows = ends * n_actions + np.tile(np.arange(n_actions), terminal.sum())
        order = np.argsort(np.concatenate([rows[kept], end_rows]), kind="stable")
        data = np.concatenate([table.data[kept], np.ones(len(ends))])[order]
        columns = np.concatenate([table.indices[kept], ends])[order]
        earned = np.concatenate([earned[kept], np.zeros(len(ends))])[order]
        counts = np.diff(table.indptr)
        counts[np.repeat(terminal, n_actions)] = 1
        table = sparse.csr_array((data, columns, np.concatenate([[0], np.cumsum(counts)])), shape=table.shape)
    return table, sparse.csr_array((earned, table.indices, table.indptr), shape=table.shape)
