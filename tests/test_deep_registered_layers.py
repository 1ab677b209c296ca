"""Files hold layers of registered classes, and say what is wrong with others."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mvcca import ModelFileError, load, save  # noqa: E402
from mvcca.deep import DCCA, MSDS  # noqa: E402
from mvcca.deep.encoders import WCNN, WordCNN, WordCNNRNN  # noqa: E402
from mvcca.deep.storage import STORED, register_layer  # noqa: E402

TRAINED = {"max_epochs": 2, "batch_size": 40, "device": "cpu", "random_state": 0}


@register_layer
class Residual(nn.Module):
    """x + a dropout of a linear map of x."""

    def __init__(self, width, share=0.1):
        super().__init__()
        self.width, self.share = width, share
        self.linear, self.dropout = nn.Linear(width, width), nn.Dropout(share)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, X):
        return X + self.dropout(self.linear(X))


def blocks(seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((80, 2))
    return {name: Z @ rng.standard_normal((2, 6)) for name in ("image", "text")}


def test_registered_layers_come_back_and_train_on(tmp_path):
    networks = [nn.Sequential(Residual(6, 0.2), nn.Linear(6, 2)) for _ in range(2)]
    networks[0][0].linear.bias.requires_grad_(False)
    model = DCCA(encoders=networks, **TRAINED).fit(blocks())
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca")
    for name, scores in model.transform(blocks(1)).items():
        np.testing.assert_array_equal(back.transform(blocks(1))[name], scores)
    layer = back.encoders_["image"][0]
    assert isinstance(layer, Residual)
    assert (layer.width, layer.share, layer.training) == (6, 0.2, False)
    assert not layer.linear.bias.requires_grad
    one, other = (m.partial_fit(blocks()).transform(blocks(1)) for m in (back, model))
    np.testing.assert_array_equal(one["text"], other["text"])


@pytest.mark.parametrize("network", [WCNN, WordCNN, WordCNNRNN])
def test_networks_of_words_come_back(network, tmp_path):
    rng = np.random.default_rng(0)
    words = np.where(np.arange(30) < rng.integers(20, 30, (60, 1)), rng.integers(2, 9, (60, 30)), 0)
    encoder = network(9)
    n_out = encoder.eval()(torch.tensor(words[:2])).shape[1]
    encoders = {"words": nn.Sequential(encoder, nn.Linear(n_out, 2)), "image": nn.Linear(6, 2)}
    X = {"words": words, "image": rng.standard_normal((60, 6))}
    model = MSDS(encoders=encoders, **TRAINED).fit(X)
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca")
    np.testing.assert_array_equal(back.transform(X)["words"], model.transform(X)["words"])


def test_a_process_that_has_not_registered_a_class_says_its_name(tmp_path):
    networks = [nn.Sequential(Residual(6), nn.Linear(6, 2)) for _ in range(2)]
    save(DCCA(encoders=networks, **TRAINED).fit(blocks()), tmp_path / "model.mvcca")
    program = f"from mvcca import load; load({str(tmp_path / 'model.mvcca')!r})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert answer.returncode
    assert "Residual" in answer.stderr.splitlines()[-1]


def test_classes_that_are_no_layers_or_hide_another_are_refused():
    with pytest.raises(TypeError, match=r"Expected a subclass of torch\.nn\.Module"):
        register_layer(dict)
    other = type("WCNN", (nn.Module,), {})
    with pytest.raises(ValueError, match=r"Files know .*WCNN.* Rename the class"):
        register_layer(other)
    assert STORED["WCNN"][0] is WCNN


def test_arguments_that_are_no_attributes_are_named(tmp_path):
    @register_layer
    class Forgetful(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(6, 2)

        def forward(self, X):
            return self.linear(X)

    model = DCCA(encoders=[Forgetful(3), Forgetful(3)], **TRAINED).fit(blocks())
    with pytest.raises((TypeError, ModelFileError), match=r"no attributes for .*\['width'\]"):
        save(model, tmp_path / "model.mvcca")
    del STORED["Forgetful"]


def test_making_a_network_of_words_for_a_file_takes_no_memory():
    with torch.device("meta"):  # an eighth of a terabyte
        network = WCNN(10**9)
    assert {tensor.device.type for tensor in network.state_dict().values()} == {"meta"}
