"""Files of models with the user's own networks, which are given to load again."""

from __future__ import annotations

import copy
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

torch = pytest.importorskip("torch")

from deep_estimators import assert_equal_scores  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import ModelFileError, RetrievalIndex, Views, load, open_matrix, save  # noqa: E402
from mvcca.deep import DCCA, MSDS, SAM  # noqa: E402
from mvcca.deep.encoders import WCNN, WordCNN, WordCNNRNN  # noqa: E402
from mvcca.deep.layers import StochasticGates  # noqa: E402
from mvcca.machine.archive import read_archive, write_archive  # noqa: E402

TRAINED = {"max_epochs": 2, "batch_size": 40, "random_state": 0}


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
    return DCCA(encoders=networks(), **TRAINED | options).fit(blocks())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.mvcca"


@pytest.mark.parametrize("given", [networks, lambda: [*networks().values()]], ids=["dict", "list"])
def test_tensors_of_a_file_are_those_of_given_networks(given, path):
    model, encoders = fitted(), given()
    save(model, path)
    before = copy.deepcopy(encoders)
    back = load(path, encoders=encoders)
    assert_equal_scores(model, back, blocks(1))
    assert not back.encoders_["image"].training
    assert back.encoders_["image"].gates.n_drawn == model.encoders_["image"].gates.n_drawn
    one, other = (m.partial_fit(blocks()) for m in (back, model))
    assert_equal_scores(one, other, blocks(1))
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


