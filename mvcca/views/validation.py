"""Validation of column names, labels and sample weights passed by the user.

The numbers of matrices are checked by `mvcca.blocks.checks`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from mvcca.blocks.checks import (
    as_vector,
    check_same_rows,
    correspond,
    few,
    is_missing,
    reject_masks,
    row_labels,
)
from mvcca.machine.config import block_size
from mvcca.views import Views


def read_small(views: Views) -> Views:
    """Read views that are no larger than a block or than their covariance into memory."""
    blocks = {}
    for name, block in views.blocks.items():
        n_rows, n_features = block.shape
        is_small = n_rows <= max(n_features, block_size(8 * n_features))
        blocks[name] = block.in_memory() if is_small else block
    return views.replace(blocks)


def column_names(block: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns if all of them are strings, else None."""
    columns = getattr(block, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return tuple(columns)


def named_columns(name: str, block: Any) -> tuple[str, ...]:
    """Names of the columns of a matrix, or numbers from 0 after the name of the view."""
    return column_names(block) or numbered_columns(name, block.shape[1])


def numbered_columns(name: str, width: int) -> tuple[str, ...]:
    """Names of columns that have none: that of their view, and their number from 0."""
    return tuple(f"{name} {number}" for number in range(width))


def check_column_names(
    name: str, fitted: tuple[str | int, ...] | None, found: tuple[str | int, ...] | None
) -> None:
    """Raise if a DataFrame or file does not have the fitted columns in the same order."""
    if fitted is None or found is None or fitted == found:
        return
    fitted_names, found_names = _as_array(fitted), _as_array(found)
    if correspond(fitted_names, found_names):
        return
    if set(fitted) == set(found):
        column = next(
            j for j, pair in enumerate(zip(fitted, found, strict=True)) if len({*pair}) > 1
        )
        what = (
            f"got the same names in a different order: column {column} is {found[column]!r}, not "
            f"{fitted[column]!r}. Reorder them, for example by frame[names]."
        )
    else:
        missing = [column for column in fitted if column not in set(found)]
        unknown = [column for column in found if column not in set(fitted)]
        what = f"missing: {few(missing) or 'none'}; unknown: {few(unknown) or 'none'}."
    raise ValueError(
        f"View {name!r}: the feature names should match those that were passed during fit; {what}"
    )


def _as_array(names: tuple[str | int, ...]) -> np.ndarray:
    """Names as an array of integers if all of them are integers, else of objects."""
    return np.array(names, dtype=int if all(isinstance(name, int) for name in names) else object)


def repeated_objects(weights: np.ndarray, reason: str) -> np.ndarray:
    """Positions of objects, each as often as its weight says; `reason` ends the error message."""
    fractional = weights[weights != np.rint(weights)]
    if len(fractional):
        raise ValueError(
            f"sample_weight must be whole numbers, got {fractional[0]:g}: {reason}. Round them, or "
            "leave them out."
        )
    return np.repeat(np.arange(len(weights)), weights.astype(int))


def weights_of_rows(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Sample weights as a vector of floats, at least 0; ones if there are none."""
    from sklearn.utils.validation import _check_sample_weight

    reject_masks(sample_weight)
    given = sample_weight
    if given is not None and not isinstance(given, Real):
        given = as_vector(given)
        if given.dtype == object and given.ndim == 1:  # pandas has its own missing values
            given = np.array([None if is_missing(own) else own for own in given], dtype=object)
    rows = np.empty((n_rows, 1))
    return _check_sample_weight(given, rows, dtype=np.float64, ensure_non_negative=True)


def checked_sample_weight(
    sample_weight: Any, views: Views, reset: bool, batch: bool = False
) -> np.ndarray:
    """Validate sample weights; if `reset`, their sum must exceed 1 in every view.

    All weights of a `batch` may be 0.
    """
    check_same_rows("sample_weight", row_labels(sample_weight), "the views", views.ids)
    if batch and np.ndim(sample_weight):
        given = as_vector(sample_weight)
        if given.dtype != object and not given.any():  # which scikit-learn refuses
            return 0 * weights_of_rows(np.ones(given.shape), len(views))
    weights = weights_of_rows(sample_weight, len(views))
    for name in views.names if reset and not batch else ():
        total = weights[views.objects(name)].sum()
        if not total > 1:
            raise ValueError(
                f"sample_weight counts occurrences of objects: the weights of view {name!r} must "
                f"sum to more than 1, got {total:g}. Multiply weights that sum to 1 by n."
            )
    return weights


def check_confounds_known(views: Views, name: str) -> None:
    """Refuse objects that are seen in other views, but whose confounds are missing."""
    known = views.seen[:, views.names.index(name)]
    n_missing = int((views.seen.any(axis=1) & ~known).sum())
    if n_missing:
        raise ValueError(
            f"Confounds {name!r} are missing for {n_missing} of {len(views)} objects. Pair "
            "each row with its confounds, or leave these objects out."
        )
