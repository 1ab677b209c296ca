"""Files of models whose networks have layers of the user's own classes."""

from __future__ import annotations

import copy
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from mvcca import ModelFileError, RetrievalIndex, Views, load, save  # noqa: E402
from mvcca._archive import read_archive, write_archive  # noqa: E402
from mvcca.deep import CCAL, DCCA, SAM  # noqa: E402
from mvcca.deep.layers import StochasticGates  # noqa: E402

TRAINED = {"max_epochs": 2, "batch_size": 40, "device": "cpu", "random_state": 0}


class Twice(nn.Module):
    """2x, a layer without tensors."""

    def forward(self, X):
        return 2 * X


class Gated(nn.Module):
    """A network that looks at values, holds a buffer and has a custom state."""

    def __init__(self, width=6, n_out=2, share=0.1):
        super().__init__()
        self.gates, self.twice = StochasticGates(width), Twice()
        self.linear, self.dropout = nn.Linear(width, n_out), nn.Dropout(share)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, X):
        if float(X.detach().sum()) > 1e9:
            raise ValueError("not in this test")
        return self.twice(self.linear(self.dropout(self.gates(X))))


def networks(**options):
    torch.manual_seed(0)
    inside = nn.Sequential(nn.Linear(6, 4), Twice(), nn.Linear(4, 2))
    return {"image": Gated(**options), "text": inside}


def blocks(seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((80, 2))
    return {name: Z @ rng.standard_normal((2, 6)) for name in ("image", "text")}


def fitted(**options):
    encoders = networks()
    encoders["image"].linear.bias.requires_grad_(False)
    return DCCA(encoders=encoders, **TRAINED | options).fit(blocks())


def assert_equal_scores(one, other):
    for name, scores in one.transform(blocks(1)).items():
        np.testing.assert_array_equal(other.transform(blocks(1))[name], scores)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mvcca"


@pytest.mark.parametrize("given", [networks, lambda: [*networks().values()]], ids=["dict", "list"])
def test_tensors_of_a_file_are_those_of_given_networks(given, path):
    model, encoders = fitted(), given()
    save(model, path)
    before = copy.deepcopy(encoders)
    back = load(path, encoders=encoders)
    assert_equal_scores(model, back)
    assert not back.encoders_["image"].linear.bias.requires_grad
    assert not back.encoders_["image"].training
    assert back.encoders_["image"].gates.n_drawn == model.encoders_["image"].gates.n_drawn
    one, other = (m.partial_fit(blocks()) for m in (back, model))
    assert_equal_scores(one, other)
    for network, same in zip(
        encoders.values() if isinstance(encoders, dict) else encoders,
        before.values() if isinstance(before, dict) else before,
        strict=True,
    ):  # the model has copies
        assert all(map(torch.equal, network.parameters(), same.parameters()))


class Last(nn.Module):
    """The last state of a recurrent layer of torch over the features."""

    def __init__(self):
        super().__init__()
        self.recurrent = nn.LSTM(1, 2, batch_first=True)

    def forward(self, X):
        return self.recurrent(X[:, :, None])[0][:, -1]


BUILDERS = {
    "no additional tensors": lambda: nn.Sequential(nn.Linear(6, 2), Twice()),
    "weight norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 2)),
    "a layer that files do not know": Last,
    "tied weights": lambda: (
        lambda layer: nn.Sequential(Twice(), layer, nn.ReLU(), layer, nn.Linear(6, 2))
    )(nn.Linear(6, 6)),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_networks_of_any_layers_come_back(build, path):
    model = DCCA(encoders={"image": build(), "text": nn.Linear(6, 2)}, **TRAINED).fit(blocks())
    save(model, path)
    back = load(path, encoders={"image": build()})
    assert_equal_scores(model, back)
    one, other = (m.partial_fit(blocks()) for m in (back, model))
    assert_equal_scores(one, other)


@pytest.mark.parametrize("as_list", [False, True])
def test_an_unfitted_model_comes_back_and_fits_alike(as_list, path):
    encoders = [*networks().values()] if as_list else networks()
    model = DCCA(encoders=encoders, **TRAINED)
    save(model, path)
    others = networks() if not as_list else [*networks().values()]
    for network in others.values() if not as_list else others:
        nn.init.zeros_(next(network.parameters()))
    back = load(path, encoders=others)
    assert_equal_scores(back.fit(blocks()), model.fit(blocks()))


def test_only_views_with_own_layers_need_a_network(path):
    encoders = networks() | {"text": nn.Linear(6, 2)}
    model = CCAL(encoders=encoders, **TRAINED).fit(blocks())
    save(model, path)
    assert_equal_scores(model, load(path, encoders={"image": Gated()}))
    assert_equal_scores(model, load(path, encoders=networks()))


def test_pipelines_searches_and_indexes_take_networks(path):
    labels = np.arange(80) % 4
    sam = SAM(encoders=networks(), **TRAINED)
    search = GridSearchCV(sam, {"margin": [0.5, 1.0]}, cv=2)
    for model in (
        make_pipeline("passthrough", fitted()),
        search.fit(Views(blocks()), labels),
    ):
        save(model, path)
        assert_equal_scores(model, load(path, encoders=networks()))
    index = RetrievalIndex(fitted()).add(blocks())
    save(index, path)
    back = load(path, encoders=networks())
    query = {"text": blocks(1)["text"]}
    np.testing.assert_array_equal(
        back.search(query, "image", k=3)[1], index.search(query, "image", k=3)[1]
    )


def test_a_file_without_its_networks_says_which_are_missing(path):
    save(fitted(), path)
    with pytest.raises(ModelFileError, match=r"view 'image' is a .*Gated.*load\(path, encoders="):
        load(path)
    with pytest.raises(ModelFileError, match=r"view 'text' is a torch.*Sequential"):
        load(path, encoders={"image": Gated()})
    with pytest.raises(ModelFileError, match=r"view 'text' is a torch.*Sequential"):
        load(path, encoders=[Gated()])
    program = f"from mvcca import load; load({str(path)!r})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "encoders=" in answer.stderr.splitlines()[-1]


def test_networks_that_a_file_does_not_need_are_refused(path):
    save(DCCA(hidden_layer_sizes=(3,), **TRAINED).fit(blocks()), path)
    with pytest.raises(ValueError, match=r"holds whole networks\. Leave out encoders"):
        load(path, encoders=networks())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: networks(width=5), "network given for view 'image' takes tensors"),
        (lambda: networks() | {"image": nn.Linear(6, 2)}, "view 'image' takes tensors"),
        (lambda: networks() | {"image": "Gated"}, "must be a torch.nn.Module, got 'Gated'"),
        (lambda: networks() | {"image": Gated}, "must be a torch.nn.Module"),
    ],
)
def test_other_networks_are_refused(given, message, path):
    save(fitted(), path)
    with pytest.raises(ModelFileError, match=message):
        load(path, encoders=given())


