"""Products with the similarity matrix G on a device, tile by tile.

Formulas are those of `LabelGram` in the array API. Tiles of user functions, and of unsquared
distances between real label vectors, are computed on the host and copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mvcca.blocks import as_block, namespace, to_host
from mvcca.views import Labels

_TILE_BYTES = 256 * 2**20
_LEAST_ROWS = 256

Fill = Callable[[slice, slice, np.ndarray], None]


class DeviceGram:
    """Products with G in the precision and on the device of a block of sums, `like`."""

    # "sqexp", and "exp" of indicators, are computed on the device; `fill` fills a tile of all other
    # similarities on the host.

    def __init__(
        self, labels: Labels, similarity: Any, sigma: float, fill: Fill, like: Any
    ) -> None:
        self._n, self._like, self._xp = labels.n_distinct, like, namespace(like)
        dtype = as_block(like).dtype
        self._rows = max(_LEAST_ROWS, _TILE_BYTES // (dtype.itemsize * max(1, self._n)))
        self._has_unit_diagonal = similarity in ("sqexp", "exp")
        self._fill, self._is_root = fill, similarity == "exp"
        self._vectors = None
        if similarity == "sqexp" or (similarity == "exp" and labels.are_sets):
            vectors = labels.dense().astype(np.float64)
            if not labels.are_sets:  # centring reduces rounding; indicators are exact
                vectors = vectors - vectors.mean(axis=0)
            self._vectors = as_block(like).placed(vectors)
            self._half_norms = self._xp.sum(self._vectors * self._vectors, axis=1) / 2
            self._scale = min(1 / float(sigma), float(np.finfo(dtype).max))  # inf x 0 is NaN

    def quadratic(self, S: Any) -> np.ndarray:
        """SᵀGS in host memory: products in the precision of S, summed in float64."""
        xp = self._xp
        half = xp.zeros((S.shape[1], S.shape[1]), dtype=xp.float64, device=S.device)
        for start in range(0, self._n, self._rows):
            rows = slice(start, min(start + self._rows, self._n))
            # Half of the diagonal tile, since half + halfᵀ has it twice.
            product = self._tile(rows, rows) / 2 @ S[rows, :]
            if start:
                product = product + self._tile(rows, slice(0, start)) @ S[:start, :]
            half = half + xp.astype(xp.matrix_transpose(S[rows, :]) @ product, xp.float64)
        return to_host(half + xp.matrix_transpose(half))

    def times(self, V: Any) -> np.ndarray:
        """GV in host memory, for a narrow V of shape (U, v)."""
        starts = range(0, self._n, self._rows)
        blocks = (slice(start, min(start + self._rows, self._n)) for start in starts)
        everything = slice(0, self._n)
        parts = [to_host(self._tile(rows, everything) @ V) for rows in blocks]
        return np.concatenate(parts).astype(np.float64)

    def _tile(self, rows: slice, columns: slice) -> Any:
        """G[rows, columns], with a diagonal of exactly 1 in spite of rounding."""
        xp = self._xp
        if self._vectors is None:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            tile = np.empty(shape, dtype=as_block(self._like).dtype)
            self._fill(rows, columns, tile)
            tile = as_block(self._like).placed(tile)
        else:
            A, B = self._vectors[rows, :], self._vectors[columns, :]
            halves = self._half_norms[rows][:, None] + self._half_norms[columns]
            halves = xp.maximum(halves - A @ xp.matrix_transpose(B), xp.zeros_like(halves))
            distances = xp.sqrt(2 * halves) if self._is_root else halves
            tile = xp.exp(-self._scale * distances)
        if not self._has_unit_diagonal or columns.stop <= rows.start:
            return tile
        places = (xp.arange(own.start, own.stop, device=tile.device) for own in (rows, columns))
        is_diagonal = xp.equal(next(places)[:, None], next(places))
        return xp.where(is_diagonal, xp.ones_like(tile), tile)
