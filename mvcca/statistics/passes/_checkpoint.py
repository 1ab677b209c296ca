"""Checkpoint directory of a fit; an interrupted fit resumes from it.

A fit passes over the rows a fixed number of times. Each pass has one file, which holds the state
after the last block that was saved and a fingerprint of everything it was computed from. The file
format is that of `mvcca.machine.archive`; this module decides when files are written and removed.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mvcca.blocks import Block, as_block
from mvcca.machine.config import get_config
from mvcca.machine.replacing import final_name
from mvcca.views import Views

T = TypeVar("T")

_SECONDS = 20.0  # between two writings

_PASS = re.compile(r"pass\d+\.mvcca")

_folder: ContextVar[_Folder | None] = ContextVar("mvcca_checkpoint", default=None)
_is_fitting: ContextVar[bool] = ContextVar("mvcca_is_fitting", default=False)
_to_discard: ContextVar[list[_Folder] | None] = ContextVar("mvcca_to_discard", default=None)


class _Folder:
    """The checkpoint of one fit: one file per pass over the rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: list[Path] = []
        self._digests: dict[int, tuple[Any, bytes]] = {}
        path.mkdir(parents=True, exist_ok=True)

    def next_file(self) -> Path:
        self._files.append(self.path / f"pass{len(self._files)}.mvcca")
        return self._files[-1]

    def digest_of(self, block: Block) -> bytes:
        """Digest of rows; rows in memory, which several passes go over, are hashed once."""
        if block.is_lazy:
            return block.digest()
        matrix = block.matrix
        if id(matrix) not in self._digests:
            self._digests[id(matrix)] = matrix, block.digest()  # held, so that its id stays unique
        return self._digests[id(matrix)][1]

    def discard(self) -> None:
        """Remove the files of this fit and nothing else."""
        for file in self._files:
            file.unlink(missing_ok=True)


def is_pass_file(name: str) -> bool:
    """Whether a file in a checkpoint directory is the state of a pass, complete or half-written."""
    return _PASS.fullmatch(final_name(name)) is not None


@contextmanager
def checkpoint_of_fit() -> Iterator[None]:
    """Around a whole fit: save its passes in the configured directory, remove them at the end.

    The files stay if the body raises or the process dies. A fit within the body, such as one
    that measures networks after every epoch, saves nothing and removes nothing.
    """
    path = get_config().checkpoint
    folder = None if path is None or _is_fitting.get() else _Folder(Path(path))
    with _set(_is_fitting, True), _set(_folder, folder):
        yield
    if folder is None:
        return
    later = _to_discard.get()
    if later is None:
        folder.discard()
    else:
        later.append(folder)


@contextmanager
def checkpoint_until_written() -> Iterator[None]:
    """Around fits and the writing of their model: checkpoints are removed when all is done."""
    folders: list[_Folder] = []
    with _set(_to_discard, folders):
        yield
    for folder in folders:
        folder.discard()


def file_of_next_pass() -> Path | None:
    """The checkpoint file of the next pass, for fits that write it themselves; None without one."""
    folder = _folder.get()
    return None if folder is None else folder.next_file()


def not_kept() -> AbstractContextManager[None]:
    """Around passes without a checkpoint: the fingerprint does not cover what they add up."""
    return _set(_folder, None)


@contextmanager
def checkpointed(
    made_by: Callable[..., Any],
    start: Any,
    views: Views,
    along: tuple[np.ndarray | None, ...],
    slices: list[slice],
) -> Iterator[tuple[Any, int, Callable[[Any, int], None]]]:
    """State to start a pass from, number of its blocks, and a function that saves later states."""
    if _folder.get() is None:
        yield start, 0, _forget
        return
    import joblib

    # It hashes what a partial function holds, such as random features, as well.
    what = (type(start).__name__, joblib.hash(made_by), _shapes(start), slices)
    with checkpointed_steps(repr(what), start, views, along, len(slices)) as kept:
        yield kept


@contextmanager
def checkpointed_steps(
    described: str,
    start: Any,
    views: Views,
    along: tuple[np.ndarray | None, ...] = (),
    most: int | None = None,
) -> Iterator[tuple[Any, int, Callable[[Any, int], None]]]:
    """State to go on from, number of its steps, and a function that saves later states.

    States are saved now and then, and in any case after the last of `most` steps. `described`
    tells apart what is done to the views.
    """
    folder = _folder.get()
    if folder is None:
        yield start, 0, _forget
        return
    keeper = _Keeper(folder.next_file(), fingerprint_of(views, described, *along), most)
    yield *keeper.load(start), keeper.keep


def _forget(state: Any, done: int) -> None:
    pass


@contextmanager
def _set(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Set a variable for the body, in this thread or task only."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@dataclass
class _Keeper:
    file: Path
    fingerprint: str
    most: int | None
    written: float = 0.0

    def load(self, start: Any) -> tuple[Any, int]:
        from mvcca.machine.archive import read_archive

        self.written = time.monotonic()
        if not self.file.exists():
            return start, 0
        arrays, content = read_archive(self.file)
        refuse_other_files(self.file, content)
        if content["fingerprint"] != self.fingerprint:
            raise ValueError(
                f"The checkpoint {self.file} is of a fit of other data, parameters or block_rows, "
                "or the files have changed since, or random_state=None has drawn anew. Give the "
                "same, or remove the checkpoint to start over."
            )
        return _restored(start, arrays), content["blocks"]

    def keep(self, state: Any, done: int) -> None:
        if done != self.most and time.monotonic() - self.written < _SECONDS:
            return
        from mvcca.machine.archive import write_archive

        content = {"fingerprint": self.fingerprint, "blocks": done}
        write_archive(self.file, _arrays(state), content)
        self.written = time.monotonic()


def _arrays(state: Any) -> dict[str, np.ndarray]:
    if isinstance(state, np.ndarray):
        return {"state": state}
    arrays = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value
        elif isinstance(value, Views):
            arrays[f"{field.name}: seen"] = value.seen
            arrays |= {f"{field.name}: view {name}": block for name, block in value.items()}
    return arrays


def _restored(start: Any, arrays: dict[str, Any]) -> Any:
    if not isinstance(start, np.ndarray):
        arrays = dict(arrays)
        for field in fields(start):
            if isinstance(value := getattr(start, field.name), Views):
                seen = arrays.pop(f"{field.name}: seen")
                blocks = {n: as_block(arrays.pop(f"{field.name}: view {n}")) for n in value.names}
                arrays[field.name] = Views.of(blocks, seen)
        return replace(start, **arrays)
    start[...] = arrays["state"]
    return start


def _shapes(state: Any) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in _arrays(state).items()}


def refuse_other_files(file: Path, content: dict[str, Any]) -> None:
    """Raise ValueError if a file in the place of a checkpoint is something else, such as a model.

    A checkpoint would replace and then remove it.
    """
    if "fingerprint" not in content:
        raise ValueError(
            f"{file} is not a checkpoint, but a fit would replace it by one. Move it away, or "
            "choose another directory for the checkpoint."
        )


def fingerprint_of(views: Views, described: str, *along: np.ndarray | None) -> str:
    """A digest of what is done, and of the rows it is done to.

    It covers every byte of rows in memory and of `along`; for files, see `RowSource.fingerprint`.
    """
    folder = _folder.get()
    digest = hashlib.sha256()
    digest.update(repr((described, views.widths)).encode())
    digest.update(np.packbits(views.seen).tobytes())
    for name, block in views.blocks.items():
        digest.update(name.encode())
        digest.update(block.digest() if folder is None else folder.digest_of(block))
    for part in along:
        digest.update(b"none" if part is None else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()
