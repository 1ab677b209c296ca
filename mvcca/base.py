"""What every multi-view estimator shares: the door where input is checked, and affine projection.

A container comes in, is checked view by view, and the same kind of container goes out. How weights
are found is each estimator's own business; see `mvcca.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca._backend import beside, is_device_array, placed, precision, to_host
from mvcca._checked_rows import CheckedRows
from mvcca._containers import column_labels, common_row_labels, reject_masks
from mvcca._devices import working_on
from mvcca.config import block_slices, get_config
from mvcca.labels import LabelTable
from mvcca.sources import RowSource, as_source
from mvcca.statistics import checkpoint_of_fit
from mvcca.validation import (
    FLOATS,
    check_column_names,
    check_device_matrix,
    check_numbers,
    encode_views,
    explained,
    is_finite,
    is_per_view,
    of_view,
    read_labels,
    read_small,
    reject_strings,
    used_lines,
    weights_of_objects,
)
from mvcca.views import Views, as_views, holds_views, in_same_container


@dataclass(frozen=True, eq=False)
class Input:
    """Checked views, and how to give results back in the container that they came in."""

    views: Views
    wrap: Callable[[Mapping[str, np.ndarray]], Any]


Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """A fit that leaves the estimator as it was where it fails or is interrupted.

    What it adds up is kept at the checkpoint, where `mvcca.config_context` names one.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        try:
            with checkpoint_of_fit(), working_on(get_config().device):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return whole  # type: ignore[return-value]


def forget(estimator: BaseEstimator) -> None:
    """Delete what was learned: all attributes that scikit-learn's `check_is_fitted` looks for."""
    for name in [n for n in vars(estimator) if n.endswith("_") and not n.startswith("__")]:
        delattr(estimator, name)


