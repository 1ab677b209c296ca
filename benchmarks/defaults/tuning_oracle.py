"""Tuning by folds in plain NumPy and SciPy: every fold, ridge, ranking and number in a loop.

It fits every fold to its own rows and ranks by full matrices of scores. `tuning_regret.py` and the
tests compare the package's search with it; only the formula of expected correlations and deviations
is the package's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import scipy.linalg

from mvcca.problem.expected import LARGEST_CORRELATION, Spectrum, expected_moments
from mvcca.statistics.pair_covariance import PairCovariance

RIDGES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LEAST = 1e-8  # singular values below this part of the first one are left out
N_NEIGHBORS = 10  # of CSLS


@dataclass(frozen=True, eq=False)
class Model:
    """Linear maps of views, and what rankings need to know of their scores."""

    means: list[np.ndarray]  # of each view, (d,)
    weights: list[np.ndarray]  # of each view, (d, k)
    correlations: dict[tuple[int, int], np.ndarray]  # expected, of each pair of views, (k,)
    deviations: list[np.ndarray]  # of each view's scores, (k,)

    def scores(self, views: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [(X - m) @ W for X, m, W in zip(views, self.means, self.weights, strict=True)]


# ---- fits ----------------------------------------------------------------------------------------


def covariances(views: Sequence[np.ndarray]) -> dict[tuple[int, int], np.ndarray]:
    """Σ_pq with divisor n, p <= q."""
    centred = [X - X.mean(axis=0) for X in views]
    n, numbers = len(centred[0]), range(len(centred))
    return {(p, q): centred[p].T @ centred[q] / n for p in numbers for q in numbers if p <= q}


def ridge_cca(
    views: Sequence[np.ndarray], ridges: Iterable[float] = RIDGES
) -> Iterable[tuple[float, Model]]:
    """CCA of two views, or MVCCA of more, with all components, for each ridge."""
    S = covariances(views)
    return _models(views, S, {p: S[p, p] for p in range(len(views))}, S, ridges)


def ridge_mlcca(
    views: Sequence[np.ndarray], alike: np.ndarray, ridges: Iterable[float] = RIDGES
) -> Iterable[tuple[float, Model]]:
    """MLCCA with label similarities (n, n) of the rows, with all components, for each ridge."""
    # C_pq = Σ_ij f_ij x_i y_jᵀ / n² and C_pp = Σ_ij f_ij x_i x_iᵀ / n² of centred rows.
    n, numbers = len(alike), range(len(views))
    centred = [X - X.mean(axis=0) for X in views]
    between = {
        (p, q): centred[p].T @ alike @ centred[q] / n**2 for p, q in combinations(numbers, 2)
    }
    weights = alike.sum(axis=1)[:, None] / n**2
    within = {p: (Z * weights).T @ Z for p, Z in enumerate(centred)}
    return _models(views, between, within, covariances(views), ridges)


def pls(views: Sequence[np.ndarray]) -> Model:
    """Singular vectors of the covariance of two views."""
    S = covariances(views)
    U, values, T = scipy.linalg.svd(S[0, 1], full_matrices=False)
    k = min(np.count_nonzero(values >= LEAST * values[0]), len(views[0]) - 2)
    return Model([X.mean(axis=0) for X in views], [U[:, :k], T[:k].T], {}, [])


def _models(
    views: Sequence[np.ndarray],
    between: Mapping[tuple[int, int], np.ndarray],
    within: Mapping[int, np.ndarray],
    covariance: Mapping[tuple[int, int], np.ndarray],
    ridges: Iterable[float],
) -> Iterable[tuple[float, Model]]:
    """Solve A w = ρ (B + r tr B / d) w for each ridge r; correlations from the covariance."""
    n, numbers = len(views[0]), range(len(views))
    means = [X.mean(axis=0) for X in views]
    spectra = {}
    for p in numbers:
        e, V = scipy.linalg.eigh(within[p])
        kept = e > e[-1] * len(e) * np.finfo(float).eps
        spectra[p] = e[kept], V[:, kept]
    rotated = {(p, q): spectra[p][1].T @ between[p, q] @ spectra[q][1] for p, q in between if p < q}
    for ridge in ridges:
        scales, freedom = {}, {}
        for p in numbers:
            e, unit = spectra[p][0], ridge * np.trace(within[p]) / len(within[p])
            scales[p], freedom[p] = (e + unit) ** -0.5, np.sum(e / (e + unit))
        white = {(p, q): scales[p][:, None] * X * scales[q] for (p, q), X in rotated.items()}
        ranks = [len(scales[p]) for p in numbers]
        if len(views) == 2:
            U, values, T = scipy.linalg.svd(white[0, 1], full_matrices=False)
            parts, k = [U, T.T], np.count_nonzero(values >= LEAST * values[0])
        else:
            starts = np.cumsum([0, *ranks])
            A = np.zeros((starts[-1], starts[-1]))
            for (p, q), X in white.items():
                A[starts[p] : starts[p + 1], starts[q] : starts[q + 1]] = X
            values, U = scipy.linalg.eigh(A + A.T)
            values, U = values[::-1], U[:, ::-1] * np.sqrt(len(views))
            parts = np.split(U, starts[1:-1])
            k = np.count_nonzero(values >= LEAST * values[0])
        k = min(k, n - 2, sorted(ranks)[-2])  # what two views can share
        W = [spectra[p][1] @ (scales[p][:, None] * parts[p]) for p in numbers]
        pairs = [
            PairCovariance(
                (f"{p}", f"{q}"), covariance[p, q], (covariance[p, p], covariance[q, q]), n
            )
            for p, q in combinations(numbers, 2)
        ]
        is_cca = len(views) == 2 and within[0] is covariance[0, 0]
        expected = expected_moments(
            {f"{p}": w for p, w in enumerate(W)},
            pairs,
            {f"{p}": freedom[p] for p in numbers},
            Spectrum(values, (1.0, 1.0), ranks) if is_cca else None,
        )
        assert expected is not None
        correlations = {
            (p, q): expected.correlations[p, q, :k] for p, q in combinations(numbers, 2)
        }
        deviations = [expected.deviations[f"{p}"][:k] for p in numbers]
        yield ridge, Model(means, [w[:, :k] for w in W], correlations, deviations)


# ---- rankings ------------------------------------------------------------------------------------


def profile_likelihood(A: np.ndarray, B: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Σ w a b / √(Σ v a² Σ v b²) of all pairs of rows."""
    w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
    return (A * w) @ B.T / np.sqrt(A**2 @ v)[:, None] / np.sqrt(B**2 @ v)


