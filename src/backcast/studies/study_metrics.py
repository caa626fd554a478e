"""The metrics of a study: Backcast's own, and those of the packages that its plugins are in."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from backcast.core.errors import InputError, nearest
from backcast.drivers.metrics import METRICS, Metric, metrics_in
from backcast.studies.statistics import Interval
from backcast.worlds.world import Purpose


def metrics_of(purpose: Purpose, plugins: Iterable[str]) -> list[Metric]:
    """The metrics of worlds of this purpose; other metrics registered in the process are ignored."""
    packages = {_package(module) for module in plugins}
    return [each for each in metrics_in(purpose) if each.is_builtin or _package(each.home) in packages]


def _package(module: str) -> str:
    return module.partition(".")[0]


def checked_metric(name: str, known: Collection[str] = METRICS) -> Metric:
    """Return the metric of this name; raise InputError if it is unknown."""
    if name not in known:
        raise InputError(f"metric: {name!r} given, expected one of {', '.join(known)}{nearest(name, known)}")
    return METRICS[name]


def in_units(cost: Interval, metric: Metric) -> Interval:
    """The interval of a metric from that of its cost."""
    if not metric.higher_is_better:
        return cost
    return replace(cost, estimate=-cost.estimate, low=-cost.high, high=-cost.low)
