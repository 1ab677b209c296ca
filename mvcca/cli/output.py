"""Files that a command writes: found wanting before the work, and written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mvcca import _replacing
from mvcca.cli.errors import CommandError

__all__ = ["replacing", "writable"]


def writable(name: str, inputs: Iterable[Path] = ()) -> Path:
    """The path of an output, checked as far as it can be before there is something to write.

    Parameters
    ----------
    name : str
        The path.
    inputs : iterable of Path
        Files that the command reads, none of which may be written over.

    Raises
    ------
    CommandError
        If it is a folder or an input, or its folder does not exist or cannot be written to.
    """
    path = Path(name)
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "something else"
        raise CommandError(f"{path}: expected a file to write, this is {what}")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: its folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"{path}: its folder {path.parent} cannot be written to")
    for other in inputs:
        if path.exists() and other.exists() and path.samefile(other):
            raise CommandError(f"{path}: this is an input of the command; write to another file")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file to write to, which takes the place of `path`; see `mvcca._replacing`.

    Raises
    ------
    CommandError
        If it cannot be written; the disk may be full.
    """
    try:
        with _replacing.replacing(path) as file:
            yield file
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}") from error
