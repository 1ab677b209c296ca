"""Change of the embedding model: maps of stored vectors or of queries, and what they keep.

A sample of items that both models embedded gives the map. Its quality is measured where the map
will be used: queries of the new model search all stored rows, under a map that was fitted without
the query's own pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mvcca.interop.migration.result import CurvePoint, Drift, Migration
from mvcca.machine.on_access import on_access

if TYPE_CHECKING:
    from mvcca.interop.migration.fit import fit_migration

__all__ = ["CurvePoint", "Drift", "Migration", "fit_migration"]

__getattr__ = on_access(__name__, {"fit": ["fit_migration"]})  # to map rows takes no scikit-learn
