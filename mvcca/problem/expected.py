"""What to expect of scores on new rows.

Correlations of the training rows are optimistic: weights fit the noise of the rows that they were
found from, the more so the fewer rows there are per feature. `expected_moments` estimates how well
components agree on new rows, which is what a ranking needs to know, without a second fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks import as_block, namespace
from mvcca.problem.bias import SampleBias
from mvcca.statistics.pair_covariance import PairCovariance

__all__ = [
    "LARGEST_CORRELATION",
    "Expected",
    "Spectrum",
    "component_weights",
    "expected_correlation",
    "expected_covariances",
    "expected_moments",
    "profile_vectors",
    "score_correlations",
]

_MOST_VALUES = 500  # that stand for all correlations
LARGEST_CORRELATION = 0.999  # samples do not tell larger ones from 1, whose weight is infinite


@dataclass(frozen=True, eq=False)
class Expected:
    """Second moments of the scores of new rows.

    Attributes
    ----------
    mean : ndarray, shape (k,)
        Correlations averaged over the pairs of views, by the number of objects that they share.
    correlations : ndarray, shape (n_views, n_views, k)
        Of each pair of views. A pair that shares no rows has the mean of the others, and on the
        diagonal is the mean over the pairs of a view.
    deviations : dict of str to ndarray, shape (k,)
        Standard deviations of each view's scores.
    """

    mean: np.ndarray
    correlations: np.ndarray
    deviations: dict[str, np.ndarray]


def component_weights(correlations: np.ndarray) -> np.ndarray:
    """Factors √(ρ / (1 - ρ²)) of scores, the weights of a pair in the likelihood ratio."""
    rho = np.minimum(correlations, LARGEST_CORRELATION)
    return np.sqrt(rho / (1 - rho**2))


def profile_vectors(scores: Any, correlations: np.ndarray) -> Any:
    """Vectors √w a / √(Σ_i v_i a_i²) of scores a, whose inner product ranks best.

    With w = ρ / (1 - ρ²) and v = ρ² / (1 - ρ²) that product is the profile likelihood of a pair,
    which knows the correlations ρ but not the scale of a row.
    """
    xp, rho = namespace(scores), np.minimum(correlations, LARGEST_CORRELATION)
    scores = scores * as_block(scores).placed(component_weights(rho))
    lengths = xp.sqrt((scores * scores) @ as_block(scores).placed(rho))
    return scores / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """What is known of all components of CCA of two views.

    Attributes
    ----------
    eigenvalues : ndarray, shape (m,)
        ρ, decreasing, with which maps solve A w = ρ (B + R) w.
    slopes : (float, float)
        Share of B_p in each view's constraint: less than 1 if B_p was shrunk.
    ranks : (int, int)
        Dimensions of each view.
    counts : ndarray, shape (m,), or None
        How many components have each eigenvalue, if some stand for several; None if none does.
    """

    eigenvalues: np.ndarray
    slopes: Sequence[float]
    ranks: Sequence[int]
    counts: np.ndarray | None = None

    @classmethod
    def of_traces(
        cls,
        leading: np.ndarray,
        squares: float,
        fourth_powers: float,
        slopes: Sequence[float],
        ranks: Sequence[int],
    ) -> Spectrum:
        """All ρ from the leading ones and the sums of all ρ² and ρ⁴.

        The squares of the others get a beta distribution with these moments below the last leading
        one.
        """
        n_left = min(ranks) - len(leading)
        last = leading[-1] ** 2
        mean = (squares - np.sum(leading**2)) / (n_left * last)
        second = (fourth_powers - np.sum(leading**4)) / (n_left * last**2)
        mean = np.clip(mean, 1e-6, 1 - 1e-6)
        most = mean * (1 - mean)
        variance = np.clip(second - mean**2, 1e-6 * most, (1 - 1e-6) * most)
        a, b = (own * (most / variance - 1) for own in (mean, 1 - mean))
        n_values = min(n_left, _MOST_VALUES)
        places = 1 - (np.arange(n_values) + 0.5) / n_values
        from scipy import special  # a tenth of a search of few rows, which needs no spectrum

        others = np.sqrt(last * special.betaincinv(a, b, places))
        counts = np.concatenate([np.ones(len(leading)), np.full(n_values, n_left / n_values)])
        return cls(np.concatenate([leading, others]), slopes, ranks, counts)

    def completed(
        self, variances: np.ndarray, covariances: np.ndarray, degrees_of_freedom: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Moments (2, k) and (k,) of the leading scores, followed by those of the others.

        Covariances are ρ. Variances fall with ρ on a line that starts at the last known one, so
        that they add up to the degrees of freedom of the view.
        """
        k, rho = len(covariances), self.eigenvalues
        covariances = np.concatenate([covariances, rho[k:]])
        total = rho[k:].sum() if self.counts is None else self.counts[k:] @ rho[k:]
        of_others = []
        for own, freedom, rank in zip(variances, degrees_of_freedom, self.ranks, strict=True):
            n_left = rank - k  # of which ρ is 0 where the other view has no counterpart
            fall = n_left * own[-1] - (freedom - own.sum())
            slope = fall / max(n_left * rho[k - 1] - total, 1e-12)
            of_others.append(np.maximum(own[-1] - slope * (rho[k - 1] - rho[k:]), rho[k:]))
        return np.hstack([variances, of_others]), covariances


