"""Labels as the command line holds them: one label vector per object, and names to print.

All forms that `mvcca.labels` accepts become an indicator matrix, or real label vectors; read from
a file, they may also be label sets in a text file. What a view's rows are is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.errors import CommandError
from mvcca.cli.files import FORMATS, read_array
from mvcca.labels import encode_labels

__all__ = ["Labels", "read_labels"]


@dataclass(frozen=True, eq=False)
class Labels:
    """A label vector for each of n objects.

    Attributes
    ----------
    vectors : csr_array of 0/1 or ndarray of float, shape (n, n_labels)
        What estimators and measures are given as ``y``.
    names : sequence of str, shape (n_labels,)
        What the columns mean.
    """

    vectors: Any
    names: Sequence[str]

    @classmethod
    def of(cls, *parts: Any, names: Sequence[Any] | None = None) -> Labels:
        """Stack labels in any form; `names` are those of classes 0, 1, ... or of columns."""
        table, codes = encode_labels(parts[0])
        for part in parts[1:]:
            other, more = encode_labels(part)
            size = len(table)
            table, lines = table.merge(other)
            codes = np.concatenate([lines[:size][codes], lines[size:][more]])
        columns: Sequence[Any] = range(table.vectors.shape[1])
        if table.vocabulary is not None:
            columns = list(table.vocabulary)
        if names is not None:
            columns = [names[column] for column in columns]
        elif table.vocabulary is None:
            columns = [f"label {column}" for column in columns]
        return cls(table.vectors[codes], [str(column) for column in columns])

    def __len__(self) -> int:
        return self.vectors.shape[0]

    def __getitem__(self, rows: Any) -> Labels:
        return Labels(self.vectors[rows], self.names)

    @property
    def are_sets(self) -> bool:
        """Whether they are classes or label sets, which can make items relevant."""
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
        """What they are, in a few words."""
        if not self.are_sets:
            return f"label vectors of length {self.vectors.shape[1]}"
        per_object = self.vectors.sum() / len(self)
        if (np.diff(self.vectors.indptr) == 1).all():
            return f"{len(self.names)} classes"
        return f"{len(self.names)} labels, {per_object:.1f} per object"


def read_labels(name: str, n_rows: int | None = None) -> Any:
    """Read labels in a form that `Labels.of` takes.

    Parameters
    ----------
    name : str
        A path. ``.txt`` holds a label set per line, labels separated by commas, and an empty line
        is an object without labels. The other formats hold a class per row, an indicator matrix or
        real label vectors.
    n_rows : int, optional
        The number of objects, which decides whether a first line that could be either names the
        columns.

    Returns
    -------
    list of frozenset of str, ndarray or csr_array

    Raises
    ------
    CommandError
        If the file is missing or damaged, or does not hold labels.
    """
    if name.lower().endswith(".txt"):
        return _read_label_sets(Path(name))
    array = read_array(name, f".txt, {FORMATS}", n_rows)
    array = array if issparse(array) else np.asarray(array)
    if array.ndim == 2 and array.dtype.kind in "US":
        if array.shape[1] > 1:
            raise CommandError(
                f"{name}: expected one column of class names, got {array.shape[1]}; label sets are "
                "read from a .txt file, one set per line"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2) or not array.shape[0]:
        raise CommandError(
            f"{name}: expected a class per row or a matrix with a row per object, got an array of "
            f"shape {array.shape}"
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
        raise CommandError(f"{path}: expected a label set per line, found no label")
    return sets
