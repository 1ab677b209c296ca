"""Memory of this machine, for estimates that are checked before anything is allocated."""

from __future__ import annotations

import os


def memory_bytes() -> float:
    """Physical memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
