"""Rows of a view that are not in memory, checked block by block as they are read.

What a matrix in memory is asked for at once, by `mvcca.validation`, these are asked for when they
come; an error says which of the rows that the user passed it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_array

from mvcca._sparse import canonical
from mvcca.sources import RowSource
from mvcca.sources._selection import as_index, as_positions, composed
from mvcca.validation import FLOATS

_NAMED_ROWS = 5  # at most, in an error


class CheckedRows(RowSource):
    """Rows of another source as floats without NaN and infinity.

    Parameters
    ----------
    source : RowSource
        The rows as they are stored.
    name : str
        The view, for errors.
    estimator : str
        Who asks, for errors.
    ensure_min_samples : int, default=0
        The least number of rows.
    """

    def __init__(
        self, source: RowSource, name: str, estimator: str, ensure_min_samples: int = 0
    ) -> None:
        if source.dtype.kind not in "biuf":
            raise ValueError(f"View {name!r}: expected real numbers, got {source.dtype}.")
        for size, what, least in zip(
            source.shape, ("sample", "feature"), (ensure_min_samples, 1), strict=True
        ):
            if size < least:
                raise ValueError(
                    f"View {name!r}: Found array with {size} {what}(s) (shape={source.shape}) "
                    f"while a minimum of {least} is required by {estimator}."
                )
        self._view, self._estimator = name, estimator
        self._hold(source, range(len(source)))

    def _hold(self, source: RowSource, positions: range | np.ndarray) -> None:
        """Rows of a source, which stand at some positions in the view that the user passed."""
        self.source, self._positions = source, positions
        dtype = np.float32 if source.dtype == np.float32 else np.float64
        self._describe(source.shape, dtype, source.boundaries, source.columns)
        self.is_sparse = source.is_sparse

    def __getitem__(self, rows: Any) -> CheckedRows:
        """Rows by a slice, a mask or positions, which an error goes on to name as they were."""
        chosen = as_positions(rows, len(self))
        selected = copy(self)
        selected._hold(self.source[as_index(chosen)], composed(self._positions, chosen))
        return selected

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory as floats, on average."""
        return self.source.row_bytes * self.dtype.itemsize // self.source.dtype.itemsize

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for start, stop in runs:
            yield self.checked(self.source.read(start, stop), start)

    def _identity(self) -> tuple[Any, ...]:
        return (self.source.fingerprint(),)

    def _name(self) -> str:
        return self.source._name()

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        """As of any source; what is made of a chunk is checked."""
        deferred = self.source.deferred()
        if deferred is None:
            return None
        array, read = deferred
        door = copy(self)
        del door.source  # which does not travel
        return array, partial(_checked, door, read)

    def map_lazily(self, function: Callable[[Any], np.ndarray], width: int) -> Any:
        """What `function` makes of blocks of a Dask array, not computed; None of other sources."""
        deferred = self.deferred()
        if deferred is None:
            return None
        array, read = deferred
        return array.rechunk({1: -1}).map_blocks(
            _mapped, read, function, chunks=(array.chunks[0], (width,)),
            dtype=self.dtype, meta=np.empty((0, width), self.dtype),
        )  # fmt: skip

    def checked(self, rows: Any, start: int) -> Any:
        """Rows that were read from `start` on, as floats without NaN and infinity."""
        try:
            return check_array(
                canonical(rows),
                accept_sparse="csr",
                dtype=FLOATS,
                ensure_min_samples=0,
                estimator=self._estimator,
            )
        except ValueError as error:
            where = self._in_words(rows, self._positions[start : start + rows.shape[0]])
            raise ValueError(f"View {self._view!r}, {where}: {error}") from error

    def _in_words(self, rows: Any, positions: range | np.ndarray) -> str:
        """Neighbouring rows from first to last; of others, those that are not finite."""
        if isinstance(positions, range) and positions.step == 1:
            return f"rows {positions.start} to {positions.stop}"
        with np.errstate(over="ignore", invalid="ignore"):
            nothing = np.asarray((rows.astype(self.dtype) * 0).sum(axis=1)).reshape(-1)
        bad = [str(positions[row]) for row in np.flatnonzero(np.isnan(nothing))]
        more = f" and {len(bad) - _NAMED_ROWS} more" if len(bad) > _NAMED_ROWS else ""
        return f"row{'s' * (len(bad) > 1)} {', '.join(bad[:_NAMED_ROWS])}{more}"


def _checked(door: CheckedRows, read: Callable[[Any, int], Any], chunk: Any, start: int) -> Any:
    return door.checked(read(chunk, start), start)


def _mapped(
    chunk: Any,
    read: Callable[[Any, int], Any],
    function: Callable[[Any], np.ndarray],
    block_info: Any = None,
) -> np.ndarray:
    start = block_info[0]["array-location"][0][0] if block_info else 0
    return function(read(chunk, start))
