"""Read views and labels from the files named on the command line, and check that they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.arrays import open_array, path_of
from mvcca.cli.errors import CommandError, UsageError, in_one_line
from mvcca.cli.label_files import read_labels
from mvcca.comparison.labels import Labels
from mvcca.config import block_slices
from mvcca.sources import RowSource
from mvcca.views import Views


def read_inputs(
    views: list[tuple[str, str]], labels: list[str], read: Callable[[str, str], Any]
) -> tuple[Views, Labels | None]:
    """Read views and the labels of their objects.

    Parameters
    ----------
    views : list of (name, file)
        Values of ``--view``.
    labels : list of str
        Values of ``--labels``: one file, or NAME=FILE for every view, which are then unpaired.
    read : callable
        `checked_view` or `open_view`.
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
    """The values of an option by name, each name once."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} names {name!r} twice")
    return dict(pairs)


def files_of_labels(values: list[str], names: list[str]) -> list[Path]:
    """The files named by ``--labels``, for views with these names."""
    return [path_of(file) for file in _label_files(values, names).values()]


def files_of(pairs: Iterable[tuple[str, str]]) -> list[Path]:
    """The files named by NAME=FILE options."""
    return [path_of(file) for _, file in pairs]


def checked_view(name: str, file: str) -> Any:
    """Open a view as `open_view` and check that all its numbers are finite."""
    block = open_view(name, file)
    if isinstance(block, RowSource):
        with in_one_line():
            for rows in block_slices(len(block), block.row_bytes):
                _checked(name, file, block.read(rows.start, rows.stop), rows.start)
    return block


def open_view(name: str, file: str) -> Any:
    """Open a view for reading in blocks if its format allows, else read it into memory."""
    block = open_array(file)
    if not isinstance(block, RowSource):
        return _checked(name, file, block)
    _check_size(name, file, block)  # numbers are checked as blocks are read
    return block


def _checked(name: str, file: str, block: Any, start: int = 0) -> Any:
    if block.ndim != 2:
        raise CommandError(
            f"{file}: view {name!r} must be a matrix with one row per object, got an array of "
            f"shape {block.shape}"
        )
    values = block.data if issparse(block) else block
    if values.dtype.kind in "US":
        raise CommandError(f"{file}: view {name!r} must contain numbers, got text")
    _check_size(name, file, block)
    if not np.isfinite(values).all():
        where = ""
        if not issparse(block):
            row, column = np.argwhere(~np.isfinite(block))[0] + 1
            where = f", first in row {start + row}, column {column}"
        raise CommandError(f"{file}: view {name!r} contains NaN or infinity{where}")
    return block


def _check_size(name: str, file: str, block: Any) -> None:
    if not min(block.shape):
        raise CommandError(f"{file}: view {name!r} is empty: its shape is {block.shape}")


def _label_files(values: list[str], names: list[str]) -> dict[str, str]:
    """The label file of each view, or of all objects under the name ""."""
    pairs = []
    for text in values:
        name, separator, file = text.partition("=")
        pairs.append((name, file) if separator and name in names else ("", text))
    if len(pairs) == 1 and pairs[0][0] == "":
        return dict(pairs)
    if any(not name for name, _ in pairs):
        raise UsageError(
            f"--labels takes one FILE, or one NAME=FILE for each of the views {', '.join(names)}; "
            f"got {' '.join(values)}"
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
            f"paired views must have the same number of rows, got {found}. For unpaired views, "
            "give one --labels NAME=FILE for each"
        )
    return Views(blocks)


def _stacked(files: dict[str, str], heights: dict[str, int]) -> Labels | None:
    """Labels of all objects, from one file or from one file per view."""
    if not files:
        return None
    parts = {name: read_labels(file, heights[name]) for name, file in files.items()}
    for name, file in files.items():
        n_labels = len(parts[name]) if isinstance(parts[name], list) else parts[name].shape[0]
        if n_labels != heights[name]:
            whose = f"view {name!r} has" if name else "the views have"
            raise CommandError(
                f"{file}: it contains labels of {n_labels} objects, but {whose} {heights[name]} "
                "rows"
            )
    try:
        return Labels.of(*parts.values())
    except ValueError as error:
        raise CommandError(f"{', '.join(files.values())}: {error}") from error


def read_ids(name: str) -> np.ndarray:
    """Ids of rows: an array in a .npy file, or the lines of a text."""
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"{path}: no such file")
    with in_one_line(f"{path}: "):
        if path.suffix.lower() == ".npy":
            ids = np.load(path, allow_pickle=False)
        else:
            ids = np.array(path.read_text(encoding="utf-8").splitlines(), dtype=str)
    if ids.ndim != 1 or ids.dtype.kind not in "iuU":
        raise CommandError(
            f"{path}: expected integers or strings, one per row, got {ids.dtype} {ids.shape}"
        )
    return ids
