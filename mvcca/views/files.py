"""Views in files, paired by ids or by the order of rows, and labels, ids and word vectors."""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.blocks import Block, SourceError, as_block, kind_of, sources
from mvcca.blocks.checks import FILL_IN, are_positions, column_labels, few, not_finite
from mvcca.blocks.sources import FileRows, ReadOptions, is_missing, is_number, path_and_key
from mvcca.machine.on_access import on_access
from mvcca.machine.warnings import warn
from mvcca.views import Labels, Views
from mvcca.views.shared_ids import agreeing, unmatched, why_unmatched

__all__ = [
    "check_same_order",
    "common_rows",
    "file_stamp",
    "in_order",
    "open_tables",
    "paired",
    "places_of",
    "read_ids",
    "read_label_vectors",
    "read_labels",
    "read_row_numbers",
    "read_views",
    "rows_of_ids",
    "values_of_ids",
]

_FEW_ROWS = 1000  # which tell whether a column holds ids

Say = Callable[[str], None]  # takes what a file was read as


def silent(_: str) -> None:
    """Say nothing."""


def open_tables(
    files: Mapping[str, str],
    reading: Mapping[str, ReadOptions] | ReadOptions | None = None,
    *,
    holes: bool = False,
    say: Say = silent,
    confounds: Collection[str] = (),
) -> dict[str, FileRows]:
    """Open the rows of views, with their ids if their files have some.

    A table whose columns are named by the ids of another file is turned.

    Parameters
    ----------
    files : mapping of str to str
        The file of each view, as for `mvcca.blocks.read_table`.
    reading : ReadOptions or mapping of str to ReadOptions, optional
        How to read all files, or that of each view.
    holes : bool, default=False
        Whether values may be missing; else they are refused.
    say : callable, optional
        Takes what each file was read as.
    confounds : collection of str, optional
        Views that may have columns of text: their matrices then hold the cells as they are written.

    Returns
    -------
    dict of str to FileRows

    Raises
    ------
    SourceError
        If a file cannot be read, or holds what is neither numbers nor texts.
    """
    known = {name: _reading_of(reading, name) for name in files}
    tables = {
        name: sources.read_table(files[name], known[name])
        for name in files
        if name not in confounds
    }
    n_rows = next((len(table) for table in tables.values()), None)
    for name in tables.keys() ^ files.keys():
        tables[name] = _confounds(files[name], replace(known[name], n_rows=n_rows))
    tables = {name: tables[name] for name in files}
    for name, table in tables.items():
        others = [tables[other] for other in tables if other != name]
        wish = known[name].transpose
        why = next((found for other in others if (found := _why_turned(table, other))), "")
        if wish or (wish is None and why):
            tables[name] = table.turned()
        say(table.took)
        if wish is None and why:
            say(f"{why} (transpose=False: keep it)")
    for name, table in tables.items():
        table.check_ids()
        block = as_block(table.matrix)
        if table.missing is not None and not holes:
            raise SourceError(f"{table.file}: {table.missing}. {FILL_IN}")
        if block.holds_texts() and name not in confounds:
            table.check_texts()
        elif block.holds_numbers():
            if table.source is not None:
                _warn_of_ids(table)
            _check_block(name, table, block, holes=holes)
    how = next((one.match_ids for one in known.values() if one.match_ids), "")
    return with_agreeing_ids(tables, how) if how else tables


def _check_block(
    name: str, table: FileRows, block: Block, start: int = 0, *, holes: bool = False
) -> None:
    """Raise SourceError unless a block is a matrix, and if it is in memory, of finite numbers.

    It holds the rows of the table from `start` on. NaN is allowed with `holes`. Numbers that are
    not in memory are checked as they are read.
    """
    view = f"{table.file}: view {name!r}"
    if len(block.shape) != 2:
        raise SourceError(
            f"{view} must be a matrix with one row per object, got an array of shape {block.shape}"
        )
    if block.dtype.kind in "US":
        raise SourceError(
            f"{view} must contain numbers, got text; if a column names the rows, give id='COLUMN'; "
            "save texts in a .txt file, one per line"
        )
    if not min(block.shape):
        raise SourceError(f"{view} is empty: its shape is {block.shape}")
    if block.is_lazy or block.is_finite():
        return
    matrix = block.matrix
    if not block.is_sparse and not (np.isinf(matrix) if holes else ~np.isfinite(matrix)).any():
        return  # only their sum is infinite, or there are holes
    rows = slice(start, start + block.shape[0])
    found = not_finite(
        matrix,
        numbers=range(rows.start, rows.stop),
        ids=None if table.ids is None else table.ids[rows],
        columns=column_labels(matrix),
        allows_nan=holes,
    )
    raise SourceError(f"{view} {found}")


