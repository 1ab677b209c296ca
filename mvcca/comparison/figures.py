"""Figures of results, drawn with `mvcca.plotting`; those of the report are small and untitled.

The report shows one picture per method, as many beside each other as the page is wide. Their
legends and titles are text of the page. It does not use pyplot, so that no window is needed and no
figure stays open.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mvcca.comparison.examples import Item, Shown
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import pretty
from mvcca.machine.pictures import Picture, pixels_of
from mvcca.model_selection import Choice
from mvcca.model_selection.goals import Goal
from mvcca.plotting import EmbeddingDisplay, RecallCurveDisplay
from mvcca.plotting.style import GREY, color, literal, tidy_axes

_DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))  # beside the colours
_PANEL = (2.0, 1.6)  # inches of one method's picture
_FEW_TICKS = 5  # labels of more ticks are slanted
_FADED = 0.2  # intensity of the parts of an image outside the item's view
_LENGTH = 50  # of the recall curve
MOST_POINTS = 400  # more are slow to draw and overlap


def intervals(result: Measurements, what: str, ax: Any) -> Any:
    """A goal or a measure of each method with its interval, best at the top."""
    from matplotlib import pyplot as plt

    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    is_measure = what not in result.goals or result.by_measure
    names = result.ranked_for(what)[::-1]
    for place, name in enumerate(names):
        own = result.standing(name, what)
        mean = abs(own.value) if is_measure else own.shown()
        marked = not result.is_worse(name, what)
        tone = color(0) if marked else GREY
        ax.plot([mean - own.reach, mean + own.reach], [place, place], color=tone, linewidth=2)
        ax.plot(mean, place, "o" if marked else "D", color=tone)
    ax.set_yticks(range(len(names)), [literal(name) for name in names])
    size = result.standing(names[0], what).gallery
    if is_measure:
        label = pretty(what if what in result.measures else result.measures[0])
        ax.axvline(result.chance_level(what), color=GREY, linestyle=":", linewidth=1)
    else:
        label = "R@1" if what == "object" else "mAP@50"
        size = size if what == "object" else result.gallery_size
        chance = result.chance_of_goals["class"] if what == "class" else own.chance()
        ax.axvline(chance, color=GREY, linestyle=":", linewidth=1)
    ax.set_xlabel(f"{label} of {size:,}; dotted: chance")
    tidy_axes(ax)
    return ax


def tuning(result: Measurements, goal: Goal) -> list[Picture]:
    """Values of the searched settings on the folds for a goal, by method."""
    choices = {name: result.choice(name, goal) for name in result.ranked_for(goal)}
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
    """Draw one line per distinct curve and the recall of random scores.

    The legend names them from the highest end to the lowest.
    """
    found = {name: result.standing(name, "object") for name in result.ranked_for("object")}
    merged = _merged({name: own.recall_curve(_LENGTH) for name, own in found.items()})
    RecallCurveDisplay({name: {("", ""): curve} for name, curve in merged.items()}).plot(ax)
    first, places = next(iter(found.values())), np.arange(1, _LENGTH + 1)
    sizes = np.concatenate([first.galleries[n] for n in first.of_folds])
    chance = np.minimum(places[:, None] / sizes, 1).mean(axis=1)
    for number, line in enumerate(ax.lines):
        line.set_linestyle(_DASHES[number % len(_DASHES)])
    ax.plot(places, chance, ":", color=GREY, linewidth=1.6)
    names = [*merged, "random scores"]
    for line, name in zip(ax.lines, names, strict=True):
        line.set_label(literal(name))
    order = sorted(ax.lines, key=lambda line: -line.get_ydata()[-1])
    ax.legend(handles=order)


def _merged(curves: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Distinct curves, named by all methods that share them."""
    groups: dict[bytes, list[str]] = {}
    for name, curve in curves.items():
        groups.setdefault(np.round(curve, 9).tobytes(), []).append(name)
    return {", ".join(names): curves[names[0]] for names in groups.values()}


def embedding(result: Measurements, shown: Shown) -> Picture:
    """Two-dimensional t-SNE embedding of held-out objects."""
    objects, seed = result.folds[0].test, result.settings.random_state
    rows = shown.in_one_space
    few = np.random.default_rng(seed).permutation(len(objects))[: MOST_POINTS // len(rows.names)]
    labels = result.data.label_texts
    groups = None if labels is None else [labels[i] or "no label" for i in objects[few]]

    def draw(ax: Any) -> None:
        display = EmbeddingDisplay(rows[few], groups, method="tsne", random_state=seed)
        display.plot(ax, s=14, alpha=1.0)

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
