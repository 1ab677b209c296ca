"""Labels of objects, with their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.containers import few
from mvcca.views.labels import encode_labels, in_one_table


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

    def __post_init__(self) -> None:
        n_labels = self.vectors.shape[1]
        if len(self.names) != n_labels or len(set(self.names)) < n_labels:
            raise ValueError(
                f"Expected a different name for each of {n_labels} labels, got {few(self.names)}."
            )

    @classmethod
    def of(cls, *parts: Any, names: Sequence[Any] | None = None) -> Labels:
        """Stack labels in any form; `names` are those of classes 0, 1, ... or of columns."""
        table, codes = in_one_table([encode_labels(part) for part in parts])
        columns: Sequence[Any] = range(table.vectors.shape[1])
        if table.vocabulary is not None:
            columns = list(table.vocabulary)
        if names is not None:
            if max(columns) >= len(names):
                raise ValueError(
                    f"Expected names of classes 0 to {max(columns)}, got {len(names)} names."
                )
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

    @property
    def are_classes(self) -> bool:
        """Whether every object has exactly one label."""
        return self.are_sets and bool((np.diff(self.vectors.indptr) == 1).all())

    def texts(self) -> list[str]:
        """Names of each object's labels, joined by commas."""
        return [", ".join(names) for names in self._names_of_each()]

    def by_name(self) -> Any:
        """Labels as estimators take them: classes or label sets by name, or label vectors."""
        if not self.are_sets:
            return self.vectors
        if self.are_classes:
            return np.array(self.texts())
        return [set(names) for names in self._names_of_each()]

    def _names_of_each(self) -> list[list[str]]:
        if not self.are_sets:
            return [[]] * len(self)
        names = np.array(self.names, dtype=object)[self.vectors.indices].tolist()
        return [names[start:end] for start, end in pairwise(self.vectors.indptr.tolist())]

    def describe(self) -> str:
        """A short description of the labels."""
        if not self.are_sets:
            return f"label vectors of length {self.vectors.shape[1]}"
        per_object = self.vectors.sum() / len(self)
        if self.are_classes:
            return f"{len(self.names)} classes"
        return f"{len(self.names)} labels, {per_object:.1f} per object"
