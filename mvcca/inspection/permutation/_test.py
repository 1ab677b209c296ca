"""Permutation tests of canonical correlations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from mvcca.inspection._rows import GivenRows, levels_of
from mvcca.inspection.permutation._design import Design, Options
from mvcca.inspection.permutation._held_out import TunedByFolds, folds_of
from mvcca.inspection.permutation._loading_nulls import LoadingNull
from mvcca.inspection.permutation._result import PermutationTest, p_values
from mvcca.inspection.permutation._scale import has_common_scale, has_long_tails
from mvcca.inspection.permutation._statistics import of_correlations
from mvcca.inspection.permutation._trials import (
    ComponentTest,
    SeveralViews,
    Stepwise,
    canonical_variates,
    in_space_of,
    later_steps,
    n_that_may_matter,
    rearranged_in_space_of,
)
from mvcca.machine.progress import counting
from mvcca.machine.threads import one_blas_thread
from mvcca.machine.warnings import warn
from mvcca.model_selection.spaces import RIDGES
from mvcca.views.typing import MatrixLike, TableLike, ViewsLike

Trial = Stepwise | SeveralViews | TunedByFolds
RandomState = int | np.random.RandomState | None

_CHUNK = 100  # permutations per task of a worker
_UNLIKE_ROWS = (
    "Rows that are large in one view are large in the other, more than by chance: permutations "
    "then test whether the views are independent, which a common scale of rows, such as head "
    "motion, violates without any correlation. Pass sign_flips=True to test correlations."
)
_LONG_TAILS = (
    "Groups with large means are those whose rows differ most, in two views, as happens with "
    "long-tailed values. Where groups meet confounds, too many p-values are then small: up to 17 % "
    "below 0.05 without any relation, for lognormal values. Transform the variables to ranks "
    "first, as mvcca.compose.RankGaussian does."
)
_LEAST = 19  # permutations, with which the smallest p-value is 0.05


def permutation_test(
    X: ViewsLike | MatrixLike,
    y: MatrixLike | None = None,
    *,
    statistic: Literal["wilks", "roy", "pillai", "held-out"] = "wilks",
    n_permutations: int = 999,
    n_components: int | None = None,
    reg: float | Mapping[str, float] | Literal["cv"] = 0.0,
    confounds: str | TableLike | None = None,
    confounds_y: str | TableLike | None = None,
    groups: Any = None,
    within: bool = False,
    sign_flips: bool = False,
    projection: Literal["auto", "huh-jhun", "theil"] = "auto",
    loadings: Literal["cross", "own", "own-permuted"] | None = None,
    variables: Mapping[str, MatrixLike] | None = None,
    sample_weight: Any = None,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> PermutationTest:
    r"""Test which canonical correlations are larger than chance, by permutation.

    Permuting the rows of one view breaks the pairing and nothing else. Component i is tested after
    removing the components before it, the stepwise test of [1]_: with canonical variates U and V of
    unit length, completed to bases of both views, the correlations r* of U_π[:, i:] and V[:, i:]
    are compared with r_i, r_{i+1}, ... by a statistic T,

    .. math:: p_i = \max_{j ≤ i} \frac{1 + \#\{T^*_j ≥ T_j\}}{1 + n_{permutations}}.

    Comparing r_i with the i-th correlation of permuted *rows* would be too liberal. The maximum
    makes p-values family-wise over components. No permutation fits a model again: the correlations
    of all steps follow from C = U_πᵀV.

    With confounds Z, permuting residuals would reject too often. Rows of QᵀX are permuted instead,
    where Q is semi-orthogonal with QᵀZ = 0; Z includes a column of ones. After the first component,
    Z also includes the variates of earlier ones.

    Parameters
    ----------
    X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
        Two or more paired views, or the first of two. Sparse views are converted to dense. More
        than two views have a test of the global null hypothesis only, that all are independent; for
        the others, test pairs of views and multiply p-values as Holm does.
    y : matrix, optional
        The second view, if X is a single matrix.
    statistic : {"wilks", "roy", "pillai", "held-out"}, default="wilks"
        - "wilks": -ln Λ_i = -Σ_{j≥i} ln(1 - r_j²), for correlations of any number of components.
        - "pillai": Σ_{j≥i} r_j².
        - "roy": r_i, for few strong components.
        - "held-out": correlation of the first component over 5 held-out folds; the whole
          cross-validation is repeated in every permutation. For the global null hypothesis only.

        For more than two views, these are -ln det R, the sum of squares over pairs of views, and
        λ_max(R) - 1, with R the correlation matrix of whitened views; λ_max is the eigenvalue of
        MVCCA.
    n_permutations : int, default=999
        Number of permutations; the smallest possible p-value is 1 / (1 + n_permutations).
    n_components : int, optional
        Number of components to test, by default all.
    reg : float, mapping of str to float, or "cv", default=0.0
        Ridge as in `mvcca.CCA`, with ``scale="auto"`` decided by all rows; without one, there must
        be more rows than independent features.
        Components after the first are then tested by "roy" only: after a strong component, sums
        over all others are too liberal if features nearly fill the rows (18 to 100 % false
        positives at 5 % with 60 rows and twice 40 or 100 features, "roy" 0).
        "cv" chooses the ridge by the held-out correlation of the first component, again in every
        permutation, and has a test of the global null hypothesis only.
    confounds : matrix, table, or str, optional
        Variables whose linear effect is removed from all views, or the name of the view of X that
        holds them; with `confounds_y`, from the first view only. In a table, categories become
        indicators of every level but the first.
    confounds_y : matrix, table, or str, optional
        The same, removed from the second view only.
    groups : array-like, shape (n_rows,) or (n_rows, 2), optional
        Exchangeability blocks, such as families or subjects. Whole groups of the same size are
        exchanged, row by row in the order in which their rows appear. With confounds, and after the
        first component, groups are divided into two strata, see Notes. Of two columns, such as site
        and family, the first holds the groups of the second: the means of sites are removed, and
        whole families are exchanged within their site (or flipped). Names of families must not
        repeat in other sites.
    within : bool, default=False
        Exchange rows within groups in place of whole groups. The means of groups are removed from
        views and confounds, since only relations within groups can be tested.
    sign_flips : bool, default=False
        Flip signs of rows, or of whole groups, in place of permutations: for errors that are
        symmetric and independent, but not of equal variance. Views and confounds are divided by the
        length of their row first, also in ``correlations``, see Notes.
    projection : {"auto", "huh-jhun", "theil"}, default="auto"
        How confounds are removed if rows are exchanged freely, or within groups. Huh-Jhun [2]_ uses
        any orthonormal basis of the complement of Z. Theil [3]_ drops rows, or whole groups, and
        keeps the identity of the others, on which groups depend. "auto" is Theil within groups,
        otherwise Huh-Jhun.
    loadings : {"cross", "own", "own-permuted"}, optional
        Test correlations of variables with the other view's variates ("cross"), or with those of
        their own view. They are compared with loadings of the permuted data: weights from permuted
        rows are applied to the rows that they were computed from, as in PermCCA since August 2024.
        "own-permuted" is its null until then, correlations of variables with variates of permuted
        rows, to reproduce published results: it rejects up to 71 % of irrelevant variables.
    variables : mapping of str to matrix of shape (n_rows, n_variables), optional
        By view name, the variables whose loadings are tested: those that principal components were
        computed from, for example; what the views explain of them is tested. By default the columns
        of the views.
    sample_weight : array-like of int, shape (n_rows,), optional
        How often each row occurs.
    n_jobs : int, optional
        Number of parallel processes, as in joblib. It does not change the result.
    random_state : int, RandomState or None, default=None
        Seed. Every permutation has its own, so that the first permutations of a longer test are
        those of a shorter one.

    Returns
    -------
    PermutationTest
        With ``correlations``, ``p_values`` and ``permuted``, and methods ``to_frame`` and ``plot``.

    Raises
    ------
    ValueError
        If views are not paired; if correlations are 1 by construction, since there are no more rows
        than independent features and confounds; if groups or signs allow fewer than 20
        rearrangements, so that no p-value is below 0.05; or for options that exclude each other,
        such as groups and Huh-Jhun's residuals, whose rows belong to no group.
    TypeError
        If X is an estimator.

    Warns
    -----
    UserWarning
        If no p-value can be below 0.05, or a view has constant or repeated columns; if rows are
        permuted that are large in both views at once, which permutations take for a relation; if
        groups and confounds meet values with long tails.

    Notes
    -----
    Rows of one view are rearranged: the one with fewer independent columns, or the only one with
    confounds. PermCCA permutes both views if only one has confounds, which is conservative where
    the other one depends on them (0 of 1,000 false positives at 5 %, against 54). With different
    confounds, both are permuted, each among its own residuals, since permuting one is too liberal
    where each view depends on the confounds of the other.

    Confounds are removed exactly if the errors of one view are normal. With 60 rows of t(1.2) in
    both views, or 20 rows of columns that are 1 in 15 % of cases, 9 to 11 % were below .05;
    transform such variables by their ranks first, as a study does.

    Component i is tested in rows that have lost the variates u_1 ... u_{i-1} of the rearranged view
    as they have lost confounds, since a strong component uses up a dimension of the rows. Loadings
    are compared in the same rows. Rows keep these variates once Bartlett's approximation gives an
    earlier component a p-value above .5, where it does not matter, and with confounds of each view.
    With a ridge, they keep them only once no rows are left to rearrange. A component then uses up
    less: tests of later ones have 0 to 3 % false positives at 5 %, and up to 8 % in rows that keep
    earlier variates.

    With confounds, groups of m rows are rotated to one row between groups and m - 1 within them.
    Errors that are exchangeable within groups are independent and alike in each of these strata;
    the confounds are removed in each, and rows exchanged in each. Rows between groups form
    one stratum per group size; sizes with fewer groups than confounds are left out. This is exact
    for normal errors, and liberal for long tails in both views: with groups of two, 4 and 3
    lognormal features (σ = 1.2) and two confounds, 9 to 11 % were below .05 for 30 to 120 rows, and
    5 to 7 % of t(3) features. The test then warns. Permuting residuals of whole groups had 49 %
    false positives at 5 % for 24 groups of 4 rows with 4 confounds and twice 20 features.

    Two levels of groups are PALM's blocks of which the outer ones are not exchanged. With
    confounds, and after the first component, each outer group has separate strata, so that sites
    may differ in variance and in the effect of confounds. Each stratum loses as many rows as there
    are confounds, so sites should have several times as many families. If they have fewer, and
    are alike in variance, pass the sites among the confounds, and the families alone as groups.

    Flips use residuals u of rows that are divided by √(‖u_i‖² / p + ‖v_i‖² / q), the size of their
    residuals in both views. Each flip divides u by 1 less the leverage of its row, removes the
    confounds again and restores the products of columns. Permutations assume that rows have equal
    variance, or unlike variance that is independent between views; flips assume that errors are
    symmetric. Take flips if the variance of rows depends on a confound, such as head motion.

    A progress bar is shown if `mvcca.config_context` asks for it.

    References
    ----------
    .. [1] Winkler, Renaud, Smith and Nichols, "Permutation inference for canonical correlation
       analysis", NeuroImage 220, 2020.
    .. [2] Huh and Jhun, "Random permutation testing in multiple linear regression", Communications
       in Statistics 30(10), 2001.
    .. [3] Theil, "The analysis of disturbances in regression analysis", JASA 60, 1965.

    Examples
    --------
    >>> from mvcca.datasets import make_gaussian_views
    >>> from mvcca.inspection import permutation_test
    >>> views = make_gaussian_views(300, correlations=(0.8, 0.5), random_state=0).views
    >>> test = permutation_test(views, random_state=0)
    >>> (test.p_values < 0.05).tolist()
    [True, True, False, False, False]
    """
    options = Options(statistic, n_components, reg, within, sign_flips, projection, loadings)
    _check_number(n_permutations)
    outer, groups = levels_of(groups)
    rows = GivenRows.of(
        "The permutation test",
        X,
        y,
        confounds,
        confounds_y=confounds_y,
        groups=groups,
        outer=outer,
        sample_weight=sample_weight,
    )
    rows.warn_of_columns()
    if variables is not None and loadings is None:
        raise ValueError('variables are those whose loadings are tested: pass loadings="cross".')
    options.check(
        len(rows.arrays),
        n_levels=(rows.groups is not None) + (rows.outer is not None),
        confounds=[Z is not None for Z in rows.confounds],
    )
    tested = rows if variables is None else rows.with_variables(variables)
    if rows.outer is not None and sign_flips:
        rows = rows.with_confounds_of_outer()
    elif within or rows.outer is not None:
        rows, tested = rows.within_groups(within), tested.within_groups(within)
    if reg != 0:  # all rows decide, before any permutation
        rows = rows.in_units()
    design = Design.of(rows.arrays, rows.confounds, rows.groups, rows.outer, options)
    if not sign_flips and has_common_scale(design, rows.arrays):
        warn(_UNLIKE_ROWS)
    if has_long_tails(design, rows.arrays):
        warn(_LONG_TAILS)
    rng = check_random_state(random_state)
    trial = _trial(design, rows, tested, options, rng)  # draws folds, whatever the number
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_permutations)
    null = _null(trial, seeds, n_jobs)
    n_steps = len(trial.observed)
    by_step = zip(trial.observed, null.T, strict=False)  # maxima of loadings may follow
    return PermutationTest(
        statistic=statistic,
        correlations=trial.correlations,
        observed=trial.observed,
        p_values=np.maximum.accumulate([p_values(*step) for step in by_step]),
        permuted=null[:, :n_steps],
        n_rows=design.n_rows,
        dropped_rows=np.unique(rows.positions[design.dropped_rows]),
        reg=_ridges(trial, design, options),
        coding=rows.coding,
        **_loadings(trial, null[:, n_steps:], design, list(rows.arrays)),
    )


def _check_number(n_permutations: Any) -> None:
    """Refuse what is no number of permutations; warn of one that can show nothing."""
    if not isinstance(n_permutations, Integral) or n_permutations < 1:
        raise ValueError(f"n_permutations must be a positive integer, got {n_permutations!r}.")
    if n_permutations < _LEAST:
        warn(
            f"With n_permutations={n_permutations}, no p-value is below "
            f"{1 / (1 + int(n_permutations)):.2g}. Use at least {_LEAST}, better 999."
        )


def _trial(
    design: Design,
    rows: GivenRows,
    tested: GivenRows,
    options: Options,
    rng: np.random.RandomState,
) -> Trial:
    """What is computed in every permutation; loadings are of the variables of `tested`."""
    names = [side.name for side in design.sides]
    if len(names) > 2:
        reg = options.ridges(names)
        bases = [side.shrunk(reg[side.name]) for side in design.sides]
        return SeveralViews(options.statistic, bases, design.exchanges[0])
    if options.is_stepwise:
        return _stepwise(design, rows, tested, options)
    moved, fixed = design.sides
    ridges = [(reg, reg) for reg in RIDGES]
    if options.reg != "cv":
        reg = options.ridges(names)
        ridges = [(reg[moved.name], reg[fixed.name])]
    folds = folds_of(len(moved.basis), design.groups_of_rows, rng.randint(np.iinfo(np.int32).max))
    return TunedByFolds(options.statistic, moved, fixed, ridges, folds, design.exchanges[0])


def _stepwise(design: Design, rows: GivenRows, tested: GivenRows, options: Options) -> Stepwise:
    """The stepwise test of two views, and of loadings if they are asked for."""
    moved, fixed = design.sides
    r, first, second = canonical_variates(moved, fixed, options.ridges(list(rows.arrays)))
    observed = of_correlations(options.statistic, r)[: options.n_steps].copy()
    loadings = None
    if options.loadings is not None:
        of_moved, of_fixed = (side.variables(tested.arrays[side.name]) for side in design.sides)
        loadings = LoadingNull.of(options.loadings, (of_moved, of_fixed), (first, second))
    rearranged = None
    if all(Z is not None for Z in rows.confounds):
        rearranged = partial(rearranged_in_space_of, moved, fixed, second, design.exchanges[1])
    step = ComponentTest(first, in_space_of(moved, fixed, second), design.exchanges[0], loadings)
    steps = []
    if rearranged is None:
        n_steps = len(observed)
        if not options.has_ridge:
            n_steps = min(1 + n_that_may_matter(r, design.n_rows, first, second), n_steps)
        steps = later_steps(design, step, second, n_steps)
        observed[1 : 1 + len(steps)] = [one.observed(options.statistic) for one in steps]
    return Stepwise(options.statistic, observed, r, step, steps, rearranged)


def _null(trial: Trial, seeds: np.ndarray, n_jobs: int | None) -> np.ndarray:
    """Statistics of all permutations, (n_permutations, ...)."""
    parts = np.split(seeds, range(_CHUNK, len(seeds), _CHUNK))
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    found = parallel(delayed(_statistics)(trial, part) for part in parts)
    return np.vstack(list(_watched(found, parts)))


def _statistics(trial: Trial, seeds: np.ndarray) -> np.ndarray:
    """Statistics of some permutations; threads would only wait for each other."""
    with one_blas_thread():
        return np.array([trial(np.random.RandomState(seed)) for seed in seeds])


def _watched(found: Iterator[np.ndarray], parts: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield results as they come, counted by a progress bar if one is configured."""
    with counting(sum(map(len, parts)), "Permutations", " permutations") as count:
        for part in found:
            yield part
            count(len(part))


def _ridges(trial: Trial, design: Design, options: Options) -> dict[str, float]:
    """The ridge of each view, as given or chosen."""
    names = [side.name for side in design.sides]
    if options.reg != "cv":
        return options.ridges(names)
    assert isinstance(trial, TunedByFolds)
    return dict(zip(names, trial.reg, strict=True))


def _loadings(
    trial: Trial, maxima: np.ndarray, design: Design, names: list[str]
) -> dict[str, dict[str, np.ndarray]]:
    """Loadings and their p-values, in the order of the views."""
    if not isinstance(trial, Stepwise) or trial.first.loadings is None:
        return {}
    found = trial.first.loadings.observed(trial.correlations, len(trial.observed))
    own = {side.name: i for i, side in enumerate(design.sides)}
    first = found[own[names[0]]]
    largest = first[np.abs(first).argmax(axis=0), np.arange(first.shape[1])]
    signs = np.where(largest < 0, -1.0, 1.0)
    return {
        "loadings": {name: found[own[name]] * signs for name in names},
        "loading_p_values": {
            name: p_values(np.abs(found[own[name]]), maxima[:, own[name]]) for name in names
        },
    }
