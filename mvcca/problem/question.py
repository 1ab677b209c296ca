r"""Questions between views, solved from the covariance of all views: which items answer a query?

If views are jointly Gaussian, the rows x_Q of some views and x_t of another show the same object as
likely as the density ratio p(x_t | x_Q) / p(x_t) says. `JointGaussian` solves CCA of the views Q,
side by side, against t; a `Ratio` is what ranks then, and a `RatioSum` is one ratio, or the sum of
several whose queries are independent given x_t. Nothing here chooses between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import linalg

from mvcca.problem._estimate import counted, rows_in
from mvcca.problem._problem import Problem
from mvcca.problem.directions import canonical_directions
from mvcca.problem.expected import (
    LARGEST_CORRELATION,
    Expected,
    Spectrum,
    expected_moments,
)
from mvcca.problem.maps import Maps
from mvcca.problem.ridge import ridge_in
from mvcca.problem.whitener import Whitener, rounding_of
from mvcca.statistics import Moments, column_slices
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views

_Q, _T = "query", "target"  # names of the two sides
_LEAST_SHARE = 1e-8  # of the largest correlation, up to which one is rounding
LIKELIHOOD, PROFILE = "likelihood", "profile-likelihood"


@dataclass(frozen=True, eq=False)
class Ratio:
    """Density ratio of two sides of canonical variates a = x_Q A and b = x_t B.

    Attributes
    ----------
    query : dict of str to ndarray, shape (r_q, k)
        A, by view of the query.
    target : ndarray, shape (r_t, k)
        B, of the target views side by side.
    products, squares : ndarray, shape (k,)
        w and v of Σ w a b - ½ Σ v (a² + b²): ρ / (1 - ρ²) and ρ² / (1 - ρ²).
    constant : float
        -½ Σ log(1 - ρ²).
    """

    query: dict[str, np.ndarray]
    target: np.ndarray
    products: np.ndarray
    squares: np.ndarray
    constant: float = 0.0

    @classmethod
    def of(
        cls,
        query: Mapping[str, np.ndarray],
        target: np.ndarray,
        rho: np.ndarray,
        deviations: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> Self:
        """The ratio for correlations ρ; of variates in units of their deviations, if given."""
        rho = np.clip(rho, 0, LARGEST_CORRELATION)
        if deviations is not None:
            units = [np.divide(1, own, out=np.zeros_like(own), where=own > 0) for own in deviations]
            query, target = {n: A * units[0] for n, A in query.items()}, target * units[1]
        known = 1 - rho**2
        constant = -np.log(known).sum() / 2
        return cls(dict(query), target, rho / known, rho**2 / known, float(constant))

    def leading(self, k: int | None) -> Ratio:
        """The ratio of the first k components; of all if that is None."""
        if k is None or k >= len(self.squares):
            return self
        squares = self.squares[:k]
        return Ratio(
            {name: A[:, :k] for name, A in self.query.items()},
            self.target[:, :k],
            self.products[:k],
            squares,
            float(np.log1p(squares).sum() / 2),
        )

    def variates(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """A of query rows, by view, (n_rows, k)."""
        return np.sum([rows[name] @ A for name, A in self.query.items()], axis=0)

    def lengths(self, variates: np.ndarray) -> np.ndarray:
        """Σ v a², (n_rows,)."""
        return np.asarray(variates**2 @ self.squares)


@dataclass(frozen=True, eq=False)
class RatioSum:
    """How the items of a target are ranked for the rows of query views.

    The likelihood is the sum of the ratios; the profile likelihood, which knows no scale of a row,
    the sum of Σ w a b / √(Σ v a² Σ v b²).

    Attributes
    ----------
    ratios : tuple of Ratio
        One, or one per view of the query.
    ranking : str
        "likelihood", or else a profile likelihood or cosine; with "+csls" at the end if hubs are
        corrected for.
    """

    ratios: tuple[Ratio, ...]
    ranking: str

    @property
    def is_profile(self) -> bool:
        """Whether rows are compared whatever their scales."""
        return not self.ranking.startswith(LIKELIHOOD)

    def query_vectors(self, rows: Mapping[str, np.ndarray]) -> np.ndarray:
        """Vectors of query rows; their products with `item_vectors` are the scores."""
        parts: list[np.ndarray] = []
        total: Any = 0.0
        for ratio in self.ratios:
            a = ratio.variates(rows)
            lengths = ratio.lengths(a)
            if self.is_profile:
                a = a * _inverse_roots(lengths)[:, None]
            else:
                total = total + ratio.constant - lengths / 2
            parts.append((a * ratio.products) @ ratio.target.T)
        of_rows = parts if self.is_profile else [np.sum(parts, axis=0)]
        ones = np.ones((len(parts[0]), 1))
        return np.hstack([*of_rows, ones, ones * np.reshape(total, (-1, 1))])

    def item_terms(self, items: np.ndarray) -> np.ndarray:
        """Numbers of items: what multiplies them, one per part, and what is added."""
        lengths = [ratio.lengths(items @ ratio.target) for ratio in self.ratios]
        if self.is_profile:
            return np.column_stack([*map(_inverse_roots, lengths), np.zeros(len(items))])
        return np.column_stack([np.ones(len(items)), -np.sum(lengths, axis=0) / 2])

    def item_vectors(self, items: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """Vectors of items with these `item_terms`."""
        *factors, added = terms.T
        scaled = [items * factor[:, None] for factor in factors]
        return np.hstack([*scaled, added[:, None], np.ones_like(added)[:, None]])

    def width(self, n_coordinates: int) -> int:
        """Number of components of the vectors."""
        return n_coordinates * (len(self.ratios) if self.is_profile else 1) + 2


def _inverse_roots(squares: np.ndarray) -> np.ndarray:
    """1 / √x, and 0 for 0."""
    return np.divide(1, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)


@dataclass(frozen=True, eq=False)
class JointGaussian:
    """Covariance of all views, in coordinates in which a ridge on their features is known.

    Attributes
    ----------
    widths : dict of str to int
        Number of coordinates of each view.
    covariance : ndarray, shape (r, r)
        Σ, over all views.
    units : dict of str to float
        Mean variance of the features of each view, of which a ridge is a multiple.
    ridges : dict of str to ndarray, shape (r_v, r_v)
        What a ridge of 1 adds to the covariance of each view.
    counts : dict of (str, str) to float
        Number of objects of each pair of views that shares some.
    pairs : dict of (str, str) to ndarray, shape (r_p + r_q, r_p + r_q)
        Covariance of each pair over the objects that it shares; none if all views share theirs.
    by_labels : ndarray, shape (r, r), or None
        Label-weighted covariance between different views, in which methods that learn from labels
        find their maps; None for CCA, whose maps are those of the covariance.
    most : int or None
        The largest rank that label-weighted covariances can have, if that is known.
    """

    widths: dict[str, int]
    covariance: np.ndarray
    units: dict[str, float]
    ridges: dict[str, np.ndarray]
    counts: dict[tuple[str, str], float]
    pairs: dict[tuple[str, str], np.ndarray]
    by_labels: np.ndarray | None = None
    most: int | None = None

    @classmethod
    def of(
        cls, problem: Problem, maps: Mapping[str, np.ndarray], ridges: dict[str, np.ndarray]
    ) -> Self:
        """The covariances of a problem in the coordinates of these maps.

        Of a problem of CCA or, if every object is seen in all views, one whose constraints are
        covariances and whose matrices between views come from labels.
        """
        between, within = problem.blocks()
        about, rows = problem.about, problem.rows
        widths = {name: W.shape[1] for name, W in maps.items()}
        of_rows = isinstance(about.pairs, Moments) and about.regression is None
        of_labels = problem.between is not None
        turned_between = {(p, q): _turned(A, maps[p], maps[q]) for (p, q), A in between.items()}
        blocks = {(n, n): _turned(within[n], W, W) for n, W in maps.items()}
        blocks |= {} if of_labels else turned_between
        rank = 0 if about.regression is None else about.regression.rank
        counts, pairs = {}, {}
        for (p, q), C, (B_p, B_q), count in counted(about.by_pair(), rows.views, rank):
            counts[p, q] = count
            if of_labels:
                blocks[p, q] = _turned(C, maps[p], maps[q])
            elif not isinstance(about.pairs, Moments):
                own = {(p, p): B_p, (p, q): C, (q, q): B_q}
                turned = {(a, b): _turned(M, maps[a], maps[b]) for (a, b), M in own.items()}
                pairs[p, q] = _assembled(turned, {p: widths[p], q: widths[q]})
        units = {n: float(rows.variances(n, B, of_rows).mean()) for n, B in within.items()}
        for name, standardized in problem.units.items():
            f = standardized.factors
            units[name] = float((np.diag(within[name]) * f**2)[f > 0].mean())
        found = cls(widths, _assembled(blocks, widths), units, ridges, counts, pairs)
        if not of_labels:
            return found
        ranks = [own.between for own in problem.ranks.values() if own.between is not None]
        by_labels = _assembled(turned_between, widths)
        return replace(found, by_labels=by_labels, most=min(ranks, default=None))

    def in_float32(self) -> Self:
        """The same in half of the memory, which suffices to choose by."""
        return replace(
            self,
            covariance=self.covariance.astype(np.float32),
            by_labels=None if self.by_labels is None else self.by_labels.astype(np.float32),
            pairs={pair: own.astype(np.float32) for pair, own in self.pairs.items()},
        )

    def solve(
        self, query: Sequence[str], target: Sequence[str], reg: Mapping[str, float]
    ) -> tuple[Ratio, Ratio]:
        """CCA, or what labels make of it, of the query views side by side against the target.

        Parameters
        ----------
        query, target : sequence of str
            Different views.
        reg : mapping of str to float
            Ridge of each view.

        Returns
        -------
        (Ratio, Ratio)
            For the likelihood, and for the profile likelihood.

        Raises
        ------
        ValueError
            If no object is seen in views of both.
        """
        between, within = self._blocks(query, target)
        directed = between
        if self.by_labels is not None:
            directed = self._blocks(query, target, self.by_labels)[0]
        sides = {_Q: query, _T: target}
        ridged, whiteners, freedom = {}, {}, {}
        for side, names in sides.items():
            added = [ridge_in(reg[n], self.units[n]) * self.ridges[n] for n in names]
            ridged[side] = within[side] + linalg.block_diag(*added)
            white = whiteners[side] = Whitener.of(ridged[side])
            freedom[side] = max(white.rank - _share_of(added, white), 0.0)
        n_all = min(ridged[_Q].shape[0], ridged[_T].shape[0])
        n_all = n_all if self.most is None else min(n_all, self.most)
        # Of pairwise covariances a correlation may exceed 1; what to expect of it is clipped.
        found = canonical_directions({(_Q, _T): directed}, whiteners, n_all, is_joint=False)
        count = self._count(query, target)
        pair = PairCovariance((_Q, _T), between, (within[_Q], within[_T]), count)
        spectrum = None
        if self.by_labels is None:
            spectrum = Spectrum(found.values, (1.0, 1.0), list(found.ranks.values()))
        expected = expected_moments(found.weights, [pair], freedom, spectrum)
        assert expected is not None
        real = int(np.sum(found.values > _LEAST_SHARE * found.values[:1].max(initial=0)))
        k = int(min(real, max(count - 2, 1), *found.ranks.values()))
        A, B = (found.weights[side][:, :k] for side in (_Q, _T))
        maps = {n: A[own] for n, own in column_slices({n: self.widths[n] for n in query}).items()}
        rho, deviations = expected.correlations[0, 1, :k], expected.deviations
        in_units = deviations[_Q][:k], deviations[_T][:k]
        return Ratio.of(maps, B, rho, in_units), Ratio.of(maps, B, expected.mean[:k])

    def _count(self, query: Sequence[str], target: Sequence[str]) -> float:
        """The fewest objects that a view of the query and one of the target share."""
        counts = [self.counts.get((p, q), self.counts.get((q, p))) for p in query for q in target]
        known = [own for own in counts if own is not None]
        if len(known) < len(counts):
            raise ValueError(
                f"No two objects are seen both in a view of {list(query)} and in one of "
                f"{list(target)}, so that nothing tells how these vary together."
            )
        return min(known)

    def _blocks(
        self, query: Sequence[str], target: Sequence[str], matrix: np.ndarray | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Covariances between the query and the target, and within each, in float64.

        Blocks of another matrix, if one is given.
        """
        names = [*query, *target]
        found = self.covariance if matrix is None else matrix
        columns = column_slices(self.widths)
        if len(names) == 2 and self.pairs:
            pair = (names[0], names[1]) if tuple(names) in self.pairs else (names[1], names[0])
            self._count(query, target)  # is there such a pair?
            found, columns = self.pairs[pair], column_slices({n: self.widths[n] for n in pair})
        q, t = (
            np.concatenate([np.arange(columns[n].start, columns[n].stop) for n in side])
            for side in (query, target)
        )
        found = found.astype(np.float64, copy=False)
        return found[np.ix_(q, t)], {_Q: found[np.ix_(q, q)], _T: found[np.ix_(t, t)]}


