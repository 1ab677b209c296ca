"""What the linear estimators share: ridge, the ending of every fit, scaling by power, and score."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations, permutations
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mvcca._backend import at_home, placed, precision
from mvcca.base import MultiViewEstimator
from mvcca.config import block_slices
from mvcca.labels import LabelTable, indicator_matrices
from mvcca.linalg import Rotation, Solution, Whitener, with_fixed_signs
from mvcca.linear._shrinkage import ledoit_wolf_ridge
from mvcca.measures import average_precision, column_correlations, unit_rows
from mvcca.statistics import LabelSums, Moments
from mvcca.statistics._moments import column_slices
from mvcca.validation import encode_views, is_per_view, read_labels
from mvcca.views import Views, holds_views


class LinearEstimator(MultiViewEstimator):
    """One affine map per view.

    Subclasses choose the between- and the within-view matrices; this class turns them into
    attributes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "reg": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"}), Mapping],
        "power": [Interval(Real, 0, None, closed="left")],
    }

    n_components: int
    reg: float | str | Mapping[str, float]
    _statistic: Any  # of the batches so far; None after fit
    power: float = 0.0  # a parameter of the estimators whose eigenvalues are worth weighting by

    def score(self, X: Any, y: Any = None) -> float:
        """Mean correlation of the projected views, over components and pairs of views.

        Objects seen in two views count; where there are none (unpaired views, or a single one),
        label-supervised estimators score the mean average precision of cosine ranking between the
        views instead. For other measures see `mvcca.retrieval_scorer`.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Rows to project.
        y : matrix or labels, optional
            Labels; or the second view, for an unsupervised estimator and a lone matrix X.

        Returns
        -------
        float
            Larger is better; at most 1.

        Raises
        ------
        ValueError
            If no object is seen in two views and no labels are given.
        """
        check_is_fitted(self)
        second = None if self._supervised or holds_views(X) else y
        per_view = y is not None and holds_views(X) and is_per_view(X, y)
        unpaired = per_view and not isinstance(X, Views)
        views = self._open(X, second, reset=False, unpaired=unpaired).views
        blocks = {name: at_home(self._scores(name, block)) for name, block in views.items()}
        scores = views.replace(blocks).in_memory()
        pairs = [pair for pair in combinations(views.names, 2) if _n_shared(views, *pair) > 1]
        if pairs:
            return float(np.mean([column_correlations(*_shared(scores, *pair)) for pair in pairs]))
        if y is None or not self._supervised:
            raise ValueError(
                f"{type(self).__name__}.score needs objects that are seen in two views, or labels "
                "y and a label-supervised estimator. Use mvcca.retrieval_scorer."
            )
        return _mean_average_precision(scores, y, per_view)

    def _project(self, name: str, block: Any) -> Any:
        scores = super()._project(name, block)
        if self.power:
            scores *= placed(np.maximum(self.eigenvalues_, 0) ** self.power, scores)
        return scores

    # ---- the ending of every fit ----------------------------------------------------------------

    def _reg_of_views(
        self, names: tuple[str, ...], views: Views | None, weights: np.ndarray | None = None
    ) -> dict[str, float]:
        if self.reg == "auto":
            if views is None:
                raise ValueError(
                    'reg="auto" (Ledoit-Wolf) looks at all rows at once: use fit, or give '
                    "partial_fit a number."
                )
            return {
                name: ledoit_wolf_ridge(block, _own_weights(views, name, weights))
                for name, block in views.items()
            }
        if not isinstance(self.reg, Mapping):
            return dict.fromkeys(names, float(self.reg))
        if set(self.reg) != set(names):
            raise ValueError(f"reg names the views {list(self.reg)}, expected {list(names)}.")
        for name, value in self.reg.items():
            if not (isinstance(value, Real) and 0 <= value < np.inf):
                raise ValueError(f"reg of view {name!r} must be a number >= 0, got {value!r}.")
        return {name: float(self.reg[name]) for name in names}

    def _is_first_batch(self) -> bool:
        """Whether `partial_fit` starts here; `fit` keeps no statistic of its rows to go on from."""
        if getattr(self, "_statistic", None) is not None:
            return False
        if hasattr(self, "weights_"):
            warnings.warn(
                "partial_fit starts over: fit keeps no statistic of its rows. Give all batches to "
                "partial_fit.",
                UserWarning,
                stacklevel=3,
            )
        return True

    def _with_earlier(self, statistic: Any) -> Any:
        """The statistic of this batch and of all before it."""
        earlier = getattr(self, "_statistic", None)
        return statistic if earlier is None else earlier + statistic

    def _learn(
        self,
        solution: Solution,
        means: Mapping[str, np.ndarray],
        rotations: Mapping[str, Rotation],
        variances: Mapping[str, np.ndarray],
    ) -> None:
        """Set the fitted attributes, and say where there was less to find than asked for."""
        if solution.bound == 0:
            raise ValueError(
                "The views have nothing in common: their (weighted) covariance between views is "
                "zero. Check that rows, or labels, correspond."
            )
        if solution.bound < self.n_components:
            warnings.warn(
                f"n_components={self.n_components} is more than the data can give: at most "
                f"{solution.bound}. Fitted with n_components_={solution.bound}.",
                UserWarning,
                stacklevel=3,
            )
        weights = {
            name: rotations[name].lift(w) if name in rotations else w
            for name, w in solution.weights.items()
        }
        self.weights_ = with_fixed_signs(weights, variances)
        self.means_ = {  # a rotated view has moved its mean to zero
            name: rotations[name].back(means[name])
            if name in rotations
            else means[name]
            for name in solution.weights
        }
        self.eigenvalues_ = 1 + solution.values
        self.n_components_ = len(solution.values)
        self.ranks_ = solution.ranks
        self.view_names_ = tuple(solution.weights)


