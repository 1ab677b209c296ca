"""Validation of matrices, labels and sample weights passed by the user.

Rows that are not in memory are validated as they are read, by `mvcca.views.checked_rows`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from mvcca.blocks.array_api import namespace, to_host
from mvcca.blocks.containers import (
    are_positions,
    check_same_rows,
    column_labels,
    correspond,
    few,
    reject_masks,
    row_labels,
)
from mvcca.machine.config import block_size, block_slices
from mvcca.machine.threads import each
from mvcca.views import Views, in_memory

FLOATS = [np.float64, np.float32]


def reject_strings(block: Any) -> None:
    """Reject strings, which NumPy would silently convert to numbers if possible."""
    if issparse(block):
        return
    values = np.asarray(block)
    if values.dtype.kind in "US":
        strings = np.ones(values.shape, dtype=bool)
    elif values.dtype.kind == "O":
        strings = np.array([isinstance(v, str | bytes) for v in values.flat], dtype=bool)
    else:
        return
    if strings.any():
        where = ""
        if values.ndim == 2:
            columns = np.flatnonzero(strings.reshape(values.shape).any(axis=0))
            where = f" in column{'s' * (len(columns) > 1)} {_columns_in_words(block, columns)}"
        advice = "Encode or drop them first."
        if strings.size == len(strings):
            advice += (
                " For texts, PerView in a pipeline applies Tokens, for networks of words, or "
                "TfidfVectorizer and TruncatedSVD."
            )
        raise ValueError(f"Expected numbers, got strings{where}. {advice}")


def check_numbers(block: Any, estimator: Any, **options: Any) -> Any:
    """Convert a matrix to CSR or dense floats, with scikit-learn's checks and detailed errors."""
    if type(block) is not np.ndarray or block.dtype.kind not in "fiub":
        reject_masks(block)
        reject_strings(block)
    options = {"accept_sparse": "csr", "dtype": FLOATS} | options
    try:
        return check_array(block, estimator=estimator, **options)
    except ValueError as error:
        raise explained(error, block, **options) from None


def explained(error: ValueError, block: Any, **options: Any) -> ValueError:
    """Add positions and advice to an error about NaN or infinity; return other errors unchanged."""
    if not re.search("contains (NaN|infinity)", str(error)):
        return error
    checked = check_array(block, **(options | {"ensure_all_finite": False}))
    if issparse(checked):
        entries = checked.tocoo()
        bad = ~np.isfinite(entries.data)
        rows, columns, values = entries.row[bad], entries.col[bad], entries.data[bad]
    else:
        checked = checked.reshape(len(checked), -1)
        rows, columns = np.nonzero(~np.isfinite(checked))
        values = checked[rows, columns]
    missing = np.isnan(values)
    first = np.flatnonzero(missing)[0] if missing.any() else 0
    what = "NaN" if missing.any() else f"infinity or a value too large for {checked.dtype}"
    message = (
        f"Input contains {what}: first in row {rows[first]}, column "
        f"{_columns_in_words(block, columns[first : first + 1])}; {len(values)} such "
        f"value{'s' * (len(values) > 1)} in {len(np.unique(rows))} of {checked.shape[0]} rows. "
    )
    if not missing.any():
        return ValueError(message + "Drop, clip or rescale them first.")
    n_empty = int(np.sum(np.bincount(rows[missing]) == checked.shape[1]))
    if n_empty and checked.shape[1] > 1:
        message += (
            f"{n_empty} row{'s contain' if n_empty > 1 else ' contains'} only NaN: omit objects "
            "that are not seen in a view, with mvcca.Views(blocks, index=...). "
        )
    return ValueError(message + "Fill in missing values with mvcca.PerView(SimpleImputer()).")


def _columns_in_words(block: Any, columns: np.ndarray) -> str:
    """Names of columns if the container has names, else their positions."""
    names = column_labels(block)
    if names is None or are_positions(names):
        return few(int(column) for column in columns).replace("'", "")
    return few(names[column] for column in columns)


