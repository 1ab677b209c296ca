"""Arrays of libraries other than NumPy, through the array API standard.

A *device block* is a matrix of such a library (a torch tensor, a CuPy array), even if its numbers
are in host memory. There is no backend class: code uses operators and the array's `namespace`, and
this module adds what the standard lacks. Models are always NumPy: products run on the device, and
the small statistics are copied to the host as float64. NumPy arrays, SciPy's sparse matrices, and
JAX and Dask arrays, which NumPy converts, are not device blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import array_api_compat as compat
import numpy as np

from mvcca.blocks._block import Block
from mvcca.blocks._dense import DenseBlock
from mvcca.blocks.checks import check_shape, of_view
from mvcca.blocks.libraries import in_numpy, is_device_array
from mvcca.machine.devices import writable

__all__ = ["DeviceBlock", "beside", "in_one_place", "namespace", "sums_by_code"]


class DeviceBlock(Block):
    """Dense rows of another library, computed with by operators of the array API."""

    on_device = True

    @classmethod
    def holds(cls, matrix: Any) -> bool:
        return is_device_array(matrix)

    def __post_init__(self) -> None:
        is_single = self.matrix.dtype == namespace(self.matrix).float32
        self.dtype = np.dtype(np.float32 if is_single else np.float64)  # of rows of floats
        self.shape = self.matrix.shape

    @property
    def storage(self) -> str:
        library, device = type(self.matrix).__module__.partition(".")[0], str(self.matrix.device)
        return f"{library} array" if device == "cpu" else f"{library} array on {device}"

    # ---- the same rows in another form -----------------------------------------------------------

    def take(self, rows: slice | np.ndarray) -> DeviceBlock:
        """Rows selected by a slice or by positions; a forward slice is not copied."""
        X = self.matrix
        if isinstance(rows, slice):
            start, stop, step = rows.indices(X.shape[0])
            if step > 0:
                return DeviceBlock(X[start : max(start, stop) : step, :])
            rows = np.arange(start, stop, step)
        places = beside(np.asarray(rows).astype(np.int64), X)
        return DeviceBlock(namespace(X).take(X, places, axis=0))

    def on_host(self) -> DenseBlock:
        return DenseBlock(in_numpy(self.matrix))

    def plain(self) -> DenseBlock:
        return self.on_host()

    def promoted(self, dtype: np.dtype) -> DeviceBlock:
        xp = namespace(self.matrix)
        known = xp.float32, xp.float64  # `dtype` is float64 for all others
        if self.matrix.dtype in known and np.promote_types(self.dtype, dtype) == self.dtype:
            return self
        return DeviceBlock(xp.astype(self.matrix, xp.float64))

    def about(self, origin: np.ndarray | None) -> DeviceBlock:
        rows = self.promoted(np.dtype(np.float64))
        return rows if origin is None else DeviceBlock(rows.matrix - rows.placed(origin))

    def placed(self, values: np.ndarray) -> Any:
        return beside(values.astype(self.dtype, copy=False), self.matrix)

    @classmethod
    def stacked(cls, blocks: Sequence[Any], axis: int) -> DeviceBlock:
        matrices = [block.matrix for block in blocks]
        return DeviceBlock(namespace(matrices[0]).concat(matrices, axis=axis))

    # ---- products and sums -----------------------------------------------------------------------

    def __matmul__(self, V: np.ndarray) -> Any:
        return self.matrix @ self.placed(V)

    def cross(self, U: np.ndarray) -> np.ndarray:
        X = self.matrix
        return DeviceBlock(namespace(X).matrix_transpose(X) @ self.placed(U)).on_host().matrix

    def column_sums(self, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is not None:
            return self.promoted(np.dtype(np.float64)).cross(weights)
        xp = namespace(self.matrix)
        sums = xp.sum(self.matrix, axis=0, dtype=xp.float64)
        return DeviceBlock(sums).on_host().matrix

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        xp = namespace(self.matrix)
        ends = (xp.min(self.matrix, axis=0), xp.max(self.matrix, axis=0))
        low, high = (DeviceBlock(end).on_host().matrix for end in ends)
        return low, high

    project = DenseBlock.project

    def _affine(self, mean: Any, weights: Any, residue: Any) -> Any:
        """(X - mean) W - residue, by operators that all libraries have."""
        return (self.matrix - mean) @ weights - residue

    def add_by_code(self, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        lines, added = sums_by_code(self.matrix, codes, weights)
        sums[lines] += DeviceBlock(added).on_host().matrix
        return sums

    def is_finite(self) -> bool:
        xp, X = namespace(self.matrix), self.matrix
        # The sum is finite if all values are; check values only if it is not.
        return bool(xp.isfinite(xp.sum(X))) or bool(xp.all(xp.isfinite(X)))

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> DeviceBlock:
        try:
            return self._checked(type(estimator).__name__, **options)
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error

    def _checked(
        self, estimator: str, ensure_min_samples: int = 1, ensure_all_finite: bool | str = True
    ) -> DeviceBlock:
        X, xp = self.matrix, namespace(self.matrix)
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array, got {X.ndim}D array instead, of shape {tuple(X.shape)}. "
                "Reshape your data: a single feature with x.reshape(-1, 1), a single row with "
                "x.reshape(1, -1)."
            )
        if str(getattr(X, "layout", "torch.strided")) != "torch.strided":
            raise TypeError("Sparse tensors are not supported. Pass a sparse matrix of SciPy.")
        if xp.isdtype(X.dtype, "complex floating"):
            raise ValueError(f"Complex data not supported, got {X.dtype}.")
        check_shape(X.shape, estimator, ensure_min_samples)
        if hasattr(X, "detach"):  # gradients through a fit are not supported
            X = X.detach()
        if X.dtype not in (xp.float32, xp.float64):
            X = xp.astype(X, xp.float64)
        found = DeviceBlock(X)
        if not found.is_finite():
            if ensure_all_finite is True and xp.any(xp.isnan(X)):
                raise ValueError("Input contains NaN.")
            if xp.any(xp.isinf(X)):
                raise ValueError("Input contains infinity or a value too large for its precision.")
        return found


def namespace(array: Any) -> Any:
    """Array API namespace of an array, such as that of NumPy or of torch."""
    return compat.array_namespace(array)


def beside(values: np.ndarray, like: Any) -> Any:
    """NumPy values on the device of a device array, in unchanged precision."""
    return namespace(like).asarray(writable(values), device=compat.device(like))


def in_one_place(blocks: Sequence[Block]) -> list[Block] | None:
    """Dense blocks on the device of the first device block; None if there is none."""
    like = next((block.matrix for block in blocks if block.on_device), None)
    if like is None:
        return None
    return [
        block if _is_beside(block, like) else DeviceBlock(beside(block.on_host().matrix, like))
        for block in blocks
    ]


def _is_beside(block: Block, like: Any) -> bool:
    return (
        block.on_device
        and namespace(block.matrix) is namespace(like)
        and compat.device(block.matrix) == compat.device(like)
    )


def sums_by_code(X: Any, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Any]:
    """Sorted codes of device rows, and the weighted sum of the rows of each, in float64.

    It is the product with a sparse matrix if the library has one. Else rows of a code are added
    pairwise, since the array API standard has no grouped sum: deterministic, and as much as two
    passes over the rows.
    """
    xp = namespace(X)
    order = np.argsort(codes, kind="stable")
    grouping = _grouping(X, codes, order, weights)
    if grouping is not None:
        return np.flatnonzero(np.bincount(codes)), grouping @ xp.astype(X, xp.float64)
    codes = codes[order].astype(np.int64)
    rows = xp.astype(xp.take(X, beside(order.astype(np.int64), X), axis=0), xp.float64)
    rows = rows * beside(weights[order].astype(np.float64), X)[:, None]
    while (repeated := codes[1:] == codes[:-1]).any():
        starts = np.flatnonzero(np.concatenate([[True], ~repeated]))
        lengths = np.diff(np.append(starts, len(codes)))
        place = np.arange(len(codes)) - np.repeat(starts, lengths)
        left = np.flatnonzero(place % 2 == 0)
        has_partner = np.append(repeated, False)[left]
        partners = xp.take(rows, beside(left + has_partner, X), axis=0)
        partners = partners * beside(has_partner.astype(np.float64), X)[:, None]
        rows = xp.take(rows, beside(left, X), axis=0) + partners
        codes = codes[left]
    return codes, rows


def _grouping(X: Any, codes: np.ndarray, order: np.ndarray, weights: np.ndarray) -> Any:
    """Matrix of weights with a line per code, sparse on the device of X; None if it has none."""
    xp, counts = namespace(X), np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(counts[counts > 0])])
    shape = (len(starts) - 1, len(codes))
    parts = (beside(own, X) for own in (weights[order].astype(np.float64), order, starts))
    if compat.is_cupy_array(X):
        from cupyx.scipy.sparse import csr_matrix

        return csr_matrix(tuple(parts), shape=shape)
    is_cpu = str(compat.device(X)) == "cpu"
    if not compat.is_torch_array(X) or (is_cpu and not xp.backends.mkl.is_available()):
        return None
    values, columns, starts = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that such tensors are new
        return xp.sparse_csr_tensor(starts, columns, values, shape)
