"""Measures of similarity between two layers, and what unrelated layers would have.

CKA takes sums over rows, and mutual neighbours the rows. The others are functions of the spectra of
both layers and of T = Λ_x^-½ V_xᵀ C_xy V_y Λ_y^-½, the correlations of their principal components.
Of layers that are unrelated, T = U_xᵀU_y for random orthonormal columns U_y in n - 1 dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from mvcca.interop.representations._sources import LayerRows, Source
from mvcca.machine import lapack
from mvcca.problem import Whitened
from mvcca.problem.whitened import canonical
from mvcca.retrieval import top_k

_SMALLEST = 1e-9  # of the largest eigenvalue, below which one is rounding
_ALIKE = 100.0  # ratio of variances up to which columns are left in their units
_CERTAIN = 1e-6  # distance from 1 below which unrelated layers agree perfectly up to rounding
_LEAST_MARGIN = 2.0  # deviations of unrelated layers between them and layers that agree perfectly
_VARIANCE = 0.99  # that the principal components of SVCCA explain
_DRAWS = 20

# A measure of two layers, and its mean and standard deviation if they were unrelated.
Calibrated: TypeAlias = tuple[float, float, float]


class LayerPair(NamedTuple):
    """Two layers, the correlations of their principal components, and a ridge."""

    x: Whitened
    y: Whitened
    T: np.ndarray
    reg: float = 0.0  # in units of the mean variance of each layer


def spectrum_of(name: str, scatter: np.ndarray, rounding: np.ndarray, n_rows: int) -> Whitened:
    """Principal axes of a layer, without those of rounding.

    `rounding` holds the squared lengths that centred columns have if they are constant. Where
    columns differ in scale, those of length 1 tell which directions exist: next to a column in
    large units, all others would pass for rounding.
    """
    lengths = np.diag(scatter)
    real = lengths > rounding
    if not real.any():
        raise no_variance(name)
    if lengths[real].max() <= _ALIKE * lengths[real].min():
        alike = scatter if real.all() else np.where(np.outer(real, real), scatter, 0)
        return Whitened.of_covariance(alike, least=_SMALLEST).leading(n_rows - 1)
    units = np.sqrt(np.where(real, lengths, np.inf))
    found = Whitened.of_covariance(scatter / units / units[:, None], least=_SMALLEST)
    return found.leading(n_rows - 1).in_units(np.where(real, units, 0))


def no_variance(name: str) -> ValueError:
    """The error about a layer without a direction."""
    return ValueError(f"Layer {name!r} has no variance: all its rows are equal.")


def pair_of(x: Whitened, y: Whitened, cross: np.ndarray, reg: float) -> LayerPair:
    """Two layers with cross-products `cross`."""
    return LayerPair(x, y, x.weights.T @ cross @ y.weights, reg)


def procrustes(pair: LayerPair) -> float:
    """‖C_xy‖_* / √(tr C_xx tr C_yy), the cosine of the Procrustes distance."""
    of_x, of_y = pair.x.values, pair.y.values
    norm = lapack.singular_values(of_x[:, None] * pair.T * of_y).sum()
    return float(norm / np.sqrt((of_x @ of_x) * (of_y @ of_y)))


def predictivity(pair: LayerPair) -> float:
    """Share of the variance of y that is predicted from x, tr(C_yx C_xx⁻¹ C_xy) / tr C_yy."""
    variances = pair.y.values**2
    return float((pair.T**2 @ variances).sum() / variances.sum())


def mean_correlation(pair: LayerPair) -> float:
    """Mean canonical correlation, with a ridge that of regularized CCA."""
    return float(lapack.singular_values(_with_ridge(pair)).mean())


def mean_squared_correlation(pair: LayerPair) -> float:
    """Mean squared canonical correlation, with a ridge that of regularized CCA."""
    return float((_with_ridge(pair) ** 2).sum() / min(pair.T.shape))


def svcca(pair: LayerPair) -> float:
    """Mean canonical correlation of the principal components that explain 99 % of the variance."""
    main = pair.T[: _n_main(pair.x), : _n_main(pair.y)]
    return float(lapack.singular_values(main).mean())


def pwcca(pair: LayerPair) -> float:
    """Mean canonical correlation, weighted by Σ_j |⟨h_i, x_j⟩| of variates h_i and neurons x_j."""
    rho, left, _ = canonical(pair.T, pair.x, pair.y)
    products = (pair.x.axes * pair.x.values) @ left
    n_equal = int((rho > 1 - _CERTAIN).sum())
    if n_equal > 1:  # any rotation of these variates would do: take their principal axes
        axes, sizes, _ = lapack.svd(products[:, :n_equal])
        products[:, :n_equal] = axes * sizes
    weights = np.abs(products).sum(axis=0)
    return float(weights @ rho / weights.sum())


BY_SPECTRA: dict[str, Callable[[LayerPair], float]] = {
    "procrustes": procrustes,
    "predictivity": predictivity,
    "mean_correlation": mean_correlation,
    "mean_squared_correlation": mean_squared_correlation,
    "svcca": svcca,
    "pwcca": pwcca,
}
MEASURES = ("cka_unbiased", "cka", *BY_SPECTRA, "mutual_knn")
NOT_SYMMETRIC = ("predictivity", "pwcca")


def _with_ridge(pair: LayerPair) -> np.ndarray:
    """(Λ_x + r_x)^-½ V_xᵀ C_xy V_y (Λ_y + r_y)^-½."""
    return pair.x.factors(pair.reg)[:, None] * pair.T * pair.y.factors(pair.reg)


def _n_main(x: Whitened) -> int:
    shares = np.cumsum(x.values**2) / np.sum(x.values**2)
    return min(int(np.searchsorted(shares, _VARIANCE)) + 1, len(shares))


# ---- of unrelated layers -------------------------------------------------------------------------


def above_unrelated(value: np.ndarray, expected: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Values of a measure so that unrelated layers have 0 and perfect agreement 1.

    (s - E) / (1 - E) is 0/0 where any layers agree perfectly, as those of n - 1 dimensions do in n
    rows, and noise where perfect agreement is within two deviations of unrelated layers. The result
    is NaN there.
    """
    is_told = 1 - expected > np.maximum(_CERTAIN, _LEAST_MARGIN * deviation)
    nowhere = np.full(np.shape(value), np.nan)
    return np.divide(value - expected, 1 - expected, out=nowhere, where=is_told)


