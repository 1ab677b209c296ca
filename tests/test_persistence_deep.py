"""Deep models in files: the same networks come back and train on, and no code comes along."""

from __future__ import annotations

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
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

torch = pytest.importorskip("torch")

from deep_estimators import DEEP, blocks, small  # noqa: E402
from test_persistence import assert_equal, node  # noqa: E402
from torch import nn  # noqa: E402

from mvcca import PerView, RetrievalIndex, config_context  # noqa: E402
from mvcca.deep import DCCA, EncoderCCA  # noqa: E402
from mvcca.deep.callbacks import Callback, Refinement, ValidationScore  # noqa: E402
from mvcca.deep.objectives import TraceNormLoss  # noqa: E402
from mvcca.machine.archive import ModelFileError, read_archive, write_archive  # noqa: E402
from mvcca.persistence import load, save  # noqa: E402

SMALL = {"max_epochs": 2, "batch_size": 40, "random_state": 0}
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


FIRST = DCCA(**NETS, start="random")
L0 = small("L0CCA", hidden_layer_sizes=(5,))
# All come back in tests/test_deep_contract.py. These are networks and states of another kind.
KINDS = [
    small("DSDCCA", warm_up=9),
    small("DSDCCA", warm_up=0, scaling="outputs"),
    small("DSDCCA", warm_up=0, scaling="global", scaling_layer_sizes=()),
    small("EncoderCCA", objective=TraceNormLoss(1e-2)),
    small("CCAL", projection="stored", memory=0.5),
    small("CrossCorrAE", pretraining="rbm"),
    DCCA(encoders=own_encoders(), **SMALL),
    DCCA(
        optimizer="adam",
        hidden_layer_sizes={"image": [4], "text": np.array([3, 3])},
        **SMALL,
        start="random",
    ),
    DCCA(
        optimizer=torch.optim.AdamW,
        validation_fraction=0.25,
        callbacks=[Refinement(1, 1, 2), ValidationScore("mrr")],
        **NETS,
        start="random",
    ),
]
SELDOM = [pytest.mark.slow, pytest.mark.long]
every_estimator = pytest.mark.parametrize(
    "estimator",
    [
        FIRST,
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS),
        *(
            pytest.param(other, marks=SELDOM)
            for other in DEEP[1:]
            if not isinstance(other, EncoderCCA)
        ),
    ],
    ids=lambda estimator: repr(estimator)[:60],
)
pytestmark = pytest.mark.filterwarnings("ignore:Batches of", "ignore:No epoch was scaled")
LABELS = np.arange(80) % 3  # which methods without labels ignore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mvcca"


def there_and_back(model: Any, path: Path, *, statistic: bool = True, **given: Any) -> Any:
    save(model, path, statistic=statistic)
    return load(path, **given)


def fitted(estimator: Any, **parameters: Any) -> Any:
    return deepcopy(estimator).set_params(**parameters).fit(blocks(), LABELS)


def assert_same(back: Any, model: Any) -> None:
    """Bitwise the same of rows that both have not seen, and the same table but for the time."""
    for name, rows in blocks(seed=1).items():
        for way in ("transform", "encode"):
            one, other = (each.project({name: rows}, way)[name] for each in (back, model))
            assert_equal(one, other)
    columns = model.history_.keys() - {"seconds"}
    assert back.history_.keys() - {"seconds"} == columns
    for column in columns:
        assert_equal(back.history_[column], model.history_[column])


# ---- the same model comes back -------------------------------------------------------------------


def given_for(estimator: Any) -> dict[str, Any]:
    """What `load` needs for an estimator."""
    own = getattr(estimator, "encoders", None)
    return {} if own is None else {"encoders": own}


@every_estimator
def test_a_model_comes_back_whole_or_without_its_statistic_and_trains_on(estimator, path):
    model, given = fitted(estimator), given_for(estimator)
    before = torch.get_rng_state()
    back = there_and_back(model, path, **given)
    size = path.stat().st_size
    bare = there_and_back(model, path, statistic=False, **given)
    unfitted = there_and_back(estimator, path, **given)
    assert torch.equal(torch.get_rng_state(), before)
    assert_equal(back, model)
    assert_equal(unfitted, estimator)
    assert_same(bare, model)
    assert not any(encoder.training for encoder in back.encoders_.values())
    assert_same(clone(unfitted).fit(blocks(), LABELS), model)
    for each in (back, model):
        each.partial_fit(blocks(seed=2), LABELS)
    assert_same(back, model)
    assert back.history_["epoch"].tolist() == [1, 2, 3]
    save(model, path, statistic=False)
    assert path.stat().st_size < size
    with pytest.warns(UserWarning, match=r"starts over.*statistic=False"):
        bare.partial_fit(blocks(), LABELS)
    assert bare.history_["epoch"].tolist() == [1]


