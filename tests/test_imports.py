"""Imports point one way: between packages in the order of DESIGN, between modules without a cycle."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import backcast

PACKAGE = Path(backcast.__file__).parent
# from the ground up; `extending` and `testing` are doors for authors of parts
ORDER = (
    *(
        "core",
        "mdp",
        "exact",
        "worlds",
        "features",
        "networks",
        "values",
        "models",
        "learners",
        "planners",
        "agents",
        "drivers",
    ),
    *("twins", "extending", "testing", "studies", "report", "comparison", "lab", "cli", "__main__"),
)


def modules() -> dict[str, Path]:
    """All modules of the package, by name."""
    names = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(("backcast", *parts)).removesuffix(".__init__")] = path
    return names


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file imports, anywhere in it: in functions and for types alone, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            # the version is the one thing that is taken from the top
            found |= {full[n] if full[n] in known else node.module or "" for n in full if n != "__version__"}
    return found & known.keys()


def package_of(module: str) -> str:
    return re.sub(r"^backcast\.?", "", module).partition(".")[0]


KNOWN = modules()


@cache
def imported_by(name: str) -> set[str]:
    """The modules of the package that a module imports; read when a test asks, since all workers collect all tests."""
    return imports(KNOWN[name], KNOWN) - {name}


def test_every_package_has_its_place():
    assert {package_of(name) for name in KNOWN} - {""} <= set(ORDER)


@pytest.mark.parametrize("name", sorted(set(KNOWN) - {"backcast"}))
def test_a_module_imports_only_from_below(name):
    above = {other for other in imported_by(name) if _height(other) > _height(name)}
    assert not above, f"{name} imports {sorted(above)}, which stand above it"


def test_no_module_imports_itself_by_a_detour():
    """A package's `__init__` gathers its modules: what imports it from within would be imported by it."""
    edges = {name: imported_by(name) for name in KNOWN}
    tuple(TopologicalSorter(edges).static_order())  # raises CycleError, which names the cycle


def _height(module: str) -> int:
    return len(ORDER) if module == "backcast" else ORDER.index(package_of(module))


@pytest.mark.parametrize("module", ["backcast.lab.session", "backcast.lab.lockstep"])
def test_the_lab_imports_no_matplotlib(module):
    """It takes as long as all the rest, and a first page waits for the lab and for a process with agents."""
    program = f"import sys, {module}; print('matplotlib' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
    )
