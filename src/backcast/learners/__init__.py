"""What is learned from real steps, without a model: temporal differences."""

from backcast.learners.td import TD

__all__ = ["TD"]
