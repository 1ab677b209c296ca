"""`mvcca info`: what a model file holds."""

from __future__ import annotations

import json
from argparse import Namespace

from mvcca.cli.models import describe, facts
from mvcca.cli.terminal import printable

__all__ = ["run"]


def run(options: Namespace) -> None:
    """Run the command."""
    found = facts(options.model)
    print(json.dumps(found, indent=2) if options.json else printable(describe(found)))
