"""The HTML page of a study, and its figures."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mvcca.machine.axes import GREY, color, tidy_axes
from mvcca.machine.pages import Picture, template

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mvcca.inspection.study._result import Study

_MOST_LOADINGS = 20  # of a view, in its figure


class Illustration(NamedTuple):
    """A figure of the page."""

    title: str
    picture: Picture
    caption: str


def study_page(study: Study, command: str = "") -> str:
    """The page of a study, with figures if matplotlib is installed."""
    first, second = study.variables
    return template("mvcca.inspection.study", "study.html").render(
        title=f"Is {first} correlated with {second}?",
        study=study,
        table=study.table(),
        loadings=list(study.sorted_loadings()),
        illustrations=list(_illustrations(study)) if find_spec("matplotlib") else [],
        facts=list(_facts(command)),
    )


def draw_correlations(study: Study, ax: Axes | None = None) -> Axes:
    """Correlations of each component in these rows, by chance, in the population and held out."""
    ax = tidy_axes(ax, grid="y")
    found, place = study.intervals, np.arange(1, len(study.held_out) + 1)
    ax.fill_between(place, 0, study.chance, color=GREY, alpha=0.25, label="95 % of shuffled pairs")
    lengths = np.maximum([found.estimate - found.low, found.high - found.estimate], 0)
    label = f"population, {found.level:.0%} interval"
    ax.errorbar(place, found.estimate, lengths, fmt="o", capsize=3, color=color(0), label=label)
    ax.plot(place, study.in_sample, "-", color=color(1), label="these rows")
    ax.plot(place, study.held_out, "x", color=color(2), label="held-out rows")
    ax.set(xlabel="Component", ylabel="Correlation", ylim=(min(0, study.held_out.min()), 1))
    ax.set_xticks(place)
    ax.legend(frameon=False)
    return ax


def draw_loadings(study: Study, view: str, ax: Axes | None = None) -> Axes:
    """The largest loadings of a view on component 1, as bars."""
    ax = tidy_axes(ax, grid="x")
    lines = [line for line in study.sorted_loadings() if line[0] == view][:_MOST_LOADINGS]
    place = np.arange(len(lines))[::-1]
    own, low, high, cross = np.array([line[2:] for line in lines]).T
    ax.barh(place, own, color=color(0), height=0.6, label="loading")
    if study.intervals.estimate[0]:
        label = f"{study.intervals.level:.0%} interval"
        ax.hlines(place, low, high, color=GREY, label=label)
    ax.plot(cross, place, "o", color=color(1), label="cross-loading")
    ax.set_yticks(place, [line[1].replace("$", r"\$") for line in lines])
    ax.set(xlabel=f"Loading of {view}, component 1".replace("$", r"\$"), xlim=(-1, 1))
    ax.legend(frameon=False)
    return ax


def _illustrations(study: Study) -> Iterator[Illustration]:
    from matplotlib.figure import Figure

    def drawn(draw: Any, height: float) -> Picture:
        figure = Figure(figsize=(7.4, height), layout="constrained")
        draw(figure.subplots())
        return Picture.of(figure)

    yield Illustration(
        "Correlations",
        drawn(lambda ax: draw_correlations(study, ax), 4.2),
        "A component is real if its correlation in these rows lies above those of shuffled pairs. "
        "Correlations of these rows are too large; the interval is of the population.",
    )
    for view, names in study.variables.items():
        height = 1.2 + 0.26 * min(len(names), _MOST_LOADINGS)
        yield Illustration(
            f"Loadings of {view}",
            drawn(lambda ax, view=view: draw_loadings(study, view, ax), height),
            "Correlations between the variables and the variate of their own view (bars) or of the "
            "other view (circles). Do not interpret a component that is not significant.",
        )


def _facts(command: str) -> Iterator[tuple[str, str]]:
    """Names and values of settings."""
    if command:
        yield "command", command
    libraries = ", ".join(f"{name} {version(name)}" for name in ("mvcca", "numpy", "scikit-learn"))
    yield "versions", f"Python {platform.python_version()}, {libraries}"
    yield "date", datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
