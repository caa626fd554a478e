"""Learning values from real steps: TD and SARSA over one or several steps, traces, Monte Carlo."""

from backcast.learners.contract import Learner
from backcast.learners.expected_trace import ExpectedTraceLearner, ExpectedTraces
from backcast.learners.monte_carlo import MonteCarlo
from backcast.learners.n_step import NStep
from backcast.learners.sarsa import ExpectedSarsa, Sarsa
from backcast.learners.td import TD
from backcast.learners.traces import TraceLearner, Traces
from backcast.learners.window import Window

__all__ = [
    "TD",
    "ExpectedSarsa",
    "ExpectedTraceLearner",
    "ExpectedTraces",
    "Learner",
    "MonteCarlo",
    "NStep",
    "Sarsa",
    "TraceLearner",
    "Traces",
    "Window",
]
