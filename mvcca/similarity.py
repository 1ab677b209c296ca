"""Label similarity: how alike two label vectors are, and what is asked of all pairs at once.

The formulas are plain functions of two stacks of label vectors. `LabelGram` is the similarity
matrix G over a table of distinct label vectors that is never held: it is made tile by tile, or not
at all where the formula factorises (G = ΦΦᵀ), and multiplied at once. Features and their sums are
`mvcca.statistics`' business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import eye_array

from mvcca._threads import each
from mvcca.labels import LabelTable
from mvcca.measures import unit_rows

__all__ = ["LabelGram", "cosine", "equal", "exponential", "squared_exponential"]

_FILLED_ROWS = 128  # of a tile, by one thread at a time


def squared_exponential(A: np.ndarray, B: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Similarity exp(-‖a - b‖² / (2σ)) of label vectors, eq. (5) of [1]_.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.
    sigma : float, default=1.0
        Bandwidth σ in squared label units: two label sets that differ in one label have
        similarity exp(-1 / (2σ)).

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1].

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    with np.errstate(over="ignore"):  # a tiny sigma is the identity: exp(-inf) = 0
        return np.exp(-squared_distances(A, B) / sigma / 2)


def exponential(A: np.ndarray, B: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Similarity exp(-‖a - b‖ / σ), as in the official code of Fast MLCCA [1]_.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.
    sigma : float, default=1.0
        Bandwidth σ in label units.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1].

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    """
    with np.errstate(over="ignore"):
        return np.exp(-np.sqrt(squared_distances(A, B)) / sigma)


def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Similarity aᵀb / (‖a‖ ‖b‖), the dot-product similarity of MLCCA [1]_; 0 for a zero vector.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1] for indicators, in [-1, 1] for real label vectors.

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    """
    return unit_rows(np.asarray(A, dtype=float)) @ unit_rows(np.asarray(B, dtype=float)).T


def equal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Similarity 1 for equal label vectors and 0 for all others, which makes MLCCA cluster-CCA.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Zeros and ones.
    """
    return np.asarray((np.asarray(A)[:, None] == np.asarray(B)).all(axis=2), dtype=float)


Similarity = str | Callable[[np.ndarray, np.ndarray], np.ndarray]


def similarity_function(similarity: Similarity, sigma: float) -> Callable[..., np.ndarray]:
    """The formula of that name, with its bandwidth, as a function of two stacks of vectors."""
    if callable(similarity):
        return similarity
    if similarity in ("sqexp", "exp"):
        formula = squared_exponential if similarity == "sqexp" else exponential
        return lambda A, B: formula(A, B, sigma)
    return {"cosine": cosine, "equal": equal}[similarity]


class LabelGram:
    """The similarity matrix G of a table of label vectors, without holding it.

    Parameters
    ----------
    table : LabelTable
        U distinct label vectors.
    similarity : {"sqexp", "exp", "cosine", "equal"} or callable
        A formula of this module, or a symmetric function of two stacks of label vectors.
    sigma : float, default=1.0
        Bandwidth of the exponentials.
    tile_rows : int, default=1024
        Rows of G made at a time; results agree for every choice up to rounding.
    """

    def __init__(
        self,
        table: LabelTable,
        similarity: Similarity = "sqexp",
        sigma: float = 1.0,
        tile_rows: int = 1024,
    ) -> None:
        self._n = len(table)
        self._tile_rows = tile_rows
        self._factor: Any = None
        self._fill: Any = None
        self._has_unit_diagonal = similarity in ("sqexp", "exp")
        if similarity == "cosine":
            self._factor = unit_rows(table.dense())
        elif similarity == "equal":
            self._factor = eye_array(self._n, format="csr")
        elif table.is_binary and similarity in ("sqexp", "exp"):
            self._fill = _packed_fill(table, similarity, sigma)
        elif similarity == "sqexp":
            self._fill = _real_fill(table, sigma)
        elif similarity == "exp":
            self._fill = _function_fill(table, similarity_function(similarity, sigma))
        elif callable(similarity):
            self._fill = _checked_fill(table, similarity)
        else:
            raise ValueError(f"unknown similarity {similarity!r}")

    def quadratic(self, S: np.ndarray) -> np.ndarray:
        """SᵀGS for S of shape (U, d): products in the precision of S, added up in float64."""
        if self._factor is not None:
            root = np.asarray(self._factor.T @ S)
            return np.asarray(root.T @ root, dtype=np.float64)
        # G is symmetric: its strict lower triangle and half its diagonal give A, SᵀGS = A + Aᵀ.
        n_features = S.shape[1]
        half, step = np.zeros((n_features, n_features)), np.empty((n_features, n_features), S.dtype)
        for rows, strip in self._strips(S.dtype, lower=True):
            strip[:, rows] *= 0.5
            half += np.matmul(S[rows].T, strip @ S[: rows.stop], out=step)
        return half + half.T

    def times(self, V: np.ndarray) -> np.ndarray:
        """GV for a narrow V of shape (U, v)."""
        if self._factor is not None:
            return np.asarray(self._factor @ (self._factor.T @ V))
        result = np.empty_like(V, dtype=np.float64)
        for rows, strip in self._strips(V.dtype):
            result[rows] = strip @ V
        return result

    def _strips(self, dtype: np.dtype, lower: bool = False) -> Iterator[tuple[slice, np.ndarray]]:
        """Row after row of tiles of G, or of its lower triangle; the buffer is used again."""
        buffer = np.empty(min(self._tile_rows, self._n) * self._n, dtype=dtype)
        for start in range(0, self._n, self._tile_rows):
            rows = slice(start, min(start + self._tile_rows, self._n))
            shape = (rows.stop - rows.start, rows.stop if lower else self._n)
            strip = buffer[: shape[0] * shape[1]].reshape(shape)
            self._fill(rows, slice(0, shape[1]), strip)
            if self._has_unit_diagonal:  # whatever rounding made of a distance of nothing
                np.fill_diagonal(strip[:, rows], 1)
            yield rows, strip


