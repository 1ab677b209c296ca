"""The checkpoint of a training: the trainer's state, and the seeds that the training started from.

When it is written is decided by the trainer; the file format is that of `mvcca.deep._trees`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mvcca.deep import _trees


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file that an interrupted training resumes from.

    Attributes
    ----------
    path : Path
    fingerprint : str
        Of data and parameters.
    seeds : list of int
        Of the training in the file; random_state=None would draw others.
    state : dict or None
        The trainer's `state_dict` in the file; None if there is no file yet.
    """

    path: Path
    fingerprint: str
    seeds: list[int]
    state: dict[str, Any] | None

    @classmethod
    def open(cls, path: Path, fingerprint: str, seeds: list[int]) -> Self:
        """Read the file if it exists, else start one with these seeds.

        Raises
        ------
        ValueError
            If it is of other data or parameters.
        """
        if not path.exists():
            return cls(path, fingerprint, seeds, None)
        tree = _trees.read(path, fingerprint)
        return cls(path, fingerprint, tree["seeds"], tree["training"])

    def write(self, state: dict[str, Any]) -> None:
        """Keep a state, whole or not at all."""
        _trees.write(self.path, {"seeds": self.seeds, "training": state}, self.fingerprint)
