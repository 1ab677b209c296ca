"""Random problems against a reference of a few lines in extended precision: no silent difference.

Whatever the shapes, dtypes, storage, offsets, scales, condition numbers, weights, missing views and
ridges: a fit gives the correlations of the reference, or a warning, or one clear error.
"""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from given_matrices import GivenMatrices
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

import mvcca
from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    RGCCA,
    AffineMap,
    LabelRegression,
    Procrustes,
    SemanticMatching,
    SparseCCA,
    SparseDiscriminant,
    Views,
    config_context,
)
from mvcca.base import MultiViewEstimator
from mvcca.problem import ProductPath, Rows
from mvcca.problem import route as routing

LONG = np.longdouble
# Without a warning, correlations are as good as this: four times what a fit takes for its bound,
# which is an estimate. (A covariance of float32 rows is taken in float64 where it has to be; what
# is left is that of well-conditioned views, taken in float32.)
TOLERANCE = {"float64": 4e-9, "float32": 4e-4}


# ---- the reference: A w = ρ B w, with each B factorised by QR of rows in extended precision -----


def factor(rows, ridge):
    """R and columns with RᵀR = rowsᵀ rows + ridge I of these; the rest are 0 or depend on them."""
    lengths = np.sqrt((rows**2).sum(axis=0))
    kept = np.flatnonzero(lengths)
    stacked = np.vstack([rows, np.sqrt(ridge) * np.eye(rows.shape[1], dtype=LONG)])[:, kept]
    Q, independent = np.zeros((len(stacked), 0), LONG), []
    for j, column in enumerate(stacked.T):
        q = column.copy()
        for _ in range(3):
            q -= Q @ (Q.T @ q)
        size = np.sqrt(q @ q)
        if size > 1e-11 * np.sqrt(column @ column):  # conditions go up to 1e6
            Q = np.column_stack([Q, q / size])
            independent.append(j)
    return Q.T @ stacked[:, independent], kept[independent]


def whitened(rows, R, kept):
    """Z with Z R = rows, by back substitution."""
    Z = np.zeros((len(rows), len(kept)), LONG)
    for j in range(len(kept)):
        Z[:, j] = (rows[:, kept[j]] - Z[:, :j] @ R[:j, j]) / R[j, j]
    return Z


def top(T, ranks):
    """The top of the problem with blocks T_pq, which are well-conditioned: float64 will do."""
    if len(ranks) == 2:
        return np.linalg.svd(T[0, 1].astype(float), compute_uv=False)
    ends = np.cumsum([0, *ranks])
    whole = np.zeros((ends[-1], ends[-1]))
    for (p, q), block in T.items():
        whole[ends[p] : ends[p + 1], ends[q] : ends[q + 1]] = block
    return np.linalg.eigvalsh(whole + whole.T)[::-1]


def constant(X):
    return (X[0] == X).all(axis=0)


def centred(X, weights):
    moved = X - weights @ X / weights.sum()
    moved -= weights @ moved / weights.sum()  # of what rounding left of a large mean
    moved[:, constant(X)] = 0
    return moved


def of_pairs(blocks, seen, reg, weights):
    """ρ of MVCCA of objects, row a of view p being that of the a-th object seen in p.

    Covariances of two views are of the objects seen in both; those within a view are averaged.
    """
    shared = {}
    for pair in combinations(range(len(blocks)), 2):
        both = seen[:, pair].all(axis=1) & (weights > 0)
        w = weights[both]
        if w.sum() > 1:
            share = np.sqrt(w / (w.sum() - 1))[:, None]
            shared[pair] = [share * centred(blocks[v][both[seen[:, v]]], w) for v in pair]
    factors = []
    for v, X in enumerate(blocks):
        own = [rows[pair.index(v)] for pair, rows in shared.items() if v in pair]
        rows = np.vstack(own) / np.sqrt(LONG(len(own)))
        factors.append(factor(rows, reg * (rows**2).sum() / X.shape[1]))
    T = {
        (p, q): whitened(X, *factors[p]).T @ whitened(Y, *factors[q])
        for (p, q), (X, Y) in shared.items()
    }
    return top(T, [len(kept) for _, kept in factors])


