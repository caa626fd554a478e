"""The build fails if a public name has no docstring, or no place in the API reference."""

import inspect
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MODULES = (
    "backcast",
    "backcast.exact",
    "backcast.worlds",
    "backcast.features",
    "backcast.networks",
    "backcast.extending",
    "backcast.testing",
)


def undocumented(name: str, thing: Any) -> list[str]:
    """What of a public name, and of the public methods and properties of a class, has no docstring."""
    if not (inspect.ismodule(thing) or inspect.isclass(thing) or inspect.isroutine(thing)):
        return []  # a constant, whose type has one
    found = [] if (thing.__doc__ or "").strip() else [name]
    if inspect.isclass(thing):
        for own, member in vars(thing).items():
            is_part = inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))
            if is_part and not own.startswith("_") and not (inspect.getdoc(getattr(thing, own)) or "").strip():
                found.append(f"{name}.{own}")
    return found


def _warn(sentence: str) -> None:
    """Warn, which ends the build."""
    from sphinx.util import logging

    logging.getLogger(__name__).warning(sentence)


def check(app: "Sphinx") -> None:
    """Warn of every public name without a docstring."""
    for home in MODULES:
        module = import_module(home)
        for name in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
            for lacking in undocumented(f"{home}.{name}", getattr(module, name)):
                _warn(f"{lacking} has no docstring")


def check_reference(app: "Sphinx", env: Any) -> None:
    """Warn of public names that no page of the reference describes."""
    described = {name.rpartition(".")[2] for name in env.get_domain("py").objects}
    for home in MODULES:
        module = import_module(home)
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if (inspect.isclass(thing) or inspect.isroutine(thing)) and name not in described:
                _warn(f"{home}.{name} is on no page of the API reference")


def setup(app: "Sphinx") -> dict[str, Any]:
    """Check before the build, and when all pages are read."""
    app.connect("builder-inited", check)
    app.connect("env-check-consistency", check_reference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
