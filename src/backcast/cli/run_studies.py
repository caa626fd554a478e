"""Shared parts of `backcast reproduce` and `backcast sweep`: options, running studies, reporting failures."""

import dataclasses
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from backcast.cli.common import a_path, tell
from backcast.core.errors import InputError

if TYPE_CHECKING:
    from backcast.studies import Results, Stored, Study
    from backcast.studies.engines import Engine
    from backcast.studies.reading import Outline
    from backcast.studies.store import Asked, Shard, Store
    from backcast.studies.units import Failed

SHOWN = 3  # failures, and things not checked by a dry run, that are printed in full
COUNTED = 1_000_000  # most runs of a study for which a dry run counts the missing runs of a shard
DIVERGED = 50  # most agents listed as diverged


@dataclass(frozen=True)
class RunOptions:
    """The options of a command that runs studies."""

    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Seeds per agent and world (default: the study's).")
    ] = None
    out: Annotated[Path, typer.Option("--out", parser=a_path, help="Directory of the results; created if needed.")] = (
        Path("results")
    )
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes (default: one per core, or one in a SLURM job).")
    ] = None
    engine: Annotated[
        Literal["local", "dask", "slurm"], typer.Option("--engine", help="Where to run the study (docs/scaling.md).")
    ] = "local"
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", help="Address of a dask scheduler (default: start a cluster here).")
    ] = None
    shard: Annotated[
        str | None,
        typer.Option("--shard", metavar="I/N", help="Run only the I-th of N parts, for job scripts."),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", min=0.1, max=1e8, help="Time limit of a unit (up to 20 seeds) in seconds."),
    ] = None
    slurm_jobs: Annotated[int, typer.Option("--slurm-jobs", min=1, help="Number of jobs in the array.")] = 8
    slurm_time: Annotated[
        float, typer.Option("--slurm-time", min=0.05, help="Wall time of a job in minutes, after which it is requeued.")
    ] = 60.0
    slurm_partition: Annotated[str | None, typer.Option("--slurm-partition", help="Partition of the jobs.")] = None
    slurm_option: Annotated[
        list[str] | None,
        typer.Option("--slurm-option", metavar="KEY=VALUE", help="Another option of sbatch, such as account=lab."),
    ] = None
    slurm_local: Annotated[
        bool, typer.Option("--slurm-local", help="Run the jobs as local processes, without SLURM.")
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be run.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only warnings and errors.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False


def with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorator: build the command's last argument, `options`, from one command-line option for each field."""
    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "options"]
    added = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each in dataclasses.fields(RunOptions)
    ]

    @functools.wraps(command)
    def wrapped(**given: Any) -> None:
        options = RunOptions(**{parameter.name: given.pop(parameter.name) for parameter in added})
        command(**given, options=options)

    wrapped.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *added)}
    return wrapped


def run_studies(asked: Sequence["Asked"], options: RunOptions) -> list["Failed"]:
    """Run what is missing of some studies; return the units that failed."""
    from backcast.cli.study_progress import watching
    from backcast.studies.engines.queues import refuse_jobs_at_work
    from backcast.studies.runner import run_study
    from backcast.studies.store import Store

    shard = read_shard(options.shard)
    store = Store(options.out, create=True)
    for path in store.foreign_files():
        tell(f"{path} is not a file of Backcast's and is left alone")
    if options.engine != "slurm":
        refuse_jobs_at_work(options.out)  # jobs would make the same runs
    failures: list[Failed] = []
    for study, seeds in asked:
        engine = _engine(options, store)
        with watching(study.name, options.quiet, options.as_json) as watch:
            summary = run_study(store, study, seeds, engine, shard, watch, lambda: _tell_waiting(options))
        failures += summary.failures
    return failures


def continuing(directory: Path, options: RunOptions) -> RunOptions:
    """The options for continuing the studies of a directory."""
    if options.out not in (directory, RunOptions().out):
        raise InputError(f"--out: {options.out} given, but {directory} is continued where it is; leave it out")
    return dataclasses.replace(options, out=directory)


