"""Feature sums per label vector on a device, multiplied there with the label similarity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks import as_block, beside, in_one_place, namespace, sums_by_code, to_host
from mvcca.machine.config import get_config
from mvcca.similarity import LabelGram
from mvcca.statistics._rows_by_code import check_range
from mvcca.statistics.passes import fold
from mvcca.views import Views

_BLOCKS_PER_TABLE = 4  # a block has at least the table's rows over this: it updates all sums


@dataclass(frozen=True)
class DeviceSums:
    """Feature sums per label vector as device blocks, one per view, (U, D_p)."""

    by_view: list[Any]

    @classmethod
    def of(
        cls,
        views: Views,
        n_lines: int,
        codes: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray],
    ) -> DeviceSums | None:
        """Sum the rows of each view by code; None unless all views are dense on one device."""
        if not _fit_on_device(views):
            return None
        add, least = partial(_added, n_lines=n_lines), n_lines // _BLOCKS_PER_TABLE
        return cls(
            [
                fold(
                    add,
                    None,
                    Views({name: block}),
                    codes[name],
                    weights[name],
                    at_least=least,
                    on_device=True,
                )
                for name, block in views.items()
            ]
        )

    def to_host(self) -> list[np.ndarray]:
        """Sums of each view in host memory."""
        return [to_host(sums) for sums in self.by_view]

    def totals(self) -> list[np.ndarray]:
        """Sum of all rows of each view."""
        return [to_host(namespace(sums).sum(sums, axis=0)) for sums in self.by_view]

    def covariance(
        self, gram: LabelGram, counts: np.ndarray, means: list[np.ndarray], dtype: np.dtype
    ) -> np.ndarray:
        """Label-weighted covariance about some means, (D, D)."""
        parts = [
            _deviations(sums, count, mean, dtype)
            for sums, count, mean in zip(self.by_view, counts.T, means, strict=True)
        ]
        return gram.quadratic(namespace(parts[0]).concat(parts, axis=1))

    def placed(self, values: np.ndarray) -> Any:
        """Values on the device of the sums."""
        return beside(values, self.by_view[0])


def _deviations(sums: Any, counts: np.ndarray, mean: np.ndarray, dtype: np.dtype) -> Any:
    """(sums - counts meanᵀ) / Σ counts of a view, on the device and in `dtype`."""
    xp = namespace(sums)
    deviations = sums - as_block(sums).placed(counts)[:, None] * as_block(sums).placed(mean)
    largest = to_host(xp.max(xp.abs(deviations), axis=0)) / counts.sum()
    # Sums of a constant column deviate by rounding only.
    varies = largest > np.finfo(np.float64).eps * counts.max() * np.abs(mean)
    check_range(largest[varies], dtype)
    deviations = deviations * as_block(sums).placed(varies / counts.sum())
    return xp.astype(deviations, xp.float32 if dtype == np.float32 else xp.float64)


def _fit_on_device(views: Views) -> bool:
    """Whether all views are dense, and on one device or to be copied to one."""
    blocks = list(views.blocks.values())
    if all(block.on_device for block in blocks):
        moved = in_one_place(blocks) or []
        return all(here is there for here, there in zip(blocks, moved, strict=True))
    return not views.on_device and not views.is_sparse and get_config().rows_device is not None


def _added(sums: Any, views: Views, codes: np.ndarray, weights: np.ndarray, n_lines: int) -> Any:
    """Add rows of a view to sums per label vector, (U, d); None stands for zeros."""
    ((_, block),) = views.items()
    lines, added = sums_by_code(block, codes, weights)
    xp = namespace(added)
    nothing = as_block(added).placed(np.zeros((1, added.shape[1])))
    place = np.full(n_lines, len(lines))
    place[lines] = np.arange(len(lines))
    spread = xp.take(xp.concat([added, nothing], axis=0), beside(place, added), axis=0)
    total = spread if sums is None else sums + spread
    to_host(xp.max(total[:, 0]))  # waits, because the block's memory may then be reused
    return total
