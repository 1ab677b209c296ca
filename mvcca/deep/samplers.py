"""Samplers, which choose the rows of each batch of an epoch.

A sampler is any callable ``(objects, rng) -> iterator of {view: positions}``. With the same array
for all views a batch is paired; with an array per view it may be unpaired, or hold several rows of
one view for each row of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Objects", "Sampler", "ShuffledBatches"]

_LAST = ("drop", "fill", "keep")


@dataclass(frozen=True, eq=False)
class Objects:
    """What a sampler chooses from: the number of rows of each view, and their labels.

    Attributes
    ----------
    sizes : mapping of str to int
        Number of rows of each view.
    labels : mapping of str to ndarray of int, shape (n_rows,)
        Code of the label set of every row, by view; empty without labels.
    paired : bool
        Whether rows at the same position show the same object in all views.
    """

    sizes: Mapping[str, int]
    labels: Mapping[str, np.ndarray] = field(default_factory=dict)
    paired: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the views."""
        return tuple(self.sizes)

    def __len__(self) -> int:
        """Number of rows of paired views."""
        if not self.paired:
            raise ValueError(
                "Unpaired views have no common number of rows. Use a sampler for unpaired views, "
                "which draws positions for each view."
            )
        return next(iter(self.sizes.values()))


Sampler = Callable[[Objects, np.random.Generator], Iterator[Mapping[str, np.ndarray]]]


class ShuffledBatches:
    """Paired batches of equal size in a new random order every epoch.

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
    >>> from mvcca.deep.samplers import Objects, ShuffledBatches
    >>> objects = Objects({"image": 10, "text": 10})
    >>> batches = ShuffledBatches(4)(objects, np.random.default_rng(0))
    >>> [len(rows["text"]) for rows in batches]
    [4, 4]
    """

    def __init__(self, batch_size: int, last: str = "drop") -> None:
        if last not in _LAST:
            raise ValueError(f"last must be one of {_LAST}, got {last!r}.")
        self.batch_size, self.last = batch_size, last

    def __call__(
        self, objects: Objects, rng: np.random.Generator
    ) -> Iterator[dict[str, np.ndarray]]:
        """Positions of the rows of each view, a mapping per batch."""
        # Drawn at once, not per batch: reading ahead must not change the state of rng.
        n_rows = len(objects)
        order = rng.permutation(n_rows)
        size = min(self.batch_size, n_rows)
        left_over = n_rows % size
        if left_over and self.last == "drop":
            order = order[: n_rows - left_over]
        elif left_over and self.last == "fill":
            others = rng.choice(order[: n_rows - left_over], size - left_over, replace=False)
            order = np.concatenate([order, others])
        starts = range(0, len(order), size)
        return (dict.fromkeys(objects.names, order[start : start + size]) for start in starts)
