"""Physical memory, for checks of memory estimates before allocation."""

from __future__ import annotations

import os


def memory_bytes() -> float:
    """Physical memory of this machine; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
