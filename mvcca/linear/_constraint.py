"""The constraint wᵀ(B + r I)w = 1 of every view: whether it varies, its ridge, its factors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from scipy import linalg

from mvcca.linalg import Rotation, Whitener
from mvcca.linear._precision import Precision
from mvcca.linear._rows import check_variance
from mvcca.linear._shrinkage import Shrinkage


def variances_within(
    within: Mapping[str, np.ndarray], rotations: Mapping[str, Rotation]
) -> dict[str, np.ndarray]:
    """Diagonals of the within-view matrices, of the features as they came."""
    return {
        name: rotations[name].diagonal(B) if name in rotations else np.diag(B)
        for name, B in within.items()
    }


def whiten(
    within: Mapping[str, np.ndarray],
    reg: Mapping[str, float],
    rotations: Mapping[str, Rotation],
    variances: Mapping[str, np.ndarray],
    precision: Precision,
    rank_expected: Collection[str] = (),
) -> dict[str, Whitener]:
    """Factorise every view's within matrix with its ridge, `reg` times the mean of `variances`.

    Whether `precision` suffices for them is checked here, for every method; see `Precision.check`.
    """
    ridged = _with_ridge(within, reg, rotations, variances)
    check_variances(ridged)
    whiteners = {name: Whitener.of(B) for name, B in ridged.items()}
    precision.check(whiteners, rank_expected)
    if not any(isinstance(value, Shrinkage) for value in reg.values()):
        return whiteners
    # Shrunk covariances say how views and directions compare; the factor they have in common keeps
    # training variances of scores at most 1, and so every correlation.
    largest = max(_largest_variance(within[name], white) for name, white in whiteners.items())
    return {
        name: replace(white, scale=white.scale / np.sqrt(largest))
        for name, white in whiteners.items()
    }


def _largest_variance(B: np.ndarray, whitener: Whitener) -> float:
    """The largest wᵀBw over whitened directions w: above 1 where shrinking made B smaller."""
    white = whitener.project(whitener.project(B).T)
    last = [whitener.rank - 1] * 2
    return float(linalg.eigh(white, eigvals_only=True, subset_by_index=last)[0])


def _with_ridge(
    within: Mapping[str, np.ndarray],
    reg: Mapping[str, float],
    rotations: Mapping[str, Rotation],
    variances: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Within-view matrices B with r times their mean variance on the diagonal, or B shrunk."""
    ridged = dict(within)
    for name, B in within.items():
        if not reg[name]:
            continue
        kept = 1 - reg[name] if isinstance(reg[name], Shrinkage) else 1
        ridge = reg[name] * variances[name].mean()
        ridged[name] = kept * B
        if name in rotations:
            ridged[name] += ridge * rotations[name].ridge()
        else:  # a constant column stays out of the problem: its weight is 0, not nearly 0
            ridged[name][np.diag_indices_from(B)] += ridge * (variances[name] > 0)
    return ridged


def check_variances(within: Mapping[str, np.ndarray]) -> None:
    """Views whose squares overflow, or that never vary, are errors."""
    for name, B in within.items():
        check_variance(name, np.diag(B) if np.isfinite(B).all() else B)