class Double(nn.Module):
    """A network that computes in float64."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 2, dtype=torch.float64)

    def forward(self, X):
        return torch.tanh(self.linear(X.double()))


BUILDERS = {
    "float64": Double,
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
    back = load(path, encoders={"image": build(), "text": nn.Linear(6, 2)})
    assert_equal_scores(model, back, blocks(1))
    one, other = (m.partial_fit(blocks()) for m in (back, model))
    assert_equal_scores(one, other, blocks(1))


@pytest.mark.parametrize("as_list", [False, True])
def test_an_unfitted_model_comes_back_and_fits_alike(as_list, path):
    encoders = [*networks().values()] if as_list else networks()
    model = DCCA(encoders=encoders, **TRAINED)
    save(model, path)
    back = load(path, encoders=[*networks().values()] if as_list else networks())
    assert_equal_scores(back.fit(blocks()), model.fit(blocks()), blocks(1))


@pytest.mark.parametrize("network", [WCNN, WordCNN, WordCNNRNN])
def test_networks_of_words_come_back(network, path):
    rng = np.random.default_rng(0)
    words = np.where(np.arange(30) < rng.integers(20, 30, (60, 1)), rng.integers(2, 9, (60, 30)), 0)

    def encoders():
        n_out = network(9).eval()(torch.tensor(words[:2])).shape[1]
        counting = nn.Sequential(network(), nn.Linear(n_out, 2))  # its words are counted by fit
        return {"words": counting, "image": nn.Linear(6, 2)}

    X = {"words": words, "image": rng.standard_normal((60, 6))}
    model = MSDS(encoders=encoders(), **TRAINED).fit(X)
    save(model, path)
    back = load(path, encoders=encoders())
    np.testing.assert_array_equal(back.transform(X)["words"], model.transform(X)["words"])


def test_making_a_network_of_words_for_a_file_takes_no_memory():
    with torch.device("meta"):  # an eighth of a terabyte
        network = WCNN(10**9)
    assert {tensor.device.type for tensor in network.state_dict().values()} == {"meta"}


def test_pipelines_searches_and_indexes_take_networks(path):
    labels = np.arange(80) % 4
    sam = SAM(encoders=networks(), **TRAINED)
    search = GridSearchCV(sam, {"margin": [0.5, 1.0]}, cv=2)
    for model in (
        make_pipeline("passthrough", fitted()),
        search.fit(Views(blocks()), labels),
    ):
        save(model, path)
        assert_equal_scores(model, load(path, encoders=networks()), blocks(1))
    index = RetrievalIndex(fitted()).add(blocks())
    save(index, path)
    back = load(path, encoders=networks())
    query = {"text": blocks(1)["text"]}
    np.testing.assert_array_equal(
        back.search(query, "image", k=3)[1], index.search(query, "image", k=3)[1]
    )


def test_a_file_without_its_networks_says_which_are_missing(path):
    save(fitted(), path)
    message = (
        r"encoders .* your own \(image: .*Gated, text: torch.*Sequential\).*load\(path, encoders="
    )
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_networks_that_a_file_does_not_need_are_refused(path):
    save(DCCA(hidden_layer_sizes=(3,), **TRAINED, start="random").fit(blocks()), path)
    with pytest.raises(ValueError, match=r"holds no encoders of your own\. Leave out encoders"):
        load(path, encoders=networks())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: networks(width=5), "network of view 'image' has tensors"),
        (lambda: networks() | {"image": nn.Linear(6, 2)}, "network of view 'image' has tensors"),
        (lambda: networks() | {"image": "Gated"}, "must be a torch.nn.Module, got 'Gated'"),
        (lambda: networks() | {"image": Gated}, "must be a torch.nn.Module"),
        (lambda: {"image": Gated()}, "encoders .*'text'"),
        (lambda: networks() | {"sound": nn.Linear(6, 2)}, "encoders .*'sound'"),
        (lambda: [*networks().values()] * 2, "Expected 2 encoders, got 4"),
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
    with pytest.raises(ModelFileError, match=r"scores are of shape \(8, 8\), not \(8, 2\)"):
        load(path, encoders=networks() | {"image": Wide()})


# ---- networks whose tensors fit, but whose layers differ -----------------------------------------


def image_network(*middle):
    torch.manual_seed(0)
    middle = middle or (nn.Tanh(),)
    return nn.Sequential(nn.Linear(6, 5), Twice(), *middle, nn.Dropout(0.1), nn.Linear(5, 2))


class Functional(nn.Module):
    """A network whose activation is no layer."""

    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.activation = nn.Linear(6, 5), nn.Linear(5, 2), activation

    def forward(self, X):
        return self.last(self.activation(self.first(X)))


class Inplace(Functional):
    def forward(self, X):
        return self.last(self.activation(self.first(X).mul_(2)).clamp_(max=0.5))


def own_networks(image):
    return {"image": image, "text": nn.Linear(6, 2)}


def saved(path, image, rows=None, **options):
    model = DCCA(encoders=own_networks(image), **TRAINED, **options)
    save(model.fit(blocks() if rows is None else rows), path)
    return model


DIFFERENT = {
    "an activation": (
        image_network(),
        lambda: image_network(nn.ReLU()),
        r"'image' is not the one.*off by \d.*\(2\): Tanh\(\) in the file is \(2\): ReLU\(\) here",
    ),
    "a slope": (
        image_network(nn.LeakyReLU(0.01)),
        lambda: image_network(nn.LeakyReLU(0.4)),
        r"LeakyReLU\(negative_slope=0.01\) in the file is \(2\): LeakyReLU\(neg.*=0.4\) here",
    ),
    "a layer more in the file": (
        image_network(nn.ModuleList([nn.Tanh()])[0]),
        lambda: image_network(nn.Identity()),
        r"\(2\): Tanh\(\) in the file is \(2\): Identity\(\) here",
    ),
    "code between layers": (
        Functional(torch.tanh),
        lambda: Functional(torch.relu),
        r"its scores of 8 training rows are off by \d",
    ),
    "code that writes in place": (
        Functional(torch.tanh),
        lambda: Inplace(torch.tanh),
        r"Functional\( in the file is Inplace\( here",
    ),
}


@pytest.mark.parametrize(("image", "other", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_network_that_computes_something_else_is_refused_by_module(image, other, message, path):
    saved(path, image)
    with pytest.raises(ModelFileError, match=message):
        load(path, encoders=own_networks(other()))


class Words(nn.Module):
    """The mean vector of the words of a text, through an activation."""

    takes_integers = True

    def __init__(self, activation):
        super().__init__()
        self.vectors, self.activation = nn.Embedding(30, 2, padding_idx=0), activation

    def forward(self, X):
        lengths = (X > 0).sum(1, keepdim=True)
        assert (lengths > 0).all()  # rows of zeros would not do
        return self.activation(self.vectors(X).sum(1) / lengths)


@pytest.mark.parametrize(
    "kind", ["words", "words in files", "sparse", "float32", "files", "unpaired"]
)
def test_networks_are_compared_on_rows_of_any_kind(kind, path, tmp_path):
    rows, build = blocks(), image_network
    other = image_network(nn.ReLU())
    if kind.startswith("words"):
        build, other = lambda: Words(nn.Tanh()), Words(nn.Hardtanh())
        rows["image"] = np.random.default_rng(0).integers(1, 30, size=(80, 4))
    elif kind == "sparse":
        rows["image"] = csr_array(rows["image"] * (rows["image"] > 0))
    elif kind == "float32":
        rows = {name: X.astype(np.float32) for name, X in rows.items()}
    if kind.endswith("files"):
        np.save(tmp_path / "image.npy", rows["image"])
        rows["image"] = open_matrix(tmp_path / "image.npy")
    torch.manual_seed(0)
    if kind == "unpaired":
        model = SAM(encoders=own_networks(build()), **TRAINED)
        model.fit(Views.unpaired(rows), {name: np.arange(80) % 4 for name in rows})
        save(model, path)
    else:
        model = saved(path, build(), rows)
    one, back = (m.transform(rows) for m in (model, load(path, encoders=own_networks(build()))))
    np.testing.assert_array_equal(back["image"], one["image"])
    with pytest.raises(ModelFileError, match="'image' is not the one that was saved"):
        load(path, encoders=own_networks(other))


def test_settings_that_matter_in_training_only_are_warned_of(path):
    model = saved(path, image_network())
    other = image_network()
    other[3] = nn.Dropout(0.5)
    with pytest.warns(UserWarning, match=r"may train differently.*Dropout\(p=0.1.*p=0.5"):
        assert_equal_scores(model, load(path, encoders=own_networks(other)), blocks(1))


class Noisy(nn.Module):
    """Dropout that never stops, of torch's generator or of NumPy's."""

    def __init__(self, draw):
        super().__init__()
        self.draw, self.linear = draw, nn.Linear(6, 2)

    def forward(self, X):
        return self.linear(X) + self.draw(len(X))


def test_noise_in_evaluation_mode_does_not_make_networks_differ(path):
    saved(path, Noisy(lambda n: torch.randn(n, 1)))
    load(path, encoders=own_networks(Noisy(lambda n: torch.randn(n, 1))))
    with pytest.raises(ModelFileError, match="'image' is not the one that was saved"):
        load(path, encoders=own_networks(Noisy(lambda _: 3)))
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="'image' gives other scores each time"):
        saved(path, Noisy(lambda n: torch.from_numpy(rng.normal(size=(n, 1))).float()))
    with pytest.warns(UserWarning, match="'image' could not be compared with the one"):
        load(path, encoders=own_networks(Noisy(lambda _: 0)))


class Half(nn.Module):
    """A network that computes in bfloat16."""

    def __init__(self, activation, factor=1.0):
        super().__init__()
        self.linear, self.activation, self.factor = nn.Linear(6, 2), activation, factor

    def forward(self, X):
        with torch.autocast("cpu", torch.bfloat16):
            return self.factor * self.activation(self.linear(X))


def test_differences_that_may_be_rounding_are_warned_of(path):
    saved(path, Half(nn.Tanh()))
    with pytest.warns(UserWarning, match="scores are off by 0.0.*rounding only in few bits"):
        load(path, encoders=own_networks(Half(nn.Tanh(), 1.01)))  # three bits of bfloat16
    with pytest.raises(ModelFileError, match=r"ReLU\(\) here"):
        load(path, encoders=own_networks(Half(nn.ReLU())))
    saved(path, image_network())
    with torch.autocast("cpu", torch.bfloat16):  # of the program around it
        load(path, encoders=own_networks(image_network()))


class Counting(nn.Module):
    """A network with running statistics, in which the mode matters."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(6), nn.Linear(6, 2)

    def forward(self, X):
        return self.linear(self.norm(X))


