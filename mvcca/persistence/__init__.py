"""Models and searches in files, written whole or not at all.

Models are arrays and plain parameters, never pickle, and are checked when they are read.
"""

from typing import TYPE_CHECKING

from mvcca.machine.archive import ModelFileError
from mvcca.machine.on_access import on_access
from mvcca.persistence._description import describe

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from mvcca.persistence._models import load, save
    from mvcca.persistence._resumable import resumable
else:  # `describe` does without scikit-learn
    __getattr__ = on_access(__name__, {"_models": ("load", "save"), "_resumable": ("resumable",)})

__all__ = [
    "ModelFileError",
    "describe",
    "load",
    "resumable",
    "save",
]
