"""Products with the similarity matrix G on a device: its tiles are made where they are used.

The same formulas as `LabelGram`'s own, in the array API; user functions and distances of real label
vectors that are not squared are computed at home, and their tiles copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mvcca._backend import namespace, placed, precision, to_host
from mvcca.labels import LabelTable

_TILE_BYTES = 256 * 2**20
_LEAST_ROWS = 256

Fill = Callable[[slice, slice, np.ndarray], None]


class DeviceGram:
    """Tiles of G like a block of sums: in its precision, and on its device.

    Parameters
    ----------
    table : LabelTable
        U distinct label vectors.
    similarity : str or callable
        The formula; "sqexp" and "exp" of indicators, and "sqexp", are computed on the device.
    sigma : float
        Its bandwidth.
    fill : callable
        Writes a tile at home, for all other formulas.
    like : device block
    """

    def __init__(
        self, table: LabelTable, similarity: Any, sigma: float, fill: Fill, like: Any
    ) -> None:
        self._n, self._like, self._xp = len(table), like, namespace(like)
        dtype = precision(like)
        self._rows = max(_LEAST_ROWS, _TILE_BYTES // (dtype.itemsize * max(1, self._n)))
        self._has_unit_diagonal = similarity in ("sqexp", "exp")
        self._fill, self._is_root = fill, similarity == "exp"
        self._vectors = None
        if similarity == "sqexp" or (similarity == "exp" and table.is_binary):
            vectors = table.dense().astype(np.float64)
            if not table.is_binary:  # indicators are exact as they are
                vectors = vectors - vectors.mean(axis=0)
            self._vectors = placed(vectors, like)
            self._half_norms = self._xp.sum(self._vectors * self._vectors, axis=1) / 2
            self._scale = min(1 / float(sigma), float(np.finfo(dtype).max))  # inf x 0 is NaN

    def quadratic(self, S: Any) -> np.ndarray:
        """SᵀGS at home: products in the precision of S, added up in float64."""
        xp = self._xp
        half = xp.zeros((S.shape[1], S.shape[1]), dtype=xp.float64, device=S.device)
        for start in range(0, self._n, self._rows):
            rows = slice(start, min(start + self._rows, self._n))
            product = self._tile(rows, rows) / 2 @ S[rows, :]
            if start:
                product = product + self._tile(rows, slice(0, start)) @ S[:start, :]
            half = half + xp.astype(xp.matrix_transpose(S[rows, :]) @ product, xp.float64)
        half = to_host(half)
        return half + half.T

    def times(self, V: Any) -> np.ndarray:
        """GV at home, for a narrow V of shape (U, v)."""
        starts = range(0, self._n, self._rows)
        blocks = (slice(start, min(start + self._rows, self._n)) for start in starts)
        everything = slice(0, self._n)
        parts = [to_host(self._tile(rows, everything) @ V) for rows in blocks]
        return np.concatenate(parts).astype(np.float64)

    def _tile(self, rows: slice, columns: slice) -> Any:
        """G[rows, columns]; whatever rounding made of a distance of nothing, the diagonal is 1."""
        xp = self._xp
        if self._vectors is None:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            tile = np.empty(shape, dtype=precision(self._like))
            self._fill(rows, columns, tile)
            tile = placed(tile, self._like)
        else:
            A, B = self._vectors[rows, :], self._vectors[columns, :]
            halves = self._half_norms[rows][:, None] + self._half_norms[columns]
            halves = xp.maximum(halves - A @ xp.matrix_transpose(B), xp.zeros_like(halves))
            distances = xp.sqrt(2 * halves) if self._is_root else halves
            tile = xp.exp(-self._scale * distances)
        if not self._has_unit_diagonal or columns.stop <= rows.start:
            return tile
        own = np.arange(*rows.indices(self._n))[:, None] == np.arange(*columns.indices(self._n))
        return xp.where(placed(own, tile) > 0, xp.ones_like(tile), tile)
