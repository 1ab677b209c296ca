"""Corrections for hubs: gallery rows that are near to many queries, whatever the queries show.

A correction compares each gallery row with a bank of queries, such as training rows. The bank must
not hold the queries of an evaluation, whose rankings would then depend on each other.

As a ranking, a correction is two functions again: it appends components to item vectors and to
query vectors. A new one is a class here, with a line in `_CORRECTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mvcca.machine.threads import each
from mvcca.retrieval.search import Gallery, row_blocks, search


class HubCorrection:
    """Protocol of corrections, whose galleries have the vectors [g, -c(g)] for queries [q, 1].

    Galleries of a bank hold prepared vectors: `queries` the rows [b, offset(b)], whose product with
    [g, 1] is the similarity s(b, g), and `items` rows prepared as the gallery's rows are.
    """

    name: ClassVar[str]
    needs_items: ClassVar[bool] = False  # of the bank
    is_product: ClassVar[bool] = True  # scores order a gallery as products of the vectors do

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """Components to append to item vectors, (n_items, n_terms)."""
        raise NotImplementedError

    def active(self, gallery: Gallery, queries: Gallery) -> np.ndarray | None:
        """Which items of a gallery the correction applies to, if it depends on the item."""
        return None

    def query_terms(self, vectors: np.ndarray, base: Gallery, items: Gallery | None) -> np.ndarray:
        """Components to append to query vectors, (n_queries, n_terms)."""
        return np.ones((len(vectors), 1), vectors.dtype)

    def scores(
        self, products: np.ndarray, vectors: np.ndarray, base: Gallery, items: Gallery | None
    ) -> np.ndarray:
        """Scores of ranked lists from the products of the vectors."""
        return products + base.similarity.offsets(vectors)


@dataclass(frozen=True)
class CSLS(HubCorrection):
    """Cross-domain similarity local scaling, 2 s(q, g) - r(q) - r(g).

    r(g) is the mean similarity of a gallery row g to its nearest queries in the bank, and r(q) that
    of a query q to its nearest rows in the bank of the gallery's view [1]_. r(q) does not change
    the ranking, but makes scores of different queries and different galleries comparable.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of nearest rows, as in [1]_.

    Raises
    ------
    ValueError
        If `n_neighbors` is not a positive integer.

    References
    ----------
    .. [1] Conneau, Lample, Ranzato, Denoyer and Jégou, "Word Translation Without Parallel Data",
       ICLR 2018, section 2.3. There, the bank is all words of both languages.
    """

    n_neighbors: int = 10

    name = "csls"
    needs_items = True

    def __post_init__(self) -> None:
        _check_count("n_neighbors", self.n_neighbors)

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """-r(g) / 2."""
        nearest, _ = search(queries, _with_one(vectors), self.n_neighbors)
        return -nearest.mean(axis=1, keepdims=True) / 2

    def scores(
        self, products: np.ndarray, vectors: np.ndarray, base: Gallery, items: Gallery | None
    ) -> np.ndarray:
        """2 (s(q, g) - r(g) / 2) - r(q); of distances, r(q) holds the offset once."""
        assert items is not None
        nearest, _ = search(items, vectors, self.n_neighbors)
        offsets = base.similarity.offsets(vectors)
        return 2 * products + offsets - nearest.mean(axis=1, keepdims=True)

    def __str__(self) -> str:
        return "CSLS" if self == CSLS() else f"CSLS, {self.n_neighbors} neighbours"


@dataclass(frozen=True)
class InvertedSoftmax(HubCorrection):
    """Inverted softmax, exp(β s(q, g)) / Σ_b exp(β s(b, g)) over the queries b of the bank.

    The softmax of the similarities of a gallery row is taken over queries instead of gallery rows
    [1]_. Scores are logarithms divided by β, s(q, g) - log(Σ_b exp(β s(b, g))) / β.

    Parameters
    ----------
    beta : float, default=30
        Inverse temperature β for cosines, as in the reference implementation of [2]_.

    Raises
    ------
    ValueError
        If `beta` is not positive.

    References
    ----------
    .. [1] Smith, Turban, Hamblin and Hammerla, "Offline Bilingual Word Vectors, Orthogonal
       Transformations and the Inverted Softmax", ICLR 2017, section 2.3.
    .. [2] Conneau, Lample, Ranzato, Denoyer and Jégou, "Word Translation Without Parallel Data",
       ICLR 2018.
    """

    beta: float = 30.0

    name = "inverted_softmax"

    def __post_init__(self) -> None:
        _check_beta(self.beta)

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """-log(Σ_b exp(β s(b, g))) / β."""
        return -_log_sums(vectors, queries, self.beta)

    def __str__(self) -> str:
        return f"inverted softmax, β = {self.beta:g}"


@dataclass(frozen=True)
class QBNorm(HubCorrection):
    """Querybank normalisation: the inverted softmax for queries whose best item is a hub.

    Gallery rows among the `k` best of any query of the bank are active. A query whose best gallery
    row is active is ranked by the inverted softmax, any other by the plain similarity (dynamic
    inverted softmax [1]_).

    Parameters
    ----------
    beta : float, default=20
        Inverse temperature β for cosines, as in [1]_.
    k : int, default=1
        Items of each query of the bank that are active, as in [1]_.

    Raises
    ------
    ValueError
        If `beta` is not positive or `k` is not a positive integer.

    References
    ----------
    .. [1] Bogolin, Croitoru, Jin, Liu and Albanie, "Cross Modal Retrieval with Querybank
       Normalisation", CVPR 2022, section 3.
    """

    beta: float = 20.0
    k: int = 1

    name = "qb_norm"

    def __post_init__(self) -> None:
        _check_beta(self.beta)
        _check_count("k", self.k)

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """The terms of the inverted softmax."""
        return -_log_sums(vectors, queries, self.beta)

    def active(self, gallery: Gallery, queries: Gallery) -> np.ndarray:
        """Whether each item is among the k best of any query of the bank."""
        of_bank = np.concatenate(queries.rows.parts)[:, :-1]
        active = np.zeros(len(gallery), dtype=bool)
        active[search(gallery, of_bank, min(self.k, gallery.n_ranked))[1]] = True
        return active

    def __str__(self) -> str:
        return f"QB-Norm, β = {self.beta:g}, k = {self.k}"


@dataclass(frozen=True)
class MutualProximity(HubCorrection):
    """Mutual proximity, log Φ((s - μ_q) / σ_q) + log Φ((s - μ_g) / σ_g) with s = s(q, g).

    It is the logarithm of the probability that a row of the bank is farther than g from q, times
    the probability that a query of the bank is farther than q from g, if similarities of a row are
    normally distributed [1]_. μ_g and σ_g are mean and standard deviation of the similarities of g
    to the queries of the bank, and μ_q and σ_q those of q to the rows of the gallery's view.

    Unlike the other corrections it is no inner product: it is computed on the host and takes
    several times as long.

    References
    ----------
    .. [1] Schnitzer, Flexer, Schedl and Widmer, "Local and Global Scaling Reduce Hubs in Space",
       Journal of Machine Learning Research 13, 2012. There, the bank is the whole data set.
    """

    name = "mutual"
    needs_items = True
    is_product = False

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """μ_g and σ_g."""
        return _moments(_with_one(vectors), queries)

    def query_terms(self, vectors: np.ndarray, base: Gallery, items: Gallery | None) -> np.ndarray:
        """Offset, μ_q and 1 / σ_q."""
        assert items is not None
        means, deviations = _moments(vectors, items).T
        return np.column_stack([base.similarity.offsets(vectors), means, 1 / deviations])

    def of_products(self, products: np.ndarray, of_queries: Any, of_items: Any) -> np.ndarray:
        """Scores from the similarities of all queries and items, and the terms of both."""
        from scipy.special import log_ndtr

        (offsets, means, inverses), (item_means, deviations) = of_queries.T[..., None], of_items.T
        of_query = log_ndtr((products - means) * inverses)
        products += offsets
        products -= item_means
        products /= deviations
        return np.add(log_ndtr(products, out=products), of_query, out=products)

    def scores(
        self, products: np.ndarray, vectors: np.ndarray, base: Gallery, items: Gallery | None
    ) -> np.ndarray:
        """The products, which are scores."""
        return products

    def __str__(self) -> str:
        return "mutual proximity"


_CORRECTIONS: dict[str, Any] = {
    kind.name: kind for kind in (CSLS, InvertedSoftmax, QBNorm, MutualProximity)
}


def checked_correction(hubness: str | HubCorrection) -> HubCorrection:
    """Correction of that name, with its default parameters, or the correction itself."""
    if isinstance(hubness, HubCorrection):
        return hubness
    if not isinstance(hubness, str) or hubness not in _CORRECTIONS:
        raise ValueError(
            f"Expected hubness to be one of {list(_CORRECTIONS)}, an instance of CSLS, "
            f"InvertedSoftmax, QBNorm or MutualProximity, or None; got {hubness!r}."
        )
    correction: HubCorrection = _CORRECTIONS[hubness]()
    return correction


def check_bank(hubness: str | HubCorrection | None, bank: Any) -> None:
    """Raise ValueError if there is a correction without a bank, or a bank without a correction."""
    if hubness is None:
        if bank is not None:
            raise ValueError("A bank is used only to correct for hubs; pass hubness, too.")
        return
    checked_correction(hubness)
    if bank is None:
        raise ValueError(
            f"hubness={hubness!r} needs a bank to compare with. Pass bank=, training rows or other "
            "rows that are not queries: with queries in the bank, the ranking of one would depend "
            "on the others."
        )


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"Expected {name} to be a positive integer, got {value!r}.")


def _check_beta(beta: float) -> None:
    if not beta > 0 or not np.isfinite(beta):
        raise ValueError(f"Expected beta to be positive, got {beta!r}.")


def _with_one(vectors: np.ndarray) -> np.ndarray:
    return np.column_stack([vectors, np.ones(len(vectors), vectors.dtype)])


def _log_sums(vectors: np.ndarray, queries: Gallery, beta: float) -> np.ndarray:
    """log(Σ_b exp(β s(b, g))) / β of items, a column."""
    rows = _with_one(vectors)

    def of_block(block: slice) -> np.ndarray:
        scores = queries.products(rows[block])
        largest = scores.max(axis=1)
        scores -= largest[:, None]
        scores *= beta
        return np.asarray(largest + np.log(np.exp(scores, out=scores).sum(1)) / beta)

    blocks = row_blocks(queries, rows, 2)
    return np.concatenate([np.empty(0, rows.dtype), *each(of_block, blocks)])[:, None]


def _moments(rows: np.ndarray, bank: Gallery) -> np.ndarray:
    """Mean and standard deviation of the products of each row with the rows of the bank."""
    others = np.concatenate(bank.rows.parts).astype(np.float64)
    mean = others.mean(axis=0)
    covariance = np.cov(others, rowvar=False, bias=True).reshape(len(mean), -1)
    means = rows @ mean
    deviations = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ covariance, rows), 0))
    smallest = np.finfo(bank.dtype).eps * np.abs(others).max() * np.abs(rows).max(initial=0)
    deviations = np.maximum(deviations, max(smallest, np.finfo(bank.dtype).tiny))
    return np.column_stack([means, deviations]).astype(bank.dtype)