def test_networks_of_other_behaviour_are_refused_where_it_shows(path):
    class Wide(Gated):
        def forward(self, X):
            return torch.cat([super().forward(X), X], dim=1)

    save(fitted(), path)
    with pytest.raises(ModelFileError, match="8 outputs of the network of 'image' meet 2"):
        load(path, encoders=networks() | {"image": Wide()})


FORGED = {  # of the trained network of the images
    "state": [
        {"is": "dict", "items": {}},
        ["linear.weight"],
        {"is": "dict", "items": {"linear.weight": "a"}},
    ],
    "modes": [{"is": "dict", "items": {}}, None, {"is": "dict", "items": {"": "eval"}}],
    "position": [-9, 10**30, "0", None],
    "view": ["sound", 3, ["image"]],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in FORGED.items() for value in values]
)
def test_forged_networks_are_refused(name, value, path):
    save(fitted(), path)
    arrays, content = read_archive(path)
    content["model"]["parts"]["encoders_"]["items"]["image"]["parts"][name] = value
    encoders = networks()
    if name == "position":  # decides only where the view is not named, or networks are listed
        encoders = [*encoders.values()]
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError):
        load(path, encoders=encoders)


def test_a_forged_width_takes_no_memory(path):
    save(fitted(), path)
    arrays, content = read_archive(path)
    content["model"]["parts"]["_widths"]["items"]["image"] = 10**12
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match="features are tried"):
        load(path, encoders=networks())


def test_the_class_in_a_file_is_only_shown(path):
    save(fitted(), path)
    arrays, content = read_archive(path)
    content["model"]["parts"]["encoders_"]["items"]["image"]["parts"]["class"] = "os.system"
    write_archive(path, arrays, content)
    assert_equal_scores(fitted(), load(path, encoders=networks()))


class Returning(nn.Module):
    """A linear network that returns what `wrap` makes of its scores, in evaluation mode or not."""

    def __init__(self, width, wrap, always=True):
        super().__init__()
        self.linear, self.wrap, self.always = nn.Linear(width, 3), wrap, always

    def forward(self, X):
        scores = self.linear(X)
        return self.wrap(scores) if self.always or self.training else scores


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize(
    ("wrap", "found"),
    [
        (lambda scores: (scores, scores.mean()), "tuple of Tensor, Tensor"),
        (lambda scores: scores.detach().numpy(), "ndarray"),
        (lambda scores: {"scores": scores}, "dict"),
        (lambda _: None, "NoneType"),
    ],
)
def test_networks_that_do_not_return_a_tensor_are_named_with_their_view(wrap, found, always):
    views = blocks()
    name, width = next((name, X.shape[1]) for name, X in views.items())
    encoders = networks() | {name: Returning(width, wrap, always)}
    message = rf"encoder of view '{name}' \(Returning\) must return a tensor .* got {found}\."
    with pytest.raises(TypeError, match=message):
        DCCA(2, encoders=encoders, max_epochs=1, random_state=0).fit(views)
