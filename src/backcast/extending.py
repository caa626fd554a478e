"""All that an author of models, planners and learners imports; docs/extending.md shows how.

A *part* is a NamedTuple of arrays and numbers whose methods are compiled; a *kind* says which parts an agent is made
of, and `register` gives it a name.
"""

from backcast.agents.kinds import KINDS, Agent, Kind, Setup, register
from backcast.agents.settings import Setting, choice, number, switch, whole
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON, Step
from backcast.core.randomness import Stream, uniform
from backcast.learners.contract import Learner
from backcast.learners.td import TD
from backcast.models.contract import BackwardRows, Model
from backcast.models.counts import empty_counts
from backcast.models.none import NoModel
from backcast.models.readable import Known
from backcast.models.rows import connect, empty_rows, known_of
from backcast.planners.backward import AllPredecessors, BackwardPlanner
from backcast.planners.contract import Origins, Planner, StatePlanner, plan_from_first, plan_from_origins
from backcast.planners.none import NoPlanner
from backcast.values.contract import Values
from backcast.values.targets import td_error, td_target

__all__ = [
    "ALPHA",
    "ALPHA_MODEL",
    "ALPHA_PLAN",
    "EPSILON",
    "KINDS",
    "TD",
    "Agent",
    "AllPredecessors",
    "BackwardPlanner",
    "BackwardRows",
    "Kind",
    "Known",
    "Learner",
    "Model",
    "NoModel",
    "NoPlanner",
    "Origins",
    "Planner",
    "Setting",
    "Setup",
    "StatePlanner",
    "Step",
    "Stream",
    "Values",
    "choice",
    "connect",
    "empty_counts",
    "empty_rows",
    "in_python",
    "kernel",
    "known_of",
    "number",
    "part",
    "plan_from_first",
    "plan_from_origins",
    "register",
    "switch",
    "td_error",
    "td_target",
    "uniform",
    "whole",
]
