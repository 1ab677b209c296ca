"""Row labels, column names and masks of containers.

Rows are paired and columns matched by position. If both sides have labels, the labels must agree;
this module implements that rule for rows and for columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

_SHOWN = 3  # names in an error message


def reject_masks(block: Any) -> None:
    """Reject masked arrays, since NumPy would silently drop the mask."""
    if np.ma.isMaskedArray(block):
        raise ValueError(
            "Masked arrays are not supported: the mask would be dropped. Fill or drop the masked "
            "entries first."
        )


def few(names: Iterable[Any]) -> str:
    """The first three names, and the total number if there are more."""
    names = [str(name) for name in names]  # also those of NumPy
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"


def row_labels(rows: Any) -> np.ndarray | None:
    """Index of a pandas object; None for other containers, or if a label is missing."""
    if not hasattr(rows, "iloc"):  # a list has an `index` too
        return None
    index = rows.index
    # A MultiIndex has no `hasnans`; its labels compare as tuples.
    return None if index.nlevels == 1 and index.hasnans else np.asarray(index)


def column_labels(block: Any) -> tuple[str | int, ...] | None:
    """Column names of a DataFrame or a file; None for containers without them."""
    columns = getattr(block, "columns", None)
    if columns is None:
        return None
    return tuple(name if isinstance(name, str | int) else str(name) for name in columns)


def are_positions(labels: Sequence[Any] | np.ndarray) -> bool:
    """Whether labels are the default 0, 1, ..., n - 1, which identify nothing."""
    values = np.asarray(labels)
    return values.dtype.kind in "iu" and np.array_equal(values, np.arange(len(values)))


def correspond(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the labels of two sides allow pairing by position.

    Default labels are compatible with all labels except a permutation of themselves.
    """
    if len(a) != len(b) or not _differ(a, b).any():
        return True
    if not are_positions(a) and not are_positions(b):
        return False
    return a.dtype.kind not in "iu" or b.dtype.kind not in "iu" or set(a) != set(b)


def check_same_rows(first: str, a: np.ndarray | None, second: str, b: np.ndarray | None) -> None:
    """Raise if row labels contradict pairing by position."""
    if a is None or b is None or correspond(a, b):
        return
    how = "the same labels in a different order" if set(a) == set(b) else "different labels"
    row = int(np.flatnonzero(_differ(a, b))[0])
    raise ValueError(
        f"Rows are paired by position, but {first} and {second} have {how}: row {row} is "
        f"{str(a[row])!r} and {str(b[row])!r}. Align them by label (mvcca.Views.aligned, or "
        "y.loc[X.index]), or drop the labels with reset_index(drop=True) if the rows already "
        "correspond."
    )


def common_row_labels(rows: Mapping[str, Any]) -> np.ndarray | None:
    """Common row labels of containers paired by position; None if none has labels."""
    known = {
        name: labels for name, part in rows.items() if (labels := row_labels(part)) is not None
    }
    for (first, a), (second, b) in combinations(known.items(), 2):
        check_same_rows(first, a, second, b)
    informative = [labels for labels in known.values() if not are_positions(labels)]
    return next(iter([*informative, *known.values()]), None)


def _differ(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.dtype.kind != b.dtype.kind:
        a, b = a.astype(object), b.astype(object)
    return np.asarray(a != b, dtype=bool)
