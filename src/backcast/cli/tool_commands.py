"""The commands list, bench, lab, doctor and cite."""

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backcast import __version__
from backcast.cli.common import AsJson, Terminated
from backcast.cli.run_studies import tell_installed

if TYPE_CHECKING:
    from backcast.core.setting_types import Setting

AllowImport = Annotated[
    list[str] | None,
    typer.Option("--allow-import", metavar="MODULE", help="A module with your own kinds, to import."),
]


def _import_plugins(allowed: list[str] | None) -> None:
    """Import the plugins of installed packages, and these modules."""
    from backcast.studies.plugins import import_plugins

    tell_installed()
    import_plugins(allowed or (), "--allow-import")


def list_(
    kind: Annotated[
        str | None, typer.Argument(help="A kind of agent or world, to see its settings.", show_default=False)
    ] = None,
    allow_import: AllowImport = None,
) -> None:
    """List worlds, agents, metrics and studies, or a kind's settings.

    The plugins of installed packages and the modules named by --allow-import are imported.

    Example: backcast list

    Example: backcast list backward

    Example: backcast list maze

    Example: backcast list my-kind --allow-import my_module
    """
    _import_plugins(allow_import)
    if kind is not None:
        _print_kind(kind)
        return
    from backcast import exact, worlds
    from backcast.agents.estimators import ESTIMATORS
    from backcast.agents.kinds import KINDS
    from backcast.drivers.metrics import METRICS
    from backcast.studies import STUDIES, title_of
    from backcast.worlds.kinds import WORLDS

    print(f"Backcast {__version__}\n\nWorlds (backcast.worlds; in a study by their kind):")
    for world in WORLDS.values():
        _print_entry(world.function.__name__, world.summary)
        print(f"  {'':<30}  kind {world.name}: {', '.join(world.keys)}")
    _print_entry("from_mdp", worlds.from_mdp.__doc__)
    print("\nAgents (backcast.agent):")
    for name, each in KINDS.items():
        _print_entry(name, each.summary)
        if each.settings:
            print(f"  {'':<30}  settings: {', '.join(each.table)}")
        if each.reference:
            print(f"  {'':<30}  {each.reference}")
    print("\nModels (values of the setting model):")
    for estimator in ESTIMATORS.values():
        _print_entry(estimator.name, estimator.summary)
    print("\nMetrics (of runs):")
    for metric in METRICS.values():
        _print_entry(metric.name, f"{metric.label}; {metric.better} ({metric.purpose or 'prediction and control'})")
    print("\nStudies (backcast reproduce):")
    for name in STUDIES:
        _print_entry(name, title_of(name))
    print("\nClosed forms (backcast.exact):")
    for name in exact.__all__:
        _print_entry(name, getattr(exact, name).__doc__)


def _print_kind(name: str) -> None:
    """Print a kind of agent or world with its settings."""
    from backcast.agents.kinds import KINDS
    from backcast.core.errors import InputError, nearest
    from backcast.studies.search import searchable
    from backcast.worlds.kinds import WORLDS

    known = [*KINDS, *WORLDS]
    if name not in known:
        raise InputError(f"kind: {name!r} given, expected one of {', '.join(known)}{nearest(name, known)}")
    if name in KINDS:
        kind = KINDS[name]
        print(f"{name}: {kind.summary}\n{kind.reference}\n")
        _print_settings(searchable(name).values())
    if name in WORLDS:
        print(f"{name}: {WORLDS[name].summary}\n")
        _print_settings(WORLDS[name].keys.values())


def _print_settings(settings: "Collection[Setting]") -> None:
    width = max(14, *(len(setting.name) for setting in settings)) + 2
    for setting in settings:
        default = f" (default {setting.default_in_words})" if setting.default_in_words else ""
        print(f"  {setting.name:<{width}}{setting.meaning}\n  {'':<{width}}{setting.allowed}{default}")


def _print_entry(name: str, documentation: str | None) -> None:
    print(f"  {name:<30}{(documentation or '').strip().splitlines()[0]}")


def bench(
    as_json: AsJson = False,
    anchors: Annotated[
        Path | None,
        typer.Option(help="Directory with dense_maze.c and dense_chain.c to compare with (default: Backcast's own)."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer repetitions and settings, and no world of a million states.")
    ] = False,
    only: Annotated[
        str | None, typer.Option(help="One section, such as kinds, start-up, linear, cores, engines, lab or neural.")
    ] = None,
    against: Annotated[Path | None, typer.Option(help="Checkout of another version, to compare its start-up.")] = None,
) -> None:
    """Measure speed, and compare it with slower implementations.

    Example: backcast bench --quick

    Example: backcast bench --only engines

    Example: backcast bench --only start-up --against ../before

    Example: backcast bench --only "dense C" --json > bench.json
    """
    from backcast.cli.bench import bench as measurements

    rows: list[dict[str, Any]] = []
    for row in measurements(anchors, quick, only, against):
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


def lab(
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port (default: 8765, or the next free one; 0: any free port)."),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    host: Annotated[
        str, typer.Option(help="Name or address to listen on; a token is required if other machines can reach it.")
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another host name of this lab, such as that of a proxy."),
    ] = None,
    allow_import: AllowImport = None,
) -> None:
    """Watch two agents plan side by side in the browser.

    Stop it with Ctrl-C. The plugins of installed packages and the modules named by --allow-import are imported.

    Example: backcast lab

    Example: backcast lab --port 9000 --no-browser

    Example: backcast lab --host 0.0.0.0 --allow-host lab.example.org

    Example: backcast lab --allow-import my_module
    """
    from backcast.lab.serving import serve

    _import_plugins(allow_import)
    code = 0
    try:
        serve(host, port, not no_browser, allow_hosts=allow_host or ())
    except KeyboardInterrupt as interruption:  # the normal way to stop it
        code = 143 if isinstance(interruption, Terminated) else 0
    print("backcast: the lab was stopped", file=sys.stderr, flush=True)
    os._exit(code)  # without waiting for threads, which may go on compiling for a minute


def doctor() -> None:
    """Check that this installation computes correct results.

    It prints versions, cores and directories. It takes about ten seconds.

    Example: backcast doctor
    """
    from backcast.cli.doctor import examine

    if not examine():
        raise typer.Exit(1)


def cite(
    text: Annotated[bool, typer.Option("--text", help="Print plain text instead of BibTeX.")] = False,
) -> None:
    """Print citations of Backcast and its paper, as BibTeX.

    Example: backcast cite >> references.bib
    """
    from backcast.report.citation import bibtex, references

    print(references() if text else bibtex())