def of_labels(blocks, labels, reg):
    """ρ of MLCCA with rows compared by the squared exponential of their labels."""
    alike = {
        (p, q): np.exp(-((labels[p][:, None] - labels[q][None]) ** 2).sum(axis=2) / 2).astype(LONG)
        for p in range(len(blocks))
        for q in range(len(blocks))
    }
    factors, moved = [], []
    for p, X in enumerate(blocks):
        others = [q for q in range(len(blocks)) if q != p]
        u = np.mean([alike[p, q].mean(axis=1) for q in others], axis=0) / len(X)
        moved.append(centred(X, np.ones(len(X), LONG)))
        rows = moved[-1] * np.sqrt(u)[:, None]
        factors.append(factor(rows, reg * (rows**2).sum() / X.shape[1]))
    T = {
        (p, q): whitened(moved[p], *factors[p]).T
        @ (alike[p, q] / alike[p, q].size)
        @ whitened(moved[q], *factors[q])
        for p, q in combinations(range(len(blocks)), 2)
    }
    return top(T, [len(kept) for _, kept in factors])


def of_labels_within_sample(blocks, labels, reg):
    """ρ of MVMLCCA with ordinary covariances in the constraint, and the same label similarity."""
    factors, moved = [], []
    for X in blocks:
        moved.append(centred(X, np.ones(len(X), LONG)))
        rows = moved[-1] / np.sqrt(LONG(len(X) - 1))
        factors.append(factor(rows, reg * (rows**2).sum() / X.shape[1]))
    T = {}
    for p, q in combinations(range(len(blocks)), 2):
        squares = ((labels[p][:, None] - labels[q][None]) ** 2).sum(axis=2)
        alike = np.exp(-squares / 2).astype(LONG)
        Zp, Zq = (whitened(moved[v], *factors[v]) for v in (p, q))
        T[p, q] = Zp.T @ (alike / alike.size) @ Zq
    return top(T, [len(kept) for _, kept in factors])


# ---- random problems ----------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Problem:
    """Rows as a user may hold them, and the same numbers in extended precision."""

    blocks: list[np.ndarray]
    seen: np.ndarray
    weights: np.ndarray | None
    reg: float
    storage: str
    block_rows: int | None
    conditions: list[float]
    labels: list[np.ndarray]
    cuts: list[int] | None = None  # where batches start, after the first

    @property
    def dtype(self) -> str:
        return self.blocks[0].dtype.name

    @property
    def exact(self) -> list[np.ndarray]:
        return [block.astype(LONG) for block in self.blocks]

    @property
    def object_weights(self) -> np.ndarray:
        n = len(self.seen)
        return (np.ones(n) if self.weights is None else self.weights).astype(LONG)

    def __repr__(self) -> str:
        shapes = [block.shape for block in self.blocks]
        patterns = "paired" if self.seen.all() else "partly paired"
        return (
            f"Problem({shapes}, {self.dtype}, {patterns}, weighted={self.weights is not None}, "
            f"reg={self.reg}, {self.storage}, block_rows={self.block_rows}, conditions="
            f"{[f'{c:.1e}' for c in self.conditions]}, cuts={self.cuts})"
        )

    def views(self, rows=slice(None)) -> Views:
        """The objects of a slice."""
        first = np.cumsum(self.seen, axis=0) - 1
        index = np.where(self.seen, first, -1)
        return Views({f"v{p}": self._stored(X) for p, X in enumerate(self.blocks)}, index)[rows]

    def _stored(self, X: np.ndarray) -> Any:
        match self.storage:
            case "csr":
                return sp.csr_array(X)
            case "fortran":
                return np.asfortranarray(X)
            case "strided":
                return np.repeat(X, 2, axis=0)[::2]
            case "memmap":
                with tempfile.TemporaryFile() as file:  # which lives on while it is mapped
                    X.tofile(file)
                    return np.memmap(file, X.dtype, "r", shape=X.shape)
            case _:
                return X


def extreme(X, dtype, rng):
    """X as exactly dependent integers far from zero, with repeated rows, wide, or out of scale."""
    n, p = X.shape
    match rng.choice(["dependent", "repeated rows", "wide", "scaled"]):
        case "dependent":
            X = np.round(10 * (X - X.mean(axis=0)) / X.std(axis=0).max())
            X = np.column_stack([X, np.round(10 * rng.standard_normal((n, 2)))])
            X[:, -1] = -X[:, :-1].sum(axis=1)  # float32 holds integers up to 2^24
            X += np.round(10.0 ** (rng.uniform(0, 9) if dtype == "float64" else rng.uniform(0, 6)))
        case "repeated rows":
            X = np.repeat(X, 2, axis=0)[:n] + 10.0 ** rng.integers(0, 4) * X.std(axis=0).max()
        case "wide":
            X = X @ rng.standard_normal((p, n + 5)) + rng.standard_normal((n, n + 5)) * X.std()
        case "scaled":
            X = (
                X
                / np.abs(X).max()
                * 10.0 ** (rng.uniform(-1, 1) * (150 if dtype == "float64" else 30))
            )
    return X


