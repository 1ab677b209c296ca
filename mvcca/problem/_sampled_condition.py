"""Whether rows are too ill-conditioned for float32 products, estimated from a sample of them.

A pass over all rows in float32 finds out, too, but then it was in vain. The sample decides only
which precision is tried first: `check_precision` judges every result by all rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import linalg

from mvcca.blocks import Block, to_host
from mvcca.problem.ridge import Shrinkage, ridged
from mvcca.statistics import Moments
from mvcca.views import Views

_ROWS_PER_FEATURE = 2  # of the sample; of fewer, the smallest directions are mostly chance
_JUDGES = 1024  # other rows, on which extreme directions of the sample are measured
_SHARE = 8  # of the rows, one in so many may be sampled
_LEAST_PRODUCTS = 1e9  # multiplications, below which a pass in vain costs less than 0.1 s
_RUNS = 8  # of neighbouring rows, if reading them takes a call each
_STEPS = 5  # of power iteration
_TINY = np.finfo(float).tiny
_Weighted = tuple[Block, np.ndarray | None]  # rows of a view, and their weights


def is_ill_conditioned(
    views: Views,
    sample_weight: np.ndarray | None,
    reg: Mapping[str, float],
    limit: float,
    dtype: np.dtype,
) -> bool:
    """Whether the condition number of a view, ridge included, is probably above `limit`.

    Products are taken in `dtype`. False where a sample would cost too much compared with a pass
    over all rows, such as one on a device.
    """
    n_objects = len(views)
    needed = _JUDGES + max(
        _ROWS_PER_FEATURE * views.widths[name] * n_objects // max(1, X.shape[0])
        for name, X in views.blocks.items()
    )
    n_products = n_objects * float(sum(views.widths.values())) ** 2
    if needed * _SHARE > n_objects or n_products < _LEAST_PRODUCTS:
        return False
    if all(X.on_device for X in views.blocks.values()):  # a pass takes less than the sample
        return False
    starts = next((own for X in views.blocks.values() if (own := X.starts) is not None), None)
    if starts is not None and views.is_paired:
        sampled = _from_starts(np.array(starts), n_objects, needed)
    else:
        sampled = _spread(n_objects, needed, _RUNS if views.is_lazy else needed)
    sample = views[sampled].in_memory()
    weights = None if sample_weight is None else sample_weight[sampled]
    chosen = _spread(len(sample), _JUDGES, _JUDGES)
    others = np.setdiff1d(np.arange(len(sample)), chosen)
    rows, judges = (_rows_of(sample, weights, objects) for objects in (others, chosen))
    found = [_condition(rows[name], judges[name], reg[name], dtype) for name in views.names]
    return any(condition > limit for condition in found)


def _rows_of(views: Views, weights: np.ndarray | None, objects: np.ndarray) -> dict[str, _Weighted]:
    """Rows of some objects in each view, and their weights."""
    some = views[objects]
    return {
        name: (block, None if weights is None else weights[objects][some.objects(name)])
        for name, block in some.blocks.items()
    }


def _spread(n_rows: int, n_sampled: int, n_runs: int) -> np.ndarray:
    """Positions of runs of rows, evenly spread."""
    length = -(-n_sampled // n_runs)
    starts = np.linspace(0, n_rows - length, n_runs).astype(np.intp)
    return np.unique(np.add.outer(starts, np.arange(length)))


def _from_starts(starts: np.ndarray, n_rows: int, n_sampled: int) -> np.ndarray:
    """Positions of runs of rows from some of `starts` on, evenly spread, if these are enough."""
    starts = starts[starts < n_rows]
    chosen = starts[np.unique(np.linspace(0, len(starts) - 1, _RUNS).astype(np.intp))]
    length = -(-n_sampled // len(chosen))
    rows = np.unique(np.add.outer(chosen, np.arange(length)))
    rows = rows[rows < n_rows]
    return rows if len(rows) >= n_sampled else _spread(n_rows, n_sampled, _RUNS)


def _condition(rows: _Weighted, judges: _Weighted, reg: float, dtype: np.dtype) -> float:
    """Estimated condition number of a view at unit variances; inf if it is beyond float32.

    In the smallest direction of a sample, its own rows vary less than all rows do in any; other
    rows vary more than all rows do in their smallest. Both estimates err by about the same factor,
    so that their geometric mean is right within a third.
    """
    (sample, sample_weights), (X, weights) = rows, judges
    moments = Moments.of(Views({"": sample.matrix}), sample_weights, dtype)
    B = moments.covariance()
    variances = np.diag(B)
    columns = np.flatnonzero(variances > 0)
    if moments.counts[0, 0] < 2 or X.shape[0] < 2 or not len(columns):
        return 1.0
    with_ridge = ridged(B, reg, variances.mean()) if reg else B
    scale = 1 / np.sqrt(np.diag(with_ridge)[columns])
    C = with_ridge[np.ix_(columns, columns)] * scale * scale[:, None]
    factor, failed = linalg.lapack.dpotrf(C, lower=1)
    if failed:
        return np.inf
    ends = np.random.RandomState(0).standard_normal((2, len(columns)))
    for _ in range(_STEPS):
        ends /= np.linalg.norm(ends, axis=1)[:, None]
        ends = np.array([C @ ends[0], linalg.cho_solve((factor, True), ends[1])])
    lengths = np.linalg.norm(ends, axis=1)
    W = np.zeros((len(B), 2))
    W[columns] = scale[:, None] * (ends / lengths[:, None]).T
    scores = to_host(X.project(moments.means[0], W)).astype(np.float64)
    scores -= np.average(scores, axis=0, weights=weights)
    others = np.average(scores**2, axis=0, weights=weights)
    share = 1 - reg if isinstance(reg, Shrinkage) else 1
    own, lengthened = (np.einsum("ik,ik->k", W, matrix @ W) for matrix in (B, with_ridge))
    largest, smallest = lengthened + share * (others - own)  # the ridge is that of all rows
    of_sample, of_others = lengths[0] * lengths[1], max(largest, 0) / max(smallest, _TINY)
    return float((of_sample * of_others) ** 0.25)