def _packed_fill(table: LabelTable, similarity: str, sigma: float) -> Any:
    """Tiles of an exponential of the distance between label sets: popcount, then a table."""
    from mvcca._kernels import fill_by_difference, pack_label_sets

    packed = pack_label_sets(table.vectors)
    differences = np.arange(table.vectors.shape[1] + 1, dtype=float)
    with np.errstate(over="ignore"):  # a tiny sigma is the identity: exp(-inf) = 0
        if similarity == "sqexp":
            values = np.exp(-differences / sigma / 2)
        else:
            values = np.exp(-np.sqrt(differences) / sigma)

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        A, B = (np.ascontiguousarray(packed[:, part]) for part in (rows, columns))
        table = values.astype(out.dtype)
        parts = [slice(start, start + _FILLED_ROWS) for start in range(0, len(out), _FILLED_ROWS)]
        each(lambda part: fill_by_difference(A[:, part], B, table, out[part]), parts)

    return fill


def _real_fill(table: LabelTable, sigma: float) -> Any:
    """Tiles of the squared exponential of real label vectors: one product, then one fused pass."""
    from mvcca._kernels import inner_products_to_exponents

    # Distances do not depend on the origin, the rounding of their expansion does.
    vectors = table.vectors - table.vectors.mean(axis=0)

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        A, B = vectors[rows].astype(out.dtype), vectors[columns].astype(out.dtype)
        np.matmul(A, B.T, out=out)
        half_norms = [np.einsum("ij,ij->i", V, V) / 2 for V in (A, B)]
        scale = min(1 / float(sigma), np.finfo(out.dtype).max)  # of a tiny sigma: inf x 0 is NaN
        inner_products_to_exponents(out, *half_norms, scale)
        np.exp(out, out=out)

    return fill


def _function_fill(table: LabelTable, function: Any) -> Any:
    vectors = table.dense()

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        out[...] = function(vectors[rows], vectors[columns])

    return fill


def _checked_fill(table: LabelTable, function: Any) -> Any:
    """Tiles of a user's function, which is asked to be symmetric and finite."""
    vectors = table.dense()
    probe = vectors[:64]
    values = np.asarray(function(probe, probe), dtype=float)
    if values.shape != (len(probe), len(probe)):
        raise ValueError(
            "similarity(A, B) must return one value per pair, of shape "
            f"{(len(probe), len(probe))} for {len(probe)} label vectors each, got {values.shape}."
        )
    if not np.isfinite(values).all():
        raise ValueError("similarity(A, B) must be finite, got NaN or infinity.")
    if not np.allclose(values, values.T):
        raise ValueError("similarity(A, B) must be symmetric: similarity(B, A) is its transpose.")
    return _function_fill(table, function)


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    origin = B.mean(axis=0)  # the expansion below rounds by the size of the norms
    A, B = A - origin, B - origin
    norms = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1)
    squares = norms - 2 * (A @ B.T)
    rounding = (4 + A.shape[1]) * np.finfo(float).eps * norms
    return np.where(squares > rounding, squares, 0.0)
