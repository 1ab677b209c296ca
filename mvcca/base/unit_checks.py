"""Whether the columns of a view are in unlike units, so that one of them decides the result.

The rule is that of a view to be standardized: standard deviations differ, and columns correlate.
Scores of a PCA or SVD differ in deviation, too, but mean it: they are uncorrelated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks import Block, as_block
from mvcca.machine.warnings import warn
from mvcca.problem import Problem, Rows

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
    """Warn if a ridge, a distance or a covariance sees little more than some columns of a view.

    Rows that are not in memory are judged by their covariance once it is known.
    """
    if block.is_lazy or block.shape[1] < 3 or block.dtype.kind != "f":
        return  # no deviation is far above the median of two; words and pixels have no units
    with np.errstate(all="ignore"):
        if not _are_alike(block):
            sample = _sample_of(block)
            correlations = partial(_correlations, sample)
            _warn_if_unlike(name, _variances(sample), sample.shape[0], correlations, labels)


def _warn_of_unlike_covariance(
    name: str, covariance: np.ndarray, n_rows: int, labels: tuple[str | int, ...] | None
) -> None:
    """Warn as `warn_of_unlike_units` does, by the covariance of all rows."""

    def correlations(chosen: np.ndarray) -> np.ndarray:
        roots = np.sqrt(covariance[chosen, chosen])
        return covariance[np.ix_(chosen, chosen)] / roots / roots[:, None]

    _warn_if_unlike(name, np.diag(covariance), n_rows, correlations, labels)


def warn_of_unlike_lazy_views(estimator: Any, rows: Rows, problem: Problem) -> None:
    """Warn of columns in unlike units in views that are not in memory."""
    within = problem.blocks()[1]
    for name, block in rows.views.blocks.items():
        B = within.get(name) if block.is_lazy else None
        if isinstance(B, np.ndarray) and B.ndim == 2 and estimator._depends_on_units(name):
            columns = estimator._column_names[name]
            _warn_of_unlike_covariance(name, B, block.shape[0], columns)


def _warn_if_unlike(
    name: str,
    variances: np.ndarray,
    n_rows: int,
    correlations_of: Callable[[np.ndarray], np.ndarray],
    labels: tuple[str | int, ...] | None,
) -> None:
    varying = np.flatnonzero(variances > 0)
    if len(varying) < 3 or not variances.max() > _LARGE**2 * np.median(variances[varying]):
        return
    chosen = varying[:: 1 + len(varying) // _COLUMNS]
    squares, d = np.sum(correlations_of(chosen) ** 2), len(chosen)
    if not n_rows * (squares - d) / (d * (d - 1)) > _CORRELATED:
        return
    j = int(np.argmax(variances))
    words = next(text for least, text in _SHARES if variances[j] / variances.sum() >= least)
    warn(
        f"Unlike units: column {j if labels is None else repr(labels[j])} has {words} of the "
        f"variance of view {name!r}. Standardize its columns, or results depend on their units."
    )


def _sample_of(block: Block) -> Block:
    """Some rows, of a scale at which squares are floats."""
    height, width = block.shape
    n_rows = min(_ROWS, max(_LEAST_ROWS, _CELLS // width))
    sample = block.take(slice(None, None, 1 + height // n_rows)).in_memory().on_host()
    exponent = np.frexp(np.nan_to_num(sample.size()) or 1.0)[1]
    if abs(exponent) <= _SAFE:
        return sample
    return sample.scaled(np.full(width, np.ldexp(1.0, np.clip(-exponent, -1000, 1000))))


def _variances(sample: Block) -> np.ndarray:
    variances = sample.mean_and_variance()[1]
    if np.isnan(variances).any():  # cells may be missing
        variances = np.nanvar(sample.dense().matrix, axis=0, dtype=np.float64)
    return np.nan_to_num(variances)


def _correlations(sample: Block, chosen: np.ndarray) -> np.ndarray:
    X = as_block(sample.by_columns()[:, chosen]).dense().matrix.astype(np.float64)
    Z = np.nan_to_num(X - np.nanmean(X, axis=0))
    Z /= np.linalg.norm(Z, axis=0)
    return Z.T @ Z


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
