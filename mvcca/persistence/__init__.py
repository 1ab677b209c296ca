"""Models in files: arrays and plain parameters, never pickle, whole and checked or not at all."""

from mvcca._archive import ModelFileError
from mvcca.persistence._models import load, save

__all__ = ["ModelFileError", "load", "save"]
