"""What training and files of every deep estimator must do, over the whole of `mvcca.deep`.

tests/test_contract.py has what all estimators share.
"""

from __future__ import annotations

import inspect
import re
from numbers import Real
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import check_estimator

torch = pytest.importorskip("torch")

from deep_estimators import (  # noqa: E402
    DEEP,
    Interrupt,
    assert_equal_scores,
    documented,
    own_entries,
    small,
)
from estimators import PAIRS_NEEDED, Trait, crossed, name_of, over  # noqa: E402

import mvcca.deep.bases  # noqa: E402
from mvcca import (  # noqa: E402
    JoinViews,
    ModelFileError,
    SplitViews,
    Views,
    config_context,
    load,
    retrieval_scorer,
    save,
)
from mvcca.deep import SoftCCA  # noqa: E402
from mvcca.deep.objectives import TraceNormLoss  # noqa: E402
from mvcca.machine.archive import read_archive, write_archive  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Batches of")
VARIANTS = [  # which keep, draw or reconstruct something else
    small("CCAL", projection="stored", memory=0.5),
    small("DSRankingCCA", sees="x"),
    small("CrossCorrAE", full=True, likelihood={"a": "gaussian", "b": "replicated_softmax"}),
    small("CorrAE", pretraining="rbm", likelihood={"a": "gaussian", "b": "replicated_softmax"}),
    small("CMDN", likelihood={"a": "gaussian", "b": "replicated_softmax"}),
    small("TwoBranch", mining=3),
    small("EncoderCCA", ending="as_trained"),
]
every_variant = pytest.mark.parametrize(
    "estimator",
    [  # one in three at once, all in CI
        pytest.param(estimator, id=name_of(estimator), marks=pytest.mark.slow if number % 3 else ())
        for number, estimator in enumerate([*DEEP, *VARIANTS])
    ],
)
LABELS_IF_ANY = Trait(
    "learns from labels if there are any", lambda e: type(e).__name__ == "TwoBranch"
)

N = 90
CLASSES = np.arange(N) % 4


def blocks(seed=0):
    """Two views without negative values, which likelihoods of counts take."""
    rng = np.random.default_rng(seed)
    Z = np.eye(4)[CLASSES] @ np.random.default_rng(7).standard_normal((4, 3))
    Z = Z + 0.5 * rng.standard_normal((N, 3))
    maps = np.random.default_rng(8)
    return {name: np.abs(Z @ maps.standard_normal((3, d))) for name, d in (("a", 6), ("b", 5))}


def fitted(estimator, **parameters):
    return clone(estimator).set_params(**parameters).fit(blocks(), CLASSES)


def assert_close_scores(one, other, tol):
    for name, scores in one.items():
        np.testing.assert_allclose(scores, other[name], rtol=0, atol=tol * np.abs(scores).max())


@over(DEEP)
def test_docstrings_and_those_they_link_to_describe_every_parameter_and_attribute(estimator):
    cls = type(estimator)
    names = list(inspect.signature(cls).parameters)
    own = own_entries(cls, "Parameters")
    assert list(own) == [name for name in names if name in own]
    assert set(names) <= documented(cls, "Parameters").keys()
    learned = {name for name in vars(fitted(estimator)) if re.fullmatch("[a-z].*_", name)}
    assert learned <= documented(cls, "Attributes").keys()


@pytest.mark.parametrize("base", mvcca.deep.bases.__all__)
def test_bases_describe_every_parameter(base):
    cls = getattr(mvcca.deep.bases, base)
    assert documented(cls, "Parameters").keys() == inspect.signature(cls).parameters.keys()


def test_annotated_attributes_of_a_subclass_are_parameters_before_those_it_inherits():
    class Scaled(SoftCCA):
        scale: float = 2.0
        decay: float = 0.5
        _parameter_constraints: ClassVar[dict] = {"scale": [Real]}

    inherited = list(inspect.signature(SoftCCA).parameters)
    names = list(inspect.signature(Scaled).parameters)
    assert names == ["n_components", "scale", *inherited[1:]]
    assert Scaled(3, scale=1.0).get_params() == {
        **SoftCCA(3, decay=0.5).get_params(),
        "scale": 1.0,
    }
    assert clone(Scaled(scale=0.25)).scale == 0.25
    with pytest.raises(TypeError, match="positional"):
        Scaled(3, 1.0)
    for wrong in ({"scale": "a"}, {"decay": "a"}):  # own constraints join those of the base
        with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
            Scaled(**wrong).fit(blocks(), CLASSES)