def check_shape(shape: Sequence[int], estimator: str, min_samples: int, prefix: str = "") -> None:
    """Raise ValueError for too few rows or no columns, with scikit-learn's message."""
    for size, what, least in zip(shape, ("sample", "feature"), (min_samples, 1), strict=True):
        if size < least:
            raise ValueError(
                f"{prefix}Found array with {size} {what}(s) (shape={tuple(shape)}) while a minimum "
                f"of {least} is required by {estimator}."
            )


def check_device_matrix(block: Any, estimator: str, ensure_min_samples: int = 1) -> Any:
    """Validate a device block as scikit-learn validates arrays, and convert it to floats."""
    xp = namespace(block)
    if block.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {block.ndim}D array instead, of shape {tuple(block.shape)}. "
            "Reshape your data: a single feature with x.reshape(-1, 1), a single row with "
            "x.reshape(1, -1)."
        )
    if str(getattr(block, "layout", "torch.strided")) != "torch.strided":
        raise TypeError("Sparse tensors are not supported. Pass a sparse matrix of SciPy.")
    if xp.isdtype(block.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported, got {block.dtype}.")
    check_shape(block.shape, estimator, ensure_min_samples)
    if hasattr(block, "detach"):  # gradients through a fit are not supported
        block = block.detach()
    if block.dtype not in (xp.float32, xp.float64):
        block = xp.astype(block, xp.float64)
    # The sum is finite if all values are; check values only if it is not.
    if not xp.isfinite(xp.sum(block)) and not xp.all(xp.isfinite(block)):
        if xp.any(xp.isnan(block)):
            raise ValueError("Input contains NaN.")
        raise ValueError("Input contains infinity or a value too large for its precision.")
    return block


def is_finite(block: Any) -> bool:
    """Check in parallel that a large dense block of floats is finite.

    False for other blocks, and if it is not finite: `check_array` then finds what is wrong.
    """
    if not isinstance(block, np.ndarray) or block.dtype not in FLOATS or block.ndim != 2:
        return False
    slices = list(block_slices(len(block), block.itemsize * block.shape[1]))
    if len(slices) < 2:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(each(lambda rows: block[rows].sum(), slices)).all())


def of_view(name: str, error: ValueError | TypeError) -> ValueError | TypeError:
    """Prefix an error with the name of the view."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"View {name!r}: {error}")


def read_small(views: Views) -> Views:
    """Read views that are no larger than a block or than their covariance into memory."""
    blocks = {}
    for name, block in views.items():
        n_rows, n_features = block.shape
        is_small = n_rows <= max(n_features, block_size(8 * n_features))
        blocks[name] = in_memory(block) if is_small else block
    return views.replace(blocks)


def column_names(block: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns if all of them are strings, else None."""
    columns = getattr(block, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return tuple(columns)


def check_column_names(name: str, fitted: tuple[str | int, ...] | None, block: Any) -> None:
    """Raise if a DataFrame or file does not have the fitted columns in the same order."""
    found = column_labels(block)
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
    if all(isinstance(name, int) for name in names):
        return np.array(names, dtype=int)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def weights_of_objects(sample_weight: Any, views: Views, reset: bool) -> np.ndarray | None:
    """Validate sample weights; in a first batch their sum must exceed 1 in every view."""
    if sample_weight is None:
        return None
    reject_masks(sample_weight)
    check_same_rows("sample_weight", row_labels(sample_weight), "the views", views.ids)
    column = np.empty((len(views), 1))
    weights = _check_sample_weight(
        to_host(sample_weight), column, dtype=np.float64, ensure_non_negative=True
    )
    for name in views.names if reset else ():
        total = weights[views.objects(name)].sum()
        if not total > 1:
            raise ValueError(
                f"sample_weight counts occurrences of objects: the weights of view {name!r} must "
                f"sum to more than 1, got {total:g}. Multiply weights that sum to 1 by n."
            )
    return weights
