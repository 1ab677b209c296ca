"""Warnings that point to the user's line that called into the package, at any call depth."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as `warnings.warn` does, for the line outside the package that led to this call.

    Python 3.12's `skip_file_prefixes` would name a line of torch or scikit-learn if one of these
    lies between two frames of this package.
    """
    level = outermost = 1
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_code.co_filename.startswith(_PACKAGE):
            outermost = level
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=outermost + 1)
