"""Worlds from existing tables: a finite MDP, or a Gymnasium environment with a transition table."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from backcast.core.arrays import Indices, Mask, Vector, as_distribution, as_whole
from backcast.core.errors import InputError, in_a_line
from backcast.core.graph import breadth_first
from backcast.core.setting_types import Label
from backcast.exact.chains import as_policy
from backcast.mdp import FiniteMDP, saved_policy, saved_size
from backcast.worlds.kinds import Discount, Given, Sketch, Steps, register_world
from backcast.worlds.layouts import CLOCKWISE, Grid, full_grid, taxi
from backcast.worlds.world import Outcomes, World, refuse_large

_DISCOUNT = 0.99
# Offered by the lab, as far as Gymnasium has them.
_OFFERED = ("FrozenLake-v1", "FrozenLake8x8-v1", "CliffWalking-v1", "CliffWalkingSlippery-v1", "Taxi-v4")


def from_mdp(mdp: FiniteMDP, policy: ArrayLike | None = None, name: str = "mdp", max_steps: int | None = None) -> World:
    """Make a world from a finite MDP. With a policy it is a prediction world, in which the policy is evaluated."""
    if not isinstance(mdp, FiniteMDP):
        raise InputError(f"mdp: {type(mdp).__name__} given, expected a backcast.FiniteMDP")
    pi = None if policy is None else as_policy(mdp, policy)
    limit = None if max_steps is None else as_whole("max_steps", max_steps, 1)
    return World(name, mdp, policy=pi, max_steps=limit)


def from_file(path: str | Path, policy: str | None = None, max_steps: int | None = None) -> World:
    """Make a world from a file written by `FiniteMDP.save`. It is named after the file.

    Args:
        path: path of the file.
        policy: "uniform" to evaluate the uniform policy; by default the policy saved with it, if any.
        max_steps: number of steps after which episodes are truncated.
    """
    if policy not in (None, "uniform"):
        raise InputError(f"policy: {policy!r} given, expected 'uniform', or none for that of the file")
    path = Path(path)
    try:
        refuse_large(str(path), *saved_size(path))
        mdp, saved = FiniteMDP.load(path), saved_policy(path)
    except OSError as error:
        raise InputError(f"file: {path} cannot be read ({error.strerror})") from error
    if policy == "uniform":
        saved = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    return from_mdp(mdp, saved, path.stem, max_steps)


@register_world("mdp", called=from_file)
def _in_a_study(file: Path, policy: Literal["uniform"] | None = None, max_steps: Steps | None = None) -> World:
    """A world from a file.

    Args:
        file: a file written by `FiniteMDP.save`.
        policy: "uniform" to evaluate the uniform policy (default: the policy that was saved with it, if there is one).
        max_steps: where episodes are truncated.
    """
    return from_file(file, policy, max_steps)


def from_gymnasium(
    env: Any,
    discount: float = _DISCOUNT,
    start: ArrayLike | None = None,
    max_steps: int | None = None,
    **options: Any,
) -> World:
    """Make a world from a Gymnasium environment that has a transition table, `env.unwrapped.P[s][a]`.

    Examples are FrozenLake, CliffWalking, Taxi and the other "toy text" environments. Episodes are truncated by the
    environment's own time limit.

    Args:
        env: the environment, or its id.
        discount: γ, which Gymnasium environments do not define.
        start: distribution of the first state; by default the environment's `initial_state_distrib`.
        max_steps: number of steps after which episodes are truncated; by default the environment's limit.
        options: keyword arguments of `gymnasium.make`, if `env` is an id.

    Examples:
        >>> from_gymnasium("FrozenLake-v1", is_slippery=False).mdp
        FiniteMDP(16 states, 4 actions, 64 transitions, discount 0.99, 5 terminal, dense)
    """
    if isinstance(env, str):
        max_steps = options.pop("max_episode_steps", max_steps)  # Gymnasium's name for it
        if start is None and not options:
            return _by_id(env, discount, max_steps)
    return _read(_made(env, options), discount, start, max_steps)


def _read(env: Any, discount: float, start: ArrayLike | None, max_steps: int | None) -> World:
    """Read the world from an environment, including the time limit of its wrapper."""
    limit = getattr(getattr(env, "spec", None), "max_episode_steps", None)
    limit = limit if max_steps is None else as_whole("max_steps", max_steps, 1)
    bare = env.unwrapped
    own = getattr(bare, "world", None)
    if isinstance(own, World):  # its discount is its own
        return own if limit is None else replace(own, max_steps=limit)
    table = getattr(bare, "P", None)
    if table is None:
        raise InputError(
            f"env: {type(bare).__name__} carries no table (env.unwrapped.P), which backcast.run and studies need;"
            f" {_what_train_can_do(env)}"
        )
    try:
        n_states, n_actions = len(table), len(table[0])
        entries = [
            (s * n_actions + a, int(s2), float(p), float(r), bool(ends))
            for s in range(n_states)
            for a in range(n_actions)
            for p, s2, r, ends in table[s][a]
            if p > 0
        ]
        row, next_state, probability, reward, ends = (np.array(column) for column in zip(*entries, strict=True))
        if not 0 <= next_state.min() <= next_state.max() < n_states:
            raise ValueError(f"it leads to state {next_state.max()} of {n_states}")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(
            "env: its table is not of the form P[s][a] = [(probability, next state, reward, terminated), …] with states"
            f" and actions numbered from 0 ({type(error).__name__}: {error})"
        ) from error
    first = _start(bare, start, n_states)
    terminal = _terminal(row // n_actions, next_state, ends, first, n_states)
    outcomes = Outcomes(row, next_state, probability, reward)
    spec = getattr(env, "spec", None)
    name = spec.id if spec is not None else type(bare).__name__
    mdp = outcomes.mdp(n_states, n_actions, discount, first, terminal)
    return World(name, mdp, outcomes, max_steps=limit, layout=_layout(bare, n_states))


def _layout(bare: Any, n_states: int) -> Grid | None:
    """The layout of the states of Gymnasium's own environments; None for others."""
    from gymnasium.envs.toy_text import CliffWalkingEnv, FrozenLakeEnv, TaxiEnv

    grid = None
    if isinstance(bare, FrozenLakeEnv):
        grid = full_grid(bare.nrow, bare.ncol, ("left", "down", "right", "up"))
    elif isinstance(bare, CliffWalkingEnv):  # falling off returns to the start: the cliff's cells are never reached
        grid = full_grid(bare.shape[0], bare.shape[1], CLOCKWISE, unreached="T")
    elif isinstance(bare, TaxiEnv):
        grid = taxi()
    return grid if grid is not None and len(grid.x) == n_states else None


