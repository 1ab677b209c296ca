"""A study of two sets of variables, from rows to conclusions: what they share, and how surely.

The result is in `_result`, its HTML page in `_page`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import Pipeline

from mvcca.blocks.checks import as_vector, check_same_rows, few, row_labels
from mvcca.compose import Deconfound, MomentPCA, PerView, RankGaussian
from mvcca.inspection._correlations import loadings
from mvcca.inspection._intervals import intervals_of
from mvcca.inspection._pair import Pair
from mvcca.inspection._rows import (
    as_matrix,
    check_flag,
    check_no_residuals,
    levels_of,
    numbers_of,
    paired_views,
)
from mvcca.inspection._stability import agreement, stacked
from mvcca.inspection._variable_intervals import VariableIntervals, loading_intervals_of
from mvcca.inspection.permutation import permutation_test
from mvcca.inspection.study._result import Study
from mvcca.linear import CCA
from mvcca.measures import column_correlations
from mvcca.model_selection import spectrum_decay
from mvcca.model_selection.folds import splits_by_object, splits_of
from mvcca.model_selection.groups import Groups
from mvcca.problem.confounds import second_degree
from mvcca.statistics import OF_HOLES
from mvcca.views import Views
from mvcca.views.by_view import value_by_view
from mvcca.views.coding import coded, coding_in_words, coding_of
from mvcca.views.typing import MatrixLike, TableLike, ViewsLike
from mvcca.views.validation import named_columns

_CONFOUNDS, _CONFOUNDS_Y = "confounds", "confounds_y"
_STEPS = {_CONFOUNDS: "deconfound", _CONFOUNDS_Y: "deconfound y"}
_VARIANCE = 0.9  # that the principal components of a view explain, unless rows are too few
_ROWS_PER_COMPONENT = 10
_N_SPLITS = 5  # into halves
_N_RESAMPLES = 500  # of loadings
_ROWS_PER_TERM = 10  # from which products of confounds are removed
_LEAST_SHARE = 1e-12  # of the largest principal variance, below which one is rounding
_REMEDY = ' Or learn from the cells that are seen: missing="em" or "pairwise".'


def study(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    confounds: TableLike | None = None,
    confounds_y: TableLike | None = None,
    groups: Any = None,
    within: bool = False,
    rank_gaussian: bool = True,
    degree: int | str = "auto",
    n_components: int | Mapping[str, int] | None = None,
    missing: Literal["error", "pairwise", "em"] = "error",
    n_permutations: int = 999,
    level: float = 0.9,
    cv: int = 10,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Study:
    """Test whether two sets of variables are correlated, how strongly, and through which variables.

    The steps are those of studies of brain and behaviour [1]_, without their known faults:

    1. Variables and confounds are transformed by their ranks to normal distributions.
    2. The confounds, their squares and products are removed from both views by regression.
    3. Views of many variables are reduced to principal components.
    4. CCA is tested by permutation [2]_ (`permutation_test`, largest root), component by component,
       with p-values that are valid with confounds and groups.
    5. Correlations in the population are estimated with intervals (`correlation_intervals`,
       `loading_intervals`), beside those of held-out subjects, for which every step is fitted to
       the others only.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two paired views, or the first of them, one row per subject. Names of columns, of DataFrames
        for example, name the variables.
    y : matrix, optional
        The second view, if X is a single matrix.
    confounds : matrix of shape (n_rows, n_confounds), or table, optional
        Variables to remove from both views, such as age, sex and site. In a DataFrame, a mapping of
        names to columns or an array of texts, categories become indicators of all levels but the
        first; ``result.coding`` lists them. With `confounds_y`, from the first view only.
    confounds_y : matrix of shape (n_rows, n_confounds), or table, optional
        The same, removed from the second view only, such as head motion from images alone.
    groups : array-like, shape (n_rows,) or (n_rows, 2), optional
        Families, sites or other groups of subjects that are not independent. Permutations exchange
        whole groups of the same size, folds keep groups together, and intervals count all subjects
        as the number of independent ones that they are worth (`correlation_intervals`). Of two
        columns, such as site and family, the first holds the groups of the second: p-values are of
        families that are exchanged within their site, whose mean is removed; the other figures are
        of all subjects, in families.
    within : bool, default=False
        Permute subjects within their groups, not whole groups. The p-values are then those of
        correlations within groups; the other figures are of all subjects, whatever their group.
    rank_gaussian : bool, default=True
        Transform variables by their ranks to normal distributions. Intervals need distributions
        that are nearly normal.
    degree : {"auto", 1, 2, "squares"}, default="auto"
        What to remove beside the confounds, as in `mvcca.compose.Deconfound`: nothing, squares and
        the products of all pairs, or squares. "auto" is 2 if these are at most a tenth of the rows,
        or groups, else "squares". A smooth regression of the first variates on the confounds says
        in ``residual_dependence`` whether more is left.
    n_components : int or mapping of str to int, optional
        Principal components of each view. By default as many as explain 90 % of its variance, at
        most one per ten subjects or groups; smaller views are not reduced.
    missing : {"error", "pairwise", "em"}, default="error"
        What to do with missing values of the views: refuse them, or learn from the values that
        are there, by pairs of variables or by maximum likelihood (EM). Principal components are
        then those of `mvcca.compose.MomentPCA`, in folds of the training rows; ranks, regressions
        on confounds and loadings are of the subjects that have a variable. See Notes.
    n_permutations : int, default=999
        Number of permutations. The smallest possible p-value is 1 / (1 + n_permutations).
    level : float between 0 and 1, default=0.9
        Coverage of the intervals.
    cv : int, default=10
        Number of folds of the held-out correlations, at most one per row or group.
    n_jobs : int, optional
        Number of processes for the permutations; by default 1.
    random_state : int, RandomState or None, default=None
        Seed of permutations and folds.

    Returns
    -------
    Study
        Printed as tables; ``result.save_page("report.html")`` writes a page, and
        ``result.to_frame()`` and ``result.loadings_frame()`` return DataFrames.

    Raises
    ------
    ValueError
        If there are not two paired views of numbers, if confounds have other rows or missing cells,
        if there are too few rows for the number of principal components, if a subject has no cell
        of a view, or if too few subjects have a variable.
    TypeError
        If X is an estimator.

    See Also
    --------
    mvcca.model_selection.sample_size : The subjects that a new study needs.

    Notes
    -----
    With missing cells, the scores of a subject are expected values given the cells that it has, by
    the covariance of the same view. They vary less than scores of complete subjects, so that all
    correlations are somewhat smaller; intervals are of the correlation that can be seen through
    the holes. Confounds are removed from the scores once more. Permutations exchange subjects of
    one view together with their holes. P-values are valid if cells are missing completely at
    random: neither the values of the other view nor its holes may tell which cells are missing.
    In 1,500 simulations with 30 % of the cells missing, 4.9 % were below .05 with 3 confounds of 80
    rows, and 5.7 % with 12 confounds of 60 rows.

    References
    ----------
    .. [1] Smith et al., "A positive-negative mode of population covariation links brain
       connectivity, demographics and behavior", Nature Neuroscience 18, 2015.
    .. [2] Winkler, Renaud, Smith and Nichols, "Permutation inference for canonical correlation
       analysis", NeuroImage 220, 2020.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import study
    >>> views = make_gaussian_views(400, correlations=(0.8,), random_state=0).views
    >>> result = study(views, n_permutations=99, random_state=0)
    >>> result.significant.tolist()[:2]
    [True, False]
    """
    check_flag("within", within)
    views = paired_views(X, y, "A study", only_two=True)
    if confounds is None and confounds_y is None:
        check_no_residuals("A study", views)
    if confounds_y is not None and missing != "error":
        raise ValueError(
            f'confounds_y needs views without missing values, got missing="{missing}". Fill them '
            "in first, or remove all confounds from both views: pass them as confounds."
        )
    (first, second) = views.names
    outer, families = (_checked_groups(own, views) for own in levels_of(groups))
    together = None if within else families
    n_groups = len(views) if together is None else len(np.unique(together))
    coding: tuple[str, ...] = ()
    of_views = {_CONFOUNDS: confounds, _CONFOUNDS_Y: confounds_y}
    tables: dict[str, Any] = {name: own for name, own in of_views.items() if own is not None}
    most_columns = 0
    for name, view in zip(of_views, views.names, strict=True):
        if (table := tables.get(name)) is None:
            continue
        check_same_rows(name, row_labels(table), "the views", views.ids)
        levels = coding_of(table, name=name)
        tables[name] = as_matrix(coded(table, levels, name=name))
        most_columns = max(most_columns, tables[name].shape[1])
        degree = _degree(degree, tables[name].shape[1], n_groups)
        words = coding_in_words(table, levels, degree=degree)
        if confounds_y is not None:
            words = tuple(f"{one} ({view})" for one in words)
        coding += words
    rows = _with_confounds(views, tables) if tables else views
    folds = splits_of(len(views), cv, families, random_state)
    holes = _holes(rows, missing)
    parts = [train for train, _ in folds]
    _check_seen(views, holes, parts, most_columns, degree)
    steps = _preparation(rank_gaussian, [*tables], views.names, degree, missing)
    prepared = steps.fit_transform(rows) if steps.steps else rows
    removed = {name: _removed(steps, rows, name) for name in tables}
    Z, Z_y = (removed.get(name) for name in of_views)
    alone = {name: own[:, : tables[name].shape[1]] for name, own in removed.items()}
    of_y = _CONFOUNDS if confounds_y is None else _CONFOUNDS_Y
    linear = {first: alone.get(_CONFOUNDS), second: alone.get(of_y)}
    n_confounds = max([steps.named_steps[_STEPS[name]].rank_ for name in tables], default=0)
    prepared = _cells(prepared.select(list(views.names)), missing)
    most = max((n_groups - n_confounds) // _ROWS_PER_COMPONENT, 1)
    if (least := min(map(len, parts))) < 2:
        raise ValueError(f"Training rows of folds are too few: expected at least 2, got {least}.")
    reduce, explained, decay, limits = _reduction(prepared, n_components, most, least, missing)
    model = _model(steps, reduce, missing)
    with warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning):
        scores = model.fit_transform(rows)  # few rows are what the tests are for
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # the fit has warned
        held_out = _held_out(model, rows, scores, folds)
    components = model[:-1].transform(rows)
    test = permutation_test(
        components,
        statistic="roy",
        loadings="cross" if missing == "error" else None,
        variables=dict(prepared.items()) if missing == "error" else None,
        n_permutations=n_permutations,
        confounds=Z,
        confounds_y=Z_y,
        groups=groups,
        within=within,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    own = loadings(scores, prepared)
    crossed = {
        first: loadings(scores, prepared, variates=second)[first],
        second: loadings(scores, prepared, variates=first)[second],
    }
    kept = Views.of(components.blocks, components.seen, components.ids)  # confounds count below
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # notes say the same
        pair = Pair.of(
            kept,
            None,
            Z if Z_y is None else None,
            "The interval of correlations",
            groups=together,
            n_removed=n_confounds,
        )
        of_variables = loading_intervals_of(
            pair, dict(prepared.items()), level, _N_RESAMPLES, random_state
        )
    return Study(
        model=model,
        variables={name: named_columns(name, block) for name, block in views.items()},
        missing=missing,
        n_missing={name: int(holes[name].sum()) for name in views.names},
        n_rows=len(views),
        n_components={name: block.shape[1] for name, block in components.items()},
        explained=explained,
        test=replace(test, coding=coding),
        intervals=replace(intervals_of(pair, level, held_out), coding=coding),
        loadings=own,
        loading_ends={name: _ends(of_variables, name, own[name]) for name in own},
        cross_loadings=crossed,
        residual_dependence=_residual_dependence(scores, linear, folds),
        decay=decay,
        exchanged=_exchanged(families, outer, within=within, has_confounds=bool(tables)),
        stability=_stability(model, rows, prepared, together, random_state),
        settings={"folds": len(folds), "seed": random_state, "limits": limits},
    )


def _checked_groups(groups: Any, views: Views) -> np.ndarray | None:
    """The group of each row, if there are groups."""
    if groups is None:
        return None
    Groups.given_by(groups, views, views.ids)  # raises if rows are missing
    return as_vector(groups)


def _exchanged(groups: Any, outer: Any, *, within: bool, has_confounds: bool) -> str:
    """What permutations exchange, in words."""
    if groups is None:
        return "rows"
    n_groups = len(np.unique(groups))
    n_outer = 0 if outer is None else len(np.unique(outer))
    if within:
        return f"rows within {n_groups} groups"
    if has_confounds:
        of = f" of each of {n_outer} outer groups" if n_outer else ""
        return f"rows between and within {n_groups} groups, in two strata{of}"
    where = f", within {n_outer} outer groups" if n_outer else ""
    return f"whole groups of equal size ({n_groups} groups{where})"


def _with_confounds(views: Views, tables: Mapping[str, Any]) -> Views:
    """The views and their confounds, of the same rows."""
    if taken := {*tables} & {*views.names}:
        raise ValueError(
            f"A view has the name {taken.pop()!r}. Pass two views, and the confounds by themselves."
        )
    return Views({**dict(views.items()), **tables})


def _holes(rows: Views, missing: str) -> dict[str, np.ndarray]:
    """Which cells of each view are missing; refused if `missing` does not allow it."""
    if missing not in ("error", *OF_HOLES):
        raise ValueError(f"Expected missing to be 'error', 'pairwise' or 'em', got {missing!r}.")
    found = {}
    for name, block in rows.items():
        allowed = missing != "error" and name not in _STEPS
        options = {"ensure_all_finite": "allow-nan"} if allowed else {}
        try:
            found[name] = np.isnan(numbers_of(f"View {name!r}", block, **options))
        except ValueError as error:
            if name in _STEPS or "contains NaN" not in str(error):
                raise
            raise ValueError(f"{error}{_REMEDY}") from None
    return found


def _cells(views: Views, missing: str) -> Views:
    """Rows with holes as floats: tables have several kinds of missing cells."""
    if missing == "error":
        return views
    options = {"ensure_all_finite": "allow-nan"}
    return Views({name: numbers_of(name, block, **options) for name, block in views.items()})


def _check_seen(
    views: Views,
    holes: Mapping[str, np.ndarray],
    parts: list[np.ndarray],
    n_confounds: int,
    degree: int | str,
) -> None:
    """Refuse rows without a cell, and variables that too few rows have in any part of the rows."""
    least = 3 + _n_terms(n_confounds, degree)
    for name, block in views.items():
        if not holes[name].any():
            continue
        if len(empty := np.flatnonzero(holes[name].all(axis=1))):
            named = few(empty).replace("'", "")
            raise ValueError(
                f"View {name!r}: all cells are missing in row{'s' * (len(empty) > 1)} {named}. "
                "Leave these subjects out of both views and of the confounds."
            )
        counts = np.min([(~holes[name][rows]).sum(axis=0) for rows in parts], axis=0)
        if len(rare := np.flatnonzero(counts < least)):
            names = named_columns(name, block)
            raise ValueError(
                f"View {name!r}: too few rows have {few(names[j] for j in rare)}: expected at "
                f"least {least} in the training rows of every fold, got {counts[rare].min()}. "
                "Leave out such variables."
            )


def _preparation(
    rank_gaussian: bool,
    confounds: Sequence[str],
    views: tuple[str, ...],
    degree: int | str,
    missing: str,
) -> Pipeline:
    """Steps before the principal components; none if there is nothing to do."""
    steps: list[tuple[str, Any]] = []
    if rank_gaussian:
        steps.append(("rank", PerView(RankGaussian())))
    drop = missing == "error"  # else they are removed from the scores, too
    for name in confounds:
        own = None
        if _CONFOUNDS_Y in confounds:
            own = [views[name == _CONFOUNDS_Y]]
        steps.append((_STEPS[name], Deconfound(name, views=own, degree=degree, drop=drop)))
    return Pipeline(steps)


def _model(steps: Pipeline, reduce: dict[str, Any], missing: str) -> Pipeline:
    """All steps, up to CCA."""
    last: list[tuple[str, Any]] = [("pca", PerView(reduce))]
    if missing != "error" and "deconfound" in steps.named_steps:
        # Filled cells make scores depend on the confounds again, by chance.
        last = [("pca", PerView({**reduce, _CONFOUNDS: "passthrough"}))]
        last.append(("deconfound scores", clone(steps[-1]).set_params(drop=True)))
    return Pipeline([*steps.steps, *last, ("cca", CCA(None))])


def _degree(degree: int | str, n_confounds: int, n_groups: int) -> int | str:
    """What to remove beside the confounds, if it is left to the number of rows."""
    if degree != "auto":
        return degree
    return 2 if _ROWS_PER_TERM * _n_terms(n_confounds, 2) <= n_groups else "squares"


def _n_terms(n_confounds: int, degree: int | str) -> int:
    """Number of confounds with their squares and products."""
    n_products = n_confounds * (n_confounds - 1) // 2
    return n_confounds * (1 + (degree != 1)) + n_products * (degree == 2)


def _removed(steps: Pipeline, rows: Views, name: str) -> np.ndarray:
    """The variables that the step of these confounds removes."""
    before = steps[:1].transform(rows) if steps.steps[0][0] == "rank" else rows
    Z, degree = np.asarray(before[name], dtype=float), steps.named_steps[_STEPS[name]].degree
    if degree == 1:
        return Z
    return np.hstack([Z, second_degree(Z, Z.mean(axis=0), products=degree == 2)])


def _stability(
    model: Pipeline, rows: Views, prepared: Views, groups: Any, random_state: Any
) -> dict[str, np.ndarray]:
    """Agreement of the loadings of two halves of the rows, (n_splits, k) by view.

    Left out are views of few variables, whose loadings agree by construction, and all if halves
    have too few rows.
    """
    codes = np.arange(len(rows)) if groups is None else np.unique(groups, return_inverse=True)[1]

    def of_half(half: np.ndarray) -> dict[str, np.ndarray]:
        scores = clone(model).fit(rows[half]).transform(rows[half])
        return loadings(scores, prepared[half])

    with warnings.catch_warnings(action="ignore"):  # the fit of all rows has warned
        try:
            found = [
                agreement(*map(of_half, halves))
                for halves in splits_by_object(codes, _N_SPLITS, random_state, halves=True)
            ]
        except ValueError:  # too few rows
            return {}
    compared = [name for name, own in found[0].items() if not np.isnan(own).all()]
    return {name: stacked([own[name] for own in found]) for name in compared}


def _residual_dependence(
    scores: Views, confounds: Mapping[str, np.ndarray | None], cv: Any
) -> dict[str, float]:
    """Share of each view's first variate that a smooth regression on its confounds predicts."""
    found = {}
    for name, block in scores.items():
        if (Z := confounds[name]) is None:
            continue
        spread = Z.std(axis=0)
        rows = (Z - Z.mean(axis=0)) / np.where(spread > 0, spread, 1)
        model = KernelRidge(kernel="rbf", gamma=1 / rows.shape[1])
        u = block[:, 0] / block[:, 0].std()
        found[name] = max(
            1 - float(np.mean((u - cross_val_predict(model, rows, u, cv=cv)) ** 2)), 0
        )
    return found