def _confounds(file: str, reading: ReadOptions) -> FileRows:
    """A table of numbers, else its cells as they are written."""
    cells = sources.read_cells(file, reading)
    first, *others = cells.columns or ()
    ids = np.asarray(cells.matrix[:, 0])
    name_rows = others and len(np.unique(ids)) == len(ids) and not all(map(is_number, ids))
    if reading.id is None and (name_rows or (others and first == "")):
        return _confounds(file, replace(reading, id=first or "index"))
    if all(is_number(one) or is_missing(one) for own in np.asarray(cells.matrix) for one in own):
        return sources.read_table(file, reading)
    return cells


def with_agreeing_ids(tables: Mapping[str, FileRows], match_ids: str) -> dict[str, FileRows]:
    """Tables whose ids are spelled as in the first one; see `Views.aligned` for `match_ids`."""
    ids = {name: table.ids.tolist() for name, table in tables.items() if table.ids is not None}
    agreed = agreeing(ids, match_ids.split(","))
    return {
        name: replace(table, ids=np.array(agreed[name])) if name in agreed else table
        for name, table in tables.items()
    }


def _warn_of_ids(table: FileRows) -> None:
    """Warn of a column that looks like ids and would be learned from."""
    for number, name in enumerate(table.columns or ()):
        if not re.search(r"(^|[_ .-])(id|ids|index|key)$|[a-z]I[dD]$", str(name), re.IGNORECASE):
            continue
        cells = np.asarray(table.matrix[:_FEW_ROWS])[:, number]
        if (cells == np.floor(cells)).all() and len(np.unique(cells)) == len(cells):
            warn(
                f"{table.file}: column {name!r} is used as a feature. If it names the rows, give "
                f"id={name!r}."
            )


def _reading_of(reading: Mapping[str, ReadOptions] | ReadOptions | None, name: str) -> ReadOptions:
    found = reading.get(name) if isinstance(reading, Mapping) else reading
    return found or ReadOptions()


def _why_turned(table: FileRows, other: FileRows) -> str:
    """What tells that the columns of a table are the objects of another file; else ""."""
    if table.columns is None or other.ids is None or are_positions(list(table.columns)):
        return ""
    ids = set(other.ids.tolist())
    n_named = len(ids.intersection(map(str.strip, map(str, table.columns))))
    n_rows = 0 if table.ids is None else len(ids.intersection(table.ids.tolist()))
    if n_named <= n_rows or n_named < max(2, len(ids) / 2):
        return ""
    return (
        f"{table.file}: {n_named:,} of its {len(table.columns):,} column names are ids of "
        f"{other.file}: it is turned, columns are the objects"
    )


