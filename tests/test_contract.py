"""The contract of all estimators: what gives the same model, what comes out, how they run.

The table is tests/estimators.py. tests/test_contract_errors.py asks what is refused and in which
words, tests/test_contract_numbers.py what units, constants and precision do.
"""

from __future__ import annotations

import ast
import copy
import multiprocessing
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from inspect import signature
from io import BytesIO
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import (
    BATCHES,
    CLASSIFIES,
    COMPONENTS,
    COVARIANCES,
    COVARYING,
    DEEP,
    DOOR_VARIANTS,
    DOORS,
    DRAWN,
    ESTIMATORS,
    EVERYTHING,
    FAMILIES,
    FIRST_LABELS,
    FIRST_LANDMARKS,
    FORMS,
    GIVEN,
    HAS_UNITS,
    HOLES,
    ITERATED,
    KERNEL,
    LABEL_FORMS,
    LABELS,
    LABELS_NEEDED,
    LONG,
    MANY_VIEWS,
    NEIGHBOURS,
    NETWORK,
    OF_CONSTANTS,
    OTHERS,
    PAIRED_NETWORK,
    PAIRS_NEEDED,
    RANDOM_REGULAR,
    REPEATING,
    RIDGE,
    SHALLOW,
    SHALLOW_VARIANTS,
    SHRINKS,
    STEPS,
    STORAGES,
    TO_THE_LAST,
    TRAITS,
    VARIANTS,
    N,
    assert_same_model,
    assert_same_scores,
    blocks_for,
    chosen,
    confounds_of,
    crossed,
    fitted,
    freeze,
    name_of,
    over,
    partly_seen,
    projections,
    repeated_entries,
    ridged,
    rounding,
    same_model,
    strengths,
    tolerance,
    untouched,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import ThreadpoolController

import mvcca
from mvcca import (
    CCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    PerView,
    RetrievalIndex,
    Views,
    config_context,
)
from mvcca.compose import MomentPCA, RankGaussian
from mvcca.plotting import CorrelationDisplay

# Few rows with holes tell little of the correlations of all pairs of features.
pytestmark = pytest.mark.filterwarnings("ignore:The correlations of pairs of features")

# ---- the table itself ----------------------------------------------------------------------------


def test_every_public_estimator_is_in_the_table():
    modules = [mvcca.linear, mvcca.kernel, *([mvcca.deep] if find_spec("torch") else [])]
    public = {
        value
        for module in modules
        for value in (getattr(module, name) for name in module.__all__)
        if isinstance(value, type) and hasattr(value, "fit")
    }
    assert public <= {type(estimator) for estimator in EVERYTHING}


def test_every_need_and_excuse_is_of_some_estimators_and_not_of_all():
    for name, trait in TRAITS.items():
        held = [est for est in EVERYTHING if trait.holds(est)]
        assert 0 < len(held) < len(EVERYTHING), name


@pytest.mark.parametrize("part", ["", "_errors", "_numbers"])
def test_no_estimator_is_left_out_without_a_declared_reason(part):
    """Neither by a skip in a test nor by a condition in the list that it is tried on."""
    tree = ast.parse(Path(__file__).with_name(f"test_contract{part}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        name = getattr(node, "attr", "")
        assert name not in ("skip", "skipif", "importorskip", "xfail"), node.lineno
    decorators = [d for node in ast.walk(tree) for d in getattr(node, "decorator_list", [])]
    calls = [d for d in decorators if getattr(getattr(d, "func", None), "id", "") in TABLES]
    assert calls
    for call in calls:
        conditions = [c.ifs for c in ast.walk(call) if isinstance(c, ast.comprehension)]
        assert not any(conditions), call.lineno


TABLES = ("over", "crossed", "same_model")

# ---- scikit-learn's own contract -----------------------------------------------------------------

_SETTINGS = [*SHALLOW, NCCA(), *STEPS, RankGaussian(), MomentPCA()]
_SETTINGS += [clone(est).set_params(max_epochs=1, batch_size=750) for est in DEEP[:1]]
CHECKED = list({type(est): est for est in reversed(_SETTINGS)}.values())  # one of each class
CHECKED_LONG = [est for est in _SETTINGS if est not in CHECKED]

# scikit-learn knows by name which estimators take a second matrix and project it too.
estimator_checks.CROSS_DECOMPOSITION += sorted(
    {type(est).__name__ for est in EVERYTHING if not est.requires.labels} - {"CCA", "GivenMatrices"}
)

ROUNDING = {  # 1e-7 is asked for
    "check_methods_subset_invariance": "networks compute in float32, whose rounding depends on "
    "how many rows are multiplied at once"
}
# The check changes the order of rows, by which batches, triplets and ties of neighbours are drawn.
BY_ORDER = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the order of rows decides what is drawn, or which of equal rows are neighbours",
)


def expected_failures(estimator: Any) -> dict[str, str]:
    if type(estimator) in map(type, DEEP):
        return ROUNDING | BY_ORDER
    if isinstance(estimator, mvcca.SparseDiscriminant):
        why = "probabilities are of label sets, not of each label"
        return {"check_classifier_multioutput": why}
    return BY_ORDER if isinstance(estimator, mvcca.CMOLRS | NCCA) else {}


# The rounding may be the same. scikit-learn has the option from 1.8 on, and the oldest versions are
# tested without networks.
_options = signature(parametrize_with_checks).parameters
NOT_STRICT = {"xfail_strict": False} if "xfail_strict" in _options else {}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of clipped components and rank in tiny data
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures, **NOT_STRICT)
def test_scikit_learn_estimator_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(CHECKED_LONG)
def test_scikit_learn_estimator_checks_pass_with_other_parameters(estimator, check):
    check(estimator)


@over(DEEP)  # whose constructors are their own, and whose fit is not
def test_checks_of_constructors_pass(estimator):
    for check in (
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
    ):
        check(type(estimator).__name__, estimator)


@pytest.mark.slow
@pytest.mark.long  # the same checks in a new process
def test_no_check_is_skipped_where_scipy_speaks_the_array_api():
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "check_array_api_input", __file__],
        capture_output=True,
        text=True,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parents[1],
    )
    assert f"{len(CHECKED) + len(CHECKED_LONG)} passed" in answer.stdout
    assert "skipped" not in answer.stdout


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(est, id=name_of(est), marks=() if est in CHECKED else LONG)
        for est in [*CHECKED, *CHECKED_LONG]
    ],
)
def test_checks_that_scikit_learn_keeps_for_its_own_pass_too(estimator):
    for check in (
        estimator_checks.check_set_output_transform,
        estimator_checks.check_set_output_transform_pandas,
        estimator_checks.check_set_output_transform_polars,
        estimator_checks.check_global_output_transform_pandas,
        estimator_checks.check_global_set_output_transform_polars,
        estimator_checks.check_transformer_get_feature_names_out,
        estimator_checks.check_transformer_get_feature_names_out_pandas,
        estimator_checks.check_dataframe_column_names_consistency,
        estimator_checks.check_param_validation,
    ):
        check(type(estimator).__name__, estimator)


