"""The commands that read a directory of results: claims, report, best, export, verify."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backcast.cli.common import AsJson, Directory, a_path, tell
from backcast.cli.run_studies import tell_gaps
from backcast.core.errors import InputError

if TYPE_CHECKING:
    from backcast.studies import Results


def claims(directory: Directory, as_json: AsJson = False) -> None:
    """Judge the paper's claims from stored results, one line each.

    Example: backcast claims results
    """
    if not print_claims(_read(directory), as_json):
        tell(f"the studies in {directory} say nothing about the paper's claims; those of backcast reproduce do")


def _read(directory: Path) -> "list[Results]":
    """Read the results that can be compared; report what is missing."""
    from backcast.studies import comparable, stored

    found = stored(directory)
    tell_gaps(found, directory)
    return comparable(found.results, directory)


def print_claims(found: "list[Results]", as_json: bool) -> int:
    """Print the verdicts that results allow; return their number."""
    from backcast.studies.claims import judge

    judged = sorted(((v, result) for result in found for v in judge(result)), key=lambda pair: pair[0].number)
    if as_json:
        print(json.dumps([{**verdict.as_dict(), "missing_runs": result.missing_runs} for verdict, result in judged]))
    elif judged:
        print(*(verdict for verdict, _ in judged), sep="\n")
    return len(judged)


def report(
    directory: Directory,
    latex: Annotated[
        bool,
        typer.Option("--latex", help="Also write LaTeX tables, a methods text, and PDF and SVG figures to DIR/paper."),
    ] = False,
    width: Annotated[
        float | None,
        typer.Option(help="With --latex: column width of the paper in inches (default: 3.25); 5.5 for NeurIPS."),
    ] = None,
) -> None:
    """Write a self-contained HTML report, and the figures in it.

    Example: backcast report results

    Example: backcast report results --latex --width 5.5
    """
    from backcast.report.latex import write_latex
    from backcast.report.page import write_report

    if width is not None and not latex:
        raise InputError("--width: it is the column width of figures for a paper; add --latex")
    found = _read(directory)
    if latex:
        print(write_latex(directory, found) if width is None else write_latex(directory, found, width))
    print(write_report(directory, found))


def best(
    directory: Directory,
    metric: Annotated[
        str | None,
        typer.Option(help="A metric of backcast list, such as steps (default: the metric of each world)."),
    ] = None,
    by: Annotated[
        str, typer.Option(help="Some of study, world, agent and the searched settings, separated by commas.")
    ] = "study,world,agent",
    last: Annotated[int | None, typer.Option(min=1, help="Score only the last N episodes (default: all).")] = None,
    study: Annotated[str | None, typer.Option(help="Show only the study of this name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the best settings tried, with confidence intervals.

    It warns if the best value lies on the edge of the values tried.

    Example: backcast best results --metric steps --by world,agent

    Example: backcast best results --by world
    """
    from rich.console import Console
    from rich.table import Table

    from backcast.studies.best import best as choose
    from backcast.studies.best import explained, of_study

    chosen = of_study(_read(directory), study)
    found = choose(chosen, [key.strip() for key in by.split(",")], metric, last)
    if as_json:
        missing = sum(result.missing_runs for result in chosen)
        print(json.dumps([{**each.as_dict(), "missing_runs": missing} for each in found]))
        return
    rows = [each.as_row() for each in found]
    table = Table(box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column, justify="right" if column in ("seeds", "tried", "alike") else "left")
    for row in rows:
        table.add_row(*row.values())
    console = Console(width=None if sys.stdout.isatty() else 1000, highlight=False, markup=False)
    console.print(table)
    console.print("", *explained(found), sep="\n")
    for each in found:
        for warning in each.warnings:
            print(f"{each.where}: {warning}", file=sys.stderr)


def export(
    directory: Directory,
    to: Annotated[Path, typer.Option("--to", parser=a_path, help="File to write, .csv or .parquet.")],
) -> None:
    """Export all results as one long table (CSV or Parquet).

    Columns: study, world, agent, seed, episode, metric, value, and each setting that varies among the agents.

    Example: backcast export results --to results.parquet
    """
    from backcast.studies import export as write
    from backcast.studies import stored

    found = stored(directory)
    tell_gaps(found, directory)
    print(f"{to}: {write(directory, to, found.results):,} rows")


def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Check every stored file against its record.

    It changes nothing, and says what to run again. The exit code is 1 if something is damaged.

    Example: backcast verify results
    """
    from backcast.studies.verifying import sentences
    from backcast.studies.verifying import verify as look

    found = look(directory)
    if as_json:
        print(json.dumps(found.as_dict()))
    else:
        print(*sentences(found, directory), sep="\n")
    if found.damaged:
        raise typer.Exit(1)
