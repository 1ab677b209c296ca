"""Checks of numbers that users pass, with scikit-learn's rules and detailed errors.

scikit-learn is imported by the functions that need it: it loads every installed table library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.containers import are_positions, column_labels, few, reject_masks

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
    from sklearn.utils import check_array

    options = {"accept_sparse": "csr", "dtype": FLOATS} | options
    try:
        return check_array(block, estimator=estimator, **options)
    except ValueError as error:
        raise explained(error, block, **options) from None


def explained(error: ValueError, block: Any, **options: Any) -> ValueError:
    """Add positions and advice to an error about NaN or infinity; return other errors unchanged."""
    if not re.search("contains (NaN|infinity)", str(error)):
        return error
    from sklearn.utils import check_array

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


def of_view(name: str, error: ValueError | TypeError) -> ValueError | TypeError:
    """Prefix an error with the name of the view."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"View {name!r}: {error}")
