"""The command line: `backcast --help`."""

import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any

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
    """Show what can be used: worlds, agents, closed forms.

    Example: backcast list
    """
    from backcast import exact, worlds
    from backcast.kinds import KINDS

    print(f"Backcast {__version__}\n\nWorlds (backcast.worlds):")
    for name in ("chain", "maze", "from_gymnasium", "from_mdp"):
        _print_entry(name, getattr(worlds, name).__doc__)
    print("\nAgents (backcast.agent):")
    for name, kind in KINDS.items():
        _print_entry(name, kind.summary)
    print("\nClosed forms (backcast.exact):")
    for name in exact.__all__:
        _print_entry(name, getattr(exact, name).__doc__)


def _print_entry(name: str, documentation: str | None) -> None:
    print(f"  {name:<30}{(documentation or '').strip().splitlines()[0]}")


@app.command()
def bench(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per measurement.")] = False,
    anchors: Annotated[
        Path | None, typer.Option(help="Directory with dense_maze.c and dense_chain.c to compile and race.")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repetitions and no world of a million states.")] = False,
) -> None:
    """Measure speed, next to slower ways to do the same, in this run.

    Example: backcast bench --quick

    Example: backcast bench --anchors ../shared/anchors --json > bench.jsonl
    """
    from backcast.bench import bench as measurements

    section = None
    for row in measurements(anchors, quick):
        if as_json:
            print(json.dumps(row), flush=True)
            continue
        if row["section"] != section:
            section = row["section"]
            print(f"\n{section}")
        print("  " + _in_words(row), flush=True)


def _in_words(row: dict[str, Any]) -> str:
    names = " ".join(f"{row[key]:<24}" for key in ("world", "agent") if key in row)
    figures = (
        f"{name.replace('_', ' ')} {figure:,.0f}" if figure >= 1000 else f"{name.replace('_', ' ')} {figure:.2f}"
        for name, figure in row.items()
        if isinstance(figure, float)
    )
    return names + "  " + ", ".join(figures)


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
