"""Cart and pole, mountain car and acrobot, equal to Gymnasium's `CartPole-v1`, `MountainCar-v0` and `Acrobot-v1`.

As in Gymnasium, states have 64 bits and observations 32, and with the same seed an episode starts in the same state.
The equations are those of the papers cited.
"""

import math
from types import ModuleType

from backcast.worlds.kinds import Discount, Steps, register_world
from backcast.worlds.motion import Motion, Moved, Numbers
from backcast.worlds.vectors import VectorWorld
from backcast.worlds.world import World

_GRAVITY = 9.8


@register_world("cartpole", purpose="control")
def cartpole(max_steps: Steps = 500, discount: Discount = 0.99) -> World:
    """Balance a pole on a cart by pushing the cart to the left or right; Gymnasium's CartPole-v1.

    Each step earns 1. The episode ends when the pole leans by more than 12° or the cart is more than 2.4 from the
    centre; this step earns 1, too. Observations are the position and velocity of the cart, and the angle and angular
    velocity of the pole.

    Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult learning control problems", IEEE
    Transactions on Systems, Man, and Cybernetics 13 (1983).

    Args:
        max_steps: number of steps after which episodes are truncated.
        discount: γ, how much later rewards count.
    """
    return _world("cartpole", Motion((4,), 2, 4, _start_cartpole, _step_cartpole, _as_it_is), max_steps, discount)


@register_world("mountain-car", purpose="control")
def mountain_car(max_steps: Steps = 200, discount: Discount = 0.99) -> World:
    """Drive an underpowered car out of a valley, up the right slope; Gymnasium's MountainCar-v0.

    Each step earns −1 until the top is reached. The actions push the car to the left, not at all, or to the right.
    Observations are its position and velocity.

    Moore, "Efficient memory-based learning for robot control", PhD thesis, University of Cambridge (1990).

    Args:
        max_steps: number of steps after which episodes are truncated.
        discount: γ, how much later rewards count.
    """
    return _world("mountain-car", Motion((2,), 3, 1, _start_car, _step_car, _as_it_is), max_steps, discount)


@register_world("acrobot", purpose="control")
def acrobot(max_steps: Steps = 500, discount: Discount = 0.99) -> World:
    """Swing two links that hang from a bar until the tip is above it; Gymnasium's Acrobot-v1.

    Each step earns −1. When the tip is a link's length above the bar, the episode ends, and this step earns 0. The
    actions apply a torque of −1, 0 or 1 to the joint between the links. Observations are the cosine and sine of both
    angles, and the angular velocities.

    Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", NIPS (1996).

    Args:
        max_steps: number of steps after which episodes are truncated.
        discount: γ, how much later rewards count.
    """
    return _world("acrobot", Motion((6,), 3, 4, _start_acrobot, _step_acrobot, _see_acrobot), max_steps, discount)


def _world(name: str, motion: Motion, max_steps: int, discount: float) -> World:
    return VectorWorld(name, None, max_steps=max_steps, motion=motion, given_discount=discount)


def _between(low: float, high: float, u: Numbers) -> Numbers:
    """Uniform between two numbers."""
    return low + (high - low) * u


def _as_it_is(xp: ModuleType, state: Numbers) -> Numbers:
    return state.astype(xp.float32)


_CART, _POLE, _HALF_LENGTH, _PUSH, _TICK = 1.0, 0.1, 0.5, 10.0, 0.02
_FARTHEST, _MOST_TILTED = 2.4, 12 * 2 * math.pi / 360


def _start_cartpole(xp: ModuleType, u: Numbers) -> Numbers:
    return _between(-0.05, 0.05, u)


def _step_cartpole(xp: ModuleType, state: Numbers, a: Numbers) -> Moved:
    """One step of Euler's method: x + τ ẋ, ẋ + τ ẍ, θ + τ θ̇, θ̇ + τ θ̈ from the accelerations of the state before.

    With masses m of the pole and M of both, half the pole's length l, the force F and t = (F + m l θ̇² sin θ) / M:
    θ̈ = (g sin θ − t cos θ) / (l (4/3 − m cos² θ / M)) and ẍ = t − m l θ̈ cos θ / M.
    """
    x, speed, angle, turning = state[0], state[1], state[2], state[3]
    both, moment = _CART + _POLE, _POLE * _HALF_LENGTH
    cos, sin = xp.cos(angle), xp.sin(angle)
    pushed = (xp.where(a == 1, _PUSH, -_PUSH) + moment * (turning * turning) * sin) / both
    turned = (_GRAVITY * sin - cos * pushed) / (_HALF_LENGTH * (4.0 / 3.0 - _POLE * (cos * cos) / both))
    sped = pushed - moment * turned * cos / both
    rates = xp.stack([speed, sped, turning, turned])
    after = state + _TICK * rates
    ends = (xp.abs(after[0]) > _FARTHEST) | (xp.abs(after[2]) > _MOST_TILTED)
    return Moved(after, xp.ones_like(x), ends)


