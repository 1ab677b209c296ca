"""Table of an evaluation: one row per direction, printed with the meaning of each measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Direction:
    """Measures of one query view (or several, joined) against one target view.

    Attributes
    ----------
    query : str
        The query view; names joined by "+" if there are several.
    target : str
        The view whose rows are ranked.
    n_queries : int
        Rows of the query view.
    n_paired : int
        Rows whose object is seen in the target view, too. With relevance by pairs only these are
        queries.
    n_gallery : int
        Rows of the target view.
    values : dict of str to float
        Values by the names of the measures.
    """

    query: str
    target: str
    n_queries: int
    n_paired: int
    n_gallery: int
    values: dict[str, float]


@dataclass(frozen=True)
class RetrievalTable:
    """Retrieval measures in several directions.

    Attributes
    ----------
    rows : tuple of Direction
        One per direction, in the order they were evaluated.
    notes : tuple of str
        Meaning of the measures: divisor, ties and relevance.
    """

    rows: tuple[Direction, ...]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Direction]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, direction: tuple[str, str]) -> dict[str, float]:
        """Measures of a direction, ``table["image", "text"]``."""
        for row in self.rows:
            if (row.query, row.target) == direction:
                return row.values
        known = [(row.query, row.target) for row in self.rows]
        raise KeyError(f"no direction {direction!r}; the directions are {known}")

    def mean(self) -> dict[str, float]:
        """Each measure averaged over the directions."""
        names = self.rows[0].values
        return {name: float(np.mean([row.values[name] for row in self.rows])) for name in names}

    def to_frame(self) -> Any:
        """Table as a pandas DataFrame, indexed by query and target.

        Returns
        -------
        pandas.DataFrame
            One column per measure.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        index = [(row.query, row.target) for row in self.rows]
        return pd.DataFrame(
            [row.values for row in self.rows],
            index=pd.MultiIndex.from_tuples(index, names=["query", "target"]),
        )

    def __str__(self) -> str:
        header, *body = self._cells()
        widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if number < 2 else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in (header, *body)
        ]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        header, *body = self._cells()
        lines = [_html_line("th", header), *(_html_line("td", line) for line in body)]
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<table>{''.join(lines)}</table>{notes}"

    def _cells(self) -> list[list[str]]:
        """Header, directions and, if there are several, their mean."""
        names = list(self.rows[0].values)
        lines = [["query", "target", "queries", "gallery", *names]]
        for row in self.rows:
            counts = [str(row.n_queries), str(row.n_gallery)]
            lines.append([row.query, row.target, *counts, *_formatted(row.values)])
        if len(self.rows) > 1:
            lines.append(["mean", "", "", "", *_formatted(self.mean())])
        return lines


def _formatted(values: dict[str, float]) -> list[str]:
    """Ranks with one decimal, shares with four."""
    return [
        f"{value:.1f}" if name.split(":")[0] in ("mr", "mean_rank") else f"{value:.4f}"
        for name, value in values.items()
    ]


def _html_line(tag: str, cells: list[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
