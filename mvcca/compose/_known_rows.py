"""Transform rows and note those in which a transformer finds nothing that it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline

from mvcca.blocks.array_api import is_device_array
from mvcca.blocks.sparse import rows_without_entries
from mvcca.compose._tokens import Tokens


def transform_noting_empty(transformer: Any, block: Any) -> tuple[Any, np.ndarray | None]:
    """The transformed rows, and which of them are empty after any step, or None.

    Empty are sparse rows of zeros; of texts, and of other items that are no numbers, rows that are
    zero when they become numbers; and texts of unknown words. Later steps may hide them: truncated
    SVD and scaling make ordinary rows of them.
    """
    empty: np.ndarray | None = None
    for step in _steps(transformer):
        are_numbers = _are_numbers(block)
        block = step.transform(block)
        found = _empty_rows(step, block, are_numbers)
        if found is not None:
            empty = found if empty is None else np.logical_or(empty, found)
    return block, empty


def _empty_rows(step: Any, block: Any, were_numbers: bool) -> np.ndarray | None:
    if isinstance(step, Tokens):
        return step._rows_without_words(block)
    if issparse(block):
        return rows_without_entries(block)
    if were_numbers or not _are_numbers(block):
        return None
    return np.asarray(~np.asarray(block).any(axis=1))


def _are_numbers(block: Any) -> bool:
    """Whether a block is a matrix of numbers, and not of texts or other items."""
    if issparse(block) or is_device_array(block):
        return True
    dtypes = block.dtypes if hasattr(block, "columns") else [np.asarray(block).dtype]
    return all(getattr(dtype, "kind", "O") in "biufc" for dtype in dtypes)


def _steps(transformer: Any) -> list[Any]:
    """Transformers of nested pipelines, in order."""
    if not isinstance(transformer, Pipeline):
        return [transformer]
    parts = [part for _, part in transformer.steps if part not in (None, "passthrough")]
    return [step for part in parts for step in _steps(part)]
