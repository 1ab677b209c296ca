"""Names of points and of a ring. None overlaps another; those without room are counted in a note.

Names have their size in points and the data theirs in the units of the axes, so places are found
when the axes are drawn, for whatever size they have then. Imported when drawing: it needs
matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text

from mvcca.plotting.style import GREY, literal

_TURNS = np.deg2rad([0, 22, -22, 45, -45, 68, -68, 90, -90, 112, -112, 135, -135, 158, -158, 180])
_RADII = (5, 10, 16)  # points between a point and its name; further names would need a line to it
_COVERED = 2  # points that a name may cover
_SIZE = 8.3  # points, of the font
_LINE, _CHARACTER = 1.2, 0.6  # height of a line and mean width of a letter, in sizes of the font
_WIDEST = 0.3  # of the names of a ring, as a share of the axes
_NOTE = "{} of {} names\nhave no room"  # in two lines, which a corner has room for
_LARGEST = 9.0  # inches of a figure; a larger one would have to be scrolled
_INCH = 72  # points
_STYLE = {"fontsize": _SIZE, "path_effects": [withStroke(linewidth=2, foreground="white")]}


def size_for_names(n_names: int) -> tuple[float, float]:
    """Inches of a figure with a legend, in which so many points and their names have room."""
    side = float(np.clip(np.sqrt(n_names), 4.8, _LARGEST))
    return side + 1.6, side


def size_for_ring(names: Sequence[str]) -> tuple[float, float]:
    """Inches of a figure with a legend, in which names have room around a ring."""
    width, around = _width_of(names), len(names) * _LINE * _SIZE / _INCH
    side = max(4.8, around / np.pi + 2 * width, width / _WIDEST + 0.8)
    return side + 1.6, side


def annotate_points(
    ax: Axes, points: np.ndarray, names: Sequence[str], around: np.ndarray | None = None
) -> list[Annotation]:
    """Name points, the most important first, where the names cover little of what is drawn.

    `around` are all drawn points, by default those that are named.
    """
    style = {"textcoords": "offset points", "ha": "center", "va": "center", **_STYLE}
    texts = [
        ax.annotate(literal(name), point, xytext=(0, 0), annotation_clip=False, **style)
        for name, point in zip(names, points, strict=True)
    ]
    around = np.asarray(points if around is None else around, dtype=float).reshape(-1, 2)
    _Names(ax, texts, partial(_beside_points, around))
    return texts


def label_ring(ax: Axes, angles: np.ndarray, names: Sequence[str], radius: float) -> list[Text]:
    """Write names along the rays of a ring around the origin, the most important first.

    The limits of the axes, which need an equal aspect, make room for the names.
    """
    inches = min(ax.get_window_extent().size) / ax.figure.dpi
    limit = radius / (1 - 2 * min(_width_of(names) / inches, _WIDEST))
    ax.update_datalim([(-limit, -limit), (limit, limit)])
    ax.margins(0)
    ax.autoscale_view()
    turns = np.rad2deg(angles) % 360
    texts = []
    for name, angle, turn in zip(names, angles, turns, strict=True):
        is_left = 90 < turn < 270
        style = {"rotation": turn - 180 * is_left, "ha": "right" if is_left else "left"}
        place = radius * np.cos(angle), radius * np.sin(angle)
        style |= {"rotation_mode": "anchor", "va": "center_baseline", **_STYLE}
        texts.append(ax.text(*place, literal(name), **style))
    _Names(ax, texts, partial(_on_rays, np.asarray(angles, dtype=float), radius))
    return texts


def _width_of(names: Sequence[str]) -> float:
    """About the inches of the longest name."""
    return _CHARACTER * _SIZE * max(map(len, names), default=0) / _INCH


class _Names(Artist):
    """Draws nothing. When it is drawn, the layout is known and the names are not drawn yet.

    `place` gets the axes, the names, a note at the corner of the axes and the renderer. It moves
    the names that it has room for, and returns the numbers of those and of all that are asked for.
    """

    def __init__(self, ax: Axes, texts: Sequence[Any], place: Callable[..., Any]) -> None:
        super().__init__()
        self.texts, self.place = list(texts), place
        self.names = [text.get_text() for text in texts]
        corner = {"transform": ax.transAxes, "ha": "right", "va": "bottom"}
        self.note = ax.text(1, 0, "", color=GREY, **corner, **_STYLE)
        for text in (*texts, self.note):
            text.set_in_layout(False)
        self.set(zorder=-np.inf, in_layout=False)
        ax.add_artist(self)

    def draw(self, renderer: Any) -> None:
        """Arrange the names, hide those without room, and say how many these are."""
        widest = _NOTE.format(len(self.names), len(self.names))
        for text, name in zip((*self.texts, self.note), (*self.names, widest), strict=True):
            text.set(text=name, visible=True)  # what is hidden has no size
        shown, asked = self.place(self.axes, self.texts, self.note, renderer)
        for number, text in enumerate(self.texts):
            text.set_visible(number in shown)
        self.note.set_text(_NOTE.format(len(asked) - len(shown), len(asked)))
        self.note.set_visible(len(shown) < len(asked))


def _beside_points(
    around: np.ndarray, ax: Any, texts: Sequence[Any], note: Text, renderer: Any
) -> tuple[list[int], list[int]]:
    """Give each name the best free place around its point, away from the origin."""
    point, frame = renderer.points_to_pixels(1.0), ax.get_window_extent(renderer)
    origin, covered = (ax.transData.transform(places) for places in ([(0, 0)], around))
    taken = [note.get_window_extent(renderer).get_points().ravel()]
    shown, asked = [], []
    for number, text in enumerate(texts):
        place = ax.transData.transform(text.xy)
        if not frame.contains(*place):  # a reader has zoomed in
            continue
        asked.append(number)
        box = Text.get_window_extent(text, renderer)
        half = np.array([box.width, box.height]) / 2 + point
        angles = np.arctan2(*(place - origin[0])[::-1]) + _TURNS
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        # The name's box touches the circle around its point.
        middles = place + np.concatenate([directions * (r * point + half) for r in _RADII])
        low, high = middles - half, middles + half
        others = np.array(taken)
        apart = (low[:, None] >= others[:, 2:]) | (high[:, None] <= others[:, :2])
        inside = (low >= frame.min) & (high <= frame.max)
        under = ((covered >= low[:, None]) & (covered <= high[:, None])).all(axis=2).sum(axis=1)
        is_free = apart.any(axis=2).all(axis=1) & inside.all(axis=1) & (under <= _COVERED)
        if not is_free.any():
            continue
        best = np.flatnonzero(is_free)[under[is_free].argmin()]
        text.set_position(tuple((middles[best] - place) / point))
        taken.append(np.concatenate([low[best], high[best]]))
        shown.append(number)
    return shown, asked


def _on_rays(
    angles: np.ndarray, radius: float, ax: Any, texts: Sequence[Text], note: Text, renderer: Any
) -> tuple[list[int], range]:
    """Keep names whose neighbours on the ring are far enough away, and cut them at the axes."""
    frame, point = ax.get_window_extent(renderer), renderer.points_to_pixels(1.0)
    middle, end = ax.transData.transform([(0, 0), (0, radius)])
    room, needed = frame.size.min() / 2 - (end - middle)[1], _LINE * _SIZE * point
    shown: list[int] = []
    for number, (text, angle) in enumerate(zip(texts, angles, strict=True)):
        apart = np.abs(angle - angles[shown])
        if (np.minimum(apart, 2 * np.pi - apart) * (end - middle)[1] < needed).any():
            continue
        turn = text.get_rotation()
        text.set_rotation(0)
        width = Text.get_window_extent(text, renderer).width
        text.set_rotation(turn)
        if width > room:
            name = text.get_text()
            text.set_text(f"{name[: max(int(len(name) * room / width) - 1, 1)]}…")
        if not text.get_window_extent(renderer).overlaps(note.get_window_extent(renderer)):
            shown.append(number)
    return shown, range(len(texts))
