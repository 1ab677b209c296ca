"""The affine map of a view, read from the fitted attributes of an estimator or a pipeline.

Nothing is projected to find it: differences of projections would lose what rounding takes from
features of a large scale or a large mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.utils.validation import check_is_fitted

from mvcca.base import MultiViewEstimator
from mvcca.compose import PerView
from mvcca.interop.migration.result import Migration
from mvcca.interop.row_maps import CentredMap
from mvcca.problem.expected import component_weights
from mvcca.retrieval.ranking import Ranking, fitted_steps


def affine_map(
    estimator: Any, view: str, *, weighted: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return the affine map x ↦ xᵀW + b of a view, from a fitted estimator or pipeline.

    Parameters
    ----------
    estimator : fitted estimator or Migration
        A linear estimator; or a pipeline that ends in one, after steps of `PerView` with the
        scalers of scikit-learn, PCA, truncated SVD, random projections or feature selection. The
        views of a `mvcca.interop.migration.Migration` are "old" and "new"; if its `normalize` says
        so, rows are to be scaled to length 1 after this map.
    view : str
        Name of the view.
    weighted : bool, default=True
        Fold in the weights √(ρ / (1 - ρ²)) of estimators with correlations, so that the cosine of
        mapped rows ranks as ``RetrievalIndex(..., weighting="likelihood-cosine")``. Otherwise
        mapped rows are those of ``transform``.

    Returns
    -------
    W : ndarray, shape (n_features, n_outputs)
        Weights, in float64: those of the estimator, multiplied by those of the steps before it.
    b : ndarray, shape (n_outputs,)
        Bias, into which the training means are folded.

    Raises
    ------
    ValueError
        If the view is unknown, its map is not affine (kernels, networks), a step is of an unknown
        type, or the estimator does not rank by a cosine.

    Notes
    -----
    If the mean of a feature is many times its spread, xᵀW and b nearly cancel: compute them in
    float64, or subtract the mean from the rows first.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.interop import affine_map
    >>> views = load_digits_views().views
    >>> model = CCA(9, reg=0.1).fit(views)
    >>> W, b = affine_map(model, "left", weighted=False)
    >>> bool(np.allclose(views["left"] @ W + b, model.transform(views)["left"]))
    True
    """
    centred = centred_map(estimator, view, weighted=weighted)
    return centred.W, centred.bias


def centred_map(estimator: Any, view: str, *, weighted: bool) -> CentredMap:
    """The map of `affine_map`, with the center of the first step kept apart."""
    if isinstance(estimator, Migration):
        return estimator.centred_map(view)
    *before, last = fitted_steps(estimator)
    centred = _of_estimator(last, view)
    if weighted:
        factors = _weights(estimator)
        centred = replace(centred, W=centred.W * factors, offset=centred.offset * factors)
    for step in reversed(before):
        centred = _after_step(step, view, centred)
    return centred


def _of_estimator(estimator: Any, view: str) -> CentredMap:
    if not _is_affine(estimator):
        raise ValueError(
            f"{type(estimator).__name__} does not map view {view!r} by an affine map. Use "
            "mvcca.retrieval.retrieval_vectors for the vectors themselves."
        )
    check_is_fitted(estimator)
    if view not in estimator.weights_:
        raise ValueError(f"Unknown view {view!r}; the views are {list(estimator.weights_)}.")
    W = np.asarray(estimator.weights_[view], dtype=float)
    if estimator.maps_.power:
        W = W * estimator.maps_.factors(W.dtype)
    center = np.asarray(estimator.means_[view], dtype=float)
    return CentredMap(center, W, np.zeros(W.shape[1]))


def _is_affine(estimator: Any) -> bool:
    """Whether rows of a view are projected by its weights and means, and by nothing else."""
    if getattr(estimator, "confounds", None) is not None:  # whose rows take part
        return False
    own = type(estimator)
    return issubclass(own, MultiViewEstimator) and own._projection is MultiViewEstimator._projection


