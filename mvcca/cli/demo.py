"""`mvcca demo`: compare methods on handwritten digits."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.compare import run_cases
from mvcca.comparison import example_data
from mvcca.comparison.registry import METHODS, selected

_NEXT_STEP = {"your own data": "mvcca compare --view NAME=FILE --view NAME=FILE --labels FILE"}


def run(options: Namespace) -> None:
    """Run the command."""
    parts = options.parts
    if parts is None and any(METHODS[name].is_deep for name in selected(options.methods)):
        parts = "halves"  # quadrants take long with networks: six pairs of views
    run_cases(example_data(parts, options.labels), options, lambda _: _NEXT_STEP)
