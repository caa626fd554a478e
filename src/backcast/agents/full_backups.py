"""Kinds that plan by full backups of a counted model: in order of priority, or all at once."""

import numpy as np

from backcast.agents.kinds import Agent, Built, register
from backcast.agents.setup import Setup
from backcast.learners import TD
from backcast.models.counts import empty_counts
from backcast.models.two_way import TwoWayModel
from backcast.planners.certainty import CertaintyEquivalence
from backcast.planners.dyna import no_pairs
from backcast.planners.edges import no_edges
from backcast.planners.queue import empty_queue
from backcast.planners.small_backups import BySize, SmallBackups, Urgency
from backcast.planners.sweeping import ByCostToGo, MooreAtkeson, PengWilliams
from backcast.values.table import zeros

ONE_BY_ONE = "it sets one value to what its model expects, and where states share features that changes others"
_BACKUPS = 5  # default number after each real step


@register(
    "sweeping",
    family="Sweeping and solving",
    plans=True,
    learns_model=False,
    table_only=ONE_BY_ONE,
    settings=("variant", "sample", "forget"),
    defaults={"sample": _BACKUPS},
    reference="Moore and Atkeson, Prioritized Sweeping, Machine Learning 13, 1993; Peng and Williams, Efficient"
    " Learning and Planning Within the Dyna Framework, 1993; McMahan and Gordon, Fast Exact Planning in Markov Decision"
    " Processes, ICAPS 2005",
    averages=True,
)
def sweeping(setup: Setup, agent: Agent) -> Built:
    """Prioritized sweeping: full backups of a counted model where they change most (variant: whose priorities)."""
    variant, model = agent.shared("variant", "moore-atkeson"), two_way_model(setup, agent)
    if variant == "mcmahan-gordon":
        return model, small_backups_planner(setup, agent, ByCostToGo(np.full(1, -np.inf))), TD(False)
    n_states, n_actions = setup.n_states, setup.n_actions
    backups, expected, told = agent.shared("sample", _BACKUPS), zeros(n_states, n_actions), np.zeros(n_states)
    if variant == "peng-williams":
        queue = empty_queue(n_states * n_actions)
        return model, PengWilliams(backups, expected, told, queue, not agent.learn, agent.step_sizes(setup), no_edges())
    return model, MooreAtkeson(backups, expected, told, empty_queue(n_states), no_edges())


@register(
    "small-backups",
    family="Sweeping and solving",
    plans=True,
    learns_model=False,
    table_only=ONE_BY_ONE,
    settings=("sample", "forget"),
    defaults={"sample": _BACKUPS},
    reference="van Seijen and Sutton, Planning by Prioritized Sweeping with Small Backups, ICML 2013",
    averages=True,
)
def small_backups(setup: Setup, agent: Agent) -> Built:
    """Prioritized sweeping by small backups, O(1) each; its planner learns from real steps, not TD."""
    return two_way_model(setup, agent), small_backups_planner(setup, agent, BySize()), TD(False)


@register(
    "certainty-equivalence",
    family="Sweeping and solving",
    plans=True,
    learns_model=False,
    table_only="it solves for each value by itself, and where states share features the sweeps need not settle",
    settings=("forget",),
    reference="Kumar and Varaiya, Stochastic Systems: Estimation, Identification and Adaptive Control, 1986",
    averages=True,
)
def certainty_equivalence(setup: Setup, agent: Agent) -> Built:
    """After each episode, sets the values to the solution of the counted model; TD learns during the episode."""
    pairs = setup.n_states * setup.n_actions
    planner = CertaintyEquivalence(no_pairs(pairs), no_edges(), np.zeros(pairs), np.zeros(pairs))
    return two_way_model(setup, agent), planner


def small_backups_planner(setup: Setup, agent: Agent, urgency: Urgency) -> SmallBackups:
    """A planner with no backups made yet."""
    n_states, backups = setup.n_states, agent.shared("sample", _BACKUPS)
    return SmallBackups(backups, np.zeros(n_states), empty_queue(n_states), urgency, no_edges())


def two_way_model(setup: Setup, agent: Agent) -> TwoWayModel:
    """A model without counts."""
    rows, led_here = empty_counts(setup.fan_out()), empty_counts(setup.fan_in())
    return TwoWayModel(rows, led_here, setup.n_actions, agent.shared("forget", 0.0))
