"""Base classes of all estimators: input checks, scores, and projection by affine maps.

Containers are checked view by view, and results are returned in the same kind of container. The
statistic of each method and the problem it solves are defined in `mvcca.linear`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial, wraps
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, clone
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils._param_validation import Interval, StrOptions, make_constraint
from sklearn.utils.validation import check_is_fitted, validate_data

from mvcca.base.requirements import Requirements
from mvcca.base.unit_checks import warn_of_unlike_units
from mvcca.blocks import Block, as_block, as_source, kind_of, to_host
from mvcca.blocks.checks import (
    FLOATS,
    column_labels,
    common_row_labels,
    explained,
    only_numbers,
)
from mvcca.machine.config import get_config
from mvcca.machine.devices import working_on
from mvcca.machine.documentation import Documented
from mvcca.measures import column_correlations
from mvcca.model_selection import (
    GOALS,
    SEARCHED,
    Goal,
    chosen,
    plain_value,
    retrieval_scorer,
    searched,
)
from mvcca.problem import (
    Expected,
    Maps,
)
from mvcca.retrieval.bank import bank_of
from mvcca.retrieval.ranking import CORRECTED
from mvcca.statistics import Regression
from mvcca.statistics.passes import checkpoint_of_fit
from mvcca.views import Views, as_views, holds_views, in_same_container
from mvcca.views.by_view import value_by_view
from mvcca.views.coding import Coding, coded_view
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.output import OutputContainerMixin
from mvcca.views.validation import (
    check_column_names,
    checked_sample_weight,
    read_small,
    repeated_objects,
)

_INTEGERS = (np.int64, np.int32, np.int16, np.uint16, np.int8, np.uint8)

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Restore the estimator if `fit` fails or is interrupted.

    If `mvcca.config_context` names a checkpoint, sums over rows are saved there.
    """

    @wraps(fit)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, config = dict(self.__dict__), get_config()
        try:
            if config.checkpoint is None and config.device is None:
                return fit(self, *args, **kwargs)
            with checkpoint_of_fit(), working_on(config.device):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return whole  # type: ignore[return-value]


def forget(estimator: BaseEstimator) -> None:
    """Delete the fitted attributes, which scikit-learn's `check_is_fitted` looks for."""
    for name in [n for n in vars(estimator) if n.endswith("_") and not n.startswith("__")]:
        delattr(estimator, name)


