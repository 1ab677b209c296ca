"""Deep estimators for cross-modal retrieval: losses by hand, endings and storage.

That they are as all estimators are is asked in tests/test_contract.py and test_deep_contract.py.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mvcca import CCA, load, save  # noqa: E402
from mvcca.deep import (  # noqa: E402
    CCAL,
    CCL,
    DSDCCA,
    CrossCorrAE,
    DeepSM,
    DeViSE,
    DSRankingCCA,
    LearnedRanking,
    TwoBranch,
    functional,
    objectives,
)
from mvcca.deep._methods.acmr import acmr_loss as loss_of_acmr  # noqa: E402
from mvcca.deep._methods.ccl import ccl_loss  # noqa: E402
from mvcca.deep._methods.cmdn import bimodal_loss  # noqa: E402
from mvcca.deep._methods.deep_sm import logits_of  # noqa: E402
from mvcca.deep.callbacks import Callback  # noqa: E402
from mvcca.deep.encoders import WCNN, Encoders, WordCNN, WordCNNRNN  # noqa: E402
from mvcca.deep.layers import CCALayer, linear  # noqa: E402

SMALL = {"max_epochs": 3, "batch_size": 30, "random_state": 0}
NETS = {**SMALL, "hidden_layer_sizes": (6,)}
pytestmark = pytest.mark.filterwarnings("ignore:Batches of")


def planted(n=120, seed=0, noise=0.05, n_classes=3):
    """Two views of one latent vector, and the class of its prototype."""
    rng = np.random.default_rng(7)
    A, B, prototypes = rng.standard_normal((5, 8)), rng.standard_normal((5, 7)), None
    prototypes = 2 * rng.standard_normal((n_classes, 5))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    Z = prototypes[y] + rng.standard_normal((n, 5))
    views = {"image": Z @ A, "text": Z @ B}
    views = {k: X + noise * rng.standard_normal(X.shape) for k, X in views.items()}
    return views, y


# ---- what is trained -----------------------------------------------------------------------------


class Noted(Callback):
    """Keeps the objective of a training."""

    seen: list[objectives.BoundLoss]

    def on_train_end(self, trainer):
        type(self).seen = [trainer.objective]


def test_the_loss_of_ccal_is_that_of_its_layer():
    F, G = (torch.randn(20, 3, generator=torch.Generator().manual_seed(s)) for s in (0, 1))
    options = {"margin": 0.4, "symmetric": False, "reduction": "sum"}
    loss = objectives.BoundLoss(objectives.ranking_loss, **options, layer=CCALayer(3))
    X, Y = CCALayer(3)(F, G)
    expected = functional.pairwise_ranking(X, Y, **options)
    torch.testing.assert_close(loss({"a": F, "b": G}, None), expected)


def test_parameters_of_the_ranking_loss_reach_it():
    views = planted()[0]
    CCAL(
        2, margin=0.3, symmetric=False, reg=0.2, memory=0.7, callbacks=[Noted()], **NETS,
    start="random").fit(views)  # fmt: skip
    loss = Noted.seen[0]
    assert (loss.margin, loss.symmetric) == (0.3, False)
    assert (loss.layer.reg, loss.layer.memory) == ((0.2, 0.2), 0.7)


def test_the_refitted_projection_is_linear_cca_of_the_networks_outputs():
    views, new = planted()[0], planted(seed=3)[0]
    model = CCAL(3, **NETS, start="random").fit(views)
    inner = {n: F.astype(float) for n, F in model.project(views, "encode").items()}
    linear_cca = CCA(3, reg=1e-3).fit(inner)
    expected = linear_cca.transform(
        {n: F.astype(float) for n, F in model.project(new, "encode").items()}
    )
    for name, scores in model.transform(new).items():
        np.testing.assert_allclose(scores, expected[name], atol=1e-5)


def test_the_stored_projection_is_that_of_the_last_batch_or_the_running_statistics():
    views = planted()[0]
    model = CCAL(
        3, projection="stored", memory=0.5, callbacks=[Noted()], **NETS, start="random"
    ).fit(views)
    layer = Noted.seen[0].layer
    inner = model.project(views, "encode")
    for view, name in enumerate(views):
        with torch.no_grad():
            expected = layer.project(torch.from_numpy(inner[name]), view).numpy()
        np.testing.assert_allclose(model.transform(views)[name], expected, atol=1e-4)
    refitted = CCAL(3, memory=0.5, **NETS, start="random").fit(views).transform(views)["image"]
    assert not np.allclose(model.transform(views)["image"], refitted, atol=1e-2)


def test_the_warm_up_of_dynamic_ranking_has_the_losses_of_ccal_bit_for_bit():
    views = planted()[0]
    options = {**NETS, "max_epochs": 4, "margin": 0.6, "memory": 0.8, "optimizer": "rmsprop"}
    options["learning_rate"] = 2e-3
    plain = CCAL(3, **options, start="random").fit(views).history_["loss"]
    for sees in ("z", "x", "zx"):
        model = DSRankingCCA(3, sees=sees, warm_up=3, scaling_layer_sizes=(4,), **options)
        found = model.fit(views).history_["loss"]
        np.testing.assert_array_equal(found[:3], plain[:3])
        assert found[3] != plain[3]


def test_dynamic_ranking_scales_half_of_the_epochs_by_default():
    views = planted()[0]
    options = {**NETS, "max_epochs": 4}
    models = (
        DSRankingCCA(3, scaling_layer_sizes=(4,), **options),
        CCAL(3, **options, start="random"),
    )
    losses = [model.fit(views).history_["loss"] for model in models]
    np.testing.assert_array_equal(losses[0][:2], losses[1][:2])
    assert losses[0][2] != losses[1][2]


@pytest.mark.parametrize("cls", [DSDCCA, DSRankingCCA])
def test_scaling_starts_where_the_warm_up_ended_if_rows_are_few(cls):
    views = planted()[0]
    still = {**NETS, "max_epochs": 2, "batch_size": 200, "learning_rate": 1e-9}
    jumps = {}
    for start in ("auto", "one", "default"):
        model = cls(3, warm_up=1, scaling_start=start, scaling_layer_sizes=(4,), **still)
        plain, scaled = model.fit(views).history_["loss"]
        jumps[start] = abs(scaled - plain)
    assert jumps["auto"] == jumps["one"] < 0.1 * jumps["default"]


@pytest.mark.parametrize(("cls", "plain"), [(DSDCCA, "DCCA"), (DSRankingCCA, "CCAL")])
def test_training_that_ends_before_the_scaling_starts_warns(cls, plain):
    views = planted()[0]
    model = cls(3, warm_up=50, scaling_layer_sizes=(4,), **NETS)
    with pytest.warns(UserWarning, match=rf"No epoch was scaled.*warm-up of 50.*{plain}.*warm_up"):
        model.fit(views)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(warm_up=2).fit(views)
        model.set_params(warm_up=50).partial_fit(views)  # one of many epochs


def test_the_full_correspondence_autoencoder_has_its_usual_weight():
    views = planted()[0]
    options = {**NETS, "full": True}
    model, usual = CrossCorrAE(3, **options), CrossCorrAE(3, correspondence=0.8, **options)
    for name, scores in model.fit(views).transform(views).items():
        np.testing.assert_array_equal(scores, usual.fit(views).transform(views)[name])


# ---- labelled losses by hand ---------------------------------------------------------------------

TARGETS = torch.eye(3, dtype=torch.float64)
CODES = torch.tensor([0, 1, 2, 1, 0, 2])


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def batch(codes=CODES, epoch=1, n_epochs=4, widths=(4, 5)):
    views = {n: normal(len(codes), d, seed=9 + d) for n, d in zip("pq", widths, strict=True)}
    return objectives.Batch(
        views, np.arange(len(codes)), epoch, n_epochs, dict.fromkeys(views, codes)
    )


def cross_entropy(logits, targets):
    p = torch.exp(logits) / torch.exp(logits).sum(1, keepdim=True)
    return -(targets * torch.log(p)).sum(1).mean()


def test_labels_are_classes_or_sets():
    logits = normal(6, 3)
    loss = objectives.LabelLoss(TARGETS)
    torch.testing.assert_close(loss.of(logits, CODES), cross_entropy(logits, TARGETS[CODES]))
    sets = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]], dtype=torch.float64)
    p, t = 1 / (1 + torch.exp(-logits)), sets[CODES]
    expected = -(t * p.log() + (1 - t) * (1 - p).log()).mean()
    torch.testing.assert_close(objectives.LabelLoss(sets).of(logits, CODES), expected)


@pytest.mark.parametrize("whole", [False, True], ids=["activation last", "activation inside"])
@pytest.mark.parametrize("sets", [False, True])
def test_the_loss_of_posteriors_is_that_of_their_logits(sets, whole):
    targets = torch.tensor([[1, 1, 0], [0, 1, 0], [0, 0, 0]]).float() if sets else TARGETS.float()
    activation = nn.Sigmoid() if sets else nn.Softmax(dim=1)
    networks = {
        n: nn.Sequential(linear(3, 3, torch.Generator().manual_seed(s)), activation)
        for s, n in enumerate("pq")
    }
    X = normal(6, 3).float()
    logits = {n: network[0](X) for n, network in networks.items()}
    expected = sum(objectives.LabelLoss(targets).of(L, CODES) for L in logits.values())
    given = {n: nn.Sequential(network) for n, network in networks.items()} if whole else networks
    scores = {name: logits_of(network, not sets)(X) for name, network in given.items()}
    found = objectives.LabelLoss(targets)(scores, batch())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("sets", "logit", "rate"), [(True, 17.0, 0.1), (True, 30.0, 0.1), (False, 95.0, 200.0)]
)
def test_deep_semantic_matching_learns_from_posteriors_that_round_to_0_and_1(sets, logit, rate):
    labels = [["a"], ["b"], ["a", "b"], ["b"]] * 20 if sets else ["a", "b"] * 40
    views = {n: np.random.default_rng(0).normal(size=(80, 3)) for n in "pq"}
    network = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid() if sets else nn.Softmax(dim=1))
    with torch.no_grad():
        network[0].weight.mul_(1e-3)
        network[0].bias.copy_(torch.tensor([logit, 0.0]))
    model = DeepSM(encoders={"p": network, "q": network}, optimizer="sgd", learning_rate=rate)
    model.set_params(max_epochs=1, batch_size=80, weight_decay=0.0).fit(views, labels)
    moved = (model.encoders_["p"][0].bias - network[0].bias).abs().max()
    assert moved > 0.01


def acmr_loss(weights=(1.0, 1.0, 1.0)):
    g = torch.Generator().manual_seed(3)
    return objectives.BoundLoss(
        loss_of_acmr,
        labels=objectives.LabelLoss(TARGETS),
        classifier=linear(3, 3, g).double(),
        adversary=linear(3, 2, g).double(),
        weights=weights,
        margin=0.5,
    )


def test_the_terms_of_acmr_are_its_formulas():
    loss, rows = acmr_loss((2.0, 3.0, 4.0)), batch(epoch=3)
    scores = {n: normal(6, 3, seed=s) for s, n in enumerate("pq")}
    terms = loss(scores, rows)
    triplet = 0.0
    for p, q in ("pq", "qp"):
        F, G, X = scores[p], scores[q], rows.views[q]
        for i in range(6):
            others = [j for j in range(6) if CODES[j] != CODES[i]]
            unit = X / X.norm(dim=1, keepdim=True)
            worst = max(others, key=lambda j, i=i, unit=unit: float(unit[i] @ unit[j]))
            near, far = ((F[i] - G[j]).square().sum() for j in (i, worst))
            triplet += max(0.0, float(0.5 + near - far)) / 6
    assert terms["triplet"].item() == pytest.approx(2 * triplet)
    labels = sum(cross_entropy(loss.classifier(F), TARGETS[CODES]) for F in scores.values())
    torch.testing.assert_close(terms["label"], 3 * labels)
    logits = torch.cat([loss.adversary(F) for F in scores.values()])
    views = torch.eye(2, dtype=torch.float64)[[0] * 6 + [1] * 6]
    torch.testing.assert_close(terms["adversary"], 4 * cross_entropy(logits, views))


def test_the_adversary_of_acmr_reaches_the_networks_with_the_reversed_gradient():
    loss, rows = acmr_loss(), batch(epoch=3)
    scores = {n: normal(6, 3, seed=s).requires_grad_() for s, n in enumerate("pq")}
    adversary = loss(scores, rows)["adversary"]
    reversed_ = torch.autograd.grad(adversary, list(scores.values()))
    logits = torch.cat([loss.adversary(F) for F in scores.values()])
    plain_loss = nn.functional.cross_entropy(logits, torch.tensor([0] * 6 + [1] * 6))
    plain = torch.autograd.grad(plain_loss, list(scores.values()))
    factor = 2 / (1 + math.exp(-10 * 3 / 4)) - 1
    for ours, theirs in zip(reversed_, plain, strict=True):
        assert theirs.abs().sum() > 0
        torch.testing.assert_close(ours, -factor * theirs)


def test_a_batch_of_one_class_has_no_triplets():
    scores = {n: normal(4, 3, seed=s) for s, n in enumerate("pq")}
    assert acmr_loss()(scores, batch(torch.zeros(4, dtype=torch.int64)))["triplet"] == 0


def test_a_level_of_cmdn_reconstructs_all_views_and_labels_from_each_code():
    g, rows = torch.Generator().manual_seed(0), batch()
    layers = {n: linear(rows.views[n].shape[1], 2, g).double() for n in "pq"}
    layers["q"].bias = layers["p"].bias
    decoders = {n: linear(2, rows.views[n].shape[1], g).double() for n in "pq"}
    classifier = linear(2, 3, g).double()
    loss = objectives.BoundLoss(
        bimodal_loss,
        labels=objectives.LabelLoss(TARGETS),
        classifier=classifier,
        decoders=Encoders(decoders),
        layers=Encoders(layers),
        weight=4.0,
    )
    scores = {n: X.requires_grad_() for n, X in rows.views.items()}
    terms = loss(scores, rows)
    error, labels, n_features = 0.0, 0.0, sum(X.shape[1] for X in scores.values())
    for seen in ("p", "q", "pq"):
        code = layers["p"].bias.clone()
        for n in seen:
            code = code + scores[n] @ layers[n].weight.T
        code = torch.sigmoid(code)
        for n, X in scores.items():
            errors = [(X[i] - decoders[n](code[i])).square().sum().item() for i in range(6)]
            error += sum(errors) / 6 / n_features
        labels += cross_entropy(classifier(code), TARGETS[CODES])
    assert terms["reconstruction"].item() == pytest.approx(error)
    torch.testing.assert_close(terms["label"], 4 * labels)
    sum(terms.values()).backward()
    assert all(X.grad is None for X in scores.values())  # levels below stay as they are
    assert all(p.grad.abs().sum() > 0 for p in loss.parameters())


@pytest.mark.parametrize("activated", [(), ("p",), ("p", "q")], ids=lambda names: "".join(names))
def test_the_terms_of_ccl_are_its_formulas(activated):
    g, rows = torch.Generator().manual_seed(0), batch()
    classifiers = {n: linear(3, 3, g).double() for n in "pq"}
    labels = objectives.LabelLoss(TARGETS)
    scores = {n: normal(6, 3, seed=s) for s, n in enumerate("pq")}
    terms = ccl_loss(scores, rows, labels, Encoders(classifiers), (2.0, 3.0), 1.5, activated)
    f = {n: torch.sigmoid(F) if n in activated else F for n, F in scores.items()}
    inter = 0.0
    for i in range(6):
        for j in range(6):
            distance = math.sqrt(float((f["p"][i] - f["q"][j]).square().sum()))
            apart = max(0.0, 1.5 - distance)
            inter += (distance if CODES[i] == CODES[j] else apart) ** 2 / 36
    assert terms["inter"].item() == pytest.approx(2 * inter)
    intra = sum(cross_entropy(classifiers[n](F), TARGETS[CODES]) for n, F in scores.items())
    torch.testing.assert_close(terms["intra"], 3 * intra)


def test_classifiers_of_ccl_see_scores_before_their_sigmoid():
    views, y = planted()
    model = CCL(3, callbacks=[Inputs()], **NETS).fit(views, y)
    before, model_scores = Inputs.seen, model.project(views, "encode")
    for name, scores in model_scores.items():
        torch.testing.assert_close(torch.sigmoid(before[name]), torch.from_numpy(scores))
    encoders = {"image": nn.Linear(8, 3), "text": nn.Sequential(nn.Linear(7, 3), nn.Sigmoid())}
    model = CCL(3, encoders=encoders, callbacks=[Inputs()], **SMALL).fit(views, y)
    assert Inputs.activated == ["text"]
    torch.testing.assert_close(
        Inputs.seen["image"], torch.from_numpy(model.project(views, "encode")["image"])
    )


class Inputs(Callback):
    """Keeps what the objective sees of all rows."""

    seen: dict[str, torch.Tensor]
    activated: list[str]

    def on_train_end(self, trainer):
        rows = trainer.rows.take(trainer.rows.all())
        with torch.no_grad():
            type(self).seen = trainer.encoders.eval()(rows)
        type(self).activated = trainer.objective.activated


def test_mining_of_two_branch_reaches_its_loss():
    TwoBranch(3, mining=2, callbacks=[Noted()], **NETS, start="random").fit(planted()[0])
    assert Noted.seen[0].keywords["mining"] == 2


def test_two_branch_uses_labels_as_neighbours_if_there_are_any():
    scores = {n: normal(6, 3, seed=s) for s, n in enumerate("pq")}
    model = TwoBranch(3, margin=0.3, backward=1.0, structure=(0.5, 0.25), mining=2)
    loss = model._objective(Encoders({}), {}, torch.Generator())
    same = CODES[:, None] == CODES
    for rows, near in ((batch(), same), (objectives.Batch({}, np.arange(6), 1), torch.eye(6) > 0)):
        expected = functional.structure_preserving(
            *scores.values(), near, margin=0.3, weights=(1.0, 0.5, 0.25), mining=2
        )
        torch.testing.assert_close(loss(scores, rows), expected)


def test_devise_maps_to_the_target_and_leaves_it_as_it_is():
    views, y = planted()
    model = DeViSE(target="image", standardize=False, **SMALL).fit(views, y)
    np.testing.assert_allclose(model.project(views, "encode")["image"], views["image"], rtol=1e-6)
    scores = DeViSE(target="image", **SMALL).fit(views, y).project(views, "encode")["image"]
    standardized = StandardScaler().fit_transform(views["image"])
    np.testing.assert_allclose(scores, standardized, rtol=1e-5, atol=1e-6)
    assert model.n_components_ == 8


def test_posteriors_of_deep_semantic_matching_are_probabilities_of_the_labels():
    views, y = planted()
    scores = DeepSM(**NETS).fit(views, y).transform(views)
    for posterior in scores.values():
        assert posterior.shape == (120, 3)
        np.testing.assert_allclose(posterior.sum(axis=1), 1, atol=1e-5)
    sets = [{c, (c + 1) % 3} if c else {c} for c in y]
    scores = DeepSM(**NETS).fit(views, sets).transform(views)
    assert scores["image"].shape == (120, 3)
    assert not np.allclose(scores["image"].sum(axis=1), 1, atol=1e-3)


# ---- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        WCNN(12, widths=(1, 2), n_filters=3),
        WordCNN(12, 6, length=15, n_filters=3, hidden_size=4),
        WordCNNRNN(12, 6, length=15, n_filters=3, hidden_size=4),
    ],
    ids=lambda n: type(n).__name__,
)
def test_networks_of_words_are_trained_and_saved(network, tmp_path):
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 12, (90, 15))
    counts = np.stack([(tokens == word).sum(axis=1) for word in range(12)], axis=1) + 0.0
    encoders = {"words": network, "counts": nn.Linear(12, 6)}
    model = LearnedRanking(6, encoders=encoders, **SMALL).fit({"words": tokens, "counts": counts})
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca", encoders=encoders)
    np.testing.assert_array_equal(
        back.transform({"words": tokens})["words"], model.transform({"words": tokens})["words"]
    )


def test_what_does_not_fit_is_refused():
    views = planted()[0]
    encoders = {"image": nn.Linear(8, 3), "text": nn.Linear(7, 3)}
    with pytest.raises(ValueError, match=r"there is nothing to scale. Add one, or use CCAL"):
        DSRankingCCA(3, encoders=encoders, **SMALL).fit(views)
    with pytest.raises(ValueError, match="A batch of 3 rows is too small for 3 scores"):
        CCAL(3, **{**NETS, "batch_size": 3}, start="random").fit(views)
    with pytest.raises(ValueError, match=r"target must be one of the views \['image', 'text'\]"):
        DeViSE(target="sound", **SMALL).fit(views)
