"""Pairs of rows that count: those nearest in label space, and sums over weighted pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks import as_block
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


def weighted_cross(X: Any, F: Any, Y: Any, mean_x: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """Σ_ij F_ij (x_i - mean_x)(y_j - mean_y)ᵀ: dense rows are centred, sparse ones by algebra."""
    (A, mean_x), (B, mean_y) = as_block(X).centred(mean_x), as_block(Y).centred(mean_y)
    X, Y = A.matrix, B.matrix
    product = (F.T @ X).T @ Y if X.shape[1] <= Y.shape[1] else X.T @ (F @ Y)
    from_x, from_y = X.T @ F.sum(axis=1), Y.T @ F.sum(axis=0)
    return (
        as_block(product).dense().matrix
        - np.outer(from_x, mean_y)
        - np.outer(mean_x, from_y)
        + F.sum() * np.outer(mean_x, mean_y)
    )
