"""Class probabilities of the rows of one view, by logistic regression or by given classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import special
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from mvcca.blocks import as_block
from mvcca.kernel.kernels import Kernel, features_at, median_gamma
from mvcca.linear.features import LandmarkFeatures
from mvcca.problem import mean_and_variance
from mvcca.views import Views
from mvcca.views.powers_of_two import exponents_of

_MOST_STEPS = 1000  # of a logistic regression, which takes some tens


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels of the rows of a view, as classifiers learn them.

    Attributes
    ----------
    indicators : ndarray of bool, shape (n_rows, n_labels)
        Which labels each row has.
    are_classes : bool
        Whether each row, also of the other views, has exactly one label.
    """

    indicators: np.ndarray
    are_classes: bool

    @property
    def n_labels(self) -> int:
        """Number of labels of all views."""
        return self.indicators.shape[1]

    def questions(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Labels to tell apart, by position, and what a classifier is to predict of each row.

        There is one question about classes, and one about each label of sets. Labels that all rows
        have, or none, are not asked for.
        """
        shares = self.indicators.mean(axis=0)
        if self.are_classes:
            present = np.flatnonzero(shares)
            if len(present) > 1:
                yield present, np.searchsorted(present, self.indicators.argmax(axis=1))
            return
        for label in np.flatnonzero((shares > 0) & (shares < 1)):
            yield np.array([label]), self.indicators[:, label].astype(int)

    def certain(self) -> np.ndarray:
        """1 for labels that all rows have, else 0."""
        return self.indicators.all(axis=0).astype(float)


@dataclass(frozen=True, eq=False)
class LogisticModel:
    """Probabilities by logistic regression on scaled columns, or on kernel features of these."""

    scales: np.ndarray  # (n_columns,)
    features: LandmarkFeatures | None
    weights: np.ndarray  # (n_features, n_labels)
    intercepts: np.ndarray  # (n_labels,), infinite for labels that all rows have, or none
    are_classes: bool

    @classmethod
    def fit(
        cls,
        X: Any,
        targets: Targets,
        scales: np.ndarray,
        reg: float,
        landmarks: np.ndarray | None = None,
        rng: np.random.RandomState | None = None,
    ) -> Self:
        """Learn from rows of a view; `landmarks` are those that a Gaussian kernel compares with."""
        rows, features = _scaled(X, scales), None
        if landmarks is not None:
            assert rng is not None
            features = features_at(Kernel("rbf", median_gamma(rows, rng)), rows, landmarks)
            rows = features(rows)
        mean, variance = as_block(rows).mean_and_variance()
        centred, left = as_block(rows).centred(mean)  # which regressions need to converge only
        # Scikit-learn adds losses, where the ridge is of their mean and in units of the variance.
        C = 1 / (reg * len(targets.indicators) * variance.mean())
        weights = np.zeros((len(mean), targets.n_labels))
        sure = 0.0 if targets.are_classes else np.inf
        intercepts = np.where(targets.certain() > 0, sure, -np.inf)
        model = LogisticRegression(C=C, max_iter=_MOST_STEPS)
        for labels, y in targets.questions():
            model.fit(centred.matrix, y)
            # Of two classes there is one line of coefficients, that of the second.
            only = slice(-1, None) if len(model.coef_) == 1 else slice(None)
            weights[:, labels[only]] = model.coef_.T
            intercepts[labels] = 0
            intercepts[labels[only]] = model.intercept_
        intercepts -= (mean - left) @ weights
        return cls(scales, features, weights, intercepts, targets.are_classes)

    def __call__(self, X: Any) -> np.ndarray:
        """Probabilities of the labels of every row, (n_rows, n_labels), some rows at a time."""
        parts = as_block(X).in_pieces(8 * len(self.weights))
        return np.concatenate([self._of_some(part) for part in parts])

    def _of_some(self, X: Any) -> np.ndarray:
        rows = _scaled(X, self.scales)
        evidence = as_block(rows if self.features is None else self.features(rows)) @ self.weights
        evidence = evidence + self.intercepts
        return special.softmax(evidence, axis=1) if self.are_classes else special.expit(evidence)


def column_scales(name: str, X: Any) -> np.ndarray:
    """Factors that give the columns of a view unit variance; 0 where they never vary."""
    exponents = exponents_of(Views({name: X}), by_column=[name]).get(name, np.zeros(X.shape[1]))
    powers = np.ldexp(1.0, -exponents.astype(int))  # squares of the rest are floats
    variance = mean_and_variance(name, as_block(X).scaled(powers).matrix)[1]
    varies = variance > 0
    return np.divide(powers, np.sqrt(variance), out=np.zeros(len(varies)), where=varies)


def _scaled(X: Any, scales: np.ndarray) -> Any:
    """Rows in float64 in units of the deviations of the columns, whatever these are."""
    return as_block(X).plain().promoted(np.dtype(np.float64)).scaled(scales).matrix


@dataclass(frozen=True, eq=False)
class GivenClassifiers:
    """Probabilities by classifiers of scikit-learn: one of classes, or one of each label."""

    fitted: tuple[Any, ...]
    labels: tuple[np.ndarray, ...]  # which each tells apart
    certain: np.ndarray  # (n_labels,)

    @classmethod
    def fit(cls, X: Any, targets: Targets, classifier: Any) -> Self:
        """Fit copies of a classifier to the rows of a view as they are."""
        asked = [*targets.questions()]
        fitted = tuple(clone(classifier).fit(X, y) for _, y in asked)
        return cls(fitted, tuple(labels for labels, _ in asked), targets.certain())

    def __call__(self, X: Any) -> np.ndarray:
        """Probabilities of the labels of every row, (n_rows, n_labels)."""
        found = np.tile(self.certain, (X.shape[0], 1))
        for model, labels in zip(self.fitted, self.labels, strict=True):
            found[:, labels] = model.predict_proba(X)[:, -len(labels) :]
        return found