@dataclass(frozen=True, eq=False)
class SharedSpace:
    """Maps of all views into one space, as they rank in the coordinates of a `JointGaussian`.

    Attributes
    ----------
    weights : dict of str to ndarray, shape (r_v, k)
        Maps from the coordinates of each view.
    correlations : ndarray, shape (n_views, n_views, k)
        What to expect of the scores, by pair of views.
    mean : ndarray, shape (k,)
        The same, averaged over pairs.
    deviations : dict of str to ndarray, shape (k,)
        Of the scores.
    factors : ndarray, shape (k,), or None
        λ^power, by which `transform` multiplies scores.
    """

    weights: dict[str, np.ndarray]
    correlations: np.ndarray
    mean: np.ndarray
    deviations: dict[str, np.ndarray]
    factors: np.ndarray | None = None

    @classmethod
    def of(cls, maps: Maps, back: Mapping[str, np.ndarray], power: float) -> Self:
        """Maps whose weights apply to rows with these maps `back` from the coordinates."""
        assert maps.expected is not None
        weights = {name: back[name] @ W for name, W in maps.weights.items()}
        own: Expected = maps.expected
        factors = replace(maps, power=power).factors(np.dtype(float)) if power else None
        return cls(weights, own.correlations, own.mean, dict(own.deviations), factors)

    def ratios(
        self, query: Sequence[str], target: Sequence[str], ranking: str
    ) -> tuple[Ratio, ...]:
        """What the ranking of this name compares: one ratio per pair, or one of summed scores."""
        if ranking.startswith(LIKELIHOOD):
            return tuple(self._of_pair(p, q, target) for p in query for q in target)
        A = {name: self.weights[name] for name in query}
        B = np.vstack([self.weights[name] for name in target])
        if ranking.startswith(PROFILE):
            return (Ratio.of(A, B, self.mean),)
        squares = np.ones(B.shape[1]) if self.factors is None else self.factors**2
        return (Ratio(A, B, squares, squares),)

    def _of_pair(self, p: str, q: str, target: Sequence[str]) -> Ratio:
        """The ratio of two views, as one of all target views."""
        views = list(self.weights)
        rho = self.correlations[views.index(p), views.index(q)]
        B = [self.weights[name] * (name == q) for name in target]
        in_units = self.deviations[p], self.deviations[q]
        return Ratio.of({p: self.weights[p]}, np.vstack(B), rho, in_units)


