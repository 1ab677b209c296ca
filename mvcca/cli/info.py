"""`mvcca info`: describe a model file."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.console import show
from mvcca.cli.inputs import model_file
from mvcca.persistence import describe


def run(options: Namespace) -> None:
    """Run the command."""
    found = describe(model_file(options.model))
    show(options, str(found), found)
