"""Rows in which a model finds nothing that it knows: texts of new words, sparse rows of zeros.

The model projects all of them to one point, whatever they say. As queries they have no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.views import Views, as_views, holds_views

Empty = Sequence[np.ndarray | None]  # of each view: which rows are empty, None if none is


def transformed(steps: Sequence[Any], X: Any) -> tuple[Any, Empty]:
    """X after transformers, and the rows that are empty after any of them."""
    if not steps:
        return X, ()
    empty: Empty = [None for _ in _blocks(X)]
    for step in steps:
        if hasattr(step, "_transform_noting_empty"):
            X, found = step._transform_noting_empty(X)
        else:
            X = step.transform(X)
            found = [None for _ in _blocks(X)]
        empty = _either(empty, found)
    return X, empty


def empty_for(model: Any, X: Any, before: Empty) -> Empty:
    """Rows that hold nothing for a model, or for the transformers before it."""
    found: Empty = [as_block(block).empty_rows() for block in _blocks(X)]
    if hasattr(model, "_rows_without_words") and holds_views(X):
        views = as_views(X, model.view_names_, unpaired=True)
        words = [model._rows_without_words(name, block) for name, block in views.items()]
        found = _either(found, words)
    found = _either(before, found) if before else found
    return [rows if rows is not None and rows.any() else None for rows in found]


def without_empty(views: Views, empty: Empty) -> Views:
    """Views in which objects are not seen where their row is empty."""
    if all(rows is None for rows in empty):
        return views
    index = np.where(views.seen, np.cumsum(views.seen, axis=0) - 1, -1)
    for column, name, rows in zip(index.T, views.names, empty, strict=True):
        if rows is not None:
            column[views.objects(name)[rows]] = -1
    return Views(dict(views.items()), index)


def note_on(n_empty: int, n_queries: int) -> str:
    """What users are told of empty queries."""
    return f"{n_empty} of {n_queries} queries empty (no known word, or only zeros)"


def _either(first: Empty, second: Empty) -> Empty:
    """Rows that are empty in either; a transformer that changed the views starts over."""
    if len(first) != len(second):
        return second
    pairs = zip(first, second, strict=True)
    return [b if a is None else a if b is None else a | b for a, b in pairs]


def _blocks(X: Any) -> list[Any]:
    """Matrices of a container of views, or the lone matrix."""
    if isinstance(X, Views):
        return [block for _, block in X.items()]
    if not holds_views(X):
        return [X]
    return list(X.values() if isinstance(X, Mapping) else X)
