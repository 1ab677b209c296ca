"""Deep estimators: what they find on planted views, and what is theirs alone.

That they are as all estimators are is asked in tests/test_contract.py.
"""

from __future__ import annotations

import pickle
import re
from contextlib import nullcontext
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from deep_estimators import Interrupt, assert_equal_scores, blocks  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import CCA, MVCCA, Views, config_context  # noqa: E402
from mvcca.datasets import make_gaussian_views, make_nonlinear_views  # noqa: E402
from mvcca.deep import (  # noqa: E402
    DCCA,
    DCCAE,
    DSDCCA,
    L0CCA,
    CorrNet,
    DSRankingCCA,
    EncoderCCA,
    SoftCCA,
    SoftHGR,
)
from mvcca.deep.callbacks import Callback, ValidationScore  # noqa: E402
from mvcca.deep.endings import linear_cca  # noqa: E402
from mvcca.deep.layers import DynamicallyScaledLinear  # noqa: E402
from mvcca.machine import devices  # noqa: E402
from mvcca.measures import column_correlations  # noqa: E402


def alike(scores, batch):  # noqa: ARG001, the signature of objectives
    """Scores of variance 1, by batch norm, that are alike."""
    first, *others = scores.values()
    return sum((first - other).square().mean() for other in others)


SMALL = {"max_epochs": 2, "batch_size": 40, "random_state": 0}
NETS = {**SMALL, "hidden_layer_sizes": (5,)}
ESTIMATORS = [
    DCCA(**NETS, start="random"),
    DCCAE(**NETS, start="random"),
    SoftCCA(**NETS, start="random"),
    SoftHGR(**NETS, start="random"),
    L0CCA(**NETS),
    CorrNet(**SMALL),
    DSDCCA(warm_up=1, scaling_layer_sizes=(3,), **NETS),
    EncoderCCA(objective=alike, **NETS),
]
ABLATIONS = [
    DSDCCA(warm_up=warm_up, scaling=scaling, scaling_start=start, scaling_layer_sizes=(3,), **NETS)
    for warm_up, scaling, start in [
        (0, "parameters", "default"),
        (1, "parameters", "one"),
        (1, "outputs", "default"),
        (1, "global", "default"),
        (1, "generated", "default"),
    ]
]
one_of_them = ESTIMATORS[0]  # where what they share is asked
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def assert_same_scores(one, other, rtol=1e-5):
    assert list(one) == list(other)
    for name in one:
        scale = np.abs(other[name]).max()
        np.testing.assert_allclose(one[name], other[name], rtol=0, atol=rtol * scale)


# ---- what they find ------------------------------------------------------------------------------


def test_linear_networks_find_linear_ccas_total_correlation():
    data = make_gaussian_views(3000, n_features=(8, 7), random_state=0)
    train, test = data.views[:2000], data.views[2000:]
    model = DCCA(
        3,
        hidden_layer_sizes=(),
        reg=0.0,
        batch_size=500,
        max_epochs=20,
        learning_rate=1e-2,
        random_state=0,
        start="random",
    ).fit(train)
    linear = CCA(3).fit(train)
    ours, theirs = (m.canonical_correlations_.sum() for m in (model, linear))
    assert ours == pytest.approx(theirs, rel=0.01)
    assert model.score(test) == pytest.approx(linear.score(test), rel=0.01)


NONLINEAR = {
    "hidden_layer_sizes": (32,),
    "batch_size": 100,
    "max_epochs": 25,
    "learning_rate": 1e-2,
    "random_state": 0,
}


def test_corrnet_makes_hidden_units_of_either_view_correlate_on_new_rows():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((900, 3))
    views = Views([1 / (1 + np.exp(-Z @ rng.standard_normal((3, d)))) for d in (8, 7)])
    options = {"output_activation": "sigmoid", **SMALL, "max_epochs": 15, "batch_size": 100}
    h = CorrNet(4, **options).fit(views[:600]).project(views[600:], "encode")
    apart = CorrNet(4, correlation=0.0, **options).fit(views[:600]).project(views[600:], "encode")
    together = column_correlations(h["view0"], h["view1"]).sum()
    assert together > 3.6
    assert together > column_correlations(apart["view0"], apart["view1"]).sum()


