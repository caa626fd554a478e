"""Processor time is computed from a table, so that it is the same everywhere."""

import numpy as np
import pytest

from backcast.cli.fitted_costs import compared_agents, fit
from backcast.studies import results
from backcast.studies.costs import Cost, costs
from backcast.studies.runner import run_study
from backcast.studies.spec import Study
from backcast.studies.store import Store

pytestmark = pytest.mark.interpreted

STUDY = {
    "name": "small",
    "title": "Small",
    "episodes": 4,
    "seeds": 2,
    "plots": [],
    "worlds": [{"kind": "chain", "levels": [4, 3, 2], "seed": 0}],
    "agents": [{"kind": "td"}, {"kind": "dyna", "sample": 3}, {"kind": "dyna"}],
}


def test_the_table_has_every_agent_of_the_studies_that_compare_kinds():
    assert compared_agents().keys() <= costs().keys()
    assert all(min(cost) >= 0 and max(cost) > 0 for cost in costs().values())


def test_costs_that_are_there_are_found():
    work = np.random.default_rng(0).uniform(10, 1000, (6, 4))
    rows = np.column_stack([work, work @ [100.0, 50.0, 20.0, 0.0]])
    found, error = fit(rows)
    np.testing.assert_allclose(found, [100, 50, 20, 0], atol=1e-6)
    assert error < 1e-9
    rows[0, -1] *= 2
    assert fit(rows)[1] > 0.1


def test_time_is_computed_from_episodes_steps_updates_and_edges(tmp_path):
    run_study(Store(tmp_path, create=True), Study.model_validate(STUDY))
    (result,) = results(tmp_path)
    world = result.worlds[0]
    steps, cost = 4 * 2, costs()["dyna"]  # two steps in each episode, and five updates planned for each
    assert result.computed_nanoseconds(world, "dyna") == pytest.approx(cost.nanoseconds(4, steps, 6 * steps, 5 * steps))
    assert result.computed_nanoseconds(world, "dyna,sample=3") is None
    assert Cost(1.0, 10.0, 100.0, 1000.0).nanoseconds(4, 3, 2, 1) == 1234.0
