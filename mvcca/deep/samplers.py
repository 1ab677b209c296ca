"""Samplers, which choose the rows of each batch of an epoch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["ShuffledBatches"]

_LAST = ("drop", "fill", "keep")


class ShuffledBatches:
    """Batches of equal size in a new random order every epoch.

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
    >>> from mvcca.deep.samplers import ShuffledBatches
    >>> [len(rows) for rows in ShuffledBatches(4)(10, np.random.default_rng(0))]
    [4, 4]
    """

    def __init__(self, batch_size: int, last: str = "drop") -> None:
        if last not in _LAST:
            raise ValueError(f"last must be one of {_LAST}, got {last!r}.")
        self.batch_size, self.last = batch_size, last

    def __call__(self, n_rows: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Positions from 0 to n_rows - 1, an array per batch."""
        # Drawn at once, not per batch: reading ahead must not change the state of rng.
        order = rng.permutation(n_rows)
        size = min(self.batch_size, n_rows)
        left_over = n_rows % size
        if left_over and self.last == "drop":
            order = order[: n_rows - left_over]
        elif left_over and self.last == "fill":
            others = rng.choice(order[: n_rows - left_over], size - left_over, replace=False)
            order = np.concatenate([order, others])
        return (order[start : start + size] for start in range(0, len(order), size))