def test_best_weights_of_a_validation_come_back_and_train_on(path):
    model = deepcopy(FIRST).set_params(patience=1, max_epochs=6)
    model.fit(blocks(), LABELS, X_val=blocks(seed=4), y_val=LABELS)
    back = there_and_back(model, path, **given_for(model))
    assert back.best_epoch_ == model.best_epoch_
    assert_same(back.partial_fit(blocks(), LABELS), model.partial_fit(blocks(), LABELS))


def test_what_is_one_thing_stays_one(path):
    back = there_and_back(fitted(small("CorrNet")), path)
    image, text = (encoder[1] for encoder in back.encoders_.values())
    assert image.bias is text.bias
    given = own_encoders()
    back = there_and_back(fitted(DCCA(encoders=own_encoders(), **SMALL)), path, encoders=given)
    assert back.encoders is given
    assert back.encoders_["image"][2] is back.encoders_["image"][5]


def test_frozen_layers_stay_frozen_when_trained_on(path):
    model = fitted(DCCA(encoders=own_encoders(), **SMALL))
    back = there_and_back(model, path, encoders=own_encoders()).partial_fit(blocks(), LABELS)
    assert not back.encoders_["image"][0].weight.requires_grad
    assert torch.equal(back.encoders_["image"][0].weight, model.encoders["image"][0].weight)
    assert not torch.equal(back.encoders_["image"][2].weight, model.encoders_["image"][2].weight)


