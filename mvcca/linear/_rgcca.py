"""Regularized generalized CCA, sparse and dense: block ascent on covariances, as an estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import Requirements
from mvcca.base.statistic_estimator import check_memory
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.machine.memory import WIDE
from mvcca.machine.warnings import warn
from mvcca.model_selection import SEARCHED
from mvcca.problem import (
    CentredRows,
    Estimate,
    Maps,
    Rows,
    check_variance,
    climb,
    correlation_shrinkage,
)
from mvcca.problem.ascent import BlockMethod, Limit, Links, Solution
from mvcca.problem.block_covariances import (
    BlockCovariances,
    CovarianceMatrix,
    CovarianceProducts,
    Vectors,
)
from mvcca.statistics import OF_HOLES, Moments, PairMoments, column_slices
from mvcca.views import Views
from mvcca.views.by_view import value_by_view
from mvcca.views.powers_of_two import Exponents, exponents_of

SUPERBLOCK = "superblock"
_CHANCE = 0.95  # correlation of features that share nothing, above which a selection says little


@dataclass(frozen=True, eq=False)
class Posed:
    """Covariances of views in the units in which weights are limited.

    Attributes
    ----------
    about : Estimate
        What is known of the rows.
    covariances : BlockCovariances
        Of the views, and of the superblock if there is one.
    factors : dict of str to ndarray, shape (n_features,)
        What the columns of each view are multiplied by.
    n_objects : float
        Number of objects, of two views that share the fewest.
    """

    about: Estimate
    covariances: BlockCovariances
    factors: dict[str, np.ndarray]
    n_objects: float

    @classmethod
    def of(cls, about: Estimate, model: RGCCA) -> Posed:
        """Scale columns to unit variance, views to a total variance of 1, or both."""
        assert about.covariance is not None
        S, places = about.covariance[0], column_slices({n: len(m) for n, m in about.means.items()})
        assert isinstance(S, np.ndarray)
        variances = {name: np.diag(S)[own] for name, own in places.items()}
        factors = _factors(variances, model)
        f = np.concatenate(list(factors.values()))
        if model.superblock:
            places = {**places, SUPERBLOCK: slice(0, len(f))}
        matrix = CovarianceMatrix(f[:, None] * S * f, places)
        assert isinstance(about.pairs, Moments | PairMoments)
        n_objects = min(about.pairs.objects_by_view().values())
        return cls(about, BlockCovariances(matrix), factors, n_objects)

    @classmethod
    def of_rows(cls, rows: Rows, model: RGCCA) -> Posed:
        """The same by products of complete rows."""
        own = centred_rows(rows)
        factors = _factors({name: X.variances for name, X in own.items()}, model)
        about = Estimate({name: X.mean for name, X in own.items()})
        products = CovarianceProducts(own, factors, SUPERBLOCK if model.superblock else None)
        n_objects = min(X.count for X in own.values())
        return cls(about, BlockCovariances(products), factors, n_objects)

    def chance(self) -> float:
        """About the largest correlation of two features, of different views, that share nothing.

        Of N pairs, one has r² above 1 - N^(-2 / (n - 2)), since P(r² > x) is about
        (1 - x)^((n - 2) / 2) for n objects.
        """
        p, q = sorted(np.count_nonzero(f) for f in self.factors.values())[-2:]
        n = max(self.n_objects, 2 + 1e-9)
        return float(np.sqrt(1 - float(p * q) ** (-2 / (n - 2))))


def centred_rows(rows: Rows) -> dict[str, CentredRows]:
    """Rows of every view to multiply by."""
    return {name: CentredRows.of(X, rows.sample_weight) for name, X in rows.views.blocks.items()}


def _factors(variances: Mapping[str, np.ndarray], model: RGCCA) -> dict[str, np.ndarray]:
    factors = {}
    for name, own in variances.items():
        check_variance(name, own)
        varies = own > 0
        f = varies.astype(float)
        if model.scale:
            f[varies] = 1 / np.sqrt(own[varies])
        if model.scale_views:
            f /= np.sqrt(np.sum(f**2 * own))
        factors[name] = f
    return factors


class RGCCA(RescaledEstimator):
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

    requires = Requirements(views=(2, None), float64=True, features=True)
    if_units_are_unlike = "Set scale=True"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tau": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"}), Mapping],
        "n_features": [Interval(Integral, 1, None, closed="left"), list, tuple, Mapping, None],
        "l1": [Interval(Real, 0, 1, closed="right"), Mapping, None],
        "shrink": ["boolean"],
        "positive": ["boolean", Mapping],
        "design": ["array-like", None],
        "scheme": [StrOptions({"horst", "factorial", "centroid"})],
        "deflation": [StrOptions({"scores", "weights", "pmd"})],
        "superblock": ["boolean"],
        "scale": ["boolean"],
        "scale_views": ["boolean"],
        "start": [StrOptions({"columns", "svd", "own"})],
        "confounds": [str, None],
        "missing": [StrOptions({"error", *OF_HOLES})],
    }
    n_starts: int = 20
    tau_: Any
    n_features: Any
    tau: Any

    def __init__(
        self,
        n_components: int = 1,
        *,
        tau: float | str | Mapping[str, float] = 1.0,
        n_features: int | Sequence[int] | Mapping[str, Any] | None = None,
        l1: float | Mapping[str, float] | None = None,
        shrink: bool = False,
        positive: bool | Mapping[str, bool] = False,
        design: Any = None,
        scheme: str = "factorial",
        deflation: str = "scores",
        superblock: bool = False,
        scale: bool = True,
        scale_views: bool = True,
        start: str = "columns",
        confounds: str | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.tau = tau
        self.n_features = n_features
        self.l1 = l1
        self.shrink = shrink
        self.positive = positive
        self.design = design
        self.scheme = scheme
        self.deflation = deflation
        self.superblock = superblock
        self.scale = scale
        self.scale_views = scale_views
        self.start = start
        self.confounds = confounds
        self.missing = missing

    # ---- the fit ---------------------------------------------------------------------------------

    def learn(self, rows: Rows, statistic: Any) -> None:
        """Find one component after the other, and set the fitted attributes."""
        self._learn_posed(rows, self.posed_of(rows, statistic))

    def _learn_posed(self, rows: Rows, posed: Posed) -> None:
        tau, n_features = self._settings(rows, posed)
        limits_of = partial(self._limits, posed, tau, n_features)
        self._solve(posed, limits_of, self.n_components)
        self.tau_ = tau

    def _solve(
        self, posed: Posed, limits_of: Callable[[int], dict[str, Limit]], n_components: int
    ) -> None:
        """Find the components under limits that the number of each tells."""
        method, covariances = self._method(posed), posed.covariances
        sizes = covariances.base.sizes
        selects = any(not own.dense(sizes[name]) for name, own in limits_of(0).items())
        if selects and posed.chance() > _CHANCE and SEARCHED not in (self.n_features, self.tau):
            warn(
                f"Few rows to select features from: {posed.n_objects:g}, in which two features "
                f"that share nothing correlate by {posed.chance():.2f}. What is selected may have "
                "nothing in common in new rows."
            )
        solutions: list[Solution] = []
        rotated: list[dict[str, np.ndarray]] = []
        for found, left in method.components(covariances, limits_of, n_components):
            solutions.append(found)
            rotated.append({name: left.rotated(name, w) for name, w in found.weights.items()})
        self._keep_solutions(posed, solutions, rotated, n_components)

    def posed_of(self, rows: Rows, statistic: Any) -> Posed:
        """Covariances that a statistic of rows tells, in the units of the weights."""
        about = Estimate.of(statistic, rows, confounds=self.confounds, columns=self._column_names)
        return Posed.of(about, self)

    def posed_by_products(self, rows: Rows) -> Posed:
        """The same by products of the rows, for views too wide for covariances of all features."""
        return Posed.of_rows(rows, self)

    def takes_row_products(self, rows: Rows) -> bool:
        """Whether views are wider than long, and nothing needs covariances of all features."""
        views, widths = rows.views, rows.views.widths
        in_memory = not any(X.is_lazy or X.on_device for X in views.blocks.values())
        is_wide = sum(widths.values()) >= max(WIDE, 4 * len(views))
        is_plain = self.confounds is None and self.missing == "error" and views.is_paired
        return in_memory and is_wide and is_plain and self.tau != "auto"

    def _settings(self, rows: Rows, posed: Posed) -> tuple[dict[str, float], Any]:
        """τ and numbers of features by view."""
        names = list(posed.covariances.base.sizes)
        tau: dict[str, float] = value_by_view("tau", self.tau, names)
        if self.tau == "auto":
            tau = self._shrinkages(rows, posed)
        n_features = value_by_view("n_features", self.n_features, posed.factors)
        return tau, n_features

    def _shrinkages(self, rows: Rows, posed: Posed) -> dict[str, float]:
        if self.missing != "error" or self.confounds is not None or not rows.views.is_paired:
            raise ValueError(
                'tau="auto" looks at the rows of objects that are seen in all views, without '
                "confounds or missing cells: put compose.Deconfound before it in a pipeline, drop "
                "or fill rows with holes, or give numbers."
            )
        means, base = posed.about.means, posed.covariances.base
        found = {}
        for name in base.sizes:
            views = rows.views if name == SUPERBLOCK else rows.views.select((name,))
            S = posed.covariances.matrix(name, name)
            f = np.concatenate([posed.factors[own] for own in views.names])
            with np.errstate(divide="ignore"):
                back = np.where(f > 0, 1 / f, 0)
            S = back[:, None] * S * back
            found[name] = correlation_shrinkage(views, rows.sample_weight, means, S)
        return found

    def _limits(
        self, posed: Posed, tau: Mapping[str, float], n_features: Mapping[str, Any], number: int
    ) -> dict[str, Limit]:
        """Constraints of all blocks for one component."""
        shares = value_by_view("l1", self.l1, posed.factors)
        positive = value_by_view("positive", self.positive, posed.factors)
        limits = {}
        for name, size in posed.covariances.base.sizes.items():
            count = of_component(n_features.get(name), name, number)
            share, radius = shares.get(name), None
            if share is not None:
                radius = _radius(share, size, name, tau[name], count)
            is_positive = bool(positive.get(name, self.positive is True))
            if is_positive and tau[name] != 1:
                raise ValueError(
                    f"positive needs tau=1, got tau={tau[name]:g} of view {name!r}: with less, the "
                    "best weights without signs are another problem."
                )
            limits[name] = Limit(float(tau[name]), count, radius, self.shrink, is_positive)
        return limits

    def _method(self, posed: Posed) -> BlockMethod:
        names = list(posed.factors)
        return BlockMethod(
            links_of(self.design, names, self.superblock),
            self.scheme,
            self.deflation,
            self.start,
            self.n_starts,
            superblock=SUPERBLOCK if self.superblock else None,
        )

    def _keep_solutions(
        self,
        posed: Posed,
        solutions: Sequence[Solution],
        rotated: Sequence[Vectors],
        n_components: int,
    ) -> None:
        about, factors = posed.about, posed.factors
        sparse = {n: np.column_stack([own.weights[n] for own in solutions]) for n in factors}
        weights = {
            name: f[:, None] * np.column_stack([own[name] for own in rotated])
            for name, f in factors.items()
        }
        recovered = about.recovered
        for note in () if recovered is None else recovered.notes:
            warn(note)
        maps = Maps(
            weights,
            {name: about.means[name] for name in factors},
            ranks={name: int(np.count_nonzero(f)) for name, f in factors.items()},
            bound=len(solutions),
            regression=about.regression,
            precisions=None
            if recovered is None
            else {name: recovered.precisions[name] for name in factors},
        )
        self._keep(maps.checked(n_components, signs=False))
        self.sparse_weights_ = sparse
        self.objective_ = np.array([own.value for own in solutions])
        self.n_iter_ = np.array([len(own.values) for own in solutions])
        self.selected_ = {
            name: [self._names_of(name, np.flatnonzero(w)) for w in W.T]
            for name, W in sparse.items()
        }

    def _names_of(self, name: str, chosen: np.ndarray) -> np.ndarray:
        columns = self._column_names[name]
        return chosen if columns is None else np.asarray(columns, dtype=object)[chosen]

    # ---- what is asked of the rows ---------------------------------------------------------------

    def open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights."""
        for name in ("tau", "n_features", "n_components") if batch else ():
            if isinstance(value := getattr(self, name), str):
                raise ValueError(
                    f'{name}="{value}" looks at all rows at once: use fit, or give partial_fit '
                    "values."
                )
        return super().open_rows(X, y, sample_weight, batch=batch)

    def _accepted(self, views: Views, reset: bool) -> Views:
        if self.deflation == "pmd" and (len(views.without(self.confounds).names) > 2):
            raise ValueError(
                f'deflation="pmd" takes 2 views, got {len(views.names)}: {list(views.names)}. Use '
                '"scores" or "weights".'
            )
        if SUPERBLOCK in views.names and self.superblock:
            raise ValueError(
                f'superblock=True calls all features side by side "{SUPERBLOCK}": rename the view '
                "of that name."
            )
        return super()._accepted(views, reset)

    def _exponents_of(self, views: Views) -> Exponents:
        if self.missing != "error" or self.confounds is not None:
            return {}
        if self.scale:
            return exponents_of(views, views.names)
        return exponents_of(views) if self.scale_views else {}

    def _depends_on_units(self, name: str) -> bool:
        return not self.scale

    def nests_components(self) -> bool:
        """Whether a fit with fewer components is the first components of a fit with more."""
        return True

    def _bytes_of_matrices(self, views: Views) -> float:
        return 24.0 * sum(views.widths.values()) ** 2  # scatter, covariance, and that in units

    def _learn_rows(self, rows: Rows) -> None:
        if self.takes_row_products(rows):
            self._learn_posed(rows, self.posed_by_products(rows))
            return
        check_memory(self, rows.views)
        climb(self.in_basis(rows), lambda rows: self.learn(rows, self.statistic_of(rows)))


