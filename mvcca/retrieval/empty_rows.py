"""Rows in which a model finds nothing that it knows: texts of new words, sparse rows of zeros.

The model projects all of them to one point, whatever they say. As queries they have no answer.
`Ranking.project` notes them. Sparse rows of zeros are empty for every model; a transformer and a
model can tell of others:

- ``transform_noting_empty(X)`` of a transformer returns what `transform` does, and which rows of
  each view are empty, a mapping to arrays of bool without the views that have none;
- ``n_words_`` of a model maps each view of words to the size of its vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.views import Views


def without_empty(views: Views, empty: Mapping[str, np.ndarray]) -> Views:
    """Views in which objects are not seen where their row is empty."""
    index = np.where(views.seen, np.cumsum(views.seen, axis=0) - 1, -1)
    for column, name in zip(index.T, views.names, strict=True):
        if name in empty:
            column[views.objects(name)[empty[name]]] = -1
    return Views(dict(views.items()), index)


def without_words(rows: Any, n_words: int) -> np.ndarray:
    """Which rows of positions in a vocabulary hold no word of it; 0 pads, and 1 is unknown."""
    positions = as_block(rows).dense().matrix
    return np.asarray(~((positions > 1) & (positions < n_words)).any(axis=1))


def note_on(n_empty: int, n_queries: int) -> str:
    """What users are told of empty queries."""
    return f"{n_empty} of {n_queries} queries empty (no known word, or only zeros)"
