"""Deep models in files: the same networks come back and train on, and no code comes along."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch")

from test_persistence import array, assert_equal, node, there_and_back  # noqa: E402
from torch import nn  # noqa: E402

import mvcca.deep  # noqa: E402
from mvcca import CCA, PerView, RetrievalIndex, config_context  # noqa: E402
from mvcca.deep import (  # noqa: E402
    ACMR,
    CCAL,
    CCL,
    CMDN,
    DCCA,
    DCCAE,
    DSDCCA,
    L0CCA,
    MSDS,
    SAM,
    CorrAE,
    CorrNet,
    CrossCorrAE,
    DeepSM,
    DeViSE,
    DSRankingCCA,
    EncoderCCA,
    LearnedRanking,
    SoftCCA,
    SoftHGR,
    TwoBranch,
)
from mvcca.deep.callbacks import (  # noqa: E402
    Callback,
    EarlyStopping,
    ProgressLines,
    Refinement,
    TotalCorrelation,
)
from mvcca.deep.encoders import WCNN, DynamicEncoder, WordCNN, WordCNNRNN  # noqa: E402
from mvcca.deep.layers import (  # noqa: E402
    DynamicallyScaledLinear,
    Standardize,
    StochasticGates,
)
from mvcca.deep.objectives import SoftHGRLoss, TraceNormLoss  # noqa: E402
from mvcca.deep.storage import LAYERS as STORED_LAYERS  # noqa: E402
from mvcca.deep.storage import STORED, argument_names  # noqa: E402
from mvcca.machine.archive import ModelFileError, write_archive  # noqa: E402
from mvcca.persistence import load, save  # noqa: E402

SMALL = {"max_epochs": 2, "batch_size": 40, "device": "cpu", "random_state": 0}
NETS = {**SMALL, "hidden_layer_sizes": (5,)}


def own_encoders() -> dict[str, nn.Module]:
    """Made of what torch has, one layer of them frozen and one of them twice."""
    torch.manual_seed(0)
    relu, shared = nn.ReLU(), nn.Linear(4, 4)
    frozen = nn.Linear(6, 4).requires_grad_(False)
    return {
        "image": nn.Sequential(frozen, relu, shared, relu, nn.Dropout(0.1), shared),
        "text": nn.Sequential(
            nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 2, 3), nn.Flatten(), nn.GELU(), nn.Linear(6, 2)
        ),
    }


ESTIMATORS = [
    DCCA(**NETS),
    DCCAE(**NETS),
    SoftCCA(**NETS),
    SoftHGR(**NETS),
    L0CCA(**NETS),
    CorrNet(**SMALL),
    DSDCCA(warm_up=1, scaling_layer_sizes=(3,), **NETS),
    DSDCCA(warm_up=9, scaling_layer_sizes=(3,), **NETS),
    DSDCCA(warm_up=0, scaling="outputs", scaling_layer_sizes=(3,), **NETS),
    DSDCCA(warm_up=0, scaling="global", **NETS),
    EncoderCCA(objective=TraceNormLoss(1e-2), **NETS),
    LearnedRanking(**NETS),
    CCAL(**NETS),
    CCAL(projection="stored", memory=0.5, **NETS),
    DSRankingCCA(warm_up=1, scaling_layer_sizes=(3,), **NETS),
    DeViSE(**SMALL),
    TwoBranch(**NETS),
    ACMR(**NETS),
    CMDN(**NETS),
    CCL(**NETS),
    DeepSM(**NETS),
    SAM(**NETS),
    MSDS(**NETS),
    CorrAE(**NETS),
    CrossCorrAE(**NETS),
    DCCA(encoders=own_encoders(), **SMALL),
    DCCA(optimizer="adam", hidden_layer_sizes={"image": [4], "text": np.array([3, 3])}, **SMALL),
    DCCA(
        optimizer=torch.optim.AdamW,
        validation_fraction=0.25,
        callbacks=[Refinement(1, 1, 2), ProgressLines()],
        **NETS,
    ),
]
# The first estimator goes through everything; saving the others is slow.
every_estimator = pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(estimator, id=repr(estimator)[:60], marks=pytest.mark.slow if i else ())
        for i, estimator in enumerate(ESTIMATORS)
    ],
)
pytestmark = pytest.mark.filterwarnings("ignore:Batches of", "ignore:No epoch was scaled")
LABELS = np.arange(80) % 3  # which methods without labels ignore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mvcca"


def blocks(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((80, 2))
    widths = {"image": 6, "text": 5}
    return {n: np.tanh(Z @ rng.standard_normal((2, d))) + Z[:, :1] for n, d in widths.items()}


def fitted(estimator: Any, **parameters: Any) -> Any:
    return deepcopy(estimator).set_params(**parameters).fit(blocks(), LABELS)


def assert_same(back: Any, model: Any) -> None:
    """Bitwise the same of rows that both have not seen, and the same table but for the time."""
    for name, rows in blocks(seed=1).items():
        for way in ("transform", "encode"):
            one, other = (getattr(each, way)({name: rows})[name] for each in (back, model))
            assert_equal(one, other)
    columns = model.history_.keys() - {"seconds"}
    assert back.history_.keys() - {"seconds"} == columns
    for column in columns:
        assert_equal(back.history_[column], model.history_[column])


# ---- the same model comes back -------------------------------------------------------------------


@every_estimator
def test_a_fitted_model_comes_back_attribute_by_attribute(estimator, path):
    model = fitted(estimator)
    back = there_and_back(model, path)
    assert_equal(back, model)
    assert_same(back, model)
    assert not any(encoder.training for encoder in back.encoders_.values())


@every_estimator
def test_an_estimator_that_is_not_fitted_comes_back_so_and_fits_to_the_same(estimator, path):
    back = there_and_back(estimator, path)
    assert_equal(back, estimator)
    assert_same(clone(back).fit(blocks(), LABELS), fitted(estimator))


@every_estimator
def test_partial_fit_goes_on_after_loading_as_if_nothing_had_been(estimator, path):
    model = fitted(estimator)
    back = there_and_back(model, path)
    for seed in (2, 3):
        model.partial_fit(blocks(seed), LABELS)
        back.partial_fit(blocks(seed), LABELS)
    assert_same(back, model)
    assert back.history_["epoch"].tolist() == [1, 2, 3, 4]


@every_estimator
def test_without_its_statistic_a_model_transforms_the_same_and_starts_over(estimator, path):
    model = fitted(estimator)
    save(model, path)
    size = path.stat().st_size
    back = there_and_back(model, path, statistic=False)
    assert path.stat().st_size < size
    assert_same(back, model)
    with pytest.warns(UserWarning, match=r"starts over.*statistic=False"):
        back.partial_fit(blocks(), LABELS)
    assert back.history_["epoch"].tolist() == [1]


def test_best_weights_of_a_validation_come_back_and_train_on(path):
    model = deepcopy(ESTIMATORS[0]).set_params(patience=1, max_epochs=6)
    model.fit(blocks(), LABELS, X_val=blocks(4), y_val=LABELS)
    back = there_and_back(model, path)
    assert back.best_epoch_ == model.best_epoch_
    assert_same(back.partial_fit(blocks(), LABELS), model.partial_fit(blocks(), LABELS))


def test_what_is_one_thing_stays_one(path):
    back = there_and_back(fitted(CorrNet(**SMALL)), path)
    image, text = (encoder[1] for encoder in back.encoders_.values())
    assert image.bias is text.bias
    back = there_and_back(fitted(DCCA(encoders=own_encoders(), **SMALL)), path)
    for encoders in (back.encoders, back.encoders_):
        assert encoders["image"][2] is encoders["image"][5]


def test_frozen_layers_stay_frozen_when_trained_on(path):
    model = fitted(DCCA(encoders=own_encoders(), **SMALL))
    back = there_and_back(model, path).partial_fit(blocks(), LABELS)
    assert not back.encoders_["image"][0].weight.requires_grad
    assert torch.equal(back.encoders_["image"][0].weight, model.encoders["image"][0].weight)
    assert not torch.equal(back.encoders_["image"][2].weight, model.encoders_["image"][2].weight)


def test_pipelines_and_indexes_come_back(path):
    model = make_pipeline(PerView(StandardScaler()), clone(ESTIMATORS[0])).fit(blocks(), LABELS)
    index = RetrievalIndex(model).add(blocks(1))
    back = there_and_back(index, path)
    for one, other in zip(back.search(blocks(2), k=3), index.search(blocks(2), k=3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert_equal(there_and_back(model, path).transform(blocks(2)), model.transform(blocks(2)))


@every_estimator
def test_saving_and_loading_draw_nothing_from_torchs_generator(estimator, path):
    before = torch.get_rng_state()
    there_and_back(estimator, path)
    there_and_back(fitted(estimator), path)
    assert torch.equal(torch.get_rng_state(), before)


CALLBACKS = [EarlyStopping(3), Refinement(5, 2, 1, 0.5), TotalCorrelation(1, 0.1), ProgressLines()]


@pytest.mark.parametrize("callback", CALLBACKS, ids=lambda c: type(c).__name__)
def test_callbacks_come_back_with_their_parameters(callback, path):
    back = there_and_back(DCCA(callbacks=(callback,)), path).callbacks[0]
    assert type(back) is type(callback)
    assert vars(back) == vars(callback)


@pytest.mark.parametrize("objective", [TraceNormLoss({"a": 0.1, "b": 1}), SoftHGRLoss()])
def test_plain_objectives_come_back(objective, path):
    back = there_and_back(EncoderCCA(objective=objective), path).objective
    assert_equal(back, objective)


def test_every_deep_estimator_is_tried():
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == set(mvcca.deep.__all__)


# ---- layers --------------------------------------------------------------------------------------

LAYERS: list[tuple[nn.Module, tuple[int, ...]]] = [  # with the shape of a batch, all odd arguments
    (nn.Linear(3, 2, bias=False), (4, 3)),
    (nn.Conv1d(2, 4, 3, 2, 1, 1, 2, False, "reflect"), (4, 2, 9)),
    (nn.Conv2d(1, 2, (3, 5), padding="same"), (4, 1, 6, 6)),
    (nn.Conv3d(1, 2, 2), (4, 1, 3, 3, 3)),
    (nn.ConvTranspose1d(2, 3, 3, 2, 1, 1), (4, 2, 5)),
    (nn.ConvTranspose2d(2, 2, 2, groups=2, dilation=2), (4, 2, 5, 5)),
    (nn.BatchNorm1d(3, 1e-3, None), (4, 3)),
    (nn.BatchNorm2d(2, track_running_stats=False), (4, 2, 3, 3)),
    (nn.BatchNorm3d(2, affine=False), (4, 2, 3, 3, 3)),
    (nn.InstanceNorm1d(2, affine=True), (4, 2, 5)),
    (nn.InstanceNorm2d(2, track_running_stats=True), (4, 2, 3, 3)),
    (nn.LayerNorm((2, 3), 1e-2, bias=False), (4, 2, 3)),
    (nn.GroupNorm(2, 4, 1e-2), (4, 4)),
    (nn.MaxPool1d(2, 1, 1, 1), (4, 2, 5)),
    (nn.MaxPool2d((2, 1), ceil_mode=True), (4, 2, 5, 5)),
    (nn.AvgPool1d(2, 1, 1, count_include_pad=False), (4, 2, 5)),
    (nn.AvgPool2d(2, divisor_override=3), (4, 2, 5, 5)),
    (nn.AdaptiveAvgPool1d(2), (4, 2, 5)),
    (nn.AdaptiveAvgPool2d((None, 2)), (4, 2, 5, 5)),
    (nn.AdaptiveMaxPool1d(2), (4, 2, 5)),
    (nn.AdaptiveMaxPool2d(2), (4, 2, 5, 5)),
    (nn.Flatten(0, -1), (4, 2, 5)),
    (nn.Unflatten(1, (2, 3)), (4, 6)),
    (nn.Dropout(0.3, inplace=True), (4, 3)),
    (nn.Dropout1d(0.2), (4, 3, 2)),
    (nn.Dropout2d(0), (4, 3, 2, 2)),
    (nn.AlphaDropout(0.1), (4, 3)),
    (nn.PReLU(3), (4, 3)),
    (nn.LeakyReLU(0.2), (4, 3)),
    (nn.ELU(2), (4, 3)),
    (nn.CELU(0.5), (4, 3)),
    (nn.GELU("tanh"), (4, 3)),
    (nn.Softplus(2.0, 1), (4, 3)),
    (nn.Hardtanh(-2, 0.5), (4, 3)),
    (nn.Softmax(1), (4, 3)),
    (nn.LogSoftmax(-1), (4, 3)),
    (nn.GLU(1), (4, 4)),
    *((layer(), (4, 3)) for layer in (nn.Identity, nn.Tanh, nn.Sigmoid, nn.LogSigmoid)),
    *((layer(), (4, 3)) for layer in (nn.Softsign, nn.ReLU, nn.ReLU6, nn.SELU, nn.SiLU)),
    *((layer(), (4, 3)) for layer in (nn.Mish, nn.Hardsigmoid, nn.Hardswish)),
    (StochasticGates(3, 0.2, 7), (4, 3)),
    (Standardize(3).learn([np.random.default_rng(0).normal(5, 2, (9, 3))]), (4, 3)),
    (DynamicallyScaledLinear(3, 2, (4, 5), "generated"), (4, 3)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=lambda v: type(v).__name__)
def test_a_layer_comes_back_and_computes_the_same(layer, shape, path):
    torch.manual_seed(0)
    batch = torch.randn(shape)
    layer(batch.clone())  # what it remembers is part of it
    for training in (True, False):
        encoders = {"a": nn.Sequential(layer), "b": nn.Sequential(layer.train(training))}
        back = there_and_back(DCCA(encoders=encoders), path).encoders["a"][0]
        assert_equal(back, layer)
        outs = []
        for each in (back, layer):
            torch.manual_seed(1)
            outs.append(each(batch.clone()))
        assert torch.equal(*outs)


def test_arguments_that_are_lists_or_numbers_of_numpy_come_back_plain(path):
    layers = [
        nn.Unflatten(1, torch.Size([1, 2, 3])),
        nn.MaxPool2d([2, np.int64(1)]),
        nn.Flatten(np.int64(1)),
        nn.Dropout(np.float32(0.25)),
    ]
    back = there_and_back(DCCA(encoders=[nn.Sequential(*layers)]), path).encoders[0].eval()
    assert back(torch.arange(12.0).view(2, 6)).tolist() == [[3, 4, 5], [9, 10, 11]]
    assert back[3].p == 0.25


def test_embeddings_come_back(path):
    layer = nn.Embedding(5, 3, padding_idx=1, max_norm=2.0, norm_type=1.0)
    assert_equal(there_and_back(DCCA(encoders=[layer]), path).encoders[0], layer)


def test_every_layer_of_the_table_is_tried():
    tried = {type(layer) for layer, _ in LAYERS} | {nn.Sequential, nn.Embedding}
    stored = {cls for cls, *_ in STORED.values() if issubclass(cls, nn.Module)}
    elsewhere = {WCNN, WordCNN, WordCNNRNN, DynamicEncoder}  # test_deep_cross_modal.py
    ours = {cls for cls in stored if cls.__module__.startswith(("mvcca.", "torch."))}
    assert ours - tried == {TraceNormLoss, SoftHGRLoss} | elsewhere


@pytest.mark.parametrize("cls", STORED_LAYERS, ids=lambda cls: cls.__name__)
def test_the_table_knows_every_argument_of_a_constructor(cls):
    taken = {
        name
        for name, parameter in inspect.signature(cls.__init__).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    }
    shown_by_tensors = {"init", "_weight", "_freeze", "bias"}
    old_names = {"min_value", "max_value"}
    beside = {"self", "device", "dtype"} | shown_by_tensors | old_names
    assert taken - beside == set(argument_names(cls)) - {"bias"}


# ---- what cannot be stored is refused by name, before anything is written ------------------------


class Mine(nn.Linear):
    pass


class Watch(Callback):
    pass


def hooked() -> nn.Module:
    layer = nn.Linear(6, 2)
    layer.register_forward_hook(lambda *_: None)
    return layer


def noted() -> nn.Module:
    layer = nn.Linear(6, 2)
    layer.forward = lambda X: X
    return layer


def with_tensor() -> nn.Module:
    network = nn.Sequential()
    network.register_parameter("scale", nn.Parameter(torch.ones(2)))
    return network


def deep_of(layer: nn.Module) -> DCCA:
    return DCCA(encoders={"image": nn.Sequential(nn.ReLU(), layer), "text": nn.Identity()})


IMAGE = r"DCCA.encoders\['image'\].layers\['1'\]"
REFUSED = {
    "a layer of one's own in an objective": (
        EncoderCCA(objective=Mine(6, 2)),
        r"EncoderCCA.objective is a test_persistence_deep.Mine, and files hold no code.*register_l",
    ),
    "a hook": (deep_of(hooked()), rf"{IMAGE} cannot be stored: \['_forward_hooks'\] was add"),
    "another forward": (deep_of(noted()), rf"{IMAGE} cannot be stored: \['forward'\] was"),
    "a tensor beside layers": (deep_of(with_tensor()), rf"{IMAGE} .*holds tensors directly"),
    "bfloat16": (deep_of(nn.Linear(2, 2).bfloat16()), rf"{IMAGE}.state\['weight'\] .*BFloat16"),
    "a callback of one's own": (
        DCCA(callbacks=[EarlyStopping(2), Watch()]),
        r"DCCA.callbacks\[1\] is a .*Watch, .*set_params\(callbacks=\(\)\)",
    ),
    "an objective": (EncoderCCA(objective=np.dot), "EncoderCCA.objective is a function"),
    "an optimiser of one's own": (
        DCCA(optimizer=partial(torch.optim.SGD, momentum=0.9)),
        "DCCA.optimizer is a function",
    ),
    "a class": (DCCA(optimizer=Mine), "DCCA.optimizer cannot be stored: files hold no class"),
    "a network alone": (nn.Linear(2, 2), "save takes a model: one of .*CCA, .*DCCA"),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED)
def test_what_only_pickle_could_hold_is_refused_by_name(model, message, path):
    with pytest.raises(TypeError, match=message):
        save(model, path)
    assert os.listdir(path.parent) == []


# ---- parameters that were changed in between -----------------------------------------------------

UNFIT = {
    "hidden_layer_sizes": (7,),
    "n_components": 3,
    "optimizer": "adam",
    "encoders": [nn.Linear(6, 2), nn.Linear(5, 2)],
}
DEFAULT_SIZES = DCCA().hidden_layer_sizes  # which encoders do without


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("saved", [False, True])
def test_partial_fit_names_the_parameter_that_does_not_fit_the_networks(name, saved, path):
    model = fitted(ESTIMATORS[0])
    model = there_and_back(model, path) if saved else model
    sizes = {"hidden_layer_sizes": DEFAULT_SIZES} if name == "encoders" else {}
    before = dict(vars(model.set_params(**{name: UNFIT[name]}, **sizes)))
    changed = ", ".join([name, *sizes])
    with pytest.raises(ValueError, match=f"no longer match the parameters: {changed} changed"):
        model.partial_fit(blocks(), LABELS)
    assert vars(model) == before


def test_a_learning_rate_that_was_changed_in_between_takes_effect():
    slow, stays = fitted(ESTIMATORS[4]), fitted(ESTIMATORS[4])
    slow.set_params(learning_rate=1e-30, weight_decay=0.0).partial_fit(blocks(), LABELS)
    assert slow.history_["learning_rate"].tolist() == [1e-3, 1e-3, 1e-30]
    stays.partial_fit(blocks(), LABELS)
    for name, before in fitted(ESTIMATORS[4]).encoders_.items():
        assert torch.equal(slow.encoders_[name][2][0].weight, before[2][0].weight)
        assert not torch.equal(stays.encoders_[name][2][0].weight, before[2][0].weight)


def test_callbacks_may_come_and_go_in_between(path):
    model = fitted(ESTIMATORS[0], callbacks=[Refinement(9)], validation_fraction=0.25)
    expected = deepcopy(model).partial_fit(blocks(), LABELS)
    model.set_params(callbacks=[Refinement(9), EarlyStopping(9)], patience=5)
    with config_context(progress=True):
        assert_same(there_and_back(model, path).partial_fit(blocks(), LABELS), expected)
    assert_same(
        model.set_params(callbacks=(), patience=None).partial_fit(blocks(), LABELS), expected
    )


# ---- a hostile or damaged file is an error and runs nothing --------------------------------------

ARRAYS = {
    "2x3": np.ones((2, 3), np.float32),
    "3x3": np.ones((3, 3), np.float32),
    "2": np.ones(2, np.float32),
    "3": np.ones(3, np.float32),
    "whole": np.ones((2, 3), np.int64),
}


def parameter(name: str, **parts: Any) -> dict[str, Any]:
    return node("nn.Parameter", **{"array": array(name), "requires_grad": True, **parts})


def items(**parts: Any) -> dict[str, Any]:
    return {"is": "dict", "items": parts}


def linear(weight: Any = parameter("2x3"), training: Any = True, **arguments: Any) -> Any:  # noqa: B008
    arguments = {"in_features": 3, "out_features": 2, "bias": False, **arguments}
    return node(
        "nn.Linear", arguments=items(**arguments), state=items(weight=weight), training=training
    )


def layer_of(kind: str, **arguments: Any) -> dict[str, Any]:
    return node(kind, arguments=items(**arguments), state=items(), training=True)


def gates(**parts: Any) -> dict[str, Any]:
    known = {"sigma": 0.5, "seed": 0, "n_drawn": 1, "means": parameter("3"), "training": True}
    return node("StochasticGates", **{**known, **parts})


def scaled(**parts: Any) -> dict[str, Any]:
    shape = {"is": "tuple", "items": [2, 3]}
    known = {"scaling": "outputs", "scaled": False, "training": True, "shape": shape}
    held = {"linear": with_bias(), "hidden": sequential(a=linear(parameter("3x3"), out_features=3))}
    return node(
        "DynamicallyScaledLinear", **{**known, "held": items(**held, last=with_bias()), **parts}
    )


def with_bias() -> dict[str, Any]:
    arguments = items(in_features=3, out_features=2, bias=True)
    state = items(weight=parameter("2x3"), bias=parameter("2"))
    return node("nn.Linear", arguments=arguments, state=state, training=True)


def sequential(**layers: Any) -> dict[str, Any]:
    return node("nn.Sequential", layers=items(**layers), training=True)


FINE = {
    "linear": linear(),
    "a network": sequential(a=linear(), b={"is": "again", "object": 1}),  # after its weight
    "gates": gates(),
    "scaled": scaled(),
    "dropout": layer_of("nn.Dropout", p=0.5, inplace=False),
}
HOSTILE = {
    "a class that is not in the table": node("nn.Bilinear", in1_features=1),
    "a function of torch": node("nn.utils.skip_init", module_cls=1),
    "a layer too large to be": linear(in_features=10**9, out_features=10**9),
    "a layer larger than can be counted": linear(in_features=10**30),
    "a layer of negative size": linear(in_features=-3),
    "a size that is text": linear(in_features="3"),
    "a size that is a truth": linear(out_features=True),
    "an argument missing": layer_of("nn.Dropout", p=0.5),
    "an argument too many": linear(device="cuda"),
    "an argument of another type": layer_of("nn.Dropout", p=0.5, inplace="yes"),
    "an argument out of range": layer_of("nn.Dropout", p=1.5, inplace=False),
    "a tensor of another shape": linear(parameter("3x3")),
    "a tensor of whole numbers": linear(parameter("whole", requires_grad=False)),
    "whole numbers with gradients": linear(parameter("whole")),
    "a tensor that is no parameter": linear(node("Tensor", array=array("2x3"))),
    "a tensor that is text": linear("2x3"),
    "a tensor that is not there": linear(parameter("missing")),
    "a tensor missing": layer_of("nn.Linear", in_features=3, out_features=2, bias=False),
    "a tensor too many": node(
        "nn.ReLU", arguments=items(inplace=False), state=items(x=parameter("2")), training=True
    ),
    "a mode that is none": linear(training="yes"),
    "gradients that are none": linear(parameter("2x3", requires_grad="no")),
    "a layer that is a number": sequential(a=3),
    "a layer that hides a method": sequential(forward=linear()),
    "a layer that is not made yet": sequential(a={"is": "again", "object": 7}),
    "a layer in itself": {"is": "again", "object": 0},
    "gates of two dimensions": gates(means=parameter("2x3")),
    "gates without means": gates(means=None),
    "gates with noise that is text": gates(sigma="0.5"),
    "gates with a seed that is real": gates(seed=0.5),
    "no such scaling": scaled(scaling="x"),
    "scaling that is neither on nor off": scaled(scaled="no"),
    "parts of another scaling": scaled(scaling="global"),
    "scales of another shape": scaled(scaling="parameters"),
    "hidden layers of another kind": scaled(
        held=items(linear=with_bias(), hidden=sequential(a=sequential()), last=with_bias())
    ),
    "parts that do not fit together": scaled(
        held=items(linear=with_bias(), hidden=sequential(a=with_bias()), last=with_bias())
    ),
}


def write_forged(path: Path, **parts: Any) -> None:
    root = node("DCCA", **parts)
    write_archive(path, ARRAYS, {"kind": "model", "deep": True, "model": root})


@pytest.mark.parametrize("layer", FINE.values(), ids=FINE)
def test_the_parts_of_the_forgeries_are_fine_themselves(layer, path):
    write_forged(path, encoders=items(image=layer))
    assert isinstance(load(path).encoders["image"], nn.Module)


@pytest.mark.parametrize("layer", HOSTILE.values(), ids=HOSTILE)
def test_a_forged_network_is_refused(layer, path):
    write_forged(path, encoders=items(image=layer))
    with pytest.raises(ModelFileError, match=r"model\.mvcca holds a model that cannot be put"):
        load(path)


@pytest.mark.parametrize(
    "parts",
    [
        {"optimizer": node("Optimizer", name="lr_scheduler")},
        {"optimizer": node("Optimizer", name="Tensor")},
        {"callbacks": [node("EarlyStopping", patience="x")]},
        {"callbacks": [node("EarlyStopping", patience=1, run=2)]},
        {"callbacks": [node("WarmUp", n_epochs=1)]},
        {"objective": layer_of("TraceNormLoss", reg="x")},
        {"_statistic": node("TrainingState", tree=items())},
        {"_statistic": node("TrainingState", tree={"is": "dict", "items": {"tensor": "0"}})},
    ],
    ids=str,
)
def test_forged_parts_of_a_training_are_refused(parts, path):
    write_forged(path, **parts)
    with pytest.raises(ModelFileError, match="cannot be put together"):
        load(path)


def test_a_state_of_other_networks_is_refused_when_it_is_gone_on_from(path):
    model = fitted(ESTIMATORS[0])
    model._statistic = fitted(ESTIMATORS[0], hidden_layer_sizes=(9,))._statistic
    back = there_and_back(model, path)
    with pytest.raises(ValueError, match="no longer match the parameters"):
        back.partial_fit(blocks(), LABELS)


def test_deep_classes_are_unknown_to_a_file_that_does_not_say_it_is_deep(path):
    write_archive(path, {}, {"kind": "model", "model": node("DCCA")})
    with pytest.raises(ModelFileError, match="no class 'DCCA' is known"):
        load(path)


# ---- processes -----------------------------------------------------------------------------------


def answer_of(program: str, *arguments: Any) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_a_process_that_has_not_imported_deep_loads_a_deep_model(path):
    model = fitted(ESTIMATORS[0])
    save(model, path)
    program = (
        "import sys, mvcca, numpy as np\n"
        "model = mvcca.load(sys.argv[1])\n"
        "print(model.transform({'text': np.ones((1, 5))})['text'].tolist())"
    )
    expected = model.transform({"text": np.ones((1, 5))})["text"].tolist()
    assert answer_of(program, path).strip() == str(expected)


def test_linear_models_are_saved_and_loaded_without_torch(path):
    save(CCA(1).fit([np.eye(3)[:, :1], np.eye(3)[:, 1:2]]), path)  # where deep is imported
    program = (
        "import sys, mvcca\n"
        "mvcca.save(mvcca.load(sys.argv[1]), sys.argv[1])\n"
        "print('torch' in sys.modules)"
    )
    assert answer_of(program, path).strip() == "False"


def test_without_torch_the_error_says_what_the_file_holds_and_what_to_install(path):
    save(ESTIMATORS[0], path)
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import mvcca\n"
        "try:\n    mvcca.load(sys.argv[1])\n"
        "except ImportError as error:\n    print(error)"
    )
    answer = answer_of(program, path)
    assert "model.mvcca holds a deep model" in answer
    assert "pip install mvcca[deep]" in answer


def test_weights_can_be_read_by_name_elsewhere(path):
    save(fitted(ESTIMATORS[0]), path, statistic=False)
    weight = load_file(path)["DCCA.encoders_['image'].layers['1'].state['weight'].array"]
    assert weight.shape == (5, 6)
