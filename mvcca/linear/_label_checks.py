"""What labels must be like to learn from them: not all the same; and better there than not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mvcca._warnings import warn
from mvcca.labels import LabelTable
from mvcca.statistics import LabelSums


def check_label_vectors(sums: LabelSums) -> None:
    """Of label sums: labels all the same are an error; rows without labels deserve a word."""
    _check_distinct(sums.table)
    empty = _without_labels(sums.table)
    if empty.any():
        warn(
            f"{sums.counts[empty].sum():g} rows have no labels. They count as alike to each other "
            "(under cosine, to nothing); drop them if that is not meant."
        )


def check_labels(table: LabelTable, codes: Mapping[str, np.ndarray]) -> None:
    """Of labelled rows, for methods to which rows without labels are not even alike."""
    _check_distinct(table)
    empty = _without_labels(table)
    n_empty = sum(int(empty[code].sum()) for code in codes.values())
    if n_empty:
        warn(f"{n_empty} rows have no labels; drop them if that is not meant.")


def _check_distinct(table: LabelTable) -> None:
    if len(table) < 2:
        raise ValueError(
            "All rows have the same labels, so that labels tell nothing apart. Expected at least "
            "two distinct classes or label sets in y."
        )


def _without_labels(table: LabelTable) -> np.ndarray:
    """Which of the distinct label vectors are empty sets."""
    if not table.is_binary:
        return np.zeros(len(table), bool)
    return np.diff(table.vectors.indptr) == 0
