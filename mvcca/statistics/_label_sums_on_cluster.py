"""Label sums on the workers of a Dask cluster, where they stay, view by view.

Rows go to lanes, each of which adds up as many rows as make its sums worth their transfer; lanes
are merged on the workers, in order. What comes home are counts, means and, stripe by stripe, the
label-weighted covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mvcca.labels import LabelTable
from mvcca.similarity import LabelGram
from mvcca.sources import RowSource
from mvcca.statistics._accumulate import fold, watched
from mvcca.statistics._blocks import row_blocks, row_bytes_of
from mvcca.statistics._cluster import Cluster, Workload
from mvcca.statistics._label_sums import LabelSums, deviate
from mvcca.statistics._moments import column_slices
from mvcca.statistics._rows_by_code import add_rows
from mvcca.statistics._tasks import RowTasks, at_one_thread
from mvcca.views import Views

_LANE_ROWS = 4  # per label vector: merging sums of a lane costs as much as adding about one


class ClusterLabelSums(LabelSums):
    """`LabelSums` whose sums are futures, one per view: those of all views come home if asked for.

    A pickle, a copy and a sum with others hold the numbers, as `LabelSums` do.
    """

    _cluster: Cluster
    _by_view: dict[str, Any]

    def __init__(
        self,
        cluster: Cluster,
        table: LabelTable,
        widths: dict[str, int],
        counts: np.ndarray,
        dtype: np.dtype,
        by_view: Mapping[str, Any],
    ) -> None:
        # Frozen, as the sums at home are.
        self.__dict__.update(table=table, widths=widths, counts=counts, dtype=dtype)
        self.__dict__.update(_cluster=cluster, _by_view=dict(by_view))

    @classmethod
    def on(
        cls,
        cluster: Cluster,
        views: Views,
        table: LabelTable,
        codes: Mapping[str, np.ndarray],
        weights: Mapping[str, np.ndarray],
        counts: np.ndarray,
        dtype: np.dtype,
    ) -> ClusterLabelSums:
        """Label sums of the rows of each view, with a code and a weight for every row."""
        n_lines, n_features = len(table), views.shape[1]
        by_view: dict[str, Any] = {}
        for name, block in views.items():
            one = Views({name: block})
            lanes = list(_lanes(one, _LANE_ROWS * n_lines))
            load = _workload(one, lanes, 3 * 8 * n_lines * n_features)
            cluster.check(load)
            rows = RowTasks(one, (codes[name], weights[name]))
            tasks = (rows.of_block(_sums_of_lane, lane, n_lines) for lane in lanes)
            with closing(cluster.in_order(tasks, lanes, load)) as sums_of_lanes:
                for sums in watched(sums_of_lanes, one, lanes):
                    if name in by_view:
                        sums = cluster.submit(at_one_thread(np.add, by_view[name], sums))
                    by_view[name] = sums
        return cls(cluster, table, views.widths, counts, dtype, by_view)

    @cached_property
    def sums(self) -> np.ndarray:
        """Sums of features per label vector, (U, D), gathered from the workers."""
        return np.concatenate([future.result() for future in self._by_view.values()], axis=1)

    def __reduce__(self) -> tuple[type[LabelSums], tuple[Any, ...]]:
        return LabelSums, (self.table, self.widths, self.counts, self.sums, self.dtype)

    def to_host(self) -> LabelSums:
        """The same with sums in this process."""
        return LabelSums(self.table, self.widths, self.counts, self.sums, self.dtype)

    def mean(self) -> dict[str, np.ndarray]:
        """The plain mean of every view's rows."""
        totals = [
            self._cluster.submit(at_one_thread(np.sum, future, 0))
            for future in self._by_view.values()
        ]
        return {
            name: total.result() / count
            for name, total, count in zip(self.widths, totals, self.counts.sum(axis=0), strict=True)
        }

    def averaged(self) -> ClusterLabelSums:
        """The same with one row per label vector and view, the mean of its rows."""
        by_view = {
            name: self._cluster.submit(at_one_thread(_averaged, future, self.counts[:, p]))
            for p, (name, future) in enumerate(self._by_view.items())
        }
        present = (self.counts > 0).astype(float)
        return ClusterLabelSums(
            self._cluster, self.table, self.widths, present, self.dtype, by_view
        )

    def covariance(
        self,
        gram: LabelGram,
        mean: Mapping[str, np.ndarray] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> np.ndarray:
        """The label-weighted covariance Ψ about a mean (the plain one), all blocks, (D, D)."""
        cluster, mean = self._cluster, self.mean() if mean is None else mean
        n_lines, n_features = len(self.table), sum(self.widths.values())
        stripes = gram.stripes()
        rows = max(stripe.stop - stripe.start for stripe in stripes)
        load = Workload(
            rows,
            np.dtype(dtype).itemsize * rows * (n_lines + n_features),
            8 * n_features * (2 * n_features + 3 * n_lines),
        )
        cluster.check(load)
        by_view, means = list(self._by_view.values()), [mean[name] for name in self.widths]
        deviations = cluster.submit(
            at_one_thread(_deviations, by_view, self.counts, means, self.widths, np.dtype(dtype))
        )
        shared = cluster.shared(gram)
        tasks = (at_one_thread(LabelGram.stripe, shared, deviations, rows) for rows in stripes)
        half = np.zeros((n_features, n_features))
        with closing(cluster.in_order(tasks, stripes, load)) as parts:
            for part in parts:
                half += part.result()
        return half + half.T


def _workload(views: Views, lanes: list[slice], result_bytes: int) -> Workload:
    """Files are read block by block, other rows of a lane are all given to the worker."""
    ((_, block),) = views.items()
    is_file = isinstance(block, RowSource) and block.deferred() is None
    at_once = row_blocks(views) if is_file else lanes
    rows = max(part.stop - part.start for part in at_once)
    return Workload(rows, 2 * rows * row_bytes_of(views), result_bytes)


def _lanes(views: Views, at_least: int) -> Iterator[slice]:
    """Neighbouring blocks of rows together, up to so many rows or a little more."""
    start = 0
    for rows in row_blocks(views):
        if rows.stop - start >= at_least or rows.stop == len(views):
            yield slice(start, rows.stop)
            start = rows.stop


def _sums_of_lane(lane: Views, parts: list[np.ndarray], n_lines: int) -> np.ndarray:
    """Rows of a view added up by code, read block by block, in place."""
    return fold(add_rows, np.zeros((n_lines, lane.shape[1])), lane, *parts)


def _averaged(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return sums / np.maximum(counts, 1e-300)[:, None]


def _deviations(
    by_view: list[np.ndarray],
    counts: np.ndarray,
    means: list[np.ndarray],
    widths: dict[str, int],
    dtype: np.dtype,
) -> np.ndarray:
    deviations = np.empty((len(counts), sum(widths.values())), dtype=dtype)
    columns = column_slices(widths).values()
    for sums, count, mean, own in zip(by_view, counts.T, means, columns, strict=True):
        deviate(sums, count, mean, deviations[:, own])
    return deviations
