"""Regularized generalized CCA, sparse and dense, under the names of R's packages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval

from mvcca.base.parameters import SHARE, at_least, constraints, one_of, parameter
from mvcca.linear.block_estimator import BlockEstimator
from mvcca.statistics import OF_HOLES


class RGCCA(BlockEstimator):
    r"""Regularized generalized CCA of two or more views, dense or sparse, under its peers' names.

    Use it to reproduce analyses by the R packages RGCCA, mixOmics and PMA, or to choose which views
    are linked. `SparseCCA` is the same with settings that folds choose.

    Finds one weight vector per view at a time [1]_,

    .. math::

        \max \; ∑_{j≠k} c_{jk} \, g(w_j^⊤ S_{jk} w_k) \quad \text{subject to} \quad
        w_j^⊤ (τ_j I + (1 - τ_j) S_{jj}) w_j = 1,

    with the design c and the scheme g, by updating one view after the other. With `n_features`,
    each w_j has at most so many nonzero weights; with `l1`, ‖w_j‖₁ ≤ s_j √p_j for p_j features
    [2]_, [3]_. Only covariances are needed, so that batches, files, sparse rows, weights, confounds
    and missing cells are accepted as by `CCA`.

    Parameters
    ----------
    n_components : int, default=1
        Number of components; fewer are found if views have no more in common.
    tau : float, mapping of str to float, or "auto", default=1.0
        τ_j: 1 maximizes covariance, 0 correlation. "auto" is the shrinkage of Schäfer and Strimmer
        for each view, which looks at all rows twice.
    n_features : int, sequence of int, mapping of str to these, or None, default=None
        Number of features of each view with weights, perhaps one for each component. For τ = 1 the
        largest covariances decide, for τ < 1 least-angle regression.
    l1 : float, mapping of str to float, or None, default=None
        s_j, between 1 / √p_j and 1, for τ = 1.
    shrink : bool, default=False
        Whether a number of features is reached by a soft threshold as in mixOmics, which shrinks
        the weights by the largest one that is left out. The objective may then fall.
    positive : bool or mapping of str to bool, default=False
        Views whose weights are not negative, for τ = 1: the features that rise together. With
        ``scheme="horst"`` they correlate positively; other schemes also take opposite scores.
    design : array-like of shape (n_views, n_views), or None, default=None
        c, symmetric and not negative, in the order of the views; None links all views alike.
    scheme : {"horst", "factorial", "centroid"}, default="factorial"
        g(x) = x, x² or \|x\|.
    deflation : {"scores", "weights", "pmd"}, default="scores"
        How a component is removed from each view before the next one: by regression on its scores,
        which makes scores uncorrelated; by projection on its weights, which makes the weights of
        residuals orthogonal; or by subtraction of d w_1 w_2ᵀ from the covariance of two views, as
        in PMA, which keeps weights sparse.
    superblock : bool, default=False
        Whether to link each view to all features side by side, in place of a design. Only these
        are deflated: with τ = 0 the components are those of `GCCA`.
    scale : bool, default=True
        Divide columns by their standard deviations first.
    scale_views : bool, default=True
        Divide each view by the root of its total variance, √p for p scaled columns.
    start : {"columns", "svd", "own"}, default="columns"
        Where to start. "columns" starts from 20 features of one view of each linked pair, those
        with the largest covariances with the other, and keeps the best end; it finds what the
        others miss if each view has factors of its own. "svd" starts from singular vectors of the
        covariance between views as PMA and mixOmics do, "own" from first principal components as
        RGCCA and DIABLO do.
    confounds : str or None, default=None
        Name of a view that is removed from the others by linear regression; see `CCA`.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with missing cells (NaN); see `MVCCA`.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        Map centred rows to scores, scaling included. Those of later components hold features of
        the components before, which are removed first.
    sparse_weights_ : dict of str to ndarray, shape (n_features, n_components_)
        w_j in scaled units, of what the components before leave: these are sparse.
    selected_ : dict of str to list of ndarray
        Features with weights, by view and component: their names, or positions if columns have no
        names.
    objective_ : ndarray, shape (n_components_,)
        Σ_{j≠k} c_jk g(w_jᵀ S_jk w_k).
    n_iter_ : ndarray of int, shape (n_components_,)
        Number of updates of all views.
    tau_ : dict of str to float
        τ of each view.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    confound_coefficients_, precisions_
        See `CCA`.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Number of features that vary.
    view_names_ : tuple of str
        The views, in order, without the confounds.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    SparseCCA : Numbers of features and τ by folds.
    PLS : Two views with ``tau=1``, all components at once.
    GCCA : A superblock with ``tau=0``.

    Notes
    -----
    Covariances are divided by n - 1 rows, where RGCCA divides by n; with scaled columns both are
    correlations. The largest weight of all views is positive, and so are covariances of scores with
    those of the first view, but for ``scheme="horst"``, where signs decide.

    References
    ----------
    .. [1] Tenenhaus, Tenenhaus and Groenen, "Regularized generalized canonical correlation
       analysis: a framework for sequential multiblock component methods", Psychometrika 2017.
    .. [2] Tenenhaus, Philippe, Guillemot, Le Cao, Grill and Frouin, "Variable selection for
       generalized canonical correlation analysis", Biostatistics 2014.
    .. [3] Witten, Tibshirani and Hastie, "A penalized matrix decomposition, with applications to
       sparse principal components and canonical correlation analysis", Biostatistics 2009.

    Examples
    --------
    >>> from mvcca import RGCCA
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views("quadrants").views
    >>> model = RGCCA(2, n_features=4).fit(views)
    >>> [len(names) for names in model.selected_["top_left"]]
    [4, 4]
    """

    n_components: int = field(default=1, kw_only=False, metadata=constraints(at_least(1)))
    tau: float | str | Mapping[str, float] = parameter(1.0, SHARE, one_of("auto"), Mapping)
    n_features: int | Sequence[int] | Mapping[str, Any] | None = parameter(
        None, at_least(1), list, tuple, Mapping, None
    )
    l1: float | Mapping[str, float] | None = parameter(
        None, Interval(Real, 0, 1, closed="right"), Mapping, None
    )
    shrink: bool = parameter(False, "boolean")
    positive: bool | Mapping[str, bool] = parameter(False, "boolean", Mapping)
    design: Any = parameter(None, "array-like", None)
    scheme: str = parameter("factorial", one_of("horst", "factorial", "centroid"))
    deflation: str = parameter("scores", one_of("scores", "weights", "pmd"))
    superblock: bool = parameter(False, "boolean")
    scale: bool = parameter(True, "boolean")
    scale_views: bool = parameter(True, "boolean")
    start: str = parameter("columns", one_of("columns", "svd", "own"))
    confounds: str | None = parameter(None, str, None)
    missing: str = parameter("error", one_of("error", *OF_HOLES))
