"""Project the rows of a file with a model, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.cli.errors import in_one_line
from mvcca.cli.inputs import open_view
from mvcca.passes import blocks_read_ahead, row_blocks, watched
from mvcca.views import Views, as_views


@dataclass(frozen=True, eq=False)
class Projection:
    """Scores of a view's rows, computed one block at a time.

    Attributes
    ----------
    project : callable
        Function from views to scores, such as a model's ``transform``.
    name, file : str
        The view and its file.
    rows : RowSource, ndarray or csr_array, shape (n_rows, n_features)
    width : int
        Number of components.
    dtype : dtype
        Type of the scores.
    """

    project: Callable[[Any], Any]
    name: str
    file: str
    rows: Any
    width: int
    dtype: np.dtype

    @classmethod
    def open(cls, project: Callable[[Any], Any], name: str, file: str) -> Projection:
        """Open a file and check on its first row that the model accepts it."""
        rows = open_view(name, file)
        with in_one_line(f"{file}: "):
            first = as_views(project({name: rows[:1]}))[name]
        return cls(project, name, file, rows, first.shape[1], first.dtype)

    def __len__(self) -> int:
        return self.rows.shape[0]

    def blocks(self) -> Iterator[np.ndarray]:
        """Scores of consecutive blocks of rows."""
        views = Views({self.name: self.rows})
        slices = list(row_blocks(views))
        return watched(self._read_ahead(views, slices), views, slices)

    def _read_ahead(self, views: Views, slices: list[slice]) -> Iterator[np.ndarray]:
        with closing(blocks_read_ahead(views, (), slices, on_device=False)) as read:
            for rows in slices:
                with self._errors_of(rows):
                    (block,) = next(read)
                    scores = self._scores(block)
                yield scores

    def part(self, rows: slice) -> np.ndarray:
        """Scores of a slice of rows."""
        with self._errors_of(rows):
            return self._scores(Views({self.name: self.rows})[rows].in_memory())

    def _scores(self, block: Views) -> np.ndarray:
        return np.asarray(as_views(self.project(block))[self.name])

    def _errors_of(self, rows: slice) -> AbstractContextManager[None]:
        return in_one_line(f"{self.file}, rows {rows.start} to {rows.stop}: ")

    def in_memory(self) -> np.ndarray:
        """All scores, (n_rows, width)."""
        scores = np.empty((len(self), self.width), dtype=self.dtype)
        start = 0
        for block in self.blocks():
            scores[start : start + len(block)] = block
            start += len(block)
        return scores
