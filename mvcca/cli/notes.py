"""What a command says besides its results: lines on standard error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mvcca.cli.terminal import printable

__all__ = ["note", "warnings_as_notes"]


def note(message: str) -> None:
    """Say something, in a line of its own."""
    print(f"mvcca: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings to the user become notes, each once; where in the code they arose is left out."""

    def say(message: Any, *_: Any, **__: Any) -> None:
        note(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("once", UserWarning)
        warnings.showwarning = say
        yield
