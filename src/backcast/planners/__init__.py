"""Planners, which correct values between real steps."""

from backcast.planners.backward import AllPredecessors, BackwardPlanner
from backcast.planners.both import BothPlanners
from backcast.planners.contract import Planner, StatePlanner
from backcast.planners.forward import AllSuccessors, ForwardPlanner, SampledSuccessors
from backcast.planners.none import NoPlanner
from backcast.planners.selective import Predecessors, SampledPredecessors

__all__ = [
    "AllPredecessors",
    "AllSuccessors",
    "BackwardPlanner",
    "BothPlanners",
    "ForwardPlanner",
    "NoPlanner",
    "Planner",
    "Predecessors",
    "SampledPredecessors",
    "SampledSuccessors",
    "StatePlanner",
]
