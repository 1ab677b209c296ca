"""Figures of the report, drawn with `mvcca.plotting` and encoded as PNG.

They do not use pyplot, so that no window is needed and no figure stays open.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from threadpoolctl import threadpool_limits

from mvcca.cli.comparison.case import Case
from mvcca.cli.comparison.examples import Example, Item
from mvcca.cli.comparison.run import Fitted, Settings
from mvcca.plotting import CorrelationDisplay, EmbeddingDisplay, RecallCurveDisplay
from mvcca.plotting._style import literal
from mvcca.retrieval import recall_curve

_RIGHT, _WRONG = "#1a7f5a", "#d9480f"
_DPI = 150
_FADED = 0.2  # intensity of the parts of an image outside the item's view
_MOST_POINTS = 400  # more are slow to draw and overlap


class Picture(NamedTuple):
    """Data URL of an image, and its width in CSS pixels."""

    address: str
    width: int


def correlations(outcomes: Sequence[Fitted]) -> Picture:
    """Correlation of each component on training and held-out rows, one subplot per method."""
    n_columns = min(4, len(outcomes))
    n_rows = -(-len(outcomes) // n_columns)
    figure = Figure(figsize=(2.4 * n_columns, 2.0 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for ax, outcome in zip(axes, outcomes, strict=False):  # the last row may not be full
        CorrelationDisplay.from_scores(outcome.train, scores_test=outcome.test, ax=ax)
        ax.set_title(literal(outcome.name), fontsize="small")
        ax.legend(frameon=False, fontsize="x-small", loc="best")
        ax.label_outer()
    for ax in axes[len(outcomes) :]:
        ax.set_visible(False)
    return _picture(figure)


def recall_curves(case: Case, outcomes: Sequence[Fitted], settings: Settings) -> Picture:
    """Recall@k of every method, averaged over the directions."""
    curves = {}
    for outcome in outcomes:
        by_direction = recall_curve(
            outcome.ranked,
            case.relevance_vectors,
            k=50,
            similarity=outcome.ranking.similarity,
            relevance=settings.relevance,
        )
        mean = np.mean(list(by_direction.values()), axis=0)
        curves[outcome.name] = {("any view", "any other"): mean}
    figure = Figure(figsize=(7.4, 4.2), layout="constrained")
    RecallCurveDisplay(curves).plot(figure.subplots())
    return _picture(figure)


def embedding(case: Case, outcome: Fitted, seed: int) -> Picture:
    """Two-dimensional t-SNE embedding of held-out objects."""
    few = np.random.default_rng(seed).permutation(len(case.test))[
        : _MOST_POINTS // len(case.test.names)
    ]
    labels = case.label_texts
    groups = None if labels is None else [labels[i] or "no label" for i in few]
    figure = Figure(figsize=(7.4, 5.2), layout="constrained")
    with threadpool_limits(1):  # threads do not help with so few points
        EmbeddingDisplay.from_scores(
            outcome.ranked[few], groups, method="tsne", random_state=seed, ax=figure.subplots()
        )
    return _picture(figure)


def images(case: Case, found: Sequence[Example]) -> Picture:
    """Queries in the first column, each followed by the images it retrieves."""
    n_columns = 1 + max(len(example.found) for example in found)
    figure = Figure(figsize=(0.85 * (n_columns + 0.5), 0.85 * len(found)))
    ax = figure.add_axes((0, 0, 1, 1))  # shared: axes per image would take seconds
    for line, example in enumerate(found):
        for column, item in enumerate([example.query, *example.found]):
            box = (column - 0.4, column + 0.4, line + 0.4, line - 0.4)
            ax.imshow(_image(case, item), cmap="gray_r", vmin=0, vmax=1, extent=box)
            if column:
                ax.add_patch(_frame(item, box))
        ax.text(
            -0.55, line, literal(example.query.labels), ha="right", va="center", fontsize="large"
        )
    ax.set(xlim=(-1, n_columns - 0.5), ylim=(len(found) - 0.5, -0.5))
    ax.set_axis_off()
    return _picture(figure)


def _image(case: Case, item: Item) -> np.ndarray:
    """The image of an item's object, faded outside the item's part."""
    whole = max(float(np.max(case.test[name])) for name in case.test.names)

    def part(name: str) -> np.ndarray:
        pixels = np.asarray(case.test[name][item.row]).reshape(case.image_shapes[name]) / whole
        return pixels if name == item.view else _FADED * pixels

    return np.block([[part(name) for name in line] for line in case.layout])


def _frame(item: Item, box: tuple[float, float, float, float]) -> Rectangle:
    left, right, bottom, top = box
    tone, dash = (_RIGHT, "-") if item.is_right else (_WRONG, (0, (2, 2)))
    return Rectangle(
        (left, bottom),
        right - left,
        top - bottom,
        fill=False,
        edgecolor=tone,
        linestyle=dash,
        linewidth=4 if item.is_same else 2,
    )


def _picture(figure: Figure) -> Picture:
    buffer = BytesIO()
    # Tight, since a legend beside the axes may need more space than was reserved.
    figure.savefig(buffer, format="png", dpi=_DPI, bbox_inches="tight", metadata={"Software": None})
    png = buffer.getvalue()
    width = int.from_bytes(png[16:20], "big") * 96 // _DPI  # CSS has 96 pixels to an inch
    return Picture("data:image/png;base64," + base64.b64encode(png).decode("ascii"), width)
