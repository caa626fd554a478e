"""A name means one thing: no two classes share one, and modules of different packages only if they are counterparts."""

import ast
from collections import defaultdict
from pathlib import Path

import backcast

PACKAGE = Path(backcast.__file__).parent
COUNTERPARTS = {
    "__init__",
    "contract",  # what is asked of the parts of a package
    "kinds",  # the registries of agents and of worlds
    "linear",  # exact theory, values, planners and twins of linear function approximation
    *("backward", "forward", "none"),  # models, and the planners that use them
    "neural",  # values, planners, agents and the driver of agents with a network
    "readable",  # what tabular and linear models have learned, to be read
}


def test_no_two_classes_have_one_name():
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_modules_of_one_name_are_counterparts():
    homes = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        homes[path.stem].append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in homes.items() if len(where) > 1 and name not in COUNTERPARTS} == {}