# ---- forms of rows and labels --------------------------------------------------------------------


@crossed("form", FORMS, [*DOORS, *OTHERS])
def test_every_form_of_the_same_numbers_gives_the_same_model(estimator, form):
    """All views in the form, and one view in it beside dense ones, in all forms of linear maps."""
    dense = blocks_for(estimator, whole=True)
    dense = {name: np.where(np.abs(X) < 6, 0, X) for name, X in dense.items()}  # sparse enough
    expected = fitted_whole(estimator, dense)
    whole = {name: freeze(form(X)) for name, X in dense.items()}
    is_mixed = estimator in FAMILIES[:2] or form in (sp.csr_array, sp.coo_matrix, repeated_entries)
    for blocks in (whole, {**dense, "text": whole["text"]})[: 1 + is_mixed]:
        with untouched(blocks):
            model = clone(estimator).fit(blocks, LABELS)
            scores = model.transform(blocks)
        tol = tolerance(blocks)
        assert_same_model(model, expected, tol)
        np.testing.assert_allclose(strengths(model), strengths(expected), atol=tol / 10)
        for name, wanted in expected.transform(dense).items():
            assert_same_scores(np.asarray(scores[name]), wanted, 10 * tol)


_WHOLE: dict[int, Any] = {}


def fitted_whole(estimator: Any, dense: dict[str, np.ndarray]) -> Any:
    """The model of whole numbers, of which many are zero, fitted once."""
    if id(estimator) not in _WHOLE:
        _WHOLE[id(estimator)] = clone(estimator).fit(dense, LABELS)
    return _WHOLE[id(estimator)]


@over([*DOORS, NCCA()])
def test_sparse_rows_of_files_and_pairs_of_matrices_add_up(estimator, tmp_path):
    dense = blocks_for(estimator, whole=True)
    blocks: dict[str, Any] = {name: freeze(repeated_entries(X)) for name, X in dense.items()}
    for name, block in blocks.items():
        sp.save_npz(tmp_path / f"{name}.npz", block, compressed=False)
    rows = {name: mvcca.open_matrix(tmp_path / f"{name}.npz") for name in blocks}
    model = clone(estimator).fit(rows, LABELS)
    once = {name: sp.csr_array(X) for name, X in dense.items()}
    expected = clone(estimator).fit(once, LABELS)
    np.testing.assert_allclose(strengths(model), strengths(expected), rtol=1e-8)
    scores = model.transform(rows)
    for name, wanted in expected.transform(once).items():
        assert_same_scores(np.asarray(scores[name]), wanted, max(1e-8, rounding(estimator)))
    if estimator.requires.labels:
        return
    pair, single = (list(own.values())[:2] for own in (blocks, once))
    with untouched(pair):
        found = clone(estimator).fit(*pair).transform(*pair)
    wanted = clone(estimator).fit(*single).transform(*single)
    for one, other in zip(found, wanted, strict=True):
        assert_same_scores(one, other)


@same_model(DOORS, but=[RANDOM_REGULAR])
def test_a_boolean_matrix_is_zeros_and_ones(estimator):
    flags = {name: X.mean() < X for name, X in blocks_for(estimator).items()}
    expected = clone(estimator).fit({n: X.astype(float) for n, X in flags.items()}, LABELS)
    for form in (np.asarray, sp.csr_array):
        yield clone(estimator).fit({name: form(X) for name, X in flags.items()}, LABELS), expected


@over([*SHALLOW_VARIANTS, *DEEP, NCCA()], but=[DRAWN])
def test_scores_have_the_precision_of_their_rows(estimator):
    found = []
    for dtype in (np.float32, np.float64):
        blocks = {name: np.float32(X).astype(dtype) for name, X in blocks_for(estimator).items()}
        blocks["text"] = sp.csr_array(blocks["text"])
        model = clone(estimator).fit(blocks, LABELS)
        found.append(model.transform(blocks))
        assert {X.dtype for X in found[-1].values()} == {np.dtype(dtype)}
        assert all(w.dtype == np.float64 for w in getattr(model, "weights_", {}).values())
    for name, single in found[0].items():
        assert_same_scores(single, found[1][name], 1e-3)


@crossed("form", LABEL_FORMS, VARIANTS, needs=[LABELS_NEEDED])
def test_every_form_of_the_same_labels_gives_the_same_model(estimator, form):
    labels = freeze(form(LABELS))
    with untouched(labels):
        model = clone(estimator).fit(blocks_for(estimator), labels)
    assert_same_model(model, fitted(estimator), 1e-12)


@same_model(VARIANTS, needs=[LABELS_NEEDED], but=[PAIRED_NETWORK], tol=1e-12)
def test_named_label_columns_are_matched_by_name(estimator):
    blocks = blocks_for(estimator)
    y = pd.DataFrame(LABELS, columns=["sea", "sky", "sun", "sand"])
    turned = dict.fromkeys(blocks, y) | {"text": y[["sand", "sea", "sun", "sky"]]}
    yield (
        clone(estimator).fit(blocks, turned),
        clone(estimator).fit(blocks, dict.fromkeys(blocks, y)),
    )
    with pytest.raises(ValueError, match=r"Got labels with names \('sand', 'sea', 'sky'"):
        clone(estimator).fit(blocks, turned | {"text": LABELS})


