"""A trial of loaded estimators on one row, so that an odd one fails to load, and not later.

A file with valid checksums may still hold weights of another shape, no means, or a list where an
array belongs. Every fitted estimator is asked for the scores of one row of ones.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mvcca.base import MultiViewEstimator
from mvcca.compose import JoinViews, PerView
from mvcca.linear import MVCCA

_MOST_FEATURES = 2**20  # of a row that is made for a trial: a file may declare any number


def tried(estimator: Any) -> Any:
    """The estimator, if it is not fitted or transforms a row.

    Raises
    ------
    Exception
        Whatever `transform` raises, or TypeError or ValueError if its attributes do not go
        together.
    """
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return estimator
    if isinstance(estimator, MultiViewEstimator):
        _check_attributes(estimator)
    tested = _without_networks(estimator)
    rows = _row_for(tested)
    if rows is None:
        return estimator
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        transformed = tested.transform(rows)
    if isinstance(estimator, MultiViewEstimator):
        expected = 1, estimator.n_components_
        for name, scores in transformed.items():
            if scores.shape != expected:
                raise ValueError(f"scores of view {name!r} are of shape {scores.shape}")
    return estimator


def _check_attributes(model: MultiViewEstimator) -> None:
    """Check that the arrays of a fitted model go together; products of others might be huge."""
    names, k = model.view_names_, operator.index(model.n_components_)
    if type(names) is not tuple or not names or not all(type(name) is str for name in names):
        raise TypeError(f"view_names_ is {names!r}")
    for name in names:
        weights = model.weights_[name]
        _check_floats(f"weights_[{name!r}]", weights, (len(weights), k))
        if hasattr(model, "means_"):
            _check_floats(f"means_[{name!r}]", model.means_[name], (len(weights),))
        if hasattr(model, "encoders_"):
            from mvcca.deep.storage import output_width

            width = output_width(model.encoders_[name], model._fitted_width(name))
            if width != len(weights):
                raise ValueError(f"{width} outputs of the network of {name!r} meet {len(weights)}")
    if hasattr(model, "history_"):
        if {np.shape(column) for column in model.history_.values()} != {
            np.shape(model.history_["epoch"])
        }:
            raise ValueError("columns of history_ differ in length")
        operator.index(model.best_epoch_)
    for spectrum in ("eigenvalues_", "canonical_correlations_"):
        if hasattr(model, spectrum):
            values = getattr(model, spectrum)
            _check_floats(spectrum, values, (len(values),))


def _without_networks(estimator: Any) -> Any:
    """The linear part of a deep estimator: networks may allocate whatever their layers declare."""
    if not hasattr(estimator, "encoders_"):
        return estimator
    linear = MVCCA(power=estimator.power)
    linear.__dict__.update(estimator.__dict__)
    return linear


def _check_floats(what: str, array: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.shape != shape:
        found = f"{array.dtype} {array.shape}" if hasattr(array, "shape") else repr(type(array))
        raise ValueError(f"{what} is {found} where numbers of shape {shape} belong")


def _row_for(estimator: Any) -> Any:
    """A row that the estimator should transform; None if it does not say, or it would be huge."""
    if not hasattr(estimator, "transform"):
        raise TypeError(f"{estimator!r} is no transformer")
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        return _row_for(steps[0]) if steps else None
    if isinstance(estimator, MultiViewEstimator):
        widths = {name: estimator._fitted_width(name) for name in estimator.view_names_}
        return _rows({name: _ones(width) for name, width in widths.items()})
    if isinstance(estimator, PerView):
        return _rows({name: _row_for(part) for name, part in estimator.transformers_.items()})
    if isinstance(estimator, JoinViews) and estimator.view_names_:
        return _rows({name: _ones(estimator._widths[name]) for name in estimator.view_names_})
    width = getattr(estimator, "n_features_in_", None)
    return None if width is None else _ones(width)


def _ones(width: Any) -> np.ndarray | None:
    width = operator.index(width)
    return np.ones((1, width)) if width <= _MOST_FEATURES else None


def _rows(rows: dict[str, np.ndarray | None]) -> dict[str, np.ndarray] | None:
    made = {name: row for name, row in rows.items() if row is not None}
    return made if len(made) == len(rows) else None
