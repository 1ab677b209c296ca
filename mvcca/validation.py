"""Checks of one matrix, of labels and of weights: what every door of the package asks of its input.

Each names what was expected, what came and what to do. Rows that are not in memory are checked as
they are read, by `mvcca._checked_rows`; how views are opened, and given back in the container that
they came in, is `mvcca.base`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight

from mvcca._backend import at_home, is_device_array, namespace
from mvcca._threads import each
from mvcca.config import block_size, block_slices
from mvcca.labels import LabelTable, encode_labels, in_one_table
from mvcca.sources import as_source
from mvcca.views import Views, in_memory

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


def check_device_matrix(block: Any, estimator: str, ensure_min_samples: int = 1) -> Any:
    """A device block as floats, where it is, with scikit-learn's checks of an array."""
    xp = namespace(block)
    if block.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {block.ndim}D array instead, of shape {tuple(block.shape)}. "
            "Reshape your data: a single feature with x.reshape(-1, 1)."
        )
    if str(getattr(block, "layout", "torch.strided")) != "torch.strided":
        raise TypeError("Sparse tensors are not supported. Pass a sparse matrix of SciPy.")
    if xp.isdtype(block.dtype, "complex floating"):
        raise ValueError(f"Complex data not supported, got {block.dtype}.")
    for size, what, least in zip(
        block.shape, ("sample", "feature"), (ensure_min_samples, 1), strict=True
    ):
        if size < least:
            raise ValueError(
                f"Found array with {size} {what}(s) (shape={tuple(block.shape)}) while a minimum "
                f"of {least} is required by {estimator}."
            )
    if hasattr(block, "detach"):  # torch keeps no record of how a model came about
        block = block.detach()
    if block.dtype not in (xp.float32, xp.float64):
        block = xp.astype(block, xp.float64)
    # What is not finite makes the sum so; to look at every number is for the rare rest.
    if not xp.isfinite(xp.sum(block)) and not xp.all(xp.isfinite(block)):
        if xp.any(xp.isnan(block)):
            raise ValueError("Input contains NaN.")
        raise ValueError("Input contains infinity or a value too large for its precision.")
    return block


def is_finite(block: Any) -> bool:
    """Whether a large dense block of floats is seen to be finite, by all threads at once.

    Of others, and where it is not, False: `check_array` looks again, and says what is wrong.
    """
    if not isinstance(block, np.ndarray) or block.dtype not in FLOATS or block.ndim != 2:
        return False
    slices = list(block_slices(len(block), block.itemsize * block.shape[1]))
    if len(slices) < 2:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(each(lambda rows: block[rows].sum(), slices)).all())


def of_view(name: str, error: ValueError | TypeError) -> ValueError | TypeError:
    """The error again, saying which view it is about."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    return kind(f"View {name!r}: {error}")


def read_small(views: Views) -> Views:
    """Views, those in memory that are no larger than a block or than their own covariance."""
    blocks = {}
    for name, block in views.items():
        n_rows, n_features = block.shape
        is_small = n_rows <= max(n_features, block_size(8 * n_features))
        blocks[name] = in_memory(block) if is_small else block
    return views.replace(blocks)


def read_labels(y: Any) -> Any:
    """Labels, those in memory that came as a Dask array, in a file or on a device."""
    if isinstance(y, Mapping) and not issparse(y):
        return {name: read_labels(part) for name, part in y.items()}
    if isinstance(y, list | tuple) and any(hasattr(part, "shape") for part in y):
        return type(y)(read_labels(part) for part in y)
    if hasattr(y, "dask"):
        return y.compute()
    if is_device_array(y):
        return at_home(y)
    source = as_source(y) if getattr(y, "ndim", 0) == 2 else None
    return y if source is None else in_memory(source)


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
        at_home(sample_weight), column, dtype=np.float64, ensure_non_negative=True
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
