"""Join views into one matrix."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.base.fitted_views import check_features
from mvcca.base.inputs import forget
from mvcca.blocks import stack, to_plain
from mvcca.blocks.checks import FLOATS, column_labels, of_view, only_numbers
from mvcca.machine.documentation import Documented
from mvcca.views import Views, as_views, holds_views
from mvcca.views.output import OutputContainerMixin
from mvcca.views.typing import MatrixLike, ViewsLike

_NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": False}


class JoinViews(OneToOneFeatureMixin, OutputContainerMixin, Documented, BaseEstimator):
    """Join several views of the same objects into one matrix.

    Parameters
    ----------
    how : {"concat", "mean", "sum"}, default="concat"
        Concatenate the columns of the views, or, for views in a shared space (as after `MVCCA`),
        compute their mean or sum.

    Attributes
    ----------
    view_names_ : tuple of str
        Names of the views; empty if a single matrix was fitted, which is passed through.
    n_features_in_ : int
        Total number of features of all views.
    feature_names_in_ : ndarray of str
        Column names, if X was a single DataFrame.

    See Also
    --------
    SplitViews : Split a matrix into views.

    Examples
    --------
    A classifier on the shared space of two views:

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from mvcca import JoinViews, MVCCA
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> model = make_pipeline(MVCCA(16), JoinViews("mean"), LogisticRegression())
    >>> model.fit(data.views[:1200], data.labels[:1200]).predict(data.views[1200:]).shape
    (597,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "how": [StrOptions({"concat", "mean", "sum"})]
    }

    def __init__(self, how: str = "concat") -> None:
        self.how = how

    def fit(self, X: ViewsLike | MatrixLike, y: Any = None) -> Self:
        """Store the names and widths of the views.

        Parameters
        ----------
        X : Views, mapping, list or tuple of matrices, or matrix
            Views of the same objects.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an object is not seen in all views, or views to average or sum differ in width.
        """
        self._validate_params()
        if not holds_views(X):
            self._check_matrix(X, reset=True)
            self.view_names_: tuple[str, ...] = ()
            self._widths, self._columns = {}, {}
            return self
        views = self._paired(as_views(X).in_memory())
        if self.how != "concat" and len(set(views.widths.values())) > 1:
            found = ", ".join(f"{name}: {width}" for name, width in views.widths.items())
            raise ValueError(
                f"how={self.how!r} needs views of equal width, got {found}. Project them first (as "
                'with MVCCA), or use how="concat".'
            )
        forget(self)
        self.view_names_ = views.names
        self.n_features_in_ = views.shape[1]
        self._widths = views.widths
        self._columns = {name: column_labels(block) for name, block in views.items()}
        return self

    def transform(self, X: ViewsLike | MatrixLike) -> Any:
        """Join the views.

        Parameters
        ----------
        X : Views, mapping, list or tuple of matrices, or matrix
            The fitted views.

        Returns
        -------
        ndarray or csr_array, shape (n_objects, n_features_out)
            Sparse if any view to concatenate is sparse, or all views to average or sum are.

        Raises
        ------
        ValueError
            If an object is not seen in all views, or views or widths differ from the fitted ones.
        """
        check_is_fitted(self)
        if not holds_views(X):
            if self.view_names_:
                raise ValueError(
                    f"JoinViews was fitted on the views {list(self.view_names_)}, got one matrix."
                )
            matrix = self._check_matrix(X, reset=False)
            return self._frame(matrix, self.get_feature_names_out(), X)
        if not self.view_names_:
            raise ValueError("JoinViews was fitted on one matrix, got a container of views.")
        views = self._paired(as_views(X, self.view_names_).in_memory())
        self._check_fitted_to(views)
        views = views.select(self.view_names_)
        joined = self._join([self._check_view(name, block) for name, block in views.items()])
        return self._frame(joined, self.get_feature_names_out(), views[self.view_names_[0]])

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the joined columns: ``view__column`` if concatenated, else the columns' names.

        Parameters
        ----------
        input_features : array-like of str, optional
            Column names of every view; by default those of DataFrames, else x0, x1, ...

        Raises
        ------
        ValueError
            If the number of names is not the number of columns.
        """
        check_is_fitted(self)
        if not self.view_names_:
            return super().get_feature_names_out(input_features)
        names = {name: self._names_of(name, input_features) for name in self.view_names_}
        if self.how == "concat":
            flat = [f"{view}__{column}" for view in names for column in names[view]]
        elif len(set(names.values())) == 1:
            flat = list(names[self.view_names_[0]])
        else:  # columns with different names
            flat = [f"joinviews{i}" for i in range(self._widths[self.view_names_[0]])]
        return np.array(flat, dtype=object)

    def _names_of(self, view: str, input_features: Any) -> tuple[str, ...]:
        width = self._widths[view]
        if input_features is None:
            columns = self._columns[view] or range(width)
            return tuple(
                name if isinstance(name, str) else f"x{i}" for i, name in enumerate(columns)
            )
        if len(input_features) != width:
            raise ValueError(
                f"input_features should name the {width} columns of view {view!r}, got "
                f"{len(input_features)} names."
            )
        return tuple(input_features)

    def _join(self, blocks: list[Any]) -> Any:
        if self.how == "concat":
            return stack(blocks, axis=1)
        total = reduce(add, map(to_plain, blocks))
        return total / len(blocks) if self.how == "mean" else total

    def _paired(self, views: Views) -> Views:
        if not views.is_paired:
            n = int((~views.seen.all(axis=1)).sum())
            raise ValueError(
                f"JoinViews needs every object in every view, but {n} of {len(views)} objects are "
                "missing from some view. Select the complete objects with "
                "views[views.seen.all(axis=1)]."
            )
        return views

    def _check_fitted_to(self, views: Views) -> None:
        if set(views.names) != set(self.view_names_):
            raise ValueError(
                f"JoinViews was fitted on the views {list(self.view_names_)}, got "
                f"{list(views.names)}."
            )
        for name, block in views.items():
            found = block.shape[1], column_labels(block)
            check_features(self, name, found, (self._widths[name], self._columns[name]))

    def _check_view(self, name: str, block: Any) -> Any:
        try:
            return check_array(only_numbers(block), **_NUMBERS)
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error

    def _check_matrix(self, X: Any, *, reset: bool) -> Any:
        return validate_data(self, only_numbers(X), reset=reset, **_NUMBERS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
