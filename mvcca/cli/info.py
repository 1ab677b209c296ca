"""`mvcca info`: describe a model file."""

from __future__ import annotations

import json
from argparse import Namespace

from mvcca.cli.console import printable
from mvcca.cli.models import describe, facts


def run(options: Namespace) -> None:
    """Run the command."""
    found = facts(options.model)
    print(json.dumps(found, indent=2) if options.json else printable(describe(found)))
