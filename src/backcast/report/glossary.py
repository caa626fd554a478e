"""The words of reports and of the documentation, each with what it means."""

from typing import NamedTuple


class Term(NamedTuple):
    """A word and what it means.

    Attributes:
        name: the word, in Markdown.
        meaning: one or two sentences.
        in_report: whether reports use it, and explain it.
    """

    name: str
    meaning: str
    in_report: bool = False


GLOSSARY = (
    Term("agent", "What learns and plans: a kind, such as `backward`, with its settings.", True),
    Term(
        "AUC",
        "Area under the curve: the mean of a curve over its episodes. It is low if an error falls early and far.",
        True,
    ),
    Term(
        "backward model",
        "What led here: for a state s, the distribution P←(s̃ | s) of the state before it, and the reward between them.",
    ),
    Term(
        "backward planning",
        "Planning with a backward model: the value of the state at hand corrects those of its likely predecessors.",
        True,
    ),
    Term(
        "broadcasting",
        "A world in which few states lead to many: one surprise concerns many successors. The opposite of channelling.",
        True,
    ),
    Term(
        "channelling",
        "A world in which many states lead to few, so that one has many predecessors. The opposite of broadcasting.",
        True,
    ),
    Term(
        "claim",
        "A statement of the paper as comparisons of means. It is *supported* if every comparison has a 95 % interval"
        " above 0, and *contradicted* if one has an interval below 0 that holds for all comparisons together;"
        " otherwise it is *undecided*.",
        True,
    ),
    Term(
        "diverged",
        "Said of a run whose values exploded. It counts as infinitely bad: it has no mean, but it loses.",
        True,
    ),
    Term("fan-in", "How many states lead to a state. Backward planning reaches all of them in one sweep.", True),
    Term("fan-out", "How many states may follow a state. Forward planning takes the expectation over them.", True),
    Term(
        "forward model", "What comes next: the distribution of the next state s′ and of the reward after s, or s and a."
    ),
    Term(
        "forward planning",
        "Planning with a forward model: the value of a state is corrected from the values of the states after it.",
        True,
    ),
    Term(
        "frame",
        "The state that planning starts from after a step from s to s′: `previous` is s, `current` is s′."
        " In an agent's name: `@previous`, `@current`.",
        True,
    ),
    Term(
        "interval",
        "Where a mean may lie, given how much seeds differ: studentised bootstrap intervals over seeds, which contain"
        " the truth in about 95 % of studies. Numbers are rounded by the width of their interval.",
        True,
    ),
    Term(
        "IQM",
        "Interquartile mean: the mean of the middle half of the seeds. A few lucky or lost runs do not move it.",
        True,
    ),
    Term(
        "λ-model",
        "A mixture over n of models over n steps, with weights (1 − λ) λⁿ⁻¹.",
    ),
    Term(
        "paired difference",
        "The difference of two agents on the same seed, which means in the same world with the same random numbers.",
        True,
    ),
    Term("planning", "Value updates from a model, between two steps of the environment."),
    Term("`pure:`", "Before an agent's name: it plans without the learning update from real transitions.", True),
    Term(
        "reversed chain",
        "The Markov chain with time running backward: P←(s̃ | s) = d(s̃) P(s | s̃) / d(s), d the stationary distribution.",
    ),
    Term(
        "RMSVE",
        "Root mean squared value error, √(mean over states of (v(s) − v_π(s))²), after each episode. `rmsve` is over"
        " all states, `rmsve_inner` over those that do not end an episode.",
        True,
    ),
    Term("run", "One agent in one world with one seed."),
    Term("seed", "What determines all random numbers of a run. Seeds are what is averaged over, and resampled.", True),
    Term("stationary distribution", "How often a chain is in each state in the long run, d = dP."),
    Term(
        "true model",
        "A model computed from the world instead of learned. Kinds `true-forward` and `true-backward` plan with it.",
        True,
    ),
    Term(
        "value update",
        "One change of one value estimate, from a real transition or from a model. The unit of computation by which"
        " planners are compared.",
        True,
    ),
    Term("world", "The environment: a finite MDP, with what agents are judged by there."),
)
