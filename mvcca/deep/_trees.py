"""States of training: trees of tensors and plain values, copied, and as JSON with arrays beside it.

Checkpoints are such a tree in a file of `mvcca._archive`, checked and never pickled. What a trainer
takes up of it is the business of `mvcca.deep._training_state`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mvcca._archive import read_archive, write_archive
from mvcca.passes import refuse_other_files


def copied(tree: Any) -> Any:
    """The tree with tensors of its own, where they are."""
    if isinstance(tree, Tensor):
        return tree.detach().clone()
    if isinstance(tree, dict):
        return {name: copied(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [copied(part) for part in tree]
    return tree


def write(path: Path, tree: Any, fingerprint: str) -> None:
    """Keep a state, whole or not at all."""
    state, arrays = taken_apart(tree)
    write_archive(path, arrays, {"fingerprint": fingerprint, "state": state})


def read(path: Path, fingerprint: str) -> Any:
    """The state in a checkpoint.

    Raises
    ------
    ValueError
        If the file is of other data or parameters, or is not a checkpoint.
    """
    arrays, content = read_archive(path)
    refuse_other_files(path, content)
    if content["fingerprint"] != fingerprint:
        raise ValueError(
            f"The checkpoint {path} is of a fit of other data or parameters, or the files have "
            "changed since. Give the same, or remove the checkpoint to start over."
        )
    return put_together(content["state"], arrays)


def taken_apart(tree: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """What JSON can hold of a tree, and the arrays that this names."""
    arrays: dict[str, np.ndarray] = {}
    return _encoded(tree, arrays), arrays


def put_together(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The tree again, with tensors of its own."""
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
    if isinstance(tree, dict):  # JSON makes strings of keys, and the optimiser's are numbers
        return {"items": [[key, _encoded(part, arrays)] for key, part in tree.items()]}
    if isinstance(tree, list | tuple):
        return [_encoded(part, arrays) for part in tree]
    if isinstance(tree, float) and not np.isfinite(tree):
        return {"float": str(tree)}
    return tree