def is_one_for_any(expected: np.ndarray) -> np.ndarray:
    """Whether unrelated layers agree perfectly, up to rounding."""
    return np.asarray(1 - expected <= _CERTAIN)


def by_spectra(
    name: str, pair: LayerPair, n_rows: int, calibrate: bool, rng: np.random.Generator
) -> Calibrated:
    """A measure of `BY_SPECTRA`; uncalibrated, with moments only if it may be 1 for any layers."""
    measure = BY_SPECTRA[name]
    value = measure(pair)
    if calibrate:
        return value, *unrelated(measure, pair, n_rows, rng, _DRAWS)
    if value > 1 - _CERTAIN and max(pair.T.shape) >= n_rows - 1:
        return value, *unrelated(measure, pair, n_rows, rng, 2)
    return value, np.nan, np.nan


def unrelated(
    measure: Callable[[LayerPair], float],
    pair: LayerPair,
    n_rows: int,
    rng: np.random.Generator,
    n_draws: int,
) -> tuple[float, float]:
    """Mean and standard deviation of a measure of random layers with these spectra."""
    p, q = pair.T.shape
    random = (random_correlations(p, q, n_rows - 1, rng) for _ in range(n_draws))
    drawn = [measure(pair._replace(T=T)) for T in random]
    return float(np.mean(drawn)), float(np.std(drawn, ddof=1))


