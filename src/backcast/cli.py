"""The command line: `backcast --help`."""

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from backcast import __version__
from backcast.errors import InputError
from backcast.limits import refuse_many
from backcast.running import (
    RunOptions,
    a_path,
    check_options,
    continuing,
    print_divergences,
    refuse_imports,
    run_studies,
    tell,
    tell_failures,
    tell_gaps,
    tell_plan,
    to_continue,
    with_run_options,
)

if TYPE_CHECKING:
    from backcast.studies import Results
    from backcast.studies.store import Asked

UsageError: Any = typer.BadParameter.__base__  # its module moved between versions of typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Directory = Annotated[Path, typer.Argument(parser=a_path, metavar="DIRECTORY", help="Directory of the results.")]


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

    Example: backcast reproduce --seeds 20 --out results
    """


@app.command("list")
def list_() -> None:
    """Show what can be run: worlds, agents, studies, closed forms.

    Example: backcast list
    """
    from backcast import exact, worlds
    from backcast.kinds import KINDS
    from backcast.studies import STUDIES, named_study

    print(f"Backcast {__version__}\n\nWorlds (backcast.worlds):")
    mazes = ("maze", "blocking_maze", "shortcut_maze")
    for name in ("chain", "boyan", "random_walk", "noisy_tv", *mazes, "from_gymnasium", "from_mdp"):
        _print_entry(name, getattr(worlds, name).__doc__)
    print("\nAgents (backcast.agent):")
    for name, kind in KINDS.items():
        _print_entry(name, kind.summary)
        if kind.settings:
            print(f"  {'':<30}  settings: {', '.join(kind.settings)}")
        if kind.reference:
            print(f"  {'':<30}  {kind.reference}")
    print("\nStudies (backcast reproduce):")
    for name in STUDIES:
        _print_entry(name, named_study(name).title)
    print("\nClosed forms (backcast.exact):")
    for name in exact.__all__:
        _print_entry(name, getattr(exact, name).__doc__)


def _print_entry(name: str, documentation: str | None) -> None:
    print(f"  {name:<30}{(documentation or '').strip().splitlines()[0]}")


@app.command()
@with_run_options
def reproduce(
    studies: Annotated[
        list[str] | None, typer.Argument(help="Studies by name (default: the paper's), or `all`; see backcast list.")
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Run the paper's studies, or those beyond it, write figures and a report, and judge the paper's claims.

    What is finished stays: run it again to continue, or with more seeds to add to what is there.

    Example: backcast reproduce

    Example: backcast reproduce fan-levels frames --seeds 100 --out results

    Example: backcast reproduce estimation --engine dask --scheduler tcp://10.0.0.1:8786
    """
    from backcast.studies import PAPER, STUDIES, named_study
    from backcast.studies.reading import outline
    from backcast.studies.store import Asked

    check_options(options)
    chosen = [named_study(name) for name in (STUDIES if studies == ["all"] else studies or PAPER)]
    if options.dry_run:
        tell_plan([outline(study, study.name, options.seeds) for study in chosen], options)
        return
    _run([Asked(study, options.seeds or study.seeds) for study in chosen], options)