def test_a_subclass_with_a_constructor_keeps_it():
    class Narrow(SoftCCA):
        def __init__(self, units=4, n_components=2):
            super().__init__(n_components, hidden_layer_sizes=(units,))
            self.units = units

    model = Narrow(8, 3)
    assert (model.hidden_layer_sizes, model.n_components) == ((8,), 3)
    assert list(inspect.signature(Narrow).parameters) == ["units", "n_components"]


# ---- rows ----------------------------------------------------------------------------------------


@over(DEEP)
def test_sparse_rows_and_rows_in_files_train_as_dense_ones(estimator, tmp_path):
    np.save(tmp_path / "a.npy", blocks()["a"])
    other = {
        "a": np.load(tmp_path / "a.npy", mmap_mode="r"),
        "b": sp.csr_array(blocks()["b"]),
    }
    dense, model = fitted(estimator), clone(estimator).fit(other, CLASSES)
    assert_close_scores(dense.transform(blocks(1)), model.transform(blocks(1)), 1e-5)
    queries = {name: sp.csr_array(X) for name, X in blocks(1).items()}
    assert_close_scores(dense.transform(blocks(1)), dense.transform(queries), 1e-5)


@over(DEEP)
def test_unpaired_rows_are_refused_unless_the_loss_is_of_labels(estimator):
    views, labels = Views.unpaired(blocks()), np.r_[CLASSES, CLASSES]
    if not estimator.requires.pairs:  # see tests/test_deep_unpaired.py
        assert clone(estimator).fit(views, labels).view_names_ == ("a", "b")
        return
    with pytest.raises(ValueError, match=r"learns from (objects seen in all views|pairs)"):
        clone(estimator).fit(views, labels)


@over(DEEP, needs=[PAIRS_NEEDED], but=[LABELS_IF_ANY])
def test_labels_change_nothing_where_the_method_does_not_learn_from_them(estimator):
    assert_equal_scores(clone(estimator).fit(blocks()), fitted(estimator), blocks(1))


# ---- scikit-learn's tools ------------------------------------------------------------------------


@over(DEEP)
def test_a_grid_search_is_the_loop_by_hand(estimator):
    views, folds = Views(blocks()), KFold(2, shuffle=True, random_state=0)
    rates = [1e-4, 1e-2]
    search = GridSearchCV(clone(estimator), {"learning_rate": rates}, cv=folds).fit(views, CLASSES)
    by_hand = [
        [
            fit.score(views[test], CLASSES[test])
            for train, test in folds.split(CLASSES)
            for fit in [clone(estimator).set_params(learning_rate=rate)]
            if fit.fit(views[train], CLASSES[train])
        ]
        for rate in rates
    ]
    found = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(found, np.mean(by_hand, axis=1), rtol=1e-5, atol=1e-6)
    best = fitted(estimator, learning_rate=search.best_params_["learning_rate"])
    assert_equal_scores(search.best_estimator_, best, blocks(1))


@over(DEEP)
def test_retrieval_is_scored_in_cross_validation(estimator):
    scorer = retrieval_scorer("map", relevance="labels")
    scores = cross_val_score(clone(estimator), Views(blocks()), CLASSES, cv=2, scoring=scorer)
    assert ((scores > 0) & (scores <= 1)).all()


# ---- training ------------------------------------------------------------------------------------


@over(DEEP)
def test_equal_seeds_give_equal_models_whatever_torchs_generator(estimator):
    torch.manual_seed(1)
    one = fitted(estimator)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    other = fitted(estimator)
    assert_equal_scores(one, other, blocks(1))
    torch.manual_seed(1)
    fitted(estimator)
    assert torch.equal(torch.get_rng_state(), state)


MONITORS = ("valid_loss", "valid_mrr", "valid_map", "valid_correlation")


@crossed("monitor", {name: name for name in MONITORS}, DEEP)
def test_the_weights_are_those_of_the_best_validated_epoch(estimator, monitor):
    parameters = {"validation_fraction": 0.3, "max_epochs": 4, "learning_rate": 0.03}
    model = fitted(estimator, monitor=monitor, **parameters)
    column = model.history_["valid_total_correlation" if "corr" in monitor else monitor]
    best = np.nanargmin(column) if monitor == "valid_loss" else np.nanargmax(column)
    assert model.best_epoch_ == 1 + best
    if monitor != "valid_loss":
        return
    shorter = fitted(estimator, monitor=monitor, **parameters | {"max_epochs": int(1 + best)})
    if "max_epochs" not in estimator._decisive_params():  # else schedules depend on it
        assert_equal_scores(shorter, model, blocks(1))


