"""Names on the command line, compared with what a script knows once it has imported it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence


def names_in(names: Sequence[str] | None, known: Collection[str]) -> list[str]:
    """The names, or all known ones without any; leaves the program if one is unknown."""
    names = list(names or known)
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"unknown: {', '.join(unknown)}; expected some of: {', '.join(known)}")
    return names
