"""The HTML report: tables, figures with explanations, and all settings."""

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

from mvcca.cli.comparison import html
from mvcca.cli.comparison.examples import Example, Item, examples
from mvcca.cli.comparison.results import Line, Results, pretty, written
from mvcca.cli.comparison.run import Settings
from mvcca.cli.output import replacing

_TITLE = "Retrieval across views"
_LEAD = (
    "A query is a row of one view; its answer is a ranked list of rows of another view. Which "
    "method ranks the right rows first? Each method ranks by the similarity it declares. The best "
    "method by the first measure is shaded; all measures are means over the directions between "
    "views, on held-out objects."
)
_N_QUERIES, _N_ITEMS = 6, 8
_LIBRARIES = ("mvcca", "numpy", "scipy", "scikit-learn")
NO_PICTURES = "which need matplotlib: pip install 'mvcca[plot]'"


def has_pictures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def write_report(
    path: Path, results: Sequence[Results], settings: Settings, arguments: Sequence[str]
) -> None:
    """Write the report on all cases; `arguments` are those of the command line."""
    meanings = dict.fromkeys(meaning for result in results for meaning in result.meanings)
    parts = [
        html.heading(1, _TITLE),
        html.paragraph(_LEAD),
        *(part for result in results for part in _tables(result)),
        html.heading(2, "measures"),
        html.items(meanings),
        *(part for result in results for part in _pictures(result, settings)),
        html.heading(2, "settings"),
        _facts(results, settings, arguments),
    ]
    text = html.page(_TITLE, parts)
    with replacing(path) as file:
        file.write(text.encode(errors="backslashreplace"))  # a file name need not be valid text


# ---- tables -------------------------------------------------------------------------------------


def _tables(results: Results) -> Iterator[str]:
    yield html.heading(2, results.case.title)
    yield from (html.paragraph(text, "about") for text in results.about)
    head = html.row(results.header, tag="th")
    yield html.table([head, *(_row(line) for line in results.lines)])
    yield html.items(results.notes, numbered=True)
    directions = [f"{row.query} → {row.target}" for row in results.best.retrieval]
    yield html.folded(
        f"All {len(directions)} directions, from a query's view to the view searched",
        (_by_direction(results, name, directions) for name in results.best.retrieval.mean()),
    )


def _row(line: Line) -> str:
    if not line.skipped:
        return html.row(line.cells, kind=line.kind)
    reason = f"skipped: {line.skipped}"
    span = len(line.cells) - 1
    return f"<tr>{html.cell(line.cells[0])}{html.cell(reason, kind='reason', span=span)}</tr>"


def _by_direction(results: Results, name: str, directions: list[str]) -> str:
    """One measure of every method in every direction."""
    rows = [html.row([pretty(name), "learns from", *directions], tag="th")]
    for outcome in results.fitted:
        values = [written(name, row.values[name]) for row in outcome.retrieval]
        rows.append(html.row([outcome.title, outcome.learns_from, *values]))
    return html.table(rows)


# ---- pictures -----------------------------------------------------------------------------------


def _pictures(results: Results, settings: Settings) -> Iterator[str]:
    case, best = results.case, results.best
    if not has_pictures():
        yield html.heading(2, case.title)
        yield html.paragraph(f"This report has no figures, {NO_PICTURES}.", "about")
        yield from _queries(results, settings)
        return
    from mvcca.cli.comparison import figures

    yield html.heading(2, f"{case.title}: figures")
    if case.has_test_pairs:
        yield html.heading(3, "correlations")
        yield html.figure(
            *figures.correlations(results.fitted),
            "Correlation between views on each component of the shared space: the further the "
            "held-out line falls below the training line, the less the method generalizes.",
        )
    right = case.right_item(True, settings.relevance)
    yield html.heading(3, "recall")
    yield html.figure(
        *figures.recall_curves(case, results.fitted, settings),
        f"Share of queries with a right item ({right}) among the first k, mean over all "
        "directions: the higher a line starts, the earlier the right items appear.",
    )
    if best.estimator.n_components_ > 1:
        yield html.heading(3, "shared space")
        yield html.figure(
            *figures.embedding(case, best, settings.seed),
            f"t-SNE embedding of held-out objects in the space of {best.name}: where different "
            "markers of one colour mix, queries in one view find similar items in the other.",
        )
    yield from _queries(results, settings)


def _queries(results: Results, settings: Settings) -> Iterator[str]:
    case, best = results.case, results.best
    source, target, *_ = case.test.names
    rows, similarity = best.ranked, best.ranking.similarity
    found = examples(case, rows, similarity, _N_QUERIES, _N_ITEMS, settings.seed)
    what = f"Queries in {source} and the items that {best.name} ranks first in {target}"
    yield html.heading(3, f"queries: {source} → {target}")
    if case.layout and has_pictures():
        from mvcca.cli.comparison import figures

        yield html.figure(
            *figures.images(case, found),
            f"{what}: a solid green frame marks a right item (bold: {case.same}), a dashed orange "
            "frame a wrong one; parts outside the view are faded.",
        )
    else:
        yield html.paragraph(f"{what}.", "about")
        yield from (_listing(results, example) for example in found)


def _listing(results: Results, example: Example) -> str:
    """A query and its retrieved items, as text."""
    lines = []
    for item in example.found:
        kind, mark = ("right", "✓") if item.is_right else ("wrong", "✗")
        same = f" ({results.case.same})" if item.is_same else ""
        lines.append(f'<li><b class="{kind}">{mark}</b> {escape(_text(results, item) + same)}</li>')
    query = f"<p><b>{escape(_text(results, example.query))}</b></p>"
    return f'{query}\n<ol class="found">{"".join(lines)}</ol>'


def _text(results: Results, item: Item) -> str:
    """Text of a row: its words and labels, or else its number."""
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
    return html.table((html.row(fact) for fact in facts), "facts")
