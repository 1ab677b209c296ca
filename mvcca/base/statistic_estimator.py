"""The base of linear methods: a statistic that adds, and the problem that it poses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from mvcca.base.estimator import MultiViewEstimator, all_or_nothing
from mvcca.base.inputs import open_fit, paired_objects
from mvcca.base.label_checks import check_shared_labels
from mvcca.base.standardizing import note_units, open_units
from mvcca.base.sums import (
    is_first_batch,
    leave_unsolved,
    open_statistic,
    solution_of,
    solve,
)
from mvcca.base.tuned_fits import fit_searched, keep_bank
from mvcca.base.unit_checks import warn_of_unlike_lazy_views
from mvcca.machine.memory import WIDE, available_bytes
from mvcca.model_selection import searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.questions import keep_questions
from mvcca.model_selection.spaces import RIDGES, SEARCHED
from mvcca.model_selection.tuning import tune, tune_by_products
from mvcca.problem import Estimate, Problem, Reading, Rows, climb
from mvcca.problem.maps import Maps
from mvcca.problem.precision import KnownRank, suits_float32
from mvcca.problem.ridge import Reg, reg_of_names
from mvcca.problem.route import by_products, bytes_of_matrices
from mvcca.problem.shrinkage import SHRINKAGES, Shrunk, shrinkages
from mvcca.statistics import OF_HOLES, Moments, PairMoments
from mvcca.views import Views


class StatisticEstimator(MultiViewEstimator):
    """Base of the methods that learn from a statistic of the rows, with `fit` and `partial_fit`.

    A method defines two things: `statistic_of`, which sums up rows in a value that adds, and
    `problem`, the problem to solve given that value. By default they are those of CCA.
    """

    n_components: Any = None
    maps_: Maps
    reg: Reg = 0.0
    center: bool = True
    learns_from_rows: ClassVar[bool] = False  # whether the statistic is the rows themselves
    sums: ClassVar[tuple[type, ...]] = (Moments, PairMoments)  # kinds of that statistic
    draws_from_rows: ClassVar[bool] = False  # whether a method `draw` does, for its statistic
    # Whether a fit with fewer components is the first components of a fit with more, although it is
    # more than the solution of its problem.
    nests_components: ClassVar[bool] = False
    question_goal: Goal | None = None  # of folds, for which questions are solved one by one
    of_all_rows: ClassVar[tuple[str, ...]] = ()  # parameters whose values in words look at all rows
    # What to do about views that are too large for matrices over their features or rows.
    _if_too_large: ClassVar[str] = (
        "Reduce the features first, as by PerView(TruncatedSVD(300)), or fit a sample of the rows."
    )
    _statistic: Any = None  # sums over the batches so far; None after fit
    _in_float32: bool | None = None  # whether products of later batches are in float32
    _pending: Any  # rows and parameters of a solution that nobody has asked for; else missing
    _unsolved: str  # why these batches do not suffice for components; else missing
    _solved: tuple[str, ...]  # attributes of the solution for these batches

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
            ranks = dict.fromkeys(rows.reading.bases, KnownRank(why="confounds explain some of it"))
        return Problem(rows, about, ranks=ranks)

    @property
    def keeps_solutions(self) -> bool:
        """Whether a fit is the solution of its problem, for any ridge, and scored as such."""
        own, base = type(self), StatisticEstimator
        return own._learn is base._learn and own.score is base.score

    def _learn(self, rows: Rows, statistic: Any) -> None:
        """Solve the problem and set the fitted attributes; methods that do more override it.

        Of batches, rows are one of each view that stands for all of it, without labels.
        """
        problem = self.problem(rows, statistic)
        note_units(self, rows, problem.units)
        maps = problem.solve(rows.n_components, patterns=hasattr(self, "predict"))
        self._keep(maps.checked(rows.n_components))
        if self.question_goal is not None:
            keep_questions(self, problem)
        if rows.views.is_lazy:
            warn_of_unlike_lazy_views(self, rows, problem)

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
        if searched(self) and hasattr(self, "search_space"):
            return fit_searched(self, X, y, sample_weight)
        rows = self._open_rows(X, y, sample_weight)
        self._learn_rows(replace(rows, needs_many=self.requires.many_rows))
        self._statistic = None
        if searched(self):
            keep_bank(self, X, y)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to the statistic; batches give what `fit` gives.

        The problem is solved when a result is first read: an attribute, `transform`, `score`, a
        pickle or a file. Warnings about the solution come then, and so does the reason if the
        batches so far do not suffice. A batch may be of any kind: a single row, one class, a
        constant view, rows of weight 0. After `fit`, which keeps no statistic, batches start over,
        with a warning. What is drawn at random from rows (label features, feature maps) is drawn
        from the first batch. Estimators that saw a part of the rows each merge by adding their
        `statistic_`; see `fit_statistic`.

        If the first batch is of float32, and large and well-conditioned enough to tell, products of
        later batches are in float32, too. Where these turn out to need more digits, a warning says
        so: pass float64 rows, or set `reg`.

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
        asked = [name for name in self.of_all_rows if isinstance(getattr(self, name), str)]
        if hasattr(self, "search_space") or self.scale == SEARCHED:
            asked += [name for name in searched(self) if getattr(self, name) == SEARCHED]
        if asked:
            settings = ", ".join(f'{name}="{getattr(self, name)}"' for name in asked)
            raise ValueError(
                f"{settings} looks at all rows at once: use fit, or give partial_fit values."
            )
        first, pending = is_first_batch(self), self.__dict__.pop("_pending", None)
        rows = self._open_rows(X, y, sample_weight, batch=True)
        if len(rows.views) == 0:  # nothing to add
            if first:
                self._unsolved = "no row so far counts: it needs weight, and two views to pair."
            elif pending is not None:
                self._pending = pending
            return self
        if not first and self._in_float32:
            rows = rows.read(products=np.dtype(np.float32))
        statistic = self.statistic_of(rows)
        if first:  # in float64, which the statistic of one batch takes little of
            is_exact = self.requires.float64 or self.confounds is not None
            if not is_exact and suits_float32(rows, statistic):
                self._in_float32 = True
        shrinks = self.reg in SHRINKAGES and not self.learns_from_rows
        if shrinks if first else isinstance(self._statistic, Shrunk):
            statistic = Shrunk.of(statistic, rows, self.confounds)
        if not first:
            statistic = self._statistic + statistic
        self._statistic = statistic.to_host() if hasattr(statistic, "to_host") else statistic
        leave_unsolved(self, rows)
        return self

    @all_or_nothing
    def fit_statistic(self, statistic: Any) -> Self:
        """Find the maps from a sum over the rows, which may have been computed anywhere.

        Sums over parts add up to that over all rows: parts may come from machines that keep their
        rows, or be kept to fit again with other parameters. The result is that of `fit` on all
        rows, except that sums know no names of columns, and that `fit` decomposes the rows
        themselves where views are close to collinear or have more features than rows.
        `partial_fit` adds further batches.

        Parameters
        ----------
        statistic : statistic
            A sum of the `statistic_` that `partial_fit` leaves, for any method and any parameters.
            Methods without labels also take sums that need no estimator, of all views that `fit`
            would take, confounds included: `mvcca.statistics.Moments` of paired rows;
            `mvcca.statistics.PairMoments` if some objects lack views, and the estimator has no
            `confounds`; of rows with holes `mvcca.statistics.CellMoments` for
            ``missing="pairwise"``, and `mvcca.statistics.PatternMoments` for ``missing="em"``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the method draws features from the rows, or keeps no sum of them; if folds would
            choose a parameter; if the sum is of other views than the method takes, or of fewer than
            two objects; or if a view never varies.
        TypeError
            If the statistic is of another kind than the method and its parameters ask for.

        See Also
        --------
        partial_fit : The same from batches of rows.

        Examples
        --------
        >>> from mvcca import CCA
        >>> from mvcca.datasets import load_digits_views
        >>> from mvcca.statistics import Moments
        >>> views = load_digits_views().views
        >>> moments = Moments.of(views[:1000]) + Moments.of(views[1000:])
        >>> CCA(3).fit_statistic(moments).canonical_correlations_.round(2)
        array([0.82, 0.8 , 0.7 ])
        """
        self._validate_params()
        rows = open_statistic(self, statistic)
        self._statistic = statistic
        leave_unsolved(self, rows)
        self.__dict__.update(solution_of(self, *self.__dict__.pop("_pending")))
        return self

    @property
    def statistic_(self) -> Any:
        """The sum over the rows so far, which adds to those of other parts for `fit_statistic`.

        After `partial_fit` and `fit_statistic` only: `fit` does not keep it. None of rows whose
        squares are beyond floats, which are divided by powers of two before they are added up.
        """
        if self._statistic is None:
            raise AttributeError(
                f"{type(self).__name__} keeps no sum over rows: partial_fit does, fit does not."
            )
        if getattr(self, "_exponents", None):
            raise AttributeError(
                f"{type(self).__name__} divided the views {list(self._exponents)} by powers of "
                "two, since squares of their columns are not floats, and such sums do not add to "
                "those of other rows. Rescale these views."
            )
        return self._statistic

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with weights, labels and ridge, to `climb` with: all of them, or a batch.

        Methods override it to check more, to draw from the rows, or to have them solved in another
        basis or precision, by their `Reading`.
        """
        reset = not batch or self._statistic is None
        judged = True if searched(self) and self.cv_goal == "class" else None
        opened = open_fit(self, X, y, sample_weight, reset=reset, labelled=judged, batch=batch)
        rows = replace(opened, n_components=self.n_components, reading=_reading(self))
        if isinstance(self.reg, str):
            _check_reg(self, batch)
        if not self.requires.labels and not rows.views.is_paired:
            pairs = paired_objects(self, rows, not batch)
            # With holes, objects that are seen in one view tell its covariance.
            rows = rows.take(pairs) if self.missing == "error" else rows
        is_whole = rows.views.is_paired or self.missing != "error"
        if self.confounds is not None and not is_whole:
            raise ValueError(
                f"{type(self).__name__}(confounds={self.confounds!r}) takes objects that are seen "
                "in all views. Select them: views[views.seen.all(axis=1)]."
            )
        rows = open_units(self, rows, batch)
        of_ridges = rows.standardized() if self.reg in SHRINKAGES and rows.reading.units else rows
        rows = replace(rows, reg=self._ridges(of_ridges, batch))
        if opened.labels is not None and not batch:  # a later batch may bring those in common
            check_shared_labels(opened.labels)
        return rows

    def _holds_pair(self, views: Views) -> np.ndarray:
        """Whether each object is seen in two views, of which there is something to learn."""
        return views.without(self.confounds).seen.sum(axis=1) > 1

    def _ridges(self, rows: Rows, batch: bool) -> dict[str, float]:
        """Ridge of each view; none if the sum of batches is to estimate it."""
        if self.reg == "cv" and not batch:
            return dict.fromkeys(rows.views.names, min(RIDGES))  # of those that are searched
        if self.reg in SHRINKAGES:
            if batch:
                return {}
            if self.missing != "error":
                return _shrinkages_of_cells(self, rows)
            return shrinkages(
                rows.views,
                rows.sample_weight,
                self.reg,
                center=self.center,
                confounds=self.confounds,
            )
        names = rows.views.without(self.confounds).names
        reg = reg_of_names(self.reg, names, unit=self.reg_unit)
        return reg if self.confounds is None else reg | {self.confounds: 0.0}

    def _learn_rows(self, rows: Rows) -> None:
        """Fit to all rows at once, as precisely as they need."""
        is_searched, learn = bool(searched(self)), partial(_learned_by_products, self)
        if sum(rows.views.widths.values()) >= WIDE:
            if self.takes_products and (
                tune_by_products(self, rows, learn) if is_searched else learn(rows)
            ):
                return
            if not self.requires.features:
                check_memory(self, rows.views)
        if is_searched:
            tune(self, rows)
        else:
            climb(rows, lambda rows: self._learn(rows, self.statistic_of(rows)))

    def _bytes_of_matrices(self, views: Views) -> float:
        """Memory that a fit needs beside the rows."""
        return bytes_of_matrices(views)

    @property
    def takes_products(self) -> bool:
        """Whether the problem is that of CCA, which needs no covariance matrices."""
        own, base = type(self), StatisticEstimator
        methods = ("statistic_of", "problem", "_learn")
        of_cca = all(getattr(own, name) is getattr(base, name) for name in methods)
        return of_cca and self.confounds is None and self.missing == "error"

    def __sklearn_is_fitted__(self) -> bool:
        solve(self)
        return "view_names_" in vars(self)

    def __getstate__(self) -> dict[str, Any]:
        with suppress(NotFittedError):
            solve(self)
        return dict(super().__getstate__())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            is_asked = name.endswith("_") and not name.startswith("_")
            if is_asked and not vars(self).keys().isdisjoint(("_pending", "_unsolved")):
                solve(self)
            return object.__getattribute__(self, name)  # raises, if there is none


