"""Generalized canonical correlation analysis of the MAXVAR kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mvcca.base import StatisticEstimator
from mvcca.linear._cca import MVCCA
from mvcca.problem import Problem, Rows


class GCCA(MVCCA):
    r"""Generalized canonical correlation analysis (MAXVAR) of two or more views, with a ridge.

    Finds a representation G of the objects that ridge regressions on all views predict well [1]_,
    [2]_,

    .. math::

        \min_{G, W} \; ∑_p \left( ‖G - \bar X_p W_p‖_F^2 + (n - 1) r_p ‖W_p‖_F^2 \right)
        \quad \text{subject to} \quad G^⊤ G = I,

    with centred views X̄_p of n objects. The columns of G are the leading eigenvectors of the sum of
    the views' ridge projections (section 2 of [2]_),

    .. math::

        M = ∑_p \bar X_p (\bar X_p^⊤ \bar X_p + (n - 1) r_p I)^{-1} \bar X_p^⊤,
        \qquad M g = λ g.

    They are found without any n × n matrix: g is proportional to Σ_p X̄_p w_p, where

    .. math::

        ∑_q Σ_{pq} w_q = λ (Σ_{pp} + r_p I) w_p \quad \text{for every view } p.

    The sum over q includes p, which the sum of `MVCCA` does not. Without a ridge both are the same
    problem. As the ridge grows, `MVCCA` tends to directions of large covariance between views, as
    `PLS` finds them, and `GCCA` to the principal components of all features together: what varies
    much in one view then counts even if no other view shares it. Choose `GCCA` for one
    representation of objects that sums up all views, and `MVCCA` to match views with each other.

    Partly paired views are treated as by `MVCCA`: Σ_pq is the covariance over the objects seen in
    both views, and Σ_pp the mean of the covariances of view p over the objects that it shares with
    each other view.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space; None is all components that the data support.
    reg : float, mapping of str to float, "auto", "oas" or "cv", default=1e-4
        Ridge on each view's covariance in units of that view's mean variance; "auto" and "oas"
        shrink covariances, and "cv" chooses the ridge and the ranking by 5 folds. See `MVCCA`.
    power : float, default=0.0
        Scores are multiplied by λ^power, so that components that more views share have more weight
        in cosine similarity.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What ``reg="cv"`` maximizes on held-out folds: the mean reciprocal rank of the row of the
        same object, mAP@50 over rows that share a label, or the mean correlation of the scores.
        None is "object"; a class goal needs labels as y.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: each view's mean variance, or that of the features' variances, as
        other packages have it.
    center : bool, default=True
        Subtract the means of the training rows. False takes moments about zero, E[x xᵀ], in place
        of covariances, and `means_` are zero.
    confounds : str or None, default=None
        Name of a view that is removed from the others by linear regression instead of correlated;
        see `MVCCA`.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with holes, cells that are NaN; see `MVCCA`.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whether to standardize the columns of each view, so that a ridge counts alike for columns in
        any units; weights stay in the units of the rows. "auto" standardizes views whose columns
        are in unlike units: their largest standard deviation is above 10 times the median one, and
        they correlate, which scores of a PCA do not. With ``reg="cv"`` folds choose, view by view,
        in place of this rule; "cv" lets them choose for ridges that are given, too. Without a ridge
        results do not depend on it.
    solve : {"auto", "shared", "conditional"}, default="auto"
        What ranks in retrieval: the shared space, or each question by itself; see `MVCCA`.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        W_p by view name, scaled so that Σ_p w_pᵀ (Σ_pp + r_p I) w_p is the number of views V, as
        `MVCCA` does. Times √(λ / V) they are the ridge regression of a G of unit variance.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means; zeros with ``center=False``.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ in decreasing order, at most the number of views. For paired views, the sum over views of
        the share of g's variance that a ridge regression on the view explains.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows, averaged over pairs of views. Rankings
        weight components by them. With a ridge they are estimated one component at a time, as
        those of `MVCCA` for more than two views are.
    expected_correlations_by_pair_, expected_deviations_, confound_coefficients_, precisions_
        See `MVCCA`.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_, ranking_, bank_, cv_results_
        What ``reg="cv"`` chose, as in `MVCCA`.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Rank of each view.
    view_names_ : tuple of str
        The views, in order, without the confounds.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVCCA : The sum over other views only; the same without a ridge.
    mvcca.compose.JoinViews : With ``how="mean"``, scores of all views become multiples of G.

    References
    ----------
    .. [1] Kettenring, "Canonical Analysis of Several Sets of Variables", Biometrika 1971.
    .. [2] Rastogi, Van Durme and Arora, "Multiview LSA: Representation Learning via Generalized
       CCA", NAACL 2015, section 2.

    Examples
    --------
    >>> from mvcca import GCCA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views("quadrants").views
    >>> GCCA(n_components=3, reg=0.1).fit(views).eigenvalues_.round(2)
    array([2.78, 2.38, 2.22])
    """

    _if_too_large = StatisticEstimator._if_too_large  # products solve the problem of MVCCA

    def problem(self, rows: Rows, statistic: Any) -> Problem:
        """Pose the problem of `MVCCA` with the covariances within views on both sides."""
        return replace(super().problem(rows, statistic), with_diagonal=True)
