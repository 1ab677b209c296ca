"""What the first records of a text hold: a table and its layout, or texts.

Records of a table have the same number of cells, most of which are numbers; sentences consist of
words, whatever separates these. A missing-value marker is a value, however it is spelled.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from mvcca.blocks.checks import few

MISSING = ("-", "--", ".", "?", "na", "n/a", "#na", "#n/a", "<na>", "null", "none", "nan")
_ALONE = "\x1f"  # the delimiter of a single column
BLANKS = " "  # the delimiter of cells between any number of spaces or tabs
_DELIMITERS = {"\t": "tab", ";": "semicolon", ",": "comma", BLANKS: "space", "|": "bar"}
_RECORDS = 60  # that tell
_LINES, _FEW, _CHARACTERS = 400, 4, 2**16  # that hold these records
_REGULAR = 0.8  # of them have the same number of cells in a table
_NUMBERS = 0.45  # of the words in a table are numbers or missing
_NUMBERS_IN_DOUBT = 0.6  # between spaces, which sentences have too, and in one line with commas
_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_ALL_NUMBERS = re.compile(rf"(?:{_NUMBER.pattern}\x1f)+", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*", re.ASCII)
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*", re.ASCII)
_LIST = re.compile(r"\s*\[[-+.eEnaif\s,]*\d[-+.eEnaif\s,\d]*\]\s*", re.ASCII)
_BRACKETS = re.compile(r"\s*(\[.*\]|\{.*\})\s*", re.DOTALL)
_SIGNS = {*"+-0123456789"}  # that begin an integer in any spelling


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table, where its file does not tell.

    Attributes
    ----------
    id : str, int or None
        Column of ids: its name, its number from 1, or "index" for a first column without a name;
        or the array of ids beside a matrix.
    columns : str, int or sequence of them
        The columns to read, by name or number from 1; by default all others.
    drop : str, int or sequence of them
        Columns to leave out.
    header : bool or None
        Whether the first line is a header.
    sheet : str or None
        Of a workbook.
    decimal, thousands : str or None
        What separates decimals, and groups of digits.
    skip_lines : int
        Lines above the table.
    encoding : str or None
        Of a text, such as "cp1252"; UTF-8 and UTF-16 are recognized.
    kind : {"table", "texts", "vectors"} or None
        What a text holds; vectors follow their word, which may hold spaces.
    n_rows : int or None
        Expected number of rows: a text with one more has a header.
    transpose : bool or None
        Whether columns are the objects; `mvcca.views.files` asks the ids of other files.
    match_ids : str
        What may differ between the ids of two files, as for `Views.aligned`.
    """

    id: str | None = None
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    header: bool | None = None
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    skip_lines: int = 0
    encoding: str | None = None
    kind: str | None = None
    n_rows: int | None = None
    transpose: bool | None = None
    match_ids: str = ""

    def __post_init__(self) -> None:
        given = vars(self)  # the class is frozen
        given["id"] = None if self.id is None else str(self.id)
        for several in ("columns", "drop"):
            own: Any = given[several]
            given[several] = tuple(map(str, [own] if isinstance(own, str | int) else own))

    @property
    def named(self) -> set[str]:
        """Columns that are named, and must be in a header."""
        given = [self.id, *self.columns, *self.drop]
        return {one for one in given if one is not None and not one.isdecimal()}


@dataclass(frozen=True)
class Dialect:
    """The layout of a table in text.

    Attributes
    ----------
    delimiter : str
        `BLANKS` is any number of spaces or tabs.
    width : int
        Cells of every record.
    begin : int
        Lines above the first row: those left out, comments and the header.
    names : tuple of str or None
        Of the columns, if there is a header; the first is "" if it has none.
    decimal, thousands : str
        What separates decimals, and groups of digits if anything does.
    textual : tuple of bool
        Whether the cells of each column are texts, in the first rows.
    lists : tuple of int
        Columns whose cells are lists of numbers, as in "[0.5, 1]".
    """

    delimiter: str
    width: int
    begin: int
    names: tuple[str, ...] | None
    decimal: str = "."
    thousands: str = ""
    textual: tuple[bool, ...] = ()
    lists: tuple[int, ...] = ()
    first_cells: tuple[str, ...] = ()  # of the first column, in the first rows

    @property
    def words(self) -> str:
        """The delimiter in words, as in "tab-separated"."""
        return "one column" if self.width == 1 else f"{_DELIMITERS[self.delimiter]}-separated"


