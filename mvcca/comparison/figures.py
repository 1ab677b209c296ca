"""Figures of results, drawn with `mvcca.plotting`; those of the report are small and untitled.

The report shows one picture per method, as many beside each other as the page is wide. Their
legends and titles are text of the page. It does not use pyplot, so that no window is needed and no
figure stays open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression
from threadpoolctl import threadpool_limits

from mvcca.comparison.examples import Item
from mvcca.comparison.fits import CURVE_LENGTH, Measured, by_chance
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import pretty
from mvcca.machine.pictures import Picture, pixels_of
from mvcca.model_selection import Choice
from mvcca.plotting import CorrelationDisplay, EmbeddingDisplay, RecallCurveDisplay
from mvcca.plotting.style import GREY, color, literal, tidy_axes
from mvcca.retrieval import Measure

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))  # beside the colours
_PANEL = (2.0, 1.6)  # inches of one method's picture
_LABEL_HEIGHT = 0.06  # of a number, as a share of the height of the axes
_FEW_TICKS = 5  # labels of more ticks are slanted
_FADED = 0.2  # intensity of the parts of an image outside the item's view
MOST_POINTS = 400  # more are slow to draw and overlap


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


def correlations(result: Measurements) -> list[Picture]:
    """Correlation of each component on training and held-out rows, one picture per method."""
    found = {name: result.fits(name)[0] for name in result.successes}
    drawn = [values for one in found.values() for values in _drawn(one).values()]
    pairs = [values for of_pairs in drawn for values in of_pairs.values()]
    if not pairs:
        return []
    limits = max(map(len, pairs)), min(0.0, *(float(values.min()) for values in pairs))
    return [
        Picture.of(partial(draw_correlations, one, limits=limits), *_PANEL, name)
        for name, one in found.items()
        if _drawn(one)
    ]


def draw_correlations(found: Measured, ax: Any, limits: tuple[int, float]) -> None:
    """Draw the correlations of one fit, on axes for so many components and so low correlations."""
    longest, lowest = limits
    display = CorrelationDisplay(_drawn(found)).plot(ax)
    for name, line in display.line_.items():
        line.set(label=name, markersize=3)
    ax.set(xlim=(0.5, longest + 0.5), ylim=(1.1 * lowest, 1.02))
    ax.legend()


def _drawn(found: Measured) -> dict[str, Any]:
    """Correlations of training and held-out rows, as far as there are any."""
    parts = {"training": found.train_correlations, "held-out": found.test_correlations}
    return {name: values for name, values in parts.items() if values is not None}


def tuning(result: Measurements) -> list[Picture]:
    """Values of the searched settings on the folds, by method."""
    choices = {name: result.choice(name) for name in result.successes}
    tuned = {name: choice for name, choice in choices.items() if choice is not None}
    rankings = dict.fromkeys(
        params["ranking"] for choice in tuned.values() for params in choice.cv_results["params"]
    )
    tones = {ranking: color(number) for number, ranking in enumerate(rankings)}
    return [
        Picture.of(
            partial(_draw_choice, choice, tones),
            *_PANEL,
            name,
            f"{', '.join(choice.at_edge)} at an edge" if choice.at_edge else "",
        )
        for name, choice in tuned.items()
    ]


def _draw_choice(choice: Choice, tones: Mapping[str, str], ax: Any) -> None:
    """The best value at each value of one searched parameter, by ranking."""
    name, x_of = _axis(choice)
    best: dict[str, dict[float, float]] = {}
    means = choice.cv_results["mean_test_score"]
    for params, value in zip(choice.cv_results["params"], means, strict=True):
        line = best.setdefault(params["ranking"], {})
        x = x_of[params[name]]
        line[x] = max(line.get(x, -np.inf), value)
    for ranking, tone in tones.items():  # all of them, so that the panels have one legend
        line = best.get(ranking, {})
        xs = sorted(line)
        ax.plot(xs, [line[x] for x in xs], ".-", color=tone, label=ranking, linewidth=1)
    chosen = choice.params.get(name, choice.n_components)
    ring = {"color": "black", "fillstyle": "none", "markersize": 9, "linestyle": ""}
    ax.plot(x_of[chosen], choice.value, "o", label="chosen", **ring)
    if name == "reg" and list(x_of) == list(x_of.values()):
        ax.set_xscale("log")
    else:
        ax.set_xticks(list(x_of.values()), [_tick(value) for value in x_of])
        ax.tick_params("x", rotation=60 if len(x_of) > _FEW_TICKS else 0)
    ax.set_xlabel("ridge" if name == "reg" else literal(name))
    ax.legend()
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
    return Picture.of(lambda ax: draw_recall(result, ax), 4.1, 3.1)


def draw_recall(result: Measurements, ax: Any) -> None:
    """Draw one line per distinct curve and the recall of random scores, numbered at their ends.

    The legend names them by their numbers, from the highest end to the lowest.
    """
    curves: dict[str, np.ndarray] = {}
    for name in result.successes:
        of_folds = [one.curves for one in result.fits(name)]
        curves[name] = np.mean(of_folds, axis=(0, 1))
    merged = _merged(curves)
    RecallCurveDisplay({name: {("", ""): curve} for name, curve in merged.items()}).plot(ax)
    recalls = [f"r@{k}" for k in range(1, CURVE_LENGTH + 1)]
    tables = [by_chance(result.data, fold, result.settings, recalls) for fold in result.folds]
    chance = np.mean([list(table.mean().values()) for table in tables], axis=0)
    names = [*merged, "random scores"]
    for number, line in enumerate(ax.lines):
        line.set_linestyle(_DASHES[number % len(_DASHES)])
    ax.plot(np.arange(1, len(chance) + 1), chance, ":", color=GREY, linewidth=1.6)
    ends = [line.get_ydata()[-1] for line in ax.lines]
    order = np.argsort([-end for end in ends], kind="stable")
    for place, line in enumerate(order, start=1):
        ax.lines[line].set_label(f"{place}  {literal(names[line])}")
    _number_ends(ax, [ax.lines[line] for line in order])
    ax.legend(handles=[ax.lines[line] for line in order])


def _merged(curves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Distinct curves, named by all methods that share them."""
    groups: dict[bytes, list[str]] = {}
    for name, curve in curves.items():
        groups.setdefault(np.round(curve, 9).tobytes(), []).append(name)
    return {", ".join(names): curves[names[0]] for names in groups.values()}


