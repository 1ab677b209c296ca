"""Rows projected block by block, such as the scores of a file, without holding them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any, BinaryIO

import numpy as np

from mvcca.blocks import SourceError
from mvcca.machine.written_files import write_npy, write_npz, write_table
from mvcca.statistics.passes._accumulate import watched
from mvcca.statistics.passes._blocks import row_blocks, row_bytes_of
from mvcca.statistics.passes._read_ahead import blocks_read_ahead
from mvcca.views import Views, as_views


class ProjectedRows:
    """Results of a function such as a model's ``transform`` for the rows of a view.

    `rows` holds the view, and after it views that are read beside it, such as confounds. The first
    row is projected at once, for `shape` and `dtype`; `file` is for error messages.
    """

    def __init__(
        self, project: Callable[[Any], Any], rows: Mapping[str, Any], file: str | None = None
    ) -> None:
        self._project, self._views = project, Views(rows)
        self.name = self._views.names[0]
        self._file = file or f"view {self.name!r}"
        first = self._scores(self._views[:1], self._file)
        self.shape, self.dtype = (len(self._views), first.shape[1]), first.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[np.ndarray]:
        """Scores of consecutive blocks of rows; the next blocks are read meanwhile."""
        views = self._views
        of_results = self.shape[1] * self.dtype.itemsize
        slices = list(row_blocks(views, row_bytes=row_bytes_of(views) + of_results))
        return watched(self._read_ahead(views, slices), views, slices)

    def write(
        self, file: BinaryIO, suffix: str, ids: np.ndarray | None = None, id_name: str = "id"
    ) -> None:
        """Write all scores and ids, in a column `id_name`.

        .parquet and .arrow hold vectors as lists, .csv holds a column for each component, .npz
        arrays named rows and ids, and .npy no ids.
        """
        if suffix == ".npy":
            write_npy(file, self.blocks(), self.shape, self.dtype)
        elif suffix == ".npz":
            write_npz(file, self.blocks(), self.shape, self.dtype, ids)
        else:
            named = None if ids is None else (id_name, ids)
            write_table(file, suffix, self._tables(named, in_lists=suffix != ".csv"))

    def _tables(
        self, ids: tuple[str, np.ndarray] | None, in_lists: bool
    ) -> Iterator[dict[str, np.ndarray]]:
        start = 0
        for block in self.blocks():
            own = {} if ids is None else {ids[0]: ids[1][start : start + len(block)]}
            start += len(block)
            columns = {f"component{number}": column for number, column in enumerate(block.T)}
            yield own | ({"vector": block} if in_lists else columns)

    def _read_ahead(self, views: Views, slices: list[slice]) -> Iterator[np.ndarray]:
        with closing(blocks_read_ahead(views, (), slices, on_device=False)) as read:
            for rows in slices:
                (block,) = next(read)
                yield self._scores(block, f"{self._file}, rows {rows.start} to {rows.stop}")

    def _scores(self, block: Views, where: str) -> np.ndarray:
        try:
            return np.asarray(as_views(self._project(block))[self.name])
        except ValueError as error:
            raise SourceError(f"{where}: {' '.join(str(error).split())}") from error
