"""Whether the columns of a view are in unlike units, so that one of them decides the result.

The rule is that of a view to be standardized: standard deviations differ, and columns correlate.
Scores of a PCA or SVD differ in deviation, too, but mean it: they are uncorrelated.
"""

from __future__ import annotations

import numpy as np

from mvcca.blocks import Block, as_block
from mvcca.machine.warnings import warn

_LARGE = 10.0  # standard deviation in units of the median one
_CORRELATED = 3.0  # n r², averaged over pairs of columns; about 1 if these are independent
_SHARES = ((0.99, "over 99 %"), (0.9, "over 90 %"), (0.5, "over half"), (0.0, "most"))
# Judged on a sample, so that reading rows costs little and a file is not read twice.
_ROWS, _COLUMNS = 1000, 300
_LEAST_ROWS, _CELLS = 32, 10**6  # of wide views
_FIRST_ROWS, _FIRST_CELLS = 8, 1000  # of a first look, which finds most views alike
_MARGIN = 10.0  # of its variances
_SAFE = 400  # largest exponent of numbers whose squares are added


def warn_of_unlike_units(name: str, block: Block, labels: tuple[str | int, ...] | None) -> None:
    """Warn if a ridge, a distance or a covariance sees little more than some columns of a view."""
    if block.shape[1] < 3 or block.dtype.kind != "f":
        return  # no deviation is far above the median of two; words and pixels have no units
    with np.errstate(all="ignore"):
        found = None if _are_alike(block) else _dominant(block)
    if found is not None:
        j, share = found
        words = next(text for least, text in _SHARES if share >= least)
        warn(
            f"Unlike units: column {j if labels is None else repr(labels[j])} has {words} of the "
            f"variance of view {name!r}. Standardize its columns, or results depend on their units."
        )


def _dominant(block: Block) -> tuple[int, float] | None:
    """Column with the largest variance, and its share, if columns are in unlike units."""
    height, width = block.shape
    n_rows = min(_ROWS, max(_LEAST_ROWS, _CELLS // width))
    few = slice(n_rows) if block.is_lazy else slice(None, None, 1 + height // n_rows)
    sample = block.take(few).in_memory().on_host()
    exponent = np.frexp(np.nan_to_num(sample.sizes()).max() or 1.0)[1]
    if abs(exponent) > _SAFE:
        sample = sample.scaled(np.full(width, np.ldexp(1.0, np.clip(-exponent, -1000, 1000))))
    variances = sample.mean_and_variance()[1]
    if np.isnan(variances).any():
        variances = np.nan_to_num(np.nanvar(sample.dense().matrix, axis=0, dtype=np.float64))
    varying, j = np.flatnonzero(variances > 0), int(np.argmax(variances))
    if len(varying) < 3 or not variances[j] > _LARGE**2 * np.median(variances[varying]):
        return None
    if not sample.shape[0] * _mean_squared_correlation(sample, varying) > _CORRELATED:
        return None
    return j, float(variances[j] / variances.sum())


def _mean_squared_correlation(sample: Block, varying: np.ndarray) -> float:
    """Mean of r² over pairs of distinct columns, of at most so many."""
    chosen = varying[:: 1 + len(varying) // _COLUMNS]
    X = as_block(sample.by_columns()[:, chosen]).dense().matrix.astype(np.float64)
    Z = np.nan_to_num(X - np.nanmean(X, axis=0))  # cells may be missing
    Z /= np.linalg.norm(Z, axis=0)
    d = len(chosen)
    return float((np.sum((Z.T @ Z) ** 2) - d) / (d * (d - 1)))


def _are_alike(block: Block) -> bool:
    """Whether deviations of a few rows in memory are so alike that those of all rows are, too."""
    X = block.matrix
    if not isinstance(X, np.ndarray):
        return False
    few = X[:: 1 + len(X) // max(_FIRST_ROWS, _FIRST_CELLS // X.shape[1])].astype(np.float64)
    few -= np.add.reduce(few) / len(few)
    variances = np.einsum("ij,ij->j", few, few)
    variances.partition(len(variances) // 2)
    return bool(_MARGIN * variances.max() < _LARGE**2 * variances[len(variances) // 2])