def _learned_by_products(estimator: StatisticEstimator, rows: Rows) -> bool:
    """Fit by products with rows whose ridges are known, if that takes less; whether it does."""
    maps = by_products(rows, with_patterns=hasattr(estimator, "predict"))
    if maps is None:
        return False
    estimator._keep(maps.checked(rows.n_components))
    return True


def _shrinkages_of_cells(estimator: StatisticEstimator, rows: Rows) -> dict[str, float]:
    """Those of "oas", which takes covariances only, from rows with holes."""
    cells = OF_HOLES["pairwise"].of(rows.views, rows.sample_weight)
    moments, z = cells.recovered(estimator._column_names).moments, estimator.confounds
    parts = {
        name: moments.select([name] if z is None else [name, z])
        for name in moments.widths
        if name != z
    }
    empty = Shrunk(None, parts, {}, dict.fromkeys(parts, 0.0))
    return empty.shrinkages("oas", confounds=z)


def _reading(estimator: StatisticEstimator) -> Reading:
    """The basis and the precision that suffice for a method."""
    asks, has_holes = estimator.requires, estimator.missing != "error"
    # Rows with holes span no space, and are added up in float64. Differences of covariances, as of
    # residuals, have fewer digits than each.
    in_any_basis = not (has_holes or asks.features)
    return Reading(
        center=estimator.center,
        float32=not (has_holes or asks.float64 or estimator.confounds is not None),
        decompose=in_any_basis,
        in_row_space=in_any_basis,
    )


