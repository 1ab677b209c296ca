"""Steps that lead into, through and out of several views in a scikit-learn pipeline.

`SplitViews` makes views of the columns of one matrix, `PerView` applies transformers view by view,
and `JoinViews` makes one matrix of several, for whatever comes next. They arrange matrices; what
the numbers mean is the business of the transformers and estimators in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import check_array, get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.base import (
    FLOATS,
    OutputContainerMixin,
    check_column_names,
    column_names,
    is_per_view,
    labels_by_view,
    of_view,
    reject_masks,
)
from mvcca.views import Views, as_views, holds_views, in_same_container

__all__ = ["JoinViews", "PerView", "SplitViews"]


class PerView(OutputContainerMixin, BaseEstimator):
    """Apply a transformer to every view, each fitted on its own.

    Parameters
    ----------
    transformer : transformer, "passthrough", or mapping of str to these, default="passthrough"
        One transformer, cloned for every view, or one for each view by name. "passthrough" leaves a
        view as it is.

    Attributes
    ----------
    transformers_ : dict of str to transformer
        The fitted transformers, by view name ("X" where a lone matrix was fitted).
    n_features_in_ : int
        Number of features of X, over all its views.
    feature_names_in_ : ndarray of str
        Names of the columns, where X was a lone DataFrame.

    See Also
    --------
    SplitViews : Make views of one matrix.
    JoinViews : Make one matrix of views.

    Notes
    -----
    In a mapping, parameters of a view's transformer are reached through the view's name:
    ``PerView({"image": PCA()})`` has ``image__n_components``. Transformers that learn from labels
    get those of the objects that their view shows.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from mvcca import CCA, PerView
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views().views
    >>> model = make_pipeline(PerView(PCA(10)), CCA(4)).fit(views)
    >>> model.transform({"left": views["left"][:3]})["left"].shape
    (3, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "transformer": [
            HasMethods(["fit", "fit_transform", "transform"]),
            StrOptions({"passthrough"}),
            Mapping,
        ]
    }

    def __init__(self, transformer: Any = "passthrough") -> None:
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a transformer to every view.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            The views; a lone matrix is one view.
        y : labels, optional
            One per object, or a list or mapping with those of each view.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a mapping of transformers does not name the views, or a transformer refuses its view.
        """
        self._fit("fit", X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit a transformer to every view, and give the transformed views; see `fit`."""
        return self._fit("fit_transform", X, y)

    def transform(self, X: Any) -> Any:
        """Transform any of the fitted views.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may hold any subset of the fitted views, by name; a list holds all
            of them, in order.

        Returns
        -------
        same container as came in
            The transformed views.

        Raises
        ------
        ValueError
            If a view is unknown, or its transformer refuses it.
        """
        check_is_fitted(self)
        names = tuple(self.transformers_)
        if not holds_views(X):
            if "X" not in names:
                raise ValueError(
                    f"PerView was fitted on the views {list(names)}; name the view of a lone "
                    f"matrix: {{{names[0]!r}: X}}."
                )
            block = self._checked(X, reset=False)
            return self.transformers_["X"].transform(block)
        views = as_views(X, names, unpaired=True)
        for name in views.names:
            if name not in names:
                raise ValueError(
                    f"Unknown view {name!r}; PerView was fitted on the views {list(names)}."
                )
        transformed = {
            name: _in_view(name, self.transformers_[name].transform, block)
            for name, block in views.items()
        }
        return in_same_container(X, views, transformed)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that a lone matrix is transformed to.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of X.

        Raises
        ------
        ValueError
            If PerView was fitted on several views: ask ``transformers_[name]``.
        """
        check_is_fitted(self)
        if list(self.transformers_) != ["X"]:
            raise ValueError(
                "The output of PerView is several matrices. Ask transformers_[name] for the names "
                f"of the columns of one of {list(self.transformers_)}."
            )
        return self.transformers_["X"].get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what the transformed views are: "default" (NumPy), "pandas" or "polars".

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves the choice as it is.
        """
        for transformer in getattr(self, "transformers_", {}).values():
            transformer.set_output(transform=transform)
        return super().set_output(transform=transform)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, with those of the transformers if `deep`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to go into the transformers, of a mapping under the names of their views.
        """
        params = super().get_params(deep=deep)
        if deep and isinstance(self.transformer, Mapping):
            for name, transformer in self.transformer.items():
                params[name] = transformer
                if hasattr(transformer, "get_params"):
                    inner = transformer.get_params(deep=True)
                    params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the transformers included; the name of a view replaces its own.

        Parameters
        ----------
        **params
            As `get_params` names them.
        """
        if "transformer" in params:
            self.transformer = params.pop("transformer")
        if isinstance(self.transformer, Mapping):
            replaced = {name: params.pop(name) for name in list(params) if name in self.transformer}
            if replaced:  # in a new mapping: the old one is the caller's
                self.transformer = {**self.transformer, **replaced}
        return super().set_params(**params)

    def _fit(self, method: str, X: Any, y: Any) -> Any:
        self._validate_params()
        if not holds_views(X):
            block = self._checked(X, reset=True)
            transformers = self._clones(("X",))
            done = getattr(transformers["X"], method)(block, y)
            self.transformers_ = transformers
            return done
        per_view = y is not None and is_per_view(X, y)
        views = as_views(X, unpaired=per_view)
        labels = labels_by_view(views, y, per_view)
        transformers = self._clones(views.names)
        done = {
            name: _in_view(name, getattr(transformers[name], method), block, labels[name])
            for name, block in views.items()
        }
        self.n_features_in_, self.transformers_ = views.shape[1], transformers
        self.__dict__.pop("feature_names_in_", None)  # of a lone matrix that was fitted before
        return in_same_container(X, views, done) if method == "fit_transform" else None

    def _clones(self, names: tuple[str, ...]) -> dict[str, Any]:
        """A fresh transformer for every view, with the output container chosen here."""
        chosen = self.transformer
        if not isinstance(chosen, Mapping):
            chosen = dict.fromkeys(names, chosen)
        elif set(chosen) != set(names):
            raise ValueError(
                f"transformer names the views {list(chosen)}, expected {list(names)}. Name every "
                'view once, with "passthrough" for those to leave as they are.'
            )
        clones = {name: clone(_as_transformer(chosen[name])) for name in names}
        for transformer in clones.values():
            if hasattr(self, "_sklearn_output_config"):
                transformer.set_output(**self._sklearn_output_config)
        return clones

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """A lone matrix with its values as they are."""
        reject_masks(X)
        block = Views({"X": X})["X"]
        return validate_data(self, block, reset=reset, skip_check_array=True)

    def _sk_visual_block_(self) -> Any:
        chosen = self.transformer
        named = chosen if isinstance(chosen, Mapping) else {"every view": chosen}
        return FeatureUnion(list(named.items()))._sk_visual_block_()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        chosen = self.transformer
        inner = [
            get_tags(_as_transformer(transformer))
            for transformer in (chosen.values() if isinstance(chosen, Mapping) else [chosen])
            if transformer == "passthrough" or hasattr(transformer, "__sklearn_tags__")
        ]
        tags.no_validation = any(t.no_validation for t in inner)
        tags.non_deterministic = any(t.non_deterministic for t in inner)
        tags.target_tags.required = any(t.target_tags.required for t in inner)
        tags.input_tags.positive_only = any(t.input_tags.positive_only for t in inner)
        for kind in ("sparse", "allow_nan", "string", "categorical"):
            setattr(tags.input_tags, kind, all(getattr(t.input_tags, kind) for t in inner))
        tags.transformer_tags.preserves_dtype = [
            dtype
            for dtype in ("float64", "float32")
            if all(
                t.transformer_tags and dtype in t.transformer_tags.preserves_dtype for t in inner
            )
        ]
        return tags


