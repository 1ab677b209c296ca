"""Names of points that overlap neither each other nor, if possible, what they name.

Names have their size in points and the data theirs in the units of the axes, so places are found
when the axes are drawn, for whatever size they have then. Imported when drawing: it needs
matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from matplotlib.text import Annotation, Text
from matplotlib.transforms import IdentityTransform
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from mvcca.machine.warnings import warn
from mvcca.plotting.style import GREY, literal

_TURNS = np.deg2rad([0, 22, -22, 45, -45, 68, -68, 90, -90, 112, -112, 135, -135, 158, -158, 180])
_RADII = (7, 16, 26, 38)  # points
_NEAR = 14  # points; names further away than this have a leader to their point
_COVERED = 0.5  # points that a name may cover on average; with more, names are set in columns
_SIZES = (8.3, 7, 6, 5)  # points, of the font; the largest for which there is room
_LINE = 1.3  # height of a line in sizes of the font
_WIDEST = 0.3  # of a column of names, as a share of the width of the axes
_INCH = 72  # points
_MARGIN = 1.08  # size of the axes in that of the data, without names


def annotate_points(
    ax: Axes,
    points: np.ndarray,
    names: Sequence[str],
    *,
    around: np.ndarray | None = None,
    most_beside: int = 30,
) -> list[Annotation]:
    """Name points, the most important first, beside them or in columns at both sides.

    Names stand next to their points, away from the origin, where they cover no other point. If
    there is too little space, or there are more than `most_beside`, all of them are set in two
    columns, with leaders that do not cross, and the limits of the axes, which need an equal aspect,
    make room for these. `around` are all drawn points.
    """
    texts = [
        ax.annotate(
            literal(name),
            point,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_SIZES[0],
            annotation_clip=False,
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )
        for name, point in zip(names, points, strict=True)
    ]
    around = points if around is None else around
    _Beside(ax, texts, np.asarray(around, dtype=float).reshape(-1, 2), most_beside)
    return texts


def label_ring(ax: Axes, angles: np.ndarray, names: Sequence[str], radius: float) -> list[Text]:
    """Write names along the rays of a ring around the origin, the most important first.

    The limits of the axes, which need an equal aspect, make room for the names.
    """
    texts = []
    for name, angle in zip(names, angles, strict=True):
        turn = np.rad2deg(angle) % 360
        is_left = 90 < turn < 270
        texts.append(
            ax.text(
                radius * np.cos(angle),
                radius * np.sin(angle),
                literal(name),
                rotation=turn - 180 if is_left else turn,
                rotation_mode="anchor",
                ha="right" if is_left else "left",
                va="center",
                fontsize=_SIZES[0],
            )
        )
    _Around(ax, texts, np.asarray(angles, dtype=float), radius)
    return texts


def size_for_columns(names: Sequence[str]) -> tuple[float, float]:
    """Inches of a figure in which names have room in two columns beside a square plot."""
    height = max(4.8, len(names) / 2 * _LINE * _SIZES[0] / _INCH + 1.2)
    return height + 2 * _width_of(names) + 1, height


def size_for_ring(names: Sequence[str]) -> tuple[float, float]:
    """Inches of a figure in which names have room around a ring."""
    width, around = _width_of(names), len(names) * _LINE * _SIZES[1] / _INCH
    side = max(4.8, around / np.pi + 2 * width, width / _WIDEST + 0.8)
    return side + 1.6, side  # beside the ring, a legend


def _width_of(names: Sequence[str]) -> float:
    """About the inches of the longest name."""
    return 0.6 * _SIZES[0] * max(map(len, names), default=0) / _INCH


class _Arranger(Artist):
    """Draws nothing. When it is drawn, the layout is known and the names are not drawn yet."""

    def __init__(self, ax: Axes, texts: Sequence[Text]) -> None:
        super().__init__()
        self.texts, self.names = list(texts), [text.get_text() for text in texts]
        self.size: tuple[float, ...] | None = None  # inches of the figure, when it was drawn last
        for text in texts:
            text.set_in_layout(False)
        self.set(zorder=-np.inf, in_layout=False)
        ax.add_artist(self)

    def draw(self, renderer: Any) -> None:
        """Arrange the names; limits make room for them if the figure has a new size.

        Otherwise limits stay as they are, since a reader may have zoomed in.
        """
        ax = self.axes
        if not self.texts or ax is None:
            return
        frame = ax.get_window_extent(renderer)
        size = tuple(ax.figure.get_size_inches())
        is_new, self.size = self.size != size, size
        for text, name in zip(self.texts, self.names, strict=True):
            text.set(text=name, fontsize=_SIZES[0], visible=True)
        hidden = self.arrange(ax, frame, renderer, is_new)
        for i in hidden:
            self.texts[i].set_visible(False)
        if hidden and is_new:
            warn(
                f"{len(hidden)} of {len(self.texts)} names have no room and are left out, the last "
                "in importance. Draw a larger figure, or fewer variables."
            )

    def arrange(self, ax: Any, frame: Any, renderer: Any, is_new: bool) -> list[int]:
        """Move the names; return those that have no room."""
        raise NotImplementedError

    def halves(self, renderer: Any) -> np.ndarray:
        """Half the width and height of each name in pixels, if it is not turned."""
        found = []
        for text in self.texts:
            turn = text.get_rotation()
            text.set_rotation(0)
            box = Text.get_window_extent(text, renderer)
            text.set_rotation(turn)
            found.append((box.width / 2, box.height / 2))
        return np.array(found)

    def shorten(self, share: float, size: float) -> None:
        """Set the font, and cut names that are longer than a share of the longest one."""
        most = max(int(share * max(map(len, self.names))), 2)
        for text, name in zip(self.texts, self.names, strict=True):
            is_long = len(name) > most
            text.set(text=f"{name[: most - 1]}…" if is_long else name, fontsize=size)


class _Beside(_Arranger):
    """Names beside their points or, if there is too little space, in columns."""

    def __init__(
        self, ax: Axes, texts: Sequence[Annotation], around: np.ndarray, most_beside: int
    ) -> None:
        super().__init__(ax, texts)
        self.may_be_beside = len(texts) <= most_beside
        self.points = np.array([text.xy for text in texts], dtype=float).reshape(-1, 2)
        self.around, self.in_columns = around, False
        style = {"colors": GREY, "linewidths": 0.6, "zorder": 2.5, "transform": IdentityTransform()}
        self.leaders = LineCollection([], **style)
        self.leaders.set_in_layout(False)
        ax.add_collection(self.leaders, autolim=False)

    def arrange(self, ax: Any, frame: Any, renderer: Any, is_new: bool) -> list[int]:
        """Beside the points if this works, else in columns."""
        if self.in_columns and is_new:
            _make_room(ax, frame, 0, 0)
        if not self.in_columns or is_new:
            self.in_columns = not (self.may_be_beside and self._beside(ax, frame, renderer))
            is_new = True
        return self._columns(ax, frame, renderer, is_new) if self.in_columns else []

    def _beside(self, ax: Any, frame: Any, renderer: Any) -> bool:
        """Give each name the nearest free place around its point; whether this worked."""
        point = renderer.points_to_pixels(1.0)
        halves = self.halves(renderer) + point
        places, around = ax.transData.transform(self.points), ax.transData.transform(self.around)
        outwards = places - ax.transData.transform((0, 0))
        taken, covered, leaders = np.empty((0, 4)), 0, []
        for text, place, out, half in zip(self.texts, places, outwards, halves, strict=True):
            if not frame.contains(*place):  # a reader has zoomed in
                text.set_visible(False)
                continue
            found = _free_place(place, out, half, taken, around, frame, point)
            if found is None:
                return False
            offset, n_covered = found
            covered += n_covered
            middle = place + offset
            taken = np.vstack([taken, [*(middle - half), *(middle + half)]])
            text.set_position(tuple(offset / point))
            edge = np.clip(place, middle - half, middle + half)
            if np.linalg.norm(edge - place) > _NEAR * point:
                leaders.append([place, edge])
        self.leaders.set_segments(leaders)
        return covered <= _COVERED * len(self.texts)

    def _columns(self, ax: Any, frame: Any, renderer: Any, make_room: bool) -> list[int]:
        """Set the names in columns at both sides, so that no two leaders cross."""
        point = renderer.points_to_pixels(1.0)
        widest, most = 2 * self.halves(renderer)[:, 0].max(), _WIDEST * frame.width
        for size in _SIZES:
            line, width = _LINE * size * point, widest * size / _SIZES[0]
            per_column = int(frame.height // line)
            if 2 * per_column >= len(self.texts) and width <= most:
                break
        self.shorten(most / width, size)
        halves = self.halves(renderer)[:, 0]
        width, gap = 2 * halves.max(), 1.5 * size * point
        if make_room:
            _make_room(ax, frame, width + gap, 0)
        beside = 0.2 * gap  # between a name and its leader
        heights = frame.y1 - line * (np.arange(per_column) + 0.5)
        inner = [frame.x0 + width + beside, frame.x1 - width - beside]  # where leaders end
        slots = np.column_stack([np.repeat(inner, per_column), np.tile(heights, 2)])
        places = ax.transData.transform(self.points)
        seen = np.array([frame.contains(*place) for place in places])
        for text, is_seen in zip(self.texts, seen, strict=True):
            text.set_visible(is_seen)
        named, without = np.split(np.flatnonzero(seen), [len(slots)])
        # Of all assignments of points to slots, the one with the shortest lines has no crossings.
        order, chosen = linear_sum_assignment(cdist(places[named], slots))
        leaders = []
        for i, slot in zip(named[order], slots[chosen], strict=True):
            outwards = np.array([-1 if slot[0] == inner[0] else 1, 0])
            middle = slot + (halves[i] + beside) * outwards
            self.texts[i].set_position(tuple((middle - places[i]) / point))
            leaders.append([places[i], slot])
        self.leaders.set_segments(leaders)
        return without.tolist()


class _Around(_Arranger):
    """Names along the rays of a ring."""

    def __init__(self, ax: Axes, texts: Sequence[Text], angles: np.ndarray, radius: float) -> None:
        super().__init__(ax, texts)
        self.angles, self.radius = angles, radius

    def arrange(self, ax: Any, frame: Any, renderer: Any, is_new: bool) -> list[int]:
        """Choose the largest font in which neighbours do not overlap."""
        point = renderer.points_to_pixels(1.0)
        widest, most = 2 * self.halves(renderer)[:, 0].max(), _WIDEST * frame.size.min()
        closest = np.diff(np.sort(self.angles), append=self.angles.min() + 2 * np.pi).min()
        for size in _SIZES:
            width = min(widest * size / _SIZES[0], most)
            if is_new:
                _make_room(ax, frame, width, width)
            ends = ax.transData.transform([(0, 0), (0, self.radius)])
            needed = 0.9 * _LINE * size * point / np.ptp(ends[:, 1])  # radians
            if closest >= needed:
                break
        self.shorten(most / (widest * size / _SIZES[0]), size)
        shown: list[int] = []
        for i, angle in enumerate(self.angles):
            apart = np.abs(angle - self.angles[shown])
            if (np.minimum(apart, 2 * np.pi - apart) >= needed).all():
                shown.append(i)
        return sorted(set(range(len(self.texts))) - set(shown))


def _make_room(ax: Axes, frame: Any, beside: float, above: float) -> None:
    """Set limits that leave pixels at both sides of the data, and above and below them."""
    box = ax.dataLim
    sizes = _MARGIN * np.array([box.width, box.height])
    free = np.array([frame.width - 2 * beside, frame.height - 2 * above])
    unit = (free / sizes).min()  # pixels
    middle = np.array([box.x0 + box.x1, box.y0 + box.y1]) / 2
    low, high = middle - frame.size / 2 / unit, middle + frame.size / 2 / unit
    # Limits that were fixed would be in the way of the aspect.
    ax.set_xlim(low[0], high[0], auto=None)
    ax.set_ylim(low[1], high[1], auto=None)


def _free_place(
    place: np.ndarray,
    outwards: np.ndarray,
    half: np.ndarray,
    taken: np.ndarray,
    around: np.ndarray,
    frame: Any,
    point: float,
) -> tuple[np.ndarray, int] | None:
    """Offset in pixels of the best place inside the axes without overlap, and points covered."""
    angles = np.arctan2(outwards[1], outwards[0]) + _TURNS
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # The name's box touches the circle around its point.
    offsets = np.concatenate([directions * (radius * point + half) for radius in _RADII])
    low, high = place + offsets - half, place + offsets + half
    apart = (low[:, None] >= taken[:, 2:]) | (high[:, None] <= taken[:, :2])
    inside = (low >= [frame.x0, frame.y0]) & (high <= [frame.x1, frame.y1])
    free = apart.any(axis=2).all(axis=1) & inside.all(axis=1)
    if not free.any():
        return None
    under = (around >= low[:, None]) & (around <= high[:, None])
    covered = under.all(axis=2).sum(axis=1)
    best = np.flatnonzero(free)[covered[free].argmin()]
    return offsets[best], int(covered[best])
