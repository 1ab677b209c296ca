"""The parts that deep methods are made of: samplers by view, steps, terms, monitors, labels."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import FrozenInstanceError
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from deep_estimators import documented  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import Views, config_context, deep, evaluate_retrieval  # noqa: E402
from mvcca.deep import DCCA, DCCAE, L0CCA, EncoderCCA, LearnedRanking  # noqa: E402
from mvcca.deep._training.training import Training  # noqa: E402
from mvcca.deep.callbacks import Callback, Refinement, ValidationScore  # noqa: E402
from mvcca.deep.encoders import Encoders  # noqa: E402
from mvcca.deep.objectives import TraceNormLoss  # noqa: E402
from mvcca.deep.samplers import Sample, ShuffledBatches  # noqa: E402
from mvcca.deep.steps import parameter_groups  # noqa: E402
from mvcca.deep.trainer import Trainer, copied  # noqa: E402

SMALL: dict[str, Any] = {
    "hidden_layer_sizes": (5,),
    "max_epochs": 3,
    "batch_size": 30,
    "random_state": 0,
}


def blocks(n=90, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 2))
    return {
        name: np.tanh(Z @ rng.standard_normal((2, d))) + 0.3 * rng.standard_normal((n, d))
        for name, d in (("image", 6), ("text", 5))
    }


def linear_encoders():
    torch.manual_seed(0)
    return Encoders({"image": nn.Linear(6, 2), "text": nn.Linear(5, 2)})


def distance(scores, batch):  # noqa: ARG001, the signature of objectives
    F, G = scores.values()
    return (F - G).square().mean()


def sgd(lr=0.1):
    return partial(torch.optim.SGD, lr=lr)


# ---- samplers ------------------------------------------------------------------------------------


def two_images_per_text(sample, rng):
    """One text and two images at a time, each at its own position."""
    for _ in range(3):
        texts = rng.permutation(sample.sizes["text"])[:4]
        yield {"text": texts, "image": np.concatenate([texts, (texts + 1) % 90])}


def test_a_sampler_may_choose_other_rows_of_every_view():
    seen = []

    def objective(scores, batch):
        assert {name: len(F) for name, F in scores.items()} == {"text": 4, "image": 8}
        for name, rows in batch.rows.items():
            np.testing.assert_array_equal(batch.views[name], data[name][rows].astype(np.float32))
            np.testing.assert_array_equal(batch.labels[name], labels[name][rows])
        np.testing.assert_array_equal(batch.rows["image"][:4], batch.rows["text"])
        seen.append(batch.rows["text"])
        return scores["text"].square().mean() + scores["image"].square().mean()

    data, labels = blocks(), dict.fromkeys(("image", "text"), np.arange(90) % 7)
    trainer = Trainer(linear_encoders(), objective, sgd(), sampler=two_images_per_text)
    trainer.train(Sample(Views(data), labels), 2)
    assert len(seen) == 6
    assert not np.array_equal(seen[0], seen[3])


def balanced(sample, rng):
    """Two rows of each label in every batch, of unpaired views."""
    order = {name: rng.permutation(size) for name, size in sample.sizes.items()}
    for start in range(2):
        yield {
            name: np.concatenate(
                [rows[sample.labels[name][rows] == code][2 * start :][:2] for code in range(3)]
            )
            for name, rows in order.items()
        }


def test_unpaired_views_are_sampled_by_their_labels():
    codes = {"image": np.arange(60) % 3, "text": np.arange(45)[::-1] % 3}
    views = Views.unpaired({name: blocks()[name][: len(y)] for name, y in codes.items()})

    def objective(scores, batch):
        assert not isinstance(batch.rows, np.ndarray)
        for name, y in batch.labels.items():
            np.testing.assert_array_equal(y, codes[name][batch.rows[name]])
            assert y.tolist() == [0, 0, 1, 1, 2, 2]
        return distance(scores, batch)

    trainer = Trainer(linear_encoders(), objective, sgd(), sampler=balanced)
    trainer.train(Sample(views, codes), 2)
    assert trainer.history[1]["loss"] < trainer.history[0]["loss"]


class Noted(nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def __deepcopy__(self, memo):
        return self

    def forward(self, scores, batch):
        self.seen.append((self.training, batch.rows, batch.labels["text"], batch.n_epochs))
        return distance(scores, batch)


@pytest.mark.parametrize("given", [False, True], ids=["fraction", "X_val"])
def test_labels_of_a_batch_are_those_of_its_rows(given):
    y, y_val, seen = np.random.default_rng(0).integers(0, 4, 90), np.arange(20) % 4, []
    model = EncoderCCA(2, objective=Noted(seen), monitor="valid_map", **SMALL)
    if given:
        model.fit(blocks(), y, X_val=blocks(20), y_val=y_val)
    else:
        model.set_params(validation_fraction=0.25, batch_size=10).fit(blocks(), y)
    vectors = model._labels.vectors.toarray()
    for training, rows, codes, n_epochs in seen:
        expected = y_val if given and not training else y
        np.testing.assert_array_equal(vectors[codes].argmax(axis=1), expected[rows])
        assert n_epochs == 3


# ---- steps ---------------------------------------------------------------------------------------


def test_every_network_may_have_a_learning_rate():
    encoders, start = linear_encoders(), linear_encoders()
    rates, sampler = {"image": 0.5, "text": 0.0}, ShuffledBatches(90)
    trainer = Trainer(encoders, distance, sgd(), sampler=sampler, learning_rates=rates)
    trainer.train(Views(blocks()), 1)
    assert torch.equal(encoders["text"].weight, start["text"].weight)
    tensors = {name: torch.tensor(X, dtype=torch.float32) for name, X in blocks().items()}
    distance(start(tensors), None).backward()
    expected = start["image"].weight - 0.5 * start["image"].weight.grad
    torch.testing.assert_close(encoders["image"].weight, expected)
    model = DCCA(learning_rate={"image": 1e-3, "text": 1e-2}, **SMALL, start="random").fit(blocks())
    assert model.history_["learning_rate"].tolist() == [1e-3] * 3
    with pytest.raises(ValueError, match="learning_rate names the views"):
        model.set_params(learning_rate={"image": 1e-3}).fit(blocks())
    groups = parameter_groups([encoders, nn.Linear(2, 2)], {"image": 0.5, "text": 0.1})
    assert sorted(group["lr"] for group in groups) == [0.1, 0.5]


# ---- terms and monitors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "terms"),
    [
        (DCCAE(**SMALL, start="random"), ("correlation", "reconstruction")),
        (L0CCA(**SMALL), ("correlation", "gates")),
    ],
    ids=["DCCAE", "L0CCA"],
)
def test_the_history_shows_every_term_of_a_loss(estimator, terms):
    history = estimator.set_params(validation_fraction=0.3).fit(blocks()).history_
    for part in ("loss", "valid_loss"):
        np.testing.assert_allclose(
            history[part], sum(history[f"{part}_{term}"] for term in terms), rtol=1e-5
        )


class Scripted(nn.Module):
    """The loss of validation rows falls; their pairs are found in the second epoch only."""

    def forward(self, scores, batch):
        if self.training:
            return 0 * distance(scores, batch)
        return torch.tensor(10.0 - batch.epoch)


class Planted(Callback):
    """Networks that find all pairs after epoch 2, and none after the others."""

    def measure(self, trainer):
        sign = 1.0 if trainer.epoch == 2 else -1.0
        with torch.no_grad():
            for name, factor in (("image", 1.0), ("text", sign)):
                trainer.encoders[name].weight.copy_(factor * torch.eye(3))
        return {}


def same_rows(n, seed):
    X = np.random.default_rng(seed).standard_normal((n, 3))
    return {"image": X, "text": X}


def planted_model(monitor, **parameters):
    networks = [nn.Linear(3, 3, bias=False) for _ in range(2)]
    return EncoderCCA(
        3,
        objective=Scripted(),
        encoders=networks,
        callbacks=(Planted(),),
        monitor=monitor,
        **{**SMALL, "max_epochs": 5, **parameters, "hidden_layer_sizes": "auto"},
    )


def first_coordinates_agree(scores, labels):
    assert labels is None
    return -float(np.abs(scores["image"] - scores["text"]).mean())


def test_the_best_epoch_is_that_of_what_is_monitored():
    """Linear CCA would undo a change of signs, so the scores are compared as they are."""

    class Ends(EncoderCCA):
        def _ending(self):
            from mvcca.deep.endings import as_trained

            return as_trained()

    found = {}
    for monitor in ("valid_loss", "valid_mrr", first_coordinates_agree):
        model = Ends(**planted_model(monitor).get_params(deep=False))
        model.fit(same_rows(60, 0), X_val=same_rows(40, 1))
        found[monitor] = model.best_epoch_
        assert model.history_["valid_loss"].argmin() == 4
        if monitor == "valid_mrr":
            assert model.history_["valid_mrr"].argmax() == 1
            table = evaluate_retrieval(model.transform(same_rows(40, 1)), measures="mrr")
            assert table.mean()["mrr"] == 1
    assert list(found.values()) == [5, 2, 2]


def test_refinement_follows_what_is_monitored():
    class Falling(Callback):
        def measure(self, trainer):
            return {"valid_mrr": 1 / trainer.epoch}

    trainer = Trainer(
        linear_encoders(),
        lambda scores, batch: (
            distance(scores, batch)
            if torch.is_grad_enabled()
            else torch.tensor(-float(batch.epoch))
        ),
        sgd(1.0),
        sampler=ShuffledBatches(30),
        callbacks=[Falling(), Refinement(2, 1, 3)],
        monitor="valid_mrr",
    )
    trainer.train(Views(blocks()), 30, Views(blocks(20)))
    assert trainer.best_epoch == 1
    assert trainer.epoch == 6  # after 3, 4 and 5 back to the first epoch; the end after 6
    rates = [figures["learning_rate"] for figures in trainer.history]
    assert rates == pytest.approx([1, 1, 1, 0.1, 0.01, 0.001])


def test_a_monitor_that_nothing_measures_is_named():
    trainer = Trainer(
        linear_encoders(), distance, sgd(), sampler=ShuffledBatches(30), monitor="valid_mrr"
    )
    with pytest.raises(ValueError, match="monitor='valid_mrr' is not in the history"):
        trainer.train(Views(blocks()), 1, Views(blocks(20)))
    with pytest.raises(ValueError, match='monitor="valid_map" needs labels: pass y to fit'):
        DCCA(monitor="valid_map", validation_fraction=0.3, **SMALL, start="random").fit(blocks())
    with pytest.raises(ValueError, match="ValidationScore needs validation rows"):
        DCCA(callbacks=[ValidationScore("mrr")], **SMALL, start="random").fit(blocks())


def test_mean_average_precision_of_labels_is_that_of_the_model():
    y = np.arange(90) % 3
    model = DCCA(monitor="valid_map", **SMALL, start="random").fit(
        blocks(), y, X_val=blocks(40), y_val=y[:40]
    )
    best = model.history_["valid_map"][model.best_epoch_ - 1]
    table = evaluate_retrieval(blocks(40), y[:40], estimator=model, measures="map")
    assert table.mean()["map"] == pytest.approx(best, abs=1e-4)


def test_functions_that_monitor_get_the_label_vector_of_each_validation_row():
    y, y_val, seen = np.eye(3, dtype=int)[np.arange(90) % 3], np.eye(3, dtype=int)[[0, 2] * 20], []

    def score(scores, labels):
        seen.append({name: csr_array(own).toarray() for name, own in labels.items()})
        return float(len(scores))

    DCCA(monitor=score, **SMALL, start="random").fit(blocks(), y, X_val=blocks(40), y_val=y_val)
    assert seen
    for labels in seen:
        for name in ("image", "text"):
            np.testing.assert_array_equal(labels[name], y_val)


# ---- checkpoints and integers --------------------------------------------------------------------


class Stop(Callback):
    def on_batch_end(self, trainer):
        if trainer.epoch == 2:
            raise KeyboardInterrupt


def test_the_error_of_a_checkpoint_names_what_differs(tmp_path):
    model = DCCA(callbacks=[Stop()], **SMALL, start="random")
    with config_context(checkpoint=tmp_path / "resume"):
        with pytest.raises(KeyboardInterrupt):
            model.fit(blocks())
        changed = DCCA(**SMALL, start="random").set_params(learning_rate=0.5, batch_size=31)
        with pytest.raises(
            ValueError, match=r": learning_rate, batch_size differ|: batch_size, lea"
        ):
            changed.fit(blocks())
        with pytest.raises(ValueError, match="the rows differ"):
            DCCA(**SMALL, start="random").fit(blocks(seed=1))


def test_integers_stay_integers_up_to_a_network_that_takes_them():
    seen = set()

    class Words(nn.Module):
        takes_integers = True

        def __init__(self):
            super().__init__()
            self.vectors = nn.Embedding(7, 4)

        def forward(self, tokens):
            seen.add(tokens.dtype)
            return self.vectors(tokens).mean(dim=1)

    torch.manual_seed(0)
    words = np.random.default_rng(0).integers(0, 7, (90, 5)).astype(np.int16)
    encoders = {"words": Words(), "image": nn.Linear(6, 4)}
    X = {"words": words, "image": blocks()["image"]}
    settings = {**SMALL, "hidden_layer_sizes": "auto", "batch_size": 45}
    models = [
        DCCA(2, encoders=encoders, **settings).fit({**X, "words": words.astype(dtype)})
        for dtype in (np.int16, np.float64)
    ]
    assert seen == {torch.int64}
    scores = [model.transform(X)["words"] for model in models]
    np.testing.assert_array_equal(*scores)
    assert scores[0].dtype == np.float64


def test_a_trainer_made_of_training_parameters_trains_without_the_estimator():
    views = Views(blocks())
    model = DCCA(
        2, standardize=False, learning_rate={"image": 0.01, "text": 1e-3}, **SMALL, start="random"
    )
    model.fit(views)
    training = Training.of(model)
    networks = model._new_networks(torch.Generator().manual_seed(training.seeds[0]))
    before = copied(networks.state_dict())
    trainer = training.trainer(networks, TraceNormLoss(dict.fromkeys(views.names, 1e-4)))
    trainer.train(views, training.max_epochs)
    assert any(not torch.equal(before[key], now) for key, now in networks.state_dict().items())
    for name in views.names:
        for key, weights in model.encoders_[name].state_dict().items():
            assert torch.equal(networks[name].state_dict()[key], weights)


def test_training_parameters_stand_for_what_auto_means_for_the_rows():
    few = Training.of(LearnedRanking(20, start="random").fit(blocks()), seeds=[0] * 4)
    assert (few.batch_size, few.max_epochs, few.monitor) == (160, 40, "valid_mrr")
    assert few.learning_rates is None
    assert few.optimizer.keywords == {"lr": 3e-3, "weight_decay": 1e-5}
    with pytest.raises(FrozenInstanceError):
        few.max_epochs = 1


@pytest.mark.parametrize("kind", [getattr(deep, name) for name in deep.__all__])
def test_documented_defaults_are_those_of_the_constructor(kind):
    defaults = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
    for name, entry in documented(kind, "Parameters").items():
        described = re.match(r"\w+ : .*default=([^\s,]+|\(.*\)|\".*\")\n", entry)
        if name in defaults and described is not None:
            assert ast.literal_eval(described[1]) == defaults[name], name
        elif name in defaults:
            assert defaults[name] in (None, inspect.Parameter.empty), name
