"""What every multi-view estimator shares: the door where input is checked, and affine projection.

A container comes in, is checked view by view, and the same kind of container goes out. How weights
are found is each estimator's own business; see `mvcca.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mvcca.labels import LabelTable, encode_labels
from mvcca.views import Views, as_views, holds_views

_FLOATS = [np.float64, np.float32]


@dataclass(frozen=True, eq=False)
class Input:
    """Checked views, and how to give results back in the container that they came in."""

    views: Views
    wrap: Callable[[Mapping[str, np.ndarray]], Any]


class MultiViewEstimator(BaseEstimator):
    """Base of all estimators that map several views into one space.

    Subclasses set ``weights_`` and ``means_`` (by view name) in `fit`, and say with
    ``_min_views`` how many views they need and with ``_supervised`` whether ``y`` is labels.
    """

    _min_views = 2
    _max_views: int | None = None
    _supervised = False

    weights_: dict[str, np.ndarray]
    means_: dict[str, np.ndarray]
    view_names_: tuple[str, ...]

    def transform(self, X: Any, y: Any = None) -> Any:
        """Project rows of any of the fitted views into the shared space.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may hold any subset of the fitted views, by name; a list holds all
            of them, in order. A lone matrix is the first view, if the estimator was fitted on one.
        y : matrix, optional
            The second view, if the estimator was fitted on two lone matrices.

        Returns
        -------
        scores : same container as came in
            Matrices of shape (n_rows, n_components); two lone matrices give a tuple.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of features is not the fitted one.
        """
        check_is_fitted(self)
        came = self._open(X, None if self._supervised else y, fitting=False)
        return came.wrap({name: self._project(name, block) for name, block in came.views.items()})

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X (and y), then project X; see `fit` and `transform`."""
        self.fit(X, y, **fit_params)  # type: ignore[attr-defined]
        return self.transform(X) if self._supervised or holds_views(X) else self.transform(X, y)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of each projected view: the estimator's name and a number."""
        check_is_fitted(self)
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{i}" for i in range(self.n_components_)], dtype=object)  # type: ignore[attr-defined]

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what the projected matrices are: "default" (NumPy), "pandas" or "polars".

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves the choice as it is.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _project(self, name: str, block: Any) -> np.ndarray:
        weights = self.weights_[name].astype(block.dtype, copy=False)
        if issparse(block):  # centring would fill the zeros in
            return np.asarray(block @ weights - self.means_[name] @ self.weights_[name])
        return (block - self.means_[name].astype(block.dtype)) @ weights

    # ---- the door -------------------------------------------------------------------------------

    def _open(self, X: Any, y: Any = None, *, fitting: bool, unpaired: bool = False) -> Input:
        """Check what came in; `y` is a second view here, never labels."""
        if not holds_views(X):
            return self._open_matrices(X, y, fitting=fitting)
        names = None if fitting or not isinstance(X, list | tuple) else self.view_names_
        raw = as_views(X if names is None else _named_by_position(X, names), unpaired=unpaired)
        if fitting:
            self.n_features_in_ = raw.shape[1]
        else:
            self._check_widths(raw)
        minimum = 2 if fitting else 1
        checked = {
            name: self._check_view(name, block, ensure_min_samples=minimum)
            for name, block in raw.items()
        }
        return Input(raw.replace(checked), _rewrapping(X, raw, self._frame))

    def _open_matrices(self, X: Any, y: Any, *, fitting: bool) -> Input:
        """One lone matrix, or two: scikit-learn's convention for cross-decomposition."""
        if not fitting and "X" not in self.view_names_:
            raise ValueError(
                f"{type(self).__name__} was fitted on the views {list(self.view_names_)}; name the "
                f"view of a lone matrix: transform({{{self.view_names_[0]!r}: X}})."
            )
        _reject_lookalikes(X)
        minimum = 2 if fitting else 1
        options = {"accept_sparse": "csr", "dtype": _FLOATS, "ensure_min_samples": minimum}
        blocks = {"X": validate_data(self, X, reset=fitting, **options)}
        frames = {"X": X}
        if y is not None:
            _reject_lookalikes(y)
            if not fitting and "y" not in self.view_names_:
                raise ValueError(f"{type(self).__name__} was fitted without a second view y.")
            Y = check_array(y, ensure_2d=False, input_name="y", estimator=self, **options)
            blocks["y"] = Y.reshape(-1, 1) if Y.ndim == 1 else Y
            frames["y"] = y
            check_consistent_length(*blocks.values())
            if not fitting:
                self._check_widths(Views({"y": blocks["y"]}))

        def wrap(scores: Mapping[str, np.ndarray]) -> Any:
            out = tuple(self._frame(scores[name], frames[name]) for name in blocks)
            return out if y is not None else out[0]

        return Input(Views(blocks), wrap)

    def _check_view(self, name: str, block: Any, **options: Any) -> Any:
        _reject_lookalikes(block, f"View {name!r}: ")
        try:
            return check_array(
                block, accept_sparse="csr", dtype=_FLOATS, estimator=self, **options
            )
        except (ValueError, TypeError) as error:
            raise type(error)(f"View {name!r}: {error}") from error

    def _check_widths(self, views: Views) -> None:
        for name, width in views.widths.items():
            if name not in self.view_names_:
                raise ValueError(
                    f"Unknown view {name!r}; {type(self).__name__} was fitted on the views "
                    f"{list(self.view_names_)}."
                )
            fitted = len(self.weights_[name])
            if width != fitted:
                raise ValueError(
                    f"View {name!r} has {width} features, but {type(self).__name__} is expecting "
                    f"{fitted} features as input."
                )

    def _open_fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[Views, np.ndarray | None]:
        """Checked views for an unsupervised fit, and weights of the objects."""
        if not holds_views(X) and y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. With "
                "one matrix X, y is the second view; or pass Views, a mapping or a list of views."
            )
        views = self._open(X, None if holds_views(X) else y, fitting=True).views
        self._check_number_of_views(views)
        return views, _weights_of_objects(sample_weight, views)

    def _open_supervised_fit(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Views, LabelTable, dict[str, np.ndarray], np.ndarray | None]:
        """Checked views, their distinct label vectors and a code per row, and object weights."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it "
                "learns from labels (a class vector, an indicator matrix, label sets, or real "
                "label vectors)."
            )
        per_view = holds_views(X) and _is_per_view(X, y)
        views = self._open(X, fitting=True, unpaired=per_view and not isinstance(X, Views)).views
        self._check_number_of_views(views)
        table, codes = _encode(views, y, per_view)
        return views, table, codes, _weights_of_objects(sample_weight, views)

    def _check_number_of_views(self, views: Views) -> None:
        found, name = len(views.names), type(self).__name__
        if found < self._min_views:
            raise ValueError(f"{name} takes at least {self._min_views} views, got {found}.")
        if self._max_views is not None and found > self._max_views:
            raise ValueError(
                f"{name} takes {self._max_views} views, got {found}: {list(views.names)}. "
                "Use MVCCA for more."
            )

    def _frame(self, scores: np.ndarray, came: Any) -> Any:
        """Scores in the output container that the user chose with `set_output`."""
        local = getattr(self, "_sklearn_output_config", {})
        kind = local.get("transform", sklearn.get_config()["transform_output"])
        if kind == "default":
            return scores
        columns = self.get_feature_names_out()
        if kind == "pandas":
            import pandas as pd

            return pd.DataFrame(scores, columns=columns, index=getattr(came, "index", None))
        if kind == "polars":
            import polars as pl

            return pl.DataFrame(scores, schema=list(columns))
        raise ValueError(f'output must be "default", "pandas" or "polars", got {kind!r}')

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags = sklearn.utils.TransformerTags(
            preserves_dtype=["float64", "float32"]
        )
        return tags


def _rewrapping(X: Any, views: Views, frame: Callable[[np.ndarray, Any], Any]) -> Any:
    """How to give scores back in the container X came in."""

    def framed(scores: Mapping[str, np.ndarray]) -> dict[str, Any]:
        return {name: frame(block, views[name]) for name, block in scores.items()}

    if isinstance(X, Views):
        return lambda scores: views.replace(framed(scores))
    if isinstance(X, Mapping):
        return framed
    return lambda scores: type(X)(framed(scores).values())


def _named_by_position(X: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if len(X) != len(names):
        raise ValueError(
            f"Expected a list of {len(names)} views {list(names)}, got {len(X)}. Pass a mapping "
            "by name to project only some of them."
        )
    return dict(zip(names, X, strict=True))


def _reject_lookalikes(block: Any, prefix: str = "") -> None:
    """Refuse what NumPy would quietly turn into numbers."""
    if np.ma.isMaskedArray(block):
        raise ValueError(
            f"{prefix}Masked arrays are not supported: the mask would be dropped. Fill or drop "
            "the masked entries first."
        )
    values = block if isinstance(block, np.ndarray) else None
    if values is not None and (
        values.dtype.kind in "US"
        or (values.dtype.kind == "O" and any(isinstance(v, str | bytes) for v in values.flat))
    ):
        raise ValueError(f"{prefix}Expected numbers, got strings. Encode them first.")


def _weights_of_objects(sample_weight: Any, views: Views) -> np.ndarray | None:
    if sample_weight is None:
        return None
    column = np.empty((len(views), 1))
    return _check_sample_weight(sample_weight, column, dtype=np.float64, ensure_non_negative=True)


def _is_per_view(X: Any, y: Any) -> bool:
    """Whether labels came one set per view rather than one per object."""
    if isinstance(y, Mapping) and not issparse(y):
        return True
    n_views = len(X.names) if isinstance(X, Views) else len(X)
    if not isinstance(y, list | tuple) or len(y) != n_views:
        return False
    blocks = [block for _, block in X.items()] if not isinstance(X, list | tuple) else X
    return all(
        not isinstance(labels, str) and hasattr(labels, "__len__") and _height(labels) == _height(block)
        for labels, block in zip(y, blocks, strict=True)
    )


def _height(block: Any) -> int:
    return block.shape[0] if hasattr(block, "shape") and len(block.shape) else len(block)


def _encode(views: Views, y: Any, per_view: bool) -> tuple[LabelTable, dict[str, np.ndarray]]:
    """Distinct label vectors over all views, and the code of every row of every view."""
    if not per_view:
        table, codes = encode_labels(y)
        if len(codes) != len(views):
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"{[len(views), len(codes)]}. One label (or label set) per object is expected."
            )
        return table, {name: codes[views.objects(name)] for name in views.names}
    labels = y if isinstance(y, Mapping) else dict(zip(views.names, y, strict=True))
    if set(labels) != set(views.names):
        raise ValueError(f"Expected labels of the views {list(views.names)}, got {list(labels)}.")
    table, codes = None, {}
    for name in views.names:
        mine, codes[name] = encode_labels(labels[name])
        if len(codes[name]) != views[name].shape[0]:
            raise ValueError(
                f"View {name!r} has {views[name].shape[0]} rows but {len(codes[name])} labels."
            )
        if table is None:
            table = mine
            continue
        size = len(table)
        table, lines = table.merge(mine)
        codes = {other: lines[:size][c] if other != name else c for other, c in codes.items()}
        codes[name] = lines[size:][codes[name]]
    assert table is not None
    return table, codes