def _in_view(name: str, method: Callable[..., Any], block: Any, *labels: Any) -> Any:
    """What a transformer makes of a view; its errors say which view that was."""
    try:
        reject_masks(block)
        return method(block, *labels)
    except (ValueError, TypeError) as error:
        raise of_view(name, error) from error


def _as_transformer(transformer: Any) -> Any:
    if isinstance(transformer, str) and transformer == "passthrough":
        return FunctionTransformer(accept_sparse=True, feature_names_out="one-to-one")
    return transformer


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


class JoinViews(OneToOneFeatureMixin, OutputContainerMixin, BaseEstimator):
    """Make one matrix of several views of the same objects.

    Parameters
    ----------
    how : {"concat", "mean", "sum"}, default="concat"
        Put the views side by side, or, where they share one space (as after `MVCCA`), take their
        mean or sum.

    Attributes
    ----------
    view_names_ : tuple of str
        The views, in order; empty where a lone matrix was fitted, which is joined already.
    n_features_in_ : int
        Number of features of X, over all its views.
    feature_names_in_ : ndarray of str
        Names of the columns, where X was a lone DataFrame.

    See Also
    --------
    SplitViews : The way in.

    Examples
    --------
    A classifier on what two views have in common:

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the views and their widths.

        Parameters
        ----------
        X : Views, mapping, list or tuple of matrices, or matrix
            Views of the same objects.
        y : None
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an object is not seen in all views, or views to be averaged differ in width.
        """
        self._validate_params()
        if not holds_views(X):
            self._check_matrix(X, reset=True)
            self.view_names_: tuple[str, ...] = ()
            return self
        views = self._paired(as_views(X))
        if self.how != "concat" and len(set(views.widths.values())) > 1:
            found = ", ".join(f"{name}: {width}" for name, width in views.widths.items())
            raise ValueError(
                f"how={self.how!r} needs views of one width, got {found}. Project them first (as "
                'with MVCCA), or use how="concat".'
            )
        self.view_names_ = views.names
        self.n_features_in_ = views.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of a lone matrix that was fitted before
        self._widths = views.widths
        self._columns = {name: column_names(block) for name, block in views.items()}
        return self

    def transform(self, X: Any) -> Any:
        """Join the views.

        Parameters
        ----------
        X : Views, mapping, list or tuple of matrices, or matrix
            The fitted views.

        Returns
        -------
        ndarray or csr_array, shape (n_objects, n_features_out)
            Sparse where a view to be put beside others is sparse, or all are.

        Raises
        ------
        ValueError
            If an object is not seen in all views, or views or widths are not the fitted ones.
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
        views = self._paired(as_views(X, self.view_names_))
        self._check_fitted_to(views)
        views = views.select(self.view_names_)
        joined = self._join([self._check_view(name, block) for name, block in views.items()])
        return self._frame(joined, self.get_feature_names_out(), views[self.view_names_[0]])

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the joined columns: ``view__column`` side by side, else the column's own.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns of every view. By default those of DataFrames, else x0, x1, ...

        Raises
        ------
        ValueError
            If there are not as many names as columns.
        """
        check_is_fitted(self)
        if not self.view_names_:
            return super().get_feature_names_out(input_features)
        names = {name: self._names_of(name, input_features) for name in self.view_names_}
        if self.how == "concat":
            flat = [f"{view}__{column}" for view in names for column in names[view]]
        elif len(set(names.values())) == 1:
            flat = list(names[self.view_names_[0]])
        else:  # the mean of columns that differ in name
            flat = [f"joinviews{i}" for i in range(self._widths[self.view_names_[0]])]
        return np.array(flat, dtype=object)

    def _names_of(self, view: str, input_features: Any) -> tuple[str, ...]:
        width = self._widths[view]
        if input_features is None:
            return self._columns[view] or tuple(f"x{i}" for i in range(width))
        if len(input_features) != width:
            raise ValueError(
                f"input_features should name the {width} columns of view {view!r}, got "
                f"{len(input_features)} names."
            )
        return tuple(input_features)

    def _join(self, blocks: list[Any]) -> Any:
        if self.how == "concat":
            if any(issparse(block) for block in blocks):
                return csr_array(hstack(blocks, format="csr"))
            return np.concatenate(blocks, axis=1)
        total = reduce(add, [csr_array(b) if issparse(b) else b for b in blocks])
        return total / len(blocks) if self.how == "mean" else total

    def _paired(self, views: Views) -> Views:
        if not views.is_paired:
            n = int((~views.seen.all(axis=1)).sum())
            raise ValueError(
                f"JoinViews needs every object in every view, but {n} of {len(views)} objects are "
                "not: the views are unpaired or partly paired. Take the paired ones, "
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
            if block.shape[1] != self._widths[name]:
                raise ValueError(
                    f"View {name!r} has {block.shape[1]} features, but JoinViews is expecting "
                    f"{self._widths[name]} features as input."
                )
            check_column_names(name, self._columns[name], block)

    def _check_view(self, name: str, block: Any) -> Any:
        try:
            reject_masks(block)
            return check_array(block, **_NUMBERS)
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error

    def _check_matrix(self, X: Any, *, reset: bool) -> Any:
        reject_masks(X)
        return validate_data(self, X, reset=reset, **_NUMBERS)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Whether there are missing values is for the next step to ask.
_NUMBERS: dict[str, Any] = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_all_finite": False}
