"""What labels must be like to learn from them: not all the same; and better there than not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca._warnings import warn
from mvcca.labels import LabelTable
from mvcca.similarity import Similarity
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


def check_bandwidth(table: LabelTable, similarity: Similarity, sigma: float, dtype: Any) -> None:
    """A bandwidth so large that similarities of all labels round to 1 is an error."""
    if similarity not in ("sqexp", "exp"):
        return
    squares = _squared_distances_from_first(table)
    distance = float(squares.max() / 2 if similarity == "sqexp" else np.sqrt(squares.max()))
    least = np.sqrt(np.finfo(dtype).eps)  # half of the digits
    if distance / sigma < least:
        raise ValueError(
            f"sigma={sigma:g} is too large: similarities of different labels are 1 but for "
            f"{distance / sigma:.1g}, which is lost to rounding in {np.dtype(dtype)}. Expected at "
            f"most {distance / least:.2g}; labels are about {distance:.2g} apart in its units."
        )


def _squared_distances_from_first(table: LabelTable) -> np.ndarray:
    """‖z - z_1‖² of all distinct label vectors: no two are more than twice as far apart."""
    vectors = table.vectors
    if not table.is_binary:
        return np.square(vectors - vectors[0]).sum(axis=1)
    sizes = np.diff(vectors.indptr)
    shared = csr_array(vectors, dtype=np.int64) @ vectors[[0]].toarray()[0].astype(np.int64)
    return sizes + sizes[0] - 2 * shared


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
