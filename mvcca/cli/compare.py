"""`mvcca compare`: compare methods on views and labels in files.

`run_cases` also serves `mvcca demo`: it runs a comparison, prints its tables and writes its report.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from scipy.sparse import issparse
from threadpoolctl import threadpool_limits

from mvcca.cli.comparison.case import Case, split
from mvcca.cli.comparison.results import Results
from mvcca.cli.comparison.run import Settings, at_random, check_settings, run_case
from mvcca.cli.console import Progress, note, printable
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_view, read_inputs
from mvcca.cli.labels import Labels
from mvcca.cli.options import network_parameters
from mvcca.cli.output import checked_suffix, writable
from mvcca.sources import RowSource
from mvcca.views import Views

_LARGE_BYTES = 10**9


def run(options: Namespace) -> None:
    """Run the command."""
    case = _case(*read_inputs(options.views, options.labels, checked_view), options)
    run_cases([case], options, options.n_components)


def run_cases(cases: Sequence[Case], options: Namespace, n_components: int) -> None:
    """Compare methods on all cases, printing each table as soon as it is complete."""
    settings = _settings(options, n_components)
    check_settings(settings)
    page = None if options.report is None else writable(options.report)
    if page is not None:
        checked_suffix(options.report, "the report", (".html", ".htm"))
    results = []
    with Progress() as progress:
        for case in cases:
            with threadpool_limits(1 if _is_small(case) else None):
                outcomes = run_case(case, settings, progress.update)
                chance = at_random(case, settings)
            results.append(Results.of(case, outcomes, chance, settings, options.by_direction))
            progress.clear()
            print(printable(str(results[-1])), end="\n\n", flush=True)
        meanings = dict.fromkeys(meaning for result in results for meaning in result.meanings)
        print(*map(printable, meanings), sep="\n", flush=True)
        if page is None:
            return
        from mvcca.cli.comparison.report import NO_PICTURES, has_pictures, write_report

        progress.update("drawing the report")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as letters that the font lacks
            write_report(page, results, settings, options.arguments)
    if not has_pictures():
        note(f"{page} has no figures, {NO_PICTURES}")
    print(printable(f"\nReport: {page}"))


def _case(views: Views, labels: Labels | None, options: Namespace) -> Case:
    try:
        train, test = split(views, options.test_size, options.seed)
    except ValueError as error:
        raise CommandError(f"--test-size {options.test_size}: {error}") from error
    n_bytes = sum(_n_bytes(block) for _, block in views.items())
    if n_bytes > _LARGE_BYTES:
        note(
            f"comparing loads all rows into memory: {n_bytes / 1e9:.1f} GB of views; methods may "
            "need the same amount again or more. `mvcca fit` reads files in blocks of rows"
        )
    parts = (None, None) if labels is None else (labels[train], labels[test])
    return Case(
        " and ".join(views.names),
        views[train].in_memory(),
        views[test].in_memory(),
        {} if parts[0] is None else {"labels": parts[0]},
        *parts,
    )


def _n_bytes(block: Any) -> int:
    """Memory that a view needs."""
    if isinstance(block, RowSource):
        return block.row_bytes * len(block)
    if issparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    return int(block.nbytes)


def _settings(options: Namespace, n_components: int) -> Settings:
    chosen = {"label_similarity": options.label_similarity, "sigma": options.sigma}
    given = {name: value for name, value in chosen.items() if value is not None}
    given |= network_parameters(options)
    return Settings(
        methods=options.methods,
        options={"n_components": n_components, "random_state": options.seed, **given},
        regs=tuple(options.reg or ()),
        measures=tuple(name.lower() for name in options.measures),
        relevance=options.relevance,
        seed=options.seed,
    )


def _is_small(case: Case) -> bool:
    """Whether threads would cost more time than they save."""
    return sum(block.shape[0] * block.shape[1] for _, block in case.train.items()) < 10**6
