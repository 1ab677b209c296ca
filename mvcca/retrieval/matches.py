"""Probabilities of matches: is the best item of a query the right one at all?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import to_array
from mvcca.machine.warnings import warn
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.ranking import Weighting
from mvcca.retrieval.similarity import Similarity
from mvcca.retrieval.task import Task, asked_ranking
from mvcca.views.typing import ViewsLike

_BINS = 2**12  # of the scores of pairs that do not match
_PARTS = (1, 2, 4, 8)  # of the items, which are galleries that the evidence is fitted to


@dataclass(frozen=True)
class MatchCalibration:
    """Probability that an item found by a search shows the query's object.

    The probability of item g of a gallery of n items, with scores s_1, ..., s_n, is

        P(held) · L_g / Σ_h L_h,   log L_h = slope · s_h.

    The log odds that the gallery holds the query's item are

        log(π / (1 - π)) + evidence_slope · log(Σ_h L_h / n) + size_slope · log n
            + evidence_intercept,

    where π is the probability before the search. Items of the same object, such as captions of an
    image, share its probability: that of a single one is too small, and the sum over a list is the
    probability that one of them is in it. If log L + evidence_intercept is the
    log-likelihood ratio of a match, evidence_slope is 1 and size_slope is 0, both are Bayes' rule.
    All four numbers are fitted to held-out searches, in two steps [1]_ [2]_. Made by
    `calibrate_matches`.

    Parameters
    ----------
    slope : float
        Factor of the scores.
    evidence_slope, size_slope, evidence_intercept : float
        Coefficients of the log odds that the gallery holds the query's item.
    thresholds : ndarray, shape (n_matches,)
        Scores of the held-out matches, descending.
    true_positive_rates : ndarray, shape (n_matches,)
        Share of the matches with at least this score.
    false_positive_rates : ndarray, shape (n_matches,)
        Share of the other pairs with at least this score.
    other_scores, other_counts : ndarray, shape (n_bins,)
        Histogram of the scores of pairs that do not match, ascending.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger, "On Calibration of Modern Neural Networks", ICML 2017,
       section 4.2 (temperature scaling), for the slope.
    .. [2] Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to Regularized
       Likelihood Methods", Advances in Large Margin Classifiers, 1999, for the evidence.
    """

    slope: float
    evidence_slope: float
    size_slope: float
    evidence_intercept: float
    thresholds: np.ndarray = field(repr=False)
    true_positive_rates: np.ndarray = field(repr=False)
    false_positive_rates: np.ndarray = field(repr=False)
    other_scores: np.ndarray = field(repr=False)
    other_counts: np.ndarray = field(repr=False)

    def probability(self, scores: ArrayLike, n_items: int, share: float = 0.5) -> np.ndarray:
        """Probability of each item found that it is the query's.

        Parameters
        ----------
        scores : array-like, shape (n_queries, k)
            Descending scores of `top_k` or of `RetrievalIndex.search`, with the ranking of the
            calibration. A longer list is more accurate: of items that are not in it, only the
            expected likelihood is known.
        n_items : int
            Number of items in the gallery, at least k.
        share : float, default=0.5
            Probability π that the gallery holds the query's item.

        Returns
        -------
        ndarray, shape (n_queries, k)
            Each row adds up to at most 1; the rest is the probability that the right item is not
            in the list.

        Raises
        ------
        ValueError
            If the scores are no matrix, are more than `n_items`, or the share is not in (0, 1].
        """
        scores = to_array(scores, np.float64)
        if scores.ndim != 2 or not 1 <= scores.shape[1] <= n_items:
            raise ValueError(
                f"Expected scores of shape (n_queries, k) with k from 1 to n_items = {n_items}, "
                f"got {scores.shape}."
            )
        if not 0 < share <= 1:
            raise ValueError(f"Expected share to be above 0 and at most 1, got {share!r}.")
        total = np.logaddexp.reduce(self.slope * scores, axis=1)
        if scores.shape[1] < n_items:
            rest = self._expected(scores[:, -1]) + np.log(n_items - scores.shape[1])
            total = np.logaddexp(total, rest)
        odds = self.evidence_slope * (total - np.log(n_items)) + self.evidence_intercept
        odds = odds + self.size_slope * np.log(n_items)
        with np.errstate(divide="ignore"):  # a share of 1 leaves no doubt
            odds = odds + np.log(share) - np.log1p(-share)
        return np.asarray(np.exp(self.slope * scores - total[:, None]) * _expit(odds)[:, None])

    def _expected(self, bounds: np.ndarray) -> np.ndarray:
        """Logarithm of the mean L of pairs that do not match and score at most `bounds`."""
        sums = np.logaddexp.accumulate(self.slope * self.other_scores + np.log(self.other_counts))
        means = np.append(-np.inf, sums - np.log(self.other_counts.cumsum()))
        return np.asarray(means[np.searchsorted(self.other_scores, bounds, side="right")])

    def threshold(self, false_positive_rate: float) -> float:
        """Lowest score at which at most this share of the pairs that do not match is accepted.

        Parameters
        ----------
        false_positive_rate : float
            Share of the held-out pairs that do not match.

        Returns
        -------
        float
            A score; infinity if even the best held-out match exceeds the rate.

        Raises
        ------
        ValueError
            If the rate is not between 0 and 1.
        """
        if not 0 <= false_positive_rate <= 1:
            raise ValueError(
                f"Expected false_positive_rate to be from 0 to 1, got {false_positive_rate!r}."
            )
        allowed = np.flatnonzero(self.false_positive_rates <= false_positive_rate)
        return float(self.thresholds[allowed[-1]]) if len(allowed) else float("inf")

    @property
    def auc(self) -> float:
        """Area under the ROC: probability that a match scores higher than another pair."""
        return float(1 - self.false_positive_rates.mean())


def calibrate_matches(
    scores: ViewsLike,
    query: str,
    target: str,
    *,
    similarity: Similarity | None = None,
    weighting: Weighting | None = "auto",
    estimator: Any = None,
    hubness: str | CSLS | None = None,
    bank: ViewsLike | None = None,
) -> MatchCalibration:
    """Calibrate the probability of a match on held-out searches.

    Every held-out query is compared with all held-out items. The slope of `MatchCalibration` is
    that with the largest likelihood of the queries' own items. Then the odds that a gallery holds
    them are fitted to searches with and without the own items, in galleries of several sizes. This
    takes about a dozen passes over all pairs, in blocks; a thousand objects are enough.

    Parameters
    ----------
    scores : Views, mapping or list of matrices, each of shape (n_rows, n_components)
        Projected held-out rows, or with an `estimator` the views to project. The rows must not be
        those the estimator was fitted to, whose scores are too high.
    query, target : str
        Views of the queries and of the items.
    similarity, weighting, estimator, hubness, bank
        As in `evaluate_retrieval`, and as in the searches whose scores are to be interpreted.

    Returns
    -------
    MatchCalibration
        Probability of a match, thresholds of scores, and the ROC.

    Raises
    ------
    ValueError
        If a view is unknown, the views share no objects, or all pairs match.

    Warns
    -----
    UserWarning
        If queries have several right items, which share the probability of a match.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.retrieval import calibrate_matches, top_k
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(403, 30))
    >>> image, text = (shared + 0.4 * rng.normal(size=shared.shape) for _ in range(2))
    >>> held_out = {"image": image[:200], "text": text[:200]}
    >>> calibration = calibrate_matches(held_out, "text", "image")
    >>> similarities, _ = top_k(text[398:], image[200:400], k=10)  # the last three have no image
    >>> calibration.probability(similarities, n_items=200)[:, 0].round(2)
    array([0.71, 1.  , 0.  , 0.  , 0.  ])
    """
    ranking = asked_ranking(scores, estimator, similarity, weighting, hubness, bank)
    collection = Collection.of(scores, ranking.project)
    task = Task(collection, (query,), (target,), exclude_self=False)
    lists = task.ranked(ranking)("pairs")
    matches, low, high, n_pairs, most = [], np.inf, -np.inf, 0, 1
    for values, is_match in lists.scored_pairs():
        if is_match.all(axis=1).any():
            raise ValueError(
                "All items match a query, so that there is nothing to compare with. Pass rows of "
                "several objects."
            )
        matches.append(values[is_match])
        low, high = min(low, float(values.min())), max(high, float(values.max()))
        n_pairs += values.size
        most = max(most, int(is_match.sum(axis=1).max(initial=0)))
    if most > 1:
        warn(
            f"Queries have up to {most} right items in {target!r}, which share the probability of "
            "a match: that of one item is too small. The sum over a list is the probability that a "
            "right one is in it."
        )
    thresholds = -np.sort(-np.concatenate(matches).astype(np.float64))
    n_matches = len(thresholds)
    above, counts, sums = _others(lists, thresholds, low, high)
    held = counts > 0
    slope = _slope(lists, high - low)
    return MatchCalibration(
        slope,
        *_logistic(*_evidence(lists, slope)),
        thresholds,
        np.searchsorted(-thresholds, -thresholds, side="right") / n_matches,
        above / (n_pairs - n_matches),
        sums[held] / counts[held],
        counts[held],
    )


def _others(
    lists: RankedLists, thresholds: np.ndarray, low: float, high: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that do not match: how many reach each threshold, and counts and sums by bin."""
    ascending = thresholds[::-1]
    passed = np.zeros(len(ascending) + 1, dtype=np.int64)  # pairs by number of thresholds reached
    counts, sums = np.zeros(_BINS, dtype=np.int64), np.zeros(_BINS)
    width = (high - low) / _BINS or 1.0
    for values, is_match in lists.scored_pairs():
        others = values[~is_match].astype(np.float64)
        n_reached = np.searchsorted(ascending, others, side="right")
        passed += np.bincount(n_reached, minlength=len(passed))
        bins = np.minimum(((others - low) / width).astype(np.intp), _BINS - 1)
        counts += np.bincount(bins, minlength=_BINS)
        sums += np.bincount(bins, weights=others, minlength=_BINS)
    return passed[::-1].cumsum()[:-1], counts, sums


