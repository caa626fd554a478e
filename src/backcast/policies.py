"""How agents act: ε-greedily; and how probable that was, for those who learn about another policy."""

from backcast.compiling import kernel
from backcast.randomness import Stream, uniform
from backcast.values import Values


@kernel
def act(values: Values, s: int, epsilon: float, stream: Stream) -> int:
    """An ε-greedy action; ties are broken uniformly at random."""
    n_actions = values.n_actions
    if n_actions == 1:
        return 0
    if uniform(stream) < epsilon:
        return int(uniform(stream) * n_actions)
    first = s * n_actions
    best, ties, action = values.u[first], 1, 0
    for a in range(1, n_actions):
        u = values.u[first + a]
        if u > best:
            best, ties, action = u, 1, a
        elif u == best:
            ties += 1
    if ties == 1:
        return action
    left = int(uniform(stream) * ties)
    for a in range(n_actions):
        if values.u[first + a] == best:
            if left == 0:
                return a
            left -= 1
    return action


@kernel
def greedy_chance(values: Values, s: int, a: int) -> float:
    """The probability of a under the greedy policy: 1 / ties for each best action, 0 for the others."""
    first = s * values.n_actions
    chosen, ties = values.u[first + a], 0
    for k in range(first, first + values.n_actions):
        if values.u[k] > chosen:
            return 0.0
        ties += 1 if values.u[k] == chosen else 0
    return 1.0 / ties


@kernel
def chance(values: Values, s: int, a: int, epsilon: float) -> float:
    """The probability that `act` takes a in s: ε / A + (1 − ε) π_greedy(a | s)."""
    return epsilon / values.n_actions + (1.0 - epsilon) * greedy_chance(values, s, a)
