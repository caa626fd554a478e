"""FeatureMap: from the states of a finite world, or the observations of a Box, to features x(s)."""

import hashlib
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Matrix, Vector, as_floats, as_whole, frozen, refuse_non_finite
from backcast.core.errors import InputError
from backcast.features.codes import CODES, TABLES, Code, csr, refuse_too_many
from backcast.features.places import Place, read_place

_MOST_ENTRIES = 50_000_000  # entries of a dense matrix: 400 MB
_OF_THE_PLACE = ("coordinates", "low", "high")


@dataclass(frozen=True, init=False)
class Content:
    """A matrix among the settings of a map: equal and hashed by content, and plain data to `dataclasses.asdict`.

    Attributes:
        shape: shape of the matrix.
        digest: SHA-256 of its entries.
    """

    shape: tuple[int, int]
    digest: str

    def __init__(self, name: str, given: object) -> None:
        rows = frozen(_read_matrix(name, given))
        parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
        digest = hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
        self.__dict__.update(shape=rows.shape, digest=digest, _rows=rows)

    @property
    def rows(self) -> Matrix:
        """The matrix itself, csr (S, d); not a field, so that `asdict` omits it."""
        return self.__dict__["_rows"]


def _read_matrix(name: str, given: Any) -> Matrix:
    """Return a csr copy of a matrix (S, d), without zeros; raise InputError unless all entries are finite numbers."""
    if sparse.issparse(given):
        entries = given.tocoo()
        rows = sparse.csr_array((as_floats(name, entries.data), entries.coords), shape=entries.shape)
    else:
        rows = as_floats(name, given)
    if rows.ndim != 2 or 0 in rows.shape:
        raise InputError(f"{name}: shape {rows.shape} given, expected (S, d), a row for each state")
    rows = sparse.csr_array(rows)
    wrong = ~np.isfinite(rows.data)
    if wrong.any():
        k, entries = int(np.argmax(wrong)), rows.tocoo()
        place = int(entries.row[k]), int(entries.col[k])
        raise InputError(f"{name}: entry {place} is {entries.data[k]}; every entry must be finite")
    rows.eliminate_zeros()
    return rows


