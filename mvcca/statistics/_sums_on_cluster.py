"""Feature sums per label vector on the workers of a Dask cluster.

Each task adds up as many rows as make its sums worth sending; workers merge the results in order.
Only means and, stripe by stripe, label-weighted covariances are sent back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.similarity import LabelGram
from mvcca.statistics._rows_by_code import add_rows, deviate
from mvcca.statistics.passes import fold, row_blocks, row_bytes_of, watched
from mvcca.statistics.passes._cluster import Cluster, Workload
from mvcca.statistics.passes._tasks import RowTasks, at_one_thread
from mvcca.views import Views

_LANE_ROWS = 4  # per label vector: merging its sums costs as much as adding about one row


@dataclass(frozen=True)
class ClusterSums:
    """Feature sums per label vector as futures, one per view, (U, D_p)."""

    cluster: Cluster
    by_view: list[Any]

    @classmethod
    def of(
        cls,
        views: Views,
        n_lines: int,
        codes: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray],
    ) -> ClusterSums | None:
        """Sum the rows of each view by code; None without a cluster, or for views in memory."""
        cluster = Cluster.for_rows_of(views)
        if cluster is None:
            return None
        by_view = []
        for name, block in views.blocks.items():
            one = Views({name: block})
            lanes = list(_lanes(one, _LANE_ROWS * n_lines))
            load = _workload(one, lanes, 3 * 8 * n_lines * views.shape[1])
            cluster.check(load)
            rows = RowTasks(one, (codes[name], weights[name]))
            tasks = (rows.of_block(_sums_of_lane, lane, n_lines) for lane in lanes)
            merged = None
            with closing(cluster.in_order(tasks, lanes, load)) as sums_of_lanes:
                for sums in watched(sums_of_lanes, one, lanes):
                    if merged is not None:
                        sums = cluster.submit(at_one_thread(np.add, merged, sums))
                    merged = sums
            by_view.append(merged)
        return cls(cluster, by_view)

    def to_host(self) -> list[np.ndarray]:
        """Sums of each view in this process."""
        return [future.result() for future in self.by_view]

    def totals(self) -> list[np.ndarray]:
        """Sum of all rows of each view."""
        totals = [self.cluster.submit(at_one_thread(np.sum, sums, 0)) for sums in self.by_view]
        return [total.result() for total in totals]

    def averaged(self, counts: np.ndarray) -> ClusterSums:
        """Sums divided by the number of rows of each label vector."""
        parts = zip(self.by_view, counts.T, strict=True)
        tasks = [at_one_thread(_averaged, sums, count) for sums, count in parts]
        return ClusterSums(self.cluster, [self.cluster.submit(task) for task in tasks])

    def covariance(
        self, gram: LabelGram, counts: np.ndarray, means: list[np.ndarray], dtype: np.dtype
    ) -> np.ndarray:
        """Label-weighted covariance about some means, (D, D)."""
        n_lines, n_features = len(counts), sum(map(len, means))
        stripes = gram.stripes(n_features)
        load = Workload(
            max(stripe.stop - stripe.start for stripe in stripes),
            gram.stripe_bytes(n_features, dtype),
            8 * n_features * (2 * n_features + 3 * n_lines),
        )
        self.cluster.check(load)
        deviations = self.cluster.submit(
            at_one_thread(_deviations, self.by_view, counts, means, dtype)
        )
        shared = self.cluster.shared(gram)
        tasks = (at_one_thread(LabelGram.stripe, shared, deviations, rows) for rows in stripes)
        with closing(self.cluster.in_order(tasks, stripes, load)) as parts:
            return gram.total((part.result() for part in parts), n_features)

    def placed(self, values: np.ndarray) -> np.ndarray:
        """Values in host memory, where products without the sums are computed."""
        return values


def _workload(views: Views, lanes: list[slice], result_bytes: int) -> Workload:
    """Memory of a task: files are read block by block, other rows are sent as a whole lane."""
    ((_, block),) = views.blocks.items()
    is_file = block.is_lazy and block.deferred() is None
    at_once = row_blocks(views) if is_file else lanes
    rows = max(part.stop - part.start for part in at_once)
    return Workload(rows, 2 * rows * row_bytes_of(views), result_bytes)


def _lanes(views: Views, at_least: int) -> Iterator[slice]:
    """Groups of neighbouring blocks that have at least so many rows."""
    start = 0
    for rows in row_blocks(views):
        if rows.stop - start >= at_least or rows.stop == len(views):
            yield slice(start, rows.stop)
            start = rows.stop


def _sums_of_lane(lane: Views, parts: list[np.ndarray], n_lines: int) -> np.ndarray:
    """Sums of the rows of a view by code, read block by block."""
    return fold(add_rows, np.zeros((n_lines, lane.shape[1])), lane, *parts)


def _averaged(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return sums / np.maximum(counts, 1e-300)[:, None]


def _deviations(
    by_view: list[np.ndarray], counts: np.ndarray, means: list[np.ndarray], dtype: np.dtype
) -> np.ndarray:
    deviations = np.empty((len(counts), sum(map(len, means))), dtype)
    end = 0
    for sums, count, mean in zip(by_view, counts.T, means, strict=True):
        start, end = end, end + len(mean)
        deviate(sums, count, mean, deviations[:, start:end])
    return deviations