def _after_step(step: Any, view: str, then: CentredMap) -> CentredMap:
    """`then` after a step of the pipeline, which takes and returns views."""
    if isinstance(step, PerView):
        check_is_fitted(step)
        if view not in step.transformers_:
            raise ValueError(f"Unknown view {view!r}; the views are {list(step.transformers_)}.")
        return _after_transformer(step.transformers_[view], view, then)
    before = _of_estimator(step, view)
    return then.after_product(before.W, before.center)


def _after_transformer(transformer: Any, view: str, then: CentredMap) -> CentredMap:
    """`then` after a transformer of the view's rows."""
    if isinstance(transformer, Pipeline):
        for step in reversed(fitted_steps(transformer)):
            then = _after_transformer(step, view, then)
        return then
    check_is_fitted(transformer)
    if isinstance(transformer, SelectorMixin):
        return then.after_selection(transformer.get_support())
    # Subclasses may transform in another way.
    known = _TRANSFORMERS.get(type(transformer), lambda *_: None)(transformer, then)
    if known is None:
        raise ValueError(
            f"The affine map of view {view!r} cannot be read from the step {transformer}. Known "
            f"are {', '.join(kind.__name__ for kind in _TRANSFORMERS)} (without clip or func) and "
            "feature selection. Use mvcca.retrieval.retrieval_vectors for the vectors themselves."
        )
    return known


def _after_standard_scaler(step: Any, then: CentredMap) -> CentredMap:
    scale = 1.0 if step.scale_ is None else 1 / step.scale_
    return then.after_scaling(scale, step.mean_ if step.with_mean else None)


def _after_robust_scaler(step: Any, then: CentredMap) -> CentredMap:
    return then.after_scaling(1.0 if step.scale_ is None else 1 / step.scale_, step.center_)


def _after_min_max_scaler(step: Any, then: CentredMap) -> CentredMap | None:
    if step.clip:
        return None
    return then.after_scaling(step.scale_, step.data_min_, step.feature_range[0])


def _after_max_abs_scaler(step: Any, then: CentredMap) -> CentredMap | None:
    if getattr(step, "clip", False):  # since scikit-learn 1.8
        return None
    return then.after_scaling(1 / step.scale_)


def _after_pca(step: Any, then: CentredMap) -> CentredMap:
    if step.whiten:
        deviations = np.sqrt(step.explained_variance_)
        least = np.finfo(deviations.dtype).eps  # as in PCA.transform
        then = then.after_scaling(1 / np.maximum(deviations, least))
    return then.after_product(step.components_.T, step.mean_)


_TRANSFORMERS: dict[type, Callable[[Any, CentredMap], CentredMap | None]] = {
    StandardScaler: _after_standard_scaler,
    RobustScaler: _after_robust_scaler,
    MinMaxScaler: _after_min_max_scaler,
    MaxAbsScaler: _after_max_abs_scaler,
    PCA: _after_pca,
    IncrementalPCA: _after_pca,
    **dict.fromkeys(
        (TruncatedSVD, GaussianRandomProjection, SparseRandomProjection),
        lambda step, then: then.after_product(step.components_.T),
    ),
    FunctionTransformer: lambda step, then: then if step.func is None else None,
}


def _weights(estimator: Any) -> np.ndarray | float:
    """Factors of the scores of `transform` whose cosine ranks."""
    ranking = Ranking.of(estimator)
    if ranking.method == "transform" and ranking.similarity.name == "cosine":
        return 1.0
    last = fitted_steps(estimator)[-1]
    if not hasattr(last, "expected_correlations_"):
        raise ValueError(
            f"{type(last).__name__} ranks by {ranking}, which is not the cosine of an affine map. "
            "Use weighted=False, or mvcca.retrieval.retrieval_vectors."
        )
    return component_weights(last.expected_correlations_)
