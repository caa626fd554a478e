"""Two studies in which some runs diverge, one of prediction and one of control, and their results."""

import pytest

from backcast.studies import check_study, results
from backcast.studies.runner import run_study
from backcast.studies.store import Store

FEATURES = {"kind": "random_binary", "d": 20, "active": 10}
CHAIN, SHORT = "chain-5-10-20", "chain-5-20"


def linear_td(alpha):
    label = f"td,alpha={alpha:g}"
    return {"kind": "td", "label": label, "features": FEATURES, "alpha": alpha, "schedule": "constant"}


# with a step size of 0.2 values grow slowly in the first chain: after 200 episodes those of few seeds have exploded
PREDICTION = {
    "name": "predict",
    "episodes": 200,
    "seeds": 20,
    "worlds": [{"kind": "chain", "levels": [5, 10, 20], "updates": 700}, {"kind": "chain", "levels": [5, 20]}],
    "agents": [{"kind": "td"}, *map(linear_td, (0.05, 0.2, 1.0))],
    "plots": ["error-curves", "error-by-agent", "error-by-ratio", "error-against-updates", "error-against-seconds"],
}
CONTROL = {
    "name": "control",
    "episodes": 40,
    "seeds": 5,
    "worlds": [{"kind": "maze", "max_steps": 300}],
    "agents": [
        {"kind": "q"},
        {"kind": "expected-trace", "lam": 1.0, "alpha": 1.0, "alpha_model": 0.01, "schedule": "constant"},
    ],
    "plots": ["steps-per-episode", "reward-over-steps", "error-by-agent", "error-against-updates"],
}


@pytest.fixture(scope="module", name="directory")
def a_directory(tmp_path_factory):
    """The results of both studies."""
    folder = tmp_path_factory.mktemp("results")
    for study in (PREDICTION, CONTROL):
        run_study(Store(folder, create=True), check_study(study, study["name"]))
    return folder


@pytest.fixture(scope="module", name="found")
def found_there(directory):
    """The results of each study, by its name."""
    return {result.name: result for result in results(directory)}
