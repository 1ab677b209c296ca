"""A study of two sets of variables, from rows to conclusions: what they share, and how surely.

The result is in `_result`, its HTML page in `_page`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import DataDimensionalityWarning
from sklearn.pipeline import Pipeline

from mvcca.compose import Deconfound, PerView, RankGaussian
from mvcca.inspection._correlations import variable_correlations
from mvcca.inspection._folds import splits_of
from mvcca.inspection._intervals import correlation_intervals
from mvcca.inspection._two_views import as_matrix, two_paired_views
from mvcca.inspection._variable_intervals import VariableIntervals, loading_intervals
from mvcca.inspection.permutation import permutation_test
from mvcca.inspection.study._result import Study
from mvcca.linear import CCA
from mvcca.measures import column_correlations
from mvcca.model_selection import spectrum_decay
from mvcca.views import Views
from mvcca.views.by_view import value_by_view
from mvcca.views.typing import MatrixLike, ViewsLike
from mvcca.views.validation import column_names

_CONFOUNDS = "confounds"
_VARIANCE = 0.9  # that the principal components of a view explain, unless rows are too few
_ROWS_PER_COMPONENT = 10


def study(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    confounds: MatrixLike | None = None,
    groups: Any = None,
    within: bool = False,
    rank_gaussian: bool = True,
    squares: bool = True,
    n_components: int | Mapping[str, int] | None = None,
    n_permutations: int = 999,
    level: float = 0.9,
    cv: int = 10,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Study:
    """Ask whether two sets of variables are correlated, how strongly, and through which variables.

    The steps are those of studies of brain and behaviour [1]_, without their known faults:

    1. Variables and confounds are transformed by their ranks to normal distributions.
    2. The confounds, and their squares, are removed from both views by regression.
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
    confounds : matrix of shape (n_rows, n_confounds), optional
        Variables to remove from both views, such as age, sex and site.
    groups : array-like, shape (n_rows,), optional
        Families, sites or other groups of subjects that are not independent. Permutations exchange
        whole groups of the same size, folds keep groups together, and intervals, which assume
        independent rows, are those of the first subject of each group.
    within : bool, default=False
        Permute subjects within their groups, and not whole groups. The p-values are then those of
        correlations within groups; the other figures are of all subjects.
    rank_gaussian : bool, default=True
        Whether to take step 1. Intervals need distributions that are nearly normal.
    squares : bool, default=True
        Whether to remove squares of the confounds.
    n_components : int or mapping of str to int, optional
        Principal components of each view. By default as many as explain 90 % of its variance, at
        most one per ten subjects (or groups); smaller views are not reduced.
    n_permutations : int, default=999
        Number of permutations; the smallest possible p-value is 1 / (1 + n_permutations).
    level : float, default=0.9
        Coverage of the intervals.
    cv : int, default=10
        Number of folds of the held-out correlations.
    n_jobs : int, optional
        Number of processes for the permutations.
    random_state : int, RandomState or None, default=None
        Seed of permutations and folds.

    Returns
    -------
    Study
        Printed as tables; ``result.write("report.html")`` writes a page, ``result.to_frame()`` and
        ``result.loadings_frame()`` return DataFrames.

    Raises
    ------
    ValueError
        If there are not two paired views of numbers, if confounds have other rows, or if there are
        too few rows for the number of principal components.
    TypeError
        If X is an estimator.

    See Also
    --------
    mvcca.model_selection.sample_size : The subjects that a new study needs.

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
    views = two_paired_views(X, y, "A study")
    rows = views if confounds is None else _with_confounds(views, confounds)
    steps = _preparation(rank_gaussian, confounds is not None, squares)
    prepared = steps.fit_transform(rows) if steps.steps else rows
    Z = None if confounds is None else _removed(steps, rows, squares)
    independent = np.arange(len(views))  # one row of each family
    if groups is not None and not within:
        independent = np.unique(groups, return_index=True)[1]
    n_confounds = 0 if Z is None else steps[-1].rank_
    reduce, explained = _reduction(prepared, n_components, len(independent) - n_confounds)
    model = Pipeline([*steps.steps, ("pca", reduce), ("cca", CCA(None))])
    with warnings.catch_warnings(action="ignore", category=DataDimensionalityWarning):
        scores = model.fit_transform(rows)  # few rows are what the tests are for
        folds = splits_of(len(views), cv, groups, random_state)
        held_out = _held_out(model, rows, scores, folds)
    components = model[:-1].transform(rows)
    test = permutation_test(
        components,
        statistic="roy",
        n_permutations=n_permutations,
        confounds=Z,
        groups=groups,
        within=within,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    prepared = prepared.select(list(views.names))
    first, second = views.names
    own = variable_correlations(prepared, scores)
    crossed = {
        first: variable_correlations(prepared, scores, variates=second)[first],
        second: variable_correlations(prepared, scores, variates=first)[second],
    }
    kept, options = components[independent], {"level": level, "random_state": random_state}
    options["confounds"] = None if Z is None else Z[independent]
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # notes say the same
        intervals = correlation_intervals(kept, **options)
        of_variables = loading_intervals(
            kept, variables=dict(prepared[independent].items()), **options
        )
    return Study(
        model=model,
        variables={name: _variables(name, block) for name, block in views.items()},
        n_rows=len(views),
        n_independent=len(independent),
        n_confounds=n_confounds,
        n_components={name: block.shape[1] for name, block in components.items()},
        explained=explained,
        test=test,
        in_sample=column_correlations(*(block for _, block in scores.items())),
        intervals=intervals,
        held_out=held_out,
        loadings=own,
        loading_ends={name: _ends(of_variables, name, own[name]) for name in own},
        cross_loadings=crossed,
        decay={name: spectrum_decay(block) for name, block in prepared.items()},
    )


def _with_confounds(views: Views, confounds: Any) -> Views:
    """The views and their confounds, of the same rows."""
    if _CONFOUNDS in views.names:
        raise ValueError(
            f"A view has the name {_CONFOUNDS!r}. Pass two views, and the confounds by themselves."
        )
    return Views({**dict(views.items()), _CONFOUNDS: as_matrix(confounds)})


def _preparation(rank_gaussian: bool, has_confounds: bool, squares: bool) -> Pipeline:
    """Steps before the principal components; none if there is nothing to do."""
    steps: list[tuple[str, Any]] = []
    if rank_gaussian:
        steps.append(("rank", PerView(RankGaussian())))
    if has_confounds:
        steps.append(("deconfound", Deconfound(_CONFOUNDS, squares=squares)))
    return Pipeline(steps)


def _removed(steps: Pipeline, rows: Views, squares: bool) -> np.ndarray:
    """The variables that the step "deconfound" removes."""
    before = steps[:-1].transform(rows) if len(steps) > 1 else rows
    Z = np.asarray(before[_CONFOUNDS], dtype=float)
    return np.hstack([Z, Z**2]) if squares else Z


def _variables(name: str, block: Any) -> tuple[str, ...]:
    """Names of the variables of a view."""
    return column_names(block) or tuple(f"{name} {j}" for j in range(1, block.shape[1] + 1))


def _reduction(
    prepared: Views, n_components: int | Mapping[str, int] | None, n_free: int
) -> tuple[PerView, dict[str, float]]:
    """The step that reduces views to principal components, and the variance that these explain."""
    most = max(n_free // _ROWS_PER_COMPONENT, 1)
    given: Mapping[str, Any] = dict.fromkeys(prepared.names, n_components)
    if isinstance(n_components, Mapping):
        given = value_by_view("n_components", n_components, prepared.names)
    steps: dict[str, Any] = {}
    explained = {}
    for name, block in prepared.items():
        k, width = given[name], block.shape[1]
        if (most if k is None else k) >= width:
            steps[name], explained[name] = "passthrough", 1.0
            continue
        shares = np.cumsum(PCA(svd_solver="full").fit(block).explained_variance_ratio_)
        k = min(int(np.searchsorted(shares, _VARIANCE)) + 1, most) if k is None else k
        steps[name], explained[name] = PCA(k, svd_solver="full"), float(shares[k - 1])
    return PerView(steps), explained


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
