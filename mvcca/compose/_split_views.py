"""Views made of the columns of one matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca._containers import reject_masks
from mvcca._output import OutputContainerMixin
from mvcca.validation import column_names
from mvcca.views import Views, holds_views


class SplitViews(OneToOneFeatureMixin, OutputContainerMixin, BaseEstimator):
    """Make views of the columns of one matrix or DataFrame.

    Parameters
    ----------
    columns : mapping of str to columns, or None, default=None
        For every view its columns: positions, a slice, a mask, a name or names of a DataFrame's
        columns, or a function of X that gives one of these (such as scikit-learn's
        `make_column_selector`). Columns may be in several views; those in none are left out. With
        None nothing is split and X stays one array.

    Attributes
    ----------
    columns_ : dict of str to ndarray of int
        Positions of the columns of each view.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X was a DataFrame.

    See Also
    --------
    JoinViews : The way back.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import SplitViews
    >>> X = np.arange(20).reshape(4, 5)
    >>> SplitViews({"image": slice(0, 3), "text": [3, 4]}).fit_transform(X)
    Views(4 objects, image: 3, text: 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"columns": [Mapping, None]}

    def __init__(self, columns: Mapping[str, Any] | None = None) -> None:
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns of every view.

        Parameters
        ----------
        X : matrix, sparse matrix or DataFrame, shape (n_rows, n_features)
            What is to be split.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X has no such columns.
        """
        self._validate_params()
        X = self._checked(X, reset=True)
        chosen = {} if self.columns is None else self.columns
        self.columns_ = {name: _positions(name, X, columns) for name, columns in chosen.items()}
        return self

    def transform(self, X: Any) -> Any:
        """Take X apart.

        Parameters
        ----------
        X : matrix, sparse matrix or DataFrame, shape (n_rows, n_features)
            What is to be split; sparse stays sparse, and a DataFrame gives views of DataFrames.

        Returns
        -------
        Views
            Or X, if `columns` is None.

        Raises
        ------
        ValueError
            If X has other columns than were fitted.
        """
        check_is_fitted(self)
        came = self._checked(X, reset=False)
        names = super().get_feature_names_out()
        if self.columns is None:
            block = came if issparse(came) else np.asarray(came)
            return self._frame(block, names, X)
        return Views(
            {
                name: self._frame(_take_columns(came, columns), names[columns], X)
                for name, columns in self.columns_.items()
            }
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of X, where it is not split.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X.

        Raises
        ------
        ValueError
            If X is split: the output is several matrices.
        """
        check_is_fitted(self)
        if self.columns is not None:
            raise ValueError(
                "The output of SplitViews is several matrices: feature_names_in_[columns_[name]] "
                "are the names of the columns of one."
            )
        return super().get_feature_names_out(input_features)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X with its values as they are: a DataFrame, CSR or an array of any kind."""
        if holds_views(X):
            raise ValueError(
                f"SplitViews takes one matrix to split, got a {type(X).__name__} of views."
            )
        reject_masks(X)
        if column_names(X) is not None:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _positions(view: str, X: Any, columns: Any) -> np.ndarray:
    """Positions of the columns that were chosen for a view."""
    if callable(columns):
        columns = columns(X)
    key = columns
    if not isinstance(columns, slice):
        key = np.atleast_1d(np.asarray(columns, dtype=None if np.size(columns) else int))
        if key.dtype.kind in "OUS":
            key = _positions_by_name(view, X, key.tolist())
    try:
        positions = np.arange(X.shape[1])[key]
    except IndexError as error:
        raise ValueError(
            f"View {view!r}: no columns {columns} in X, which has {X.shape[1]}."
        ) from error
    if not len(positions):
        raise ValueError(f"View {view!r} gets no columns: {columns} chooses none of X.")
    return positions


def _positions_by_name(view: str, X: Any, chosen: list[str]) -> list[int]:
    names = column_names(X)
    if names is None:
        raise ValueError(f"View {view!r}: columns are chosen by name, but X has no names.")
    missing = [name for name in chosen if name not in names]
    if missing:
        raise ValueError(f"View {view!r}: X has no columns {missing}; it has {list(names)}.")
    return [names.index(name) for name in chosen]


def _take_columns(X: Any, columns: np.ndarray) -> Any:
    """Columns of a matrix by their positions; consecutive ones of an array without a copy."""
    first, last = columns[0], columns[-1]
    consecutive = np.array_equal(columns, np.arange(first, last + 1))
    key = slice(first, last + 1) if consecutive else columns
    return X.iloc[:, key] if hasattr(X, "iloc") else X[:, key]
