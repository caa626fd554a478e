"""Features of states, for values that are linear in them: v(s) = x(s)ᵀw.

    import backcast as bc
    x = bc.features.tiles(bc.worlds.maze(), tilings=4, bins=3)
    x.matrix                                              # (S, d), a row for each state
    bc.features.fourier(gymnasium.make("MountainCar-v0")).of(observation)    # indices and weights

A place is a number of states, a World, a FiniteMDP, or a Gymnasium environment or space (Discrete or Box). If it is
omitted, `FeatureMap.bind` sets it later; an agent binds its features to its world. Every state has a row, terminal
ones included.

The coordinates of a maze's states are (row, column), those of a chain's (level, place within the level from 0 to 1),
those of other finite places the state number, unless `coordinates` (S, m) is given. Observations of a Box are
coordinates: they are clipped to its bounds, and a coordinate without bounds is first squashed to c / (1 + |c|).
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from backcast.core.arrays import as_floats, as_whole, refuse_non_finite
from backcast.core.errors import InputError, nearest
from backcast.features.maps import Content, FeatureMap

__all__ = [
    "FeatureMap",
    "aggregate",
    "as_features",
    "fourier",
    "given",
    "interpolate",
    "onehot",
    "random_binary",
    "tiles",
]


def onehot(place: object = None) -> FeatureMap:
    """One feature for each state: linear values are then a table.

    Examples:
        >>> onehot(2).matrix
        array([[1., 0.],
               [0., 1.]])
    """
    return _made("onehot", place)


def aggregate(place: object = None, groups: int = 10) -> FeatureMap:
    """State aggregation: neighbouring states share a feature.

    Groups follow the order of the states; their sizes differ by at most one. Terminal states are included, because they
    are numbered like all others.

    Args:
        place: the place of the features.
        groups: the number of groups, at most the number of states.
    """
    return _made("aggregate", place, groups=as_whole("groups", groups, 1))


def random_binary(
    place: object = None, d: int = 50, active: int | None = None, seed: int | str | None = 0
) -> FeatureMap:
    """Random binary features: in each state some features, drawn at random, are 1 and the others 0.

    No two states have the same row if there are at least twice as many possible rows as states.

    Args:
        place: the place of the features.
        d: the number of features.
        active: the number of features that are 1 in each state; by default about √d.
        seed: seed of the features; None ("each" in a file, which has no None): every seed of a run draws its own.
    """
    d = as_whole("d", d, 1)
    active = round(math.sqrt(d)) if active is None else as_whole("active", active, 1)
    if active > d:
        raise InputError(f"active: {active} given, expected at most {d}, the number of features")
    chosen = None if seed is None or seed == "each" else as_whole("seed", seed, 0)
    return _made("random_binary", place, d=d, active=active, seed=chosen)


def tiles(
    place: object = None,
    tilings: int = 8,
    bins: int | Sequence[int] = 8,
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    coordinates: ArrayLike | None = None,
) -> FeatureMap:
    """Tile coding: overlapping grids over the coordinates; in each grid, the tile that contains the state is 1.

    Grid t is displaced by (1, 3, 5, …) · t / tilings of a tile (Sutton and Barto, 2018, section 9.5.4, who recommend a
    power of 2 that is at least 4 times the number of coordinates). With several grids, each has one tile more per
    dimension than `bins`, so that it covers the range despite its displacement.

    Args:
        place: the place of the features.
        tilings: the number of grids, which is the number of features that are 1.
        bins: the number of tiles over the range of a coordinate; a number, or one for each coordinate.
        low: the lower bounds of the coordinates; by default those of the Box, or the smallest coordinates.
        high: the upper bounds.
        coordinates: coordinates of the states, (S, m), in place of the place's own.

    Examples:
        >>> tiles(4, tilings=2, bins=2).matrix
        array([[1., 0., 0., 1., 0., 0.],
               [1., 0., 0., 0., 1., 0.],
               [0., 1., 0., 0., 1., 0.],
               [0., 1., 0., 0., 0., 1.]])
    """
    grids = {"tilings": as_whole("tilings", tilings, 1), "bins": _bins(bins)}
    return _made("tiles", place, **grids, **_bounds(low, high), coordinates=_coordinates(coordinates))


def fourier(
    place: object = None,
    order: int = 3,
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    coordinates: ArrayLike | None = None,
) -> FeatureMap:
    """The Fourier cosine basis: cos(π c·u) for every c in {0, …, order}^m, u the m coordinates scaled to [0, 1].

    Args:
        place: the place of the features.
        order: the largest frequency of each coordinate.
        low: the lower bounds of the coordinates; by default those of the Box, or the smallest coordinates.
        high: the upper bounds.
        coordinates: coordinates of the states, (S, m), in place of the place's own.
    """
    chosen = as_whole("order", order, 1)
    return _made("fourier", place, order=chosen, **_bounds(low, high), coordinates=_coordinates(coordinates))


def interpolate(place: object = None, knots: int = 4, coordinates: ArrayLike | None = None) -> FeatureMap:
    """Linear interpolation between equally spaced knots of the first coordinate: the features of Boyan's chain.

    Args:
        place: the place of the features.
        knots: the number of knots, the first and the last at the ends of the range.
        coordinates: coordinates of the states, (S, m) or (S,), in place of the place's own.

    Examples:
        >>> interpolate(13).matrix[:3]
        array([[1.  , 0.  , 0.  , 0.  ],
               [0.75, 0.25, 0.  , 0.  ],
               [0.5 , 0.5 , 0.  , 0.  ]])
    """
    return _made("interpolate", place, knots=as_whole("knots", knots, 2), coordinates=_coordinates(coordinates))


def given(matrix: object) -> FeatureMap:
    """Features of your own: a matrix (S, d), dense or scipy.sparse."""
    return _given("matrix", matrix)


def _given(name: str, matrix: object) -> FeatureMap:
    content = Content(name, matrix)
    return _made("given", content.shape[0], matrix=content)


_MAKERS: dict[str, Callable[..., FeatureMap]] = {
    make.__name__: make for make in (onehot, aggregate, random_binary, tiles, fourier, interpolate, given)
}


def as_features(name: str, value: object) -> FeatureMap:
    """Make a FeatureMap from a FeatureMap, a matrix (S, d), or plain data such as {"kind": "aggregate", "groups": 10}.

    Args:
        name: name of the field, for errors.
        value: the value given.
    """
    if isinstance(value, FeatureMap):
        return value
    if isinstance(value, str):
        value = {"kind": value}
    if callable(value):
        raise InputError(f"{name}: a function given, expected what it returns; call it, as in features.tiles()")
    if not isinstance(value, Mapping):
        return _given(name, value)
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _MAKERS:
        kinds = ", ".join(_MAKERS)
        raise InputError(f"{name}: kind {kind!r} given, expected one of {kinds}{nearest(kind, _MAKERS)}")
    settings = {key: setting for key, setting in value.items() if key != "kind"}
    takes = [key for key in inspect.signature(_MAKERS[kind]).parameters if key != "place"]
    for key in settings:
        if key not in takes:
            expected = f"{kind!r} takes {', '.join(takes) if takes else 'no settings'}"
            raise InputError(f"{name}: no setting {key!r}; {expected}{nearest(key, takes)}")
    if kind == "given" and not settings:
        raise InputError(f"{name}: kind 'given' without its matrix")
    return _MAKERS[kind](**settings)


def _made(kind: str, place: object, **settings: Any) -> FeatureMap:
    features = FeatureMap(kind, tuple(settings.items()))
    return features if place is None else features.bind(place)


def _bins(bins: Any) -> int | tuple[int, ...]:
    return tuple(as_whole("bins", count, 1) for count in bins) if np.ndim(bins) else as_whole("bins", bins, 1)


def _bounds(low: ArrayLike | None, high: ArrayLike | None) -> dict[str, float | tuple[float, ...] | None]:
    """Return validated bounds as numbers or tuples."""
    bounds: dict[str, float | tuple[float, ...] | None] = {"low": None, "high": None}
    for name, edge in (("low", low), ("high", high)):
        if edge is not None:
            values = as_floats(name, edge)
            refuse_non_finite(name, np.atleast_1d(values))
            if values.ndim > 1:
                raise InputError(f"{name}: shape {values.shape} given, expected a number, or one for each coordinate")
            bounds[name] = tuple(values.tolist()) if values.ndim else float(values)
    return bounds


def _coordinates(coordinates: ArrayLike | None) -> Content | None:
    if coordinates is None:
        return None
    values = as_floats("coordinates", coordinates)
    return Content("coordinates", values[:, None] if values.ndim == 1 else values)
