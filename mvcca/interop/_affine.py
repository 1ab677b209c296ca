"""The affine map of a view: what a linear estimator, or a pipeline of linear steps, does to a row.

The map is read off the projections of unit vectors, so that it does not matter which steps it is
made of, and compared with the projections of random rows, so that a map that is not affine raises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.problem._expected import component_weights
from mvcca.retrieval.ranking import Ranking, fitted_steps
from mvcca.views import as_views

_BLOCK_ROWS = 1024  # unit vectors projected at once
_N_TRIED = 8
_TOLERANCE = 1e-6  # of the projections of random rows, in units of their largest entry


def affine_map(
    estimator: Any, view: str, n_features: int | None = None, *, weighted: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Read the affine map x ↦ xᵀW + b of a view off a fitted estimator or pipeline.

    Parameters
    ----------
    estimator : fitted estimator
        A linear estimator, or a pipeline of linear steps before one (scaling, PCA).
    view : str
        Name of the view.
    n_features : int, optional
        Width of the view; by default that of the estimator's ``weights_``. A pipeline needs it.
    weighted : bool, default=True
        Fold in the weights √(ρ / (1 - ρ²)) of estimators with correlations, so that the cosine of
        mapped rows ranks as ``RetrievalIndex(..., weighting="likelihood-cosine")``. Otherwise
        mapped rows are those of ``transform``.

    Returns
    -------
    W : ndarray, shape (n_features, n_outputs)
        Weights, in float64.
    b : ndarray, shape (n_outputs,)
        Bias, into which the training means are folded.

    Raises
    ------
    ValueError
        If the view is unknown, its map is not affine (kernels, networks), or the estimator does
        not rank by a cosine.

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
    if n_features is None:
        n_features = _fitted_width(estimator, view)

    def project(rows: np.ndarray) -> np.ndarray:
        scores = as_views(estimator.transform({view: rows})).in_memory()[view]
        return np.asarray(scores, dtype=np.float64)

    weights = _weights(estimator) if weighted else 1.0
    b = project(np.zeros((1, n_features)))[0]
    W = np.empty((n_features, len(b)))
    for start in range(0, n_features, _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, n_features)
        W[start:stop] = project(np.eye(stop - start, n_features, start)) - b
    rows = np.random.default_rng(0).normal(size=(_N_TRIED, n_features))
    mapped, scores = rows @ W + b, project(rows)
    if not np.abs(mapped - scores).max() <= _TOLERANCE * max(np.abs(mapped).max(), 1e-300):
        raise ValueError(
            f"The map of view {view!r} is not affine: {type(estimator).__name__} or a step before "
            "it is nonlinear. Use mvcca.retrieval.retrieval_vectors for the vectors themselves."
        )
    return W * weights, b * weights


def _weights(estimator: Any) -> np.ndarray | float:
    """Factors of the scores of `transform` whose cosine ranks."""
    ranking = Ranking.of(estimator)
    if ranking.method == "transform" and ranking.similarity == "cosine":
        return 1.0
    last = fitted_steps(estimator)[-1]
    if not hasattr(last, "expected_correlations_"):
        raise ValueError(
            f"{type(last).__name__} ranks by {ranking}, which is not the cosine of an affine map. "
            "Use weighted=False, or mvcca.retrieval.retrieval_vectors."
        )
    return component_weights(last.expected_correlations_)


def _fitted_width(estimator: Any, view: str) -> int:
    weights = getattr(estimator, "weights_", None)
    if weights is None:
        raise ValueError(
            f"{type(estimator).__name__} does not tell the width of view {view!r}: pass n_features."
        )
    if view not in weights:
        raise ValueError(f"Unknown view {view!r}; the views are {list(weights)}.")
    return len(weights[view])
