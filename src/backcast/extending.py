"""The imports for authors of models, estimators, planners, learners, worlds and metrics; see docs/extending.md.

A *part* is a NamedTuple of arrays and numbers whose methods are compiled. A *kind* says which parts an agent consists
of, and `register` gives it a name. `register_estimator`, `register_world` and `register_metric` do the same for
functions that make models, make worlds or measure runs.
"""

from backcast.agents.estimators import ESTIMATORS, Estimator, register_estimator
from backcast.agents.kinds import KINDS, Agent, Kind, register
from backcast.agents.row_planning import how_to_plan
from backcast.agents.setup import Setup
from backcast.agents.tabular_models import model_of_rows
from backcast.core.compiling import in_python, kernel, part
from backcast.core.interaction import ALPHA, ALPHA_MODEL, ALPHA_PLAN, EPSILON, Step
from backcast.core.nesting import Growing, Inside
from backcast.core.randomness import Stream, uniform
from backcast.core.setting_types import Bounds, Depends, Label, Setting, choice, number, switch, whole
from backcast.drivers.metrics import METRICS, Measurable, Metric, register_metric
from backcast.learners.contract import Learner, LearnerPart
from backcast.learners.td import TD
from backcast.models.contract import BackwardRows, ForwardRows, Model, ModelPart, OutcomeRows, ProbabilityRows
from backcast.models.counts import empty_counts
from backcast.models.none import NoModel
from backcast.models.readable import Known
from backcast.models.rows import connect, empty_rows, find, grown_in, known_of
from backcast.planners.backward import AllPredecessors, BackwardPlanner, Correction
from backcast.planners.contract import (
    Origins,
    Planner,
    PlannerPart,
    StatePlanner,
    plan_from_first,
    plan_from_origins,
)
from backcast.planners.forward import AllSuccessors, ForwardPlanner, Reevaluation, SampledSuccessors
from backcast.planners.none import NoPlanner
from backcast.planners.selective import SampledPredecessors
from backcast.values.contract import Values
from backcast.values.step_sizes import StepSizes
from backcast.values.targets import td_error, td_target
from backcast.worlds.chain import PerSeed
from backcast.worlds.kinds import (
    WORLDS,
    Discount,
    Picture,
    Probability,
    Seed,
    Sketch,
    Steps,
    WorldKind,
    register_world,
)
from backcast.worlds.layouts import Grid, Line, full_grid
from backcast.worlds.world import World

__all__ = [
    "ALPHA",
    "ALPHA_MODEL",
    "ALPHA_PLAN",
    "EPSILON",
    "ESTIMATORS",
    "KINDS",
    "METRICS",
    "TD",
    "WORLDS",
    "Agent",
    "AllPredecessors",
    "AllSuccessors",
    "BackwardPlanner",
    "BackwardRows",
    "Bounds",
    "Correction",
    "Depends",
    "Discount",
    "Estimator",
    "ForwardPlanner",
    "ForwardRows",
    "Grid",
    "Growing",
    "Inside",
    "Kind",
    "Known",
    "Label",
    "Learner",
    "LearnerPart",
    "Line",
    "Measurable",
    "Metric",
    "Model",
    "ModelPart",
    "NoModel",
    "NoPlanner",
    "Origins",
    "OutcomeRows",
    "PerSeed",
    "Picture",
    "Planner",
    "PlannerPart",
    "Probability",
    "ProbabilityRows",
    "Reevaluation",
    "SampledPredecessors",
    "SampledSuccessors",
    "Seed",
    "Setting",
    "Setup",
    "Sketch",
    "StatePlanner",
    "Step",
    "StepSizes",
    "Steps",
    "Stream",
    "Values",
    "World",
    "WorldKind",
    "choice",
    "connect",
    "empty_counts",
    "empty_rows",
    "find",
    "full_grid",
    "grown_in",
    "how_to_plan",
    "in_python",
    "kernel",
    "known_of",
    "model_of_rows",
    "number",
    "part",
    "plan_from_first",
    "plan_from_origins",
    "register",
    "register_estimator",
    "register_metric",
    "register_world",
    "switch",
    "td_error",
    "td_target",
    "uniform",
    "whole",
]
