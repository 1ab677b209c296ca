"""`mvcca info`: describe a file of a model or of a migration."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.console import show
from mvcca.cli.model_files import model_file
from mvcca.machine.archive import kind_of
from mvcca.persistence import describe


def run(options: Namespace) -> None:
    """Run the command."""
    file = model_file(options.model)
    if kind_of(file) == "migration":
        from mvcca.interop.migration import Migration

        migration = Migration.load(file)
        text = f"{file}: migration of {migration.direction}\n{migration}"
        show(options, text, {"file": file} | migration.as_dict())
    else:
        found = describe(file)
        show(options, str(found), found)
