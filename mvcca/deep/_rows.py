"""Rows of views as float32 tensors on the device of the networks, taken by position.

Views are held on a GPU whole if they fit; rows in files are read one batch ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from mvcca.sources import RowSource
from mvcca.views import Views

_SHARE = 0.4  # of the free GPU memory, up to which views are held there


class Rows:
    """Paired views as batches of tensors.

    Parameters
    ----------
    views : Views
        Dense, sparse or in files.
    device : torch.device
        Device of the tensors.
    positions : ndarray, shape (n_rows,), optional
        Positions of these rows among the user's rows; by default 0, 1, 2, ....
    """

    def __init__(
        self, views: Views, device: torch.device, positions: np.ndarray | None = None
    ) -> None:
        self.views, self.device = views, device
        self.positions = np.arange(len(views)) if positions is None else positions
        self._held: dict[str, Tensor] | None = None
        if device.type == "cuda" and not views.is_lazy:
            needed = 4 * len(views) * views.shape[1]
            if needed < _SHARE * torch.cuda.mem_get_info(device)[0]:
                self._held = {n: self._moved(as_float32(n, X)) for n, X in views.items()}

    def __len__(self) -> int:
        return len(self.views)

    def take(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Rows of all views at the given positions."""
        if self._held is not None:
            index = self._moved(rows)
            return {name: X.index_select(0, index) for name, X in self._held.items()}
        chosen = self.views[rows].in_memory()
        return {name: self._moved(as_float32(name, X)) for name, X in chosen.items()}

    def batches(
        self, positions: Iterable[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, dict[str, Tensor]]]:
        """Positions with their rows, read one batch ahead where reading takes time."""
        if self._held is not None or not (self.views.is_lazy or self.device.type == "cuda"):
            yield from ((rows, self.take(rows)) for rows in positions)
            return
        with ThreadPoolExecutor(1, "mvcca-read") as reader:
            ahead: list[Any] = []
            for rows in positions:
                ahead.append((rows, reader.submit(self.take, rows)))
                if len(ahead) == 2:
                    taken, future = ahead.pop(0)
                    yield taken, future.result()
            yield from ((taken, future.result()) for taken, future in ahead)

    def _moved(self, array: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(array)
        if self.device.type == "cuda":  # an asynchronous copy
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)


def as_float32(name: str, block: Any) -> np.ndarray:
    """Rows in the form that torch needs: dense, float32 and writable."""
    if isinstance(block, RowSource):
        block = block.read(0, len(block))
    if issparse(block):
        block = block.toarray()
    try:
        with np.errstate(over="raise"):
            return np.require(block, dtype=np.float32, requirements=["C", "W"])
    except FloatingPointError as error:
        raise ValueError(
            f"View {name!r} has values beyond the largest float32, which networks compute in. "
            "Rescale it."
        ) from error
