"""`Whitened`: a view as U D Aᵀ, and CCA in these coordinates."""

import numpy as np
import pytest

from mvcca import CCA
from mvcca.problem import Whitened
from mvcca.problem.ridge import Absolute
from mvcca.problem.whitened import canonical, canonical_of_covariances

CASES = {
    "tall": (60, 5),
    "wide": (20, 50),
    "one column": (30, 1),
    "two rows": (2, 4),
    "collinear": (60, 6),
    "constant column": (60, 4),
    "unlike units": (60, 5),
    "large mean": (60, 5),
}
RANKS = {"wide": 19, "two rows": 1, "collinear": 5, "constant column": 3}


def rows_of(case: str, seed: int = 0) -> np.ndarray:
    n, d = CASES[case]
    X = np.random.default_rng(seed).standard_normal((n, d))
    if case == "collinear":
        X[:, -1] = X[:, 0] - X[:, 1]
    if case == "constant column":
        X[:, 1] = 3
    if case == "unlike units":
        X *= 10.0 ** np.arange(-6, 4, 2)
    if case == "large mean":
        X += 1e6
    return X


def close(found, expected, rtol: float = 1e-10) -> None:
    size = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("equilibrate", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_their_decomposition(case, equilibrate):
    X = rows_of(case)
    centred = X - X.mean(axis=0)
    view = Whitened.of_rows(X, equilibrate=equilibrate)
    assert view.rank == RANKS.get(case, X.shape[1])
    close(view.basis.T @ view.basis, np.eye(view.rank))
    close((view.basis * view.values) @ view.axes.T, centred, 1e-9)
    close(centred @ view.weights, view.basis, 1e-6 if case == "large mean" else 1e-9)
    if not equilibrate:
        close(view.axes.T @ view.axes, np.eye(view.rank))
        close(view.unit, np.mean(np.sum(centred**2, axis=0)))


@pytest.mark.parametrize("case", ["tall", "wide", "one column", "collinear", "constant column"])
def test_covariances_and_rows_agree(case):
    X = rows_of(case)
    rows = Whitened.of_rows(X, equilibrate=False)
    found = Whitened.of_covariance(np.cov(X.T).reshape(X.shape[1], -1))
    n = len(X) - 1
    assert found.rank == rows.rank
    close(found.values**2, rows.values**2 / n)
    close(found.inverse(0.3), rows.inverse(0.3) * n)
    close(found.inverse(Absolute(0.3)), rows.inverse(Absolute(0.3 * n)) * n)


def test_inverse_is_that_of_the_covariance_with_a_ridge():
    B = np.cov(rows_of("tall").T)
    view = Whitened.of_covariance(B)
    close(view.inverse(0.2), np.linalg.inv(B + 0.2 * np.trace(B) / len(B) * np.eye(len(B))))
    close(view.inverse(0), np.linalg.inv(B))


@pytest.mark.parametrize("reg", [0, 1e-3, 0.5, Absolute(2.0)])
def test_canonical_correlations_are_those_of_cca(reg):
    X, Y = rows_of("tall"), rows_of("unlike units", 1)[:, 2:4]
    Y[:, 0] += 1e-2 * X[:, 0]
    model = CCA(2, reg=0.0 if not reg else float(reg))
    a, b = Whitened.of_covariance(np.cov(X.T)), Whitened.of_covariance(np.cov(Y.T))
    if isinstance(reg, Absolute):  # the same ridges, in units of each view
        shares = {"X": reg / a.unit, "y": reg / b.unit}
        model = CCA(2, reg=shares)
    model.fit(X, Y)
    C = np.cov(X.T, Y.T)[: X.shape[1], X.shape[1] :]
    r, left, right = canonical(a.weights.T @ C @ b.weights, a, b, (reg, reg))
    close(r, model.canonical_correlations_, 1e-9)
    for own, coordinates, name in ((a, left, "X"), (b, right, "y")):
        W = own.weights @ coordinates
        cosines = np.abs(np.sum(W * model.weights_[name], axis=0))
        lengths = np.linalg.norm(W, axis=0) * np.linalg.norm(model.weights_[name], axis=0)
        close(cosines, lengths, 1e-9)


def test_variates_of_rows_in_another_order():
    rng = np.random.default_rng(0)
    X, Y = rows_of("tall"), rows_of("collinear", 1)
    order = rng.permutation(len(X))
    a, b = Whitened.of_rows(X), Whitened.of_rows(Y)
    r, left, right = canonical(a.basis[order].T @ b.basis, a, b, full=True)
    moved = Whitened.of_rows(X[order])
    close(r, canonical(moved.basis.T @ b.basis, moved, b)[0])
    close((a.basis[order] @ left).T @ (b.basis @ right), np.diag(r), 1e-9)
    assert left.shape == (5, 5)
    assert right.shape == (5, 5)


@pytest.mark.parametrize("equilibrate", [True, False])
def test_what_confounds_leave(equilibrate):
    rng = np.random.default_rng(0)
    X = rows_of("tall")
    Z = np.linalg.qr(rng.standard_normal((len(X), 2)))[0]
    X[:, 0] = Z[:, 0]  # explained but for its mean
    centred = X - X.mean(axis=0)
    Z -= Z.mean(axis=0)
    Z = np.linalg.qr(Z)[0]

    def residuals(rows: np.ndarray) -> np.ndarray:
        return rows - Z @ (Z.T @ rows)

    view = Whitened.of_rows(X, equilibrate=equilibrate)
    left = (view.unit_lengths() if equilibrate else view).after(residuals)
    assert left.rank == 4
    close((left.basis * left.values) @ left.axes.T, residuals(centred), 1e-9)
    close(residuals(centred) @ left.weights, left.basis, 1e-9)
    assert np.abs(Z.T @ left.basis).max() < 1e-12


def test_columns_in_unlike_units_keep_their_digits():
    X = rows_of("unlike units")
    centred = X - X.mean(axis=0)
    units = np.linalg.norm(centred, axis=0)
    scaled = Whitened.of_covariance((centred / units).T @ (centred / units))
    found, exact = scaled.in_units(units), Whitened.of_rows(X, equilibrate=False)
    close(np.log(found.values), np.log(exact.values), 1e-8)
    close(centred @ found.weights @ (centred @ found.weights).T, exact.basis @ exact.basis.T, 1e-6)


def test_many_covariances_at_once():
    X, Y = rows_of("tall"), rows_of("tall", 1)
    joint = np.array([np.cov(X[rows].T, Y[rows].T) for rows in (slice(40), slice(20, 60))])
    within = joint[:, :5, :5], joint[:, 5:, 5:]
    r, a, b = canonical_of_covariances(within, joint[:, :5, 5:])
    for i, part in enumerate(joint):
        x, y = Whitened.of_covariance(part[:5, :5]), Whitened.of_covariance(part[5:, 5:])
        close(r[i], canonical(x.weights.T @ part[:5, 5:] @ y.weights, x, y)[0])
        close(a[i].T @ part[:5, :5] @ a[i], np.eye(5))
        close(a[i].T @ part[:5, 5:] @ b[i], np.diag(r[i]))
    within[0][0, 0] = within[0][0, :, 0] = 0
    with pytest.raises(np.linalg.LinAlgError):
        canonical_of_covariances(within, joint[:, :5, 5:])


def test_equal_rows_have_no_direction():
    view = Whitened.of_rows(np.ones((5, 3)))
    assert view.rank == 0
    assert Whitened.of_covariance(np.zeros((3, 3))).rank == 0
