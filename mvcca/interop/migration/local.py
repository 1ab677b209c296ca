"""Local maps: what a ridge map misses, learned anew for each cluster of old rows.

An affine map is the same everywhere. Where the new model bends the space of the old one, its
residuals follow the old rows of a neighborhood; a ridge regression for each cluster learns that.
"""

from __future__ import annotations

import numpy as np

from mvcca.interop.migration.maps import NEW, OLD, ridge_map, ridges_of
from mvcca.interop.migration.measured import best_ridge
from mvcca.interop.row_maps import CentredMap, LocalMaps
from mvcca.linear.ridges import Ridges
from mvcca.statistics import Moments
from mvcca.views import Views

_REGS = np.geomspace(1e-2, 1e4, 13).tolist()  # in units of the mean variance within a cluster
_ROWS_PER_CLUSTER, _MOST_CLUSTERS = 150, 16
_CLUSTERED_ROWS = 20_000


def local_maps(old: np.ndarray, new: np.ndarray, ridges: Ridges, reg: float) -> LocalMaps | None:
    """Ridge maps of the residuals of each cluster, added to the ridge map of all pairs.

    The residuals are those of pairs left out of the ridge map, and their regressions have one ridge
    in common, with the smallest squared error of pairs left out of these, too. None if no ridge
    makes it smaller than that of the ridge map alone, or if the pairs are too few for two clusters.
    """
    n_clusters = min(_MOST_CLUSTERS, len(old) // _ROWS_PER_CLUSTER)
    if n_clusters < 2:
        return None
    old, new = old.astype(float), new.astype(float)
    left_out = new - ridges.left_out(reg, old, new)
    centers = _centers(old, n_clusters)
    own = LocalMaps(centers, ()).nearest(old)
    clusters = [np.flatnonzero(own == number) for number in range(n_clusters)]
    if min(map(len, clusters)) < 2:
        return None
    parts = [
        (ridges_of(Moments.of(Views({OLD: old[rows], NEW: left_out[rows]}))), rows)
        for rows in clusters
    ]

    def error(reg: float, cluster: int) -> float:
        part, rows = parts[cluster]
        y = left_out[rows]
        return _squared(y - part.left_out(reg, old[rows], y))

    best, errors = best_ridge(_REGS, error, lambda own: -sum(own), n_folds=n_clusters)
    if sum(errors) >= _squared(left_out):
        return None
    whole = ridge_map(ridges, reg)
    maps = (_sum(whole, ridge_map(part, best)) for part, _ in parts)
    return LocalMaps(centers, tuple(maps))


def _centers(rows: np.ndarray, n_clusters: int) -> np.ndarray:
    from sklearn.cluster import KMeans

    some = rows[np.sort(np.random.default_rng(0).permutation(len(rows))[:_CLUSTERED_ROWS])]
    found = KMeans(n_clusters, n_init=1, random_state=0).fit(some)
    return np.asarray(found.cluster_centers_, dtype=float)


def _squared(rows: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", rows, rows))


def _sum(a: CentredMap, b: CentredMap) -> CentredMap:
    """The map x ↦ a(x) + b(x)."""
    offset = a.offset + b.offset + (b.center - a.center) @ a.W
    return CentredMap(b.center, a.W + b.W, offset)
