"""`mvcca compare`: compare methods on views and labels in files.

`run_cases` also serves `mvcca demo`: it runs comparisons, prints their tables and writes a report.
"""

from __future__ import annotations

import json
import re
import shlex
import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scipy.sparse import issparse

from mvcca.cli.console import Progress, is_colored, note, printable
from mvcca.cli.errors import CommandError, UsageError, in_one_line
from mvcca.cli.inputs import checked_view, read_inputs
from mvcca.cli.label_files import read_label_vectors
from mvcca.cli.options import NETWORK_FLAGS, network_parameters
from mvcca.cli.output import writable
from mvcca.comparison import ComparisonResult, Presentation, compare
from mvcca.comparison.data import Data
from mvcca.comparison.export import as_json, check_suffix, write
from mvcca.comparison.labels import Labels
from mvcca.comparison.registry import METHODS, selected
from mvcca.comparison.report import NO_PICTURES, has_pictures
from mvcca.comparison.summary import Summary
from mvcca.retrieval import Measure
from mvcca.sources import RowSource
from mvcca.views import Views

_LARGE_BYTES = 10**9


@dataclass(frozen=True, eq=False)
class Case:
    """One data set to compare methods on."""

    views: Views
    labels: Labels | None
    presentation: Presentation
    fit_labels: Labels | None = None
    splits: Any = None  # published (train, test) positions
    label_vectors: Any = None  # by label, or one row per label


def run(options: Namespace) -> None:
    """Run the command."""
    views, labels = read_inputs(options.views, options.labels, checked_view)
    n_bytes = sum(_n_bytes(block) for _, block in views.items())
    if n_bytes > _LARGE_BYTES:
        note(
            f"comparing loads all rows into memory: {n_bytes / 1e9:.1f} GB of views; methods may "
            "need the same amount again or more. `mvcca fit` reads files in blocks of rows"
        )
    case = Case(views, labels, Presentation())
    if options.label_vectors is not None:
        case = _with_label_vectors(case, options.label_vectors)
    run_cases([case], options, options.n_components, lambda result: _next_step(result, options))


def _with_label_vectors(case: Case, file: str) -> Case:
    """The case with word vectors to measure with, and their sums to learn from."""
    vectors = read_label_vectors(file)
    with in_one_line():
        words = Data.of(case.views, case.labels).word_vectors(vectors)
    assert words is not None
    assert case.labels is not None
    sums = Labels(case.labels.vectors @ words, [f"dimension {j}" for j in range(words.shape[1])])
    return replace(case, label_vectors=words, fit_labels=sums)


def run_cases(
    cases: Iterable[Case],
    options: Namespace,
    n_components: int,
    next_step: Callable[[ComparisonResult], str],
) -> None:
    """Compare methods on all cases, printing each table as soon as it is complete.

    `next_step` is a function from the last result to the command to run next; it may be empty.
    """
    params = _parameters(options, n_components)
    page = _checked_report(options.report)
    results: list[ComparisonResult] = []
    with Progress() as progress:
        for case in cases:
            with warnings.catch_warnings(), in_one_line():
                warnings.filterwarnings("ignore", "Interrupted")  # the exit code says so
                found = compare(
                    options.methods,
                    case.views,
                    case.labels,
                    cv=options.cv if case.splits is None else case.splits,
                    search={"reg": options.reg} if len(options.reg or ()) > 1 else None,
                    measures=[name.lower() for name in options.measures],
                    relevance=options.relevance,
                    directions=options.directions,
                    label_vectors=case.label_vectors,
                    params=params,
                    fit_labels=case.fit_labels,
                    n_jobs=options.jobs,
                    random_state=options.seed,
                    progress=progress.update,
                )
            if found.is_complete and not found.successes:
                reasons = [f"{name}: {reason}" for name, reason in found.failures.items()]
                raise CommandError(f"no method could be fitted. {'; '.join(reasons)}")
            result = replace(found, presentation=case.presentation)
            results.append(result)
            progress.clear()
            if not options.json:
                summary = Summary.of(result, options.by_direction)
                separator = "\n\n" if len(results) > 1 else ""
                table = printable(summary.as_text())
                print(separator + _marked_in_bold(table), flush=True)
            if not result.is_complete:
                break
        if options.json:
            print(json.dumps([as_json(result) for result in results], ensure_ascii=False))
        if page is not None and any(result.successes for result in results):
            progress.update("writing the report")
            _write(page, results, options, next_step(results[-1]))
    if not all(result.is_complete for result in results):
        raise KeyboardInterrupt("the table is incomplete")
    if not (options.json or options.quiet) and (command := next_step(results[-1])):
        print(printable(f"\nNext: {command}"))


