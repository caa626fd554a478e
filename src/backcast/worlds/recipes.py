"""How a world was made: the name of its kind in studies and the arguments, so that it can be written down."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec

from backcast.worlds.world import World

P = ParamSpec("P")


class Recipe(NamedTuple):
    """The kind of a world and what the function that makes it was given, without what is the default anyway."""

    kind: str
    arguments: dict[str, Any]


def recorded(kind: str) -> Callable[[Callable[P, World]], Callable[P, World]]:
    """Decorator: worlds that the function makes know how they were made (`recipe_of`).

    A seed is always told: to studies, a world without one is drawn anew by each of their seeds.
    """

    def decorate(make: Callable[P, World]) -> Callable[P, World]:
        signature = inspect.signature(make)
        usual = {name: each.default for name, each in signature.parameters.items() if name != "seed"}

        @functools.wraps(make)
        def made(*args: P.args, **kwargs: P.kwargs) -> World:
            world = make(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = {
                name: value
                for name, value in bound.arguments.items()
                if value is not None and (name not in usual or value is not usual[name])
            }
            world.__dict__["_recipe"] = Recipe(kind, given)  # no field: a copy that is changed was made otherwise
            return world

        return made

    return decorate


def recipe_of(world: World) -> Recipe | None:
    """How a world was made; None if that is not known."""
    return world.__dict__.get("_recipe")
