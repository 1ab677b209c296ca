"""Self-learning: a model, the rows that it finds to be nearest, the model of these, and so on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.linear import CCA, Procrustes
from mvcca.machine.progress import steps
from mvcca.measures import unit_rows
from mvcca.problem.expected import profile_vectors
from mvcca.retrieval import mutual_neighbors, top_k
from mvcca.retrieval.hubs import CSLS
from mvcca.views import Views

X, Y = "x", "y"
METHODS = ("cca", "procrustes")
_OF_SEEDS = 0.5  # of all weight
_NEIGHBORS = 10
_NONE = np.empty((0, 2), dtype=np.intp)


@dataclass(frozen=True, eq=False)
class TwoSets:
    """Rows of both views, those known to belong together, and how to fit a model to pairs."""

    x: np.ndarray
    y: np.ndarray
    seeds: np.ndarray  # (n_seeds, 2), row numbers
    free_x: np.ndarray  # row numbers that pseudo-pairs may have
    free_y: np.ndarray
    method: str
    reg: float

    @property
    def free(self) -> tuple[np.ndarray, np.ndarray]:
        """Row numbers of both views that pseudo-pairs may have."""
        return self.free_x, self.free_y

    def rows(self, name: str) -> np.ndarray:
        """All rows of one view."""
        return {X: self.x, Y: self.y}[name]

    def without(self, fold: np.ndarray) -> TwoSets:
        """The same without some of the known pairs, whose rows are not free either."""
        return replace(self, seeds=np.delete(self.seeds, fold, axis=0))

    def with_method(self, method: str) -> TwoSets:
        """The same rows for another method."""
        return replace(self, method=method)

    def vectors(self, model: Any) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of all rows whose inner product compares them under a model."""
        return vectors(model, self.x, self.y)


def fitted(sets: TwoSets, pairs: np.ndarray = _NONE, tuned: bool = False) -> Any:
    """The model of the known pairs and of pseudo-pairs, each with half of the weight."""
    rows = np.concatenate([sets.seeds, pairs])
    m, n = len(sets.seeds), len(pairs)
    weights = np.ones(m + n)
    weights[:m] = shared_weights(sets.seeds)
    if m and n:
        weights[:m] *= _OF_SEEDS * (m + n) / weights[:m].sum()
        weights[m:] = (1 - _OF_SEEDS) * (m + n) / n
    views = {X: sets.x[rows[:, 0]], Y: sets.y[rows[:, 1]]}
    if sets.method == "procrustes":
        return Procrustes().fit(views, sample_weight=weights)
    if tuned:
        return CCA(None, reg="cv").fit(views, sample_weight=weights if np.ptp(weights) else None)
    return CCA(None, reg=sets.reg).fit(views, sample_weight=weights)


def shared_weights(seeds: np.ndarray) -> np.ndarray:
    """One over the number of pairs that a row of each pair is in, the larger number."""
    counts = [np.unique(own, return_inverse=True, return_counts=True)[1:] for own in seeds.T]
    return 1 / np.maximum(*(number[place] for place, number in counts))


def vectors(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of rows, in single precision: searches in double take twice the time."""
    scores = model.transform(Views.unpaired({X: x, Y: y}))
    if isinstance(model, CCA):
        # Correlations of the training pairs: what to expect of new rows is not known of guesses.
        rho = model.canonical_correlations_
        found = [profile_vectors(scores[name], rho) for name in (X, Y)]
    else:
        found = [unit_rows(scores[name]) for name in (X, Y)]
    return found[0].astype(np.float32), found[1].astype(np.float32)


def matched(sets: TwoSets, of_x: np.ndarray, of_y: np.ndarray) -> np.ndarray:
    """Free rows that are each other's nearest under CSLS, (n_pairs, 2)."""
    found, _ = mutual_neighbors(
        of_x[sets.free_x], of_y[sets.free_y], 1, "inner", hubness=_correction(sets)
    )
    return np.column_stack([sets.free_x[found[:, 0]], sets.free_y[found[:, 1]]])


def refits(
    sets: TwoSets, of_x: np.ndarray, of_y: np.ndarray, n: int
) -> list[tuple[Any, np.ndarray]]:
    """Models, each fitted to pseudo-pairs of the one before; the first to those of the vectors."""
    found: list[tuple[Any, np.ndarray]] = []
    for _ in steps(n, "Matching rows"):
        if found:
            of_x, of_y = sets.vectors(found[-1][0])
        pairs = matched(sets, of_x, of_y)
        found.append((fitted(sets, pairs), pairs))
    return found


def same_matches(sets: TwoSets, one: Any, other: Any) -> float:
    """Share of the free rows of x whose nearest row is the same under two models."""
    nearest = []
    for model in (one, other):
        of_x, of_y = sets.vectors(model)
        rows = of_x[sets.free_x], of_y[sets.free_y]
        _, found = top_k(*rows, 1, "inner", hubness=_correction(sets), bank=rows)
        nearest.append(found[:, 0])
    return float(np.mean(nearest[0] == nearest[1]))


def _correction(sets: TwoSets) -> CSLS:
    return CSLS(min(_NEIGHBORS, *map(len, sets.free)))
