"""What a comparison measures of held-out objects, and what that says of a larger gallery.

Values of objects are ranks of their counterparts for the goal "object", and average precisions for
the goal "class": arrays (n_objects, n_directions), NaN where an object is no query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import gammaln

from mvcca.model_selection.goals import RankedSample, Value
from mvcca.model_selection.groups import Groups

LEVEL = 0.05  # of tests
_NORMAL = 1.96  # quantile of the normal distribution
_SPREAD = 2  # of differences on new rows, in standard errors over objects of the same models
_CANNOT_WIN = 3.0  # standard errors behind the best method
_LEAST_GALLERY = 8  # from which sizes are extrapolated: a quarter has two items


@dataclass(frozen=True, eq=False)
class Standing:
    """Values of one method for a goal, or by a measure, at the settings that the folds chose.

    Attributes
    ----------
    goal : {"object", "class"} or str
        What is measured: a goal, or a measure that the user names.
    scores : mapping of int to float
        Measure that chooses, by number of the fold: MRR, or mean average precision.
    of_folds : mapping of int to ndarray, shape (n_objects, n_directions)
        Values of the objects by number of the fold.
    galleries : mapping of int to ndarray, shape (n_directions,)
        Number of items that are searched, by number of the fold.
    groups : mapping of int to ndarray, shape (n_objects,)
        Groups of objects that depend on each other, by number of the fold.
    by_measure : bool
        Whether values are those of a measure that the user gave, the larger the better.
    """

    goal: str
    scores: Mapping[int, float]
    of_folds: Mapping[int, np.ndarray]
    galleries: Mapping[int, Sequence[int]]
    groups: Mapping[int, np.ndarray]
    by_measure: bool = False

    @classmethod
    def of(
        cls,
        goal: str,
        values: Mapping[int, Value],
        rows: Mapping[int, np.ndarray],
        groups: Groups | None,
        by_measure: bool,
    ) -> Standing:
        """The values of objects, by number of the fold; `rows` are their places in the data."""
        return cls(
            goal,
            {n: own.score for n, own in values.items()},
            {n: own.of_objects for n, own in values.items() if own.of_objects is not None},
            {n: own.n_items for n, own in values.items()},
            {n: own if groups is None else groups.codes[own] for n, own in rows.items()},
            by_measure,
        )

    @property
    def value(self) -> float:
        """Mean over the folds of the measure that chooses."""
        return float(np.mean(list(self.scores.values())))

    @property
    def gallery(self) -> int:
        """Number of items that a query searches: the mean over folds and directions, rounded."""
        return round(self._size)

    @property
    def _size(self) -> float:
        return float(np.mean([np.mean(self.galleries[n]) for n in self.of_folds]))

    def shown(self) -> float:
        """The measure to show in the gallery of a fold: R@1, or mean average precision."""
        return self.recall() if self._are_ranks else self.value

    @property
    def _are_ranks(self) -> bool:
        return self.goal == "object" and not self.by_measure

    def recall(self, share: float = 1.0) -> float:
        """R@1 in galleries of this share of those of the folds, exact."""
        return self._rarefied(share, rarefied_recall)

    def reciprocal_rank(self, share: float = 1.0) -> float:
        """MRR in galleries of this share of those of the folds, exact."""
        return self._rarefied(share, rarefied_reciprocal_rank)

    def _rarefied(self, share: float, expected: object) -> float:
        values = []
        for number, ranks in self.of_folds.items():
            sizes = self.galleries[number]
            columns = [
                expected(column[~np.isnan(column)], int(g), _part(g, share))  # type: ignore[operator]
                for column, g in zip(ranks.T, sizes, strict=True)
            ]
            values.append(np.mean([own.mean() for own in columns if len(own)]))
        return float(np.mean(values))

    def at(self, gallery_size: int) -> tuple[float, float]:
        """R@1 and MRR in a gallery of this size; NaN if the folds are too small to tell.

        A smaller gallery than that of the folds is exact; for a larger one, the logit is continued
        as a line in the logarithm of the size, from a quarter of the gallery through all of it.
        """
        size = self._size
        if gallery_size <= size:
            share = gallery_size / size
            return self.recall(share), self.reciprocal_rank(share)
        if size < _LEAST_GALLERY:
            return np.nan, np.nan
        quarter = [int(g) // 4 / g for n in self.of_folds for g in self.galleries[n]]
        share = float(np.mean(quarter))
        steps = np.log(gallery_size / size) / -np.log(share)
        return (
            continued(self.recall(), self.recall(share), steps),
            continued(self.reciprocal_rank(), self.reciprocal_rank(share), steps),
        )

    def told_of(self, gallery_size: int) -> int:
        """The size of the gallery that R@1 can be told of: this one, or else that of the folds."""
        return gallery_size if self._is_known(gallery_size) else self.gallery

    def _is_known(self, gallery_size: int) -> bool:
        return self._are_ranks and not np.isnan(self.at(gallery_size)[0])

    def chance(self, gallery_size: int | None = None) -> float:
        """R@1 of random scores where R@1 is told of this size, by default in those of the folds."""
        share = 1.0
        if gallery_size is not None and self._is_known(gallery_size):
            share = gallery_size / self._size
        sizes = (np.asarray(self.galleries[n]) for n in self.of_folds)  # may differ by direction
        return float(np.mean([np.mean(1 / np.maximum(own * share, 1)) for own in sizes]))

    def by_direction(self) -> dict[str, dict[int, np.ndarray]]:
        """Measures in the gallery of the fold by number of the fold, one value per direction."""
        if not self._are_ranks:
            name = "map@50" if self.goal == "class" else self.goal
            return {name: {n: np.nanmean(own, axis=0) for n, own in self.of_folds.items()}}
        return {
            name: {n: of_ranks(own) for n, own in self.of_folds.items()}
            for name, of_ranks in _OF_RANKS.items()
        }

    def of_objects(self) -> np.ndarray:
        """Measure of each object in the gallery of its fold, one value for each group."""
        return np.concatenate([self._by_group(n, self._shown_of(n)) for n in self.of_folds])

    @property
    def reach(self) -> float:
        """Half the width of the interval of what is shown.

        Twice the normal interval over objects: it covers the difference on new rows of models of
        new training rows nine times in ten or more.
        """
        return _SPREAD * _NORMAL * standard_error(self.of_objects())

    def behind(self, best: Standing) -> np.ndarray:
        """Differences from another method in the measure that chooses, by group of objects."""
        parts = [
            self._by_group(n, best.qualities(n) - self.qualities(n))
            for n in self.of_folds
            if n in best.of_folds
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def cannot_win(self, best: Standing) -> bool:
        """Whether the method is behind by more than three standard errors over objects."""
        differences = self.behind(best)
        error = standard_error(differences)
        return bool(differences.size and differences.mean() > _CANNOT_WIN * error)

    def is_worse(self, best: Standing, test_share: float) -> bool:
        """Whether a test finds it worse than another method, at the 5 % level."""
        common = [n for n in self.scores if n in best.scores]
        if len(common) > 1:
            differences = np.array([best.scores[n] - self.scores[n] for n in common])
            p_value = corrected_t_test(differences, test_share)
        else:
            differences = self.behind(best)
            p_value = paired_test(differences) if len(differences) > 1 else 1.0
        return bool(p_value < LEVEL and differences.mean() > 0)

    def recall_curve(self, length: int) -> np.ndarray:
        """R@1, R@2, ... in the gallery of the fold, as means over directions and folds."""
        places = np.arange(1, length + 1)
        curves = [
            np.mean(column[~np.isnan(column), None] <= places, axis=0)
            for ranks in self.of_folds.values()
            for column in ranks.T
        ]
        return np.asarray(np.mean(curves, axis=0))

    def qualities(self, number: int) -> np.ndarray:
        """Measure that chooses of each object on a fold, as the mean over directions."""
        values = self.of_folds[number]
        return _of_directions(1 / values if self._are_ranks else values)

    def _shown_of(self, number: int) -> np.ndarray:
        values = self.of_folds[number]
        hits = np.where(np.isnan(values), np.nan, values <= 1)
        return _of_directions(hits if self._are_ranks else values)

    def _by_group(self, number: int, values: np.ndarray) -> np.ndarray:
        known = np.isfinite(values)
        if not known.any():
            return np.zeros(0)
        return by_group(
            values[known], np.unique(self.groups[number][known], return_inverse=True)[1]
        )


def _of_directions(values: np.ndarray) -> np.ndarray:
    """Mean over the directions in which an object is a query; NaN if there is none."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=1)
    return np.divide(
        total, known.sum(axis=1), out=np.full(len(values), np.nan), where=known.any(axis=1)
    )


