"""`mvcca methods`: list the methods that `mvcca compare` and `mvcca fit` know by name."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.console import show
from mvcca.comparison.registry import METHODS, listing


def run(options: Namespace) -> None:
    """Run the command."""
    facts = {
        name: {"title": m.title, "summary": m.summary, "learns_from": m.learns_from}
        for name, m in METHODS.items()
    }
    show(options, f"method [what it learns from]\n{listing()}", facts)
