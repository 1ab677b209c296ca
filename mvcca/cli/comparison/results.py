"""Results of a case as a table of text cells, for the terminal and for the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

from mvcca.cli.comparison.case import Case
from mvcca.cli.comparison.run import REG, Fitted, Outcome, Settings, Skipped, best_of
from mvcca.retrieval import Measure, RetrievalTable

_PRETTY = {"map": "mAP", "p": "P", "r": "R", "mrr": "MRR", "mr": "median rank"}
_TEXT_WIDTH = 100


@dataclass(frozen=True)
class Line:
    """One line of results.

    Attributes
    ----------
    cells : list of str
        One for each cell of the header.
    skipped : str
        Reason if there are no measures.
    kind : {"", "best", "direction", "chance"}
        The best method by the first measure, one direction of a method, or random scores.
    """

    cells: list[str]
    skipped: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Results:
    """All outcomes of a case as text.

    Attributes
    ----------
    case : Case
    fitted : list of Fitted
    best : Fitted
        The best method by the first measure.
    about : list of str
        Description of data and settings.
    header : list of str
    lines : list of Line
    notes : list of str
        Warnings; the last cell of a line refers to them by number, from 1.
    meanings : list of str
        Definitions of the measures.
    """

    case: Case
    fitted: list[Fitted]
    best: Fitted
    about: list[str]
    header: list[str]
    lines: list[Line]
    notes: list[str]
    meanings: list[str]

    @classmethod
    def of(
        cls,
        case: Case,
        outcomes: Sequence[Outcome],
        chance: RetrievalTable,
        settings: Settings,
        by_direction: bool,
    ) -> Results:
        """Format outcomes, with the measures of random scores as the last line."""
        fitted = [outcome for outcome in outcomes if isinstance(outcome, Fitted)]
        best, names = best_of(fitted), list(chance.mean())
        notes = list(dict.fromkeys(text for outcome in fitted for text in outcome.warnings))
        choices = ["reg"] if len(settings.regs) > 1 else []
        measured = [*map(pretty, names), "fit s", "ranked by"]
        header = ["method", "learns from", *choices, *measured, "notes"]
        blank = [""] * len(choices)
        lines = []
        for outcome in outcomes:
            if isinstance(outcome, Skipped):
                cells = [outcome.title, *[""] * (len(header) - 1)]
                lines.append(Line(cells, skipped=outcome.reason))
                continue
            parameters = outcome.estimator.get_params(deep=False)
            chosen = [str(parameters.get(name, "")) for name in choices]
            numbers = " ".join(f"[{notes.index(text) + 1}]" for text in outcome.warnings)
            measures = _measures(outcome.retrieval.mean())
            what = [outcome.title, outcome.learns_from, *chosen]
            ranking = str(outcome.ranking)
            cells = [*what, *measures, f"{outcome.seconds:.2f}", ranking, numbers]
            lines.append(Line(cells, kind="best" if outcome is best else ""))
            for row in outcome.retrieval if by_direction else ():
                direction = f"  {row.query} -> {row.target}"
                cells = [direction, "", *blank, *_measures(row.values), "", "", ""]
                lines.append(Line(cells, kind="direction"))
        cells = ["random scores", "nothing", *blank, *_measures(chance.mean()), "", "cosine", ""]
        return cls(
            case,
            fitted,
            best,
            about=[
                *case.describe(),
                _right_items(case, settings),
                _settings(settings),
                *_networks(fitted),
            ],
            header=header,
            lines=[*lines, Line(cells, kind="chance")],
            notes=notes,
            meanings=[_meaning(note) for note in chance.notes],
        )

    def __str__(self) -> str:
        header, *rows = _aligned([self.header, *(line.cells for line in self.lines)], n_left=2)
        indent = max(len(line.cells[0]) for line in self.lines)
        lines = [
            f"{line.cells[0].ljust(indent)}  skipped: {line.skipped}" if line.skipped else row
            for line, row in zip(self.lines, rows, strict=True)
        ]
        notes = [
            fill(f"[{number}] {note}", _TEXT_WIDTH, subsequent_indent="    ")
            for number, note in enumerate(self.notes, start=1)
        ]
        return "\n".join([self.case.title, *self.about, "", header, *lines, *notes])


def pretty(name: str) -> str:
    """Name of a measure as printed in papers: ``map@50`` is mAP@50."""
    kind = Measure.parse(name).kind
    return _PRETTY.get(kind, kind.replace("_", " ")) + name.removeprefix(kind)


def written(name: str, value: float) -> str:
    """Format a measure with its significant digits."""
    return format(value, ".1f" if Measure.parse(name).smaller_is_better else ".3f")


def _measures(values: dict[str, float]) -> list[str]:
    return [written(name, value) for name, value in values.items()]


def _right_items(case: Case, settings: Settings) -> str:
    """Description of the right items for each measure."""
    names: dict[str, list[str]] = {}
    for name in settings.measures:
        right = case.right_item(Measure.parse(name).is_rank, settings.relevance)
        names.setdefault(right, []).append(pretty(name))
    return "right items: " + "; ".join(f"{what} ({', '.join(of)})" for what, of in names.items())


def _settings(settings: Settings) -> str:
    """Settings common to all methods."""
    regs = " or ".join(map(str, settings.regs or (REG,)))
    n_components, seed = settings.options["n_components"], settings.seed
    return f"settings: {n_components} components, reg {regs}, seed {seed}"


def _networks(fitted: Sequence[Fitted]) -> list[str]:
    """Training settings of networks, one line for each distinct setting."""
    trained: dict[str, list[str]] = {}
    for outcome in fitted:
        parameters = outcome.estimator.get_params(deep=False)
        if "max_epochs" not in parameters:
            continue
        sizes = parameters.get("hidden_layer_sizes")
        hidden = "" if sizes is None else f"hidden layers of {','.join(map(str, sizes))}, "
        settings = (
            f"{hidden}batches of {parameters['batch_size']}, {parameters['max_epochs']} epochs, "
            f"reg {parameters['reg']}"
        )
        trained.setdefault(settings, []).append(outcome.title)
    return [f"networks of {', '.join(titles)}: {settings}" for settings, titles in trained.items()]


def _meaning(note: str) -> str:
    """Definition of measures under their pretty names, without the similarity."""
    names, _, meaning = note.replace("; cosine", "").partition(": ")
    return f"{', '.join(map(pretty, names.split(', ')))}: {meaning}"


def _aligned(rows: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Align cells in columns, the first `n_left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < n_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
