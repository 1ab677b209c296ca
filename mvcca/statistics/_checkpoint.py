"""What a fit has added up so far, in a folder, so that an interrupted one can go on from there.

A fit goes over the rows a fixed number of times; every pass has a file of its own, with the state
after the last block that was kept, and a fingerprint of all it was computed from. The files are
those of `mvcca._archive`; when they are written is decided here.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
from scipy.sparse import issparse

from mvcca._backend import at_home
from mvcca.config import get_config
from mvcca.sources import RowSource
from mvcca.views import Views, take_rows

T = TypeVar("T")

_SECONDS = 20.0  # between two writings
_PROBED_ROWS = 64  # of a view in memory, by which another is told from it

_FILES = ("pass*.mvcca", ".pass*.mvcca.*.part")  # the last of a process that was killed

_folder: ContextVar[_Folder | None] = ContextVar("mvcca_checkpoint", default=None)
_is_fitting: ContextVar[bool] = ContextVar("mvcca_is_fitting", default=False)
_is_to_be_written: ContextVar[bool] = ContextVar("mvcca_is_to_be_written", default=False)


class _Folder:
    """The checkpoint of one fit: one file per pass over the rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers = count()
        path.mkdir(parents=True, exist_ok=True)

    def next_file(self) -> Path:
        return self.path / f"pass{next(self._numbers)}.mvcca"

    def discard(self) -> None:
        for pattern in _FILES:
            for file in self.path.glob(pattern):
                file.unlink()


@contextmanager
def checkpoint_of_fit() -> Iterator[None]:
    """Around a whole fit: passes in its body are kept where `mvcca.config` says, and then dropped.

    The files stay where the body raises, or the process dies. A fit within the body, such as one
    that measures networks after every epoch, keeps nothing and drops nothing.
    """
    path = get_config().checkpoint
    folder = None if path is None or _is_fitting.get() else _Folder(Path(path))
    with _having(_is_fitting, True), _having(_folder, folder):
        yield
    if folder is not None and not _is_to_be_written.get():
        folder.discard()


@contextmanager
def checkpoint_until_written() -> Iterator[None]:
    """Around one fit and the writing of its model: the checkpoint is dropped when both are done."""
    with _having(_is_to_be_written, True):
        yield
    path = get_config().checkpoint
    if path is not None:
        _Folder(Path(path)).discard()


def file_of_next_pass() -> Path | None:
    """For what a fit adds up in a way of its own: the file to keep it in, if there is to be one."""
    folder = _folder.get()
    return None if folder is None else folder.next_file()


def not_kept() -> AbstractContextManager[None]:
    """Around passes that add up what rows alone do not decide, and a fingerprint cannot tell."""
    return _having(_folder, None)


@contextmanager
def checkpointed(
    made_by: Callable[..., Any],
    start: Any,
    views: Views,
    along: tuple[np.ndarray | None, ...],
    slices: list[slice],
) -> Iterator[tuple[Any, int, Callable[[Any, int], None]]]:
    """State to start a pass from, blocks that are in it already, and what keeps a later one.

    Raises
    ------
    ValueError
        If the checkpoint is of other data, blocks or weights, or made by another function of them.
    """
    folder = _folder.get()
    if folder is None:
        yield start, 0, _forget
        return
    # Of a function joblib sees the features that it has drawn, too.
    what = (type(start).__name__, joblib.hash(made_by), _shapes(start), slices)
    fingerprint = fingerprint_of(views, repr(what), *along)
    keeper = _Keeper(folder.next_file(), fingerprint, len(slices))
    yield *keeper.load(start), keeper.keep


def _forget(state: Any, done: int) -> None:
    pass


@contextmanager
def _having(variable: ContextVar[T], value: T) -> Iterator[None]:
    """A value for the body, in this thread or task alone."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@dataclass
class _Keeper:
    file: Path
    fingerprint: str
    n_blocks: int
    written: float = 0.0

    def load(self, start: Any) -> tuple[Any, int]:
        from mvcca._archive import read_archive

        self.written = time.monotonic()
        if not self.file.exists():
            return start, 0
        arrays, content = read_archive(self.file)
        if content["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.file} is of a fit of other data, parameters or block_rows, "
                "or the files have changed since, or random_state=None has drawn anew. Give the "
                "same, or remove the checkpoint to start over."
            )
        return _restored(start, arrays), content["blocks"]

    def keep(self, state: Any, done: int) -> None:
        if done < self.n_blocks and time.monotonic() - self.written < _SECONDS:
            return
        from mvcca._archive import write_archive

        content = {"fingerprint": self.fingerprint, "blocks": done}
        write_archive(self.file, _arrays(state), content)
        self.written = time.monotonic()


def _arrays(state: Any) -> dict[str, np.ndarray]:
    if isinstance(state, np.ndarray):
        return {"state": state}
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _restored(start: Any, arrays: dict[str, np.ndarray]) -> Any:
    if not isinstance(start, np.ndarray):
        return replace(start, **arrays)
    start[...] = arrays["state"]
    return start


def _shapes(state: Any) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in _arrays(state).items()}


def fingerprint_of(views: Views, described: str, *along: np.ndarray | None) -> str:
    """A digest of rows (a file's size and time, a probe of an array) and of what is done."""
    digest = hashlib.sha256()
    digest.update(repr((described, views.widths)).encode())
    digest.update(np.packbits(views.seen).tobytes())
    for name, block in views.items():
        digest.update(name.encode())
        digest.update(_probe(block))
    for part in along:
        digest.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def _probe(block: Any) -> bytes:
    if isinstance(block, RowSource):
        return block.fingerprint().encode()
    step = max(1, block.shape[0] // _PROBED_ROWS)
    rows = at_home(take_rows(block, slice(None, None, step)))
    rows = rows.toarray() if issparse(rows) else np.ascontiguousarray(rows)
    return f"{block.shape} {block.dtype}".encode() + rows.tobytes()
