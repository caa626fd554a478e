"""The noisy TV: a world with much to predict that does not affect rewards."""

from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from scipy import sparse

from backcast.core.arrays import Indices, Vector
from backcast.core.errors import InputError
from backcast.core.randomness import layout_generator
from backcast.core.setting_types import Bounds
from backcast.mdp import FiniteMDP
from backcast.worlds.chain import PerSeed, reward_process
from backcast.worlds.kinds import Discount, Seed, register_world
from backcast.worlds.world import World, refuse_large

_USUAL_STRUCTURE = 0.9
_CONCENTRATION = 0.3  # of the Dirichlet distribution of the signals' rows: each has two or three likely successors


class Television(NamedTuple):
    """The layout of a noisy TV: state = signal · channels + channel."""

    signals: int
    channels: int


@register_world("noisy-tv", purpose="prediction", label="Noisy TV")
def noisy_tv(
    signals: Annotated[int, Bounds(3, lab=20)] = 8,
    channels: Annotated[int, Bounds(1, lab=20)] = 8,
    seed: Seed | None = 0,
    discount: Discount = 0.9,
    structure: Annotated[float, Bounds(0, 1)] = _USUAL_STRUCTURE,
) -> World:
    """A signal that determines rewards, and a television that does not matter: P(s', c' | s, c) = P(s' | s) P(c' | c).

    The signal: the last one ends the episode and follows with probability 1 / signals from each of the others;
    otherwise the next signal is drawn from a row of its own (Dirichlet, 0.3). Entering signal s' earns ρ(s'), standard
    normal minus the mean over all signals; the end earns nothing. Episodes start in any other state, with equal
    probability.

    The television: with probability `structure` its channel moves on along a cycle through all channels, in random
    order; otherwise it is drawn uniformly. So it is uniform at any time, whatever the signal, and within an
    episode it is as predictable backward as forward: P←(s̃, c̃ | s, c) = P←(s̃ | s) P(c | c̃).

    Values depend on the signal alone, and so does everything needed to plan them (`signal_groups`). The likelihood
    of a model does not: with the defaults, knowing the channel is worth 1.6 nats per step, knowing the signal about
    0.6, so a model too small for both has the highest likelihood when it watches television. Without structure there is
    nothing to predict about the channel, and a noiseless cycle is easy to represent: the distraction is largest in
    between.

    The noisy TV is due to Burda et al., "Large-scale study of curiosity-driven learning" (2019).

    Args:
        signals: number of values of the signal, the terminal one included.
        channels: number of values of the television; with 1 there is none. The same seed has the same signals.
        seed: seed of the world; None: every seed of a run draws its own.
        discount: γ, how much later rewards count.
        structure: how predictable the channel is, from 0, uniform noise, to 1, a deterministic cycle.
    """
    layout = Television(signals, channels)
    name = f"noisy-tv-{layout.signals}x{layout.channels}"
    name += f"-structure-{structure:g}" if structure != _USUAL_STRUCTURE else ""
    states = layout.signals * layout.channels
    refuse_large("signals × channels", states, states**2)
    if seed is None:
        draw = partial(noisy_tv, *layout, discount=discount, structure=structure)
        return World(name, None, layout=layout, redraw=PerSeed(draw))
    make = partial(_draw, layout, seed, discount, structure)
    return World(name, None, layout=layout, make=make)


def _draw(layout: Television, seed: int, discount: float, structure: float) -> FiniteMDP:
    rng = layout_generator(seed)
    signal, earned = _draw_signal(layout.signals, rng)
    transition = sparse.kron(signal, _draw_channel(layout.channels, structure, rng), format="csr")
    reward = sparse.kron(np.tile(earned, (layout.signals, 1)), np.ones((layout.channels,) * 2), format="csr")
    terminal = np.arange(layout.signals * layout.channels) // layout.channels == layout.signals - 1
    return reward_process(transition, reward, discount, ~terminal / (~terminal).sum(), terminal)


def signal_groups(world: World) -> Indices:
    """The signal of each state of a noisy TV, (S,): states of a group have the same value and future rewards.

    Examples:
        >>> signal_groups(noisy_tv(signals=3, channels=2))
        array([0, 0, 1, 1, 2, 2])
    """
    if not isinstance(world.layout, Television):
        raise InputError(f"world: {world.name} given, expected one from backcast.worlds.noisy_tv")
    return np.repeat(np.arange(world.layout.signals), world.layout.channels)


def _draw_signal(signals: int, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """P(s' | s), (signals, signals), and what entering each signal earns, (signals,)."""
    inner = signals - 1
    transition = np.zeros((signals, signals))
    transition[:-1, :-1] = rng.dirichlet(np.full(inner, _CONCENTRATION), size=inner) * (inner / signals)
    transition[:-1, -1] = 1 / signals
    earned = np.zeros(signals)
    earned[:-1] = rng.normal(size=inner)
    earned[:-1] -= earned[:-1].mean()
    return transition, earned


def _draw_channel(channels: int, structure: float, rng: np.random.Generator) -> Vector:
    """P(c' | c), (channels, channels), each of whose rows and columns sums to 1."""
    order = rng.permutation(channels)
    transition = np.full((channels, channels), (1 - structure) / channels)
    transition[order, np.roll(order, -1)] += structure
    return transition
