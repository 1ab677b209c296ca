"""Queries that represent a class: the mean embedding of its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mvcca.blocks.checks import as_vector, common_row_labels, reject_missing
from mvcca.measures.arrays import checked_matrix


def class_means(embeddings: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Compute the mean embedding of each class, to query with a class instead of a row.

    Parameters
    ----------
    embeddings : array-like, shape (n_rows, n_components)
        Projected rows, such as all texts of the test classes.
    y : array-like, shape (n_rows,)
        Their classes.

    Returns
    -------
    means : ndarray, shape (n_classes, n_components)
        One row per class.
    classes : ndarray, shape (n_classes,)
        The classes, sorted.

    Raises
    ------
    ValueError
        If there is not one class per row or a value is not finite.
    """
    common_row_labels({"embeddings": embeddings, "y": y})  # raises if they differ
    embeddings = checked_matrix(embeddings, "embeddings")
    y = as_vector(y)
    if y.shape != (len(embeddings),):
        raise ValueError(f"Expected {len(embeddings)} classes, one per row, got {y.shape}.")
    reject_missing("classes", y, "Leave out these rows.")
    classes, codes = np.unique(y, return_inverse=True)
    membership = csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    means = membership @ embeddings / np.bincount(codes)[:, None]
    return means.astype(embeddings.dtype), classes
