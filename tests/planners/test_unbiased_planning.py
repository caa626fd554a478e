"""With values frozen at v_π the expected correction of each state vanishes; where it does not, a test shows the bias.

The expectation is over the states that a long run plans from: all starts and steps of the recurrent chain, each in
proportion to how often it happens. Worlds have starts that are entered again, self-loops, several starts and states
that are never visited.
"""

import numpy as np
import pytest

import backcast as bc
from backcast.agents.setup import Setup
from backcast.drivers.loop import begin, observe
from random_worlds import dense, random_mdp, random_policy, random_steps

TINY = 1e-8  # a planning step so small that values stay where they are
FROZEN = 1e12  # counts so large that one more does not change a row
WORLDS = range(6)


def prediction_world(seed):
    """Some seeds never end; the last state is never visited."""
    rng = np.random.default_rng(seed)
    inner = random_mdp(rng, 5, 2, terminals=seed % 3, density=0.7)
    transition, reward = np.zeros((6, 2, 6)), rng.normal(size=(6, 2, 6))
    transition[:5, :, :5], transition[5, :, 0] = inner.transition, 1.0
    start = np.append(inner.start, 0.0)
    mdp = bc.FiniteMDP(transition, reward, 0.9, start, np.append(inner.terminal, False))
    policy = random_policy(rng, mdp)
    return bc.worlds.from_mdp(mdp, policy), bc.exact.value(mdp, policy)


def parts_at(world, agent, v):
    """The agent at work, its values v where episodes go on and 0 where they end."""
    parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
    set_values(parts, v)
    return parts


def set_values(parts, v):
    parts.values.fill(np.ravel(v))


def events(world):
    """What happens in a long run: how often, `begin` or `observe`, and what it is told."""
    mdp, chain = world.mdp, dense(world.rows)
    d = bc.exact.stationary(mdp, world.policy)
    starts = (d @ mdp.terminal) * mdp.start
    for s in np.flatnonzero(~mdp.terminal & (d > 0)):
        yield starts[s], begin, (s,)
        for s2 in np.flatnonzero(chain[s]):
            for first, share in ((True, starts[s] / d[s]), (False, 1 - starts[s] / d[s])):
                yield d[s] * share * chain[s, s2], observe, (s, 0, 0.0, int(s2), bool(mdp.terminal[s2]), first)


def expected_changes(world, parts, numbers, frozen, alpha):
    """Σ over events of their frequency times what planning changes in `numbers`, for a step of size 1."""
    rates, total = np.array([0.0, 0.0, alpha, 0.0]), np.zeros(frozen.size)
    for frequency, happens, what in events(world):
        if frequency > 0:
            numbers[:] = frozen
            happens(parts, rates, *what)
            total += frequency * (numbers - frozen) / alpha
    return total


def expected_corrections(world, agent, v, alpha=TINY):
    """The expected correction of each state; rows of true models move each entry on its own."""
    parts = parts_at(world, agent, v)
    return expected_changes(world, parts, parts.values.u, v, alpha)


SPANS = [{}, {"horizon": 3}, {"weights": (0.5, 0.2, 0.3)}, {"lam": 0.7}]


@pytest.mark.interpreted
@pytest.mark.parametrize("span", SPANS, ids=str)
@pytest.mark.parametrize("frame", ["current", "previous"])
def test_true_models_leave_true_values_alone(span, frame):
    for seed in WORLDS:
        world, v = prediction_world(seed)
        agent = bc.agent("true-backward", frame=frame, learn=False, **span)
        np.testing.assert_allclose(expected_corrections(world, agent, v), 0, atol=1e-6)


