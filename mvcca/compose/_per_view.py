"""Apply transformers to each view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.validation import (
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from mvcca.base.inputs import forget
from mvcca.blocks import as_block
from mvcca.blocks.checks import of_view, reject_masks
from mvcca.blocks.sources import NamedColumns
from mvcca.compose._known_rows import transform_noting_empty
from mvcca.machine.documentation import Documented
from mvcca.views import Views, as_views, holds_views, in_same_container
from mvcca.views.by_view import value_by_view
from mvcca.views.labels_by_view import is_per_view, labels_by_view
from mvcca.views.output import OutputContainerMixin
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike
from mvcca.views.validation import checked_sample_weight, weights_of_rows


class PerView(OutputContainerMixin, Documented, BaseEstimator):
    """Apply a transformer to each view separately.

    Parameters
    ----------
    transformer : transformer, "passthrough", or mapping of str to these, default="passthrough"
        One transformer, cloned for every view, or one for each view by name. "passthrough" leaves a
        view unchanged.

    Attributes
    ----------
    transformers_ : dict of str to transformer
        The fitted transformers, by view name ("X" if a single matrix was fitted).
    n_features_in_ : int
        Total number of features of all views.
    feature_names_in_ : ndarray of str
        Column names, if X was a single DataFrame.

    See Also
    --------
    SplitViews : Split a matrix into views.
    JoinViews : Join views into one matrix.

    Notes
    -----
    In a mapping, parameters of transformers are prefixed by the name of the view:
    ``PerView({"image": PCA()})`` has ``image__n_components``. Supervised transformers get the
    labels of the objects seen in their view. Transformers of texts, such as `Tokens` and
    ``TfidfVectorizer``, get the column of a view as a sequence. A view in a file is not read to
    pass it through.

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

    def fit(
        self, X: ViewsLike | MatrixLike, y: LabelsLike | None = None, sample_weight: Any = None
    ) -> Self:
        """Fit a transformer to each view.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            The views; a single matrix is one view.
        y : labels, optional
            Labels of the objects, or a list or mapping with the labels of each view.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts, for transformers whose `fit` takes weights, as that of
            ``StandardScaler`` does.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a mapping of transformers does not name the views, a transformer rejects its view, or
            there are weights for a transformer that takes none.
        """
        self._fit("fit", X, y, sample_weight)
        return self

    def fit_transform(
        self, X: ViewsLike | MatrixLike, y: LabelsLike | None = None, sample_weight: Any = None
    ) -> Any:
        """Fit a transformer to each view and return the transformed views; see `fit`."""
        return self._fit("fit_transform", X, y, sample_weight)

    def transform(self, X: ViewsLike | MatrixLike) -> Any:
        """Transform any of the fitted views.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may contain any subset of the fitted views; a list contains all of
            them, in order.

        Returns
        -------
        same type of container as X
            The transformed views.

        Raises
        ------
        ValueError
            If a view is unknown, or its transformer rejects it.
        """
        return self.transform_noting_empty(X)[0]

    def transform_noting_empty(self, X: Any) -> tuple[Any, dict[str, np.ndarray]]:
        """Transform every view, and note the rows in which nothing is known.

        Parameters
        ----------
        X
            As for `transform`.

        Returns
        -------
        same type of container as X
            The transformed views.
        dict of str to ndarray of bool, shape (n_rows,)
            Which rows are empty, by view that has any: texts of unknown words, or sparse rows of
            zeros. `mvcca.retrieval` has no answer to such a query.
        """
        check_is_fitted(self)
        names = tuple(self.transformers_)
        if not holds_views(X):
            if "X" not in names:
                raise ValueError(
                    f"PerView was fitted on the views {list(names)}; name the view of a single "
                    f"matrix: {{{names[0]!r}: X}}."
                )
            block = self._checked(X, reset=False)
            block, found = transform_noting_empty(self.transformers_["X"], block)
            return block, {} if found is None else {"X": found}
        views = as_views(X, names, unpaired=True)
        for name in views.names:
            if name not in names:
                raise ValueError(
                    f"Unknown view {name!r}; PerView was fitted on the views {list(names)}."
                )
        transformed: dict[str, Any] = {}
        empty: dict[str, np.ndarray] = {}
        for name, block in views.items():
            transformer = self.transformers_[name]
            if _stays_in_file(transformer, block):
                transformed[name] = block
                continue
            transform = partial(transform_noting_empty, transformer)
            transformed[name], found = _in_view(name, transformer, transform, block)
            if found is not None:
                empty[name] = found
        return in_same_container(X, views, transformed), empty

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Names of the output columns for a single matrix.

        Parameters
        ----------
        input_features : array-like of str, optional
            Column names of X.

        Raises
        ------
        ValueError
            If PerView was fitted on several views; use ``transformers_[name]`` then.
        """
        check_is_fitted(self)
        if list(self.transformers_) != ["X"]:
            raise ValueError(
                "The output of PerView is several matrices. Ask transformers_[name] for the column "
                f"names of one of {list(self.transformers_)}."
            )
        return self.transformers_["X"].get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the type of the transformed views: "default" (NumPy), "pandas" or "polars".

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None keeps the current setting.
        """
        for transformer in getattr(self, "transformers_", {}).values():
            transformer.set_output(transform=transform)
        return super().set_output(transform=transform)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters, with those of the transformers if `deep`.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include parameters of transformers, prefixed by view names for a mapping.
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
        """Set parameters, including those of transformers.

        Parameters
        ----------
        **params
            Parameters named as by `get_params`; the name of a view replaces its transformer.
        """
        if "transformer" in params:
            self.transformer = params.pop("transformer")
        if isinstance(self.transformer, Mapping):
            replaced = {name: params.pop(name) for name in list(params) if name in self.transformer}
            if replaced:  # in a new mapping, since the old one belongs to the caller
                self.transformer = {**self.transformer, **replaced}
        return super().set_params(**params)

    def _fit(self, method: str, X: Any, y: Any, sample_weight: Any) -> Any:
        self._validate_params()
        if not holds_views(X):
            block = self._checked(X, reset=True)
            transformers = self._clones(("X",))
            weights = None
            if sample_weight is not None:
                weights = weights_of_rows(sample_weight, block.shape[0])
            options = _weights_of("X", transformers["X"], weights)
            done = getattr(transformers["X"], method)(block, y, **options)
            self.transformers_ = transformers
            return done
        per_view = y is not None and is_per_view(X, y)
        views = as_views(X, unpaired=per_view)
        labels = labels_by_view(views, y, per_view)
        transformers = self._clones(views.names)
        weights = None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, views, reset=True)
        done = {}
        for name, block in views.items():
            transformer = transformers[name]
            own = None if weights is None else weights[views.objects(name)]
            options = _weights_of(name, transformer, own)
            if _stays_in_file(transformer, block):
                _in_view(name, transformer, transformer.fit, block[:1])
                done[name] = block
            else:
                call = getattr(transformer, method)
                call = partial(call, **options)
                done[name] = _in_view(name, transformer, call, block, labels[name])
        forget(self)
        self.n_features_in_, self.transformers_ = views.shape[1], transformers
        return in_same_container(X, views, done) if method == "fit_transform" else None

    def _clones(self, names: tuple[str, ...]) -> dict[str, Any]:
        """An unfitted transformer for each view, with this estimator's output container."""
        advice = ' Name every view once, with "passthrough" for views to leave unchanged.'
        chosen = value_by_view("transformer", self.transformer, names, advice)
        clones = {name: clone(_as_transformer(one)) for name, one in chosen.items()}
        for transformer in clones.values():
            if hasattr(self, "_sklearn_output_config"):
                transformer.set_output(**self._sklearn_output_config)
        return clones

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """A single matrix, without changing its values."""
        reject_masks(X)
        block = Views({"X": X}).block("X").in_memory().matrix
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


