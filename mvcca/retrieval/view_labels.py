"""Label sets of the rows of each view, and word vectors of their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.measures import unit_rows
from mvcca.measures._checks import checked_matrix
from mvcca.views.labels import LabelTable, encode_label_sets


@dataclass(frozen=True, eq=False)
class ViewLabels:
    """Label sets of the rows of a view."""

    table: LabelTable  # distinct label sets
    codes: np.ndarray  # (n_rows,), row of the table
    words: np.ndarray | None = None  # (n_labels, n_dims), a vector of length 1 per label

    def __getitem__(self, rows: Any) -> ViewLabels:
        return replace(self, codes=self.codes[rows])

    def __len__(self) -> int:
        return len(self.codes)

    def has_other_columns(self, other: ViewLabels) -> bool:
        """Whether word vectors tell that columns without names are other labels in `other`."""
        return (
            self.table is not other.table
            and self.words is not None
            and other.words is not None
            and self.table.vocabulary is None
            and other.table.vocabulary is None
            and not np.array_equal(self.words, other.words)
        )


def labels_of_objects(
    labels: Any, objects: Mapping[str, np.ndarray], label_vectors: Any
) -> dict[str, ViewLabels]:
    """Label sets by view, from those of the objects."""
    table, [codes] = encode_label_sets(labels)
    n_objects = 1 + max(int(o.max(initial=-1)) for o in objects.values())
    if len(codes) != n_objects:
        raise ValueError(
            f"Expected labels of {n_objects} objects, got {len(codes)}. Labels that differ "
            "between views are passed as a mapping by view name."
        )
    words = None if label_vectors is None else word_vectors(table, label_vectors)
    return {name: ViewLabels(table, codes[rows], words) for name, rows in objects.items()}


def labels_of_views(
    labels: Mapping[str, Any], rows: Mapping[str, np.ndarray], label_vectors: Any
) -> dict[str, ViewLabels]:
    """Label sets by view, from those of the rows of each view.

    With `label_vectors`, every view has its own vocabulary.
    """
    if set(labels) != set(rows):
        raise ValueError(f"Expected labels of the views {list(rows)}, got {list(labels)}.")
    if label_vectors is None:
        table, of_each = encode_label_sets(*(labels[name] for name in rows))
        encoded = {
            name: ViewLabels(table, codes) for name, codes in zip(rows, of_each, strict=True)
        }
    else:
        vectors = _by_view(label_vectors, list(rows))
        encoded = {}
        for name in rows:
            table, [codes] = encode_label_sets(labels[name])
            encoded[name] = ViewLabels(table, codes, word_vectors(table, vectors[name], name))
        widths = {name: own.words.shape[1] for name, own in encoded.items()}  # type: ignore[union-attr]
        if len(set(widths.values())) > 1:
            raise ValueError(f"Expected word vectors of one length in all views, got {widths}.")
    for name, block in rows.items():
        if len(encoded[name]) != len(block):
            raise ValueError(
                f"View {name!r} has {len(block)} rows but {len(encoded[name])} labels."
            )
    return encoded


def _by_view(label_vectors: Any, names: list[str]) -> dict[str, Any]:
    """Word vectors for each view: those given for it, or for all views."""
    if not isinstance(label_vectors, Mapping) or not set(names) & set(label_vectors):
        return dict.fromkeys(names, label_vectors)
    if set(label_vectors) != set(names):
        raise ValueError(f"Expected label_vectors of the views {names}, got {list(label_vectors)}.")
    return dict(label_vectors)


def word_vectors(table: LabelTable, vectors: Any, view: str | None = None) -> np.ndarray:
    """Word vectors of the labels of a table, scaled to length 1."""
    where = "" if view is None else f" of view {view!r}"
    n_labels = table.vectors.shape[1]
    if isinstance(vectors, Mapping):
        if table.vocabulary is None:
            raise ValueError(
                f"label_vectors by name need named labels, but those{where} are {n_labels} columns "
                "without names. Pass one row of word vectors per column, or label sets."
            )
        missing = [name for name in table.vocabulary if name not in vectors]
        if missing:
            raise KeyError(f"no word vector for the labels {missing}{where}")
        vectors = [vectors[name] for name in table.vocabulary]
    elif issparse(vectors):
        vectors = vectors.toarray()
    words = checked_matrix(vectors, f"label_vectors{where}")
    if len(words) != n_labels:
        raise ValueError(
            f"Expected one word vector per label{where}, got {len(words)} for {n_labels} labels."
        )
    return unit_rows(words.astype(np.float64))