def links_of(design: Any, names: Sequence[str], superblock: bool = False) -> Links:
    """c_jk of linked views, in both orders."""
    if superblock:
        if design is not None:
            raise ValueError("superblock=True links each view to all features: leave design out.")
        pairs = [(name, SUPERBLOCK) for name in names]
        return {pair: 1.0 for own in pairs for pair in (own, own[::-1])}
    if design is None:
        return dict.fromkeys(permutations(names, 2), 1.0)
    C = np.asarray(design, dtype=float)
    is_square = C.shape == (len(names), len(names))
    if not is_square or not (np.isfinite(C).all() and (C >= 0).all() and (C == C.T).all()):
        raise ValueError(
            f"design must be a symmetric matrix of numbers from 0 up, a row and a column for each "
            f"of the {len(names)} views {list(names)}, got shape {C.shape}."
        )
    links = {
        (j, k): float(C[a, b]) for (a, j), (b, k) in permutations(enumerate(names), 2) if C[a, b]
    }
    alone = [name for name in names if not any(name in pair for pair in links)]
    if alone:
        raise ValueError(f"design links no other view to {alone}. Drop them, or link them.")
    return links


def _radius(share: float, size: int, view: str, tau: float, count: int | None) -> float | None:
    """The largest sum of absolute weights, s √p; None if that is no limit."""
    if count is not None:
        raise ValueError("Give either n_features or l1, got both.")
    if tau != 1:
        raise ValueError(
            f"l1 needs tau=1, got tau={tau:g} of view {view!r}. Give n_features, which any tau "
            "allows."
        )
    least = 1 / np.sqrt(size)
    if not least <= share <= 1:
        raise ValueError(
            f"l1 of view {view!r} with {size} features must be from 1 / √{size} = {least:.4g} to "
            f"1, got {share!r}."
        )
    return float(share * np.sqrt(size)) if share < 1 else None


def of_component(value: Any, view: str, number: int) -> int | None:
    """Number of features of one component, of one for all or one for each."""
    if not (value is None or isinstance(value, Integral)):
        values = tuple(value)
        if number >= len(values):
            raise ValueError(
                f"n_features of view {view!r} has {len(values)} numbers, one for each component, "
                f"and component {number + 1} none."
            )
        value = values[number]
    if value is None:
        return None
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(
            f"n_features of view {view!r} must be whole numbers from 1 up, got {value!r}."
        )
    return int(value)
