"""RGCCA and its base, which finds components by block ascent on covariances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils._param_validation import Interval

from mvcca.base import Requirements
from mvcca.base.parameters import SHARE, at_least, constraints, one_of, parameter, with_constructor
from mvcca.base.statistic_estimator import check_memory
from mvcca.blocks import as_block, stack
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.machine.memory import WIDE
from mvcca.machine.warnings import warn
from mvcca.model_selection.fold_statistics import InnerFolds, Parts, naming_folds
from mvcca.model_selection.search import Setting
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Maps, Rows, climb
from mvcca.problem.ascent import Ascent, Limit, Limits, Links, Solution
from mvcca.problem.block_covariances import (
    BlockCovariances,
    CovarianceMatrix,
    CovarianceProducts,
    in_own_order,
)
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.rows import check_rows_vary, check_variance
from mvcca.problem.shrinkage import correlation_shrinkage
from mvcca.problem.whitener import Scaling
from mvcca.statistics import OF_HOLES, Moments, PairMoments, column_slices
from mvcca.views import Views
from mvcca.views.by_view import value_by_view
from mvcca.views.powers_of_two import Exponents, exponents_of

SUPERBLOCK = "superblock"
Counts: TypeAlias = int | Sequence[int] | Mapping[str, Any] | None  # of features
Part: TypeAlias = tuple[Rows, Any]
T = TypeVar("T")
_CHANCE = 0.95  # correlation of features that share nothing, above which a selection says little


@dataclass(frozen=True, eq=False)
class Posed:
    """The problem that rows pose, in the units in which weights are limited.

    Attributes
    ----------
    rows : Rows
        All rows, or one of each view that stands for batches.
    about : Estimate
        What is known of them.
    ascent : Ascent
        On covariances of the views, and of the superblock or the classes if there are any.
    variances : dict of str to ndarray, shape (n_features,)
        Of the columns of each view.
    factors : dict of str to ndarray, shape (n_features,)
        What the columns of each view are multiplied by.
    n_objects : float
        Number of objects, of two views that share the fewest.
    """

    rows: Rows
    about: Estimate
    ascent: Ascent
    variances: dict[str, np.ndarray]
    factors: dict[str, np.ndarray]
    n_objects: float

    @property
    def sizes(self) -> dict[str, int]:
        """Number of features of each block, first of the views in their order."""
        sizes = self.ascent.covariances.base.sizes
        return {name: sizes[name] for name in {**self.factors, **sizes}}

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view that vary."""
        return {name: int(np.count_nonzero(f)) for name, f in self.factors.items()}

    def chance(self) -> float:
        """About the largest correlation of two features, of linked blocks, that share nothing.

        Of N pairs, one has r² above 1 - N^(-2 / (n - 2)), since P(r² > x) is about
        (1 - x)^((n - 2) / 2) for n objects. If there is a response, features are chosen by their
        pairs with it.
        """
        sizes, response = self.sizes | self.widths, self.ascent.response
        pairs = [own for own in self.ascent.links if response in (None, *own)]
        n, most = max(self.n_objects, 2 + 1e-9), max(sizes[j] * sizes[k] for j, k in pairs)
        return float(np.sqrt(1 - float(most) ** (-2 / (n - 2))))

    def weights(self, components: Sequence[Solution]) -> dict[str, np.ndarray]:
        """Weights of the columns of rows, (n_features, k)."""
        return {
            name: f[:, None] * np.column_stack([own.rotated[name] for own in components])
            for name, f in self.factors.items()
        }

    def maps(self, components: Sequence[Solution]) -> Maps:
        """Maps of rows to scores."""
        recovered, weights = self.about.recovered, self.weights(components)
        return Maps(
            weights,
            {name: self.about.means[name] for name in weights},
            ranks=self.widths,
            bound=len(components),
            regression=self.about.regression,
            precisions=None if recovered is None else {n: recovered.precisions[n] for n in weights},
        )


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, parameter))
class BlockEstimator(RescaledEstimator):
    """Base of `RGCCA`, `SparseCCA` and `SparseDiscriminant`, which differ in their parameters.

    Annotated attributes of subclasses are parameters of their constructors; what is not a parameter
    has the value that it has here.
    """

    requires = Requirements(views=(2, None), float64=True, features=True)
    if_units_are_unlike = "Set scale=True"
    nests_components = True
    of_all_rows = "tau", "n_features", "n_components"
    n_features: Any = None
    tau: Any = 1.0
    l1: Any = None
    shrink: bool = False
    positive: Any = False
    design: Any = None
    scheme: str = "factorial"
    deflation: str = "scores"
    superblock: bool = False
    scale: bool = True
    scale_views: bool = False
    start: str = "columns"
    n_starts: int = 20
    response: ClassVar[str | None] = None  # block that the others explain
    tau_: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        with_constructor(cls)

    # ---- the fit ---------------------------------------------------------------------------------

    def _learn(self, rows: Rows, statistic: Any) -> None:
        """Find one component after the other, and set the fitted attributes."""
        posed = self.posed_of(rows, statistic)
        tau = {"tau": self._shrinkages(posed)} if self.tau == "auto" else {}
        self._learn_settings(posed, [self._given(posed, k) | tau for k in range(self.n_components)])

    def posed_of(self, rows: Rows, statistic: Any) -> Posed:
        """Covariances that a statistic of rows tells, in the units of the weights.

        Columns have unit variance, views a total variance of 1, or both. Without a statistic,
        covariances are products of the rows, which are complete: for views that are too wide.
        """
        base: CovarianceMatrix | CovarianceProducts
        superblock = SUPERBLOCK if self.superblock else None
        if statistic is None:
            blocks = rows.views.blocks
            own = {name: CentredRows.of(X, rows.sample_weight) for name, X in blocks.items()}
            about = Estimate({name: X.mean for name, X in own.items()})
            variances = {name: X.variances for name, X in own.items()}
            factors = units = self._factors(variances)
            if superblock is not None:
                both = as_block(stack(blocks.values(), axis=1))
                own[superblock] = CentredRows.of(both, rows.sample_weight)
                units = {**units, superblock: np.concatenate([*factors.values()])}
            base = CovarianceProducts({name: own[name].in_units(f) for name, f in units.items()})
            n_objects = min(X.count for X in own.values())
        else:
            columns = self._column_names
            about = Estimate.of(statistic, rows, confounds=self.confounds, columns=columns)
            assert about.covariance is not None
            assert isinstance(about.pairs, Moments | PairMoments)
            S = np.asarray(about.covariance[0])
            places = column_slices({name: len(mean) for name, mean in about.means.items()})
            variances = {name: np.diag(S)[place] for name, place in places.items()}
            factors = self._factors(variances)
            f = np.concatenate([*factors.values()])
            if superblock is not None:
                places[superblock] = slice(0, len(f))
            base = CovarianceMatrix(f[:, None] * S * f, places)
            n_objects = min(about.pairs.objects_by_view().values())
        factors = {name: f for name, f in factors.items() if name != self.response}
        how = self.scheme, self.deflation, self.start, self.n_starts, self.response, superblock
        ascent = Ascent(BlockCovariances(in_own_order(base)), self._links([*factors]), *how)
        return Posed(rows, about, ascent, variances, factors, n_objects)

    def _learn_rows(self, rows: Rows) -> None:
        if not self.takes_row_products(rows):
            check_memory(self, rows.views)
        climb(rows, self._learn_all)

    def _learn_all(self, rows: Rows) -> None:
        by_products = self.takes_row_products(rows)
        self._learn(rows, None if by_products else self.statistic_of(rows))

    def takes_row_products(self, rows: Rows) -> bool:
        """Whether views are wider than long, and nothing needs covariances of all features."""
        views, widths = rows.views, rows.views.widths
        in_memory = not any(X.is_lazy or X.on_device for X in views.blocks.values())
        is_wide = sum(widths.values()) >= max(WIDE, 4 * len(views))
        is_plain = self.confounds is None and self.missing == "error" and views.is_paired
        return in_memory and is_wide and is_plain

    def _learn_settings(self, posed: Posed, settings: Sequence[Setting]) -> list[Solution]:
        """Find components under settings of each, and set the fitted attributes."""
        limits = [self._limits(posed, own) for own in settings]
        selects = any(not own.is_dense for own in limits[0])
        is_given = selects and SEARCHED not in (self.n_features, self.tau)
        if is_given and (chance := posed.chance()) > _CHANCE:
            warn(
                f"Few rows to select features from: {posed.n_objects:g}, in which two columns "
                f"that share nothing correlate by {chance:.2f}. What is selected may have nothing "
                "in common in new rows."
            )
        found, recovered = list(posed.ascent.components(limits)), posed.about.recovered
        for note in recovered.notes if recovered else ():
            warn(note)
        self._keep(posed.maps(found).checked(len(settings), signs=False))
        self.sparse_weights_ = {
            name: np.column_stack([own.weights[name] for own in found]) for name in posed.factors
        }
        self.objective_ = np.array([own.value for own in found])
        self.n_iter_ = np.array([own.n_steps for own in found])
        self.selected_ = {}
        for name, W in self.sparse_weights_.items():
            columns = self._column_names[name]
            names = np.arange(len(W)) if columns is None else np.asarray(columns, dtype=object)
            self.selected_[name] = [names[np.flatnonzero(w)] for w in W.T]
        self.tau_ = {own.name: own.tau for own in limits[0] if own.name != self.response}
        return found

    # ---- folds that choose settings --------------------------------------------------------------

    def _over_folds(
        self, rows: Rows, folds: InnerFolds, learn: Callable[[Part, Part], T]
    ) -> tuple[list[T], Part]:
        """What is learned from the training part and the held-out part of each fold; and all rows.

        A part is rows and their statistic, which is None if rows are multiplied instead.
        """
        trains = [folds.without(left_out) for left_out, _ in folds.models()]
        parts = None if self.takes_row_products(rows) else Parts.of(self, rows, trains)
        found = []
        for fold, train in enumerate(trains):
            test = rows.take(np.flatnonzero(folds.codes == fold))
            try:
                own = (rows.take(train), None) if parts is None else parts[fold]
                rest = None if parts is None else parts.left_out(fold)
                found.append(learn(own, (test, rest)))
            except ValueError as error:  # a view that varies in one fold only, say
                check_rows_vary(rows.views)
                raise naming_folds(error, folds, (fold,)) from error
        return found, (rows, None) if parts is None else parts.whole()

    # ---- the problem -----------------------------------------------------------------------------

    def _links(self, names: Sequence[str]) -> Links:
        """c_jk of linked blocks, in both orders."""
        if self.superblock:
            if self.design is not None:
                raise ValueError("superblock=True links views to all features: leave design out.")
            pairs = [(name, SUPERBLOCK) for name in names]
            return {pair: 1.0 for own in pairs for pair in (own, own[::-1])}
        C = 1 - np.eye(len(names)) if self.design is None else np.asarray(self.design, dtype=float)
        is_square = C.shape == (len(names), len(names))
        if not is_square or not (np.isfinite(C).all() and (C >= 0).all() and (C == C.T).all()):
            raise ValueError(
                f"design must be a symmetric matrix of numbers from 0 up, a row and a column for "
                f"each of the {len(names)} views {list(names)}, got shape {C.shape}."
            )
        links = {(names[a], names[b]): float(C[a, b]) for a, b in np.argwhere(C) if a != b}
        parts = connected_components(C)[1]
        if apart := np.asarray(names)[parts != np.bincount(parts).argmax()].tolist():
            raise ValueError(f"design links no other view to {apart}. Drop them, or link them.")
        return links

    def _factors(self, variances: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        factors = {}
        for name, own in variances.items():
            check_variance(name, own)
            f = Scaling.of(own).scale if self.scale else (own > 0).astype(float)
            if self.scale_views:
                f /= np.sqrt(np.sum(f**2 * own))
            factors[name] = f
        return factors

    def _given(self, posed: Posed, number: int, n_features: Any = None) -> dict[str, Any]:
        """Settings of one component that are given."""
        given, asked = {}, self.n_features if n_features is None else n_features
        if asked != SEARCHED:
            counts = value_by_view("n_features", asked, posed.factors)
            given["n_features"] = {n: of_component(own, n, number) for n, own in counts.items()}
        return given if self.tau == SEARCHED else {**given, "tau": self.tau}

    def _limits(self, posed: Posed, setting: Mapping[str, Any]) -> Limits:
        """Constraints of all blocks for one component."""
        limited = [name for name in posed.sizes if name != self.response]
        taus = value_by_view("tau", setting["tau"], limited)
        shares = value_by_view("l1", self.l1, posed.factors)
        positive = value_by_view("positive", self.positive, posed.factors)
        limits = []
        for name, size in posed.sizes.items():
            tau, count = float(taus.get(name, 1.0)), setting["n_features"].get(name)
            share, radius, most = shares.get(name), None, min(count or size, size)
            if share is not None and (radius := _radius(share, size, name, tau, count)):
                most = min(size, max(1, round(radius**2)))
            is_positive = bool(positive.get(name, self.positive is True))
            if is_positive and tau != 1:
                raise ValueError(
                    f"positive needs tau=1, got tau={tau:g} of view {name!r}: with less, the "
                    "best weights without signs are another problem."
                )
            limits.append(Limit(name, size, most, tau, radius, self.shrink, is_positive))
        return tuple(limits)

    def _shrinkages(self, posed: Posed) -> dict[str, float]:
        """τ of each block by Schäfer and Strimmer."""
        rows, base = posed.rows, posed.ascent.covariances.base
        if self.missing != "error" or self.confounds is not None or not rows.views.is_paired:
            raise ValueError(
                'tau="auto" looks at the rows of objects that are seen in all views, without '
                "confounds or missing cells: put compose.Deconfound before it in a pipeline, drop "
                "or fill rows with holes, or give numbers."
            )
        found = {}
        for name in base.sizes:
            views = rows.views if name == SUPERBLOCK else rows.views.select((name,))
            known = posed.about.means, posed.variances, base.squared_correlations(name)
            found[name] = correlation_shrinkage(views, rows.sample_weight, *known)
        return found

    # ---- what is asked of the rows ---------------------------------------------------------------

    def _accepted(self, views: Views, reset: bool) -> Views:
        names = views.without(self.confounds).names
        if self.deflation == "pmd" and (self.superblock or len(names) > 2):
            raise ValueError(
                'deflation="pmd" takes 2 views and no superblock, got '
                f'{"superblock=True" if self.superblock else list(names)}. Use "scores" or '
                '"weights".'
            )
        if SUPERBLOCK in views.names and self.superblock:
            raise ValueError(f"superblock=True takes the name {SUPERBLOCK!r}: rename that view.")
        return super()._accepted(views, reset)

    def _exponents_of(self, views: Views) -> Exponents:
        is_plain = self.missing == "error" and self.confounds is None
        if not (is_plain and (self.scale or self.scale_views)):
            return {}
        return exponents_of(views, views.names if self.scale else ())

    def _depends_on_units(self, name: str) -> bool:
        return not self.scale

    def _bytes_of_matrices(self, views: Views) -> float:
        return 24.0 * sum(views.widths.values()) ** 2  # scatter, covariance, and that in units


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
    n_features: Counts = parameter(None, at_least(1), list, tuple, Mapping, None)
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
    if not (value is None or isinstance(value, int | np.integer)):
        values = tuple(value)
        if number >= len(values):
            raise ValueError(
                f"n_features of view {view!r} has {len(values)} numbers, one for each component, "
                f"and component {number + 1} none."
            )
        value = values[number]
    if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
        raise ValueError(
            f"n_features of view {view!r} must be whole numbers from 1 up, got {value!r}."
        )
    return None if value is None else int(value)
