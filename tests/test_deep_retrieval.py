"""Deep methods that learn to retrieve: their losses, and what they find on planted views."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from deep_estimators import Interrupt  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import config_context, evaluate_retrieval, load, save  # noqa: E402
from mvcca.deep import MSDS, SAM, CorrAE  # noqa: E402
from mvcca.deep._methods.corr_ae import correspondence_loss as loss_of_codes  # noqa: E402
from mvcca.deep._methods.msds import OneVersusMoreLoss  # noqa: E402
from mvcca.deep._methods.sam import ScheduledMarginLoss  # noqa: E402
from mvcca.deep.callbacks import Callback  # noqa: E402
from mvcca.deep.functional import other_rows  # noqa: E402
from mvcca.deep.objectives import Batch  # noqa: E402

SMALL: dict[str, Any] = {
    "max_epochs": 3,
    "batch_size": 30,
    "hidden_layer_sizes": (5,),
    "random_state": 0,
}
SAMPLE, PAIRS, CODES = SAM(**SMALL), MSDS(**SMALL, start="random"), CorrAE(**SMALL)
CLASSES = np.arange(90) % 4


def blocks(n=90, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 2)) + np.eye(4, 2)[np.arange(n) % 4]
    return {
        name: np.abs(np.tanh(Z @ rng.standard_normal((2, d))) + 0.3 * rng.standard_normal((n, d)))
        for name, d in (("image", 6), ("text", 5))
    }


def weights_of(model):
    return {
        f"{name}.{key}": tensor
        for name, encoder in model.encoders_.items()
        for key, tensor in encoder.state_dict().items()
    }


def assert_same_weights(one, other):
    theirs = weights_of(other)
    for name, tensor in weights_of(one).items():
        assert torch.equal(tensor, theirs[name]), name


# ---- scheduled adaptive margins ------------------------------------------------------------------


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def sam_loss(margins, share=0.3, n_labels=3, label_vectors=None):
    vectors = torch.eye(n_labels) if label_vectors is None else label_vectors
    return ScheduledMarginLoss(vectors, ("image", "text"), 1.0, margins, share, 0.4, 0.1)


def sam_batch(epoch=1, n_epochs=10, n=7, seed=0):
    rng = np.random.default_rng(seed)
    views = {"image": rng.standard_normal((n, 4)), "text": rng.standard_normal((n, 3))}
    scores = {name: rng.standard_normal((n, 2)) for name in views}
    codes = np.array([0, 1, 2, 0, 1, 0, 2])[:n]

    def tensors(arrays):
        return {name: torch.tensor(array, dtype=torch.float64) for name, array in arrays.items()}

    labels = dict.fromkeys(views, torch.tensor(codes))
    return tensors(scores), Batch(tensors(views), np.arange(n), epoch, n_epochs, labels)


def by_double_loop(scores, batch, margin):
    V, T = (F.numpy() for F in scores.values())
    codes, total = batch.labels["image"].numpy(), 0.0
    for a in range(len(V)):
        for n in range(len(V)):
            if codes[a] != codes[n]:
                m = margin(a, n)
                total += max(0, m - cosine(V[a], T[a]) + cosine(V[a], T[n]))
                total += max(0, m - cosine(T[a], V[a]) + cosine(T[a], V[n]))
    return total / len(V)


@pytest.mark.parametrize(("epoch", "alpha"), [(1, 0.401312), (5, 0.5), (10, 0.622459)])
def test_the_loss_with_scheduled_margins_is_a_double_loop_over_rows(epoch, alpha):
    """α(t) = 1 / (1 + exp(-0.1 (t - 0.4 · 10))) at t = 0, 4 and 9, by hand."""
    scores, batch = sam_batch(epoch)
    loss = sam_loss("scheduled").double()
    assert loss.adaptation(epoch, 10) == pytest.approx(alpha, abs=1e-6)
    distances = np.array([[[0, 0.2, 0.4], [0.2, 0, 0.6], [0.4, 0.6, 0]], np.ones((3, 3)) / 3])
    loss.label_distances[:] = torch.tensor(distances)
    loss.largest[:] = torch.tensor([2.0, 5.0])
    X, Y = (block.numpy() for block in batch.views.values())
    codes = batch.labels["image"].numpy()

    def margin(a, n):
        f_ms = min(np.linalg.norm(X[a] - X[n]) / 2, 1) + min(np.linalg.norm(Y[a] - Y[n]) / 5, 1)
        f_mc = distances[:, codes[a], codes[n]].mean()
        return alpha * (0.3 * f_ms / 2 + 0.7 * f_mc) + (1 - alpha) * 1.0

    expected = by_double_loop(scores, batch, margin)
    assert loss(scores, batch).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("margins", "training"), [("fixed", True), ("scheduled", False)])
def test_without_adaptation_the_margin_is_fixed(margins, training):
    scores, batch = sam_batch(5)
    expected = by_double_loop(scores, batch, lambda a, n: 1.0)  # noqa: ARG005
    loss = sam_loss(margins).double().train(training)
    assert loss(scores, batch).item() == pytest.approx(expected, rel=1e-9)


def test_rows_with_several_labels_are_negatives_if_they_share_none():
    vectors = torch.tensor([[1.0, 1, 0], [0, 1, 0], [0, 0, 1]])
    loss = sam_loss("adaptive", share=0.0, label_vectors=vectors)
    D = torch.tensor([[0.0, 0.1, 0.3], [0.1, 0, 0.5], [0.3, 0.5, 0]])
    loss.label_distances[:] = D
    found = loss.category_margins("image", "text", vectors)
    assert found[0, 2].item() == pytest.approx((0.3 + 0.5) / 2)
    batch = Batch({}, np.arange(3), 1, 1, {"image": torch.arange(3)})
    scores = {name: torch.eye(3) for name in ("image", "text")}
    margins = np.array([[0, 0, 0.4], [0, 0, 0.5], [0.4, 0.5, 0]])
    expected = 2 * np.maximum(0, margins - 1).sum() / 3  # cosine 1 of pairs, 0 of the others
    assert loss(scores, batch).item() == pytest.approx(expected)


class Noted(Callback):
    def __init__(self, found):
        self.found = found

    def on_epoch_begin(self, trainer):
        scores = trainer.scores(trainer.rows.views)
        codes = trainer.rows.labels["image"]
        table = []
        for F in (block.astype(float) for _, block in scores.items()):
            unit = F / np.linalg.norm(F, axis=1, keepdims=True)
            means = [unit[codes == code].mean(axis=0) for code in range(4)]
            table.append([[(1 - cosine(p, q)) / 2 for q in means] for p in means])
        self.found.append((np.array(table), trainer.objective.label_distances.numpy().copy()))

    def __deepcopy__(self, memo):
        return self


class Spoil(Callback):
    """Makes the losses of an epoch infinite, once."""

    spoiled = False

    def on_epoch_begin(self, trainer):
        loss = trainer.objective
        loss.margin = 1.0
        if trainer.epoch == 2 and not self.spoiled:
            self.spoiled, loss.margin = True, math.inf


def test_centroids_are_those_of_the_present_networks_in_every_epoch():
    found: list[Any] = []
    model = clone(SAMPLE).set_params(callbacks=[Noted(found)]).fit(blocks(), CLASSES)
    assert len(found) == 3
    for by_hand, distances in found:
        np.testing.assert_allclose(distances, by_hand, atol=1e-6)
    assert not np.allclose(found[0][1], found[2][1])
    expected = [by_hand.mean(axis=0) for by_hand, _ in found]
    np.testing.assert_allclose(model.category_margins_by_epoch_, expected, atol=1e-6)


def test_margins_of_categories_are_kept_for_every_epoch_wherever_training_resumes(tmp_path):
    options = {"max_epochs": 4, "learning_rate": 0.05, "validation_fraction": 0.3}
    model = clone(SAMPLE).set_params(**options).fit(blocks(), CLASSES)
    margins = model.category_margins_by_epoch_
    assert margins.shape == (4, 4, 4)
    np.testing.assert_array_equal(model.category_margins_, margins[model.best_epoch_ - 1])
    parts = clone(model).set_params(callbacks=[Interrupt(3)])
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            parts.fit(blocks(), CLASSES)
        parts.set_params(callbacks=()).fit(blocks(), CLASSES)
    np.testing.assert_array_equal(parts.category_margins_by_epoch_, margins)
    save(model, tmp_path / "model.mvcca")
    more = load(tmp_path / "model.mvcca")
    np.testing.assert_array_equal(more.category_margins_by_epoch_, margins)
    more.partial_fit(blocks(), CLASSES)
    np.testing.assert_array_equal(more.category_margins_by_epoch_[:4], margins)
    assert more.category_margins_by_epoch_.shape == (5, 4, 4)


def test_margins_of_epochs_before_they_were_kept_are_unknown():
    model = clone(SAMPLE).fit(blocks(), CLASSES)
    (centroids,) = model._statistic.tree["callbacks"]
    centroids[1].clear()  # as in files of earlier versions
    model.partial_fit(blocks(), CLASSES)
    assert np.isnan(model.category_margins_by_epoch_[:3]).all()
    assert np.isfinite(model.category_margins_by_epoch_[3]).all()


def test_an_epoch_that_is_repeated_has_its_last_margins():
    found: list[Any] = []
    model = clone(SAMPLE).set_params(callbacks=[Spoil(), Noted(found)])
    model.fit(blocks(), CLASSES)
    assert len(found) == 4  # one epoch twice
    kept = [by_hand.mean(axis=0) for by_hand, _ in found[:1] + found[2:]]
    np.testing.assert_allclose(model.category_margins_by_epoch_, kept, atol=1e-6)


def test_margins_follow_the_schedule_in_the_history():
    model = clone(SAMPLE).set_params(max_epochs=6, steepness=2.0).fit(blocks(), CLASSES)
    expected = [1 / (1 + math.exp(-2 * (t - 0.4 * 6))) for t in range(6)]
    np.testing.assert_allclose(model.history_["adaptation"], expected)
    assert model.history_["margin"][0] > 0.9 > model.history_["margin"][-1]
    assert model.categories_.tolist() == [0, 1, 2, 3]
    assert (np.diag(model.category_margins_) < 1e-6).all()
    assert model.category_margins_[0, 1] > 0
    static = clone(model).set_params(margins="fixed").fit(blocks(), CLASSES)
    np.testing.assert_allclose(static.history_["margin"], 1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(90), "All rows have the same labels"),
        (np.random.default_rng(0).standard_normal((90, 2)), "real label vectors"),
        ([{"sea", i % 3} for i in range(90)], "share labels with all others"),
        (None, "requires y to be passed"),
    ],
    ids=["one class", "real", "shared", "none"],
)
def test_labels_without_negatives_are_refused(labels, message):
    with pytest.raises(ValueError, match=message):
        clone(SAMPLE).fit(blocks(), labels)


def test_validation_rows_need_labels_where_training_rows_have_them():
    with pytest.raises(ValueError, match="pass y_val to fit"):
        clone(SAMPLE).fit(blocks(), CLASSES, X_val=blocks(20))
    model = clone(SAMPLE).fit(blocks(), CLASSES, X_val=blocks(20), y_val=CLASSES[:20])
    best = model.history_["valid_map"].argmax()
    assert model.best_epoch_ == 1 + best
    table = evaluate_retrieval(model.transform(blocks(20)), CLASSES[:20], measures="map")
    assert table.mean()["map"] == pytest.approx(model.history_["valid_map"][best], abs=1e-5)


# ---- one versus more -----------------------------------------------------------------------------


def test_one_versus_more_is_a_double_loop_and_draws_anew_but_never_the_match():
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((2, 6, 3))
    scores = {"image": torch.tensor(G), "text": torch.tensor(F)}
    loss = OneVersusMoreLoss("text", 4, 1.0, seed=3)
    drawn = []
    for _ in range(3):
        step = loss.n_drawn + 1
        others = other_rows(6, 4, torch.Generator().manual_seed(3 + step)).numpy()
        assert not (others == np.arange(6)[:, None]).any()
        drawn.append(others)
        expected = 0.0
        for i in range(6):
            s = math.exp(cosine(F[i], G[i]))
            more = sum(math.exp(cosine(F[i], G[j])) for j in others[i])
            expected -= math.log(s / (s + more)) / 6
        assert loss(scores, None).item() == pytest.approx(expected, rel=1e-9)
    assert not np.array_equal(drawn[0], drawn[1])
    loss.eval()
    assert loss(scores, None).item() == loss(scores, None).item()


def test_on_separable_pairs_the_published_loss_reaches_its_floor_and_never_falls_below():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = {n: np.where(y, 1.0, -1.0)[:, None] + 0.01 * rng.standard_normal((40, 3)) for n in "ab"}

    model = MSDS(2, n_negatives=1, batch_size=2, max_epochs=1, random_state=0, start="random")
    floor = math.log(1 + math.exp(-2))
    model.set_params(max_epochs=30, learning_rate=0.05, weight_decay=0.0).fit(X)
    assert (model.history_["loss"] > floor).all()
    loss = OneVersusMoreLoss("b", 4, 1.0, seed=0)
    ends = torch.tensor([[1.0, 0], [-1, 0]])
    found = loss({"a": ends, "b": ends}, None).item()
    assert found == pytest.approx(math.log(1 + 4 * math.exp(-2)), abs=1e-6)


def test_the_query_is_the_last_view_unless_named():
    rng = np.random.default_rng(0)
    scores = {name: torch.tensor(rng.standard_normal((5, 2))) for name in ("image", "text")}
    by_text, by_image = (OneVersusMoreLoss(name, 2, 1.0, 0) for name in ("text", "image"))
    assert by_text(scores, None).item() != by_image(scores, None).item()
    model = clone(PAIRS)
    default = model.fit(blocks())
    named = clone(model).set_params(query="text").fit(blocks())
    assert_same_weights(default, named)
    with pytest.raises(ValueError, match="query='sound' is not among the views"):
        clone(model).set_params(query="sound").fit(blocks())


def test_token_sequences_get_a_network_of_words():
    rng = np.random.default_rng(0)
    topics = rng.integers(0, 40, 400)
    words = np.where(rng.random((400, 6)) < 0.8, 2 + topics[:, None], rng.integers(2, 42, (400, 6)))
    words[:, 4:] *= rng.random((400, 1)) < 0.5  # shorter sentences
    X = {"image": np.eye(40)[topics] + 0.1 * rng.standard_normal((400, 40)), "text": words}
    model = MSDS(
        16,
        tokens="text",
        gamma=10.0,
        n_negatives=20,
        optimizer="adam",
        max_epochs=20,
        batch_size=50,
        learning_rate={"image": 1e-3, "text": 3e-3},
        hidden_layer_sizes=(32,),
        random_state=0,
        start="random",
    ).fit(X)
    table = evaluate_retrieval(model.transform(X), topics, measures="map")
    assert table.mean()["map"] > 0.8
    padded = np.concatenate([words, np.zeros((400, 5), dtype=int)], axis=1)
    np.testing.assert_allclose(
        model.encoders_["text"](torch.tensor(padded)).detach(),
        model.encoders_["text"](torch.tensor(words)).detach(),
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="values that are not whole numbers"):
        model.transform({"text": words + 0.5})
    with pytest.raises(ValueError, match="negative values"):
        model.transform({"text": -words})


# ---- correspondence autoencoders -----------------------------------------------------------------


def correspondence_loss(ways, likelihood="gaussian", weight=0.3):
    widths = {"image": 4, "text": 3}
    torch.manual_seed(0)
    decoders = {(p, q): nn.Linear(2, widths[q]).double() for p, q in ways}
    likelihoods = dict.fromkeys(widths, likelihood)
    return partial(
        loss_of_codes, ways=ways, decoders=decoders.values(), likelihood=likelihoods, weight=weight
    ), decoders


OWN = [("image", "image"), ("text", "text")]
CROSS = [("image", "text"), ("text", "image")]


@pytest.mark.parametrize("ways", [OWN, CROSS, OWN + CROSS], ids=["own", "cross", "full"])
def test_autoencoders_reconstruct_and_correspond_as_a_double_loop_says(ways):
    scores, batch = sam_batch()
    loss, decoders = correspondence_loss(ways)
    terms = {"reconstruction": 0.0, "correspondence": 0.0}
    for i in range(7):
        f, g = (F[i].numpy() for F in scores.values())
        terms["correspondence"] += 0.3 * ((f - g) ** 2).sum() / 7
        for p, q in ways:
            decoded = decoders[p, q](scores[p][i]).detach().numpy()
            error = ((batch.views[q][i].numpy() - decoded) ** 2).sum()
            terms["reconstruction"] += 0.7 * error / 7
    found = loss({n: F.float().double() for n, F in scores.items()}, _double(batch))
    assert {name: value.item() for name, value in found.items()} == pytest.approx(terms, rel=1e-5)


def _double(batch):
    """Rows as the trainer gives them, in float32."""
    return Batch({n: X.float() for n, X in batch.views.items()}, batch.rows, 1)


def test_word_counts_have_a_multinomial_likelihood():
    scores, batch = sam_batch()
    counts = torch.tensor(np.random.default_rng(0).integers(0, 5, (7, 3)))
    loss, decoders = correspondence_loss([("text", "text")], "replicated_softmax", 0.0)
    batch = Batch(batch.views | {"text": counts}, batch.rows, 1)
    expected = 0.0
    for i in range(7):
        logits = decoders["text", "text"](scores["text"][i]).detach().numpy()
        log_shares = logits - math.log(np.exp(logits).sum())
        expected -= (counts[i].numpy() * log_shares).sum() / 7
    assert loss(scores, batch)["reconstruction"].item() == pytest.approx(expected, rel=1e-6)


def test_cross_reconstruction_uses_the_code_of_the_other_view_only():
    scores, batch = sam_batch()
    for F in scores.values():
        F.requires_grad_()
    loss, _ = correspondence_loss([("image", "text")], weight=0.0)
    loss(scores, batch)["reconstruction"].backward()
    assert scores["image"].grad.abs().sum() > 0
    assert scores["text"].grad is None


def test_history_shows_the_terms_of_the_loss():
    model = clone(CODES).set_params(validation_fraction=0.2).fit(blocks())
    history = model.history_
    for part in ("", "valid_"):
        total = history[f"{part}loss_reconstruction"] + history[f"{part}loss_correspondence"]
        np.testing.assert_allclose(history[f"{part}loss"], total, rtol=1e-5)


def test_codes_are_ranked_by_euclidean_distance():
    model = clone(CODES).fit(blocks())
    table = evaluate_retrieval(blocks(), estimator=model, measures="mrr")
    scores = model.transform(blocks())
    by_hand = evaluate_retrieval(scores, measures="mrr", similarity="euclidean")
    assert table.mean() == by_hand.mean()