class MultiViewEstimator(
    ClassNamePrefixFeaturesOutMixin, OutputContainerMixin, Documented, BaseEstimator
):
    """Base of all estimators that map several views into one space.

    Subclasses define `fit` and `_projection`, and declare in ``requires`` what they ask of views
    and labels.
    """

    # Method whose rows retrieval compares, and their similarity; see `mvcca.retrieval.ranking`.
    retrieval_ranking: ClassVar[tuple[str, str]] = ("transform", "cosine")
    requires: ClassVar[Requirements] = Requirements()

    # What "auto" stands for where folds choose nothing; beside a parameter that is "cv", they
    # choose it, too, so that a fit searches what `mvcca.compare` does.
    automatic: ClassVar[Mapping[str, Any]] = {}

    cv_goal: Goal | None = None  # of parameters that are "cv"
    confounds: str | None = None  # the view that is removed from the others
    missing: str = "error"  # what to do with missing cells
    n_components_: int
    ranking_: str  # chosen by folds
    cv_results_: dict[str, Any]
    view_names_: tuple[str, ...]  # that have scores
    _widths: dict[str, int]  # of the fitted views, confounds included
    _coding: Coding  # of the confounds
    _y_is_vector: bool | None = None  # whether the second of two lone matrices was a vector

    @property
    def maps_(self) -> Maps | None:
        """The fitted affine maps as a value; None if scores are not made by such maps."""
        if not hasattr(self, "means_"):
            return None
        rho, expected = getattr(self, "expected_correlations_", None), None
        if rho is not None:
            expected = Expected(rho, self.expected_correlations_by_pair_, self.expected_deviations_)
        regression, z = None, self.confounds
        if z is not None:
            regression = Regression(z, self.means_[z], self.confound_coefficients_, self.ranks_[z])
        return Maps(
            self.weights_,
            self.means_,
            eigenvalues=getattr(self, "eigenvalues_", None),
            power=getattr(self, "power", 0.0),
            expected=expected,
            regression=regression,
            precisions=getattr(self, "precisions_", None),
        )

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        """The function that projects checked rows of a view, which must not hold the estimator."""
        raise NotImplementedError

    def scores_of(self, views: Views, maps: Maps | None) -> dict[str, Any]:
        """Scores of checked views; override it if those of one view depend on another.

        Parameters
        ----------
        views : Views
            Any of the fitted views.
        maps : Maps or None
            Affine maps to end in, `maps_` or others.
        """
        width, bytes_of_features = self.n_components_, 8 if self.requires.dense else 0
        scores = {}
        for name, block in views.blocks.items():
            if name == self.confounds:
                continue
            # Lazy tasks carry the maps to workers: only those of their view.
            own = maps.select([name]) if block.is_lazy and maps is not None else maps
            project = self._projection(name, own)
            scores[name] = block.mapped(project, width, bytes_of_features * block.shape[1])
            if maps is not None and maps.regression is not None:
                z = maps.regression.name
                of_confounds = partial(maps.of_confounds(name).project, z)
                scores[name] = scores[name] - views.rows_beside(z, name).mapped(of_confounds, width)
        return scores

    def _scores(self, views: Views, method: str) -> dict[str, Any]:
        """What a public method of this name returns for checked views, by view.

        Any method but these two computes it in ``_NAME_of``, or takes and returns `Views`.
        """
        if method in ("transform", "variates"):
            maps = self.maps_
            if method == "variates" and maps is not None and maps.power:
                maps = replace(maps, power=0.0)
            return self.scores_of(views, maps)
        of_views = getattr(self, f"_{method}_of", None)
        return dict(getattr(self, method)(views).items()) if of_views is None else of_views(views)

    def project(self, views: Views, method: str = "transform") -> dict[str, Any]:
        """Project the rows of `Views` and return the scores by view.

        Code that holds `Views`, such as rankings and comparisons, calls this instead of
        `transform`, which also reads and returns other containers. Rows are checked against the
        fitted views once, and ``views.replace(scores)`` makes `Views` of the scores again.

        Parameters
        ----------
        views : Views
            Any of the fitted views, paired or not; a view in which no object is seen may be empty.
        method : str, default="transform"
            Name of the method whose scores to compute: "transform", "variates", or the one that
            `retrieval_ranking` declares.

        Returns
        -------
        dict of str to matrix of shape (n_rows, n_components)
            In the precision of the rows, and where the method computes with them: arrays, arrays on
            a device, or lazy Dask arrays; never DataFrames.

        Raises
        ------
        ValueError
            If a view is unknown or does not have the fitted features, or a value is not finite.
        """
        if not hasattr(self, "view_names_"):
            check_is_fitted(self)  # raises; it takes longer than to project a query
        return self._scores(self._checked(views, allow_empty=True), method)

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
        scores : same container as X
            Matrices of shape (n_rows, n_components); two lone matrices give a tuple. Scores of rows
            on a device are on that device.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of features is not the fitted one.
        """
        return self._transform(X, y, "transform")

    def _transform(self, X: Any, y: Any, method: str) -> Any:
        """What a method of this name returns, in the container of X."""
        check_is_fitted(self)
        if y is not None and (self.requires.labels or holds_views(X)):
            raise ValueError(
                f"{type(self).__name__}.transform takes y only as the second view of a lone matrix "
                "X, where it was fitted on two; labels are for fit and score."
            )
        if not holds_views(X):
            frames = {"X": X} if y is None else {"X": X, "y": y}
            scores = self._scores(self._open_matrices(frames, reset=False, unpaired=True), method)
            columns = self.get_feature_names_out()
            out = tuple(self._frame(scores[n], columns, frame) for n, frame in frames.items())
            return out[0] if y is None else out
        views = self.as_fitted_views(X, unpaired=True)
        scores = self._scores(self._checked(views, allow_empty=isinstance(X, Views)), method)
        columns = self.get_feature_names_out()
        framed = {n: self._frame(block, columns, views[n]) for n, block in scores.items()}
        return in_same_container(X, views, framed)

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
        scores : same container as X
            As `transform` returns them. Two lone matrices give a tuple, as in scikit-learn's
            ``cross_decomposition``; labels are not projected.
        """
        is_second_view = not self.requires.labels and not holds_views(X)
        return self.fit(X, y, **fit_params).transform(X, y if is_second_view else None)

    def _fit_chosen(self, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> Self:
        """Fit with the settings that folds choose for the parameters that are "cv"."""
        labelled = True if self.cv_goal == "class" else None
        views, labels, weights = self._open_fit(
            X, y, sample_weight, labelled=labelled, judged=False
        )
        choice = chosen(self, views, labels, weights, options)
        if sample_weight is not None:
            options["sample_weight"] = sample_weight
        model = clone(self).set_params(**choice.parameters)
        model.fit(X, y, **options)
        given = self.get_params(deep=False)
        self.__dict__.update({name: own for name, own in vars(model).items() if name not in given})
        for name in {*searched(self)} - {"n_components"}:
            setattr(self, f"{name}_", choice.params[name])
        self.ranking_, self.cv_results_ = choice.ranking, choice.cv_results
        self._keep_bank(X, y)
        return self

    def _keep_bank(self, X: Any, y: Any) -> None:
        """Keep projected training rows if the chosen ranking corrects for hubs."""
        if self.ranking_.endswith(CORRECTED):
            self.bank_ = bank_of(self, self._open_again(X, y))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean correlation of the projected views, or mean average precision without pairs.

        The correlation is averaged over components and over pairs of views that share objects. If
        no two views do (unpaired views, or a single one), label-supervised estimators return
        ``retrieval_scorer("map")(self, X, y)`` instead: the mean average precision of the ranking
        that the estimator declares, averaged over all ordered pairs of views. For other measures
        see `mvcca.retrieval_scorer`.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Rows to project.
        y : matrix or labels, optional
            Labels; or the second view, for an unsupervised estimator and a lone matrix X.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts; whole numbers where rows are ranked, which then count as
            so many equal rows.

        Returns
        -------
        float
            Larger is better; at most 1.

        Raises
        ------
        ValueError
            If no object is seen in two views and no labels are given, or if only one object is, of
            which there is no correlation: a cross-validation must leave out several at a time.
        """
        check_is_fitted(self)
        views, weights = self._open_again(X, y), None
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, views, reset=False)
        if (self.without_confounds(views).seen.sum(axis=1) > 1).any():
            scores = views.replace(self.scores_of(views, self.maps_)).in_memory()
            return _mean_correlation(scores, weights)
        if y is None or (self.requires.pairs and not self.requires.labels):
            raise ValueError(
                f"{type(self).__name__}.score needs objects that are seen in two views, or labels "
                "y and a label-supervised estimator. Use mvcca.retrieval_scorer."
            )
        if weights is not None:
            labels = LabelsByView.of(views, y, is_per_view(X, y) if holds_views(X) else False)
            reason = "a gallery holds whole items (set_score_request(sample_weight=False))"
            X, repeated, _ = _repeated_rows(views, labels, weights, reason)
            assert repeated is not None
            y = {name: repeated[name] for name in X.names}
        return retrieval_scorer("map")(self, X, y)

    def _open_again(self, X: Any, y: Any) -> Views:
        """Check what `fit` takes, against the fitted views."""
        second = None if self.requires.labels or holds_views(X) else y
        per_view = y is not None and holds_views(X) and is_per_view(X, y)
        unpaired = per_view and not isinstance(X, Views)
        return self._open(X, second, reset=False, unpaired=unpaired)

    def as_fitted_views(self, X: Any, unpaired: bool = False) -> Views:
        """A container as `Views`, the views of a list in the order of those that were fitted.

        Rows of a mapping or a list that are `unpaired` are still paired with their confounds.
        """
        return as_views(X, tuple(self._widths), unpaired=unpaired and self.confounds is None)

    def without_confounds(self, views: Views) -> Views:
        """The same objects in all views but the confounds."""
        if self.confounds is None or self.confounds not in views:
            return views
        return views.select([name for name in views.names if name != self.confounds])

    @property
    def _n_features_out(self) -> int:
        """Number of scores of every view, for `get_feature_names_out`."""
        return self.n_components_

    def _by_view(self, parameter: str, names: Iterable[str]) -> dict[str, Any]:
        """The value of a parameter for each view, validated as a single value is."""
        given = getattr(self, parameter)
        if not isinstance(given, Mapping):
            return dict.fromkeys(names, plain_value(self, parameter, given))
        values = value_by_view(parameter, given, names)
        allowed = [c for c in self._parameter_constraints[parameter] if c is not Mapping]
        constraints = [make_constraint(c) for c in allowed]
        for name, value in values.items():
            if not any(constraint.is_satisfied_by(value) for constraint in constraints):
                expected = ", or ".join(map(str, constraints))
                raise ValueError(f"{parameter} of view {name!r} must be {expected}, got {value!r}.")
            if isinstance(value, str) and value == SEARCHED:
                raise ValueError(
                    f'{parameter}="{SEARCHED}" chooses one value for all views, got it for view '
                    f'{name!r}: give {parameter}="{SEARCHED}" alone, or a value for each view.'
                )
        return {name: plain_value(self, parameter, value) for name, value in values.items()}

    # ---- input checks ---------------------------------------------------------------------------

    def _open(
        self,
        X: Any,
        y: Any = None,
        *,
        reset: bool,
        unpaired: bool = False,
        allow_empty: bool = False,
        least: int | None = None,
    ) -> Views:
        """Check the input, against the fitted views unless `reset`; y is a second view here.

        With `allow_empty`, views of `Views` may have no rows. `least` is the number of rows that
        are needed, by default 2 to `reset`, which deletes the attributes of an earlier fit.
        """
        least = (2 if reset else 1) if least is None else least
        if reset:
            forget(self)
            for name in ("_y_is_vector", "_training", "_unsolved"):
                self.__dict__.pop(name, None)
        if not holds_views(X):
            frames = {"X": X} if y is None else {"X": X, "y": y}
            return self._open_matrices(frames, reset=reset, unpaired=unpaired, least=least)
        views = as_views(X, unpaired=unpaired) if reset else self.as_fitted_views(X, unpaired)
        if reset:
            if self.confounds is not None and self.confounds in views:
                views, self._coding = coded_view(views, self.confounds)
            self.n_features_in_ = views.shape[1]
            self.view_names_, self._widths = views.names, views.widths
            if self.confounds is not None:
                self.view_names_ = self.without_confounds(views).names
            self._column_names = {name: column_labels(block) for name, block in views.items()}
        allow_empty = allow_empty and isinstance(X, Views)
        return self._checked(views, allow_empty=allow_empty, least=least)

    def _checked(self, views: Views, *, allow_empty: bool, least: int = 1) -> Views:
        """Views that fit the fitted ones, with rows that can be computed with.

        With `allow_empty`, some views may have no rows.
        """
        minimum = 0 if allow_empty and len(views) else least
        if self.confounds is not None:
            self._check_confounds(self.confounds, views)
            views, _ = coded_view(views, self.confounds, getattr(self, "_coding", {}))
        for name, block in views.blocks.items():
            if name not in self._widths:
                raise ValueError(
                    f"Unknown view {name!r}; {type(self).__name__} was fitted on the views "
                    f"{list(self._widths)}."
                )
            self._check_features(name, block.shape[1], column_labels(block.matrix))
        blocks = {}
        for name, block in views.blocks.items():
            options: dict[str, Any] = {"ensure_min_samples": minimum}
            if self.requires.integers and isinstance(block.matrix, np.ndarray):
                options |= {"dtype": _INTEGERS} if block.dtype in _INTEGERS else {}
            if self.missing != "error" and name != self.confounds:
                options["ensure_all_finite"] = "allow-nan"
            checked = block.checked(self, name, views.informative_ids_of(name), **options)
            blocks[name] = checked.on_host() if self.requires.host else checked
        return Views.of(blocks, views.seen, views.ids, views.removed)

    def _check_confounds(self, name: str, views: Views) -> None:
        """Refuse rows whose confounds are not known."""
        if name not in views:
            raise ValueError(
                f"{type(self).__name__}(confounds={name!r}) needs the view {name!r} beside the "
                "others, in fit and later: scores are those of what it leaves unexplained. Got "
                f"the views {list(views.names)}."
            )
        known = views.seen[:, views.names.index(name)]
        n_missing = int((views.seen.any(axis=1) & ~known).sum())
        if n_missing:
            raise ValueError(
                f"Confounds {name!r} are missing for {n_missing} of {len(views)} objects. Pair "
                "each row with its confounds, or leave these objects out."
            )

    def _check_features(self, name: str, width: int, columns: tuple[str | int, ...] | None) -> None:
        fitted = self._widths[name]
        if width != fitted:
            raise ValueError(
                f"View {name!r} has {width} features, but {type(self).__name__} is expecting "
                f"{fitted} features as input."
            )
        if columns is not None:
            check_column_names(name, self._column_names[name], columns)

    def _open_matrices(
        self, frames: dict[str, Any], *, reset: bool, unpaired: bool, least: int = 1
    ) -> Views:
        """Check lone matrices X and y, scikit-learn's convention for cross-decomposition."""
        if self.confounds is not None:
            raise ValueError(
                f"confounds={self.confounds!r} names a view: pass Views or a mapping that holds it "
                "beside the others, in place of lone matrices."
            )
        if not reset and "X" not in self.view_names_:
            raise ValueError(
                f"{type(self).__name__} was fitted on the views {list(self.view_names_)}; name the "
                f"view of a lone matrix: {{{self.view_names_[0]!r}: X}}."
            )
        if "y" in frames and not reset and "y" not in self.view_names_:
            raise ValueError(f"{type(self).__name__} was fitted without a second view y.")
        blocks = {n: self._check_matrix(n, frame, reset, least) for n, frame in frames.items()}
        check_consistent_length(*(block.matrix for block in blocks.values()))
        columns: dict[str, Any] = dict.fromkeys(frames)
        views = Views.of(blocks, np.ones((blocks["X"].shape[0], len(blocks)), dtype=bool))
        if any(type(frame) is not np.ndarray for frame in frames.values()):  # which has no labels
            columns = {name: column_labels(frame) for name, frame in frames.items()}
            views = views.with_ids(None if unpaired else common_row_labels(frames))
        if reset:
            self.view_names_, self._widths = views.names, views.widths
            self._column_names = columns
        else:
            for name, width in views.widths.items():
                self._check_features(name, width, columns[name])
        return views

    def _check_matrix(self, name: str, X: Any, reset: bool, least: int) -> Block:
        """Check X, whose features scikit-learn records, or y, which may be a vector."""
        options: dict[str, Any] = {"ensure_min_samples": least}
        if self.missing != "error":
            options["ensure_all_finite"] = "allow-nan"
        is_plain = type(X) is np.ndarray and X.dtype.kind in "fiub"
        if not is_plain:
            source = X if kind_of(X).on_device else as_source(X)
            if source is not None:
                is_vector = name == "y" and source.ndim == 1
                if is_vector and reset:
                    self._y_is_vector = True
                block = as_block(source[:, None] if is_vector else source)
                block = block.checked(self, name, **options)
                if name == "X" and reset:
                    self.n_features_in_ = block.shape[1]
                return block.on_host() if self.requires.host else block
            X = only_numbers(X)
        options |= {"accept_sparse": "csr", "dtype": FLOATS}
        check = partial(validate_data, self, reset=reset)
        if name == "y":
            check = partial(check_array, estimator=self, input_name=name)
            options["ensure_2d"] = False
        try:
            checked = check(X, **options)
        except ValueError as error:
            raise explained(error, X, **options) from None
        is_vector = checked.ndim == 1
        if is_vector and reset:
            self._y_is_vector = True  # predictions of it are vectors, too
        block = as_block(checked.reshape(-1, 1) if is_vector else checked)
        return block if is_plain else block.canonical()

    def _open_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        reset: bool = True,
        labelled: bool | None = None,
        batch: bool = False,
        judged: bool = True,
    ) -> tuple[Views, LabelsByView | None, np.ndarray | None]:
        """Checked views to learn from, labels of their rows if `labelled`, weights of objects.

        A `batch` is not asked for what all batches must hold together. With `judged`, columns in
        unlike units warn.
        """
        labelled = self.requires.labels if labelled is None else labelled
        is_container = holds_views(X)
        if y is None and (labelled or not is_container):
            raise ValueError(_missing_y(type(self).__name__, labelled))
        per_view = labelled and is_container and is_per_view(X, y)
        views = self._open(
            X,
            None if labelled or is_container else y,
            reset=reset,
            unpaired=per_view and not isinstance(X, Views),
            allow_empty=batch or not reset,
            least=1 if batch else None,
        )
        labels = LabelsByView.of(views, y, per_view) if labelled else None
        views = self._complete(views, reset)
        correlated = views if self.confounds is None else self.without_confounds(views)
        for name, block in correlated.blocks.items() if reset and judged else ():
            if self._depends_on_units(name):
                warn_of_unlike_units(name, block, self._column_names[name])
        if not labelled and reset and not batch and not (correlated.seen.sum(axis=1) > 1).any():
            raise ValueError(
                f"{type(self).__name__} learns from pairs, but no object is in two views. MLCCA "
                "and MVMLCCA take labels instead; rows that do correspond are paired with "
                "Views(blocks, index) or Views.aligned."
            )
        if sample_weight is None:
            return views, labels, None
        weights = checked_sample_weight(sample_weight, views, reset, batch)
        if not weights.all():  # rows of weight 0 are dropped
            kept = weights > 0
            if labels is not None:
                labels = labels.take({name: kept[views.objects(name)] for name in views.names})
            views, weights = views[kept], weights[kept]
        return views, labels, weights

    def _open_repeated(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Views, LabelsByView | None]:
        """What `_open_fit` returns, for methods without a weighted form: weights repeat rows."""
        views, labels, _ = self._open_fit(X, y)
        return self._repeated(views, labels, sample_weight)[:2]

    def _repeated(
        self, views: Views, labels: LabelsByView | None, sample_weight: Any, reset: bool = True
    ) -> tuple[Views, LabelsByView | None, np.ndarray | None]:
        """Views with each object as often as it counts, labels of their rows, and the objects."""
        if sample_weight is None:
            return views, labels, None
        weights = checked_sample_weight(sample_weight, views, reset)
        reason = f"{type(self).__name__} learns from whole rows"
        return _repeated_rows(views, labels, weights, reason)

    def _depends_on_units(self, name: str) -> bool:
        """Whether the columns of a view count by their variance: in a ridge, or in distances."""
        return True

    def _complete(self, views: Views, reset: bool) -> Views:
        """Check the number of views, or that a batch has the fitted ones; read small files."""
        found, name = len(views.names) - (self.confounds is not None), type(self).__name__
        least, most = self.requires.views
        if reset and found < least:
            raise ValueError(
                f"{name} takes at least {least} views, got {found}. In cross-validations and "
                "splits of scikit-learn pass mvcca.Views(views), which are split by object; lists "
                "and dicts are split by view."
            )
        if reset and most is not None and found > most:
            raise ValueError(
                f"{name} takes {most} views, got {found}: {list(self.view_names_)}. Use MVCCA for "
                "more."
            )
        names = tuple(self._widths)
        if missing := [name for name in names if name not in views.names]:
            raise ValueError(f"Every batch must hold the views {list(names)}; missing: {missing}.")
        if views.names != names:
            views = views.select(names)
        return read_small(views) if views.is_lazy else views

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = self.requires.labels  # else y is a matrix, the second view
        tags.transformer_tags = sklearn.utils.TransformerTags(
            preserves_dtype=["float64", "float32"]
        )
        return tags