def test_networks_in_training_mode_are_compared_in_evaluation_mode_and_left_alone(path):
    model = saved(path, Counting())
    model.encoders_["image"].train()
    save(model, path)
    encoders = own_networks(given := Counting())
    before = torch.get_rng_state()
    back = load(path, encoders=encoders)
    assert torch.equal(torch.get_rng_state(), before)
    assert given.training
    assert not back.encoders_["image"].training
    assert model.encoders_["image"].training
    one, other = (m.encoders_["image"].norm for m in (back, model))
    assert torch.equal(one.running_mean, other.running_mean)
    assert one.num_batches_tracked == other.num_batches_tracked == 4


def test_models_without_own_networks_keep_no_rows(path):
    model = DCCA(hidden_layer_sizes=(5,), **TRAINED, start="random").fit(blocks())
    save(model, path)
    assert not model._probe_rows
    assert read_archive(path)[1]["model"]["parts"]["probes"] == {"is": "dict", "items": {}}


FORGED = {
    ("probes", "items", "image", "parts", "layers"): [None, 3],
    ("probes", "items", "image", "parts", "scores"): [[1.0], "1", {"is": "dict", "items": {}}],
    ("probes", "items"): [{}],
    ("networks", "items", "image"): [{"is": "dict", "items": {}}, ["linear.weight"], None],
}


@pytest.mark.parametrize(
    ("place", "value"), [(place, value) for place, values in FORGED.items() for value in values]
)
def test_forged_parts_of_a_network_are_refused(place, value, path):
    saved(path, image_network())
    arrays, content = read_archive(path)
    *outer, last = place
    inner = reduce(getitem, outer, content["model"]["parts"])
    assert last in inner
    inner[last] = value
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError):
        load(path, encoders=own_networks(image_network()))


def test_the_class_in_a_file_is_only_shown(path):
    save(fitted(), path)
    arrays, content = read_archive(path)
    content["model"]["parts"]["encoders"]["parts"]["text"] = "os.system"
    write_archive(path, arrays, content)
    assert_equal_scores(fitted(), load(path, encoders=networks()), blocks(1))


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
