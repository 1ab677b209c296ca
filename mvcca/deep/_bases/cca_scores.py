"""The part of deep estimators whose scores are linear CCA of the networks' outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.base import RankedByCorrelation
from mvcca.base.parameters import NOT_NEGATIVE, one_of, parameter
from mvcca.deep._bases.estimator import DeepEstimator
from mvcca.deep._losses.trace_norm import check_enough_rows
from mvcca.deep._training.training import MONITORED
from mvcca.deep.endings import Ending, linear_cca
from mvcca.deep.samplers import Sample
from mvcca.deep.trainer import Trainer
from mvcca.problem.expected import expected_moments
from mvcca.statistics import Moments

_LEAST_VALIDATION_ROWS = 100  # correlations have standard errors of at most 0.1


class CCAScores(DeepEstimator, RankedByCorrelation):
    """Base of the deep estimators that end in linear CCA of the networks' outputs.

    Parameters and attributes that are not listed here are those of
    `mvcca.deep.bases.DeepEstimator`.

    Parameters
    ----------
    reg : float or mapping of str to float, default=1e-4
        Ridge of the linear CCA that ends the fit, in units of the mean variance of each view's
        network outputs; one number, or one per view. The loss does not use it.
    monitor : str or callable, default="auto"
        Quantity compared across epochs on the validation rows: "valid_correlation", their total
        correlation under the linear CCA of the training rows; "valid_mrr" or "valid_map", the mean
        reciprocal rank of pairs or the mean average precision of labels, over all ordered pairs of
        views; "valid_loss" (lower is better); or ``monitor(scores, labels) -> float``, larger is
        better. "auto" is "valid_mrr" where ``start="auto"`` tries several starts, and
        "valid_correlation" otherwise. The scale of a loss may drift in training, so that the first
        epoch has the lowest value.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_scores, n_components_)
        Weights of the linear CCA by view. Unpack them with ``weights_.values()``: iterating over a
        dict gives its keys.
    means_ : dict of str to ndarray, shape (n_scores,)
        Means of the networks' outputs on the training rows.
    canonical_correlations_ : ndarray, shape (n_components_,)
        Canonical correlations ρ of the training rows, decreasing; only for two views. Optimistic:
        use `score` on held-out data.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows; see `mvcca.MVCCA`. From at least 100
        validation rows if there are any: networks fit the training rows more closely than the
        degrees of freedom of the linear CCA tell.
    expected_correlations_by_pair_ : ndarray, shape (n_views, n_views, n_components_)
        Expected correlations of each pair of views.
    expected_deviations_ : dict of str to ndarray, shape (n_components_,)
        Standard deviations of each view's scores.
    eigenvalues_ : ndarray, shape (n_components_,)
        Eigenvalues λ = 1 + ρ, as in `mvcca.MVCCA`.
    ranks_ : dict of str to int
        Rank of each view's network outputs.
    """

    reg: float | Mapping[str, float] = parameter(1e-4, NOT_NEGATIVE, Mapping)
    monitor: Any = parameter("auto", one_of("auto", *MONITORED), callable)

    _within_rows = True
    _whitens_batches = False  # whether the loss decomposes covariances of a batch

    def _setting(self, name: str) -> Any:
        if name == "monitor" and self.monitor == "auto":
            return "valid_correlation"
        return super()._setting(name)

    def _ending(self) -> Ending:
        return linear_cca(self.n_components, self.reg)

    def _n_scores(self) -> int:
        if self._whitens_batches:
            check_enough_rows(min(self._setting("batch_size"), self._n_rows), self.n_components)
        return super()._n_scores()

    def _conclude(self, trainer: Trainer, validation: Sample | None) -> None:
        super()._conclude(trainer, validation)
        is_enough = validation is not None and len(validation.views) >= _LEAST_VALIDATION_ROWS
        if validation is None or not is_enough or not hasattr(self, "expected_correlations_"):
            return
        outputs = self.project(validation.views, "encode")
        blocks = {name: np.asarray(Z, float) for name, Z in outputs.items()}
        moments = Moments.of(validation.views.replace(blocks))
        maps, expected = self.maps_, expected_moments(self.weights_, moments.by_pair())
        if maps is not None and expected is not None:
            self._keep(replace(maps, expected=expected))
