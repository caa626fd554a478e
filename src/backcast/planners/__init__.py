"""How a model corrects values between real steps."""

from backcast.planners.backward import BackwardPlanner
from backcast.planners.forward import ForwardPlanner
from backcast.planners.none import NoPlanner

__all__ = ["BackwardPlanner", "ForwardPlanner", "NoPlanner"]
