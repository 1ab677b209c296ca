"""The result as a table of text cells, for terminals, notebooks, Markdown and the HTML report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from textwrap import fill
from typing import TYPE_CHECKING, Literal

import numpy as np

from mvcca.comparison.measurements import Measurements, mean_correlation
from mvcca.retrieval import Measure

if TYPE_CHECKING:
    from jinja2 import Template

_PRETTY = {"map": "mAP", "p": "P", "r": "R", "mrr": "MRR", "mr": "median rank"}
_MEGABYTE = 10**6
_WORDS = ("ranked by", "learns from", "notes")  # columns of text, aligned to the left
CAPTION = "Mean and standard error of each measure, and costs, by method"


@dataclass(frozen=True)
class Cell:
    """Text of a cell, and whether it is marked as best or not significantly worse."""

    text: str
    is_marked: bool = False

    def __str__(self) -> str:
        return f"{self.text}*" if self.is_marked else self.text


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes
    ----------
    name : str
        The method or the direction.
    cells : list of Cell
        One for each column after the first.
    reason : str
        Why a method has no values.
    kind : {"", "best", "direction", "chance"}
        The best method by the first measure, one direction of a method, or random scores.
    """

    name: str
    cells: list[Cell] = field(default_factory=list)
    reason: str = ""
    kind: Literal["", "best", "direction", "chance"] = ""


