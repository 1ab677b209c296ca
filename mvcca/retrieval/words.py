"""Word vectors of labels, by which labels of different vocabularies are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.measures import unit_rows
from mvcca.measures.arrays import checked_matrix
from mvcca.views import Labels


def with_words(labels: Labels, vectors: Any, view: str | None = None) -> Labels:
    """The same labels with word vectors, given by name or as a matrix of one row per label."""
    where = "" if view is None else f" of view {view!r}"
    if isinstance(vectors, Mapping):
        if labels.vocabulary is None:
            raise ValueError(
                f"label_vectors by name need named labels, but those{where} are {labels.n_labels} "
                "columns without names. Pass one row of word vectors per column, or label sets."
            )
        missing = [name for name in labels.vocabulary if name not in vectors]
        if missing:
            raise KeyError(f"no word vector for the labels {missing}{where}")
        vectors = [vectors[name] for name in labels.vocabulary]
    words = checked_matrix(as_block(vectors).dense().matrix, f"label_vectors{where}")
    if len(words) != labels.n_labels:
        raise ValueError(
            f"Expected one word vector per label{where}, got {len(words)} for {labels.n_labels} "
            "labels."
        )
    return replace(labels, words=unit_rows(words.astype(np.float64)))


def words_by_view(label_vectors: Any, names: Sequence[str]) -> dict[str, Any]:
    """Word vectors for each view: those given for it, or for all views."""
    if not isinstance(label_vectors, Mapping) or not set(names) & set(label_vectors):
        return dict.fromkeys(names, label_vectors)
    if set(label_vectors) != set(names):
        raise ValueError(f"Expected label_vectors of the views {names}, got {list(label_vectors)}.")
    return dict(label_vectors)
