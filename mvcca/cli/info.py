"""`mvcca info`: describe a model file."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.console import show
from mvcca.cli.models import describe, facts


def run(options: Namespace) -> None:
    """Run the command."""
    found = facts(options.model)
    show(options, describe(found), found)
