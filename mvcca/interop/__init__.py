"""Models in other people's tools, and their data as views.

=====================  ===========================================================================
For                    call
=====================  ===========================================================================
a vector store         `mvcca.retrieval.retrieval_vectors`, or ``mvcca transform --vectors``
PyTorch                `to_linear`: one ``torch.nn.Linear`` per view
an ONNX runtime        `save_onnx`
sentence-transformers  `save_dense`: a ``Dense`` module to put behind an encoder
any other tool         `affine_map`: the weights and the bias of a view as NumPy arrays
files of hits          `Hits`: TREC runs, tables and arrays of searches, written in blocks
AnnData, MuData        `views_of_modalities`, and `write_scores` into ``.obsm``, ``.varm``, ``.uns``
single cells           `integrate_cells`: components that two AnnData objects share, into ``.obsm``
=====================  ===========================================================================

A library is imported when a function that needs it is called; if it is missing, the error names the
extra to install.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from mvcca.interop._affine import affine_map
    from mvcca.interop._anndata import views_of_modalities, write_scores
    from mvcca.interop._cells import integrate_cells
    from mvcca.interop._hits import Hits
    from mvcca.interop._networks import save_dense, save_onnx, to_linear

__all__ = [
    "Hits",
    "affine_map",
    "integrate_cells",
    "save_dense",
    "save_onnx",
    "to_linear",
    "views_of_modalities",
    "write_scores",
]

__getattr__ = on_access(
    __name__,
    {
        "_affine": ("affine_map",),
        "_anndata": ("views_of_modalities", "write_scores"),
        "_cells": ("integrate_cells",),
        "_hits": ("Hits",),
        "_networks": ("save_dense", "save_onnx", "to_linear"),
    },
)


def __dir__() -> list[str]:
    return __all__
