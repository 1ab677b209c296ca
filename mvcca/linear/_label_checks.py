"""Label checks: identical labels, and views that share no label, raise; missing labels warn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mvcca._containers import few
from mvcca._warnings import warn
from mvcca.labels import LabelTable, label_names
from mvcca.statistics import LabelSums


def check_label_vectors(sums: LabelSums) -> None:
    """Check label sums of all batches so far; a later batch may bring labels in common."""
    _check_distinct(sums.table)
    empty = _without_labels(sums.table)
    if empty.any():
        warn(
            f"{sums.counts[empty].sum():g} rows have no labels. They count as alike to each other "
            "(under cosine, to nothing); drop them if that is not meant."
        )
    codes = {name: np.flatnonzero(sums.counts[:, p]) for p, name in enumerate(sums.widths)}
    if (unlinked := _unlinked(sums.table, codes)) is not None:
        warn(unlinked)


def check_labels(table: LabelTable, codes: Mapping[str, np.ndarray]) -> None:
    """Check labelled rows, for methods to which rows without labels are not even alike."""
    _check_distinct(table)
    check_shared_labels(table, codes)
    empty = _without_labels(table)
    n_empty = sum(int(empty[code].sum()) for code in codes.values())
    if n_empty:
        warn(f"{n_empty} rows have no labels; drop them if that is not meant.")


def check_shared_labels(table: LabelTable, codes: Mapping[str, np.ndarray]) -> None:
    """Refuse a view none of whose labels is a label of another view."""
    if (unlinked := _unlinked(table, codes)) is not None:
        raise ValueError(unlinked)


def _unlinked(table: LabelTable, codes: Mapping[str, np.ndarray]) -> str | None:
    """What to say of a view without a label in common with the others; None if there is none.

    Real label vectors are compared by distance, and need not have any in common.
    """
    if not table.is_binary or len(codes) < 2:
        return None
    names = {name: label_names(table, code) for name, code in codes.items()}
    for name, own in names.items():
        others = {label for other, labels in names.items() if other != name for label in labels}
        if own and others and others.isdisjoint(own):
            return (
                f"The labels of view {name!r} ({few(own)}) have nothing in common with those of "
                f"the other views ({few(sorted(others, key=str))}), so labels link no row of it to "
                "theirs. Use the same names in all views, or word vectors "
                "(mvcca.labels.label_vectors)."
            )
    return None


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