@pytest.mark.parametrize("span", SPANS[:2], ids=str)
@pytest.mark.parametrize("depth", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_true_models_leave_true_values_alone_when_predecessors_are_drawn(span, depth):
    """Within five standard errors of 200,000 samples from each start and step."""
    samples = 200_000
    for seed in (1, 2, 5):
        world, v = prediction_world(seed)
        agent = bc.agent("true-backward", learn=False, sample=samples, depth=depth, **span)
        correction = expected_corrections(world, agent, v, alpha=1e-10) / samples
        spread = 2 * np.abs(v).max() + np.abs(world.mdp.table_reward.data).max()
        np.testing.assert_allclose(correction, 0, atol=5 * spread * depth / np.sqrt(samples))


@pytest.mark.interpreted
def test_forward_planning_leaves_true_values_alone():
    for seed in WORLDS:
        world, v = prediction_world(seed)
        np.testing.assert_allclose(expected_corrections(world, bc.agent("true-forward"), v), 0, atol=1e-6)


# ---------------------------------------------------------------------------- counted models


def freeze(model):
    """The same model, which no longer notices one more observation, at the beginning of a new run."""
    rows, restarts = model.rows, model.restarts
    for array in (rows.weight, rows.total, restarts.weight, restarts.total, model.led, model.arrivals):
        array *= FROZEN
    for counted in (rows, restarts):
        counted.share[:] = np.divide(1.0, counted.total, out=np.zeros_like(counted.total), where=counted.total > 0)
    model.past.ended[0], model.past.clock[0] = -1, 0


def learned_corrections(steps, q, discount, n):
    """Σ of the n-step corrections of q along a trajectory that goes on over restarts; a cut ends it."""
    total, past, ended = np.zeros(q.size), [], False
    for s, a, r, s2, ends, first in steps:
        if first and not ended:
            past = []
        for pair, reward, gamma, arrived in ([(None, 0.0, 0.0, s)] if first and ended else []) + [
            (s * q.shape[1] + a, r, 0.0 if ends else discount, s2)
        ]:
            past.append((pair, reward, gamma))
            if len(past) >= n and past[-n][0] is not None:
                gain, carried = 0.0, 1.0
                for _, earned, factor in reversed(past[-n:]):
                    gain, carried = earned + factor * gain, carried * factor
                origin = past[-n][0]
                total[origin] += gain + carried * q[arrived].max() - q.ravel()[origin]
        ended = ends
    return total


SETTINGS = [{}, {"horizon": 3}, {"conditioned": True}, {"horizon": 2, "conditioned": True}]


@pytest.mark.interpreted
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("control", [False, True], ids=["prediction", "control"])
def test_counted_models_correct_in_sum_what_learning_would(settings, control):
    """Exactly, for any values, over any trajectory, also one that is cut off: Σ_planned P̂ δ = Σ_steps δ."""
    assert_corrected_in_sum(settings, control)


@pytest.mark.parametrize("control", [False, True], ids=["prediction", "control"])
def test_counted_models_correct_on_average_what_learning_would(control):
    assert_corrected_in_sum({"sample": 3000}, control)


def assert_corrected_in_sum(settings, control):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        mdp = random_mdp(rng, 5, 2, terminals=seed % 3, density=0.7)
        world = bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp), max_steps=50)
        steps = list(random_steps(world, rng, 300, cut=0.05 if seed % 2 else 0.0))
        q = rng.normal(size=(world.n_states, world.n_actions))
        samples = settings.get("sample", 1)
        parts = parts_at(world, bc.agent("backward", model="counts", learn=False, **settings), q)
        replay(parts, steps, q, np.array([0.0, 1.0, 0.0, 0.0]))
        freeze(parts.model)
        correction = replay(parts, steps, q, np.array([0.0, 1.0, TINY, 0.0])) / samples
        expected = learned_corrections(steps, q, world.discount, settings.get("horizon", 1))
        sampling_error = 0.0 if samples == 1 else 40 * np.sqrt(len(steps) / samples)
        np.testing.assert_allclose(correction, expected, atol=1e-4 + sampling_error)


def replay(parts, steps, q, rates):
    """Σ of what planning changes along a trajectory, for a step of size 1."""
    total = np.zeros(q.size)
    for s, *rest, first in steps:
        set_values(parts, q)
        if first:
            begin(parts, rates, s)
        observe(parts, rates, s, *rest, first)
        total += (parts.values.as_array() - q).ravel() / TINY
    return total


# ---------------------------------------------------------------------------- control, features, softmax


@pytest.mark.interpreted
def test_counted_models_leave_optimal_values_alone():
    """In control, over one step: with all transitions in proportion to their probabilities, nothing changes at q*."""
    for seed in WORLDS:
        rng = np.random.default_rng(seed)
        world = bc.worlds.from_mdp(random_mdp(rng, 5, 2, terminals=seed % 3, density=0.7))
        q = bc.exact.optimal(world.mdp).q
        parts = parts_at(world, bc.agent("backward", model="counts"), q)
        steps = list(random_steps(world, rng, 2000, cut=0.0))
        replay(parts, steps, q, np.array([0.0, 1.0, 0.0, 0.0]))
        freeze(parts.model)
        correction = replay(parts, steps, q, np.array([0.0, 1.0, TINY, 0.0]))
        visits = np.bincount([s * 2 + a for s, a, *_ in steps], minlength=q.size)
        spread = np.abs(world.mdp.table_reward.data).max() + 2 * np.abs(q).max()
        assert (np.abs(correction) <= 5 * spread * np.sqrt(np.maximum(visits, 1))).all()


def fixed_point(world, X, model):
    """The w at which Σ_s d(s) Σ_s̃ (earned + discounted v(s) − P← v(s̃)) x(s̃) is 0, with v = X w."""
    d = bc.exact.stationary(world.mdp, world.policy)
    states, earned, discounted = (np.nan_to_num(dense(m)) for m in (model.states, model.earned, model.discounted))
    lively = X * ~world.mdp.terminal[:, None]
    A = lively.T @ ((d @ states)[:, None] * lively - (d[:, None] * discounted).T @ lively)
    return np.linalg.lstsq(A, lively.T @ (d @ earned), rcond=1e-10)[0]


