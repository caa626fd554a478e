"""All that an author of models, planners, learners, worlds and metrics imports; docs/extending.md shows how.

A *part* is a NamedTuple of arrays and numbers whose methods are compiled; a *kind* says which parts an agent is made
of, and `register` gives it a name. `register_world` and `register_metric` do the same for functions that make worlds
and that measure runs.
"""

from backcast.agents.kinds import KINDS, Agent, Kind, Setup, register
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON, Step
from backcast.core.randomness import Stream, uniform
from backcast.core.settings import Bounds, Setting, choice, number, switch, whole
from backcast.drivers.metrics import METRICS, Measurable, Metric, register_metric
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
from backcast.worlds.chain import PerSeed
from backcast.worlds.kinds import WORLDS, Sketch, WorldKind, register_world
from backcast.worlds.world import World

__all__ = [
    "ALPHA",
    "ALPHA_MODEL",
    "ALPHA_PLAN",
    "EPSILON",
    "KINDS",
    "METRICS",
    "TD",
    "WORLDS",
    "Agent",
    "AllPredecessors",
    "BackwardPlanner",
    "BackwardRows",
    "Bounds",
    "Kind",
    "Known",
    "Learner",
    "Measurable",
    "Metric",
    "Model",
    "NoModel",
    "NoPlanner",
    "Origins",
    "PerSeed",
    "Planner",
    "Setting",
    "Setup",
    "Sketch",
    "StatePlanner",
    "Step",
    "Stream",
    "Values",
    "World",
    "WorldKind",
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
    "register_metric",
    "register_world",
    "switch",
    "td_error",
    "td_target",
    "uniform",
    "whole",
]