def random_correlations(p: int, q: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """First p rows of a random orthonormal basis of q columns in `size` dimensions.

    Z (ZᵀZ)^-½ of normal Z up to a rotation; rows of Z beyond p enter by their Wishart scatter only.
    """
    Z = rng.standard_normal((p, q))
    rest = size - p
    if rest > q:
        factor = np.tril(rng.standard_normal((q, q)), -1)
        factor[np.diag_indices(q)] = np.sqrt(rng.chisquare(rest - np.arange(q)))
        scatter = factor @ factor.T
    else:
        others = rng.standard_normal((rest, q))
        scatter = others.T @ others
    R = cholesky(Z.T @ Z + scatter)
    return np.asarray(solve_triangular(R, Z.T, trans="T").T)


# ---- CKA -----------------------------------------------------------------------------------------


def cka(source: Source, i: int, j: int) -> Calibrated:
    """‖C_xy‖² / (‖C_xx‖ ‖C_yy‖), with its exact moments under permutations of the rows."""
    n, (P, _), (Q, _) = source.n_rows, source.blocks_of(i), source.blocks_of(j)
    a, a2, a4 = _traces(source, P)
    b, b2, b4 = _traces(source, Q)
    scale = np.sqrt(a2 * b2)
    variance = 2 * ((n - 1) * a2 - a**2) * ((n - 1) * b2 - b**2)
    variance /= (n - 1) ** 2 * (n + 1) * (n - 2)
    by_lengths = [
        n * (n + 1) * four - (n - 1) * (one**2 + 2 * two)
        for one, two, four in ((a, a2, a4), (b, b2, b4))
    ]
    variance += by_lengths[0] * by_lengths[1] / ((n + 1) * n * (n - 1) * (n - 2) * (n - 3))
    value = np.linalg.norm(source.cross(P, Q)) ** 2 / scale
    return float(value), a * b / (n - 1) / scale, float(np.sqrt(max(variance, 0)) / scale)


def cka_unbiased(source: Source, i: int, j: int) -> Calibrated:
    """HSIC₁(x, y) / √(HSIC₁(x) HSIC₁(y)).

    Centred similarities have mean 0 and no diagonal here, so that under permutations the mean is 0
    and the variance 2 / (n (n - 3)), whatever the layers.
    """
    n, of_x, of_y = source.n_rows, source.blocks_of(i), source.blocks_of(j)
    if i == j:
        value = 1.0
    else:
        pairs = {(P, Q) for P in of_x for Q in of_y}
        between = np.mean([hsic(source, P, Q) for P, Q in sorted(pairs)])
        within = hsic(source, *of_x) * hsic(source, *of_y)
        value = float(between / np.sqrt(within)) if within > 0 else np.nan
    return value, 0.0, float(np.sqrt(2 / (n * (n - 3))))


def hsic(source: Source, P: int, Q: int) -> float:
    """The unbiased estimate HSIC₁ from sums over centred rows."""
    n, lengths = source.n_rows, source.lengths(P, Q)
    squares = np.linalg.norm(source.cross(P, Q)) ** 2 - lengths
    traces = np.trace(source.cross(P, P)) * np.trace(source.cross(Q, Q))
    whole = squares + traces / ((n - 1) * (n - 2)) - 2 * lengths / (n - 2)
    return float(whole / (n * (n - 3)))


def _traces(source: Source, P: int) -> tuple[float, float, float]:
    scatter = source.cross(P, P)
    return float(np.trace(scatter)), float(np.linalg.norm(scatter) ** 2), source.lengths(P, P)


# ---- neighbours ----------------------------------------------------------------------------------


def neighbors_of(rows: LayerRows, layer: int, k: int) -> np.ndarray:
    """The k nearest other rows of each row by cosine, (n, k)."""
    X = np.asarray(rows.matrices[layer], dtype=float)
    found = top_k(X, X, k + 1, "cosine")[1]
    own = found == np.arange(len(X))[:, None]
    own[~own.any(axis=1), -1] = True  # among equal rows, the row itself may come after the last
    return found[~own].reshape(len(X), k)


def mutual_knn(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> Calibrated:
    """Share of a row's nearest rows that are the same in both layers."""
    n, k = x.shape
    drawn = []
    for _ in range(_DRAWS):
        order = rng.permutation(n)
        permuted = np.empty_like(y)
        permuted[order] = order[y]
        drawn.append(_shared(x, permuted))
    return _shared(x, y), k / (n - 1), float(np.std(drawn, ddof=1))


def _shared(x: np.ndarray, y: np.ndarray) -> float:
    n, k = x.shape
    base = np.arange(n)[:, None] * n
    return len(np.intersect1d(base + x, base + y, assume_unique=True)) / (n * k)