def random_problem(seed, max_log_condition=6.0):
    """The problem of a seed. (Plain seeds: what a library draws may depend on what is imported.)"""
    rng = np.random.default_rng(seed)
    n, V = int(rng.integers(12, 61)), int(rng.integers(2, 4))
    latent = rng.standard_normal((n, 3))
    dtype = rng.choice(["float64", "float32"])
    seen = np.ones((n, V), bool)
    if rng.random() < 0.25:
        seen = rng.random((n, V)) < 0.8
        seen[:6] = True
    blocks, conditions, labels = [], [], []
    classes = rng.integers(0, 2, (n, 3)).astype(float)
    for v in range(V):
        p = int(rng.choice([1, 2, 3, 4, 5, 6, 20]))
        X = latent @ rng.standard_normal((3, p)) + rng.standard_normal((n, p))
        log_condition = rng.choice([0, max_log_condition, *rng.uniform(0, max_log_condition, 4)])
        if p > 1:
            X = X * np.logspace(0, -log_condition, p) @ np.linalg.qr(rng.normal(size=(p, p)))[0]
        match rng.choice(["plain"] * 4 + ["repeated", "constant", "counts", "offset"]):
            case "repeated":
                X = np.column_stack([X, X[:, :1]])
            case "constant":
                X = np.column_stack([X, np.full(n, 3.7)])
            case "counts":
                X = np.round(np.abs(2 * X))
            case "offset":
                X = X + 10.0 ** rng.integers(0, 6) * rng.standard_normal(X.shape[1])
        X = X * 10.0 ** rng.integers(-6, 7)
        if rng.random() < 0.3:
            X = extreme(X, dtype, rng)
        blocks.append(X[seen[:, v]].astype(dtype))
        conditions.append(10**log_condition)
        labels.append(classes[seen[:, v]])
    weights = rng.choice(["none", "none", "random", "counts"])
    drawn = {"none": None, "random": rng.random(n) + 0.1, "counts": rng.integers(1, 4, n) * 1.0}
    return Problem(
        blocks,
        seen,
        drawn[str(weights)],
        float(rng.choice([0.0, 0.0, 1e-8, 1e-4, 0.1])),
        str(rng.choice(["dense", "dense", "csr", "fortran", "strided", "memmap"])),
        [None, None, 7][rng.integers(3)],
        conditions,
        labels,
    )


