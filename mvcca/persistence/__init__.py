"""Models in files: arrays and plain parameters, never pickle, whole and checked or not at all."""

from mvcca._archive import ModelFileError
from mvcca.persistence._description import describe
from mvcca.persistence._models import load, save
from mvcca.persistence._resumable import resumable

__all__ = ["ModelFileError", "describe", "load", "resumable", "save"]
