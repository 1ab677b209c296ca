"""Ranking losses against double loops written from their equations."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from mvcca.deep import functional  # noqa: E402

N, K = 7, 3


def normal(*shape, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def cosine(a, b):
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def hinge(x):
    return max(0.0, float(x))


F, G = normal(N, K), normal(N, K, seed=1)
LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 2])
PAIRS = [(i, j) for i in range(N) for j in range(N) if i != j]


def assert_is(value, expected):
    assert float(value) == pytest.approx(expected, rel=1e-10)


# ---- hinges --------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [0.2, 0.9])
def test_pairwise_ranking_is_the_double_loop_in_every_variant(margin):
    def one_way(F, G):
        return sum(hinge(margin - cosine(F[i], G[i]) + cosine(F[i], G[j])) for i, j in PAIRS)

    both, alone = one_way(F, G) + one_way(G, F), one_way(F, G)
    ranking = functional.pairwise_ranking
    assert_is(ranking(F, G, margin, reduction="sum"), both)
    assert_is(ranking(F, G, margin, symmetric=False, reduction="sum"), alone)
    assert_is(ranking(F, G, margin), both / len(PAIRS))
    assert_is(ranking(F, G, margin, symmetric=False), alone / len(PAIRS))


def test_pairwise_ranking_ignores_the_length_of_rows():
    scaled = F * torch.arange(1, N + 1)[:, None]
    torch.testing.assert_close(
        functional.pairwise_ranking(scaled, G), functional.pairwise_ranking(F, G)
    )


def test_margin_ranking_is_the_double_loop():
    margins, different = normal(N, N, seed=2).abs(), LABELS[:, None] != LABELS
    expected = 0.0
    for a in range(N):
        for b in range(N):
            if LABELS[a] != LABELS[b]:
                own = cosine(F[a], G[a])
                expected += hinge(margins[a, b] - own + cosine(G[a], F[b]))
                expected += hinge(margins[a, b] - own + cosine(F[a], G[b]))
    assert_is(functional.margin_ranking(F, G, margins, different), expected / N)


def test_margins_are_constants_and_one_class_costs_nothing():
    margins = normal(N, N, seed=2).abs().requires_grad_()
    scores = F.clone().requires_grad_()
    different = LABELS[:, None] != LABELS
    functional.margin_ranking(scores, G, margins, different).backward()
    assert margins.grad is None
    assert scores.grad.abs().sum() > 0
    none = torch.zeros(N, N, dtype=torch.bool)
    assert functional.margin_ranking(F, G, margins, none).item() == 0


def test_devise_is_the_double_loop():
    t = [g / math.sqrt(float(g @ g)) for g in G]
    expected = sum(hinge(0.1 - t[i] @ F[i] + t[j] @ F[i]) for i, j in PAIRS)
    assert_is(functional.devise(F, G), expected)
    assert_is(functional.devise(F, G, reduction="mean"), expected / len(PAIRS))
    assert not torch.isclose(functional.devise(2 * F, G), functional.devise(F, G))


@pytest.mark.parametrize("mining", [None, 2, 100])
def test_structure_preserving_is_the_triple_loop_over_the_largest_violations(mining):
    margin, weights = 0.3, (2.0, 0.1, 0.2)
    same = LABELS[:, None] == LABELS
    unit = [torch.nn.functional.normalize(H) for H in (F, G)]

    def distance(a, b):
        return math.sqrt(float((a - b) @ (a - b)))

    def term(anchors, items, own_too):
        total, count = 0.0, 0
        for i in range(N):
            for j in range(N):
                if not same[i, j] or (i == j and not own_too):
                    continue
                far_from = [k for k in range(N) if not same[i, k]]
                near = distance(anchors[i], items[j])
                hinges = [hinge(margin + near - distance(anchors[i], items[k])) for k in far_from]
                counted = sorted(hinges, reverse=True)[:mining]
                total, count = total + sum(counted), count + len(counted)
        return total, count

    f, g = unit
    terms = [term(f, g, True), term(g, f, True), term(f, f, False), term(g, g, False)]
    for reduction in ("sum", "mean"):
        expected = sum(
            w * total / (count if reduction == "mean" else 1)
            for w, (total, count) in zip((1.0, *weights), terms, strict=True)
        )
        value = functional.structure_preserving(
            F, G, same, margin=margin, weights=weights, reduction=reduction, mining=mining
        )
        assert_is(value, expected)


def test_triplet_is_the_loop():
    H = normal(N, K, seed=2)
    expected = sum(
        hinge(0.5 + ((F[i] - G[i]) ** 2).sum() - ((F[i] - H[i]) ** 2).sum()) for i in range(N)
    )
    assert_is(functional.triplet(F, G, H, 0.5, reduction="sum"), expected)
    assert_is(functional.triplet(F, G, H, 0.5), expected / N)


@pytest.mark.parametrize("form", ["squared", "linear"])
def test_contrastive_is_the_double_loop(form):
    same, margin = LABELS[:, None] == LABELS[:5], 2.0
    expected = 0.0
    for i in range(N):
        for j in range(5):
            square = float(((F[i] - G[j]) ** 2).sum())
            if same[i, j]:
                expected += square
            elif form == "squared":
                expected += hinge(margin - math.sqrt(square)) ** 2
            else:
                expected += hinge(margin - square)
    assert_is(functional.contrastive(F, G[:5], same, margin, form), expected / (5 * N))


# ---- likelihoods ---------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, 5.0])
def test_one_versus_more_is_the_loop(gamma):
    items = torch.cat([G, normal(3, K, seed=2)])
    others = functional.other_rows(N + 3, 4, torch.Generator().manual_seed(0))[:N]
    expected = 0.0
    for i in range(N):
        own = math.exp(gamma * cosine(F[i], items[i]))
        more = sum(math.exp(gamma * cosine(F[i], items[j])) for j in others[i])
        expected -= math.log(own / (own + more)) / N
    assert_is(functional.one_versus_more(F, items, others, gamma), expected)


def test_one_versus_more_has_the_published_minimum():
    bound = math.log(1 + 4 * math.exp(-2))
    assert bound == pytest.approx(0.4327, abs=5e-5)
    for seed in range(20):
        others = functional.other_rows(9, 4, torch.Generator().manual_seed(seed))
        queries, items = normal(9, 2, seed=seed), normal(9, 2)
        assert functional.one_versus_more(queries, items, others).item() >= bound
    opposite = (N + torch.arange(N))[:, None].expand(-1, 4)
    assert_is(functional.one_versus_more(F, torch.cat([F, -F]), opposite), bound)


def test_other_rows_are_never_the_row_itself_and_are_drawn_anew():
    g = torch.Generator().manual_seed(0)
    draws = torch.stack([functional.other_rows(6, 4, g) for _ in range(200)])
    assert not (draws == torch.arange(6)[:, None]).any()
    for row in range(6):  # all others equally often
        counts = torch.bincount(draws[:, row].flatten(), minlength=6)
        assert counts[row] == 0
        others = np.delete(counts.numpy(), row)
        assert others.min() > 110
        assert others.max() < 210  # 160 expected, standard deviation 11
    assert not torch.equal(draws[0], draws[1])


def test_info_nce_is_the_double_loop():
    tau, expected = 0.3, 0.0
    for i in range(N):
        row = [math.exp(cosine(F[i], G[j]) / tau) for j in range(N)]
        column = [math.exp(cosine(F[j], G[i]) / tau) for j in range(N)]
        expected -= (math.log(row[i] / sum(row)) + math.log(column[i] / sum(column))) / (2 * N)
    assert_is(functional.info_nce(F, G, tau), expected)


def test_sigmoid_contrastive_is_the_double_loop():
    scale, bias, expected = 3.0, -1.0, 0.0
    for i in range(N):
        for j in range(N):
            z = 1 if i == j else -1
            expected -= math.log(1 / (1 + math.exp(-z * (scale * cosine(F[i], G[j]) + bias)))) / N
    assert_is(functional.sigmoid_contrastive(F, G, scale, bias), expected)


def test_temperature_scale_and_bias_can_be_trained():
    tau, scale, bias = (torch.tensor(v, dtype=torch.float64).requires_grad_() for v in (0.5, 3, -1))
    (functional.info_nce(F, G, tau) + functional.sigmoid_contrastive(F, G, scale, bias)).backward()
    assert all(value.grad.abs() > 1e-3 for value in (tau, scale, bias))


# ---- all of them ---------------------------------------------------------------------------------

SAME = LABELS[:, None] == LABELS
LOSSES = {
    "pairwise_ranking": lambda F, G: functional.pairwise_ranking(F, G, 0.5),
    "margin_ranking": lambda F, G: functional.margin_ranking(F, G, normal(N, N).abs(), ~SAME),
    "devise": functional.devise,
    "structure_preserving": lambda F, G: functional.structure_preserving(F, G, SAME),
    "triplet": lambda F, G: functional.triplet(F, G, G.roll(1, 0), 0.5),
    "contrastive": lambda F, G: functional.contrastive(F, G, SAME),
    "linear contrastive": lambda F, G: functional.contrastive(F, G, SAME, hinge="linear"),
    "one_versus_more": lambda F, G: functional.one_versus_more(
        F, G, functional.other_rows(N, 4, torch.Generator().manual_seed(0))
    ),
    "info_nce": functional.info_nce,
    "sigmoid_contrastive": functional.sigmoid_contrastive,
}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@every_loss
def test_gradients_pass_finite_differences(loss):
    assert torch.autograd.gradcheck(loss, (F.clone().requires_grad_(), G.clone().requires_grad_()))


@every_loss
def test_rows_of_zeros_and_equal_rows_give_finite_gradients(loss):
    zero, equal = torch.zeros(N, K).requires_grad_(), torch.ones(N, K).requires_grad_()
    for one, other in [(zero, equal), (equal, equal.detach().clone().requires_grad_())]:
        for gradient in torch.autograd.grad(loss(one, other), [one, other], allow_unused=True):
            assert gradient is None or gradient.isfinite().all()


def test_a_batch_of_1000_is_ranked_in_one_piece():
    F, G = (normal(1000, 50, seed=s).float() for s in (0, 1))
    unit = [(H / H.norm(dim=1, keepdim=True)).double().numpy() for H in (F, G)]
    S = unit[0] @ unit[1].T
    expected = 0.0
    for matrix in (S, S.T):
        violations = np.maximum(0, 0.5 - np.diag(matrix)[:, None] + matrix)
        expected += (violations.sum() - 0.5 * 1000) / (1000 * 999)
    assert functional.pairwise_ranking(F, G).item() == pytest.approx(expected, rel=1e-5)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match='reduction must be "sum" or "mean", got \'max\''):
        functional.pairwise_ranking(F, G, reduction="max")


def test_labels_are_shared_by_classes_and_by_label_sets():
    assert torch.equal(functional.same_label(LABELS), SAME)
    sets = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    expected = [[bool(((a * b) > 0).any()) for b in sets] for a in sets]
    assert functional.same_label(sets).tolist() == expected
    assert functional.same_label(sets[:2], sets).shape == (2, 4)


# ---- gradient reversal ---------------------------------------------------------------------------


def test_reversed_gradients_are_minus_the_factor_times_the_plain_ones_and_reach_the_encoder():
    encoder, judge = torch.nn.Linear(K, 4), torch.nn.Linear(4, 2)
    X, y = F.float(), LABELS.clamp(max=1)

    def reversal(H):
        return functional.reverse_gradient(H, 0.7)

    def gradients(middle):
        for module in (encoder, judge):
            module.zero_grad()
        torch.nn.functional.cross_entropy(judge(middle(encoder(X))), y).backward()
        return encoder.weight.grad.clone(), judge.weight.grad.clone()

    plain, reversed_ = gradients(torch.nn.Identity()), gradients(reversal)
    assert plain[0].abs().sum() > 0
    torch.testing.assert_close(reversed_[0], -0.7 * plain[0])
    torch.testing.assert_close(reversed_[1], plain[1], rtol=0, atol=0)
    assert torch.equal(reversal(X), X)


def test_the_reversal_grows_from_0_to_1():
    assert functional.reversal_factor(0.0) == 0
    assert functional.reversal_factor(0.5) == pytest.approx(2 / (1 + math.exp(-5)) - 1)
    assert functional.reversal_factor(1.0) == pytest.approx(1, abs=1e-4)
