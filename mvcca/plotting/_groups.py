"""Groups of objects: their names from labels, their colours and their entries in a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mvcca.plotting._drawing import point_key
from mvcca.plotting.style import COLORS, FAINT, color
from mvcca.views import Labels


def group_names(labels: Any) -> list[str]:
    """Name of the label or label set of each row."""
    encoded = Labels.of(labels)
    if not encoded.are_sets:
        raise ValueError(
            "Colours need classes, label sets or an indicator matrix, got real label vectors."
        )
    return [text or "no label" for text in encoded.texts(" + ", unnamed="{}")]


def groups_of(labels: Any, n_objects: int, chosen: np.ndarray) -> list[str] | None:
    """Names of the groups of chosen objects, of all of which there are labels, if any."""
    if labels is None:
        return None
    names = group_names(labels)
    if len(names) != n_objects:
        raise ValueError(f"Expected {n_objects} groups, one per object, got {len(names)}.")
    return [names[i] for i in chosen]


def group_tones(groups: Sequence[str] | None) -> dict[str, str]:
    """Colours of the ten most frequent groups, in alphabetical order; others are faint."""
    if groups is None:
        return {}
    names, counts = np.unique(groups, return_counts=True)
    frequent = set(names[np.argsort(-counts, kind="stable")][: len(COLORS)])
    numbers = iter(range(len(COLORS)))
    return {str(n): color(next(numbers)) if n in frequent else FAINT for n in names}


def group_keys(tones: Mapping[str, str]) -> list[Any]:
    """Legend entries of groups with a colour, and the number of the others."""
    keys = [point_key(group, "o", tone) for group, tone in tones.items() if tone != FAINT]
    if len(keys) < len(tones):
        keys.append(point_key(f"{len(tones) - len(keys)} others", "o", FAINT))
    return keys
