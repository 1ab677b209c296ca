"""Groups of objects that belong together, such as copies of one image: given, or found by hashing.

A copy of a training object in the held-out part is no new object, and methods that memorize the
training rows would look good on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mvcca.blocks import as_block
from mvcca.blocks.checks import as_vector, check_same_rows, few, is_missing, row_labels
from mvcca.model_selection.folds import Fold
from mvcca.views import Labels, Views


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of objects."""

    codes: np.ndarray  # (n_objects,) of int, from 0
    repeats: dict[str, int] = field(default_factory=dict)  # objects with a row that occurs again

    @classmethod
    def given_by(cls, groups: Any, views: Views, ids: np.ndarray | None = None) -> Groups:
        """Groups as the user gives them: one per object, or by view name one per row."""
        return cls(_numbered(_of_objects(groups, views, ids)))

    @classmethod
    def found_in(cls, views: Views, labels: Labels | None = None) -> Groups | None:
        """Objects that have a row in common, directly or through other objects."""
        # Rows that describe labels, such as the attributes of classes, do not count: one row for
        # all objects with the same labels, and another one for each other label set. If all views
        # are like that, the objects are copies.
        rows = {name: _row_codes(block) for name, block in views.items()}
        if labels is not None:
            of_objects = {
                name: codes
                for name, codes in rows.items()
                if not _are_alike(codes, labels.codes[views.objects(name)])
            }
            rows = of_objects or rows
        repeats = {name: int(_is_repeated(codes).sum()) for name, codes in rows.items()}
        if not any(repeats.values()):
            return None
        return cls(_linked(views, rows), {name: n for name, n in repeats.items() if n})

    @property
    def are_given(self) -> bool:
        """Whether they are the user's."""
        return not self.repeats

    def describe(self, folds: Sequence[Fold]) -> str:
        """A note on what the folds make of the groups."""
        if self.are_given:
            return f"groups: {self.codes.max() + 1:,}, each in one part of a split"
        where = ", ".join(f"{name}: {n:,}" for name, n in self.repeats.items())
        n_copies = int((np.bincount(self.codes)[self.codes] > 1).sum())
        n_known = max(np.isin(self.codes[f.test], self.codes[f.train]).sum() for f in folds)
        found = f"repeated rows ({where}): {n_copies:,} objects share a row with another object"
        if not n_known:
            return f"{found} and are in the same part of a split as that object"
        return (
            f"{found}; up to {n_known:,} held-out objects of a split repeat a training row, which "
            "flatters methods that memorize. Pass groups to keep copies together"
        )


def _of_objects(given: Any, views: Views, ids: np.ndarray | None) -> list[Any]:
    """The group of each object as it was given."""
    if isinstance(given, Mapping):
        if set(given) != set(views.names) or views.seen.sum(axis=1).max() > 1:
            raise ValueError(
                f"Expected groups of the objects, or by view for the unpaired views "
                f"{list(views.names)}; got groups of {few(given)}."
            )
        found = np.empty(len(views), dtype=object)
        for name in views.names:
            places = views.objects(name)
            found[places] = _one_each(given[name], len(places), f"rows of view {name!r}")
        return found.tolist()
    known = np.arange(len(views)) if ids is None else ids
    check_same_rows("the groups", row_labels(given), "the views", known)
    return _one_each(given, len(views), "objects")


def _one_each(given: Any, n: int, what: str) -> list[Any]:
    values = as_vector(given)
    if values.shape != (n,):
        raise ValueError(
            f"Expected groups of {n} {what}, got shape {values.shape}. Of groups within "
            "groups, pass the outermost ones."
        )
    return values.tolist()


def _numbered(names: list[Any]) -> np.ndarray:
    """Numbers of the groups in order of appearance."""
    numbers: dict[Any, int] = {}
    for name in names:
        if is_missing(name):
            raise ValueError("Expected a group for every object, got a missing value.")
        numbers.setdefault(name, len(numbers))
    return np.array([numbers[name] for name in names], dtype=int)


def _linked(views: Views, rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """Numbers of the groups of objects that share a row, directly or through other objects."""
    objects, copies, start = [], [], len(views)
    for name, codes in rows.items():
        linked = _is_repeated(codes)
        objects.append(views.objects(name)[linked])
        copies.append(start + codes[linked])
        start += int(codes.max(initial=-1)) + 1
    edges = np.concatenate(objects), np.concatenate(copies)
    graph = coo_array((np.ones(len(edges[0]), dtype=bool), edges), shape=(start, start))
    _, codes = connected_components(graph, directed=False)
    return np.unique(codes[: len(views)], return_inverse=True)[1]


def _are_alike(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether each number of one side always occurs with the same number of the other side."""
    n_pairs = len(np.unique(np.column_stack([first, second]), axis=0))
    return n_pairs == len(np.unique(first)) == len(np.unique(second))


def _is_repeated(codes: np.ndarray) -> np.ndarray:
    """Whether each row occurs again; a row of zeros (-1) identifies nothing."""
    counts = np.bincount(codes + 1)
    counts[0] = 0
    return counts[codes + 1] > 1


def row_keys(block: Any) -> Any:
    """Equal keys for equal rows: hashes of numbers, or the cells of texts and of mixed columns."""
    rows = as_block(block)
    if not rows.holds_numbers():
        return [tuple(row) for row in rows.dense().matrix.tolist()]
    return rows.row_hashes()


def _row_codes(block: Any) -> np.ndarray:
    """Number of each distinct row, from 0; -1 for a row of zeros and for an empty text."""
    keys = row_keys(block)
    if isinstance(keys, list):
        return _codes_of_cells(keys)
    _, codes = np.unique(keys, axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    codes[~keys.any(axis=1)] = -1
    return codes


def _codes_of_cells(rows: list[tuple[Any, ...]]) -> np.ndarray:
    """The same for texts and for columns of several types; -1 where rows cannot be compared."""
    numbers: dict[Any, int] = {}
    try:
        codes = [numbers.setdefault(row, len(numbers)) if any(row) else -1 for row in rows]
    except (TypeError, ValueError):  # lists or arrays in cells
        codes = [-1] * len(rows)
    return np.array(codes, dtype=int)
