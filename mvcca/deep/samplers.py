"""Samplers, which choose the rows of each batch of an epoch.

A sampler is any callable ``(sample, rng) -> iterator of {view: positions}``. With the same array
for all views a batch is paired; with an array per view it may be unpaired, or hold several rows of
one view for each row of another. On a GPU, positions are drawn for a whole epoch before its first
step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mvcca.machine.on_access import on_access
from mvcca.views import Views
from mvcca.views.labels import rows_by_code

__all__ = ["Sample", "Sampler", "ShuffledBatches"]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to train or validate on, from which samplers choose.

    Attributes
    ----------
    views : Views
        The rows: dense, sparse or in files.
    labels : mapping of str to ndarray of int, shape (n_rows,)
        Code of the label set of every row, by view; empty without labels.
    positions : mapping of str to ndarray of int, shape (n_rows,)
        Positions of the rows among the user's, by view; empty if they are 0, 1, 2, ...
    objects : ndarray of int, shape (n_objects,), optional
        Equal for copies of an object; None without copies.
    """

    views: Views
    labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    positions: Mapping[str, np.ndarray] = field(default_factory=dict)
    objects: np.ndarray | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Number of rows of each view."""
        return {name: block.shape[0] for name, block in self.views.items()}

    def take(self, objects: np.ndarray) -> Sample:
        """The rows of some objects."""
        kept = self.views.rows_of(objects)
        return Sample(
            self.views[objects],
            {name: codes[kept[name]] for name, codes in self.labels.items()},
            {n: self.positions[n][rows] if self.positions else rows for n, rows in kept.items()},
        )


Sampler = Callable[[Sample, np.random.Generator], Iterator[Mapping[str, np.ndarray]]]


class ShuffledBatches:
    """Batches of equal size in a new random order every epoch.

    Unpaired views are paired by their labels, anew in every epoch: all rows of a class occur once
    in the view that has most of them, and in the other views each as often as the others or once
    more. Rows whose label set does not occur in every view are left out.

    Parameters
    ----------
    batch_size : int
        Rows per batch; all rows if there are fewer.
    last : {"drop", "fill", "keep"}, default="drop"
        Leftover rows are skipped this epoch, padded with random rows, or form a smaller batch.
        Losses that use covariances of a batch need large batches.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import Views
    >>> from mvcca.deep.samplers import Sample, ShuffledBatches
    >>> sample = Sample(Views({"image": np.zeros((10, 3)), "text": np.zeros((10, 2))}))
    >>> batches = ShuffledBatches(4)(sample, np.random.default_rng(0))
    >>> [len(rows["text"]) for rows in batches]
    [4, 4]

    >>> labels = {"image": np.array([0, 0, 0, 0, 1, 1]), "sound": np.array([1, 0, 0])}
    >>> views = Views.unpaired({"image": np.zeros((6, 3)), "sound": np.zeros((3, 2))})
    >>> (batch,) = ShuffledBatches(6)(Sample(views, labels), np.random.default_rng(0))
    >>> bool((labels["image"][batch["image"]] == labels["sound"][batch["sound"]]).all())
    True
    >>> np.bincount(batch["image"]), np.bincount(batch["sound"])
    (array([1, 1, 1, 1, 1, 1]), array([2, 2, 2]))
    """

    def __init__(self, batch_size: int, last: str = "drop") -> None:
        known = ("drop", "fill", "keep")
        if last not in known:
            raise ValueError(f"last must be one of {known}, got {last!r}.")
        self.batch_size, self.last = batch_size, last

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Iterator[dict[str, np.ndarray]]:
        """Positions of the rows of each view, a mapping per batch."""
        if sample.views.is_paired:
            batches = self._shuffled(len(sample.views), rng)
            return (dict.fromkeys(sample.views.names, rows) for rows in batches)
        pairs = pairs_by_label(sample.labels, rng)
        batches = self._shuffled(len(next(iter(pairs.values()))), rng)
        return ({name: rows[chosen] for name, rows in pairs.items()} for chosen in batches)

    def _shuffled(self, n_rows: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Positions of rows in random order, in batches."""
        # Drawn at once, not per batch: reading ahead must not change the state of rng.
        order = rng.permutation(n_rows)
        size = min(self.batch_size, n_rows)
        left_over = n_rows % size
        if left_over and self.last == "drop":
            order = order[: n_rows - left_over]
        elif left_over and self.last == "fill":
            others = rng.choice(order[: n_rows - left_over], size - left_over, replace=False)
            order = np.concatenate([order, others])
        return [order[start : start + size] for start in range(0, len(order), size)]


def pairs_by_label(
    labels: Mapping[str, np.ndarray], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Positions of rows with equal labels, each as often as `ShuffledBatches` says, by view."""
    groups = {name: rows_by_code(codes) for name, codes in labels.items()}
    shared = set.intersection(*map(set, groups.values())) if groups else set()
    if not shared:
        raise ValueError(
            "Rows of unpaired views are paired by their labels, but no label set occurs in all "
            "views. Use the same labels in all views."
        )
    pairs: dict[str, list[np.ndarray]] = {name: [] for name in groups}
    for code in sorted(shared):
        n_pairs = max(len(rows[code]) for rows in groups.values())
        for name, rows in groups.items():
            pairs[name].append(_repeated(rows[code], n_pairs, rng))
    return {name: np.concatenate(rows) for name, rows in pairs.items()}


def _repeated(rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """A number of the rows in random order, all equally often."""
    times = -(-n // len(rows))
    return np.concatenate([rng.permutation(rows) for _ in range(times)])[:n]