def _reduction(
    prepared: Views,
    n_components: int | Mapping[str, int] | None,
    most: int,
    least_rows: int,
    missing: str,
) -> tuple[dict[str, Any], dict[str, float], dict[str, float | None], dict[str, str]]:
    """Each view's step to principal components, their variance, its decay, and why so many."""
    given: Mapping[str, Any] = dict.fromkeys(prepared.names, n_components)
    if isinstance(n_components, Mapping):
        given = value_by_view("n_components", n_components, prepared.names)
    steps: dict[str, Any] = {}
    explained: dict[str, float] = {}
    decay: dict[str, float | None] = {}
    limits: dict[str, str] = {}
    for name, block in prepared.items():
        k, width = given[name], block.shape[1]
        if k is not None and (not isinstance(k, int | np.integer) or k < 1):
            raise ValueError(
                f"Expected n_components of view {name!r} to be a whole number from 1 up, got {k!r}."
            )
        steps[name], explained[name] = "passthrough", 1.0
        pca: Any = PCA(svd_solver="full")
        if missing != "error":
            steps[name] = pca = MomentPCA(missing=missing)
        with warnings.catch_warnings(action="ignore"):  # the model warns, too
            pca.fit(block)
        variances = pca.explained_variance_
        if not variances[0] > 0:
            raise ValueError(f"View {name!r} has no variance: all its rows are equal.")
        variances = variances[variances > _LEAST_SHARE * variances[0]]
        decay[name] = spectrum_decay(variances) if len(variances) > 1 else None
        if (most if k is None else k) >= width:
            continue
        if k is not None and k > (n_own := min(len(variances), least_rows - 1)):
            raise ValueError(
                f"Expected n_components of view {name!r} to be at most {n_own}, the principal "
                f"components of the training rows of every fold, got {k}."
            )
        shares = np.cumsum(pca.explained_variance_ratio_)
        limits[name] = "as chosen"
        if k is None:
            k = int(np.searchsorted(shares, _VARIANCE)) + 1
            limits[name] = f"as many as explain {_VARIANCE:.0%}"
            if k > most:
                of = "rows or groups, less confounds"
                k, limits[name] = most, f"at most one per {_ROWS_PER_COMPONENT} {of}"
        steps[name] = clone(pca).set_params(n_components=k)
        explained[name] = float(shares[k - 1])
    return steps, explained, decay, limits


def _ends(found: VariableIntervals, name: str, loadings: np.ndarray) -> np.ndarray:
    """Ends (2, n_variables, k) of the intervals of a view, with the signs of its loadings."""
    flipped = (found.in_sample[name] * loadings).sum(axis=0) < 0
    low, high = found.low[name], found.high[name]
    return np.array([np.where(flipped, -high, low), np.where(flipped, -low, high)])


def _held_out(
    model: Pipeline, rows: Views, scores: Views, folds: list[tuple[Any, Any]]
) -> np.ndarray:
    """Correlations of left-out rows, pooled over folds, of components matched with the model's."""
    pooled = {name: np.zeros_like(block) for name, block in scores.items()}
    for train, test in folds:
        found = clone(model).fit(rows[train]).transform(rows)
        k = min(block.shape[1] for block in found.blocks.values())
        agreement = sum(
            np.corrcoef(scores[name].T, found[name].T)[: scores[name].shape[1], -k:]
            for name in scores.names
        )
        own, other = linear_sum_assignment(-np.abs(agreement))
        signs = np.sign(agreement[own, other])
        for name, block in pooled.items():
            block[np.ix_(test, own)] = found[name][np.ix_(test, other)] * signs
    return column_correlations(*pooled.values())