def _slope(lists: RankedLists, width: float) -> float:
    """The slope a that maximizes Σ log(Σ_own exp(a s) / Σ_all exp(a s)) over the queries."""
    from scipy.optimize import minimize_scalar

    def loss(log_slope: float) -> float:
        total, n_queries = 0.0, 0
        for values, is_match in lists.scored_pairs():
            own, others = _log_sums(values, is_match, np.exp(log_slope))
            total += float((np.logaddexp(own, others) - own).sum())
            n_queries += len(values)
        return total / n_queries

    if not width:
        return 1.0
    bounds = np.log(1e-3 / width), np.log(1e4 / width)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(found.x))


def _evidence(lists: RankedLists, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """log(Σ L / n), log n and weights of searches for every query, with its own items and without.

    Where scores are not those of Gaussian views, odds change with the size of a gallery otherwise
    than by Bayes' rule. Searches of random parts of the items show how. Places in the ranked list
    are drawn, not rows, so that the order of rows does not matter.
    """
    held, missing = [], []
    for values, is_match in lists.scored_pairs():
        ranked = np.lexsort((is_match, values))
        values, is_match = (np.take_along_axis(own, ranked, axis=1) for own in (values, is_match))
        own, _ = _log_sums(values, is_match, slope)
        n_own = is_match.sum(axis=1)
        places = np.random.RandomState(0).permutation(values.shape[1])
        for n_parts in _PARTS:
            for part in np.array_split(places, min(n_parts, len(places))):
                n_others = (~is_match[:, part]).sum(axis=1)
                seen = n_others > 0
                _, others = _log_sums(values[:, part][seen], is_match[:, part][seen], slope)
                n_all, weights = n_own[seen] + n_others[seen], np.full(seen.sum(), 1 / n_parts)
                whole = np.logaddexp(own[seen], others)
                held.append([whole - np.log(n_all), np.log(n_all), weights])
                missing.append([others - np.log(n_others[seen]), np.log(n_others[seen]), weights])
    return np.concatenate(held, axis=1).T, np.concatenate(missing, axis=1).T


def _log_sums(
    values: np.ndarray, is_match: np.ndarray, slope: float
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of Σ exp(slope * score) over each query's own items, and over the others."""
    logs = slope * values.astype(np.float64)
    largest = logs.max(axis=1)
    ratios = np.exp(logs - largest[:, None])
    with np.errstate(divide="ignore"):
        own = np.log(np.where(is_match, ratios, 0).sum(axis=1))
        others = np.log(np.where(is_match, 0, ratios).sum(axis=1))
    tiny = np.log(np.finfo(float).tiny)
    return np.maximum(own, tiny) + largest, np.maximum(others, tiny) + largest


def _logistic(held: np.ndarray, missing: np.ndarray) -> tuple[float, float, float]:
    """Slopes and intercept of the log odds of `held`, with the targets of Platt's section 2.2."""
    from scipy.optimize import minimize

    x, weights = np.split(np.concatenate([held, missing]), [2], axis=1)
    weights, n = weights[:, 0] / weights.sum(), weights.sum() / 2
    centre, scale = weights @ x, x.std(axis=0)
    scale[scale == 0] = 1.0
    x = np.column_stack([(x - centre) / scale, np.ones(len(x))])
    targets = np.repeat([(n + 1) / (n + 2), 1 / (n + 2)], len(held))

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        odds = x @ line
        residuals = weights * (_expit(odds) - targets)
        return float(weights @ (np.logaddexp(0, odds) - targets * odds)), residuals @ x

    *slopes, intercept = minimize(loss, np.zeros(3), jac=True, method="BFGS").x
    slopes = np.array(slopes) / scale
    return float(slopes[0]), float(slopes[1]), float(intercept - slopes @ centre)


def _expit(odds: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -odds))
