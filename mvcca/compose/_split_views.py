"""Split the columns of a matrix into views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.blocks import as_block
from mvcca.blocks.checks import reject_masks
from mvcca.blocks.libraries import in_numpy
from mvcca.machine.documentation import Documented
from mvcca.views import Views, holds_views
from mvcca.views.output import OutputContainerMixin
from mvcca.views.typing import MatrixLike
from mvcca.views.validation import column_names


class SplitViews(OneToOneFeatureMixin, OutputContainerMixin, Documented, BaseEstimator):
    """Split the columns of a matrix or DataFrame into views.

    Parameters
    ----------
    columns : mapping of str to columns, or None, default=None
        Columns of every view: positions, a slice, a mask, column names of a DataFrame, or a
        function of X that returns one of these (such as scikit-learn's `make_column_selector`).
        Views may overlap; columns in no view are dropped. None does not split X.

    Attributes
    ----------
    columns_ : dict of str to ndarray of int
        Positions of the columns of each view.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Column names, if X was a DataFrame.

    See Also
    --------
    JoinViews : Join views into one matrix.

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

    def fit(self, X: MatrixLike, y: Any = None) -> Self:
        """Find the columns of every view.

        Parameters
        ----------
        X : matrix, sparse matrix or DataFrame, shape (n_rows, n_features)
            Matrix to split.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If X does not have these columns.
        """
        self._validate_params()
        X = self._checked(X, reset=True)
        chosen = {} if self.columns is None else self.columns
        self.columns_ = {name: _positions(name, X, columns) for name, columns in chosen.items()}
        return self

    def transform(self, X: MatrixLike) -> Any:
        """Split X into views.

        Parameters
        ----------
        X : matrix, sparse matrix or DataFrame, shape (n_rows, n_features)
            Matrix to split. Views of a sparse matrix are sparse, those of a DataFrame DataFrames.

        Returns
        -------
        Views
            The views; X if `columns` is None.

        Raises
        ------
        ValueError
            If X does not have the fitted columns.
        """
        check_is_fitted(self)
        matrix = self._checked(X, reset=False)
        names = super().get_feature_names_out()
        if self.columns is None:
            return self._frame(as_block(matrix).plain().matrix, names, X)
        return Views(
            {
                name: self._frame(_take_columns(matrix, columns), names[columns], X)
                for name, columns in self.columns_.items()
            }
        )

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the columns of X, if it is not split.

        Parameters
        ----------
        input_features : array-like of str, optional
            Column names of X.

        Raises
        ------
        ValueError
            If X is split, since the output is then several matrices.
        """
        check_is_fitted(self)
        if self.columns is not None:
            raise ValueError(
                "The output of SplitViews is several matrices. The column names of one are "
                "feature_names_in_[columns_[name]]."
            )
        return super().get_feature_names_out(input_features)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as a DataFrame, CSR or array, without changing its values."""
        if holds_views(X):
            raise ValueError(
                f"SplitViews takes one matrix to split, got a {type(X).__name__} of views."
            )
        reject_masks(X)
        if column_names(X) is not None:
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(
            self, in_numpy(X), reset=reset, accept_sparse="csr", dtype=None, ensure_all_finite=False
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _positions(view: str, X: Any, columns: Any) -> np.ndarray:
    """Positions of the columns of a view."""
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
        raise ValueError(f"View {view!r} has no columns: {columns} selects no column of X.")
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
    """Select columns by position; consecutive columns of an array are not copied."""
    first, last = columns[0], columns[-1]
    consecutive = np.array_equal(columns, np.arange(first, last + 1))
    key = slice(first, last + 1) if consecutive else columns
    return X.iloc[:, key] if hasattr(X, "iloc") else X[:, key]
