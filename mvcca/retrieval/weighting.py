"""Weightings: how scores of views become rows to compare, by the correlations of their components.

A weighting makes two kinds of rows, those of queries and those of items, whose similarity ranks the
items. A new one is a function of the fitted model here, and a line of `_BY_NAME`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.blocks import namespace, placed
from mvcca.measures import unit_rows
from mvcca.problem import LARGEST_CORRELATION, component_weights
from mvcca.retrieval.similarity import Cosine, InnerProduct, similarity_of

Weighting = str  # a name of WEIGHTINGS, "correlation^P", or "auto"


@dataclass(frozen=True, eq=False)
class Weighted:
    """Scores times a factor for each component, and the similarity of the rows that result."""

    similarity: InnerProduct
    factors: np.ndarray | None = None  # (k,)

    is_by_target = False  # whether queries depend on the views that they search

    def of_view(self, name: str, scores: Any) -> Any:
        """Rows of one view, from its scores."""
        return scores if self.factors is None else scores * placed(self.factors, scores)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Rows to query the given views with, as in `summed`, from rows of single views."""
        if len(rows) == 1 and places is None and not normalize:
            return next(iter(rows.values()))
        return summed(rows, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Rows to rank, from rows of single views."""
        return summed(rows, normalize=normalize)


@dataclass(frozen=True, eq=False, kw_only=True)
class LikelihoodRatio(Weighted):
    """Log-likelihood ratio of "these rows show the same object", if views are jointly Gaussian.

    With scores a of view p and b of view q in units of their standard deviations, and the
    correlations ρ of these two views, it is the inner product of the vectors

        query  (w a, e_p, -Σ_i v_i a_i² / 2 - Σ_i log(1 - ρ_i²) / 2),
        item   (b, (-Σ_i v_i b_i² / 2 for every view p), 1),

    w = ρ / (1 - ρ²), v = ρ² / (1 - ρ²). Item vectors do not depend on the view of the query, whose
    unit vector e_p selects the term of its correlations. Queries of several views are added, which
    adds their ratios; so does setting the vectors of several target views side by side.
    """

    views: tuple[str, ...]
    correlations: np.ndarray  # (n_views, n_views, k)
    deviations: Mapping[str, np.ndarray]  # (k,)

    is_by_target = True

    def of_view(self, name: str, scores: Any) -> Any:
        """Item vectors of a view's scores, (n_rows, k + n_views + 1)."""
        xp, deviations = namespace(scores), self.deviations[name]
        units = np.divide(1, deviations, out=np.zeros_like(deviations), where=deviations > 0)
        scores = scores * placed(units, scores)
        rho = self.correlations[self.views.index(name)]
        terms = (scores * scores) @ placed((rho**2 / (1 - rho**2)).T / -2, scores)
        return xp.concat([scores, terms, xp.ones_like(terms[:, :1])], axis=1)

    def queries(
        self,
        rows: Mapping[str, np.ndarray],
        targets: tuple[str, ...],
        places: Mapping[str, np.ndarray] | None = None,
        n_queries: int | None = None,
        normalize: bool = False,
    ) -> np.ndarray:
        """Query vectors from item vectors, added over the views of the queries."""
        vectors = {name: self._queries_of(name, own, targets) for name, own in rows.items()}
        return summed(vectors, places, n_queries, normalize)

    def items(self, rows: Mapping[str, np.ndarray], normalize: bool = False) -> np.ndarray:
        """Item vectors of all target views side by side."""
        return np.hstack(list(rows.values()))

    def _queries_of(self, name: str, rows: np.ndarray, targets: tuple[str, ...]) -> np.ndarray:
        p, n = self.views.index(name), len(self.views)
        parts = []
        for q in map(self.views.index, targets):
            rho = self.correlations[p, q]
            queries = np.zeros_like(rows)
            queries[:, : -n - 1] = rows[:, : -n - 1] * (rho / (1 - rho**2))
            queries[:, p - n - 1] = 1
            queries[:, -1] = rows[:, q - n - 1] - np.log1p(-(rho**2)).sum() / 2
            parts.append(queries)
        return np.hstack(parts)


def summed(
    rows: Mapping[str, np.ndarray],
    places: Mapping[str, np.ndarray] | None = None,
    n_objects: int | None = None,
    normalize: bool = False,
) -> np.ndarray:
    """Sum rows of each object over the views that show it, (n_objects, n_components)."""
    # Without `places`, the object of each row by view, row i of every view shows object i. Sums of
    # objects that no view shows are 0.
    widths = {name: block.shape[1] for name, block in rows.items()}
    if len(set(widths.values())) > 1:
        raise ValueError(f"Views must be projected into one space, got widths {widths}.")
    first = next(iter(rows.values()))
    n_objects = len(first) if places is None else n_objects
    total = np.zeros((n_objects or 0, first.shape[1]), np.result_type(*rows.values()))
    for name, block in rows.items():
        seen = slice(None) if places is None else places[name]
        total[seen] += unit_rows(block) if normalize else block
    return total


def _likelihood(model: Any) -> Weighted:
    correlations = np.clip(model.expected_correlations_by_pair_, 0, LARGEST_CORRELATION)
    return LikelihoodRatio(
        similarity_of("inner"),
        views=model.view_names_,
        correlations=correlations,
        deviations=model.expected_deviations_,
    )


def _profile_likelihood(model: Any) -> Weighted:
    rho = np.minimum(model.expected_correlations_, LARGEST_CORRELATION)
    return Weighted(Cosine(rho), component_weights(rho))


def _likelihood_cosine(model: Any) -> Weighted:
    return Weighted(Cosine(), component_weights(model.expected_correlations_))


def _correlation(model: Any, power: float = 1.0) -> Weighted:
    return Weighted(Cosine(), model.expected_correlations_**power)


_BY_NAME: dict[str, Callable[..., Weighted]] = {
    "likelihood": _likelihood,
    "profile-likelihood": _profile_likelihood,
    "likelihood-cosine": _likelihood_cosine,
    "correlation": _correlation,
}
WEIGHTINGS = tuple(_BY_NAME)


def weighting_of(name: str, model: Any) -> Weighted:
    """The weighting of that name by the correlations of a fitted estimator.

    Raises
    ------
    ValueError
        If the name is unknown or the estimator has no correlations.
    """
    power = checked_weighting(name)
    needed = "expected_deviations_" if name == "likelihood" else "expected_correlations_"
    if not hasattr(model, needed):
        if hasattr(model, "fit"):
            check_is_fitted(model)
        raise ValueError(
            f"weighting={name!r} needs an estimator with correlations; {type(model).__name__} has "
            f"no {needed}. Leave weighting at 'auto', or fit CCA, MVCCA, KCCA or a deep estimator "
            "that ends in CCA."
        )
    return _BY_NAME[name](model) if power is None else _correlation(model, power)


def checked_weighting(name: str) -> float | None:
    """P of "correlation^P", 1 of "correlation"; None for another weighting.

    Raises
    ------
    ValueError
        If the name is unknown or the power no number of at least 0.
    """
    kind, hat, power = name.partition("^")
    if kind == "correlation":
        try:
            value = float(power) if hat else 1.0
        except ValueError:
            value = -1.0
        if 0 <= value < np.inf:
            return value
    elif not hat and kind in WEIGHTINGS:
        return None
    raise ValueError(
        f"Expected weighting to be 'auto', None, one of {list(WEIGHTINGS)} or 'correlation^P' with "
        f"a power P of at least 0, got {name!r}."
    )
