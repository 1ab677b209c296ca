"""Models and searches in files, written whole or not at all.

Models are arrays and plain parameters, never pickle, and are checked when they are read.
"""

from mvcca.machine.archive import ModelFileError
from mvcca.persistence._description import describe
from mvcca.persistence._models import load, save
from mvcca.persistence._resumable import resumable

__all__ = [
    "ModelFileError",
    "describe",
    "load",
    "resumable",
    "save",
]
