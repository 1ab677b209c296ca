"""Block ascent on covariances: published figures, and that the objective climbs."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.real import data_home
from mvcca.problem.ascent import (
    Ascent,
    Limit,
    NothingShared,
    Solution,
    largest,
    softened,
    threshold_of,
)
from mvcca.problem.block_covariances import BlockCovariances, CovarianceMatrix
from mvcca.problem.least_angles import fill_best_of_few, least_angles

PAIR = {("x", "y"): 1.0, ("y", "x"): 1.0}


def covariances_of(blocks):
    """Correlations of the columns of all blocks."""
    places, start = {}, 0
    for name, X in blocks.items():
        places[name] = slice(start, start + X.shape[1])
        start += X.shape[1]
    S = np.corrcoef(np.hstack(list(blocks.values())), rowvar=False)
    return BlockCovariances(CovarianceMatrix(S, places))


def limits_of(blocks, count=None, **options):
    """The same constraint of all blocks."""
    widths = {name: X.shape[1] for name, X in blocks.items()}
    return tuple(Limit(name, p, min(count or p, p), **options) for name, p in widths.items())


def planted(n=60, widths=(30, 20), seed=0):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 2))
    blocks = {}
    for name, p in zip("xyz", widths, strict=False):
        X = rng.standard_normal((n, p))
        X[:, :4] += shared[:, :1]
        X[:, 4:7] += shared[:, 1:]
        blocks[name] = X
    return blocks


def components(ascent, limits, tol=None):
    """The best solution of each component, and the covariances without it.

    With a tolerance, the end of the first start, as soon as weights change no more.
    """
    for number, own in enumerate(limits):
        if tol is None:
            solution = ascent.solve([own], number)[0][0]
        else:
            start = Solution(next(ascent.starts(own, number)), own)
            solution = ascent._finished(ascent.run([start], 1000, tol)[0])
        ascent = ascent.without(solution)
        yield solution, ascent.covariances


# ---- figures of R --------------------------------------------------------------------------------


@pytest.mark.needs_data("breast_tcga.npz")
def test_mixomics_sparse_pls_of_messenger_rna_and_protein():
    data = np.load(data_home() / "breast_tcga.npz")
    before = covariances_of({"x": data["mrna_train"], "y": data["protein_train"]})
    limits = [
        (Limit("x", 200, p, shrink=True), Limit("y", 142, q, shrink=True))
        for p, q in ((10, 3), (5, 6))
    ]
    ascent = Ascent(before, PAIR, "horst", start="svd", response="y")
    features = list(data["mrna_names"]), list(data["protein_names"])
    weights, correlations = [], []
    for solution, after in components(ascent, limits, tol=1e-6):
        w, v = solution.weights.values()
        weights.append((w, v))
        sizes = [u @ before.image(j, j, u) for j, u in solution.weights.items()]
        correlations.append(w @ before.image("x", "y", v) / np.sqrt(np.prod(sizes)))
        before = after
    assert weights[0][0][features[0].index("KDM4B")] == pytest.approx(0.66655363566, abs=1e-11)
    assert weights[0][1][features[1].index("ER-alpha")] == pytest.approx(0.78972242824, abs=1e-11)
    assert weights[1][0][features[0].index("CCDC80")] == pytest.approx(0.90913741438, abs=1e-11)
    assert_allclose(correlations, [0.865615987, 0.561114467], atol=1e-9)


@pytest.mark.needs_data("breast_tcga.npz")
def test_diablo_of_three_views_and_classes():
    data = np.load(data_home() / "breast_tcga.npz")
    classes = data["y_train"][:, None] == np.unique(data["y_train"])
    views = {name: data[f"{name}_train"] for name in ("mrna", "mirna", "protein")}
    before = covariances_of({**views, "classes": classes.astype(float)})
    links = {
        pair: 1.0 if "classes" in pair else 0.1 for pair in permutations([*views, "classes"], 2)
    }
    ascent = Ascent(before, links, "horst", start="own", response="classes")
    limits = [
        (
            *(
                Limit(n, views[n].shape[1], k, shrink=True)
                for n, k in zip(views, counts, strict=True)
            ),
            Limit("classes", 3, 3),
        )
        for counts in ((8, 14, 10), (25, 5, 5))
    ]
    found, first = [], None
    for solution, after in components(ascent, limits):
        first = first or solution
        sizes = {j: np.sqrt(w @ before.image(j, j, w)) for j, w in solution.weights.items()}
        found.append(
            [solution.covariances[j, "classes"] / sizes[j] / sizes["classes"] for j in views]
        )
        before = after
    expected = [
        [0.918410349991, 0.816912914206, 0.910252769384],
        [0.78319040437, 0.500038967479, 0.725019776223],
    ]
    assert_allclose(found, expected, atol=1e-11)
    gene = list(data["mrna_names"]).index("KDM4B")
    assert first.weights["mrna"][gene] == pytest.approx(0.479953382482, abs=1e-11)
    protein = list(data["protein_names"]).index("ER-alpha")
    assert first.weights["protein"][protein] == pytest.approx(0.568130411075, abs=1e-11)


# ---- one block -----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1.1, 1.5, 2.0, 3.0, 4.2])
def test_the_threshold_meets_the_radius(radius):
    z = np.random.default_rng(1).standard_normal(20)
    w = softened(z, threshold_of(z, radius))
    reached = np.abs(w).sum() / np.linalg.norm(w)
    assert reached == pytest.approx(min(radius, np.abs(z).sum() / np.linalg.norm(z)), rel=1e-12)


def test_a_radius_below_the_root_of_ties_is_refused():
    with pytest.raises(ValueError, match=r"3 features share the largest .* at least 1\.732"):
        threshold_of(np.array([2.0, -2.0, 2.0, 1.0]), 1.5)
    w = softened(z := np.array([2.0, -2.0, 2.0, 1.0]), threshold_of(z, 1.8))
    assert np.abs(w).sum() / np.linalg.norm(w) == pytest.approx(1.8)


def test_of_equal_features_the_first_are_selected():
    Z, counts = np.array([[1.0, -3.0, 3.0, 1.0, 1.0]] * 3), np.array([1, 3, 7])
    found = [np.flatnonzero(own).tolist() for own in largest(Z, counts)]
    assert found == [[1], [0, 1, 2], [0, 1, 2, 3, 4]]


def entered(z, M, count, tau=0.0):
    """Features by least angles of τ I + (1 - τ) M on z, of which rows are held in another order."""
    place = np.random.default_rng(0).permutation(len(z))
    chosen, L = np.empty(count, dtype=np.int64), np.empty((count, count))
    k = least_angles(z, count, tau, M[np.argsort(place)], place, chosen, L)
    return sorted(chosen[:k].tolist())


def test_least_angles_enter_features_as_scikit_learn_does():
    from sklearn.linear_model import lars_path_gram

    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((40, 15)), rng.standard_normal(40)
    M, z = X.T @ X, X.T @ y
    for count in (1, 4, 9, 13):
        _, expected, _ = lars_path_gram(z, M, n_samples=40, max_iter=count, method="lar")
        assert entered(z, M, count) == sorted(expected)


def entering(z, M, count):
    """Features in the order of least-angle regression, by its definition."""
    left, active = z.copy(), [int(np.argmax(np.abs(z)))]
    while len(active) < count:
        equal = np.linalg.solve(M[np.ix_(active, active)], np.sign(left[active]))
        slopes, size = M[:, active] @ equal, abs(left[active[0]])
        steps = {}
        for j in set(range(len(z))).difference(active):
            for step in ((size - left[j]) / (1 - slopes[j]), (size + left[j]) / (1 + slopes[j])):
                if step > 0:
                    steps[j] = min(step, steps.get(j, np.inf))
        entered = min(steps, key=steps.get)
        left -= steps[entered] * slopes
        active.append(entered)
    return sorted(active)


def test_least_angles_enter_features_that_turn_faster_than_those_that_entered():
    rng = np.random.default_rng(0)
    for _ in range(200):
        X = rng.standard_normal((20, 15)) + rng.standard_normal((20, 1))
        S, count = np.corrcoef(X.T), 8
        z = X.T @ rng.standard_normal(20) / 20
        assert entered(z, S, count, 0.1) == entering(z, 0.9 * S + 0.1 * np.eye(15), count)


@pytest.mark.parametrize("fixed", [False, True])
def test_few_features_are_weighted_best_and_rows_that_are_missing_are_named(fixed):
    rng = np.random.default_rng(1)
    S, Z = np.corrcoef(rng.standard_normal((30, 12)).T), rng.standard_normal((4, 12))
    M, counts, old = 0.3 * np.eye(12) + 0.7 * S, np.array([4, 12, 4, 4]), np.zeros_like(Z)
    old[2, np.argsort(np.abs(Z[2]))[:4]] = old[3] = 1.0  # worse features, and too many
    held, place, asked, row = np.empty((0, 12)), np.full(12, -1), set(), 0
    W = np.empty_like(Z)
    while row >= 0:
        row, missing = fill_best_of_few(Z, counts, old, fixed, 0.3, held, place, row, W)
        if row >= 0:
            assert missing not in asked
            asked.add(missing)
            held, place[missing] = np.vstack([held, S[missing]]), len(held)
    expected = [entering(z, M, count) for z, count in zip(Z, counts, strict=True)]
    if fixed:
        expected[2] = np.flatnonzero(old[2]).tolist()
    for z, w, chosen in zip(Z, W, expected, strict=True):
        v = np.linalg.solve(M[np.ix_(chosen, chosen)], z[chosen])
        assert np.flatnonzero(w).tolist() == chosen
        assert_allclose(w[chosen], v / np.sqrt(z[chosen] @ v))


# ---- the ascent ----------------------------------------------------------------------------------

LIMITS = {
    "all": {},
    "count": {"count": 5},
    "l1": {"radius": 2.0, "count": 4},
    "positive": {"count": 5, "positive": True},
    "ridge": {"tau": 0.3},
    "least angles": {"tau": 0.2, "count": 5},
}


def climbing(ascent, one):
    """The objective after each turn."""
    for _ in range(60):
        [one] = ascent.run([one], 1, 0.0)
        yield one.value


@pytest.mark.parametrize("scheme", ["horst", "factorial", "centroid"])
@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_the_objective_climbs(limit, scheme):
    blocks = planted(widths=(30, 20, 10))
    limits = limits_of(blocks, **limit)
    ascent = Ascent(covariances_of(blocks), dict.fromkeys(permutations(blocks, 2), 1.0), scheme)
    rng = np.random.default_rng(0)
    for _ in range(20):
        start = {name: rng.standard_normal(X.shape[1]) for name, X in blocks.items()}
        values = np.array([*climbing(ascent, Solution(start, limits))])
        assert (np.diff(values) >= -1e-12 * np.abs(values[1:])).all()


def test_a_count_by_soft_thresholds_is_no_ascent():
    blocks = planted(widths=(30, 20))
    limits = limits_of(blocks, count=5, shrink=True)
    ascent = Ascent(covariances_of(blocks), PAIR, "horst")
    rng, fell = np.random.default_rng(0), False
    for _ in range(20):
        start = {name: rng.standard_normal(X.shape[1]) for name, X in blocks.items()}
        fell |= bool((np.diff([*climbing(ascent, Solution(start, limits))]) < -1e-9).any())
    assert fell


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_starts_that_climb_together_end_where_each_would(limit):
    blocks = planted(widths=(30, 20, 10))
    problems = [limits_of(blocks, **limit)]
    if "count" in limit:
        problems += [limits_of(blocks, **{**limit, "count": n}) for n in (3, 10)]
    ascent = Ascent(covariances_of(blocks), dict.fromkeys(permutations(blocks, 2), 1.0))
    rng, starts = np.random.default_rng(1), []
    for i in range(9):
        start = {name: rng.standard_normal(X.shape[1]) for name, X in blocks.items()}
        starts.append(Solution(start, problems[i % len(problems)]))
    for found, start in zip(ascent.run(starts, 300, 1e-20), starts, strict=True):
        [alone] = ascent.run([start], 300, 1e-20)
        assert found.limits == start.limits
        for own in found.limits:
            w = alone.weights[own.name]
            assert_allclose(found.weights[own.name], w, atol=1e-9)
            assert np.count_nonzero(w) <= (len(w) if own.radius else own.count)


@pytest.mark.parametrize("deflation", ["scores", "weights", "pmd"])
def test_deflated_covariances_are_those_of_deflated_rows(deflation):
    blocks = {name: X - X.mean(axis=0) for name, X in planted().items()}
    blocks = {name: X / X.std(axis=0, ddof=1) for name, X in blocks.items()}
    n = len(blocks["x"])
    covariances, S = covariances_of(blocks), blocks["x"].T @ blocks["y"] / (n - 1)
    rng, rows = np.random.default_rng(5), dict(blocks)
    for _ in range(3):
        weights = {name: rng.standard_normal(X.shape[1]) for name, X in blocks.items()}
        if deflation == "pmd":
            w, v = weights.values()
            S = S - (w @ S @ v) * np.outer(w, v)
        for name, w in weights.items():
            X = rows[name]
            rotated = covariances.rotated(name, w)
            assert_allclose(blocks[name] @ rotated, (X if deflation != "pmd" else blocks[name]) @ w)
            t = X @ w
            p = X.T @ t / (t @ t) if deflation == "scores" else w / (w @ w)
            rows[name] = X - np.outer(t, p)
        covariances = covariances.without(weights, deflation)
        if deflation != "pmd":
            S = rows["x"].T @ rows["y"] / (n - 1)
            within = rows["y"].T @ rows["y"] / (n - 1)
            assert_allclose(covariances.matrix("y", "y"), within, atol=1e-12)
            for wanted in ([3], [1, 0], [3, 2]):
                held, place = covariances.held_columns("y", "y", np.array(wanted))
            assert_allclose(held[place[:4]], within[:4], atol=1e-12)
            assert (place[4:] < 0).all()
        assert_allclose(covariances.matrix("x", "y"), S, atol=1e-10)
        v = rng.standard_normal(S.shape[1])
        assert_allclose(covariances.image("x", "y", v), S @ v, atol=1e-9)


def test_a_response_is_deflated_by_the_mean_of_what_others_explain():
    rows = {name: X - X.mean(axis=0) for name, X in planted(widths=(9, 7, 4)).items()}
    rows = {name: X / X.std(axis=0, ddof=1) for name, X in rows.items()}
    covariances, rng = covariances_of(rows), np.random.default_rng(6)
    for _ in range(2):
        weights = {name: rng.standard_normal(X.shape[1]) for name, X in rows.items()}
        covariances = covariances.without(weights, "scores", "z")
        scores = {q: rows[q] @ weights[q] for q in "xy"}
        Y = rows["z"]
        rows["z"] = Y - sum(np.outer(t, t @ Y) / (t @ t) for t in scores.values()) / 2
        for q, t in scores.items():
            rows[q] = rows[q] - np.outer(t, t @ rows[q]) / (t @ t)
    for j, k in [("x", "y"), ("x", "z"), ("z", "y"), ("z", "z")]:
        expected = rows[j].T @ rows[k] / (len(rows[j]) - 1)
        assert_allclose(covariances.matrix(j, k), expected, atol=1e-12)
        v = rng.standard_normal(rows[k].shape[1])
        assert_allclose(covariances.image(j, k, v), expected @ v, atol=1e-12)


def test_blocks_without_covariance_are_named():
    S = np.eye(7)
    S[0, 1] = S[1, 0] = 0.5
    covariances = BlockCovariances(CovarianceMatrix(S, {"x": slice(0, 3), "y": slice(3, 7)}))
    with pytest.raises(NothingShared, match="View 'x' has no covariance with the views"):
        Ascent(covariances, PAIR).solve([(Limit("x", 3, 2), Limit("y", 4, 2))])


def test_batch_factors_hide_the_signal_from_singular_vectors_but_not_from_columns():
    rng = np.random.default_rng(0)
    n, shared = 100, rng.standard_normal(100)
    blocks = {}
    for name, p in (("x", 300), ("y", 400)):
        X = rng.standard_normal((n, p))
        X[:, :10] = 0.7 * shared[:, None] + np.sqrt(1 - 0.49) * X[:, :10]
        X[:, 10:60] = 0.8 * rng.standard_normal((n, 1)) + 0.6 * X[:, 10:60]
        blocks[name] = X
    limits = limits_of(blocks, count=10)
    found = {}
    for start in ("columns", "svd"):
        best = Ascent(covariances_of(blocks), PAIR, start=start).solve([limits])[0][0]
        found[start] = [np.flatnonzero(w).tolist() for w in best.weights.values()]
    assert found["columns"] == [list(range(10))] * 2
    assert not set(found["svd"][0]) & set(range(10))
