"""Labels as the shared space: a model of each view, learned alone, predicts those of its rows.

`SemanticMatching` and `LabelRegression` differ in the models. These learn from scaled columns, or
from Nyström features of a Gaussian kernel of these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_repeated
from mvcca.base.label_checks import check_labels
from mvcca.base.tuned_fits import fit_searched, setting_by_view
from mvcca.blocks import as_block
from mvcca.blocks.checks import of_view
from mvcca.kernel.kernels import Kernel, features_at, median_gamma, seed_of_views
from mvcca.linear.features import LandmarkFeatures
from mvcca.model_selection import Space, searched
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.problem import Maps, Rows
from mvcca.problem.ridge import reg_of_names
from mvcca.problem.units import units_of_rows
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of a view as a model takes them: scaled, as kernel features if asked for, centred."""

    scales: np.ndarray  # (n_columns,)
    features: LandmarkFeatures | None
    centred: Any  # (n_rows, n_features); sparse rows are centred in nearly full columns only
    origin: np.ndarray  # (n_features,), what was subtracted
    variance: float  # mean of those of the features
    reg: float  # in units of this variance

    @classmethod
    def of(
        cls, X: Any, scales: np.ndarray, *, reg: float, kernel: str, n_landmarks: int, seed: int
    ) -> Self:
        """Draw landmarks, unless the kernel is "linear", and centre."""
        rng, features = np.random.RandomState(seed), None
        rows = as_block(X).in_units(scales).matrix
        if kernel == "rbf":
            landmarks = rng.permutation(X.shape[0])[:n_landmarks]
            features = features_at(Kernel("rbf", median_gamma(rows, rng)), rows, landmarks)
            rows = features(rows)
        mean, variance = as_block(rows).mean_and_variance()
        centred, left = as_block(rows).centred(mean)
        return cls(scales, features, centred.matrix, mean - left, float(variance.mean()), reg)

    @property
    def penalty(self) -> float:
        """Factor of ‖w‖² beside a sum of squares over the rows."""
        return self.reg * self.centred.shape[0] * self.variance


@dataclass(frozen=True, eq=False)
class AffineModel:
    """Affine functions of scaled columns, or of kernel features of these."""

    scales: np.ndarray  # (n_columns,)
    features: LandmarkFeatures | None
    weights: np.ndarray  # (n_features, n_labels)
    intercepts: np.ndarray  # (n_labels,), infinite for labels that all rows have, or none

    def __call__(self, X: Any) -> np.ndarray:
        """Values of every row, (n_rows, n_labels), some rows at a time."""
        parts = as_block(X).in_pieces(8 * len(self.weights))
        return np.concatenate([self._of_some(part) for part in parts])

    def _of_some(self, X: Any) -> np.ndarray:
        rows = as_block(X).in_units(self.scales).matrix
        values = as_block(rows if self.features is None else self.features(rows)) @ self.weights
        return values + self.intercepts


class LabelSpaceEstimator(MultiViewEstimator):
    """Base of estimators whose scores are what models of single views say of the labels.

    Subclasses have the parameters `reg`, `kernel`, `n_landmarks`, `random_state` and `cv_goal`, and
    define `_predictor`.
    """

    requires = Requirements(views=(1, None), labels=True, host=True)
    automatic: ClassVar[Mapping[str, Any]] = {"kernel": "rbf"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [Interval(Real, 0, None, closed="neither"), Mapping, StrOptions({SEARCHED})],
        "kernel": [StrOptions({"rbf", "linear", SEARCHED, AUTOMATIC}), Mapping],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "cv_goal": MultiViewEstimator._parameter_constraints["cv_goal"],
    }

    reg: float | str | Mapping[str, float]
    n_landmarks: int
    random_state: Any
    predictors_: dict[str, Callable[[Any], np.ndarray]]

    def search_space(self, rows: Rows) -> Space:
        """Ridges, with larger or smaller ones if the best is at an end, then kernels."""
        values = {"reg": (1e-3, 1e-2, 0.1, 1.0), "kernel": ("linear", "rbf")}
        return Space(values, beyond={"reg": _next_ridge}, n_folds=3)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a model of the labels to every view.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. A lone matrix is a single view.
        y : labels
            A class vector, indicator matrix, list of label sets or `Labels`, one per object; or a
            list or mapping with the labels of each view, whose heights may differ.
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing, all the same, or not of a kind that the method takes; if a view
            holds NaN or infinity, or never varies; if folds choose parameters that a given
            classifier does not have; if weights are not whole numbers.
        """
        self._validate_params()
        if searched(self):
            self._check_search()
            return fit_searched(self, X, y, sample_weight)
        opened = open_repeated(self, X, y, sample_weight)
        views, labels = opened.views, opened.labels
        self._check_kind(labels)
        check_labels(labels)
        views, names = views.in_memory(), views.names
        kernels = setting_by_view(self, "kernel", names)
        reg = reg_of_names(self.reg, names, positive=True)
        shared = {"n_landmarks": self.n_landmarks, "seed": seed_of_views(self.random_state)}
        self.predictors_ = {}
        units = units_of_rows(Rows(views), dict.fromkeys(names, True), pairs=False)
        for name, block in views.items():
            own = {"reg": reg[name], "kernel": kernels[name], **shared}
            rows = partial(TrainingRows.of, block, units[name].factors, **own)
            try:
                self.predictors_[name] = self._predictor(name, block, labels, rows)
            except ValueError as refused:
                raise of_view(name, refused) from refused
        self.labels_ = labels.distinct.names
        self.n_components_ = len(self.labels_)
        self.n_label_vectors_ = len(labels.distinct)
        return self

    def _check_search(self) -> None:
        """Refuse parameters that are "cv" if the method cannot search them."""

    def _check_kind(self, labels: LabelsByView) -> None:
        """Refuse labels that the method does not take."""

    @abstractmethod
    def _predictor(
        self, name: str, block: Any, labels: LabelsByView, rows: Callable[[], TrainingRows]
    ) -> Callable[[Any], np.ndarray]:
        """Learn the function of rows of a view that gives their scores."""

    def _depends_on_units(self, name: str) -> bool:
        return False  # columns are standardised

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        return partial(_predicted, self.predictors_[name], self.n_components_)


def label_matrix(labels: Labels) -> np.ndarray:
    """Indicators of labels, or real label vectors, of each row, dense."""
    return as_block(labels.matrix).dense().matrix


def _next_ridge(reg: float, upward: bool) -> float:
    """Ten times the ridge, or a tenth."""
    return reg * (10 if upward else 0.1)


def _predicted(predictor: Callable[[Any], np.ndarray], n_labels: int, block: Any) -> np.ndarray:
    if not block.shape[0]:  # no object is seen in this view
        return np.empty((0, n_labels), dtype=block.dtype)
    return predictor(block).astype(block.dtype, copy=False)