class OutputContainerMixin(TransformerMixin):
    """`set_output` for transformers whose output is one matrix, or several in a container."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # scikit-learn's own wrapping of outputs knows one matrix only.
        super().__init_subclass__(auto_wrap_output_keys=None, **kwargs)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what the matrices that come out are: "default" (NumPy), "pandas" or "polars".

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            None leaves the choice as it is.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _output_container(self) -> str:
        local = getattr(self, "_sklearn_output_config", {})
        return local.get("transform", sklearn.get_config()["transform_output"])

    def _frame(self, block: Any, columns: np.ndarray, came: Any) -> Any:
        """A matrix in the chosen container, with the row index of the one that it was made of."""
        kind = self._output_container()
        if kind == "default":
            return beside(block, came) if _is_away(came, block) else block
        block = to_host(block)
        if type(block).__module__.split(".")[0] == kind:  # a DataFrame of that kind already
            return block
        if kind not in ("pandas", "polars"):
            raise ValueError(f'output must be "default", "pandas" or "polars", got {kind!r}.')
        if issparse(block):
            raise ValueError(
                f"{kind.capitalize()} output does not support sparse data. Choose dense output, or "
                'set_output(transform="default").'
            )
        if kind == "polars":
            import polars as pl

            return pl.DataFrame(np.asarray(block), schema=list(columns), orient="row")
        import pandas as pd

        # A tensor's `index` is no row index.
        index = None if is_device_array(came) else getattr(came, "index", None)
        return pd.DataFrame(block, columns=columns, index=index)


def _is_away(came: Any, block: Any) -> bool:
    """Whether scores are at home and the rows they are of on a device."""
    return is_device_array(came) and isinstance(block, np.ndarray)


class MultiViewEstimator(ClassNamePrefixFeaturesOutMixin, OutputContainerMixin, BaseEstimator):
    """Base of all estimators that map several views into one space.

    Subclasses set ``weights_`` and ``means_`` (by view name) in `fit`, and say with
    ``_min_views`` how many views they need and with ``_supervised`` whether ``y`` is labels.
    """

    # Method whose rows retrieval compares, and their similarity; see `mvcca.retrieval.declared`.
    retrieval_ranking: ClassVar[tuple[str, str]] = ("transform", "cosine")
    _min_views = 2
    _max_views: int | None = None
    _supervised = False
    _keeps_sparse = True  # else a block of sparse rows is made dense
    _computes_on_devices = True  # else device blocks come home, and scores go back

    weights_: dict[str, np.ndarray]
    means_: dict[str, np.ndarray]
    n_components_: int
    view_names_: tuple[str, ...]

    def transform(self, X: Any, y: Any = None) -> Any:
        """Project rows of any of the fitted views into the shared space.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may hold any subset of the fitted views, by name; a list holds all
            of them, in order. A lone matrix is the first view, if the estimator was fitted on one.
            Rows need no pairing here: views may differ in their number of rows.
        y : matrix, optional
            The second view, if the estimator was fitted on two lone matrices.

        Returns
        -------
        scores : same container as came in
            Matrices of shape (n_rows, n_components); two lone matrices give a tuple. Scores of rows
            on a device are on that device.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of features is not the fitted one.
        """
        check_is_fitted(self)
        if y is not None and (self._supervised or holds_views(X)):
            raise ValueError(
                f"{type(self).__name__}.transform takes y only as the second view of a lone matrix "
                "X, where it was fitted on two; labels are for fit and score."
            )
        came = self._open(X, y, reset=False, unpaired=True, allow_empty=True)
        return came.wrap({n: self._scores(n, block) for n, block in came.views.items()})

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X (and y), then project the views.

        Parameters
        ----------
        X, y
            As in `fit`.
        **fit_params
            Further arguments of `fit`.

        Returns
        -------
        scores : same container as came in
            As `transform` gives them. Two lone matrices give a tuple, as in scikit-learn's
            ``cross_decomposition``; labels are not projected.
        """
        is_second_view = not self._supervised and not holds_views(X)
        return self.fit(X, y, **fit_params).transform(X, y if is_second_view else None)

    @property
    def _n_features_out(self) -> int:
        """Of every view, for `get_feature_names_out`."""
        return self.n_components_

    def _scores(self, name: str, block: Any) -> Any:
        """Scores of rows in memory or not; those of a Dask array are another, not computed yet."""
        if not isinstance(block, CheckedRows):
            return self._project(name, block)
        model = copy(self)
        model.__dict__.pop("_statistic", None)  # of no use to a worker, and large
        project = partial(model._project, name)
        if (lazy := block.map_lazily(project, self.n_components_)) is not None:
            return lazy
        scores = np.empty((block.shape[0], self.n_components_), dtype=block.dtype)
        width = block.row_bytes if self._keeps_sparse else 8 * block.shape[1]
        row_bytes = max(width, scores.itemsize * scores.shape[1])
        for rows in block_slices(block.shape[0], row_bytes):
            scores[rows] = project(block.read(rows.start, rows.stop))
        return scores

    def _project(self, name: str, block: Any) -> Any:
        mean, weights = self.means_[name], self.weights_[name]
        if issparse(block):  # centring first would fill the zeros in, so what is large subtracts
            return np.asarray(block @ weights - mean @ weights).astype(block.dtype, copy=False)
        rounded = mean.astype(precision(block))
        residue = (mean - rounded) @ weights  # of what float32 could not hold of the mean
        return (block - placed(rounded, block)) @ placed(weights, block) - placed(residue, block)

    # ---- the door -------------------------------------------------------------------------------

    def _open(
        self,
        X: Any,
        y: Any = None,
        *,
        reset: bool,
        unpaired: bool = False,
        allow_empty: bool = False,
    ) -> Input:
        """Check what came in, against what was fitted unless `reset`; y is a second view here.

        If `allow_empty`, none of the objects of `Views` need be seen in a view. With `reset` the
        attributes of an earlier fit are deleted.
        """
        if reset:
            forget(self)
        if not holds_views(X):
            return self._open_matrices(X, y, reset=reset, unpaired=unpaired)
        raw = as_views(X, None if reset else self.view_names_, unpaired=unpaired)
        if reset:
            self.n_features_in_ = raw.shape[1]
            self._column_names = {name: column_labels(block) for name, block in raw.items()}
        else:
            self._check_fitted_to(raw)
        minimum = 2 if reset else 0 if allow_empty and isinstance(X, Views) and len(X) else 1
        checked = {
            name: self._check_view(name, block, ensure_min_samples=minimum)
            for name, block in raw.items()
        }

        def wrap(scores: Mapping[str, np.ndarray]) -> Any:
            columns = self.get_feature_names_out()
            framed = {n: self._frame(block, columns, raw[n]) for n, block in scores.items()}
            return in_same_container(X, raw, framed)

        return Input(raw.replace(checked), wrap)

    def _open_matrices(self, X: Any, y: Any, *, reset: bool, unpaired: bool) -> Input:
        """One lone matrix, or two: scikit-learn's convention for cross-decomposition."""
        if not reset and "X" not in self.view_names_:
            raise ValueError(
                f"{type(self).__name__} was fitted on the views {list(self.view_names_)}; name the "
                f"view of a lone matrix: {{{self.view_names_[0]!r}: X}}."
            )
        minimum = 2 if reset else 1
        blocks = {"X": self._check_lone_matrix(X, reset, minimum)}
        frames = {"X": X}
        if reset:
            self._column_names = {"X": column_labels(X), "y": column_labels(y)}
        else:
            check_column_names("X", self._column_names["X"], X)
        if y is not None:
            if not reset and "y" not in self.view_names_:
                raise ValueError(f"{type(self).__name__} was fitted without a second view y.")
            blocks["y"] = self._check_second_matrix(y, minimum)
            frames["y"] = y
            check_consistent_length(*blocks.values())
            if not reset:
                self._check_width("y", blocks["y"].shape[1])
                check_column_names("y", self._column_names["y"], y)

        def wrap(scores: Mapping[str, np.ndarray]) -> Any:
            columns = self.get_feature_names_out()
            out = tuple(self._frame(scores[name], columns, frames[name]) for name in blocks)
            return out if y is not None else out[0]

        ids = None if unpaired else common_row_labels(frames)
        return Input(Views(blocks).with_ids(ids), wrap)

    def _check_lone_matrix(self, X: Any, reset: bool, minimum: int) -> Any:
        source = X if is_device_array(X) else as_source(X)
        if source is None:
            reject_masks(X)
            reject_strings(X)
            options = {"accept_sparse": "csr", "dtype": FLOATS, "ensure_min_samples": minimum}
            try:
                return validate_data(self, X, reset=reset, **options)
            except ValueError as error:
                raise explained(error, X, **options) from None
        checked = self._check_view("X", source, ensure_min_samples=minimum)
        if reset:
            self.n_features_in_ = checked.shape[1]
        else:
            self._check_width("X", checked.shape[1])
        return checked

    def _check_second_matrix(self, y: Any, minimum: int) -> Any:
        if is_device_array(y):
            Y = y[:, None] if y.ndim == 1 else y
            return self._check_view("y", Y, ensure_min_samples=minimum)
        if (source := as_source(y)) is not None:
            return self._check_view("y", source, ensure_min_samples=minimum)
        options = {"ensure_2d": False, "input_name": "y", "ensure_min_samples": minimum}
        Y = check_numbers(y, self, **options)
        return Y.reshape(-1, 1) if Y.ndim == 1 else Y

    def _check_view(self, name: str, block: Any, **options: Any) -> Any:
        if isinstance(block, RowSource):  # its numbers are checked as they are read
            return CheckedRows(block, name, type(self).__name__, **options)
        try:
            if is_device_array(block):
                checked = check_device_matrix(block, type(self).__name__, **options)
                return checked if self._computes_on_devices else to_host(checked)
            return check_numbers(block, self, ensure_all_finite=not is_finite(block), **options)
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error

    def _check_fitted_to(self, views: Views) -> None:
        for name, block in views.items():
            if name not in self.view_names_:
                raise ValueError(
                    f"Unknown view {name!r}; {type(self).__name__} was fitted on the views "
                    f"{list(self.view_names_)}."
                )
            self._check_width(name, block.shape[1])
            check_column_names(name, self._column_names[name], block)

    def _fitted_width(self, name: str) -> int:
        return len(self.weights_[name])

    def _check_width(self, name: str, width: int) -> None:
        fitted = self._fitted_width(name)
        if width != fitted:
            raise ValueError(
                f"View {name!r} has {width} features, but {type(self).__name__} is expecting "
                f"{fitted} features as input."
            )

    def _open_fit(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[Views, np.ndarray | None]:
        """Checked views for an unsupervised fit, and weights of the objects."""
        if not holds_views(X) and y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. With "
                "one matrix X, y is the second view; or pass Views, a mapping or a list of views."
            )
        second = None if holds_views(X) else y
        views = self._open(X, second, reset=reset, allow_empty=not reset).views
        views = read_small(self._check_completeness(views, reset))
        if reset and not (views.seen.sum(axis=1) > 1).any():
            raise ValueError(
                f"{type(self).__name__} learns from pairs, but no object is in two views. MLCCA "
                "and MVMLCCA take labels instead; rows that do correspond are paired with "
                "Views(blocks, index) or Views.aligned."
            )
        weights = weights_of_objects(sample_weight, views, reset)
        if weights is None or weights.all():
            return views, weights
        return views[weights > 0], weights[weights > 0]  # what counts 0 times is not there

    def _open_supervised_fit(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[Views, LabelTable, dict[str, np.ndarray], np.ndarray | None]:
        """Checked views, their distinct label vectors and a code per row, and object weights."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: it "
                "learns from labels (a class vector, an indicator matrix, label sets, or real "
                "label vectors)."
            )
        y = read_labels(y)
        per_view = holds_views(X) and is_per_view(X, y)
        unpaired = per_view and not isinstance(X, Views)
        views = self._open(X, reset=reset, unpaired=unpaired, allow_empty=not reset).views
        table, codes = encode_views(views, y, per_view)
        views = read_small(self._check_completeness(views, reset))
        weights = weights_of_objects(sample_weight, views, reset)
        if weights is not None and not weights.all():
            counts = weights > 0
            codes = {name: code[counts[views.objects(name)]] for name, code in codes.items()}
            views, weights = views[counts], weights[counts]
        return views, *used_lines(table, codes), weights

    def _check_completeness(self, views: Views, reset: bool) -> Views:
        """As many views as the method takes; in a later batch, the fitted ones in their order."""
        if not reset:
            missing = [name for name in self.view_names_ if name not in views]
            if missing:
                raise ValueError(
                    f"Every batch must hold the views {list(self.view_names_)}; missing: {missing}."
                )
            return views.select(self.view_names_)
        self._check_number_of_views(views)
        return views

    def _check_number_of_views(self, views: Views) -> None:
        found, name = len(views.names), type(self).__name__
        if found < self._min_views:
            raise ValueError(f"{name} takes at least {self._min_views} views, got {found}.")
        if self._max_views is not None and found > self._max_views:
            raise ValueError(
                f"{name} takes {self._max_views} views, got {found}: {list(views.names)}. "
                "Use MVCCA for more."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags = sklearn.utils.TransformerTags(
            preserves_dtype=["float64", "float32"]
        )
        return tags
