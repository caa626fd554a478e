"""The kinds of worlds: how each is made, its arguments, and what is known of it before it is made.

A kind is a function that returns a World, and `register_world` gives it a name. Everything else follows from the
function. Its parameters are the keys of such a world in studies, the lab and `backcast list`: types, bounds and
defaults come from the signature, the meaning from the docstring. A world remembers its kind and its arguments
(`recipe_of`), so that a comparison made in Python can be saved as a study. Backcast's own kinds are registered in the
same way as third-party kinds.
"""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, ParamSpec, Protocol, get_type_hints

from backcast.core.errors import InputError
from backcast.core.registry import Registered, first_line, refuse_taken
from backcast.core.setting_types import Bounds, Label, Setting, is_path, read_annotation, setting_of
from backcast.worlds.world import Purpose, World

P = ParamSpec("P")
Given = Mapping[str, Any]  # keys of a world and their values

Discount = Annotated[float, Bounds(0, 1), Label("discount γ", "γ")]
Probability = Annotated[float, Bounds(0, 1, "a probability")]
Seed = Annotated[int, Bounds(0), Label("world’s seed")]
Steps = Annotated[int, Bounds(1, lab=1_000_000), Label("steps at most")]

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
OF_EVERY_WORLD = ("kind", "label", "episodes", "updates", "view", "settings", "sha256")  # keys that kinds may not use


class Picture(NamedTuple):
    """The picture of a world in figures.

    Attributes:
        title: the world in words; empty if its name says it all.
        levels: number of states of each level, if it has levels; shown in a small picture.
        cells: the characters of a maze that a small picture shows, a line for each row.
    """

    title: str = ""
    levels: tuple[int, ...] = ()
    cells: str = ""


class Sketch(Protocol):
    """What is known of a world before it is made. Nothing is imported and nothing large is made to find out.

    To replace these defaults, register a kind with a class that inherits from this one.
    """

    def name(self, given: Given) -> str | None:
        """The name of the world; None if it is only known once the world is made."""
        return None

    def why_unmade(self, given: Given) -> str:
        """Why a dry run does not make it, in a sentence; empty if making it is quick and imports nothing."""
        return ""

    def imports(self, given: Given) -> str | None:
        """The module that an argument asks to import, if any."""
        return None

    def refuse(self, given: Given) -> None:
        """Raise InputError if the world certainly cannot be made."""
        return

    def sizes(self, given: Given) -> dict[str, int]:
        """The sizes of the world, for the lab's limits."""
        return {}

    def tidy(self, given: Given) -> dict[str, Any]:
        """The keys and values in a normal form, for display."""
        return dict(given)

    def choices(self) -> dict[str, tuple[str, ...]]:
        """The keys for which the lab offers a list of values, and these values."""
        return {}

    def picture(self, given: Given) -> Picture:
        """The picture in figures; keys that are not given have their defaults."""
        return Picture()


class Unremarkable(Sketch):
    """The sketch of a world that is quick to make."""


@dataclass(frozen=True, eq=False)
class WorldKind(Registered):
    """A kind of world.

    Attributes:
        name: name in studies.
        make: the function from keyword arguments to the world; it validates them.
        keys: the arguments, in order, the discount last.
        required: those without a default.
        purpose: what an agent does in these worlds; None if it depends on the world.
        label: label in the lab; empty if it is not offered there.
        called: the function that Python code calls instead of `make`, with required keys by position.
        drawn: whether every seed of a study draws its own world unless the key `seed` is given.
        file: the key that is the path of a file, if there is one.
        sketch: what is known of such a world before it is made.
    """

    name: str
    make: Callable[..., World]
    keys: dict[str, Setting]
    required: tuple[str, ...] = ()
    purpose: Purpose | None = None
    label: str = ""
    called: Callable[..., World] | None = None
    drawn: bool = False
    file: str | None = None
    sketch: Sketch = field(default_factory=Unremarkable)

    @property
    def function(self) -> Callable[..., World]:
        """The registered function, or the one that Python code calls in its place."""
        return self.called or self.make

    @property
    def summary(self) -> str:
        """The line in `backcast list`."""
        return first_line(self.function.__doc__)

    def picture(self, given: Given) -> Picture:
        """The picture of such a world in figures."""
        return self.sketch.picture({**{name: key.default for name, key in self.keys.items()}, **given})


WORLDS: dict[str, WorldKind] = {}
_CHECKSUM = Setting(
    "sha256", "the checksum of the file: any other content is refused", lambda _, given: given, str, "text"
)


