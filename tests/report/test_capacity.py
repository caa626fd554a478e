"""Errors by the capacity of a model."""

import numpy as np

from backcast.report import capacity, figures
from backcast.studies import check_study
from backcast.studies.spec import PLOTS
from drawn import panels


def test_families_and_capacities_are_read_from_labels():
    agents = ["td", "backward likelihood 16", "backward likelihood 2", "planner-aware 2", "backward exact", "7"]
    assert capacity.capacities(agents) == (
        {
            "backward likelihood": {2: "backward likelihood 2", 16: "backward likelihood 16"},
            "planner-aware": {2: "planner-aware 2"},
        },
        ["td", "backward exact", "7"],
    )


class Capacities:
    """Errors of three seeds, the same around the capacity; one agent diverged."""

    study = check_study(
        {
            "name": "capacity",
            "episodes": 1,
            "worlds": [{"kind": "chain", "levels": [3, 2]}],
            "agents": [
                {"kind": "td", "label": "td"},
                *({"kind": kind, "label": f"{kind} model {d}"} for kind in ("backward", "forward") for d in (2, 4, 8)),
            ],
            "plots": ["error-by-capacity"],
        },
        "capacity",
    )
    worlds, seeds = ("chain-3-2",), 3

    def agents(self, world):
        return [agent.label for agent in self.study.agents]

    def picture(self, world):
        return self.study.worlds[0].picture

    def metrics(self, world, agent):
        return ["rmsve"]

    def diverged(self, world, agent):
        return np.array([0, 0, 99]) * (agent == "forward model 4")

    def means(self, world, agent, metric):
        level = int(agent.split()[-1]) if " " in agent else 5
        return np.where(self.diverged(world, agent) > 0, np.inf, level + np.array([-0.5, 0, 0.5]))


def test_error_by_capacity_has_a_line_for_each_family_less_the_first_of_the_others():
    """TD's error is 5 on average, and as far from it in every seed as those of the others from theirs."""
    assert "error-by-capacity" in PLOTS
    figure = figures.PLOTS["error-by-capacity"](Capacities())
    (axes,) = panels(figure)
    lines = {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}
    assert list(lines) == ["TD", "backward model", "forward model"]
    assert lines["TD"].get_ydata() == [0, 0]
    assert lines["TD"].is_dashed()
    np.testing.assert_allclose(lines["backward model"].get_ydata(), [2 - 5, 4 - 5, 8 - 5])
    np.testing.assert_allclose(lines["backward model"].get_xdata(), [2, 4, 8], rtol=0.05)
    np.testing.assert_allclose(lines["forward model"].get_ydata(), [8 - 5])
    (cross,) = [line for line in axes.get_lines() if line.get_marker() == "x"]
    np.testing.assert_allclose(cross.get_xdata(), [4], rtol=0.05)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "4", "8"]
    assert "× forward model 4 diverged in 1 of 3 seeds, at step 99" in figure.get_supxlabel()