def read_views(
    files: Mapping[str, str],
    labels: str | Mapping[str, str] | None = None,
    *,
    reading: Mapping[str, ReadOptions] | ReadOptions | None = None,
    check_finite: bool = False,
    holes: bool = False,
    say: Say = silent,
    confounds: Collection[str] = (),
) -> tuple[Views, Any]:
    """Open the views in files, and read the labels of their objects.

    Rows are matched by ids if `reading` names the column of ids. Otherwise rows with equal numbers
    are the same object, and ids that the files have must agree.

    Parameters
    ----------
    files : mapping of str to str
        The file of each view, as for `mvcca.blocks.read_table`. Matrices that can be read in
        blocks are not read yet.
    labels : str or mapping of str to str, optional
        The file of the labels, see `read_labels`, or with ids a table of ids and classes or
        numbers; or one for each view, which are then unpaired.
    reading : ReadOptions or mapping of str to ReadOptions, optional
        How to read all files, or that of each view, and of "labels".
    check_finite : bool, default=False
        Read all matrices once to check their numbers now.
    holes : bool, default=False
        Whether values may be missing.
    say : callable, optional
        Takes what each file was read as.
    confounds : collection of str, optional
        Views that may have columns of text, as for `open_tables`.

    Returns
    -------
    views : Views
        ``views.ids`` are the ids of the objects. An object that is missing from a file is not seen
        in that view.
    y : Labels, dict of Labels by view, or None

    Raises
    ------
    SourceError
        If a file cannot be read, holds NaN, infinity or text in place of numbers, or if rows do
        not belong together: another number of rows, other ids, or no id in two files.

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
    tables = open_tables(files, reading, holes=holes, say=say, confounds=confounds)
    if check_finite:
        for name, table in tables.items():
            start, block = 0, as_block(table.matrix)
            for part in block.row_blocks() if block.is_lazy else ():
                _check_block(name, table, part, start)
                start += part.shape[0]
    own = _reading_of(reading, "labels")
    if isinstance(labels, Mapping):
        y = {
            name: _labels_and_ids(labels[name], own, table.matrix.shape[0], say)[0]
            for name, table in tables.items()
        }
        return Views.unpaired({name: table.matrix for name, table in tables.items()}), y
    ids = next((one.id for name in files if (one := _reading_of(reading, name)).id), None)
    if ids is None:
        views = in_order(tables)
        if labels is None:
            return views, None
        found, rows = _labels_and_ids(labels, own, len(views), say)
        check_same_order([*tables.values(), rows])
        return views, found
    views = paired(tables)
    _check_shared(tables, int((views.seen.sum(axis=1) > 1).sum()))
    if labels is None:
        return views, None
    assert views.ids is not None
    return views, _labels_of_ids(labels, replace(own, id=own.id or ids), views.ids, say)


def in_order(tables: Mapping[str, FileRows]) -> Views:
    """Views whose rows with equal numbers are one object.

    Raises
    ------
    SourceError
        If the numbers of rows differ, or the ids of two files.
    """
    heights = {name: table.matrix.shape[0] for name, table in tables.items()}
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {heights[name]} ({one.file})" for name, one in tables.items())
        raise SourceError(
            f"paired views must have the same number of rows, got {found}. If a column names the "
            "rows, give id='COLUMN'; for unpaired views, give one file of labels for each"
        )
    named = [table for table in tables.values() if table.ids is not None]
    check_same_order(named)
    views = Views({name: table.matrix for name, table in tables.items()})
    return views.with_ids(named[0].ids) if named else views


def check_same_order(tables: Iterable[FileRows]) -> None:
    """Raise unless the ids of all tables that have some are the same, row by row."""
    named = [(table, table.ids) for table in tables if table.ids is not None]
    for other, theirs in named[1:]:
        first, ids = named[0]
        n_rows = min(len(ids), len(theirs))
        differ = ids[:n_rows] != theirs[:n_rows]
        if differ.any():
            row = int(differ.argmax())
            raise SourceError(
                f"row {row + 1} is {str(ids[row])!r} in {first.file}, and {str(theirs[row])!r} in "
                f"{other.file}: match rows by their ids, id={first.id_name!r}, or leave the ids "
                f"out, drop={first.id_name!r}"
            )


def paired(tables: Mapping[str, FileRows]) -> Views:
    """Views of the objects of all tables, in order of first occurrence, with their ids."""
    ids = list(_ids_of(tables).values())
    every = np.concatenate(ids)  # sorted in place of a dictionary, which is slower and larger
    _, first, codes = np.unique(every, return_index=True, return_inverse=True)
    objects = np.argsort(np.argsort(first))[codes]  # of the rows of all tables
    index = np.full((len(first), len(ids)), -1)
    for view, own in enumerate(np.split(objects, np.cumsum(list(map(len, ids)))[:-1])):
        index[own, view] = np.arange(len(own))
    views = Views({name: table.matrix for name, table in tables.items()}, index)
    return views.with_ids(every[np.sort(first)])


def common_rows(
    tables: Mapping[str, FileRows], counted: Collection[str] | None = None
) -> tuple[dict[str, Any], np.ndarray]:
    """Matrices of the objects that are in all files, in the order of the first; and their ids.

    It warns if more than a fifth of the rows of a view are left over: of any view, or of those
    `counted` if others are meant to hold more.

    Raises
    ------
    SourceError
        If no id is in all files.
    """
    views = paired(tables)
    views = views[views.seen.all(axis=1)]
    _check_shared(tables, len(views), counted or tuple(tables))
    assert views.ids is not None
    return dict(views.items()), views.ids


def places_of(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The row of each wanted id, which must be among the ids."""
    order = np.argsort(ids)
    return order[np.searchsorted(ids[order], wanted)]


