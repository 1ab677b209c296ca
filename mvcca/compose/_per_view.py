"""Transformers applied view by view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca._by_view import value_by_view
from mvcca._containers import reject_masks
from mvcca._output import OutputContainerMixin
from mvcca.base import forget
from mvcca.validation import is_per_view, labels_by_view, of_view
from mvcca.views import Views, as_views, holds_views, in_memory, in_same_container


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
        views = as_views(X, names, unpaired=True).in_memory()
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
        views = as_views(X, unpaired=per_view).in_memory()
        labels = labels_by_view(views, y, per_view)
        transformers = self._clones(views.names)
        done = {
            name: _in_view(name, getattr(transformers[name], method), block, labels[name])
            for name, block in views.items()
        }
        forget(self)
        self.n_features_in_, self.transformers_ = views.shape[1], transformers
        return in_same_container(X, views, done) if method == "fit_transform" else None

    def _clones(self, names: tuple[str, ...]) -> dict[str, Any]:
        """A fresh transformer for every view, with the output container chosen here."""
        advice = ' Name every view once, with "passthrough" for views to leave unchanged.'
        chosen = value_by_view("transformer", self.transformer, names, advice)
        clones = {name: clone(_as_transformer(one)) for name, one in chosen.items()}
        for transformer in clones.values():
            if hasattr(self, "_sklearn_output_config"):
                transformer.set_output(**self._sklearn_output_config)
        return clones

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """A lone matrix with its values as they are."""
        reject_masks(X)
        block = in_memory(Views({"X": X})["X"])
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
