"""Rows of a view that are not in memory, validated block by block as they are read.

`mvcca.blocks.checks` checks matrices in memory; this module makes the same checks on each block.
Errors name the rows by their positions in the matrix that the user passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks._sparse import host_block
from mvcca.blocks.checks import FLOATS, check_shape, is_about_finite, not_finite
from mvcca.blocks.sources._file import FileSource
from mvcca.blocks.sources._row_source import (
    Positions,
    RowSource,
    Selection,
    as_index,
    as_positions,
    composed,
)

_NAMED_ROWS = 5  # at most, in an error


class CheckedRows(Selection):
    """Rows of a source as finite floats, or NaN if allowed; errors name view and estimator."""

    def __init__(
        self,
        source: RowSource,
        name: str,
        estimator: str,
        ids: np.ndarray | None = None,
        ensure_min_samples: int = 0,
        ensure_all_finite: bool | str = True,
    ) -> None:
        if source.dtype.kind not in "biuf":
            raise ValueError(f"View {name!r}: expected real numbers, got {source.dtype}.")
        check_shape(source.shape, estimator, ensure_min_samples, f"View {name!r}: ")
        self._view, self._estimator, self._finite = name, estimator, ensure_all_finite
        self._ids = ids
        self._head: list[tuple[int, np.ndarray]] = []  # at most one, shared with selections
        self._select_floats(source, range(len(source)))

    def _select_floats(self, source: RowSource, rows: Positions) -> None:
        dtype = np.float32 if source.dtype == np.float32 else np.float64
        super().__init__(source, rows, dtype)
        self.name = source.name
        self.row_bytes = source.row_bytes * self.dtype.itemsize // source.dtype.itemsize

    def __getitem__(self, rows: Any) -> CheckedRows:
        """Rows selected by a slice, a mask or positions; errors still name original positions."""
        selected = copy(self)
        selected._head = self._head
        positions = composed(self.rows, as_positions(rows, len(self)))
        selected._select_floats(self.source, positions)
        return selected

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_head": []}

    def keep(self, rows: np.ndarray) -> None:
        """Hand these rows to the next reader, if it begins with the first of them."""
        if isinstance(self.rows, range) and self.rows.step == 1:
            self._head[:] = [(self.rows.start, rows)]

    def _kept(self, positions: Positions) -> list[np.ndarray]:
        """Rows at the first positions, if they are kept: a block, or none."""
        with suppress(IndexError):  # no rows are kept, or another thread takes them
            first, rows = self._head.pop()
            if isinstance(positions, range) and positions[:1] == range(first, first + 1):
                if len(positions) < len(rows):
                    self._head.append((positions.stop, rows[len(positions) :]))
                return [rows[: len(positions)]]
        return []

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for start, stop in ranges:
            parts = self._kept(self.rows[start:stop])
            begin = start + sum(map(len, parts))
            if begin < stop or not parts:
                [block] = super().blocks([(begin, stop)])
                parts.append(self.checked(block, begin))
            yield parts[0] if len(parts) == 1 else np.concatenate(parts)

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        """As of any source; rows of chunks are validated."""
        if self.source.deferred() is None:
            return None
        array, read = self.source[as_index(self.rows)].deferred()  # type: ignore[misc]
        checks = copy(self)
        del checks.source  # not sent to workers
        return array, partial(_checked, checks, read)

    def checked(self, rows: Any, start: int) -> Any:
        """A block of rows from `start` on, as checked floats."""
        block = host_block(rows).canonical()
        if block.are_finite_floats():
            return block.matrix
        from sklearn.utils import check_array

        matrix = block.matrix
        options = {
            "accept_sparse": "csr",
            "dtype": FLOATS,
            "ensure_min_samples": 0,
            "ensure_all_finite": self._finite,
        }
        try:
            return check_array(matrix, estimator=self._estimator, **options)
        except ValueError as error:
            positions = self.rows[start : start + rows.shape[0]]
            where, found = self._named(rows, positions), self._explained(error, matrix, positions)
            raise ValueError(f"View {self._view!r}, {where}: {found}") from error

    def _explained(self, error: ValueError, matrix: Any, positions: Positions) -> ValueError:
        """The cell of the user's matrix or, if it is in a file, of the file."""
        if not is_about_finite(error):
            return error
        numbers, file = np.asarray(positions), getattr(self, "source", None)
        ids = None if self._ids is None else self._ids[numbers]
        if isinstance(file, Selection):
            numbers, file = np.asarray(file.rows)[numbers], file.source
        found = not_finite(
            matrix.astype(self.dtype),
            numbers=numbers,
            ids=ids,
            columns=self.columns,
            file=file.path if isinstance(file, FileSource) else None,
            allows_nan=self._finite == "allow-nan",
        )
        return ValueError(f"Input {found}")

    def _named(self, rows: Any, positions: Positions) -> str:
        """Contiguous rows by their range; others by those with values that are not finite."""
        if isinstance(positions, range) and positions.step == 1:
            return f"rows {positions.start} to {positions.stop}"
        with np.errstate(over="ignore", invalid="ignore"):
            zeros = np.asarray((rows.astype(self.dtype) * 0).sum(axis=1)).reshape(-1)
        bad = [str(positions[row]) for row in np.flatnonzero(np.isnan(zeros))]
        more = f" and {len(bad) - _NAMED_ROWS} more" if len(bad) > _NAMED_ROWS else ""
        return f"row{'s' * (len(bad) > 1)} {', '.join(bad[:_NAMED_ROWS])}{more}"


def _checked(checks: CheckedRows, read: Callable[[Any, int], Any], chunk: Any, start: int) -> Any:
    return checks.checked(read(chunk, start), start)
