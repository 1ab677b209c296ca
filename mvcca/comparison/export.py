"""Write results to files: HTML report, Markdown, CSV or JSON, by the ending of the name."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mvcca._replacing import replacing
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.summary import Summary
from mvcca.files import check_format

Results = Sequence[Measurements]


def check_suffix(path: Path) -> str:
    """Return the suffix of a file to which results can be written."""
    return check_format(str(path), "results", tuple(_WRITERS))


def write(path: Path, results: Results, command: str = "", next_step: str = "") -> None:
    """Write results; `command` and `next_step` are those of the command line, if any."""
    suffix = check_suffix(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}")
    text = _WRITERS[suffix](results, command, next_step)
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # a file name need not be valid text


def as_json(result: Measurements) -> dict[str, Any]:
    """The result in JSON-compatible values."""
    methods = []
    for candidate in result.candidates:
        name = candidate.name
        entry: dict[str, Any] = {"name": name, "learns_from": candidate.learns_from}
        if name in result.failures:
            methods.append(entry | {"failure": result.failures[name]})
            continue
        found = result.fits(name)[0]
        measures = {}
        for measure in result.measures:
            low, high = result.interval(name, measure)
            measures[measure] = {
                "mean": result.mean(name, measure),
                "standard_error": _number(result.standard_error(name, measure)),
                "interval": [_number(low), _number(high)],
                "p_value": _number(result.p_values(measure)[name]),
                "is_not_worse": name in result.not_worse(measure),
            }
        entry |= {
            "ranked_by": found.ranked_by,
            "estimator": " ".join(repr(found.estimator).split()),
        }
        methods.append(entry | {"measures": measures})
    return {
        "title": Summary.of(result).title,
        "about": Summary.of(result).about,
        "best": result.best if result.successes else None,
        "n_folds": len(result.folds),
        "random_state": result.settings.random_state,
        "methods": methods,
        "values": list(result.records()),
    }


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if value != value else value


def _json(results: Results, command: str, _: str) -> str:
    content = {"command": command, "results": [as_json(result) for result in results]}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _csv(results: Results, *_: str) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    titles = [Summary.of(result).title for result in results]
    several = len(results) > 1
    lines.writerow(
        [*(["data"] if several else []), "method", "fold", "direction", "measure", "value"]
    )
    for title, result in zip(titles, results, strict=True):
        for record in result.records():
            lines.writerow([*([title] if several else []), *record.values()])
    return text.getvalue()


def _markdown(results: Results, command: str, _: str) -> str:
    parts = [Summary.of(result).as_markdown() for result in results]
    return "\n".join([*([f"`{command}`\n"] if command else []), *parts])


def _html(results: Results, command: str, next_step: str) -> str:
    from mvcca.comparison.report import report_page

    return report_page(results, command, next_step)


_WRITERS: dict[str, Callable[[Results, str, str], str]] = {
    ".html": _html,
    ".htm": _html,
    ".csv": _csv,
    ".json": _json,
    ".md": _markdown,
}