def _number_ends(ax: Any, lines: Sequence[Any]) -> None:
    """Number lines at their ends, to the right of the axes, from the highest to the lowest.

    Where they would overlap they move apart, as little as that takes, but never out of the axes.
    """
    low, high = ax.get_ylim()
    wanted = [(line.get_ydata()[-1] - low) / (high - low) for line in lines]
    for place, (line, height) in enumerate(zip(lines, spread(wanted), strict=True), start=1):
        ax.annotate(
            str(place),
            (ax.get_xlim()[1], line.get_ydata()[-1]),
            xytext=(1.06, height),
            textcoords="axes fraction",
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": line.get_color(), "linewidth": 1.0},
        )


def spread(wanted: Sequence[float], gap: float = _LABEL_HEIGHT) -> np.ndarray:
    """Heights of labels within 0 and 1, at least `gap` apart, and near to those wanted.

    Those wanted are in decreasing order. Too many labels are equally far apart.
    """
    gap = min(gap, 1 / len(wanted))
    steps = gap * np.arange(len(wanted))
    # Heights plus steps may be equal, but not increase: isotonic regression.
    fitted = IsotonicRegression(increasing=False).fit_transform(steps, np.array(wanted) + steps)
    return np.clip(fitted, steps[-1] + gap / 2, 1 - gap / 2) - steps


def embedding(result: Measurements) -> Picture:
    """Two-dimensional t-SNE embedding of held-out objects."""
    shown, objects = result.fits(result.best)[0].shown, result.folds[0].test
    seed = result.settings.random_state
    assert shown is not None
    rows = shown.in_one_space
    few = np.random.default_rng(seed).permutation(len(objects))[: MOST_POINTS // len(rows.names)]
    labels = result.data.label_texts
    groups = None if labels is None else [labels[i] or "no label" for i in objects[few]]

    def draw(ax: Any) -> None:
        EmbeddingDisplay.from_scores(
            rows[few], groups, method="tsne", random_state=seed, ax=ax, s=14, alpha=1.0
        )

    with threadpool_limits(1):  # threads do not help with so few points
        return Picture.of(draw, 4.1, 3.4)


def image(result: Measurements, item: Item) -> str:
    """The image of an item's object, faded outside the item's part, as a data URL."""
    views, shown = result.data.views, result.presentation
    place = views.objects(item.view)[item.row]
    whole = max(float(np.max(views[name])) for name in views.names)

    def part(name: str) -> np.ndarray:
        row = np.searchsorted(views.objects(name), place)
        pixels = np.asarray(views[name][row]).reshape(shown.image_shapes[name]) / whole
        return pixels if name == item.view else _FADED * pixels

    return pixels_of(np.block([[part(name) for name in line] for line in shown.layout]))