def likelihood(A: np.ndarray, B: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Σ w a b - Σ v (a² + b²) / 2 - Σ log(1 - ρ²) / 2 of scores in units of their deviations."""
    w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
    squares = (A**2 @ v)[:, None] + B**2 @ v
    return (A * w) @ B.T - squares / 2 - np.log(1 - rho**2).sum() / 2


def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    A, B = (Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    return A @ B.T


def similarities(
    name: str, model: Model, p: int, q: int, A: np.ndarray, B: np.ndarray, k: int
) -> np.ndarray:
    """All scores A of view p (rows) with all scores B of view q, by k components."""
    A, B = A[:, :k], B[:, :k]
    if name == "cosine":
        return cosine(A, B)
    if name == "profile-likelihood":
        mean = np.mean(list(model.correlations.values()), axis=0)
        return profile_likelihood(A, B, np.minimum(mean[:k], LARGEST_CORRELATION))
    A, B = A / model.deviations[p][:k], B / model.deviations[q][:k]
    return likelihood(
        A, B, np.minimum(model.correlations[min(p, q), max(p, q)][:k], LARGEST_CORRELATION)
    )


def ranked(
    name: str,
    model: Model,
    p: int,
    q: int,
    scores: Sequence[np.ndarray],
    bank: Sequence[np.ndarray],
    k: int,
) -> np.ndarray:
    """Similarities of queries of view p and items of view q by the name of a ranking."""
    name, _, csls = name.partition("+")
    found = similarities(name, model, p, q, scores[p], scores[q], k)
    if csls:
        of_bank = similarities(name, model, p, q, bank[p], scores[q], k)
        found = 2 * found - np.sort(of_bank, axis=0)[-N_NEIGHBORS:].mean(axis=0)
    return found


# ---- measures ------------------------------------------------------------------------------------


def mean_reciprocal_rank(found: np.ndarray) -> float:
    """Mean of 1 / rank of the paired row, ties averaged."""
    own = np.diag(found)[:, None]
    above, ties = (found > own).sum(axis=1), (found == own).sum(axis=1) - 1
    return float(np.mean(1 / (1 + above + ties / 2)))


def recall_at_1(found: np.ndarray) -> float:
    return float(np.mean((found > np.diag(found)[:, None]).sum(axis=1) == 0))


def mean_average_precision(found: np.ndarray, relevant: np.ndarray, length: int = 50) -> float:
    """Of the first rows, with divisor min(length, number of relevant rows)."""
    first = np.argpartition(-found, min(length, found.shape[1]) - 1, axis=1)[:, :length]
    order = np.argsort(-np.take_along_axis(found, first, axis=1), axis=1)
    hits = np.take_along_axis(relevant, np.take_along_axis(first, order, axis=1), axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    totals, most = (precision * hits).sum(axis=1), np.minimum(length, relevant.sum(axis=1))
    return float(np.mean(np.divide(totals, most, out=np.zeros(len(totals)), where=most > 0)))


def average_over_pairs(
    name: str,
    model: Model,
    scores: Sequence[np.ndarray],
    bank: Sequence[np.ndarray],
    k: int,
    measure: Callable[[np.ndarray], float],
) -> float:
    """A measure averaged over ordered pairs of views."""
    ways = permutations(range(len(scores)), 2)
    return float(np.mean([measure(ranked(name, model, p, q, scores, bank, k)) for p, q in ways]))


# ---- the search ----------------------------------------------------------------------------------


def numbers(most: int) -> list[int]:
    """1, 2, 3, 5, 8, 12, ... by factors of 1.5, up to two thirds of `most`, and `most`."""
    found, k = [], 1
    while 1.5 * k <= most:
        found.append(k)
        k = max(k + 1, round(1.5 * k + 1e-9))
    return [*found, most]


Setting = tuple[float, str, int]  # ridge, ranking, number of components; 0 of them is all


def grid_of(
    models: Iterable[tuple[float, Model]],
    rows: Sequence[np.ndarray],
    bank: Sequence[np.ndarray],
    rankings: Sequence[str],
    measure: Callable[[np.ndarray], float],
    all_numbers: bool,
) -> dict[Setting, float]:
    """The measure of rows for every ridge and ranking, and every number of components if asked."""
    found = {}
    for ridge, model in models:
        most = model.weights[0].shape[1]
        scores, of_bank = model.scores(rows), model.scores(bank)
        for name in rankings:
            for k in numbers(most) if all_numbers else [most]:
                value = average_over_pairs(name, model, scores, of_bank, k, measure)
                found[ridge, name, 0 if k == most else k] = value
    return found


def search(
    views: Sequence[np.ndarray],
    folds: Sequence[np.ndarray],
    fit: Callable[[np.ndarray], Iterable[tuple[float, Model]]],
    rankings: Sequence[str],
    measure_of: Callable[[np.ndarray], Callable[[np.ndarray], float]],
    all_numbers: bool = False,
    n_scored: int = 500,
) -> dict[Setting, np.ndarray]:
    """Figures (n_folds,) of every setting; `fit` and `measure_of` take the numbers of rows."""
    of_folds = []
    for f, fold in enumerate(folds):
        rest = np.concatenate([other for g, other in enumerate(folds) if g != f])
        scored, bank = fold[:n_scored], rest[:n_scored]
        rows, of_bank = ([X[part] for X in views] for part in (scored, bank))
        found = grid_of(fit(rest), rows, of_bank, rankings, measure_of(scored), all_numbers)
        of_folds.append(found)
    shared = set.intersection(*(set(found) for found in of_folds))  # numbers that all folds have
    return {key: np.array([found[key] for found in of_folds]) for key in shared}


def chosen(figures: Mapping[Setting, np.ndarray]) -> Setting:
    """The largest mean; fewer components only if better by more than one standard error."""

    def largest(keys: Iterable[Setting]) -> Setting:  # of equal ones, the largest ridge
        return max(keys, key=lambda key: (figures[key].mean(), key[0]))

    whole, rival = largest(key for key in figures if key[2] == 0), largest(figures)
    gain = figures[rival] - figures[whole]
    return rival if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)) else whole
