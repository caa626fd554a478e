"""Draw the figures of docs/reproduction.md from a directory of results. Run: make reproduce && make figures."""

import sys
from pathlib import Path

from backcast.core.files import atomic_path
from backcast.report.figures import PLOTS
from backcast.studies import results


def draw(directory: str) -> None:
    """Write one PNG for each plot of each study."""
    images = Path(__file__).parent.parent / "images"
    for result in results(directory):
        for plot in result.study.plots:
            with atomic_path(images / f"{result.name}-{plot}.png") as part:
                PLOTS[plot](result).savefig(part, format="png", dpi=90)
            print(f"wrote {images / f'{result.name}-{plot}.png'} ({result.seeds} seeds)")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "results")