@app.command()
@with_run_options
def sweep(
    specification: Annotated[
        Path,
        typer.Argument(
            parser=a_path, metavar="SPEC.toml|DIR", help="A study of your own, or results to be continued there."
        ),
    ],
    allow_import: Annotated[
        list[str] | None,
        typer.Option("--allow-import", metavar="MODULE", help="A module that a study in DIR may import."),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Run a study of your own, described in a TOML file (docs/studies.md has one to copy).

    A TOML file may import what it says. With a directory of results, the studies in it are continued; as it may come
    from a stranger, they may import only what --allow-import names.

    Example: backcast sweep my.toml --out results

    Example: backcast sweep results

    Example: backcast sweep my.toml --engine slurm --slurm-jobs 50 --slurm-time 120 --slurm-partition short

    Example: backcast sweep my.toml --shard 2/8
    """
    from backcast.studies.reading import outline, read_outline, read_study
    from backcast.studies.store import Asked

    check_options(options)
    if specification.is_dir():
        options = continuing(specification, options)
        asked = to_continue(specification, options.seeds)
        if options.dry_run:
            tell_plan([outline(study, study.name, seeds) for study, seeds in asked], options)
            return
        for study, _ in asked:
            refuse_imports(study, allow_import or [])
    elif options.dry_run:
        tell_plan([read_outline(specification, options.seeds)], options)
        return
    else:
        study = read_study(specification, tell)
        asked = [Asked(study, options.seeds or study.seeds)]
    _run(asked, options)


def _run(asked: "list[Asked]", options: RunOptions) -> None:
    """Run studies, and unless it is a part of a larger whole, report on them."""
    for study, seeds in asked:
        refuse_many(f"{study.name}: combinations × seeds", "runs", len(study.runs()) * seeds)
    try:
        failures = run_studies(asked, options)
        if options.shard is None:
            with contextlib.suppress(InputError) if failures else contextlib.nullcontext():
                _report([study.name for study, _ in asked], options)
    except KeyboardInterrupt as interruption:
        code = 143 if isinstance(interruption, Terminated) else 130
        _stop(code, f"stopped; what is finished is kept in {options.out}, and the same command goes on from there")
    if failures:
        tell_failures(failures, options)
        raise typer.Exit(1)


def _report(names: list[str], options: RunOptions) -> None:
    from backcast.report.page import write_report
    from backcast.studies import results

    found = results(options.out)
    mine = [result for result in found if result.name in names]
    print_divergences(mine, options.as_json)
    page = write_report(options.out, found)
    if not options.quiet:
        _print_claims(mine, options.as_json)
        print(json.dumps({"report": str(page)}) if options.as_json else f"\nreport: {page}")


@app.command()
def claims(directory: Directory, as_json: AsJson = False) -> None:
    """Judge the paper's claims from the results in a directory, one line each.

    Example: backcast claims results
    """
    _print_claims(_read(directory), as_json)


def _read(directory: Path) -> "list[Results]":
    """The results of a directory that can be compared; what is missing is said."""
    from backcast.studies import comparable, stored

    found = stored(directory)
    tell_gaps(found)
    return comparable(found, directory)


def _print_claims(found: "list[Results]", as_json: bool) -> None:
    from backcast.studies.claims import judge

    judged = sorted(((v, result) for result in found for v in judge(result)), key=lambda pair: pair[0].number)
    if as_json:
        print(json.dumps([{**verdict.as_dict(), "missing_runs": result.missing_runs} for verdict, result in judged]))
    elif judged:
        print(*(verdict for verdict, _ in judged), sep="\n")


@app.command()
def report(directory: Directory) -> None:
    """Write one self-contained HTML page about the results in a directory, and the figures it shows.

    Example: backcast report results
    """
    from backcast.report.page import write_report

    print(write_report(directory, _read(directory)))


@app.command()
def best(
    directory: Directory,
    metric: Annotated[
        str | None, typer.Option(help="rmsve, rmsve_inner, steps or reward (default: what each world is judged by).")
    ] = None,
    by: Annotated[
        str, typer.Option(help="Among study, world, agent and settings that were searched, separated by commas.")
    ] = "study,world,agent",
    last: Annotated[
        int | None, typer.Option(min=1, help="Judge by so many episodes at the end (default: all).")
    ] = None,
    study: Annotated[str | None, typer.Option(help="One study only, by its name.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the best of the settings that were tried, with intervals, and warn where it lies at the edge of them.

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


@app.command()
def export(
    directory: Directory,
    to: Annotated[Path, typer.Option("--to", parser=a_path, help="File to write, .csv or .parquet.")],
) -> None:
    """Write the results as one long table: study, world, agent, seed, episode, metric, value.

    Example: backcast export results --to results.parquet
    """
    from backcast.studies import export as write
    from backcast.studies import stored

    found = stored(directory)
    tell_gaps(found)
    print(f"{to}: {write(directory, to, found):,} rows")


@app.command()
def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Check every file of the results in a directory against its record, and say what to run again; changes nothing.

    Exit code 1: something is damaged.

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


@app.command()
def bench(
    as_json: AsJson = False,
    anchors: Annotated[
        Path | None, typer.Option(help="Directory with dense_maze.c and dense_chain.c to compile and race.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions and settings, no world of a million states.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="One section, such as kinds, linear, cores, engines or lab.")] = None,
) -> None:
    """Measure speed, next to slower ways to do the same, in this run.

    Example: backcast bench --quick

    Example: backcast bench --only engines

    Example: backcast bench --anchors ../shared/anchors --json > bench.json
    """
    from backcast.bench import bench as measurements

    rows: list[dict[str, Any]] = []
    for row in measurements(anchors, quick, only):
        if not rows or row["section"] != rows[-1]["section"]:
            print(f"\n{row['section']}", file=sys.stderr if as_json else sys.stdout)
        print("  " + _in_words(row), file=sys.stderr if as_json else sys.stdout, flush=True)
        rows.append(row)
    if as_json:
        print(json.dumps(rows))


def _in_words(row: dict[str, Any]) -> str:
    names = " ".join(f"{row[key]:<24}" for key in ("world", "agent") if key in row)
    figures = (
        f"{name.replace('_', ' ')} {figure:,.0f}" if figure >= 1000 else f"{name.replace('_', ' ')} {figure:.2f}"
        for name, figure in row.items()
        if isinstance(figure, float)
    )
    return names + "  " + ", ".join(figures)


@app.command()
def lab(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port (default: 8765, or the next that is free; 0: any that is free)."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    host: Annotated[
        str, typer.Option(help="Name or address to listen on; if other machines can reach it, a token is asked for.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A further name for this lab, such as that of a proxy."),
    ] = None,
) -> None:
    """Watch two agents plan side by side in the browser, until Ctrl-C.

    Example: backcast lab

    Example: backcast lab --port 9000 --no-browser

    Example: backcast lab --host 0.0.0.0 --allow-host lab.example.org
    """
    from backcast.lab.serving import serve

    code = 0
    try:
        serve(host, port, not no_browser, allow_hosts=allow_host or ())
    except KeyboardInterrupt as interruption:  # the usual way to end it
        code = 143 if isinstance(interruption, Terminated) else 0
    print("backcast: the lab was stopped", file=sys.stderr, flush=True)
    os._exit(code)  # without waiting for threads, which may have a minute to go before all is compiled


@app.command()
def doctor() -> None:
    """Show versions, cores and directories, and check in ten seconds that this installation computes what it should.

    Example: backcast doctor
    """
    from backcast.doctor import examine

    if not examine():
        raise typer.Exit(1)


class Terminated(KeyboardInterrupt):
    """Somebody told the process to end; it cleans up as after Ctrl-C."""


def _end(*_: Any) -> NoReturn:
    raise Terminated


def main() -> None:
    """Entry point of the `backcast` command.

    Exit codes: 0 done, 2 bad input, 130 interrupted (143: told to end), 1 anything else.
    """
    signal.signal(signal.SIGTERM, _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # formulas hold letters that not every terminal can show
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        error.show()
        raise SystemExit(2) from None
    except InputError as error:
        _stop(2, str(error))
    except Terminated:
        _stop(143, "stopped")
    except (KeyboardInterrupt, typer.Abort):
        _stop(130, "stopped")
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except OSError as error:
        _stop(1, f"{error.filename or 'disk'}: {error.strerror or error}; what is finished is kept")
    else:
        raise SystemExit(code or 0)


def _stop(code: int, sentence: str) -> NoReturn:
    print(f"backcast: {sentence}", file=sys.stderr)
    raise SystemExit(code) from None
