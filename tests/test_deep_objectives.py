"""Objectives and layers of deep CCA against formulas, autograd, differences and linear CCA."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from benchmarks.papers.capacity import n_parameters, widened  # noqa: E402
from mvcca import CCA  # noqa: E402
from mvcca.deep import functional, layers, objectives  # noqa: E402
from mvcca.deep._losses.trace_norm import polar_by_products  # noqa: E402
from mvcca.deep._methods.corrnet import corrnet_loss  # noqa: E402
from mvcca.deep._methods.soft_cca import soft_cca_loss, soft_hgr_loss  # noqa: E402
from mvcca.deep.encoders import (  # noqa: E402
    DynamicEncoder,
    Encoders,
    mlp,
)
from mvcca.deep.samplers import Sample, ShuffledBatches  # noqa: E402
from mvcca.views import Views  # noqa: E402


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def scores(n=40, k=3, seed=0, dtype=torch.float64, width=None):
    g = generator(seed)
    Z = torch.randn(n, k, generator=g, dtype=torch.float64)
    F = Z @ torch.randn(k, k, generator=g, dtype=torch.float64)
    width = width or k
    noise = torch.randn(n, width, generator=g, dtype=torch.float64)
    G = Z @ torch.randn(k, width, generator=g, dtype=torch.float64) + noise
    return [H.to(dtype).requires_grad_() for H in (F, G)]


def gradients(value, tensors):
    return torch.autograd.grad(value, tensors)


def batch(**views):
    return objectives.Batch(views, np.arange(len(next(iter(views.values())))), 1)


# ---- trace norm ----------------------------------------------------------------------------------


def trace_norm_by_autograd(F, G, reg):
    """The sum of the canonical correlations, differentiated by torch."""

    def within(H):
        S = functional.covariance(H)
        return torch.linalg.cholesky(
            S + reg * S.diagonal().mean() * torch.eye(len(S), dtype=S.dtype)
        )

    left = torch.linalg.solve_triangular(within(F), functional.covariance(F, G), upper=False)
    T = torch.linalg.solve_triangular(within(G).T, left, upper=True, left=False)
    return torch.linalg.svdvals(T).sum()


@pytest.mark.parametrize("reg", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("width", [3, 5, 2])
def test_trace_norm_is_its_autograd_twin(reg, width):
    F, G = scores(width=width)
    value, twin = functional.trace_norm(F, G, reg), trace_norm_by_autograd(F, G, reg)
    torch.testing.assert_close(value, twin, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(gradients(value, [F, G]), gradients(twin, [F, G]), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


def test_objectives_pass_finite_differences():
    F, G = scores(n=12)
    for function in (functional.trace_norm, functional.soft_hgr, functional.coordinate_correlation):
        assert torch.autograd.gradcheck(function, (F, G))
    means = torch.linspace(-1, 1, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m: functional.expected_open_gates(m, 0.5), means)


def test_ridges_are_those_of_their_views():
    F, G = scores()
    one_way = functional.trace_norm(F, G, (0.1, 2.0))
    other_way = functional.trace_norm(G, F, (2.0, 0.1))
    torch.testing.assert_close(one_way, other_way)
    assert not torch.isclose(one_way, functional.trace_norm(F, G, (2.0, 0.1)))


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e3])
@pytest.mark.parametrize("reg", [1e-4, 0.5])
def test_the_ridge_is_in_units_of_the_scores_variance_as_in_linear_cca(reg, scale):
    F, G = scores(n=200)
    expected = CCA(3, reg=reg).fit([F.detach().numpy(), G.detach().numpy()])
    value, small = functional.trace_norm(F, G, reg), functional.trace_norm(scale * F, G, reg)
    torch.testing.assert_close(small, value, rtol=1e-9, atol=0)
    assert value.item() == pytest.approx(expected.canonical_correlations_.sum(), rel=1e-9)


@pytest.mark.parametrize("reg", [0.0, 1e-4])
def test_scores_that_do_not_vary_correlate_with_none_and_give_finite_gradients(reg):
    F, G = scores()
    constant = torch.full_like(F, 3.0).requires_grad_()
    value = functional.trace_norm(constant, G, reg)
    assert value.item() == 0
    assert all(gradient.isfinite().all() for gradient in gradients(value, [constant, G]))


def test_trace_norm_is_the_sum_of_linear_ccas_correlations():
    F, G = scores(n=200, k=4)
    model = CCA(4, reg=0).fit([F.detach().numpy(), G.detach().numpy()])
    value = functional.trace_norm(F, G, 0.0).item()
    assert value == pytest.approx(model.canonical_correlations_.sum(), abs=1e-10)


def test_trace_norm_without_ridge_does_not_change_under_invertible_maps():
    F, G = scores()
    A, B = (torch.randn(3, 3, generator=generator(s), dtype=torch.float64) for s in (5, 6))
    moved = functional.trace_norm(F @ A + 7, G @ B - 3, 0.0)
    torch.testing.assert_close(moved, functional.trace_norm(F, G, 0.0), rtol=1e-9, atol=0)


def test_soft_hgr_does_change_under_invertible_maps():
    F, G = scores()
    assert not torch.isclose(functional.soft_hgr(2 * F, G), functional.soft_hgr(F, G))


@pytest.mark.parametrize(
    "objective", [functional.trace_norm, functional.soft_hgr, functional.coordinate_correlation]
)
def test_the_order_of_rows_in_a_batch_is_the_order_of_rows_in_the_gradient(objective):
    F, G = scores()
    order = torch.randperm(len(F), generator=generator())
    value, shuffled = objective(F, G), objective(F[order], G[order])
    torch.testing.assert_close(value, shuffled)
    for ours, theirs in zip(gradients(value, [F, G]), gradients(shuffled, [F, G]), strict=True):
        torch.testing.assert_close(ours, theirs)


def whitened_views(correlations, n=400):
    """Exactly white F and G with exactly these canonical correlations."""
    k = len(correlations)
    Z = torch.randn(n, 2 * k, generator=generator(), dtype=torch.float64)
    Q = torch.linalg.qr(Z - Z.mean(0))[0] * math.sqrt(n - 1)
    rho = torch.tensor(correlations, dtype=torch.float64)
    F, G = Q[:, :k], rho * Q[:, :k] + (1 - rho**2).sqrt() * Q[:, k:]
    return F.clone().requires_grad_(), G.clone().requires_grad_()


@pytest.mark.parametrize(
    "correlations",
    [[0.5, 0.5, 0.5], [0.5, 0.5 + 1e-9, 0.2], [0.9, 0.0, 0.0], [1.0, 1.0, 0.3]],
    ids=["tied", "nearly tied", "zero", "one"],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_are_finite_where_singular_values_meet_or_vanish(correlations, dtype):
    F, G = (H.detach().to(dtype).requires_grad_() for H in whitened_views(correlations))
    value = functional.trace_norm(F, G, 0.0)
    assert value.item() == pytest.approx(sum(correlations), abs=1e-4)
    for gradient in gradients(value, [F, G]):
        assert gradient.isfinite().all()
        assert gradient.norm() < 10 / math.sqrt(len(F))


def test_collinear_scores_without_ridge_give_finite_values_and_gradients():
    F, G = scores(n=60)
    doubled = torch.cat([F, F[:, :1]], dim=1)
    value = functional.trace_norm(doubled, G, 0.0)
    assert value.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients(value, [F, G]))


def test_float32_scores_lose_nothing_but_their_own_rounding():
    rng = generator(3)
    stretched = torch.tensor([1e3, 1.0, 1e-2], dtype=torch.float64)  # condition 1e10
    F, G = scores(n=300)
    F = ((F * stretched) @ torch.randn(3, 3, generator=rng, dtype=torch.float64)).detach()
    F32, G32 = (H.detach().float().requires_grad_() for H in (F, G))
    F64, G64 = (H.detach().double().requires_grad_() for H in (F32, G32))
    ours = functional.trace_norm(F32, G32, 0.0)
    assert ours.dtype == torch.float32
    twin = trace_norm_by_autograd(F64, G64, 0.0)
    assert ours.item() == pytest.approx(twin.item(), rel=1e-6)
    for a, b in zip(gradients(ours, [F32, G32]), gradients(twin, [F64, G64]), strict=True):
        assert (a - b).norm() < 1e-5 * b.norm()


def test_products_find_the_polar_factor_that_svd_finds():
    T = torch.randn(6, 6, generator=generator(), dtype=torch.float64)
    U, _, Vh = torch.linalg.svd(T)
    T = U @ torch.diag(torch.tensor([1, 1 - 1e-9, 0.5, 0.1, 1e-2, 1e-4]).double()) @ Vh
    torch.testing.assert_close(polar_by_products(T), U @ Vh, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [2, 3])
def test_a_batch_of_no_more_rows_than_scores_is_refused(n):
    with pytest.raises(ValueError, match=f"batch of {n} rows is too small for 3 scores"):
        functional.trace_norm(*scores(n=n))


def test_small_batches_are_warned_of_once():
    loss = objectives.TraceNormLoss()
    F, G = scores(n=20)
    with pytest.warns(UserWarning, match="Batches of 20 rows are small for 3 components.*24"):
        loss({"a": F, "b": G}, batch(a=F, b=G))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss({"a": F, "b": G}, batch(a=F, b=G))
        objectives.TraceNormLoss()(dict(zip("ab", scores(n=24), strict=True)), batch(a=F))


def test_losses_of_three_views_are_sums_over_their_pairs():
    F, G = scores(n=50)
    H = scores(n=50, seed=4)[0]
    three = {"a": F, "b": G, "c": H}
    reg = {"a": 0.1, "b": 0.2, "c": 0.3}
    expected = -sum(
        functional.trace_norm(three[p], three[q], (reg[p], reg[q])) for p, q in ("ab", "ac", "bc")
    )
    torch.testing.assert_close(objectives.TraceNormLoss(reg)(three, batch(**three)), expected)
    expected = -sum(functional.soft_hgr(three[p], three[q]) for p, q in ("ab", "ac", "bc"))
    torch.testing.assert_close(soft_hgr_loss(three, batch(**three)), expected)


# ---- the other objectives, from their formulas ---------------------------------------------------


def test_soft_hgr_is_its_formula():
    F, G = (H.detach().numpy() for H in scores(n=15))
    f, g = F - F.mean(0), G - G.mean(0)
    expected = sum(a @ b for a, b in zip(f, g, strict=True)) / 14
    expected -= np.trace((f.T @ f) @ (g.T @ g)) / 14**2 / 2
    value = functional.soft_hgr(torch.tensor(F), torch.tensor(G))
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_soft_hgr_at_its_best_is_half_the_sum_of_squared_correlations():
    rho = [0.9, 0.6, 0.2]
    F, G = whitened_views(rho)
    roots = torch.tensor(rho, dtype=torch.float64).sqrt()
    value = functional.soft_hgr(F * roots, G * roots)
    assert value.item() == pytest.approx(sum(r**2 for r in rho) / 2, rel=1e-9)


def test_running_covariance_is_the_weighted_mean_of_batch_covariances():
    running = layers.RunningCovariance(3, decay=0.9).double()
    batches = [torch.randn(30, 3, generator=generator(s), dtype=torch.float64) for s in range(4)]
    for F in batches:
        C = running(F)
    weights = np.array([0.9**age for age in (3, 2, 1, 0)])
    expected = sum(
        w * np.cov(F.numpy(), rowvar=False) for w, F in zip(weights, batches, strict=True)
    )
    np.testing.assert_allclose(C.numpy(), expected / weights.sum(), rtol=1e-6)


def test_the_gradient_of_a_running_covariance_is_that_of_its_last_batch():
    running = layers.RunningCovariance(2, decay=0.5).double()
    first, last = (
        torch.randn(9, 2, generator=generator(s), dtype=torch.float64).requires_grad_()
        for s in (0, 1)
    )
    running(first)
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    value = (running(last) * weight).sum()
    (gradient,) = gradients((functional.covariance(last) * weight).sum(), [last])
    torch.testing.assert_close(gradients(value, [last])[0], gradient / 1.5)
    assert torch.autograd.grad(value, first, allow_unused=True)[0] is None


def test_evaluation_leaves_a_running_covariance_as_it_is():
    running = layers.RunningCovariance(3)
    F = torch.randn(20, 3, generator=generator())
    running(F)
    before = running.total.clone()
    running.eval()
    torch.testing.assert_close(running(2 * F), functional.covariance(2 * F))
    assert torch.equal(running.total, before)


def test_off_diagonal_is_the_sum_or_mean_of_absolute_values():
    C = torch.tensor([[5.0, -1.0, 2.0], [3.0, 5.0, -4.0], [0.5, 0.5, 5.0]])
    assert functional.off_diagonal(C).item() == pytest.approx(11)
    assert functional.off_diagonal(C, "mean").item() == pytest.approx(11 / 6)


def test_soft_cca_loss_is_its_formula():
    F, G = (H.detach() for H in scores(n=25))
    running = torch.nn.ModuleList(layers.RunningCovariance(3).double() for _ in "ab")
    value = soft_cca_loss({"a": F, "b": G}, batch(a=F, b=G), running, 2.0)
    f, g = F.numpy(), G.numpy()
    expected = np.mean(np.sum((f - g) ** 2, axis=1)) / 2
    for H in (f, g):
        C = np.abs(np.cov(H, rowvar=False))
        expected += 2.0 * (C.sum() - np.trace(C))
    assert value.item() == pytest.approx(expected, rel=1e-6)


def test_expected_open_gates_are_how_often_gates_open():
    means, sigma = torch.tensor([-0.3, 0.0, 0.4]), 0.5
    drawn = means + sigma * torch.randn(200_000, 3, generator=generator())
    often = (drawn > 0).float().mean(0)
    assert functional.expected_open_gates(means, sigma, "sum").item() == pytest.approx(
        often.sum().item(), abs=0.01
    )


def test_corrnet_loss_is_its_formula():
    rng = np.random.default_rng(0)
    x, y = rng.random((30, 4)), rng.random((30, 3))
    wx, wy, b = rng.standard_normal((2, 4)), rng.standard_normal((2, 3)), rng.standard_normal(2)

    def sigmoid(t):
        return 1 / (1 + np.exp(-t))

    hx, hy, hxy = sigmoid(x @ wx.T + b), sigmoid(y @ wy.T + b), sigmoid(x @ wx.T + y @ wy.T + b)
    expected = sum(
        np.mean(np.sum((data - sigmoid(h @ w)) ** 2, axis=1))
        for h in (hx, hy, hxy)
        for data, w in ((x, wx), (y, wy))
    )
    expected -= 2 * sum(np.corrcoef(hx[:, j], hy[:, j])[0, 1] for j in range(2))
    linears = {"x": torch.nn.Linear(4, 2).double(), "y": torch.nn.Linear(3, 2).double()}
    for layer, w in zip(linears.values(), (wx, wy), strict=True):
        layer.weight.data, layer.bias.data = torch.tensor(w), torch.tensor(b)
    offsets = torch.nn.ParameterList(torch.zeros(d).double() for d in (4, 3))
    views = {"x": torch.tensor(x), "y": torch.tensor(y)}
    hidden = {"x": torch.tensor(hx), "y": torch.tensor(hy)}
    value = corrnet_loss(hidden, batch(**views), linears, offsets, torch.sigmoid, 2.0)
    assert value.item() == pytest.approx(expected, rel=1e-4)  # there is 1e-8 in a denominator


def test_reconstruction_error_is_averaged_over_rows_and_added_up_over_features():
    X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert functional.reconstruction_error(X, torch.zeros(2, 2)).item() == pytest.approx(15)


# ---- layers --------------------------------------------------------------------------------------


def scaled_layer(scaling, sizes=(5,)):
    layer = layers.DynamicallyScaledLinear(4, 3, sizes, scaling, generator=generator()).double()
    layer.scaled = True
    return layer.eval()


def by_definition(layer, z, context=None):
    """Row by row, with all scales of a row made."""
    n_out, n_in = layer.shape
    out = []
    for row, seen in zip(z, z if context is None else context, strict=True):
        varies = layer.scaling != "global"
        S = layer.last(layer.hidden(seen[None]))[0] if varies else layer.scales
        if layer.scaling == "outputs":
            out.append(S * layer.linear(row))
            continue
        *S_W, S_b = S.view(n_in + 1, n_out)  # a row per input, and the bias
        S_W = torch.stack(S_W, dim=1)
        if layer.scaling == "generated":
            out.append(S_W @ row + S_b)
        else:
            out.append((S_W * layer.linear.weight) @ row + S_b * layer.linear.bias)
    return torch.stack(out)


SCALINGS = pytest.mark.parametrize("scaling", ["parameters", "outputs", "global", "generated"])


@SCALINGS
@pytest.mark.parametrize("sizes", [(5,), (6, 5)])
def test_dynamic_scaling_is_its_definition_row_by_row(scaling, sizes):
    layer = scaled_layer(scaling, sizes)
    if scaling == "global":
        with torch.no_grad():
            layer.scales.normal_(generator=generator(2))
    z = torch.randn(7, 4, generator=generator(1), dtype=torch.float64, requires_grad=True)
    assert_same_layer(layer, layer(z), by_definition(layer, z), [z])


@pytest.mark.parametrize("sees", ["z", "x", "zx"])
def test_dynamic_scaling_by_the_input_is_its_definition_row_by_row(sees):
    layer = layers.DynamicallyScaledLinear(
        4, 3, (5,), generator=generator(), n_context={"z": 4, "x": 6, "zx": 10}[sees]
    )
    layer.scaled = True
    trunk = nn.Sequential(layers.linear(6, 4, generator(3)), nn.Tanh())
    encoder = DynamicEncoder(trunk, layer, nn.BatchNorm1d(3, affine=False), sees).double().eval()
    X = torch.randn(7, 6, generator=generator(1), dtype=torch.float64, requires_grad=True)
    z = trunk(X)
    context = {"z": z, "x": X, "zx": torch.cat([z, X], dim=1)}[sees]
    expected = by_definition(layer, z, context) / math.sqrt(1 + 1e-5)  # of an unused batch norm
    assert_same_layer(encoder, encoder(X), expected, [X])


def assert_same_layer(layer, ours, expected, inputs):
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)
    parameters = [p for p in layer.parameters() if p.requires_grad] + inputs
    options = {"allow_unused": True, "materialize_grads": True}
    theirs = torch.autograd.grad(expected.square().sum(), parameters, retain_graph=True, **options)
    for a, b in zip(
        torch.autograd.grad(ours.square().sum(), parameters, **options), theirs, strict=True
    ):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-10)


@SCALINGS
def test_scales_of_rows_give_the_outputs_of_the_layer(scaling):
    layer = scaled_layer(scaling)
    z = torch.randn(7, 4, generator=generator(1), dtype=torch.float64)
    scales = layer.scales_of(z)
    assert scales.shape == (7, 3, 5)
    if scaling != "generated":
        W, b = layer.linear.weight, layer.linear.bias
        scales = scales * torch.cat([W, b[:, None]], dim=1)
    with_one = torch.cat([z, torch.ones(7, 1)], dim=1)
    torch.testing.assert_close(torch.einsum("nkd,nd->nk", scales, with_one), layer(z))
    layer.scaled = False
    assert layer.scales_of(z).eq(1).all()


def test_scaling_networks_leave_the_generator_as_a_linear_layer_does():
    for scaling in ("parameters", "outputs", "global", "generated"):
        one, other = generator(5), generator(5)
        layer = layers.DynamicallyScaledLinear(4, 3, (5,), scaling, generator=one)
        plain = layers.linear(4, 3, other)
        assert torch.equal(one.get_state(), other.get_state())
        if scaling != "generated":
            assert torch.equal(layer.linear.weight, plain.weight)
    pair = [layers.DynamicallyScaledLinear(4, 3, (5,), generator=one) for _ in range(2)]
    assert not torch.equal(pair[0].last.weight, pair[1].last.weight)


def test_scaling_networks_have_batch_norm_without_parameters():
    layer = layers.DynamicallyScaledLinear(800, 50, generator=generator())
    norms = [m for m in layer.modules() if isinstance(m, nn.BatchNorm1d)]
    assert [(m.affine, m.weight, m.bias) for m in norms] == [(False, None, None)]
    added = sum(p.numel() for p in [*layer.hidden.parameters(), *layer.last.parameters()])
    assert added == 800 * 128 + 128 + 128 * 40_050 + 40_050  # c = 40,050 in the supplement


def test_generated_layers_have_no_parameters_to_scale():
    layer = layers.DynamicallyScaledLinear(4, 3, (5,), "generated", generator=generator())
    assert layer.scaled
    names = [name for name, _ in layer.named_parameters()]
    assert names == ["hidden.0.weight", "hidden.0.bias", "last.weight", "last.bias"]


def test_ablations_match_the_capacity_of_dynamic_scaling_within_a_percent():
    def count(network):
        return sum(p.numel() for p in network.parameters())

    scaled = layers.DynamicallyScaledLinear(800, 50, generator=generator())
    plain = mlp(392, (800, 800), 50, generator=generator())
    target = count(plain) + count(scaled) - count(scaled.linear)
    for chosen in ((1,), (0, 1)):
        wide = mlp(392, widened(392, (800, 800), 50, target, chosen), 50, generator=generator())
        assert count(wide) == pytest.approx(target, rel=0.01)
    added = target - count(plain)
    sizes = widened(800, (128,), 50, added)
    outputs = layers.DynamicallyScaledLinear(800, 50, sizes, "outputs", generator=generator())
    assert count(outputs) - count(outputs.linear) == pytest.approx(added, rel=0.01)
    assert n_parameters(392, (800, 800), 50) == count(plain)


def test_a_layer_not_scaled_yet_is_linear():
    layer = scaled_layer("parameters")
    layer.scaled = False
    z = torch.randn(7, 4, dtype=torch.float64, generator=generator())
    assert torch.equal(layer(z), layer.linear(z))


def test_scales_that_start_at_one_keep_what_the_layer_did():
    layer = layers.DynamicallyScaledLinear(40, 3, (5,), start="one", generator=generator())
    z = torch.randn(200, 40, generator=generator(1))
    before = layer(z)
    layer.scaled = True
    assert (layer(z) - before).norm() < 0.05 * before.norm()


def test_dynamic_scaling_never_makes_a_matrix_for_every_row():
    layer = layers.DynamicallyScaledLinear(64, 16, (4,), generator=generator())
    layer.scaled = True
    sizes = []

    def note(tensor):
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        layer(torch.randn(100, 64, generator=generator()))
    assert max(sizes) < 100 * 64 * 16 / 4


def test_gates_open_by_their_means_in_evaluation_and_at_random_in_training():
    gates = layers.StochasticGates(3, sigma=0.5, seed=1)
    with torch.no_grad():
        gates.means.copy_(torch.tensor([-0.2, 0.3, 1.4]))
    X = torch.ones(4, 3)
    torch.testing.assert_close(gates.eval()(X)[0], torch.tensor([0.0, 0.3, 1.0]))
    gates.train()
    first, second = gates(X), gates(X)
    assert (first == first[0]).all()  # one draw for the batch
    assert not torch.equal(first, second)
    assert first.min() >= 0
    assert first.max() <= 1


def test_gates_draw_the_same_noise_again_from_a_state():
    gates = layers.StochasticGates(3, seed=1)
    state = gates.state_dict()
    X = torch.ones(1, 3)
    first = gates(X)
    other = layers.StochasticGates(3, seed=99)
    other.load_state_dict(state)
    assert torch.equal(other(X), first)


def test_our_layers_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    layer = layers.DynamicallyScaledLinear(4, 3, generator=generator())
    layers.StochasticGates(3)(torch.ones(2, 3))
    mlp(4, (5,), 2, generator=generator())
    layer(torch.ones(4, 4))
    assert torch.equal(torch.get_rng_state(), before)


def test_mlp_is_the_published_network():
    kinds = [type(layer).__name__ for layer in mlp(6, (5, 4), 3)]
    assert kinds == [*("Linear", "BatchNorm1d", "ReLU") * 2, "Linear", "BatchNorm1d"]
    assert not any(layer.affine for layer in mlp(6, (5,), 3) if hasattr(layer, "affine"))
    assert all(layer.affine for layer in mlp(6, (5,), 3, affine=True) if hasattr(layer, "affine"))


def test_views_may_have_names_that_torch_keeps_for_itself():
    encoders = Encoders({"type": torch.nn.Linear(2, 1), "a.b": torch.nn.Linear(3, 1)})
    out = encoders({"a.b": torch.ones(4, 3), "type": torch.ones(4, 2)})
    assert {name: F.shape for name, F in out.items()} == {"a.b": (4, 1), "type": (4, 1)}


# ---- samplers ------------------------------------------------------------------------------------


def epoch_of(sampler, n, seed=0):
    sample = Sample(Views({"image": np.zeros((n, 2)), "text": np.zeros((n, 2))}))
    batches = list(sampler(sample, np.random.default_rng(seed)))
    assert all(rows["image"] is rows["text"] for rows in batches)
    return [rows["text"] for rows in batches]


def test_an_epoch_takes_every_row_at_most_once_and_drops_fewer_than_a_batch():
    batches = epoch_of(ShuffledBatches(4), 11)
    rows = np.concatenate(batches)
    assert [len(rows) for rows in batches] == [4, 4]
    assert len(set(rows.tolist())) == 8


def test_a_last_batch_may_be_filled_with_other_rows_or_kept_small():
    filled = epoch_of(ShuffledBatches(4, "fill"), 11)
    assert [len(set(rows.tolist())) for rows in filled] == [4, 4, 4]
    assert set(np.concatenate(filled).tolist()) == set(range(11))
    kept = epoch_of(ShuffledBatches(4, "keep"), 11)
    assert sorted(np.concatenate(kept).tolist()) == list(range(11))


def test_fewer_rows_than_a_batch_are_one_batch():
    assert [len(rows) for rows in epoch_of(ShuffledBatches(50), 11)] == [11]
