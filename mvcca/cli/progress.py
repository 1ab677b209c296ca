"""What is being done, on the terminal: a line that is gone when it is done, or lines that stay."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from mvcca.cli.terminal import printable

__all__ = ["Progress"]


class Progress:
    """Messages on standard error, where that is a terminal; silence elsewhere."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()

    def say(self, message: str) -> None:
        """Replace the line."""
        if self._shown:
            print(f"\r\x1b[K{printable(message)} ...", end="", file=sys.stderr, flush=True)

    def keep(self, message: str) -> None:
        """Put a line in its place that stays."""
        self.clear()
        if self._shown:
            print(printable(message), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave an empty line for what is printed next."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
