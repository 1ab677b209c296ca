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
        views = migration.views
        uses = [f"--view {name}=FILE ({n} features)" for name, n in views.items()]
        text = (
            f"{file}: migration of {migration.direction}; `mvcca transform` maps "
            f"{' and '.join(uses)}\n{migration}"
        )
        show(options, text, {"file": file, "views": views} | migration.as_dict())
    else:
        found = describe(file)
        show(options, str(found), found)