@every_variant
def test_an_interrupted_fit_resumes_bit_for_bit(estimator, tmp_path):
    whole = fitted(estimator, validation_fraction=0.2, max_epochs=4)
    parts = clone(whole).set_params(callbacks=[Interrupt(3)])
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            parts.fit(blocks(), CLASSES)
        parts.set_params(callbacks=()).fit(blocks(), CLASSES)
    assert_equal_scores(parts, whole, blocks(1))
    for column in whole.history_.keys() - {"seconds"}:
        np.testing.assert_array_equal(parts.history_[column], whole.history_[column])


@over(DEEP)
def test_a_checkpoint_of_other_parameters_names_them(estimator, tmp_path):
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            fitted(estimator, max_epochs=4, callbacks=[Interrupt(3)])
        with pytest.raises(ValueError, match="learning_rate"):
            fitted(estimator, max_epochs=4, learning_rate=0.5)


@over([*DEEP, *VARIANTS])
def test_partial_fit_continues_and_fails_whole(estimator):
    model = clone(estimator).partial_fit(blocks(), CLASSES)
    twice = clone(estimator).partial_fit(blocks(), CLASSES).partial_fit(blocks(), CLASSES)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(blocks() | {"b": np.full((N, 5), np.nan)}, CLASSES)
    assert vars(model).keys() == before.keys()
    assert_equal_scores(model.partial_fit(blocks(), CLASSES), twice, blocks(1))
    assert len(model.history_["epoch"]) == 2


# ---- files ---------------------------------------------------------------------------------------


def storable(estimator):
    """The same, with an objective that files hold."""
    if "objective" in estimator.get_params():
        return clone(estimator).set_params(objective=TraceNormLoss())
    return estimator


@every_variant
def test_a_saved_model_scores_and_trains_on_as_before(estimator, tmp_path):
    model = fitted(storable(estimator))
    save(model, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca")
    assert_equal_scores(model, back, blocks(1))
    assert_equal_scores(*(each.partial_fit(blocks(), CLASSES) for each in (model, back)), blocks(1))


@over(DEEP)
def test_forged_attributes_are_refused(estimator, tmp_path):
    path = tmp_path / "model.mvcca"
    save(fitted(storable(estimator)), path)
    arrays, content = read_archive(path)
    parts = content["model"]["parts"]
    forgeries = {
        "n_components_": 7,
        "view_names_": {"is": "tuple", "items": ["a", "c"]},
        "networks": {"is": "dict", "items": {}},
        "_widths": {"is": "dict", "items": {"a": 10**12, "b": 5}},
        "best_epoch_": "last",
        "transform": None,
        "fit": 1,
    }
    for name, value in forgeries.items():
        assert name in parts or name in {"transform", "fit"}
        forged = content | {"model": content["model"] | {"parts": parts | {name: value}}}
        write_archive(path, arrays, forged)
        with pytest.raises(ModelFileError):
            load(path)
    write_archive(path, arrays, content)
    load(path)


# ---- scikit-learn's checks -----------------------------------------------------------------------

FLOAT32 = dict.fromkeys(  # 1e-7 is asked for
    ("check_methods_subset_invariance", "check_methods_sample_order_invariance"),
    "networks compute in float32, whose rounding depends on the other rows of a product",
)
BY_ORDER = dict.fromkeys(  # which the check changes
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the order of rows decides which are drawn for a batch",
)
IN_A_PIPELINE = {  # whose steps are fitted themselves
    "check_estimators_overwrite_params": "steps are fitted in place",
    "check_dont_overwrite_parameters": "steps are fitted in place",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # of clipped components and rank in tiny data
@over(DEEP[1:])
def test_scikit_learns_checks_pass(estimator, monkeypatch):
    name = type(estimator).__name__
    estimator = small(name, max_epochs=1, batch_size=750, learning_rate=1e-4)
    expected = FLOAT32 | BY_ORDER
    if estimator.requires.labels:  # then y is labels, and one matrix is split into two views
        halves = SplitViews({"a": slice(0, 1), "b": slice(-2, None)})
        estimator, expected = (
            make_pipeline(halves, estimator, JoinViews()),
            expected | IN_A_PIPELINE,
        )
    else:
        known = [*estimator_checks.CROSS_DECOMPOSITION, name]  # which take a second matrix
        monkeypatch.setattr(estimator_checks, "CROSS_DECOMPOSITION", known)
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
