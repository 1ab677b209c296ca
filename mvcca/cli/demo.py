"""`mvcca demo`: compare methods on handwritten digits."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.compare import run_cases
from mvcca.comparison.cases import example_data

_NEXT_STEP = {"your own data": "mvcca compare --view NAME=FILE --view NAME=FILE --labels FILE"}


def run(options: Namespace) -> None:
    """Run the command."""
    run_cases(example_data(options.parts, options.labels), options, lambda _: _NEXT_STEP)
