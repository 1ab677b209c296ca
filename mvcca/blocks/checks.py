"""Checks of what users pass: numbers, masks, strings, row labels and column names.

Numbers are checked by scikit-learn's rules, with detailed errors; it is imported by the functions
that need it, since it loads every installed table library. Rows are paired and columns matched by
position. If both sides have labels, the labels must agree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from mvcca.blocks.libraries import in_numpy
from mvcca.blocks.places import cell_in_words

FLOATS = [np.float64, np.float32]
_SHOWN = 3  # names in an error message


def repeated(names: Iterable[Any]) -> list[Any]:
    """Names that occur more than once, in order of first occurrence."""
    return [name for name, count in Counter(names).items() if count > 1]


def only_numbers(block: Any) -> Any:
    """A matrix, in NumPy if it is a device array, that is refused if it holds no numbers or a mask.

    scikit-learn's checks come after this one.
    """
    block = in_numpy(block)
    if not issparse(block) and (type(block) is not np.ndarray or block.dtype.kind not in "fiub"):
        reject_masks(block)
        reject_non_numbers(block)
    return block


def reject_non_numbers(block: Any) -> None:
    """Reject strings, dates, durations and other objects that are no numbers, and mixed names.

    NumPy would silently convert some of them: strings of digits, and dates to counts of whatever
    unit they have.
    """
    if issparse(block):
        return
    _reject_mixed_names(block)
    kinds = _kinds_by_type(block)
    values = None if kinds else np.asarray(block)
    if values is not None and values.dtype.kind in _KINDS:
        kinds = dict.fromkeys(range(values.shape[-1] if values.ndim else 1), values.dtype.kind)
    elif values is not None and values.dtype.kind == "O":
        columns = values if values.ndim == 2 else values.reshape(-1, 1)
        found = ((j, _kind_of_values(column)) for j, column in enumerate(columns.T))
        kinds = {j: kind for j, kind in found if kind}
    if not kinds:
        return
    kind = next(iter(kinds.values()))
    columns = np.array([column for column, own in kinds.items() if own == kind])
    where, shape = "", _shape(block, values)
    if len(shape) == 2:
        where = f" in column{'s' * (len(columns) > 1)} {_columns_in_words(block, columns)}"
    what, advice = _KINDS.get(kind, (kind, "Encode or drop them first."))
    if kind in "US" and len(columns) == (shape[1] if len(shape) == 2 else 1):
        advice += (
            " For texts, PerView in a pipeline applies Tokens, for networks of words, or "
            "TfidfVectorizer and TruncatedSVD."
        )
    raise ValueError(
        f"Complex data not supported{where}. {advice}"
        if kind == "c"
        else f"Expected numbers, got {what}{where}. {advice}"
    )


_STRINGS = ("strings", "Encode or drop them first.")
_KINDS = {  # what NumPy types are called, and what to do
    "U": _STRINGS,
    "S": _STRINGS,
    "M": ("dates", "Convert them to numbers first, such as the days since one of them."),
    "m": ("durations", "Divide them by a unit first, such as numpy.timedelta64(1, 'D')."),
    "c": ("complex numbers", "Pass real and imaginary parts as columns, or absolute values."),
    "lists": ("lists", "A column of vectors is a view by itself: frame['name']."),
}
_NAMES_OF_TYPES = {  # how names of column types of pandas, polars and Arrow begin
    "M": ("datetime", "date", "time", "timestamp", "period"),
    "m": ("timedelta", "duration"),
    "intervals": ("interval",),
    "lists": ("list", "array", "struct"),
}


def _kinds_by_type(block: Any) -> dict[int, str]:
    """Columns of a DataFrame that hold no numbers by their type, and what they hold."""
    types = getattr(block, "dtypes", None) if hasattr(block, "columns") else None
    if types is None:
        return {}
    kind_of = {}
    for own in set(types):
        name = str(own).lower()
        # The last one counts: "timedelta" begins with "time".
        named = [k for k, starts in _NAMES_OF_TYPES.items() if name.startswith(starts)]
        kind_of[own] = "c" if name.startswith("complex") else named[-1] if named else ""
    return {j: kind_of[own] for j, own in enumerate(types) if kind_of[own]}


def _kind_of_values(values: np.ndarray) -> str:
    """What the first object that is a string, a date or the like is; empty if there is none.

    scikit-learn refuses other objects by name.
    """
    for value in values:
        if isinstance(value, str | bytes):
            return "U"
        if isinstance(value, date | time | np.datetime64):
            return "M"
        if isinstance(value, timedelta | np.timedelta64):
            return "m"
        if isinstance(value, complex | np.complexfloating):
            return "c"
        if isinstance(value, list | tuple | np.ndarray):
            return "lists"
    return ""


def _shape(block: Any, values: np.ndarray | None) -> tuple[int, ...]:
    return tuple(block.shape if values is None else values.shape)


def _reject_mixed_names(block: Any) -> None:
    """Reject column names that are strings and numbers, of which scikit-learn keeps none."""
    names = getattr(block, "columns", ())
    are_strings = [isinstance(name, str) for name in names]
    if any(are_strings) and not all(are_strings):
        one, other = names[are_strings.index(True)], names[are_strings.index(False)]
        raise TypeError(
            f"Expected column names of one type, got the string {one!r} beside {other!r} "
            f"({type(other).__name__}). Rename the columns, for example by frame.columns = "
            "frame.columns.astype(str)."
        )


def check_numbers(block: Any, estimator: Any, ids: np.ndarray | None = None, **options: Any) -> Any:
    """Convert a matrix to CSR or dense floats, with scikit-learn's checks and detailed errors.

    `ids` name the rows in errors.
    """
    block = only_numbers(block)
    from sklearn.utils import check_array

    options = {"accept_sparse": "csr", "dtype": FLOATS} | options
    try:
        return check_array(block, estimator=estimator, **options)
    except ValueError as error:
        raise explained(error, block, ids=ids, **options) from None


def to_array(values: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    """Values of any number of dimensions, of any array library, as a NumPy array in host memory."""
    reject_masks(values)
    return np.asarray(in_numpy(values), dtype=dtype)


def as_vector(values: Any) -> np.ndarray:
    """Values of rows; a column of shape (n, 1) and a table of one column are vectors, too."""
    found = to_array(values)
    found = found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found
    return found.astype(object) if found.dtype.kind == "T" else found  # NumPy's other strings


def of_vectors(items: Any) -> np.ndarray | None:
    """The rows in a column of vectors, such as embeddings in a Series; None if it holds others.

    Raises
    ------
    ValueError
        If the vectors differ in length.
    """
    if getattr(getattr(items, "dtype", None), "kind", "O") != "O":
        return None
    sizes = [len(item) if np.ndim(item) == 1 else 0 for item in items]
    longest = max(sizes, default=0)
    for row, size in enumerate(sizes):
        if size < longest:
            raise ValueError(f"Row {row} has {size} numbers, another one {longest}.")
    return np.array([np.asarray(item) for item in items]) if longest else None


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or value != value


def reject_missing(what: str, values: np.ndarray, advice: str) -> None:
    """Refuse a vector with missing values, naming the first row of one."""
    rows = [row for row, value in enumerate(values.tolist()) if is_missing(value)]
    if rows:
        raise ValueError(
            f"{len(rows)} of {len(values)} {what} are missing, first in row {rows[0]}. {advice}"
        )


def matrix_of_numbers(name: str, rows: Any) -> np.ndarray:
    """A dense matrix of real numbers; a memory map stays on disk."""
    found = to_array(rows)
    if found.ndim == 1 and (vectors := of_vectors(found)) is not None:
        found = vectors
    if found.dtype.kind == "O" and found.ndim == 2:
        reject_non_numbers(found)
        found = found.astype(np.float64)
    if found.ndim != 2 or found.dtype.kind not in "biuf" or not found.shape[1]:
        raise ValueError(
            f"Expected {name} to be a matrix of numbers, one row per object, got "
            f"{f'{found.dtype} of shape {found.shape}' if found.ndim else type(rows).__name__}."
            f"{' Flatten or average further axes first.' * (found.ndim > 2)}"
        )
    return found


def finite_floats(name: str, rows: Any) -> np.ndarray:
    """A dense matrix of finite numbers, in float32 or float64."""
    found = matrix_of_numbers(name, rows)
    dtype = np.float32 if found.dtype == np.float32 else np.float64
    found = found.astype(dtype, copy=False)
    if not np.isfinite(found).all():
        raise ValueError(f"View {name!r} contains NaN or infinity.")
    return found


def is_about_finite(error: ValueError) -> bool:
    """Whether an error of scikit-learn is about NaN or infinity."""
    return re.search("contains (NaN|infinity)", str(error)) is not None


def explained(
    error: ValueError,
    block: Any,
    ids: Sequence[Any] | np.ndarray | None = None,
    **options: Any,
) -> ValueError:
    """Add positions and advice to an error about NaN or infinity; return other errors unchanged.

    `ids` name the rows.
    """
    if not is_about_finite(error):
        return error
    from sklearn.utils import check_array

    checked = check_array(block, **(options | {"ensure_all_finite": False}))
    allows_nan = options.get("ensure_all_finite") == "allow-nan"
    found = not_finite(checked, ids=ids, columns=column_labels(block), allows_nan=allows_nan)
    return ValueError(f"Input {found}")


def not_finite(
    matrix: Any,
    *,
    numbers: Sequence[int] | np.ndarray | None = None,
    ids: Sequence[Any] | np.ndarray | None = None,
    columns: Sequence[str | int] | None = None,
    file: str | None = None,
    allows_nan: bool = False,
) -> str:
    """Say where a matrix of floats has NaN or infinity, and what to do, as in "contains NaN: ...".

    `numbers` and `ids` are those of the rows, and `file` is theirs.
    """
    is_bad = np.isinf if allows_nan else _is_not_finite
    if issparse(matrix):
        entries = matrix.tocoo()
        bad = is_bad(entries.data)
        rows, places, values = entries.row[bad], entries.col[bad], entries.data[bad]
    else:
        matrix = matrix.reshape(len(matrix), -1)
        rows, places = np.nonzero(is_bad(matrix))
        values = matrix[rows, places]
    missing = np.isnan(values)
    first = int(np.flatnonzero(missing)[0]) if missing.any() else 0
    row, column = int(rows[first]), int(places[first])
    has_names = columns is not None and not are_positions(columns)
    where = cell_in_words(
        row if numbers is None else int(numbers[row]),
        str(columns[column]) if columns is not None and has_names else column,
        name=None if ids is None else ids[row],
    )
    where += "" if file is None else f" of {file}"
    what = "NaN" if missing.any() else f"infinity or a value too large for {matrix.dtype}"
    message = (
        f"contains {what}: first in {where}; {len(values)} such "
        f"value{'s' * (len(values) > 1)} in {len(np.unique(rows))} of {matrix.shape[0]} rows. "
    )
    if not missing.any():
        return f"{message}Drop, clip or rescale them first."
    n_empty = int(np.sum(np.bincount(rows[missing]) == matrix.shape[1]))
    if n_empty and matrix.shape[1] > 1:
        message += (
            f"{n_empty} row{'s contain' if n_empty > 1 else ' contains'} only NaN: omit objects "
            "that are not seen in a view, with mvcca.Views(blocks, index=...). "
        )
    return message + FILL_IN


FILL_IN = (
    "Fill in missing values with mvcca.PerView(SimpleImputer()), leave out these rows, or let CCA "
    'or MVCCA learn from the other values (missing="em").'
)


def _is_not_finite(values: np.ndarray) -> np.ndarray:
    return ~np.isfinite(values)


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


# ---- labels and names of containers -------------------------------------------------------------


def reject_masks(block: Any) -> None:
    """Reject masked arrays, since NumPy would silently drop the mask."""
    if np.ma.isMaskedArray(block):
        raise ValueError(
            "Masked arrays are not supported: the mask would be dropped. Fill or drop the masked "
            "entries first."
        )


def reject_annotated(data: Any) -> None:
    """Reject AnnData and MuData, which hold several matrices beside the names of their rows."""
    if not (hasattr(data, "obs_names") and hasattr(data, "obsm")):
        return
    if hasattr(data, "mod"):
        raise TypeError(
            "Expected matrices, got MuData. Pass mvcca.interop.views_of_modalities(data): Views of "
            "its modalities, with observations matched by name."
        )
    raise TypeError(
        f"Expected a matrix, got {type(data).__name__}, which holds several. Pass one of them, "
        "such as data.X or data.obsm['X_pca']; or take several as Views, with the names of their "
        "observations, by mvcca.interop.views_of_modalities(data, use={'view': 'X_pca'})."
    )


def reject_missing_ids(ids: np.ndarray) -> None:
    """Reject ids that are missing (None, NaN, NaT or pandas.NA): as ids they would all be one."""
    if ids.dtype.kind in "fcmM":
        missing = ids != ids
    elif ids.dtype.kind in "OT":
        missing = np.array([_is_missing(value) for value in ids.flat], dtype=bool)
    else:
        return
    if missing.any():
        n = int(missing.sum())
        raise ValueError(
            f"Expected an id for every object, but {n} of {ids.size} {'are' if n > 1 else 'is'} "
            f"missing: first that of row {int(np.flatnonzero(missing)[0])}. Give these objects "
            "ids, or leave them out."
        )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    is_number = isinstance(value, float | np.floating | np.datetime64 | np.timedelta64)
    return bool(is_number and value != value)


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


def informative(ids: np.ndarray | None) -> np.ndarray | None:
    """Row labels that identify rows; None without labels, or for the default ones."""
    return None if ids is None or are_positions(ids) else ids


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
