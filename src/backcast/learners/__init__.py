"""What is learned from real steps, without a model: temporal differences."""

from backcast.learners.td import td_update

__all__ = ["td_update"]