@dataclass(frozen=True)
class Summary:
    """The result as text.

    Attributes
    ----------
    title : str
    about : list of str
        Description of data and settings.
    columns : list of str
        Titles after "method": the measures first, then what else is known.
    n_measures : int
    lines : list of Line
    notes : list of str
        Meaning of marks and errors, and of the measures.
    warnings : list of str
        The last cell of a line refers to them by number, from 1.
    """

    title: str
    about: list[str]
    columns: list[str]
    n_measures: int
    lines: list[Line]
    notes: list[str]
    warnings: list[str]

    @classmethod
    def of(cls, result: Measurements, by_direction: bool = False) -> Summary:
        """Format a result, optionally with every direction of every method."""
        measures = result.measures
        marked = {m: result.not_worse(m) if result.successes else set() for m in measures}
        warnings = list(
            dict.fromkeys(
                text
                for name in result.successes
                for found in result.fits(name)
                for text in found.warnings
            )
        )
        chosen = list(result.settings.search)
        known = ["r train", "r held out", "fit s", "query s", "MB", "ranked by", "learns from"]
        columns = [*map(pretty, measures), *chosen, *known, *(["notes"] if warnings else [])]
        lines = []
        for candidate in result.candidates:
            name = candidate.name
            if name in result.failures:
                lines.append(Line(name, reason=result.failures[name]))
                continue
            cells = [
                Cell(
                    with_error(m, result.mean(name, m), result.standard_error(name, m)),
                    name in marked[m],
                )
                for m in measures
            ]
            details = [*_chosen(result, name), *_details(result, name), candidate.learns_from]
            if warnings:
                details.append(_numbers(result, name, warnings))
            kind: Literal["", "best"] = "best" if name == result.best else ""
            lines.append(Line(name, [*cells, *map(Cell, details)], kind=kind))
            lines += _directions(result, name, len(columns)) if by_direction else []
        chance = [Cell(written(m, result.chance_level(m))) for m in measures]
        blank = [Cell("")] * (len(columns) - len(chance))
        lines.append(Line("random scores", [*chance, *blank], kind="chance"))
        return cls(
            result.presentation.title or " and ".join(result.data.views.names),
            [*result.data.describe(), *_settings(result)],
            columns,
            len(measures),
            lines,
            [*_notes(result), *(_meaning(note) for note in result.chance[0].notes)],
            warnings,
        )

    def as_text(self, width: int | None = None) -> str:
        """Lines of text of limited width; columns that do not fit follow in further tables.

        Parameters
        ----------
        width : int, optional
            By default that of the environment variable COLUMNS or of the terminal.
        """
        width = max(40, width or shutil.get_terminal_size().columns)
        parts = [self.title, *(fill(text, width, subsequent_indent="  ") for text in self.about)]
        for table in self._tables(width):
            parts += ["", *table]
        parts += ["", *(fill(text, width, subsequent_indent="  ") for text in self.notes)]
        parts += [fill(text, width, subsequent_indent="    ") for text in self._numbered_warnings]
        return "\n".join(parts)

    def as_markdown(self) -> str:
        """A Markdown table with its title and notes."""
        rows = [["method", *self.columns], ["---"] * (1 + len(self.columns))]
        for line in self.lines:
            cells = [_marked(cell) for cell in line.cells]
            if line.reason:
                cells = [f"skipped: {line.reason}", *[""] * (len(self.columns) - 1)]
            rows.append([line.name, *cells])
        table = "\n".join(f"| {' | '.join(c.replace('|', '/') for c in row)} |" for row in rows)
        notes = [*self.about, *self.notes, *self._numbered_warnings]
        items = "\n".join(f"- {text}" for text in notes)
        return f"## {self.title}\n\n{table}\n\n{items}\n"

    def as_html(self) -> str:
        """An HTML table with its notes."""
        return template("notebook.html").render(summary=self, caption=CAPTION)

    @property
    def _numbered_warnings(self) -> list[str]:
        return [f"[{number}] {text}" for number, text in enumerate(self.warnings, start=1)]

    def _tables(self, width: int) -> Iterator[list[str]]:
        """Tables that are not wider than `width`: measures first, then what else is known."""
        first = max(len(name) for name in ["method", *(line.name for line in self.lines)])
        widths = [
            max(len(title), *(len(str(line.cells[j])) for line in self.lines if line.cells))
            for j, title in enumerate(self.columns)
        ]
        header = Line("method", [Cell(title) for title in self.columns])
        for block in self._blocks(width - first, widths):
            has_measures = block[0] < self.n_measures
            lines = []
            for line in [header, *self.lines]:
                if line.cells and (has_measures or line.kind not in ("direction", "chance")):
                    cells = self._joined(line, block, widths)
                    lines.append(f"{line.name.ljust(first)}{cells}".rstrip())
                elif line.reason and block[0] == 0:
                    text = f"{line.name.ljust(first)}  skipped: {line.reason}"
                    lines.append(fill(text, width, subsequent_indent=" " * (first + 2)))
            if len(lines) > 1:
                yield lines

    def _blocks(self, width: int, widths: Sequence[int]) -> list[list[int]]:
        """Columns that fit beside each other; measures and other columns are kept apart."""
        blocks: list[list[int]] = [[]]
        for j in range(len(self.columns)):
            used = sum(2 + widths[i] for i in [*blocks[-1], j])
            if blocks[-1] and (j == self.n_measures or used > width):
                blocks.append([])
            blocks[-1].append(j)
        return blocks

    def _joined(self, line: Line, block: Sequence[int], widths: Sequence[int]) -> str:
        """Cells of some columns; a mark stands beside its number."""
        texts = []
        for j in block:
            text = str(line.cells[j])
            is_text = self.columns[j] in _WORDS
            texts.append(text.ljust(widths[j]) if is_text else text.rjust(widths[j]))
        return "".join(f"  {text}" for text in texts)


