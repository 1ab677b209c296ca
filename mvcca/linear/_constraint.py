"""The constraint wᵀ(B + r I)w = 1 of every view: whether it varies, its ridge, its factors."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from mvcca.linalg import Rotation, Whitener
from mvcca.linear._precision import Precision
from mvcca.linear._rows import check_variance


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
    return whiteners


def _with_ridge(
    within: Mapping[str, np.ndarray],
    reg: Mapping[str, float],
    rotations: Mapping[str, Rotation],
    variances: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Within-view matrices with `reg` times their mean variance added to the diagonal."""
    ridged = dict(within)
    for name, B in within.items():
        if not reg[name]:
            continue
        ridge = reg[name] * variances[name].mean()
        if name in rotations:
            ridged[name] = B + ridge * rotations[name].ridge()
        else:  # a constant column stays out of the problem: its weight is 0, not nearly 0
            ridged[name] = B.copy()
            np.fill_diagonal(ridged[name], variances[name] + ridge * (variances[name] > 0))
    return ridged


def check_variances(within: Mapping[str, np.ndarray]) -> None:
    """Views whose squares overflow, or that never vary, are errors."""
    for name, B in within.items():
        check_variance(name, np.diag(B) if np.isfinite(B).all() else B)
