"""Two views without their confounds, in orthonormal bases, and CCA of any share of their rows.

Folds and resamples fit CCA hundreds of times. In the basis of all rows a fit takes second moments
of as many numbers as the views have independent features, and small decompositions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import linalg, stats
from scipy.optimize import linear_sum_assignment

from mvcca.inspection._rows import (
    GivenRows,
    decomposed,
    effective_share,
    numbers_of,
    orthonormal,
    residuals,
)
from mvcca.machine.warnings import warn
from mvcca.problem import Whitened
from mvcca.problem.bias import SampleBias
from mvcca.problem.whitened import canonical, canonical_of_covariances
from mvcca.views.validation import named_columns

_FEWEST_GROUPS = 3  # of two, means are all there is to correlate between groups


@dataclass(frozen=True, eq=False)
class Components:
    """CCA in the coordinates of the two bases.

    Attributes
    ----------
    correlations : ndarray, shape (..., k)
    maps : pair of ndarray, shape (..., r, k)
        Weights that give the fitted rows scores of unit variance.
    within : pair of ndarray, shape (..., r, r)
        Covariances of these rows.
    counts : ndarray, shape (..., n), or None
        How often each row was fitted; None if once.
    """

    correlations: np.ndarray
    maps: tuple[np.ndarray, np.ndarray]
    within: tuple[np.ndarray, np.ndarray]
    counts: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two paired views, less their regression on confounds.

    Attributes
    ----------
    names : (str, str)
    columns : pair of tuple of str
        Names of the features.
    views : pair of Whitened
        The centred views, less the confounds.
    confounds : ndarray, shape (n, rank)
        Orthonormal basis of the centred confounds, without columns if there are none.
    variables : pair of ndarray, shape (n, n_variables), or None
        What to give the loadings of, less the confounds; None for the features.
    positions : ndarray of int, shape (n,)
        Places of the rows in the user's data, of `n_given` rows; a row that occurs twice has two.
    coding : tuple of str
        How each confound was encoded.
    groups : ndarray of int, shape (n,), or None
        Group of each row, from 0.
    """

    names: tuple[str, str]
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    views: tuple[Whitened, Whitened]
    confounds: np.ndarray
    positions: np.ndarray
    n_given: int
    coding: tuple[str, ...]
    groups: np.ndarray | None = None
    variables: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        confounds: Any,
        who: str,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        n_removed: int = 0,
    ) -> Pair:
        """Check the rows of two views; `who` begins the error messages.

        Views that have already lost different confounds have no `confounds`, but `n_removed`.
        """
        options = {"groups": groups, "sample_weight": sample_weight}
        rows = GivenRows.of(who, X, y, confounds, only_two=True, **options)
        Z, n_given = rows.confounds[0], len(rows.views)
        # Columns of zeros count as confounds, and change no row.
        Z = np.zeros((len(rows.positions), n_removed)) if Z is None else orthonormal("confounds", Z)
        x, y = (
            decomposed(name, X, partial(residuals, Z=Z) if Z.any() else None)
            for name, X in rows.arrays.items()
        )
        a, b = (named_columns(name, block) for name, block in rows.views.items())
        p, q = rows.views.names
        pair = cls((p, q), (a, b), (x, y), Z, rows.positions, n_given, rows.coding, rows.groups)
        pair._check_rows(who)
        return pair

    def with_variables(self, variables: Any) -> Pair:
        """The same rows, with other variables by view name to give the loadings of."""
        if not isinstance(variables, Mapping) or set(variables) != set(self.names):
            raise ValueError(
                f"Expected variables as a mapping with a matrix for each of {list(self.names)}, "
                f"got {list(variables) if isinstance(variables, Mapping) else type(variables)}."
            )
        Z, of_views, columns = self.confounds, [], []
        for name in self.names:
            block = variables[name]
            V = numbers_of(f"Variables of {name!r}", block, ensure_all_finite="allow-nan")
            if len(V) != self.n_given:
                raise ValueError(
                    f"Expected {self.n_given} rows of the variables of {name!r}, got {len(V)}."
                )
            of_views.append(_residuals(V[self.positions], Z))
            columns.append(named_columns(name, block))
        return replace(self, variables=(of_views[0], of_views[1]), columns=(columns[0], columns[1]))

    @property
    def bases(self) -> tuple[np.ndarray, np.ndarray]:
        """Orthonormal bases of the centred views, less the confounds, (n, r)."""
        return self.views[0].basis, self.views[1].basis

    @cached_property
    def features(self) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the features in the bases, (r, n_features)."""
        x, y = ((view.axes * view.values).T for view in self.views)
        return x, y

    @property
    def n_rows(self) -> int:
        """Number of rows less the rank of the confounds, which counts in their place."""
        return self.confounds.shape[0] - self.confounds.shape[1]

    @cached_property
    def n_effective(self) -> float:
        """Number of independent rows that they are worth; at least p + q + 2."""
        share = effective_share(*self.bases, self.groups)
        return max(1 + (self.n_rows - 1) * share, sum(self.ranks) + 2)

    def reach(self, level: float) -> float:
        """Number of deviations, as rows or few groups tell them, that an interval reaches."""
        share = (1 + level) / 2
        if self.groups is None:
            return float(stats.norm.ppf(share))
        n = self.groups.max() + 1
        return float(stats.t.ppf(share, n - 1) * np.sqrt(n / (n - 1)))

    @property
    def ranks(self) -> tuple[int, int]:
        """Numbers p and q of independent features."""
        return self.views[0].rank, self.views[1].rank

    @cached_property
    def bias(self) -> SampleBias:
        """Bias of the correlations of samples of this size."""
        return SampleBias(self.n_effective, self.ranks)

    @cached_property
    def components(self) -> Components:
        """CCA of all rows, the largest loading of each component positive in the first view."""
        (U, V), (x, y) = self.bases, self.views
        correlations, left, right = canonical(U.T @ V, x, y)
        k = len(correlations)
        scale = np.sqrt(self.n_rows - 1)
        within = (np.eye(x.rank) / scale**2, np.eye(y.rank) / scale**2)
        found = Components(correlations, (scale * left, scale * right), within)
        loadings = self.loadings(found)[0]
        strongest = loadings[np.abs(loadings).argmax(axis=0), np.arange(k)]
        signs = np.where(strongest < 0, -1.0, 1.0)
        a, b = found.maps
        return replace(found, maps=(a * signs, b * signs))

    @cached_property
    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores (n, k) of all rows, of unit variance."""
        (X, Y), (a, b) = self.bases, self.components.maps
        return X @ a, Y @ b

    def loadings(self, found: Components) -> tuple[np.ndarray, np.ndarray]:
        """Correlations (..., n_features, k) of features and scores of the same view."""
        if self.variables is not None:
            counts = np.ones(len(self.confounds)) if found.counts is None else found.counts
            a, b = (
                _weighted_correlations(V, basis @ W, counts)
                for V, basis, W in zip(self.variables, self.bases, found.maps, strict=True)
            )
            return a, b
        of_views = []
        for R, W, S in zip(self.features, found.maps, found.within, strict=True):
            deviations = np.sqrt(np.einsum("rd,...rs,sd->...d", R, S, R, optimize=True))
            covariances = R.T @ (S @ W)
            scale = np.broadcast_to(deviations[..., None], covariances.shape)
            loadings = np.divide(
                covariances, scale, out=np.zeros_like(covariances), where=scale > 0
            )
            of_views.append(np.clip(loadings, -1, 1))
        return of_views[0], of_views[1]

    def weights(self, found: Components) -> tuple[np.ndarray, np.ndarray]:
        """Weights (..., n_features, k) of the features for unit-variance scores."""
        a, b = (np.linalg.pinv(R) @ W for R, W in zip(self.features, found.maps, strict=True))
        return a, b

    def refitted(self, weights: np.ndarray) -> Components:
        """CCA of weighted rows, one fit per row (n_fits, n) of the weights."""
        J = np.hstack([*self.bases, self.confounds])
        scatter = np.empty((len(weights), J.shape[1], J.shape[1]))
        for number, w in enumerate(weights):
            sums = w @ J
            scatter[number] = (J * w[:, None]).T @ J - np.outer(sums, sums) / w.sum()
        degrees = weights.sum(axis=1) - 1 - self.confounds.shape[1]
        return replace(_cca(scatter / degrees[:, None, None], self.ranks), counts=weights)

    def held_out_scores(self, train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
        """Scores (n_test, k) of held-out rows by CCA of others, matched with that of all rows."""
        counts = np.zeros((1, len(self.confounds)))
        np.add.at(counts[0], train, 1)
        if len(train) - self.confounds.shape[1] <= sum(self.ranks) + 1:
            raise ValueError(
                f"Training parts of {len(train)} rows are too few for {self.ranks[0]} and "
                f"{self.ranks[1]} independent features: correlations of 1 arise by construction. "
                "Use more folds, such as cv=10, or reduce the views first, for example by PCA."
            )
        found = self.matched(self.refitted(counts))
        Z, scores = self.confounds, []
        z_mean = Z[train].mean(axis=0)
        for basis, W in zip(self.bases, found.maps, strict=True):
            mean = basis[train].mean(axis=0)
            B = linalg.lstsq(Z[train] - z_mean, basis[train] - mean)[0] if Z.size else Z.T @ basis
            scores.append((basis[test] - mean - (Z[test] - z_mean) @ B) @ W[0])
        return scores

    def matched(self, found: Components) -> Components:
        """Refitted components in the order, and with the signs, of those of all rows.

        Components are assigned so that the sum of the |correlations| of their scores over both
        views is largest [1]_.

        References
        ----------
        .. [1] Kessler and Levina, "Computational inference for directions in canonical correlation
           analysis", arXiv 2308.11218, 2023.
        """
        agreement = self.agreement(found)
        matches = np.zeros(agreement.shape)
        for cosines, match in zip(agreement, matches, strict=True):
            own, other = linear_sum_assignment(-np.abs(cosines))
            match[other, own] = np.where(cosines[own, other] < 0, -1, 1)
        a, b = found.maps
        return replace(found, maps=(a @ matches, b @ matches))

    def signed(self, found: Components, k: int) -> Components:
        """The first k refitted components, with the signs of those of all rows.

        They stay in the order of their correlations: where close components change places, or
        mix, their spread over resamples shows it. Intervals from matched ones cover less often.
        """
        signs = np.where(np.diagonal(self.agreement(found), axis1=-2, axis2=-1) < 0, -1.0, 1.0)
        a, b = (W[..., :k] * signs[..., None, :k] for W in found.maps)
        return replace(found, correlations=found.correlations[..., :k], maps=(a, b))

    def agreement(self, found: Components) -> np.ndarray:
        """Correlations (..., k, k) of scores with those of refits, over all rows and both views."""
        of_views = [
            (W / np.linalg.norm(W, axis=0)).T @ (V / np.linalg.norm(V, axis=-2, keepdims=True))
            for W, V in zip(self.components.maps, found.maps, strict=True)
        ]
        return np.mean(of_views, axis=0)

    def _check_rows(self, who: str) -> None:
        for name, R in zip(self.names, self.features, strict=True):
            if R.shape[0] < R.shape[1]:
                without = " once the confounds are removed" if self.confounds.size else ""
                warn(
                    f"View {name!r}: {R.shape[1]} columns have rank {R.shape[0]}{without}, since "
                    "some are constant or depend on others. Degrees of freedom count the rank."
                )
        if self.groups is not None and (n_groups := self.groups.max() + 1) < _FEWEST_GROUPS:
            raise ValueError(
                f"{who} needs {_FEWEST_GROUPS} groups or more, since rows of one group may all be "
                f"alike; got {n_groups}."
            )
        (n, m), (p, q) = self.confounds.shape, self.ranks
        if n - m <= p + q + 1:
            less = f" less {m} confounds" if m else ""
            raise ValueError(
                f"{who} needs more rows than p + q + 1, got {n} rows{less} for {p} and {q} "
                "independent features, with which correlations of 1 arise by construction. "
                "Reduce the views first, for example by PCA."
            )


def _weighted_correlations(V: np.ndarray, scores: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Correlations (..., d, k) of variables (n, d) and scores (..., n, k) of rows that count w."""
    seen = ~np.isnan(V)
    # (n, d), or (n, 1) if no cell is missing: moments of the scores are then those of all columns.
    mask = np.ones((len(V), 1)) if seen.all() else seen.astype(float)
    V, of_rows = np.where(seen, V, 0), w[..., None] * scores
    n = np.maximum(w @ mask, np.finfo(float).tiny)[..., None]
    means = (w @ V)[..., None] / n, mask.T @ of_rows / n
    cross = V.T @ of_rows / n - means[0] * means[1]
    squares = (w @ V**2)[..., None] / n - means[0] ** 2, mask.T @ (of_rows * scores) / n
    scale = np.sqrt(np.maximum(squares[0] * (squares[1] - means[1] ** 2), 0))
    found = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0)
    return np.asarray(np.clip(found, -1, 1))


def _residuals(V: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Variables less their regression on an orthonormal basis of confounds; NaN stays NaN."""
    found, seen = V - np.nanmean(V, axis=0), ~np.isnan(V)
    whole = seen.all(axis=0)
    found[:, whole] = residuals(found[:, whole], Z)
    design = np.column_stack([np.ones(len(Z)), Z])
    for j in np.flatnonzero(~whole):
        own = design[seen[:, j]]
        found[seen[:, j], j] -= own @ linalg.lstsq(own, found[seen[:, j], j])[0]
    return found


def _cca(S: np.ndarray, ranks: tuple[int, int]) -> Components:
    """CCA from stacks of covariances of both views and of confounds, which are removed."""
    p, q = ranks
    if S.shape[-1] > p + q:
        of_z, with_z = S[:, p + q :, p + q :], S[:, p + q :, : p + q]
        # Resamples may lack a category, whose indicator is then constant.
        explained = with_z.swapaxes(1, 2) @ np.linalg.pinv(of_z, hermitian=True) @ with_z
        S = S[:, : p + q, : p + q] - explained
    within = S[:, :p, :p], S[:, p:, p:]
    try:
        correlations, *maps = canonical_of_covariances(within, S[:, :p, p:])
    except np.linalg.LinAlgError:
        raise ValueError(
            f"A resample has too few distinct rows for {p} and {q} independent features. "
            "Reduce the views first, for example by PCA."
        ) from None
    return Components(correlations, (maps[0], maps[1]), within)