@pytest.mark.slow
@pytest.mark.parametrize("span", SPANS, ids=str)
def test_linear_values_are_left_alone_at_the_fixed_point_of_the_same_span(span):
    """`lstd` over one step; over n, or with λ, the fixed point of the n-step or λ-return."""
    for seed in WORLDS:
        world, _ = prediction_world(seed)
        X = np.random.default_rng(seed).normal(size=(world.n_states, 3))
        models = {"horizon": bc.exact.n_step, "weights": bc.exact.multi_time, "lam": bc.exact.lambda_model}
        name, value = next(iter(span.items()), ("horizon", 1))
        w = fixed_point(world, X, models[name](world.mdp, world.policy, value))
        if not span:
            np.testing.assert_allclose(w, bc.exact.lstd(world.mdp, world.policy, X), atol=1e-8)
        agent = bc.agent("true-backward", learn=False, features=X, **span)
        parts = agent.build(Setup(world.n_states, world.n_actions, world.discount, world))
        given = np.zeros(parts.values.w.size)  # terminal states may have a feature of their own, whose weight is 0
        given[:3] = w
        np.testing.assert_allclose(expected_changes(world, parts, parts.values.w, given, TINY), 0, atol=1e-6)


def re_entered_start():
    """0 → 0 or 1, 1 → 0 or the end, each with probability ½; rewards 1, 0, 2, 0."""
    transition, reward = np.zeros((3, 1, 3)), np.zeros((3, 1, 3))
    transition[0, 0, :2] = transition[1, 0, ::2] = 0.5
    transition[2, 0, 2] = 1.0
    reward[0, 0, 0], reward[1, 0, 0] = 1.0, 2.0
    mdp = bc.FiniteMDP(transition, reward, 0.9, [1, 0, 0], [False, False, True])
    return bc.worlds.from_mdp(mdp, [[1.0]] * 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"kind": "true-backward", "learn": False},
        {"kind": "true-backward"},
        {"kind": "backward", "model": "counts", "learn": False},
        {"kind": "backward", "model": "softmax", "learn": False},
        {"kind": "backward", "model": "softmax", "horizon": 2, "learn": False},
        {"kind": "backward", "model": "softmax", "lam": 0.5, "frame": "previous", "learn": False},
        {"kind": "both", "sample": 1},
    ],
    ids=str,
)
def test_runs_come_to_rest_at_the_true_values_where_the_start_is_entered_again(options):
    """v_π is [2.734, 2.230]; within five standard errors, and one hundredth for what is left of the step sizes."""
    runs = bc.run(re_entered_start(), bc.agent(alpha=0.05, **options), episodes=4000, seeds=40)
    v = runs.values.reshape(40, 3)[:, :2]
    error = 5 * v.std(axis=0, ddof=1) / np.sqrt(40) + 0.01
    assert (np.abs(v.mean(axis=0) - [2.7338, 2.2302]) < error).all()


# ---------------------------------------------------------------------------- where it does not vanish

OF_STATES = (0.9, 0.1, 0.8, 0.2, 0.7, 0.3)
BIASED = {
    "λ of the state": {"lam": OF_STATES},
    "option": {"option": bc.Option(OF_STATES)},
    "option that terminates": {"option": bc.Option(OF_STATES, OF_STATES[::-1])},
    "top": {"top": 1},
    "depth over all branches": {"depth": 2},
    "from s beside learning": {"frame": "previous", "learn": True},
}


@pytest.mark.interpreted
@pytest.mark.parametrize("options", BIASED.values(), ids=BIASED)
def test_what_is_biased_at_the_true_values(options):
    """More than 0.01 in at least one of the worlds, where rewards have standard deviation 1."""
    agent = bc.agent("true-backward", **{"learn": False, **options})
    worlds = map(prediction_world, WORLDS)
    largest = [float(np.abs(expected_corrections(world, agent, v)).max()) for world, v in worlds]
    print(f"{agent.name}: largest correction at v_π in {len(WORLDS)} worlds", *(f"{bias:.3f}" for bias in largest))
    assert max(largest) > 0.01


@pytest.mark.interpreted
@pytest.mark.parametrize("options", BIASED.values(), ids=BIASED)
def test_where_every_step_is_certain_no_bias_is_left(options):
    """At v_π each single correction is 0 if one state follows another and rewards depend on both alone."""
    transition, rng = np.zeros((6, 1, 6)), np.random.default_rng(0)
    transition[np.arange(6), 0, [1, 2, 4, 5, 5, 5]] = 1.0
    mdp = bc.FiniteMDP(transition, rng.normal(size=(6, 6)), 0.9, [0.5, 0, 0, 0.5, 0, 0], np.arange(6) == 5)
    world, v = bc.worlds.from_mdp(mdp, np.ones((6, 1))), bc.exact.value(mdp)
    agent = bc.agent("true-backward", **{"learn": False, **options})
    np.testing.assert_allclose(expected_corrections(world, agent, v), 0, atol=1e-6)
