"""Arrays of libraries other than NumPy, through the array API standard.

A *device block* is a matrix of such a library (a torch tensor, a CuPy array), even if its numbers
are in host memory. There is no backend class: code uses operators and the array's `namespace`, and
this module adds what the standard lacks. Models are always NumPy: products run on the device, and
the small statistics are copied to the host as float64. NumPy arrays, SciPy's sparse matrices, and
JAX and Dask arrays, which NumPy converts, are not device blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import array_api_compat as compat
import numpy as np

from mvcca.machine.devices import writable


def is_device_array(block: Any) -> bool:
    """Whether an array belongs to a library other than NumPy, and is not converted."""
    return compat.is_array_api_obj(block) and not (
        compat.is_numpy_array(block)
        or isinstance(block, np.generic)
        or compat.is_dask_array(block)
        or compat.is_jax_array(block)
        or compat.is_pydata_sparse_array(block)
    )


def namespace(block: Any) -> Any:
    """Array API namespace of an array."""
    return compat.array_namespace(block)


def precision(block: Any) -> np.dtype:
    """NumPy dtype of a block of floats."""
    if not is_device_array(block):
        return block.dtype
    return np.dtype(np.float32 if block.dtype == namespace(block).float32 else np.float64)


def promoted(block: Any, dtype: np.dtype) -> Any:
    """A block in `dtype` or in its present precision, whichever is higher."""
    if np.promote_types(precision(block), dtype) == precision(block):
        return block
    if not is_device_array(block):
        return block.astype(dtype)
    return namespace(block).astype(block, namespace(block).float64)


def to_host(block: Any) -> Any:
    """A device block as a NumPy array; other blocks unchanged."""
    if not is_device_array(block):
        return block
    if compat.is_cupy_array(block):
        return compat.to_device(block, "cpu")
    if compat.is_torch_array(block):
        return np.asarray(compat.to_device(block.detach(), "cpu"))
    host = namespace(block).__array_namespace_info__().default_device()
    return np.asarray(compat.to_device(block, host))


def placed(values: np.ndarray, like: Any) -> Any:
    """NumPy values in the precision and on the device of another block."""
    values = values.astype(precision(like), copy=False)
    return beside(values, like) if is_device_array(like) else values


def beside(values: np.ndarray, like: Any) -> Any:
    """NumPy values on the device of a device block, in unchanged precision."""
    return namespace(like).asarray(writable(values), device=compat.device(like))


def in_one_place(blocks: Sequence[Any]) -> list[Any] | None:
    """Dense blocks on the device of the first device block; None if there is none."""
    like = next((block for block in blocks if is_device_array(block)), None)
    if like is None:
        return None
    return [block if _is_beside(block, like) else beside(to_host(block), like) for block in blocks]


def _is_beside(block: Any, like: Any) -> bool:
    return (
        is_device_array(block)
        and namespace(block) is namespace(like)
        and compat.device(block) == compat.device(like)
    )


def rows_of(block: Any, rows: slice | np.ndarray) -> Any:
    """Rows of a device block; a forward slice is not copied."""
    if isinstance(rows, slice):
        start, stop, step = rows.indices(block.shape[0])
        if step > 0:
            return block[start : max(start, stop) : step, :]
        rows = np.arange(start, stop, step)
    return namespace(block).take(block, beside(rows.astype(np.int64), block), axis=0)