def coordinates_of(
    problem: Problem,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Maps that whiten each view, maps back, and what a ridge of 1 adds in their coordinates.

    Whitened views have no units, so that covariances keep their digits in float32.
    """
    _, within = problem.blocks()
    about, bases = problem.about, problem.rows.reading.bases
    maps, back, ridges = {}, {}, {}
    for name, B in within.items():
        rounding = about.exactness.rounding.get(name, rounding_of(about.means[name]))
        whitener = Whitener.of(B, rounding)
        W = whitener.lift(np.eye(whitener.rank))
        back[name] = (B @ W).T
        if whitener.rank < len(whitener.columns):
            # Of collinear columns, a ridge is least with the smallest weights of the same scores.
            Q, R = linalg.qr(back[name].T, mode="economic")
            W = linalg.solve_triangular(R, Q.T).T
        maps[name] = W
        own = bases[name].ridged(np.zeros_like(B), 1.0, 0.0) @ W if name in bases else W
        if name in problem.units:  # a ridge on standardized columns
            own = problem.units[name].divisors[:, None] ** 2 * W
        ridges[name] = W.T @ own
    return maps, back, ridges


def rows_in_coordinates(
    problem: Problem, views: Views, maps: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Rows of each view in these coordinates, less the means and what confounds explain."""
    about = problem.about
    return rows_in(views, maps, about.means, about.recovered, about.regression)


def _share_of(ridges: Sequence[np.ndarray], white: Whitener) -> float:
    """tr(WᵀRW): how many degrees of freedom a ridge takes, with R of these diagonal blocks."""
    if not any(own.any() for own in ridges):
        return 0.0
    W, start, share = white.weights(), 0, 0.0
    for own in ridges:
        part = W[start : start + len(own)]
        share += float(np.vdot(part, own @ part))
        start += len(own)
    return share


def _turned(C: np.ndarray, V: np.ndarray, W: np.ndarray) -> np.ndarray:
    return np.asarray(V.T @ C @ W)


def _assembled(blocks: Mapping[tuple[str, str], Any], widths: dict[str, int]) -> np.ndarray:
    """The symmetric matrix of blocks p, q, p not after q; others are 0."""
    columns = column_slices(widths)
    whole = np.zeros((sum(widths.values()),) * 2)
    for (p, q), own in blocks.items():
        whole[columns[q], columns[p]] = own.T
        whole[columns[p], columns[q]] = own
    return whole
