"""Parts of rows to fit to and to leave out, of which groups are never divided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, check_cv


def splits_of(
    n_rows: int, n_folds: int, groups: Any, random_state: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit to and to leave out, fold by fold; at most as many folds as groups."""
    rows = np.arange(n_rows)
    if groups is None:
        return list(KFold(n_folds, shuffle=True, random_state=random_state).split(rows))
    return list(GroupKFold(min(n_folds, len(np.unique(groups)))).split(rows, groups=groups))


def splits_by_object(positions: np.ndarray, cv: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Splits of rows that keep those with the same position together.

    A splitter divides the positions that occur; given splits hold positions.
    """
    objects = np.unique(positions)
    for parts in check_cv(cv).split(objects):
        own = [objects[part] for part in parts] if hasattr(cv, "split") else parts
        train, test = (np.flatnonzero(np.isin(positions, part)) for part in own)
        yield train, test