_OF_RANKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "r@1": lambda ranks: np.nanmean(np.where(np.isnan(ranks), np.nan, ranks <= 1), axis=0),
    "r@10": lambda ranks: np.nanmean(np.where(np.isnan(ranks), np.nan, ranks <= 10), axis=0),
    "mrr": lambda ranks: np.nanmean(1 / ranks, axis=0),
}


def standard_error(values: np.ndarray) -> float:
    """Standard error of the mean; NaN of a single value."""
    n = len(values)
    return float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def _part(gallery: float, share: float) -> int:
    return max(1, min(int(gallery), round(share * gallery)))


# ---- tests -------------------------------------------------------------------------------------


def corrected_t_test(differences: np.ndarray, test_share: float) -> float:
    """Two-sided p-value of the corrected resampled t-test of differences (n_folds,)."""
    # The test of Nadeau and Bengio, "Inference for the Generalization Error", Machine Learning 52,
    # 2003, section 4.1. With the differences d_j between two methods on J folds, mean m and
    # variance s²,
    #
    #     t = m / √((1/J + n_test/n_train) s²),   J - 1 degrees of freedom.
    #
    # The training parts of different folds overlap, so that the d_j are dependent; the term
    # n_test/n_train, `test_share`, accounts for it. The test assumes that they are normal and that
    # their correlation is n_test / (n_test + n_train).
    n, mean = len(differences), float(np.mean(differences))
    variance = (1 / n + test_share) * float(np.var(differences, ddof=1))
    if variance == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), n - 1))