def to_continue(directory: Path, seeds: int | None) -> list["Asked"]:
    """The studies of a directory, with the seeds requested now or originally."""
    from backcast.studies.store import Asked, Store

    return [Asked(study, seeds or wanted) for study, wanted in Store(directory).studies()]


def with_plugins(directory: Path, asked: list["Asked"], options: RunOptions) -> list["Asked"]:
    """Reread the studies of a directory after importing what they may import."""
    from backcast.studies.plugins import import_plugins

    modules = [module for study, _ in asked for module in study.plugins]
    import_plugins(modules)
    return to_continue(directory, options.seeds) if modules else asked


def tell_installed() -> None:
    """Import the plugins of installed packages, and report those that cannot be imported."""
    from backcast.studies.plugins import import_installed

    for sentence in import_installed():
        tell(sentence)


def refuse_imports(study: "Study", allowed: Sequence[str]) -> None:
    """Raise InputError if running a study would import a module that is not allowed; installed plugins are allowed."""
    from backcast.studies.plugins import installed

    for module in study.plugins:
        if module not in allowed and module not in installed():
            raise InputError(
                f"{study.name}: plugins would import the module {module!r}, which may run anything;"
                f" if you know it, add --allow-import {module}"
            )
    for place, world in enumerate(study.worlds):
        if world.imports is not None and world.imports not in allowed:
            raise InputError(
                f"{study.name}: worlds.{place} would import the module {world.imports!r}, which may run anything;"
                f" if you know it, add --allow-import {world.imports}"
            )


def refuse_other_files(study: "Study") -> None:
    """Raise InputError if the file of a world is missing, or differs from the one the study was run with."""
    for place, world in enumerate(study.worlds):
        try:
            world.pinned()
        except InputError as error:
            raise InputError(f"{study.name}: worlds.{place}: {error}") from None


def check_options(options: RunOptions) -> None:
    """Raise InputError on options of an engine that was not chosen, and on invalid shards."""
    read_shard(options.shard)
    _read_options(options.slurm_option or ())
    for each in dataclasses.fields(options):
        owner = {"scheduler": "dask"}.get(each.name, "slurm" if each.name.startswith("slurm_") else options.engine)
        if owner != options.engine and getattr(options, each.name) not in (each.default, []):
            name = f"--{each.name.replace('_', '-')}"
            raise InputError(f"{name}: it belongs to --engine {owner}, and the engine is {options.engine}")
    if options.scheduler is not None and options.workers is not None:
        raise InputError("--workers: the cluster of --scheduler has its own; give one of them")
    if options.shard is not None and options.engine == "slurm":
        raise InputError("--shard: it is for job scripts, and --engine slurm makes jobs itself; give one of them")


