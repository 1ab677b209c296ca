"""Migration of stored vectors: a map from an old embedding model to a new one, and what it keeps.

A sample of items that both models embedded gives the map. Its quality is measured where the map
will be used: queries of the new model search all stored rows, under a map that was fitted without
the query's own pair.
"""

from mvcca.interop.migration.fit import Migration, fit_migration

__all__ = ["Migration", "fit_migration"]
