"""An estimator of somebody else's, from docs/extending.md: counts with a Dirichlet prior; and a plain twin of it."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


def example():
    """The source of the example in the docs, without the runs that end it."""
    (found,) = (
        block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "@register_estimator" in block
    )
    return re.split(r"\n(?:for|runs) ", found)[0]


def register_dirichlet():
    """Have the estimator, under the name "dirichlet"; what the example defines."""
    scope = {"__name__": "docs_example"}
    exec(compile(example(), str(PAGE), "exec"), scope)
    return scope


class PlainDirichlet:
    """P(k) = (c_k + β) / (n + β N) over N outcomes, and the mean reward beside each."""

    def __init__(self, rows, width, prior=1.0):
        self.counts, self.rewards, self.prior = np.zeros((rows, width)), np.zeros((rows, width)), prior

    def observe(self, row, key, reward):
        self.counts[row, key] += 1
        self.rewards[row, key] += (reward - self.rewards[row, key]) / self.counts[row, key]

    @property
    def probability(self):
        weights = self.counts + self.prior
        return weights / weights.sum(axis=1, keepdims=True)