@pytest.mark.slow
def test_gates_close_on_features_that_say_nothing():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(500)
    X, Y = (rng.standard_normal((500, 6)) for _ in range(2))
    X[:, 0] += 3 * z
    Y[:, 2] += 3 * z
    options = {**NONLINEAR, "max_epochs": 50}
    model = L0CCA(1, gate_penalty=0.3, gate_sigma=0.5, **options).fit([X, Y])
    assert np.flatnonzero(model.gates_["view0"]).tolist() == [0]
    assert np.flatnonzero(model.gates_["view1"]).tolist() == [2]
    with pytest.raises(ValueError, match="all gates have closed: lower gate_penalty"):
        L0CCA(1, gate_penalty=100.0, **options).fit([X, Y])


@pytest.mark.parametrize("estimator", ABLATIONS, ids=repr)
def test_scales_are_those_with_which_the_network_gives_its_outputs(estimator):
    model = clone(estimator).fit(blocks())
    layers = [m for m in model.encoders_["image"] if isinstance(m, DynamicallyScaledLinear)]
    assert [(layer.scaled, layer.scaling) for layer in layers] == [(True, estimator.scaling)]
    scales = model.scales(blocks())
    for name, X in blocks().items():
        *trunk, layer, _ = model.encoders_[name]
        with torch.no_grad():
            z = nn.Sequential(*trunk)(torch.tensor(X, dtype=torch.float32))
            wanted = layer(z)
        parameters = scales[name]
        assert parameters.shape == (80, 2, 6)
        if estimator.scaling != "generated":
            W, b = (p.detach().numpy() for p in layer.linear.parameters())
            parameters = parameters * np.column_stack([W, b])
        found = np.einsum("nkd,nd->nk", parameters, np.column_stack([z, np.ones(80)]))
        np.testing.assert_allclose(found, wanted, atol=1e-5)
    alone = model.scales({"text": blocks()["text"][:3]})
    np.testing.assert_allclose(alone["text"], scales["text"][:3], atol=1e-6)


# ---- the ending ----------------------------------------------------------------------------------


@every_estimator
def test_the_ending_is_linear_cca_of_what_the_networks_make_of_all_rows(estimator):
    model = clone(estimator).fit(blocks())
    inner = {name: H.astype(float) for name, H in model.project(blocks(), "encode").items()}
    linear = MVCCA(2, reg=1e-4).fit(inner)
    np.testing.assert_allclose(
        model.canonical_correlations_, linear.canonical_correlations_, rtol=1e-6
    )
    assert_same_scores(model.transform(blocks()), linear.transform(inner))


# ---- input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [e for e in ESTIMATORS if not isinstance(e, CorrNet)],
    ids=lambda e: type(e).__name__,
)
def test_three_views_are_joined(estimator):
    X = blocks(names=("image", "text", "sound"))
    model = clone(estimator).set_params(max_epochs=15, learning_rate=2e-2).fit(X)
    assert model.score(X) > 0.5


def test_tensors_come_back_as_tensors():
    X = blocks()
    model = clone(one_of_them).fit(X)
    tensors = {name: torch.tensor(block) for name, block in X.items()}
    assert_same_scores(
        {name: S.numpy() for name, S in model.transform(tensors).items()}, model.transform(X)
    )


def test_rows_are_scored_one_by_one_as_all_together():
    X = blocks()
    model = clone(one_of_them).fit(X)
    with config_context(block_rows=7):
        assert_same_scores(model.transform(X), clone(one_of_them).fit(X).transform(X), 1e-4)


