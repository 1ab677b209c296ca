"""The base of methods that find components by block ascent on covariances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from numbers import Integral
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from mvcca.base import Requirements
from mvcca.base.parameters import parameter, with_constructor
from mvcca.base.statistic_estimator import check_memory
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.machine.memory import WIDE
from mvcca.machine.warnings import warn
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Maps, Rows, climb
from mvcca.problem.ascent import BlockMethod, Limit, Links, Solution
from mvcca.problem.block_covariances import (
    BlockCovariances,
    CovarianceMatrix,
    CovarianceProducts,
    Vectors,
)
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.rows import check_variance
from mvcca.problem.shrinkage import correlation_shrinkage
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.views import Views
from mvcca.views.by_view import value_by_view
from mvcca.views.powers_of_two import Exponents, exponents_of

SUPERBLOCK = "superblock"
_CHANCE = 0.95  # correlation of features that share nothing, above which a selection says little


def centred_rows(rows: Rows) -> dict[str, CentredRows]:
    """Rows of every view to multiply by."""
    return {name: CentredRows.of(X, rows.sample_weight) for name, X in rows.views.blocks.items()}


@dataclass(frozen=True, eq=False)
class Posed:
    """Covariances of views in the units in which weights are limited.

    Attributes
    ----------
    about : Estimate
        What is known of the rows.
    covariances : BlockCovariances
        Of the views, and of the superblock or the classes if there are any.
    variances : dict of str to ndarray, shape (n_features,)
        Of the columns of each view.
    factors : dict of str to ndarray, shape (n_features,)
        What the columns of each view are multiplied by.
    n_objects : float
        Number of objects, of two views that share the fewest.
    """

    about: Estimate
    covariances: BlockCovariances
    variances: dict[str, np.ndarray]
    factors: dict[str, np.ndarray]
    n_objects: float

    @classmethod
    def of(cls, rows: Rows, statistic: Any, model: BlockEstimator) -> Posed:
        """Scale columns to unit variance, views to a total variance of 1, or both.

        Without a statistic, covariances are products of the rows, which are complete.
        """
        base: CovarianceMatrix | CovarianceProducts
        superblock = SUPERBLOCK if model.superblock else None
        if statistic is None:
            own = centred_rows(rows)
            about = Estimate({name: X.mean for name, X in own.items()})
            variances = {name: X.variances for name, X in own.items()}
            factors = model._factors(variances)
            base = CovarianceProducts.of(own, factors, superblock)
            n_objects = min(X.count for X in own.values())
        else:
            columns = model._column_names
            about = Estimate.of(statistic, rows, confounds=model.confounds, columns=columns)
            assert about.covariance is not None
            assert isinstance(about.pairs, Moments | PairMoments)
            S = np.asarray(about.covariance[0])
            places = column_slices({name: len(mean) for name, mean in about.means.items()})
            variances = {name: np.diag(S)[place] for name, place in places.items()}
            factors = model._factors(variances)
            base = CovarianceMatrix.of(S, factors, superblock)
            n_objects = min(about.pairs.objects_by_view().values())
        factors = {name: f for name, f in factors.items() if name != model.response}
        return cls(about, BlockCovariances(base), variances, factors, n_objects)

    def chance(self, method: BlockMethod) -> float:
        """About the largest correlation of two features, of linked blocks, that share nothing.

        Of N pairs, one has r² above 1 - N^(-2 / (n - 2)), since P(r² > x) is about
        (1 - x)^((n - 2) / 2) for n objects. If there is a response, features are chosen by their
        pairs with it.
        """
        sizes = {**self.covariances.base.sizes}
        sizes |= {name: int(np.count_nonzero(f)) for name, f in self.factors.items()}
        pairs = [own for own in method.links if method.response in (None, *own)]
        n, most = max(self.n_objects, 2 + 1e-9), max(sizes[j] * sizes[k] for j, k in pairs)
        return float(np.sqrt(1 - float(most) ** (-2 / (n - 2))))

    def maps(self, components: Sequence[Solution]) -> Maps:
        """Maps of rows to scores."""
        weights = {
            name: f[:, None] * np.column_stack([own.rotated[name] for own in components])
            for name, f in self.factors.items()
        }
        recovered = self.about.recovered
        return Maps(
            weights,
            {name: self.about.means[name] for name in weights},
            ranks={name: int(np.count_nonzero(f)) for name, f in self.factors.items()},
            bound=len(components),
            regression=self.about.regression,
            precisions={name: recovered.precisions[name] for name in weights}
            if recovered
            else None,
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
        self._learn_posed(rows, self.posed_of(rows, statistic))

    def _learn_posed(self, rows: Rows, posed: Posed) -> list[Solution]:
        settings = [self._given(posed, number) for number in range(self.n_components)]
        if self.tau == "auto":
            settings = [{**own, "tau": self._shrinkages(rows, posed)} for own in settings]
        return self._learn_settings(posed, settings)

    def posed_of(self, rows: Rows, statistic: Any) -> Posed:
        """Covariances that a statistic of rows tells, in the units of the weights.

        Without a statistic, they are products of the rows: for views that are too wide.
        """
        return Posed.of(rows, statistic, self)

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

    def _learn_settings(
        self, posed: Posed, settings: Sequence[Mapping[str, Any]]
    ) -> list[Solution]:
        """Find components under settings of each, and set the fitted attributes."""
        sizes, limits = posed.covariances.base.sizes, self._limits(posed, settings[0])
        selects = any(not own.dense(sizes[name]) for name, own in limits.items())
        chance = posed.chance(self._method(posed))
        if selects and chance > _CHANCE and SEARCHED not in (self.n_features, self.tau):
            warn(
                f"Few rows to select features from: {posed.n_objects:g}, in which two columns "
                f"that share nothing correlate by {chance:.2f}. What is selected may have nothing "
                "in common in new rows."
            )
        found, recovered = self._components(posed, settings), posed.about.recovered
        for note in recovered.notes if recovered else ():
            warn(note)
        self._keep(posed.maps(found).checked(len(settings), signs=False))
        self.sparse_weights_ = {
            name: np.column_stack([own.weights[name] for own in found]) for name in posed.factors
        }
        self.objective_ = np.array([own.value for own in found])
        self.n_iter_ = np.array([len(own.values) for own in found])
        self.selected_ = {
            name: [self._names_of(name, np.flatnonzero(w)) for w in W.T]
            for name, W in self.sparse_weights_.items()
        }
        self.tau_ = value_by_view("tau", settings[0]["tau"], self._blocks(posed))
        return found

    def _names_of(self, name: str, chosen: np.ndarray) -> np.ndarray:
        columns = self._column_names[name]
        return chosen if columns is None else np.asarray(columns, dtype=object)[chosen]

    def _components(self, posed: Posed, settings: Sequence[Mapping[str, Any]]) -> list[Solution]:
        limits = [self._limits(posed, own) for own in settings]
        method = self._method(posed)
        return list(method.components(posed.covariances, limits, self._starts(posed)))

    # ---- the problem -----------------------------------------------------------------------------

    def _method(self, posed: Posed) -> BlockMethod:
        return BlockMethod(
            links_of(self.design, list(posed.factors), self.superblock),
            self.scheme,
            self.deflation,
            self.start,
            self.n_starts,
            superblock=SUPERBLOCK if self.superblock else None,
        )

    def _starts(self, posed: Posed) -> list[Vectors]:
        """Weights to start from, in place of those of the method."""
        return []

    def _blocks(self, posed: Posed) -> list[str]:
        """Names of the blocks whose weights are limited."""
        return [name for name in posed.covariances.base.sizes if name != self.response]

    def _factors(self, variances: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        factors = {}
        for name, own in variances.items():
            check_variance(name, own)
            varies = own > 0
            f = varies.astype(float)
            if self.scale:
                f[varies] = 1 / np.sqrt(own[varies])
            if self.scale_views:
                f /= np.sqrt(np.sum(f**2 * own))
            factors[name] = f
        return factors

    def _given(self, posed: Posed, number: int) -> dict[str, Any]:
        """Settings of one component that are given."""
        given: dict[str, Any] = {}
        if self.n_features != SEARCHED:
            counts = value_by_view("n_features", self.n_features, posed.factors)
            given["n_features"] = {n: of_component(own, n, number) for n, own in counts.items()}
        if self.tau != SEARCHED:
            given["tau"] = self.tau
        return given

    def _limits(self, posed: Posed, setting: Mapping[str, Any]) -> dict[str, Limit]:
        """Constraints of all blocks for one component."""
        taus = value_by_view("tau", setting["tau"], self._blocks(posed))
        shares = value_by_view("l1", self.l1, posed.factors)
        positive = value_by_view("positive", self.positive, posed.factors)
        limits = {}
        for name, size in posed.covariances.base.sizes.items():
            tau, count = float(taus.get(name, 1.0)), setting["n_features"].get(name)
            share, radius = shares.get(name), None
            if share is not None:
                radius = _radius(share, size, name, tau, count)
            is_positive = bool(positive.get(name, self.positive is True))
            if is_positive and tau != 1:
                raise ValueError(
                    f"positive needs tau=1, got tau={tau:g} of view {name!r}: with less, the "
                    "best weights without signs are another problem."
                )
            limits[name] = Limit(tau, count, radius, self.shrink, is_positive)
        return limits

    def _shrinkages(self, rows: Rows, posed: Posed) -> dict[str, float]:
        """τ of each block by Schäfer and Strimmer."""
        if self.missing != "error" or self.confounds is not None or not rows.views.is_paired:
            raise ValueError(
                'tau="auto" looks at the rows of objects that are seen in all views, without '
                "confounds or missing cells: put compose.Deconfound before it in a pipeline, drop "
                "or fill rows with holes, or give numbers."
            )
        found, base = {}, posed.covariances.base
        for name in base.sizes:
            views = rows.views if name == SUPERBLOCK else rows.views.select((name,))
            known = posed.about.means, posed.variances, base.squared_correlations(name)
            found[name] = correlation_shrinkage(views, rows.sample_weight, *known)
        return found

    # ---- what is asked of the rows ---------------------------------------------------------------

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights."""
        for name in ("tau", "n_features", "n_components") if batch else ():
            if isinstance(value := getattr(self, name), str):
                raise ValueError(
                    f'{name}="{value}" looks at all rows at once: use fit, or give partial_fit '
                    "values."
                )
        return super()._open_rows(X, y, sample_weight, batch=batch)

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

    def _bytes_of_matrices(self, views: Views) -> float:
        return 24.0 * sum(views.widths.values()) ** 2  # scatter, covariance, and that in units


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