@crossed("dtype", {"float64": np.float64, "float32": np.float32}, SHALLOW_VARIANTS)
def test_block_size_does_not_change_the_model(estimator, dtype):
    # Of networks: tests/test_deep_estimators.py.
    blocks = {name: X.astype(dtype) for name, X in blocks_for(estimator).items()}
    blocks["text"] = sp.csr_array(blocks["text"])
    expected = clone(estimator).fit(blocks, LABELS)
    tol = 1e-10 if dtype == np.float64 else 1e-5
    for block_rows in (1, 7, N - 1) if estimator in FAMILIES else (7,):
        with config_context(block_rows=block_rows):
            model = clone(estimator).fit(blocks, LABELS)
        np.testing.assert_allclose(strengths(model), strengths(expected), atol=tol)


# ---- order, containers, pairing ------------------------------------------------------------------


@same_model(EVERYTHING, but=[DRAWN, NETWORK, ITERATED], tol=1e-10)
def test_row_order_does_not_change_the_model(estimator):
    order = np.random.default_rng(3).permutation(N)
    rows = {name: X[order] for name, X in blocks_for(estimator).items()}
    yield clone(estimator).fit(rows, LABELS[order])


@same_model(VARIANTS, but=[DRAWN, NETWORK, TO_THE_LAST])
def test_the_order_of_views_does_not_change_the_model(estimator):
    turned = dict(reversed(blocks_for(estimator).items()))
    model = clone(estimator).fit(turned, LABELS)
    projected = [name for name in turned if name not in confounds_of(estimator)]
    assert model.view_names_ == tuple(projected)
    yield model


@same_model(DOOR_VARIANTS, but=[GIVEN], tol=1e-12)
def test_containers_of_the_same_rows_give_the_same_model(estimator):
    blocks, rows = blocks_for(estimator), np.random.default_rng(4).permutation(N)[:70]
    by_hand = clone(estimator).fit({name: X[rows] for name, X in blocks.items()}, LABELS[rows])
    yield clone(estimator).fit(Views(blocks)[rows], LABELS[rows]), by_hand
    yield clone(estimator).fit(partly_seen(blocks), LABELS)
    kinds = [list, tuple, lambda values: Views(list(values))]
    for kind in kinds if estimator in FAMILIES else kinds[:1]:
        yield clone(estimator).fit(kind(blocks.values()), LABELS)


@same_model(
    VARIANTS,
    needs=[LABELS_NEEDED],
    but=[CLASSIFIES, DRAWN, NEIGHBOURS, NETWORK],
    tol=1e-10,
    same_pairs=False,
)
def test_shuffling_a_view_with_its_labels_changes_nothing(estimator):
    blocks = blocks_for(estimator)
    order = np.random.default_rng(5).permutation(N)
    shuffled = {**blocks, "text": blocks["text"][order]}
    labels = dict.fromkeys(blocks, LABELS) | {"text": LABELS[order]}
    for views in (shuffled, Views(shuffled), Views.unpaired(shuffled)):
        yield clone(estimator).fit(views, labels)
    yield clone(estimator).fit(Views.unpaired(shuffled), np.concatenate(list(labels.values())))


@over(VARIANTS, needs=[LABELS_NEEDED], but=[CLASSIFIES, PAIRED_NETWORK])
def test_lists_of_different_heights_are_unpaired_views(estimator):
    blocks = {name: X[: N - 9 * i] for i, (name, X) in enumerate(blocks_for(estimator).items())}
    labels = {name: LABELS[: len(X)] for name, X in blocks.items()}
    expected = clone(estimator).fit(Views.unpaired(blocks), np.concatenate(list(labels.values())))
    assert_same_model(clone(estimator).fit(blocks, labels), expected, 1e-12)
    listed = clone(estimator).fit(list(blocks.values()), list(labels.values()))
    np.testing.assert_allclose(strengths(listed), strengths(expected), rtol=1e-12)
    scores = listed.transform(list(blocks.values()))
    assert [len(S) for S in scores] == [len(X) for X in blocks.values()]
    assert 0 < listed.score(list(blocks.values()), list(labels.values())) <= 1


