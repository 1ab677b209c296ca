"""The problem that every linear method poses: between-view matrices under within-view constraints.

Methods differ in what they add up of the rows and in the two matrices that they make of it. The
ridge, constant and collinear columns, bases, precision and scale are handled here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np

from mvcca.blocks import to_host
from mvcca.machine import lapack
from mvcca.machine.config import is_plain
from mvcca.machine.threads import threads_to_factorise
from mvcca.machine.warnings import warn
from mvcca.problem._bases import Standardized, within_units
from mvcca.problem._centring import reciprocal
from mvcca.problem._estimate import Blocks, Estimate, counted, n_lost
from mvcca.problem._on_device import DeviceWhitener, device_of
from mvcca.problem._reduced import Reduced
from mvcca.problem.directions import Directions, canonical_directions
from mvcca.problem.expected import Spectrum, expected_moments
from mvcca.problem.maps import Maps
from mvcca.problem.precision import KnownRank, check_precision
from mvcca.problem.ridge import Shrinkage, ridge_in
from mvcca.problem.rows import Rows, check_variance
from mvcca.problem.shared_rows import SharedRows
from mvcca.problem.units import units_told
from mvcca.problem.whitener import (
    AnyWhitener,
    Bidiagonal,
    Scaling,
    Tridiagonal,
    Whitener,
    rounding_of,
)
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.statistics.pair_covariance import PairCovariance, scaled_block

_ROWS_PER_RANK = 5  # below, a ridge chosen by folds retrieves much better; above, hardly
_LEAST_SHARE = 1e-8  # of the largest correlation, up to which one is rounding
_RELATED = 3.0  # standard deviations above the mean of independent views


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the maps for which views agree most, each view under a constraint.

        max Σ_{p≠q} w_pᵀ A_pq w_q   subject to   Σ_p w_pᵀ (B_p + r_p I) w_p = n_views,

    with the ridge r_p = reg_p · (mean diagonal of B_p), or r_p = reg_p if it is `Absolute`, or B_p
    shrunk, as ``rows.reg`` specifies.

    Parameters
    ----------
    rows : Rows
        What the matrices were computed from.
    about : Estimate
        What is known of these rows.
    between : ndarray, shape (D, D), or mapping of (str, str) to ndarray or LinearOperator, optional
        A: a matrix over the features of all views, or its blocks A_pq for p before q. Blocks may
        be operators, of which only products are taken. By default the covariance in `about`, as in
        CCA.
    within : ndarray, shape (D, D), or mapping of str to ndarray or Tridiagonal, optional
        B: a matrix whose diagonal blocks are used, or these blocks; a vector is a diagonal block.
        By default the covariance in `about`.
    is_joint : bool, default=False
        Whether Σ_{p≠q} w_pᵀ A_pq w_q ≤ (n_views - 1) Σ_p w_pᵀ B_p w_p for all maps, so that no
        correlation is above 1. It holds for covariances.
    with_diagonal : bool, default=False
        Whether the blocks A_pp take part too; eigenvalues are then those of A itself.
    ranks : mapping of str to KnownRank
        Views whose matrices lack rank by construction.
    """

    rows: Rows
    about: Estimate
    between: np.ndarray | Blocks | None = None
    within: np.ndarray | Mapping[str, Any] | None = None
    is_joint: bool = False
    with_diagonal: bool = False
    ranks: Mapping[str, KnownRank] = field(default_factory=dict)

    def solve(
        self,
        n_components: int | None = None,
        *,
        expected: bool = True,
        patterns: bool = False,
        lift: bool = True,
    ) -> Maps:
        """Find the leading maps, as weights of the original features.

        Parameters
        ----------
        n_components : int, optional
            Maps to find per view; there may be fewer. None finds all that the data support: those
            with a value above 1e-8 of the largest, and at most two fewer than there are objects.
        expected : bool, default=True
            Whether to derive from the moments, if there are any, what to expect of new rows.
        patterns : bool, default=False
            Whether to find those of two views, see `with_patterns`.
        lift : bool, default=True
            Whether maps are weights of the original features, or of rows in the bases of ``rows``.

        Raises
        ------
        DigitsLost
            If the precision of the rows does not suffice; see `climb`.
        ValueError
            If a view never varies, or overflows.
        """
        if self.units:
            return self.standardized().solve(
                n_components, expected=expected, patterns=patterns, lift=lift
            )
        between, within = self.blocks()
        rows, about, is_cca = self.rows, self.about, self.between is None
        with_diagonal = self.with_diagonal
        if with_diagonal and is_cca and not any(rows.reg[name] for name in within):
            # A_pp = B_p only adds 1 to the eigenvalues, and more is known of new rows without it.
            between = {pair: A for pair, A in between.items() if pair[0] != pair[1]}
            with_diagonal = False
        # Else B_p is an average over pairs of views, or of residuals.
        of_rows = isinstance(about.pairs, Moments) and about.regression is None
        variances = {n: rows.variances(n, B, of_rows) for n, B in within.items()}
        widths = [len(mean) for mean in about.means.values()]
        with threads_to_factorise(max(widths)):
            matrices = [*between.values(), *within.values()]
            is_dense = all(isinstance(M, np.ndarray) and M.ndim == 2 for M in matrices)
            like = None if is_plain(rows.views) or not is_dense else device_of(rows.views)
            whiteners, slopes = self._whiteners(within, variances, like)
            check_precision(rows, whiteners, about.exactness, self.ranks)
            others = None
            if expected and is_cca and len(whiteners) == 2 and not with_diagonal:
                # What to expect of one component depends on all, and without a ridge on their
                # values alone: scores of the rows have variances of 1.
                has_ridge = any(rows.reg[name] for name in whiteners)
                others = "weights" if has_ridge or not of_rows else "values"
            found = canonical_directions(
                between,
                whiteners,
                sum(widths) if n_components is None else n_components,
                rows.reading.products,
                {n: own.between for n, own in self.ranks.items() if own.between is not None},
                is_joint=self.is_joint or is_cca,
                others=others,
            )
            is_shared = isinstance(about.pairs, SharedRows)
            pairs: list[PairCovariance] = []
            if n_components is None or (expected and not is_shared):
                rank = 0 if about.regression is None else about.regression.rank
                pairs = counted(about.by_pair(), rows.views, rank)
            if n_components is None:
                n_components = _n_supported(found, pairs)
            maps = self._maps(found, variances, 0 if with_diagonal else 1)
            if expected and (is_shared or pairs):
                spectrum = None
                if found.others is not None:
                    rho = np.concatenate([found.values, found.others])
                    spectrum = Spectrum(rho, slopes, list(found.ranks.values()))
                maps = self._with_expectations(maps, whiteners, within, pairs, spectrum)
            if lift and about.recovered is not None:
                for note in about.recovered.notes:
                    warn(note)
            if expected:
                self._warn_of_few_rows(whiteners, pairs)
            if n_components < len(found.values):
                maps = maps.leading(n_components)
            if patterns:
                maps = self.with_patterns(maps)
        return maps.lifted(rows.reading.bases) if lift and rows.reading.bases else maps

    @cached_property
    def units(self) -> dict[str, Standardized]:
        """Units of the views that are posed in their features, and are to be standardized.

        Deviations are those that covariances of the rows tell, as of a part of all rows.
        """
        rows, about, known = self.rows, self.about, self.rows.reading.units
        if known is None or (known and about.covariance is not None):
            within = {name: B for name, B in self.blocks()[1].items() if name in about.means}
            if isinstance(about.pairs, Moments | PairMoments):
                counts = about.pairs.objects_by_view()
            else:
                counts = {name: float(rows.sample_weight_of(name).sum()) for name in within}
            known = units_told(rows, about.means, within, counts)
        bases = rows.reading.bases
        return {n: own for n, own in known.items() if n in about.means and n not in bases}

    @property
    def related(self) -> set[str]:
        """Views whose columns are correlated with those of another view beyond chance.

        If two views are independent, their correlations over n rows have a sum of squares ‖R_pq‖²
        with mean tr R_p tr R_q / n and variance 2 ‖R_p‖² ‖R_q‖² / n². Rows in a basis are not
        standardized.
        """
        bases, found = self.rows.reading.bases, set[str]()
        for pair in self.about.by_pair():
            if any(B.ndim == 1 for B in pair.within):  # only variances are known
                found.update(pair.names)
                continue
            variances = {n: np.diag(B) for n, B in zip(pair.names, pair.within, strict=True)}
            factors = {n: reciprocal(np.sqrt(v)) for n, v in variances.items() if n not in bases}
            _, R, (R_p, R_q), n_objects = pair.scaled(factors)
            by_chance = np.trace(R_p) * np.trace(R_q)
            deviation = np.sqrt(2 * np.sum(R_p**2) * np.sum(R_q**2))
            if n_objects * np.sum(R**2) > by_chance + _RELATED * deviation:
                found.update(pair.names)
        return found

    def standardized(self) -> Problem:
        """The same problem of the columns in their units, which become bases of the rows."""
        units, reading = self.units, self.rows.reading
        factors = {name: own.factors for name, own in units.items()}
        rows = self.rows.read(bases={**reading.bases, **units}, units={})
        problem = replace(self, rows=rows, about=self.about.scaled(factors))
        if self.between is None or self.within is None:
            return problem
        between, within = self.blocks()
        f = factors.get
        return replace(
            problem,
            between={(p, q): scaled_block(A, f(p), f(q)) for (p, q), A in between.items()},
            within={name: scaled_block(B, f(name), f(name)) for name, B in within.items()},
        )

    def _maps(
        self, found: Directions, variances: Mapping[str, np.ndarray], own_value: float
    ) -> Maps:
        """Maps of these directions; `own_value` is what the diagonal of A adds to eigenvalues."""
        about, bases = self.about, self.rows.reading.bases.items()
        inner = {name: within_units(own) for name, own in bases}
        ranks_of_rows = {n: own.rank for n, own in inner.items() if isinstance(own, Reduced)}
        known = None if about.recovered is None else about.recovered.precisions
        return Maps(
            weights=found.weights,
            means={name: about.means[name] for name in found.weights},
            eigenvalues=own_value + found.values,
            values=None if self.with_diagonal else found.values,
            ranks=found.ranks | ranks_of_rows,
            variances=dict(variances),
            bound=found.bound,
            regression=about.regression,
            precisions=known and {name: known[name] for name in found.weights},
        )

    def with_patterns(self, maps: Maps) -> Maps:
        """The same maps, not lifted, of two views with `Maps.patterns` and `Maps.own_patterns`.

        By these, one view is predicted from the other, and each from itself; of CCA only.
        """
        if self.between is not None or len(maps.weights) != 2 or not maps.bound:
            return maps
        between, within = self.blocks()
        W = maps.weights
        images = {name: within[name] @ own for name, own in W.items()}
        (p, q), Sigma_pq = next(iter(between.items()))
        return maps.with_patterns(images, {p: Sigma_pq @ W[q], q: Sigma_pq.T @ W[p]})

    def blocks(self) -> tuple[Blocks, Mapping[str, Any]]:
        """A_pq of every pair of views, p before q, or A_pp of a single view; and every B_p."""
        columns = column_slices({name: len(mean) for name, mean in self.about.means.items()})
        between, within = self.between, self.within
        if between is None or within is None:
            assert self.about.covariance is not None
            between, within = self.about.covariance
        if isinstance(between, np.ndarray):
            pairs = list(combinations(columns, 2))
            if self.with_diagonal or not pairs:
                pairs += [(name, name) for name in columns]
            between = {(p, q): between[columns[p], columns[q]] for p, q in pairs}
        if isinstance(within, np.ndarray):
            within = {name: within[own, own] for name, own in columns.items()}
        return between, within

    def _whiteners(
        self, within: Mapping[str, np.ndarray], variances: Mapping[str, np.ndarray], like: Any
    ) -> tuple[dict[str, AnyWhitener], list[float]]:
        """Factors of every constraint with its ridge, `beside` an array, and the share of B_p."""
        whiteners: dict[str, Any] = {}
        for name, B in within.items():
            if self.rows.reg[name]:
                B = self.rows.ridged(name, B, self.rows.unit(name, variances[name]))
            if isinstance(B, Tridiagonal):  # checked by its `MatrixPath`
                whiteners[name] = Bidiagonal.of(B, name)
                continue
            check_variance(name, B)
            if B.ndim == 1:
                whiteners[name] = Scaling.of(B)
            else:
                of_mean = rounding_of(self.about.means[name])
                of = Whitener.of if like is None else partial(DeviceWhitener.beside, like)
                whiteners[name] = of(B, self.about.exactness.rounding.get(name, of_mean))
        regs = [self.rows.reg[name] for name in whiteners]
        slopes = [1.0 - reg if isinstance(reg, Shrinkage) else 1.0 for reg in regs]
        if not any(isinstance(reg, Shrinkage) for reg in regs):
            return whiteners, slopes
        # Shrinking decides how views and directions compare. A common factor then keeps training
        # variances of scores, and so all correlations, at most 1.
        largest = max(_largest_variance(within[n], white) for n, white in whiteners.items())
        scaled = {
            n: replace(white, scale=white.scale / np.sqrt(largest))
            for n, white in whiteners.items()
        }
        return scaled, [slope * largest for slope in slopes]

    def _warn_of_few_rows(
        self, whiteners: Mapping[str, AnyWhitener], pairs: list[PairCovariance]
    ) -> None:
        """Warn if views without a ridge have so few rows that maps fit noise."""
        rows, about = self.rows, self.about
        ranks = {n: own.rank for n, own in whiteners.items() if not rows.reg[n]}
        n_independent = sum(ranks.values())
        least = (_ROWS_PER_RANK if rows.needs_many else 1) * n_independent
        heights = [X.shape[0] for X in rows.views.blocks.values()]
        if min(heights) > least and rows.sample_weight is None and about.recovered is None:
            return
        from sklearn.exceptions import DataDimensionalityWarning

        is_counted = isinstance(about.pairs, Moments | PairMoments)
        remedy = 'set reg="cv" to choose a ridge by folds, or ' if rows.needs_many else "set "
        for (p, q), _, _, count in pairs if is_counted else ():
            if {p, q} <= ranks.keys() and count <= (width := ranks[p] + ranks[q]):
                warn(
                    f"n <= p + q and reg=0: {count:g} objects against {width} independent "
                    f"features of views {p!r} (rank {ranks[p]}) and {q!r} (rank {ranks[q]}). "
                    "Correlations of 1 are there by construction and mean nothing; "
                    f"{remedy}reg > 0.",
                    DataDimensionalityWarning,
                )
                return
        n_rows = min((rows.sample_weight_of(name).sum() for name in ranks), default=np.inf)
        if about.recovered is not None:
            n_rows = min(n_rows, float(about.recovered.moments.counts.min()))
        n_rows -= n_lost(rows.views, ranks, n_rows)
        n_rows -= 0 if about.regression is None else about.regression.rank
        if rows.needs_many and n_rows < _ROWS_PER_RANK * n_independent:
            each = " and ".join(f"{name!r} (rank {rank})" for name, rank in ranks.items())
            warn(
                f"Few rows and reg=0: {n_rows:.4g} rows for {n_independent} independent features "
                f"of views {each}, fewer than {_ROWS_PER_RANK} per feature. Components may fit "
                f"noise; {remedy}reg > 0.",
                DataDimensionalityWarning,
            )

    def _with_expectations(
        self,
        maps: Maps,
        whiteners: Mapping[str, AnyWhitener],
        within: Mapping[str, np.ndarray],
        pairs: list[PairCovariance],
        spectrum: Spectrum | None,
    ) -> Maps:
        """The same maps with what moments of the rows tell of new rows."""
        assert maps.variances is not None
        reg, freedom = self.rows.reg, {}
        for name, whitener in whiteners.items():  # tr B (B + r I)⁻¹: the rank without a ridge
            basis = within_units(self.rows.reading.bases.get(name))
            if isinstance(basis, Reduced):
                freedom[name] = basis.freedom
            elif isinstance(reg[name], Shrinkage) and reg[name]:
                freedom[name] = float(np.trace(_whitened(within[name], whitener)))
            else:
                lost = 0.0
                if reg[name]:
                    ridge = ridge_in(reg[name], self.rows.unit(name, maps.variances[name]))
                    lost = ridge * whitener.squared_norm()
                freedom[name] = max(whitener.rank - lost, 0.0)
        if isinstance(shared := self.about.pairs, SharedRows):
            rotated = self.rows.reading.bases.items() - shared.rows.reading.bases.items()
            of_rows = maps.lifted(dict(rotated))
            found = shared.scores_by_pair(of_rows.weights, of_rows.means)
            of_scores = {name: np.eye(W.shape[1]) for name, W in maps.weights.items()}
            pairs = counted(found, self.rows.views)
            return replace(maps, expected=expected_moments(of_scores, pairs, freedom, spectrum))
        expected = expected_moments(maps.weights, pairs, freedom, spectrum)
        return replace(maps, expected=expected)


def _n_supported(found: Directions, pairs: list[PairCovariance]) -> int:
    """How many components the data support: others are there by the ridge or by rounding.

    Of three or more views, it is the number of directions that two of them can share.
    """
    values, ranks = found.values, sorted(found.ranks.values())
    n_objects = max((pair.n_objects for pair in pairs), default=np.inf)
    real = int(np.sum(values > _LEAST_SHARE * values[:1].max(initial=0)))
    return int(min(real, max(n_objects - 2, 1), *ranks[-2:]))


def _largest_variance(B: np.ndarray, whitener: AnyWhitener) -> float:
    """The largest wᵀBw over whitened directions w: above 1 where shrinking made B smaller."""
    white = _whitened(np.diag(B) if B.ndim == 1 else B, whitener)
    return float(lapack.top_eigenpairs(white, 1)[0][0])


def _whitened(B: np.ndarray, whitener: AnyWhitener) -> np.ndarray:
    """WᵀBW."""
    return to_host(whitener.project(whitener.project(B).T))