def is_number(cell: str) -> bool:
    """Whether a cell is a finite number in digits, with a decimal point."""
    return _NUMBER.fullmatch(cell) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or marks a missing value."""
    cell = cell.strip().lower()
    return not cell or cell in MISSING


def holds_text(cell: str, mark: str = "") -> bool:
    """Whether a cell is neither a value nor a missing one.

    Between spaces, "-" and "." are signs of a sentence, and not missing values.
    """
    if not cell[:1].isalpha() and (is_number(cell) or _DECIMAL_COMMA.fullmatch(cell)):
        return False
    return not (cell in ("NA", "nan", "NaN") if mark == BLANKS else is_missing(cell))


def cells_of(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The records of lines; quoted cells may hold delimiters and ends of lines."""
    if delimiter == BLANKS:
        lines = [" ".join(line.split()) for line in lines]
    return csv.reader((f"{line}\n" for line in lines), delimiter=delimiter)


def dialect_of(lines: Sequence[str], suffix: str, reading: ReadOptions) -> Dialect | None:
    """The layout of a table by its first lines; None if these are texts.

    Files that end in .csv or .tsv are tables, those in .vec hold vectors.

    Raises
    ------
    ValueError
        If the layout is ambiguous.
    """
    header = reading.header
    begin = _begin_of(lines, reading.skip_lines)
    rest = _sample(lines[begin:])
    if not rest or reading.kind == "texts":
        return None
    if reading.kind == "vectors" or suffix == ".vec":
        return _vectors([line.split() for line in rest], begin)
    is_table = reading.kind == "table" or suffix in (".csv", ".tsv") or header is not None
    delimiter = _ALONE if _are_lists(rest) else _delimiter(rest, is_table)
    if delimiter is None:
        return None
    first, *below = rows = _records(rest, delimiter)
    width = Counter(map(len, below or rows)).most_common(1)[0][0]
    if below and len(first) == 2 < width and first == [first[0], str(width - 1)]:
        return _vectors([line.split() for line in rest], begin)
    if below and width == len(first) + 1 and len(first) > 1 and not below[0][-1]:
        width -= 1  # every row ends with a delimiter
    if width > 2 and not any(row[-1].strip() for row in rows if len(row) == width):
        width -= 1
    regular = [row[:width] for row in below if len(row) >= width]
    textual = _textual(regular, width)
    lists = tuple(
        j for j in range(width) if all(_is_list(row[j]) for row in regular or [first[:width]])
    )
    if header is None:
        header = _has_header(first, regular, textual, reading.named) or (
            width == len(first) and _has_names_over_lists(first, regular)
        )
    names = None
    if header:
        short = [""] * (width - len(first))
        names = tuple(name.strip() for name in [*short, *first][:width])
    else:
        regular = [first[:width], *regular]
        if len(first) >= width:
            textual = _textual(regular, width)
    marks = (reading.decimal, reading.thousands)
    if marks == (None, None):
        marks = _marks([cell for row in regular for cell in row])
    begin += 1 + "".join(first).count("\n") if header else 0
    column = tuple(row[0].strip() for row in regular)
    decimal, thousands = marks[0] or ".", marks[1] or ""
    return Dialect(delimiter, width, begin, names, decimal, thousands, textual, lists, column)


def _vectors(rows: list[list[str]], begin: int) -> Dialect:
    """The layout of word vectors, which may follow their number and that of their dimensions."""
    is_counted = len(rows) > 1 and len(rows[0]) == 2 and all(map(str.isdecimal, rows[0]))
    claimed = int(rows[0][1]) if is_counted else 0
    rows = rows[is_counted:]
    counts = Counter(sum(1 for _ in takewhile(is_number, row[:0:-1])) for row in rows)
    width = claimed or counts.most_common(1)[0][0]
    if not width or (claimed and max(counts) < claimed):
        what = f"and the {claimed} numbers that line 1 announces" if claimed else "and its numbers"
        raise ValueError(f"expected a label {what} on each line")
    words = tuple(" ".join(row[:-width]) for row in rows)
    textual = (True, *[False] * width)
    return Dialect(BLANKS, width + 1, begin + is_counted, None, textual=textual, first_cells=words)