def test_pipelines_and_indexes_come_back(path):
    model = make_pipeline(PerView(StandardScaler()), clone(FIRST)).fit(blocks(), LABELS)
    index = RetrievalIndex(model).add(blocks(seed=1))
    back = there_and_back(index, path)
    for one, other in zip(
        back.search(blocks(seed=2), k=3), index.search(blocks(seed=2), k=3), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert_equal(
        there_and_back(model, path, **given_for(model)).transform(blocks(seed=2)),
        model.transform(blocks(seed=2)),
    )


CALLBACKS = [Refinement(5, 2, 1, 0.5), ValidationScore("total_correlation", column="valid_own")]


@pytest.mark.parametrize("callback", CALLBACKS, ids=lambda c: type(c).__name__)
def test_callbacks_come_back_with_their_parameters(callback, path):
    back = there_and_back(DCCA(callbacks=(callback,), start="random"), path).callbacks[0]
    assert type(back) is type(callback)
    assert vars(back) == vars(callback)


@pytest.mark.parametrize("objective", [TraceNormLoss({"a": 0.1, "b": 1}), TraceNormLoss()])
def test_plain_objectives_come_back(objective, path):
    back = there_and_back(EncoderCCA(objective=objective), path).objective
    assert_equal(back, objective)


class Alike(nn.Module):
    """A loss of one's own: scores of the views are alike."""

    def forward(self, scores, batch):
        first, second = scores.values()
        return (first - second).square().mean()


def test_a_loss_of_ones_own_is_given_again(path):
    model = fitted(EncoderCCA(objective=Alike(), **NETS))
    save(model, path)
    with pytest.raises(
        ModelFileError, match=r"objective .* your own \(.*Alike\).*objective=\.\.\."
    ):
        load(path)
    back = load(path, objective=Alike())
    assert_same(back.partial_fit(blocks(), LABELS), model.partial_fit(blocks(), LABELS))


# ---- what cannot be stored is refused by name, before anything is written ------------------------


class Mine(nn.Linear):
    pass


class Watch(Callback):
    pass


def changed() -> DCCA:
    return fitted(FIRST).set_params(hidden_layer_sizes=(7,))


def with_other_network() -> DCCA:
    model = fitted(FIRST)
    model.encoders_["image"] = nn.Linear(6, 2)
    return model


REFUSED = {
    "a callback of one's own": (
        lambda: DCCA(callbacks=[Refinement(2), Watch()], start="random"),
        r"DCCA.callbacks\[1\] is a .*Watch, .*set_params\(callbacks=\(\)\)",
    ),
    "networks of other parameters": (changed, "view 'image' is not the one that its parameters"),
    "another network": (with_other_network, "view 'image' is not the one that its parameters"),
    "an optimiser of one's own": (
        lambda: DCCA(optimizer=partial(torch.optim.SGD, momentum=0.9), start="random"),
        "DCCA.optimizer is a function",
    ),
    "a class": (
        lambda: DCCA(optimizer=Mine, start="random"),
        "DCCA.optimizer cannot be stored: files hold no cl",
    ),
    "a network alone": (lambda: nn.Linear(2, 2), "save takes a model: one of .*CCA, .*DCCA"),
    "networks to choose from": (
        lambda: GridSearchCV(DCCA(start="random"), {"encoders": [[Mine(6, 2), Mine(5, 2)]]}),
        r"param_grid\['encoders'\]\[0\]\[0\] is a .*Mine, and files hold no code",
    ),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED)
def test_what_only_pickle_could_hold_is_refused_by_name(model, message, path):
    model = model()
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
DEFAULT_SIZES = DCCA(start="random").hidden_layer_sizes  # which encoders do without


@pytest.mark.parametrize("name", UNFIT)
@pytest.mark.parametrize("saved", [False, True])
def test_partial_fit_names_the_parameter_that_does_not_fit_the_networks(name, saved, path):
    model = fitted(FIRST)
    model = there_and_back(model, path, **given_for(model)) if saved else model
    sizes = {"hidden_layer_sizes": DEFAULT_SIZES} if name == "encoders" else {}
    before = dict(vars(model.set_params(**{name: UNFIT[name]}, **sizes)))
    changed = ", ".join([name, *sizes])
    with pytest.raises(ValueError, match=f"no longer match the parameters: {changed} changed"):
        model.partial_fit(blocks(), LABELS)
    assert vars(model) == before


def test_a_learning_rate_that_was_changed_in_between_takes_effect():
    slow, stays = fitted(L0), fitted(L0)
    slow.set_params(learning_rate=1e-30, weight_decay=0.0).partial_fit(blocks(), LABELS)
    assert slow.history_["learning_rate"].tolist() == [3e-3, 3e-3, 1e-30]
    stays.partial_fit(blocks(), LABELS)
    for name, before in fitted(L0).encoders_.items():
        assert torch.equal(slow.encoders_[name][2][0].weight, before[2][0].weight)
        assert not torch.equal(stays.encoders_[name][2][0].weight, before[2][0].weight)


def test_callbacks_may_come_and_go_in_between(path):
    model = fitted(FIRST, callbacks=[Refinement(9)], validation_fraction=0.25)
    expected = deepcopy(model).partial_fit(blocks(), LABELS)
    model.set_params(callbacks=[Refinement(9), ValidationScore("mrr")], patience=5)
    with config_context(progress=True):
        assert_same(
            there_and_back(model, path, **given_for(model)).partial_fit(blocks(), LABELS), expected
        )
    assert_same(
        model.set_params(callbacks=(), patience=None).partial_fit(blocks(), LABELS), expected
    )


# ---- a hostile or damaged file is an error and runs nothing --------------------------------------

FORGED = {  # parts of a fitted model, which ask for other networks than those of the file
    "layers of another size": {"hidden_layer_sizes": {"is": "tuple", "items": [7]}},
    "layers too large to be": {"hidden_layer_sizes": {"is": "tuple", "items": [10**9, 10**9]}},
    "layers larger than can be counted": {"hidden_layer_sizes": [10**30]},
    "layers of negative size": {"hidden_layer_sizes": [-3]},
    "layers that are text": {"hidden_layer_sizes": "many"},
    "more components": {"n_components": 10**9},
    "more features": {"_widths": {"is": "dict", "items": {"image": 10**12, "text": 5}}},
    "another view": {"_widths": {"is": "dict", "items": {"image": 6, "sound": 5}}},
    "no rows": {"_n_rows": None},
    "networks that are none": {"networks": 3},
    "networks without tensors": {"networks": {"is": "dict", "items": {}}},
    "tensors that are none": {
        "networks": {"is": "dict", "items": {"image": ["1.weight"], "text": []}}
    },
    "rows to compare with and no scores": {
        "_probe_rows": {"is": "dict", "items": {"image": [1.0]}}
    },
    "an optimizer that is none": {"optimizer": {"is": "Optimizer", "parts": {"name": "Tensor"}}},
    "a module for an optimizer": {
        "optimizer": {"is": "Optimizer", "parts": {"name": "lr_scheduler"}}
    },
    "a callback with more arguments": {"callbacks": [node("Refinement", patience=1, run=2)]},
    "a callback that is not in the table": {"callbacks": [node("WarmUp", n_epochs=1)]},
    "another code": {"callbacks": [node("Code", parameter="os.system", text="true")]},
    "a training that is none": {"_statistic": node("TrainingState", tree=3)},
}


def test_a_file_may_name_a_device_as_those_of_earlier_versions_do(path):
    model = fitted(FIRST)
    save(model, path)
    arrays, content = read_archive(path)
    content["model"]["parts"]["device"] = "cuda:3"
    write_archive(path, arrays, content)
    assert_equal(load(path).transform(blocks()), model.transform(blocks()))


@pytest.mark.parametrize(
    ("parameter", "silent", "said"), [("final_reg", None, 0.5), ("reduction", "mean", "sum")]
)
def test_a_parameter_that_is_gone_is_said_unless_it_stood_for_what_is_done(
    parameter, silent, said, path
):
    model = fitted(FIRST)
    save(model, path)
    arrays, content = read_archive(path)
    content["model"]["parts"][parameter] = silent
    write_archive(path, arrays, content)
    load(path)
    content["model"]["parts"][parameter] = said
    write_archive(path, arrays, content)
    with pytest.warns(
        UserWarning, match=f"no parameter '{parameter}' any more, which was {said!r}"
    ):
        assert_equal(load(path).transform(blocks()), model.transform(blocks()))


@pytest.mark.parametrize("parts", FORGED.values(), ids=FORGED)
def test_a_forged_model_is_refused(parts, path):
    save(fitted(FIRST), path)
    arrays, content = read_archive(path)
    content["model"]["parts"] |= parts
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match=r"model\.mvcca"):
        load(path)


