"""Products with the similarity matrix G of label vectors, without storing it.

G is computed tile by tile, or not at all: if the similarity factorizes (G = ΦΦᵀ), or if label sets
share so few subsets that sums over these are cheaper (`SharedSubsets`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import eye_array

from mvcca.blocks import as_block, namespace, to_host
from mvcca.machine.config import get_config
from mvcca.machine.threads import each, one_by_one
from mvcca.measures import unit_rows
from mvcca.similarity._device_gram import DeviceGram
from mvcca.similarity._formulas import LabelKernel, Similarity
from mvcca.similarity._shared_subsets import SharedSubsets
from mvcca.views import Labels

_FILLED_ROWS = 128  # rows of a tile per thread
_STRIPE_COLUMNS = 256  # that a thread multiplies at a time where no tiles are needed
_SUMMED_ROWS = 4096  # in float32 products, whose sums are float64


class LabelGram:
    """Products with the similarity matrix G of distinct label vectors, without storing G.

    Parameters
    ----------
    labels : Labels
        The U distinct label vectors.
    similarity : {"sqexp", "exp", "cosine", "equal"} or callable
        Name of a similarity, or a symmetric function of two stacks of label vectors.
    sigma : float, default=1.0
        Bandwidth of exponential similarities.
    tile_rows : int, default=1024
        Rows of G per tile; affects results by rounding only.
    """

    def __init__(
        self,
        labels: Labels,
        similarity: Similarity = "sqexp",
        sigma: float = 1.0,
        tile_rows: int = 1024,
    ) -> None:
        self._arguments = (labels, similarity, sigma, tile_rows)
        self._n = labels.n_distinct
        self._factor: Any = None
        self._fill: Any = None
        self._is_identity = similarity == "equal"
        if similarity == "cosine":
            self._factor = unit_rows(labels.dense())
        elif similarity == "equal":
            self._factor = eye_array(self._n, format="csr")
        elif labels.are_sets and similarity in ("sqexp", "exp"):
            self._fill = _packed_fill(labels, similarity, sigma)
        elif similarity == "sqexp":
            self._fill = _real_fill(labels, sigma)
        elif similarity == "exp":
            kernel = LabelKernel(similarity, sigma)
            self._fill = _function_fill(labels, kernel, has_unit_diagonal=True)
        elif callable(similarity):
            self._fill = _checked_fill(labels, similarity)
        else:
            raise ValueError(f"unknown similarity {similarity!r}")
        self._tile_rows = min(self._n if self._factor is not None else tile_rows, self._n)

    def __reduce__(self) -> tuple[type[LabelGram], tuple[Any, ...]]:
        return LabelGram, self._arguments  # closures cannot be pickled

    def quadratic(self, S: Any) -> np.ndarray:
        """SᵀGS in host memory for S of shape (U, d), with products in the precision of S.

        Products are summed in float64, and computed on the device of S if it is a device block.
        """
        if as_block(S).on_device:
            if self._factor is None:
                return self._on_device(S).quadratic(S)
            root = self._root_on_device(S)
            transposed = namespace(S).matrix_transpose(root)
            return to_host(transposed @ root).astype(np.float64)
        if self._factor is not None:
            root = np.asarray(self._factor.T @ S)
            return np.asarray(root.T @ root, dtype=np.float64)
        stripes, n_columns = self.stripes(S.shape[1]), S.shape[1]
        if self._subsets is not None:
            return self.total(one_by_one(lambda part: self.stripe(S, part), stripes), n_columns)
        buffer = np.empty(self._tile_rows * self._n, S.dtype)
        return self.total((self.stripe(S, part, buffer) for part in stripes), n_columns)

    def stripes(self, n_columns: int) -> list[slice]:
        """Parts in which SᵀGS is computed: rows of G, or columns of S if no tiles are needed."""
        if self._factor is None and self._subsets is not None:
            return _slices(n_columns, _STRIPE_COLUMNS)
        return _slices(self._n, self._tile_rows)

    def stripe(self, S: np.ndarray, stripe: slice, buffer: np.ndarray | None = None) -> np.ndarray:
        """Contribution of one of `stripes` to SᵀGS, in the precision of S; see `total`."""
        if self._factor is not None:
            root = np.asarray(self._factor.T @ S)
            return root.T @ root / 2
        if self._subsets is not None:
            return _columns_of_quadratic(self._subsets, S, stripe)
        n_rows, n_columns = stripe.stop - stripe.start, stripe.stop
        if buffer is None:
            buffer = np.empty(n_rows * n_columns, S.dtype)
        tile = buffer[: n_rows * n_columns].reshape(n_rows, n_columns)
        self._fill(stripe, slice(0, n_columns), tile)
        tile[:, stripe] *= 0.5
        return S[stripe].T @ (tile @ S[: stripe.stop])

    def total(self, contributions: Iterable[np.ndarray], n_columns: int) -> np.ndarray:
        """SᵀGS = A + Aᵀ in float64, from the contributions to A of all `stripes` in order."""
        # G is symmetric: A is of its strict lower triangle, or of pairs of columns in order, and
        # half of the diagonal.
        half = np.zeros((n_columns, n_columns))
        for stripe, part in zip(self.stripes(n_columns), contributions, strict=True):
            columns = slice(None) if self._subsets is None else stripe
            half[: len(part), columns] += part
        return half + half.T

    def stripe_bytes(self, n_columns: int, dtype: np.dtype) -> int:
        """Memory of one of `stripes` besides S and its contribution."""
        if self._factor is None and self._subsets is not None:
            return self._subsets.n_bytes + 8 * self._n * min(n_columns, _STRIPE_COLUMNS)
        return dtype.itemsize * self._tile_rows * (self._n + n_columns)

    def times(self, V: Any) -> np.ndarray:
        """GV in host memory for a narrow V of shape (U, v), computed on the device of V."""
        if as_block(V).on_device:
            if self._factor is None:
                return self._on_device(V).times(V)
            V = to_host(V)  # two narrow products
        if self._factor is not None:
            return np.asarray(self._factor @ (self._factor.T @ V))
        if self._subsets is not None:
            return self._subsets.times(V)
        result = np.empty_like(V, dtype=np.float64)
        buffer = np.empty(self._tile_rows * self._n, V.dtype)
        for rows in self.stripes(V.shape[1]):
            tile = buffer[: (rows.stop - rows.start) * self._n].reshape(-1, self._n)
            self._fill(rows, slice(0, self._n), tile)
            result[rows] = tile @ V
        return result

    @cached_property
    def _subsets(self) -> SharedSubsets | None:
        """The label subsets that sets share, if products by them are cheaper than by tiles."""
        labels, similarity, sigma, _ = self._arguments
        if similarity != "sqexp" or not labels.are_sets:
            return None
        found = SharedSubsets.of(labels, sigma)
        if get_config().progress:
            from tqdm.auto import tqdm

            way = "tiles of similarities"
            if found is not None:
                way = f"sums over shared subsets with {found.n_members:,} members"
            tqdm.write(f"{self._n:,} label sets: {way}", file=sys.stderr)
        return found

    def _on_device(self, like: Any) -> DeviceGram:
        labels, similarity, sigma, _ = self._arguments
        return DeviceGram(labels, similarity, sigma, self._fill, like)

    def _root_on_device(self, S: Any) -> Any:
        """ΦᵀS, for G = ΦΦᵀ."""
        if self._is_identity:
            return S
        return namespace(S).matrix_transpose(as_block(S).placed(self._factor)) @ S


def _slices(n: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _columns_of_quadratic(subsets: SharedSubsets, S: np.ndarray, columns: slice) -> np.ndarray:
    """Columns of SᵀGS down to the diagonal, and half of the block on it."""
    product, before = subsets.times(S[:, columns]), S[:, : columns.stop]
    n_rows = len(S) if S.dtype == np.float64 else _SUMMED_ROWS
    part = np.zeros((columns.stop, product.shape[1]))
    for rows in _slices(len(S), n_rows):
        part += before[rows].T @ product[rows].astype(S.dtype, copy=False)
    part[columns] *= 0.5
    return part


def _packed_fill(labels: Labels, similarity: str, sigma: float) -> Any:
    """Fill tiles with exponential similarities of label sets: popcount, then a table."""
    from mvcca.machine.compiled_loops import fill_by_difference, pack_label_sets

    packed = pack_label_sets(labels.vectors)
    differences = np.arange(labels.vectors.shape[1] + 1, dtype=float)
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


def _real_fill(labels: Labels, sigma: float) -> Any:
    """Fill tiles with the squared exponential of real label vectors: a product, then one pass."""
    from mvcca.machine.compiled_loops import inner_products_to_exponents

    # Centring does not change distances but reduces rounding.
    vectors = labels.vectors - labels.vectors.mean(axis=0)

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        A, B = vectors[rows].astype(out.dtype), vectors[columns].astype(out.dtype)
        np.matmul(A, B.T, out=out)
        half_norms = [np.einsum("ij,ij->i", V, V) / 2 for V in (A, B)]
        scale = min(1 / float(sigma), np.finfo(out.dtype).max)  # inf x 0 is NaN
        inner_products_to_exponents(out, *half_norms, scale)
        np.exp(out, out=out)
        _set_unit_diagonal(out, rows, columns)

    return fill


def _function_fill(labels: Labels, function: Any, has_unit_diagonal: bool = False) -> Any:
    vectors = labels.dense()

    def fill(rows: slice, columns: slice, out: np.ndarray) -> None:
        out[...] = function(vectors[rows], vectors[columns])
        if has_unit_diagonal:
            _set_unit_diagonal(out, rows, columns)

    return fill


def _set_unit_diagonal(tile: np.ndarray, rows: slice, columns: slice) -> None:
    """Set the diagonal of G to 1, in spite of rounding, in a tile of columns from 0 on."""
    np.fill_diagonal(tile[:, rows.start - columns.start :], 1)


def _checked_fill(labels: Labels, function: Any) -> Any:
    """Fill tiles with a user's function, after checking that it is symmetric and finite."""
    LabelKernel(function).within(labels.dense()[:64])
    return _function_fill(labels, function)