def _records(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """The first records of lines, of which the last ones may lack the end of a quoted cell."""
    found = list(islice(cells_of(lines, delimiter), _RECORDS))
    is_cut = sum(line.count('"') for line in lines) % 2 == 1
    return found[:-1] if is_cut and len(found) > 2 else found


def _are_lists(lines: Sequence[str]) -> bool:
    """Whether lines are a column of lists of numbers, which may have a name."""
    if any("[" in line for line in lines[:2]):
        with suppress(csv.Error):  # of a cell that is too long
            first, *below = _records(lines, _ALONE)
            return all(len(row) == 1 and _is_list(row[0]) for row in below or [first])
    return False


def _is_list(cell: str) -> bool:
    """Whether a cell is a list of numbers, which NumPy may have cut off by dots."""
    return _LIST.fullmatch(cell) is not None


def column_place(name: str, names: Sequence[str] | None, width: int) -> int | None:
    """The place of a column by its name or number from 1; "index" is a first without name."""
    if names is not None and name in names:
        return list(names).index(name)
    if name == "index" and names is not None and names[0] == "":
        return 0
    return int(name) - 1 if name.isdecimal() and 0 < int(name) <= width else None


def table_in(lines: Sequence[str]) -> str | None:
    """What separates the cells of a table in lines of text; None if the lines are texts."""
    mark = _delimiter(_sample(lines[_begin_of(lines, 0) :]), False)
    return None if mark == _ALONE else mark


def _sample(lines: Sequence[str]) -> list[str]:
    """The first lines that are not blank, fewer of long ones."""
    found: list[str] = []
    size = 0
    for line in lines:
        if line.strip(" "):
            found.append(line)
            size += len(line)
        if len(found) > _LINES or (size > _CHARACTERS and len(found) > _FEW):
            break
    return found


def _begin_of(lines: Sequence[str], skip: int) -> int:
    """Number of lines above a table: those left out, blank ones, comments, and Excel's."""
    for number, line in enumerate(lines[skip:], start=skip):
        if line.strip() and not line.startswith("#") and not line.lower().startswith("sep="):
            return number
    return len(lines)


def _delimiter(lines: Sequence[str], is_table: bool) -> str | None:
    """The delimiter of a table, None if the lines are texts."""
    found = dict.fromkeys(_DELIMITERS, 0.0)
    for mark in found:
        if any(one in line for one in mark.replace(" ", " \t") for line in lines[:2]):
            with suppress(csv.Error):  # of a cell that is too long
                rows = list(islice(cells_of(lines, mark), _RECORDS))
                found[mark] = _score(rows, mark, is_table)
    mark = max(found, key=found.__getitem__)
    if found[mark] > 0:
        return mark
    if is_table:
        cut = {mark: sum(line.count(mark) for line in lines[:_RECORDS]) for mark in "\t;,"}
        mark = max(cut, key=cut.__getitem__)
        cells = [cell for line in lines[:_RECORDS] for cell in line.split(mark)]
        is_cut = sum(map(is_number, cells)) > _NUMBERS * len(cells) and cut[mark]
        return mark if is_cut else _ALONE
    are_numbers = lines and all(is_number(line) or is_missing(line) for line in lines)
    return _ALONE if are_numbers else None


def _score(rows: list[list[str]], mark: str, is_table: bool) -> float:
    """How many cells of a table are numbers, .5 more for texts; 0 if there is no table."""
    first, *rest = rows
    below = rest or rows
    (width, n_regular), *_ = Counter(map(len, below)).most_common(1)
    # In one column of a .csv file, names of two words are common.
    least = 3 if is_table and mark == BLANKS else 2
    if width < least or n_regular < _REGULAR * len(below):
        return 0
    n_cells = n_values = n_words = 0
    for row in (row for row in below if len(row) == width):
        words = [row[0], row[-1]] if _are_numbers(row[1:-1]) else row
        n_known, n_cells = len(row) - len(words), n_cells + len(row)
        lists = [len(cell.split()) for cell in words if _is_list(cell)]
        n_values += n_known + sum(lists) + sum(not holds_text(cell, mark) for cell in words)
        n_words += n_known + sum(max(1, len(cell.split())) for cell in words)
    is_by_r = len(first) == width - 1  # a header without a name for the names of rows
    in_doubt = (mark == BLANKS and not is_by_r) or (mark == "," and not rest)
    share = n_values / (n_cells if is_table else n_words)
    if share > (_NUMBERS_IN_DOUBT if in_doubt else _NUMBERS):
        return n_values
    lengths = {len(row) for row in (below if is_by_r else rows)}
    if len(lengths) > 1 or mark == BLANKS:
        return 0
    if is_table:
        return 0.5 + n_values
    ids = [row[0].strip() for row in rows]
    are_ids = len(set(ids)) == len(ids) and not any(re.search(r"\s", one) for one in ids)
    return 0.5 if mark == "\t" and width == 2 and are_ids else 0


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether all of some cells are numbers."""
    return _ALL_NUMBERS.fullmatch("\x1f".join([*cells, ""])) is not None


def _textual(rows: Sequence[Sequence[str]], width: int) -> tuple[bool, ...]:
    """Whether most cells of each column that are not missing are texts."""
    if width > 3 and all(_are_numbers(row[1:-1]) for row in rows):  # in most tables
        first, last = _textual([[row[0], row[-1]] for row in rows], 2)
        return (first, *[False] * (width - 2), last)
    excess = [sum(map(_excess, column)) for column in zip(*rows, strict=True)]  # of texts
    return tuple(n > 0 for n in excess or [0] * width)


def _excess(cell: str) -> int:
    """1 for a text, -1 for a number however it is written, and 0 for a missing value."""
    if holds_text(cell):
        return -1 if _THOUSANDS.fullmatch(cell) else 1
    return 0 if is_missing(cell) else -1


def _has_header(
    first: Sequence[str], rows: Sequence[Sequence[str]], textual: Sequence[bool], named: set[str]
) -> bool:
    """Whether the first line of a table is a header."""
    width = len(textual)
    if any(cell.strip() in named for cell in first):
        return True
    if not rows or len(first) not in (width - 1, width, width + 1):
        return False
    if len(first) == width - 1:
        return True
    rest = first[1:width]
    are_names = _are_numbered(rest) or not any(is_number(cell) or is_missing(cell) for cell in rest)
    if rest and not first[0].strip() and are_names:
        return True
    above = [first[j] for j in range(width) if not textual[j]]
    if not above or any(map(is_missing, above)):
        return False
    words = [holds_text(cell) and any(map(str.isalpha, cell)) and not _is_spelled(cell)
             for cell in above]  # fmt: skip
    if all(words):
        return True
    numbers = [cell for cell, word in zip(above, words, strict=True) if not word]
    if _are_numbered(numbers):
        below = [row[j] for row in rows for j in range(width) if not textual[j]]
        is_above_decimals = not any(map(_is_integer, below)) and len(first) > 2
        is_counted = numbers == [str(j) for j in range(width)] and width > 1
        if is_above_decimals or is_counted:
            return True
    if not any(words) or any(map(_is_spelled, above)):
        return False
    raise ValueError(
        f"line 1 ({few(first)}) may be a header or a row of numbers with a bad cell; choose "
        "header=True or header=False"
    )


def _has_names_over_lists(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column of cells in brackets begins with one that is not."""
    columns = zip(first, *rows, strict=True)
    return any(
        rows and not _BRACKETS.fullmatch(name) and all(map(_BRACKETS.fullmatch, cells))
        for name, *cells in columns
    )


def _is_spelled(cell: str) -> bool:
    """Whether a cell is a number in another spelling than decimal digits, such as 0x10."""
    if cell.strip()[:1] in _SIGNS and not is_number(cell):
        with suppress(ValueError):
            return int(cell, 0) is not None
    return False


def _are_numbered(names: Sequence[str]) -> bool:
    """Whether names are distinct integers."""
    return all(map(_is_integer, names)) and len(set(names)) == len(names)


def _is_integer(cell: str) -> bool:
    return cell.strip().removeprefix("-").isdecimal()


def _marks(cells: Sequence[str]) -> tuple[str, str]:
    """What separates decimals and thousands, as far as cells tell."""
    commas = [cell for cell in cells if "," in cell and not holds_text(cell.replace(",", ""))]
    grouped = [cell for cell in commas if _THOUSANDS.fullmatch(cell)]
    decimals = [cell for cell in commas if _DECIMAL_COMMA.fullmatch(cell) and cell not in grouped]
    if decimals:
        return ",", ""
    is_certain = any(cell.count(",") > 1 or "." in cell for cell in grouped)
    return ".", "," if is_certain else ""
