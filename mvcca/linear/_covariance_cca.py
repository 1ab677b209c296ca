"""CCA with between- and within-view matrices chosen by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from mvcca.base import Requirements, StatisticEstimator
from mvcca.problem import Estimate, Exactness, Problem, Rows
from mvcca.problem.linalg import rounding_of
from mvcca.statistics import Moments, PairMoments, column_slices

Matrix = Callable[[Any], np.ndarray]


class CovarianceCCA(StatisticEstimator):
    r"""CCA with your own matrices between and within views.

    Finds maps of two or more views,

    .. math::

        \max \; ∑_{p≠q} w_p^⊤ A_{pq} w_q \quad \text{subject to} \quad
        ∑_p w_p^⊤ (B_p + r_p I) w_p = n_{views},

    for matrices A and B that functions compute from the `mvcca.statistics.Moments` of the rows.
    With both the covariance this is `MVCCA`. Precision, rank deficiency, wide views, batches,
    sparse and streamed rows are handled as there. A wide view is solved in a basis of its rows, so
    that functions must not depend on the basis of a view, as entries of the covariance do.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space.
    between : callable, default=Moments.covariance
        Takes moments and returns A, symmetric of shape (n_features, n_features) over the features
        of all views; its diagonal blocks are not used. If three or more views are partly paired,
        the moments are `mvcca.statistics.PairMoments`, which have ``covariance()``, ``mean()`` and
        ``widths`` as well.
    within : callable, default=Moments.covariance
        Takes moments and returns B, of the same shape; only its diagonal blocks are used. They
        must be positive semi-definite.
    reg : float, mapping of str to float, "auto" or "oas", default=1e-4
        Ridge r_p in units of the mean diagonal of B_p; see `MVCCA`.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: the mean diagonal of B_p, or that of its entries.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        One map per view, by name.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ in decreasing order.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Rank of each view's constraint.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVCCA : Both matrices are the covariance.
    mvcca.deep.EncoderCCA : Networks and an objective of your own.

    Notes
    -----
    A model file holds no code, so that models with functions other than the defaults cannot be
    saved with `mvcca.save`. Write an estimator instead, as the contributor's guide shows.

    Examples
    --------
    Weights of unit length for the left view, scores of unit variance for the right:

    >>> import numpy as np
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.linear import CovarianceCCA
    >>> def identity_for_left(moments):
    ...     B = moments.covariance()
    ...     B[:32, :32] = np.eye(32)
    ...     return B
    >>> model = CovarianceCCA(3, within=identity_for_left)
    >>> model.fit(load_digits_views().views).n_components_
    3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": StatisticEstimator._parameter_constraints["n_components"],
        "between": [callable],
        "within": [callable],
        "reg": StatisticEstimator._parameter_constraints["reg"],
        "reg_unit": StatisticEstimator._parameter_constraints["reg_unit"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        between: Matrix = Moments.covariance,
        within: Matrix = Moments.covariance,
        reg: float | str | Mapping[str, float] = 1e-4,
        reg_unit: str = "relative",
    ) -> None:
        self.n_components = n_components
        self.between = between
        self.within = within
        self.reg = reg
        self.reg_unit = reg_unit

    @property
    def requires(self) -> Requirements:  # type: ignore[override]
        """Matrices of the user's own may be known well from few rows."""
        return Requirements(many_rows=self.within is Moments.covariance)

    def problem(self, rows: Rows, statistic: Moments | PairMoments) -> Problem:
        A, B = (
            statistic.covariance() if function is Moments.covariance else function(statistic)
            for function in (self.between, self.within)
        )
        is_joint = self.between is self.within is Moments.covariance
        rounding = _rounding(statistic, np.diag(B))
        return Problem(
            rows,
            Estimate(statistic.mean(), exactness=Exactness(rounding=rounding)),
            between=A,
            within=B,
            is_joint=is_joint,
        )


def _rounding(moments: Moments | PairMoments, diagonal: np.ndarray) -> dict[str, np.ndarray]:
    """What rounding of the rows can give to a matrix B, in which it is as large a share of B_jj."""
    variances, rounding = np.diag(moments.covariance()), {}
    for name, own in column_slices(moments.widths).items():
        varies = variances[own] > 0
        share = np.divide(diagonal[own], variances[own], out=np.zeros(varies.size), where=varies)
        rounding[name] = rounding_of(moments.mean()[name]) * np.sqrt(share)
    return rounding
