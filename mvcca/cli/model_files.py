"""Files of models named on the command line, found without importing what models need."""

from __future__ import annotations

from pathlib import Path

from mvcca.cli.errors import CommandError


def model_file(name: str) -> str:
    """The name of a model file that is there."""
    path = Path(name)
    if not path.is_file():
        raise CommandError(f"{path}: not a file" if path.exists() else f"{path}: no such file")
    return name
