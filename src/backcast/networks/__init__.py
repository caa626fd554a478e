"""Descriptions of networks: architectures, without parameters.

    import backcast as bc
    bc.agent("q", network=bc.networks.mlp(64, 64))
    bc.agent("q", network=lambda key: MyModule(key))      # your own: a function from a key to an Equinox module

A network maps an observation to a vector. Agents put linear layers on top of it: one for values, others for models. In
a study, a network is a table, `network = {kind = "mlp", widths = [64, 64]}`. Agents with a network need the extra
`neural`, `pip install 'backcast[neural]'`. JAX is imported only when such an agent runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backcast.core.arrays import as_whole
from backcast.core.errors import InputError, nearest

__all__ = ["Network", "as_network", "conv", "linear", "mlp"]


@dataclass(frozen=True)
class Network:
    """A network, made by the functions of `backcast.networks`; equal and hashed by kind and settings.

    Attributes:
        kind: "mlp", "conv", "linear", or "own" for a function of yours.
        settings: the arguments of that function.
    """

    kind: str
    settings: tuple[tuple[str, Any], ...] = ()

    def get(self, setting: str) -> Any:
        """Return a setting."""
        return dict(self.settings)[setting]

    @property
    def name(self) -> str:
        """A short text for the names of agents, such as `mlp-64-64`."""
        if self.kind == "own":
            return str(getattr(self.get("function"), "__name__", type(self.get("function")).__name__)).strip("<>")
        sizes = [size for _, sizes in self.settings if isinstance(sizes, tuple) for size in sizes]
        return "-".join([self.kind, *map(str, sizes)])

    @property
    def is_linear(self) -> bool:
        """Whether outputs are linear in observations, without a bias. On one-hot observations this is a table."""
        return self.kind == "linear"

    def plain(self) -> dict[str, Any]:
        """Return plain data, from which `as_network` rebuilds the network."""
        if self.kind == "own":
            raise InputError(f"network: {self.name} is a function, which cannot be stored; use mlp, conv or linear")
        return {
            "kind": self.kind,
            **{name: list(value) if isinstance(value, tuple) else value for name, value in self.settings},
        }


def mlp(*widths: int) -> Network:
    """A multilayer perceptron: layers of these widths, each followed by a ReLU.

    Examples:
        >>> mlp(64, 64).name
        'mlp-64-64'
    """
    return Network("mlp", (("widths", _sizes("widths", widths)),))


def conv(*channels: int, kernel: int = 3, stride: int = 1, widths: tuple[int, ...] | list[int] = (64,)) -> Network:
    """Convolutional layers, each followed by a ReLU, then the layers of an `mlp`.

    Args:
        channels: number of channels of each convolution; observations are (channels, rows, columns).
        kernel: side length of the kernels.
        stride: stride of the convolutions.
        widths: widths of the layers that follow.
    """
    settings: dict[str, Any] = {"channels": _sizes("channels", channels), "kernel": as_whole("kernel", kernel, 1)}
    settings |= {"stride": as_whole("stride", stride, 1), "widths": _sizes("widths", widths)}
    return Network("conv", tuple(settings.items()))


def linear() -> Network:
    """The observation itself: the outputs of agents are linear in it, without a bias, and initially 0."""
    return Network("linear")


_KINDS: dict[str, Callable[..., Network]] = {"mlp": mlp, "conv": conv, "linear": linear}
_KEYS = {"mlp": ("widths",), "conv": ("channels", "kernel", "stride", "widths"), "linear": ()}


def as_network(name: str, given: Any) -> Network:
    """Make a Network from a Network, a table such as {kind = "mlp", widths = [64, 64]}, or a function of a key."""
    if isinstance(given, Network):
        return given
    if isinstance(given, str):
        given = {"kind": given}
    if isinstance(given, Mapping):
        return _from_table(name, given)
    if callable(given):
        return Network("own", (("function", given),))
    raise InputError(
        f"{name}: {given!r} given, expected backcast.networks.mlp(64, 64), conv(…), linear() or a function from a key"
        " to an Equinox module"
    )


def _from_table(name: str, given: Mapping[str, Any]) -> Network:
    kind = given.get("kind")
    if kind not in _KINDS:
        raise InputError(f"{name}: kind {kind!r} given, expected one of {', '.join(_KINDS)}{nearest(kind, _KINDS)}")
    keys = {key: value for key, value in given.items() if key != "kind"}
    for key in keys.keys() - set(_KEYS[kind]):
        raise InputError(f"{name}: {key!r} given, but {kind!r} takes {', '.join(_KEYS[kind]) or 'nothing'}")
    positional = keys.pop(_KEYS[kind][0], ()) if _KEYS[kind] else ()
    if not isinstance(positional, (list, tuple)):
        raise InputError(f"{name}: {_KEYS[kind][0]} {positional!r} given, expected a list of whole numbers")
    return _KINDS[kind](*positional, **keys)


def _sizes(name: str, given: Any) -> tuple[int, ...]:
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(f"{name}: {given!r} given, expected whole numbers, 1 or more, one for each layer")
    return tuple(as_whole(name, each, 1) for each in given)
