"""Groups of objects: their names from labels, their colours and their entries in a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.blocks.checks import check_same_rows
from mvcca.plotting._drawing import draw_points, point_key
from mvcca.plotting.style import COLORS, FAINT, color, literal, marker
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView, is_per_view

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection


def group_names(labels: Any) -> list[str]:
    """Name of the label or label set of each row."""
    encoded = Labels.of(labels)
    if not encoded.are_sets:
        raise ValueError(
            "Colours need classes, label sets or an indicator matrix, got real label vectors."
        )
    return [text or "no label" for text in encoded.texts(" + ", unnamed="{}")]


def groups_of(
    labels: Any, views: Views, objects: Sequence[int] | np.ndarray | None = None
) -> list[str] | None:
    """Name of the group of each object, from labels of the objects or of each view's rows.

    With `objects`, those of these objects only.
    """
    if labels is None:
        return None
    if is_per_view(views, labels):
        labels = LabelsByView.of(views, labels, per_view=True).per_object(views)
    labels = Labels.of(labels)
    check_same_rows("groups", labels.ids, "the views", views.ids)
    names = group_names(labels)
    check_groups(names, len(views))
    return names if objects is None else [names[i] for i in objects]


def check_groups(groups: Sequence[str] | None, n_objects: int) -> None:
    """Refuse another number of groups than one per object."""
    if groups is not None and len(groups) != n_objects:
        raise ValueError(f"Expected {n_objects} groups, one per object, got {len(groups)}.")


def group_styles(
    groups: Sequence[str] | None, n_taken: int = 0, *, markers: bool = True
) -> dict[str, tuple[str, str]]:
    """Colour and marker of the ten most frequent groups, in their order; others are faint dots.

    The first `n_taken` colours are left to something else, such as views. Without `markers`, all
    groups are dots.
    """
    if groups is None:
        return {}
    names, counts = np.unique(groups, return_counts=True)
    frequent = set(names[np.argsort(-counts, kind="stable")][: len(COLORS)])
    left = COLORS[min(n_taken, len(COLORS) - 1) :]
    numbers = iter(range(len(COLORS)))
    styles = {}
    for name in sorted(map(str, names), key=_in_order):
        if name in frequent:
            number = next(numbers)
            styles[name] = left[number % len(left)], marker(number) if markers else "o"
        else:
            styles[name] = FAINT, "o"
    return styles


def group_keys(styles: Mapping[str, tuple[str, str]]) -> list[Any]:
    """Legend entries of groups with a colour, and the number of the others."""
    keys = [point_key(name, shape, tone) for name, (tone, shape) in styles.items() if tone != FAINT]
    if len(keys) < len(styles):
        keys.append(point_key(f"{len(styles) - len(keys)} others", "o", FAINT))
    return keys


def draw_groups(
    ax: Axes,
    points: np.ndarray,
    groups: Sequence[str] | None,
    styles: Mapping[str, tuple[str, str]],
    given: Mapping[str, Any],
    **style: Any,
) -> dict[str, PathCollection]:
    """Draw the points (n, 2) of each group, by its name, faint ones first; "" without groups."""
    of_points = np.array([""] * len(points) if groups is None else groups)
    drawn = {}
    for name, (tone, shape) in sorted(
        (styles or {"": (color(0), "o")}).items(), key=lambda item: item[1][0] != FAINT
    ):
        own = {"c": tone, "marker": shape, "alpha": 0.75, "label": literal(name), **style}
        drawn[name] = draw_points(ax, points[of_points == name], given, **own)
    return drawn


def _in_order(name: str) -> tuple[bool, float, str]:
    """Key that sorts numbers by size, before other names."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name
