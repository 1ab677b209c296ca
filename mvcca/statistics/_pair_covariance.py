"""Covariances of a pair of views, which statistics yield and regressions adjust."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class PairCovariance(NamedTuple):
    """Covariances of two views, all three over the same objects."""

    names: tuple[str, str]
    between: np.ndarray  # (D_p, D_q)
    within: tuple[Any, Any]  # (D_p, D_p), (D_q, D_q); or diagonals (D_p,), (D_q,)
    n_objects: float
