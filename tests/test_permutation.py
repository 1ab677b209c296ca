"""Permutation tests, against refits in every permutation, published figures and uniformity."""

from __future__ import annotations

import warnings
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats
from scipy.sparse import csr_array
from sklearn.decomposition import PCA

from benchmarks.defaults.false_positives import CELLS, rejections
from benchmarks.real import data_home
from mvcca.datasets import make_gaussian_views, make_multilabel_views
from mvcca.inspection import loadings as loadings_of
from mvcca.inspection import permutation_test
from mvcca.inspection.permutation._exchange import Exchange, Flips
from mvcca.inspection.permutation._nuisance import (
    HuhJhun,
    Strata,
    Theil,
    kept_rows,
    orthonormal_with_ones,
)
from mvcca.linear import CCA, MVCCA
from mvcca.machine.config import config_context
from mvcca.views import Views

STATISTICS = ("wilks", "roy", "pillai")
N = 29  # permutations of naive comparisons


def correlations(X, Y):
    """Canonical correlations of rows about 0, by QR and SVD."""
    bases = [linalg.qr(A, mode="economic")[0] for A in (X, Y)]
    return linalg.svdvals(bases[0].T @ bases[1])


def projector(Z):
    return Z @ linalg.pinv(Z)


def variates(X, Y):
    """Orthonormal bases in which XᵀY is diagonal, completed for the wider view."""
    bases = [linalg.qr(A, mode="economic")[0] for A in (X, Y)]
    left, _, right = linalg.svd(bases[0].T @ bases[1])
    return bases[0] @ left, bases[1] @ right.T


def statistic_of(name, r):
    r = np.minimum(r, 1)
    return {"wilks": -np.log(1 - r**2).sum(), "pillai": (r**2).sum(), "roy": r[0]}[name]


def centred(X):
    return X - X.mean(axis=0)


def less_means(X, groups):
    return X - pd.DataFrame(X).groupby(groups).transform("mean").to_numpy()


def with_ones(*parts):
    return np.column_stack([np.ones(len(parts[0])), *parts])


def seeds(random_state, n=N):
    return np.random.RandomState(random_state).randint(np.iinfo(np.int32).max, size=n)


def order_of(seed, exchange, n_rows):
    """The rearrangement that a seed gives: an index."""
    rows = np.arange(1.0, n_rows + 1)[:, None]
    return exchange.apply(rows, np.random.RandomState(seed))[:, 0]


def rearranged(rows, order):
    return rows[order.astype(int) - 1]


def refitted(statistic, U, V, residuals_of, random_state, n_steps, whole=False, **arranged):
    """CCA of U_π[:, i:] and V[:, i:] in every permutation, of what is left of the rows.

    Step i permutes rows that have lost the first i variates of U as they have lost confounds, up to
    the first that Bartlett's p-value tells to be noise; V counts as a whole if confounds are not
    its own.
    """
    found, (Q, _) = [], residuals_of(U[:, :0])
    p, q, m = U.shape[1], V.shape[1], Q.shape[1]
    logs = -np.log(1 - np.diag(U.T @ V) ** 2)[: min(p, q)]
    df = [(p - i) * (q - i) for i in range(len(logs))]
    tails = stats.chi2.sf((m - (p + q + 3) / 2) * np.cumsum(logs[::-1])[::-1], df)
    n_lost = np.argmax([*(tails > 0.5), True])  # of variates, at most
    for seed in seeds(random_state):
        rng, steps, of_first = np.random.RandomState(seed), [], None
        for i in range(n_steps):
            if i <= n_lost:
                Q, codes = residuals_of(U[:, :i])
                exchange = Exchange.of(Q.shape[1], codes, **arranged)
                moved, fixed = exchange.apply(Q.T @ U[:, i:], rng), Q.T @ V[:, i:]
                of_first = of_first or (moved, fixed)
            else:
                moved, fixed = (rows[:, i:] for rows in of_first)
            r = correlations(moved, fixed)
            if whole:
                r = linalg.svdvals(linalg.qr(moved, mode="economic")[0].T @ fixed)
            steps.append(statistic_of(statistic, r))
        found.append(steps)
    return np.array(found)


def free(Z):
    """What is left of rows without Z and their mean, by the other columns of a QR."""
    if not Z.shape[1]:
        return np.eye(len(Z)), None
    basis = linalg.qr(with_ones(Z), mode="economic")[0]
    return HuhJhun(basis).lift(np.eye(len(Z) - basis.shape[1])), None


