"""The CCA layer against linear CCA, finite differences and a running average by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mvcca import CCA  # noqa: E402
from mvcca.deep.functional import (  # noqa: E402
    polar_factor,
    safe_svd,
    trace_norm,
)
from mvcca.deep.layers import CCALayer  # noqa: E402

K = 4
CORRELATIONS = {
    "distinct": [0.9, 0.7, 0.4, 0.2],
    "nearly tied": [0.8, 0.8 + 1e-9, 0.3, 0.3 - 1e-9],
    "tied": [0.7, 0.7, 0.7, 0.2],
}
every_spectrum = pytest.mark.parametrize("rho", CORRELATIONS.values(), ids=CORRELATIONS)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def batch(rho, n=60, seed=0):
    """Scores whose sample canonical correlations are exactly `rho`, invertibly mixed."""
    rho = torch.tensor(rho, dtype=torch.float64)
    k = len(rho)
    Z = normal(n, 2 * k, seed=seed)
    Q = torch.linalg.qr(Z - Z.mean(0))[0] * math.sqrt(n - 1)
    F, G = Q[:, :k], rho * Q[:, :k] + (1 - rho**2).sqrt() * Q[:, k:]
    mixed = [H @ (torch.eye(k) + 0.3 * normal(k, k, seed=seed + i)) for i, H in enumerate((F, G))]
    return [(H + 2.0).detach().requires_grad_() for H in mixed]


def layer(k=K, *args, **options):
    return CCALayer(k, *args, **options).double()


def directional_error(loss, tensors):
    """Relative error of the gradient along random directions, by central differences."""
    gradients = torch.autograd.grad(loss(*tensors), tensors)
    errors = []
    for seed in range(3):
        steps = [normal(*T.shape, seed=50 + 10 * seed + i) for i, T in enumerate(tensors)]
        eps = 1e-5
        with torch.no_grad():
            ahead = loss(*(T + eps * D for T, D in zip(tensors, steps, strict=True)))
            back = loss(*(T - eps * D for T, D in zip(tensors, steps, strict=True)))
        slope = sum((G * D).sum() for G, D in zip(gradients, steps, strict=True))
        scale = sum(G.norm() * D.norm() for G, D in zip(gradients, steps, strict=True))
        errors.append(abs((ahead - back) / (2 * eps) - slope).item() / scale.item())
    return max(errors)


def smooth_loss(F, G):
    """A ranking loss without corners, which finite differences would hit."""
    S = torch.nn.functional.normalize(F) @ torch.nn.functional.normalize(G).T
    return torch.nn.functional.softplus(4 * (0.5 - S.diagonal()[:, None] + S)).mean()


# ---- what comes out ------------------------------------------------------------------------------


@every_spectrum
@pytest.mark.parametrize("n_components", [K, 2])
def test_without_ridge_the_outputs_are_white_and_correlate_by_pairs(rho, n_components):
    F, G = batch(rho)
    X, Y = layer(K, n_components, reg=0.0, canonical=True)(F, G)
    identity = torch.eye(n_components, dtype=torch.float64)
    torch.testing.assert_close(X.T @ X / (len(X) - 1), identity, atol=1e-10, rtol=0)
    torch.testing.assert_close(Y.T @ Y / (len(Y) - 1), identity, atol=1e-10, rtol=0)
    between = X.T @ Y / (len(X) - 1)
    expected = torch.tensor(sorted(rho, reverse=True)[:n_components], dtype=torch.float64)
    torch.testing.assert_close(between, expected.diag(), atol=1e-8, rtol=0)
    torch.testing.assert_close(X.mean(0), torch.zeros_like(X[0]), atol=1e-10, rtol=0)


@every_spectrum
@pytest.mark.parametrize("reg", [0.0, 1e-2])
def test_the_rotated_form_has_the_inner_products_and_gradients_of_canonical_variates(rho, reg):
    F, G = batch(rho)
    forms = [layer(reg=reg, canonical=canonical)(F, G) for canonical in (False, True)]
    (X, Y), (X_c, Y_c) = forms
    for one, other in [(X @ Y.T, X_c @ Y_c.T), (X @ X.T, X_c @ X_c.T), (Y @ Y.T, Y_c @ Y_c.T)]:
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)
    first, second = (torch.autograd.grad(smooth_loss(*form), [F, G]) for form in forms)
    for one, other in zip(first, second, strict=True):
        torch.testing.assert_close(one, other, atol=1e-7 * one.abs().max().item(), rtol=0)


@pytest.mark.parametrize("reg", [0.0, 1e-3, 0.5])
def test_in_evaluation_it_is_linear_cca_of_the_rows_it_was_refitted_to(reg):
    F, G = (H.detach() for H in batch([0.9, 0.6, 0.3, 0.1], n=300))
    model = CCA(K, reg=reg).fit([F.numpy(), G.numpy()])
    mine = layer(reg=reg).refit(F, G).eval()
    new = batch([0.5, 0.4, 0.3, 0.2], n=20, seed=9)
    expected = model.transform([H.detach().numpy() for H in new])
    found = [H.detach().numpy() for H in mine(*new)]
    signs = np.sign((found[0] * expected[0]).sum(0))  # of a component, common to both views
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours * signs, theirs, rtol=0, atol=1e-8)
    alone = mine.project(new[1], view=1).detach().numpy()
    np.testing.assert_array_equal(alone, found[1])


def test_views_of_different_widths_are_projected_to_the_smaller_one():
    F, G = batch([0.9, 0.6, 0.3, 0.1], n=200)
    wide = torch.cat([G, normal(200, 2, seed=7)], dim=1).detach().requires_grad_()
    model = CCA(3, reg=0).fit([F.detach().numpy(), wide.detach().numpy()])
    mine = CCALayer((4, 6), 3, reg=0.0).double()
    X, Y = mine(F, wide)
    correlations = [np.corrcoef(X[:, j].detach(), Y[:, j].detach())[0, 1] for j in range(3)]
    np.testing.assert_allclose(correlations, model.canonical_correlations_, atol=1e-9)
    assert directional_error(lambda *H: smooth_loss(*mine(*H)), [F, wide]) < 1e-6


# ---- gradients -----------------------------------------------------------------------------------


@every_spectrum
@pytest.mark.parametrize("canonical", [False, True], ids=["polar", "vectors"])
def test_gradients_are_those_of_finite_differences(rho, canonical):
    mine = layer(reg=1e-3, canonical=canonical)
    assert directional_error(lambda *H: smooth_loss(*mine(*H)), batch(rho)) < 1e-6


def test_gradients_of_a_truncated_layer_are_those_of_finite_differences():
    for rho in ([0.9, 0.7, 0.4, 0.2], [0.8, 0.8, 0.4, 0.2]):  # tied among those that are kept
        mine = layer(K, 2, reg=1e-3)
        assert directional_error(lambda *H, m=mine: smooth_loss(*m(*H)), batch(rho)) < 1e-6


@every_spectrum
@pytest.mark.parametrize("options", [{}, {"canonical": True}, {"n_components": 2}], ids=str)
def test_gradients_are_finite_in_single_precision(rho, options):
    single = [H.detach().float().requires_grad_() for H in batch(rho)]
    loss = smooth_loss(*CCALayer(K, **options)(*single))
    gradients = torch.autograd.grad(loss, single)
    assert all(G.dtype == torch.float32 and G.isfinite().all() for G in gradients)
    assert max(G.norm().item() for G in gradients) < 10


@pytest.mark.parametrize("rho", [[1.0, 1.0, 0.5, 0.5], [0.5, 0.0, 0.0, 0.0]], ids=["one", "zero"])
def test_gradients_are_finite_for_perfect_and_for_no_correlations(rho):
    F, G = batch(rho)
    for mine in (layer(reg=0.0), layer(K, 2, reg=0.0)):
        for gradient in torch.autograd.grad(smooth_loss(*mine(F, G)), [F, G]):
            assert gradient.isfinite().all()


def test_scores_that_are_constant_in_one_view_give_finite_losses():
    F, G = batch([0.5] * K)
    X, Y = layer()(torch.ones_like(F), G)
    assert X.eq(0).all()
    assert Y.isfinite().all()


def test_the_polar_factor_and_the_decomposition_pass_gradcheck():
    T = normal(4, 4).requires_grad_()
    assert torch.autograd.gradcheck(polar_factor, T)
    for shape in [(4, 4), (5, 3), (3, 5)]:
        M = normal(*shape).requires_grad_()

        def products(M):  # do not depend on the signs of singular vectors
            U, s, V = safe_svd(M)
            return U[:, :2] @ U[:, :2].T, s, V[:, :2] @ V[:, :2].T, U[:, :2] @ V[:, :2].T

        assert torch.autograd.gradcheck(products, M, atol=1e-4)
    torch.testing.assert_close(polar_factor(T).T @ polar_factor(T), torch.eye(4).double())


def test_the_sum_of_correlations_of_the_outputs_is_deep_ccas_objective():
    F, G = batch(CORRELATIONS["distinct"])
    X, Y = layer(reg=0.0)(F, G)
    total = (X * Y).sum() / (len(X) - 1)
    torch.testing.assert_close(total, trace_norm(F, G, 0.0))
    ours, theirs = (torch.autograd.grad(v, [F, G]) for v in (total, trace_norm(F, G, 0.0)))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


# ---- running statistics --------------------------------------------------------------------------


def test_running_statistics_are_those_of_the_recursion_by_hand():
    memory, reg = 0.9, 1e-2
    mine = layer(reg=reg, memory=memory)
    sizes = {1: 60, 2: 12, 3: 25}  # freedom counts only if batches differ in it
    batches = [
        [H.detach() for H in batch([0.9, 0.6, 0.3, 0.1], n, seed)] for seed, n in sizes.items()
    ]
    mean_f = mean_g = S_ff = S_gg = S_fg = None
    for F, G in batches:
        X, Y = mine(F, G)
        F, G = F.numpy(), G.numpy()
        old, m = (0, 0.0) if mean_f is None else (1, memory)
        mean_f = m * mean_f + (1 - m) * F.mean(0) if old else F.mean(0)
        mean_g = m * mean_g + (1 - m) * G.mean(0) if old else G.mean(0)
        F, G = F - mean_f, G - mean_g
        parts = [A.T @ B / (len(F) - 1) for A, B in ((F, F), (G, G), (F, G))]
        if old:
            stored = (S_ff, S_gg, S_fg)
            parts = [m * S + (1 - m) * P for S, P in zip(stored, parts, strict=True)]
        S_ff, S_gg, S_fg = parts
    roots = []
    for S in (S_ff, S_gg):
        values, vectors = np.linalg.eigh(S + reg * np.trace(S) / K * np.eye(K))
        roots.append(vectors / np.sqrt(values) @ vectors.T)
    U, _, Vt = np.linalg.svd(roots[0] @ S_fg @ roots[1])
    expected = F @ roots[0] @ U @ Vt @ roots[1] @ G.T
    np.testing.assert_allclose((X @ Y.T).numpy(), expected, atol=1e-9)


def test_refitted_statistics_are_means_and_covariances():
    mine, (F, G) = layer(), batch([0.9, 0.6, 0.3, 0.1], n=11)
    F, G = F.detach(), G.detach()
    mine.refit(F, G)
    joint = np.cov(np.hstack([F.numpy(), G.numpy()]).T)
    for name, expected in {
        "mean_f": F.numpy().mean(axis=0),
        "mean_g": G.numpy().mean(axis=0),
        "cov_ff": joint[:K, :K],
        "cov_gg": joint[K:, K:],
        "cov_fg": joint[:K, K:],
    }.items():
        np.testing.assert_allclose(getattr(mine, name).numpy(), expected, rtol=1e-10, atol=1e-12)


def test_without_memory_the_statistics_are_those_of_the_last_batch():
    first, last = batch([0.9, 0.6, 0.3, 0.1], seed=1), batch([0.9, 0.6, 0.3, 0.1], seed=2)
    both, one = layer(memory=0.0), layer(memory=0.5)
    both(*first)
    for X, Y in zip(both(*last), one(*last), strict=True):  # the first batch of a running average
        torch.testing.assert_close(X, Y, rtol=0, atol=0)
    for X, Y in zip(both.eval()(*first), one.eval()(*first), strict=True):
        torch.testing.assert_close(X, Y, rtol=0, atol=0)


def test_gradients_of_running_statistics_flow_through_the_current_batch_only():
    mine = layer(memory=0.9)
    first = batch([0.9, 0.6, 0.3, 0.1], seed=1)
    mine(*first)
    state = {name: value.clone() for name, value in mine.state_dict().items()}
    second = batch([0.8, 0.5, 0.3, 0.1], seed=2)

    def loss(F, G):
        mine.load_state_dict(state)
        return smooth_loss(*mine(F, G))

    assert directional_error(loss, second) < 1e-6
    assert torch.autograd.grad(loss(*second), first, allow_unused=True) == (None, None)


def test_state_dict_holds_everything_that_evaluation_needs():
    mine, other = layer(memory=0.5), layer(memory=0.5)
    mine(*batch([0.9, 0.6, 0.3, 0.1]))
    other.load_state_dict(mine.state_dict())
    for fitted, loaded in zip(mine.buffers(), other.buffers(), strict=True):
        assert fitted.stride() == loaded.stride()  # on which rounding depends on some processors
    new = batch([0.5, 0.4, 0.3, 0.2], seed=3)
    for X, Y in zip(mine.eval()(*new), other.eval()(*new), strict=True):
        torch.testing.assert_close(X, Y, rtol=0, atol=0)


# ---- refusals ------------------------------------------------------------------------------------


def test_batches_without_more_rows_than_scores_are_refused():
    F, G = batch([0.5] * K, n=60)
    layer()(F[: K + 1], G[: K + 1])
    for call in (layer(), layer().refit):
        with pytest.raises(ValueError, match="A batch of 4 rows is too small for 4 scores"):
            call(F[:K], G[:K])


def test_a_layer_without_statistics_does_not_project():
    with pytest.raises(RuntimeError, match="no statistics yet"):
        layer().eval()(*batch([0.5] * K))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": 5}, "between 1 and the smaller number of scores, 4, got 5"),
        ({"memory": 1.0}, "memory must be at least 0 and less than 1, got 1.0"),
        ({"reg": -1.0}, "reg must not be negative, got -1.0"),
    ],
    ids=["n_components", "memory", "reg"],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CCALayer(K, **arguments)
