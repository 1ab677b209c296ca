"""Write results to files: HTML report, Markdown, CSV or JSON, by the ending of the name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mvcca.comparison.candidates import Candidate
from mvcca.comparison.measurements import RECORD, Measurements
from mvcca.comparison.verdict import (
    about,
    definitions,
    details,
    notes,
    sentences,
    table,
    title_of,
    warnings_of,
)
from mvcca.comparison.wording import code, escaped
from mvcca.machine.printable import printable_json
from mvcca.machine.replacing import replacing
from mvcca.machine.tables import Cell, Table
from mvcca.machine.written_files import check_format, csv_text

Results = Sequence[Measurements]


def check_suffix(path: Path) -> str:
    """Return the suffix of a file to which results can be written."""
    return check_format(str(path), "results", tuple(_WRITERS))


def write(
    path: Path, results: Results, command: str = "", next_steps: Mapping[str, str] | None = None
) -> None:
    """Write results; `command` and `next_steps` are those of the command line, if any."""
    suffix = check_suffix(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    text = _WRITERS[suffix](results, command, next_steps or {})
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # a file name need not be valid text


def as_json(result: Measurements) -> dict[str, Any]:
    """The result in JSON-compatible values."""
    return {
        "sentences": sentences(result),
        "title": title_of(result),
        "about": about(result),
        "notes": notes(result),
        "best": result.best if result.successes else None,
        "best_for": {result.right_items(goal): result.best_for(goal) for goal in result.goals},
        "chance": dict(result.chance_of_goals) | _chance(result),
        "gallery_size": result.gallery_size,
        "table": table(result).records(),
        "n_folds": len(result.folds),
        "random_state": result.settings.random_state,
        "methods": [_entry(result, candidate) for candidate in result.candidates],
        "values": list(result.records()),
    }


def _chance(result: Measurements) -> dict[str, float]:
    """Measures of random scores, if the user names measures."""
    measures = result.measures if result.names_measures else ()
    return {measure: result.chance_level(measure) for measure in measures}


def _entry(result: Measurements, candidate: Candidate) -> dict[str, Any]:
    """Values of a method, and how they compare with those of the best one."""
    name, run = candidate.name, result.runs[candidate.name]
    entry: dict[str, Any] = {"name": name, "learns_from": candidate.learns_from}
    if name in result.failures:
        return entry | {"failure": result.failures[name]}
    found = {}
    for what in (*run.trials, *(result.measures if result.names_measures else ())):
        own = result.standing(name, what)
        mean = own.shown() if what in run.trials else result.mean(name, what)
        is_worse = result.is_worse(name, what)
        found[what] = {"mean": mean, "half_width": own.reach, "is_worse": is_worse}
    entry["estimator"] = " ".join(repr(candidate.estimator).split())
    if choices := list(_choices(result, name)):
        entry["tuned"] = choices
    return entry | {"measures": found}


def _choices(result: Measurements, method: str) -> Iterator[dict[str, Any]]:
    """Settings that the folds chose for each goal, and their value there."""
    for goal in result.runs[method].trials:
        choice = result.choice(method, goal)
        if choice is not None:
            yield {
                "goal": goal,
                "chosen": {**choice.params, "n_components": choice.n_components},
                "ranking": choice.ranking,
                "at_edge": list(choice.at_edge),
                "value": choice.value,
            }


def _json(results: Results, command: str, _: Any) -> str:
    content = {"command": command, "results": [as_json(result) for result in results]}
    return printable_json(content, indent=1) + "\n"


def _csv(results: Results, *_: Any) -> str:
    titles = [title_of(result) for result in results]
    several = len(results) > 1
    rows = [[*(["data"] if several else []), *RECORD]]
    for title, result in zip(titles, results, strict=True):
        for record in result.records():
            rows.append([*([title] if several else []), *record.values()])
    return csv_text(rows, for_people=True)


def _markdown(results: Results, command: str, next_steps: Mapping[str, str]) -> str:
    parts = list(map(_as_markdown, results))
    lines = {f"Next, for {what}": step for what, step in next_steps.items()}
    lines |= {"Command": command} if command else {}
    return "\n".join([*parts, *(f"{escaped(k)}: {code(text)}\n" for k, text in lines.items())])


def _as_markdown(result: Measurements) -> str:
    """Sentences and tables after a title, followed by notes."""
    tables = [_table_in_markdown(own) for own in (table(result), details(result)) if own.lines]
    notes = [*warnings_of(result), *about(result), *definitions(result)]
    items = "\n".join(f"- {escaped(text)}" for text in notes)
    text = escaped(" ".join(sentences(result)))
    return "\n\n".join([f"## {escaped(title_of(result))}", text, *tables, items]) + "\n"


def _table_in_markdown(own: Table) -> str:
    rows = [list(map(escaped, own.columns)), ["---"] * len(own.columns)]
    for line in own.lines:
        cells = [_in_markdown(cell) for cell in line.cells]
        if line.reason:
            cells = [f"skipped: {escaped(line.reason)}", *[""] * (len(own.columns) - 2)]
        rows.append([escaped(line.name), *cells])
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *map(escaped, own.notes)])


def _in_markdown(cell: Cell) -> str:
    return f"**{escaped(cell.text)}**" if cell.mark == "<" else escaped(str(cell))


def _html(results: Results, command: str, next_steps: Mapping[str, str]) -> str:
    from mvcca.comparison.report import report_page

    return report_page(results, command, next_steps)


_WRITERS: dict[str, Callable[[Results, str, Mapping[str, str]], str]] = {
    ".html": _html,
    ".htm": _html,
    ".csv": _csv,
    ".json": _json,
    ".md": _markdown,
}
