"""Whether the columns of a view are in unlike units, so that one of them decides the result.

Methods that can standardize columns do so by the same rule, `mvcca.problem.units`; others warn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks import Block, as_block
from mvcca.machine.warnings import warn
from mvcca.model_selection.spaces import AUTOMATIC
from mvcca.problem import Problem, Rows
from mvcca.problem.units import are_unlike, correlations_in

_LARGE = 10.0  # standard deviation in units of the median one
# Judged on a sample, so that reading rows costs little and a file is not read twice.
_ROWS = 1000
_LEAST_ROWS, _CELLS = 32, 10**6  # of wide views
_FIRST_ROWS, _FIRST_CELLS = 8, 1000  # of a first look, which finds most views alike
_MARGIN = 10.0  # of its variances
_SAFE = 400  # largest exponent of numbers whose squares are added


def takes_scale(estimator: Any) -> bool:
    """Whether an estimator has the parameter `scale`, which standardizes columns."""
    return "scale" in estimator.automatic


def is_at_risk(estimator: Any, name: str) -> bool:
    """Whether columns of a view in unlike units would decide the result."""
    if not estimator._depends_on_units(name):
        return False
    if not takes_scale(estimator):
        return True
    scale = estimator.scale
    scale = scale.get(name, False) if isinstance(scale, Mapping) else scale
    is_automatic = isinstance(scale, str) and scale == AUTOMATIC
    return not scale or (is_automatic and estimator.reg_unit == "absolute")


def warn_of_unlike_units(estimator: Any, name: str, block: Block) -> None:
    """Warn if a ridge, a distance or a covariance sees little more than some columns of a view.

    Rows that are not in memory are judged by their covariance once it is known.
    """
    warn_of_unlike_columns(name, block, estimator._column_names[name], _remedy(estimator))


def warn_of_unlike_columns(
    name: str, block: Block, labels: Sequence[str | int] | None, remedy: str
) -> None:
    """The same without an estimator, whose `remedy` begins the advice."""
    if block.is_lazy or block.shape[1] < 3 or block.dtype.kind != "f":
        return  # no deviation is far above the median of two; words and pixels have no units
    with np.errstate(all="ignore"):
        if not _are_alike(block):
            sample = _sample_of(block)
            correlations = partial(_correlations, sample)
            n_rows, variances = sample.shape[0], _variances(sample)
            _warn_if_unlike(name, labels, remedy, variances, n_rows, correlations)


def warn_of_unlike_lazy_views(estimator: Any, rows: Rows, problem: Problem) -> None:
    """Warn of columns in unlike units in views that are not in memory."""
    within = problem.blocks()[1]
    for name, block in rows.views.blocks.items():
        B = within.get(name) if block.is_lazy else None
        if isinstance(B, np.ndarray) and B.ndim == 2 and is_at_risk(estimator, name):
            labels, remedy = estimator._column_names[name], _remedy(estimator)
            correlations = partial(correlations_in, B)
            _warn_if_unlike(name, labels, remedy, np.diag(B), block.shape[0], correlations)


def _remedy(estimator: Any) -> str:
    return "Set scale=True" if takes_scale(estimator) else estimator.if_units_are_unlike


def _warn_if_unlike(
    name: str,
    labels: Sequence[str | int] | None,
    remedy: str,
    variances: np.ndarray,
    n_rows: int,
    correlations_of: Callable[[np.ndarray], np.ndarray],
) -> None:
    deviations = np.sqrt(variances)
    if not are_unlike(deviations, n_rows, correlations_of):
        return
    j, median = int(np.argmax(deviations)), np.median(deviations[deviations > 0])
    ratio = 10 ** int(np.log10(deviations[j] / median))  # the same for all folds
    warn(
        f"Unlike units: column {j if labels is None else repr(labels[j])} of view {name!r} has "
        f"over {ratio:,} times the median standard deviation of its columns. "
        f"{remedy}, or results depend on their units."
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
