"""Correlations to expect on new rows, estimated from those of the training rows.

Training correlations are optimistic: weights fit the noise of the rows that they were found from,
the more so the fewer rows there are per feature. A ranking needs to know how well components agree
on new rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks import namespace, placed
from mvcca.statistics import Moments, PairCovariance

LARGEST_CORRELATION = 0.999  # samples do not tell larger ones from 1, whose weight is infinite


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
    scores = scores * placed(component_weights(rho), scores)
    lengths = xp.sqrt((scores * scores) @ placed(rho, scores))
    return scores / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]


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

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of an estimator, by name."""
        return {
            "expected_correlations_": self.mean,
            "expected_correlations_by_pair_": self.correlations,
            "expected_deviations_": self.deviations,
        }


def expected_moments(
    weights: Mapping[str, np.ndarray],
    pairs: Iterable[PairCovariance],
    degrees_of_freedom: Mapping[str, float],
) -> Expected | None:
    """`expected_correlation` of all pairs of views that share rows; None without any."""
    views, counts = list(weights), np.zeros((len(weights), len(weights)))
    variances: dict[str, list[np.ndarray]] = {name: [] for name in views}
    found = {}
    for names, between, within, count in pairs:
        p, q = names
        for name, B in zip(names, within, strict=True):
            W = weights[name]
            variances[name].append(np.maximum(np.einsum("ik,ik->k", W, B @ W), 0))
        covariances = np.einsum("ik,ik->k", weights[p], between @ weights[q])
        scale = np.sqrt(variances[p][-1]) * np.sqrt(variances[q][-1])
        correlations = np.divide(covariances, scale, out=np.zeros_like(scale), where=scale > 0)
        freedoms = (degrees_of_freedom[p], degrees_of_freedom[q])
        pair = views.index(p), views.index(q)
        found[pair] = expected_correlation(correlations, freedoms, count)
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


def held_out_moments(weights: Mapping[str, np.ndarray], moments: Moments) -> Expected | None:
    """Correlations and deviations of the scores of rows that the weights were not found from."""
    return expected_moments(weights, moments.by_pair(), dict.fromkeys(weights, 0.0))


def expected_correlation(
    correlation: np.ndarray, degrees_of_freedom: tuple[float, float], n_rows: float
) -> np.ndarray:
    """Leave-one-out estimate of the correlation (k,) of two views' scores on new rows."""
    # Regress the scores v of one view on the rows of the other, with hat matrix H and fitted values
    # û. Left out of the regression, row j has the fitted value (û_j - H_jj v_j) / (1 - H_jj). With
    # the mean leverage h = tr H / n in place of H_jj, it correlates with v, where û correlates at
    # r, at
    #
    #     r_h = (r² - h) / √(r² - 2 h r² + h²).
    #
    # Both views are fitted, so that r becomes r_x r_y / r. That is pessimistic for weak components
    # of real data: at noise level, r² ≤ h, it is 0, yet they agree on new rows. No component
    # therefore gets less than r / 2, or than 1 / √n, the standard error of a correlation of zero.
    # If there are as many degrees of freedom tr H as rows, training correlations are 1 by
    # construction, and all components get 1 / √n.
    least = np.full_like(correlation, 1 / np.sqrt(n_rows))
    if sum(degrees_of_freedom) >= n_rows:
        return least
    r = np.clip(correlation, least, 1)
    estimate = 1 / r
    for freedom in degrees_of_freedom:
        h = freedom / n_rows
        excess = np.maximum(r**2 - h, 0)
        estimate = estimate * excess / np.sqrt(r**2 - 2 * h * r**2 + h**2)
    return np.maximum(estimate, np.maximum(r / 2, least))
