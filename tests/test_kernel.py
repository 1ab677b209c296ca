"""Kernel CCA against the dense problem written from its formula, against CCA, and against itself."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels
from sklearn.utils._param_validation import InvalidParameterError

from mvcca import CCA, KCCA, MVCCA, Views, config_context
from mvcca.datasets import load_digits_views, make_nonlinear_views
from mvcca.kernel import _kcca
from mvcca.kernel._features import FourierFeatures, LandmarkFeatures, greedy_landmarks
from mvcca.kernel._kernels import Kernel, median_gamma

GAMMA = 0.05


def random_views(n: int = 80, widths: tuple[int, ...] = (5, 4), seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 2))
    return Views(
        [
            np.tanh(latent @ rng.standard_normal((2, d))) + 0.3 * rng.standard_normal((n, d)) + 1
            for d in widths
        ]
    )


def centred(K: np.ndarray) -> np.ndarray:
    """HKH, by subtracting the means of rows, of columns and of all."""
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def assert_same_up_to_sign(found: np.ndarray, wanted: np.ndarray, tol: float) -> None:
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found * signs, wanted, atol=tol * np.abs(wanted).max())


def assert_same_functions(model: KCCA, expected: KCCA, rows: Views, tol: float) -> None:
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=tol)
    scores, wanted = model.transform(rows), expected.transform(rows)
    for name in rows.names:
        assert_same_up_to_sign(scores[name], wanted[name], tol)


# ---- the problem that is solved ------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.5, 0.01])
def test_exact_correlations_solve_the_ridged_problem_of_the_centred_kernel_matrices(reg):
    views, n = random_views(40), 40
    model = KCCA(3, gamma=GAMMA, reg=reg).fit(views)
    K = [centred(pairwise_kernels(X, metric="rbf", gamma=GAMMA)) for _, X in views.items()]
    zero = np.zeros((n, n))
    ridged = [k @ k / (n - 1) + reg * np.trace(k) / ((n - 1) * n) * k for k in K]
    between = K[0] @ K[1] / (n - 1)
    # Constant functions are in the kernel of both sides; give the right one some body there.
    right = linalg.block_diag(*ridged) + 1e-9 * np.kron(np.eye(2), np.ones((n, n)))
    left = np.block([[zero, between], [between.T, zero]])
    values = linalg.eigh(left, right + 1e-13 * np.eye(2 * n), eigvals_only=True)[::-1]
    np.testing.assert_allclose(model.canonical_correlations_, values[:3], atol=1e-6)


def test_scores_meet_hardoons_constraint():
    views, n, reg = random_views(50), 50, 0.2
    model = KCCA(3, gamma=GAMMA, reg=reg).fit(views)
    for name, X in views.items():
        K = centred(pairwise_kernels(X, metric="rbf", gamma=GAMMA))
        alpha = np.zeros((n, 3))
        landmarks = model.feature_maps_[name].landmarks + model.feature_maps_[name].origin
        rows = ((landmarks[:, None] - X[None]) ** 2).sum(axis=2).argmin(axis=1)
        alpha[rows] = model.weights_[name]
        alpha -= alpha.mean(axis=0)  # adds a constant to f, which centring takes off again
        r = reg * np.trace(K) / ((n - 1) * n)
        found = alpha.T @ (K @ K / (n - 1) + r * K) @ alpha
        # Uncentred α has the norm αᵀKα of the uncentred K; compare the variance part exactly.
        scores = model.transform({name: X})[name]
        np.testing.assert_allclose(scores.T @ scores, alpha.T @ K @ K @ alpha, atol=1e-7)
        np.testing.assert_allclose(found, found.T, atol=1e-9)


def test_new_rows_are_centred_by_the_column_means_and_the_grand_mean_of_the_training_rows():
    views, new = random_views(60), random_views(20, seed=1)["view0"]
    model = KCCA(2, kernel="poly", gamma=0.1, degree=2).fit(views)
    X = views["view0"]
    K, K_new = (pairwise_kernels(A, X, metric="poly", gamma=0.1, degree=2) for A in (X, new))
    both = K_new - K_new.mean(axis=1)[:, None] - K.mean(axis=0) + K.mean()
    # Scores are a linear function of the centred kernel values, the same for old rows and new.
    coefficients = linalg.lstsq(centred(K), model.transform({"view0": X})["view0"], cond=1e-10)[0]
    np.testing.assert_allclose(model.transform({"view0": new})["view0"], both @ coefficients, atol=1e-6)
