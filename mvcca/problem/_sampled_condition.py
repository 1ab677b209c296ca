"""Whether rows are too ill-conditioned for float32 products, estimated from a sample of them.

A pass over all rows in float32 finds out, too, but then it was in vain. The sample decides only
which precision is tried first: `check_precision` judges every result by all rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import linalg

from mvcca.blocks import to_host
from mvcca.problem.ridge import Shrinkage, ridge_in
from mvcca.views import Views

_ROWS_PER_FEATURE = 2  # of the sample; of fewer, the smallest directions are mostly chance
_FIRST = 0.6  # share of these rows that is tried first
_JUDGES = 1024  # other rows, on which extreme directions of the sample are measured
_SHARE = 8  # of the rows, one in so many may be sampled
_RUNS = 8  # of neighbouring rows, if reading them takes a call each
_STEPS = 5  # of power iteration
_TINY = np.finfo(float).tiny


def is_ill_conditioned(
    views: Views, sample_weight: np.ndarray | None, reg: Mapping[str, float], limit: float
) -> bool:
    """Whether the condition number of a view, ridge included, is probably above `limit`.

    Products are taken in float32. False where a sample would cost too much compared with a pass
    over all rows, such as one on a device.
    """
    n_objects = len(views)
    needed = _JUDGES + max(
        _ROWS_PER_FEATURE * views.widths[name] * n_objects // max(1, X.shape[0])
        for name, X in views.blocks.items()
    )
    if needed * _SHARE > n_objects:
        return False
    if all(X.on_device for X in views.blocks.values()):  # a pass takes less than the sample
        return False
    groups = [(s, b) for X in views.blocks.values() if (s := X.starts) and (b := X.boundaries)]
    if not groups or not views.is_paired:
        sampled = _spread(n_objects, needed, _RUNS if views.is_lazy else needed)
    elif len(groups[0][0]) >= _SHARE * _RUNS:
        sampled = _from_starts(np.array(groups[0][0]), n_objects, needed)
    else:  # to decode rows of a few groups twice would take as long as the pass that follows
        n_first = next(row for row in groups[0][1] if row >= needed)
        views = views[:n_first]
        views = views.replace({name: X.kept() for name, X in views.blocks.items()})
        sampled = _spread(n_first, needed, needed)
    if views.is_lazy:  # the sample is read at once
        sample_weight = None if sample_weight is None else sample_weight[sampled]
        views, sampled = views[sampled].in_memory(), np.arange(len(sampled))
    chosen = _spread(len(sampled), _JUDGES, _JUDGES)
    others = np.random.RandomState(0).permutation(np.delete(sampled, chosen))
    parts = others, sampled[chosen]
    rows, judges = (_centred_rows(views, sample_weight, objects) for objects in parts)
    return any(_is_ill(rows[name], judges[name], reg[name], limit) for name in views.names)


def _centred_rows(
    views: Views, weights: np.ndarray | None, objects: np.ndarray
) -> dict[str, np.ndarray]:
    """Centred rows of some objects in each view, whose squares add up to variances."""
    some, found = views[objects], {}
    for name, block in some.blocks.items():
        rows = to_host(block.matrix)
        share = np.ones(len(rows)) if weights is None else weights[objects][some.objects(name)]
        share = (share / max(share.sum(), _TINY)).astype(np.float32)
        rows = rows - share @ rows
        rows -= share @ rows  # what rounding left of a large mean
        rows *= np.sqrt(share)[:, None]
        found[name] = rows
    return found


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


def _is_ill(rows: np.ndarray, judges: np.ndarray, reg: float, limit: float) -> bool:
    """Whether the condition number of a view at unit variances is above `limit`.

    Estimates from fewer rows are larger. If that of the first rows is below the limit, the others
    are not multiplied.
    """
    variances = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)  # squares may leave float32
    varies = variances > 0
    share = 1 - reg if isinstance(reg, Shrinkage) else 1
    added = ridge_in(reg, variances.mean())
    lengths = np.where(varies, share * variances + added, 1)
    scale = (np.sqrt(share / lengths) * varies).astype(np.float32)
    ridge = np.where(varies, added / lengths, 1).astype(np.float32)  # 1: a direction in between
    rows *= scale
    products = np.zeros((len(scale), len(scale)), np.float32, order="F")
    first = int(_FIRST * len(rows))
    for n_rows, part in ((first, rows[:first]), (len(rows), rows[first:])):
        products = linalg.blas.ssyrk(1.0, part.T, 1.0, products, lower=1, overwrite_c=1)
        C = products * np.float32(len(rows) / n_rows)
        C[np.diag_indices_from(C)] += ridge
        if _condition(C, judges, scale, ridge) <= limit:
            return False
    return True


def _condition(C: np.ndarray, judges: np.ndarray, scale: np.ndarray, ridge: np.ndarray) -> float:
    """Estimated condition number, of which C is a sample; inf if it is beyond float32.

    In the smallest direction of a sample, its own rows vary less than all rows do in any; other
    rows vary more than all rows do in their smallest. Both estimates err by about the same factor,
    so that their geometric mean is right within a third. The lower half of C counts, and is lost.
    """
    factor, failed = linalg.lapack.spotrf(C, lower=1, clean=0, overwrite_a=1)
    if failed:
        return np.inf
    ends = np.random.RandomState(0).standard_normal((2, len(C))).astype(np.float32)
    for _ in range(_STEPS):
        largest, smallest = ends / np.linalg.norm(ends, axis=1)[:, None]
        largest = linalg.blas.strmv(factor, largest, lower=1, trans=1)
        largest = linalg.blas.strmv(factor, largest, lower=1)
        ends = np.array([largest, linalg.lapack.spotrs(factor, smallest, lower=1)[0]])
    lengths = np.linalg.norm(ends, axis=1)
    ends /= lengths[:, None]
    of_others = np.sum((judges @ (scale * ends).T) ** 2, axis=0) + ends**2 @ ridge
    ratio = of_others[0] / max(of_others[1], _TINY)
    return float((lengths[0] * lengths[1] * ratio) ** 0.25)
