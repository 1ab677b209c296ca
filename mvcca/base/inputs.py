"""Containers and matrices in, checked `Views` out.

The rows of a fit are noted on the estimator: the names, widths and columns of its views, and how
its confounds are encoded. `mvcca.base.fitted_views` checks further rows against these notes. What
an estimator asks of any rows is in its ``requires`` and in its parameters `confounds` and
`missing`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import validate_data

from mvcca.base.fitted_views import as_fitted_views, check_features, checked_views
from mvcca.base.unit_checks import is_at_risk, warn_of_unlike_units
from mvcca.blocks import Block, as_block, as_source, kind_of
from mvcca.blocks.checks import (
    FLOATS,
    column_labels,
    common_row_labels,
    explained,
    only_numbers,
)
from mvcca.problem import Rows
from mvcca.views import Views, as_views, holds_views
from mvcca.views.coding import coded_view
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.validation import (
    checked_sample_weight,
    read_small,
    repeated_objects,
)

# Of a fit, beside the fitted attributes:
NOTES = ("_y_is_vector", "_training", "_in_float32", "_pending", "_unsolved", "_solved")


def forget(estimator: BaseEstimator, *others: str) -> None:
    """Delete fitted attributes, which scikit-learn's `check_is_fitted` looks for, and others."""
    learned = [n for n in vars(estimator) if n.endswith("_") and not n.startswith("__")]
    for name in [*learned, *(n for n in others if n in vars(estimator))]:
        delattr(estimator, name)


# ---- rows to learn from --------------------------------------------------------------------------


def open_fit(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    labelled: bool | None = None,
    batch: bool = False,
    judged: bool = True,
) -> Rows:
    """Checked rows to learn from, with labels if `labelled`, and with weights if there are any.

    A `batch` is not asked for what all batches must hold together. With `judged`, columns in
    unlike units warn.
    """
    name = type(estimator).__name__
    labelled = estimator.requires.labels if labelled is None else labelled
    is_container = holds_views(X)
    if y is None and (labelled or not is_container):
        raise ValueError(_missing_y(name, labelled))
    per_view = labelled and is_container and is_per_view(X, y)
    views = open_views(
        estimator,
        X,
        None if labelled or is_container else y,
        reset=reset,
        unpaired=per_view and not isinstance(X, Views),
        allow_empty=batch or not reset,
        least=1 if batch else None,
    )
    labels = LabelsByView.of(views, y, per_view) if labelled else None
    if reset:
        check_number_of_views(estimator, views.names)
    else:
        views = _all_fitted(estimator, views)
    views = read_small(views) if views.is_lazy else views
    correlated = views if estimator.confounds is None else views.without(estimator.confounds)
    for view, block in correlated.blocks.items() if reset and judged else ():
        if is_at_risk(estimator, view):
            warn_of_unlike_units(estimator, view, block)
    if not labelled and reset and not batch and not (correlated.seen.sum(axis=1) > 1).any():
        raise ValueError(
            f"{name} learns from pairs, but no object is in two views. MLCCA and MVMLCCA take "
            "labels instead; rows that do correspond are paired with Views(blocks, index) or "
            "Views.aligned."
        )
    rows = Rows(views, labels=labels)
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, views, reset, batch)
        rows = replace(rows, sample_weight=weights)
        if not weights.all():
            rows = rows.take(np.flatnonzero(weights))
    return replace(rows, views=estimator._accepted(rows.views, reset))


