"""The glossary of reports and of the documentation."""

from typing import NamedTuple


class Term(NamedTuple):
    """A word and what it means.

    Attributes:
        name: the term, in Markdown.
        meaning: one or two sentences.
        in_report: whether reports use it, and explain it.
    """

    name: str
    meaning: str
    in_report: bool = False


GLOSSARY = (
    Term("agent", "A system that learns and plans: a kind, such as `backward`, with its settings.", True),
    Term(
        "AUC",
        "Area under the curve: the mean of a curve over its episodes. It is low if an error falls early and far.",
        True,
    ),
    Term(
        "backward model",
        "A model of the past: for a state s, the distribution P←(s̃ | s) of its predecessor, and the reward between"
        " them.",
    ),
    Term(
        "backward planning",
        "Planning with a backward model: the value of a state corrects the values of its likely predecessors.",
        True,
    ),
    Term(
        "broadcasting",
        "A world in which few states lead to many, so that one state has many successors. The opposite of channelling.",
        True,
    ),
    Term(
        "channelling",
        "A world in which many states lead to few, so that one state has many predecessors. The opposite of"
        " broadcasting.",
        True,
    ),
    Term(
        "claim",
        "A statement of the paper, expressed as comparisons of means. It is *supported* if every comparison has a 95"
        " % interval above 0, and *contradicted* if one has an interval below 0 that holds for all comparisons"
        " together; otherwise it is *undecided*.",
        True,
    ),
    Term(
        "diverged",
        "A run has diverged if its values exploded. It counts as infinitely bad: it has no mean, but loses"
        " comparisons.",
        True,
    ),
    Term(
        "fan-in", "The number of states that lead to a state. Backward planning reaches all of them in one sweep.", True
    ),
    Term(
        "fan-out",
        "The number of possible successors of a state. Forward planning takes the expectation over them.",
        True,
    ),
    Term(
        "forward model",
        "A model of the future: the distribution of the next state s′ and of the reward after s, or after s and a.",
    ),
    Term(
        "forward planning",
        "Planning with a forward model: the values of the possible successors of a state correct its value.",
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
        "The range in which a mean may lie, given how much seeds differ: a studentised bootstrap interval over seeds,"
        " which contains the truth in about 95 % of studies. Numbers are rounded by the width of their interval.",
        True,
    ),
    Term(
        "IQM",
        "Interquartile mean: the mean of the middle half of the seeds. A few lucky or lost runs do not move it.",
        True,
    ),
    Term(
        "λ-model",
        "A mixture of n-step models, with weights (1 − λ) λⁿ⁻¹.",
    ),
    Term(
        "paired difference",
        "The difference between two agents on the same seed, that is, in the same world with the same random numbers.",
        True,
    ),
    Term("planning", "Value updates from a model, between two steps in the environment."),
    Term(
        "`pure:`", "A prefix of an agent's name: the agent plans without learning updates from real transitions.", True
    ),
    Term(
        "reversed chain",
        "The Markov chain with time running backward: P←(s̃ | s) = d(s̃) P(s | s̃) / d(s), where d is the stationary"
        " distribution.",
    ),
    Term(
        "RMSVE",
        "Root mean squared value error, √(mean over states of (v(s) − v_π(s))²), after each episode. `rmsve` is over"
        " all states, `rmsve_inner` over those that do not end an episode.",
        True,
    ),
    Term("run", "A simulation of one agent in one world with one seed."),
    Term(
        "seed",
        "The number that determines all random numbers of a run. Means are over seeds, and the bootstrap resamples"
        " seeds.",
        True,
    ),
    Term("stationary distribution", "The long-run frequency of each state of a chain, d = dP."),
    Term(
        "true model",
        "A model computed from the world instead of learned. Kinds `true-forward` and `true-backward` plan with it.",
        True,
    ),
    Term(
        "value update",
        "One change of one value estimate, from a real transition or from a model. Planners are compared by this unit"
        " of computation.",
        True,
    ),
    Term("world", "The environment: a finite MDP, with the metric by which agents are judged."),
)