def _missing_y(name: str, labelled: bool) -> str:
    """Error message for a fit without the y that it needs."""
    message = f"{name} requires y to be passed, but the target y is None"
    if labelled:
        return message + (
            ": it learns from labels (a class vector, an indicator matrix, label sets, or real "
            "label vectors)."
        )
    return message + (
        ". With one matrix X, y is the second view; or pass Views, a mapping or a list of views."
    )


def _repeated_rows(
    views: Views, labels: LabelsByView | None, weights: np.ndarray, reason: str
) -> tuple[Views, LabelsByView | None, np.ndarray | None]:
    """Views with each object as often as it counts, labels of their rows, and the objects.

    The objects are None if each occurs once, so that nothing is copied.
    """
    objects = repeated_objects(weights, reason)
    if np.array_equal(objects, np.arange(len(views))):
        return views, labels, None
    if labels is not None:
        labels = labels.take(views.rows_of(objects))
    return views[objects], labels, objects


def _mean_correlation(scores: Views, weights: np.ndarray | None) -> float:
    """Mean over components and pairs of views that share objects."""
    correlations = []
    for pair in combinations(scores.names, 2):
        both = scores.select(pair)
        counts = both.seen.all(axis=1) if weights is None else weights * both.seen.all(axis=1)
        kept = counts > 0
        if kept.sum() > 1:
            first, second = (to_host(X) for _, X in both[kept].items())
            own = None if weights is None else weights[kept]
            correlations.append(column_correlations(first, second, own))
    if not correlations:
        raise ValueError(
            "The score is a correlation, which one object does not have: expected at least two "
            "objects (of positive weight) that are seen in two views. Leave out several objects at "
            "a time, as cv=5 does, and not one, as LeaveOneOut does. Errors of predictions, such "
            'as scoring="neg_mean_squared_error", are defined on one object; retrieval measures '
            "(mvcca.retrieval_scorer) need no pairs, but several items."
        )
    return float(np.mean(correlations))