def values_of_ids(file: str, reading: ReadOptions, wanted: Sequence[str], what: str) -> FileRows:
    """The other columns of a table, for some ids.

    Raises
    ------
    SourceError
        If one of them is not in the table; `what` says what it lacks.
    """
    cells = sources.read_cells(file, reading)
    if cells.ids is None:
        has = f"its columns are {few(cells.columns or ())}"
        raise SourceError(f"{file}: there is no column {reading.id!r}; {has}")
    cells.check_ids()
    if not cells.columns:
        raise SourceError(f"{file}: expected columns beside {reading.id!r}")
    asked, missing = np.asarray(wanted).astype(str), f"objects have no {what}"
    rows = rows_of_ids(cells, asked, "the views", missing, reading.match_ids)
    return replace(cells, matrix=cells.matrix[rows], ids=cells.ids[rows], source=None)


def rows_of_ids(
    table: FileRows, wanted: np.ndarray, of: str, missing: str, match_ids: str
) -> np.ndarray:
    """The row of each wanted id in a table, with ids spelled alike; the ids may repeat.

    Raises
    ------
    SourceError
        If one is not in the table: how many of the ids `of` a file or of the views are `missing`.
    """
    every, places = np.unique(wanted, return_inverse=True)
    if match_ids:
        table = with_agreeing_ids({of: FileRows(of, None, every), "": table}, match_ids)[""]
    ids: Any = table.ids
    lacks = ~np.isin(every, ids)
    if lacks.any():
        cause = why_unmatched({of: every.tolist(), table.file: ids.tolist()})
        raise SourceError(
            f"{table.file}: {lacks.sum():,} of {len(every):,} {missing}, such as "
            f"{str(every[lacks][0])!r}; {cause or f'add them, or leave out these rows of {of}'}"
        )
    return places_of(ids, every)[places]


def _labels_of_ids(file: str, reading: ReadOptions, wanted: np.ndarray, say: Say) -> Labels:
    """Labels of objects, from a table of ids and classes or numbers."""
    return _encoded(values_of_ids(file, reading, wanted.tolist(), "label"), say)


def _ids_of(tables: Mapping[str, FileRows]) -> dict[str, np.ndarray]:
    """The ids of all tables."""
    for name, table in tables.items():
        if table.ids is None:
            raise SourceError(
                f"{table.file}: it names no rows of view {name!r}: expected a table with a column "
                "of ids, a .npz file with ids beside rows, or a folder of .txt files"
            )
    return {name: table.ids for name, table in tables.items() if table.ids is not None}


def _check_shared(
    tables: Mapping[str, FileRows], found: int, counted: Collection[str] = ()
) -> None:
    """Raise if no shared object was found: why ids differ, or the first ones of each file.

    Warn if many rows are left over, or if ids would match more in another spelling. If views are
    `counted`, all files must share an object, else two of them.
    """
    files = Counter(table.file for table in tables.values())
    shown = {  # the file of a view, and the view if it shares its file
        name: f"{table.file} ({name})" if files[table.file] > 1 else table.file
        for name, table in tables.items()
    }
    ids = {shown[name]: own.tolist() for name, own in _ids_of(tables).items()}
    headers = {shown[name]: table.columns or () for name, table in tables.items()}
    if not found:
        firsts = ", ".join(f"{file} has {few(own[:2])}" for file, own in ids.items())
        of = f"{'all' if counted else 'two'} of the files"
        cause = why_unmatched(ids, headers)
        raise SourceError(cause or f"no id is in {of}: {firsts}; ids are compared as text")
    judged = [shown[name] for name in counted or tables]
    if message := unmatched(ids, headers, counted=judged, joint=bool(counted)):
        warn(message)


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


# ---- labels, word vectors, ids and numbers of rows -----------------------------------------------


