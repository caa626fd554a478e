"""Messages from a page to its session, validated; and the greeting to the page."""

import json
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from backcast import __version__
from backcast.agents.kinds import KINDS
from backcast.core.errors import InputError
from backcast.lab.config import EPISODES, SEED, SIDE, STATES, setting_descriptions, world_descriptions
from backcast.lab.presets import PRESETS
from backcast.report.colours import colour
from backcast.studies.worldspec import Strict
from backcast.worlds.maze import PAPER_MAZE

SLOWEST, FASTEST = 0.2, 100_000.0  # ticks per second
_LATEST = 2**53  # the largest exact integer in JavaScript
_At = Annotated[int, Field(ge=0, lt=_LATEST)]


class _Message(Strict):
    """Strict fields: text is not converted to numbers."""

    model_config = ConfigDict(strict=True)


class Open(_Message):
    """Make a scene, and show a moment of it; `again` if the page has shown it before and lost its connection."""

    do: Literal["open"]
    config: dict[str, Any]
    at: _At = 0
    again: bool = False


class Play(_Message):
    """Play, with a number of ticks per second."""

    do: Literal["play"]
    speed: float = Field(ge=SLOWEST, le=FASTEST)


class Go(_Message):
    """Stop; go one tick, to the end of an episode, or to the end of the run."""

    do: Literal["pause", "step", "episode", "end"]


class Seek(_Message):
    """Go to a moment."""

    do: Literal["seek"]
    at: _At


class Drawn(_Message):
    """A frame was drawn; the next one may be sent."""

    do: Literal["drawn"]
    frame: _At


class Ask(_Message):
    """Inspect a state."""

    do: Literal["ask"]
    state: _At


class More(_Message):
    """Run further seeds in the background, or stop them."""

    do: Literal["further"]
    on: bool


Message = Open | Play | Go | Seek | Drawn | Ask | More
_messages: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="do")])


def read_message(text: str) -> Message:
    """Parse a message; errors say what is wrong with it."""
    try:
        return _messages.validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"][1:])
        raise InputError(f"{where or 'message'}: {first['msg'][0].lower() + first['msg'][1:]}") from None


def error_message(error: InputError, about: str) -> str:
    """A reply that says what is wrong, and in which fields of a scene."""
    return json.dumps({"is": "error", "message": str(error), "about": about, "fields": getattr(error, "fields", ())})


def hello() -> dict[str, Any]:
    """The worlds and agents that can be shown."""
    return {
        "is": "hello",
        "version": __version__,
        "kinds": [
            {
                "name": kind.name,
                "label": kind.in_words,
                "summary": kind.summary,
                "only": kind.only,
                "counterpart": kind.counterpart,
                "settings": setting_descriptions(kind),
                "colour": colour(kind.name),
                "reference": kind.reference,
            }
            for kind in KINDS.values()
        ],
        "worlds": world_descriptions(),
        "presets": [preset.as_dict() for preset in PRESETS],
        "limits": {"side": SIDE, "cells": SIDE * SIDE, "states": STATES, "episodes": EPISODES, "seed": SEED},
        "maze": PAPER_MAZE,
    }
