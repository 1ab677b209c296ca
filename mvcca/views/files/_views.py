"""Views in files, with the labels of their objects, checked to belong together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import Block, SourceError, as_block, read_texts
from mvcca.blocks.checks import FILL_IN, column_labels
from mvcca.blocks.sources import MISSING, open_or_read, path_and_key
from mvcca.machine.warnings import warn
from mvcca.views import Labels, Views
from mvcca.views.files._checks import check_block, check_numbers
from mvcca.views.files._identified import common_rows, open_all
from mvcca.views.files._labels import read_labels
from mvcca.views.files._tables import read_table

_FEW_ROWS = 1000  # which tell whether a column holds ids


def read_views(
    files: Mapping[str, str],
    labels: str | Mapping[str, str] | None = None,
    *,
    header: bool | None = None,
    check_finite: bool = False,
    holes: bool = False,
) -> tuple[Views, Any]:
    """Open the matrices of views, and read the labels of their objects.

    Parameters
    ----------
    files : mapping of str to str
        The file of each view, as for `mvcca.blocks.open_or_read`. Matrices that can be read in
        blocks are not read yet. A ``.txt`` file has one text per line, in UTF-8; in a folder of
        them each file is one text.
    labels : str or mapping of str to str, optional
        The file of the labels, see `read_labels`; or one for each view, which are then unpaired.
    header : bool, optional
        Whether the first line of .csv and .tsv files is a header; see `mvcca.blocks.read_array`.
    check_finite : bool, default=False
        Read all matrices once to check their numbers now.
    holes : bool, default=False
        Whether NaN, and missing cells of ``.csv`` and ``.tsv`` files, are allowed.

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
    matrices = {name: open_view(name, file, header, holes=holes) for name, file in files.items()}
    heights = {name: matrix.shape[0] for name, matrix in matrices.items()}
    if check_finite:
        for name, matrix in matrices.items():
            check_numbers(name, files[name], as_block(matrix))
    if isinstance(labels, Mapping):
        y = {
            name: _labels_of(labels[name], heights[name], f"view {name!r} has", header)
            for name in files
        }
        return Views.unpaired(matrices), y
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {heights[name]} ({file})" for name, file in files.items())
        raise SourceError(
            f"paired views must have the same number of rows, got {found}. If a column names the "
            "rows, give it by --id COLUMN; for unpaired views, give one file of labels for each"
        )
    views = Views(matrices)
    if labels is None:
        return views, None
    return views, _labels_of(labels, len(views), "the views have", header)


def open_view(name: str, file: str, header: bool | None = None, *, holes: bool = False) -> Any:
    """Open the matrix of a view to be read in blocks if possible, else read and check it.

    Parameters
    ----------
    name : str
        The view, for error messages.
    file : str
        As for `mvcca.blocks.open_or_read`. Texts in a ``.txt`` file, or in the files of a folder,
        become a column of strings.
    header : bool, optional
        Whether the first line of a ``.csv`` or ``.tsv`` file is one; see
        `mvcca.blocks.read_array`.
    holes : bool, default=False
        Whether NaN, and missing cells of a ``.csv`` or ``.tsv`` file, are allowed.
    """
    if file.lower().endswith(".txt") or is_folder_of_texts(file):
        return read_texts(file)
    try:
        matrix = open_or_read(file, header)
    except SourceError as error:
        if not str(error).endswith(MISSING):
            raise
        if not holes:
            raise SourceError(f"{error}. {FILL_IN}") from error
        matrix = read_table(file).numbers(holes=True)
    block = as_block(matrix)
    check_block(name, file, block, holes=holes)
    _warn_of_ids(file, block)
    return matrix


def open_rows(
    files: Mapping[str, str],
    ids: str | None = None,
    header: bool | None = None,
    *,
    joint: bool = False,
) -> tuple[dict[str, Any], dict[str, np.ndarray] | None]:
    """Open the matrices of views, and with `ids`, a column or array of their files, their ids.

    Without ids, rows are as in the files; with `joint`, only objects that are in all files.
    """
    if ids is None:
        return {name: open_view(name, file, header) for name, file in files.items()}, None
    opened = open_all(files, ids)
    if joint and opened:
        matrices, common = common_rows(opened, ids)
        return matrices, dict.fromkeys(matrices, common)
    return (
        {name: rows.matrix for name, rows in opened.items()},
        {name: rows.ids for name, rows in opened.items()},
    )


def is_folder_of_texts(file: str) -> bool:
    """Whether a view is in a folder of ``.txt`` files, each of which is one text."""
    return Path(file).is_dir() and not file.rstrip("/\\").lower().endswith(".zarr")


def _warn_of_ids(file: str, block: Block) -> None:
    """Warn of a column that looks like ids and would be learned from."""
    names = column_labels(block.matrix) or ()
    for number, name in enumerate(names):
        if not re.search(r"(^|[_ .-])(id|ids|index|key)$|[a-z]I[dD]$", str(name), re.IGNORECASE):
            continue
        cells = block.take(slice(0, _FEW_ROWS)).in_memory().matrix[:, number]
        if (cells == np.floor(cells)).all() and len(np.unique(cells)) == len(cells):
            warn(
                f"{file}: column {name!r} is used as a feature. If it names the rows, give it by "
                f"--id {name}."
            )


def file_stamp(file: str, block: Any = None) -> Any:
    """Identify a file as it is now, or by the fingerprint of its opened matrix."""
    if block is not None and as_block(block).is_lazy:
        return as_block(block).digest().decode()
    path = path_and_key(file)[0]
    if path.is_dir():
        parts = [[one.name, one.stat().st_size, one.stat().st_mtime_ns] for one in path.iterdir()]
        return [path.name, str(path.resolve()), sha256(repr(sorted(parts)).encode()).hexdigest()]
    status = path.stat()
    return [Path(file).name, str(path.resolve()), status.st_size, status.st_mtime_ns]  # with key


def _labels_of(file: str, height: int, whose: str, header: bool | None) -> Labels:
    y = read_labels(file, height, header)
    if len(y) != height:
        raise SourceError(
            f"{file}: it contains labels of {len(y)} objects, but {whose} {height} rows"
        )
    return y
