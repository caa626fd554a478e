"""The command line: `backcast --help`."""

import io
import sys
from typing import Annotated

import typer

from backcast import __version__
from backcast.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=True, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"backcast {__version__}")
        raise typer.Exit


@app.callback()
def backcast(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Credit assignment by planning, forward and backward.

    Example: backcast list
    """


@app.command("list")
def list_() -> None:
    """Show what can be used.

    Example: backcast list
    """
    from backcast import exact

    print(f"Backcast {__version__}\n\nbackcast.exact, closed forms for a backcast.FiniteMDP:")
    for name in exact.__all__:
        summary = (getattr(exact, name).__doc__ or "").strip().splitlines()[0]
        print(f"  {name:<30}{summary}")


def main() -> None:
    """Entry point of the `backcast` command; refused input ends it with exit code 2 and one sentence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # formulas hold letters that not every terminal can show
    try:
        app()
    except InputError as error:
        print(f"backcast: {error}", file=sys.stderr)
        raise SystemExit(2) from None
