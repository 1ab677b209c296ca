"""Covariances of a pair of views, which statistics yield and regressions adjust."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class PairCovariance(NamedTuple):
    """Covariances of two views, all three over the same objects."""

    names: tuple[str, str]
    between: np.ndarray  # (D_p, D_q)
    within: tuple[Any, Any]  # (D_p, D_p), (D_q, D_q); or diagonals (D_p,), (D_q,)
    n_objects: float

    def scaled(self, factors: Mapping[str, np.ndarray]) -> PairCovariance:
        """The same of features that are multiplied by `factors`, of the views that have some."""
        (f, g), (first, last) = (factors.get(name) for name in self.names), self.within
        return self._replace(
            between=scaled_block(self.between, f, g),
            within=(scaled_block(first, f, f), scaled_block(last, g, g)),
        )


def scaled_block(A: Any, left: np.ndarray | None, right: np.ndarray | None) -> Any:
    """diag(left) A diag(right), or the diagonal of it if A is one; None is the identity."""
    if A.ndim == 1:
        return A if left is None or right is None else left * A * right
    A = A if left is None else left[:, None] * A
    return A if right is None else A * right
