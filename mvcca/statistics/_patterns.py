"""Rows with holes by pattern of their missing cells, and EM for jointly Gaussian features.

What maximum likelihood needs of the rows with the same pattern is their number, their mean and
their scatter. A pattern of many rows keeps as many rows of the same scatter as it has cells that
are seen; where patterns hardly repeat, the statistic is as large as the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.machine.progress import steps
from mvcca.machine.warnings import warn
from mvcca.statistics.holes import (
    Recovered,
    alike,
    check_seen,
    complete_rows,
    inverses,
    naming,
    notes_of_pairs,
    table_of,
)
from mvcca.statistics.moments import ROUNDING
from mvcca.statistics.passes import accumulate
from mvcca.views import Views

TOLERANCE = 1e-8  # rise of the log-likelihood that is left; errors are √(2 × it) standard errors
MAX_ITER = 1000
_TABLES = 4  # of a block of rows in float64
_LEAST_VARIANCE = 1e-8  # of standardized features, given all others, while EM goes on
_ROWS_PER_FEATURE = 2  # below, the complete rows alone are better


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Number, mean and scatter of the rows of each pattern of missing cells.

    Attributes
    ----------
    widths : dict of str to int
        Number of features of each view; their sum is D.
    seen : ndarray of bool, shape (n_patterns, D)
        The cells that rows of a pattern have.
    counts : ndarray, shape (n_patterns,)
        Number of rows, or the sum of their weights.
    means : ndarray, shape (n_patterns, D)
        Mean of the rows; 0 where cells are missing.
    rows : ndarray, shape (n_rows, D)
        Rows R_g of the pattern g, with scatter R_gᵀ R_g about its mean; 0 where cells are missing.
    codes : ndarray of int, shape (n_rows,)
        Pattern of each of these rows, ascending.
    """

    widths: dict[str, int]
    seen: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    rows: np.ndarray
    codes: np.ndarray

    @classmethod
    def of(cls, views: Views, weights: np.ndarray | None = None) -> PatternMoments:
        """Sum up views with holes; the arguments are those of `CellMoments.of`."""
        n_features = views.shape[1]
        return accumulate(
            _moments_of_block,
            cls.of_nothing(views.widths),
            views,
            weights,
            at_least=n_features,
            row_bytes=8 * _TABLES * n_features,
        )

    @classmethod
    def of_nothing(cls, widths: Mapping[str, int]) -> PatternMoments:
        """Return the statistic of zero rows."""
        nothing = np.zeros((0, sum(widths.values())))
        return cls(
            dict(widths), nothing.astype(bool), np.zeros(0), nothing, nothing, np.zeros(0, int)
        )

    def __add__(self, other: PatternMoments) -> PatternMoments:
        if not isinstance(other, PatternMoments):
            return NotImplemented
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        seen, place = _distinct(np.concatenate([self.seen, other.seen]))
        own, new = place[: len(self.seen)], place[len(self.seen) :]
        n_own, n_new = np.zeros((2, len(seen)))
        n_own[own], n_new[new] = self.counts, other.counts
        means, shift = np.zeros((2, *seen.shape))
        means[own], shift[new] = self.means, other.means
        counts = n_own + n_new
        shift[n_new > 0] -= means[n_new > 0]
        means += (n_new / counts)[:, None] * shift
        both = np.flatnonzero((n_own > 0) & (n_new > 0))
        apart = np.sqrt(n_own * n_new / counts)[both, None] * shift[both]
        rows = np.concatenate([self.rows, other.rows, apart])
        codes = np.concatenate([own[self.codes], new[other.codes], both])
        return PatternMoments(self.widths, seen, counts, means, *_fewer(rows, codes, seen))

    def objects_by_view(self) -> dict[str, float]:
        """Number of rows (sum of weights), for each view."""
        return dict.fromkeys(self.widths, float(self.counts.sum()))

    def pair_counts(self) -> np.ndarray:
        """Number of rows in which two features are seen, (D, D)."""
        mask = self.seen.astype(np.float64)
        return (self.counts[:, None] * mask).T @ mask

    def recovered(
        self,
        columns: Mapping[str, Sequence[Any] | None],
        *,
        tolerance: float = TOLERANCE,
        max_iter: int = MAX_ITER,
    ) -> Recovered:
        """Mean and covariance of Gaussian features that make the cells most likely, by EM [1]_.

        Each step replaces missing cells by their expectation given the others of the row, adds
        their covariance given these, and takes mean and covariance anew. It starts from
        uncorrelated features. A progress bar counts the steps if one is configured.

        Parameters
        ----------
        columns : mapping of str to sequence or None
            Names of the columns of each view, for messages.
        tolerance : float, default=1e-8
            Stop when further steps are expected to raise the log-likelihood by no more. No
            parameter is then farther from its limit than √(2 tolerance) of its standard error.
        max_iter : int, default=1000
            Number of steps after which to stop with a warning.

        Returns
        -------
        Recovered

        Raises
        ------
        ValueError
            If a feature is seen in fewer than two rows.

        References
        ----------
        .. [1] Dempster, Laird and Rubin, "Maximum likelihood from incomplete data via the EM
           algorithm", 1977, section 4.1; Little and Rubin, "Statistical Analysis with Missing
           Data", section 11.2.
        """
        name_of, n_pairs = naming(self.widths, columns), self.pair_counts()
        check_seen(n_pairs, name_of)
        what = "the rows do not tell their correlation beyond that by other features."
        notes = notes_of_pairs(n_pairs, name_of, what)
        origin, variances = self._marginals()
        varies = variances > ROUNDING**2 * np.diag(n_pairs) * origin**2
        varies &= np.isfinite(variances)
        scale, n_rows = np.sqrt(np.where(varies, variances, 1)), self.counts.sum()
        Sigma = np.diag(np.where(np.isfinite(variances), 0, variances))  # refused by the solver
        if varies.any():
            standardized = self._standardized(origin, scale, varies)
            mean, correlation = _most_likely(standardized, tolerance, max_iter)
            units = np.outer(scale, scale)[np.ix_(varies, varies)]
            Sigma[np.ix_(varies, varies)] = correlation * units * (n_rows / (n_rows - 1))
            origin[varies] += scale[varies] * mean
        n_complete = complete_rows(n_pairs)
        if not self.seen.all() and n_complete < _ROWS_PER_FEATURE * len(origin):
            notes.append(
                f'missing="em" has few rows: with their holes they tell as much as '
                f"{n_complete:.0f} complete ones of {len(origin)} features. Below "
                f"{_ROWS_PER_FEATURE} per feature, correlations of the training rows are too large "
                'without a ridge (.80 where new rows had .49, and .70 with reg="cv"): use reg="cv".'
            )
        return Recovered.of(self.widths, origin, Sigma, n_pairs, notes)

    def _marginals(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each feature over the rows that have it, (D,) each."""
        weights = self.counts[:, None] * self.seen
        n = np.maximum(weights.sum(axis=0), 1)
        mean = (weights * self.means).sum(axis=0) / n
        squares = (self.rows**2).sum(axis=0) + (weights * (self.means - mean) ** 2).sum(axis=0)
        return mean, squares / n

    def _standardized(
        self, center: np.ndarray, scale: np.ndarray, varies: np.ndarray
    ) -> PatternMoments:
        """The same statistic of features with mean 0 and variance 1, without constant ones."""
        means = np.where(self.seen, (self.means - center) / scale, 0)[:, varies]
        return replace(
            self,
            widths={"": int(varies.sum())},
            seen=self.seen[:, varies],
            means=means,
            rows=(self.rows / scale)[:, varies],
        )


def _most_likely(
    standardized: PatternMoments, tolerance: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (d,) and covariance (d, d) of features with mean 0 and variance 1."""
    n_features = standardized.seen.shape[1]
    mean, covariance = np.zeros(n_features), np.eye(n_features)
    gain = 0.0
    with closing(steps(max_iter, "EM", is_exact=False)) as counted:
        for _ in counted:
            before = gain
            shift, new, gain = _step_of_em(standardized, mean, covariance)
            change = np.abs(new - covariance).max()
            mean, covariance = mean + shift, new
            if _gain_left(gain, before) <= tolerance:
                return mean, covariance
    from sklearn.exceptions import ConvergenceWarning

    warn(
        f'missing="em" stopped after {max_iter} steps while the likelihood was still rising '
        f"(the last step changed a correlation by {change:.1g}): the cells hardly tell some "
        "correlations. Drop features that are rarely seen together, or fit to more rows.",
        ConvergenceWarning,
    )
    return mean, covariance


def _step_of_em(
    moments: PatternMoments, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """One step: the change of the mean, the new covariance, and the expected gain.

    To second order, the complete rows' log-likelihood gains n (tr(P Δ P Δ) / 4 + sᵀ P s / 2)
    by the change Δ of the covariance and s of the mean.
    """
    n_rows, d = moments.counts.sum(), len(mean)
    P = np.linalg.inv(covariance + _LEAST_VARIANCE * np.eye(d))
    centred = np.where(moments.seen, moments.means - mean, 0)
    rows = moments.rows.copy()
    products, of_rows = centred @ P, rows @ P
    # Where the rows of each pattern end; the last number, at -1, is where the first begins.
    ends = np.append(np.cumsum(np.bincount(moments.codes, minlength=len(moments.seen))), 0)
    of_holes = np.zeros(d * d)  # covariance of the missing cells given the others
    for patterns, cells in alike(moments.seen):
        H = inverses(P, cells)
        places = cells[:, :, None] * d + cells[:, None, :]
        n_each = moments.counts[patterns, None, None]
        of_holes += np.bincount(places.ravel(), (n_each * H).ravel(), d * d)
        place = patterns[:, None], cells
        centred[place] = -np.einsum("bij,bj->bi", H, products[place])
        for number in np.flatnonzero(ends[patterns] > ends[patterns - 1]):
            own = slice(*ends[[patterns[number] - 1, patterns[number]]])
            rows[own, cells[number]] = -of_rows[own, cells[number]] @ H[number]
    shift = moments.counts @ centred / n_rows
    scatter = (moments.counts[:, None] * centred).T @ centred + rows.T @ rows
    new = (scatter + of_holes.reshape(d, d)) / n_rows - np.outer(shift, shift)
    change = P @ (new - covariance)
    gain = n_rows * (np.sum(change * change.T) / 4 + shift @ P @ shift / 2)
    return shift, new, float(gain)


def _gain_left(gain: float, before: float) -> float:
    """Rise of the log-likelihood that is expected after a step, from its gain and the one before.

    Errors shrink by a factor λ per step in the end, and gains by λ². Along a direction with the
    error e and the information I of complete rows, a step gains I (1 - λ)² e² / 2 of their
    likelihood, and the cells that are seen leave I (1 - λ) λ² e² / 2 to gain.
    """
    if not gain:
        return 0.0
    ratio = gain / before if before else np.inf
    return gain * ratio / (1 - np.sqrt(ratio)) if ratio < 1 else np.inf


def _moments_of_block(views: Views, weights: np.ndarray | None) -> PatternMoments:
    """Statistic of rows in memory."""
    table = table_of(views)
    is_seen = ~np.isnan(table)
    kept = is_seen.any(axis=1) & (True if weights is None else weights > 0)
    table, is_seen = table[kept], is_seen[kept]
    w = np.ones(len(table)) if weights is None else weights[kept]
    seen, codes = _distinct(is_seen)
    order = np.argsort(codes, kind="stable")
    table, w, codes = np.where(is_seen, table, 0)[order], w[order], codes[order]
    if not len(table):
        return PatternMoments.of_nothing(views.widths)
    starts = np.searchsorted(codes, np.arange(len(seen)))
    counts = np.add.reduceat(w, starts)
    means = np.add.reduceat(w[:, None] * table, starts) / counts[:, None]
    is_alone = np.bincount(codes) == 1
    means[is_alone] = table[is_alone[codes]]  # exactly
    others = ~is_alone[codes]
    rows = np.sqrt(w[others, None]) * (table[others] - means[codes[others]])
    return PatternMoments(views.widths, seen, counts, means, *_fewer(rows, codes[others], seen))


def _distinct(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct patterns, and which of them each row has."""
    packed = np.packbits(seen, axis=1)
    _, first, codes = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return seen[first], codes.reshape(-1)


def _fewer(rows: np.ndarray, codes: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the same scatter by pattern, no more of a pattern than it has cells."""
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    n_each, n_cells = np.bincount(codes, minlength=len(seen)), seen.sum(axis=1)
    long = np.flatnonzero(n_each > n_cells)
    if not len(long):
        return rows, codes
    ends = np.cumsum(n_each)
    kept = np.ones(len(rows), dtype=bool)
    for pattern in long:
        start, cells = ends[pattern] - n_each[pattern], np.flatnonzero(seen[pattern])
        factor = np.linalg.qr(rows[start : ends[pattern], cells], mode="r")
        rows[start : start + len(cells), cells] = factor
        kept[start + len(cells) : ends[pattern]] = False
    return rows[kept], codes[kept]
