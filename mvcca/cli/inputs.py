"""Views and labels in the user's files, and whether they fit together.

Files are read by `mvcca.cli.files` and `mvcca.cli.labels`; what is checked here is what they must
be for a method to learn from, in the words of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.errors import CommandError, UsageError, in_one_line
from mvcca.cli.files import open_array, path_of
from mvcca.cli.labels import Labels, read_labels
from mvcca.config import block_slices
from mvcca.sources import RowSource
from mvcca.views import Views

__all__ = ["by_name", "checked_view", "files_of", "files_of_labels", "open_view", "read_inputs"]


def read_inputs(
    views: list[tuple[str, str]], labels: list[str], read: Callable[[str, str], Any]
) -> tuple[Views, Labels | None]:
    """Views, paired or not, and labels of all their objects.

    Parameters
    ----------
    views : list of (name, file)
        What ``--view`` was given.
    labels : list of str
        What ``--labels`` was given: a file, or NAME=FILE for every view.
    read : callable
        `checked_view` or `open_view`.

    Returns
    -------
    views : Views
        Unpaired if every view has labels of its own.
    labels : Labels or None
        In the order of the objects.

    Raises
    ------
    UsageError
        If a name is given twice, or views or labels are missing.
    CommandError
        If a file cannot be read, or files do not fit together.
    """
    files = by_name(views, "--view")
    if len(files) < 2:
        raise UsageError("--view must be given at least twice")
    label_files = _label_files(labels, list(files))
    blocks = {name: read(name, file) for name, file in files.items()}
    if "" in label_files or not label_files:
        paired = _paired(blocks, files)
        return paired, _stacked(label_files, {"": len(paired)})
    heights = {name: block.shape[0] for name, block in blocks.items()}
    of_views = _stacked({name: label_files[name] for name in files}, heights)
    return Views.unpaired(blocks), of_views


def by_name(pairs: list[tuple[str, str]], option: str) -> dict[str, str]:
    """What an option was given, with every name once."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} names {name!r} twice")
    return dict(pairs)


def files_of_labels(given: list[str], names: list[str]) -> list[Path]:
    """The files that ``--labels`` options name, for views of some names."""
    return [path_of(file) for file in _label_files(given, names).values()]


def files_of(pairs: Iterable[tuple[str, str]]) -> list[Path]:
    """The files that NAME=FILE options name."""
    return [path_of(file) for _, file in pairs]


def checked_view(name: str, file: str) -> Any:
    """As `open_view`, with all numbers known to be finite."""
    block = open_view(name, file)
    if isinstance(block, RowSource):
        with in_one_line():
            for rows in block_slices(len(block), block.row_bytes):
                _checked(name, file, block.read(rows.start, rows.stop), rows.start)
    return block


def open_view(name: str, file: str) -> Any:
    """A matrix that is read by rows, where the file's format allows it; else one in memory."""
    block = open_array(file)
    if not isinstance(block, RowSource):
        return _checked(name, file, block)
    _check_size(name, file, block)  # its numbers are checked as they are read
    return block


def _checked(name: str, file: str, block: Any, start: int = 0) -> Any:
    if block.ndim != 2:
        raise CommandError(
            f"{file}: view {name!r} must be a matrix with a row per object, got an array of shape "
            f"{block.shape}"
        )
    values = block.data if issparse(block) else block
    if values.dtype.kind in "US":
        raise CommandError(f"{file}: view {name!r} must hold numbers, got text")
    _check_size(name, file, block)
    if not np.isfinite(values).all():
        raise CommandError(
            f"{file}: view {name!r} holds NaN or infinity{_first_place(block, start)}"
        )
    return block


def _check_size(name: str, file: str, block: Any) -> None:
    if not min(block.shape):
        raise CommandError(f"{file}: view {name!r} is empty: its shape is {block.shape}")


def _first_place(block: Any, start: int) -> str:
    if issparse(block):
        return ""
    row, column = np.argwhere(~np.isfinite(block))[0] + 1
    return f", first in row {start + row}, column {column}"


def _label_files(given: list[str], names: list[str]) -> dict[str, str]:
    """File of the labels of each view, or of all objects under the name ""."""
    pairs = []
    for text in given:
        name, separator, file = text.partition("=")
        pairs.append((name, file) if separator and name in names else ("", text))
    if len(pairs) == 1 and pairs[0][0] == "":
        return dict(pairs)
    if any(not name for name, _ in pairs):
        raise UsageError(
            f"--labels is one FILE, or one NAME=FILE for each of the views {', '.join(names)}; got "
            f"{' '.join(given)}"
        )
    files = by_name(pairs, "--labels")
    missing = [name for name in names if name not in files]
    if files and missing:
        raise UsageError(f"--labels of the views {', '.join(missing)} are missing")
    return files


def _paired(blocks: dict[str, Any], files: dict[str, str]) -> Views:
    heights = {name: block.shape[0] for name, block in blocks.items()}
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {heights[name]} ({file})" for name, file in files.items())
        raise CommandError(
            f"paired views must have the same number of rows, got {found}. For views that are not "
            "paired give one --labels NAME=FILE for each"
        )
    return Views(blocks)


def _stacked(files: dict[str, str], heights: dict[str, int]) -> Labels | None:
    """Labels of all objects, from one file for them or one per view."""
    if not files:
        return None
    parts = {name: read_labels(file, heights[name]) for name, file in files.items()}
    for name, file in files.items():
        n_labels = len(parts[name]) if isinstance(parts[name], list) else parts[name].shape[0]
        if n_labels != heights[name]:
            whose = f"view {name!r} has" if name else "the views have"
            raise CommandError(
                f"{file}: it holds labels of {n_labels} objects, but {whose} {heights[name]} rows"
            )
    try:
        return Labels.of(*parts.values())
    except ValueError as error:
        raise CommandError(f"{', '.join(files.values())}: {error}") from error
