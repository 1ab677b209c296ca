"""Nearest rows in label space, for Fast MLCCA.

Ties are common among label sets; unlike a general nearest-neighbour search, this one breaks them
reproducibly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array

from mvcca.similarity import squared_distances
from mvcca.views.labels import rows_by_code


def nearest_label_pairs(
    vectors: np.ndarray,
    from_rows: tuple[np.ndarray, np.ndarray],
    to_rows: tuple[np.ndarray, np.ndarray],
    n_neighbors: int,
    similarity: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> csr_array:
    """Similarities (n_from, n_to) of every row to its nearest rows by label, zero elsewhere."""
    # Rows are pairs of their label codes and their places in a cyclic order, which breaks ties:
    # starting at its own place, each row gets a different draw, beginning with itself if both sides
    # hold the same objects.
    (from_codes, from_order), (to_codes, to_order) = from_rows, to_rows
    if n_neighbors > len(to_codes):
        raise ValueError(
            f"n_neighbors={n_neighbors} is more than the {len(to_codes)} rows to choose from."
        )
    sources, targets = rows_by_code(from_codes, from_order), rows_by_code(to_codes, to_order)
    present = np.array(sorted(targets))
    sizes = np.array([len(targets[code]) for code in present])
    columns = np.empty((len(from_codes), n_neighbors), dtype=np.int64)
    values = np.empty((len(from_codes), n_neighbors))
    for code, rows in sources.items():
        distances = squared_distances(vectors[code : code + 1], vectors[present])[0]
        # No row further than the n-th nearest label vector can be among the n nearest rows.
        cut = min(n_neighbors, len(present)) - 1
        near = np.flatnonzero(distances <= np.partition(distances, cut)[cut] + 1e-9)
        near = near[np.argsort(distances[near], kind="stable")]
        edges = np.flatnonzero(np.diff(distances[near]) > 1e-9) + 1
        taken = 0
        for group in np.split(near, edges):
            wanted = min(n_neighbors - taken, int(sizes[group].sum()))
            tied = np.concatenate([targets[present[label]] for label in group])
            tied = tied[np.argsort(to_order[tied])]
            own_place = np.searchsorted(to_order[tied], from_order[rows])
            draw = (own_place[:, None] + np.arange(wanted)) % len(tied)
            columns[rows, taken : taken + wanted] = tied[draw]
            taken += wanted
            if taken == n_neighbors:
                break
        likeness = similarity(vectors[code : code + 1], vectors[present[near]])[0]
        by_code = np.zeros(len(vectors))
        by_code[present[near]] = likeness
        values[rows] = by_code[to_codes[columns[rows]]]
    indptr = np.arange(0, columns.size + 1, n_neighbors)
    return csr_array(
        (values.ravel(), columns.ravel(), indptr), shape=(len(from_codes), len(to_codes))
    )
