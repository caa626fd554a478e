"""Shared parts of all commands: arguments, messages on the terminal, and exits."""

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer


def a_path(text: str | Path) -> Path:
    """Parse a path on the command line; an empty one, as from an unset variable, is an error."""
    if not str(text).strip():
        raise typer.BadParameter("it is empty; expected a path")
    return Path(text)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Directory = Annotated[Path, typer.Argument(parser=a_path, metavar="DIRECTORY", help="Directory of the results.")]


class Terminated(KeyboardInterrupt):
    """The process was terminated (SIGTERM); it cleans up as after Ctrl-C."""


def end(*_: object) -> NoReturn:
    """Handle SIGTERM."""
    raise Terminated


def tell(sentence: str) -> None:
    """Write a message to stderr; stdout is for results."""
    print(f"backcast: {sentence}", file=sys.stderr, flush=True)


def in_words(error: OSError) -> str:
    """Describe an error and its file."""
    return f"{error.filename or 'disk'}: {error.strerror or error}"


def stop(code: int, sentence: str) -> NoReturn:
    """End the command with a sentence."""
    tell(sentence)
    raise SystemExit(code) from None