def register_world(
    name: str,
    *,
    purpose: Purpose | None = None,
    label: str = "",
    called: Callable[..., World] | None = None,
    sketch: Sketch | None = None,
) -> Callable[[Callable[P, World]], Callable[P, World]]:
    """Decorator: register a function that returns a World as a kind of world.

    A parameter is a key of such a world in a study if its annotation is plain data: int, float, bool, str, a Literal
    of words, a sequence of these, or a Path, which is a file identified by its content. `Annotated[int, Bounds(1)]`
    has bounds; arguments outside them are refused before the function is called. If `seed` may be None, every seed of
    a study draws its own world. `backcast list` shows the first line of the docstring and its section "Args".

    Args:
        name: name in studies.
        purpose: "prediction" or "control" if all such worlds have that purpose; by default it depends on the world.
        label: label in the lab; by default it is not offered there. Its numbers should then have bounds.
        called: the function that Python code calls, if it is another one.
        sketch: what is known of such a world before it is made, if that is more than its name.
    """

    def add(make: Callable[P, World]) -> Callable[P, World]:
        refuse_taken("world", name, WORLDS.get(name))
        keys = keys_of(name, make)
        made = _checking(name, make, keys)
        hints, parameters = get_type_hints(make, include_extras=True), inspect.signature(make).parameters
        files = [key for key in keys if is_path(hints.get(key, Any))]
        if len(files) > 1:
            raise InputError(f"world: {name!r} has the files {' and '.join(files)}, expected one at most")
        content = {"sha256": _CHECKSUM} if files else {}
        WORLDS[name] = WorldKind(
            name,
            made,
            {**keys, **content},
            tuple(key for key in keys if parameters[key].default is inspect.Parameter.empty),
            purpose,
            label,
            called,
            drawn="seed" in keys and read_annotation(hints.get("seed", Any)).optional,
            file=files[0] if files else None,
            sketch=sketch or Unremarkable(),
        )
        return made

    return add


def keys_of(name: str, make: Callable[..., World]) -> dict[str, Setting]:
    """Return the settings of worlds made by a function; arguments that are not plain data are for Python only."""
    hints, meanings = get_type_hints(make, include_extras=True), _meanings(make.__doc__ or "")
    keys = {}
    for each in inspect.signature(make).parameters.values():
        if each.kind in _VARIADIC:
            continue
        if each.name in OF_EVERY_WORLD:
            raise InputError(f"world: {each.name!r} is a key of every world; {name!r} needs another name for its own")
        default = None if each.default is each.empty else each.default
        key = setting_of(each.name, hints.get(each.name, each.annotation), meanings.get(each.name, ""), default)
        if key is not None:
            keys[each.name] = key
        elif each.default is each.empty:
            raise InputError(
                f"world: {name!r} needs {each.name}, which a study cannot give; annotate it as plain data, such as int,"
                " or give it a default"
            )
    return dict(sorted(keys.items(), key=lambda pair: pair[0] == "discount"))


def _meanings(documentation: str) -> dict[str, str]:
    """The first sentence on each argument in the section "Args" of a docstring."""
    _, _, section = inspect.cleandoc(documentation).partition("Args:\n")
    section = re.split(r"\n\S", section)[0]
    found = re.findall(r"^    (\w+): (.*(?:\n     .*)*)", section, re.M)
    return {name: re.split(r"\. |\.$", " ".join(text.split()))[0] for name, text in found}


def _checking(name: str, make: Callable[P, World], keys: Mapping[str, Setting]) -> Callable[P, World]:
    """Wrap a function to validate its arguments and record them in the world it makes.

    A seed is always recorded: in studies, a world without one is drawn anew by each seed.
    """
    signature = inspect.signature(make)
    usual = {each.name: each.default for each in signature.parameters.values() if each.name != "seed"}
    further = [each.name for each in signature.parameters.values() if each.kind in _VARIADIC]

    @functools.wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> World:
        bound = signature.bind(*args, **kwargs)
        for key, value in bound.arguments.items():
            if key in keys and value is not None:
                bound.arguments[key] = keys[key].check(key, value)
        world = make(*bound.args, **bound.kwargs)
        if not isinstance(world, World):
            raise InputError(f"world: {name!r} made a {type(world).__name__}, expected a World")
        bound.apply_defaults()
        given = {
            key: value
            for key, value in bound.arguments.items()
            if value is not None and value is not usual.get(key) and not (key in further and not value)
        }
        world.__dict__["_recipe"] = Recipe(name, given)  # not a field: a modified copy was made differently
        return world

    return made


class Recipe(NamedTuple):
    """The kind of a world and the arguments it was made with, without defaults."""

    kind: str
    arguments: dict[str, Any]


def recipe_of(world: World) -> Recipe | None:
    """How a world was made; None if unknown."""
    return world.__dict__.get("_recipe")


def picture_of(world: World, name: str) -> Picture:
    """The picture in figures of a world with this name, from its kind if that is known."""
    recipe = recipe_of(world)
    its = Picture() if recipe is None or recipe.kind not in WORLDS else WORLDS[recipe.kind].picture(recipe.arguments)
    return its._replace(title=its.title if its.title and name == world.name else name)
