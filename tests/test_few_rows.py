"""Fits without a ridge warn of few rows; other fits, and fits within other work, do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from given_matrices import GivenMatrices
from sklearn.exceptions import DataDimensionalityWarning

import mvcca
from mvcca import CCA, KCCA, MLCCA, MVCCA, FoldSearchCV, Views
from mvcca.comparison.registry import METHODS
from mvcca.statistics import Moments

NEEDED = 5 * (8 + 6)
RNG = np.random.default_rng(0)
LATENT = RNG.normal(size=(NEEDED, 3))
IMAGE, TEXT = (LATENT @ RNG.normal(size=(3, d)) + RNG.normal(size=(NEEDED, d)) for d in (8, 6))
ENOUGH = Views({"image": IMAGE, "text": TEXT})
FEW = ENOUGH[: NEEDED - 1]
LABELS = RNG.random((NEEDED, 9)) < 0.5  # more label sets than features

SHALLOW = {name: method for name, method in METHODS.items() if not method.is_deep}
INVERT_COVARIANCES = {
    *("cca", "mvcca", "gcca", "mlcca", "fast-mlcca", "cluster-cca", "mean-cca"),
    *("mvmlcca", "mvmlcca-label"),
}
NEED_A_RIDGE = {"jrl", "klr", "lgcfl", "sm"}


def warnings_of(call):
    """Warnings of few rows that a call gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is DataDimensionalityWarning]


@pytest.mark.parametrize("name", SHALLOW)
def test_of_all_methods_those_that_invert_covariances_warn_once(name):
    reg = 0.1 if name in NEED_A_RIDGE else 0.0
    model = SHALLOW[name].build({"n_components": 2, "reg": reg, "n_features": 3})
    found = [own for own in warnings_of(lambda: model.fit(FEW[:60], LABELS[:60])) if "Few" in own]
    assert len(found) == (name in INVERT_COVARIANCES)
    assert all('reg="cv"' in message for message in found)


@pytest.mark.parametrize("name", sorted(INVERT_COVARIANCES))
def test_a_ridge_however_small_ends_the_warning(name):
    model = SHALLOW[name].build({"n_components": 2, "reg": 1e-8})
    assert not warnings_of(lambda: model.fit(FEW[:60], LABELS[:60]))


@pytest.mark.parametrize("reg", ["auto", "cv"])
def test_a_ridge_that_is_estimated_or_chosen_ends_the_warning(reg):
    assert not warnings_of(lambda: CCA(2, reg=reg).fit(FEW))


def test_the_warning_names_rows_ranks_and_the_remedy():
    repeated = np.c_[FEW["image"], FEW["image"][:, :1]]  # has rank 8, too
    twice = Views({"image": repeated, "text": FEW["text"]})
    with pytest.warns(DataDimensionalityWarning) as caught:
        model = CCA().fit(twice)
    ranks = {name: np.linalg.matrix_rank(X - X.mean(axis=0)) for name, X in twice.items()}
    assert model.ranks_ == ranks == {"image": 8, "text": 6}
    message = str(caught[0].message)
    assert f"{NEEDED - 1} rows for 14 independent features" in message
    assert "'image' (rank 8) and 'text' (rank 6), fewer than 5 per feature" in message
    assert 'set reg="cv"' in message
    assert caught[0].filename == __file__


def test_five_rows_per_independent_feature_are_enough():
    assert warnings_of(lambda: CCA().fit(FEW))
    assert not warnings_of(lambda: CCA().fit(ENOUGH))


def test_views_with_a_ridge_need_no_rows():
    assert not warnings_of(lambda: CCA(reg={"image": 0.1, "text": 0}).fit(FEW[:30]))
    (message,) = warnings_of(lambda: CCA(reg={"image": 0.1, "text": 0}).fit(FEW[:29]))
    assert "29 rows for 6 independent features of views 'text' (rank 6)," in message


def test_a_weight_counts_as_that_many_rows():
    weights = np.ones(len(FEW))
    assert warnings_of(lambda: CCA().fit(FEW, sample_weight=weights))
    weights[0] = 2
    assert not warnings_of(lambda: CCA().fit(FEW, sample_weight=weights))


def test_unpaired_rows_are_counted_by_view():
    model = MLCCA(2, reg=0.0)
    blocks = {"image": IMAGE[:20], "text": TEXT}
    (message,) = warnings_of(lambda: model.fit(Views.unpaired(blocks), [LABELS[:20], LABELS]))
    assert message.startswith("Few rows and reg=0: 20 rows for 14")


def test_with_fewer_rows_than_features_one_warning_says_all():
    (message,) = warnings_of(lambda: CCA().fit(FEW[:12]))
    assert "12 objects against 14 independent features" in message
    assert "'image' (rank 8) and 'text' (rank 6)" in message
    assert "mean nothing" in message
    assert 'set reg="cv"' in message


def test_constraints_of_the_users_own_do_not_warn():
    own = GivenMatrices(2, within=lambda _: np.eye(14), reg=0.0)
    assert not warnings_of(lambda: own.fit(FEW[:20]))
    assert warnings_of(lambda: own.set_params(within=Moments.covariance).fit(FEW[:20]))


def test_batches_do_not_warn_of_what_is_still_to_come():
    model = CCA()
    assert not warnings_of(lambda: [model.partial_fit(FEW[:20]), model.partial_fit(FEW[20:])])


def test_kernel_features_do_not_warn():
    model = KCCA(2, reg=0.0, approximation="nystroem", n_landmarks=10, random_state=0)
    assert not warnings_of(lambda: model.fit(FEW))


def test_searches_judge_ridges_by_folds_and_do_not_warn():
    search = FoldSearchCV(MVCCA(), {"reg": [0.0, 1e-6], "n_components": [1, 2]}, cv=2)
    assert not warnings_of(lambda: search.fit(FEW))
    by_hand = {"reg": [{"image": 0.1, "text": 0.0}]}
    wide = Views({"image": RNG.normal(size=(29, 40)), "text": TEXT[:29]})  # is read again
    search = FoldSearchCV(CCA(), by_hand, cv=2).fit(wide)
    assert not warnings_of(lambda: search.fit(wide))
    assert warnings_of(lambda: CCA(**search.best_params_).fit(wide))


def test_a_comparison_that_searches_ridges_does_not_warn_and_one_without_does():
    given = mvcca.compare(["cca"], FEW, cv=2, params={"reg": 0.0})
    searched = mvcca.compare(["cca"], FEW, cv=2, search={"reg": [0.0, 1e-6]})
    assert "Few rows" in str(given)
    assert "Few rows" not in str(searched)
    assert not warnings_of(lambda: searched.refit("CCA"))


def test_networks_do_not_warn():
    pytest.importorskip("torch")
    from mvcca.deep import DCCA
    from mvcca.deep.callbacks import ValidationScore
    from mvcca.deep.endings import linear_cca

    model = DCCA(
        2, hidden_layer_sizes=(4,), patience=1, max_epochs=1, random_state=0, start="random"
    )
    model.set_params(reg=0.0, callbacks=[ValidationScore("mrr", linear_cca(2, 0.0))])
    assert not warnings_of(lambda: model.fit(FEW[:20], X_val=FEW[20:30]))
