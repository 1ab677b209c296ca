"""A first rotation between two sets of rows without any pairs.

Similarities within a set say which row is which: centres of clusters are matched so that their
similarities agree, and rows are compared by their similarities to matched centres [1]_.

References
----------
.. [1] Dar, "mini-vec2vec: Scaling Universal Geometry Alignment with Linear Transformations", 2025.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import quadratic_assignment
from sklearn.cluster import KMeans

from mvcca.machine import lapack
from mvcca.machine.progress import steps
from mvcca.measures import unit_rows
from mvcca.retrieval import top_k

_CLUSTERINGS, _CENTRES = 30, 20
_ASSIGNMENTS = 20
_NEAREST = 50
_REFINEMENTS, _REFINED_ROWS = 60, 1000


def centred(rows: np.ndarray) -> np.ndarray:
    """Rows minus their mean, scaled to length 1."""
    return unit_rows(rows - rows.mean(axis=0))


def relative_start(
    x: np.ndarray, y: np.ndarray, anchors: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """A rotation of centred rows x to rows y; `anchors` are row numbers of known pairs."""
    of_x, of_y = [x[anchors[:, 0]]], [y[anchors[:, 1]]]
    for _ in steps(_CLUSTERINGS, "Matching centres"):
        centres_x, centres_y = _centres(x, rng), _centres(y, rng)
        of_x.append(centres_x)
        of_y.append(centres_y[_assignment(centres_x, centres_y, rng)])
    relative_x = centred(x @ np.concatenate(of_x).T)
    relative_y = centred(y @ np.concatenate(of_y).T)
    return _rotation(x, _mean_of_nearest(relative_x, relative_y, y))


def refined(
    rotation: np.ndarray, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The rotation after steps towards means of the nearest rows."""
    for _ in steps(_REFINEMENTS, "Refining the rotation"):
        some = x[rng.choice(len(x), min(_REFINED_ROWS, len(x)), replace=False)]
        target = _mean_of_nearest(unit_rows(some @ rotation), y, y)
        rotation = (rotation + _rotation(some, target)) / 2
    return lapack.orthogonal_factor(rotation)


def _rotation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The rotation of rows x that is closest to rows y."""
    return lapack.orthogonal_factor(x.T @ y)


def _centres(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Centres of clusters of rows, of length 1."""
    n_centres = min(_CENTRES, len(rows) // 2)
    seed = int(rng.integers(2**31))
    return unit_rows(KMeans(n_centres, n_init=1, random_state=seed).fit(rows).cluster_centers_)


def _assignment(
    centres_x: np.ndarray, centres_y: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The centre of y for each centre of x, so that similarities among both sets agree best."""
    among_x, among_y = map(_similarities, (centres_x, centres_y))
    options = {"maximize": True, "rng": rng}
    found = max(
        (
            quadratic_assignment(among_x, among_y, options=options | {"P0": "randomized"})
            for _ in range(_ASSIGNMENTS)
        ),
        key=lambda result: result.fun,
    )
    start = np.column_stack([np.arange(len(centres_x)), found.col_ind])
    options["partial_guess"] = start
    best = quadratic_assignment(among_x, among_y, method="2opt", options=options)
    return np.asarray(best.col_ind)


def _similarities(centres: np.ndarray) -> np.ndarray:
    """Cosines of different centres with mean 0 and variance 1; 0 on the diagonal.

    The diagonal agrees under every assignment, and hides which of them is better.
    """
    cosines = centres @ centres.T
    others = ~np.eye(len(cosines), dtype=bool)
    between = cosines[others]
    cosines[others] = (between - between.mean()) / (between.std() or 1)
    np.fill_diagonal(cosines, 0)
    return np.asarray(cosines)


def _mean_of_nearest(queries: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Mean of the values of the rows nearest to each query."""
    _, nearest = top_k(queries, rows, min(_NEAREST, len(rows)), "inner")
    total = np.zeros((len(queries), values.shape[1]))
    for column in nearest.T:  # no array of all neighbours' values is held
        total += values[column]
    return total / nearest.shape[1]
