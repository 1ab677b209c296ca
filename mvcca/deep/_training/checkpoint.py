"""Checkpoint file of a training: the trainer's state, and the seeds that the training started from.

The trainer decides when it is written. The file format is that of `mvcca.machine.archive`: no
pickle.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from mvcca.machine.archive import read_archive, write_archive
from mvcca.statistics.passes import refuse_other_files


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file from which an interrupted training resumes."""

    path: Path
    fingerprints: dict[str, str]  # texts that identify the rows and each parameter
    seeds: list[int]  # of the interrupted training; `random_state=None` draws others
    state: dict[str, Any] | None  # the trainer's `state_dict`; None without a file

    @classmethod
    def open(cls, path: Path, fingerprints: dict[str, str], seeds: list[int]) -> Self:
        """Read the file if it exists, else start a checkpoint with the given seeds."""
        if not path.exists():
            return cls(path, fingerprints, seeds, None)
        arrays, content = read_archive(path)
        refuse_other_files(path, content)
        found = content["fingerprint"]
        if found != fingerprints:
            known = found if isinstance(found, dict) else {}  # a sum over rows has one text
            changed = [name for name, text in fingerprints.items() if known.get(name) != text]
            raise ValueError(
                f"The checkpoint {path} is of a fit with other data or parameters: "
                f"{', '.join(changed)} differ. Use the same ones, or remove the checkpoint to "
                "start over."
            )
        tree = put_together(content["state"], arrays)
        return cls(path, fingerprints, tree["seeds"], tree["training"])

    def write(self, state: dict[str, Any]) -> None:
        """Replace the file atomically."""
        tree, arrays = taken_apart({"seeds": self.seeds, "training": state})
        write_archive(self.path, arrays, {"fingerprint": self.fingerprints, "state": tree})


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
