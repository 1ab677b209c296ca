"""Try loaded estimators on one row, so that an inconsistent one fails to load, and not later.

A file with valid checksums may still hold weights of another shape, no means, or a list where an
array belongs. The attributes of our estimators are checked, and every fitted estimator whose
transform is a bounded formula transforms one row of ones. Transformers of scikit-learn that
iterate, refuse unknown values, or allocate what a parameter says are not tried.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from mvcca.base import MultiViewEstimator
from mvcca.compose import JoinViews, PerView, SplitViews, Tokens
from mvcca.persistence.maps import check_attributes, check_floats

_MOST_FEATURES = 2**20  # of the row: a file may declare any number
_TRIED = (  # transformers of scikit-learn
    "Binarizer FactorAnalysis FastICA GaussianRandomProjection GenericUnivariateSelect "
    "IncrementalPCA KMeans KernelPCA LinearDiscriminantAnalysis MaxAbsScaler MinMaxScaler "
    "MiniBatchKMeans NeighborhoodComponentsAnalysis Normalizer Nystroem PCA PLSCanonical "
    "PLSRegression PLSSVD PowerTransformer QuantileTransformer RBFSampler RobustScaler SelectFdr "
    "SelectFpr SelectFwe SelectKBest SelectPercentile SkewedChi2Sampler SparseRandomProjection "
    "StandardScaler TfidfTransformer TruncatedSVD VarianceThreshold"
)


def tried(estimator: Any) -> Any:
    """Return the estimator, or raise what `transform` raises, or an error of its attributes."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return estimator
    if isinstance(estimator, MultiViewEstimator):
        check_attributes(estimator)
        _check_networks(estimator)
    if isinstance(estimator, Tokens):
        _check_vocabulary(estimator)
    if isinstance(estimator, CountVectorizer):  # compiled code follows the positions
        _check_positions(estimator.vocabulary_, 0)
    _check_followed_by_compiled_code(estimator)
    row = _row_for(estimator)
    if row is None:
        return estimator
    quiet = warnings.catch_warnings(action="ignore")
    with quiet, np.errstate(all="ignore"), joblib.parallel_config("sequential"):
        transformed = estimator.transform(row)
    if isinstance(estimator, MultiViewEstimator):
        for name, scores in transformed.items():
            if scores.shape != (row[name].shape[0], estimator.n_components_):
                raise ValueError(f"scores of view {name!r} are of shape {scores.shape}")
    return estimator


# ---- checks --------------------------------------------------------------------------------------


def _check_networks(model: MultiViewEstimator) -> None:
    """Check that outputs of networks are what the maps of a model take."""
    if hasattr(model, "encoders_") and hasattr(model, "weights_"):
        row = _row_for(model)
        for name in () if row is None else model.view_names_:
            outputs = model.project({name: row[name]}, "encode")[name]
            width, n_in = outputs.shape[1], len(model.weights_[name])
            if width != n_in:
                raise ValueError(f"{width} outputs of the network of {name!r} meet {n_in}")


def _check_vocabulary(tokens: Tokens) -> None:
    """Check that positions are those of the networks, and that rows are not huge."""
    if _check_positions(tokens.vocabulary_, 2) != tokens.n_words_:
        raise ValueError(f"positions of words are not 2 to {tokens.n_words_ - 1}")
    if not 1 <= operator.index(tokens.length_) <= _MOST_FEATURES:
        raise ValueError(f"length_ is {tokens.length_}, not 1 to {_MOST_FEATURES:,}")


def _check_positions(vocabulary: Any, first: int) -> int:
    """Check that positions of words are consecutive, and return the one after the last."""
    positions = list(vocabulary.values())
    if not all(isinstance(position, int | np.integer) for position in positions):
        raise TypeError("vocabulary_ does not hold positions of words")
    end = first + len(positions)
    if sorted(positions) != list(range(first, end)):
        raise ValueError(f"positions of words are not {first} to {end - 1}")
    return end


def _check_followed_by_compiled_code(estimator: Any) -> None:
    """Check attributes of scikit-learn's clusterings whose shapes its compiled code trusts."""
    if hasattr(estimator, "cluster_centers_"):
        centers = estimator.cluster_centers_
        check_floats("cluster_centers_", centers, (len(centers), estimator.n_features_in_))
        if hasattr(estimator, "_counts"):
            check_floats("_counts", estimator._counts, (len(centers),))
    if hasattr(estimator, "pooling_func"):  # memory is as large as the largest label
        labels = estimator.labels_
        if not 0 <= labels.min() <= labels.max() < len(labels):
            raise ValueError("labels_ are not numbers of clusters")


# ---- the row -------------------------------------------------------------------------------------


def _row_for(estimator: Any) -> Any:
    """A row to be transformed; None if that is no bounded formula, or the row would be huge."""
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        rows = _rows({step: _row_for(step) for step in steps})
        return rows[steps[0]] if rows else None
    if hasattr(estimator, "best_estimator_"):
        return _row_for(estimator.best_estimator_)
    if isinstance(estimator, MultiViewEstimator):
        smoothers = getattr(estimator, "smoothers_", {}).values()  # of NCCA
        reducers = [s.reducer for s in smoothers if s.reducer is not None]
        if getattr(estimator, "_probe_rows", None):  # networks of the user may not take ones
            return estimator._probe_rows
        names = [*estimator.view_names_, *([estimator.confounds] if estimator.confounds else [])]
        widths = {name: estimator._widths[name] for name in names}
        tried = _rows({reducer: _row_for(reducer) for reducer in reducers}) is not None
        return _rows({name: _ones(width) for name, width in widths.items()}) if tried else None
    if isinstance(estimator, PerView):
        return _rows({name: _row_for(part) for name, part in estimator.transformers_.items()})
    if isinstance(estimator, JoinViews) and estimator.view_names_:
        return _rows({name: _ones(estimator._widths[name]) for name in estimator.view_names_})
    if isinstance(estimator, Tokens | CountVectorizer):
        return ["word"]
    tried = isinstance(estimator, JoinViews | SplitViews)
    tried |= isinstance(estimator, FunctionTransformer) and estimator.func is None
    tried |= type(estimator).__name__ in _TRIED.split()
    return _ones(getattr(estimator, "n_features_in_", None)) if tried else None


def _ones(width: Any) -> np.ndarray | None:
    return None if width is None or width > _MOST_FEATURES else np.ones((1, operator.index(width)))


def _rows(rows: dict[Any, Any]) -> dict[Any, Any] | None:
    return None if any(row is None for row in rows.values()) else rows
