"""Arrays of libraries other than NumPy, such as tensors of torch, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import array_api_compat as compat
import numpy as np


def is_device_array(values: Any) -> bool:
    """Whether values are an array of a library other than NumPy, which computes with it.

    NumPy converts arrays of JAX and Dask, which do not count.
    """
    return compat.is_array_api_obj(values) and not (
        compat.is_numpy_array(values)
        or isinstance(values, np.generic)
        or compat.is_dask_array(values)
        or compat.is_jax_array(values)
        or compat.is_pydata_sparse_array(values)
    )


def in_numpy(values: Any) -> Any:
    """A device array as a NumPy array in host memory; other values unchanged.

    NumPy has no bfloat16, which becomes float32. Gradients are left out.
    """
    if type(values) is np.ndarray or not is_device_array(values):
        return values
    if compat.is_cupy_array(values):
        return compat.to_device(values, "cpu")
    if compat.is_torch_array(values):
        values = compat.to_device(values.detach(), "cpu")
        return np.asarray(values.float() if "bfloat16" in str(values.dtype) else values)
    host = compat.array_namespace(values).__array_namespace_info__().default_device()
    return np.asarray(compat.to_device(values, host))
