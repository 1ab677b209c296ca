"""Figures of results, drawn with `mvcca.plotting`; those of the report are encoded as PNG.

The report does not use pyplot, so that no window is needed and no figure stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from threadpoolctl import threadpool_limits

from mvcca.comparison.examples import Example, Item
from mvcca.comparison.fits import CURVE_LENGTH, by_chance
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import pretty
from mvcca.machine.pages import Picture
from mvcca.model_selection import Choice
from mvcca.plotting import (
    CorrelationDisplay,
    EmbeddingDisplay,
    RecallCurveDisplay,
    RetrievedDisplay,
)
from mvcca.plotting.style import GREY, color, literal, tidy_axes
from mvcca.retrieval import Measure

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))  # beside the colours
_LINE_HEIGHT = 0.055  # of a label, as a share of the height of the axes
_LABEL_WIDTH = 28  # characters
_FADED = 0.2  # intensity of the parts of an image outside the item's view
_MOST_POINTS = 400  # more are slow to draw and overlap


def intervals(result: Measurements, measure: str, ax: Any) -> Any:
    """Mean of a measure for each method with its confidence interval, best at the top."""
    from matplotlib import pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    sign = -1 if Measure.parse(measure).smaller_is_better else 1
    names = sorted(result.successes, key=lambda name: sign * result.mean(name, measure))
    compared = result.against_best(measure)
    for place, name in enumerate(names):
        low, high = result.interval(name, measure)
        marked = compared[name].decision != "worse"
        tone = color(0) if marked else GREY
        ax.plot([low, high], [place, place], color=tone, linewidth=2)
        ax.plot(result.mean(name, measure), place, "o" if marked else "D", color=tone)
    ax.axvline(result.chance_level(measure), color=GREY, linestyle=":", linewidth=1)
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    ax.set_xlabel(f"{pretty(measure)}, 95 % interval; dotted: chance")
    tidy_axes(ax)
    return ax


def correlations(result: Measurements) -> Picture:
    """Correlation of each component on training and held-out rows, one subplot per method."""
    return Picture.of(draw_correlations(result))


def draw_correlations(result: Measurements) -> Figure:
    """Draw subplots with common axes, which hold all components of all methods."""
    names = result.successes
    n_columns = min(4, len(names))
    n_rows = -(-len(names) // n_columns)
    figure = Figure(figsize=(2.4 * n_columns, 2.0 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, name in zip(axes, names, strict=False):  # the last row may not be full
        found = result.fits(name)[0]
        parts = {"training": found.train_correlations, "held-out": found.test_correlations}
        CorrelationDisplay({k: v for k, v in parts.items() if v is not None}).plot(ax)
        ax.set_title(literal(name), fontsize="small")
        ax.legend(frameon=False, fontsize="x-small", loc="best")
        ax.label_outer()
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    return figure


def tuning(result: Measurements) -> Picture:
    """Values of the searched settings on the inner folds of the first fold, by method."""
    return Picture.of(draw_tuning(result))


def draw_tuning(result: Measurements) -> Figure:
    """Draw one subplot per tuned method: the best value at each ridge, a line for each ranking."""
    choices = {name: result.fits(name)[0].choice for name in result.successes}
    tuned = {name: choice for name, choice in choices.items() if choice is not None}
    n_columns = min(3, len(tuned))
    n_rows = -(-len(tuned) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns, 2.5 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, (name, choice) in zip(axes, tuned.items(), strict=False):
        _draw_choice(ax, choice)
        edge = f" ({', '.join(choice.at_edge)} at an edge)" if choice.at_edge else ""
        ax.set_title(fill(literal(f"{name}{edge}"), _LABEL_WIDTH), fontsize="small")
    for ax in axes[len(tuned) :]:
        ax.set_visible(False)
    return figure


def _draw_choice(ax: Any, choice: Choice) -> None:
    """The best value at each value of one searched parameter, by ranking."""
    name, x_of = _axis(choice)
    best: dict[str, dict[float, float]] = {}
    means = choice.cv_results["mean_test_score"]
    for params, value in zip(choice.cv_results["params"], means, strict=True):
        line = best.setdefault(params["ranking"], {})
        x = x_of[params[name]]
        line[x] = max(line.get(x, -np.inf), value)
    for number, (ranking, line) in enumerate(best.items()):
        xs = sorted(line)
        ax.plot(xs, [line[x] for x in xs], ".-", color=color(number), linewidth=1, label=ranking)
    chosen = choice.params.get(name, choice.n_components)
    ax.plot(x_of[chosen], choice.value, "o", color="black", fillstyle="none", markersize=9)
    if name == "reg" and list(x_of) == list(x_of.values()):
        ax.set_xscale("log")
    else:
        ax.set_xticks(list(x_of.values()), [_tick(value) for value in x_of])
        ax.tick_params("x", labelsize="x-small", rotation=60)
    ax.set_xlabel("ridge" if name == "reg" else literal(name), fontsize="small")
    ax.legend(frameon=False, fontsize="xx-small", loc="best")
    tidy_axes(ax)


def _axis(choice: Choice) -> tuple[str, dict[Any, float]]:
    """The ridge, or else the first searched parameter, and the place of each of its values."""
    tried = {name: _distinct(choice, name) for name in [*choice.params, "n_components"]}
    name = next((n for n in ("reg", *tried) if len(tried.get(n, ())) > 1), "n_components")
    values = tried[name]
    if name == "reg" and all(isinstance(value, int | float) and value > 0 for value in values):
        return name, {value: float(value) for value in values}
    return name, {value: float(place) for place, value in enumerate(values)}


def _distinct(choice: Choice, name: str) -> list[Any]:
    """Values that were tried: numbers in order, then others as they came, and None for all."""
    values = list(dict.fromkeys(params[name] for params in choice.cv_results["params"]))
    numbers = sorted(value for value in values if isinstance(value, int | float))
    return [*numbers, *(value for value in values if value not in numbers)]


def _tick(value: Any) -> str:
    return "all" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def recall(result: Measurements) -> Picture:
    """Recall@k of every method, averaged over folds and directions."""
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    draw_recall(result, figure.subplots())
    return Picture.of(figure)


def draw_recall(result: Measurements, ax: Any) -> Any:
    """Draw one line per distinct curve, labelled at its end, and the recall of random scores."""
    curves: dict[str, np.ndarray] = {}
    for name in result.successes:
        of_folds = [one.curves for one in result.fits(name)]
        curves[name] = np.mean(of_folds, axis=(0, 1))
    merged = _merged(curves)
    RecallCurveDisplay({name: {("", ""): curve} for name, curve in merged.items()}).plot(ax)
    ax.get_legend().remove()
    labels = []
    for number, (line, name) in enumerate(zip(ax.lines, merged, strict=True)):
        line.set_linestyle(_DASHES[number % len(_DASHES)])
        labels.append((merged[name][-1], name, line.get_color()))
    recalls = [f"r@{k}" for k in range(1, CURVE_LENGTH + 1)]
    tables = [by_chance(result.data, fold, result.settings, recalls) for fold in result.folds]
    chance = np.mean([list(table.mean().values()) for table in tables], axis=0)
    ax.plot(np.arange(1, len(chance) + 1), chance, ":", color=GREY, linewidth=1.6)
    _label_ends(ax, [*labels, (chance[-1], "random scores", GREY)])
    return ax


def _merged(curves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Distinct curves, named by all methods that share them."""
    groups: dict[bytes, list[str]] = {}
    for name, curve in curves.items():
        groups.setdefault(np.round(curve, 9).tobytes(), []).append(name)
    return {", ".join(names): curves[names[0]] for names in groups.values()}


