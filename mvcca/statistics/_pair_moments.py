"""Moments of partly paired views: for each pair of views, of the objects seen in both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from mvcca.statistics.moments import Moments, column_slices
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class PairMoments:
    """Moments of every pair of views, each over the objects that are seen in both views.

    The covariance of a view over all its objects and its covariance with another view over the
    objects that both share are not blocks of one positive semi-definite matrix: whitening by the
    one turns the noise of the other into correlations above 1. Here the covariances within two
    views are of the same objects as the covariance between them. An object that is seen in one view
    only does not count.

    Attributes
    ----------
    pairs : dict of (str, str) to Moments
        Moments of two views, for each view with each of those after it.
    """

    pairs: dict[tuple[str, str], Moments]

    @classmethod
    def of(
        cls,
        views: Views,
        weights: np.ndarray | None = None,
        moments_of: Callable[[Views, np.ndarray | None], Moments] = Moments.of,
        widths: Mapping[str, int] | None = None,
    ) -> PairMoments:
        """Compute the moments of all pairs of views.

        Parameters
        ----------
        views, weights
            As in `Moments.of`.
        moments_of : callable, default=Moments.of
            Takes two paired views and the weights of their objects.
        widths : mapping of str to int, optional
            Number of features of each view in these moments; by default those of the views.
        """
        widths = views.widths if widths is None else widths
        pairs = {}
        for p, q in combinations(views.names, 2):
            two = views.select((p, q))
            both = two.seen.all(axis=1)
            if both.any():
                pairs[p, q] = moments_of(two[both], None if weights is None else weights[both])
            else:
                pairs[p, q] = Moments.of_nothing({p: widths[p], q: widths[q]})
        return cls(pairs)

    @classmethod
    def of_paired(cls, moments: Moments) -> PairMoments:
        """The moments of each pair of views that are all of the same objects."""
        return cls({pair: moments.select(pair) for pair in combinations(moments.widths, 2)})

    def __add__(self, other: PairMoments | Moments) -> PairMoments:
        if isinstance(other, Moments):
            other = PairMoments.of_paired(other)
        return PairMoments({pair: own + other.pairs[pair] for pair, own in self.pairs.items()})

    __radd__ = __add__

    def __sub__(self, other: PairMoments | Moments) -> PairMoments:
        if isinstance(other, Moments):
            other = PairMoments.of_paired(other)
        return PairMoments({pair: own - other.pairs[pair] for pair, own in self.pairs.items()})

    def about_zero(self) -> PairMoments:
        """The moments about zero; see `Moments.about_zero`."""
        return PairMoments({pair: own.about_zero() for pair, own in self.pairs.items()})

    def scaled(self, factors: Mapping[str, np.ndarray]) -> PairMoments:
        """The moments of features that are multiplied by `factors`; see `Moments.scaled`."""
        return PairMoments({pair: own.scaled(factors) for pair, own in self.pairs.items()})

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view."""
        widths: dict[str, int] = {}
        for moments in self.pairs.values():
            widths |= moments.widths
        return widths

    def objects_by_view(self) -> dict[str, float]:
        """The most objects (sum of weights) that each view shares with another."""
        found: dict[str, float] = {}
        for pair, own in self.pairs.items():
            found |= {name: max(found.get(name, 0.0), float(own.counts[0, 1])) for name in pair}
        return found

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over its pairs, in which an object counts once for each other view."""
        sums: dict[str, Any] = dict.fromkeys(self.widths, 0.0)
        counts = dict.fromkeys(self.widths, 0.0)
        for moments in self.pairs.values():
            count = moments.counts[0, 1]
            for name, mean in moments.mean().items():
                sums[name] = sums[name] + count * mean
                counts[name] += count
        return {name: sums[name] / max(counts[name], 1e-300) for name in sums}

    def covariance(self) -> np.ndarray:
        """Covariances Σ_pq over the objects of each pair of views, (D, D).

        A diagonal block Σ_pp is the mean of the covariances Σ_pp|q of view p over the objects that
        it shares with each other view q. Since w_pᵀ Σ_pq w_q is at most the mean of w_pᵀ Σ_pp|q w_p
        and w_qᵀ Σ_qq|p w_q,

            Σ_{p≠q} w_pᵀ Σ_pq w_q ≤ (V - 1) Σ_p w_pᵀ Σ_pp w_p,

        as for V paired views. Blocks of views that share no object are zero.
        """
        columns = column_slices(self.widths)
        n_features = sum(self.widths.values())
        Sigma, n_pairs = np.zeros((n_features, n_features)), dict.fromkeys(columns, 0)
        for (p, q), between, within, _ in self.by_pair():
            Sigma[columns[p], columns[q]] = between
            Sigma[columns[q], columns[p]] = between.T
            for name, covariance in zip((p, q), within, strict=True):
                Sigma[columns[name], columns[name]] += covariance
                n_pairs[name] += 1
        for name, own in columns.items():
            Sigma[own, own] /= max(n_pairs[name], 1)
        return Sigma

    def by_pair(self, Sigma: np.ndarray | None = None) -> Iterator[PairCovariance]:
        """Yield the covariances of each pair of views that shares more than one object."""
        for pair in self.pairs.values():
            yield from pair.by_pair()
