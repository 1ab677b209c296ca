"""Replacing a file whole or not at all, by way of a temporary file beside it."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PART = re.compile(r"\.(.*)\.[0-9a-f]{16}\.part", re.DOTALL)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file, which takes the place of `path` once it is safely on the disk."""
    # If the body fails, is interrupted or is killed, `path` is what it was before. Temporary files
    # that a killed process left beside `path` are removed. A symbolic link stays one, and the file
    # it names is replaced.
    target = Path(os.path.realpath(path))
    mode = _mode_of_regular(path)
    _remove_abandoned(target)
    temporary, new = _open_beside(target)
    try:
        with new:
            yield new
            new.flush()
            os.chmod(temporary, os.fstat(new.fileno()).st_mode if mode is None else mode)
            os.fsync(new.fileno())
            if fcntl is None:  # Windows renames no open file
                new.close()
            os.replace(temporary, target)  # still locked: nobody takes it for abandoned
    except BaseException as error:
        with suppress(FileNotFoundError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise
    if hasattr(os, "O_DIRECTORY"):  # the new name in the folder, too; Windows cannot
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def final_name(name: str) -> str:
    """The name that a temporary file would have taken; other names are returned unchanged."""
    part = _PART.fullmatch(name)
    return part[1] if part else name


def _mode_of_regular(path: str | os.PathLike[str]) -> int | None:
    """The mode of an existing file; None if there is none."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(
            f"{os.fspath(path)} is not a regular file, and is left as it is. Give the name of a "
            "new file, or of one to replace."
        )
    return mode


def _open_beside(target: Path) -> tuple[Path, BinaryIO]:
    """A new temporary file, locked for as long as it is open."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        new = open(temporary, "xb")  # noqa: SIM115
        if fcntl is None:
            return temporary, new
        with suppress(OSError):  # a file system without locks; nothing is removed there
            fcntl.flock(new, fcntl.LOCK_EX)
        if temporary.exists():  # else it was taken for abandoned before it was locked
            return temporary, new
        new.close()


def _remove_abandoned(target: Path) -> None:
    """Remove temporary files of `target` whose processes are gone."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if not (_PART.fullmatch(entry.name) and final_name(entry.name) == target.name):
                continue
            with suppress(OSError), open(entry.path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while it is written
                os.unlink(entry.path)
