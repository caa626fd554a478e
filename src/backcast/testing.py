"""Conformance suites for your own agents, models and planners: inherit from them in your tests.

    from backcast.testing import AgentConformance, ModelConformance

    class TestMine(AgentConformance, ModelConformance):
        kind = "mine"                 # registered with backcast.agents.kinds.register
        options = {"alpha": 0.5}      # other arguments of backcast.agent

Backcast's own kinds pass it (`tests/agents/test_conformance.py`).
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from backcast import exact
from backcast.agents import Agent, agent
from backcast.agents.kinds import KINDS
from backcast.agents.parts import Parts
from backcast.agents.setup import Setup
from backcast.core.arrays import Vector
from backcast.core.interaction import Step
from backcast.drivers.run import run
from backcast.drivers.train import train
from backcast.values.linear import as_matrix
from backcast.worlds import World, chain, maze
from backcast.worlds.envs import TableEnv

SMALL_MAZE = "..G\n.X.\nS.."
EPISODES = 12
LIMITS = (None, EPISODES), (5, EPISODES), (8, 5 * EPISODES)  # the last truncates some episodes where values are not 0


class _Suite:
    """Base of all suites: the kind, its options, and small worlds in which it works."""

    kind: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}

    def agent(self, **changes: Any) -> Agent:
        """The agent under test."""
        return agent(self.kind, **{**self.options, **changes})

    def worlds(self) -> list[World]:
        """Small worlds in which this kind works."""
        only = KINDS[self.kind].only
        prediction, control = [chain((6, 4, 3), seed=0)], [maze(SMALL_MAZE), maze(SMALL_MAZE, 0.3, 0.5)]
        return {"prediction": prediction, "control": control}.get(only or "", prediction + control)

    def parts(self, world: World, **changes: Any) -> Parts:
        """The parts of the agent under test in a world."""
        return self.agent(**changes).build(Setup(world.n_states, world.n_actions, world.discount, world))


class AgentConformance(_Suite):
    """Checks for every agent: it is reproducible, it counts updates, and without planning it is model-free."""

    def test_runs_are_reproducible_whatever_the_number_of_workers(self) -> None:
        """Results are identical with one worker and with two, all seeds at once or one at a time."""
        for world in self.worlds():
            one = run(world, self.agent(), EPISODES, 4, workers=1)
            two = run(world, self.agent(), EPISODES, 4, workers=2)
            last = run(world, self.agent(), EPISODES, [3])
            assert np.array_equal(one.values, two.values)
            assert np.array_equal(one.steps, two.steps)
            assert np.array_equal(one.values[3:], last.values)
            assert np.isfinite(one.values).all()

    def test_stepwise_and_compiled_are_the_same(self) -> None:
        """`backcast.train` and `backcast.run` give equal numbers for equal seeds, also when episodes are truncated."""
        for world in self.worlds():
            for limit, episodes in LIMITS:
                compiled = run(world, self.agent(), episodes, [5], max_steps=limit)
                stepwise = train(TableEnv(world), self.agent(), episodes, 5, max_steps=limit)
                assert np.array_equal(compiled.values, stepwise.values)
                assert np.array_equal(compiled.steps, stepwise.steps)
                assert np.array_equal(compiled.updates.total, stepwise.updates.total)

    def test_without_planning_it_is_model_free(self) -> None:
        """With planning steps of size 0 the values are those of TD or Q-learning."""
        for world in self.worlds():
            free = run(world, agent("td" if world.is_prediction else "q", **_learning(self.options)), EPISODES, 3)
            idle = run(world, self.agent(alpha_plan=[0.0] * EPISODES), EPISODES, 3)
            np.testing.assert_allclose(idle.values, free.values, rtol=1e-12, atol=1e-12)
            assert np.array_equal(idle.steps, free.steps)

    def test_value_updates_are_counted(self) -> None:
        """One learning update per step; one planning update for each value, or weight update, that is made."""
        for world in self.worlds():
            runs = run(world, self.agent(), EPISODES, 2)
            assert np.array_equal(runs.updates.learning, runs.steps.sum(axis=1))
        for world, parts, s, s2 in self._planning_states():
            before = parts.values.as_array()
            step = Step(s, 0, 0.0, s2, False, False)
            counted = parts.planner.plan(parts.model, parts.values, step, world.discount, np.full(4, 0.5))
            changed = int((parts.values.as_array() != before).sum())
            if parts.values.as_weights() is None:
                assert changed == counted, f"{counted} updates counted, {changed} values changed"
            else:  # one update of the weights, which is counted once, changes the values of many states
                assert (changed > 0) == (counted > 0), f"{counted} updates counted, {changed} values changed"

    def _planning_states(self) -> Iterator[tuple[World, Parts, int, int]]:
        """Yield trained parts whose values all differ, and a transition s → s' between non-terminal states."""
        for world in self.worlds():
            parts = run_parts(world, self.agent())
            _make_different(parts.values)
            for s, s2 in _inner_transitions(world):
                yield world, parts, s, s2