def read_labels(
    file: str,
    reading: ReadOptions | None = None,
    *,
    n_rows: int | None = None,
    say: Say = silent,
) -> Labels:
    """Read labels of objects.

    Parameters
    ----------
    file : str
        As for `mvcca.blocks.read_table`: one class per row, an indicator matrix or real label
        vectors; or a text with one label set per line, separated by commas, where an empty line is
        an object without labels. Rows of integers in a .txt file are label sets too. In a column
        of a table, lists such as ``["cat", "dog"]`` are label sets, and so are names between
        ``|``, ``;`` or commas if there are fewer different names than different cells.
    reading : ReadOptions, optional
        How to read it.
    n_rows : int, optional
        Expected number of objects: a table with one row more has a header.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    Labels

    Raises
    ------
    SourceError
        If the file cannot be read, does not contain labels, or those of another number of objects.
    """
    return _labels_and_ids(file, reading, n_rows, say)[0]


def _labels_and_ids(
    file: str, reading: ReadOptions | None, n_rows: int | None, say: Say
) -> tuple[Labels, FileRows]:
    """Labels of objects, and the rows that hold them, with their ids if there are some."""
    table = sources.read_whole(file, replace(reading or ReadOptions(), n_rows=n_rows))
    matrix = table.matrix
    if not kind_of(matrix).is_sparse and (matrix.ndim not in (1, 2) or not len(matrix)):
        raise SourceError(
            f"{file}: expected a class per row or a matrix with one row per object, got an array "
            f"of shape {matrix.shape}"
        )
    if n_rows not in (None, len(table)):
        raise SourceError(f"{file}: expected {n_rows:,} rows, got {len(table):,}")
    return _encoded(table, say), table


def _encoded(table: FileRows, say: Say) -> Labels:
    try:
        labels = Labels.of(_labels_of(table))
    except ValueError as error:
        raise SourceError(f"{table.file}: {error}") from error
    say(f"{table.took}; {labels.describe('row')}")
    return labels


def _labels_of(table: FileRows) -> Any:
    """Labels in the rows of a table: sets, numbers or classes."""
    rows = table.matrix
    if kind_of(rows).is_sparse or rows.ndim != 2:
        return rows
    if rows.dtype.kind in "OU":
        if rows.shape[1] > 1:
            return rows.astype(float)
        return _labels_of_cells(rows[:, 0].tolist(), table.are_lines)
    is_text = table.columns is None and table.source is not None
    are_lines = is_text and table.file.lower().endswith(".txt")
    are_sets = table.are_lists or (are_lines and table.source.dialect.delimiter == ",")
    return _sets_of_integers(rows) if are_sets else rows


def _labels_of_cells(cells: list[str], are_lines: bool = False) -> Any:
    """Labels in cells: lists, or sets of names between separators; else each cell is a class.

    There are separators if there are fewer names between them than cells that differ, and commas
    in lines.
    """
    filled = [cell for cell in cells if cell.strip()]
    if filled and all(map(_LIST_OF_LABELS.fullmatch, filled)):
        lists = list(map(_list_in, cells))
        are_numbers = all(isinstance(one, int | float) for own in lists for one in own)
        if are_numbers and len({*map(len, lists)}) == 1:
            return _sets_of_integers(np.array(lists))
        return [frozenset(map(str, own)) for own in lists]
    if are_lines and not filled:
        raise ValueError("expected one label set per line, found no label")
    are_decimals = all(is_number(cell.replace(",", ".")) for cell in filled) and not are_lines
    for mark in "|;" if are_decimals else "|;,":
        if any(mark in cell for cell in filled):
            sets = _names_between(mark, cells)
            if len(frozenset().union(*sets)) < len({*sets} - {frozenset()}):
                return sets
    separated = sum(";" in line or "\t" in line for line in cells)
    if are_lines and separated > len(cells) / 2 and not any("," in line for line in cells):
        raise ValueError(
            f"expected one label set per line, separated by commas; {separated} of {len(cells)} "
            "lines have tabs or semicolons and none has commas"
        )
    return _names_between(",", cells) if are_lines else np.array(cells, dtype=object)


def _names_between(mark: str, cells: Sequence[str]) -> list[frozenset[str]]:
    return [frozenset(filter(None, map(str.strip, cell.split(mark)))) for cell in cells]


_LIST_OF_LABELS = re.compile(r"""\s*(\[.*\]|\{.*\}|\((\s*['"].*)?\)|set\(\))\s*""", re.DOTALL)


