"""Decide whether the first line of a table holds column names.

A missing-value marker or a number is a value, however it is spelled. Where the file does not tell,
the number of rows decides if it is known, else the caller must.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mvcca.blocks.checks import few

__all__ = ["begins_with_index", "holds_text", "is_header", "is_missing", "is_number"]

_MISSING = {"", "-", "--", ".", "?", "na", "n/a", "#na", "#n/a", "<na>", "null", "none"}


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
