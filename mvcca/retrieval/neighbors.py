"""Nearest neighbours between two sets of projected rows: mutual ones, and votes for labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import as_vector, common_row_labels, reject_missing
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.projected_rows import top_k
from mvcca.retrieval.similarity import Similarity
from mvcca.views.typing import MatrixLike


def mutual_neighbors(
    X: MatrixLike,
    Y: MatrixLike,
    k: int = 5,
    similarity: Similarity = "cosine",
    hubness: str | CSLS | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find pairs of rows that are among each other's k nearest rows of the other set, exactly.

    Memory grows with k times the number of rows; no matrix of all similarities is held.

    Parameters
    ----------
    X, Y : array-like, shape (n_x, n_components) and (n_y, n_components)
        Projected rows.
    k : int, default=5
        Number of neighbours of each row.
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        As in `top_k`.
    hubness : {"csls"} or CSLS, optional
        Correction for rows that are near to many of the other set, as in `top_k`; its bank is the
        rows themselves.

    Returns
    -------
    pairs : ndarray of int, shape (n_pairs, 2)
        Rows of X and of Y, in ascending order.
    scores : ndarray, shape (n_pairs,)
        Similarity of each pair, as `top_k` returns it.

    Raises
    ------
    ValueError
        If k is larger than a number of rows, the widths differ, or a value is not finite.

    References
    ----------
    .. [1] Haghverdi, Lun, Morgan, Marioni, "Batch effects in single-cell RNA-sequencing data are
       corrected by matching mutual nearest neighbors", Nature Biotechnology 36, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.retrieval import mutual_neighbors
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    >>> Y = np.array([[0.1, 1.0], [1.0, 0.2]])
    >>> pairs, scores = mutual_neighbors(X, Y, k=1)
    >>> pairs
    array([[0, 1],
           [1, 0]])
    """
    of_x_bank, of_y_bank = ((X, Y), (Y, X)) if hubness is not None else (None, None)
    scores, of_x = top_k(X, Y, k, similarity, hubness=hubness, bank=of_x_bank)
    _, of_y = top_k(Y, X, k, similarity, hubness=hubness, bank=of_y_bank)
    n_x, n_y = len(of_x), len(of_y)
    forward = np.arange(n_x)[:, None] * n_y + of_x
    backward = of_y * n_y + np.arange(n_y)[:, None]
    found, places, _ = np.intersect1d(
        forward.ravel(), backward.ravel(), assume_unique=True, return_indices=True
    )
    return np.column_stack(np.divmod(found, n_y)), scores.ravel()[places]


def transfer_labels(
    reference: MatrixLike,
    labels: ArrayLike,
    query: MatrixLike,
    *,
    k: int = 30,
    threshold: float = 0.5,
    unassigned: Any = "unassigned",
    similarity: Similarity = "cosine",
) -> tuple[np.ndarray, np.ndarray]:
    r"""Label rows by a weighted vote of their nearest rows in a labelled reference.

    The neighbours of a query at distances :math:`d_1 \le \dots \le d_{k+1}` vote with Dudani's
    weights [1]_

    .. math:: w_i = (d_{k+1} - d_i) / (d_{k+1} - d_1),

    or 1 if all distances are equal. The vote of a label is its share of the weights. A query whose
    best vote is below `threshold` is unassigned: with the default no label has the majority, as
    between types, in doublets, and in rows of poor quality. The rows of a type that the reference
    lacks are unassigned if their neighbours are of several types, but not if one type is nearest to
    all of them.

    Parameters
    ----------
    reference : array-like, shape (n_reference, n_components)
        Projected rows with labels.
    labels : array-like, shape (n_reference,)
        One label per row.
    query : array-like, shape (n_query, n_components)
        Projected rows to label.
    k : int, default=30
        Number of neighbours that vote, less than the number of reference rows.
    threshold : float, default=0.5
        Least vote, between 0 and 1; 0 assigns every query.
    unassigned : default="unassigned"
        Label of the others. Pass a number, such as -1, if labels are numbers.
    similarity : {"cosine", "euclidean"}, default="cosine"
        As in `top_k`; the distances of cosine are Euclidean ones between rows of norm 1.

    Returns
    -------
    labels : ndarray, shape (n_query,)
        Label with the best vote, the first in order if several are equal, or `unassigned`.
    votes : ndarray, shape (n_query,)
        Vote of the best label.

    Raises
    ------
    ValueError
        If the numbers of rows do not fit, a label is missing, k or the threshold is out of range,
        or a value is not finite.

    References
    ----------
    .. [1] Dudani, "The distance-weighted k-nearest-neighbor rule", IEEE Transactions on Systems,
       Man, and Cybernetics SMC-6, 1976, equation 1 with the next neighbour as its limit.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.retrieval import transfer_labels
    >>> reference = np.array([[0.0], [0.2], [1.0], [1.3]])
    >>> transfer_labels(
    ...     reference,
    ...     ["a", "a", "b", "b"],
    ...     [[0.1], [0.65]],
    ...     k=2,
    ...     threshold=0.9,
    ...     similarity="euclidean",
    ... )
    (array(['a', 'unassigned'], dtype='<U10'), array([1. , 0.6]))
    """
    if similarity not in ("cosine", "euclidean"):
        raise ValueError(f"similarity must be 'cosine' or 'euclidean', got {similarity!r}.")
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must lie between 0 and 1, got {threshold!r}.")
    common_row_labels({"reference": reference, "labels": labels})  # raises if they differ
    given = as_vector(labels)
    if given.ndim != 1 or len(given) != len(reference):  # type: ignore[arg-type]
        raise ValueError(
            f"labels must hold one label per reference row, got shape {given.shape} for "
            f"{len(reference)} rows."  # type: ignore[arg-type]
        )
    classes, codes = _classes(given, unassigned)
    scores, nearest = top_k(query, reference, k + 1, similarity)
    distances = np.sqrt(np.maximum(2 - 2 * scores, 0)) if similarity == "cosine" else -scores
    furthest = distances[:, -1:]
    width = furthest - distances[:, :1]
    weights = np.ones((len(distances), k))
    np.divide(furthest - distances[:, :-1], width, out=weights, where=width > 0)
    votes = np.zeros((len(weights), len(classes)))
    rows = np.arange(len(weights))
    for column in range(k):
        votes[rows, codes[nearest[:, column]]] += weights[:, column]
    votes /= weights.sum(axis=1, keepdims=True)
    best = votes.argmax(axis=1)
    share = votes[rows, best]
    return np.where(share < threshold, np.asarray(unassigned), classes[best]), share


def _classes(labels: np.ndarray, unassigned: Any) -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels and the number of each row's."""
    reject_missing("labels", labels, "Leave these rows out of the reference.")
    if labels.dtype == object:
        labels = np.array(labels.tolist())
    classes, codes = np.unique(labels, return_inverse=True)
    if (classes.dtype.kind in "US") != isinstance(unassigned, str):
        raise ValueError(
            f"unassigned={unassigned!r} does not have the type of the labels, {classes.dtype}; "
            "pass a number such as -1 for labels that are numbers."
        )
    if unassigned in classes:
        raise ValueError(f"unassigned={unassigned!r} is a label of the reference; choose another.")
    return classes, codes
