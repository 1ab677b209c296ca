"""Features are standardized in front of networks, and the model carries their means and scales."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

torch = pytest.importorskip("torch")

from deep_estimators import assert_equal_scores  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import Views, load, save  # noqa: E402
from mvcca.deep import DCCA, L0CCA, MSDS, CorrAE, CorrNet, DeepSM, EncoderCCA  # noqa: E402
from mvcca.deep.layers import Standardize  # noqa: E402

SMALL = {"batch_size": 40, "max_epochs": 2, "random_state": 0}
NETS = {**SMALL, "hidden_layer_sizes": (8,)}
WIDTHS = {"image": 5, "text": 4}
N = 120


def blocks(seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(N, 3))
    maps = np.random.default_rng(7)
    return {
        n: Z @ maps.normal(size=(3, d)) + 0.1 * rng.normal(size=(N, d)) for n, d in WIDTHS.items()
    }


class Own(nn.Module):  # no class that files know
    def __init__(self, n_in):
        super().__init__()
        self.linear = nn.Linear(n_in, 2)

    def forward(self, X):
        return torch.tanh(self.linear(X))


def own():
    torch.manual_seed(0)
    return {name: Own(width) for name, width in WIDTHS.items()}


# ---- the layer -----------------------------------------------------------------------------------


def test_rows_get_mean_0_and_variance_1_whatever_the_blocks():
    X = np.random.default_rng(0).normal(3, 5, (100, 4))
    for size in (7, 100):
        layer = Standardize(4).learn(X[i : i + size] for i in range(0, 100, size))
        expected = (X - X.mean(0)) / X.std(0)
        np.testing.assert_allclose(layer(torch.tensor(X)).numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9])
def test_no_digits_are_lost_under_a_mean(offset):
    X = np.random.default_rng(0).normal(size=(100, 4))
    layer = Standardize(4).learn([X + offset])
    rounding = 20 * np.finfo(float).eps * offset
    expected = (X - X.mean(0)) / X.std(0)
    np.testing.assert_allclose(
        layer(torch.tensor(X + offset)).numpy(), expected, rtol=0, atol=1e-6 + rounding
    )


def test_constant_features_are_zero_and_rare_ones_no_outliers():
    X = np.random.default_rng(0).normal(size=(1000, 4))
    X[:, 0] = 0.1 + 0.2
    X[:, 1] = 0
    X[7, 1] = 1e-3  # its deviation is 32 standard deviations
    X[:, 2] = 1e-30  # and of a size that float32 nearly loses
    Z = Standardize(4).learn([X])(torch.tensor(X)).numpy()
    assert np.abs(Z[:, [0, 2]]).max() < 1e-9
    assert np.abs(Z[:, 1]).max() == pytest.approx(10, rel=1e-5)
    assert np.abs(Z[:, 3]).max() < 6


# ---- estimators ----------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [DCCA, CorrAE, L0CCA])
def test_the_scale_and_offset_of_features_change_nothing(cls):
    rng = np.random.default_rng(1)
    factors = {name: (10.0 ** rng.integers(-6, 6, d), 1e3) for name, d in WIDTHS.items()}

    def scaled(X):
        return {n: (B + factors[n][1]) * factors[n][0] for n, B in X.items()}

    model = cls(2, learning_rate=1e-3, **NETS)
    if cls is DCCA:
        model.set_params(start="random")
    plain, other = clone(model).fit(blocks()), clone(model).fit(scaled(blocks()))
    expected, found = plain.transform(blocks(1)), other.transform(scaled(blocks(1)))
    for name, scores in expected.items():
        np.testing.assert_allclose(found[name], scores, atol=1e-3 * np.abs(scores).max())


def test_networks_of_a_model_take_rows_as_they_are():
    X = {name: 30 + 10 * B for name, B in blocks().items()}
    model = DCCA(2, **NETS, start="random").fit(X)
    assert isinstance(model.encoders_["image"][0], Standardize)
    with torch.no_grad():
        found = model.encoders_["image"](torch.tensor(X["image"]))
    np.testing.assert_allclose(found.numpy(), model.project(X, "encode")["image"], atol=1e-6)


@pytest.mark.parametrize("given", ["dense", "sparse", "float32", "unpaired"])
def test_objectives_see_standardized_rows(given, tmp_path):
    X, seen = blocks(), {name: [] for name in WIDTHS}

    class Noted(nn.Module):
        def forward(self, scores, batch):
            for name, rows in batch.views.items():
                seen[name].append((batch.rows, rows.numpy()))
            return sum(F.square().mean() for F in scores.values())

    np.save(tmp_path / "text.npy", X["text"])
    rows = {
        "dense": X,
        "sparse": {n: sp.csr_array(B) for n, B in X.items()},
        "float32": {n: B.astype("f4") for n, B in X.items()},
        "unpaired": {"image": X["image"], "text": np.load(tmp_path / "text.npy", mmap_mode="r")},
    }[given]
    EncoderCCA(2, objective=Noted(), **NETS).fit(rows)
    for name, B in X.items():
        expected = (B - B.mean(0)) / B.std(0)
        for chosen, found in seen[name]:
            np.testing.assert_allclose(found, expected[chosen], atol=1e-5)


def test_means_and_scales_are_those_of_the_training_rows_and_of_the_first_call():
    X, Y = blocks(), {name: 5 + 3 * B for name, B in blocks(1).items()}
    model = DCCA(2, **NETS, start="random").fit(X, X_val=Y)
    layer = model.encoders_["image"][0]
    np.testing.assert_allclose(layer.mean + layer.rest, X["image"].mean(0), rtol=1e-6, atol=1e-6)
    model.partial_fit(Y)
    assert torch.equal(model.encoders_["image"][0].mean, layer.mean)
    model.fit(Y)  # starts over
    mean = model.encoders_["image"][0].mean
    np.testing.assert_allclose(mean, Y["image"].mean(0), rtol=1e-6)


def test_rows_of_custom_networks_words_and_counts_are_left_as_they_are():
    model = DCCA(2, encoders=own(), **SMALL).fit(blocks())
    assert isinstance(model.encoders_["image"], Own)
    plain = DCCA(2, standardize=False, **NETS, start="random").fit(blocks())
    assert isinstance(plain.encoders_["image"][0], nn.Linear)
    counts = {"image": blocks()["image"], "text": np.random.default_rng(0).poisson(2, (N, 6))}
    model = MSDS(2, tokens="text", **NETS, start="random").fit(counts)
    assert isinstance(model.encoders_["image"][0], Standardize)
    assert not any(isinstance(layer, Standardize) for layer in model.encoders_["text"])
    likelihood = {"image": "gaussian", "text": "replicated_softmax"}
    model = CorrAE(2, likelihood=likelihood, **NETS).fit(counts)
    assert isinstance(model.encoders_["image"][0], Standardize)
    assert isinstance(model.encoders_["text"][0], nn.Linear)
    with pytest.raises(ValueError, match=r"view 'text' is for word counts.*standardize='auto'"):
        model.set_params(standardize=True).fit(counts)
    shares = {n: 1 / (1 + np.exp(-B)) for n, B in blocks().items()}
    model = CorrNet(2, output_activation="sigmoid", **SMALL).fit(shares)
    assert isinstance(model.encoders_["text"][0], nn.Linear)
    with pytest.raises(ValueError, match=r"between 0 and 1.*standardize='auto'"):
        model.set_params(standardize=True).fit(shares)


@pytest.mark.parametrize("networks", [own, lambda: {n: nn.Sequential(e) for n, e in own().items()}])
def test_custom_networks_are_standardized_on_request_and_come_back(networks, tmp_path):
    model = DCCA(2, encoders=networks(), standardize=True, **SMALL).fit(blocks())
    assert isinstance(model.encoders_["image"][0], Standardize)
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca", encoders=networks())
    assert_equal_scores(back, model, blocks(1))
    assert_equal_scores(back.partial_fit(blocks()), model.partial_fit(blocks()), blocks(1))


def test_validation_scores_are_of_posteriors_of_standardized_rows():
    X, y = {n: 100 + 10 * B for n, B in blocks().items()}, np.arange(N) % 3
    model = DeepSM(monitor="valid_loss", **NETS).fit(Views(X), y, X_val=X, y_val=y)
    scores = model.transform(X)
    expected = -sum(np.log(P[np.arange(N), y]).mean() for P in scores.values())
    assert model.history_["valid_loss"].min() == pytest.approx(expected, rel=1e-4)
