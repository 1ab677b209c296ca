"""Rows in DataFrames, and in whatever else NumPy converts to an array."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mvcca.blocks._block import Block
from mvcca.blocks._dense import DenseBlock
from mvcca.blocks._sparse import host_block
from mvcca.blocks.checks import check_numbers, of_view

__all__ = ["FrameBlock"]


class FrameBlock(Block):
    """Rows in a container of another library, which is converted when its numbers are needed."""

    is_frame = True

    @classmethod
    def holds(cls, matrix: Any) -> bool:  # noqa: ARG003
        return True

    def __post_init__(self) -> None:
        pass  # shape and type may need the converted matrix

    @cached_property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Number of rows and number of features."""
        return tuple(self.matrix.shape) if hasattr(self.matrix, "shape") else self.plain().shape

    @cached_property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        """NumPy type of the numbers."""
        return self.plain().dtype

    @property
    def storage(self) -> str:
        library = type(self.matrix).__module__.partition(".")[0]
        return f"{library} {'DataFrame' if hasattr(self.matrix, 'iloc') else 'array'}"

    def take(self, rows: slice | np.ndarray) -> FrameBlock:
        by_position = getattr(self.matrix, "iloc", self.matrix)
        return FrameBlock(by_position[rows])

    def plain(self) -> DenseBlock:
        return DenseBlock(np.asarray(self.matrix))

    def holds_numbers(self) -> bool:
        dtypes = self.matrix.dtypes if hasattr(self.matrix, "columns") else [self.dtype]
        return all(getattr(dtype, "kind", "O") in "biufc" for dtype in dtypes)

    def holds_texts(self) -> bool:
        return self.take(slice(0, 1)).plain().holds_texts()

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> Block:
        try:
            return host_block(check_numbers(self.matrix, estimator, ids, **options))
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error
