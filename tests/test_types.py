"""Annotations say what is meant: the number of bare `Any`s may only fall.

`Any` stays where it is the truth: Numba's internals, JSON and TOML, values of settings, libraries without types.
What is given and then checked is an `object`; parts have Protocols (`contract.py` in each package).
"""

import ast
from pathlib import Path

import pytest

import backcast

PACKAGE = Path(backcast.__file__).parent
MOST = {
    "__init__.py": 1,
    "agents": 23,
    "cli": 2,
    "comparison.py": 1,
    "core": 155,
    "drivers": 16,
    "exact": 5,
    "features": 9,
    "lab": 16,
    "learners": 2,
    "mdp.py": 2,
    "models": 12,
    "networks": 26,
    "planners": 1,
    "report": 3,
    "studies": 37,
    "testing.py": 8,
    "twins": 2,
    "worlds": 16,
}


def bare(tree: ast.AST) -> int:
    """How many arguments, results and variables are annotated with `Any` and nothing else."""
    kinds = {
        ast.arg: "annotation",
        ast.AnnAssign: "annotation",
        ast.FunctionDef: "returns",
        ast.AsyncFunctionDef: "returns",
    }
    found = (getattr(node, kinds[type(node)]) for node in ast.walk(tree) if type(node) in kinds)
    return sum(isinstance(each, ast.Name) and each.id == "Any" for each in found)


def group_of(path: Path) -> str:
    """The package that a module is in; those that trace programs for JAX, whose arrays have no types here, are one."""
    traces = any(word in str(path) for word in ("neural", "networks"))
    return "networks" if traces else path.parts[0]


MODULES = {path.relative_to(PACKAGE): path for path in PACKAGE.rglob("*.py")}


@pytest.mark.parametrize("package", sorted({group_of(path) for path in MODULES}))
def test_no_more_annotations_are_bare_any(package):
    files = [path for name, path in MODULES.items() if group_of(name) == package]
    counts = {str(path.relative_to(PACKAGE)): bare(ast.parse(path.read_text())) for path in files}
    assert sum(counts.values()) <= MOST.get(package, 0), counts
