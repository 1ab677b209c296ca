"""Check rows against the views of a fit, as `mvcca.base.inputs` noted them.

What an estimator asks of any rows is in its ``requires`` and in its parameters `confounds` and
`missing`. scikit-learn, which takes a second to import, is not needed here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks.checks import column_labels
from mvcca.views import Views, as_views
from mvcca.views.coding import coded_view
from mvcca.views.validation import check_column_names, check_confounds_known

_INTEGERS = (np.int64, np.int32, np.int16, np.uint16, np.int8, np.uint8)


def as_fitted_views(estimator: Any, X: Any, unpaired: bool = False) -> Views:
    """A container as `Views`, the views of a list in the order of those that were fitted.

    Rows of a mapping or a list that are `unpaired` are still paired with their confounds.
    """
    unpaired = unpaired and estimator.confounds is None
    return as_views(X, tuple(estimator._widths), unpaired=unpaired)


def checked_views(estimator: Any, views: Views, *, allow_empty: bool, least: int = 1) -> Views:
    """Views that fit the fitted ones, with rows that can be computed with.

    With `allow_empty`, some views may have no rows.
    """
    minimum = 0 if allow_empty and len(views) else least
    requires, confounds, missing = estimator.requires, estimator.confounds, estimator.missing
    if confounds is not None:
        check_confounds(estimator, views)
        views, _ = coded_view(views, confounds, getattr(estimator, "_coding", {}))
    for name, block in views.blocks.items():
        if name not in estimator._widths:
            raise ValueError(
                f"Unknown view {name!r}; {type(estimator).__name__} was fitted on the views "
                f"{list(estimator._widths)}."
            )
        fitted = estimator._widths[name], estimator._column_names[name]
        check_features(estimator, name, (block.shape[1], column_labels(block.matrix)), fitted)
    blocks = {}
    for name, block in views.blocks.items():
        options: dict[str, Any] = {"ensure_min_samples": minimum}
        if requires.integers and isinstance(block.matrix, np.ndarray):
            options |= {"dtype": _INTEGERS} if block.dtype in _INTEGERS else {}
        if missing != "error" and name != confounds:
            options["ensure_all_finite"] = "allow-nan"
        checked = block.checked(estimator, name, views.informative_ids_of(name), **options)
        blocks[name] = checked.on_host() if requires.host else checked
    return Views.of(blocks, views.seen, views.ids, views.removed)


def check_confounds(estimator: Any, views: Views) -> None:
    """Refuse rows whose confounds are not known."""
    check_names_of_confounds(estimator, views.names)
    check_confounds_known(views, estimator.confounds)


def check_names_of_confounds(estimator: Any, names: tuple[str, ...]) -> None:
    """Refuse views without that of the confounds."""
    z = estimator.confounds
    if z not in names:
        raise ValueError(
            f"{type(estimator).__name__}(confounds={z!r}) needs the view {z!r} beside the "
            "others, in fit and later: scores are those of what it leaves unexplained. Got "
            f"the views {list(names)}."
        )


def check_features(
    estimator: Any,
    name: str,
    found: tuple[int, tuple[str | int, ...] | None],
    fitted: tuple[int, tuple[str | int, ...] | None],
) -> None:
    """Refuse rows of a view whose number or names of columns are not those of the fit."""
    (width, columns), (expected, names) = found, fitted
    if width != expected:
        raise ValueError(
            f"View {name!r} has {width} features, but {type(estimator).__name__} is expecting "
            f"{expected} features as input."
        )
    if columns is not None:
        check_column_names(name, names, columns)


def check_fitted_views(step: Any, views: Views) -> None:
    """Refuse views that a step was not fitted on, or with other columns."""
    for name, block in views.items():
        if name not in step._widths:
            raise ValueError(
                f"Unknown view {name!r}; {type(step).__name__} was fitted on the views "
                f"{list(step.view_names_)}."
            )
        found = block.shape[1], column_labels(block)
        check_features(step, name, found, (step._widths[name], step._columns[name]))
