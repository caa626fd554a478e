"""The kind that chooses where to plan, in which direction, and whether to plan at all."""

import numpy as np

from backcast.agents.full_backups import ONE_BY_ONE, two_way_model
from backcast.agents.kinds import Agent, Built, register
from backcast.agents.settings import PIECES
from backcast.agents.setup import Setup
from backcast.learners import TD
from backcast.models.linked import linked
from backcast.planners.blend import MOST, Blend, Choices, Gate
from backcast.planners.edges import no_edges
from backcast.planners.prior import NoPrior, Prior, no_experience
from backcast.planners.queue import empty_queue

_BACKUPS, _GATE, _PRIOR = 5, 1.0, True


@register(
    "blend",
    family="Sweeping and solving",
    plans=True,
    learns_model=False,
    table_only=ONE_BY_ONE,
    settings=("sample", "prior", "gate", "forget"),
    defaults={"sample": _BACKUPS, "prior": _PRIOR, "gate": _GATE},
    averages=True,
    reference="Backcast, docs/blend.md",
)
def blend(setup: Setup, agent: Agent) -> Built:
    """Chooses where to plan, in which direction, and whether to plan at all; needs no step size for planning."""
    return linked(two_way_model(setup, agent)), blend_planner(setup, agent), TD(False)


def blend_planner(setup: Setup, agent: Agent) -> Blend:
    """A planner without experience."""
    n_states, pairs = setup.n_states, setup.n_states * setup.n_actions
    return Blend(
        agent.get("sample", _BACKUPS),
        Gate(agent.get("gate", _GATE), np.zeros(2)),
        np.zeros(pairs),
        np.zeros(n_states),
        np.zeros(n_states, dtype=np.int64),
        np.zeros(n_states),
        np.zeros(n_states),
        empty_queue(n_states),
        _prior(setup, agent.get("prior", _PRIOR)),
        Choices(np.zeros(MOST, dtype=np.int64), np.zeros(MOST), np.zeros(1, dtype=np.int64)),
        no_edges(),
    )


def _prior(setup: Setup, chosen: bool | str) -> NoPrior | Prior:
    """The prior with the chosen pieces, given as one word; or with all of them, or none."""
    if chosen is False:
        return NoPrior()
    shrinks, assumes, hopes = (chosen is True or piece in chosen.split("+") for piece in PIECES)
    return no_experience(setup.n_states, setup.n_actions, shrinks, assumes, hopes)