def open_repeated(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """What `open_fit` returns, for methods without a weighted form: weights repeat rows."""
    rows = open_fit(estimator, X, y)
    views, labels, _ = repeated_views(estimator, rows.views, rows.labels, sample_weight)
    return replace(rows, views=views, labels=labels)


def repeated_views(
    estimator: Any,
    views: Views,
    labels: LabelsByView | None,
    sample_weight: Any,
    reset: bool = True,
) -> tuple[Views, LabelsByView | None, np.ndarray | None]:
    """Views with each object as often as it counts, labels of their rows, and the objects.

    The objects are None if each occurs once.
    """
    if sample_weight is None:
        return views, labels, None
    weights = checked_sample_weight(sample_weight, views, reset)
    reason = f"{type(estimator).__name__} learns from whole rows"
    return repeated_rows(views, labels, weights, reason)


def repeated_rows(
    views: Views, labels: LabelsByView | None, weights: np.ndarray, reason: str
) -> tuple[Views, LabelsByView | None, np.ndarray | None]:
    """Views with each object as often as it counts, labels of their rows, and the objects.

    The objects are None if each occurs once, so that nothing is copied.
    """
    objects = repeated_objects(weights, reason)
    if np.array_equal(objects, np.arange(len(views))):
        return views, labels, None
    if labels is not None:
        labels = labels.take(views.rows_of(objects))
    return views[objects], labels, objects


def _missing_y(name: str, labelled: bool) -> str:
    """Error message for a fit without the y that it needs."""
    message = f"{name} requires y to be passed, but the target y is None"
    if labelled:
        return message + (
            ": it learns from labels (a class vector, an indicator matrix, label sets, or real "
            "label vectors)."
        )
    return message + (
        ". With one matrix X, y is the second view; or pass Views, a mapping or a list of views."
    )


def _all_fitted(estimator: Any, views: Views) -> Views:
    """All fitted views, in their order; a batch may lack none."""
    names = tuple(estimator._widths)
    if missing := [name for name in names if name not in views.names]:
        raise ValueError(f"Every batch must hold the views {list(names)}; missing: {missing}.")
    return views if views.names == names else views.select(names)


def check_number_of_views(estimator: Any, names: tuple[str, ...]) -> None:
    """Refuse fewer or more views than the method takes, confounds aside."""
    found, name = len(names) - (estimator.confounds is not None), type(estimator).__name__
    least, most = estimator.requires.views
    if found < least:
        raise ValueError(
            f"{name} takes at least {least} views, got {found}. In cross-validations and "
            "splits of scikit-learn pass mvcca.Views(views), which are split by object; lists "
            "and dicts are split by view."
        )
    if most is not None and found > most:
        raise ValueError(
            f"{name} takes {most} views, got {found}: {list(estimator.view_names_)}. Use MVCCA for "
            "more."
        )


def paired_objects(estimator: Any, rows: Rows, whole: bool) -> np.ndarray:
    """The objects to learn from; each view needs some, where these are all rows."""
    kept = np.flatnonzero(estimator._holds_pair(rows.views))
    views, weights = rows.views[kept], rows.sample_weight
    weights = None if weights is None else weights[kept]
    counts = views.seen.sum(axis=0) if weights is None else weights @ views.seen
    for name, count in zip(views.names, counts, strict=True):
        if whole and not count > 1:
            raise ValueError(
                f"{type(estimator).__name__} learns from pairs, but view {name!r} shares {count:g} "
                "objects with the others. Pair at least two, or select the other views."
            )
    return kept


# ---- any rows ------------------------------------------------------------------------------------


def open_views(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    unpaired: bool = False,
    allow_empty: bool = False,
    least: int | None = None,
) -> Views:
    """Check the input, against the fitted views unless `reset`; y is a second view here.

    With `allow_empty`, views of `Views` may have no rows. `least` is the number of rows that are
    needed, by default 2 to `reset`, which deletes the attributes of an earlier fit.
    """
    least = (2 if reset else 1) if least is None else least
    if reset:
        forget(estimator, *NOTES)
    if not holds_views(X):
        frames = {"X": X} if y is None else {"X": X, "y": y}
        return open_matrices(estimator, frames, reset=reset, unpaired=unpaired, least=least)
    if reset:
        views = as_views(X, unpaired=unpaired)
        if estimator.confounds is not None and estimator.confounds in views:
            views, estimator._coding = coded_view(views, estimator.confounds)
        columns = {name: column_labels(block) for name, block in views.items()}
        note_views(estimator, views.widths, columns)
    else:
        views = as_fitted_views(estimator, X, unpaired)
    allow_empty = allow_empty and isinstance(X, Views)
    return checked_views(estimator, views, allow_empty=allow_empty, least=least)


def open_again(estimator: Any, X: Any, y: Any) -> Views:
    """Check what `fit` takes, against the fitted views."""
    second = None if estimator.requires.labels or holds_views(X) else y
    per_view = y is not None and holds_views(X) and is_per_view(X, y)
    unpaired = per_view and not isinstance(X, Views)
    return open_views(estimator, X, second, reset=False, unpaired=unpaired)


def note_views(
    estimator: Any,
    widths: dict[str, int],
    columns: dict[str, tuple[str | int, ...] | None],
) -> None:
    """Note the views of a fit, which further rows must match."""
    estimator.n_features_in_ = sum(widths.values())
    estimator.view_names_ = tuple(name for name in widths if name != estimator.confounds)
    estimator._widths, estimator._column_names = widths, columns


# ---- lone matrices -------------------------------------------------------------------------------


def open_matrices(
    estimator: Any, frames: dict[str, Any], *, reset: bool, unpaired: bool, least: int = 1
) -> Views:
    """Check lone matrices X and y, scikit-learn's convention for cross-decomposition."""
    if estimator.confounds is not None:
        raise ValueError(
            f"confounds={estimator.confounds!r} names a view: pass Views or a mapping that holds "
            "it beside the others, in place of lone matrices."
        )
    if not reset and "X" not in estimator.view_names_:
        names = estimator.view_names_
        raise ValueError(
            f"{type(estimator).__name__} was fitted on the views {list(names)}; name the "
            f"view of a lone matrix: {{{names[0]!r}: X}}."
        )
    if "y" in frames and not reset and "y" not in estimator.view_names_:
        raise ValueError(f"{type(estimator).__name__} was fitted without a second view y.")
    blocks = {n: _checked_matrix(estimator, n, X, reset, least) for n, X in frames.items()}
    check_consistent_length(*(block.matrix for block in blocks.values()))
    columns: dict[str, Any] = dict.fromkeys(frames)
    views = Views.of(blocks, np.ones((blocks["X"].shape[0], len(blocks)), dtype=bool))
    if any(type(frame) is not np.ndarray for frame in frames.values()):  # which has no labels
        columns = {name: column_labels(frame) for name, frame in frames.items()}
        views = views.with_ids(None if unpaired else common_row_labels(frames))
    if reset:
        estimator.view_names_, estimator._widths = views.names, views.widths
        estimator._column_names = columns
    else:
        for name, width in views.widths.items():
            fitted = estimator._widths[name], estimator._column_names[name]
            check_features(estimator, name, (width, columns[name]), fitted)
    return views


def _checked_matrix(estimator: Any, name: str, X: Any, reset: bool, least: int) -> Block:
    """Check X, whose features scikit-learn records, or y, which may be a vector."""
    options: dict[str, Any] = {"ensure_min_samples": least}
    if estimator.missing != "error":
        options["ensure_all_finite"] = "allow-nan"
    is_plain = type(X) is np.ndarray and X.dtype.kind in "fiub"
    source = None if is_plain else X if kind_of(X).on_device else as_source(X)
    if source is not None:
        is_vector = name == "y" and source.ndim == 1
        block = as_block(source[:, None] if is_vector else source)
        block = block.checked(estimator, name, **options)
        if name == "X" and reset:
            estimator.n_features_in_ = block.shape[1]
        block = block.on_host() if estimator.requires.host else block
    else:
        X = X if is_plain else only_numbers(X)
        options |= {"accept_sparse": "csr", "dtype": FLOATS}
        check = partial(validate_data, estimator, reset=reset)
        if name == "y":
            check = partial(check_array, estimator=estimator, input_name=name)
            options["ensure_2d"] = False
        try:
            checked = check(X, **options)
        except ValueError as error:
            raise explained(error, X, **options) from None
        is_vector = checked.ndim == 1
        block = as_block(checked.reshape(-1, 1) if is_vector else checked)
        block = block if is_plain else block.canonical()
    if is_vector and reset:
        estimator._y_is_vector = True  # predictions of it are vectors, too
    return block
