"""Remove confounds from views by linear regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Options, StrOptions
from sklearn.utils.validation import check_is_fitted

from mvcca.base.fitted_views import check_fitted_views
from mvcca.base.inputs import forget
from mvcca.blocks import Block, as_block, to_host
from mvcca.blocks.checks import column_labels
from mvcca.machine.config import block_slices
from mvcca.machine.documentation import Documented
from mvcca.problem.confounds import least_left, regression_on, second_degree
from mvcca.views import Views, as_views
from mvcca.views.coding import coded_view
from mvcca.views.output import OutputContainerMixin
from mvcca.views.typing import ViewsLike
from mvcca.views.validation import (
    check_confounds_known,
    checked_sample_weight,
)

_FEW = 64  # rows that nearly always show that confounds explain no column completely


class LessExplained(OutputContainerMixin, Documented, BaseEstimator):
    """Base of steps that subtract from all views what one of them explains."""

    view_names_: tuple[str, ...]

    def _note(self, views: Views, columns: Mapping[str, Any]) -> None:
        """Note names and widths of the views of a fit."""
        forget(self)
        self.view_names_, self._widths, self._columns = views.names, views.widths, columns
        self.n_features_in_ = views.shape[1]

    def _check_given(self, parameter: str, views: Views) -> None:
        """Refuse views without the one that a parameter names."""
        name = getattr(self, parameter)
        if name not in views:
            raise ValueError(
                f"{type(self).__name__}({parameter}={name!r}) needs the view {name!r} beside the "
                f"others, in fit and in transform. Got the views {list(views.names)}."
            )


class Deconfound(LessExplained):
    r"""Remove confounds, such as age or scanner, from all other views.

    Rows x of a view become residuals of their regression on the confounds z of the same object,

    .. math:: x - m_x - B_x^⊤ (z - m_z), \qquad B_x = S_{zz}^+ S_{zx},

    with the means and coefficients of the training rows. In a pipeline, held-out rows therefore
    never take part in the regression; residuals computed before a cross-validation leak.
    Missing cells of views (NaN) stay missing; the regression of their column is that of the rows
    that have it. The confounds must be complete.

    Parameters
    ----------
    confounds : str
        Name of the view of the confounds. In a DataFrame, columns of text and of categories become
        indicators of every level but the first; levels that were not fitted are refused.
    views : list of str, optional
        Views to remove them from, by default all others. The other views stay as they are, such as
        one with other confounds, which another step removes.
    degree : {1, 2, "squares"}, default=1
        What to remove beside the confounds: nothing, their squares and the products of all pairs,
        or their squares only. Age × sex can act on both views when age and sex are removed.
    drop : bool, default=True
        Whether to leave the confounds out of the result.

    Attributes
    ----------
    coefficients_ : dict of str to ndarray, shape (n_confounds, n_features)
        B, by view; squares and products follow the confounds.
    means_ : dict of str to ndarray, shape (n_features,)
        Means of the training rows, by view.
    coding_ : dict of str to list or None
        Levels of each column of a table of confounds, the reference first; None for numbers. Empty
        if the confounds have no names of columns.
    rank_ : int
        Number of independent confounds, squares and products included. Constant and collinear ones
        count once.
    view_names_ : tuple of str
        The fitted views, confounds included.
    n_features_in_ : int
        Total number of features of all views.

    See Also
    --------
    mvcca.CCA : Its parameter `confounds` gives the same as a step before it, keeps sparse rows
        sparse, and repeats the regression in the folds of ``reg="cv"``.
    RankGaussian : Normal scores of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from mvcca import KCCA, Views
    >>> from mvcca.compose import Deconfound
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(size=(200, 1))
    >>> noise = rng.normal(size=(2, 200, 3))
    >>> views = Views({"brain": age + noise[0], "behaviour": age + noise[1], "age": age})
    >>> Deconfound("age").fit_transform(views)
    Views(200 objects, brain: 3, behaviour: 3)
    >>> model = make_pipeline(Deconfound("age"), KCCA(2, reg=1.0)).fit(views[:150])
    >>> model.transform(views[150:])["brain"].shape
    (50, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "confounds": [str],
        "views": [list, tuple, None],
        "degree": [Options(Integral, {1, 2}), StrOptions({"squares"})],
        "drop": ["boolean"],
    }
    _rounding: Mapping[str, np.ndarray] | None = None  # models of older versions have none
    _removed: Mapping[str, tuple[float, float]] | None = None  # nor this

    def __init__(
        self,
        confounds: str,
        *,
        views: Sequence[str] | None = None,
        degree: int | str = 1,
        drop: bool = True,
    ) -> None:
        self.confounds = confounds
        self.views = views
        self.degree = degree
        self.drop = drop

    def fit(self, X: ViewsLike, y: Any = None, sample_weight: Any = None) -> Self:
        """Regress the views on the confounds.

        Parameters
        ----------
        X : Views, mapping or list of matrices
            Views of the same objects, the confounds among them. Objects may be missing from other
            views.
        y : None
            Ignored.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are no such confounds, they are missing for an object or explain all rows; if
            a view is sparse or holds infinity, or a column is seen in too few rows.
        """
        self._validate_params()
        views = as_views(X)
        self._check_confounds(views)
        views, coding = coded_view(views, self.confounds)
        columns = {name: column_labels(block) for name, block in views.items()}
        views = self._checked(views, minimum=2)
        weights, z = None, self.confounds
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, views, reset=True)
            if not weights.all():
                views, weights = views[weights > 0], weights[weights > 0]
        mean = to_host(views.block(z).column_means(weights))
        design = views.replace(dict(views.items()) | {z: self._design(views.block(z), mean)})
        if self.views is not None:
            if not self.views or not {*self.views} <= {*views.names} - {z}:
                others = [name for name in views.names if name != z]
                raise ValueError(f"Expected views to be some of {others}, got {self.views!r}.")
            design = design.select([*self.views, z])
        regression, means, ranks = regression_on(design, z, weights)
        self._note(views, columns)
        self.coding_ = coding
        self.coefficients_, self.rank_ = regression.coefficients, regression.rank
        self.means_ = {name: mean if name == z else means[name] for name in design.names}
        self._mean_of_design = regression.mean
        counts = np.ones(len(views)) if weights is None else weights
        self._removed = {
            name: (rank, float(counts[views.objects(name)].sum())) for name, rank in ranks.items()
        }
        sizes = {name: self._rounding_of(name, views) for name in ranks}
        self._rounding = {name: size for name, size in sizes.items() if size.any()}
        return self

    def transform(self, X: ViewsLike) -> Views:
        """Residuals of any of the fitted views, given their confounds.

        Parameters
        ----------
        X : Views, mapping or list of matrices
            A mapping or `Views` holds the confounds and any of the other fitted views; a list holds
            all of them, in order.

        Returns
        -------
        Views
            Dense residuals; without the confounds if `drop`. `Views.removed` tells the next step
            the degrees of freedom that they lack.

        Raises
        ------
        ValueError
            If the confounds are missing, or views or widths differ from the fitted ones.
        """
        check_is_fitted(self)
        given = as_views(X, self.view_names_)
        self._check_confounds(given)
        given, _ = coded_view(given, self.confounds, self.coding_)
        check_fitted_views(self, given)
        views, z = self._checked(given, minimum=1), self.confounds
        found: dict[str, Any] = {}
        for name, block in views.blocks.items():
            if name not in self.coefficients_:
                if name != z or not self.drop:
                    found[name] = given[name]
                continue
            residual = self._residuals(name, block, views.rows_beside(z, name))
            if name in (rounding := self._rounding or {}):
                residual = residual * (abs(residual) > as_block(residual).placed(rounding[name]))
            found[name] = self._frame(residual, np.array(self._names_of(name)), given[name])
        left, removed = given.replace(found), dict(given.removed)
        for name, (rank, n_rows) in (self._removed or {}).items():
            before, n_before = given.removed.get(name, (0, 1))
            before *= n_rows / n_before
            # Confounds that are residuals themselves are independent of those removed before.
            removed[name] = rank + before if z in given.removed else max(rank, before), n_rows
        return Views.of(left.blocks, left.seen, left.ids, removed)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns of all views that `transform` returns, ``view__column``.

        Parameters
        ----------
        input_features : None
            Ignored; the columns are those of the fitted DataFrames, or x0, x1, ...
        """
        check_is_fitted(self)
        kept = [name for name in self.view_names_ if not (self.drop and name == self.confounds)]
        names = [f"{name}__{column}" for name in kept for column in self._names_of(name)]
        return np.array(names, dtype=object)

    def _names_of(self, view: str) -> list[str]:
        columns = self._columns[view] or range(self._widths[view])
        return [name if isinstance(name, str) else f"x{i}" for i, name in enumerate(columns)]

    def _design(self, block: Block, mean: np.ndarray) -> np.ndarray:
        """Confounds, and squares and products about the training mean, which has the same span."""
        Z = to_host(block.dense().matrix).astype(np.float64)
        if self.degree == 1:
            return Z
        return np.hstack([Z, second_degree(Z, mean, products=self.degree == 2)])

    def _residuals(self, name: str, block: Block, Z: Block) -> Any:
        """Rows of a view less their mean and what their confounds explain."""
        deviations = block.mapped(partial(_less, self.means_[name]), block.shape[1])
        return deviations - Z.mapped(partial(self._explained, name), block.shape[1])

    def _explained(self, name: str, matrix: Any) -> Any:
        """What the confounds explain of rows of a view."""
        block = as_block(matrix)
        if self.degree == 1:
            return block.project(self._mean_of_design, self.coefficients_[name])
        Z = self._design(block, self.means_[self.confounds]) - self._mean_of_design
        return block.placed(Z @ self.coefficients_[name])

    def _rounding_of(self, name: str, views: Views) -> np.ndarray:
        """Size of the residuals of columns that confounds explain but for rounding, else 0, (d,).

        Later steps would scale them to unit variance, and take rounding for a variable.
        """
        block, Z = views.blocks[name], views.rows_beside(self.confounds, name)
        mean = to_host(self.means_[name])
        spread, left = np.zeros((2, len(mean)))
        few = slice(min(_FEW, block.shape[0]))
        for rows in (few, *block_slices(block.shape[0], 16 * len(mean))):
            X = block.take(rows).in_memory()
            residuals = to_host(self._residuals(name, X, Z.take(rows).in_memory()))
            deviations = to_host(_less(self.means_[name], X.matrix))
            spread = np.fmax(spread, np.nanmax(np.abs(deviations), axis=0, initial=0))
            left = np.fmax(left, np.nanmax(np.abs(residuals), axis=0, initial=0))
            size = least_left(spread, mean, block.dtype)
            if (left > size).all():
                break
        return np.where(left > size, 0.0, size)

    # ---- input checks ----------------------------------------------------------------------------

    def _check_confounds(self, views: Views) -> None:
        self._check_given("confounds", views)
        check_confounds_known(views, self.confounds)

    def _checked(self, views: Views, minimum: int) -> Views:
        advice = "Use CCA(confounds=...) or MVCCA(confounds=...), which keep it sparse"
        return dense_views(self, views, "residuals", advice, self.confounds, minimum)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _less(mean: np.ndarray, matrix: Any) -> Any:
    """Rows less their mean, in their precision."""
    return matrix - as_block(matrix).placed(mean)


def dense_views(
    step: Any, views: Views, result: str, advice: str, complete: str = "", minimum: int = 1
) -> Views:
    """Blocks of numbers, of which some may be missing but in the view that must be complete.

    Sparse views are refused, since the result would be dense, but the complete one.
    """
    blocks = {}
    for name, block in views.blocks.items():
        if block.is_sparse and name != complete:
            raise ValueError(
                f"View {name!r} is sparse, and its {result} would be dense. {advice}, or pass "
                "dense rows."
            )
        options = {} if name == complete else {"ensure_all_finite": "allow-nan"}
        ids = views.informative_ids_of(name)
        blocks[name] = block.checked(step, name, ids, ensure_min_samples=minimum, **options)
    return Views.of(blocks, views.seen, views.ids)
