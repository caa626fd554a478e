"""The medium of figures: a page as wide as a screen or, within `for_print`, a column of a paper."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

COLUMN = 3.25  # inches, of a paper with two columns; one of NeurIPS is 5.5 wide
ONE_COLUMN = 4.5  # inches; wider columns are alone on the page
NARROWEST, WIDEST = 2.0, 10.0
GAP = 0.25  # inches between two columns
PRINT = 0.7  # scale of type and lines in a paper, relative to the page
STACKED = 3  # most panels that are stacked in a column


@dataclass(frozen=True)
class Medium:
    """The medium of a figure.

    Attributes:
        column: the width of a column in inches; None: a page of the default width.
    """

    column: float | None = None

    @property
    def scale(self) -> float:
        """The size of type and lines, 1 on a page."""
        return 1.0 if self.column is None else PRINT

    @property
    def names_ends(self) -> bool:
        """Whether there is room to name curves where they end, and for pictures of worlds."""
        return self.column is None

    def across(self, panels: int, most: int) -> int:
        """How many panels are side by side, at most as many as a page has."""
        return 1 if self.column is not None and panels <= STACKED else min(most, panels)

    def size(self, columns: int, width: float, height: float) -> tuple[float, float]:
        """The size in inches of a figure with a number of columns of panels, from its size on a page."""
        if self.column is None:
            return width, height
        both = self.column if self.column > ONE_COLUMN else 2 * self.column + GAP
        return (self.column if columns == 1 else both), PRINT * height

    def key_columns(self, width: float, columns: int) -> int:
        """The columns of a key below or above a figure of this width, of as many as a page would have."""
        return columns if self.column is None else max(1, min(columns, int(width / (2.6 * PRINT))))

    def spans(self, figure: Figure) -> bool:
        """Whether a figure is wider than a column."""
        return self.column is not None and bool(figure.get_figwidth() > self.column)

    def thin(self, figure: Figure) -> None:
        """Make lines and markers as small as the type is."""
        for line in figure.findobj(Line2D):
            line.set(linewidth=self.scale * line.get_linewidth(), markersize=self.scale * line.get_markersize())
        for lines in figure.findobj(LineCollection):
            lines.set_linewidth((self.scale * np.asarray(lines.get_linewidth())).tolist())


_PAGE = Medium()
_medium: ContextVar[Medium] = ContextVar("medium", default=_PAGE)


def medium() -> Medium:
    """The medium that figures are drawn for."""
    return _medium.get()


@contextmanager
def for_print(column: float = COLUMN) -> Iterator[Medium]:
    """Within the context, draw figures for a paper whose columns are `width` inches wide."""
    token = _medium.set(Medium(column))
    try:
        yield medium()
    finally:
        _medium.reset(token)
