"""Exact search: a gallery prepared for its similarity, and the k best of its rows for each query.

A `Gallery` is a value whose rows grow and shrink at the cost of the change; ``search(gallery,
queries, k)`` runs on the host, or on the device that the rows came from.
"""

from mvcca.retrieval.search.exact import (
    best_by_rows,
    check_own_rows,
    checked_k,
    row_blocks,
    search,
    tile_rows,
)
from mvcca.retrieval.search.gallery import Gallery, checked_rows, padded

__all__ = [
    "Gallery",
    "best_by_rows",
    "check_own_rows",
    "checked_k",
    "checked_rows",
    "padded",
    "row_blocks",
    "search",
    "tile_rows",
]
