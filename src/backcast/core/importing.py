"""Run code once a slow package is imported by someone else."""

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


def once_imported(name: str, act: Callable[[], None]) -> None:
    """Call a function now if a package is imported already, otherwise right after it is."""
    if name in sys.modules:
        act()
    else:
        sys.meta_path.insert(0, _FinderWithHook(name, act))


class _FinderWithHook:
    """An import finder that finds one package as usual, and calls a function after it has been executed."""

    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self._name, self._act = name, act

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of the package; None for all others."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            self._act_after(spec.loader)
        return spec

    def _act_after(self, loader: object) -> None:
        execute = loader.exec_module  # type: ignore[attr-defined]

        def execute_and_act(module: ModuleType) -> None:
            execute(module)
            self._act()

        loader.exec_module = execute_and_act  # type: ignore[attr-defined]
