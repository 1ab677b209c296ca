"""Confidence intervals of canonical correlations, and their correlations on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.model_selection import BaseCrossValidator

from mvcca.inspection._pair import Pair
from mvcca.inspection._rows import of_confounds, sums_of_groups
from mvcca.machine.axes import tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.machine.warnings import warn
from mvcca.measures import column_correlations
from mvcca.model_selection.folds import splits_by_object
from mvcca.problem.bias import SampleBias
from mvcca.views.typing import MatrixLike, TableLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOISE, NEAR_EDGE = "not distinguishable from noise", "near the noise edge"
CHAIN = "root mean square of components"
_LARGEST = 1 - 1e-12  # correlation whose artanh is finite
_HALVINGS = 60  # of the range of a mean, which leave rounding
_FEW = 0.8  # share of the rows that are independent, below which a warning says so
_HEADER = (
    *("component", "in_sample", "estimate", "low", "high"),
    *("held_out", "held_out_low", "held_out_high", "note"),
)


@dataclass(frozen=True, eq=False)
class CorrelationIntervals(Result):
    """Confidence intervals of canonical correlations; printed as a table.

    ``to_frame`` has a row per component: its number from 1, in_sample, estimate, low, high,
    held_out, held_out_low, held_out_high and note.

    Attributes
    ----------
    correlations : ndarray, shape (k,)
        Sample canonical correlations, which are biased upwards.
    estimate, low, high : ndarray, shape (k,)
        Estimates of the population correlations, and their intervals. Components whose intervals
        overlap have those of their root mean square in common.
    held_out : ndarray, shape (k,)
        Correlations of the scores of folds that were left out of the fit, pooled.
    held_out_low, held_out_high : ndarray, shape (k,)
        Interval of the correlation of new rows that are projected by the fit of all rows; NaN for
        components in the noise or near its edge, where weights depend on chance.
    flags : tuple of str
        What to know of each component: empty, or that it is not distinguishable from noise, near
        the noise edge, or just clear of it, with its interval given that; or which components its
        interval is of.
    level : float
        Nominal coverage.
    n_rows : int
        Number of rows less the rank of the confounds.
    n_effective : float
        Number of independent rows that they are worth, for groups or rows of unlike scale.
    ranks : (int, int)
        Numbers p and q of independent features.
    coding : tuple of str
        How each confound was encoded, such as "site: 3 columns, reference A".
    """

    correlations: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    held_out: np.ndarray
    held_out_low: np.ndarray
    held_out_high: np.ndarray
    flags: tuple[str, ...]
    level: float
    n_rows: int
    n_effective: float
    ranks: tuple[int, int]
    coding: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """Return the table of the components."""
        notes = [
            f"{self.level:.0%} intervals from {self._rows_in_words} of {self.ranks[0]} and "
            f"{self.ranks[1]} features. Noise edge: {self.edge:.3f}.",
            *of_confounds(self.coding),
        ]
        return [Table.of("Canonical correlations", _HEADER, self._rows(), notes)]

    @property
    def edge(self) -> float:
        """Largest correlation of independent views of this size."""
        return SampleBias(self.n_effective, self.ranks).edge

    @property
    def _rows_in_words(self) -> str:
        if self.n_effective >= self.n_rows:
            return f"{self.n_rows} rows"
        return f"{self.n_rows} rows, worth {self.n_effective:.0f} independent ones,"

    def figures(self) -> dict[str, Draw]:
        """Return the figure of estimates and intervals beside sample and held-out correlations."""
        return {"Correlations": Draw(self._draw)}

    def _draw(self, ax: Axes | None) -> Axes:
        ax = tidy_axes(ax, grid="y")
        place = np.arange(1, len(self.estimate) + 1)
        lengths = np.maximum([self.estimate - self.low, self.high - self.estimate], 0)
        ax.errorbar(place, self.estimate, lengths, fmt="o", capsize=3, label="estimate")
        ax.plot(place, self.correlations, "_", markersize=12, label="in-sample")
        ax.plot(place, self.held_out, "x", label="held-out")
        ax.axhline(self.edge, color="0.6", linestyle=":", label="noise edge")
        ax.set(xlabel="Component", ylabel="Correlation", xticks=place)
        ax.legend()
        return ax

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        columns = (
            *(self.correlations, self.estimate, self.low, self.high),
            *(self.held_out, self.held_out_low, self.held_out_high),
        )
        for i, flag in enumerate(self.flags):
            yield (i + 1, *(float(column[i]) for column in columns), flag)


def correlation_intervals(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    level: float = 0.9,
    confounds: str | TableLike | None = None,
    groups: Any = None,
    cv: int | BaseCrossValidator | Iterable[Any] = 10,
    sample_weight: Any = None,
    random_state: Any = None,
) -> CorrelationIntervals:
    r"""Estimate canonical correlations of the population, with confidence intervals.

    Sample correlations r are too large, the more so the more features there are per row. With
    c_1 = p / (n - 1), c_2 = q / (n - 1) and ρ² = t, r² concentrates [1]_ at

    .. math:: \gamma(t) = (t (1 - c_1) + c_1) (t (1 - c_2) + c_2) / t

    if t²(1 - c_1)(1 - c_2) > c_1 c_2, and otherwise at the noise edge, as that of independent
    views. Estimates are r, and intervals the ends of tanh(artanh r ± z s), mapped through the
    inverse of √γ. With the unit-variance scores u and v of a component,

    .. math::

        s = \max\Bigl( \frac{1}{\sqrt{n - 3}}, \frac{\sqrt{\overline{\psi^2} / n}}{1 - r^2} \Bigr),
        \quad \psi = u v - r (u^2 + v^2) / 2.

    In simulations of normal rows, intervals of nominal 90 % covered ρ .88 to 1.00 of the time, for
    n = 200 and 1000, 5 to 20 features per view and ρ from .3 to .8. Percentile bootstrap intervals,
    which add the bias of r once more, covered .00 to .87. Independent features with heavy tails
    gave .79 to .80: transform each feature to normal ranks first.

    Rows count as n_e independent ones in all formulas. With the leverages h and k of the rows in
    both views, and sums over pairs of different rows i, i' of a group,

    .. math::

        n_e = 1 + \frac{p q}{\bar m}, \quad \bar m = \frac{p q}{n - 1} \max(1, e) +
        \frac{1}{\#} \sum u_i^⊤ u_{i'} \sum v_i^⊤ v_{i'}, \quad
        e = \frac{n \sum_i h_i k_i}{p q + 2 \sum_j r_j^2},

    the mean of ‖U_πᵀV‖² over permutations of whole groups. e counts where it is above chance. ψ is
    summed up in groups. Families of 2 to 5 rows were covered .89 to .94 of the time, and .71 to .77
    where all rows counted; multivariate t(5) with 20 features .94, and .80.

    Where intervals of neighbouring components overlap, samples mix these components, and all of
    them get the interval of their root mean square. Its upper end takes the other components of
    such a chain for no noise. Components are called clear of the noise edge
    if z = artanh r ≥ c = artanh edge + 2 s. Up to c + 2 s, that statement selects large z, and the
    flag has an interval given it: P(Z ≥ z) / P(Z ≥ c) = (1 ± level) / 2, for Z ~ N(μ, s²).

    The interval is of ρ, which the fitted weights do not reach on new rows. The result therefore
    has the correlation of held-out folds beside it, and an interval of the correlation on new
    rows: the ends of the interval of ρ, mapped by the limit of that correlation.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two paired views, or the first of them. Sparse views are converted to dense.
    y : matrix, optional
        The second view, if X is a single matrix.
    level : float, default=0.9
        Nominal coverage of the two-sided intervals.
    confounds : str, matrix of shape (n_rows, n_confounds), or table, optional
        A view of X, by name, or a matrix. Removed from both views by regression, in folds by that
        of the training rows. Their rank counts as so many rows less.
    groups : array-like, shape (n_rows,), optional
        Families, subjects or other groups of rows that are not independent.
    cv : int, splitter or iterable of (train, test), default=10
        Folds of the held-out correlations. A number is that of shuffled folds, or of folds that
        keep groups together, at most one per object or group.
    sample_weight : array-like of int, shape (n_rows,), optional
        How often each row occurs: 2 is two rows, 0 none. Folds keep the copies of a row together.
    random_state : int, RandomState or None, default=None
        Seed of folds.

    Returns
    -------
    CorrelationIntervals

    Raises
    ------
    ValueError
        If there are not two paired views, or no more than p + q + 1 rows, less the rank of the
        confounds; if there are fewer than three groups; if weights are not whole numbers, since
        the number of rows is then not known.
    TypeError
        If X is an estimator.

    Warns
    -----
    UserWarning
        If components are so near the noise edge that the interval depends on chance; if rows of
        unlike scale are worth less than .8 of their number.

    References
    ----------
    .. [1] Bao, Hu, Pan and Zhou, "Canonical correlation coefficients of high-dimensional Gaussian
       vectors: finite rank case", Annals of Statistics 47(1), 2019.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import correlation_intervals
    >>> views = make_gaussian_views(300, correlations=(0.8, 0.5), random_state=0).views
    >>> found = correlation_intervals(views, random_state=0)
    >>> bool(found.low[0] < 0.8 < found.high[0])
    True
    >>> found.flags[2]
    'not distinguishable from noise'
    """
    who = "The interval of correlations"
    pair = Pair.of(X, y, confounds, who, groups=groups, sample_weight=sample_weight)
    found = intervals_of(pair, level, held_out_correlations(pair, cv, random_state))
    warn_near_edge(found.flags)
    warn_of_few(pair)
    return found


def intervals_of(pair: Pair, level: float, held_out: np.ndarray) -> CorrelationIntervals:
    """Intervals of all components, beside correlations of held-out rows."""
    estimate, low, high, flags = population_intervals(pair, level)
    noisy = np.array([flag.startswith((NOISE, NEAR_EDGE)) for flag in flags])
    return CorrelationIntervals(
        pair.components.correlations,
        estimate,
        low,
        high,
        held_out,
        np.where(noisy, np.nan, pair.bias.held_out(low)),
        np.where(noisy, np.nan, pair.bias.held_out(high)),
        flags,
        level,
        pair.n_rows,
        pair.n_effective,
        pair.ranks,
        pair.coding,
    )


def population_intervals(
    pair: Pair, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """Estimates, ends of the intervals, and flags."""
    check_level(level)
    r, bias = np.minimum(pair.components.correlations, _LARGEST), pair.bias
    influence = _influence(pair, r)
    z, reach = np.arctanh(r), stats.norm.ppf((1 + level) / 2)
    wider = pair.reach(level) / reach
    s = _deviation(pair, wider * influence, r, 1)
    low, high = bias.population(np.tanh(z - reach * s)), bias.population(np.tanh(z + reach * s))
    estimate = bias.population(r)
    # Correlations up to the threshold are all at the edge, and cannot be told apart.
    high = np.where(r > bias.edge, high, np.maximum(high, bias.threshold))
    edge = np.arctanh(bias.edge)
    flags = [NOISE if one <= edge else "" for one in z]
    for i in np.flatnonzero((z > edge) & (z < edge + 2 * s)).tolist():
        flags[i] = NEAR_EDGE
    for i in np.flatnonzero((z >= edge + 2 * s) & (z < edge + 4 * s)).tolist():
        shares = np.array([(1 - level) / 2, (1 + level) / 2])
        ends = bias.population(np.tanh(_means_given_selection(z[i], edge, s[i], shares)))
        flags[i] = f"{ends[0]:.2f} to {ends[1]:.2f} given that it is clear of the noise edge"
    for chain in chains_of(flags, low, high):
        own, n_others = list(chain), len(chain) - 1
        mean = np.sqrt(np.mean(r[own] ** 2))
        together = influence[:, own] @ r[own] / (len(chain) * mean)
        spread = reach * _deviation(pair, wider * together[:, None], mean, len(chain))[0]
        ends = np.arctanh(mean) + np.array([0, -spread, spread])
        estimate[own], low[own], high[own] = bias.population(np.tanh(ends))[:, None]
        # The others of the chain may be no noise, which then has fewer directions.
        p, q = (rank - n_others for rank in pair.ranks)
        high[own] = SampleBias(bias.n_rows - n_others, (p, q)).population(np.tanh(ends[2]))
        for i in own:
            of_chain = f"{CHAIN} {own[0] + 1} to {own[-1] + 1}"
            flags[i] = f"{flags[i]}; {of_chain}" if flags[i] == NEAR_EDGE else of_chain
    return estimate, low, high, tuple(flags)


def _influence(pair: Pair, r: np.ndarray) -> np.ndarray:
    """ψ of each row, or summed up in each group: (n, k)."""
    u, v = pair.scores
    influence = u * v - r * (u**2 + v**2) / 2
    return influence if pair.groups is None else sums_of_groups(influence, pair.groups)


def _deviation(pair: Pair, influence: np.ndarray, r: Any, n_pooled: int) -> np.ndarray:
    """Standard deviation of artanh r, of the root mean square of so many correlations."""
    found = np.sqrt((influence**2).sum(axis=0)) / (len(pair.confounds) * (1 - r**2))
    found *= np.sqrt(len(pair.confounds) / pair.n_rows)
    return np.maximum(1 / np.sqrt(n_pooled * (pair.n_effective - 3)), found)


def _means_given_selection(z: float, edge: float, s: float, shares: np.ndarray) -> np.ndarray:
    """Means μ at or above the edge for which P(Z ≥ z) / P(Z ≥ c) are the shares, Z ~ N(μ, s²).

    c is the edge + 2 s. The ratio rises with μ, so that bisection finds it.
    """
    low, high = np.full(len(shares), edge), np.full(len(shares), z + 10 * s)
    for _ in range(_HALVINGS):
        mean = (low + high) / 2
        ratio = stats.norm.logsf((z - mean) / s) - stats.norm.logsf((edge - mean) / s + 2)
        is_low = ratio < np.log(shares)
        low, high = np.where(is_low, mean, low), np.where(is_low, high, mean)
    return np.asarray(low)


def chains_of(flags: Sequence[str], low: np.ndarray, high: np.ndarray) -> list[tuple[int, ...]]:
    """Runs of components outside the noise, each of which overlaps the next."""
    chains: list[tuple[int, ...]] = []
    for i in range(len(flags) - 1):
        if NOISE in flags[i : i + 2] or low[i] >= high[i + 1]:
            continue
        if chains and chains[-1][-1] == i:
            chains[-1] = (*chains[-1], i + 1)
        else:
            chains.append((i, i + 1))
    return chains


def warn_near_edge(flags: tuple[str, ...]) -> None:
    """Warn of components above the edge that chance may have put there."""
    near = [str(i + 1) for i, flag in enumerate(flags) if flag.startswith(NEAR_EDGE)]
    if near:
        warn(
            f"Components {', '.join(near)}: correlations within two standard errors of the noise "
            "edge, where intervals depend on chance. More rows, or fewer features, would decide."
        )


def warn_of_few(pair: Pair) -> None:
    """Warn of rows of unlike scale, which are worth fewer."""
    if pair.groups is None and pair.n_effective < _FEW * pair.n_rows:
        warn(
            f"Rows that are large in one view are large in the other: {pair.n_rows} rows are worth "
            f"{pair.n_effective:.0f} independent ones. Transform features to normal ranks, or "
            "check what the rows have in common, such as head motion."
        )


def check_level(level: float) -> None:
    """Refuse levels that are not a probability."""
    if not 0 < level < 1:
        raise ValueError(f"Expected a level between 0 and 1, such as 0.9, got level={level}.")


def held_out_correlations(pair: Pair, cv: Any, random_state: Any) -> np.ndarray:
    """Correlations of the pooled scores of held-out folds."""
    splits = splits_by_object(pair.positions, cv, random_state, groups=pair.groups)
    scores = [pair.held_out_scores(train, test) for train, test in splits]
    u, v = (np.concatenate(of_view) for of_view in zip(*scores, strict=True))
    return column_correlations(u, v)
