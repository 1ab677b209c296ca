"""Label checks: identical labels, and views that share no label, raise; missing labels warn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks.checks import few
from mvcca.machine.warnings import warn
from mvcca.similarity import Similarity
from mvcca.statistics import LabelSums
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView


def check_label_vectors(sums: LabelSums) -> None:
    """Check label sums of all batches so far; a later batch may bring labels in common."""
    empty = _empty_sets(sums.labels)
    if empty.any():
        warn(
            f"{sums.counts[empty].sum():g} rows have no labels. They count as similar to each "
            "other (under cosine, to no row); drop them if that is not intended."
        )
    codes = {name: np.flatnonzero(sums.counts[:, p]) for p, name in enumerate(sums.widths)}
    check_shared_labels(LabelsByView(sums.labels, codes), refuse=False)


def check_labels(labels: LabelsByView) -> None:
    """Check labelled rows, for methods that compare labels in common."""
    empty = _empty_sets(labels.distinct)
    check_shared_labels(labels)
    n_empty = sum(int(empty[code].sum()) for code in labels.codes.values())
    if n_empty:
        warn(f"{n_empty} rows have no labels; drop them if that is not intended.")


def check_shared_labels(labels: LabelsByView, *, refuse: bool = True) -> None:
    """Refuse a view none of whose labels is a label of another view, or warn of it.

    Real label vectors are compared by distance, and need not have any in common.
    """
    if not labels.distinct.are_sets or len(labels.codes) < 2:
        return
    names = {name: labels[name].present() for name in labels.codes}
    for name, own in names.items():
        others = {label for other, known in names.items() if other != name for label in known}
        if own and others and others.isdisjoint(own):
            message = (
                f"The labels of view {name!r} ({few(own)}) have nothing in common with those of "
                f"the other views ({few(sorted(others, key=str))}), so labels link no row of it to "
                "theirs. Use the same names in all views, or word vectors "
                "(mvcca.Labels.word_sums)."
            )
            if refuse:
                raise ValueError(message)
            warn(message)
            return


def check_bandwidth(labels: Labels, similarity: Similarity, sigma: float, dtype: Any) -> None:
    """Refuse a bandwidth so large that the similarities of all labels round to 1."""
    if similarity not in ("sqexp", "exp"):
        return
    vectors = labels.vectors
    # ‖z - z_1‖² of all distinct label vectors: no two are more than twice as far apart.
    if labels.are_sets:
        sizes = np.diff(vectors.indptr)
        shared = csr_array(vectors, dtype=np.int64) @ vectors[[0]].toarray()[0].astype(np.int64)
        squares = sizes + sizes[0] - 2 * shared
    else:
        squares = np.square(vectors - vectors[0]).sum(axis=1)
    distance = float(squares.max() / 2 if similarity == "sqexp" else np.sqrt(squares.max()))
    least = np.sqrt(np.finfo(dtype).eps)  # half of the digits
    if distance / sigma < least:
        raise ValueError(
            f"sigma={sigma:g} is too large: similarities of different labels are 1 but for "
            f"{distance / sigma:.1g}, which is lost to rounding in {np.dtype(dtype)}. Expected at "
            f"most {distance / least:.2g}; labels are about {distance:.2g} apart in its units."
        )


def _empty_sets(distinct: Labels) -> np.ndarray:
    """Which of at least two distinct label vectors are empty sets."""
    if len(distinct) < 2:
        raise ValueError(
            "All rows have the same labels, so that labels distinguish nothing. Expected at least "
            "two distinct classes or label sets in y."
        )
    return distinct.set_sizes == 0 if distinct.are_sets else np.zeros(len(distinct), bool)
