"""What lines of text hold: a table of numbers or texts, a header or a row.

Lines of a table have the same number of cells, most of which are numbers; sentences consist of
words, whatever separates these. A missing-value marker or a number is a value, however it is
spelled. Where the file does not tell whether its first line is a header, the number of rows decides
if it is known, else the caller must.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from mvcca.blocks.checks import few

__all__ = [
    "TAB",
    "begins_with_index",
    "holds_text",
    "is_header",
    "is_missing",
    "is_number",
    "reject_tables",
    "table_in",
]

_MISSING = {"", "-", "--", ".", "?", "na", "n/a", "#na", "#n/a", "<na>", "null", "none"}
_LINES = 200  # that tell, spread over a file
_REGULAR = 0.8  # of them have the same number of cells in a table
_NUMBERS = 0.45  # of the words in a table are numbers or missing
_NUMBERS_IN_DOUBT = 0.6  # between spaces, which sentences have too, and in one line with commas
TAB = "\t"
_MARKS = {TAB: "tabs", ";": "semicolons", ",": "commas", "|": "bars", " ": "spaces"}
_COMMENTS = ("#", "!")  # begin lines above a table


def is_header(
    line: Sequence[str],
    below: Sequence[str] | None,
    n_lines: Callable[[], int],
    n_rows: int | None,
) -> bool:
    """Whether the first line of a table, whose number of rows may be known, is a header."""
    if below is None:
        return False
    if begins_with_index(line):
        return True
    if any(is_missing(cell) or _is_spelled_number(cell) for cell in line):
        return False
    names = list(map(_is_name, line))
    if not any(names):
        return all(map(is_number, line)) and _are_names_by_pandas(line, below, n_lines, n_rows)
    is_above_number = any(name and is_number(cell) for name, cell in zip(names, below, strict=True))
    if all(names) and is_above_number:
        return True
    if n_rows is not None and (all(names) or is_above_number):
        return n_lines() == n_rows + 1
    if is_above_number:
        raise ValueError(
            f"line 1 ({few(line)}) may be a header or a row of numbers with a bad cell; choose "
            "header=True or False (--header yes or no)"
        )
    return False


def is_number(cell: str) -> bool:
    """Whether Python reads a cell as a number; NaN and infinity are numbers."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or marks a missing value."""
    return cell.strip().lower() in _MISSING


def holds_text(cell: str) -> bool:
    """Whether a cell is neither a value nor a missing one."""
    return not (is_number(cell) or is_missing(cell) or _is_spelled_number(cell))


def _is_name(cell: str) -> bool:
    """Whether a cell can be a column name."""
    return holds_text(cell) and any(map(str.isalpha, cell))


def _is_spelled_number(cell: str) -> bool:
    """Whether a cell is a number in another spelling than `float` takes, such as 0x10."""
    if is_number(cell):
        return False
    try:
        int(cell, 0)
    except ValueError:
        return False
    return True


def begins_with_index(line: Sequence[str]) -> bool:
    """Whether a line is a header that `DataFrame.to_csv` writes with the index."""
    names = line[1:]
    return not line[0] and bool(names) and (all(map(_is_name, names)) or _is_counted(names))


def _is_counted(line: Sequence[str]) -> bool:
    return list(line) == [str(number) for number in range(len(line))]


def _are_names_by_pandas(
    line: Sequence[str], below: Sequence[str], n_lines: Callable[[], int], n_rows: int | None
) -> bool:
    """Whether numbers are names that `DataFrame.to_csv` writes for unnamed columns.

    These are 0, 1, 2, ..., or other distinct integers above three or more decimals.
    """
    is_above_decimals = (
        len(set(line)) == len(line) > 2
        and all(map(_is_integer, line))
        and not any(map(_is_integer, below))
    )
    if not (_is_counted(line) or is_above_decimals):
        return False
    return n_rows is None or n_lines() == n_rows + 1


def _is_integer(cell: str) -> bool:
    return cell.removeprefix("-").isdecimal()


# ---- tables among texts --------------------------------------------------------------------------


def table_in(lines: Sequence[str], besides: str = "") -> str | None:
    """What separates the cells of a table in lines of text; None if the lines are texts.

    A mark in `besides` separates nothing.
    """
    chosen = np.unique(np.linspace(0, len(lines) - 1, min(len(lines), _LINES)).astype(int))
    chosen_lines = (lines[number] for number in chosen)
    sample = [line for line in chosen_lines if line.strip() and not line.startswith(_COMMENTS)]
    marks = [mark for mark in _MARKS if mark not in besides]
    shares = {mark: _share_of_numbers(sample, mark) for mark in marks} if sample else {}
    mark = max(shares, key=shares.__getitem__, default=None)
    return mark if mark is not None and shares[mark] else None


def reject_tables(
    lines: Sequence[str], expected: str, remedy: str = "", *, besides: str = ""
) -> None:
    """Raise for a table of numbers where something else is expected, such as texts.

    `besides` is that of `table_in`; `remedy` says what to do about what is no table.
    """
    if (mark := table_in(lines, besides)) is None:
        return
    number, n_cells = next(
        (number, len(cells))
        for number, line in enumerate(lines, start=1)
        if not line.startswith(_COMMENTS) and len(cells := _cells(line, mark)) > 1
    )
    convert = f"give it a name that ends in {'.tsv' if mark == TAB else '.csv'}"
    if mark in " |":
        separator = r"\s+" if mark == " " else r"\|"
        convert = f"convert it: pandas.read_csv(FILE, sep=r'{separator}').to_csv(NEW, index=False)"
    raise ValueError(
        f"expected {expected}, found a table: line {number} has {n_cells} cells separated by "
        f"{_MARKS[mark]}, and most cells are numbers; to read it as a table, {convert}{remedy}"
    )


def _share_of_numbers(lines: Sequence[str], mark: str) -> float:
    """Share of numbers among the words of a table; 0 if lines with this mark are no table."""
    if sum(mark in line for line in lines) < _REGULAR * len(lines):
        return 0.0
    first, *rest = (_cells(line, mark) for line in lines)
    rows = rest or [first]  # the first may be a header
    (width, n_regular), *_ = Counter(map(len, rows)).most_common(1)
    if width < 2 or n_regular < _REGULAR * len(rows):
        return 0.0
    cells = [cell for row in rows if len(row) == width for cell in row]
    n_words = sum(max(1, len(cell.split())) for cell in cells)
    share = sum(_is_value(cell, mark) for cell in cells) / n_words
    is_by_r = len(first) == width - 1  # a header without a name for the names of rows
    is_in_doubt = (mark == " " and not is_by_r) or (mark == "," and not rest)
    least = _NUMBERS_IN_DOUBT if is_in_doubt else _NUMBERS
    return share if share > least else 0.0


def _is_value(cell: str, mark: str) -> bool:
    """Whether a cell is a number or a missing one; between spaces, "-" and "." are signs."""
    if is_number(cell) or (cell == "NA" if mark == " " else is_missing(cell)):
        return True
    decimals = cell.rpartition(",")[2]  # "95, " ends a part of a sentence
    return decimals.isdecimal() and is_number(cell.replace(",", ".", 1))


def _cells(line: str, mark: str) -> list[str]:
    if mark == " ":
        line = " ".join(line.split())
    if '"' not in line:
        return line.split(mark)
    with suppress(csv.Error):  # of a cell that is too long
        return next(csv.reader([line], delimiter=mark), [])
    return [line]
