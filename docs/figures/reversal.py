"""Draw docs/images/reversal.svg: one world, looked at forward and backward. Run: make figures."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import backcast as bc

LEVELS = (6, 4, 2)
INK, MUTED, FOCUS, FORWARD, BACKWARD = "#22303c", "#b9c4cd", "#f2b134", "#0072b2", "#d55e00"


def world(seed: int = 3) -> bc.FiniteMDP:
    """A leveled random chain as in the paper: every level leads to the next, the last one ends."""
    rng = np.random.default_rng(seed)
    n, bounds = sum(LEVELS), np.cumsum((0, *LEVELS))
    transition = np.zeros((n, 1, n))
    for k in range(len(LEVELS) - 1):
        weights = rng.random((LEVELS[k], LEVELS[k + 1])) ** 2
        rows, columns = slice(bounds[k], bounds[k + 1]), slice(bounds[k + 1], bounds[k + 2])
        transition[rows, 0, columns] = weights / weights.sum(axis=1, keepdims=True)
    start = np.where(np.arange(n) < LEVELS[0], 1 / LEVELS[0], 0)
    return bc.FiniteMDP(transition, np.zeros((n, 1)), 0.9, start, np.arange(n) >= bounds[-2])


def places() -> np.ndarray:
    """Where each state is drawn, (S, 2): levels from left to right, states of a level from top to bottom."""
    return np.array([(2.7 * k, (size - 1) / 2 - i) for k, size in enumerate(LEVELS) for i in range(size)])


def draw(axes: plt.Axes, focus: int, weights: np.ndarray, arrows: np.ndarray, colour: str, caption: str) -> None:
    """One view: faint edges everywhere, and from or to the focus arrows as wide as their probability."""
    xy = places()
    for earlier, later in np.argwhere(arrows > 0):
        axes.plot(*xy[[earlier, later]].T, color=MUTED, lw=0.7, zorder=1)
    for other in np.flatnonzero(weights > 0):
        style = {"arrowstyle": "-|>,head_width=0.28,head_length=0.5", "shrinkA": 13, "shrinkB": 13}
        width = 0.8 + 7 * weights[other]
        axes.annotate("", xy=xy[other], xytext=xy[focus], arrowprops={**style, "lw": width, "color": colour}, zorder=3)
        beside = xy[other] + np.sign(xy[other, 0] - xy[focus, 0]) * np.array([0.55, 0.0])
        axes.text(*beside, f"{weights[other]:.2f}", fontsize=11, color=INK, ha="center", va="center")
    colours = [FOCUS if s == focus else colour if weights[s] > 0 else "white" for s in range(len(xy))]
    axes.scatter(*xy.T, s=330, c=colours, edgecolors=INK, linewidths=1.2, zorder=4)
    axes.set_title(caption, fontsize=14, color=INK, pad=12, loc="center")
    axes.set_axis_off()
    axes.set_aspect("equal")
    axes.margins(0.09)


def main() -> None:
    """Compute both views exactly and draw them side by side."""
    mdp = world()
    chain, back = bc.exact.chain(mdp), bc.exact.backward(mdp).states
    inner = np.where(mdp.terminal[:, None], 0.0, chain)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    focus = LEVELS[0] + 1
    draw(left, focus, inner[focus], inner, FORWARD, "Forward: what comes next?\nP(s' | s)")
    draw(right, focus, back[focus], inner, BACKWARD, "Backward: what led here?\nP←(s̃ | s)")
    for axes, colour, words in (
        (left, FORWARD, "one state is re-evaluated from its successors"),
        (right, BACKWARD, "all states that lead here are corrected at once"),
    ):
        axes.text(0.5, -0.04, words, transform=axes.transAxes, ha="center", fontsize=12, color=colour)
    target = Path(__file__).parent.parent / "images" / "reversal.svg"
    plt.rcParams["svg.hashsalt"] = target.stem
    figure.savefig(target, metadata={"Date": None})
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
