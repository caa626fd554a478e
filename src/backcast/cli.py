"""The command line: `backcast --help`."""

import io
import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from backcast import __version__
from backcast.errors import InputError

UsageError: Any = typer.BadParameter.__base__  # its module moved between versions of typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)

Out = Annotated[Path, typer.Option("--out", help="Directory of the results; made if it is not there.")]
Seeds = Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds per agent and world (default: the study's).")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Threads (default: all cores).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only what is wrong.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Directory = Annotated[Path, typer.Argument(help="Directory of the results.")]


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
    for name in ("chain", "boyan", "random_walk", "noisy_tv", "maze", "from_gymnasium", "from_mdp"):
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
def reproduce(
    studies: Annotated[
        list[str] | None, typer.Argument(help="Studies by name (default: the paper's), or `all`; see backcast list.")
    ] = None,
    seeds: Seeds = None,
    out: Out = Path("results"),
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the paper's studies, or those beyond it, write figures and a report, and judge the paper's claims.

    What is finished stays: run it again to continue, or with more seeds to add to what is there.

    Example: backcast reproduce

    Example: backcast reproduce fan-levels frames --seeds 100 --out results

    Example: backcast reproduce estimation neighbours
    """
    from backcast.studies import PAPER, STUDIES, named_study

    names = STUDIES if studies == ["all"] else studies or PAPER
    _run_studies([named_study(name) for name in names], seeds, out, workers, quiet, as_json)


@app.command()
def sweep(
    specification: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="A study of your own.")],
    seeds: Seeds = None,
    out: Out = Path("results"),
    workers: Workers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run a study of your own, described in a TOML file (docs/studies.md has one to copy).

    Example: backcast sweep my.toml --out results
    """
    from backcast.studies import read_study

    _run_studies([read_study(specification)], seeds, out, workers, quiet, as_json)


def _run_studies(
    studies: list[Any], seeds: int | None, out: Path, workers: int | None, quiet: bool, as_json: bool
) -> None:
    from backcast.display import watching
    from backcast.report.page import write_report
    from backcast.studies.runner import run_study
    from backcast.studies.store import Results, Store

    store = Store(out, create=True)
    for path in store.foreign_files():
        print(f"backcast: {path} is not a file of Backcast's and is left alone", file=sys.stderr)
    try:
        for study in studies:
            with watching(study.name, quiet, as_json) as watch:
                run_study(store, study, seeds, workers, watch)
            _print_divergences(Results(store, study), as_json)
        page = write_report(out)
    except KeyboardInterrupt:
        _stop(130, f"stopped; what is finished is kept in {out}, and the same command goes on from there")
    if not quiet:
        _print_claims(out, [study.name for study in studies], as_json)
        print(json.dumps({"report": str(page)}) if as_json else f"\nreport: {page}")


def _print_divergences(result: Any, as_json: bool) -> None:
    """A line for each agent and world in which values exploded."""
    from backcast.studies.divergence import divergences

    for world, agent, words in divergences(result):
        if as_json:
            steps = result.diverged(world, agent).tolist()
            print(json.dumps({"study": result.name, "world": world, "agent": agent, "diverged": steps}))
        else:
            print(f"{result.name}: {agent} in {world} {words}", file=sys.stderr)


@app.command()
def claims(directory: Directory, as_json: AsJson = False) -> None:
    """Judge the paper's claims from the results in a directory, one line each.

    Example: backcast claims results
    """
    _print_claims(directory, None, as_json)


def _print_claims(directory: Path, names: list[str] | None, as_json: bool) -> None:
    from backcast.studies import results
    from backcast.studies.claims import judge

    found = [result for result in results(directory) if names is None or result.name in names]
    verdicts = sorted((v for result in found for v in judge(result)), key=lambda v: v.number)
    if as_json:
        print(json.dumps([verdict.as_dict() for verdict in verdicts]))
    else:
        print(*verdicts, sep="\n")


@app.command()
def report(directory: Directory) -> None:
    """Write one self-contained HTML page about the results in a directory, and the figures it shows.

    Example: backcast report results
    """
    from backcast.report.page import write_report

    print(write_report(directory))


@app.command()
def export(
    directory: Directory,
    to: Annotated[Path, typer.Option("--to", help="File to write, .csv or .parquet.")],
) -> None:
    """Write the results as one long table: study, world, agent, seed, episode, metric, value.

    Example: backcast export results --to results.parquet
    """
    from backcast.studies import export as write

    print(f"{to}: {write(directory, to):,} rows")


@app.command()
def bench(
    as_json: AsJson = False,
    anchors: Annotated[
        Path | None, typer.Option(help="Directory with dense_maze.c and dense_chain.c to compile and race.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions, no world of a million states.")] = False,
) -> None:
    """Measure speed, next to slower ways to do the same, in this run.

    Example: backcast bench --quick

    Example: backcast bench --anchors ../shared/anchors --json > bench.json
    """
    from backcast.bench import bench as measurements

    rows: list[dict[str, Any]] = []
    for row in measurements(anchors, quick):
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
def doctor() -> None:
    """Show versions, cores and directories, and check in ten seconds that this installation computes what it should.

    Example: backcast doctor
    """
    from backcast.doctor import examine

    if not examine():
        raise typer.Exit(1)


def main() -> None:
    """Entry point of the `backcast` command. Exit codes: 0 done, 2 bad input, 130 interrupted, 1 anything else."""
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