def read_shard(text: str | None) -> "Shard | None":
    """Parse `2/8` as (2, 8)."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if found and 1 <= int(found[1]) <= int(found[2]):
        return int(found[1]), int(found[2])
    raise InputError(f"--shard: {text} given, expected I/N with 1 ≤ I ≤ N, such as 2/8 for the second of eight parts")


def tell_plan(outlines: Sequence["Outline"], options: RunOptions) -> None:
    """Print what would be run, and what was not checked; quick even for large studies."""
    from backcast.studies.store import Store

    store = Store(options.out) if (options.out / "units").is_dir() else None
    for each in outlines:
        plan = {
            "study": each.study.name,
            "combinations": each.combinations,
            "exact": each.exact,
            "seeds": each.seeds,
            "runs": each.combinations * each.seeds,
            "missing": _missing(each, store, options),
            "refused": each.refused,
            "unchecked": list(each.unchecked),
        }
        print(json.dumps(plan) if options.as_json else _in_words(plan, options))


def _missing(each: "Outline", store: "Store | None", options: RunOptions) -> int | None:
    """The number of runs to be made; None if there are too many to count."""
    from backcast.studies.runner import count_missing

    shard = read_shard(options.shard)
    if not each.expanded or each.refused or (shard is not None and each.combinations * each.seeds > COUNTED):
        return None
    return count_missing(store, each.study, each.seeds, shard)


def _in_words(plan: dict[str, Any], options: RunOptions) -> str:
    at_most = "" if plan["exact"] else "at most "
    combinations, seeds, runs = (_count(plan[what], what[:-1]) for what in ("combinations", "seeds", "runs"))
    lines = [f"{plan['study']}: {at_most}{combinations} of world, agent and settings, {seeds}: {at_most}{runs}"]
    if plan["missing"] is not None:
        part = f" in shard {options.shard}" if options.shard else ""
        lines[0] += f", of which {plan['missing']:,}{part} are to be made"
    lines += [f"not checked: {what}" for what in plan["unchecked"][:SHOWN]]
    if len(plan["unchecked"]) > SHOWN:
        lines.append(f"not checked: {len(plan['unchecked']) - SHOWN:,} things more, which --json lists")
    if plan["refused"]:
        lines.append(f"running it would be refused: {plan['refused']}")
    return "\n".join(lines)


def tell_gaps(found: "Stored", directory: Path) -> None:
    """Report which studies have missing runs, and how many runs are left out."""
    if found.strays:
        tell(f"{found.strays:,} runs in {directory} belong to none of its studies as they are now, and are left out")
    for result in found.results:
        if result.gap:
            left_out = "" if result.seeds else "; it is left out, because no seed is common to all agents"
            tell(f"{result.name}: {result.gap}{left_out}")


def tell_failures(failures: Sequence["Failed"], options: RunOptions) -> None:
    """Report failed units and the reasons: a few in full, and where to find the others."""
    if options.as_json:
        told = ({"failed": each.unit.label, "seeds": each.unit.seeds, "error": each.error} for each in failures)
        print(*map(json.dumps, told), sep="\n")
    several = {(each.error, each.unit.cell.label): each for each in reversed(failures)}
    for failed in list(several.values())[-SHOWN:]:
        settings = {**failed.unit.cell.identity(), "seeds": failed.unit.seeds}
        print(f"\n{failed.unit.label}: {failed.error}\n{failed.details}", file=sys.stderr)
        print(f"settings: {json.dumps(settings)}", file=sys.stderr)
    count, where = _count(len(failures), "unit"), options.out / "failures"
    tell(f"{count} failed, {where} says why; the others are kept, and the same command tries again what failed")


def _engine(options: RunOptions, store: "Store") -> "Engine":
    """Make the chosen engine."""
    if options.engine == "dask":
        from backcast.studies.engines.on_dask import DaskEngine

        return DaskEngine(options.scheduler, options.workers, options.time_limit)
    if options.engine == "slurm":
        from backcast.studies.engines.on_slurm import SlurmEngine

        return SlurmEngine(
            store,
            options.slurm_jobs,
            options.workers,
            options.time_limit,
            options.slurm_time,
            options.slurm_partition,
            _read_options(options.slurm_option or ()),
            options.slurm_local,
        )
    from backcast.studies.engines.local import LocalEngine

    return LocalEngine(options.workers, options.time_limit)


def _read_options(given: Sequence[str]) -> dict[str, str]:
    for text in given:
        if not re.fullmatch(r"[\w-]+=.*", text):
            raise InputError(f"--slurm-option: {text!r} given, expected KEY=VALUE, such as account=lab")
    return dict(text.split("=", 1) for text in given)


def print_divergences(found: Sequence["Results"], as_json: bool) -> None:
    """Print a line for each agent and world in which runs diverged, up to a limit."""
    from backcast.studies.divergence import divergences

    lines = []
    for result in found:
        for world, agent, words in divergences(result):
            steps = result.diverged(world, agent).tolist()
            told = {"study": result.name, "world": world, "agent": agent, "diverged": steps}
            lines.append(json.dumps(told) if as_json else f"{result.name}: {agent} in {world} {words}")
    if as_json:
        print(*lines, sep="\n", end="\n" if lines else "")
        return
    more = [f"and {len(lines) - DIVERGED:,} more agents diverged"] if len(lines) > DIVERGED else []
    print(*lines[:DIVERGED], *more, sep="\n", end="\n" if lines else "", file=sys.stderr)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tell_waiting(options: RunOptions) -> None:
    tell(f"another backcast is adding results to {options.out}; waiting until it has finished (Ctrl-C to stop)")
