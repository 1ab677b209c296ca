"""Planned sample sizes are gemmr's, and the closed-form bias is that of simulated studies."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca.model_selection import (
    held_out_sample_size,
    required_correlation,
    sample_size,
    spectrum_decay,
)
from mvcca.problem.bias import SampleBias

# cca_sample_size and pls_sample_size of gemmr, December 2023
CCA = {"n_features": (5, 10), "decay": (-0.8, -1.2)}
PLS = {"n_features": (100, 50), "decay": (-1.5, -0.5), "method": "pls"}


@pytest.mark.parametrize(
    ("study", "sizes"), [(CCA, (12624, 1145, 375)), (PLS, (331230, 52919, 22555))]
)
def test_sample_sizes_are_those_of_gemmr(study, sizes):
    assert tuple(sample_size(r, **study) for r in (0.1, 0.3, 0.5)) == sizes


def test_the_required_correlation_is_that_of_gemmr():
    assert required_correlation(1000, **CCA) == pytest.approx(0.319236548589, abs=1e-12)


@pytest.mark.parametrize("study", [CCA, PLS])
def test_required_correlation_and_sample_size_are_inverse(study):
    assert abs(sample_size(required_correlation(54321, **study), **study) - 54321) <= 1


def test_held_out_sample_sizes_are_the_first_that_suffice():
    for rho, widths, share in [(0.3, (5, 10), 0.9), (0.7, (40, 3), 0.8), (0.05, (1, 1), 0.99)]:
        n = held_out_sample_size(rho, widths, share=share)
        found = [SampleBias(rows, widths).held_out(rho) for rows in (n - 1, n)]
        assert found[0] < share * rho <= found[1]


def test_variates_of_the_planned_size_correlate_on_new_rows_as_planned():
    rho, widths = 0.5, (6, 9)
    n, rng = held_out_sample_size(rho, widths), np.random.default_rng(0)
    found = [held_out_correlation(rng, n, widths, rho) for _ in range(200)]
    assert abs(np.mean(found) - 0.9 * rho) < 0.01


def planted(rng, n, widths, rho):
    X, Y = (rng.normal(size=(n, width)) for width in widths)
    Y[:, 0] = rho * X[:, 0] + np.sqrt(1 - rho**2) * Y[:, 0]
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def held_out_correlation(rng, n, widths, rho):
    """Correlation in the population of the first variates of a sample, by QR and SVD."""
    (Q, R), (U, V) = map(np.linalg.qr, planted(rng, n, widths, rho))
    left, _, right = np.linalg.svd(Q.T @ U)
    a, b = np.linalg.solve(R, left[:, 0]), np.linalg.solve(V, right[0])
    return rho * a[0] * b[0] / np.linalg.norm(a) / np.linalg.norm(b)


# Means of simulations, as the specification of these limits measured them.
@pytest.mark.parametrize(
    ("n", "widths", "rho", "simulated"),
    [
        (200, (10, 10), 0.3, 0.144),
        (200, (20, 20), 0.5, 0.305),
        (600, (120, 30), 0.7, 0.589),
    ],
)
def test_the_limit_of_held_out_correlations_is_near_that_of_samples(n, widths, rho, simulated):
    assert SampleBias(n, widths).held_out(rho) == pytest.approx(simulated, abs=0.015)


def test_sample_correlations_and_loadings_tend_to_their_limits():
    n, widths, rho = 1500, (250, 120), 0.7
    rng, bias = np.random.default_rng(1), SampleBias(1500, (250, 120))
    X, Y = planted(rng, n, widths, rho)
    (Q, _), (U, _) = np.linalg.qr(X), np.linalg.qr(Y)
    left, r, right = np.linalg.svd(Q.T @ U)
    assert bias.sample(rho) == pytest.approx(r[0], abs=0.02)
    assert bias.edge == pytest.approx(r[1], abs=0.02)
    scores = Q @ left[:, 0], U @ right[0]
    loadings = [
        abs(np.corrcoef(view[:, 0], variate)[0, 1])
        for view, variate in zip((X, Y), scores, strict=True)
    ]
    np.testing.assert_allclose(bias.loading_shares(rho), loadings, atol=0.02)


def test_the_bias_is_inverted_above_the_edge_and_nothing_is_told_below():
    bias = SampleBias(200, (20, 10))
    rho = np.linspace(bias.threshold + 1e-3, 1, 50)
    np.testing.assert_allclose(bias.population(bias.sample(rho)), rho, atol=1e-10)
    assert (bias.sample(rho) >= bias.held_out(rho)).all()
    assert (bias.population([0, 0.3, bias.edge]) == 0).all()
    np.testing.assert_allclose(bias.sample([0, bias.threshold]), bias.edge)
    assert bias.held_out(bias.threshold) == 0
    assert bias.population(bias.edge + 1e-9) == pytest.approx(bias.threshold, abs=1e-3)


def test_independent_views_are_mostly_called_noise_and_others_are_not():
    n, widths = 200, (12, 9)
    rng, bias = np.random.default_rng(0), SampleBias(n, widths)

    def correlations(rho):
        bases = [np.linalg.qr(V)[0] for V in planted(rng, n, widths, rho)]
        return np.minimum(np.linalg.svd(bases[0].T @ bases[1])[1], 1)

    independent = np.array([correlations(0.0) for _ in range(400)])
    sums = (independent**2).sum(axis=1)
    # One standard deviation above the mean, 12 · 9 / 199, is the limit: 84 % are within it.
    within = [bias.is_noise(r).any() for r in independent]
    assert 0.8 < np.mean(within) < 0.92
    assert sums.mean() == pytest.approx(108 / 199, abs=0.01)
    behind = np.array([bias.is_noise(correlations(0.9)) for _ in range(400)])
    assert not behind[:, 0].any()  # of what is left, as often
    assert 0.8 < behind[:, -1].mean() < 0.92
    assert not bias.is_noise(np.full(9, bias.edge - 0.01)).any()


def test_large_samples_are_not_biased():
    bias = SampleBias(10**9, (3, 2))
    rho = np.array([0.1, 0.5, 0.99])
    for limit in (bias.sample(rho), bias.population(rho), bias.held_out(rho)):
        np.testing.assert_allclose(limit, rho, atol=1e-6)
    np.testing.assert_allclose(bias.loading_shares(rho), 1, atol=1e-6)


def test_the_decay_of_principal_variances_is_their_slope():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    Q = np.linalg.qr(X - X.mean(axis=0))[0] * np.arange(1.0, 13) ** -0.7  # variances i^-1.4
    rotated = Q @ np.linalg.qr(rng.normal(size=(12, 12)))[0] + 3
    for explained in (0.1, 0.6, 0.99):  # two components at least
        assert spectrum_decay(rotated, explained=explained) == pytest.approx(-1.4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_size(1.0, **CCA), "between 0 and 1, got 1.0"),
        (lambda: sample_size(0.3, (5, 10), decay=(0.8, -1.2)), "each at most 0"),
        (lambda: sample_size(0.3, (5, 0), decay=(-1, -1)), "two positive whole numbers"),
        (lambda: sample_size(0.3, 5, decay=(-1, -1)), "two positive whole numbers"),
        (lambda: sample_size(0.3, (5, 10), decay=(-1, -1), method="rcc"), "'cca' or 'pls'"),
        (lambda: required_correlation(0, **CCA), "positive number of rows"),
        (lambda: held_out_sample_size(0.3, (5, 10), share=1), "share between 0 and 1"),
        (lambda: held_out_sample_size(-0.3, (5, 10)), "between 0 and 1, got -0.3"),
        (lambda: spectrum_decay(np.ones((9, 3))), "two independent features"),
        (lambda: spectrum_decay(np.eye(5), explained=0), "share of variance"),
        (lambda: SampleBias(30, (20, 9)), r"more rows than p \+ q \+ 1 = 30, got 30"),
    ],
)
def test_arguments_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
