"""Canonical correlation analysis of two views, and of more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils._param_validation import StrOptions

from mvcca.base import RankedByCorrelation, Requirements, StatisticEstimator
from mvcca.base.standardizing import STANDARDIZED
from mvcca.blocks.checks import check_same_rows
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.linear._two_matrices import TwoMatrixEstimator
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem.shrinkage import SHRINKAGES
from mvcca.statistics import OF_HOLES
from mvcca.views import Labels, Views, as_views

_IF_TOO_LARGE = (
    "Products with the rows suffice for a few components with a ridge: set n_components and "
    "reg > 0. Or reduce the features first, as by PerView(TruncatedSVD(300))."
)
_MISSING: dict[str, list[Any]] = {"missing": [StrOptions({"error", *OF_HOLES})]}


class CCA(RankedByCorrelation, TwoMatrixEstimator, RescaledEstimator):
    r"""Canonical correlation analysis, with an optional ridge.

    Use it for two views of the same objects, to find what they have in common or to search one
    view by the other. For retrieval, ``CCA(n_components=None, reg="cv")`` is a good start.

    Finds linear maps of two views to scores of unit variance that correlate most [1]_,

    .. math::

        \max_{A, B} \; & \operatorname{tr}(A^⊤ Σ_{xy} B) \\
        \text{subject to} \; & A^⊤ (Σ_{xx} + r_x I) A = B^⊤ (Σ_{yy} + r_y I) B = I,

    by whitening each view and one singular value decomposition of Σ_xx^(-1/2) Σ_xy Σ_yy^(-1/2).
    With reg > 0 this is the canonical ridge [2]_. Views may have more features than rows, and
    collinear features. For ill-conditioned views, the rows are decomposed instead of their
    covariance.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space. None keeps all components that the data support; with
        ``reg="cv"``, 64 if a search of all would take minutes or more memory than there is.
    reg : float, mapping of str to float, "auto", "oas" or "cv", default=0.0
        Ridge on each view's covariance in units of that view's mean variance, so that rescaling a
        view changes nothing. Without a ridge, `fit` warns of fewer than 5 rows per independent
        feature of both views, where components fit noise. "auto" and "oas" shrink both
        covariances, see `MVCCA`. "cv" chooses the ridge, and how scores are ranked, by 5
        folds; with ``n_components=None`` and a class goal also the number of components.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What ``reg="cv"`` maximizes on held-out folds: the mean reciprocal rank of the row of the
        same object, mAP@50 over rows that share a label, or the mean correlation of the scores.
        None is "object"; a class goal needs labels as y.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: each view's mean variance, or that of the features' variances, as
        other packages have it.
    center : bool, default=True
        Subtract the means of the training rows. False takes moments about zero, E[x xᵀ], in place
        of covariances, and `means_` are zero: for rows whose zero is meaningful, such as
        differences or counts.
    confounds : str or None, default=None
        Name of a view, such as age or scanner, that is removed from the others by linear regression
        instead of correlated: partial CCA [3]_. `fit` and `transform` take the views with it.
        Scores of a view x with the confounds z are (x - m_x - B_xᵀ (z - m_z))ᵀ w, with the means m
        and coefficients B of the training rows, of held-out rows too. Views are correlated as if
        their residuals had been fitted; expected correlations count n - rank(z) rows. In a
        DataFrame, columns of text and of categories become indicators of every level but the first.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with holes, cells that are NaN: refuse them; or estimate the covariances from
        the pairs of features that rows do have, or by maximum likelihood. Take reg="cv" unless
        there are many rows. See Notes of `MVCCA`.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whether to standardize the columns of each view, so that a ridge counts alike for columns in
        any units; weights stay in the units of the rows. "auto" standardizes views whose columns
        are in unlike units: their largest standard deviation is above 10 times the median one, and
        they correlate, which scores of a PCA do not. With ``reg="cv"`` folds choose, view by view,
        in place of this rule; "cv" lets them choose for ridges that are given, too. Without a ridge
        results do not depend on it.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        A and B, by view name ("X" and "y" where two lone matrices were fitted).
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means; zeros with ``center=False``.
    canonical_correlations_ : ndarray, shape (n_components_,)
        Singular values ρ, decreasing: with reg=0 the training correlations of the scores.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows; see `MVCCA`.
    expected_correlations_by_pair_, expected_deviations_
        See `MVCCA`.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ, as in `MVCCA`.
    patterns_ : dict of str to ndarray, shape (n_features, n_components_)
        Least-squares coefficients of a view's features on each score of the other view, by which
        `predict` predicts it.
    own_patterns_ : dict of str to ndarray, shape (n_features, n_components_)
        The same on each of the view's own scores, by which `inverse_transform` goes back.
    confound_coefficients_ : dict of str to ndarray, shape (n_confounds, n_features)
        B, by view; with `confounds` only. ``means_`` and ``ranks_`` then hold the confounds, too.
    precisions_ : dict of str to ndarray, shape (n_features, n_features)
        Inverse covariance of each view's features; only if `missing` allows holes, which are filled
        with it before rows are projected.
    x_weights_, y_weights_, x_loadings_, y_loadings_, x_rotations_, y_rotations_, coef_, intercept_
        As in :mod:`sklearn.cross_decomposition` with ``scale=False``, after a fit to two lone
        matrices; see :doc:`/migration`.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_ : float
        The chosen ridge; with ``reg="cv"`` only, as are the next three.
    ranking_ : str
        The chosen ranking of scores, which `mvcca.RetrievalIndex` and `mvcca.evaluate_retrieval`
        use: a weighting of components, followed by "+csls" if hubs are corrected for.
    bank_ : Views
        Scores of training rows that correct for hubs; if ``ranking_`` ends in "+csls".
    cv_results_ : dict of str to array
        Values of all ridges, rankings and numbers of components, as in scikit-learn's searches.
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
    MVCCA : Two or more views.

    References
    ----------
    .. [1] Hotelling, "Relations between two sets of variates", Biometrika 1936; eqs. (1)-(6) of
       Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018.
    .. [2] Vinod, "Canonical ridge and econometrics of joint production", 1976.
    .. [3] Rao, "Partial canonical correlations", Trabajos de estadística y de investigación
       operativa 20, 1969.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views("halves").views
    >>> CCA(n_components=3).fit(views).canonical_correlations_.round(2)
    array([0.82, 0.8 , 0.7 ])

    To retrieve, keep all components and let folds choose the ridge:

    >>> model = CCA(n_components=None, reg="cv").fit(views)
    >>> model.n_components_, model.reg_
    (30, 0.01)
    """

    retrieval_ranking = ("transform", "profile-likelihood")
    requires = Requirements(views=(2, 2), many_rows=True)
    automatic: ClassVar = STANDARDIZED
    _if_too_large = _IF_TOO_LARGE
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: StatisticEstimator._parameter_constraints[name]
        for name in ("n_components", "reg", "cv_goal", "reg_unit", "center", "scale")
    } | {"confounds": [str, None], **_MISSING}

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        reg: float | str | Mapping[str, float] = 0.0,
        cv_goal: Goal | None = None,
        reg_unit: str = "relative",
        center: bool = True,
        confounds: str | None = None,
        missing: str = "error",
        scale: bool | str | Mapping[str, bool | str] = "auto",
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.cv_goal = cv_goal
        self.reg_unit = reg_unit
        self.center = center
        self.confounds = confounds
        self.missing = missing
        self.scale = scale


class MVCCA(RankedByCorrelation, RescaledEstimator):
    r"""Multi-view canonical correlation analysis.

    Use it as `CCA`, for more than two views, or if some objects lack some views.

    Finds maps under which the views x_p of the same object covary most,

    .. math::

        \max \; & ∑_{p≠q} w_p^⊤ Σ_{pq} w_q \\
        \text{subject to} \; & ∑_p w_p^⊤ (Σ_{pp} + r_p I) w_p = n_{views},

    The solutions are those of

    .. math::

        ∑_{q≠p} Σ_{pq} w_q = ρ (Σ_{pp} + r_p I) w_p \quad \text{for every view } p,
        \qquad λ = 1 + ρ.

    The ridge is in the constraint only. With ``reg=0`` the same maps bring the views together,
    min Σ_{p≠q} E (w_pᵀ x_p - w_qᵀ x_q)² [1]_, and solve Σ_q Σ_pq w_q = λ Σ_pp w_p: MVCCA is then
    generalized CCA of the MAXVAR kind [2]_. With a ridge, λ is not an eigenvalue of that second
    form. (Eq. (2) of [1]_ prints the full matrix on both sides, which would make every λ 1; its
    right side is block-diagonal.) On two views this *is* CCA with unit-variance scores.

    If some objects lack some views, Σ_pq is the covariance over the objects seen in both views,
    and Σ_pp the mean of the covariances of view p over the objects that it shares with each other
    view. (With the covariance of all rows of a view instead, correlations would exceed 1.)
    Objects that are seen in one view only do not count, unless `missing` allows holes.

    Parameters
    ----------
    n_components : int or None, default=2
        Dimension of the shared space. None keeps all components that the data support; with
        ``reg="cv"``, 64 if a search of all would take minutes or more memory than there is.
    reg : float, mapping of str to float, "auto", "oas" or "cv", default=1e-4
        Ridge on each view's covariance in units of that view's mean variance, so that rescaling a
        view changes nothing. "auto" replaces Σ_pp + r_p I by c ((1 - s_p) Σ_pp + s_p μ_p I), with
        the shrinkage s_p of Ledoit and Wolf, the mean variance μ_p, and the smallest c, the same
        for all views, that leaves no score a training variance above 1. "oas" takes s_p from
        oracle approximating shrinkage [4]_, which suits Gaussian rows. "cv" chooses
        the ridge, and how scores are ranked, by 5 folds; with ``n_components=None`` and a class
        goal also the number of components.
    power : float, default=0.0
        Scores are multiplied by λ^power = (1 + ρ)^power, so that components on which the views
        agree have more weight in cosine similarity; 4 is usual with labels as a view [3]_.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What ``reg="cv"`` maximizes on held-out folds: the mean reciprocal rank of the row of the
        same object, mAP@50 over rows that share a label, or the mean correlation of the scores.
        None is "object"; a class goal needs labels as y.
    reg_unit : {"relative", "absolute"}, default="relative"
        Unit of a numeric ridge: each view's mean variance, or that of the features' variances, as
        other packages have it.
    center : bool, default=True
        Subtract the means of the training rows. False takes moments about zero, E[x xᵀ], in place
        of covariances, and `means_` are zero: for rows whose zero is meaningful, such as
        differences or counts.
    confounds : str or None, default=None
        Name of a view, such as age or scanner, that is removed from the others by linear regression
        instead of correlated: partial CCA [5]_. `fit` and `transform` take the views with it.
        Scores of a view x with the confounds z are (x - m_x - B_xᵀ (z - m_z))ᵀ w, with the means m
        and coefficients B of the training rows, of held-out rows too. Views are correlated as if
        their residuals had been fitted; expected correlations count n - rank(z) rows. In a
        DataFrame, columns of text and of categories become indicators of every level but the first.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with missing cells (NaN): refuse them, estimate each covariance from the rows
        that have both features, or estimate all by maximum likelihood. Take reg="cv" unless there
        are many rows. See Notes.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Whether to standardize the columns of each view, so that a ridge counts alike for columns in
        any units; weights stay in the units of the rows. "auto" standardizes views whose columns
        are in unlike units: their largest standard deviation is above 10 times the median one, and
        they correlate, which scores of a PCA do not. With ``reg="cv"`` folds choose, view by view,
        in place of this rule, first for the views that are correlated with another one beyond
        chance, so that a view of noise does not change the units of others; "cv" lets them choose
        for ridges that are given, too. Without a ridge results do not depend on it.
    solve : {"auto", "shared", "conditional"}, default="auto"
        What ranks in retrieval; scores and weights are those of the shared space in any case.
        "shared" ranks in it, and adds scores of several query views. "conditional" solves each
        question, of some views about another, from the covariance of all views, when it is first
        asked. "auto" does so with ``reg="cv"`` for three views or more, unless the shared space
        ranks held-out rows better or there are more than 3,000 features; "shared" otherwise. Two
        views are the same either way. See Notes.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        One map per view, by name.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means; zeros with ``center=False``.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ in decreasing order, at most the number of views, however these are paired.
    canonical_correlations_ : ndarray, shape (n_components_,)
        ρ; only for two views, where they are correlations.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows, averaged over pairs of views by the
        number of objects that they share. Rankings weight components by them.
    expected_correlations_by_pair_ : ndarray, shape (n_views, n_views, n_components_)
        The same of each pair of views; on the diagonal the mean over the pairs of a view.
    expected_deviations_ : dict of str to ndarray, shape (n_components_,)
        Standard deviations of each view's scores to expect on new rows; of more than two views,
        those of the training rows.
    confound_coefficients_ : dict of str to ndarray, shape (n_confounds, n_features)
        B, by view; with `confounds` only. ``means_`` and ``ranks_`` then hold the confounds, too.
    precisions_ : dict of str to ndarray, shape (n_features, n_features)
        Inverse covariance of each view's features; only if `missing` allows holes, which are filled
        with it before rows are projected.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_ : float
        The chosen ridge; with ``reg="cv"`` only, as are the next three.
    ranking_ : str
        The chosen ranking of scores, which `mvcca.RetrievalIndex` and `mvcca.evaluate_retrieval`
        use: a weighting of components, followed by "+csls" if hubs are corrected for.
    bank_ : Views
        Scores of training rows that correct for hubs; if ``ranking_`` ends in "+csls".
    cv_results_ : dict of str to array
        Values of all ridges, rankings and numbers of components, as in scikit-learn's searches.
    query_views_used_ : dict of (tuple of str, str) to tuple of str
        Query views that count, by the query views and the target of every question that was asked
        so far; others made rankings of held-out rows worse. If questions are solved by folds.
    questions_ : Questions
        Covariances by which questions are solved, those of the folds included, and what was chosen;
        if questions are solved. Files hold it: with ``reg="cv"`` about 30 bytes per pair of
        features.
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
    CCA : Two views, no eigenvalue weighting.
    with_labels_as_view : Three-view CCA: labels as one more view.

    Notes
    -----
    `missing` allows holes in the training rows and in new ones. A hole is a cell that is NaN (in
    sparse rows a stored NaN; zeros are seen), or any cell of a view in which an object is not seen.

    - ``"pairwise"`` takes the covariance of two features from the rows that have both. The
      correlation matrix of all features may then have negative eigenvalues, which would give
      correlations above 1. If it does, eigenvalues below 1e-3 are raised to that and its diagonal
      is scaled back to 1, with a warning of the share of the trace that was added. Until there are
      enough rows that this is not needed, components are poor without a ridge.
    - ``"em"`` takes the mean and the covariance of all features under which the cells are most
      likely, if features are jointly Gaussian [6]_. It needs cells that are missing at random, and
      enough rows: as many as tell as much as twice as many complete rows as features, five times
      without a ridge, counted by the harmonic mean of the rows that have two features. It warns
      below. Each step takes a matrix inverse per pattern of missing cells. Steps end when the
      log-likelihood is expected to rise by less than 1e-8, or after 1,000 with a
      ``ConvergenceWarning``, which few rows can cause: the likelihood may then have no maximum.
      ``config_context(progress=True)`` counts the steps.

    If objects lack whole views only, the default retrieves as well: it learns from the objects of
    each pair of views. With few rows, neither is better than a ridge and imputed means
    (``benchmarks/defaults/missing_cells.py``).

    Both need a ridge more than complete rows do. With 200 rows, two views of 10 features and 30 %
    of the cells missing, the first scores of new rows correlated .49 after ``"em"`` and .16 after
    ``"pairwise"`` without one, .70 and .67 with ``reg="cv"``. The default stays the ridge of
    complete rows, which batches and sums can have, too; a fit warns where holes leave too little.

    Both equal a fit to complete rows if nothing is missing. Sums over rows add, so that
    `partial_fit`, files, Dask arrays and folds give what one fit gives. Rows are used as float64
    tables in blocks, with statistics of all pairs of features, so that views of tens of thousands
    of features do not fit in memory; those of ``"em"`` are as large as the rows if patterns hardly
    repeat. `transform` fills the holes of a row by E[x_m | x_o], the expectation of its missing
    cells given the others of the same view, by the training covariance with a ridge of d / n for d
    features and n rows. What to expect of new rows is derived from the number of complete rows that
    would tell as much.

    **Questions.** If all views are jointly Gaussian, a row x_t of the target shows the object of
    the rows x_Q of query views with the log-likelihood ratio

    .. math::

        \log \frac{p(x_t \mid x_Q)}{p(x_t)} = ∑_i w_i a_i b_i - \tfrac{1}{2} ∑_i v_i (a_i^2 + b_i^2)
        + \text{constant},

    with the canonical variates a and b of CCA of the query views, side by side, against the target,
    all components of it, w_i = ρ_i / (1 - ρ_i²), and v_i = ρ_i w_i. One query view is `CCA` of the
    two. With ``reg="cv"``, the folds also try the sum of the ratios of single query views, each
    with its own ridge, which is right if query views are independent given the target; the ridge;
    the likelihood and the profile likelihood, corrected for hubs or not; and for "auto" the shared
    space. They leave out query views: first those that are correlated with no
    other view beyond chance, unless that takes .005 from the mean reciprocal rank; then one after
    another, while the mean is at most half a percent further from 1 than the best one. A number as
    `reg` is the ridge of CCA, and rows are ranked by the profile likelihood. Several target views
    are ranked in the shared space, and so is a view that is asked about itself
    (``benchmarks/defaults/any_query.py``).

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022, eqs. (1) and (2).
    .. [2] Kettenring, "Canonical Analysis of Several Sets of Variables", Biometrika 1971.
    .. [3] Gong, Ke, Isard and Lazebnik, "A Multi-View Embedding Space for Modeling Internet Images,
       Tags, and their Semantics", IJCV 2014.
    .. [4] Chen, Wiesel, Eldar and Hero, "Shrinkage Algorithms for MMSE Covariance Estimation", IEEE
       Transactions on Signal Processing 2010.
    .. [5] Rao, "Partial canonical correlations", Trabajos de estadística y de investigación
       operativa 20, 1969.
    .. [6] Dempster, Laird and Rubin, "Maximum Likelihood from Incomplete Data via the EM
       Algorithm", J. Royal Statistical Society B, 1977.

    Examples
    --------
    >>> from mvcca import MVCCA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views("quadrants").views
    >>> MVCCA(n_components=3, reg=1e-2).fit(views).eigenvalues_.round(2)
    array([2.92, 2.56, 2.4 ])
    """

    retrieval_ranking = ("transform", "profile-likelihood")
    requires = Requirements(many_rows=True)
    automatic: ClassVar = STANDARDIZED
    _if_too_large = _IF_TOO_LARGE
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StatisticEstimator._parameter_constraints,
        "confounds": [str, None],
        **_MISSING,
        "solve": [StrOptions({"auto", "shared", "conditional"})],
    }

    question_goal = "object"

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        reg: float | str | Mapping[str, float] = 1e-4,
        power: float = 0.0,
        cv_goal: Goal | None = None,
        reg_unit: str = "relative",
        center: bool = True,
        confounds: str | None = None,
        missing: str = "error",
        scale: bool | str | Mapping[str, bool | str] = "auto",
        solve: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.power = power
        self.cv_goal = cv_goal
        self.reg_unit = reg_unit
        self.center = center
        self.confounds = confounds
        self.missing = missing
        self.scale = scale
        self.solve = solve

    @property
    def takes_products(self) -> bool:
        """Whether products with the rows suffice; questions need covariances."""
        return self.solve != "conditional" and super().takes_products

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.solve == "conditional":
            if self.reg in SHRINKAGES:
                raise ValueError(
                    f'solve="conditional" takes a ridge that adds, reg="cv" or a number; got '
                    f'reg="{self.reg}". Use solve="shared" with it.'
                )
            if self.reg == SEARCHED and self.cv_goal not in (None, "object"):
                raise ValueError(
                    'solve="conditional" ranks by the likelihood of the same object, '
                    f'cv_goal="object"; got cv_goal="{self.cv_goal}". Use solve="shared" with it.'
                )


def with_labels_as_view(X: Any, y: Any, name: str = "labels") -> Views:
    """Add labels as a view: MVCCA on the result is three-view CCA [1]_.

    Parameters
    ----------
    X : Views, mapping or list of matrices
        Views of the objects.
    y : class vector, indicator matrix, label sets, real label vectors or Labels
        One label (or label set) per object.
    name : str, default="labels"
        Name of the new view: label vectors, indicators as a sparse 0/1 matrix.

    Returns
    -------
    Views

    Raises
    ------
    ValueError
        If there are not as many labels as objects, or a view has that name already.

    References
    ----------
    .. [1] Gong, Ke, Isard and Lazebnik, "A Multi-View Embedding Space for Modeling Internet Images,
       Tags, and their Semantics", IJCV 2014.

    Examples
    --------
    >>> from mvcca import MVCCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.linear import with_labels_as_view
    >>> data = load_digits_views()
    >>> model = MVCCA(9, power=4).fit(with_labels_as_view(data.views, data.labels))
    >>> model.transform({"left": data.views["left"][:2]})["left"].shape
    (2, 9)
    """
    views = as_views(X)
    labels = Labels.of(y)
    if len(labels) != len(views):
        raise ValueError(f"Expected labels of {len(views)} objects, got {len(labels)}.")
    check_same_rows("y", labels.ids, "the views", views.ids)
    vectors = labels.used().matrix
    if labels.are_sets:
        vectors = csr_array(vectors, dtype=np.float64)
    return views.add(name, vectors)