def _write(page: Path, results: list[ComparisonResult], options: Namespace, next_step: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as letters that the font lacks
        try:
            write(page, results, f"mvcca {shlex.join(options.arguments)}", next_step)
        except OSError as error:
            raise CommandError(f"{page}: cannot be written: {error.strerror or error}") from error
    if page.suffix.lower() in (".html", ".htm") and not has_pictures():
        note(f"{page} has no figures, {NO_PICTURES}")
    if not options.json:
        print(printable(f"\nReport: {page}"))


def _checked_report(name: str | None) -> Path | None:
    if name is None:
        return None
    with in_one_line():
        check_suffix(Path(name))
    return writable(name)


def _parameters(options: Namespace, n_components: int) -> dict[str, Any]:
    """Parameters of all methods; raise for those that none of the methods has."""
    for name in options.measures:
        try:
            Measure.parse(name.lower())
        except ValueError as error:
            raise UsageError(str(error)) from error
    chosen = {"label_similarity": options.label_similarity, "sigma": options.sigma}
    given = {name: value for name, value in chosen.items() if value is not None}
    given |= network_parameters(options)
    names = selected(options.methods)
    with in_one_line():
        taken: set[str] = set().union(*(METHODS[name].takes() for name in names))
    for option in given.keys() - taken:
        flag = NETWORK_FLAGS.get(option, "--" + option.replace("_", "-"))
        raise UsageError(f"{flag} is not a parameter of {', '.join(names)}")
    if len(options.reg or ()) == 1:
        given["reg"] = options.reg[0]
    given |= {"n_components": n_components}
    return {name: value for name, value in given.items() if name in taken}


def _marked_in_bold(table: str) -> str:
    """The table with marked values in bold if the terminal shows it."""
    return re.sub(r"\S+(?<=\d)\*", "\x1b[1m\\g<0>\x1b[0m", table) if is_colored() else table


def _next_step(result: ComparisonResult, options: Namespace) -> str:
    """The command that fits the best method to all rows; empty with label vectors."""
    if options.label_vectors or not result.successes:
        return ""
    best = next(one for one in result.candidates if one.name == result.best)
    assert best.method is not None
    estimators = [found.estimator for found in result.measured(result.best).values()]
    usual = Counter(map(repr, estimators)).most_common(1)[0][0]
    estimator = next(one for one in estimators if repr(one) == usual)
    default = type(estimator)()
    words = ["mvcca", "fit"]
    for name, file in options.views:
        words += ["--view", f"{name}={file}"]
    for file in options.labels if best.learns_from != "pairs" else ():
        words += ["--labels", file]
    words += ["--method", best.method.name]
    for name in sorted(best.method.takes()):
        value = getattr(estimator, name)
        if value != getattr(default, name):
            words += ["--param", f"{name}={value}"]
    return shlex.join([*words, "-o", "model.mvcca"])


def _n_bytes(block: Any) -> int:
    """Memory that a view needs."""
    if isinstance(block, RowSource):
        return block.row_bytes * len(block)
    if issparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    return int(block.nbytes)