def _list_in(cell: str) -> list[Any]:
    """A list of labels as Python or JSON writes it."""
    found: Any = None
    if not re.search(r"""['"]\s+['"]""", cell):  # Python would join them to one
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            found = literal_eval(cell.strip() or "[]")
    if not isinstance(found, list | tuple | set):
        raise ValueError(f"expected a list of labels such as ['cat', 'dog'], got {cell[:40]!r}")
    return list(found)


def _sets_of_integers(rows: np.ndarray) -> Any:
    """Rows as label sets, if they hold integers, none of them twice, and are no indicators."""
    ordered = np.sort(rows, axis=1)
    is_set = (ordered[:, 1:] > ordered[:, :-1]).all() and (rows == np.floor(rows)).all()
    if not is_set or rows.shape[1] < 2 or np.isin(rows, (0, 1)).all():
        return rows
    return [frozenset(map(str, row)) for row in rows.astype(int).tolist()]


def read_label_vectors(file: str, reading: ReadOptions | None = None, *, say: Say = silent) -> Any:
    """Read word vectors of labels, as `mvcca.compare` takes them.

    Parameters
    ----------
    file : str
        A ``.txt`` or ``.vec`` file has a label and its numbers on each line, separated by spaces,
        as word2vec and GloVe write them; labels may contain spaces, and a first line of two
        integers is skipped. Other formats contain one row per label, with labels as ids, as in
        word2vec's binary format, or without.
    reading : ReadOptions, optional
        How to read it.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    dict of str to ndarray, or matrix
        By label if the file names them, else one row per label.

    Raises
    ------
    SourceError
        If the file cannot be read, or a line holds fewer numbers than most, or than the first line
        announces.
    """
    reading = reading or ReadOptions()
    if file.lower().endswith((".txt", ".vec")):
        reading = replace(reading, kind="vectors", id="1")
    table = sources.read_table(file, reading)
    if table.missing is not None:
        raise SourceError(f"{file}: {table.missing}")
    say(table.took)
    rows = np.asarray(table.matrix)
    return rows if table.ids is None else dict(zip(table.ids.tolist(), rows, strict=True))


def read_ids(
    file: str,
    reading: ReadOptions | None = None,
    *,
    n_rows: int | None = None,
    say: Say = silent,
) -> np.ndarray:
    """Read ids of rows: one column of a table, an array, or the lines of a text.

    Parameters
    ----------
    file : str
        As for `mvcca.blocks.read_table`.
    reading : ReadOptions, optional
        How to read it.
    n_rows : int, optional
        Expected number of ids. A table with one row more has a header.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    ndarray of str, shape (n_rows,)

    Raises
    ------
    SourceError
        If the file cannot be read, does not contain ids, such as a table of several columns, or
        those of another number of rows.
    """
    table = sources.read_cells(file, replace(reading or ReadOptions(), n_rows=n_rows))
    say(table.took)
    if (width := table.matrix.shape[1]) != 1:
        raise SourceError(f"{file}: expected one column, got {width}")
    if n_rows not in (None, len(table)):
        raise SourceError(f"{file}: expected {n_rows:,} rows, got {len(table):,}")
    return np.asarray(table.matrix)[:, 0]


def read_row_numbers(
    file: str,
    n_rows: int,
    reading: ReadOptions | None = None,
    *,
    n_numbers: int | None = None,
    say: Say = silent,
) -> np.ndarray:
    """Read distinct row numbers from 0, one per line; they select from `n_rows` rows.

    `n_numbers`, if known, tells whether there is a header.
    """
    table = sources.read_whole(file, replace(reading or ReadOptions(), n_rows=n_numbers))
    say(table.took)
    found = table.matrix
    if kind_of(found).is_sparse or found.dtype.kind not in "iuf" or found.size != max(found.shape):
        raise SourceError(f"{file}: expected one row number per line")
    numbers = np.asarray(found).ravel()
    if (numbers != np.floor(numbers)).any() or numbers.min() < 0 or numbers.max() >= n_rows:
        raise SourceError(f"{file}: expected row numbers from 0 to {n_rows - 1}")
    if len(np.unique(numbers)) < len(numbers):
        raise SourceError(f"{file}: a row number is there twice; name every row once")
    return numbers.astype(np.int64)


if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
