"""What is learned from real steps, without planning: temporal differences, traces, Monte Carlo."""

from backcast.learners.contract import Learner
from backcast.learners.expected_trace import ExpectedTraceLearner, ExpectedTraces
from backcast.learners.monte_carlo import MonteCarlo
from backcast.learners.td import TD
from backcast.learners.traces import TraceLearner, Traces

__all__ = ["TD", "ExpectedTraceLearner", "ExpectedTraces", "Learner", "MonteCarlo", "TraceLearner", "Traces"]