def test_unpaired_views_are_refused_without_advice_to_fit_no_rows():
    unpaired = Views.unpaired(blocks())
    with pytest.raises(ValueError, match=r"no object is in two views\. MLCCA and") as error:
        clone(one_of_them).fit(unpaired)
    assert "seen.all" not in str(error.value)


# ---- validation ----------------------------------------------------------------------------------


def test_a_fraction_of_rows_set_aside_is_validation():
    model = clone(one_of_them).set_params(validation_fraction=0.25).fit(blocks())
    assert np.isfinite(model.history_["valid_loss"]).all()
    assert model.best_epoch_ == 1 + model.history_["valid_total_correlation"].argmax()
    by_loss = clone(one_of_them).set_params(
        validation_fraction=0.25, monitor="valid_loss", max_epochs=9
    )
    history = by_loss.fit(blocks()).history_
    assert by_loss.best_epoch_ == 1 + history["valid_loss"].argmin()
    assert "valid_total_correlation" not in history
    assert "valid_loss" not in clone(one_of_them).fit(blocks()).history_


def test_a_loss_whose_scale_drifts_does_not_keep_an_untrained_epoch():
    views = make_nonlinear_views(900, random_state=0).views
    train, test = views[:600], views[600:]
    options = {**NONLINEAR, "hidden_layer_sizes": (16, 16), "learning_rate": 1e-3}

    class Drifting(nn.Module):
        """The distance of views; in evaluation it grows with every epoch."""

        def forward(self, scores, batch):
            return alike(scores, batch) + (0.0 if self.training else 10.0 * batch.epoch)

    model = EncoderCCA(1, objective=Drifting(), validation_fraction=0.2, **options).fit(train)
    assert model.history_["valid_loss"].argmin() == 0
    assert model.best_epoch_ == 1 + model.history_["valid_total_correlation"].argmax() > 1
    model.set_params(monitor="valid_loss").fit(train)
    assert model.best_epoch_ == 1
    assert model.set_params(monitor="valid_correlation").fit(train).score(test) > 0.9


def test_the_correlation_that_is_monitored_is_that_of_the_model():
    model = clone(one_of_them).set_params(max_epochs=5).fit(blocks(), X_val=blocks(50, seed=1))
    best = model.history_["valid_total_correlation"][model.best_epoch_ - 1]
    assert 2 * model.score(blocks(50, seed=1)) == pytest.approx(best, rel=1e-4)


def test_a_total_correlation_of_the_users_is_the_one_that_is_monitored():
    measured = ValidationScore("total_correlation", linear_cca(1, 1e-4))
    model = clone(one_of_them).set_params(callbacks=[measured], max_epochs=5)
    history = model.fit(blocks(), X_val=blocks(50, seed=1)).history_
    assert (history["valid_total_correlation"] <= 1).all()
    assert model.best_epoch_ == 1 + history["valid_total_correlation"].argmax()


def test_given_validation_rows_train_nothing():
    plain = clone(one_of_them).set_params(max_epochs=1).fit(blocks())
    for other in (blocks(60, seed=1), list(blocks(60, seed=1).values())):
        watched = clone(one_of_them).set_params(max_epochs=1)
        watched.fit(blocks(), X_val=other)
        assert_same_scores(watched.transform(blocks()), plain.transform(blocks()), 0)


def test_patience_stops_and_wants_validation_rows():
    model = clone(one_of_them).set_params(patience=2, max_epochs=200, learning_rate=0.1)
    with pytest.raises(ValueError, match=r"patience needs validation rows.* X_val to fit, or"):
        model.fit(blocks())
    model.fit(blocks(), X_val=blocks(50, seed=3))
    assert len(model.history_["epoch"]) == model.best_epoch_ + 2 < 200


# ---- networks of one's own -----------------------------------------------------------------------