class LinearEstimator(MultiViewEstimator):
    """Base of the estimators with one affine map per view: their fitted attributes."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "reg": [Interval(Real, 0, None, closed="left"), StrOptions({"auto", "oas", "cv"}), Mapping],
        "reg_unit": [StrOptions({"relative", "absolute"})],
        "center": ["boolean"],
        "cv_goal": [StrOptions(set(GOALS)), None],
        "power": [Interval(Real, 0, None, closed="left")],
    }

    n_components: Any  # a number; None for all that the data support; for some methods "cv"
    weights_: dict[str, np.ndarray]
    means_: dict[str, np.ndarray]
    maps_: Maps

    def variates(self, X: Any, y: Any = None) -> Any:
        """Project rows as `transform` does, without the factors λ^power.

        Parameters
        ----------
        X, y
            As for `transform`.

        Returns
        -------
        variates : same container as X
            The scores of `transform` for ``power=0``, and for methods without that parameter.
        """
        return self._transform(X, y, "variates")

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        assert maps is not None
        return partial(maps.project, name)

    def _keep(self, maps: Maps) -> None:
        """Set the fitted attributes."""
        self.__dict__.update(maps.attributes())
        if getattr(self, "power", 0):
            self.maps_.factors(np.dtype(np.float64))  # refused here, not at the first scores
