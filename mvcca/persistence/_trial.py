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
from mvcca.retrieval.ranking import Ranking

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
        _check_attributes(estimator)
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


def _check_attributes(model: MultiViewEstimator) -> None:
    """Check that the arrays of a fitted model fit together, before products that may be huge."""
    names, k = model.view_names_, operator.index(model.n_components_)
    if type(names) is not tuple or not names or not all(type(name) is str for name in names):
        raise TypeError(f"view_names_ is {names!r}")
    for name in names:
        if not hasattr(model, "weights_") and (
            hasattr(model, "encode") or hasattr(model, "predictors_")
        ):
            continue  # outputs of networks or predictors are the scores
        n_in = len(model.weights_[name])
        _check_floats(f"weights_[{name!r}]", model.weights_[name], (n_in, k))
        if hasattr(model, "means_"):
            _check_floats(f"means_[{name!r}]", model.means_[name], (n_in,))
        if hasattr(model, "precisions_"):
            _check_floats(f"precisions_[{name!r}]", model.precisions_[name], (n_in, n_in))
        if hasattr(model, "encode") and (row := _row_for(model)) is not None:
            width = model.encode({name: row[name]})[name].shape[1]
            if width != n_in:
                raise ValueError(f"{width} outputs of the network of {name!r} meet {n_in}")
    if (z := model.confounds) is not None:
        n_confounds = len(model.means_[z])
        _check_floats(f"means_[{z!r}]", model.means_[z], (n_confounds,))
        for name in names:
            what, shape = (
                f"confound_coefficients_[{name!r}]",
                (n_confounds, len(model.means_[name])),
            )
            _check_floats(what, model.confound_coefficients_[name], shape)
    if hasattr(model, "history_"):
        if len({np.shape(model.history_["epoch"]), *map(np.shape, model.history_.values())}) > 1:
            raise ValueError("columns of history_ differ in length")
        operator.index(model.best_epoch_)
    for spectrum in ("eigenvalues_", "canonical_correlations_"):
        if hasattr(model, spectrum):
            values = getattr(model, spectrum)
            _check_floats(spectrum, values, (len(values),))
    if hasattr(model, "questions_"):
        model.questions_.check({name: len(model.means_[name]) for name in names})
    if hasattr(model, "ranking_"):
        Ranking.of(model)


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
        _check_floats("cluster_centers_", centers, (len(centers), estimator.n_features_in_))
        if hasattr(estimator, "_counts"):
            _check_floats("_counts", estimator._counts, (len(centers),))
    if hasattr(estimator, "pooling_func"):  # memory is as large as the largest label
        labels = estimator.labels_
        if not 0 <= labels.min() <= labels.max() < len(labels):
            raise ValueError("labels_ are not numbers of clusters")


def _check_floats(what: str, array: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f" or array.shape != shape:
        found = f"{array.dtype} {array.shape}" if hasattr(array, "shape") else repr(type(array))
        raise ValueError(f"{what} is {found} where numbers of shape {shape} belong")


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
