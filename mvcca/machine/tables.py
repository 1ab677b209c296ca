"""Tables of results as text, and as HTML for notebooks and pages. They need no pandas."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from textwrap import fill
from typing import Any

import numpy as np

from mvcca.machine.pages import template
from mvcca.machine.printable import in_one_line

TERMINAL_WIDTH = 80  # characters
PAGE_WIDTH = 72  # characters of the columns after the first that fit on a sheet of paper
_GAP = 2  # characters between columns
_HEADING = 12  # characters of a line of a long heading


@dataclass(frozen=True)
class Cell:
    """Text of a cell, and its mark: ``<`` for the best values."""

    text: str
    mark: str = ""

    @property
    def is_best(self) -> bool:
        """Whether it is shown in bold, which means nothing else."""
        return self.mark == "<"

    def __str__(self) -> str:
        return f"{self.text}{self.mark}"


@dataclass(frozen=True)
class Line:
    """One line of a table."""

    name: str
    cells: Sequence[Cell] = ()  # one per column after the first
    reason: str = ""  # why there are no cells
    kind: str = ""  # a class of the pages' style: "best", "direction" or "chance"


@dataclass(frozen=True)
class Table:
    """Lines of text cells.

    Attributes
    ----------
    caption : str
        What the table shows.
    columns : sequence of str
        The first is that of the names of the lines.
    lines : sequence of Line
    words : collection of str
        Columns of words, which are aligned to the left.
    notes : sequence of str
        Sentences below the table.
    names, values : sequence
        Columns and rows of the same table in data frames and JSON, where nothing is rounded.
    index : int
        Number of leading columns that are the index of data frames.
    shown : collection of {"text", "notebook", "page", "folded"}
        Where a result shows it, if anywhere; a page unfolds it on a click if it is "folded".
    has_title : bool
        Whether it has its caption in text, too.
    """

    caption: str
    columns: Sequence[str]
    lines: Sequence[Line]
    words: Collection[str] = ()
    notes: Sequence[str] = ()
    names: Sequence[str] = ()
    values: Sequence[Sequence[Any]] = ()
    index: int = 0
    shown: Collection[str] = ("text", "notebook", "page")
    has_title: bool = False

    @classmethod
    def of(
        cls,
        caption: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        notes: Sequence[str] = (),
        *,
        spec: str = ".4g",
        words: Collection[str] | None = None,
        **options: Any,
    ) -> Table:
        """A table of values; by default, columns that contain text are words.

        Floating-point numbers are formatted by `spec`. NaN and None are empty. Control characters
        of names are escaped, except in data frames. Options are `index`, `shown` and `has_title`.
        """
        names, columns = list(columns), list(map(in_one_line, columns))
        caption, notes = in_one_line(caption), list(map(in_one_line, notes))
        words = None if words is None else set(map(in_one_line, words))
        values = [list(row) for row in rows]
        if words is None:
            texts_in = [any(isinstance(row[j], str) for row in values) for j in range(len(columns))]
            words = [name for name, is_text in zip(columns, texts_in, strict=True) if is_text]
        texts = [[text_of(value, spec) for value in row] for row in values]
        lines = [Line(name, list(map(Cell, cells))) for name, *cells in texts]
        return cls(caption, columns, lines, words, notes, names, values, **options)

    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON-compatible mappings."""
        return [
            {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in zip(self.names, row, strict=True)
            }
            for row in self.values
        ]

    def parts(self, width: int = PAGE_WIDTH, breaks: bool = True) -> Iterator[Table]:
        """Tables whose columns after the first take at most `width` characters, or are alone.

        Headings of pages break into lines; with `breaks`, long ones count as shorter ones.
        """
        widths = self.widths(_HEADING if breaks else None)[1:]
        blocks: list[list[int]] = [[]]
        for j, own in enumerate(widths):
            if blocks[-1] and sum(_GAP + widths[i] for i in blocks[-1]) + _GAP + own > width:
                blocks.append([])
            blocks[-1].append(j)
        last = len(blocks) - 1
        for number, block in enumerate(blocks):
            part = self.select(block, with_reasons=number == 0)
            caption = f"{self.caption} (continued)" if number else self.caption
            yield replace(part, caption=caption, notes=self.notes if number == last else ())

    def select(self, columns: Sequence[int], with_reasons: bool = True) -> Table:
        """Some of the columns after the first, by number; lines without cells are left out."""
        lines = [
            replace(line, cells=[line.cells[j] for j in columns] if line.cells else ())
            for line in self.lines
            if with_reasons or not line.reason
        ]
        lines = [line for line in lines if line.reason or any(cell.text for cell in line.cells)]
        return replace(self, columns=[self.columns[0], *(self.columns[j + 1] for j in columns)],
                       lines=lines)  # fmt: skip

    def widths(self, heading: int | None = None) -> list[int]:
        """Characters of each column, with at most so many of its heading."""
        names = [len(line.name) for line in self.lines]
        cells = [[len(str(cell)) for cell in line.cells] for line in self.lines if line.cells]
        heads = [len(name[:heading]) for name in self.columns[1:]]
        columns = zip(heads, *cells, strict=True)
        return [max([len(self.columns[0]), *names]), *map(max, columns)]

    def as_text(
        self, width: int | None = None, *, first: int | None = None, bold: bool = False
    ) -> str:
        """Aligned lines of text, without the caption, and the notes.

        Columns that do not fit into `width` characters follow in further tables below, which repeat
        the names of the lines. The first column has `first` characters; by default, as many as its
        longest name. With `bold`, a terminal shows the best values in bold.
        """
        if width is None:
            return "\n".join([*self._text_lines(width, first, bold), *self.notes])
        parts = self.parts(width - (first or self.widths()[0]), breaks=False)
        return "\n\n".join(
            "\n".join([*part._text_lines(width, first, bold), *part.notes])
            for part in parts
            if part.lines
        )

    def _text_lines(self, width: int | None, first: int | None, bold: bool) -> Iterator[str]:
        """The heading and the lines; a mark stands beside its number."""
        own = self.widths()
        widths = [first or own[0], *own[1:]]
        heading = Line(self.columns[0], list(map(Cell, self.columns[1:])))
        for line in [heading, *self.lines]:
            cells = [Cell(line.name), *line.cells]
            if line.reason:
                text = f"{line.name:<{widths[0]}}  skipped: {line.reason}"
                indent = " " * (widths[0] + _GAP)
                yield fill(text, width, subsequent_indent=indent) if width else text
                continue
            texts = []
            for cell, of_column, name in zip(cells, widths, self.columns, strict=True):
                padding = " " * (of_column - len(str(cell)))
                shown = f"\x1b[1m{cell}\x1b[0m" if bold and cell.is_best else str(cell)
                texts.append(shown + padding if name in self.words else padding + shown)
            yield (" " * _GAP).join(texts).rstrip()


def in_notebook(tables: Iterable[Table], sentences: Iterable[str] = ()) -> str:
    """HTML of sentences and of tables with their notes, in the style of the notebook."""
    page = template("mvcca.machine", "notebook.html")
    return page.render(tables=list(tables), sentences=list(sentences))


def text_of(value: Any, spec: str) -> str:
    """Text of a cell in one line."""
    if isinstance(value, str):
        return in_one_line(value)
    if value is None or value != value:
        return ""
    return str(value) if isinstance(value, Integral) else format(value, spec)


class ShownAsTables:
    """What notebooks show as tables."""

    def tables(self) -> list[Table]:
        """Return the tables, with everything that is shown as a number in one of them."""
        raise NotImplementedError

    def _words(self) -> Sequence[str]:
        """Sentences above the tables."""
        return ()

    def _of_notebook(self) -> list[Table]:
        """The tables that a notebook shows."""
        return [table for table in self.tables() if "notebook" in table.shown]

    def _repr_html_(self) -> str:
        return in_notebook(self._of_notebook(), self._words())
