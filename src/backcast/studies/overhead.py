"""Overhead of engines, and performance of a store with many units: the figures of docs/scaling.md."""

import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from backcast.core.errors import InputError
from backcast.studies import check_study, load
from backcast.studies.engines import Engine
from backcast.studies.engines.local import LocalEngine
from backcast.studies.runner import Progress, run_study
from backcast.studies.spec import Study
from backcast.studies.store import Store
from backcast.studies.units import all_units, perform

Row = dict[str, Any]
BILLION = 1_000_000_000
WARM = 50  # warm-up units


def overheads(units: int, many: int) -> Iterator[Row]:
    """Time every engine on tiny units, then a store of many, and extrapolate to 10⁹ runs."""
    study = tiny(units)
    alone = _alone(study)
    yield {"section": "engines", "agent": "no engine, no store", "milliseconds_per_unit": alone}
    with tempfile.TemporaryDirectory(prefix="backcast-bench-") as folder:
        for number, (name, make) in enumerate(_engines().items()):
            store = Store(Path(folder) / str(number), create=True)
            try:
                figures = _timed(store, study, make(store))
            except InputError as error:
                yield {"section": "engines", "agent": f"{name}: {error}"}
                continue
            added = figures["milliseconds_per_unit"] - alone / _workers(name)
            yield {"section": "engines", "agent": name, **figures, "of_which_overhead": added}
        store = Store(Path(folder) / "many", create=True)
        written = _timed(store, tiny(many), LocalEngine(patience=0))
        read = _read_back(store, many)
    yield {"section": "store", "agent": f"{many:,} units", **written, **read}
    yield from _billion(written["client_milliseconds_per_unit"])


def tiny(units: int) -> Study:
    """A study of `units` units, each a single run of one episode in a maze of three cells."""
    given = {"name": "tiny", "episodes": 1, "seeds": 1, "worlds": [{"kind": "maze", "text": "S.G"}]}
    grid = {"alpha": [(number + 1) / units for number in range(units)]}
    return check_study({**given, "agents": [{"kind": "q"}], "grid": grid}, "bench")


def _engines() -> dict[str, Callable[[Store], Engine]]:
    return {
        "local, this process": lambda store: LocalEngine(1),
        "local, 2 processes": lambda store: LocalEngine(2, patience=0),
        "local, 2 with time limit": lambda store: LocalEngine(2, time_limit=60),
        "dask, 2 workers": _dask,
        "slurm, 2 local jobs": _slurm,
    }


def _dask(store: Store) -> Engine:
    from backcast.studies.engines.on_dask import DaskEngine

    return DaskEngine(None, 2)


def _slurm(store: Store) -> Engine:
    from backcast.studies.engines.on_slurm import SlurmEngine

    return SlurmEngine(store, 2, local=True)


def _workers(name: str) -> int:
    return 2 if "2" in name else 1


def _alone(study: Study) -> float:
    """Milliseconds of a unit by itself."""
    units = list(all_units(study, 1))
    for unit in units[:WARM]:
        perform(unit)
    started = time.perf_counter()
    for unit in units:
        perform(unit)
    return 1e3 * (time.perf_counter() - started) / len(units)


def _timed(store: Store, study: Study, engine: Engine) -> Row:
    """Seconds to the first result, then milliseconds per unit, in total and on the client's cores."""
    seen: list[tuple[float, int, float]] = []

    def watch(progress: Progress) -> None:
        seen.append((time.perf_counter(), progress.done, _processor_seconds()))

    started = time.perf_counter()
    summary = run_study(store, study, engine=engine, watch=watch)
    if summary.failures:
        raise InputError(summary.failures[0].error)
    first, last = seen[1], seen[-1]
    units = max(1, last[1] - first[1])
    return {
        "first_result_seconds": first[0] - started,
        "milliseconds_per_unit": 1e3 * (last[0] - first[0]) / units,
        "client_milliseconds_per_unit": 1e3 * (last[2] - first[2]) / units,
    }


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _read_back(store: Store, units: int) -> Row:
    started = time.perf_counter()
    table = load(store.directory)
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in (store.directory / "units").iterdir())
    return {
        "bytes_per_unit": size / units,
        "files": float(len(list((store.directory / "units").iterdir()))),
        "rows": float(len(table)),
        "read_back_seconds": seconds,
        "client_gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def _billion(client_milliseconds: float) -> Iterator[Row]:
    """What 10⁹ runs of the paper's maze need, twenty seeds to a unit."""
    given = {"name": "maze", "episodes": 100, "seeds": 100, "worlds": [{"kind": "maze"}]}
    study = check_study({**given, "agents": [{"kind": "backward", "frame": "previous"}]}, "bench")
    with tempfile.TemporaryDirectory(prefix="backcast-bench-") as folder:
        run_study(Store(Path(folder) / "warm", create=True), study, seeds=1)
        store, started = Store(Path(folder) / "runs", create=True), time.perf_counter()
        runs = run_study(store, study, engine=LocalEngine(1)).runs
        seconds = (time.perf_counter() - started) / runs
        size = sum(path.stat().st_size for path in (store.directory / "units").iterdir()) / runs
    units = BILLION / 20
    yield {
        "section": "a billion runs",
        "agent": "backward@previous, maze",
        "milliseconds_per_run": 1e3 * seconds,
        "core_days": BILLION * seconds / 86_400,
        "terabytes": BILLION * size / 1e12,
        "client_days": units * client_milliseconds / 1e3 / 86_400,
        "cores_per_client": 20 * seconds / (client_milliseconds / 1e3),
    }
