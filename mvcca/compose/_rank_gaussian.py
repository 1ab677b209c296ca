"""Transform each column by the ranks of its values to a normal distribution."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.blocks.checks import only_numbers
from mvcca.compose._items import check_no_views
from mvcca.machine.documentation import Documented
from mvcca.views.validation import weights_of_rows

_OFFSET = 3 / 8  # Blom, "Statistical Estimates and Transformed Beta-Variables", 1958


class RankGaussian(OneToOneFeatureMixin, TransformerMixin, Documented, BaseEstimator):
    r"""Transform the values of each column by their ranks to a normal distribution.

    A value of rank r among the n training values of its column becomes

    .. math:: \Phi^{-1}\Bigl( \frac{r - 3/8}{n + 1/4} \Bigr),

    the expected normal order statistic by Blom's approximation [1]_; equal values share their mean
    rank. New values are interpolated between training values, and those outside their range become
    the nearest of them. Outliers and skewed distributions then no longer decide a correlation, and
    confidence intervals that assume normal rows hold (`mvcca.inspection.correlation_intervals`).

    Attributes
    ----------
    values_ : list of ndarray
        Distinct training values of each column, increasing.
    scores_ : list of ndarray
        What they become.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if X was a DataFrame.

    See Also
    --------
    PerView : Apply a transformer to each view.
    Deconfound : Remove confounds from views.
    sklearn.preprocessing.QuantileTransformer : The same for large data by a sample of quantiles; it
        sends the smallest and the largest value to ±5.2 whatever n is.

    Notes
    -----
    Missing values (NaN) have no rank, and stay missing. A column with a single value becomes 0.

    References
    ----------
    .. [1] Blom, "Statistical Estimates and Transformed Beta-Variables", Wiley, 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.compose import RankGaussian
    >>> income = np.array([[20.0], [25.0], [30.0], [40.0], [900.0]])
    >>> RankGaussian().fit_transform(income).ravel().round(2) + 0.0
    array([-1.18, -0.5 ,  0.  ,  0.5 ,  1.18])
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the ranks of the values of each column.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)
            Dense; NaN is a missing value.
        y : ignored
        sample_weight : array-like, shape (n_rows,), optional
            How often each row counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X is sparse, holds infinity, or a column has no value.
        """
        X = self._checked(X, reset=True)
        w = weights_of_rows(sample_weight, len(X))
        self.values_, self.scores_ = [], []
        for j, column in enumerate(X.T):
            seen = ~np.isnan(column) & (w > 0)
            if not seen.any():
                raise ValueError(f"Column {j} has no value: all are missing. Leave it out.")
            values, codes = np.unique(column[seen], return_inverse=True)
            counts = np.bincount(codes, w[seen])
            ranks = np.cumsum(counts) - (counts - 1) / 2
            shares = (ranks - _OFFSET) / (counts.sum() + 1 - 2 * _OFFSET)
            self.values_.append(values.astype(float))
            self.scores_.append(ndtri(shares))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Normal scores of the values of each column.

        Parameters
        ----------
        X : matrix of shape (n_rows, n_features)

        Returns
        -------
        ndarray, shape (n_rows, n_features)
            In the precision of X; NaN where X is.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        scores = np.empty_like(X)
        for j, (values, own) in enumerate(zip(self.values_, self.scores_, strict=True)):
            scores[:, j] = np.interp(X[:, j], values, own)
        return scores

    def _checked(self, X: Any, *, reset: bool) -> np.ndarray:
        check_no_views(X, "RankGaussian")
        options: Any = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, only_numbers(X), reset=reset, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