class ModelConformance(_Suite):
    """Checks for every model of probabilities.

    `true` says whether the model claims to know the world; `experience` after how many episodes a learned model is
    judged.
    """

    true: ClassVar[bool] = False
    experience: ClassVar[int] = 600

    def test_rows_sum_to_one(self) -> None:
        """Every row is a distribution, or empty where nothing is known."""
        for world in self.worlds():
            sums = _probabilities(run_parts(world, self.agent()), world).sum(axis=1)
            assert np.all(np.isclose(sums, 1.0, atol=1e-12) | (sums == 0.0))
            assert (sums > 0).any()

    def test_loss(self) -> None:
        """A true model has no loss; the loss of a learned model falls with experience."""
        for world in self.worlds():
            rates, always = [0.2] * self.experience, [1.0] * self.experience
            trained = run_parts(world, self.agent(alpha_model=rates, alpha=rates, alpha_plan=rates, epsilon=always))
            loss = model_loss(_probabilities(trained, world), world, _looks_back(trained))
            if self.true:
                assert abs(loss) < 1e-10
            else:
                fresh = self.parts(world)
                assert loss < 0.7 * model_loss(_probabilities(fresh, world), world, _looks_back(fresh))


class ExpectedPlanningConformance(_Suite):
    """Checks for planners that make the full expected update with a true model, forward or backward.

    If planning starts from every state s in proportion to d_π(s), the summed change of the values is
    d_π(s̃) (T v − v)(s̃), forward and backward. This is the average change by learning from real steps. Weights of
    features x change by Σ_s̃ d_π(s̃) (T v − v)(s̃) x(s̃).
    """

    def test_planning_agrees_in_expectation_with_learning(self) -> None:
        """Σ_s d(s) Δ(s) = Xᵀ (d · (T v − v))."""
        world = chain((6, 4, 3), seed=1)
        d, x = exact.stationary(world.mdp), _features_of(self.parts(world).values)
        weights = np.cos(np.arange(x.shape[1])) * ~(x[world.mdp.terminal].any(axis=0))
        v, change = x @ weights, np.zeros_like(weights)
        for s in range(world.n_states):
            parts = self.parts(world, frame="current")
            _set(parts.values, weights)
            model: Any = parts.model
            for each in range(world.n_states):
                model.refresh(parts.values, each, world.discount)
            ends = bool(world.mdp.terminal[s])
            step = Step(s, 0, 0.0, s, ends, False)
            parts.planner.plan(parts.model, parts.values, step, world.discount, np.ones(4))
            change += d[s] * (_get(parts.values) - weights)
        one = exact.chains.OneStep(world.mdp)
        expected = d * (np.asarray(one.R).sum(axis=1) + one.G @ v - v) * ~world.mdp.terminal
        np.testing.assert_allclose(change, x.T @ expected, atol=1e-12)