class TableSketch(Sketch):
    """What is known of an environment from its id: `Name-v0`, or `module:Name-v0`, which imports the module."""

    def name(self, given: Given) -> str:
        """Its id."""
        return str(given["id"]).rpartition(":")[2]

    def why_unmade(self, given: Given) -> str:
        """Why the environment is not made."""
        module = self.imports(given)
        why = "made" if module is None else f"looked at, as that would import the module {module!r}"
        return f"{given['id']!r} was not {why}"

    def imports(self, given: Given) -> str | None:
        """The module before the colon, if there is one."""
        module, colon, _ = str(given["id"]).partition(":")
        return module if colon else None

    def refuse(self, given: Given) -> None:
        """Raise InputError if Gymnasium has no environment with this id."""
        if self.imports(given) is None:
            _refuse_unknown(given["id"])

    def choices(self) -> dict[str, tuple[str, ...]]:
        """Environments that are small enough to draw."""
        import gymnasium

        return {"id": tuple(name for name in _OFFERED if name in gymnasium.registry)}


@register_world("gymnasium", label="Gymnasium table", called=from_gymnasium, sketch=TableSketch())
def _by_id(
    id: Annotated[str, Label("environment")], discount: Discount = _DISCOUNT, max_steps: Steps | None = None
) -> World:
    """A Gymnasium environment.

    Args:
        id: the id of an environment that has a transition table, such as "FrozenLake-v1".
        discount: γ, which Gymnasium environments do not define.
        max_steps: where episodes are truncated (default: where the environment does it).
    """
    return _read(_made(id, {}), discount, None, max_steps)


def _made(env: Any, options: dict[str, Any]) -> Any:
    """Return the environment, made if its id is given."""
    import gymnasium

    if isinstance(env, str):
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                made = gymnasium.make(env, **options)
        except Exception as error:  # third-party code may raise anything
            raise InputError(f"env: {env!r} cannot be made ({type(error).__name__}: {in_a_line(error)})") from error
        for each in said:  # if it was made, only its warnings are shown
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        return made
    if not hasattr(env, "unwrapped"):
        raise InputError(f"env: {type(env).__name__} given, expected a Gymnasium environment or its id")
    for name in options:
        raise InputError(f"{name}: given with an environment that is made already; options go with an id")
    return env


def _refuse_unknown(name: str) -> None:
    """Raise InputError if Gymnasium has no environment with this id (without a module). Nothing is imported or made."""
    import gymnasium

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an older version; Gymnasium warns when it is made
            gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise InputError(f"env: {name!r} cannot be made ({in_a_line(error)})") from error


def _what_train_can_do(env: Any) -> str:
    """The part of the message that says how to use an environment without a table."""
    from gymnasium.spaces import Box, Discrete

    if not isinstance(env.action_space, Discrete):
        return f"backcast.train needs none, but its action space is {env.action_space}, expected Discrete"
    if isinstance(env.observation_space, Discrete):
        return "backcast.train runs agents in it step by step"
    if isinstance(env.observation_space, Box):
        return (
            "backcast.train runs agents in it step by step if they have features, such as"
            ' backcast.agent("q", features=backcast.features.tiles())'
        )
    return f"backcast.train needs none, but {unusable(env.observation_space)}"


def unusable(space: object) -> str:
    """Say why observations other than Discrete or Box cannot be used, and what to do."""
    return (
        f"its observation space is {space}, expected Discrete or Box: gymnasium.wrappers.FlattenObservation makes it"
        " a Box, for agents with features; TransformObservation may number its observations, for agents without"
    )


def _start(bare: Any, given: ArrayLike | None, n_states: int) -> Vector:
    start = getattr(bare, "initial_state_distrib", None) if given is None else given
    if start is None:
        raise InputError(
            f"start: {type(bare).__name__} does not say where episodes begin (initial_state_distrib); give start="
        )
    return as_distribution("start", start, n_states)


def _terminal(states: Indices, next_states: Indices, ends: Mask, start: Vector, n_states: int) -> Mask:
    """The states in which episodes end; raise InputError if entering a state ends the episode only sometimes."""
    terminal = np.zeros(n_states, dtype=np.bool_)
    terminal[next_states[ends]] = True
    goes_on = ~terminal[states]
    ways = sparse.csr_array(
        (np.ones(int(goes_on.sum())), (states[goes_on], next_states[goes_on])), shape=(n_states, n_states)
    )
    reached = np.zeros(n_states, dtype=np.bool_)
    reached[breadth_first(ways, start > 0)] = True
    unclear = reached[states] & goes_on & ~ends & terminal[next_states]
    if unclear.any():
        state = int(next_states[np.argmax(unclear)])
        raise InputError(
            f"env: entering state {state} sometimes ends the episode and sometimes does not; a finite MDP needs states"
            " that always do or never do"
        )
    return terminal
