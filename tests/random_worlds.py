"""Random finite worlds for property tests: dense or sparse, episodic or not, periodic, with unreachable states."""

import numpy as np
from hypothesis import strategies as st
from scipy import sparse

import backcast as bc


def random_mdp(rng, n_states=5, n_actions=2, terminals=0, density=0.6, discount=0.9, as_sparse=False, unit=1.0):
    """Every state has a way down the numbering, so that the chain has one recurrent class under any policy."""
    weights = rng.random((n_states, n_actions, n_states)) + 0.05
    weights[rng.random(weights.shape) > density] = 0
    for s in range(n_states):
        weights[s, :, rng.integers(0, max(s, 1))] += 0.1 + rng.random(n_actions)
    transition = weights / weights.sum(axis=2, keepdims=True)
    reward = unit * rng.normal(size=transition.shape)
    terminal = np.zeros(n_states, dtype=bool)
    terminal[rng.choice(n_states, size=terminals, replace=False)] = True
    start = rng.random(n_states) * (rng.random(n_states) < 0.5) * ~terminal
    start[np.argmin(terminal)] += 0.1
    start /= start.sum()
    if as_sparse:
        transition = sparse.csr_array(transition.reshape(-1, n_states))
        reward = sparse.csr_array(reward.reshape(-1, n_states))
    return bc.FiniteMDP(transition, reward, discount, start, terminal)


def random_policy(rng, mdp):
    pi = rng.random((mdp.n_states, mdp.n_actions)) + 0.05
    pi[np.arange(mdp.n_states), rng.integers(0, mdp.n_actions, mdp.n_states)] += 1
    if rng.random() < 0.3:
        pi[:, 0] = 0 if mdp.n_actions > 1 else 1
    return pi / pi.sum(axis=1, keepdims=True)


def random_world(seed, control, n_states=6, n_actions=3, max_steps=50, **how):
    """A random MDP to act in, or one whose random policy is to be evaluated."""
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, n_states, n_actions, **{"density": 0.4} | how)
    return bc.worlds.from_mdp(mdp, None if control else random_policy(rng, mdp), max_steps=max_steps)


def cyclic_world(seed):
    """A prediction world of 60 states with cycles and two terminal states."""
    return random_world(seed, False, 60, 2, 1000, terminals=2, density=0.05)


def leveled(rng, levels=(3, 2), discount=0.9):
    """A leveled chain: periodic once it restarts."""
    n = sum(levels)
    bounds = np.cumsum((0, *levels))
    transition = np.zeros((n, 1, n))
    for k in range(len(levels) - 1):
        block = rng.random((levels[k], levels[k + 1])) + 0.01
        rows, columns = slice(bounds[k], bounds[k + 1]), slice(bounds[k + 1], bounds[k + 2])
        transition[rows, 0, columns] = block / block.sum(axis=1, keepdims=True)
    start = np.zeros(n)
    start[: levels[0]] = 1 / levels[0]
    terminal = np.arange(n) >= bounds[-2]
    return bc.FiniteMDP(transition, rng.normal(size=(n, n)), discount, start, terminal)


@st.composite
def worlds_and_policies(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.sampled_from(["general", "general", "leveled"])) == "leveled":
        mdp = leveled(rng, draw(st.sampled_from([(3, 2), (2, 3), (1, 4, 2), (4, 2, 1, 3)])))
    else:
        n_states = draw(st.integers(2, 7))
        mdp = random_mdp(
            rng,
            n_states,
            draw(st.integers(1, 3)),
            terminals=draw(st.integers(0, n_states - 1)),
            density=draw(st.sampled_from([0.2, 0.5, 1.0])),
            discount=draw(st.sampled_from([0.0, 0.5, 0.9, 0.99])),
            as_sparse=draw(st.booleans()),
        )
    return mdp, random_policy(rng, mdp)


def densified(mdp):
    """The same world, given dense."""
    shape = (mdp.n_states, mdp.n_actions, mdp.n_states)
    parts = (mdp.table.toarray().reshape(shape), mdp.table_reward.toarray().reshape(shape))
    return bc.FiniteMDP(*parts, mdp.discount, mdp.start, mdp.terminal)


def dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else np.asarray(matrix)


def simulate(mdp, policy, steps, rng):
    """States, actions and rewards of `steps` steps of the recurrent chain, plainly."""
    cumulative_start = np.cumsum(mdp.start)
    cumulative_policy = np.cumsum(policy, axis=1)
    table = densified(mdp)
    cumulative = np.cumsum(table.transition, axis=2)
    states, actions, rewards = np.empty(steps + 1, int), np.empty(steps, int), np.zeros(steps)
    uniforms = rng.random((steps + 1, 2))
    pick = lambda c, u: min(int(np.searchsorted(c, u * c[-1], side="right")), len(c) - 1)  # noqa: E731
    states[0] = pick(cumulative_start, uniforms[-1, 0])
    for t in range(steps):
        s = states[t]
        a = actions[t] = pick(cumulative_policy[s], uniforms[t, 0])
        if mdp.terminal[s]:
            states[t + 1] = pick(cumulative_start, uniforms[t, 1])
        else:
            states[t + 1] = pick(cumulative[s, a], uniforms[t, 1])
            rewards[t] = table.reward[s, a, states[t + 1]]
    return states, actions, rewards


def random_steps(world, rng, steps, cut):
    """Transitions s, a, r, s', ends, first under random actions; a step cuts its episode off with probability `cut`."""
    table, s = world.steps_table, -1
    for _ in range(steps):
        if first := s < 0:
            s = int(table.draw_start(rng.random()))
        if world.mdp.terminal[s]:
            s = -1
            continue
        a = int(rng.integers(world.n_actions))
        outcome = table.draw_outcome(s, a, rng.random())
        s2, r = int(table.next_state[outcome]), float(table.reward[outcome])
        ends = bool(world.mdp.terminal[s2])
        yield s, a, r, s2, ends, first
        s = -1 if ends or rng.random() < cut else s2