def run_parts(world: World, chosen: Agent) -> Parts:
    """The parts of an agent after a run of one seed. The run has an episode for each step size given, else 30."""
    from backcast.drivers.run import one_run

    episodes = 30 if np.isscalar(chosen.alpha) else len(chosen.alpha)  # type: ignore[arg-type]
    return one_run(world, chosen, 0, chosen.rates(episodes), world.max_steps or 200)[1]


def model_loss(probabilities: Vector, world: World, backward: bool) -> float:
    """Mean Kullback–Leibler divergence of a model's rows from the true ones, over all possible conditions.

    Args:
        probabilities: rows (S, S·A) of a backward model, (S·A, S) of a forward one.
        world: the world.
        backward: whether it is a backward model, which is compared with that of the uniform policy.
    """
    n_states, n_actions = world.n_states, world.n_actions
    policy = None if world.is_prediction else np.full((n_states, n_actions), 1 / n_actions)
    if backward:
        truth = np.nan_to_num(
            np.asarray(exact.backward(world.mdp, world.policy if world.is_prediction else policy).joint)
        )
        truth = truth.sum(axis=2, keepdims=True) if world.is_prediction else truth
        truth[:, world.mdp.terminal] = 0.0  # a restart is not observed
        truth = truth.reshape(n_states, -1)
        truth = truth / np.maximum(truth.sum(axis=1, keepdims=True), 1e-300)
    else:
        truth = world.rows.toarray() * np.repeat(~world.mdp.terminal & world.mdp.reachable, n_actions)[:, None]
    seen = truth.sum(axis=1) > 0.5
    with np.errstate(divide="ignore"):
        logs = np.where(truth > 0, np.log(truth / np.maximum(probabilities, 1e-300), where=truth > 0, out=truth * 0), 0)
    return float((truth * logs).sum(axis=1)[seen].mean())


def _probabilities(parts: Parts, world: World) -> Vector:
    model: Any = parts.model.readable(parts.values)
    full = np.nan_to_num(model.joint if _looks_back(parts) else model.transition)  # NaN: nothing is known
    return full.reshape(world.n_states if _looks_back(parts) else world.n_states * world.n_actions, -1)


def _looks_back(parts: Parts) -> bool:
    return parts.model.predecessors(0) is not None


def _inner_transitions(world: World) -> list[tuple[int, int]]:
    states, following = world.mdp.graph.nonzero()
    inner = ~world.mdp.terminal[states] & ~world.mdp.terminal[following] & world.mdp.reachable[states]
    return list(zip(states[inner].tolist(), following[inner].tolist(), strict=True))[:5]


def _learning(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: options[name]
        for name in ("alpha", "epsilon", "schedule", "epsilon_schedule", "features")
        if name in options
    }


def _make_different(values: Any) -> None:
    """Set all values of a table, or all weights of linear values, to different numbers."""
    weights = values.as_weights()
    if weights is None:
        values.fill(np.sqrt(np.arange(values.n_states * values.n_actions) + 0.5))
    else:
        weights[:] = np.sqrt(np.arange(weights.size) + 0.5).reshape(weights.shape)


def _set(values: Any, weights: Vector) -> None:
    """Set the values, or weights, of a prediction world."""
    if values.as_weights() is None:
        values.fill(weights)
    else:
        values.w[:] = weights


def _get(values: Any) -> Vector:
    """The values, or weights, of a prediction world."""
    found: Vector = values.as_array()[:, 0] if values.as_weights() is None else values.w.copy()
    return found


def _features_of(values: Any) -> Vector:
    """(S, d): x(s) of the values of a prediction world; those of a table are one-hot."""
    if values.as_weights() is None:
        return np.eye(values.n_states)
    return np.asarray(as_matrix(values.features, values.n_features).todense())


__all__ = ["AgentConformance", "ExpectedPlanningConformance", "ModelConformance", "model_loss"]
