"""Covariances between views as operators: leading directions by products with the rows only.

For views too wide for a matrix over all features. Sparse rows in memory are multiplied by one
vector at a time, with ARPACK, which needs fewest products in all. Others are multiplied by blocks
of vectors, with a Krylov space, which needs fewest passes over rows in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from mvcca.machine.lapack import top_singular
from mvcca.machine.warnings import warn
from mvcca.problem._krylov import Krylov
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.directions import Directions
from mvcca.problem.whitener import Scaling

_MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class CrossCovariance:
    """Covariances Σ_pq = X̄_pᵀX̄_q of the columns of all views in given units.

    Attributes
    ----------
    rows : mapping of str to CentredRows
        X̄_p of every view, paired.
    units : mapping of str to Scaling
        Units of the columns, by which weights of unit length are multiplied.
    """

    rows: Mapping[str, CentredRows]
    units: Mapping[str, Scaling]

    def scores(self, name: str, W: np.ndarray) -> np.ndarray:
        """Scores of the rows of a view by weights W in its units, (n_rows, k)."""
        return self.rows[name].forward(self.lift(name, W))

    def cross(self, name: str, scores: np.ndarray) -> np.ndarray:
        """Covariances of the columns of a view, in their units, with scores, (n_features, k)."""
        return self.lift(name, self.rows[name].backward(scores))

    def lift(self, name: str, W: np.ndarray) -> np.ndarray:
        """Weights of the columns, from those of columns in their units."""
        scale = self.units[name].scale
        return W if (scale == 1).all() else scale[:, None] * W

    def between(self) -> LinearOperator:
        """Σ_pq of the first two views."""
        p, q = list(self.rows)[:2]
        return _operator(
            (self.rows[p].n_features, self.rows[q].n_features),
            lambda V: self.cross(p, self.scores(q, V)),
            lambda U: self.cross(q, self.scores(p, U)),
        )

    def stacked(self) -> LinearOperator:
        """Σ_pq of all views beside and below each other, with zeros in place of Σ_pp."""
        edges = np.cumsum([0, *(own.n_features for own in self.rows.values())])

        def product(W: np.ndarray) -> np.ndarray:
            parts = np.split(W, edges[1:-1])
            of_each = {n: self.scores(n, own) for n, own in zip(self.rows, parts, strict=True)}
            total = sum(of_each.values())
            return np.vstack([self.cross(name, total - own) for name, own in of_each.items()])

        return _operator((edges[-1], edges[-1]), product, product)

    def directions(
        self, n_components: int, ranks: Mapping[str, int], most_steps: int | None = None
    ) -> Directions | None:
        """Solve Σ_{q≠p} Σ_pq w_q = σ w_p for the largest σ; weights of each view in its units.

        Parameters
        ----------
        n_components : int
            How many components are wanted.
        ranks : mapping of str to int
            Upper bounds of the ranks of the views.
        most_steps : int, optional
            Blocks of vectors after which to return None if the components have not converged; by
            default to warn of it.
        """
        by_size = sorted(ranks.values())
        limit = by_size[0] if len(ranks) == 2 else sum(by_size[:-1])
        k = min(n_components, limit)
        found = self._top(k, most_steps)
        if found is None:
            return None
        values, weights = found
        eps = np.finfo(float).eps
        real = int(np.sum(values > 10 * max(ranks.values()) * eps * values.max(initial=0)))
        kept = min(real, k)
        lifted = {name: self.lift(name, W[:, :kept]) for name, W in weights.items()}
        bound = kept if kept < n_components else limit
        return Directions(values[:kept], lifted, bound, dict(ranks))

    def _top(
        self, k: int, most_steps: int | None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]] | None:
        names = list(self.rows)
        is_pair = len(names) == 2
        operator = self.between() if is_pair else self.stacked()
        if self._is_cheap_by_vector() and k < min(operator.shape) - 1:
            if is_pair:
                U, values, V = top_singular(operator, k)
                return values, {names[0]: U, names[1]: V}
            v0 = np.random.RandomState(0).standard_normal(operator.shape[0])
            values, vectors = eigsh(operator, k, which="LA", v0=v0)
            return values[::-1], self._split(vectors[:, ::-1])
        adjoint = operator.rmatmat if is_pair else None
        space = Krylov(operator.matmat, adjoint, operator.shape[1], k)
        if not space.grow(most_steps or _MOST_STEPS):
            if most_steps is not None:
                return None
            from sklearn.exceptions import ConvergenceWarning

            warn(
                f"Components have a residual of {space.residual:.1e} of the largest after "
                f"{_MOST_STEPS} steps: their values are right to about "
                f"{max(0, int(-2 * np.log10(space.residual)))} digits, and the last ones may mix "
                "with others nearly as large. Fit fewer components, or more rows.",
                ConvergenceWarning,
            )
        if is_pair:
            U, values, V = space.singular()
            return values, {names[0]: U, names[1]: V}
        values, vectors = space.eigen()
        return values, self._split(vectors)

    def _split(self, vectors: np.ndarray) -> dict[str, np.ndarray]:
        """Eigenvectors by view, with a mean squared length of 1, as singular vectors have."""
        edges = np.cumsum([own.n_features for own in self.rows.values()])[:-1]
        parts = np.split(vectors * np.sqrt(len(self.rows)), edges)
        return dict(zip(self.rows, parts, strict=True))

    def _is_cheap_by_vector(self) -> bool:
        blocks = [own.block for own in self.rows.values()]
        return all(block.is_sparse and not block.is_lazy for block in blocks)


def _operator(shape: tuple[int, int], product: Any, adjoint: Any) -> LinearOperator:
    return LinearOperator(
        shape,
        matvec=lambda v: product(v.reshape(-1, 1)),
        rmatvec=lambda u: adjoint(u.reshape(-1, 1)),
        matmat=product,
        rmatmat=adjoint,
        dtype=np.float64,
    )
