"""Counts of single cells with known types and batch effects."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from mvcca.views import Views

__all__ = ["make_cells"]


def make_cells(
    n_cells: tuple[int, int] = (600, 400),
    *,
    n_genes: int = 2000,
    n_types: int = 5,
    n_markers: int = 40,
    depth: float = 300.0,
    batch: float = 0.5,
    random_state: Any = None,
) -> Bunch:
    r"""Counts of two single-cell experiments: the same cell types, other cells and batch effects.

    Cell c of type t in experiment e has Poisson counts with the means

    .. math:: d_c\, \pi_g, \qquad \pi_g \propto a_g\, m_{tg}\, b_{eg},

    where the levels :math:`a_g` of the genes are log-normal, the markers of a type, `n_markers`
    random genes, have :math:`m_{tg} = 8` and all other genes 1, :math:`\log b_{eg}` is normal with
    deviation `batch`, and the depths :math:`d_c` are log-normal with median `depth`.

    Parameters
    ----------
    n_cells : (int, int), default=(600, 400)
        Number of cells of the reference and of the query.
    n_genes : int, default=2000
        Number of genes.
    n_types : int, default=5
        Number of cell types; each cell's type is drawn uniformly.
    n_markers : int, default=40
        Number of marker genes of each type.
    depth : float, default=300.0
        Median number of counts of a cell.
    batch : float, default=0.5
        Deviation of the logarithm of an experiment's effect on a gene.
    random_state : int, RandomState or None, default=None
        Seed for the genes and the counts.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of ``reference`` and ``query``, unpaired, sparse float32:
          Counts, cells × genes.
        - labels : dict of str to ndarray of str, shape (n_cells,):
          The type of each cell, ``"type 0"``, ``"type 1"``, ..., by view.
        - genes : ndarray of str, shape (n_genes,)
        - DESCR : str

    Raises
    ------
    ValueError
        If there are more markers than genes.

    Examples
    --------
    >>> from mvcca.datasets import make_cells
    >>> data = make_cells(random_state=0)
    >>> data.views
    Views(1000 objects, reference: 2000, query: 2000)
    >>> data.labels["query"][:2]
    array(['type 4', 'type 2'], dtype='<U6')
    """
    if not 1 <= n_markers <= n_genes:
        raise ValueError(
            f"n_markers must lie between 1 and {n_genes}, the number of genes, got {n_markers}."
        )
    rng = check_random_state(random_state)
    levels = np.exp(rng.standard_normal(n_genes))
    markers = np.ones((n_types, n_genes))
    for of_type in markers:
        of_type[rng.permutation(n_genes)[:n_markers]] = 8
    counts, labels = {}, {}
    for name, n in zip(("reference", "query"), n_cells, strict=True):
        effects = np.exp(batch * rng.standard_normal(n_genes))
        types = rng.randint(n_types, size=n)
        counts[name] = _counts(levels * effects * markers, types, depth, rng)
        labels[name] = np.array([f"type {number}" for number in types])
    return Bunch(
        views=Views.unpaired(counts),
        labels=labels,
        genes=np.array([f"gene {number}" for number in range(n_genes)]),
        DESCR=f"Counts of two single-cell experiments with {n_types} cell types.",
    )


def _counts(
    expected: np.ndarray, types: np.ndarray, depth: float, rng: np.random.RandomState
) -> csr_array:
    """Poisson counts of cells; their sum is drawn first, and then the gene of each count."""
    depths = depth * np.exp(0.3 * rng.standard_normal(len(types)))
    sums = np.maximum(rng.poisson(depths), 1)
    draws, ends = rng.random_sample(sums.sum()), np.cumsum(sums)
    genes = np.empty(len(draws), dtype=np.int32)
    cells = np.repeat(np.arange(len(types), dtype=np.int32), sums)
    for number, of_type in enumerate(expected):
        shares = np.cumsum(of_type / of_type.sum())
        own = types[cells] == number
        genes[own] = np.minimum(np.searchsorted(shares, draws[own]), len(shares) - 1)
    shape = len(types), expected.shape[1]
    rows = csr_array((np.ones(len(draws), np.float32), genes, np.append(0, ends)), shape=shape)
    rows.sum_duplicates()
    return rows
