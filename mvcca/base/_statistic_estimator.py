"""The base of linear methods: a statistic that adds, and the problem that it poses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.exceptions import NotFittedError

from mvcca.base._estimators import LinearEstimator, MultiViewEstimator, all_or_nothing, forget
from mvcca.base.label_checks import check_shared_labels
from mvcca.base.unit_checks import warn_of_unlike_covariance
from mvcca.machine.memory import available_bytes
from mvcca.machine.warnings import warn
from mvcca.model_selection import (
    LEAST_RIDGE,
    SEARCHED,
    searched,
    tune_by_products,
    tuned,
)
from mvcca.problem import (
    SHRINKAGES,
    WIDE,
    Estimate,
    KnownRank,
    Problem,
    Reg,
    Rows,
    Shrunk,
    by_products,
    bytes_of_matrices,
    reg_of_names,
    shrinkages,
)
from mvcca.statistics import OF_HOLES
from mvcca.views import Views

T = TypeVar("T")


class StatisticEstimator(LinearEstimator):
    """Base of the methods that learn from a statistic of the rows, with `fit` and `partial_fit`.

    A method defines two things: `statistic_of`, which sums up rows in a value that adds, and
    `problem`, the problem to solve given that value. By default they are those of CCA.
    """

    n_components: Any = None
    reg: Reg = 0.0
    reg_unit: str = "relative"
    center: bool = True
    learns_from_rows: ClassVar[bool] = False  # whether the statistic is the rows themselves
    draws_from_rows: ClassVar[bool] = False  # whether `draw` does, so that statistics differ
    # What to do about views that are too large for matrices over their features or rows.
    _if_too_large: ClassVar[str] = (
        "Reduce the features first, as by PerView(TruncatedSVD(300)), or fit a sample of the rows."
    )
    _statistic: Any  # sums over the batches so far; None after fit
    _unsolved: str  # why these batches do not suffice for components; else missing

    def statistic_of(self, rows: Rows) -> Any:
        """Sum up rows: all that the method needs to know of them; by default their moments.

        Parameters
        ----------
        rows : Rows
            Checked rows of all views, with their weights, labels and ridge.

        Returns
        -------
        statistic
            Such as `mvcca.statistics.Moments`; for `partial_fit` a value with ``+``, so that the
            statistic of all rows is the sum of those of its batches.
        """
        if self.missing != "error":
            return OF_HOLES[self.missing].of(rows.views, rows.sample_weight)
        return rows.moments()

    def draw(self, rows: Rows) -> None:
        """Draw at random from rows what a statistic needs; by default nothing."""

    def problem(self, rows: Rows, statistic: Any) -> Problem:
        """Pose the problem whose solution the method's maps are; by default that of CCA.

        Parameters
        ----------
        rows : Rows
            All rows of the statistic, or its last batch.
        statistic
            What `statistic_of` returned, or the sum over batches.

        Returns
        -------
        Problem
            Matrices between and within views.
        """
        about = Estimate.of(
            statistic,
            rows,
            center=self.center,
            confounds=self.confounds,
            columns=self._column_names,
        )
        ranks: dict[str, KnownRank] = {}
        if about.regression is not None:
            # Coordinates are independent: what residuals lack of them, the confounds explain.
            ranks = dict.fromkeys(rows.bases, KnownRank(why="confounds explain some of it"))
        return Problem(rows, about, with_patterns=hasattr(self, "predict"), ranks=ranks)

    def posed(self, rows: Rows, statistic: Any) -> Problem:
        """The problem of a sum of statistics, over the rows of `solved_views`."""
        return self.problem(rows, statistic)

    def solved_views(self, views: Views) -> Views:
        """The rows whose maps solve the problem; by default the views themselves."""
        return views

    @property
    def keeps_solutions(self) -> bool:
        """Whether the maps of a fit are the solution of its problem, for any ridge."""
        return type(self).learn is StatisticEstimator.learn

    @property
    def scores_correlations(self) -> bool:
        """Whether `score` is the mean correlation, for which moments of new rows suffice."""
        return type(self).score is MultiViewEstimator.score

    def nests_components(self) -> bool:
        """Whether a fit with fewer components is the first components of a fit with more."""
        return self.keeps_solutions

    def learn(self, rows: Rows, statistic: Any) -> None:
        """Solve the problem and set the fitted attributes."""
        problem = self.problem(rows, statistic)
        maps = problem.solve(rows.n_components)
        self._keep(maps.checked(rows.n_components))
        self._check_units(rows, problem)

    def _check_units(self, rows: Rows, problem: Problem) -> None:
        """Warn of columns in unlike units in views that are not in memory."""
        lazy = [name for name, block in rows.views.blocks.items() if block.is_lazy]
        within = problem.blocks()[1] if lazy else {}
        for name in lazy:
            B = within.get(name)
            if isinstance(B, np.ndarray) and B.ndim == 2 and self._depends_on_units(name):
                n_rows = rows.views.blocks[name].shape[0]
                warn_of_unlike_covariance(name, B, n_rows, self._column_names[name])

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the maps from all rows at once.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views, paired or partly paired; methods that learn from labels take unpaired views
            too, and others learn from the objects that are seen in two views. A lone matrix is the
            first of two views, or with labels the only one.
        y : matrix or labels, optional
            The second view, if X is a lone matrix; ignored for other X (labels in a pipeline).
            Methods that learn from labels require them here: a class vector, an indicator matrix,
            label sets, real label vectors or `Labels`, one per object; or a list or mapping with
            the labels of each view, whose heights may differ.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a view holds infinity, or NaN where the method has no parameter `missing` that allows
            it; if it never varies, or differs in rows from views that it is paired with; if it
            shares fewer than two objects with the others, for methods that learn from pairs; if
            labels are required and missing, or all the same.
        """
        self._validate_params()
        if hasattr(self, "search_space") and searched(self):
            return self._fit_chosen(X, y, sample_weight)
        rows = self.open_rows(X, y, sample_weight)
        self._learn_rows(replace(rows, needs_many=self.requires.many_rows))
        self._statistic = None
        if self.reg == "cv":
            self._keep_bank(X, y)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to the statistic and solve again; batches give what `fit` gives.

        A batch may be of any kind: a single row, one class, a constant view, rows of weight 0. If
        the batches so far do not suffice, whatever asks for components says why. After `fit`, which
        keeps no statistic, batches start over, with a warning. What is drawn at random from rows
        (label features, feature maps) is drawn from the first batch.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a batch holds infinity, or NaN where the method has no parameter `missing` that
            allows it; if it differs in rows between paired views; or if it lacks a view or a
            feature that earlier batches had.
        """
        self._validate_params()
        if hasattr(self, "search_space") and searched(self):
            asked = [name for name in searched(self) if getattr(self, name) == SEARCHED]
            raise ValueError(
                f'{", ".join(asked)}="cv" looks at all rows at once: use fit, or give partial_fit '
                "values."
            )
        first = self._is_first_batch()
        rows = self.open_rows(X, y, sample_weight, reset=first, batch=True)
        if len(rows.views) == 0:  # nothing to add
            if first:
                self._unsolved = "no row so far counts: it needs weight, and two views to pair."
            return self
        statistic = self.statistic_of(rows)
        shrinks = self.reg in SHRINKAGES and not self.learns_from_rows
        if shrinks if first else isinstance(self._statistic, Shrunk):
            statistic = Shrunk.of(statistic, rows, self.confounds)
        if not first:
            statistic = self._statistic + statistic
        self._solve_batches(rows, statistic)
        self._statistic = statistic.to_host() if hasattr(statistic, "to_host") else statistic
        return self

    def open_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, batch: bool = False
    ) -> Rows:
        """Checked rows with their weights, labels and ridge."""
        judged = True if self.reg == "cv" and self.cv_goal == "class" else None
        views, labels, weights = self._open_fit(
            X, y, sample_weight, reset=reset, labelled=judged, batch=batch
        )
        rows = Rows(views, weights, labels, n_components=self.n_components, center=self.center)
        if isinstance(self.reg, str):
            self._check_reg(batch)
        if not self.requires.labels and not views.is_paired:
            pairs = self._pairs_of(views, weights, reset and not batch)
            # With holes, objects that are seen in one view tell its covariance.
            rows = rows.take(pairs) if self.missing == "error" else rows
        is_whole = rows.views.is_paired or self.missing != "error"
        if self.confounds is not None and not is_whole:
            raise ValueError(
                f"{type(self).__name__}(confounds={self.confounds!r}) takes objects that are seen "
                "in all views. Select them: views[views.seen.all(axis=1)]."
            )
        rows = replace(rows, reg=self._ridges(rows.views, rows.sample_weight, batch))
        if labels is not None and not batch:  # a later batch may bring the labels in common
            check_shared_labels(labels)
        return rows

    def _depends_on_units(self, name: str) -> bool:
        if "reg" not in self._parameter_constraints:
            return True
        reg = self.reg.get(name) if isinstance(self.reg, Mapping) else self.reg
        return reg != 0

    def _check_reg(self, batch: bool) -> None:
        """Refuse ridges that are searched or estimated, where there is too little to do so."""
        if self.missing != "error" and (batch or self.reg != "cv"):
            raise ValueError(
                f'reg="{self.reg}" looks at complete rows, and missing="{self.missing}" allows '
                'holes in them: give numbers, or reg="cv" to fit.'
            )
        if self.reg_unit != "relative":
            chosen = "searches ridges relative to" if self.reg == "cv" else "shrinks towards"
            raise ValueError(
                f'reg="{self.reg}" {chosen} the mean variance of each view, so that reg_unit='
                f'"{self.reg_unit}" needs a number: search a list of absolute ridges with '
                "FoldSearchCV or GridSearchCV, or leave reg_unit out."
            )
        if self.reg == "auto" and self.confounds is not None and batch:
            raise ValueError(
                'reg="auto" looks at all rows twice if there are confounds: use fit, or give '
                'partial_fit reg="oas" or a number.'
            )

    def _pairs_of(self, views: Views, weights: np.ndarray | None, whole: bool) -> np.ndarray:
        """The objects to learn from; each view needs some, where these are all rows."""
        kept = np.flatnonzero(self._holds_pair(views))
        views, weights = views[kept], None if weights is None else weights[kept]
        counts = views.seen.sum(axis=0) if weights is None else weights @ views.seen
        for name, count in zip(views.names, counts, strict=True):
            if whole and not count > 1:
                raise ValueError(
                    f"{type(self).__name__} learns from pairs, but view {name!r} shares {count:g} "
                    "objects with the others. Pair at least two, or select the other views."
                )
        return kept

    def _holds_pair(self, views: Views) -> np.ndarray:
        """Whether each object is seen in two views, of which there is something to learn."""
        return self.without_confounds(views).seen.sum(axis=1) > 1

    def _ridges(self, views: Views, weights: np.ndarray | None, batch: bool) -> dict[str, float]:
        """Ridge of each view; none if the sum of batches is to estimate it."""
        if self.reg == "cv" and not batch:
            return dict.fromkeys(views.names, LEAST_RIDGE)  # of those that are searched
        if self.reg in SHRINKAGES:
            if batch:
                return {}
            return shrinkages(
                views, weights, self.reg, center=self.center, confounds=self.confounds
            )
        if self.confounds is not None:
            names = self.without_confounds(views).names
            return reg_of_names(self.reg, names, unit=self.reg_unit) | {self.confounds: 0.0}
        return reg_of_names(self.reg, views.names, unit=self.reg_unit)

    def _learn_rows(self, rows: Rows) -> None:
        """Fit to all rows at once, as precisely as they need."""
        if sum(rows.views.widths.values()) >= WIDE:
            if self.takes_products and self._learn_wide_cca(rows):
                return
            if not self.requires.features:
                self._check_memory(rows.views)
        if self.reg == "cv":
            self.precisely(rows, tuned(self, rows))
        else:
            self.precisely(rows, lambda rows: self.learn(rows, self.statistic_of(rows)))

    def _check_memory(self, views: Views) -> None:
        """Refuse views for which matrices over features, or rows if these are fewer, do not fit."""
        needed, available = self._bytes_of_matrices(views), available_bytes()
        if needed > available:
            shapes = ", ".join(f"{n!r} {X.shape[0]:,} x {X.shape[1]:,}" for n, X in views.items())
            raise MemoryError(
                f"{type(self).__name__} of views {shapes} needs about {needed / 1e9:.1f} GB for "
                "matrices over the features of a view, or over its rows if these are fewer, and "
                f"{available / 1e9:.1f} GB are available. {self._if_too_large}"
            )

    def _bytes_of_matrices(self, views: Views) -> float:
        """Memory that a fit needs beside the rows."""
        return bytes_of_matrices(views)

    @property
    def takes_products(self) -> bool:
        """Whether the problem is that of CCA, which needs no covariance matrices."""
        own, base = type(self), StatisticEstimator
        methods = ("statistic_of", "problem", "learn")
        of_cca = all(getattr(own, name) is getattr(base, name) for name in methods)
        return of_cca and self.confounds is None and self.missing == "error"

    def _learn_wide_cca(self, rows: Rows) -> bool:
        """Fit by products with the rows, if that takes less; whether it does."""
        if self.reg == "cv":
            return tune_by_products(self, rows, self._learn_by_products)
        return self._learn_by_products(rows)

    def _learn_by_products(self, rows: Rows) -> bool:
        """Fit to rows whose ridges are known."""
        maps = by_products(rows, with_patterns=hasattr(self, "predict"))
        if maps is None:
            return False
        self._keep(maps.checked(rows.n_components))
        return True

    def precisely(self, rows: Rows, learn: Callable[[Rows], T]) -> T:
        """The result of `learn` for rows in a basis and a precision that suffice for the method."""
        if self.missing != "error":  # rows with holes span no space, and are added up in float64
            return learn(rows)
        rows = rows if self.requires.features else rows.in_row_space()
        return rows.precisely(
            learn,
            # Differences of covariances, as of residuals, have fewer digits than each.
            float32=not self.requires.float64 and self.confounds is None,
            decompose=not self.requires.features,
        )

    def _fit_batches(self, rows: Rows, statistic: Any) -> None:
        """Fit to the statistic of all batches; only the last one's rows are available."""
        self.learn(rows, statistic)

    def _solve_batches(self, rows: Rows, statistic: Any) -> None:
        """Fit to all batches; if they do not suffice yet, say so where components are asked for.

        What is wrong with a batch is found before. A view that does not vary, confounds that
        explain all rows or labels of a single class may be right in the next one.
        """
        known = {name: value for name, value in vars(self).items() if name.endswith("_")}
        try:
            if isinstance(statistic, Shrunk):
                if self.reg in SHRINKAGES:
                    options = self.reg, self.center, self.confounds
                    rows = replace(rows, reg=statistic.shrinkages(*options))
                statistic = statistic.inner
            elif self.reg in SHRINKAGES and not self.learns_from_rows:
                raise ValueError(
                    f'reg="{self.reg}" takes sums of all batches, which those before did not keep. '
                    "Start over with a new estimator."
                )
            self._fit_batches(rows, statistic)
            self.__dict__.pop("_unsolved", None)
        except ValueError as error:
            if "n_components_" in known:
                raise
            forget(self)
            self.__dict__.update(known)
            self._unsolved = str(error)

    def __sklearn_is_fitted__(self) -> bool:
        if "_unsolved" in vars(self):
            raise NotFittedError(
                f"{type(self).__name__} has no components after the batches so far: "
                f"{self._unsolved}"
            )
        return "view_names_" in vars(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.endswith("_") and not name.startswith("_") and "_unsolved" in vars(self):
                self.__sklearn_is_fitted__()  # raises
            return object.__getattribute__(self, name)  # raises, too

    def _is_first_batch(self) -> bool:
        """Whether this batch is the first; `fit` keeps no statistic to which batches could add."""
        if getattr(self, "_statistic", None) is not None:
            return False
        if hasattr(self, "weights_"):
            warn(
                "partial_fit starts over: fit keeps no statistic of its rows. Give all batches to "
                "partial_fit."
            )
        return True
