"""Exact search: a gallery prepared for its similarity, and the k best of its rows for each query.

A `Gallery` is a value whose rows grow and shrink at the cost of the change; ``search(gallery,
queries, k)`` runs on the host, or on the device that the rows came from.
"""

from mvcca.retrieval.search.exact import (
    checked_k,
    n_ranked,
    row_blocks,
    search,
    tile_rows,
    whole_lists,
)
from mvcca.retrieval.search.gallery import Gallery, padded

__all__ = [
    "Gallery",
    "checked_k",
    "n_ranked",
    "padded",
    "row_blocks",
    "search",
    "tile_rows",
    "whole_lists",
]
