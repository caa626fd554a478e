"""Curves and axes. Diverging agents are drawn as far as they are finite, end in a cross, and do not extend the axes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike

from backcast.core.arrays import Vector
from backcast.drivers.metrics import Metric


@contextmanager
def limits_kept(axes: Axes, wanted: bool = True) -> Iterator[None]:
    """Within the context, if `wanted`, drawing does not affect the limits of the axes."""
    kept = axes.dataLim.frozen()
    yield
    if wanted:
        axes.dataLim.set(kept)


def band(axes: Axes, x: Vector, mean: Vector, error: Vector | None, looks: dict[str, Any]) -> None:
    """Draw a mean as a line, with its standard error around it if wanted and known."""
    axes.plot(x, mean, **looks)
    if error is not None and np.isfinite(error).all():
        axes.fill_between(x, mean - error, mean + error, color=looks["color"], alpha=0.2, linewidth=0)


def cross(axes: Axes, x: ArrayLike, y: ArrayLike, shade: str, **more: Any) -> None:
    """Mark where an agent diverged."""
    axes.plot(x, y, linestyle="none", marker="x", markersize=7, markeredgewidth=1.8, color=shade, **more)


def joined(axes: Axes, x: Vector, means: Vector, looks: dict[str, Any]) -> None:
    """Draw means joined by a line; infinite means leave a gap, and a cross at that edge of the panel."""
    finite = np.isfinite(means)
    stretches = np.split(np.arange(len(x)), np.flatnonzero(np.diff(finite)) + 1)
    drawn = [stretch for stretch in stretches if finite[stretch[0]]]
    for stretch in drawn:
        axes.plot(x[stretch], means[stretch], **looks if stretch is drawn[-1] else looks | {"label": None})
    if not finite.all():
        at_the_edge: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False}
        cross(axes, x[~finite], np.where(means[~finite] > 0, 1.0, 0.0), looks["color"], **at_the_edge)


def is_empty(axes: Axes) -> bool:
    """Whether a panel shows no data, for example because all agents diverged at once."""
    return not np.isfinite(axes.dataLim.get_points()).all()


def metric_axis(axes: Axes, metric: Metric) -> None:
    """Set the y axis of a metric: logarithmic unless it may be 0 or negative, as rewards may."""
    if metric.positive:
        log_axis(axes)


def log_axis(axes: Axes) -> None:
    """Make the y axis logarithmic, with plain numbers as ticks; unchanged if nothing is drawn."""
    if is_empty(axes):
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = (1, 2, 3, 4, 6, 8) if high < 4 * low else (1, 2, 5) if high < 200 * low else (1,)
    subs = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if high < 2.5 * low else few
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}" if y >= 1000 else f"{y:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