def draw(seed, n, p, q, rho=0.0):
    """Standard normal rows, the first variables of both views correlated by rho."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    Y[:, 0] = rho * X[:, 0] + np.sqrt(1 - rho**2) * Y[:, 0]
    return X, Y


# ---- against refits -----------------------------------------------------------------------------


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(("p", "q"), [(3, 5), (5, 3), (4, 4), (3, 1)])
def test_all_steps_of_a_permutation_are_those_of_refitted_models(statistic, p, q):
    X, Y = draw(0, 40, p, q, 0.5)
    found = permutation_test(X, Y, statistic=statistic, n_permutations=N, random_state=3)
    U, V = variates(centred(X), centred(Y))
    if q < p:  # the narrower view is rearranged
        U, V = V, U
    k = min(p, q)
    expected = refitted(statistic, U, V, free, 3, k)
    np.testing.assert_allclose(found.permuted, expected, atol=1e-10)
    r = CCA(k).fit(X, Y).canonical_correlations_
    np.testing.assert_allclose(found.correlations, r, atol=1e-10)
    observed = [statistic_of(statistic, r[i:]) for i in range(k)]
    np.testing.assert_allclose(found.observed, observed, atol=1e-10)
    p_values = [(1 + sum(expected[:, i] >= observed[i])) / (1 + N) for i in range(k)]
    np.testing.assert_allclose(found.p_values, np.maximum.accumulate(p_values), atol=1e-12)


def test_the_first_step_is_the_test_of_permuted_rows():
    X, Y = draw(1, 40, 3, 2, 0.3)
    found = permutation_test(X, Y, statistic="roy", n_permutations=N, random_state=0)
    for seed, largest in zip(seeds(0), found.permuted[:, 0], strict=True):
        order = order_of(seed, Exchange.of(40, None), 40)
        model = CCA(1, reg=0).fit(X, rearranged(Y, order))
        assert model.canonical_correlations_[0] == pytest.approx(largest, abs=1e-10)


@pytest.mark.parametrize("which", ["both", "the wider", "the narrower", "different"])
@pytest.mark.parametrize("projection", ["huh-jhun", "theil"])
def test_confounds_are_removed_as_by_refits_to_projected_rows(which, projection):
    n = 50
    X, Y = draw(2, n, 4, 3, 0.4)
    rng = np.random.default_rng(5)
    Z, W = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    X, Y = X + Z[:, :1], Y + Z[:, 1:2] + W[:, :1]
    if which == "the wider":
        X, Y = Y, X
    options = {
        "both": {"confounds": Z},
        "the wider": {"confounds_y": Z},
        "the narrower": {"confounds_y": Z},
        "different": {"confounds": Z, "confounds_y": W},
    }[which]
    found = permutation_test(
        X, Y, projection=projection, n_permutations=N, random_state=1, **options
    )

    def residuals(A, confounds):
        confounds = with_ones(confounds)
        return A - confounds @ linalg.lstsq(confounds, A)[0]

    none = np.empty((n, 0))
    of_x, of_y = {"both": (Z, Z), "different": (Z, W)}.get(which, (none, Z))
    X, Y = residuals(X, of_x), residuals(Y, of_y)
    r = correlations(X, Y)
    own = of_y if which.startswith("the") else of_x
    basis = orthonormal_with_ones("", own, n)
    np.testing.assert_allclose(basis @ basis.T, projector(with_ones(own)), atol=1e-12)
    if projection == "theil":
        kept = kept_rows(basis)
        S = np.eye(n)[:, kept]
        R = np.eye(n) - basis @ basis.T
        Q = R @ S @ linalg.inv(linalg.sqrtm(S.T @ R @ S))
        dropped = set(range(n)) - set(kept)
        if which == "different":
            dropped |= set(range(n)) - set(kept_rows(orthonormal_with_ones("", of_y, n)))
        assert set(found.dropped_rows) == dropped
    else:
        Q = HuhJhun(basis).lift(np.eye(n - basis.shape[1]))
        np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
        np.testing.assert_allclose(Q @ Q.T, np.eye(n) - projector(with_ones(own)), atol=1e-12)
        assert not len(found.dropped_rows)
    assert Q.shape[1] == n - basis.shape[1]
    np.testing.assert_allclose(found.correlations, r, atol=1e-10)
    U, V = variates(X, Y)
    if which.startswith("the") or (which == "both" and Y.shape[1] < X.shape[1]):
        U, V = V, U
    if which != "different":

        def left(variates):
            extended = np.hstack([basis, variates])
            if projection == "huh-jhun":
                return HuhJhun(extended).lift(np.eye(n - extended.shape[1])), None
            kept = kept_rows(extended)
            return Theil(extended, kept).lift(np.eye(len(kept))), None

        expected = refitted("wilks", U, V, left, 1, 3, whole=which != "both")
        np.testing.assert_allclose(found.permuted, expected, atol=1e-10)
        return
    P = orthonormal_with_ones("", of_y, n)  # both are permuted, the narrower view y first
    P = (HuhJhun(P) if projection == "huh-jhun" else Theil(P, kept_rows(P))).lift
    P = P(np.eye(n - 1 - of_y.shape[1]))
    for seed, row in zip(seeds(1), found.permuted, strict=True):
        rng = np.random.RandomState(seed)
        V_moved, U_moved = (
            A @ Exchange.of(A.shape[1], None).apply(A.T @ B, rng) for A, B in ((P, V), (Q, U))
        )
        steps = [
            statistic_of("wilks", correlations(U_moved[:, i:], V_moved[:, i:])) for i in range(3)
        ]
        np.testing.assert_allclose(row, steps, atol=1e-10)


@pytest.mark.parametrize("within", [False, True])
def test_groups_rearrange_rows_as_they_say(within):
    n = 36
    X, Y = draw(3, n, 3, 4, 0.5)
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(12), 3))
    options = {"n_permutations": N, "random_state": 2, "groups": groups, "within": within}
    found = permutation_test(X, Y, **options)
    codes = pd.factorize(groups)[0]  # numbered as they appear
    for seed in seeds(2):
        places = order_of(seed, Exchange.of(n, codes, within=within), n).astype(int)
        source = codes[places - 1]  # the group that each row comes from
        if within:
            np.testing.assert_array_equal(source, codes)
            assert sorted(places) == list(range(1, n + 1))
        else:
            assert all(len(set(source[codes == g])) == 1 for g in set(codes))
            assert all((np.diff(places[codes == g]) > 0).all() for g in set(codes))
            assert (source != codes).any()
    rows = [centred(A) for A in (X, Y)]
    if within:
        rows = [less_means(A, codes) for A in (X, Y)]
    U, V = variates(*rows)

    def left(Z):
        if not Z.shape[1]:
            return np.eye(n), codes
        kept = kept_rows(Z, codes)
        own = np.unique(codes[kept], return_inverse=True)[1]
        return Theil(Z, kept).lift(np.eye(len(kept))), own

    n_steps = 3 if within else 1  # whole groups have strata once a variate is removed
    expected = refitted("wilks", U, V, left, 2, n_steps, within=within)
    np.testing.assert_allclose(found.permuted[:, :n_steps], expected, atol=1e-10)


@pytest.mark.parametrize("sizes", [[4], [1, 2, 5], [1]], ids=str)
def test_strata_of_groups_are_independent_and_alike(sizes):
    """Errors that are exchangeable within groups have one variance in each stratum, and no more."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(12 * len(sizes)), np.repeat(sizes, 12)))
    n = len(groups)
    Z = orthonormal_with_ones("", rng.standard_normal((n, 3)), n)
    strata = Strata.of(Z, groups)
    Q = strata.lift(np.eye(len(strata.kept)))
    np.testing.assert_allclose(strata.reduce(np.eye(n)), Q.T, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
    np.testing.assert_allclose(Q.T @ Z, 0, atol=1e-12)
    covariance = 0.3 * np.eye(n) + 0.7 * (groups[:, None] == groups)
    variances = [0.3 + 0.7 * size for size in sizes] + [0.3]  # between by size, and within
    expected = np.repeat(variances, strata.sizes)
    np.testing.assert_allclose(Q.T @ covariance @ Q, np.diag(expected), atol=1e-12)
    within = sum(12 * (size - 1) for size in sizes)
    assert strata.sizes == [12 - 4] * len(sizes) + [max(within - 3, 0)]
    ends = np.cumsum([0, *strata.sizes])
    order = order_of(0, Exchange.in_strata(strata.sizes), ends[-1]).astype(int) - 1
    for a, b in pairwise(ends):
        assert sorted(order[a:b]) == list(range(a, b))


def test_groups_with_confounds_are_exchanged_in_strata():
    X, Y = draw(14, 96, 6, 9, 0.6)
    Z = np.random.default_rng(15).standard_normal((96, 3))
    found = permutation_test(
        X, Y, confounds=Z, groups=FAMILIES, n_permutations=N, random_state=4, statistic="roy"
    )
    strata = Strata.of(orthonormal_with_ones("", Z, 96), FAMILIES)
    assert strata.sizes == [20, 69]
    assert found.n_rows == 89
    U, V = variates(strata.reduce(centred(X)), strata.reduce(centred(Y)))
    np.testing.assert_allclose(found.correlations, linalg.svdvals(U.T @ V), atol=1e-10)
    for seed, largest in zip(seeds(4), found.permuted[:, 0], strict=True):
        rng = np.random.RandomState(seed)
        order = np.concatenate([rng.permutation(20), 20 + rng.permutation(69)])
        assert linalg.norm(U[order].T @ V, 2) == pytest.approx(largest, abs=1e-10)
    # The second component is tested in rows that lose the first variate in each stratum.
    lost = [U[:20, :1], U[20:, :1]]
    P = linalg.block_diag(*(np.eye(len(u)) - u @ u.T / (u.T @ u) for u in lost))
    expected = correlations(P @ U[:, 1:], P @ V[:, 1:])[0]
    assert found.observed[1] == pytest.approx(expected, abs=1e-10)


SITES = np.repeat([0, 1, 2], [28, 24, 44])  # of families of 4 and, in the last one, 4 of 2


def nested():
    """Sites of families, in any order of rows, numbered as they appear."""
    families = np.repeat(np.arange(26), [4] * 22 + [2] * 4)
    groups = np.column_stack([SITES, families])[np.random.default_rng(3).permutation(96)]
    return np.column_stack([pd.factorize(own)[0] for own in groups.T])


def test_families_are_exchanged_within_their_site():
    X, Y = draw(14, 96, 3, 4, 0.6)
    groups = nested()
    site, family = groups.T
    shift = 5 * np.random.default_rng(1).standard_normal((3, 1))[site]  # which both views share
    options = {"n_permutations": N, "random_state": 2}
    found = permutation_test(X + shift, Y - shift, groups=groups, **options)
    names = pd.DataFrame({"site": np.array(["A", "B", "C"])[site], "family": family})
    by_name = permutation_test(X, Y, groups=names, **options)
    np.testing.assert_allclose(by_name.permuted, found.permuted, atol=1e-10)
    one_site = permutation_test(X, Y, groups=groups * [0, 1], **options)
    one_level = permutation_test(X, Y, groups=family, **options)
    np.testing.assert_array_equal(one_site.permuted, one_level.permuted)
    U, V = variates(less_means(X, site), less_means(Y, site))
    np.testing.assert_allclose(found.correlations, linalg.svdvals(U.T @ V), atol=1e-10)
    for seed, row in zip(seeds(2), found.permuted, strict=True):
        order = order_of(seed, Exchange.of(96, family, site), 96).astype(int) - 1
        np.testing.assert_array_equal(site[order], site)
        assert all(len(set(family[order][family == g])) == 1 for g in set(family))
        assert (family[order] != family).any()
        expected = statistic_of("wilks", linalg.svdvals(U[order].T @ V))
        assert row[0] == pytest.approx(expected, abs=1e-10)


def test_nested_groups_with_confounds_have_strata_in_each_outer_group():
    """Errors that are exchangeable within families may differ in variance between sites."""
    site, family = nested().T
    Z = less_means(np.random.default_rng(3).standard_normal((96, 2)), site)
    strata = Strata.of(Z := orthonormal_with_ones("", Z, 96), family, site)
    # Families of 4: 7, 6 and 9; of 2: 4. Each stratum loses 3 rows between, and 2 within.
    assert strata.sizes == [4, 19, 3, 16, 1, 6, 4 + 27 - 2]
    Q = strata.lift(np.eye(len(strata.kept)))
    np.testing.assert_allclose(strata.reduce(np.eye(96)), Q.T, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)
    np.testing.assert_allclose(Q.T @ np.column_stack([Z, np.eye(3)[site]]), 0, atol=1e-12)
    own, shared = np.array([0.3, 1.0, 2.0]), np.array([0.7, 0.2, 5.0])
    covariance = np.diag(own[site]) + shared[site] * (family[:, None] == family)
    sizes = [[4], [4], [2, 4]]
    variances = [
        variance
        for a, b, of_site in zip(own, shared, sizes, strict=True)
        for variance in [*(a + b * size for size in of_site), a]
    ]
    expected = np.diag(np.repeat(variances, strata.sizes))
    np.testing.assert_allclose(Q.T @ covariance @ Q, expected, atol=1e-12)
    X, Y = draw(14, 96, 3, 4, 0.6)
    options = {"confounds": Z[:, 1:], "n_permutations": N, "random_state": 2}
    found = permutation_test(X, Y, groups=nested(), **options)
    assert found.n_rows == sum(strata.sizes)
    U, V = variates(strata.reduce(X), strata.reduce(Y))
    np.testing.assert_allclose(found.correlations, linalg.svdvals(U.T @ V), atol=1e-10)
    for seed, row in zip(seeds(2), found.permuted, strict=True):
        order = order_of(seed, Exchange.in_strata(strata.sizes), len(U)).astype(int) - 1
        expected = statistic_of("wilks", linalg.svdvals(U[order].T @ V))
        assert row[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("which", ["none", "both", "second", "different"])
def test_flips_of_nested_groups_remove_the_means_of_the_outer_ones(which):
    X, Y = draw(14, 96, 3, 4, 0.6)
    site, family = nested().T
    Z, W = np.random.default_rng(3).standard_normal((2, 96, 2))
    sites = np.eye(3)[site][:, 1:]
    given = {"confounds": Z} if which in ("both", "different") else {}
    given |= {"confounds_y": W} if which in ("second", "different") else {}
    options = {"sign_flips": True, "n_permutations": 19, "random_state": 2}
    found = permutation_test(X, Y, groups=nested(), **given, **options)
    expected = {name: np.hstack([sites, A]) for name, A in given.items()}
    expected = {"confounds": sites} | expected
    expected = permutation_test(X, Y, groups=family, **expected, **options)
    np.testing.assert_allclose(found.permuted, expected.permuted, atol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_flips_remove_confounds_and_whiten_again(grouped):
    X, Y = draw(3, 60, 3, 4, 0.5)
    rng = np.random.default_rng(0)
    Z, groups = rng.standard_normal((60, 2)), np.repeat(np.arange(20), 3)
    options = {"groups": groups} if grouped else {}
    found = permutation_test(
        X, Y, confounds=Z, sign_flips=True, n_permutations=N, random_state=5, **options
    )
    Z = with_ones(Z)
    U, V = variates(*(A - projector(Z) @ A for A in (X, Y)))
    lengths = np.sqrt(((U**2).sum(axis=1) / 3 + (V**2).sum(axis=1) / 4) * 30)[:, None]
    Z = Z / lengths
    U, V = variates(*(A / lengths - projector(Z) @ (A / lengths) for A in (X, Y)))
    np.testing.assert_allclose(found.correlations, linalg.svdvals(U.T @ V), atol=1e-10)
    codes = groups if grouped else np.arange(60)
    for seed, row in zip(seeds(5), found.permuted, strict=True):
        rng = np.random.RandomState(seed)
        for i in range(2):  # later ones are noise
            H = projector(np.hstack([Z, U[:, :i]]))
            signs = rng.choice([-1.0, 1.0], codes.max() + 1)[codes]
            moved = U[:, i:] * (signs / (1 - np.diag(H)))[:, None]
            r = correlations(moved - H @ moved, V[:, i:])
            assert row[i] == pytest.approx(statistic_of("wilks", r), abs=1e-9)


def test_flips_keep_the_products_of_columns():
    """With a ridge, columns are not orthonormal; later ones must still span the same rows."""
    rng = np.random.default_rng(0)
    rows, Z = rng.standard_normal((30, 4)), linalg.qr(np.ones((30, 1)), mode="economic")[0]
    rows -= Z @ (Z.T @ rows)
    moved = Flips(np.arange(30), Z).apply(rows, np.random.RandomState(1))
    np.testing.assert_allclose(moved.T @ moved, rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(Z.T @ moved, 0, atol=1e-12)
    signs = np.random.RandomState(1).choice([-1.0, 1.0], 30)[:, None]
    flipped = signs * rows - Z @ (Z.T @ (signs * rows))
    for i in range(4):
        np.testing.assert_allclose(projector(flipped[:, i:]), projector(moved[:, i:]), atol=1e-10)


@pytest.mark.parametrize(("n", "p"), [(50, 4), (20, 30)], ids=["p < n", "p > n"])
def test_a_ridge_is_that_of_refitted_models(n, p):
    X, Y = draw(4, n, p, 3, 0.6)
    reg = {"X": 0.3, "y": 0.1}
    options = {"reg": reg, "n_permutations": N, "random_state": 4}
    found = permutation_test(X, Y, statistic="roy", **options)
    model = CCA(3, reg=reg).fit(X, Y)
    np.testing.assert_allclose(found.correlations, model.canonical_correlations_, atol=1e-10)
    roots = []
    for A, r in ((X, 0.3), (Y, 0.1)):
        scatter = centred(A).T @ centred(A)
        ridged = scatter + r * np.trace(scatter) / len(scatter) * np.eye(len(scatter))
        roots.append(centred(A) @ np.real(linalg.inv(linalg.sqrtm(ridged))))
    left, _, right = linalg.svd(roots[0].T @ roots[1])
    fixed, moved = roots[0] @ left, roots[1] @ right.T  # not orthonormal: the narrower is moved
    for seed, row in zip(seeds(4), found.permuted, strict=True):
        rng, steps = np.random.RandomState(seed), []
        for i in range(3):
            lost = linalg.qr(moved[:, :i], mode="economic")[0] if i else moved[:, :0]
            Q = free(lost)[0]
            rows = Exchange.of(Q.shape[1], None).apply(Q.T @ moved[:, i:], rng)
            steps.append(linalg.norm(rows.T @ Q.T @ fixed[:, i:], 2))
        np.testing.assert_allclose(row, steps, atol=1e-10)
        Y_shuffled = rearranged(Y, order_of(seed, Exchange.of(n, None), n))
        first = CCA(1, reg=reg).fit(X, Y_shuffled).canonical_correlations_[0]
        assert row[0] == pytest.approx(first, abs=1e-10)
    wilks = permutation_test(X, Y, **options)
    np.testing.assert_allclose(wilks.observed, [-np.log(1 - found.correlations**2).sum()])


@pytest.mark.parametrize(
    "options",
    [
        {"groups": np.repeat(np.arange(4), 6), "within": True},
        {"confounds": np.arange(24.0), "projection": "theil"},
    ],
    ids=["within", "theil"],
)
def test_a_ridge_tests_as_many_components_as_there_are_rows(options):
    X, Y = draw(0, 24, 40, 40, 0.99)
    test = permutation_test(
        X, Y, statistic="roy", reg=0.1, n_permutations=N, random_state=0, **options
    )
    assert len(test.p_values) > 15
    assert np.isfinite(test.permuted).all()


def test_three_views_are_tested_by_the_whole_correlation_matrix():
    views = make_gaussian_views(60, n_features=(3, 4, 2), correlations=(0.5,), random_state=0).views
    X = [centred(block) for _, block in views.items()]
    for reg in (0.0, 0.2):
        found = {
            name: permutation_test(views, statistic=name, reg=reg, n_permutations=N, random_state=5)
            for name in STATISTICS
        }
        eigenvalue = MVCCA(1, reg=reg).fit(views).eigenvalues_[0]
        assert found["roy"].correlations[0] == pytest.approx(eigenvalue - 1, abs=1e-10)
        assert found["roy"].observed[0] == pytest.approx(eigenvalue - 1, abs=1e-10)
        exchange = Exchange.of(60, None)
        for i, seed in enumerate(seeds(5)):
            rng = np.random.RandomState(seed)
            moved = [X[0], *(exchange.apply(A, rng) for A in X[1:])]
            model = MVCCA(1, reg=reg).fit(moved)
            assert found["roy"].permuted[i, 0] == pytest.approx(
                model.eigenvalues_[0] - 1, abs=1e-10
            )
            if reg == 0:
                R = np.corrcoef(np.hstack(moved), rowvar=False)
                blocks = [np.corrcoef(A, rowvar=False) for A in moved]
                log = np.linalg.slogdet(R)[1] - sum(np.linalg.slogdet(B)[1] for B in blocks)
                assert found["wilks"].permuted[i, 0] == pytest.approx(-log, abs=1e-10)
                pairs = [(moved[a], moved[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
                squares = sum((correlations(*pair) ** 2).sum() for pair in pairs)
                assert found["pillai"].permuted[i, 0] == pytest.approx(squares, abs=1e-10)


def test_the_held_out_statistic_is_that_of_models_fitted_to_folds():
    from mvcca.inspection.permutation._held_out import folds_of

    X, Y = draw(5, 60, 5, 3, 0.6)
    found = permutation_test(X, Y, statistic="held-out", reg=0.1, n_permutations=19, random_state=6)
    rng = np.random.RandomState(6)
    folds = folds_of(60, None, rng.randint(np.iinfo(np.int32).max))
    all_seeds = rng.randint(np.iinfo(np.int32).max, size=19)

    def held_out(X, Y):
        sums = np.zeros(3)
        for fold in range(5):
            test = folds == fold
            model = CCA(1, reg=0.1).fit(X[~test], Y[~test])
            x, y = (Z[:, 0] for Z in model.transform(X[test], Y[test]))
            sums += x @ y, x @ x, y @ y
        return sums[0] / np.sqrt(sums[1] * sums[2])

    assert found.observed[0] == pytest.approx(held_out(X, Y), abs=1e-10)
    for seed, value in zip(all_seeds, found.permuted[:, 0], strict=True):
        order = order_of(seed, Exchange.of(60, None), 60)
        assert value == pytest.approx(held_out(X, rearranged(Y, order)), abs=1e-10)


def test_a_searched_ridge_is_searched_again_in_every_permutation():
    from mvcca.inspection.permutation._held_out import folds_of
    from mvcca.model_selection.spaces import RIDGES

    X, Y = draw(6, 40, 6, 4, 0.7)
    options = {"n_permutations": 19, "random_state": 7}
    found = permutation_test(X, Y, reg="cv", statistic="held-out", **options)
    by_ridge = [permutation_test(X, Y, reg=reg, statistic="held-out", **options) for reg in RIDGES]
    np.testing.assert_allclose(found.observed[0], max(one.observed[0] for one in by_ridge))
    largest = np.max([one.permuted for one in by_ridge], axis=0)
    np.testing.assert_allclose(found.permuted, largest, atol=1e-12)
    chosen = RIDGES[int(np.argmax([one.observed[0] for one in by_ridge]))]
    assert found.reg == {"X": chosen, "y": chosen}
    # Another statistic takes the ridge that these folds choose.
    wilks = permutation_test(X, Y, reg="cv", **options)
    after_folds = [np.random.RandomState(7) for _ in RIDGES]
    for rng in after_folds:
        rng.randint(np.iinfo(np.int32).max)  # the seed of the folds
    fixed = [
        permutation_test(X, Y, reg=reg, **options | {"random_state": rng})
        for reg, rng in zip(RIDGES, after_folds, strict=True)
    ]
    assert wilks.observed[0] == pytest.approx(fixed[RIDGES.index(chosen)].observed[0])
    best = np.argmax([one.permuted[:, 0] for one in by_ridge], axis=0)
    expected = [fixed[reg].permuted[i, 0] for i, reg in enumerate(best)]
    np.testing.assert_allclose(wilks.permuted[:, 0], expected, atol=1e-10)
    assert len(set(best)) > 1  # different ridges in different permutations
    assert folds_of(40, np.repeat(np.arange(8), 5), 0).reshape(8, 5).std(axis=1).max() == 0


@pytest.mark.parametrize("kind", ["cross", "own", "own-permuted"])
def test_the_null_of_loadings_has_weights_of_permuted_rows(kind):
    n = 40
    X, Y = draw(7, n, 4, 3, 0.8)
    found = permutation_test(X, Y, loadings=kind, n_components=2, n_permutations=N, random_state=8)
    model = CCA(2).fit(X, Y)
    expected = loadings_of(model, X, Y)
    if kind == "cross":
        expected = {
            "X": loadings_of(model, X, Y, variates="y")["X"],
            "y": loadings_of(model, X, Y, variates="X")["y"],
        }
    for name, values in found.loadings.items():
        np.testing.assert_allclose(np.abs(values), np.abs(expected[name]), atol=1e-10)
    # Signs are those of the model, up to one per component for both views.
    signs = [np.sign(found.loadings[name] * expected[name]) for name in ("X", "y")]
    np.testing.assert_array_equal(np.vstack(signs), np.vstack([signs[0][:1]] * 7))
    assert (found.loadings["X"].max(axis=0) == np.abs(found.loadings["X"]).max(axis=0)).all()
    U, V = variates(centred(X), centred(Y))
    keeps = kind == "own-permuted"  # earlier variates, to reproduce what was published
    lost = [np.eye(n) if keeps or not i else free(V[:, :i])[0] for i in range(2)]
    largest = {"X": [], "y": []}
    for seed in seeds(8):  # the narrower view y is rearranged
        rng, maxima = np.random.RandomState(seed), {"X": [], "y": []}
        for i, Q in enumerate(lost):
            start = 0 if keeps else i  # variables lose the earlier variates of their view
            X_left, Y_left = (A[:, start:] @ A[:, start:].T @ B for A, B in ((U, X), (V, Y)))
            U_left, V_left, X_left, Y_left = (Q.T @ A for A in (U, V, X_left, Y_left))
            if not i or not keeps:
                exchange = Exchange.of(len(V_left), None)
                rows = exchange.apply(np.hstack([V_left, Y_left]), rng)
                V_moved, Y_moved = rows[:, :3], rows[:, 3:]
                U_moved = exchange.apply(U, rng) if keeps else U_left
            a, _, b = linalg.svd(U_left[:, i:].T @ V_moved[:, i:])
            a, b = a[:, 0], b[0]
            sources = {
                "cross": (V_moved[:, i:] @ b, U_left[:, i:] @ a),  # of the permuted data
                "own": (U_left[:, i:] @ a, V_left[:, i:] @ b),
                "own-permuted": (U_moved[:, i:] @ a, V_moved[:, i:] @ b),
            }[kind]
            variables = X_left, Y_moved if kind == "cross" else Y_left
            for name, A, z, whole in zip(("X", "y"), variables, sources, (X, Y), strict=True):
                lengths = linalg.norm(centred(whole), axis=0) * linalg.norm(z)
                maxima[name].append(np.max(np.abs(A.T @ z) / lengths))
        for name, values in maxima.items():
            largest[name].append(max(values))
    for name, values in found.loading_p_values.items():
        as_large = np.array(largest[name])[:, None, None] >= np.abs(expected[name]) - 1e-10
        np.testing.assert_allclose(values, (1 + as_large.sum(axis=0)) / (1 + N))


def test_loadings_with_different_confounds_are_correlations_of_residuals():
    n = 60
    X, Y = draw(8, n, 3, 4, 0.7)
    rng = np.random.default_rng(1)
    Z, W = rng.standard_normal((n, 2)), rng.standard_normal((n, 3))
    options = {"n_permutations": 19, "random_state": 0, "confounds": Z, "confounds_y": W}
    X_left, Y_left = (
        A - with_ones(C) @ linalg.lstsq(with_ones(C), A)[0] for A, C in ((X, Z), (Y, W))
    )
    U, V = variates(X_left, Y_left)
    for kind, of_x, of_y in (("cross", V, U), ("own", U, V)):
        found = permutation_test(X, Y, loadings=kind, **options).loadings
        for A, Q, name in ((X_left, of_x, "X"), (Y_left, of_y, "y")):
            expected = [[abs(a @ z) / linalg.norm(a) for z in Q.T[:3]] for a in A.T]
            np.testing.assert_allclose(np.abs(found[name]), expected, atol=1e-10)


# ---- invariances --------------------------------------------------------------------------------


def test_mean_pillai_over_permutations_is_exact():
    n, p, q = 30, 4, 3
    X, Y = draw(9, n, p, q, 0.9)
    null = permutation_test(X, Y, statistic="pillai", n_permutations=4000, random_state=0).permuted
    error = null[:, 0].std() / np.sqrt(len(null))
    assert abs(null[:, 0].mean() - p * q / (n - 1)) < 4 * error
    assert error < 0.01 * p * q / (n - 1)


def test_results_do_not_depend_on_workers_or_on_what_follows():
    X, Y = draw(10, 50, 4, 3, 0.4)
    options = {"random_state": 0, "loadings": "cross"}
    one = permutation_test(X, Y, n_permutations=250, **options)
    two = permutation_test(X, Y, n_permutations=250, n_jobs=2, **options)
    short = permutation_test(X, Y, n_permutations=120, **options)
    np.testing.assert_array_equal(one.permuted, two.permuted)
    np.testing.assert_array_equal(one.permuted[:120], short.permuted)
    np.testing.assert_array_equal(one.loading_p_values["X"], two.loading_p_values["X"])


GROUPED = np.random.default_rng(5).permutation(np.repeat(np.arange(15), 4))
RIDGED = [{"reg": reg} for reg in (0.0, 0.1, "cv")]
ARRANGED = [
    {},
    {"groups": GROUPED},
    {"groups": GROUPED, "within": True},
    {"sign_flips": True},
    {"confounds": np.random.default_rng(6).standard_normal((60, 2))},
    {"confounds": np.random.default_rng(6).standard_normal((60, 2)), "projection": "theil"},
    {"sample_weight": np.arange(60) % 3},
]


@pytest.mark.parametrize(
    ("statistic", "ridge"),  # statistics differ in what is computed of the same permutations
    [
        pytest.param(
            *cell,
            marks=() if cell[0] == "wilks" or cell == ("held-out", RIDGED[1]) else pytest.mark.long,
        )
        for cell in product([*STATISTICS, "held-out"], RIDGED)
    ],
    ids=str,
)
@pytest.mark.parametrize("arranged", ARRANGED, ids=lambda own: "-".join(own) or "free")
def test_a_longer_test_begins_with_the_shorter_one(statistic, ridge, arranged):
    X, Y = draw(11, 60, 3, 2, 0.4)
    options = {"statistic": statistic, "random_state": 3} | ridge | arranged
    short, long = (permutation_test(X, Y, n_permutations=n, **options) for n in (19, 31))
    np.testing.assert_array_equal(short.observed, long.observed)
    np.testing.assert_array_equal(short.permuted, long.permuted[:19])
    assert short.reg == long.reg


@pytest.mark.parametrize(
    "options",
    [
        {"loadings": "own-permuted"},
        {"n_components": 1},
        {"confounds": GROUPED[:, None], "confounds_y": np.sin(np.arange(60))[:, None]},
    ],
    ids=lambda own: next(iter(own)),
)
def test_other_options_do_not_depend_on_the_number_of_permutations(options):
    X, Y = draw(11, 60, 3, 2, 0.4)
    short, long = (
        permutation_test(X, Y, n_permutations=n, random_state=3, **options) for n in (19, 31)
    )
    np.testing.assert_array_equal(short.observed, long.observed)
    np.testing.assert_array_equal(short.permuted, long.permuted[:19])


@pytest.mark.parametrize("statistic", [*STATISTICS, "held-out"])
@pytest.mark.parametrize("n_confounds", [0, 1, 3])
@pytest.mark.parametrize(("p", "q"), [(2, 2), (1, 3), (3, 1), (1, 4)])
def test_as_many_features_as_rows_less_one_can_be_tested(statistic, n_confounds, p, q):
    """With one row less, the spans of the views meet, and the first correlation is 1."""
    n = p + q + 1 + n_confounds
    X, Y = draw(12, n, p, q)
    Z = np.random.default_rng(13).standard_normal((n, n_confounds)) if n_confounds else None
    options = {"statistic": statistic, "n_permutations": 19, "random_state": 0, "confounds": Z}
    test = permutation_test(X, Y, **options)
    assert np.isfinite(test.observed).all()
    assert np.isfinite(test.permuted).all()
    assert 0 < test.correlations[0] < 1 - 1e-6
    options["confounds"] = None if Z is None else Z[1:]
    with pytest.raises(ValueError, match="correlations are 1 by construction"):
        permutation_test(X[1:], Y[1:], **options)


def test_three_views_may_fill_the_rows():
    rows = np.split(np.random.default_rng(20).standard_normal((7, 6)), 3, axis=1)
    assert np.isfinite(permutation_test(rows, n_permutations=19, random_state=0).observed).all()
    with pytest.raises(ValueError, match="correlations are 1 by construction"):
        permutation_test([X[1:] for X in rows], n_permutations=19)


FAMILIES = np.repeat(np.arange(24), 4)


@pytest.mark.parametrize("statistic", [*STATISTICS, "held-out"])
@pytest.mark.parametrize(
    "options", [{}, {"reg": 0.1}, {"reg": "cv"}, {"loadings": "cross"}], ids=str
)
@pytest.mark.parametrize("which", ["both", "second", "different"])
def test_groups_with_confounds_have_every_statistic(statistic, options, which):
    if (statistic == "held-out" or which == "different") and options.get("loadings"):
        return
    if which == "different" and (statistic == "held-out" or options.get("reg") == "cv"):
        return
    X, Y = draw(14, 96, 2, 3)
    Z, W = np.random.default_rng(15).standard_normal((2, 96, 2))
    confounds = {"confounds_y": W} if which != "both" else {}
    confounds |= {"confounds": Z} if which != "second" else {}
    if which == "second" and (statistic == "held-out" or options.get("reg") == "cv"):
        return
    settings = {"statistic": statistic, "groups": FAMILIES, "n_permutations": 19} | options
    found = permutation_test(X, Y, **confounds, **settings, random_state=0)
    assert np.isfinite(found.permuted).all()
    assert found.n_rows == 24 - 3 + 72 - 2
    assert not len(found.dropped_rows)


def test_strata_of_groups_refuse_views_that_fill_them():
    Z = np.random.default_rng(15).standard_normal((96, 4))
    options = {"confounds": Z, "groups": FAMILIES, "n_permutations": 19}
    permutation_test(*draw(14, 96, 43, 44), **options)
    with pytest.raises(ValueError, match="correlations are 1 by construction"):
        permutation_test(*draw(14, 96, 44, 44), **options)


def test_permutations_of_rows_of_a_common_scale_warn():
    X, Y = draw(14, 96, 2, 3)
    scale = np.exp(np.random.default_rng(16).standard_normal((96, 1)))
    with pytest.warns(UserWarning, match="test whether the views are independent"):
        permutation_test(X * scale, Y * scale, n_permutations=19)
    permutation_test(X * scale, Y * scale, sign_flips=True, n_permutations=19)


@pytest.mark.parametrize("n", [30, 100, 400])
@pytest.mark.parametrize(("p", "q", "rho"), [(1, 1, 0.9), (2, 3, 0.0), (8, 5, 0.5)])
def test_permutations_of_normal_rows_do_not_warn(n, p, q, rho):
    for seed in range(10):
        permutation_test(*draw(seed, n, p, q, rho), n_permutations=19)


@pytest.mark.parametrize("which", ["view", "confounds"])
def test_what_is_constant_within_groups_is_no_variable_within_them(which):
    """Rounding of the group means must not be taken for one."""
    rng = np.random.default_rng(17)
    X, Y = draw(18, 96, 2, 3)
    groups = np.repeat(np.arange(32), 3)
    income = rng.normal(1e4, 3, 32)[groups][:, None] / 7
    options = {"groups": groups, "within": True, "n_permutations": 19, "random_state": 0}
    if which == "view":
        expected, found = (permutation_test(A, Y, **options) for A in (X, np.hstack([X, income])))
    else:
        Z = rng.standard_normal((96, 1))
        expected, found = (
            permutation_test(X, Y, confounds=A, **options) for A in (Z, np.hstack([Z, income]))
        )
    np.testing.assert_allclose(found.correlations, expected.correlations, atol=1e-8)
    assert found.n_rows == expected.n_rows


def _groups_with_confounds(seed, n, size, draw, between=0.0):
    """Unrelated views whose rows are `draw`n, a normal part of groups, confounds and groups."""
    rng, groups = np.random.default_rng(seed), np.arange(n) // size
    Z = rng.standard_normal((n, 2))
    X, Y = (
        draw(rng, (n, d)) + between * rng.standard_normal((n, d))[groups] + Z @ rng.random((2, d))
        for d in (4, 3)
    )
    return (X, Y), {"confounds": Z, "groups": groups, "n_permutations": 19, "random_state": 0}


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # 1 % of data sets
@pytest.mark.parametrize(("size", "n"), [(2, 100), (5, 150)])
def test_long_tails_in_groups_with_confounds_warn(size, n):
    views, options = _groups_with_confounds(
        0, n, size, lambda rng, shape: rng.lognormal(0, 1.2, shape)
    )
    with pytest.warns(UserWarning, match="as happens with long-tailed values"):
        permutation_test(views, **options)
    del options["confounds"]  # whole groups are exchanged, which is exact
    permutation_test(views, **options)


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # 1 % of data sets
@pytest.mark.parametrize("between", [0.0, 3.0])
@pytest.mark.parametrize(("size", "n"), [(2, 40), (2, 100), (5, 100)])
def test_normal_groups_have_no_long_tails(size, n, between):
    for seed in range(10):
        views, options = _groups_with_confounds(
            seed, n, size, lambda rng, shape: rng.standard_normal(shape), between
        )
        permutation_test(views, **options)


def test_integer_weights_repeat_rows_and_zero_leaves_them_out():
    X, Y = draw(11, 40, 3, 2, 0.4)
    weights = np.random.default_rng(0).integers(0, 4, 40)
    groups = np.arange(40)
    repeated = np.repeat(np.arange(40), weights)
    options = {"n_permutations": 19, "random_state": 0, "projection": "theil"}
    Z = np.random.default_rng(1).standard_normal((40, 2))
    found = permutation_test(X, Y, sample_weight=weights, confounds=Z, **options)
    expected = permutation_test(X[repeated], Y[repeated], confounds=Z[repeated], **options)
    np.testing.assert_array_equal(found.permuted, expected.permuted)
    np.testing.assert_array_equal(found.dropped_rows, np.unique(repeated[expected.dropped_rows]))
    by_group = permutation_test(
        X, Y, sample_weight=weights, groups=groups, n_permutations=19, random_state=0
    )
    assert by_group.n_rows == weights.sum()


@pytest.mark.parametrize("within", [True, False])
def test_groups_whose_rows_all_weigh_0_are_left_out(within):
    X, Y, groups = *draw(12, 48, 3, 2, 0.4), np.arange(48) // 4
    Z = np.random.default_rng(1).standard_normal((48, 2))
    present = (groups != 3).astype(int)
    kept = np.flatnonzero(present)
    options = {"within": within, "n_permutations": 19, "random_state": 0}
    found = permutation_test(X, Y, confounds=Z, groups=groups, sample_weight=present, **options)
    expected = permutation_test(X[kept], Y[kept], confounds=Z[kept], groups=groups[kept], **options)
    np.testing.assert_array_equal(found.permuted, expected.permuted)
    np.testing.assert_array_equal(found.dropped_rows, kept[expected.dropped_rows])


def test_units_and_linear_combinations_change_nothing_without_a_ridge():
    X, Y = draw(12, 60, 4, 3, 0.4)
    Z = np.random.default_rng(0).standard_normal((60, 2))
    mix = np.random.default_rng(1).standard_normal((4, 4))
    options = {"confounds": Z, "n_permutations": 19, "random_state": 0}
    found = permutation_test(1e6 + X @ mix * 1e-3, Y, **options)
    expected = permutation_test(X, Y, **options)
    np.testing.assert_allclose(found.correlations, expected.correlations, atol=1e-8)
    np.testing.assert_allclose(found.permuted[:, 0], expected.permuted[:, 0], atol=1e-8)


def test_what_confounds_explain_changes_nothing():
    X, Y = draw(13, 60, 3, 4, 0.4)
    Z = np.random.default_rng(0).standard_normal((60, 2))
    options = {"confounds": Z, "n_permutations": 19, "random_state": 0}
    expected = permutation_test(X, Y, **options)
    for shifted in (X + Z @ np.ones((2, 3)), np.column_stack([X, Z])):
        found = permutation_test(shifted, Y + 100 * Z[:, :1], **options)
        np.testing.assert_allclose(found.correlations, expected.correlations, atol=1e-9)
        np.testing.assert_allclose(found.permuted[:, 0], expected.permuted[:, 0], atol=1e-9)


def test_ties_count_as_large():
    # Of two groups of rows, half of the whole-group exchanges give the same statistic.
    x = np.repeat([0.0, 1.0], 12)
    groups = np.repeat(np.arange(6), 4)
    found = permutation_test(
        x[:, None], x[:, None] + np.tile([0, 0, 0.1, 0.2], 6)[:, None], groups=groups,
        n_permutations=999, random_state=0,
    )  # fmt: skip
    # 6! orders of 2 x 3 equal groups: in 2 of 20, the halves stay as they are or change places.
    assert found.p_values[0] == pytest.approx(0.1, abs=0.03)


def test_confounds_may_be_a_view_or_a_table_beside_the_views():
    views = make_gaussian_views(60, n_features=(3, 4), random_state=0).views
    age = pd.Series(np.random.default_rng(0).standard_normal(60), name="age")
    options = {"n_permutations": 19, "random_state": 0}
    expected = permutation_test(views, confounds=age.to_frame(), **options)
    for confounds in (age, age.to_numpy(), csr_array(age.to_numpy()[:, None])):
        found = permutation_test(views, confounds=confounds, **options)
        np.testing.assert_array_equal(found.permuted, expected.permuted)
    three = Views({**dict(views.items()), "who": age.to_numpy()[:, None]})
    found = permutation_test(three, confounds="who", **options)
    np.testing.assert_array_equal(found.permuted, expected.permuted)


def test_collinear_confounds_count_once():
    X, Y = draw(14, 40, 3, 2)
    Z = np.random.default_rng(0).standard_normal((40, 2))
    many = np.column_stack([Z, Z @ [1, 2], np.ones(40), Z[:, 0] * 1e-9])
    options = {"n_permutations": 19, "random_state": 0}
    found = permutation_test(X, Y, confounds=many, **options)
    expected = permutation_test(X, Y, confounds=Z, **options)
    assert found.n_rows == expected.n_rows == 37
    np.testing.assert_allclose(found.correlations, expected.correlations, atol=1e-10)


def test_sparse_and_rank_deficient_views_are_tested_in_their_span():
    views = make_gaussian_views(300, n_features=(5, 4), random_state=0).views
    A = views["view0"]
    twice = Views({"a": np.hstack([A, A @ np.ones((5, 2))]), "b": csr_array(views["view1"])})
    with pytest.warns(UserWarning, match=r"'a' has repeated columns: 5, 6"):
        found = permutation_test(twice, n_permutations=49, random_state=0)
    expected = permutation_test(views, n_permutations=49, random_state=0)
    np.testing.assert_allclose(found.correlations, expected.correlations, atol=1e-10)
    np.testing.assert_allclose(found.permuted, expected.permuted, atol=1e-9)


# ---- results ------------------------------------------------------------------------------------


def test_results_are_tables():
    X, Y = draw(16, 50, 3, 3, 0.8)
    test = permutation_test(X, Y, n_permutations=99, random_state=0, n_components=2)
    frame = test.to_frame()
    assert list(frame) == ["component", "correlation", "statistic", "null_95", "p_value"]
    np.testing.assert_array_equal(frame["p_value"], test.p_values)
    np.testing.assert_array_equal(frame["null_95"], np.percentile(test.permuted, 95, axis=0))
    assert len(frame) == 2
    header, *lines, note = str(test).splitlines()
    assert header.split() == list(frame)
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert lines[0].split()[-1] == f"{test.p_values[0]:.4g}"
    assert note == "-ln Λ (Wilks); 99 permutations of 50 rows"


def test_the_figure_of_components_has_the_band_of_the_permutations():
    plt = pytest.importorskip("matplotlib.pyplot")
    views = make_gaussian_views(100, correlations=(0.8,), random_state=0).views
    test = permutation_test(views, statistic="roy", n_permutations=49, random_state=0)
    ax = test.plot(figure="Components", color="red")
    every, open_ones = ax.lines
    np.testing.assert_array_equal(every.get_ydata(), test.observed)
    assert every.get_color() == "red"
    np.testing.assert_array_equal(open_ones.get_xdata(), np.flatnonzero(test.p_values >= 0.05) + 1)
    (band,) = ax.collections
    corners = {*map(tuple, band.get_paths()[0].vertices)}
    for end in np.percentile(test.permuted, [5, 95], axis=0):
        assert {*map(tuple, np.c_[np.arange(1, len(end) + 1), end])} <= corners
    plt.close("all")


def test_the_null_is_drawn_with_the_observed_value():
    plt = pytest.importorskip("matplotlib.pyplot")
    X, Y = draw(17, 50, 3, 3, 0.8)
    test = permutation_test(X, Y, n_permutations=99, random_state=0)
    ax = test.plot(component=2)
    assert sum(bar.get_height() for bar in ax.patches) == 99
    assert ax.lines[0].get_xdata()[0] == test.observed[1]
    with pytest.raises(ValueError, match="from 1 to 3, got 4"):
        test.plot(component=4)
    plt.close(ax.figure)


def test_progress_is_shown_if_asked_for(capsys):
    X, Y = draw(18, 30, 2, 2)
    permutation_test(X, Y, n_permutations=150)
    assert not capsys.readouterr().err
    with config_context(progress=True):
        permutation_test(X, Y, n_permutations=150)
    assert "150/150" in capsys.readouterr().err


# ---- bad input ----------------------------------------------------------------------------------

NORMAL = np.random.default_rng(0).standard_normal((40, 9))
HOLE = NORMAL[:, :2].copy()
HOLE[3, 1] = np.nan
GROUPS = np.repeat(np.arange(8), 5)
NESTED = np.column_stack([GROUPS // 4, GROUPS])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confounds": NORMAL[:, 6:] @ np.ones((3, 1)) * 0}, "confounds do not vary"),
        (
            {"confounds": pd.DataFrame(HOLE, columns=["age", "motion"])},
            r"confounds: Input contains NaN: first in row 3, column 'motion'",
        ),
        ({"confounds": NORMAL[:9]}, "Expected confounds of 40 objects, got 9 rows"),
        ({"confounds": "age"}, "confounds='age' names no view of X, which is one matrix"),
        (
            {"confounds": np.random.default_rng(1).standard_normal((40, 35))},
            "35 independent confounds, means of groups or dropped rows and 5 independent features",
        ),
        (
            {"confounds": np.random.default_rng(1).standard_normal((40, 38))},
            "38 independent confounds leave nothing of 40 objects",
        ),
        ({"confounds": NORMAL[:, :3]}, "confounds explain view 'X' completely"),
        (
            {"groups": GROUPS, "confounds": NORMAL[:, 6:], "projection": "theil"},
            "mixes rows of different groups",
        ),
        (
            {
                "groups": GROUPS,
                "within": True,
                "confounds": NORMAL[:, 6:],
                "projection": "huh-jhun",
            },
            "rotates the rows",
        ),
        (
            {"sign_flips": True, "confounds": NORMAL[:, 6:], "projection": "huh-jhun"},
            "or of unlike variance",
        ),
        ({"projection": "theil"}, "says how confounds are removed: pass confounds"),
        (
            {"groups": np.repeat(np.arange(4), [4, 9, 13, 14])},
            r"rows: 1 of 4, 1 of 9, 1 of 13, 1 of 14\) allow 1 distinct permutations",
        ),
        (
            {"groups": np.repeat(np.arange(3), [13, 13, 14])},
            "Only groups of equal size, in the same outer group, are",
        ),
        ({"groups": GROUPS[:9]}, "Expected groups of 40 objects"),
        (
            {"groups": np.repeat(np.arange(4), 10), "sign_flips": True},
            "4, all in all.* allow 8 distinct sign flips",
        ),
        ({"groups": NESTED, "within": True}, "pass one level of groups"),
        ({"groups": NESTED[:, [1, 0]]}, "Group '0' is in two outer groups"),
        ({"groups": np.hstack([NESTED, NESTED])}, r"got shape \(40, 4\)"),
        ({"groups": [["A", None]] * 40}, "group for every object, got a missing value"),
        ({"within": True}, "pass groups"),
        ({"within": True, "groups": GROUPS, "sign_flips": True}, "omit one of them"),
        ({"sample_weight": np.full(40, 0.5)}, "whole numbers, got 0.5: tests and intervals"),
        ({"sample_weight": -np.ones(40)}, "[Nn]egative"),
        ({"statistic": "f"}, "statistic must be one of 'wilks', 'roy', 'pillai', 'held-out'"),
        ({"loadings": True}, "loadings must be one of None, 'cross', 'own'"),
        ({"reg": "auto"}, r'reg must be a number >= 0, by view, or "cv", got \'auto\''),
        ({"reg": -1.0}, "reg must be a number >= 0"),
        ({"n_permutations": 0}, "n_permutations must be a positive integer, got 0"),
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"reg": 0.1, "n_components": 2}, 'Use statistic="roy" to test components one after'),
        ({"reg": "cv", "loadings": "cross"}, "a ridge that is a number"),
        ({"statistic": "held-out", "n_components": 2}, "global null hypothesis only"),
        ({"statistic": "held-out", "confounds_y": NORMAL[:, 6:]}, "omit confounds_y"),
    ],
    ids=str,
)
def test_bad_options_say_what_to_do(options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test(NORMAL[:, :3], NORMAL[:, 3:5], **options)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (make_multilabel_views(40, random_state=0).views, {}, "takes two or more paired views"),
        (
            make_gaussian_views(11, random_state=0).views,
            {},
            "11 objects and 11 independent features",
        ),
        (
            make_gaussian_views(20, n_features=(3, 3, 3), random_state=0).views,
            {"loadings": "cross"},
            "use two views",
        ),
        (
            make_gaussian_views(20, n_features=(3, 3, 3), random_state=0).views,
            {"reg": "cv"},
            "multiply p-values as Holm does",
        ),
        (
            make_gaussian_views(20, n_features=(3, 3, 3), random_state=0).views,
            {"n_components": 2},
            "global null hypothesis only",
        ),
    ],
    ids=["unpaired", "too few objects", "loadings", "search", "steps"],
)
def test_views_that_cannot_be_tested_say_why(rows, options, message):
    with pytest.raises(ValueError, match=message):
        permutation_test(rows, **options)


@pytest.mark.filterwarnings("ignore:View 'a' has constant columns")
def test_a_view_without_variance_cannot_be_tested():
    with pytest.raises(ValueError, match="'a' has no variance"):
        permutation_test(Views({"a": np.ones((9, 2)), "b": np.eye(9)}))


def test_few_permutations_and_constant_columns_are_warned_of():
    X, Y = draw(19, 40, 2, 2)
    with pytest.warns(UserWarning, match=r"n_permutations=9, no p-value is below 0\.1"):
        permutation_test(X, Y, n_permutations=9)
    frame = pd.DataFrame({"a": X[:, 0], "site": 1.0})
    with pytest.warns(UserWarning, match="View 'X' has constant columns: 'site'"):
        permutation_test(frame, Y, n_permutations=19)
    with warnings.catch_warnings(action="ignore"):
        test = permutation_test(frame, Y, n_permutations=19, loadings="cross")
    np.testing.assert_array_equal(test.loadings["X"][1], 0)
    np.testing.assert_array_equal(test.loading_p_values["X"][1], 1)


# ---- the published study ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study():
    """Thickness in 25 principal components and four scores of 139 subjects."""
    with np.load(data_home() / "brain_cognition.npz") as archive:
        is_mean = np.char.find(archive["thickness_names"], "MeanThickness") >= 0
        thickness, scores = archive["thickness"][:, ~is_mean], archive["toolbox"]
    return PCA(25).fit_transform(thickness), scores


@pytest.mark.needs_data("brain_cognition.npz")
def test_the_published_study_is_reproduced(study):
    n_permutations = 999
    options = {"n_permutations": n_permutations, "random_state": 0}
    found = {name: permutation_test(*study, statistic=name, **options) for name in STATISTICS}
    r = [0.544013815175, 0.448658301429, 0.390450808239, 0.346702812224]
    np.testing.assert_allclose(found["wilks"].correlations, r, atol=1e-10)
    assert np.exp(-found["wilks"].observed[0]) == pytest.approx(0.419311342616, abs=1e-10)
    assert found["pillai"].observed[0] == pytest.approx(0.769899976200, abs=1e-10)
    # Published: 3067 and 2997 of 10,000 permutations.
    error = np.sqrt(0.3 * 0.7 * (1 / n_permutations + 1 / 10_000))
    for name, p_value in (("wilks", 0.3067), ("pillai", 0.2997)):
        assert abs(found[name].p_values[0] - p_value) < 3 * error
    null = found["pillai"].permuted[:, 0]
    assert abs(null.mean() - 100 / 138) < 4 * null.std() / np.sqrt(n_permutations)
    errors = 3 * np.sqrt(0.25 * (1 / n_permutations + 1 / 1999))
    expected = [0.3025, 0.84, 0.911, 0.911]
    np.testing.assert_allclose(found["roy"].p_values, expected, atol=errors)
    # No test finds a component, which the specification says of this study.
    assert all(test.p_values.min() > 0.05 for test in found.values())


# ---- p-values under the null, and power ---------------------------------------------------------


def normal(rng, n, *widths):
    return [rng.standard_normal((n, width)) for width in widths]


def confounded(rng, n, n_confounds):
    """Views that share nothing but 15 confounds."""
    X, Y, Z = normal(rng, n, 4, 4, n_confounds)
    return X + Z[:, :4], Y + Z[:, :4], {"confounds": Z}


def families(rng, n_groups, size, *widths):
    """Rows of which half of the variance is shared by a family, and the families."""
    groups = np.repeat(np.arange(n_groups), size)
    own = normal(rng, len(groups), *widths)
    shared = normal(rng, n_groups, *widths)
    return [(A + B[groups]) / np.sqrt(2) for A, B in zip(own, shared, strict=True)], groups


def whole(rng):
    (X, Y), groups = families(rng, 40, 4, 3, 4)
    return X, Y, {"groups": groups}


def whole_with_confounds(rng):
    (X, Y, Z), groups = families(rng, 60, 4, 3, 4, 3)
    return X + Z, Y + Z[:, :1], {"groups": groups, "confounds": Z}


def within_with_confounds(rng):
    X, Y, options = whole_with_confounds(rng)
    mean = rng.standard_normal((60, 1))[options["groups"]]  # which both views share
    return X + mean, Y + mean, options | {"within": True}


def on_one_side(rng):
    X, Y, Z = normal(rng, 50, 3, 4, 8)
    return X + Z[:, :3], Y + Z[:, :4], {"confounds_y": Z}  # the other view depends on them, too


def on_different_sides(rng):
    X, Y, Z, W = normal(rng, 50, 3, 4, 6, 6)
    return X + Z[:, :3], Y + W[:, :4], {"confounds": Z, "confounds_y": W}


def after_a_strong_one(rng, **options):
    X, Y = normal(rng, 100, 4, 4)
    Y[:, 0] = 0.9 * X[:, 0] + np.sqrt(1 - 0.9**2) * Y[:, 0]
    return X, Y, options


NULLS = {
    "plain": lambda rng: (*normal(rng, 40, 4, 3), {}),
    "confounds of both views": lambda rng: confounded(rng, 60, 15),
    "confounds of both views, Theil": lambda rng: (
        *(parts := confounded(rng, 60, 15))[:2],
        parts[2] | {"projection": "theil"},
    ),
    "confounds of one view": on_one_side,
    "different confounds": on_different_sides,
    "groups": whole,
    "groups and confounds": whole_with_confounds,
    "within groups, and confounds": within_with_confounds,
    "ridge": lambda rng: (*normal(rng, 40, 12, 10), {"reg": 0.2}),
    "p > n": lambda rng: (*normal(rng, 40, 60, 50), {"reg": 0.5}),
    "three views": lambda rng: (normal(rng, 40, 3, 4, 5), None, {}),
    "held-out": lambda rng: (*normal(rng, 50, 5, 4), {"statistic": "held-out", "reg": 0.1}),
    "searched ridge": lambda rng: (*normal(rng, 40, 6, 4), {"reg": "cv", "n_permutations": 19}),
    "second component": after_a_strong_one,
    "second component, Roy": lambda rng: after_a_strong_one(rng, statistic="roy"),
    "second component, ridge": lambda rng: after_a_strong_one(rng, statistic="roy", reg=0.1),
}


SEEDS = pytest.mark.parametrize("n_seeds", [40, pytest.param(200, marks=pytest.mark.long)])


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # by chance, of 1 % of sets
@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize("case", NULLS)
def test_p_values_are_uniform_if_there_is_nothing_to_find(case, n_seeds):
    p_values = []
    step = int("second" in case)
    for seed in range(n_seeds):
        rng = np.random.default_rng([7, seed])
        X, Y, options = NULLS[case](rng)
        options = {"n_permutations": 19} | options
        found = permutation_test(X, Y, random_state=seed, **options)
        # Uniform on multiples of 1 / (1 + n): continuous after subtraction of a share of that.
        p_values.append(found.p_values[step] - rng.uniform() / (1 + len(found.permuted)))
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    binomial = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_seeds)
    assert np.mean(np.array(p_values) <= 0.05) < binomial


@pytest.mark.filterwarnings("ignore:Rows that are large in one view")  # by chance, of 1 % of sets
@pytest.mark.slow
@SEEDS
def test_permuted_residuals_would_find_what_is_not_there(n_seeds):
    # Why confounds need more than residuals: the specification measured 25 % at this size.
    rejected = {"residuals": 0, "huh-jhun": 0}
    for seed in range(n_seeds):
        X, Y, options = confounded(np.random.default_rng([8, seed]), 60, 15)
        Z = with_ones(options["confounds"])
        residuals = [A - projector(Z) @ A for A in (X, Y)]
        settings = {"n_permutations": 49, "random_state": seed, "n_components": 1}
        rejected["residuals"] += permutation_test(*residuals, **settings).p_values[0] <= 0.05
        rejected["huh-jhun"] += permutation_test(X, Y, **settings, **options).p_values[0] <= 0.05
    assert rejected["residuals"] > 0.15 * n_seeds
    assert rejected["huh-jhun"] < 0.1 * n_seeds


PUBLISHED = (  # cells in which the tests of 2026-11-26 had 12.7 to 95.5 % false positives
    "groups and confounds, 24 x 4, 10 + 10, 4",
    "groups and confounds, 24 x 4, 20 + 20, 4",
    "groups and confounds, ridge, 40 + 40, 4",
    "flips and confounds, 100 rows, 4 + 4, 3",
    "flips and confounds, 300 rows, 4 + 4, 3",
    "component 4, 60 rows, 18 + 18",
    "component 4 (Roy), 60 rows, 18 + 18",
    "sites of groups and confounds, 10 + 10, 3",
)


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize("cell", PUBLISHED)
def test_false_positives_where_residuals_flips_and_later_components_failed(cell, n_seeds):
    rejected, warned = rejections(CELLS[cell], "Gaussian", n_seeds, n_permutations=99)
    assert rejected.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_seeds)
    assert warned.mean() <= 0.02


@pytest.mark.slow
@SEEDS
@pytest.mark.parametrize(
    "cell", [name for name in CELLS if name.startswith("groups and confounds")]
)
def test_a_common_scale_of_rows_is_rarely_taken_for_a_relation_without_a_warning(cell, n_seeds):
    rejected, warned = rejections(CELLS[cell], "multivariate t(5)", n_seeds, n_permutations=19)
    assert (rejected[:, 0] & ~warned).mean() <= 0.08
    assert warned.mean() > 0.8


def shared(rng, n, p, q, *rhos):
    """Views of which the first variables correlate."""
    X, Y = normal(rng, n, p, q)
    for j, rho in enumerate(rhos):
        Y[:, j] = rho * X[:, j] + np.sqrt(1 - rho**2) * Y[:, j]
    return X, Y


def shared_factor(rng):
    X, Y, factor = normal(rng, 60, 100, 100, 1)
    return X + 0.5 * factor, Y + 0.5 * factor, {"reg": 1.0}


def shared_by_families(rng):
    X, Y, options = whole_with_confounds(rng)
    Y[:, 0] += X[:, 0]
    return X, Y, options


EFFECTS = {
    "one component": lambda rng: (*shared(rng, 100, 5, 5, 0.5), {}),
    "two components": lambda rng: (*shared(rng, 150, 5, 5, 0.7, 0.5), {}),
    "confounds": lambda rng: (
        *shared(rng, 100, 5, 5, 0.6),
        {"confounds": rng.standard_normal((100, 10))},
    ),
    "groups and confounds": shared_by_families,
    "p > n": shared_factor,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_seeds", "least"), [(20, 0.8), pytest.param(60, 0.9, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("case", EFFECTS)
def test_planted_effects_are_found(case, n_seeds, least):
    step = int(case == "two components")
    found = [
        permutation_test(*parts[:2], n_permutations=99, random_state=seed, **parts[2])
        for seed in range(n_seeds)
        for parts in [EFFECTS[case](np.random.default_rng([9, seed]))]
    ]
    assert np.mean([test.p_values[step] <= 0.05 for test in found]) >= least


@pytest.mark.slow
@SEEDS
def test_loadings_of_unrelated_views_are_rarely_significant_but_for_the_old_null(n_seeds):
    family, share = {}, {}
    for kind in ("cross", "own", "own-permuted"):
        tests = [
            permutation_test(
                *normal(np.random.default_rng([10, seed]), 100, 5, 5),
                loadings=kind, n_components=1, n_permutations=59, random_state=seed,
            ).loading_p_values["X"]
            for seed in range(n_seeds)
        ]  # fmt: skip
        family[kind] = np.mean([p.min() <= 0.05 for p in tests])
        share[kind] = np.mean([p <= 0.05 for p in tests])
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_seeds)
    assert family["cross"] < most
    assert family["own"] < most
    assert share["own-permuted"] > 0.3
