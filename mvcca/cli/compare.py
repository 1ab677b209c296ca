"""`mvcca compare`: compare methods on views and labels in files.

`run_cases` also serves `mvcca demo`: it runs comparisons, prints their tables and writes a report.
"""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mvcca.cli.console import Progress, is_colored, note
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import files_of_labels, files_of_views, read_groups, read_inputs
from mvcca.cli.options import NETWORK_FLAGS, network_parameters
from mvcca.cli.reading import reading_of, reading_words, telling
from mvcca.cli.signatures import chosen
from mvcca.cli.wording import with_options
from mvcca.comparison import ComparisonResult
from mvcca.comparison.cases import Case
from mvcca.comparison.export import check_suffix, write
from mvcca.comparison.next_step import in_words, next_steps
from mvcca.comparison.registry import METHODS, selected
from mvcca.comparison.report import NO_PICTURES, has_pictures
from mvcca.comparison.verdict import as_text, verbose_text
from mvcca.machine.config import config_context
from mvcca.machine.printable import printable, printable_json
from mvcca.machine.written_files import check_writable
from mvcca.retrieval.measure import Measure
from mvcca.statistics.passes import row_bytes_of
from mvcca.views import Views
from mvcca.views.files import read_ids, read_label_vectors

_LARGE_BYTES = 10**9
_FLAGS = ("n_components", "label_similarity", "sigma")  # beside --reg and those of networks
_COMMON = {"n_components", "reg"}  # no mistake even if no method has them


def run(options: Namespace) -> None:
    """Run the command."""
    files, label_files = files_of_views(options), files_of_labels(options)
    if options.id is not None and options.ids is not None:
        raise UsageError("--id names the objects already; omit --ids")
    views, labels = read_inputs(options, files, check_finite=True)
    if options.ids is not None:
        with telling(options) as say:
            reading = reading_of(options, "ids")
            views = views.with_ids(read_ids(options.ids, reading, n_rows=len(views), say=say))
    n_bytes = sum(X.shape[0] * row_bytes_of(Views({name: X})) for name, X in views.items())
    if n_bytes > _LARGE_BYTES:
        note(
            f"comparing loads all rows into memory: {n_bytes / 1e9:.1f} GB of views; methods may "
            "need the same amount again or more. `mvcca fit` reads files in blocks of rows"
        )
    case = Case(views, labels, groups=read_groups(options, views))
    if options.label_vectors is None:
        run_cases(
            [case],
            options,
            lambda result: next_steps(
                result,
                files,
                label_files,
                [*reading_words(options), *["--complete"] * options.complete],
            ),
        )
    else:  # no other command learns from label vectors
        with telling(options) as say:
            reading = replace(reading_of(options, "label_vectors"), id=None)
            case = case.with_label_vectors(
                read_label_vectors(options.label_vectors, reading, say=say)
            )
        run_cases([case], options, lambda _: {})


def run_cases(
    cases: Iterable[Case],
    options: Namespace,
    commands: Callable[[ComparisonResult], Mapping[str, str]],
) -> None:
    """Compare methods on all cases, printing each table as soon as it is complete.

    `commands` is a function from the last result to the commands to run next, by what they are
    for; there may be none.
    """
    params, search = _parameters(options)
    page = None if options.report is None else check_writable(Path(options.report))
    if page is not None:
        check_suffix(page)
    results: list[ComparisonResult] = []
    with Progress() as progress, config_context(device=options.device):
        for case in cases:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Interrupted")  # the exit code says so
                result = case.compare(
                    options.methods,
                    cv=options.cv,
                    tune=options.tune,
                    search=search,
                    budget=None if options.budget == "none" else options.budget,
                    measures=options.measures,
                    params=params,
                    progress=progress.update,
                    **chosen(options),
                )
            if result.is_complete and not result.successes:
                reasons = [f"{name}: {reason}" for name, reason in result.failures.items()]
                raise CommandError(f"no method could be fitted. {'; '.join(reasons)}")
            results.append(result)
            progress.clear()
            if not options.json:
                separator = "\n\n" if len(results) > 1 else ""
                print(separator + with_options(_text(result, options), options.parser), flush=True)
            if not result.is_complete:
                break
        if options.json:
            read = getattr(options, "read", [])
            print(printable_json([{**result.as_dict(), "read": read} for result in results]))
        if page is not None and any(result.successes for result in results):
            progress.update("writing the report")
            _write(page, results, options, commands(results[-1]))
    if not all(result.is_complete for result in results):
        raise KeyboardInterrupt("the table is incomplete")
    if not (options.json or options.quiet) and (steps := commands(results[-1])):
        print(printable("\n".join(["", *in_words(steps)])))


def _text(result: ComparisonResult, options: Namespace) -> str:
    """The result in few lines, followed by all that is known if that is asked for."""
    title = result.presentation.title
    if options.verbose or options.by_direction:
        text = verbose_text(result, options.by_direction, bold=is_colored())
    else:
        text = as_text(result, bold=is_colored())
    return f"{title}\n{text}" if title else text


def _write(
    page: Path,
    results: list[ComparisonResult],
    options: Namespace,
    steps: Mapping[str, str],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as letters that the font lacks
        write(page, results, f"mvcca {shlex.join(options.arguments)}", steps)
    if page.suffix.lower() in (".html", ".htm") and not has_pictures():
        note(f"{page} has no figures, {NO_PICTURES}")
    if not options.json:
        print(printable(f"\nReport: {page}"))


def _parameters(options: Namespace) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Parameters with one value, and those with several; raise for what no method has."""
    for name in options.measures or ():
        try:
            Measure.parse(name)
        except ValueError as error:
            raise UsageError(str(error)) from error
    of_flags = {name: getattr(options, name) for name in _FLAGS} | network_parameters(options)
    given = {name: [value] for name, value in of_flags.items() if value is not None}
    if options.reg is not None:
        given["reg"] = options.reg
    flags = {name: NETWORK_FLAGS.get(name, f"--{name.replace('_', '-')}") for name in given}
    for name, values in options.params:
        if name in flags:
            raise UsageError(f"{flags[name]} and --param {name} are the same; give only one")
        given[name] = [*given.get(name, []), *values]
    names = selected(options.methods)
    taken: set[str] = set().union(*(METHODS[name].takes() for name in names)) - {"cv_goal"}
    for name in given.keys() - taken - _COMMON:
        flag = flags.get(name, f"--param {name}")
        raise UsageError(f"{flag} is not a parameter of {', '.join(names)}")
    given = {name: values for name, values in given.items() if name in taken}
    fixed = {name: values[0] for name, values in given.items() if len(values) == 1}
    return fixed, {name: values for name, values in given.items() if len(values) > 1}