def _check_reg(estimator: StatisticEstimator, batch: bool) -> None:
    """Refuse ridges that are searched or estimated, where there is too little to do so."""
    reg, missing = estimator.reg, estimator.missing
    if missing != "error" and (batch or reg == "auto"):
        raise ValueError(
            f'reg="{reg}" looks at complete rows, and missing="{missing}" allows holes in them: '
            'give numbers, or reg="cv" or "oas" to fit.'
        )
    if estimator.reg_unit != "relative":
        chosen = "searches ridges relative to" if reg == "cv" else "shrinks towards"
        raise ValueError(
            f'reg="{reg}" {chosen} the mean variance of each view, so that reg_unit='
            f'"{estimator.reg_unit}" needs a number: search a list of absolute ridges with '
            "FoldSearchCV or GridSearchCV, or leave reg_unit out."
        )
    if reg == "auto" and estimator.confounds is not None and batch:
        raise ValueError(
            'reg="auto" looks at all rows twice if there are confounds: use fit, or give '
            'partial_fit reg="oas" or a number.'
        )


def check_memory(estimator: StatisticEstimator, views: Views) -> None:
    """Refuse views for which matrices over features, or rows if these are fewer, do not fit."""
    needed, available = estimator._bytes_of_matrices(views), available_bytes()
    if needed > available:
        shapes = ", ".join(f"{n!r} {X.shape[0]:,} x {X.shape[1]:,}" for n, X in views.items())
        raise MemoryError(
            f"{type(estimator).__name__} of views {shapes} needs about {needed / 1e9:.1f} GB for "
            "matrices over the features of a view, or over its rows if these are fewer, and "
            f"{available / 1e9:.1f} GB are available. {estimator._if_too_large}"
        )
