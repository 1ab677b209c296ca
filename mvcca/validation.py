"""Checks of one matrix, of labels and of weights: what every door of the package asks of its input.

Each names what was expected, what came and what to do. How views are opened, and given back in the
container that they came in, is `mvcca.base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight

from mvcca.labels import LabelTable, encode_labels, in_one_table
from mvcca.views import Views

FLOATS = [np.float64, np.float32]


def reject_masks(block: Any) -> None:
    """Refuse masked arrays, whose mask NumPy would drop without a word."""
    if np.ma.isMaskedArray(block):
        raise ValueError(
            "Masked arrays are not supported: the mask would be dropped. Fill or drop the masked "
            "entries first."
        )


def reject_strings(block: Any) -> None:
    """Refuse strings, which NumPy would turn into numbers where they look like some."""
    if issparse(block):
        return
    values = np.asarray(block)
    if values.dtype.kind in "US" or (
        values.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in values.flat)
    ):
        raise ValueError("Expected numbers, got strings. Encode them first.")


def of_view(name: str, error: ValueError | TypeError) -> ValueError | TypeError:
    """The error again, saying which view it is about."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"View {name!r}: {error}")


def column_names(block: Any) -> tuple[str, ...] | None:
    """Names of a DataFrame's columns, where all of them are strings."""
    columns = getattr(block, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return tuple(columns)


def check_column_names(name: str, fitted: tuple[str, ...] | None, block: Any) -> None:
    """A DataFrame has the columns of the one that was fitted, in their order."""
    came = column_names(block)
    if fitted is None or came is None or fitted == came:
        return
    moved = "the same names in another order" if set(fitted) == set(came) else f"{list(came)}"
    raise ValueError(
        f"View {name!r}: the feature names should match those that were passed during fit, "
        f"{list(fitted)}; got {moved}."
    )


def weights_of_objects(sample_weight: Any, views: Views, reset: bool) -> np.ndarray | None:
    """Checked weights, one per object; in a first batch every view's must add up to more than 1."""
    if sample_weight is None:
        return None
    column = np.empty((len(views), 1))
    weights = _check_sample_weight(
        sample_weight, column, dtype=np.float64, ensure_non_negative=True
    )
    for name in views.names if reset else ():
        total = weights[views.objects(name)].sum()
        if not total > 1:
            raise ValueError(
                f"sample_weight says how often each object counts: those seen in view {name!r} "
                f"must add up to more than 1, got {total:g}. Multiply weights of mean 1 / n by n."
            )
    return weights


def is_per_view(X: Any, y: Any) -> bool:
    """Whether the labels of views X came view by view rather than one (or one set) per object."""
    if isinstance(y, Mapping) and not issparse(y):
        return True
    blocks = X if isinstance(X, list | tuple) else [block for _, block in X.items()]
    if not isinstance(y, list | tuple) or len(y) != len(blocks):
        return False
    if any(isinstance(part, str | set | frozenset) or not hasattr(part, "__len__") for part in y):
        return False
    heights = [_height(block) for block in blocks]
    n_objects = len(X) if isinstance(X, Views) else heights[0]
    return len(y) != n_objects or [_height(part) for part in y] == heights


def _height(block: Any) -> int:
    return block.shape[0] if hasattr(block, "shape") and len(block.shape) else len(block)


def labels_by_view(views: Views, y: Any, per_view: bool) -> dict[str, Any]:
    """The labels of the rows of every view, in the form in which they came."""
    if y is None:
        return dict.fromkeys(views.names)
    if not per_view:
        check_consistent_length(views, y)
        everything = views.is_paired
        return {n: y if everything else _safe_indexing(y, views.objects(n)) for n in views.names}
    labels = dict(y) if isinstance(y, Mapping) else dict(zip(views.names, y, strict=True))
    if set(labels) != set(views.names):
        raise ValueError(f"Expected labels of the views {list(views.names)}, got {list(labels)}.")
    for name in views.names:
        if _height(labels[name]) != views[name].shape[0]:
            raise ValueError(
                f"View {name!r} has {views[name].shape[0]} rows but {_height(labels[name])} labels."
            )
    return labels


def encode_views(views: Views, y: Any, per_view: bool) -> tuple[LabelTable, dict[str, np.ndarray]]:
    """Distinct label vectors over all views, and the code of every row of every view."""
    if not per_view:
        shared, of_objects = encode_labels(y)
        if len(of_objects) != len(views):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[len(views), len(of_objects)]}. One label (or label set) per object is expected."
            )
        return shared, {name: of_objects[views.objects(name)] for name in views.names}
    labels = labels_by_view(views, y, per_view)
    encoded = []
    for name in views.names:
        try:
            encoded.append(encode_labels(labels[name]))
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error
    table, of_each = in_one_table(encoded)
    return table, dict(zip(views.names, of_each, strict=True))


def used_lines(
    table: LabelTable, codes: Mapping[str, np.ndarray]
) -> tuple[LabelTable, dict[str, np.ndarray]]:
    """The lines of a table that some row refers to, and the codes of the rows in these."""
    used, moved = np.unique(np.concatenate(list(codes.values())), return_inverse=True)
    if len(used) == len(table):
        return table, dict(codes)
    ends = np.cumsum([len(code) for code in codes.values()])[:-1]
    parts = zip(codes, np.split(moved, ends), strict=True)
    return LabelTable(table.vectors[used], table.vocabulary), dict(parts)
