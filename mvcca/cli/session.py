"""What both commands do with their cases: run them, print the tables, write the report."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from mvcca.cli.arguments_of_networks import chosen_for_networks
from mvcca.cli.case import Case
from mvcca.cli.errors import CommandError
from mvcca.cli.notes import note
from mvcca.cli.output import writable
from mvcca.cli.progress import Progress
from mvcca.cli.run import Settings, at_random, check_settings, run_case
from mvcca.cli.table import Results
from mvcca.cli.terminal import printable

__all__ = ["run_cases"]


def run_cases(cases: Sequence[Case], options: Namespace, n_components: int) -> None:
    """Run all cases; the table of each is printed as soon as it is there.

    Parameters
    ----------
    cases : sequence of Case
    options : Namespace
        As `mvcca.cli.parser` makes them; the report tells ``arguments``, what the user typed.
    n_components : int
        Dimension of the shared space.

    Raises
    ------
    UsageError, CommandError
        If the options do not go together, no method could be fitted, or the report cannot be
        written.
    """
    settings = _settings(options, n_components)
    check_settings(settings)
    page = None if options.report is None else _report_file(options.report)
    results = []
    with Progress() as progress:
        for case in cases:
            with threadpool_limits(1 if _is_small(case) else None):
                outcomes, chance = run_case(case, settings, progress), at_random(case, settings)
            results.append(Results.of(case, outcomes, chance, settings, options.by_direction))
            progress.clear()
            print(printable(str(results[-1])), end="\n\n", flush=True)
        meanings = dict.fromkeys(meaning for result in results for meaning in result.meanings)
        print(*map(printable, meanings), sep="\n", flush=True)
        if page is None:
            return
        from mvcca.cli.report import NO_PICTURES, has_pictures, write_report

        progress.say("drawing the report")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # letters of labels that the font lacks, and the like
            write_report(page, results, settings, options.arguments)
    if not has_pictures():
        note(f"{page} has no pictures, {NO_PICTURES}")
    print(printable(f"\nReport: {page}"))


def _report_file(name: str) -> Path:
    """The path of a report, an HTML page."""
    path = writable(name)
    if path.suffix.lower() not in (".html", ".htm"):
        raise CommandError(f"{path}: expected a report to go to a file ending in .html or .htm")
    return path


def _settings(options: Namespace, n_components: int) -> Settings:
    chosen = {"label_similarity": options.label_similarity, "sigma": options.sigma}
    given = {name: value for name, value in chosen.items() if value is not None}
    given |= chosen_for_networks(options)
    return Settings(
        methods=options.methods,
        options={"n_components": n_components, "random_state": options.seed, **given},
        regs=tuple(options.reg or ()),
        measures=tuple(name.lower() for name in options.measures),
        relevance=options.relevance,
        seed=options.seed,
    )


def _is_small(case: Case) -> bool:
    """Whether threads cost more than they gain, the more so on a busy machine."""
    return sum(block.shape[0] * block.shape[1] for _, block in case.train.items()) < 10**6
