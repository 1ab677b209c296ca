"""Change of the embedding model: maps of stored vectors or of queries, and what they keep.

A sample of items that both models embedded gives the map. Its quality is measured where the map
will be used: queries of the new model search all stored rows, under a map that was fitted without
the query's own pair.
"""

from mvcca.interop.migration.fit import fit_migration
from mvcca.interop.migration.result import CurvePoint, Drift, Migration

__all__ = ["CurvePoint", "Drift", "Migration", "fit_migration"]
