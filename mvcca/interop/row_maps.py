"""Maps of rows, applied in blocks. Affine maps keep the means of rows apart from their bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mvcca.machine.threads import each
from mvcca.measures import unit_rows

_TILE_ROWS = 512  # stay in cache between centring, product and check
_PART_ROWS = 4 * _TILE_ROWS  # of one thread


@dataclass(frozen=True, eq=False)
class CentredMap:
    """The map x ↦ (x - center)ᵀW + offset."""

    center: np.ndarray  # (n_features,)
    W: np.ndarray  # (n_features, n_outputs)
    offset: np.ndarray  # (n_outputs,)

    @property
    def n_features(self) -> int:
        """Number of features of the rows."""
        return len(self.W)

    @property
    def bias(self) -> np.ndarray:
        """The constant b of x ↦ xᵀW + b."""
        return self.offset - self.center @ self.W

    def after_scaling(self, scale: Any, center: Any = None, shift: float = 0.0) -> CentredMap:
        """This map of x ↦ scale (x - center) + shift, feature by feature."""
        W = np.broadcast_to(scale, self.center.shape)[:, None] * self.W
        own = self.center - shift
        if center is None:
            return CentredMap(own / scale, W, self.offset)
        return CentredMap(np.asarray(center, dtype=float), W, self.offset - own @ self.W)

    def after_product(self, matrix: Any, center: Any = 0.0) -> CentredMap:
        """This map of x ↦ (x - center)ᵀ matrix."""
        centers = np.broadcast_to(np.asarray(center, dtype=float), matrix.shape[:1])
        return CentredMap(centers, np.asarray(matrix @ self.W), self.bias)

    def after_selection(self, kept: np.ndarray) -> CentredMap:
        """This map of the features that a boolean mask keeps."""
        center, W = np.zeros(len(kept)), np.zeros((len(kept), self.W.shape[1]))
        center[kept], W[kept] = self.center, self.W
        return CentredMap(center, W, self.offset)

    def apply(self, rows: np.ndarray, name: str, *, to_unit: bool = False) -> np.ndarray:
        """Mapped rows of a view, in the precision of the rows; raises if they are not finite.

        With `to_unit`, they are scaled to length 1.
        """
        dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        W, before, after = (part.astype(dtype) for part in (self.W, self.center, self.offset))
        mapped = np.empty((len(rows), W.shape[1]), dtype=dtype)

        def fill(part: slice) -> None:
            centred = np.empty((_TILE_ROWS, len(W)), dtype=dtype)
            for start in range(part.start, part.stop, _TILE_ROWS):
                tile = mapped[start : start + _TILE_ROWS]
                with np.errstate(over="ignore", invalid="ignore"):  # which raises below
                    np.subtract(rows[start : start + _TILE_ROWS], before, out=centred[: len(tile)])
                    np.matmul(centred[: len(tile)], W, out=tile)
                    tile += after
                    length = np.vdot(tile, tile)  # the fastest look at all numbers
                if not (np.isfinite(length) or np.isfinite(tile).all()):  # it may overflow
                    raise ValueError(
                        f"View {name!r} contains NaN, infinity or numbers that overflow."
                    )
                if to_unit:
                    tile[:] = unit_rows(tile)

        if len(rows) <= _PART_ROWS:  # few rows gain nothing from threads
            fill(slice(0, len(rows)))
            return mapped
        starts = range(0, len(rows), _PART_ROWS)
        each(fill, (slice(a, min(a + _PART_ROWS, len(rows))) for a in starts))
        return mapped


@dataclass(frozen=True, eq=False)
class LocalMaps:
    """The affine map of the nearest center, for each row."""

    centers: np.ndarray  # (n_maps, n_features)
    maps: tuple[CentredMap, ...]

    @property
    def n_features(self) -> int:
        """Number of features of the rows."""
        return self.centers.shape[1]

    def nearest(self, rows: np.ndarray) -> np.ndarray:
        """Number of the map of each row."""
        lengths = np.einsum("ij,ij->i", self.centers, self.centers) / 2
        with np.errstate(over="ignore", invalid="ignore"):  # the maps raise
            return np.asarray(np.argmin(lengths - rows @ self.centers.T, axis=1))

    def apply(self, rows: np.ndarray, name: str, *, to_unit: bool = False) -> np.ndarray:
        """Mapped rows of a view, in the precision of the rows; raises if they are not finite."""
        own = self.nearest(rows)
        n_outputs = self.maps[0].W.shape[1]
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        mapped = np.empty((len(rows), n_outputs), dtype=dtype)
        for number, own_map in enumerate(self.maps):
            chosen = np.flatnonzero(own == number)
            mapped[chosen] = own_map.apply(rows[chosen], name, to_unit=to_unit)
        return mapped


RowMap: TypeAlias = CentredMap | LocalMaps
