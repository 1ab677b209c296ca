"""The result as a table of text cells, for terminals, notebooks, Markdown and the HTML report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import fill

import numpy as np

from mvcca.comparison.candidates import DEFAULTS
from mvcca.comparison.measurements import Measurements, mean_correlation
from mvcca.comparison.verdict import Answer, answers, sentences
from mvcca.comparison.wording import escaped, listed, pretty, with_error, written
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import Cell, Line, Table
from mvcca.retrieval import Measure

_MEGABYTE = 10**6
_COSTS = ("r train", "r held out", "fit s", "query s", "MB")
_CHOOSES = {"object": "MRR", "class": "mean average precision"}
_WORDS = ("ranked by", "learns from", "notes")
CAPTION = "Mean and standard error of each measure, and costs, by method"
_EDGE = "^"
_OF_MARKS = (
    "* best, or equal to it; ? undecided: the difference from the best is smaller than the test "
    "can detect; no sign: significantly worse"
)
_OF_COSTS = "r: mean correlation of the components; MB: memory of the fit"
_OF_EDGES = f"{_EDGE} at an edge of the searched values"
_MARKS = {"best": "*", "undecided": "?", "worse": ""}


@dataclass(frozen=True)
class Summary:
    """The result as text.

    The lines of `table` are methods, followed by random scores. Lines of methods that the verdict
    names are of the kind "best", those of one direction of a method "direction", and that of random
    scores "chance".
    """

    verdict: str  # the result in one sentence
    answers: list[Answer]  # the parts of the verdict
    title: str
    data: list[str]  # description of the data
    settings: list[str]  # and how methods were fitted and measured
    measured_on: str  # number of folds and of held-out objects
    table: Table  # the measures first, then what else is known
    n_measures: int
    notes: list[str]  # meaning of marks, errors and measures
    warnings: list[str]  # cells of lines refer to them by number, from 1

    @classmethod
    def of(cls, result: Measurements, by_direction: bool = False) -> Summary:
        """Format a result, optionally with every direction of every method."""
        measures = result.measures
        compared = {m: result.against_best(m) if result.successes else {} for m in measures}
        named = {method for _, method in result.questions.values()}
        warnings = list(
            dict.fromkeys(
                in_one_line(text)
                for name in result.successes
                for found in result.fits(name)
                for text in found.warnings
            )
        )
        chosen = _searched(result)
        known = [*_COSTS, "ranked by", "learns from"]
        columns = [*map(pretty, measures), *chosen, *known, *(["notes"] if warnings else [])]
        lines = []
        for candidate in result.candidates:
            name = candidate.name
            if name in result.failures:
                reason = in_one_line(result.failures[name])
                lines.append(Line(in_one_line(name), reason=reason))
                continue
            cells = [
                Cell(
                    with_error(m, result.mean(name, m), result.standard_error(name, m)),
                    _MARKS[compared[m][name].decision],
                )
                for m in measures
            ]
            details = [
                *_chosen(result, name, chosen),
                *_details(result, name),
                candidate.learns_from,
            ]
            if warnings:
                details.append(_numbers(result, name, warnings))
            texts = map(Cell, map(in_one_line, details))
            kind = "best" if name in named else ""
            lines.append(Line(in_one_line(name), [*cells, *texts], kind=kind))
            lines += _directions(result, name, len(columns)) if by_direction else []
        chance = [Cell(written(m, result.chance_level(m))) for m in measures]
        blank = [Cell("")] * (len(columns) - len(chance))
        lines.append(Line("random scores", [*chance, *blank], kind="chance"))
        return cls(
            " ".join(sentences(result)),
            answers(result),
            in_one_line(result.presentation.title or " and ".join(result.data.views.names)),
            list(map(in_one_line, result.data.describe())),
            list(map(in_one_line, _settings(result))),
            measured_on(result),
            Table(CAPTION, ["method", *columns], lines, ("method", *_WORDS)),
            len(measures),
            [*_notes(result), *(in_one_line(_meaning(n)) for n in result.chance[0].notes)],
            warnings,
        )

    @property
    def about(self) -> list[str]:
        """Description of data and settings."""
        return [*self.data, *self.settings]

    def as_text(self, width: int | None = None, *, bold: bool = False) -> str:
        """Lines of text of limited width; columns that do not fit follow in further tables."""
        width = max(40, width or shutil.get_terminal_size().columns)
        parts = [self.title]
        parts += [fill(text, width, subsequent_indent="  ") for text in self.about]
        parts += self._tables(width, bold)
        parts += ["", *(fill(text, width, subsequent_indent="  ") for text in self.notes)]
        parts += [fill(text, width, subsequent_indent="    ") for text in self.numbered_warnings]
        return "\n".join(parts)

    def as_markdown(self) -> str:
        """A Markdown table after its title and the verdict, followed by notes."""
        columns = self.table.columns
        rows = [list(map(escaped, columns)), ["---"] * len(columns)]
        for line in self.table.lines:
            cells = [_in_markdown(cell) for cell in line.cells]
            if line.reason:
                cells = [f"skipped: {escaped(line.reason)}", *[""] * (len(columns) - 2)]
            rows.append([escaped(line.name), *cells])
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        notes = [*self.about, *self.notes, *self.numbered_warnings]
        items = "\n".join(f"- {escaped(text)}" for text in notes)
        return f"## {escaped(self.title)}\n\n{escaped(self.verdict)}\n\n{table}\n\n{items}\n"

    @property
    def measures(self) -> Table:
        """The measures, with random scores and with the methods that have none."""
        table = self.table.select(range(self.n_measures))
        caption = f"Measures: mean ± standard error, {self.measured_on}"
        return replace(table, caption=caption, notes=self._only(_OF_MARKS))

    @property
    def costs(self) -> Table:
        """Correlations, seconds and memory."""
        columns = [j for j in self._others if self._name(j) in _COSTS]
        table = self.table.select(columns, with_reasons=False)
        caption = f"Correlations and costs of a fit: means, {self.measured_on}"
        return replace(table, caption=caption, notes=self._only(_OF_COSTS))

    @property
    def choices(self) -> Table:
        """Chosen hyper-parameters, the ranking, and numbers of warnings."""
        columns = [j for j in self._others if self._name(j) not in _COSTS]
        table = self.table.select(columns, with_reasons=False)
        chosen = len(columns) > len(set(map(self._name, columns)) & set(_WORDS))
        caption = "Settings that were chosen" if chosen else "Methods"
        return replace(table, caption=caption, notes=self._only(_OF_EDGES))

    @property
    def method_notes(self) -> list[str]:
        """How methods were fitted and measured: settings, and notes that are not of one table."""
        of_tables = (_OF_MARKS, _OF_COSTS, _OF_EDGES)
        return [*self.settings, *(text for text in self.notes if text not in of_tables)]

    def _only(self, note: str) -> list[str]:
        """A note, if it is one of this result."""
        return [note] if note in self.notes else []

    @property
    def _others(self) -> range:
        """Columns that are not measures, counted after the first."""
        return range(self.n_measures, len(self.table.columns) - 1)

    def _name(self, column: int) -> str:
        return self.table.columns[column + 1]

    @property
    def numbered_warnings(self) -> list[str]:
        """Warnings behind the numbers by which lines refer to them."""
        return [f"[{number}] {text}" for number, text in enumerate(self.warnings, start=1)]

    def _tables(self, width: int, bold: bool) -> Iterator[str]:
        """Tables that are not wider than `width`: measures first, then what else is known."""
        first = self.table.widths()[0]
        others = self.table.select(self._others, with_reasons=False)
        for whole in (self.table.select(range(self.n_measures)), others):
            if whole.lines:
                yield "\n" + whole.as_text(width, first=first, bold=bold)


def _in_markdown(cell: Cell) -> str:
    text = escaped(str(cell))
    return f"**{text}**" if cell.is_best else text


def _searched(result: Measurements) -> list[str]:
    """Parameters of which tuning or a search chose values for some method."""
    names = dict.fromkeys(result.settings.search)
    for method in result.successes:
        for found in result.fits(method):
            names |= dict.fromkeys(found.chosen)
            if found.choice is not None:
                names["n_components"] = None
    return list(names)


def _chosen(result: Measurements, method: str, names: Sequence[str]) -> list[str]:
    """Distinct values that were chosen on the folds, marked if at an edge of what was searched."""
    texts = []
    for name in names:
        values: dict[str, None] = {}
        for found in result.fits(method):
            value = found.chosen.get(name)
            at_edge = False
            if found.choice is not None:
                value = found.n_components if name == "n_components" else value
                at_edge = name in found.choice.at_edge
            if value is not None:
                text = f"{value:g}" if isinstance(value, float) else str(value)
                values[f"{text}{_EDGE if at_edge else ''}"] = None
        texts.append(_shortened(list(values)))
    return texts


def _shortened(values: list[str]) -> str:
    """Up to three values, or the smallest and the largest of more numbers."""
    if len(values) <= 3:
        return ", ".join(values)
    ordered = sorted(values, key=_size)
    return f"{ordered[0]} to {ordered[-1]}"


def _size(text: str) -> float:
    """A number, or the factor of a multiple such as "0.5*median"."""
    factor, times, _ = text.rstrip(_EDGE).rpartition("*")
    return (
        float(factor) if times else 1.0 if text.startswith("median") else float(text.rstrip(_EDGE))
    )


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
        " or ".join(dict.fromkeys(one.ranked_by for one in found)),
    ]


def _numbers(result: Measurements, method: str, warnings: list[str]) -> str:
    """Numbers of the warnings of a method."""
    own = {in_one_line(text) for found in result.fits(method) for text in found.warnings}
    return " ".join(f"[{number}]" for number, text in enumerate(warnings, start=1) if text in own)


def _directions(result: Measurements, method: str, n_columns: int) -> Iterator[Line]:
    """One line for every direction of a method, means over folds."""
    columns = [
        [written(m, value) for value in result.by_direction(method, m)] for m in result.measures
    ]
    blank = [Cell("")] * (n_columns - len(columns))
    for row, *texts in zip(result.chance[0], *columns, strict=True):
        name = in_one_line(f"  {row.query} -> {row.target}")
        yield Line(name, [*map(Cell, texts), *blank], kind="direction")


def measured_on(result: Measurements) -> str:
    """Number of folds and of held-out objects."""
    n_held_out = len(result.folds[0].test)
    if result.is_one_split:
        return f"{n_held_out:,} held-out objects"
    return f"{len(result.folds)} folds, {n_held_out:,} held-out objects in the first"


def _settings(result: Measurements) -> list[str]:
    """How the objects were split, and settings common to all methods."""
    folds, settings = result.folds, result.settings
    sizes = f"{len(folds[0].train):,} training and {len(folds[0].test):,} held-out objects"
    split = (
        f"one split, {sizes}" if len(folds) == 1 else f"{len(folds)} folds, {sizes} in the first"
    )
    lines = [f"{split}; seed {settings.random_state}"]
    if result.data.groups is not None:
        lines.append(result.data.groups.describe(folds))
    right: dict[str, list[str]] = {}
    for name in settings.measures:
        right.setdefault(result.right_items(name), []).append(pretty(name))
    lines.append("right items: " + "; ".join(f"{k} ({', '.join(v)})" for k, v in right.items()))
    tuned = [one for one in result.candidates if one.is_tuned]
    if tuned:
        by = (
            "all methods"
            if len(tuned) == len(result.candidates)
            else listed([one.name for one in tuned])
        )
        measures = listed([_CHOOSES[goal] for goal in result.goals])
        lines.append(f"settings of {by} chosen on the same folds: largest {measures}")
    fixed = any(one.method is not None and not one.is_tuned for one in result.candidates)
    params = {**(DEFAULTS if fixed else {}), **settings.params} if result.has_named else {}
    given = [
        f"{value} components" if name == "n_components" else f"{name} {value}"
        for name, value in params.items()
        if name not in settings.search
    ]
    if given:
        lines.append(f"settings: {', '.join(given)}")
    if settings.search:
        tried = ", ".join(f"{k} from {', '.join(map(str, v))}" for k, v in settings.search.items())
        lines.append(f"chosen on the same folds: {tried}")
    return lines


def _notes(result: Measurements) -> list[str]:
    """What the marks and the errors mean."""
    if not result.successes:
        return []
    if result.is_one_split:
        units = "held-out objects" if result.data.groups is None else "groups of held-out objects"
        test, error = f"paired t-test over {units}", f"bootstrap over {units}"
    else:
        test = "corrected resampled t-test over folds (Nadeau and Bengio)"
        error = f"standard error over {len(result.folds)} folds"
    is_ratio = any(Measure.parse(name).is_of_gallery for name in result.measures)
    ratio = " (hubness: skewness of the distribution)" if is_ratio else ""
    return [
        _OF_MARKS,
        f"test: {test}, 5 % level, Holm's correction; ± {error}",
        f"random scores: exact expectation if every query ranks all items in random order{ratio}",
        *([_OF_EDGES] if _at_edge(result) else []),
        _OF_COSTS,
        *([] if result.is_complete else ["Interrupted: some folds or methods are missing."]),
    ]


def _at_edge(result: Measurements) -> bool:
    choices = (found.choice for name in result.successes for found in result.fits(name))
    return any(choice is not None and choice.at_edge for choice in choices)


def _meaning(note: str) -> str:
    """Definition of measures under their pretty names, without the similarity."""
    names, _, meaning = note.replace("; random order", "").partition(": ")
    return f"{', '.join(map(pretty, names.split(', ')))}: {meaning}"
