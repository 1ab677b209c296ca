"""Trees of tensors and plain values, such as training states, as JSON with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor


def taken_apart(tree: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Split a tree into what JSON can hold and the arrays that it refers to by name."""
    arrays: dict[str, np.ndarray] = {}
    return _encoded(tree, arrays), arrays


def put_together(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Rebuild a tree from the two parts of `taken_apart`."""
    if isinstance(node, list):
        return [put_together(part, arrays) for part in node]
    if not isinstance(node, dict):
        return node
    if "tensor" in node:
        return torch.tensor(arrays[node["tensor"]])
    if "float" in node:
        return float(node["float"])
    return {key: put_together(part, arrays) for key, part in node["items"]}


def _encoded(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(tree, Tensor):
        name = str(len(arrays))
        arrays[name] = tree.detach().cpu().numpy()
        return {"tensor": name}
    if isinstance(tree, dict):  # JSON keys are strings, those of optimizers are numbers
        return {"items": [[key, _encoded(part, arrays)] for key, part in tree.items()]}
    if isinstance(tree, list | tuple):
        return [_encoded(part, arrays) for part in tree]
    if isinstance(tree, float) and not np.isfinite(tree):
        return {"float": str(tree)}
    return tree
