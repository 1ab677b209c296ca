"""Whether two halves of the rows give the same components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator

from mvcca.inspection._correlations import loadings, projected
from mvcca.inspection._rows import positions_of, views_of
from mvcca.machine.axes import literal, tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.measures import column_correlations
from mvcca.model_selection.folds import splits_by_object
from mvcca.views.typing import MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEWEST_VARIABLES = 3  # whose loadings have a correlation other than 1
_HEADER = ("view", "component", "weights", "weights_low", "loadings", "loadings_low")


@dataclass(frozen=True, eq=False)
class Stability(Result):
    """Agreement of the components of two halves of the rows, over many splits.

    Printed as a table of medians, and of the 5th percentiles of the splits. ``to_frame`` has a row
    per view and component, numbered from 1: weights, weights_low, loadings and loadings_low.

    Attributes
    ----------
    weights : dict of str to ndarray, shape (n_splits, k)
        By view name, absolute cosine of the weight vectors of the two halves in the metric of the
        view's covariance: the absolute correlation of their scores over all rows.
    loadings : dict of str to ndarray, shape (n_splits, k)
        Absolute correlation over the variables of the loadings of the two halves; NaN for views of
        fewer than three variables.
    """

    weights: dict[str, np.ndarray]
    loadings: dict[str, np.ndarray]

    def tables(self) -> list[Table]:
        """Return the table of medians and 5th percentiles."""
        n_splits = len(next(iter(self.weights.values())))
        note = f"Medians and 5th percentiles over {n_splits} splits into halves."
        return [Table.of("Agreement of two halves of the rows", _HEADER, self._rows(), [note])]

    def figures(self) -> dict[str, Draw]:
        """Return the figure of medians and 5th percentiles of the agreement of weights."""
        return {"Agreement of weights": Draw(self._draw)}

    def _draw(self, ax: Axes | None) -> Axes:
        ax = tidy_axes(ax, grid="y")
        for name, found in self.weights.items():
            place = np.arange(1, found.shape[1] + 1)
            low, middle = np.percentile(found, [5, 50], axis=0)
            ax.errorbar(
                place, middle, [middle - low, 0 * low], fmt="o", capsize=3, label=literal(name)
            )
        ax.set(xlabel="Component", ylabel="|cos| of weights of two halves", ylim=(0, 1.02))
        ax.legend()
        return ax

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for name, of_weights in self.weights.items():
            of_loadings = self.loadings[name]
            for i in range(of_weights.shape[1]):
                found = (
                    float(np.percentile(values[:, i], share))
                    for values in (of_weights, of_loadings)
                    for share in (50, 5)
                )
                yield (name, i + 1, *found)


def stability(
    estimator: Any,
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    cv: int | BaseCrossValidator | Iterable[Any] = 20,
    sample_weight: Any = None,
    random_state: Any = None,
) -> Stability:
    """Compare the components that an estimator finds in two halves of the rows.

    Clones of the estimator are fitted on both halves of each split. A component that another
    sample would show again has values near 1; weights of correlated features can differ where
    loadings agree. Components are compared in order: two that change places count as unstable,
    since a single sample would not tell which is which.

    Parameters
    ----------
    estimator : estimator
        Any model that can be cloned, and whose ``transform`` maps `mvcca.views.Views` to `Views`,
        such as `CCA` or a pipeline that ends with it. It need not be fitted.
    X : Views, mapping, list of matrices, or matrix
        Rows of the views.
    y : matrix, optional
        The second view, if X is a single matrix.
    cv : int, splitter or iterable of (half, half), default=20
        Number of random splits into halves, or splits such as those of
        ``GroupShuffleSplit(test_size=0.5)`` if rows depend on each other.
    sample_weight : array-like of int, shape (n_rows,), optional
        How often each row occurs: 2 is two rows, 0 none. Halves keep the copies of a row together.
    random_state : int, RandomState or None, default=None
        Seed of the random splits.

    Returns
    -------
    Stability

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import stability
    >>> views = make_gaussian_views(400, correlations=(0.9, 0.1), random_state=0).views
    >>> found = stability(CCA(2), views, random_state=0)
    >>> first, second = found.weights["view0"].mean(axis=0)
    >>> bool(first > 0.95 > second)
    True
    """
    views = views_of(X, y)
    positions = positions_of(sample_weight, views)
    if sample_weight is not None:
        views = views[positions]
    splits = [*splits_by_object(positions, cv, random_state, halves=True)]
    of_weights: dict[str, list[np.ndarray]] = {name: [] for name in views.names}
    of_loadings: dict[str, list[np.ndarray]] = {name: [] for name in views.names}
    if getattr(estimator, "scale", None) == "auto" and "cv" not in vars(estimator).values():
        # All rows decide which views to standardize, and halves keep it.
        scale = getattr(clone(estimator).fit(views), "scale_", "auto")
        estimator = clone(estimator).set_params(scale=scale)
    for halves in splits:
        models = [clone(estimator).fit(views[half]) for half in halves]
        scores = [projected(model, views, None)[1] for model in models]
        pairs = zip(models, halves, strict=True)
        agree = agreement(*(loadings(model, views[half]) for model, half in pairs))
        for name in views.names:
            first, second = (own[name] for own in scores)
            k = min(first.shape[1], second.shape[1])
            of_weights[name].append(np.abs(column_correlations(first[:, :k], second[:, :k])))
            of_loadings[name].append(agree[name])
    return Stability(
        {name: stacked(values) for name, values in of_weights.items()},
        {name: stacked(values) for name, values in of_loadings.items()},
    )


def stacked(found: Sequence[np.ndarray]) -> np.ndarray:
    """Values of the components (k,) that every split has, (n_splits, k)."""
    k = min(map(len, found))
    return np.array([own[:k] for own in found])


def agreement(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Absolute correlation over the variables of two loadings of each view, (k,).

    NaN for views of fewer than three variables.
    """
    found = {}
    for name, own in first.items():
        k = min(own.shape[1], second[name].shape[1])
        pair = (np.nan_to_num(loadings[:, :k]) for loadings in (own, second[name]))
        few = len(own) < _FEWEST_VARIABLES
        found[name] = np.full(k, np.nan) if few else np.abs(column_correlations(*pair))
    return found
