"""Shapes and layouts that pictures are made of: ellipses, arcs, trees and graphs. Pure NumPy."""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

_STEPS = 200  # of the layout of a graph
_APART = 1.5  # distance of parts of a graph that are not connected, beyond half the longest path
_OPTIMAL = 500  # leaves; the best order of more takes too long
_ON_ARC = 60  # points of a full circle


def ellipse(points: np.ndarray, level: float, n_points: int = 100) -> np.ndarray:
    """Outline (n_points, 2) of the ellipse that holds a share of a normal distribution.

    The distribution has the mean and covariance of the points (n, 2).
    """
    values, axes = np.linalg.eigh(np.cov(points.T))
    radii = np.sqrt(np.maximum(values, 0) * -2 * np.log1p(-level))  # quantile of χ² with 2 df
    turns = np.linspace(0, 2 * np.pi, n_points)
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    return np.asarray(points.mean(axis=0) + circle * radii @ axes.T)


def arc(start: float, stop: float, radius: float) -> np.ndarray:
    """Points (n, 2) on a circle around the origin, from one angle to another."""
    n_points = max(2, int(np.ceil(abs(stop - start) / (2 * np.pi) * _ON_ARC)))
    turns = np.linspace(start, stop, n_points)
    return radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)


def chord(start: float, stop: float, radius: float, n_points: int = 30) -> np.ndarray:
    """Points (n_points, 2) of a curve between two angles of a circle, bent to its centre."""
    ends = radius * np.array([[np.cos(turn), np.sin(turn)] for turn in (start, stop)])
    share = np.linspace(0, 1, n_points)[:, None]
    return np.asarray((1 - share) ** 2 * ends[0] + share**2 * ends[1])


def ring(sizes: list[int], gap: float = 0.12) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Angles of items in sectors of a ring, clockwise from the top, and ends of the sectors.

    `gap` is the share of the ring between sectors; empty ones have none.
    """
    n_sectors = sum(size > 0 for size in sizes)
    between = 2 * np.pi * gap / n_sectors
    step = 2 * np.pi * (1 - gap) / sum(sizes)
    lengths = [size * step + between * (size > 0) for size in sizes]
    starts = np.pi / 2 - np.cumsum([between / 2, *lengths])[:-1]
    angles = [
        start - step * (np.arange(size) + 0.5) for start, size in zip(starts, sizes, strict=True)
    ]
    ends = [(start, start - step * size) for start, size in zip(starts, sizes, strict=True)]
    return np.concatenate(angles), ends


def tree(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Order of rows (n, d) in a tree of complete linkage, and the lines (n - 1, 4, 2) of the tree.

    Lines go over the place of a row in the order, from 0, and the distance at which rows are
    joined, at most 1.
    """
    if len(rows) < 2:
        return np.arange(len(rows)), np.empty((0, 4, 2))
    joined = linkage(rows, "complete", optimal_ordering=len(rows) <= _OPTIMAL)
    found = dendrogram(joined, no_plot=True)
    heights = np.array(found["dcoord"]) / max(joined[-1, 2], np.finfo(float).tiny)
    places = np.array(found["icoord"]) / 10 - 0.5  # SciPy puts leaves at 5, 15, ...
    return np.array(found["leaves"]), np.stack([places, heights], axis=2)


def graph_layout(pairs: np.ndarray, n_nodes: int) -> np.ndarray:
    """Positions (n_nodes, 2) whose distances are close to those of paths in a graph.

    Stress majorization of the edges (n_pairs, 2), from a circle, by Gansner, Koren and North,
    "Graph drawing by stress majorization", 2004.
    """
    turns = 2 * np.pi * np.arange(n_nodes) / n_nodes
    places = np.stack([np.cos(turns), np.sin(turns)], axis=1) * np.sqrt(n_nodes)
    if n_nodes < 3:
        return places
    edges = csr_array((np.ones(len(pairs)), tuple(pairs.T)), (n_nodes, n_nodes))
    wanted = shortest_path(edges, directed=False, unweighted=True)
    connected = np.isfinite(wanted)
    wanted[~connected] = wanted[connected].max() / 2 + _APART
    np.fill_diagonal(wanted, 1)
    weights = wanted**-2.0
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=0)) - weights)
    for _ in range(_STEPS):
        apart = places[:, None] - places
        distances = np.maximum(np.linalg.norm(apart, axis=2), 1e-9)
        pull = weights * wanted / distances
        places = inverse @ (np.diag(pull.sum(axis=0)) - pull) @ places
    return np.asarray(places)
