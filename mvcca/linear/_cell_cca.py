"""CCA of cells: components shared by two data sets of the same genes and different cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mvcca.blocks import Block, as_block
from mvcca.blocks.checks import few
from mvcca.linear.cell_rows import PreparedRows, StandardizedRows
from mvcca.machine import lapack
from mvcca.problem.directions import fixed_signs
from mvcca.problem.maps import warn_of_fewer_components
from mvcca.statistics.passes import checkpoint_of_fit
from mvcca.views.typing import MatrixLike
from mvcca.views.validation import column_names

_NAMES = ("reference", "query")
_RANK = 1e-12  # eigenvalues of K in units of the largest that are rounding
_PERMUTATIONS = 20
_EXTRA, _STEPS = 10, 4  # columns and steps of the iteration for permuted genes


@dataclass(frozen=True, eq=False)
class CellCCA:
    """Shared components of two data sets of cells; made by `cell_cca`.

    Attributes
    ----------
    singular_values : ndarray, shape (n_components,)
        Singular values of the correlations between the cells of both data sets, decreasing.
    noise : ndarray, shape (n_components,)
        Largest singular values of 20 problems in which the genes of the query are permuted. If
        genes are not scaled, a few highly expressed ones make these large.
    weights : dict of str to ndarray, shape (n_genes, n_components)
        Gene weights of "reference" and "query" for standardised cells. Those of each are the
        expression of the component in the other, Ŷᵀv / σ and X̂ᵀu / σ.
    genes : tuple of str or None
        Names of the genes, if the data sets have any.
    """

    singular_values: np.ndarray
    noise: np.ndarray
    weights: dict[str, np.ndarray]
    genes: tuple[str, ...] | None
    _prepared: dict[str, PreparedRows] = field(repr=False)

    @cached_property
    def n_shared(self) -> int:
        """Number of leading components whose singular value exceeds that of permuted genes."""
        above = self.singular_values > self.noise
        return len(above) if above.all() else int(above.argmin())

    def transform(self, cells: MatrixLike, name: str, normalize: bool = True) -> np.ndarray:
        """Project cells in one pass.

        Parameters
        ----------
        cells : matrix of shape (n_cells, n_columns)
            With the columns of the data set of this name, in memory or not.
        name : {"reference", "query"}
            Data set whose gene weights and gene scaling apply.
        normalize : bool, default=True
            Scale the scores of each cell to norm 1, so that cells are compared by cosine. Otherwise
            each component has norm 1 over the cells that were fitted.

        Returns
        -------
        ndarray of float64, shape (n_cells, n_components)

        Raises
        ------
        ValueError
            If the name is unknown, the number of columns differs, a value is not finite, or a cell
            has the same value in all genes.
        """
        if name not in _NAMES:
            raise ValueError(f"name must be 'reference' or 'query', got {name!r}.")
        prepared = self._prepared[name]
        rows = _checked(cells, name)
        if rows.shape[1] != prepared.width:
            raise ValueError(
                f"{name} was fitted with {prepared.width} columns, got {rows.shape[1]}."
            )
        scores = prepared.project(rows, self.weights[name])
        if normalize:
            norms = np.linalg.norm(scores, axis=1, keepdims=True)
            scores /= np.where(norms > 0, norms, 1)
        return scores


def cell_cca(
    reference: MatrixLike,
    query: MatrixLike,
    n_components: int = 30,
    *,
    genes: Sequence[str] | None = None,
    gene_names: tuple[Sequence[str], Sequence[str]] | None = None,
    max_z: float | None = 10.0,
    random_state: Any = 0,
) -> CellCCA:
    r"""Find components that two data sets of single cells share.

    The data sets have the same genes and different cells, so that genes are the paired objects.
    Every cell is standardised over its G genes, :math:`\hat x = (x - m 1) / s` with norm 1, so that
    :math:`\hat X \hat Y^\top` holds the correlations of cells of one data set with those of the
    other. Components are its leading singular vectors,

    .. math::

        \max_{u, v} u^\top \hat X \hat Y^\top v
        \quad \text{subject to} \quad u^\top u = v^\top v = 1,

    which is the CCA of Seurat [1]_, whose covariances within data sets are replaced by I. No matrix
    of cells × cells is formed: with :math:`K_x = \hat X^\top \hat X` (G × G), the squares of the
    singular values are eigenvalues of :math:`K_x K_y`, and singular vectors are linear in genes,
    :math:`u = \hat X g` and :math:`v = \hat Y h`. Both K are sums over cells, so that files take
    one pass for K, one for the means of genes if these are scaled, and one to project; memory does
    not grow with the number of cells. Sparse rows stay sparse.

    Parameters
    ----------
    reference, query : matrix of shape (n_cells, n_columns)
        NumPy array, SciPy sparse matrix, DataFrame, Dask array or what `mvcca.open_matrix` returns,
        such as the matrix of an ``.h5ad`` file. Counts should be normalised and logarithmic. For
        more than two data sets, integrate each one with a common reference.
    n_components : int, default=30
        Number of components.
    genes : sequence of str, optional
        Genes to use, such as those that vary most, found by name in both data sets. By default all
        columns, which must then be the same genes in the same order. Memory grows with the square
        of their number: about 0.3 GB for 2,000.
    gene_names : pair of sequences of str, optional
        Names of the columns of `reference` and of `query`; by default those of DataFrames and
        ``.h5ad`` files. Columns without names are paired by position.
    max_z : float or None, default=10.0
        Genes are scaled to z-scores in each data set, with this upper bound, before cells are
        standardised. None leaves the genes as they are.
    random_state : int, RandomState or None, default=0
        Seed for the permutations of `CellCCA.noise`.

    Returns
    -------
    CellCCA
        Singular values, gene weights, and ``transform`` to project cells.

    Raises
    ------
    ValueError
        If the data sets have different genes, a gene is unknown or ambiguous, a cell has the same
        value in all genes, or a value is not finite.

    Warns
    -----
    UserWarning
        If there are fewer components than asked for.

    See Also
    --------
    mvcca.interop.integrate_cells : The same of AnnData objects.
    mvcca.retrieval.mutual_neighbors : Cells of both data sets that are near to each other.
    mvcca.retrieval.transfer_labels : Label cells by their neighbours in a reference.

    References
    ----------
    .. [1] Butler, Hoffman, Smibert, Papalexi, Satija, "Integrating single-cell transcriptomic data
       across different conditions, technologies, and species", Nature Biotechnology 36, 2018;
       Stuart et al., "Comprehensive integration of single-cell data", Cell 177, 2019. Seurat's
       singular values are G - 1 times as large, since its cells have variance 1.

    Examples
    --------
    >>> from mvcca.datasets import make_cells
    >>> from mvcca.linear import cell_cca
    >>> data = make_cells((200, 150), n_genes=300, n_types=4, random_state=0)
    >>> reference, query = (data.views[name].log1p() for name in ("reference", "query"))
    >>> shared = cell_cca(reference, query, n_components=10)
    >>> shared.n_shared
    3
    >>> shared.transform(query, "query").shape
    (150, 10)
    """
    if isinstance(n_components, bool) or not isinstance(n_components, Integral) or n_components < 1:
        raise ValueError(f"n_components must be an integer from 1 on, got {n_components!r}.")
    if max_z is not None and not max_z > 0:
        raise ValueError(f"max_z must be positive or None, got {max_z!r}.")
    matrices = dict(zip(_NAMES, (reference, query), strict=True))
    rows = {name: _checked(matrix, name) for name, matrix in matrices.items()}
    given = (None, None) if gene_names is None else gene_names
    names = {
        name: _names(name, matrices[name], rows[name], own)
        for name, own in zip(_NAMES, given, strict=True)
    }
    columns, used = _matched(names, rows, genes)
    with checkpoint_of_fit():
        prepared = {n: PreparedRows.of(n, X, columns[n], max_z) for n, X in rows.items()}
        K, L = (StandardizedRows.of(rows[n], prepared[n]).scatter() for n in _NAMES)
    solved = _solved(K, L, int(n_components), check_random_state(random_state))
    if len(solved.singular_values) < n_components:
        warn_of_fewer_components(n_components, len(solved.singular_values))
    return replace(solved, genes=used, _prepared=prepared)


def _checked(matrix: MatrixLike, name: str) -> Block:
    """Rows whose numbers are checked, in memory or as they are read."""
    caller = type("cell_cca", (), {})()  # error messages name the class of the caller
    return as_block(matrix).checked(caller, name, ensure_min_samples=1)


def _names(
    name: str, matrix: MatrixLike, rows: Block, given: Sequence[str] | None
) -> tuple[str, ...] | None:
    """Names of the columns of a data set, if it has any."""
    names = column_names(matrix) if given is None else tuple(map(str, given))
    if names is not None and len(names) != rows.shape[1]:
        raise ValueError(
            f"gene_names: expected {rows.shape[1]} names, one per column of {name}, got "
            f"{len(names)}."
        )
    return names


def _matched(
    names: Mapping[str, tuple[str, ...] | None],
    rows: Mapping[str, Block],
    genes: Sequence[str] | None,
) -> tuple[dict[str, np.ndarray | None], tuple[str, ...] | None]:
    """Columns of both data sets that hold the same genes, and their names."""
    if genes is not None:
        used = tuple(map(str, genes))
        return {name: _columns(name, own, used) for name, own in names.items()}, used
    first, second = names.values()
    if first is not None and second is not None:
        if first != second:
            raise ValueError(_different(first, second))
    elif rows["reference"].shape[1] != rows["query"].shape[1]:
        n, m = (X.shape[1] for X in rows.values())
        raise ValueError(
            f"The data sets must have the same genes, got {n:,} columns in reference and {m:,} in "
            "query. Name their columns with gene_names=(names, other_names), and the genes to use "
            "with genes=[...]."
        )
    return dict.fromkeys(names), first or second


def _columns(name: str, names: tuple[str, ...] | None, genes: tuple[str, ...]) -> np.ndarray:
    if names is None:
        raise ValueError(
            f"genes are found by name, but the columns of {name} have none. Pass gene_names."
        )
    wanted = set(genes)
    if len(wanted) < len(genes):
        raise ValueError("genes holds a name twice. Pass each gene once.")
    place: dict[str, int] = {}
    for number, gene in enumerate(names):
        if gene in place and gene in wanted:
            raise ValueError(
                f"{name} has several columns {gene!r}. Make names unique, for example with "
                "adata.var_names_make_unique()."
            )
        place[gene] = number
    unknown = [gene for gene in genes if gene not in place]
    if unknown:
        raise ValueError(
            f"{len(unknown):,} of {len(genes):,} genes are not in {name}: {few(unknown)}. Pass "
            "genes that both data sets have."
        )
    return np.array([place[gene] for gene in genes])


def _different(first: tuple[str, ...], second: tuple[str, ...]) -> str:
    both = set(first) & set(second)
    if not both:
        return (
            f"The data sets must have the same genes, but share none: reference has "
            f"{few(list(first))}, query {few(list(second))}. Translate the names first."
        )
    missing = [gene for gene in (*first, *second) if gene not in both]
    what = f"{few(missing)} are in one of them only" if missing else "their order differs"
    return (
        f"The data sets must have the same genes in the same order; {what}. Use the {len(both):,} "
        "genes of both, in the order of the reference: genes=[g for g in names if g in "
        "other_names]."
    )


def _solved(K: np.ndarray, L: np.ndarray, k: int, rng: np.random.RandomState) -> CellCCA:
    """Components of K = X̂ᵀX̂ and L = ŶᵀŶ, without names.

    With K = R Rᵀ, the eigenvalues of RᵀLR are the squares of the singular values σ, and its
    eigenvectors P give X̂ᵀu = R P. Since u = X̂ Ŷᵀv / σ and v = Ŷ X̂ᵀu / σ, the weights of each data
    set are the expression of the component in the other one.
    """
    values, U = lapack.interruptible(np.linalg.eigh, K)
    kept = values > _RANK * values[-1]
    R = U[:, kept] * np.sqrt(values[kept])  # (G, rank)
    squares, P = lapack.top_eigenpairs(R.T @ L @ R, min(k, R.shape[1]))
    exists = squares[::-1] > _RANK * squares[-1]
    squares, P = squares[::-1][exists], P[:, ::-1][:, exists]
    sigma = np.sqrt(squares)
    of_query = R @ P / sigma
    weights = {"reference": L @ of_query / sigma, "query": of_query}
    signs = fixed_signs(weights, {name: np.ones(len(K)) for name in weights})
    weights = {name: W * signs for name, W in weights.items()}
    noise = np.max(
        [_top_values(R, L, rng.permutation(len(K)), len(sigma), rng) for _ in range(_PERMUTATIONS)],
        axis=0,
    )
    return CellCCA(sigma, noise, weights, None, {})


def _top_values(
    R: np.ndarray, L: np.ndarray, order: np.ndarray, k: int, rng: np.random.RandomState
) -> np.ndarray:
    """Leading singular values when the genes of L are reordered, by subspace iteration."""
    V = rng.standard_normal((R.shape[1], min(k + _EXTRA, R.shape[1])))
    back = np.argsort(order)
    for _ in range(_STEPS):
        V = np.linalg.qr(V)[0]
        V = R.T @ (L @ (R @ V)[order])[back]
    return np.sqrt(lapack.singular_values(V)[:k])
