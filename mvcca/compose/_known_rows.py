"""Transform rows and note those in which a transformer finds nothing that it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mvcca.blocks import as_block
from mvcca.compose._tokens import Tokens
from mvcca.retrieval.empty_rows import without_words


def transform_noting_empty(transformer: Any, block: Any) -> tuple[Any, np.ndarray | None]:
    """The transformed rows, and which of them are empty after any step, or None.

    Empty are sparse rows of zeros; of texts, and of other items that are no numbers, rows that are
    zero when they become numbers; and texts of unknown words. Later steps may hide them: truncated
    SVD and scaling make ordinary rows of them.
    """
    empty: np.ndarray | None = None
    for step in _steps(transformer):
        are_numbers = as_block(block).holds_numbers()
        block = step.transform(block)
        found = _empty_rows(step, block, are_numbers)
        if found is not None:
            empty = found if empty is None else np.logical_or(empty, found)
    return block, empty


def _empty_rows(step: Any, block: Any, were_numbers: bool) -> np.ndarray | None:
    if isinstance(step, Tokens):
        return without_words(block, step.n_words_)
    rows = as_block(block)
    found = rows.empty_rows()
    if found is None and not were_numbers and rows.holds_numbers():
        found = ~rows.dense().matrix.any(axis=1)
    return found


def _steps(transformer: Any) -> list[Any]:
    """Transformers of nested pipelines, in order."""
    if not isinstance(transformer, Pipeline):
        return [transformer]
    parts = [part for _, part in transformer.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in _steps(part)]