@dataclass(frozen=True, repr=False)
class FeatureMap:
    """Features of states, made by the functions of `backcast.features`; equal and hashed by kind and settings.

    Attributes:
        kind: the name of the function that made it.
        settings: the arguments of that function.
        bound: the place of the features; None until `bind`.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()
    bound: Place | None = field(default=None, compare=False, repr=False)

    def bind(self, place: object, seed: int = 0) -> "FeatureMap":
        """Return the same features for a place.

        Args:
            place: a number of states, a World, a FiniteMDP, or a Gymnasium environment or space (Discrete or Box).
            seed: seed of the run, for worlds or features that every seed draws anew.
        """
        of_the_place = {name: value for name, value in self.settings if name in _OF_THE_PLACE}
        if of_the_place.get("coordinates") is not None:
            of_the_place["coordinates"] = of_the_place["coordinates"].rows.toarray()
        bound = replace(self, bound=read_place(place, as_whole("seed", seed, 0), **of_the_place))
        if bound.kind in TABLES and bound._place.n_states is None:
            raise InputError(f"{self.kind}: it needs numbered states, but a Box given; use tiles or fourier")
        _ = bound.n_features  # refuses features that do not fit the place
        return bound

    @property
    def recipe(self) -> "FeatureMap":
        """The map without the place: plain data, with `dataclasses.asdict`."""
        return replace(self, bound=None)

    @property
    def drawn_by_seeds(self) -> bool:
        """Whether every seed draws its own features."""
        return dict(self.settings).get("seed", 0) is None

    def feature_matrix(self, field: str) -> Matrix:
        """The features of all states, csr (S, d); raise InputError about `field` if there is no place yet."""
        if self.bound is None:
            raise InputError(f"{field}: {self.name} belongs to no world yet; bind it, as in {self.kind}(world)")
        return self.sparse

    @property
    def name(self) -> str:
        """A short text for the names of agents, such as `tiles-8x8`."""
        chosen = dict(self.settings)
        size: Any = next(iter(chosen.values()), None)  # the first setting gives the size
        if self.kind == "tiles":
            size = "x".join(map(str, (chosen["tilings"], *np.atleast_1d(chosen["bins"]))))
        elif self.kind == "given":
            size = chosen["matrix"].shape[1]
        return self.kind if size is None else f"{self.kind}-{size}"

    def __repr__(self) -> str:
        chosen = [f"{name}={value}" for name, value in self.settings if value is not None]
        if self.bound is not None:
            states = self.bound.n_states
            whose = f"{self.bound.scale.dimensions} coordinates" if states is None else f"{states} states"
            chosen += [f"{self.n_features} features of {whose}"]
        return f"FeatureMap({', '.join([self.kind, *chosen])})"

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # cached values are recomputed

    @cached_property
    def sparse(self) -> Matrix:
        """The features X of all states of a finite place, as csr (S, d)."""
        place = self._place
        if place.points is None:
            raise InputError(f"{self.name}: observations of a Box have no matrix; of(observation) gives their features")
        if self.kind in TABLES:
            return frozen(TABLES[self.kind](place.n_states, place.seed, **self._own_settings))
        entries = len(place.points) * self._code.width
        refuse_too_many(self.name, entries, "features of all states", _MOST_ENTRIES, "use features that are mostly 0")
        return frozen(csr(*self._code.encode(place.points), self._code.n_features))

    @cached_property
    def matrix(self) -> Vector:
        """The features X of all states of a finite place, dense (S, d)."""
        rows = self.sparse
        refuse_too_many(self.name, rows.shape[0] * rows.shape[1], "entries of a matrix", _MOST_ENTRIES, "use .sparse")
        return frozen(rows.toarray())

    @cached_property
    def n_features(self) -> int:
        """The number of features, d."""
        return self._code.n_features if self.kind in CODES else int(self.sparse.shape[1])

    @cached_property
    def width(self) -> int:
        """The largest number of nonzero features of a state."""
        if self._place.points is None:
            return self._code.width
        return int(np.diff(self.sparse.indptr).max())

    def of(self, observation: object) -> tuple[Indices, Vector]:
        """The features of one observation of a Box, or of a state number: indices (k,) and weights (k,).

        All other features are 0. State numbers begin with 0.
        """
        if self._place.points is None:
            indices, weights = self._code.encode(self._read_observation(observation))
            return indices[0], weights[0]
        state = as_whole("observation", observation, 0)
        offset, columns, values = self._rows
        if state >= len(offset) - 1:
            raise InputError(f"observation: {state} given, expected a state from 0 to {len(offset) - 2}")
        row = slice(offset[state], offset[state + 1])
        return columns[row].copy(), values[row].copy()

    def _read_observation(self, given: Any) -> Vector:
        point = as_floats("observation", given).reshape(1, -1)
        if point.size != self._place.scale.dimensions:
            raise InputError(
                f"observation: {point.size} numbers given, expected the {self._place.scale.dimensions} coordinates"
            )
        if not np.isfinite(point).all():
            refuse_non_finite("observation", point[0])
        return point

    @cached_property
    def _rows(self) -> tuple[list[int], Indices, Vector]:
        rows = self.sparse
        return rows.indptr.tolist(), rows.indices.astype(np.int64), rows.data

    @cached_property
    def _code(self) -> Code:
        return CODES[self.kind](self._place.scale, **self._own_settings)

    @property
    def _own_settings(self) -> dict[str, Any]:
        return {name: value for name, value in self.settings if name not in _OF_THE_PLACE}

    @property
    def _place(self) -> Place:
        if self.bound is None:
            raise InputError(f"{self.name}: these features are of no world yet; give place=, or use bind(place)")
        return self.bound
