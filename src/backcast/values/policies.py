"""The ε-greedy policy, and its probabilities for off-policy learning."""

from backcast.core.compiling import kernel
from backcast.core.randomness import Stream, uniform
from backcast.values.contract import Values


@kernel
def act(values: Values, s: int, epsilon: float, stream: Stream) -> int:
    """Draw an ε-greedy action; ties are broken uniformly at random."""
    a = explore(values.n_actions, epsilon, stream)
    return a if a >= 0 else greedy(values, s, stream)


@kernel
def explore(n_actions: int, epsilon: float, stream: Stream) -> int:
    """Draw a random action with probability ε; otherwise −1. The only action is always taken."""
    if n_actions == 1:
        return 0
    return int(uniform(stream) * n_actions) if uniform(stream) < epsilon else -1


@kernel
def greedy(values: Values, s: int, stream: Stream) -> int:
    """An action of the largest value; ties are broken uniformly at random."""
    n_actions = values.n_actions
    best, ties, action = values.rank(s, 0), 1, 0
    for a in range(1, n_actions):
        rank = values.rank(s, a)
        if rank > best:
            best, ties, action = rank, 1, a
        elif rank == best:
            ties += 1
    if ties == 1:
        return action
    left = int(uniform(stream) * ties)
    for a in range(n_actions):
        if values.rank(s, a) == best:
            if left == 0:
                return a
            left -= 1
    return action


@kernel
def greedy_chance(values: Values, s: int, a: int) -> float:
    """The probability of a under the greedy policy: 1 / ties for each best action, 0 for the others."""
    chosen, ties = values.rank(s, a), 0
    for other in range(values.n_actions):
        rank = values.rank(s, other)
        if rank > chosen:
            return 0.0
        ties += 1 if rank == chosen else 0
    return 1.0 / ties


@kernel
def expected(values: Values, s: int, epsilon: float) -> float:
    """The value under the ε-greedy policy, Σ_a π(a | s) q(s, a) = (1 − ε) max_a q(s, a) + ε / A Σ_a q(s, a)."""
    total = 0.0
    for a in range(values.n_actions):
        total += values.get(s, a)
    return (1.0 - epsilon) * values.best(s) + epsilon * total / values.n_actions


@kernel
def chance(values: Values, s: int, a: int, epsilon: float) -> float:
    """The probability that `act` takes a in s: ε / A + (1 − ε) π_greedy(a | s)."""
    return epsilon / values.n_actions + (1.0 - epsilon) * greedy_chance(values, s, a)
