"""Confidence intervals of canonical correlations, and their correlations on held-out rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from mvcca.inspection._pair import Pair
from mvcca.inspection._rows import of_confounds
from mvcca.machine.axes import tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.machine.warnings import warn
from mvcca.measures import column_correlations
from mvcca.model_selection.folds import splits_by_object
from mvcca.views.typing import MatrixLike, TableLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOISE, NEAR_EDGE, OVERLAPS = (
    "not distinguishable from noise",
    "near the noise edge",
    "overlaps the next",
)
_BOOTSTRAP = {"percentile": "percentile", "bca": "BCa"}  # and SciPy's names
_LARGEST_SHARE = 0.02  # (p + q) / n up to which bootstrap intervals are near their level
_LARGEST = 1 - 1e-12  # correlation whose artanh is finite
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
        Estimates of the population correlations, and their intervals.
    held_out : ndarray, shape (k,)
        Correlations of the scores of folds that were left out of the fit, pooled.
    held_out_low, held_out_high : ndarray, shape (k,)
        Interval of the correlation of new rows that are projected by the fit of all rows.
    edge : float
        Largest correlation of independent views of this size.
    flags : tuple of str
        What to know of each component: empty, or that it is not distinguishable from noise, near
        the noise edge, or has an interval that overlaps that of the next component.
    level : float
        Nominal coverage.
    method : str
        "inverse", "percentile" or "bca".
    n_rows : int
        Number of rows less the rank of the confounds.
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
    edge: float
    flags: tuple[str, ...]
    level: float
    method: str
    n_rows: int
    ranks: tuple[int, int]
    coding: tuple[str, ...] = ()

    def tables(self) -> list[Table]:
        """Return the table of the components."""
        notes = [
            f"{self.level:.0%} intervals ({self.method}) from {self.n_rows} rows of "
            f"{self.ranks[0]} and {self.ranks[1]} features. Noise edge: {self.edge:.3f}.",
            *of_confounds(self.coding),
        ]
        return [Table.of("Canonical correlations", _HEADER, self._rows(), notes)]

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
    method: str = "inverse",
    confounds: str | TableLike | None = None,
    cv: int | BaseCrossValidator | Iterable[Any] = 10,
    n_resamples: int = 999,
    sample_weight: Any = None,
    random_state: Any = None,
) -> CorrelationIntervals:
    r"""Estimate canonical correlations of the population, with confidence intervals.

    Sample correlations r are too large, the more so the more features there are per row. With
    c_1 = p / (n - 1), c_2 = q / (n - 1) and ρ² = t, r² concentrates [1]_ at

    .. math:: \gamma(t) = (t (1 - c_1) + c_1) (t (1 - c_2) + c_2) / t

    if t²(1 - c_1)(1 - c_2) > c_1 c_2, and otherwise at the noise edge, as that of independent
    views. The method "inverse" maps r, and the ends of the interval tanh(artanh r ± z s), through
    the inverse of √γ. With the unit-variance scores u and v of a component,

    .. math::

        s = \max\Bigl( \frac{1}{\sqrt{n - 3}}, \frac{\sqrt{\overline{\psi^2} / n}}{1 - r^2} \Bigr),
        \quad \psi = u v - r (u^2 + v^2) / 2.

    In simulations of normal rows, intervals of nominal 90 % covered ρ .88 to 1.00 of the time, for
    n = 200 and 1000, 5 to 20 features per view and ρ from .3 to .8; among several components the
    third covered .84 at worst. Rows with heavy tails in all features jointly, such as of a
    multivariate t distribution, gave .83 to .90: transform each feature to normal ranks first.
    Percentile bootstrap intervals covered .00 to .87.

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
    method : {"inverse", "percentile", "bca"}, default="inverse"
        "percentile" and "bca" are bootstrap intervals of r, of which published studies report
        many. They warn, and are refused if (p + q) / n > 0.02.
    confounds : str, matrix of shape (n_rows, n_confounds), or table, optional
        A view of X, by name, or a matrix. Removed from both views by regression, in folds by that
        of the training rows. Their rank counts as so many rows less.
    cv : int, splitter or iterable of (train, test), default=10
        Folds of the held-out correlations; a number is that of shuffled folds. Pass the splits of
        a group splitter if rows depend on each other.
    n_resamples : int, default=999
        Number of resamples of "percentile" and "bca".
    sample_weight : array-like of int, shape (n_rows,), optional
        How often each row occurs: 2 is two rows, 0 none. Folds keep the copies of a row together.
    random_state : int, RandomState or None, default=None
        Seed of folds and resamples.

    Returns
    -------
    CorrelationIntervals

    Raises
    ------
    ValueError
        If there are not two paired views, or no more than p + q + 1 rows, less the rank of the
        confounds; if a bootstrap method is asked for too many features; if weights are not whole
        numbers, since the number of rows is then not known.
    TypeError
        If X is an estimator.

    Warns
    -----
    UserWarning
        If components are so near the noise edge that the interval depends on chance; if bootstrap
        intervals are used.

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
    pair = Pair.of(X, y, confounds, who, sample_weight=sample_weight)
    rng = check_random_state(random_state)
    found = inverse_result(pair, level, held_out_correlations(pair, cv, rng))
    warn_near_edge(found.flags)
    if method == "inverse":
        return found
    _check_bootstrap(method, pair)
    low, high = bootstrap_intervals(pair, level, method, n_resamples, rng)
    return replace(found, estimate=found.correlations, low=low, high=high, method=method)