def in_row_space(
    views: Views, weights: np.ndarray | None, reg: Mapping[str, float]
) -> tuple[Views, dict[str, Rotation]]:
    """Views, those with more features than rows in a basis of their rows; and the bases.

    Weights outside the span of the rows are worth nothing, with a ridge or without, and n x n
    statistics of n rows are smaller than d x d ones.
    """
    wide = {
        name: partial(Rotation.to_row_space, equilibrate=not reg[name])
        for name, block in views.items()
        if 1 < block.shape[0] < block.shape[1]
    }
    return rotate(views, weights, wide)


def rotate(
    views: Views,
    weights: np.ndarray | None,
    find: Mapping[str, Callable[[np.ndarray, np.ndarray | None], tuple[Rotation, np.ndarray]]],
) -> tuple[Views, dict[str, Rotation]]:
    """Views, those named by `find` in the basis it finds and in float64; and the bases."""
    blocks, rotations = dict(views.items()), {}
    for name, basis_of in find.items():
        block = at_home(blocks[name])
        if issparse(block):  # n x d is smaller than the d x d statistic would be
            block = block.toarray()
        block = block.astype(np.float64, copy=False)
        rotations[name], blocks[name] = basis_of(block, _own_weights(views, name, weights))
    return views.replace(blocks), rotations


def own_moments(views: Views, weights: np.ndarray | None) -> dict[str, Moments]:
    """Moments of every view by itself, over all the objects seen in it."""
    return {
        name: Moments.of(Views({name: block}), _own_weights(views, name, weights))
        for name, block in views.items()
    }


def check_distinct(table: LabelTable) -> None:
    """Labels that are all the same are an error."""
    if len(table) < 2:
        raise ValueError(
            "All rows have the same labels, so that labels tell nothing apart. Expected at least "
            "two distinct classes or label sets in y."
        )


def check_label_vectors(sums: LabelSums) -> None:
    """Labels that are all the same teach nothing; rows without labels deserve a word."""
    check_distinct(sums.table)
    empty = np.diff(sums.table.vectors.indptr) == 0 if sums.table.is_binary else np.zeros(0, bool)
    if empty.any():
        warnings.warn(
            f"{sums.counts[empty].sum():g} rows have no labels. They count as alike to each other "
            "(under cosine, to nothing); drop them if that is not meant.",
            UserWarning,
            stacklevel=4,
        )


def variances_within(
    within: Mapping[str, np.ndarray], rotations: Mapping[str, Rotation]
) -> dict[str, np.ndarray]:
    """Diagonals of the within-view matrices, of the features as they came."""
    return {
        name: rotations[name].diagonal(B) if name in rotations else np.diag(B)
        for name, B in within.items()
    }


