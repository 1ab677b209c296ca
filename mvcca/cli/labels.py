"""Labels of objects with their names, and reading them from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.arrays import FORMATS, read_array
from mvcca.cli.errors import CommandError
from mvcca.labels import encode_labels, in_one_table


@dataclass(frozen=True, eq=False)
class Labels:
    """One label vector per object.

    Attributes
    ----------
    vectors : csr_array of 0/1 or ndarray of float, shape (n, n_labels)
        Classes and label sets as an indicator matrix, or real label vectors.
    names : sequence of str, shape (n_labels,)
        Names of the columns.
    """

    vectors: Any
    names: Sequence[str]

    @classmethod
    def of(cls, *parts: Any, names: Sequence[Any] | None = None) -> Labels:
        """Stack labels in any form; `names` are those of classes 0, 1, ... or of columns."""
        table, codes = in_one_table([encode_labels(part) for part in parts])
        columns: Sequence[Any] = range(table.vectors.shape[1])
        if table.vocabulary is not None:
            columns = list(table.vocabulary)
        if names is not None:
            columns = [names[column] for column in columns]
        elif table.vocabulary is None:
            columns = [f"label {column}" for column in columns]
        return cls(table.vectors[np.concatenate(codes)], [str(column) for column in columns])

    def __len__(self) -> int:
        return self.vectors.shape[0]

    def __getitem__(self, rows: Any) -> Labels:
        return Labels(self.vectors[rows], self.names)

    @property
    def are_sets(self) -> bool:
        """Whether labels are classes or label sets, which define relevant items."""
        return issparse(self.vectors)

    def texts(self) -> list[str]:
        """Names of each object's labels, joined by commas."""
        if not self.are_sets:
            return [""] * len(self)
        starts, columns = self.vectors.indptr, self.vectors.indices
        return [
            ", ".join(self.names[column] for column in columns[start:end])
            for start, end in pairwise(starts)
        ]

    def describe(self) -> str:
        """A short description of the labels."""
        if not self.are_sets:
            return f"label vectors of length {self.vectors.shape[1]}"
        per_object = self.vectors.sum() / len(self)
        if (np.diff(self.vectors.indptr) == 1).all():
            return f"{len(self.names)} classes"
        return f"{len(self.names)} labels, {per_object:.1f} per object"


def read_labels(name: str, n_rows: int | None = None) -> Any:
    """Read labels, in a form that `Labels.of` accepts, from a file.

    A ``.txt`` file has one label set per line, separated by commas; an empty line is an object
    without labels. Other formats contain one class per row, an indicator matrix or real label
    vectors. `n_rows` is the expected number of objects; see `read_array`.
    """
    if name.lower().endswith(".txt"):
        return _read_label_sets(Path(name))
    array = read_array(name, f".txt, {FORMATS}", n_rows)
    array = array if issparse(array) else np.asarray(array)
    if array.ndim == 2 and array.dtype.kind in "US":
        if array.shape[1] > 1:
            raise CommandError(
                f"{name}: expected one column of class names, got {array.shape[1]}; save label "
                "sets in a .txt file, one set per line"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2) or not array.shape[0]:
        raise CommandError(
            f"{name}: expected a class per row or a matrix with one row per object, got an array "
            f"of shape {array.shape}"
        )
    try:
        encode_labels(array)
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from error
    return array


def _read_label_sets(path: Path) -> list[frozenset[str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {error}") from error
    sets = [frozenset(filter(None, map(str.strip, line.split(",")))) for line in lines]
    if not any(sets):
        raise CommandError(f"{path}: expected one label set per line, found no label")
    return sets
