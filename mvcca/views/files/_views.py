"""Views in files, with the labels of their objects, checked to belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import (
    Block,
    SourceError,
    as_block,
    open_or_read,
    path_and_key,
    read_texts,
)
from mvcca.views import Labels, Views
from mvcca.views.files._labels import read_labels
from mvcca.views.files._tables import places_of, read_table


def read_views(
    files: Mapping[str, str],
    labels: str | Mapping[str, str] | None = None,
    *,
    header: bool | None = None,
    check_finite: bool = False,
) -> tuple[Views, Any]:
    """Open the matrices of views, and read the labels of their objects.

    Parameters
    ----------
    files : mapping of str to str
        The file of each view, as for `mvcca.blocks.open_or_read`. Matrices that can be read in
        blocks are not read yet. A ``.txt`` file has one text per line, in UTF-8.
    labels : str or mapping of str to str, optional
        The file of the labels, see `read_labels`; or one for each view, which are then unpaired.
    header : bool, optional
        Whether the first line of .csv and .tsv files is a header; see `mvcca.blocks.read_array`.
    check_finite : bool, default=False
        Read all matrices once to check their numbers now.

    Returns
    -------
    views : Views
    y : Labels, dict of Labels by view, or None

    Raises
    ------
    SourceError
        If a file cannot be read, holds NaN, infinity or text in place of numbers, or has another
        number of rows than the others.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from mvcca.views.files import read_views
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "image.npy", np.eye(4, 3))
    >>> _ = (folder / "text.csv").write_text("1,2\\n3,4\\n5,6\\n7,8\\n")
    >>> _ = (folder / "y.txt").write_text("cat\\ncat,dog\\n\\ndog\\n")
    >>> files = {"image": f"{folder}/image.npy", "text": f"{folder}/text.csv"}
    >>> views, y = read_views(files, f"{folder}/y.txt")
    >>> views, len(y)
    (Views(4 objects, image: 3, text: 2), 4)
    """
    matrices = {name: open_view(name, file, header) for name, file in files.items()}
    heights = {name: matrix.shape[0] for name, matrix in matrices.items()}
    if check_finite:
        for name, matrix in matrices.items():
            start, block = 0, as_block(matrix)
            for part in block.row_blocks() if block.is_lazy else ():
                _check(name, files[name], part, start)
                start += part.shape[0]
    if isinstance(labels, Mapping):
        y = {
            name: _labels_of(labels[name], heights[name], f"view {name!r} has", header)
            for name in files
        }
        return Views.unpaired(matrices), y
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {heights[name]} ({file})" for name, file in files.items())
        raise SourceError(
            f"paired views must have the same number of rows, got {found}. For unpaired views, "
            "give one file of labels for each"
        )
    views = Views(matrices)
    if labels is None:
        return views, None
    return views, _labels_of(labels, len(views), "the views have", header)


def read_matched_views(
    files: Mapping[str, str], ids: str, labels: str | None = None
) -> tuple[Views, Labels | None]:
    """Read views from tables with a column of ids, and match their rows.

    Parameters
    ----------
    files : mapping of str to str
        The table of each view, a ``.csv`` or ``.tsv`` file with a header.
    ids : str
        Name of the column of ids in all tables.
    labels : str, optional
        A table with the ids and a column of classes.

    Returns
    -------
    views : Views
        The objects of all tables, in order of first occurrence; an object that is missing from a
        table is not seen in that view. ``views.ids`` are their ids.
    y : Labels or None

    Raises
    ------
    SourceError
        If a file cannot be read, has no such column or an id twice, or if views share no id.
    """
    tables = {name: read_table(file) for name, file in files.items()}
    places = {name: places_of(table, ids) for name, table in tables.items()}
    every = list(dict.fromkeys(one for of_table in places.values() for one in of_table))
    index = np.array([[of_table.get(one, -1) for of_table in places.values()] for one in every])
    if not ((index >= 0).sum(axis=1) > 1).any():
        raise SourceError(f"no value of {ids!r} is in two of {', '.join(files.values())}")
    blocks = {name: table.without([ids]).numbers() for name, table in tables.items()}
    views = Views(blocks, index).with_ids(every)
    return views, None if labels is None else _labels_of_ids(labels, ids, every)


def _labels_of_ids(file: str, ids: str, wanted: Sequence[str]) -> Labels:
    """The class of each object, from a table of ids and classes."""
    table = read_table(file)
    places, rest = places_of(table, ids), table.without([ids])
    if len(rest.columns) > 1:
        raise SourceError(
            f"{file}: expected one column of classes beside {ids!r}, got {len(rest.columns)}"
        )
    if missing := [one for one in wanted if one not in places]:
        raise SourceError(
            f"{file}: {len(missing):,} of {len(wanted):,} objects have no label, such as "
            f"{missing[0]!r}; leave out these rows of the views, or label them"
        )
    (classes,) = rest.columns.values()
    return Labels.of(classes[[places[one] for one in wanted]])


def open_view(name: str, file: str, header: bool | None = None) -> Any:
    """Open the matrix of a view to be read in blocks if possible, else read and check it.

    Texts in a ``.txt`` file become a column of strings. `header` says whether the first line of a
    ``.csv`` or ``.tsv`` file is one; see `mvcca.blocks.read_array`.
    """
    if file.lower().endswith(".txt"):
        return read_texts(file)
    matrix = open_or_read(file, header)
    block = as_block(matrix)
    if block.is_lazy:
        _check_size(name, file, block)  # numbers are checked as blocks are read
    else:
        _check(name, file, block)
    return matrix


def open_rows(
    files: Mapping[str, str], ids: str | None = None, header: bool | None = None
) -> tuple[dict[str, Any], dict[str, np.ndarray] | None]:
    """Open the matrices of views, and the ids of their rows in the column `ids` of their tables."""
    if ids is None:
        return {name: open_view(name, file, header) for name, file in files.items()}, None
    tables = {name: read_table(file) for name, file in files.items()}
    names = {name: np.array(list(places_of(table, ids))) for name, table in tables.items()}
    return {name: table.without([ids]).numbers() for name, table in tables.items()}, names


def file_stamp(file: str, block: Any = None) -> Any:
    """Identify a file as it is now, or by the fingerprint of its opened matrix."""
    if block is not None and as_block(block).is_lazy:
        return as_block(block).digest().decode()
    path = path_and_key(file)[0]
    status = path.stat()
    return [Path(file).name, str(path.resolve()), status.st_size, status.st_mtime_ns]  # with key


def _check(name: str, file: str, block: Block, start: int = 0) -> None:
    if len(block.shape) != 2:
        raise SourceError(
            f"{file}: view {name!r} must be a matrix with one row per object, got an array of "
            f"shape {block.shape}"
        )
    if block.dtype.kind in "US":
        raise SourceError(
            f"{file}: view {name!r} must contain numbers, got text; if a column names the rows, "
            "give it by --id COLUMN; save texts in a .txt file, one per line"
        )
    _check_size(name, file, block)
    if not block.is_finite():
        where = ""
        if not block.is_sparse:
            bad = np.argwhere(~np.isfinite(block.matrix))
            if not len(bad):  # only their sum is infinite
                return
            row, column = bad[0] + 1
            where = f", first in row {start + row}, column {column}"
        raise SourceError(f"{file}: view {name!r} contains NaN or infinity{where}")


def _check_size(name: str, file: str, block: Block) -> None:
    if not min(block.shape):
        raise SourceError(f"{file}: view {name!r} is empty: its shape is {block.shape}")


def _labels_of(file: str, height: int, whose: str, header: bool | None) -> Labels:
    y = read_labels(file, height, header)
    if len(y) != height:
        raise SourceError(
            f"{file}: it contains labels of {len(y)} objects, but {whose} {height} rows"
        )
    return y
