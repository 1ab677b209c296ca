"""Corrections for hubs: gallery rows that are near to many queries, whatever the queries show.

A correction compares each gallery row with a bank of queries, such as training rows. The bank must
not hold the queries of an evaluation, whose rankings would then depend on each other. Galleries
with a correction applied are in `mvcca.retrieval.hubs.corrected_gallery`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

__all__ = ["CSLS", "HubCorrection", "InvertedSoftmax", "MutualProximity", "QBNorm"]


@dataclass(frozen=True)
class CSLS:
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

    name: ClassVar[str] = "csls"
    needs_items: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_count("n_neighbors", self.n_neighbors)

    def __str__(self) -> str:
        return f"CSLS, {self.n_neighbors} neighbours"


@dataclass(frozen=True)
class InvertedSoftmax:
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

    name: ClassVar[str] = "inverted_softmax"
    needs_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_beta(self.beta)

    def __str__(self) -> str:
        return f"inverted softmax, β = {self.beta:g}"


@dataclass(frozen=True)
class QBNorm:
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

    name: ClassVar[str] = "qb_norm"
    needs_items: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_beta(self.beta)
        _check_count("k", self.k)

    def __str__(self) -> str:
        return f"QB-Norm, β = {self.beta:g}, k = {self.k}"


@dataclass(frozen=True)
class MutualProximity:
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

    name: ClassVar[str] = "mutual"
    needs_items: ClassVar[bool] = True

    def __str__(self) -> str:
        return "mutual proximity"


HubCorrection = CSLS | InvertedSoftmax | QBNorm | MutualProximity
_CORRECTIONS = {kind.name: kind for kind in (CSLS, InvertedSoftmax, QBNorm, MutualProximity)}


def checked_correction(hubness: str | HubCorrection) -> HubCorrection:
    """Correction of that name, with its default parameters, or the correction itself."""
    if isinstance(hubness, HubCorrection):
        return hubness
    if not isinstance(hubness, str) or hubness not in _CORRECTIONS:
        raise ValueError(
            f"Expected hubness to be one of {list(_CORRECTIONS)}, an instance of CSLS, "
            f"InvertedSoftmax, QBNorm or MutualProximity, or None; got {hubness!r}."
        )
    return _CORRECTIONS[hubness]()


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
