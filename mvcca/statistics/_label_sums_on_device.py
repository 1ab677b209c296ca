"""Label sums on a device, where they stay, and are multiplied with tiles of G.

What comes home are means and the label-weighted covariance. How rows are read, and copied to the
device, is the business of `_accumulate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from mvcca._backend import beside, in_one_place, is_device_array, namespace, placed, to_host
from mvcca.config import get_config
from mvcca.labels import LabelTable
from mvcca.similarity import LabelGram
from mvcca.sources import RowSource
from mvcca.statistics._accumulate import fold
from mvcca.statistics._label_sums import LabelSums
from mvcca.statistics._rows_by_code import sums_by_code
from mvcca.views import Views

_BLOCK_ROWS = 4  # times as many label vectors: each block costs a pass over the sums


class DeviceLabelSums(LabelSums):
    """`LabelSums` whose sums are device blocks, one per view: those of all come home if asked for.

    A pickle, a copy and a sum with others hold the numbers, as `LabelSums` do.
    """

    _by_view: dict[str, Any]

    def __init__(
        self,
        table: LabelTable,
        widths: dict[str, int],
        counts: np.ndarray,
        dtype: np.dtype,
        by_view: Mapping[str, Any],
    ) -> None:
        # Frozen, as the sums at home are.
        self.__dict__.update(table=table, widths=widths, counts=counts, dtype=dtype)
        self.__dict__.update(_by_view=dict(by_view))

    @classmethod
    def on(
        cls,
        views: Views,
        table: LabelTable,
        codes: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray],
        counts: np.ndarray,
        dtype: np.dtype,
    ) -> DeviceLabelSums:
        """Label sums of the rows of each view, with a code and a weight for every row."""
        by_view = {}
        for name, block in views.items():

            def add(sums: Any, rows: Views, code: np.ndarray, weight: np.ndarray) -> Any:
                return _added(sums, rows, code, weight, len(table))

            by_view[name] = fold(
                add, None, Views({name: block}), codes[name], weights[name],
                at_least=len(table) // _BLOCK_ROWS, on_device=True,
            )  # fmt: skip
        return cls(table, views.widths, counts, dtype, by_view)

    @cached_property
    def sums(self) -> np.ndarray:
        """Sums of features per label vector, (U, D), brought home."""
        return np.concatenate([to_host(sums) for sums in self._by_view.values()], axis=1)

    def __reduce__(self) -> tuple[type[LabelSums], tuple[Any, ...]]:
        return LabelSums, (self.table, self.widths, self.counts, self.sums, self.dtype)

    def mean(self) -> dict[str, np.ndarray]:
        """The plain mean of every view's rows."""
        totals = self.counts.sum(axis=0)
        return {
            name: to_host(namespace(sums).sum(sums, axis=0)) / total
            for (name, sums), total in zip(self._by_view.items(), totals, strict=True)
        }

    def averaged(self) -> LabelSums:
        """The same, at home, with one row per label vector and view, the mean of its rows."""
        at_rest = LabelSums(self.table, self.widths, self.counts, self.sums, self.dtype)
        return at_rest.averaged()

    def covariance(
        self,
        gram: LabelGram,
        mean: Mapping[str, np.ndarray] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> np.ndarray:
        """The label-weighted covariance Ψ about a mean (the plain one), all blocks, (D, D)."""
        mean = self.mean() if mean is None else mean
        parts = [
            self._deviations(sums, self.counts[:, p], mean[name], np.dtype(dtype))
            for p, (name, sums) in enumerate(self._by_view.items())
        ]
        return gram.quadratic(namespace(parts[0]).concat(parts, axis=1))

    def row_weights(self, gram: LabelGram, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Mean over the rows of each view of their similarity to a label vector, (U, n_views)."""
        counts = (self.counts / self.counts.sum(axis=0)).astype(dtype)
        return gram.times(beside(counts, next(iter(self._by_view.values()))))

    def _deviations(self, sums: Any, counts: np.ndarray, mean: np.ndarray, dtype: np.dtype) -> Any:
        """(sums - counts meanᵀ) / Σ counts of a view, on the device and in `dtype`."""
        xp = namespace(sums)
        deviations = sums - placed(counts, sums)[:, None] * placed(mean, sums)
        largest = to_host(xp.max(xp.abs(deviations), axis=0)) / counts.sum()
        # What adding up many times the same number leaves is rounding, not variation.
        varies = largest > np.finfo(np.float64).eps * counts.max() * np.abs(mean)
        deviations = deviations * placed(varies / counts.sum(), sums)
        return xp.astype(deviations, xp.float32 if dtype == np.float32 else xp.float64)


def fits_on_device(views: Views) -> bool:
    """Whether all views are dense, and are or will be on one device."""
    blocks = [block for _, block in views.items()]
    if all(is_device_array(block) for block in blocks):
        moved = in_one_place(blocks) or []
        return all(here is there for here, there in zip(blocks, moved, strict=True))
    if any(is_device_array(block) or issparse(block) for block in blocks):
        return False
    is_dense = not any(isinstance(block, RowSource) and block.is_sparse for block in blocks)
    return get_config().device is not None and is_dense


def _added(sums: Any, views: Views, codes: np.ndarray, weights: np.ndarray, n_lines: int) -> Any:
    """Sums per label vector (none so far is None) and those of more rows of a view, (U, d)."""
    ((_, block),) = views.items()
    lines, added = sums_by_code(block, codes, weights)
    xp = namespace(added)
    nothing = placed(np.zeros((1, added.shape[1])), added)
    place = np.full(n_lines, len(lines))
    place[lines] = np.arange(len(lines))
    spread = xp.take(xp.concat([added, nothing], axis=0), beside(place, added), axis=0)
    total = spread if sums is None else sums + spread
    to_host(xp.max(total[:, 0]))  # waits: the block's memory may be written to from here on
    return total
