"""`mvcca demo`: compare methods on example data."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.compare import run_cases
from mvcca.cli.errors import UsageError
from mvcca.comparison.cases import EXAMPLES, example_data
from mvcca.comparison.registry import METHODS, selected

_NEXT_STEP = {"your own data": "mvcca compare --view NAME=FILE --view NAME=FILE --labels FILE"}


def run(options: Namespace) -> None:
    """Run the command."""
    names = ("parts", "labels", "views", "data_home")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    for name in given.keys() - set(EXAMPLES[options.data][1]):
        flag = "--" + name.replace("_", "-")
        raise UsageError(f"{flag} is not available with --data {options.data}")
    if options.data == "digits" and any(METHODS[n].is_deep for n in selected(options.methods)):
        given.setdefault("parts", "halves")  # quadrants take long with networks: six pairs of views
    try:
        cases = example_data(options.data, **given)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    run_cases(cases, options, lambda _: _NEXT_STEP)
