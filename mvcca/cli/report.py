"""The report: tables first, then pictures with a sentence on what to see, then all settings.

How pictures are drawn stands in `mvcca.cli.figures`, how HTML is written in `mvcca.cli.page`.
"""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from sklearn import config_context

from mvcca.cli import page
from mvcca.cli.examples import Example, Item, examples
from mvcca.cli.output import replacing
from mvcca.cli.run import Settings
from mvcca.cli.table import Line, Results, pretty, written

__all__ = ["NO_PICTURES", "has_pictures", "write_report"]

_TITLE = "Retrieval across views"
_LEAD = (
    "A query is a row of one view, its answer a list of rows of another, best first. Which method "
    "puts the right ones on top? Each method ranks by its own similarity. The best by the first "
    "measure is shaded; all measures are means over the directions between views, on objects that "
    "no method was fitted to."
)
_N_QUERIES, _N_ITEMS = 6, 8
_LIBRARIES = ("mvcca", "numpy", "scipy", "scikit-learn")
NO_PICTURES = "which need matplotlib: pip install 'mvcca[plot]'"


def has_pictures() -> bool:
    """Whether matplotlib is installed, to draw them."""
    return find_spec("matplotlib") is not None


def write_report(
    path: Path, results: Sequence[Results], settings: Settings, arguments: Sequence[str]
) -> None:
    """Write the report, whole or not at all.

    Parameters
    ----------
    path : Path
        Where to.
    results : sequence of Results
        One for each case.
    settings : Settings
    arguments : sequence of str
        What the user typed.

    Raises
    ------
    CommandError
        If it cannot be written.
    """
    meanings = dict.fromkeys(meaning for result in results for meaning in result.meanings)
    parts = [
        page.heading(1, _TITLE),
        page.paragraph(_LEAD),
        *(part for result in results for part in _tables(result)),
        page.heading(2, "measures"),
        page.items(meanings),
        *(part for result in results for part in _pictures(result, settings)),
        page.heading(2, "settings"),
        _facts(results, settings, arguments),
    ]
    text = page.page(_TITLE, parts)
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # a file's name need not be text


# ---- tables -------------------------------------------------------------------------------------


def _tables(results: Results) -> Iterator[str]:
    yield page.heading(2, results.case.title)
    yield from (page.paragraph(text, "about") for text in results.about)
    head = page.row(results.header, tag="th")
    yield page.table([head, *(_row(line) for line in results.lines)])
    yield page.items(results.notes, numbered=True)
    directions = [f"{row.query} → {row.target}" for row in results.best.retrieval]
    yield page.folded(
        f"All {len(directions)} directions, from a query's view to the view searched",
        (_by_direction(results, name, directions) for name in results.best.retrieval.mean()),
    )


def _row(line: Line) -> str:
    if not line.skipped:
        return page.row(line.cells, kind=line.kind)
    reason = f"skipped: {line.skipped}"
    span = len(line.cells) - 1
    return f"<tr>{page.cell(line.cells[0])}{page.cell(reason, kind='reason', span=span)}</tr>"


def _by_direction(results: Results, name: str, directions: list[str]) -> str:
    """One measure of every method in every direction."""
    rows = [page.row([pretty(name), "learns from", *directions], tag="th")]
    for outcome in results.fitted:
        values = [written(name, row.values[name]) for row in outcome.retrieval]
        rows.append(page.row([outcome.title, outcome.learns_from, *values]))
    return page.table(rows)


# ---- pictures -----------------------------------------------------------------------------------


def _pictures(results: Results, settings: Settings) -> Iterator[str]:
    case, best = results.case, results.best
    if not has_pictures():
        yield page.heading(2, case.title)
        yield page.paragraph(f"This report has no pictures, {NO_PICTURES}.", "about")
        yield from _queries(results, settings)
        return
    from mvcca.cli import figures

    yield page.heading(2, f"{case.title}: pictures")
    if case.has_test_pairs:
        yield page.heading(3, "correlations")
        yield page.figure(
            *figures.correlations(results.fitted),
            "How much the views of one object agree on each component of the shared space: the "
            "further the held-out line falls below the training line, the less of what was "
            "learned holds on new objects.",
        )
    right = case.right_item(True, settings.relevance)
    yield page.heading(3, "recall")
    yield page.figure(
        *figures.recall_curves(case, results.fitted, settings),
        f"Share of queries with a right item ({right}) among the first k, mean over all "
        "directions: the higher a line starts, the sooner users find what they look for.",
    )
    if best.estimator.n_components_ > 1:
        yield page.heading(3, "shared space")
        yield page.figure(
            *figures.embedding(case, best, settings.seed),
            f"Held-out objects as {best.name} places them, laid out by t-SNE: where different "
            "markers of one colour mix, a query in one view finds its like in the other.",
        )
    yield from _queries(results, settings)


def _queries(results: Results, settings: Settings) -> Iterator[str]:
    case, best = results.case, results.best
    source, target, *_ = case.test.names
    rows, similarity = best.ranked, best.ranking.similarity
    found = examples(case, rows, similarity, _N_QUERIES, _N_ITEMS, settings.seed)
    what = f"Queries in {source} and, best first, what {best.name} finds for them in {target}"
    yield page.heading(3, f"queries: {source} → {target}")
    if case.layout and has_pictures():
        from mvcca.cli import figures

        yield page.figure(
            *figures.images(case, found),
            f"{what}: a solid green frame is right (a bold one is {case.same}), a dashed orange "
            "one wrong, and faded is what the method did not see.",
        )
    else:
        yield page.paragraph(f"{what}.", "about")
        yield from (_listing(results, example) for example in found)


def _listing(results: Results, example: Example) -> str:
    """A query and what it found, to be read."""
    lines = []
    for item in example.found:
        kind, mark = ("right", "✓") if item.is_right else ("wrong", "✗")
        same = f" ({results.case.same})" if item.is_same else ""
        lines.append(f'<li><b class="{kind}">{mark}</b> {escape(_text(results, item) + same)}</li>')
    query = f"<p><b>{escape(_text(results, example.query))}</b></p>"
    return f'{query}\n<ol class="found">{"".join(lines)}</ol>'


def _text(results: Results, item: Item) -> str:
    """What there is to read of a row: its words, its labels, or at least its number."""
    words = results.case.words(item.view, item.row) if results.case.words is not None else ""
    labels = f"[{item.labels}]" if item.labels else ""
    return " ".join(filter(None, (words, labels))) or f"row {item.row}"


# ---- settings -----------------------------------------------------------------------------------


def _facts(results: Sequence[Results], settings: Settings, arguments: Sequence[str]) -> str:
    used = [*_LIBRARIES, *(name for name in ("matplotlib", "torch") if name in sys.modules)]
    versions = ", ".join(f"{name} {version(name)}" for name in used)
    now = datetime.now().astimezone()
    with config_context(print_changed_only=False):
        fitted = [
            (outcome.name, " ".join(str(outcome.estimator).split()))
            for result in results
            for outcome in result.fitted
        ]
    facts = [
        ("command", f"mvcca {shlex.join(arguments)}"),
        ("seed", str(settings.seed)),
        *dict.fromkeys(fitted),
        ("versions", f"Python {platform.python_version()}, {versions}"),
        ("date", now.isoformat(sep=" ", timespec="minutes")),
    ]
    return page.table((page.row(fact) for fact in facts), "facts")
