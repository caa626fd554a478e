"""`backcast reproduce` and `backcast sweep`: run studies."""

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backcast.cli.common import Terminated, a_path, in_words, stop, tell
from backcast.cli.result_commands import print_claims
from backcast.cli.run_studies import (
    RunOptions,
    check_options,
    continuing,
    print_divergences,
    refuse_imports,
    refuse_other_files,
    run_studies,
    tell_failures,
    tell_installed,
    tell_plan,
    to_continue,
    with_plugins,
    with_run_options,
)
from backcast.core.errors import InputError
from backcast.core.limits import refuse_many

if TYPE_CHECKING:
    from backcast.studies.store import Asked


@with_run_options
def reproduce(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies by name (see `list`), or groups: paper (the default), beyond, textbook, blend, neural, or all"
            " (without neural)."
        ),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Run the paper's studies, or others, and report on them.

    Writes figures and a report, and judges the paper's claims. Finished runs are kept: run the command again to
    continue, or with more seeds to add to them.

    Example: backcast reproduce

    Example: backcast reproduce fan-levels frames --seeds 100 --out results

    Example: backcast reproduce estimation --engine dask --scheduler tcp://10.0.0.1:8786
    """
    from backcast.studies import in_group, named_study
    from backcast.studies.reading import outline
    from backcast.studies.store import Asked

    check_options(options)
    chosen = [named_study(name) for name in in_group(studies or ["paper"])]
    if options.dry_run:
        tell_plan([outline(study, study.name, options.seeds) for study in chosen], options)
        return
    _run([Asked(study, options.seeds or study.seeds) for study in chosen], options)


@with_run_options
def sweep(
    specification: Annotated[
        Path,
        typer.Argument(
            parser=a_path, metavar="SPEC.toml|DIR", help="A study of your own, or a directory of results to continue."
        ),
    ],
    allow_import: Annotated[
        list[str] | None,
        typer.Option("--allow-import", metavar="MODULE", help="A module that a study in DIR may import."),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """Run a study of your own, described in a TOML file.

    docs/studies.md has an example to copy. Give a directory of results to continue its studies. A TOML file may
    import the modules it names. Studies in a directory may import only those named by --allow-import, because results
    may come from somebody else.

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
            refuse_other_files(study)
        asked = with_plugins(specification, asked, options)
    elif options.dry_run:
        tell_plan([read_outline(specification, options.seeds)], options)
        return
    else:
        tell_installed()
        study = read_study(specification, tell)
        asked = [Asked(study, options.seeds or study.seeds)]
    _run(asked, options)


def _run(asked: "list[Asked]", options: RunOptions) -> None:
    """Run studies, and report on them unless only a shard was run."""
    for study, seeds in asked:
        refuse_many(f"{study.name}: combinations × seeds", "runs", len(study.runs()) * seeds)
    try:
        failures = run_studies(asked, options)
        if options.shard is None:
            with contextlib.suppress(InputError) if failures else contextlib.nullcontext():
                _report([study.name for study, _ in asked], options)
    except KeyboardInterrupt as interruption:
        code = 143 if isinstance(interruption, Terminated) else 130
        stop(code, f"stopped; {_what_is_kept(options)}")
    except OSError as error:
        stop(1, f"{in_words(error)}; {_what_is_kept(options)}")
    if failures:
        tell_failures(failures, options)
        raise typer.Exit(1)


def _what_is_kept(options: RunOptions) -> str:
    return f"finished runs are kept in {options.out}; run the same command again to continue"


def _report(names: list[str], options: RunOptions) -> None:
    from backcast.report.page import write_report
    from backcast.studies import results

    found = results(options.out)
    mine = [result for result in found if result.name in names]
    print_divergences(mine, options.as_json)
    page = write_report(options.out, found)
    if not options.quiet:
        print_claims(mine, options.as_json)
        print(json.dumps({"report": str(page)}) if options.as_json else f"\nreport: {page}")
