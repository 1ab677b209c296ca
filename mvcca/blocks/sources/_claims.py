"""Check what a container claims to hold against what its file stores.

Chunks that were never written read as a fill value, so a few bytes can claim any shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil, prod

from mvcca.blocks.sources._row_source import SourceError
from mvcca.machine.warnings import warn

__all__ = ["check_chunks", "check_claim"]

_QUICK_BYTES = 2**30  # read in about a second, whatever they claim to be
_MOST = 10_000  # numbers per stored number: more than compression reaches for a matrix of use
_QUICK_CHUNKS = 10_000


def check_claim(name: str, claimed: int, stored: int) -> None:
    """Raise if an array claims more bytes than its stored bytes can hold when compressed."""
    if claimed > max(_QUICK_BYTES, _MOST * stored):
        raise SourceError(
            f"{name}: it claims {claimed:,} bytes of numbers, but {stored:,} bytes are stored, too "
            "few even if compressed; it is damaged or was never written."
        )


def check_chunks(
    name: str,
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    stored: Iterable[tuple[int, ...]],
    reads_as: str,
) -> None:
    """Warn of the number of chunks that are missing; raise if nearly all are."""
    grid = tuple(ceil(size / step) for size, step in zip(shape, chunk, strict=True))
    inside = {place for place in stored if all(i < n for i, n in zip(place, grid, strict=True))}
    total, missing = prod(grid), prod(grid) - len(inside)
    if not missing:
        return
    if total > _QUICK_CHUNKS * max(1, len(inside)):
        raise SourceError(
            f"{name}: {len(inside):,} of its {total:,} chunks are stored; it is damaged or was "
            "never written."
        )
    bands = Counter(place[0] for place in inside)
    whole = [band for band, number in bands.items() if number == prod(grid[1:])]
    n_rows = sum(min(chunk[0], shape[0] - band * chunk[0]) for band in whole)
    warn(
        f"{name}: {missing:,} of {total:,} chunks are not stored, in {shape[0] - n_rows:,} of "
        f"{shape[0]:,} rows; {reads_as}"
    )
