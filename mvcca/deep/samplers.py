"""Which objects make up each batch of an epoch, as arrays of positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["ShuffledBatches"]

_LAST = ("drop", "fill", "keep")


class ShuffledBatches:
    """Every object once an epoch, in an order of its own, in batches of one size.

    Parameters
    ----------
    batch_size : int
        Rows of a batch; all rows, if there are fewer.
    last : {"drop", "fill", "keep"}, default="drop"
        What becomes of the objects left over at the end of an epoch: they sit it out (other ones
        the next time), are joined by others drawn at random, or are a small batch. A loss of
        batch covariances wants no small ones.

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
        """Batches of one epoch, of positions from 0 to n_rows - 1."""
        # Drawn here and not as batches are asked for: what is read ahead changes no state.
        order = rng.permutation(n_rows)
        size = min(self.batch_size, n_rows)
        left_over = n_rows % size
        if left_over and self.last == "drop":
            order = order[: n_rows - left_over]
        elif left_over and self.last == "fill":
            others = rng.choice(order[: n_rows - left_over], size - left_over, replace=False)
            order = np.concatenate([order, others])
        return (order[start : start + size] for start in range(0, len(order), size))