@pytest.mark.parametrize("name", ["image']['1.weight'].array", "image']['0.mean'].array"])
@pytest.mark.parametrize(
    "forge",
    [lambda X: X[:-1], lambda X: X.astype(np.int64), lambda X: X.astype(float), lambda X: X[None]],
    ids=["shape", "whole numbers", "float64", "dimensions"],
)
def test_a_forged_tensor_is_refused(name, forge, path):
    save(fitted(FIRST), path)
    arrays, content = read_archive(path)
    full = f"DCCA.networks['{name}"
    arrays[full] = forge(arrays[full])
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match="view 'image' has tensors"):
        load(path)


def test_a_state_of_other_networks_is_refused_on_resuming(path):
    model = fitted(FIRST)
    model._statistic = fitted(FIRST, hidden_layer_sizes=(9,))._statistic
    back = there_and_back(model, path, **given_for(model))
    with pytest.raises(ValueError, match="no longer match the parameters"):
        back.partial_fit(blocks(), LABELS)


def test_deep_classes_are_unknown_to_a_file_that_does_not_say_it_is_deep(path):
    write_archive(path, {}, {"kind": "model", "format": 3, "model": node("DCCA")})
    with pytest.raises(ModelFileError, match="no class 'DCCA' is known"):
        load(path)


# ---- processes -----------------------------------------------------------------------------------


def answer_of(program: str, *arguments: Any) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_a_process_that_has_not_imported_deep_loads_a_deep_model(path):
    model = fitted(FIRST)
    save(model, path)
    program = (
        "import sys, mvcca, numpy as np\n"
        "model = mvcca.load(sys.argv[1])\n"
        "print(model.transform({'text': np.ones((1, 5))})['text'].tolist())"
    )
    expected = model.transform({"text": np.ones((1, 5))})["text"].tolist()
    assert answer_of(program, path).strip() == str(expected)


@pytest.mark.slow
def test_without_torch_the_error_says_what_the_file_holds_and_what_to_install(path):
    save(FIRST, path)
    program = (
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import mvcca\n"
        "try:\n    mvcca.load(sys.argv[1])\n"
        "except ImportError as error:\n    print(error)\n"
        "try:\n    from mvcca.deep import DCCA\n"
        "except ImportError as error:\n    print(error)"
    )
    answer = answer_of(program, path)
    assert "model.mvcca holds a deep model" in answer
    assert answer.count("pip install mvcca[deep]") == 2


def test_weights_can_be_read_by_name_elsewhere(path):
    save(fitted(FIRST), path, statistic=False)
    weight = load_file(path)["DCCA.networks['image']['1.weight'].array"]
    assert weight.shape == (5, 6)