def paired_test(differences: np.ndarray) -> float:
    """Two-sided p-value of a paired t-test over objects.

    It compares two fitted models on independent objects; that other training objects would give
    other models is not taken into account.
    """
    if np.ptp(differences) == 0:
        return 0.0 if differences[0] else 1.0
    return float(stats.ttest_1samp(differences, 0).pvalue)


def by_group(differences: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Differences of objects as one value per group, with the same mean.

    Objects of a group depend on each other, the sums of groups do not. Groups of one object each
    leave the differences as they are.
    """
    sums = np.bincount(groups, differences)[np.unique(groups)]
    return sums * (len(sums) / len(differences))


# ---- galleries of another size -------------------------------------------------------------------


def rarefied_recall(ranks: np.ndarray, gallery: int, part: int) -> np.ndarray:
    """Probability of rank 1 if so many items of the gallery, the right one included, are drawn.

    It is C(g - r, h - 1) / C(g - 1, h - 1); equal scores count as better ones by half of them.
    """
    before = np.ceil(np.minimum(ranks, gallery)) - 1  # items before the right one
    return np.exp(_log_choose(gallery - 1 - before, part - 1) - _log_choose(gallery - 1, part - 1))


def rarefied_reciprocal_rank(ranks: np.ndarray, gallery: int, part: int) -> np.ndarray:
    """Expected 1 / (1 + j), j of the better items among those that are drawn.

    The sum over the hypergeometric distribution of j is g/(h r) (1 - C(g - r, h) / C(g, h)).
    """
    ranks = np.minimum(ranks, gallery)
    none = np.exp(_log_choose(gallery - ranks, part) - _log_choose(gallery, part))
    return gallery / (part * ranks) * (1 - none)


def _log_choose(n: np.ndarray | float, k: int) -> np.ndarray:
    """Logarithm of C(n, k); -inf if n < k."""
    n = np.asarray(n, dtype=float)
    enough = np.where(n >= k, n, k)
    found = gammaln(enough + 1) - gammaln(k + 1) - gammaln(enough - k + 1)
    return np.where(n >= k, found, -np.inf)


def continued(whole: float, part: float, steps: float) -> float:
    """A share in a larger gallery, from those in a gallery and in a part of it.

    The logit changes by the same amount for equal factors of the size.
    """
    if not (0 < whole < 1 and 0 < part < 1):
        return whole
    logit = np.log(whole / (1 - whole))
    change = min(0.0, logit - np.log(part / (1 - part)))  # more items never help
    return float(1 / (1 + np.exp(-(logit + steps * change))))


# ---- random scores -------------------------------------------------------------------------------


def chance_precision(samples: Sequence[RankedSample]) -> float:
    """Expected mean average precision of random scores on these held-out rows."""
    return float(np.mean([_chance_of(sample) for sample in samples]))


def _chance_of(sample: RankedSample) -> float:
    assert sample.asked is not None
    found = []
    for p, q in sample.directions:
        shared, pairs = sample.share_labels[p, q], sample.counterparts[p, q]
        n_items, counts = shared.shape[1], np.count_nonzero(shared, axis=1)
        sizes = np.full(len(shared), n_items)
        counts[pairs[0]] -= shared[pairs]
        sizes[pairs[0]] -= 1
        n, R = sizes[counts > 0], counts[counts > 0]
        k = np.minimum(sample.asked.length(n_items), n)
        harmonic = np.cumsum(1 / np.arange(1, n_items + 1))[k - 1]
        precision = harmonic + (k - harmonic) * (R - 1) / np.maximum(n - 1, 1)
        found.append(np.mean(R / n / np.minimum(k, R) * precision) if len(R) else 0.0)
    return float(np.mean(found))