@pytest.mark.filterwarnings("ignore:Few rows")
@same_model(SHALLOW_VARIANTS, needs=[PAIRS_NEEDED], but=[HOLES, GIVEN], tol=1e-12)
def test_of_two_partly_paired_views_their_pairs_are_learned(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    views = partly_seen(blocks, image=slice(10), text=slice(60, None))
    weights = np.linspace(1, 2, N)
    weights[20:23] = 0
    yield clone(estimator).fit(views), clone(estimator).fit(views[10:60])
    expected = clone(estimator).fit(views[10:60], sample_weight=weights[10:60])
    yield clone(estimator).fit(views, sample_weight=weights), expected


@same_model(SHALLOW_VARIANTS, needs=[PAIRS_NEEDED, MANY_VIEWS], but=[HOLES], tol=1e-12)
def test_objects_that_are_seen_in_one_view_teach_nothing(estimator):
    views = partly_seen(
        blocks_for(estimator),
        image=[*range(10), *range(80, N)],
        text=[*range(10, 30), *range(80, N)],
        sound=slice(20, 30),
    )
    assert sorted(set(views.seen.sum(axis=1))) == [1, 2, 3]
    expected = clone(estimator).fit(views[views.seen.sum(axis=1) > 1])
    yield clone(estimator).fit(views), expected


# ---- weights and parameters ----------------------------------------------------------------------

POSITION_BLIND = [*chosen(SHALLOW_VARIANTS, (), [DRAWN, NEIGHBOURS]), OTHERS[0], *REPEATING]


@crossed("form", {"dense": np.asarray, "sparse": sp.csr_array}, POSITION_BLIND)
def test_integer_weights_are_repetitions(estimator, form):
    weights = np.random.default_rng(6).integers(0, 4, N)
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    repeated = {n: form(X.repeat(weights, axis=0)) for n, X in blocks_for(estimator).items()}
    with untouched(blocks, weights):
        model = clone(estimator).fit(blocks, LABELS, sample_weight=weights)
    expected = clone(estimator).fit(repeated, LABELS.repeat(weights, axis=0))
    assert_same_model(model, expected, 1e-10)


@same_model([MVCCA(), MVCCA(power=2.0), KERNEL[1], *COVARYING, PLS(scale=True)])
def test_integer_weights_are_repetitions_of_partly_paired_objects(estimator):
    blocks = blocks_for(estimator, whole=True)
    views = partly_seen(blocks, image=slice(10), text=slice(10, 30), sound=slice(40, 50))
    weights = np.arange(N) % 3 + 1
    repeated = views[np.repeat(np.arange(N), weights)]
    model = ridged(estimator, 0.1).fit(views, sample_weight=weights)
    yield model, ridged(estimator, 0.1).fit(repeated)


@pytest.mark.filterwarnings("ignore:Few rows")
@same_model(EVERYTHING, tol=1e-10)
def test_a_weight_of_zero_is_an_object_that_is_not_there(estimator):
    present = LABELS[:, 0] == 0  # no row with the first label is left
    blocks = blocks_for(estimator)
    model = clone(estimator).fit(blocks, LABELS, sample_weight=present.astype(float))
    yield model, clone(estimator).fit(Views(blocks)[present], LABELS[present])
    counts = not (FIRST_LABELS.holds(estimator) or CLASSIFIES.holds(estimator))
    if estimator.requires.labels and estimator not in DEEP and counts:
        assert model.n_label_vectors_ == 7


@pytest.mark.filterwarnings("ignore:n <= p", "ignore:View .* distinct label sets")
@same_model(SHALLOW_VARIANTS, needs=[COMPONENTS], but=[DRAWN, NEIGHBOURS, HOLES, GIVEN])
def test_repeated_rows_that_are_fewer_than_features_are_weights(estimator):
    weights = np.r_[1, 3, 1, 2, 1]  # 5 rows are fewer than the 6 features of a view, 8 are more
    blocks = {name: X[:5] for name, X in blocks_for(estimator).items()}
    repeated = {name: X.repeat(weights, axis=0) for name, X in blocks.items()}
    ridge = ridged(estimator, 0.1).set_params(n_components=1)
    expected = clone(ridge).fit(repeated, LABELS[:5].repeat(weights, axis=0))
    yield clone(ridge).fit(blocks, LABELS[:5], sample_weight=weights), expected


@over(
    SHALLOW_VARIANTS,
    needs=[COMPONENTS],
    but=[DRAWN, NEIGHBOURS, SHRINKS, COVARIANCES, TO_THE_LAST, HAS_UNITS, HOLES],
)
def test_every_row_twice_is_the_same_model_up_to_counts(estimator):
    twice = {name: np.r_[X, X] for name, X in blocks_for(estimator).items()}
    rho = clone(estimator).fit(twice, np.r_[LABELS, LABELS]).eigenvalues_ - 1
    expected = fitted(estimator).eigenvalues_ - 1
    # The ordinary covariance divides by n - 1, the label-weighted one by n.
    np.testing.assert_allclose(rho / rho[0], expected / expected[0], rtol=1e-10)


@over([*ESTIMATORS, *OTHERS])
def test_weights_of_scores_are_repetitions(estimator):
    blocks, weights = blocks_for(estimator), np.random.default_rng(6).integers(0, 4, N)
    model = fitted(estimator)
    repeated = {name: X.repeat(weights, axis=0) for name, X in blocks.items()}
    labels = LABELS.repeat(weights, axis=0)
    with untouched(weights):
        found = model.score(blocks, LABELS, sample_weight=weights)
    atol = 1e-5 if estimator in DEEP else 1e-9  # networks compute in float32
    assert found == pytest.approx(model.score(repeated, labels), abs=atol)
    with pytest.raises(ValueError, match="Negative values"):
        model.score(blocks, LABELS, sample_weight=-weights)


@over(ESTIMATORS, needs=[LABELS_NEEDED], but=[CLASSIFIES, PAIRED_NETWORK])
def test_weights_of_ranked_rows_are_repetitions(estimator):
    views = Views.unpaired(blocks_for(estimator))
    labels = np.tile(LABELS, (len(views.names), 1))
    weights = np.random.default_rng(6).integers(0, 3, len(views))
    model, objects = clone(estimator).fit(views, labels), np.repeat(np.arange(len(views)), weights)
    found = model.score(views, labels, sample_weight=weights)
    assert found == pytest.approx(model.score(views[objects], labels[objects]), abs=1e-9)
    with pytest.raises(ValueError, match="must be whole numbers"):
        model.score(views, labels, sample_weight=weights + 0.5)


@same_model(ESTIMATORS, needs=[RIDGE], tol=1e-14)
def test_one_ridge_for_all_equals_the_same_ridge_by_name(estimator):
    blocks = blocks_for(estimator)
    by_name = clone(estimator).set_params(reg=dict.fromkeys(blocks, 0.05)).fit(blocks, LABELS)
    yield by_name, clone(estimator).set_params(reg=0.05).fit(blocks, LABELS)


@same_model(VARIANTS, needs=[COMPONENTS], tol=1e-12)
def test_a_parameter_set_later_is_as_good_as_one_given_at_first(estimator):
    blocks = blocks_for(estimator)
    parameters = estimator.get_params(deep=False) | {"n_components": 1}
    model = copy.deepcopy(fitted(estimator)).set_params(n_components=1).fit(blocks, LABELS)
    yield model, type(estimator)(**parameters).fit(blocks, LABELS)


@same_model([MLCCA(), MVMLCCA(within="label")])
def test_a_bandwidth_of_almost_nothing_tells_equal_labels_from_all_others(estimator):
    blocks = blocks_for(estimator)
    for labels in (LABELS, LABELS * 1.5):  # sets, and real label vectors
        equal = clone(estimator).set_params(label_similarity="equal").fit(blocks, labels)
        for similarity in ("sqexp", "exp"):
            for sigma in (1e-3, 1e-100, 1e-320):
                model = clone(estimator).set_params(label_similarity=similarity, sigma=sigma)
                yield model.fit(blocks, labels), equal


def test_labels_of_objects_that_count_for_nothing_are_not_there():
    views = partly_seen(blocks_for(MLCCA()), image=0, text=0, sound=0)
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    labels[0] = "d"
    assert MLCCA().fit(views, labels).n_label_vectors_ == 3
    with pytest.raises(ValueError, match="All rows have the same labels"):
        MLCCA().fit(views, np.where(np.arange(N) == 0, "d", "a"))


# ---- batches -------------------------------------------------------------------------------------


def in_batches(estimator: Any, views: Views, batches: list[Any], weights: Any = None) -> Any:
    model = clone(estimator)
    for rows in batches:
        model.partial_fit(views[rows], LABELS[rows], None if weights is None else weights[rows])
    return model


CUTS = [slice(0, 30), slice(30, 31), slice(31, 70), slice(70, N)]


# Rows as they may come in a stream: what is wrong with a part is right of the whole.
STREAM_WEIGHTS = np.r_[np.zeros(10), np.arange(20) % 3, 0, np.ones(29), np.zeros(15), np.ones(15)]
_TURNED = np.random.default_rng(5).permutation(N)
ONE_BY_ONE = [slice(i, i + 1) for i in range(N)]
STREAMS: dict[str, tuple[list[Any], Any]] = {
    "rows one by one": (ONE_BY_ONE, None),
    "rows one by one in another order": ([_TURNED[rows] for rows in ONE_BY_ONE], None),
    "batches of one class": (
        np.split(np.argsort(LABELS @ [1, 2, 4, 8], kind="stable"), N // 6),
        None,
    ),
    "batches of zero weight, first and late": (
        [slice(0, 10), slice(10, 30), slice(30, 31), slice(31, 60), slice(60, 75), slice(75, N)],
        STREAM_WEIGHTS,
    ),
    "fewer rows than features": ([slice(i, i + 3) for i in range(0, N, 3)], None),
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # of so few rows as the first batches have
@crossed("batches, weights", STREAMS, SHALLOW_VARIANTS, needs=[BATCHES], but=[FIRST_LANDMARKS])
def test_any_batches_give_what_fit_gives(estimator, batches, weights):
    if DRAWN.holds(estimator) and isinstance(batches[0], np.ndarray):
        batches = ONE_BY_ONE
    views = Views(blocks_for(estimator))
    model = in_batches(estimator, views, batches, weights)
    whole = clone(estimator).fit(views, LABELS, sample_weight=weights)
    assert_same_model(model, whole, probe=dict(views.items()))


@pytest.mark.filterwarnings("ignore::UserWarning")
@over(SHALLOW_VARIANTS, needs=[BATCHES], but=[FIRST_LANDMARKS])
def test_batches_in_which_a_view_is_constant_give_what_fit_gives(estimator):
    blocks = blocks_for(estimator)
    for name, start in zip(blocks, (0, 20, 40), strict=False):
        blocks[name][start : start + 20] = blocks[name][start]
    parts = [slice(start, start + 10) for start in range(0, N, 10)]
    model = in_batches(estimator, Views(blocks), parts)
    assert_same_model(model, clone(estimator).fit(blocks, LABELS), probe=blocks)


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([*KERNEL[1:], *chosen(SHALLOW_VARIANTS, [BATCHES], [FIRST_LANDMARKS, OF_CONSTANTS])])
def test_batches_that_do_not_suffice_say_so_where_components_are_asked_for(estimator, tmp_path):
    views = Views(blocks_for(estimator))
    for weights in (None, np.zeros(1)):
        model = clone(estimator).partial_fit(views[:1], LABELS[:1], weights)
        message = "has no components after the batches so far: "
        for ask in (model.transform, model.project, model.score, partial(getattr, model)):
            with pytest.raises(NotFittedError, match=message):
                ask("n_components_" if isinstance(ask, partial) else views)
        with pytest.raises(NotFittedError, match=message):
            RetrievalIndex(model).add(views)
        with pytest.raises(AttributeError, match="no attribute 'weights'"):
            model.weights  # noqa: B018
        assert "partial_fit" in dir(model)
        mvcca.save(model, tmp_path / "stream.mvcca")
        model = mvcca.load(tmp_path / "stream.mvcca")
        with pytest.raises(NotFittedError, match=message):
            model.transform(views)
        model.partial_fit(views[1:], LABELS[1:])
        assert np.isfinite(next(iter(model.transform(dict(views.items())).values()))).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_confounds_that_explain_all_rows_so_far_wait_for_more():
    views = Views(blocks_for(MVCCA()))
    model = CCA(1, confounds="sound")
    for rows in (slice(0, 1), slice(1, 4), slice(4, 5)):  # four confounds
        model.partial_fit(views[rows])
        with pytest.raises(NotFittedError, match="no components after the batches so far"):
            model.transform(views)
    model.partial_fit(views[5:])
    assert_same_model(model, CCA(1, confounds="sound").fit(views), probe=dict(views.items()))


BATCH_FORMS = {name: STORAGES[name] for name in ("dense", "csr", "Dask", "file")}
BATCH_FORMS["repeated entries"] = repeated_entries


@crossed("form", BATCH_FORMS, SHALLOW_VARIANTS, needs=[BATCHES])
def test_batches_give_what_fit_gives(estimator, form):
    whole = form is repeated_entries  # of whole numbers: the parts add up without rounding
    blocks = blocks_for(estimator, whole=whole)
    label_form = repeated_entries if whole else np.asarray
    model = clone(estimator)
    for rows in CUTS:
        batch = {name: form(X[rows]) for name, X in blocks.items()}
        model.partial_fit(batch, label_form(LABELS[rows]))
    expected = clone(estimator).fit(blocks, LABELS) if whole else fitted(estimator)
    assert_same_model(model, expected)


@pytest.mark.filterwarnings("ignore:View .* distinct label sets")
@over(SHALLOW_VARIANTS, needs=[BATCHES], but=[HOLES, GIVEN])
def test_batches_of_fewer_rows_than_features_give_what_fit_gives(estimator):
    rng = np.random.default_rng(8)
    blocks = {n: X @ rng.random((X.shape[1], 120)) for n, X in blocks_for(estimator).items()}
    views = Views({n: X + rng.standard_normal(X.shape) for n, X in blocks.items()})
    ridge = ridged(estimator, 0.1)
    expected = clone(ridge).fit(views, LABELS)
    assert_same_model(in_batches(ridge, views, CUTS), expected, probe=dict(views.items()))


@same_model(SHALLOW_VARIANTS, needs=[BATCHES], but=[DRAWN, NEIGHBOURS, FIRST_LANDMARKS], tol=1e-10)
def test_the_order_of_batches_does_not_change_the_model(estimator):
    yield in_batches(estimator, Views(blocks_for(estimator)), [CUTS[i] for i in (3, 0, 2, 1)])


@same_model(SHALLOW_VARIANTS, needs=[BATCHES])
def test_weighted_batches_give_what_a_weighted_fit_gives(estimator):
    views = Views(blocks_for(estimator))
    weights = np.random.default_rng(7).integers(0, 4, N).astype(float)
    weights[30] = 2  # the batch of one row
    expected = clone(estimator).fit(views, LABELS, sample_weight=weights)
    yield in_batches(estimator, views, CUTS, weights), expected


@pytest.mark.filterwarnings("ignore:Few rows")
@same_model(SHALLOW_VARIANTS, needs=[BATCHES])
def test_later_batches_may_lack_a_view(estimator):
    batches = [slice(0, 40), slice(40, 60), slice(60, 80), slice(80, N)]
    for form in (np.asarray, sp.csr_array):  # images only, then all but images
        blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
        others = dict.fromkeys(("text", "sound"), slice(40, 60))
        views = partly_seen(blocks, image=slice(60, 80), **others)
        yield in_batches(estimator, views, batches), clone(estimator).fit(views, LABELS)


@same_model(SHALLOW_VARIANTS, needs=[BATCHES])
def test_batches_may_name_their_views_in_another_order(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:40], LABELS[:40])
    turned = views[40:].select(views.names[::-1])
    labels = dict.fromkeys(turned.names, LABELS[40:]) if estimator.requires.labels else None
    yield model.partial_fit(turned, labels)


@same_model(SHALLOW_VARIANTS, needs=[BATCHES], but=[FIRST_LABELS])
def test_batches_of_labels_with_other_classes_add_up(estimator):
    views = Views(blocks_for(estimator))
    names = np.array(["abcdefghijklmno"[i] for i in LABELS @ [1, 2, 4, 8] - 1])
    order = np.argsort(names, kind="stable")
    model = clone(estimator)
    for rows in (order[:40], order[40:]):
        model.partial_fit(views[rows], names[rows])
    yield model, clone(estimator).fit(views[order], names[order])


@pytest.mark.filterwarnings("ignore:View .* distinct label sets")
@over([MLCCA(), MVMLCCA(within="sample"), LGCFL()])
def test_batches_without_a_label_in_common_warn_until_one_comes(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    apart = {"image": LABELS.sum(axis=1), "text": LABELS.sum(axis=1) + 9}
    model = clone(estimator).partial_fit(blocks, apart)
    with pytest.warns(UserWarning, match="labels of view 'image' .* nothing in common"):
        model.transform(blocks)  # which solves for the batch
    model.partial_fit(blocks, LABELS.sum(axis=1))
    assert model.n_label_vectors_ == 8


@over(SHALLOW_VARIANTS, needs=[BATCHES])
def test_a_batch_that_is_refused_is_forgotten(estimator):
    views, blocks = Views(blocks_for(estimator)), blocks_for(estimator)
    model = clone(estimator).partial_fit(views[:50], LABELS[:50])
    before = model.transform(blocks)
    for batch, message in (
        (
            {**blocks, "text": blocks["text"][:, :4]},
            "View 'text' has 4 features, but .* expecting 5",
        ),
        ({**blocks, "smell": blocks["text"]}, "Unknown view 'smell'"),
        (
            {n: X for n, X in blocks.items() if n != "text"},
            r"Every batch must .*missing: \['text'\]",
        ),
        (views[:0], r"View 'image': Found array with 0 sample\(s\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(batch, LABELS[: 0 if isinstance(batch, Views) else N])
    np.testing.assert_equal(model.transform(blocks), before)
    model = pickle.loads(pickle.dumps(model))
    assert_same_model(model.partial_fit(views[50:], LABELS[50:]), fitted(estimator))


@pytest.mark.filterwarnings("ignore:Few rows")
@over(SHALLOW_VARIANTS, needs=[BATCHES])
def test_fits_forget_batches_and_batches_after_a_fit_say_that_they_start_over(estimator):
    views = Views(blocks_for(estimator))
    model = clone(estimator).partial_fit(views[:50], LABELS[:50]).fit(views, LABELS)
    assert_same_model(model, fitted(estimator), 1e-14)
    with pytest.warns(UserWarning, match="partial_fit starts over: fit keeps no statistic"):
        model.partial_fit(views[:60], LABELS[:60])
    model.partial_fit(views[60:], LABELS[60:])
    assert_same_model(model, fitted(estimator))


def test_a_search_that_looks_at_all_rows_at_once_is_refused_in_batches():
    with pytest.raises(ValueError, match=r'reg="cv".*use fit, or give partial_fit a number'):
        CCA(reg="cv").partial_fit(blocks_for(CCA()))


# ---- containers: what comes in goes out ----------------------------------------------------------


@over(VARIANTS)
def test_the_container_that_comes_in_goes_out(estimator):
    blocks, model = blocks_for(estimator), fitted(estimator)
    expected = model.transform(blocks)
    assert type(expected) is dict
    assert [*expected, *confounds_of(estimator)] == list(blocks)
    as_views = model.transform(Views(blocks))
    assert isinstance(as_views, Views)
    assert as_views.names == tuple(expected)
    for kind in (list, tuple):
        scores = model.transform(kind(blocks.values()))
        assert type(scores) is kind
        for found, wanted in zip(scores, expected.values(), strict=True):
            np.testing.assert_array_equal(found, wanted)
    for name in expected:
        np.testing.assert_array_equal(as_views[name], expected[name])
        assert expected[name].shape == (N, model.n_components_)
        assert np.isfinite(expected[name]).all()


@over(EVERYTHING, but=[GIVEN])
def test_some_rows_of_some_views_are_projected_as_with_all(estimator):
    blocks, model, atol = blocks_for(estimator), fitted(estimator), rounding(estimator)
    expected = model.transform(blocks)
    for container in (dict, Views):
        alone = model.transform(container({"text": blocks["text"][:7]}))
        np.testing.assert_allclose(alone["text"], expected["text"][:7], atol=atol)
    uneven = {name: X[: 10 + i] for i, (name, X) in enumerate(blocks.items())}
    by_name, listed = model.transform(uneven), model.transform(list(uneven.values()))
    for i, (name, wanted) in enumerate(expected.items()):
        for found in (by_name[name], listed[i]):
            np.testing.assert_allclose(found, wanted[: 10 + i], atol=atol)
    for form in (np.asarray, sp.csr_array):
        views = Views.unpaired({name: form(X) for name, X in blocks.items()})[:5]
        scores = model.transform(views)
        assert scores["image"].shape == (5, model.n_components_)
        assert scores["text"].shape == (0, model.n_components_)
        np.testing.assert_array_equal(scores.seen, views.seen)


@over(SHALLOW_VARIANTS)
def test_partly_paired_views_keep_their_pairing(estimator):
    blocks = blocks_for(estimator)
    views = partly_seen(blocks, image=slice(10), text=slice(10, 30))
    model = clone(estimator).fit(views, LABELS)
    scores = model.transform(views)
    np.testing.assert_array_equal(scores.seen, views.select(scores.names).seen)
    whole = model.transform(blocks)
    np.testing.assert_allclose(scores["text"], np.delete(whole["text"], np.s_[10:30], 0), atol=1e-9)


@over(ESTIMATORS)
def test_set_output_makes_a_frame_of_every_view(estimator):
    index = [f"object {i}" for i in range(N)]
    blocks = blocks_for(estimator)
    frames = {n: pd.DataFrame(X, index=index) for n, X in blocks.items()}
    model = copy.deepcopy(fitted(estimator))
    plain = model.transform(frames)
    prefix = type(estimator).__name__.lower()
    for kind in ("pandas", "polars"):
        for name, frame in model.set_output(transform=kind).transform(frames).items():
            assert type(frame).__module__.startswith(kind)
            assert list(frame.columns) == [f"{prefix}{i}" for i in range(model.n_components_)]
            np.testing.assert_array_equal(np.asarray(frame), plain[name])
            if kind == "pandas":
                assert list(frame.index) == index
    # As many rows as components are not turned on their side by polars.
    square = {"text": blocks["text"][: model.n_components_]}
    expected = fitted(estimator).transform(square)["text"]
    np.testing.assert_array_equal(np.asarray(model.transform(square)["text"]), expected)


@over(ESTIMATORS)
def test_projecting_views_gives_what_their_containers_get(estimator):
    model, views = fitted(estimator), Views(blocks_for(estimator, seed=9))
    for method in projections(model):
        found, expected = model.project(views, method), getattr(model, method)(views)
        assert list(found) == list(expected.names)
        for name, scores in expected.items():
            np.testing.assert_array_equal(found[name], scores)
    with pytest.raises(ValueError, match="Unknown view 'other'"):
        model.project(Views({"other": np.ones((3, 2))}))


@over([*ESTIMATORS, NCCA()], needs=[PAIRS_NEEDED])
def test_two_lone_matrices_are_two_views(estimator):
    X, Y = list(blocks_for(estimator).values())[:2]
    model = clone(estimator).fit(X, Y)
    assert model.view_names_ == ("X", "y")
    both, at_once = model.transform(X, Y), clone(estimator).fit_transform(X, Y)
    assert type(both) is type(at_once) is tuple
    expected = clone(estimator).fit([X, Y]).transform([X, Y])
    for found, again, wanted in zip(both, at_once, expected, strict=True):
        assert_same_scores(found, wanted, 1e-12)
        assert_same_scores(again, wanted, 1e-12)
    np.testing.assert_allclose(model.transform(X), both[0], atol=1e-12)
    np.testing.assert_allclose(model.transform({"y": Y})["y"], both[1], atol=1e-12)


# ---- networks in pipelines (in other tools: tests/test_deep_contract.py) -------------------------


@over(DEEP[::7])
def test_a_pipeline_trains_networks_on_what_its_first_steps_give(estimator):
    views = Views(blocks_for(estimator))
    scaler = PerView(StandardScaler())
    pipeline = make_pipeline(scaler, clone(estimator)).fit(views, LABELS)
    scaled = clone(scaler).fit_transform(views)
    by_hand = clone(estimator).fit(scaled, LABELS)
    assert pipeline.score(views) == pytest.approx(by_hand.score(scaled), rel=1e-6)
    scores = pipeline.transform(views)
    for name, wanted in by_hand.transform(scaled).items():
        assert_same_scores(scores[name], wanted, 1e-6)
    index = RetrievalIndex(pipeline).add(views)
    _, found = index.search({"image": views["image"][:3]}, target="text", k=4)
    expected = RetrievalIndex(by_hand).add(scaled)
    _, wanted = expected.search({"image": scaled["image"][:3]}, target="text", k=4)
    np.testing.assert_array_equal(found, wanted)


# ---- running: threads, processes, copies ---------------------------------------------------------


@over(VARIANTS)
def test_fitting_again_gives_the_same_bits_and_changes_no_parameter(estimator):
    blocks, model = blocks_for(estimator), clone(estimator)
    before, expected = copy.deepcopy(model.get_params()), fitted(estimator).transform(blocks)
    np.testing.assert_equal(model.fit(blocks, LABELS).transform(blocks), expected)
    assert model.get_params() == before
    copied = clone(model)
    assert copied.get_params() == estimator.get_params()
    assert not [name for name in vars(copied) if name.endswith("_")]


@over(EVERYTHING)
def test_pickle_joblib_and_deepcopy_project_the_same(estimator):
    blocks, model, file = blocks_for(estimator), fitted(estimator), BytesIO()
    expected = model.transform(blocks)
    joblib.dump(model, file)
    file.seek(0)
    for copied in (pickle.loads(pickle.dumps(model)), joblib.load(file), copy.deepcopy(model)):
        for name, scores in copied.transform(blocks).items():
            np.testing.assert_array_equal(scores, expected[name])


def _fit_all(seed: int, estimators: list[Any] = SHALLOW_VARIANTS) -> list[dict[str, np.ndarray]]:
    """Module level, so that a process can be asked for it."""
    return [clone(est).fit_transform(blocks_for(est, seed=seed), LABELS) for est in estimators]


@pytest.mark.slow
@pytest.mark.parametrize("estimators", [SHALLOW, DEEP[::7]], ids=["shallow", "deep"])
def test_four_fits_at_once_give_what_one_after_the_other_gives(estimators):
    fit_all = partial(_fit_all, estimators=estimators)
    serial = [fit_all(seed) for seed in range(2)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(fit_all, [0, 1, 0, 1]))
    # The last bits may depend on where a thread has its memory: BLAS aligns what it multiplies.
    for found, expected in zip(at_once, 2 * serial, strict=True):
        for one, other in zip(found, expected, strict=True):
            for name, scores in other.items():
                np.testing.assert_allclose(one[name], scores, rtol=1e-9, atol=1e-10)


@over([*VARIANTS, NCCA()], but=[GIVEN])
@pytest.mark.filterwarnings("ignore::UserWarning")  # of partial_fit after fit
def test_a_second_fit_leaves_nothing_of_the_first(estimator):
    """Neither a fit to fewer views nor one to a named lone matrix, nor one that found more."""
    blocks, fresh = blocks_for(estimator), fitted(estimator)
    frame = pd.DataFrame(blocks["image"], columns=list("abcdef"))
    second = blocks["text"] if not estimator.requires.labels else LABELS
    if estimator.requires.labels and estimator.requires.views[0] == 2:
        frame, second = [frame, blocks["text"]], LABELS
    two = {name: blocks[name] for name in ("image", "text")}
    for first in ((frame, second), (two, LABELS)):
        model = clone(estimator).fit(*first)
        model.left_over_ = "by a fit that set what this one does not"
        model.fit(blocks, LABELS)
        assert vars(model).keys() == vars(fresh).keys()
        assert_same_model(model, fresh, 1e-14)
    if BATCHES.holds(estimator):
        model = clone(estimator).fit(two, LABELS).partial_fit(blocks, LABELS)
        assert model.__getstate__().keys() - {"_solved"} == vars(fresh).keys()


@over(STEPS)
def test_a_second_fit_of_a_step_leaves_nothing_of_the_first(estimator):
    X = np.random.default_rng(0).standard_normal((20, 3))
    frame = pd.DataFrame(X, columns=list("abc"))
    inputs = [frame, X] if isinstance(estimator, mvcca.SplitViews) else [frame, X, {"X": frame}]
    for first in inputs:
        for second in inputs:
            model = clone(estimator).fit(first).fit(second)
            assert vars(model).keys() == vars(clone(estimator).fit(second)).keys()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
# Without networks: torch refuses to differentiate in a fork where it has found a GPU.
def test_fork_after_the_kernels_have_run_gives_the_same():
    expected = _fit_all(0, SHALLOW)
    if "fork" in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context("fork").Pool(1) as pool:
            found = pool.apply_async(_fit_all, (0, SHALLOW)).get(timeout=240)
        np.testing.assert_equal(found, expected)


BLAS = ThreadpoolController()  # which looks for libraries once


@crossed("threads", {"2 threads": 2, "4 threads": 4}, SHALLOW_VARIANTS)
def test_the_number_of_blas_threads_changes_no_correlation(estimator, threads):
    # The last digit of float32 may differ, and grows with the steps of networks.
    blocks, found = blocks_for(estimator), []
    for limit in (1, threads):
        with BLAS.limit(limits=limit):
            found.append(strengths(clone(estimator).fit(blocks, LABELS)))
    np.testing.assert_allclose(*found, rtol=1e-13)


@pytest.mark.slow
def test_without_a_home_or_a_folder_to_write_to_fits_run_uncached(tmp_path):
    package = tmp_path / "mvcca"
    shutil.copytree(
        Path(mvcca.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file, so that no cache folder can be made")
    program = (
        "import numpy as np, mvcca; rng = np.random.default_rng(0); "
        "X, Y = rng.random((2, 40, 3)); y = np.arange(40) % 8; "
        "print(mvcca.__file__, mvcca.MVMLCCA().fit([X, Y], y).n_components_)"
    )
    nowhere = os.devnull + "/nowhere"
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NUMBA", "XDG")) and name != "PYTHONPATH"
    } | {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "PYTHONPATH": str(tmp_path)}
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert answer.stdout.split() == [str(package / "__init__.py"), "2"]


MISSING: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "matplotlib.pyplot": ("plot", CorrelationDisplay.from_estimator),
    "faiss": ("index", lambda model, views: RetrievalIndex(model, backend="faiss").add(views)),
}


@pytest.mark.parametrize("library", MISSING)
def test_a_library_that_is_missing_is_named_with_the_extra_to_install(monkeypatch, library):
    extra, call = MISSING[library]
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install mvcca\[{extra}\]"):
        call(fitted(FAMILIES[0]), blocks_for(FAMILIES[0]))
