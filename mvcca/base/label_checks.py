"""Label checks: identical labels, and views that share no label, raise; missing labels warn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks.containers import few
from mvcca.machine.warnings import warn
from mvcca.similarity import Similarity
from mvcca.statistics import LabelSums
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView


def check_label_vectors(sums: LabelSums) -> None:
    """Check label sums of all batches so far; a later batch may bring labels in common."""
    _check_distinct(sums.labels)
    empty = _without_labels(sums.labels)
    if empty.any():
        warn(
            f"{sums.counts[empty].sum():g} rows have no labels. They count as similar to each "
            "other (under cosine, to no row); drop them if that is not intended."
        )
    codes = {name: np.flatnonzero(sums.counts[:, p]) for p, name in enumerate(sums.widths)}
    if (unlinked := _unlinked(LabelsByView(sums.labels, codes))) is not None:
        warn(unlinked)


def check_labels(labels: LabelsByView) -> None:
    """Check labelled rows, for methods that compare labels in common."""
    _check_distinct(labels.distinct)
    check_shared_labels(labels)
    empty = _without_labels(labels.distinct)
    n_empty = sum(int(empty[code].sum()) for code in labels.codes.values())
    if n_empty:
        warn(f"{n_empty} rows have no labels; drop them if that is not intended.")


def check_shared_labels(labels: LabelsByView) -> None:
    """Refuse a view none of whose labels is a label of another view."""
    if (unlinked := _unlinked(labels)) is not None:
        raise ValueError(unlinked)


def _unlinked(labels: LabelsByView) -> str | None:
    """The error message for a view without a label in common with the others; None if all have one.

    Real label vectors are compared by distance, and need not have any in common.
    """
    if not labels.distinct.are_sets or len(labels.codes) < 2:
        return None
    names = {name: labels[name].present() for name in labels.codes}
    for name, own in names.items():
        others = {label for other, known in names.items() if other != name for label in known}
        if own and others and others.isdisjoint(own):
            return (
                f"The labels of view {name!r} ({few(own)}) have nothing in common with those of "
                f"the other views ({few(sorted(others, key=str))}), so labels link no row of it to "
                "theirs. Use the same names in all views, or word vectors "
                "(mvcca.Labels.word_sums)."
            )
    return None


def check_bandwidth(labels: Labels, similarity: Similarity, sigma: float, dtype: Any) -> None:
    """Refuse a bandwidth so large that the similarities of all labels round to 1."""
    if similarity not in ("sqexp", "exp"):
        return
    squares = _squared_distances_from_first(labels)
    distance = float(squares.max() / 2 if similarity == "sqexp" else np.sqrt(squares.max()))
    least = np.sqrt(np.finfo(dtype).eps)  # half of the digits
    if distance / sigma < least:
        raise ValueError(
            f"sigma={sigma:g} is too large: similarities of different labels are 1 but for "
            f"{distance / sigma:.1g}, which is lost to rounding in {np.dtype(dtype)}. Expected at "
            f"most {distance / least:.2g}; labels are about {distance:.2g} apart in its units."
        )


def _squared_distances_from_first(labels: Labels) -> np.ndarray:
    """‖z - z_1‖² of all distinct label vectors: no two are more than twice as far apart."""
    vectors = labels.vectors
    if not labels.are_sets:
        return np.square(vectors - vectors[0]).sum(axis=1)
    sizes = np.diff(vectors.indptr)
    shared = csr_array(vectors, dtype=np.int64) @ vectors[[0]].toarray()[0].astype(np.int64)
    return sizes + sizes[0] - 2 * shared


def _check_distinct(labels: Labels) -> None:
    if len(labels) < 2:
        raise ValueError(
            "All rows have the same labels, so that labels distinguish nothing. Expected at least "
            "two distinct classes or label sets in y."
        )


def _without_labels(labels: Labels) -> np.ndarray:
    """Which of the distinct label vectors are empty sets."""
    if not labels.are_sets:
        return np.zeros(len(labels), bool)
    return labels.set_sizes == 0