def inverse_result(pair: Pair, level: float, held_out: np.ndarray) -> CorrelationIntervals:
    """Intervals by the method "inverse", beside correlations of held-out rows."""
    estimate, low, high, flags = inverse_intervals(pair, level)
    return CorrelationIntervals(
        pair.components.correlations,
        estimate,
        low,
        high,
        held_out,
        pair.bias.held_out(low),
        pair.bias.held_out(high),
        pair.bias.edge,
        flags,
        level,
        "inverse",
        pair.n_rows,
        pair.ranks,
        pair.coding,
    )


def inverse_intervals(
    pair: Pair, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """Estimates, ends of the intervals, and flags."""
    check_level(level)
    r, bias = np.minimum(pair.components.correlations, _LARGEST), pair.bias
    u, v = pair.scores
    influence = u * v - r * (u**2 + v**2) / 2
    deviation = np.sqrt((influence**2).mean(axis=0) / pair.n_rows) / (1 - r**2)
    s = np.maximum(1 / np.sqrt(pair.n_rows - 3), deviation)
    z, reach = np.arctanh(r), stats.norm.ppf((1 + level) / 2) * s
    low, high = bias.population(np.tanh(z - reach)), bias.population(np.tanh(z + reach))
    # Correlations up to the threshold are all at the edge, and cannot be told apart.
    high = np.where(r > bias.edge, high, np.maximum(high, bias.threshold))
    near = np.abs(z - np.arctanh(bias.edge)) < 2 * s
    flags = [NOISE if r[i] <= bias.edge else NEAR_EDGE if near[i] else "" for i in range(len(r))]
    for i in range(len(r) - 1):
        if NOISE not in flags[i : i + 2] and low[i] < high[i + 1]:
            flags[i] = f"{flags[i]}; {OVERLAPS}" if flags[i] else OVERLAPS
    return bias.population(r), low, high, tuple(flags)


def warn_near_edge(flags: tuple[str, ...]) -> None:
    """Warn of components above the edge that chance may have put there."""
    near = [str(i + 1) for i, flag in enumerate(flags) if flag.startswith(NEAR_EDGE)]
    if near:
        warn(
            f"Components {', '.join(near)}: correlations within two standard errors of the noise "
            "edge, where intervals depend on chance. More rows, or fewer features, would decide."
        )


def check_level(level: float) -> None:
    """Refuse levels that are not a probability."""
    if not 0 < level < 1:
        raise ValueError(f"Expected a level between 0 and 1, such as 0.9, got level={level}.")


def held_out_correlations(pair: Pair, cv: Any, rng: np.random.RandomState) -> np.ndarray:
    """Correlations of the pooled scores of held-out folds."""
    splits = splits_by_object(pair.positions, cv, rng)
    scores = [pair.held_out_scores(train, test) for train, test in splits]
    u, v = (np.concatenate(of_view) for of_view in zip(*scores, strict=True))
    return column_correlations(u, v)


def bootstrap_intervals(
    pair: Pair, level: float, method: str, n_resamples: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Percentile or BCa intervals of the sample correlations."""
    n = len(pair.confounds)

    def correlations(rows: np.ndarray, axis: int = -1) -> np.ndarray:
        drawn = np.atleast_2d(np.moveaxis(rows, axis, -1).astype(int))
        counts = np.zeros((len(drawn), n))
        np.add.at(counts, (np.arange(len(drawn))[:, None], drawn), 1)
        found = pair.refitted(counts).correlations.T
        return found if rows.ndim > 1 else found[:, 0]

    found = stats.bootstrap(
        (np.arange(n),),
        correlations,
        n_resamples=n_resamples,
        batch=64,
        confidence_level=level,
        method=_BOOTSTRAP[method],
        rng=np.random.default_rng(rng.randint(2**31)),
        vectorized=True,
    )
    return found.confidence_interval.low, found.confidence_interval.high


def _check_bootstrap(method: str, pair: Pair) -> None:
    if method not in _BOOTSTRAP:
        raise ValueError(f"Expected method to be 'inverse', 'percentile' or 'bca', got {method!r}.")
    share = sum(pair.ranks) / pair.n_rows
    if share > _LARGEST_SHARE:
        raise ValueError(
            f"method={method!r}: sample correlations are biased upwards, and resampling adds the "
            f"bias once more, so that these intervals may never cover with (p + q) / n = "
            f"{share:.3f} > {_LARGEST_SHARE}. Use method='inverse'."
        )
    warn(
        f"Bootstrap intervals (method={method!r}) are of correlations that are biased upwards, and "
        "cover less often than they say. They serve to reproduce published figures; use "
        "method='inverse'."
    )
