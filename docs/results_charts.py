"""Charts of the results page, drawn from the tables in ``benchmarks/RESULTS.md`` at build time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mvcca.plotting.style import GREY, color, marker, tidy_axes

ROOT = Path(__file__).parents[1]
Table = list[dict[str, str]]


def read_table(text: str, heading: str, columns: Sequence[str]) -> Table:
    """Rows of the first table below a heading that has the columns, by the table's header."""
    below = text.split(f"\n## {heading}\n", 1)
    if len(below) != 2:
        raise ValueError(f"No heading {heading!r} in the results.")
    section = below[1].split("\n## ", 1)[0]
    for lines in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        header, _, *rows = [
            [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            for line in lines.strip().split("\n")
        ]
        header = [name.strip("*") for name in header]
        if set(columns) <= set(header):
            return [dict(zip(header, row, strict=True)) for row in rows]
    raise ValueError(f"No table with the columns {list(columns)} below {heading!r}.")


def number(cell: str) -> tuple[float, float]:
    """Value and deviation of a cell such as ".301 ± .009"; NaN if it has none."""
    found = re.match(r"(\d*\.?\d+)(?: ± (\d*\.?\d+))?", cell.strip("* "))
    if found is None:
        return np.nan, np.nan
    return float(found[1]), float(found[2] or "nan")


def draw_dots(
    rows: Table, names: Sequence[str], columns: Sequence[str], label: str, path: Path
) -> None:
    """A line per row of a table, with a dot and its deviation for each of some columns."""
    figure = Figure(figsize=(7.4, 0.3 * len(rows) + 1.2), layout="constrained")
    ax = tidy_axes(figure.subplots(), grid="x")
    place = np.arange(len(rows))[::-1]
    for i, column in enumerate(columns):
        values, deviations = np.array([number(row[column]) for row in rows]).T
        shift = 0.12 * (len(columns) / 2 - i - 0.5)  # deviations do not cover each other
        ax.errorbar(
            values,
            place + shift,
            xerr=np.nan_to_num(deviations),
            fmt=marker(i),
            color=color(i) if column != columns[0] else GREY,
            markersize=6,
            linewidth=1,
            label=column,
        )
    ax.set_yticks(place, names)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(label)
    figure.legend(loc="outside upper center", ncols=len(columns), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def draw_charts(folder: Path) -> None:
    """Draw all charts of the results page."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")

    columns = ["cosine", "likelihood", "profile-likelihood (default)"]
    rows = read_table(text, "Rankings by expected correlations", columns)
    names = [f"{row['data']}, {row['measure']}" for row in rows]
    draw_dots(rows, names, columns, "R@1 or mAP on test rows", folder / "rankings.png")

    columns = ["cosine", "profile-likelihood", "profile-likelihood, CSLS"]
    rows = read_table(text, "Hubs, and probabilities of matches", columns)
    names = [row["data"] for row in rows]
    draw_dots(rows, names, columns, "R@1 on test rows", folder / "hubs.png")

    columns = ["200 pairs", "1,000 pairs", "10,000 pairs"]
    rows = read_table(text, "Alignment of frozen text encoders", ["encoders", "method", *columns])
    encoders = ""
    for row in rows:  # written once for several rows
        encoders = row["encoders"] or encoders
        row["name"] = f"{encoders}: {row['method']}"
    rows = [row for row in rows if row["method"] == "default" or row["method"].endswith("CSLS")]
    draw_dots(rows, [r["name"] for r in rows], columns, "R@1 on test rows", folder / "aligned.png")
