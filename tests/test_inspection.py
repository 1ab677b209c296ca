"""What a fitted model found, judged by NumPy, SciPy and scikit-learn on the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.linalg import qr, svdvals
from scipy.sparse import csr_array
from sklearn.cross_decomposition import CCA as ScikitCCA
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from mvcca.datasets import load_digits_views, make_gaussian_views, make_multilabel_views
from mvcca.inspection import (
    associations,
    component_correlations,
    explained_variance,
    label_auroc,
    loadings,
    permutation_test,
)
from mvcca.linear import CCA, MLCCA, MVCCA, PLS
from mvcca.machine.config import config_context
from mvcca.retrieval import RetrievalIndex
from mvcca.views import Views


@pytest.fixture(scope="module")
def views():
    return make_gaussian_views(300, n_features=(5, 4), random_state=0).views


@pytest.fixture(scope="module")
def cca(views):
    return CCA(3).fit(views)


@pytest.fixture(scope="module")
def partly_paired():
    data = make_multilabel_views(60, paired=0.5, random_state=0)
    return MLCCA(3, reg=0.1).fit(data.views, data.labels), data.views


def correlations_by_pairs(X, Z):
    return np.array([[np.corrcoef(x, z)[0, 1] for z in Z.T] for x in X.T])


# ---- loadings -----------------------------------------------------------------------------------


def test_loadings_are_the_correlations_of_variables_with_their_own_variates(cca, views):
    scores = cca.transform(views)
    for name, found in loadings(cca, views).items():
        expected = correlations_by_pairs(views[name], scores[name])
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_cross_loadings_are_the_correlations_with_the_variates_of_the_named_view(cca, views):
    scores = cca.transform(views)
    for name, found in loadings(cca, views, variates="view1").items():
        expected = correlations_by_pairs(views[name], scores["view1"])
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_cross_loadings_of_cca_are_loadings_times_canonical_correlations(cca, views):
    own = loadings(cca, views)["view0"]
    crossed = loadings(cca, views, variates="view1")["view0"]
    np.testing.assert_allclose(crossed, own * cca.canonical_correlations_, atol=1e-10)


def test_loadings_of_sparse_views_are_those_of_dense_ones():
    rng = np.random.default_rng(0)
    dense = {p: rng.poisson(0.3, size=(80, d)).astype(float) for p, d in (("a", 7), ("b", 6))}
    dense["a"][:, 2] = 3.0  # stored everywhere, and constant
    sparse = {name: csr_array(block) for name, block in dense.items()}
    model = CCA(2, reg=0.1).fit(dense)
    with config_context(block_rows=11):
        found = loadings(model, sparse)
    for name, expected in loadings(model, dense).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-12)


def test_the_loading_of_a_constant_variable_is_zero():
    views = load_digits_views().views  # the first column of the left half is black in every image
    model = CCA(2, reg=0.1).fit(views)
    assert np.ptp(views["left"][:, 0]) == 0
    assert not loadings(model, views)["left"][0].any()


def test_loadings_do_not_depend_on_offset_and_scale_of_a_variable(cca, views):
    moved = views.replace({name: 1e-3 * block + 1e5 for name, block in views.items()})
    scores = cca.transform(views)
    for name, expected in loadings(scores, views).items():
        found = loadings(scores, moved)[name]
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_cross_loadings_of_partly_paired_views_are_over_shared_objects(partly_paired):
    model, views = partly_paired
    expected = correlations_by_pairs(views[:30]["view0"], model.transform(views[:30])["view1"])
    found = loadings(model, views, variates="view1")["view0"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_containers_do_not_change_the_loadings(cca, views):
    expected = loadings(cca, views)["view1"]
    as_list = loadings(cca, [views["view0"], views["view1"]])["view1"]
    as_mapping = loadings(cca, dict(views.items()))["view1"]
    lone = CCA(3).fit(views["view0"], views["view1"])
    as_matrices = loadings(lone, views["view0"], views["view1"])["y"]
    for found in (as_list, as_mapping, as_matrices):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_loadings_of_a_pipeline_are_of_the_variables_that_go_into_it(cca, views):
    halve = FunctionTransformer(lambda X: X.replace({n: 0.5 * b for n, b in X.items()}))
    pipeline = make_pipeline(halve, CCA(3)).fit(views)
    np.testing.assert_allclose(
        loadings(pipeline, views)["view0"], loadings(cca, views)["view0"], atol=1e-8
    )


# ---- correlations of components -----------------------------------------------------------------


def test_component_correlations_on_training_rows_are_canonical_correlations(cca, views):
    whole = [qr(block - block.mean(axis=0), mode="economic")[0] for _, block in views.items()]
    expected = svdvals(whole[0].T @ whole[1])[:3]
    found = component_correlations(cca, views)["view0", "view1"]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_component_correlations_take_scikit_learns_cca_through_views(views):
    theirs = ScikitCCA(2, scale=False, tol=1e-10, max_iter=10_000).fit(
        views["view0"], views["view1"]
    )

    class Adapter:
        def transform(self, X):
            scores = theirs.transform(X["view0"], X["view1"])
            return X.replace(dict(zip(X.names, scores, strict=True)))

    ours = component_correlations(CCA(2).fit(views), views)["view0", "view1"]
    found = component_correlations(Adapter(), views)["view0", "view1"]
    np.testing.assert_allclose(found, ours, atol=1e-6)


def test_every_pair_of_views_has_its_correlations():
    views = make_gaussian_views(200, n_features=(4, 3, 3), random_state=0).views
    model = MVCCA(2).fit(views)
    scores = model.transform(views)
    found = component_correlations(model, views)
    assert list(found) == [("view0", "view1"), ("view0", "view2"), ("view1", "view2")]
    for (p, q), values in found.items():
        expected = np.diag(correlations_by_pairs(scores[p], scores[q]))
        np.testing.assert_allclose(values, expected, atol=1e-12)


# ---- explained variance -------------------------------------------------------------------------


def test_all_variates_of_a_view_explain_all_of_its_variance(views):
    model = CCA(4).fit(views)  # view1 has four features
    assert explained_variance(model, views)["view1"].sum() == pytest.approx(1, abs=1e-10)


def test_redundancy_is_the_r_squared_of_regression_on_the_other_views_variates(cca, views):
    scores = cca.transform(views)["view1"]
    found = explained_variance(cca, views, variates="view1")["view0"]
    for i, share in enumerate(found):
        regression = LinearRegression().fit(scores[:, [i]], views["view0"])
        left = views["view0"] - regression.predict(scores[:, [i]])
        assert share == pytest.approx(np.mean(1 - left.var(0) / views["view0"].var(0)), abs=1e-10)


def test_constant_variables_have_no_share_in_explained_variance(views):
    model = CCA(2, reg=1e-6).fit(views)
    wider = {name: np.column_stack([block, np.full(300, 7.0)]) for name, block in views.items()}
    found = explained_variance(CCA(2, reg=6 / 5 * 1e-6).fit(wider), wider)["view0"]
    np.testing.assert_allclose(found, explained_variance(model, views)["view0"], atol=1e-4)


# ---- associations -------------------------------------------------------------------------------


def test_associations_are_sums_of_products_of_correlations_halfway_between_the_views():
    views = make_gaussian_views(80, n_features=(5, 4, 3), random_state=0).views
    model = MVCCA(3, reg=0.5).fit(views)
    scores = model.transform(views)
    found = associations(model, views, components=[2, 0])
    assert list(found) == [("view0", "view1"), ("view0", "view2"), ("view1", "view2")]
    for (p, q), values in found.items():
        for j in range(views.widths[p]):
            for k in range(views.widths[q]):
                expected = 0.0
                for i in (2, 0):
                    z_p, z_q = scores[p][:, i], scores[q][:, i]
                    halfway = z_p / z_p.std() + z_q / z_q.std()
                    of_j = np.corrcoef(views[p][:, j], halfway)[0, 1]
                    of_k = np.corrcoef(views[q][:, k], halfway)[0, 1]
                    expected += of_j * of_k
                assert values[j, k] == pytest.approx(expected, abs=1e-12)


def test_associations_of_cca_are_products_of_loadings_and_canonical_correlations(cca, views):
    own, rho = loadings(cca, views), component_correlations(cca, views)["view0", "view1"]
    found = associations(cca, views)["view0", "view1"]
    expected = own["view0"] * (1 + rho) / 2 @ own["view1"].T
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_associations_do_not_depend_on_the_units_of_scores(views):
    model = PLS(2).fit(views)
    scores = model.transform(views)
    larger = {"view0": 100 * scores["view0"] + 3, "view1": scores["view1"]}
    expected = associations(model, views)["view0", "view1"]
    found = associations(larger, views)["view0", "view1"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_associations_of_sparse_views_are_those_of_dense_ones():
    dense = {name: block.round() for name, block in load_digits_views().views.items()}
    sparse = {name: csr_array(block) for name, block in dense.items()}
    model = CCA(3, reg=0.1).fit(dense)
    expected = associations(model, dense)["left", "right"]
    np.testing.assert_allclose(associations(model, sparse)["left", "right"], expected, atol=1e-9)


# ---- labels -------------------------------------------------------------------------------------


def share_of_larger(values, mask):
    """Share of pairs in which the row with the label has the larger value, ties one half."""
    of_pairs = [np.sign(a - b) for a in values[mask] for b in values[~mask]]
    return (1 + np.mean(of_pairs)) / 2


def test_auroc_is_the_share_of_pairs_in_which_the_label_has_the_larger_score():
    rng = np.random.default_rng(0)
    scores = {name: rng.integers(0, 5, (30, 2)).astype(float) for name in ("image", "text")}
    classes = rng.choice(["cat", "dog", "owl"], 30)
    found = label_auroc(scores, classes)
    for name, rows in scores.items():
        assert list(found[name]) == ["cat", "dog", "owl"]
        for label, values in found[name].items():
            expected = [share_of_larger(column, classes == label) for column in rows.T]
            np.testing.assert_allclose(values, expected)


def test_auroc_of_label_sets_and_of_each_views_own_labels():
    rng = np.random.default_rng(0)
    sets = [{"a"}, {"a", "b"}, {"b"}, set(), {"a"}, {"b"}]
    scores = {"image": rng.normal(size=(6, 1)), "text": rng.normal(size=(6, 1))}
    found = label_auroc(scores, sets)
    mask = np.array(["b" in labels for labels in sets])
    assert found["text"]["b"] == pytest.approx(share_of_larger(scores["text"][:, 0], mask))
    unpaired = Views.unpaired({"image": scores["image"], "text": scores["text"][:4]})
    of_each = label_auroc(unpaired, {"image": sets, "text": sets[:4]})
    assert of_each["image"] == found["image"]
    expected = share_of_larger(scores["text"][:4, 0], mask[:4])
    assert of_each["text"]["b"] == pytest.approx(expected)


def test_labels_that_all_rows_or_none_have_are_separated_by_nothing():
    unpaired = Views.unpaired({"image": np.arange(4.0)[:, None], "text": np.arange(3.0)[:, None]})
    found = label_auroc(unpaired, {"image": list("aabb"), "text": list("aaa")})
    assert found["image"] == {"a": 0.0, "b": 1.0}
    assert np.isnan([found["text"]["a"], found["text"]["b"]]).all()
    with pytest.raises(ValueError, match="got real-valued label vectors"):
        label_auroc({"image": np.eye(3)}, np.array([[0.5, 1.5]] * 3))


# ---- what rows may be ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array, pd.DataFrame])
def test_a_second_matrix_may_be_sparse_or_a_frame(form):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 3)), np.round(rng.standard_normal((40, 2)))
    model = CCA(2).fit(X, Y)
    for of in (loadings, component_correlations, explained_variance):
        for name, values in of(model, X, form(Y)).items():
            np.testing.assert_allclose(values, of(model, X, Y)[name], atol=1e-12)
    options = {"n_permutations": 19, "random_state": 0}
    found, expected = (permutation_test(X, y, **options) for y in (form(Y), Y))
    np.testing.assert_allclose(found.correlations, expected.correlations)
    np.testing.assert_array_equal(found.p_values, expected.p_values)


def test_a_second_view_of_one_variable_may_be_a_vector():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    for vector in (y, pd.Series(y), y.tolist()):
        test = permutation_test(X, vector, n_permutations=19, random_state=0)
        assert test.correlations.shape == (1,)


@pytest.mark.parametrize(
    "of",
    [
        lambda *given: component_correlations(*given)["view0", "view1"],
        lambda *given: associations(*given)["view0", "view1"],
    ],
    ids=["correlations", "associations"],
)
def test_what_two_views_have_in_common_is_of_the_objects_that_both_show(of, partly_paired):
    model, views = partly_paired
    np.testing.assert_allclose(of(model, views), of(model, views[:30]), atol=1e-12)


# ---- what is refused ----------------------------------------------------------------------------

X, Y = np.random.default_rng(0).standard_normal((2, 40, 3))
FRAMES = [pd.DataFrame(np.eye(5, 2) + j, index=list("abcde")) for j in range(2)]
PAIR = make_gaussian_views(300, n_features=(5, 4), random_state=0).views
NO_PAIR = make_multilabel_views(60, random_state=0)
OF_PAIR = CCA(3).fit(PAIR)
OF_NO_PAIR = MLCCA(3, reg=0.1).fit(NO_PAIR.views, NO_PAIR.labels)
ALONE = PAIR.select(["view0"])
FLAT = {"X": X, "y": np.full((40, 3), 0.1)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: loadings(OF_PAIR, PAIR, variates="text"), "'text' is not a view of X.*w0.*view1"),
        (lambda: loadings(OF_PAIR, PAIR, np.zeros(300)), "is a container of views"),
        (lambda: loadings(OF_NO_PAIR, NO_PAIR.views, variates="view1"), "fewer than two common ob"),
        (lambda: component_correlations(OF_NO_PAIR, NO_PAIR.views), "that are seen in two views"),
        (lambda: associations(OF_PAIR, PAIR, components=[3]), r"numbered from 0 to 2, got \[3\]"),
        (lambda: associations(OF_PAIR, PAIR, components=[]), r"numbered from 0 to 2, got \[\]"),
        (
            lambda: associations(OF_PAIR, ALONE),
            r"two views, got \['view0",
        ),
        (
            lambda: associations(OF_PAIR, Views.unpaired(dict(PAIR.items()))),
            "'view0' and 'view1' have fewer than two common objects",
        ),
        (lambda: explained_variance(CCA(1).fit(X, Y), FLAT), "'y' has no variance to explain"),
        (
            lambda: explained_variance(CCA(1).fit(X, Y), FLAT, standardize=False),
            "'y' has no variance to explain",
        ),
        (lambda: permutation_test(FRAMES[0], FRAMES[1][::-1]), "same labels in a different order"),
        (lambda: permutation_test(X), r"two paired views, got one matrix\. Pass the second"),
        (lambda: permutation_test(OF_PAIR, X), "takes rows, not a model: pass X and Y.* Got CCA"),
    ],
)
def test_what_cannot_be_inspected_says_why(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_an_estimator_comes_first_and_scores_are_of_the_same_objects(views, cca):
    expected = "Expected a fitted estimator before the rows, got"
    for call in (loadings, explained_variance, associations, component_correlations):
        with pytest.raises(TypeError, match=f"{expected} Views"):
            call(views, cca)
    with pytest.raises(TypeError, match=f"{expected} ndarray"):
        RetrievalIndex(views["view0"])
    scores = cca.transform(views)
    for call in (loadings, explained_variance, associations, component_correlations):
        with pytest.raises(ValueError, match="Expected scores of the 300 objects of X, got 5"):
            call(scores[:5], views)
        np.testing.assert_equal(call(scores, views), call(cca, views))