def score_correlations(
    weights: Mapping[str, np.ndarray], pairs: Iterable[PairCovariance]
) -> np.ndarray:
    """Correlations of the scores of rows with these covariances, (n_pairs, k)."""
    found = []
    for (p, q), between, within, _ in pairs:
        of_views = [
            np.einsum("ik,ik->k", weights[name], B @ weights[name])
            for name, B in zip((p, q), within, strict=True)
        ]
        covariances = np.einsum("ik,ik->k", weights[p], between @ weights[q])
        found.append(_ratio(covariances, np.sqrt(np.maximum(of_views, 0)).prod(axis=0)))
    return np.clip(found, -1, 1)


def expected_moments(
    weights: Mapping[str, np.ndarray],
    pairs: Iterable[PairCovariance],
    degrees_of_freedom: Mapping[str, float] | None = None,
    spectrum: Spectrum | None = None,
) -> Expected | None:
    """Moments to expect of the scores of new rows; None if no views share rows.

    Parameters
    ----------
    weights : mapping of str to ndarray, shape (n_features, k)
        One map per view.
    pairs : iterable of PairCovariance
        Covariances of the rows, for each pair of views that shares some.
    degrees_of_freedom : mapping of str to float, optional
        tr B_p (B_p + r_p I)⁻¹ of each view, if the weights were found from these rows. Without,
        the rows are new ones, and the moments are theirs.
    spectrum : Spectrum, optional
        Of all components, if the weights are the leading ones of CCA of two views. Other
        correlations are corrected by `expected_correlation`, and deviations are those of the rows.
    """
    views, counts = list(weights), np.zeros((len(weights), len(weights)))
    freedom = degrees_of_freedom or dict.fromkeys(weights, 0.0)
    variances: dict[str, list[np.ndarray]] = {name: [] for name in views}
    found = {}
    for names, between, within, count in pairs:
        p, q = names
        for name, B in zip(names, within, strict=True):
            W = weights[name]
            image = B @ W if B.ndim == 2 else B[:, None] * W
            variances[name].append(np.maximum(np.einsum("ik,ik->k", W, image), 0))
        covariances = np.einsum("ik,ik->k", weights[p], between @ weights[q])
        of_views = np.array([variances[p][-1], variances[q][-1]])
        r = _ratio(covariances, np.sqrt(of_views).prod(axis=0))
        degrees = (freedom[p], freedom[q])
        if sum(degrees) >= count and r.max(initial=0) > 1 - 1e-8:
            r = np.zeros_like(r)  # training correlations of 1 by construction tell nothing
        elif spectrum is not None:
            of_all = of_views, covariances
            if len(covariances) < len(spectrum.eigenvalues):
                of_all = spectrum.completed(of_views, covariances, degrees)
            new, between_new = expected_covariances(
                *of_all, degrees, count, spectrum.eigenvalues, spectrum.slopes, spectrum.counts
            )
            training = _ratio(of_all[1], np.sqrt(of_all[0]).prod(axis=0))
            from scipy.optimize import isotonic_regression

            # As shares of the training correlations, which fall from one to the next.
            shares = isotonic_regression(
                _ratio(_ratio(between_new, np.sqrt(new).prod(axis=0)), training),
                weights=np.maximum(training, 1e-6) ** 2,
                increasing=False,
            ).x
            r = (training * np.clip(shares, 0, 1))[: len(r)]
            no_ridge = list(degrees) == list(spectrum.ranks) and set(spectrum.slopes) == {1.0}
            if (
                no_ridge
                and sum(degrees) + 1 < count
                and training[0] ** 2 < 4 * sum(degrees) / count
            ):
                # No component is far above noise. Leaving one out is unbiased above the noise edge,
                # but not below it, where the limit of large views is 0.
                bias = SampleBias(count, (spectrum.ranks[0], spectrum.ranks[1]))
                r = np.where(bias.is_noise(training)[: len(r)], 0, r)
            # Likelihoods whose deviations are below those of the training rows rank no better.
            variances[p][-1], variances[q][-1] = np.maximum(new[:, : len(r)], of_views)
        elif degrees_of_freedom is not None:
            r = expected_correlation(r, degrees, count)
        pair = views.index(p), views.index(q)
        # Components at noise level agree a little on new rows of real data.
        found[pair] = np.clip(r, 1 / np.sqrt(count), 1)
        counts[pair] = count
    if not found:
        return None
    mean = np.average(list(found.values()), axis=0, weights=[counts[pair] for pair in found])
    of_pairs = np.tile(mean, (len(weights), len(weights), 1))
    for (i, j), correlations in found.items():
        of_pairs[i, j] = of_pairs[j, i] = correlations
    for i in range(len(weights)):
        own = [pair for pair in found if i in pair]
        if own:
            values, shares = [found[pair] for pair in own], [counts[pair] for pair in own]
            of_pairs[i, i] = np.average(values, axis=0, weights=shares)
    deviations = {name: np.sqrt(np.mean(own, axis=0)) for name, own in variances.items() if own}
    return Expected(mean, of_pairs, deviations)