class Convolution(nn.Module):
    """Rows as 2 x 3 images; one parameter is frozen."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 2)
        self.conv.bias.requires_grad_(False)
        self.out = nn.Linear(8, 2)

    def forward(self, X):
        return self.out(self.conv(X.view(-1, 1, 2, 3)).flatten(1))


def test_any_module_is_an_encoder_and_is_not_touched_itself():
    torch.manual_seed(0)
    encoders = [Convolution(), nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 3))]
    before = [p.clone() for encoder in encoders for p in encoder.parameters()]
    model = DCCA(2, encoders=encoders, **{**SMALL, "max_epochs": 20}).fit(blocks())
    after = [p for encoder in encoders for p in encoder.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert model.score(blocks()) > 0.8
    assert model.weights_["text"].shape == (3, 2)
    assert torch.equal(model.encoders_["image"].conv.bias, encoders[0].conv.bias)
    assert not torch.equal(model.encoders_["image"].conv.weight, encoders[0].conv.weight)
    again = clone(model).fit(blocks())
    assert_same_scores(again.transform(blocks()), model.transform(blocks()), 0)


def test_hidden_layers_may_differ_by_view():
    sizes = {"image": (7,), "text": ()}
    model = DCCA(2, **{**NETS, "hidden_layer_sizes": sizes}, start="random").fit(blocks())
    widths = {
        name: [m.out_features for m in net if isinstance(m, nn.Linear)]
        for name, net in model.encoders_.items()
    }
    assert widths == {"image": [7, 2], "text": [2]}


OF_OWN_NETWORKS = [
    (cls, "hidden_layer_sizes", (4,)) for cls in (DCCA, SoftCCA, SoftHGR, L0CCA, DSDCCA, EncoderCCA)
]
OF_OWN_NETWORKS += [
    (DSDCCA, "scaling_layer_sizes", (5,)),
    (DSDCCA, "scaling", "outputs"),
    (DSDCCA, "scaling_start", "one"),
    (DSRankingCCA, "scaling_start", "one"),
]


def scaled_encoders():
    generator = torch.Generator().manual_seed(0)
    layers = (DynamicallyScaledLinear(d, 2, (4,), generator=generator) for d in (6, 5))
    return [nn.Sequential(layer, nn.BatchNorm1d(2)) for layer in layers]


@pytest.mark.parametrize(("cls", "name", "value"), OF_OWN_NETWORKS)
def test_parameters_of_networks_beside_encoders_are_refused(cls, name, value):
    objective = {"objective": alike} if cls is EncoderCCA else {}
    model = cls(encoders=scaled_encoders(), **objective, **SMALL)
    assert model.fit(blocks()).score(blocks()) > 0.1
    with pytest.raises(ValueError, match=rf"^{name}=.* encoders are given\. Leave out {name}"):
        model.set_params(**{name: value}).fit(blocks())


def test_decoders_of_dccae_have_hidden_layers_beside_encoders():
    model = DCCAE(encoders=scaled_encoders(), **NETS).fit(blocks())
    other = clone(model).set_params(hidden_layer_sizes=(3,)).fit(blocks())
    assert not np.array_equal(model.history_["loss"], other.history_["loss"])


def test_any_class_of_optimiser_is_taken():
    model = DCCA(2, **NETS, start="random").set_params(
        optimizer=torch.optim.AdamW, learning_rate=0.01
    )
    assert model.fit(blocks()).history_["learning_rate"] == pytest.approx([0.01] * 2)


WHITENING = [e for e in ESTIMATORS if isinstance(e, DCCA | DCCAE | L0CCA | DSDCCA)]
OTHERS = [e for e in ESTIMATORS if e not in WHITENING]
every_other = pytest.mark.parametrize("estimator", OTHERS, ids=lambda e: type(e).__name__)


@every_other
def test_more_components_than_memory_holds_are_refused_before_networks_are_made(
    estimator, monkeypatch
):
    monkeypatch.setattr("mvcca.deep._training.host._LITTLE", 0)
    monkeypatch.setattr("mvcca.deep._training.host.available_bytes", lambda: 1e4)
    monkeypatch.setattr(torch.nn.utils, "skip_init", None)
    with pytest.raises(MemoryError, match=r"n_components=1000000000 needs about 199,712 bytes"):
        clone(estimator).set_params(n_components=10**9).fit(blocks())


@every_other
def test_more_components_than_rows_are_clipped_with_a_warning(estimator):
    with pytest.warns(UserWarning, match="n_components=1000000000 is more than these"):
        model = clone(estimator).set_params(n_components=10**9).fit(blocks())
    assert model.n_components_ <= 79
    assert model.project(blocks(), "encode")["image"].shape == (80, 79)


@pytest.mark.parametrize("estimator", WHITENING, ids=lambda e: type(e).__name__)
def test_more_components_than_a_batch_has_rows_are_refused_before_networks_are_made(
    estimator, monkeypatch
):
    monkeypatch.setattr(torch.nn.utils, "skip_init", None)
    with pytest.raises(ValueError, match=r"A batch of 40 rows .* for 1000000000 scores"):
        clone(estimator).set_params(n_components=10**9).fit(blocks())


def test_mixed_precision_comes_close():
    plain = DCCA(2, **{**NETS, "max_epochs": 20}, start="random").fit(blocks())
    mixed = clone(plain).set_params(mixed_precision=True).fit(blocks())
    assert mixed.score(blocks()) == pytest.approx(plain.score(blocks()), abs=0.03)
    assert not np.array_equal(mixed.history_["loss"], plain.history_["loss"])


# ---- what is refused ----------------------------------------------------------------------------


def missing_in_text():
    index = np.arange(80)[:, None].repeat(2, axis=1)
    index[5, 1] = -1
    return Views(blocks(), index)


IMAGE, TEXT = blocks().values()
LINEAR = [nn.Linear(6, 2), nn.Linear(5, 2)]
HIDDEN = "hidden_layer_sizes must be numbers of units"
REFUSED = {  # parameters of DCCA; what differs in a call of fit
    "objects of one view": (
        {}, {"X": missing_in_text()}, r"DCCA learns from .* but 1 of 80 are seen in some only"
    ),
    "one view to validate": ({}, {"X_val": {"image": IMAGE}}, "must hold paired rows of the views"),
    "another view to validate": (
        {}, {"X_val": {"image": IMAGE, "sound": TEXT}}, "Unknown view 'sound'"
    ),
    "other features to validate": ({}, {"X_val": {"image": TEXT, "text": TEXT}}, "has 5 features"),
    "a matrix to validate": ({}, {"X_val": IMAGE}, "X_val must hold all views"),
    "one encoder": ({"encoders": LINEAR[:1]}, {}, "Expected 2 encoders, got 1"),
    "an encoder of one view": (
        {"encoders": {"image": LINEAR[0]}}, {}, r"names the views \['image'\], expected"
    ),
    "a function": ({"encoders": [LINEAR[0], torch.tanh]}, {}, "'text' must be a torch.nn.Module"),
    "scores of three dimensions": (
        {"encoders": [LINEAR[0], nn.Unflatten(1, (5, 1))]}, {}, r"\(n_rows, n_scores\), got shape"
    ),
    "no units": ({"hidden_layer_sizes": (5, 0)}, {}, HIDDEN),
    "half a unit": ({"hidden_layer_sizes": (2.5,)}, {}, HIDDEN),
    "less than no units": ({"hidden_layer_sizes": (-1,)}, {}, HIDDEN),
    "no units in a view": ({"hidden_layer_sizes": {"image": (3,), "text": (0,)}}, {}, HIDDEN),
    "few rows in a batch": (
        {"batch_size": 4, "n_components": 5}, {}, "A batch of 4 rows is too small"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(parameters, given, message):
    sizes = {} if "encoders" in parameters else {"hidden_layer_sizes": (5,)}
    model = DCCA(**SMALL, start="random").set_params(**sizes | parameters)
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        model.fit(**{"X": blocks()} | given)


@pytest.mark.parametrize(
    ("device", "kind", "message"),
    [
        ("cupy:0", ValueError, "device='cupy:0' asks for CuPy. Use device='cuda'"),
        ("cuda:77", RuntimeError, "device='cuda:77' is a GPU that torch does not find"),
    ],
)
def test_networks_refuse_a_device_that_only_cupy_finds(device, kind, message, monkeypatch):
    monkeypatch.setattr(devices, "_find", lambda _: ("CuPy", None, 0))
    monkeypatch.setattr("mvcca.base.estimator.working_on", lambda _: nullcontext())
    with pytest.raises(kind, match=re.escape(message)), config_context(device=device):
        DCCA(**SMALL, start="random").fit(blocks())


class Places(Callback):
    """Where networks are trained."""

    seen: ClassVar[list[str]] = []

    def on_train_begin(self, trainer):
        self.seen.append(trainer.device.type)


def test_networks_train_on_the_configured_device():
    model = DCCA(**SMALL, start="random", callbacks=[Places()])
    plain = clone(model).fit(blocks())
    with config_context(device="torch:cpu"):
        assert_equal_scores(model.fit(blocks()), plain, blocks())
    with config_context(device=None):
        model.fit(blocks())
    assert Places.seen == ["cpu", "cpu", "cuda" if torch.cuda.is_available() else "cpu"]


def test_views_and_layers_that_a_method_cannot_do_without_are_named():
    with pytest.raises(ValueError, match="CorrNet takes 2 views, got 3"):
        CorrNet(**SMALL).fit(blocks(names=("image", "text", "sound")))
    with pytest.raises(ValueError, match="DynamicallyScaledLinear"):
        DSDCCA(2, encoders=LINEAR, **SMALL).fit(blocks())
    model = clone(one_of_them).partial_fit(blocks())
    with pytest.raises(ValueError, match="Every batch must hold the views"):
        model.partial_fit({"image": IMAGE})


# ---- training that goes on, and what it says -----------------------------------------------------


@every_estimator
def test_partial_fit_keeps_the_state_of_the_optimiser_which_pickles_hold(estimator):
    whole = clone(estimator).set_params(max_epochs=3).fit(blocks())
    parts = pickle.loads(pickle.dumps(clone(estimator).fit(blocks()))).partial_fit(blocks())
    np.testing.assert_array_equal(parts.history_["loss"], whole.history_["loss"])
    assert_same_scores(parts.transform(blocks()), whole.transform(blocks()), 0)
    fresh = clone(estimator)
    for _ in range(3):
        fresh.partial_fit(blocks())
    np.testing.assert_array_equal(fresh.history_["loss"], whole.history_["loss"])


def test_an_interrupted_partial_fit_leaves_the_networks_as_they_were():
    model = clone(one_of_them).set_params(callbacks=[Interrupt(3)]).fit(blocks())
    before = model.transform(blocks())
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(blocks())
    assert_same_scores(model.transform(blocks()), before, 0)


def test_history_is_a_table():
    import pandas as pd

    model = clone(one_of_them).fit(blocks(), X_val=blocks(50, seed=1))
    table = pd.DataFrame(model.history_)
    assert table.shape == (2, 7)
    assert table["epoch"].tolist() == [1, 2]


def test_a_line_per_epoch_is_written_on_request(capsys):
    clone(one_of_them).fit(blocks())
    assert capsys.readouterr().err == ""
    with config_context(progress=True):
        clone(one_of_them).fit(blocks())
    lines = capsys.readouterr().err.splitlines()
    started = [line.split("  ")[0] for line in lines if line.startswith("epoch")]
    assert started == ["epoch 1/2", "epoch 2/2"]