@cache
def template(name: str) -> Template:
    """A file of the folder ``templates``."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("mvcca.comparison"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name)


def pretty(name: str) -> str:
    """Name of a measure as printed in papers: ``map@50`` is mAP@50."""
    kind = Measure.parse(name).kind
    return _PRETTY.get(kind, kind.replace("_", " ")) + name.removeprefix(kind)


def written(name: str, value: float) -> str:
    """Format a measure: ranks with one decimal, others with three."""
    return format(value, ".1f" if Measure.parse(name).kind in ("mr", "mean_rank") else ".3f")


def with_error(name: str, value: float, error: float) -> str:
    """Format a measure with its standard error: 0.407±.012."""
    if np.isnan(error):
        return written(name, value)
    return f"{written(name, value)}±{written(name, error).removeprefix('0')}"


def _marked(cell: Cell) -> str:
    return f"**{cell.text}**" if cell.is_marked else cell.text


def _chosen(result: Measurements, method: str) -> list[str]:
    """Distinct values that the search chose on the folds."""
    found = result.fits(method)
    return [
        ", ".join(dict.fromkeys(str(one.chosen[name]) for one in found if name in one.chosen))
        for name in result.settings.search
    ]


def _details(result: Measurements, method: str) -> list[str]:
    """Correlations, seconds and memory as means over folds, and the similarity."""
    found = result.fits(method)

    def mean(values: Sequence[float], digits: int) -> str:
        value = float(np.mean(values))
        return "" if np.isnan(value) else f"{value:.{digits}f}"

    peaks = [one.peak_bytes / _MEGABYTE for one in found if one.peak_bytes is not None]
    return [
        mean([mean_correlation(one.train_correlations) for one in found], 3),
        mean([mean_correlation(one.test_correlations) for one in found], 3),
        mean([one.fit_seconds for one in found], 2),
        mean([one.query_seconds for one in found], 2),
        f"{max(peaks):.0f}" if peaks else "",
        found[0].ranked_by,
    ]


def _numbers(result: Measurements, method: str, warnings: list[str]) -> str:
    """Numbers of the warnings of a method."""
    own = {text for found in result.fits(method) for text in found.warnings}
    return " ".join(f"[{number}]" for number, text in enumerate(warnings, start=1) if text in own)


def _directions(result: Measurements, method: str, n_columns: int) -> Iterator[Line]:
    """One line for every direction of a method, means over folds."""
    columns = [
        [written(m, value) for value in result.by_direction(method, m)] for m in result.measures
    ]
    blank = [Cell("")] * (n_columns - len(columns))
    for row, *texts in zip(result.chance[0], *columns, strict=True):
        name = f"  {row.query} -> {row.target}"
        yield Line(name, [*map(Cell, texts), *blank], kind="direction")


def _settings(result: Measurements) -> list[str]:
    """How the objects were split, and settings common to all methods."""
    folds, settings = result.folds, result.settings
    sizes = f"{len(folds[0].train):,} training and {len(folds[0].test):,} held-out objects"
    split = (
        f"one split, {sizes}" if len(folds) == 1 else f"{len(folds)} folds, {sizes} in the first"
    )
    lines = [f"{split}; seed {settings.random_state}"]
    right: dict[str, list[str]] = {}
    for name in settings.measures:
        by_pairs = result.data.relevance_is_by_pairs(name, settings.relevance)
        what = result.presentation.same if by_pairs else result.presentation.like
        if Measure.parse(name).kind == "wmap":
            what = "labels with similar word vectors"
        right.setdefault(what, []).append(pretty(name))
    lines.append("right items: " + "; ".join(f"{k} ({', '.join(v)})" for k, v in right.items()))
    given = [
        f"{value} components" if name == "n_components" else f"{name} {value}"
        for name, value in settings.params.items()
        if name not in settings.search
    ]
    if given:
        lines.append(f"settings: {', '.join(given)}")
    if settings.search:
        tried = ", ".join(f"{k} from {', '.join(map(str, v))}" for k, v in settings.search.items())
        lines.append(
            f"chosen within the training objects by {pretty(settings.measures[0])}: {tried}"
        )
    return lines


def _notes(result: Measurements) -> list[str]:
    """What the marks and the errors mean."""
    if not result.successes:
        return []
    if result.is_one_split:
        test, error = "paired t-test over held-out objects", "bootstrap over held-out objects"
    else:
        test = "corrected resampled t-test over folds (Nadeau and Bengio)"
        error = f"standard error over {len(result.folds)} folds"
    return [
        f"* best, or not significantly worse: {test}, 5 % level, Holm's correction",
        f"± {error}; r: mean correlation of the components; MB: memory of the fit",
        *([] if result.is_complete else ["Interrupted: some folds or methods are missing."]),
    ]


def _meaning(note: str) -> str:
    """Definition of measures under their pretty names, without the similarity."""
    names, _, meaning = note.replace("; cosine", "").partition(": ")
    return f"{', '.join(map(pretty, names.split(', ')))}: {meaning}"
