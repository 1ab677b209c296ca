"""Names beside points, which do not overlap. Imported when drawing: it needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text

from mvcca.plotting.style import GREY, literal

_TURNS = np.deg2rad([0, 22, -22, 45, -45, 68, -68, 90, -90, 112, -112, 135, -135, 158, -158, 180])
_RADII = (7, 16, 26, 38, 52, 68, 86, 106, 130, 160)  # points
_NEAR = 20  # points; labels further away than this have a line to their point


def annotate_points(ax: Axes, points: np.ndarray, names: Sequence[str]) -> list[Annotation]:
    """Annotate points, away from the origin; labels are moved apart whenever the axes are drawn."""
    texts = [
        ax.annotate(
            literal(name),
            point,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize="small",
            annotation_clip=False,
            path_effects=[withStroke(linewidth=2, foreground="white")],
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "visible": False},
        )
        for name, point in zip(names, points, strict=True)
    ]

    for text in texts:
        text.set_in_layout(False)
    mover = _Mover(texts)
    mover.set(zorder=-np.inf, in_layout=False)
    ax.add_artist(mover)
    return texts


class _Mover(Artist):
    """Draws nothing. When it is drawn, the layout is known and the labels are not drawn yet."""

    def __init__(self, texts: list[Annotation]) -> None:
        super().__init__()
        self.texts = texts

    def draw(self, renderer: Any) -> None:
        """Move the labels."""
        _move_apart(self.texts, renderer)


def _move_apart(texts: list[Annotation], renderer: Any) -> None:
    """Give each label the nearest free place around its point, inside the axes if possible."""
    if not texts:
        return
    ax = texts[0].axes
    assert ax is not None
    frame = ax.get_window_extent(renderer)
    scale = renderer.points_to_pixels(1.0)
    taken = np.empty((0, 4))
    for text in texts:
        text.set_position((0, 0))
        box = Text.get_window_extent(text, renderer)  # without the line to the point
        half = np.array([box.width, box.height]) / 2 + scale
        point = ax.transData.transform(text.xy)
        outwards = point - ax.transData.transform((0, 0))
        offset = _free_place(point, outwards, half, taken, frame, scale)
        middle = point + offset
        taken = np.vstack([taken, [*(middle - half), *(middle + half)]])
        text.set_position(tuple(offset / scale))
        assert text.arrow_patch is not None
        text.arrow_patch.set_visible(bool(np.linalg.norm(offset) > half[0] + _NEAR * scale))


def _free_place(
    point: np.ndarray,
    outwards: np.ndarray,
    half: np.ndarray,
    taken: np.ndarray,
    frame: Any,
    scale: float,
) -> np.ndarray:
    """Offset in pixels of the first place without overlap, of those inside the axes if any."""
    angles = np.arctan2(outwards[1], outwards[0]) + _TURNS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # The label's box touches the circle around its point.
    offsets = np.concatenate([directions * (radius * scale + half) for radius in _RADII])
    low, high = point + offsets - half, point + offsets + half
    apart = ((low[:, None] >= taken[None, :, 2:]) | (high[:, None] <= taken[None, :, :2])).any(
        axis=2
    )
    free = apart.all(axis=1)
    inside = (low >= [frame.x0, frame.y0]).all(axis=1) & (high <= [frame.x1, frame.y1]).all(axis=1)
    for allowed in (free & inside, free):
        if allowed.any():
            return offsets[allowed.argmax()]
    highest = max(taken[:, 3].max(), frame.y1)  # above everything, in a pile
    return np.array([0.0, highest + half[1] - point[1]])
