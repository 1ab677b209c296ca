"""Rows in a file, projected by a model block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.cli.errors import in_one_line
from mvcca.cli.inputs import open_view
from mvcca.passes import row_blocks, watched
from mvcca.views import Views, as_views

__all__ = ["Projection"]


@dataclass(frozen=True, eq=False)
class Projection:
    """Scores of a view's rows, of which a block at a time is in memory.

    Attributes
    ----------
    project : callable
        Makes scores of views, such as a model's ``transform``.
    name : str
        The view.
    file : str
        Where its rows are.
    rows : RowSource, ndarray or csr_array, shape (n_rows, n_features)
    width : int
        Number of components.
    dtype : dtype
        Of the scores.
    """

    project: Callable[[Any], Any]
    name: str
    file: str
    rows: Any
    width: int
    dtype: np.dtype

    @classmethod
    def open(cls, project: Callable[[Any], Any], name: str, file: str) -> Projection:
        """Open a file and see that the model takes its rows.

        Raises
        ------
        CommandError
            If it does not, or the file cannot be read.
        """
        rows = open_view(name, file)
        with in_one_line(f"{file}: "):
            first = as_views(project({name: rows[:1]}))[name]
        return cls(project, name, file, rows, first.shape[1], first.dtype)

    def __len__(self) -> int:
        return self.rows.shape[0]

    def blocks(self) -> Iterator[np.ndarray]:
        """Scores of one block of rows after the other."""
        views = Views({self.name: self.rows})
        slices = list(row_blocks(views))
        return watched(map(self.part, slices), views, slices)

    def part(self, rows: slice) -> np.ndarray:
        """Scores of some rows.

        Raises
        ------
        CommandError
            If they cannot be read, or are not finite.
        """
        with in_one_line(f"{self.file}, rows {rows.start} to {rows.stop}: "):
            block = Views({self.name: self.rows})[rows].in_memory()
            return np.asarray(as_views(self.project(block))[self.name])

    def in_memory(self) -> np.ndarray:
        """All scores, (n_rows, width)."""
        scores = np.empty((len(self), self.width), dtype=self.dtype)
        start = 0
        for block in self.blocks():
            scores[start : start + len(block)] = block
            start += len(block)
        return scores