def expected_covariances(
    variances: np.ndarray,
    covariances: np.ndarray,
    degrees_of_freedom: tuple[float, float],
    n_rows: float,
    eigenvalues: np.ndarray,
    slopes: Sequence[float] = (1.0, 1.0),
    counts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Leave-one-out estimate of the second moments of two views' scores on new rows.

    Parameters
    ----------
    variances : ndarray, shape (2, k)
        Of the training scores of all components of CCA, scaled to w_pᵀ (B_p + r_p I) w_p = 1.
    covariances : ndarray, shape (k,)
        Of the training scores of the two views.
    degrees_of_freedom : (float, float)
        tr B_p (B_p + r_p I)⁻¹ of each view, which is its rank without a ridge.
    n_rows : float
        Objects that the two views share.
    eigenvalues : ndarray, shape (k,)
        ρ, of which the training scores correlate at ρ without a ridge.
    slopes : (float, float)
        Share of B_p in each view's constraint: less than 1 if B_p was shrunk.
    counts : ndarray, shape (k,), optional
        How many components each of these stands for; by default one.

    Returns
    -------
    (ndarray, shape (2, k)), (ndarray, shape (k,))
        Variances and covariances.
    """
    # The maps w = (w_x, w_y) solve A w = ρ (B + R) w. Row j, with features z_x and z_y, takes part
    # in the resolvent (ρ (B + R) - A)⁻¹ as 1/n Z T Zᵀ, with Z = diag(z_x, z_y) and
    # T = [[ρ, -1], [-1, ρ]]. By Woodbury's formula, maps that have not seen the row give it the
    # scores
    #
    #     (I - H T)⁻¹ s,    H = 1/n Zᵀ (ρ (B + R) - A)⁻¹ Z,
    #
    # where s are its scores by the maps that have. As in generalised cross-validation, the mean
    # over the rows replaces H,
    #
    #     H_pq = 1/n Σ_l cov_l(p, q) / (ρ - ρ_l)
    #
    # over the other components l. If one view is fixed, this is (û - h v) / (1 - h), the
    # leave-one-out formula of least squares. For a few components in uncorrelated noise it tends to
    # the limits of Bao, Hu, Pan and Zhou, "Canonical correlation coefficients of high-dimensional
    # Gaussian vectors", Annals of Statistics 2019. Each row mixes components whose ρ are about
    # 1/√n apart: an imaginary part of ρ of this size averages over them, as in Ledoit and Péché,
    # "Eigenvectors of some large sample covariance matrix ensembles", 2011.
    rho = eigenvalues
    at = rho * (1 - 1j * np.maximum(1 - rho**2, 1e-6) / np.sqrt(n_rows))
    # ρ_l is followed by -ρ_l, with maps (w_x, -w_y), and by 0 where one view has no counterpart.
    # The sums over both are a / (a² - ρ_l²) and ρ_l / (a² - ρ_l²) at a; of a component itself,
    # only its mirror image takes part.
    both = np.square(at)[:, None] - np.square(rho)
    np.fill_diagonal(both, np.inf)
    np.reciprocal(both, out=both)
    if counts is None:
        counts = np.ones(len(rho))
    left = np.maximum(np.array(degrees_of_freedom) - variances @ counts, 0)
    mirrored = 0.5 / (at + rho)
    H = np.empty((len(rho), 2, 2), complex)
    H[:, 0, 1] = H[:, 1, 0] = both @ (counts * rho * covariances) - mirrored * covariances
    of_others = both @ (counts * variances).T
    H[:, [0, 1], [0, 1]] = at[:, None] * of_others + mirrored[:, None] * variances.T
    H[:, [0, 1], [0, 1]] += left / at[:, None]
    H /= n_rows - 1 + 1e-9  # rows are centred; not 0, so that the inverse exists
    T = rho[:, None, None] * np.diag(slopes) - (1 - np.eye(2))
    M = np.linalg.inv(np.eye(2) - H @ T)
    scores = np.empty((len(rho), 2, 2))
    scores[:, 0, 1] = scores[:, 1, 0] = covariances
    scores[:, [0, 1], [0, 1]] = variances.T
    new = (M @ scores @ M.conj().swapaxes(1, 2)).real
    return np.maximum(new[:, [0, 1], [0, 1]].T, 0), new[:, 0, 1]


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide a by b, with 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(b), where=b > 0)


def expected_correlation(
    correlation: np.ndarray, degrees_of_freedom: tuple[float, float], n_rows: float
) -> np.ndarray:
    """Estimate of the correlation (k,) of two views' scores on new rows, one component at a time.

    For weights that are not those of CCA of the two views, as of more views or of labels.
    """
    # Regress the scores v of one view on the rows of the other, with hat matrix H and fitted values
    # û. Left out of the regression, row j has the fitted value (û_j - H_jj v_j) / (1 - H_jj). With
    # the mean leverage h = tr H / n in place of H_jj, it correlates with v, where û correlates at
    # r, at
    #
    #     r_h = (r² - h) / √(r² - 2 h r² + h²).
    #
    # Both views are fitted, so that r becomes r_x r_y / r. That is pessimistic for weak components
    # of real data: at noise level, r² ≤ h, it is 0, yet they agree on new rows. No component
    # therefore gets less than r / 2.
    r = np.clip(correlation, 1 / np.sqrt(n_rows), 1)
    estimate = 1 / r
    for freedom in degrees_of_freedom:
        h = freedom / n_rows
        excess = np.maximum(r**2 - h, 0)
        estimate = estimate * _ratio(excess, np.sqrt(np.maximum(r**2 - 2 * h * r**2 + h**2, 0)))
    return np.maximum(estimate, r / 2)
