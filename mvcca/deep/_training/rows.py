"""Rows of views as tensors on the device of the networks, taken by position.

Views are held on a GPU whole if they fit; rows in files are read one batch ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mvcca.blocks import as_block
from mvcca.deep._losses.batch import Batch
from mvcca.deep.encoders import Encoders, row_dtype
from mvcca.deep.samplers import Sample, pairs_by_label
from mvcca.machine.config import block_slices
from mvcca.model_selection.folds import share_of
from mvcca.views import Views
from mvcca.views.labels import rows_by_code

_SHARE = 0.4  # of the free GPU memory, up to which views are held there
_FEW = 8
_MOST_POSITIONS = 2**22  # copied to the device at once


class Batches:
    """A sample as batches of tensors, standardized and typed as the networks need them."""

    def __init__(self, sample: Sample | Views, device: torch.device, encoders: Encoders) -> None:
        sample = sample if isinstance(sample, Sample) else Sample(sample)
        self.sample, self.views, self.labels = sample, sample.views, sample.labels
        self.device, sizes = device, sample.sizes
        self.positions = {n: np.arange(size) for n, size in sizes.items()} | dict(sample.positions)
        self._dtypes = {n: row_dtype(encoders.whole[n]) for n in encoders.names}
        # On the CPU, where all devices have float64.
        self._inputs = {n: deepcopy(layer).cpu() for n, layer in encoders.inputs.items()}
        self._held: dict[str, Tensor] | None = None
        self._held_labels: dict[str, Tensor] = {}
        if device.type == "cuda" and not self.views.is_lazy:
            needed = 4 * sum(sizes[name] * width for name, width in self.views.widths.items())
            if needed < _SHARE * torch.cuda.mem_get_info(device)[0]:
                self.hold()

    def __len__(self) -> int:
        """Number of objects."""
        return len(self.views)

    def hold(self) -> None:
        """Keep all rows and labels on the device, where batches are then selected."""
        self._held = {n: self._whole(n, X) for n, X in self.views.items()}
        self._held_labels = {
            n: self._moved(torch.from_numpy(codes)) for n, codes in self.labels.items()
        }

    def take(self, chosen: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
        """Rows of views at the given positions."""
        if self._held is not None:
            moved = {id(rows): self._moved(torch.from_numpy(rows)) for rows in chosen.values()}
            return {n: self._held[n].index_select(0, moved[id(p)]) for n, p in chosen.items()}
        return {
            n: self._tensor(n, self.views.block(n).take(rows).matrix) for n, rows in chosen.items()
        }

    def all(self) -> dict[str, np.ndarray]:
        """Positions of all rows of each view; with labels, unpaired rows make the same pairs."""
        if self.views.is_paired:
            return dict.fromkeys(self.views.names, np.arange(len(self)))
        if self.labels:
            return pairs_by_label(self.labels, np.random.default_rng(0))
        return {name: np.arange(size) for name, size in self.sample.sizes.items()}

    def batch(
        self,
        chosen: Mapping[str, np.ndarray],
        epoch: int,
        n_epochs: int,
        taken: dict[str, Tensor] | None = None,
        labels: dict[str, Tensor] | None = None,
    ) -> Batch:
        """A batch of the rows at the given positions, which may have been taken before."""
        taken = self.take(chosen) if taken is None else taken
        if labels is None:
            labels = {
                name: self._moved(torch.from_numpy(codes[chosen[name]]))
                for name, codes in self.labels.items()
            }
        first, *others = chosen.values()
        if self.views.is_paired and all(rows is first for rows in others):
            return Batch(taken, self.positions[next(iter(chosen))][first], epoch, n_epochs, labels)
        positions = {name: self.positions[name][rows] for name, rows in chosen.items()}
        return Batch(taken, positions, epoch, n_epochs, labels)

    def batches(
        self, positions: Iterable[Mapping[str, np.ndarray]], epoch: int, n_epochs: int
    ) -> Iterator[Batch]:
        """Batches, read one ahead where reading takes time.

        Of rows held on the device, positions are copied there for many batches at once.
        """
        if self._held is not None:
            for some in _together(positions):
                yield from self._held_batches(self._held, some, epoch, n_epochs)
            return
        if not (self.views.is_lazy or self.device.type == "cuda"):
            yield from (self.batch(chosen, epoch, n_epochs) for chosen in positions)
            return
        with ThreadPoolExecutor(1, "mvcca-read") as reader:
            ahead: list[Any] = []
            for chosen in positions:
                ahead.append((chosen, reader.submit(self.take, chosen)))
                if len(ahead) == 2:
                    first, future = ahead.pop(0)
                    yield self.batch(first, epoch, n_epochs, future.result())
            for last, future in ahead:
                yield self.batch(last, epoch, n_epochs, future.result())

    def _held_batches(
        self,
        held: Mapping[str, Tensor],
        positions: list[Mapping[str, np.ndarray]],
        epoch: int,
        n_epochs: int,
    ) -> Iterator[Batch]:
        arrays = {id(rows): rows for chosen in positions for rows in chosen.values()}
        moved = self._moved(torch.from_numpy(np.concatenate(list(arrays.values()))))
        parts = moved.split([len(rows) for rows in arrays.values()])
        places = dict(zip(arrays, parts, strict=True))
        for chosen in positions:
            taken, labels = (
                {n: X.index_select(0, places[id(chosen[n])]) for n, X in whole.items()}
                for whole in (held, self._held_labels)
            )
            yield self.batch(chosen, epoch, n_epochs, taken, labels)

    def _whole(self, name: str, block: Any) -> Tensor:
        """All rows of a view, moved in blocks: float64 ones take twice the memory."""
        slices = list(block_slices(block.shape[0], 8 * block.shape[1]))
        first, *others = (self._tensor(name, as_block(block).take(rows).matrix) for rows in slices)
        return torch.cat([first, *others]) if others else first

    def _tensor(self, name: str, block: Any) -> Tensor:
        tensor = torch.from_numpy(as_array(name, block, self._dtypes[name]))
        layer = self._inputs.get(name)
        return self._moved(tensor if layer is None else layer(tensor))

    def _moved(self, tensor: Tensor) -> Tensor:
        """A tensor on the device."""
        if self.device.type == "cuda":  # an asynchronous copy
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)


def _together(
    positions: Iterable[Mapping[str, np.ndarray]],
) -> Iterator[list[Mapping[str, np.ndarray]]]:
    """Batches whose positions are copied at once: usually all of an epoch."""
    some: list[Mapping[str, np.ndarray]] = []
    n_positions = 0
    for chosen in positions:
        some.append(chosen)
        n_positions += sum(len(rows) for rows in chosen.values())
        if n_positions > _MOST_POSITIONS:
            yield some
            some, n_positions = [], 0
    if some:
        yield some


def split(sample: Sample, fraction: float, seed: int) -> tuple[Sample, Sample]:
    """Training and validation rows, drawn by object; copies of an object stay together."""
    train, valid = _split_objects(sample, fraction, seed)
    return sample.take(train), sample.take(valid)


def _split_objects(sample: Sample, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training and of the validation objects.

    Unpaired ones are stratified by view and label, and none is held out that is alone.
    """
    if sample.objects is not None:
        _, first, codes = np.unique(sample.objects, return_index=True, return_inverse=True)
        train, valid = _split_objects(sample.take(first), fraction, seed)
        return np.flatnonzero(np.isin(codes, train)), np.flatnonzero(np.isin(codes, valid))
    n_rows, rng = len(sample.views), np.random.default_rng(seed)
    if sample.views.is_paired:
        order = rng.permutation(n_rows)
        n_valid = round(share_of(fraction, n_rows))
    else:
        kinds = np.full((n_rows, len(sample.views.names)), -1)
        for column, name in zip(kinds.T, sample.views.names, strict=True):
            column[sample.views.objects(name)] = sample.labels[name]
        _, kind = np.unique(kinds, axis=0, return_inverse=True)
        groups = map(rng.permutation, rows_by_code(kind.reshape(-1)).values())
        cut = [(g, min(round(share_of(fraction, len(g))), len(g) - 1)) for g in groups]
        valid = np.concatenate([g[:n_valid] for g, n_valid in cut])
        order = np.concatenate([valid, *(g[n_valid:] for g, n_valid in cut)])
        n_valid = len(valid)
    if not 2 <= n_valid <= n_rows - 2:
        raise ValueError(
            f"validation_fraction={fraction} of {n_rows} rows leaves too few rows for training or "
            "for validation. Pass X_val to fit."
        )
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def few_rows(block: Any) -> Any:
    """Some rows of a view, evenly spaced, in memory."""
    n_rows = block.shape[0]
    positions = np.unique(np.linspace(0, n_rows - 1, min(n_rows, _FEW)).astype(np.intp))
    return as_block(block).take(positions).in_memory().matrix


def as_array(name: str, block: Any, dtype: type[np.generic] = np.float32) -> np.ndarray:
    """Rows in the form that torch needs: dense, writable, and of the type of `row_dtype`."""
    block = as_block(block).dense().matrix
    if dtype is np.int64:
        return _as_integers(name, block)
    largest = np.finfo(np.float32).max
    if block.dtype != np.float32 and max(block.max(initial=0), -block.min(initial=0)) > largest:
        raise ValueError(
            f"View {name!r} has values beyond the largest float32, which networks compute in. "
            "Rescale it."
        )
    return np.require(block, dtype=dtype, requirements=["C", "W"])


def _as_integers(name: str, block: Any) -> np.ndarray:
    whole = np.require(block, dtype=np.int64, requirements=["C", "W"])
    if block.dtype.kind == "f" and not np.array_equal(whole, block):
        raise ValueError(
            f"The network of view {name!r} takes positions in a vocabulary, but the view has "
            "values that are not whole numbers. Encode words as numbers from 2, with 0 for padding."
        )
    if whole.min(initial=0) < 0:
        raise ValueError(
            f"The network of view {name!r} takes positions in a vocabulary, but the view has "
            f"negative values: {whole.min()}. Use 0 for padding."
        )
    return whole
