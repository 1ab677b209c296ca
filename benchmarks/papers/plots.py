"""Plots of the figures, from what records keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Draw = Callable[[Any, Any], None]  # on Axes, from what a figure shows


def save(draw: Draw, shown: Any, title: str, path: Path) -> None:
    """Draw a figure into an SVG file, the same bytes for the same records."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "mvcca", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        ax = figure.subplots()
        draw(ax, shown)
        ax.set_title(title, fontsize="medium")
        figure.savefig(path, metadata={"Date": None})


def lines(ax: Any, curves: Mapping[str, Sequence[float]], x: str, y: str) -> None:
    """A line per curve, over 1, 2, ..."""
    from mvcca.plotting.style import color, tidy_axes

    for number, (name, values) in enumerate(curves.items()):
        ax.plot(np.arange(len(values)) + 1, values, color=color(number), label=name)
    ax.set(xlabel=x, ylabel=y)
    ax.figure.legend(loc="outside lower center", ncols=2, frameon=False)
    tidy_axes(ax)


def fan(ax: Any, curves: np.ndarray, named: Mapping[str, int], x: str, y: str) -> None:
    """All curves in grey, (n_curves, n), and some of them, by their numbers, in colours."""
    from mvcca.plotting.style import FAINT

    ax.plot(np.arange(curves.shape[1]) + 1, curves.T, color=FAINT, linewidth=0.8)
    lines(ax, {name: curves[place] for name, place in named.items()}, x, y)


def heat(
    ax: Any, matrix: np.ndarray, rows: Sequence[str], columns: Sequence[str], x: str, y: str
) -> None:
    """Cells with their values."""
    from mvcca.plotting.style import SEQUENTIAL

    image = ax.imshow(matrix, cmap=SEQUENTIAL, aspect="auto")
    middle = (np.nanmin(matrix) + np.nanmax(matrix)) / 2
    for i, j in np.ndindex(*matrix.shape):
        if np.isfinite(matrix[i, j]):
            tone = "black" if matrix[i, j] > middle else "white"
            text = f"{matrix[i, j]:.2f}" if matrix.size > 50 else f"{matrix[i, j]:.3f}"
            ax.text(j, i, text, ha="center", va="center", color=tone, fontsize="x-small")
    ax.set(xlabel=x, ylabel=y)
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.figure.colorbar(image, ax=ax)


def spans(ax: Any, quantiles: Mapping[str, Sequence[float]], x: str) -> None:
    """Median, and spans of pairs of quantiles around it, a row per name."""
    from mvcca.plotting.style import color, tidy_axes

    for row, values in enumerate(quantiles.values()):
        middle = len(values) // 2
        for k in range(middle):
            ax.plot([values[k], values[-1 - k]], [row, row], color=color(0), linewidth=1 + 3 * k)
        ax.plot(values[middle], row, "o", color="white", markeredgecolor=color(0))
    ax.set_yticks(range(len(quantiles)), quantiles)
    ax.set(xlabel=x, ylim=(len(quantiles) - 0.5, -0.5))
    tidy_axes(ax, grid="x")