def _in_view(
    name: str, transformer: Any, method: Callable[..., Any], block: Any, *labels: Any
) -> Any:
    """Call a transformer's method on a view; errors name the view."""
    try:
        reject_masks(block)
        return method(_as_taken(transformer, block), *labels)
    except (ValueError, TypeError) as error:
        raise of_view(name, error) from error


def _weights_of(name: str, transformer: Any, weights: np.ndarray | None) -> dict[str, Any]:
    """The argument with the weights of a view's rows, for a transformer that learns from them."""
    if weights is None or not get_tags(transformer).requires_fit:  # it learns nothing
        return {}
    if not has_fit_parameter(transformer, "sample_weight"):
        raise ValueError(
            f"View {name!r}: {type(transformer).__name__} takes no sample_weight. Leave the "
            "weights out, or use a transformer that takes them."
        )
    return {"sample_weight": weights}


def _stays_in_file(transformer: Any, block: Any) -> bool:
    """Whether rows in a file pass through, without a conversion to DataFrames."""
    unchanged = isinstance(transformer, FunctionTransformer) and transformer.func is None
    converted = hasattr(transformer, "_sklearn_output_config")
    return as_block(block).is_lazy and unchanged and not converted


def _as_taken(transformer: Any, block: Any) -> Any:
    """The block in memory, as a sequence if the transformer takes texts and not matrices."""
    block, first = as_block(block).in_memory().matrix, transformer
    while isinstance(first, Pipeline):
        first = first.steps[0][1]
    if get_tags(_as_transformer(first)).input_tags.two_d_array:
        # scikit-learn takes what has `columns` for a DataFrame, and misses its other attributes.
        return np.asarray(block) if isinstance(block, NamedColumns) else block
    kind = getattr(getattr(block, "dtype", None), "kind", "O")  # of a DataFrame: any
    if block.shape[1] != 1 or kind in "biufc":
        raise ValueError(
            f"{type(first).__name__} takes one column of texts, got "
            f"{'numbers' if kind in 'biufc' else 'a matrix'} of shape {tuple(block.shape)}."
        )
    return block.iloc[:, 0] if hasattr(block, "iloc") else block[:, 0]


def _as_transformer(transformer: Any) -> Any:
    if isinstance(transformer, str) and transformer == "passthrough":
        return FunctionTransformer(accept_sparse=True, feature_names_out="one-to-one")
    return transformer
