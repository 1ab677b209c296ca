"""Principal components of rows with holes, from the moments of the cells that are seen."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.blocks.checks import only_numbers
from mvcca.compose._items import check_no_views
from mvcca.machine import lapack
from mvcca.machine.documentation import Documented
from mvcca.machine.warnings import warn
from mvcca.problem import Maps
from mvcca.statistics import OF_HOLES
from mvcca.statistics.moments import ROUNDING
from mvcca.views import Views
from mvcca.views.validation import weights_of_rows


class MomentPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Documented, BaseEstimator):
    r"""Principal component analysis of rows with missing cells (NaN).

    Components are the leading eigenvectors of the covariance,

    .. math:: Σ v_i = λ_i v_i, \qquad λ_1 ≥ λ_2 ≥ …,

    which is estimated from the cells that are seen. Imputing rows first would make the variance of
    the imputed features too small, and turn components away from them. A row is projected by

    .. math:: v_i^⊤ (E[x \mid x_o] - m),

    where the expectation replaces its missing cells by their regression on those that are seen,
    x_o, by the mean m and the covariance of the training rows. If nothing is missing, this is
    :class:`sklearn.decomposition.PCA`.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of components; None is all that have variance.
    missing : {"pairwise", "em"}, default="em"
        How to estimate the covariance. "pairwise" takes that of two features from the rows that
        have both, and projects their correlation matrix to the nearest one without negative
        eigenvalues if it has some, with a warning. "em" is the maximum likelihood estimate of
        jointly Gaussian features, and needs about twice as many rows as features. See Notes of
        `mvcca.MVCCA`.

    Attributes
    ----------
    components_ : ndarray, shape (n_components_, n_features)
        v, by decreasing variance; the largest weight of each is positive.
    explained_variance_ : ndarray, shape (n_components_,)
        λ, the variances of the scores of complete rows.
    explained_variance_ratio_ : ndarray, shape (n_components_,)
        Their shares of the variance of all features.
    mean_ : ndarray, shape (n_features,)
        m, of the cells that are seen or by EM.
    precision_ : ndarray, shape (n_features, n_features)
        Inverse of Σ, with a ridge of n_features per row in units of the variances, by which missing
        cells are filled.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    mvcca.CCA : Its parameter `missing` correlates views with missing cells by the moments of both.
    mvcca.inspection.study : Tests and intervals for views with missing cells.

    Notes
    -----
    Scores of rows with holes vary less than those of complete rows, since the expectation leaves
    out what nothing tells. A row in which no cell is seen has the score 0.

    References
    ----------
    .. [1] Dray and Josse, "Principal component analysis with missing values: a comparative survey
       of methods", Plant Ecology 216, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.compose import MomentPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) * [3.0, 2.0, 1.0] + 0.1 * rng.normal(size=(200, 3))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> MomentPCA(1).fit(X).components_.round(2)
    array([[0.8 , 0.54, 0.27]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "missing": [StrOptions(set(OF_HOLES))],
    }

    def __init__(self, n_components: int | None = None, *, missing: str = "em") -> None:
        self.n_components = n_components
        self.missing = missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate mean and covariance, and find the components.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Dense; NaN is a missing cell.
        y : ignored
        sample_weight : array-like, shape (n_rows,), optional
            How often each row counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is sparse, holds infinity, a column is seen in fewer than two rows, or there are
            fewer components than asked for.

        Warns
        -----
        UserWarning
            If the covariance had to be made positive definite, or there are few rows for EM.
        """
        self._validate_params()
        X = self._checked(X, ensure_min_samples=2)
        w = None
        if sample_weight is not None:
            w = weights_of_rows(sample_weight, len(X))
        statistic = OF_HOLES[self.missing].of(Views({"X": X}), w)
        found = statistic.recovered({"X": getattr(self, "feature_names_in_", None)})
        Sigma = found.moments.covariance()
        variances, components = _leading(Sigma, self.n_components)
        for note in found.notes:
            warn(note)
        self.mean_ = found.moments.mean()["X"]
        self.precision_ = found.precisions["X"]
        self.components_ = components
        self.explained_variance_ = variances
        self.explained_variance_ratio_ = variances / np.trace(Sigma)
        self.n_components_ = len(variances)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Scores of the components, those of rows with holes by the expectation of these.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray, shape (n_rows, n_components_)
            Without missing values.
        """
        check_is_fitted(self)
        rows = self._checked(X, reset=False).astype(np.float64)
        own = {"X": self.components_.T}, {"X": self.mean_}
        scores: np.ndarray = Maps(*own, precisions={"X": self.precision_}).project("X", rows)
        return scores

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _checked(self, X: Any, **options: Any) -> np.ndarray:
        check_no_views(X, "MomentPCA")
        options |= {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, only_numbers(X), **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _leading(Sigma: np.ndarray, n_components: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of a covariance, decreasing, and their eigenvectors as rows."""
    d = len(Sigma)
    k = d if n_components is None else min(n_components, d)
    values, vectors = lapack.top_eigenpairs(Sigma, k)
    values, vectors = values[::-1], vectors.T[::-1]
    rank = int(np.sum(values > d * ROUNDING * values[0]))
    if not rank:
        raise ValueError("X has no variance: all its rows are equal.")
    if n_components is not None and rank < n_components:
        raise ValueError(
            f"n_components={n_components}, but X has only {rank} principal components with "
            "variance. Ask for fewer, or for n_components=None, which finds all of them."
        )
    values, vectors = values[:rank], vectors[:rank]
    largest = np.abs(vectors).argmax(axis=1)
    return values, vectors * np.sign(vectors[np.arange(rank), largest])[:, None]
