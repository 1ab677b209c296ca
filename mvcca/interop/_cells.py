"""Integration of two AnnData objects of single cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mvcca.interop._anndata import array_of
from mvcca.linear import CellCCA, cell_cca


def integrate_cells(
    reference: Any,
    query: Any,
    n_components: int = 30,
    *,
    genes: Sequence[str] | None = None,
    layer: str | None = None,
    max_z: float | None = 10.0,
    key: str = "X_cca",
    random_state: Any = 0,
) -> CellCCA:
    """Find components that two AnnData objects share, and write the scores of their cells.

    Both objects get ``.obsm[key]``, the scores of their cells, each of norm 1, and ``.uns[key]``,
    the singular values, those of permuted genes and the number of shared components. Objects may be
    backed by a file that is open for reading; their matrices are read in blocks, and the scores are
    written when you write the object.

    Parameters
    ----------
    reference, query : AnnData
        Cells × genes, normalised and logarithmic; changed in place.
    n_components : int, default=30
        Number of components.
    genes : sequence of str, optional
        Genes to use, by ``.var_names``. By default all, which must be the same in both objects.
    layer : str, optional
        Key in ``.layers``; by default ``.X``.
    max_z, random_state
        As in `mvcca.linear.cell_cca`.
    key : str, default="X_cca"
        Where to write.

    Returns
    -------
    CellCCA
        The components; ``transform`` projects further cells.

    Raises
    ------
    TypeError
        If one of the two is no AnnData object.
    ValueError
        As for `mvcca.linear.cell_cca`.

    See Also
    --------
    mvcca.retrieval.mutual_neighbors : Cells of both objects that are near to each other.
    mvcca.retrieval.transfer_labels : Label cells by their neighbours in a reference.
    """
    data = {"reference": reference, "query": query}
    for name, one in data.items():
        if not hasattr(one, "obsm") or not hasattr(one, "var_names"):
            raise TypeError(
                f"{name}: expected AnnData, got {type(one).__name__}. Use mvcca.linear.cell_cca "
                "for matrices."
            )
    matrices = {name: array_of(one, layer, name) for name, one in data.items()}
    shared = cell_cca(
        matrices["reference"],
        matrices["query"],
        n_components,
        genes=genes,
        gene_names=(list(reference.var_names), list(query.var_names)),
        max_z=max_z,
        random_state=random_state,
    )
    for name, one in data.items():
        one.obsm[key] = shared.transform(matrices[name], name)
        one.uns[key] = {
            "singular_values": shared.singular_values,
            "noise": shared.noise,
            "n_shared": shared.n_shared,
        }
    return shared