def with_ridge(
    within: Mapping[str, np.ndarray],
    reg: Mapping[str, float],
    rotations: Mapping[str, Rotation],
    variances: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Within-view matrices with `reg` times their mean variance added to the diagonal."""
    ridged = dict(within)
    for name, B in within.items():
        if not reg[name]:
            continue
        ridge = reg[name] * variances[name].mean()
        if name in rotations:
            ridged[name] = B + ridge * rotations[name].ridge()
        else:  # a constant column stays out of the problem: its weight is 0, not nearly 0
            ridged[name] = B.copy()
            np.fill_diagonal(ridged[name], variances[name] + ridge * (variances[name] > 0))
    return ridged


def blocks_between(matrix: np.ndarray, widths: Mapping[str, int]) -> dict[tuple[str, str], Any]:
    """A_pq of every pair of views, p before q, out of the whole matrix; A_pp of a single view."""
    columns = column_slices(dict(widths))
    names = list(columns)
    pairs = list(combinations(names, 2)) or [(names[0], names[0])]
    return {(p, q): matrix[columns[p], columns[q]] for p, q in pairs}


def blocks_within(matrix: np.ndarray, widths: Mapping[str, int]) -> dict[str, np.ndarray]:
    """A_pp of every view, out of the whole matrix."""
    return {name: matrix[c, c] for name, c in column_slices(dict(widths)).items()}


def whiten(within: Mapping[str, np.ndarray]) -> dict[str, Whitener]:
    """Factorise every view's within matrix; a view that never varies is an error."""
    check_variances(within)
    return {name: Whitener.of(B) for name, B in within.items()}


def check_variances(within: Mapping[str, np.ndarray]) -> None:
    """Views whose squares overflow, or that never vary, are errors."""
    for name, B in within.items():
        check_variance(name, np.diag(B) if np.isfinite(B).all() else B)


def check_variance(name: str, variances: np.ndarray) -> None:
    """A view whose squares overflow, or that never varies, is an error."""
    if not np.isfinite(variances).all():
        raise ValueError(
            f"View {name!r} overflows: its squares exceed the largest float. Rescale it."
        )
    if not (variances > 0).any():
        raise ValueError(
            f"view {name!r} has no variance: all its rows are the same in double precision. "
            "Drop the view, or rescale it if its values are extremely small."
        )


def input_precision(views: Views) -> float:
    """Unit roundoff of the coarsest view."""
    return max(float(np.finfo(precision(block)).eps) for _, block in views.items())


def _own_weights(views: Views, name: str, weights: np.ndarray | None) -> np.ndarray | None:
    return None if weights is None else weights[views.objects(name)]


def _n_shared(views: Views, p: str, q: str) -> int:
    return int(views.select([p, q]).seen.all(axis=1).sum())


def _shared(views: Views, p: str, q: str) -> tuple[np.ndarray, np.ndarray]:
    both = views.select([p, q])
    both = both[both.seen.all(axis=1)]
    return both[p], both[q]


def _mean_average_precision(scores: Views, y: Any, per_view: bool) -> float:
    """Mean over ordered pairs of views; within a single view the query itself ranks last."""
    table, codes = encode_views(scores, read_labels(y), per_view)
    indicators = indicator_matrices(table.vectors)[0]
    names = scores.names
    unit = {name: unit_rows(np.asarray(scores[name], dtype=float)) for name in names}
    values = []
    for p, q in permutations(names, 2) if len(names) > 1 else [(names[0], names[0])]:
        gallery = indicators[codes[q]].astype(np.int32)
        for rows in block_slices(len(unit[p]), 8 * len(unit[q])):
            similarity = unit[p][rows] @ unit[q].T
            relevant = (indicators[codes[p][rows]].astype(np.int32) @ gallery.T).toarray() > 0
            if p == q:
                own = np.arange(rows.start, rows.stop)
                similarity[own - rows.start, own] = -2  # below every cosine
                relevant[own - rows.start, own] = False
            values.append(average_precision(similarity, relevant))
    return float(np.mean(np.concatenate(values)))