def _label_ends(ax: Any, labels: Sequence[tuple[float, str, str]]) -> None:
    """Write names to the right of the axes at the heights of their lines, or above one another."""
    low, high = ax.get_ylim()
    free = -np.inf  # height from which there is space
    for value, name, tone in sorted(labels):
        text = fill(name, _LABEL_WIDTH)
        height = _LINE_HEIGHT * (1 + text.count("\n"))
        middle = max((value - low) / (high - low), free + height / 2)
        free = middle + height / 2
        ax.annotate(
            literal(text),
            (ax.get_xlim()[1], value),
            xytext=(1.04, middle),
            textcoords="axes fraction",
            va="center",
            fontsize="small",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": tone, "linewidth": 1.2},
        )


def embedding(result: Measurements) -> Picture:
    """Two-dimensional t-SNE embedding of held-out objects."""
    shown, objects = result.fits(result.best)[0].shown, result.folds[0].test
    seed = result.settings.random_state
    assert shown is not None
    rows = shown.in_one_space
    few = np.random.default_rng(seed).permutation(len(objects))[: _MOST_POINTS // len(rows.names)]
    labels = result.data.label_texts
    groups = None if labels is None else [labels[i] or "no label" for i in objects[few]]
    figure = Figure(figsize=(7.4, 5.2), layout="constrained")
    with threadpool_limits(1):  # threads do not help with so few points
        EmbeddingDisplay.from_scores(
            rows[few], groups, method="tsne", random_state=seed, ax=figure.subplots()
        )
    return Picture.of(figure)


def images(result: Measurements, found: Sequence[Example]) -> Picture:
    """Queries in the first column, each followed by the images it retrieves."""
    n_columns = 1 + len(found[0].found)
    figure = Figure(figsize=(0.85 * (n_columns + 0.5), 0.85 * len(found)))
    display = RetrievedDisplay(
        [_image(result, example.query) for example in found],
        [[_image(result, item) for item in example.found] for example in found],
        np.array([[item.is_right for item in example.found] for example in found]),
    ).plot(figure.add_axes((0, 0, 1, 1)), vmin=0, vmax=1)
    items = [item for example in found for item in example.found]
    for frame, item in zip(display.frame_, items, strict=True):
        frame.set_linewidth(4 if item.is_same else 2)
    for line, example in enumerate(found):
        label = literal(example.query.labels)
        display.ax_.text(-0.1, line, label, ha="right", va="center", fontsize="large")
    return Picture.of(figure)


def _image(result: Measurements, item: Item) -> np.ndarray:
    """The image of an item's object, faded outside the item's part."""
    views, shown = result.data.views, result.presentation
    place = views.objects(item.view)[item.row]
    whole = max(float(np.max(views[name])) for name in views.names)

    def part(name: str) -> np.ndarray:
        row = np.searchsorted(views.objects(name), place)
        pixels = np.asarray(views[name][row]).reshape(shown.image_shapes[name]) / whole
        return pixels if name == item.view else _FADED * pixels

    return np.block([[part(name) for name in line] for line in shown.layout])
