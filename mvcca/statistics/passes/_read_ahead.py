"""Read blocks of rows ahead into memory, or to a device, while earlier ones are processed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from operator import methodcaller
from typing import Any

import numpy as np

from mvcca.blocks import Block
from mvcca.machine.config import get_config
from mvcca.machine.devices import mover
from mvcca.views import Views

_AHEAD = 2  # blocks read ahead; with one, disk and processor would wait for each other

Along = tuple[np.ndarray | None, ...]


def blocks_read_ahead(
    views: Views, along: Along, slices: list[slice], on_device: bool
) -> Generator[tuple[Any, ...]]:
    """Yield each block in memory with its part of `along`; the next two are read meanwhile.

    Each view has its own thread, so that one is validated while another is read.
    """
    place, is_copied = _placing(views) if on_device else (methodcaller("on_host"), False)

    def read(rows: Block) -> Any:
        return place(rows.in_memory())

    def with_along(block: Views, rows: slice) -> tuple[Any, ...]:
        return block, *(None if part is None else part[rows] for part in along)

    if not views.is_lazy and not is_copied:
        for rows in slices:
            block = views[rows]
            yield with_along(block.replace({n: place(X) for n, X in block.blocks.items()}), rows)
        return
    with ExitStack() as stack:
        readers = {
            name: stack.enter_context(ThreadPoolExecutor(1, "mvcca-read")) for name in views.names
        }

        def ahead(rows: slice) -> tuple[slice, Views, dict[str, Future[Any]]]:
            block = views[rows]
            return rows, block, {n: readers[n].submit(read, X) for n, X in block.blocks.items()}

        following = iter(slices)
        coming = deque(map(ahead, islice(following, _AHEAD)))
        while coming:
            rows, block, matrices = coming.popleft()
            block = block.replace({name: matrix.result() for name, matrix in matrices.items()})
            del matrices
            coming.extend(map(ahead, islice(following, 1)))
            yield with_along(block, rows)
            del block  # frees its memory before the next is available


def _placing(views: Views) -> tuple[Callable[[Block], Any], bool]:
    """A function that moves rows to the configured device, and whether it copies any view."""
    device = get_config().rows_device
    if device is None:
        return lambda rows: rows, False
    move = mover(device)
    is_copied = not all(block.on_device for block in views.blocks.values())
    return lambda rows: rows.moved_by(move), is_copied