_LEFT_END, _RIGHT_END, _TOP, _FASTEST, _ENGINE, _SLOPE = -1.2, 0.6, 0.5, 0.07, 0.001, 0.0025


def _start_car(xp: ModuleType, u: Numbers) -> Numbers:
    place = _between(-0.6, -0.4, u[0])
    return xp.stack([place, xp.zeros_like(place)])


def _step_car(xp: ModuleType, state: Numbers, a: Numbers) -> Moved:
    """ẋ + 0.001 (a − 1) − 0.0025 cos 3x, then x + ẋ, both clipped to their bounds; at the left end the car stops."""
    speed = state[1] + ((a - 1) * _ENGINE + xp.cos(3 * state[0]) * -_SLOPE)
    speed = xp.clip(speed, -_FASTEST, _FASTEST)
    place = xp.clip(state[0] + speed, _LEFT_END, _RIGHT_END)
    speed = xp.where((place == _LEFT_END) & (speed < 0), 0.0, speed)
    return Moved(xp.stack([place, speed]), -xp.ones_like(place), (place >= _TOP) & (speed >= 0))


_SWING, _FAST = 0.2, (4 * math.pi, 9 * math.pi)  # seconds of a step; the largest speed of each joint


def _start_acrobot(xp: ModuleType, u: Numbers) -> Numbers:
    return _between(-0.1, 0.1, u).astype(xp.float32).astype(xp.float64)


def _step_acrobot(xp: ModuleType, state: Numbers, a: Numbers) -> Moved:
    """A step of 0.2 seconds by the fourth-order Runge–Kutta method; angles are wrapped to [−π, π]."""
    torque, half = a - 1.0, _SWING / 2.0
    first = _rates_of_acrobot(xp, state, torque)
    second = _rates_of_acrobot(xp, state + half * first, torque)
    third = _rates_of_acrobot(xp, state + half * second, torque)
    fourth = _rates_of_acrobot(xp, state + _SWING * third, torque)
    after = state + _SWING / 6.0 * (first + 2 * second + 2 * third + fourth)
    turn = 2 * math.pi
    angles = after[:2]
    angles = angles - turn * xp.maximum(xp.ceil((angles - math.pi) / turn), 0.0)
    angles = angles + turn * xp.maximum(xp.ceil((-math.pi - angles) / turn), 0.0)
    speeds = xp.clip(after[2:], -xp.asarray(_FAST), xp.asarray(_FAST))
    above = -xp.cos(angles[0]) - xp.cos(angles[1] + angles[0]) > 1.0
    return Moved(xp.concatenate([angles, speeds]), xp.where(above, 0.0, -1.0), above)


def _rates_of_acrobot(xp: ModuleType, state: Numbers, torque: Numbers) -> Numbers:
    """The time derivatives of angles and velocities, for links of length, mass and moment 1, centred in the middle.

    As in Sutton and Barto's book: d₁ θ̈₁ = −(d₂ θ̈₂ + φ₁) and
    θ̈₂ = (τ + φ₁ d₂ / d₁ − ½ θ̇₁² sin θ₂ − φ₂) / (5/4 − d₂² / d₁).
    """
    upper, lower, upper_speed, lower_speed = state[0], state[1], state[2], state[3]
    cos, sin = xp.cos(lower), xp.sin(lower)
    d1 = 0.25 + (1.0 + 0.25 + cos) + 2.0
    d2 = 0.25 + 0.5 * cos + 1.0
    phi2 = 0.5 * _GRAVITY * xp.cos(upper + lower - math.pi / 2)
    phi1 = -0.5 * lower_speed**2 * sin - lower_speed * upper_speed * sin
    phi1 = phi1 + 1.5 * _GRAVITY * xp.cos(upper - math.pi / 2) + phi2
    second = (torque + d2 / d1 * phi1 - 0.5 * upper_speed**2 * sin - phi2) / (1.25 - d2**2 / d1)
    return xp.stack([upper_speed, lower_speed, -(d2 * second + phi1) / d1, second])


def _see_acrobot(xp: ModuleType, state: Numbers) -> Numbers:
    upper, lower = state[0], state[1]
    angles = [xp.cos(upper), xp.sin(upper), xp.cos(lower), xp.sin(lower)]
    return xp.stack([*angles, state[2], state[3]]).astype(xp.float32)