def harder_problem(seed, max_log_condition=6.0):
    """The problem of a seed with unlike columns, parts that are constant or weigh 0, and batches.

    Columns of a view differ by factors of up to 2**40, which are exact, so that dependent columns
    stay so. Some batches have one row, or no weight.
    """
    problem, rng = random_problem(seed, max_log_condition), np.random.default_rng([seed, 1])
    n, blocks = len(problem.seen), list(problem.blocks)
    start, stop = np.sort(rng.integers(0, n + 1, 2))
    for v, X in enumerate(blocks):
        if rng.random() < 0.6:
            X = (X * 2.0 ** rng.integers(-20, 21, X.shape[1])).astype(X.dtype)
        if rng.random() < 0.3:
            X = X.copy()
            X[start:stop] = X[:1]
        blocks[v] = X
    weights = problem.weights
    if rng.random() < 0.4:
        weights = np.ones(n) if weights is None else weights.copy()
        weights[rng.random(n) < rng.choice([0.05, 0.4])] = 0
        if rng.random() < 0.5:
            weights[start:stop] = 0
        weights[:3] = 1  # objects that are seen in all views
    cuts = None
    if rng.random() < 0.6:
        cuts = np.cumsum([rng.integers(1, n // 2), *rng.choice([1, 1, 2, 5, 9], n)])
        cuts = [int(cut) for cut in cuts if cut < n]
    return replace(problem, blocks=blocks, weights=weights, cuts=cuts)


# ---- what must hold -----------------------------------------------------------------------------


def fitted(model, problem, batches, *labels):
    """The model, or None where it says what is wrong, and whether it warned."""
    objects = np.arange(len(problem.seen))
    parts = np.split(objects, problem.cuts or [])
    parts = np.array_split(objects, batches) if len(parts) == 1 else parts
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with config_context(block_rows=problem.block_rows):
            try:
                if batches == 1:
                    model.fit(problem.views(), *labels, sample_weight=problem.weights)
                for rows in parts if batches > 1 else []:
                    some = slice(rows[0], rows[-1] + 1)
                    w = None if problem.weights is None else problem.weights[some]
                    model.partial_fit(problem.views(some), sample_weight=w)
                check_is_fitted(model)  # else it says what the batches lack
            except (ValueError, ArithmeticError) as error:
                return None, [error]
    return model, [warning.message for warning in caught]


def assert_no_silent_difference(model, said, expected, dtype, scale=1.0):
    if model is None or any("may lose digits" in str(w) or "smallest" in str(w) for w in said):
        return
    found = model.eigenvalues_ - 1
    # Eigenvalues of several views are sums of correlations, up to n_views - 1 and more if some
    # objects lack views: the tolerance is relative to the largest.
    tolerance = TOLERANCE[dtype] * min(1, scale) * max(1, np.max(expected, initial=0))
    k = min(len(found), len(expected))
    np.testing.assert_allclose(found[:k], expected[:k], rtol=0, atol=tolerance)
    lost = expected[len(found) : model.n_components]
    assert (lost < max(tolerance, 1e-4 * scale)).all(), (
        f"components of correlation {lost} are missing"
    )


def check_cca(problem):
    V = problem.seen.shape[1]
    batches = 3 if len(problem.seen) % 3 == 0 or problem.cuts else 1
    model = (CCA if V == 2 else MVCCA)(4, reg=problem.reg, scale=False)
    expected = of_pairs(problem.exact, problem.seen, LONG(problem.reg), problem.object_weights)
    model, said = fitted(model, problem, batches)
    if model is not None:
        assert model.eigenvalues_[0] <= V + 1e-6
    assert_no_silent_difference(model, said, expected, problem.dtype)


def check_products(problem):
    """Ridge CCA by products with the rows, which stops at six digits."""
    V, reg = problem.seen.shape[1], 10 * max(problem.reg, 0.01)
    expected = of_pairs(problem.exact, problem.seen, LONG(reg), problem.object_weights)
    asked = (CCA if V == 2 else MVCCA)(2, reg=reg, scale=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mvcca.base.statistic_estimator.WIDE", 0)
        patch.setattr(routing, "cheapest", lambda found: found["operator"])
        patch.setattr(routing, "_may_take_products", lambda views, _: len(views.names) > 1)
        model, said = fitted(clone(asked), problem, 1)
    if model is None:  # as by matrices
        assert fitted(asked, problem, 1)[0] is None, said
        return
    if any(issubclass(type(w), ConvergenceWarning) for w in said):
        return
    found = model.eigenvalues_ - 1
    tolerance = max(2e-6, TOLERANCE[problem.dtype]) * np.max(expected[:1], initial=1)
    np.testing.assert_allclose(found, expected[: len(found)], rtol=0, atol=tolerance)
    assert (expected[len(found) : 2] < 1e-3).all()


def check_mlcca(problem):
    problem = replace(problem, weights=None)
    model = MLCCA(4, reg=problem.reg, scale=False)
    expected = of_labels(problem.exact, problem.labels, LONG(problem.reg))
    labels = {f"v{p}": own for p, own in enumerate(problem.labels)}
    found = fitted(model, problem, 1, labels)
    assert_no_silent_difference(*found, expected, problem.dtype)


def check_mvmlcca(problem):
    problem = replace(problem, weights=None)
    model = MVMLCCA(4, within="sample", reg=problem.reg, scale=False)
    expected = of_labels_within_sample(problem.exact, problem.labels, LONG(problem.reg))
    labels = {f"v{p}": own for p, own in enumerate(problem.labels)}
    model, said = fitted(model, problem, 1, labels)
    # Values are far below 1: errors are in units of the largest.
    scale = np.max(expected[:1], initial=0)
    assert_no_silent_difference(model, said, expected, problem.dtype, scale or 1.0)


def check_pls(problem):
    """PLS of two paired views: singular values of their covariance, in units of the largest."""
    if len(problem.blocks) > 2 or not problem.seen.all():
        return
    w = problem.object_weights
    X, Y = (centred(block[w > 0], w[w > 0]) for block in problem.exact[:2])
    cross = (X.T * w[w > 0]) @ Y / (w.sum() - 1)
    sizes = np.abs(cross).max() or 1
    expected = np.linalg.svd((cross / sizes).astype(float), compute_uv=False)
    model, _ = fitted(PLS(4), problem, 1)
    if model is not None:
        found = model.eigenvalues_ / float(sizes)
        np.testing.assert_allclose(
            found, expected[: len(found)], rtol=0, atol=TOLERANCE[problem.dtype] * expected[0]
        )


def about(X, origin):
    return X if origin is None else X - origin


def check_fourier(problem):
    """KCCA of random Fourier features, against the reference of the features it has drawn."""
    model = KCCA(4, approximation="fourier", n_landmarks=8, reg=problem.reg, random_state=0)
    model, said = fitted(model, problem, 1)
    if model is None:
        return
    if not problem.reg and any("mean nothing" in str(warning) for warning in said):
        return  # as many features as rows: any correlations
    features = [
        np.cos(about(X, drawn.origin) @ drawn.frequencies.astype(LONG) + drawn.phases)
        for X, drawn in zip(problem.exact, model.feature_maps_.values(), strict=True)
    ]
    expected = of_pairs(features, problem.seen, LONG(problem.reg), problem.object_weights)
    assert_no_silent_difference(model, said, expected, problem.dtype)


CHECKS = {
    "CCA": check_cca,
    "CCA by products": check_products,
    "MLCCA": check_mlcca,
    "MVMLCCA": check_mvmlcca,
    "PLS": check_pls,
    "KCCA": check_fourier,
}
SLOW = [pytest.param(range(10, 50), marks=pytest.mark.slow)]
SLOW += [
    pytest.param(range(*ends), marks=pytest.mark.long)
    for ends in [(50, 400), *((a, a + 400) for a in range(400, 2000, 400))]
]


def check_all(method, seeds, problem_of):
    for seed in seeds:
        problem = problem_of(seed, max_log_condition=2.0 if method == "KCCA" else 6.0)
        try:
            CHECKS[method](problem)
        except Exception as error:
            error.add_note(f"seed {seed}: {problem}")
            raise


@pytest.mark.parametrize("seeds", [range(10), *SLOW], ids=str)
@pytest.mark.parametrize("method", CHECKS)
def test_a_fit_gives_the_reference_or_says_what_it_lost(method, seeds):
    check_all(method, seeds, random_problem)


@pytest.mark.parametrize("seeds", [range(10), *SLOW], ids=str)
@pytest.mark.parametrize("method", CHECKS)
def test_so_it_does_with_unlike_columns_constant_parts_zero_weights_and_batches(method, seeds):
    check_all(method, seeds, harder_problem)


@pytest.mark.filterwarnings("ignore")
def test_products_end_where_views_span_fewer_directions_than_are_searched():
    """Two equal columns, and one that varies by rounding only: "must have the same shape"."""
    rng, blocks = np.random.default_rng([1401, 1]), []
    start, stop = np.sort(rng.integers(0, 53, 2))
    for X in random_problem(1401).blocks:
        if rng.random() < 0.6:
            X = X * 10.0 ** rng.uniform(-6, 6, X.shape[1])
        if rng.random() < 0.3:
            X[start:stop] = X[:1]
        blocks.append(X)
    rows = Rows(Views(blocks), None, reg=dict.fromkeys(Views(blocks).names, 1.0), n_components=2)
    expected = MVCCA(1, reg=1.0).fit(blocks).eigenvalues_[0]
    assert ProductPath(rows).solve(rows.reg, 2).eigenvalues[0] == pytest.approx(expected, abs=2e-6)


# ---- every method: the storage and the precision of the same numbers change nothing -------------

METHODS = [
    CCA(2),
    CCA(2, reg="auto"),
    MVCCA(2, power=1),
    GCCA(2, reg=0.1),
    MLCCA(2, reg=0),
    MLCCA(2, reg=0, label_similarity="equal"),
    MLCCA(2, n_neighbors=5, random_state=0),
    MLCCA(2, label_features="nystroem", n_label_features=8, random_state=0),
    MVMLCCA(2, within="sample", reg=0),
    MVMLCCA(2, reg=1e-6, within="label"),
    MVMLCCA(2, label_features="fourier", n_label_features=8, random_state=0, within="label"),
    PLS(2),
    PLS(2, algorithm="canonical"),
    PLS(2, algorithm="regression", scale=True),
    KCCA(2, random_state=0),
    KCCA(2, approximation="fourier", n_landmarks=20, reg=1e-6, random_state=0),
    KCCA(2, approximation="nystroem", n_landmarks=20, reg=1e-6, random_state=0),
    NCCA(2, n_neighbors=10, random_state=0),
    LGCFL(reg=1e-6),
    JRL(reg=1e-6, n_neighbors=5),
    CMOLRS(2, n_epochs=2, random_state=0),
    SemanticMatching(random_state=0),
    LabelRegression(random_state=0),
    CFA(2),
    Procrustes(),
    AffineMap(reg=1e-6),
]


def test_no_method_is_forgotten():
    public = {getattr(mvcca, name) for name in mvcca.__all__}
    estimators = {c for c in public if isinstance(c, type) and issubclass(c, MultiViewEstimator)}
    by_reference = {RGCCA, SparseCCA, SparseDiscriminant}  # of R, in tests of their own
    assert {type(method) for method in METHODS} == estimators - by_reference


def float32_views(condition, offset):
    """Two float32 views of 80 objects, whose numbers are exact in any precision, and labels."""
    rng = np.random.default_rng(3)
    latent = rng.standard_normal((80, 3))
    blocks = {}
    for name, width in (("x", 7), ("y", 5)):
        X = latent @ rng.standard_normal((3, width)) + rng.standard_normal((80, width))
        X = X * np.logspace(0, -np.log10(condition), width)
        X = X @ np.linalg.qr(rng.standard_normal((width, width)))[0]
        blocks[name] = (X + offset * rng.standard_normal(width)).astype(np.float32)
    return blocks, rng.integers(0, 6, 80)


@pytest.mark.filterwarnings("ignore")  # silence is not what is tested here
@pytest.mark.parametrize(("condition", "offset"), [(1, 0), (1e3, 0), (1e2, 1e3)])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_storage_and_precision_of_the_same_numbers_change_no_scores(method, condition, offset):
    blocks, labels = float32_views(condition, offset)
    exact = {name: X.astype(float) for name, X in blocks.items()}
    expected = clone(method).fit(Views(exact), labels).transform(exact)
    for given, held, block_rows in (
        (blocks, np.asarray, None),
        (exact, sp.csr_array, None),
        (blocks, sp.csr_array, None),
        (blocks, np.asarray, 13),
    ):
        views = Views({name: held(X) for name, X in given.items()})
        with config_context(block_rows=block_rows):
            found = clone(method).fit(views, labels).transform(exact)
        for name, scores in expected.items():
            spread = scores.std(axis=0).max()
            np.testing.assert_allclose(found[name] / spread, scores / spread, rtol=0, atol=1e-3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "method",
    # Random features at another place are another draw.
    [method for method in METHODS if getattr(method, "approximation", None) != "fourier"],
    ids=repr,
)
def test_moving_integers_changes_no_scores(method, wide):
    rng = np.random.default_rng(5)
    latent = rng.standard_normal((60, 3))
    near, labels = {}, rng.integers(0, 6, 60)
    for name, width in (("x", 90 if wide else 6), ("y", 80 if wide else 5)):
        X = latent @ rng.standard_normal((3, width)) + rng.standard_normal((60, width))
        near[name] = np.round(10 * X)
        near[name][:, -1] = -near[name][:, :-1].sum(axis=1)
    if wide and "reg" in method.get_params():  # without a ridge, all correlations are 1
        method = clone(method).set_params(reg=0.1)
    expected = clone(method).fit(Views(near), labels).transform(near)
    for offset in (1e6, 1e9):
        far = {name: X + offset for name, X in near.items()}
        found = clone(method).fit(Views(far), labels).transform(far)
        for name, scores in expected.items():
            # Means of 1e9 are known to 1e-7, and all scores of a component move by that.
            moved = (found[name] - scores) / scores.std(axis=0).max()
            np.testing.assert_allclose(moved, 0, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [*METHODS, GivenMatrices(2)], ids=repr)
def test_the_scale_of_float32_rows_changes_no_scores(method):
    blocks, labels = float32_views(10.0, 0.0)
    expected = clone(method).fit(Views(blocks), labels).transform(blocks)
    for exponent in (-90, -70, -45, 50, 70, 90):
        scaled = {name: X * np.float32(2.0) ** exponent for name, X in blocks.items()}
        found = clone(method).fit(Views(scaled), labels).transform(scaled)
        for name, scores in expected.items():
            moved = found[name].astype(float)
            units = moved / moved.std(axis=0), scores / scores.std(axis=0)
            np.testing.assert_allclose(*units, rtol=0, atol=1e-3, err_msg=f"2**{exponent}")


# ---- integers that depend exactly on each other, far from zero, solved by fractions --------------


def centred_exactly(X):
    """n times the deviations from the mean, as Python integers."""
    totals = [sum(column) for column in zip(*X, strict=True)]
    return [[len(X) * x - total for x, total in zip(row, totals, strict=True)] for row in X]


def product(A, B):
    """AᵀB of lists of rows."""
    B = list(zip(*B, strict=True))
    columns = list(zip(*A, strict=True))
    return [[sum(a * b for a, b in zip(p, q, strict=True)) for q in B] for p in columns]


def cholesky_exactly(S):
    """Independent columns of S = L D Lᵀ, the inverse of L, and D, all exact."""
    kept, inverse, pivots = [], [], []
    for j in range(len(S)):
        # The part of column j that is orthogonal to those before, as a combination of columns.
        row = [Fraction(0)] * len(S)
        row[j] = Fraction(1)
        for done, pivot in zip(inverse, pivots, strict=True):
            share = sum(c * S[i][j] for i, c in enumerate(done)) / pivot
            row = [c - share * d for c, d in zip(row, done, strict=True)]
        pivot = sum(a * b * S[i][k] for i, a in enumerate(row) for k, b in enumerate(row) if a * b)
        if pivot:
            kept.append(j)
            inverse.append(row)
            pivots.append(pivot)
    return inverse, pivots


def whitened_exactly(C, of_rows, of_columns):
    """D⁻½ L⁻¹ C L⁻ᵀ D⁻½; only the square roots and the last step are rounded."""
    (left, rows), (right, columns) = of_rows, of_columns
    half = [[sum(w * C[i][j] for i, w in enumerate(r)) for j in range(len(C[0]))] for r in left]
    whole = [[sum(w * x for w, x in zip(r, row, strict=True)) for r in right] for row in half]
    scale = np.sqrt(np.outer([float(d) for d in rows], [float(d) for d in columns]))
    return np.array([[float(x) for x in row] for row in whole]) / scale


def exact_correlations(blocks, codes=None, within_sample=False):
    """ρ and ranks of views of integers: of pairs, or of rows with equal labels."""
    n, k = len(blocks[0]), 0 if codes is None else max(codes) + 1
    moved = [centred_exactly(X.astype(int).tolist()) for X in blocks]
    units = [[int(code == c) for c in range(k)] for code in (codes if k else [])]
    sizes = [sum(column) for column in zip(*units, strict=True)]
    factors, sums = [], []
    for X in moved:
        if k and not within_sample:  # a row counts as often as there are rows with its label
            rows = [[sizes[c] * x for x in row] for row, c in zip(X, codes, strict=True)]
            S = [[Fraction(s, n * n) for s in row] for row in product(rows, X)]
        else:
            S = [[Fraction(s, n - 1) for s in row] for row in product(X, X)]
        factors.append(cholesky_exactly(S))
        sums.append(product(units, X) if k else X)
    share = n * n if k else n - 1
    T = {
        (p, q): whitened_exactly(
            [[Fraction(s, share) for s in row] for row in product(sums[p], sums[q])],
            factors[p],
            factors[q],
        )
        for p, q in combinations(range(len(blocks)), 2)
    }
    ranks = [len(pivots) for _, pivots in factors]
    return top(T, ranks), ranks


def dependent_integers(seed):
    """Views of integers, far from zero, whose last columns are what is left of a constant."""
    rng = np.random.default_rng(seed)
    n, V = int(rng.integers(20, 61)), int(rng.integers(2, 4))
    latent = rng.standard_normal((n, 2))
    blocks = []
    for _ in range(V):
        p = int(rng.integers(2, 5))
        X = np.round(20 * (latent @ rng.normal(size=(2, p)) + rng.normal(size=(n, p))))
        if rng.random() < 0.3:
            X = np.repeat(X, 2, axis=0)[:n]
        mean = np.round(20 * 10.0 ** rng.uniform(0, 5, p))
        X = np.column_stack([X + mean, 2 * mean.sum() - (X + mean).sum(axis=1)])
        blocks.append(X)
    return blocks, rng.integers(0, 5, n)


def batches(model, blocks, y):
    for rows in np.array_split(np.arange(len(y)), 3):
        some = [X[rows] for X in blocks]
        model.partial_fit(some, y[rows]) if model.requires.labels else model.partial_fit(some)
    return model


STORAGES = {
    "dense": lambda X, _: X,
    "fortran": lambda X, _: np.asfortranarray(X),
    "integers": lambda X, _: X.astype(int),
    "float32": lambda X, _: X.astype(np.float32),
    "csr": lambda X, _: sp.csr_array(X),
    "blocks of a file": lambda X, folder: saved(folder, X),
    "dask": lambda X, _: da.from_array(X, chunks=(9, -1)),
    "batches": lambda X, _: X,
}


def saved(folder, X):
    path = folder / f"{uuid4().hex}.npy"
    np.save(path, X)
    return mvcca.open_matrix(path)


def of_equal_labels(blocks, y):
    return exact_correlations(blocks, y.tolist())


def of_equal_labels_within_sample(blocks, y):
    return exact_correlations(blocks, y.tolist(), within_sample=True)


def of_pairs_of_integers(blocks, _):
    return exact_correlations(blocks)


def singular_values(blocks, _):
    """Those of the covariance between two views, which is rounded once."""
    X, Y = (centred_exactly(X.astype(int).tolist()) for X in blocks[:2])
    n = len(X)
    cross = [[float(Fraction(c, n * n * (n - 1))) for c in row] for row in product(X, Y)]
    return np.linalg.svd(np.array(cross), compute_uv=False), None


INTEGER_METHODS = {
    "CCA": (CCA(4), of_pairs_of_integers, 1),
    "MVCCA": (MVCCA(4, reg=0), of_pairs_of_integers, 1),
    "GCCA": (GCCA(4, reg=0), of_pairs_of_integers, 1),
    "MLCCA": (MLCCA(4, reg=0, label_similarity="equal"), of_equal_labels, 1),
    "MVMLCCA": (
        MVMLCCA(4, reg=0, within="sample", label_similarity="equal"),
        of_equal_labels_within_sample,
        1,
    ),
    "PLS": (PLS(4), singular_values, 0),
}


def check_integers(method, storage, seed, folder):
    model, reference, unit = INTEGER_METHODS[method]
    blocks, y = dependent_integers(seed)
    blocks = blocks[:2] if method in ("CCA", "PLS") else blocks
    expected, ranks = reference(blocks, y)
    rows = [STORAGES[storage](X, folder) for X in blocks]
    model = clone(model)
    if storage == "batches" and hasattr(model, "partial_fit"):
        batches(model, rows, y)
    else:
        model.fit(rows, y) if model.requires.labels else model.fit(rows)
    found = model.eigenvalues_ - unit
    tolerance = TOLERANCE["float32" if storage == "float32" else "float64"]
    k, scale = min(len(found), len(expected)), max(1.0, expected[0]) if unit else expected[0]
    np.testing.assert_allclose(found[:k], expected[:k], rtol=0, atol=tolerance * scale)
    assert (expected[k:4] < 1e-6 * scale).all()
    if ranks is not None:
        assert list(model.ranks_.values()) == ranks


@pytest.mark.filterwarnings("ignore")  # nothing may be wrong, said or not
@pytest.mark.parametrize(
    "seeds",
    [
        range(3),
        pytest.param(range(3, 25), marks=pytest.mark.long),
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", INTEGER_METHODS)
def test_exact_dependence_under_a_mean_is_seen_in_every_storage(method, storage, seeds, tmp_path):
    for seed in seeds:
        try:
            check_integers(method, storage, seed, tmp_path)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def parts_of_a_whole(seed):
    """Three integers that add up to 100,000, and two features of the same 50 objects."""
    r = np.random.default_rng(seed)
    parts = np.round(r.dirichlet([4e4, 3e4, 3e4], size=50) * 1e5)
    parts[:, 2] = 1e5 - parts[:, 0] - parts[:, 1]
    return parts, r.normal(size=(50, 2))


def test_one_of_three_parts_of_a_whole_is_redundant():
    for seed in range(60):
        parts, Y = parts_of_a_whole(seed)
        expected = CCA(2).fit(parts[:, :2] - parts[0, :2], Y).canonical_correlations_
        found = CCA(2).fit(parts, Y).canonical_correlations_
        tested = mvcca.inspection.permutation_test(parts, Y, n_permutations=19, random_state=0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=str(seed))
        np.testing.assert_allclose(tested.correlations, expected, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Few rows")
def test_repeated_rows_of_a_wide_view_have_the_rank_of_distinct_ones():
    distinct = np.random.default_rng(0).normal(size=(30, 200))
    X = np.repeat(distinct, 2, axis=0) + 10
    Y = np.random.default_rng(1).normal(size=(60, 3))
    assert CCA(2).fit(X, Y).ranks_ == {"X": 29, "y": 3}


@pytest.mark.filterwarnings("ignore")  # rows in files and batches cannot be decomposed
@pytest.mark.parametrize(
    "storage", [name for name in STORAGES if name not in ("integers", "float32")]
)
@pytest.mark.parametrize("mean", [1e3, 1e6])
def test_a_rounded_sum_of_columns_is_no_further_direction(mean, storage, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 3)) + mean, rng.normal(size=(60, 2))
    Y += X[:, :2] - mean
    with_total = np.column_stack([X, X.sum(axis=1)])
    expected = CCA(2).fit(X, Y).canonical_correlations_
    rows = [STORAGES[storage](block, tmp_path) for block in (with_total, Y)]
    model = batches(CCA(2), rows, Y) if storage == "batches" else CCA(2).fit(rows)
    assert list(model.ranks_.values()) == [3, 2]
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=0, atol=1e-8)
