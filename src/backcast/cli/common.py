"""What all commands have in common: arguments, what is said to who sits before the terminal, and how they end."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def a_path(text: str | Path) -> Path:
    """A path that was given on the command line; an empty one, of a variable that is not set, means nothing."""
    if not str(text).strip():
        raise typer.BadParameter("it is empty; expected a path")
    return Path(text)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Directory = Annotated[Path, typer.Argument(parser=a_path, metavar="DIRECTORY", help="Directory of the results.")]


class Terminated(KeyboardInterrupt):
    """Somebody told the process to end; it cleans up as after Ctrl-C."""


def end(*_: object) -> NoReturn:
    """What to do when somebody tells the process to end."""
    raise Terminated


def tell(sentence: str) -> None:
    """Say something to who sits before the terminal; what a command prints is for whoever reads it."""
    print(f"backcast: {sentence}", file=sys.stderr, flush=True)


def in_words(error: OSError) -> str:
    """What went wrong with which file."""
    return f"{error.filename or 'disk'}: {error.strerror or error}"


def stop(code: int, sentence: str) -> NoReturn:
    """End the command with a sentence."""
    tell(sentence)
    raise SystemExit(code) from None
