"""Command line as `python -m mvcca`, for when the script `mvcca` is not on the path."""

from __future__ import annotations

import sys

from mvcca.cli import main

if __name__ == "__main__":
    sys.exit(main())
