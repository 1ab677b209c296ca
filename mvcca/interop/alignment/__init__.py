"""Alignment of two sets of vectors of which few rows, or none, are known to belong together.

A model is fitted to the known pairs, or to a first guess. Rows that are each other's nearest under
it become pseudo-pairs, to which the next model is fitted, and so on. Folds of known pairs decide
whether that helps; without known pairs the result is tested, and a warning says if it failed.
"""

from typing import TYPE_CHECKING

from mvcca.interop.alignment.fit import align_unpaired
from mvcca.interop.alignment.result import Alignment, AlignmentStep
from mvcca.machine.on_access import on_access

__all__ = ["Alignment", "AlignmentStep", "align_unpaired"]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
