"""Any views query any view: each question is solved from the covariance of all views."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from estimators import LONG
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.base import clone

from mvcca import CCA, MVCCA, MVMLCCA, RetrievalIndex, Views, evaluate_retrieval, load, save
from mvcca.model_selection.questions import Evidence
from mvcca.problem.question import _share_of
from mvcca.problem.whitener import Whitener
from mvcca.retrieval import CSLS, retrieval_vectors
from mvcca.statistics import Moments

NAMES = ("a", "b", "c", "d")
TARGET = "d"


def views_of(n, seed=0, n_views=4, noise=0.8):
    """Rows of common factors, of which each view shows some, with noise."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(100)
    shared = rng.standard_t(5, size=(n, 6))
    blocks = {}
    for number, name in enumerate(NAMES[:n_views]):
        mixing = fixed.normal(size=(6, 6 + number)) * (fixed.uniform(size=(6, 1)) < 0.7)
        blocks[name] = shared @ mixing + noise * rng.normal(size=(n, 6 + number))
    return Views(blocks)


TRAIN, TEST = views_of(200), views_of(80, seed=1)


def rows_of(views, names):
    return {name: views[name] for name in names}


def side_by_side(views, names):
    return Views({"query": np.hstack([views[n] for n in names]), "target": views[TARGET]})


def answers(model, query, views=TEST, k=80, **how):
    index = RetrievalIndex(model, **how).add(rows_of(views, [TARGET]))
    return index.search(rows_of(views, query), TARGET, k=k)


def mrr(model, query, views=TEST, target=TARGET, **how):
    asked = [(query, target)]
    return evaluate_retrieval(
        views, estimator=model, directions=asked, measures="mrr", **how
    ).mean()["mrr"]


@pytest.fixture(scope="module")
def tuned():
    return MVCCA(None, reg="cv").fit(TRAIN)


# ---- what an answer is ---------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", ["likelihood", "profile-likelihood"])
@pytest.mark.parametrize("name", ["a", "c"])
def test_one_query_view_is_cca_of_the_two(name, weighting):
    model = MVCCA(2, reg=0.1, solve="conditional").fit(TRAIN)
    pair = CCA(None, reg=0.1).fit(TRAIN.select((name, TARGET)))
    scores, ids = answers(model, [name], weighting=weighting)
    expected, items = answers(pair, [name], weighting=weighting)
    assert_allclose(scores, expected, atol=1e-11)
    assert_array_equal(ids, items)


def test_one_query_view_corrected_for_hubs_is_cca_of_the_two():
    model = MVCCA(2, reg=0.1, solve="conditional").fit(TRAIN)
    pair = CCA(None, reg=0.1).fit(TRAIN.select(("a", TARGET)))
    bank = views_of(50, seed=2)
    scores, ids = answers(model, ["a"], hubness=CSLS(5), bank=bank)
    expected, items = answers(pair, ["a"], hubness=CSLS(5), bank=bank.select(("a", TARGET)))
    assert_allclose(scores, expected, atol=1e-11)
    assert_array_equal(ids, items)


def test_several_query_views_are_the_conditional_density_of_a_gaussian():
    """Without a ridge and with as many rows as needed, log p(x_t | x_Q) - log p(x_t)."""
    from scipy.stats import multivariate_normal

    model = MVCCA(2, reg=0.0, solve="conditional").fit(views_of(20_000))
    query, views = ("a", "b", "c"), views_of(20, seed=3)
    own = np.hstack([views[n] for n in (*query, TARGET)])
    moments = Moments.of(views_of(20_000).select((*query, TARGET)))
    mean, Sigma = np.concatenate(list(moments.mean().values())), moments.covariance()
    q = own.shape[1] - views.widths[TARGET]
    gain = np.linalg.solve(Sigma[:q, :q], Sigma[:q, q:])
    density = multivariate_normal(None, Sigma[q:, q:] - Sigma[q:, :q] @ gain)
    prior = multivariate_normal(mean[q:], Sigma[q:, q:])
    at = mean[q:] + (own[:, :q] - mean[:q]) @ gain
    expected = np.array([density.logpdf(own[:, q:] - m) - prior.logpdf(own[:, q:]) for m in at])
    index = RetrievalIndex(model, weighting="likelihood").add(rows_of(views, [TARGET]))
    scores, ids = index.search(rows_of(views, query), TARGET, k=20)
    found = np.take_along_axis(scores, ids.argsort(axis=1), axis=1)
    # Expected correlations and deviations are those of new rows, of which 20,000 tell enough.
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()


def test_several_query_views_are_cca_of_them_side_by_side():
    """In coordinates of unit variance, where the ridge of CCA of all columns is the same."""
    white = {}
    for name in NAMES:
        left, _, _ = np.linalg.svd(TRAIN[name] - TRAIN[name].mean(0), full_matrices=False)
        white[name] = left * np.sqrt(len(TRAIN) - 1)
    white = Views(white)
    model = MVCCA(2, reg=0.1, solve="conditional").fit(white)
    pair = CCA(None, reg=0.1).fit(side_by_side(white, ["a", "c"]))
    index = RetrievalIndex(pair).add({"target": white[TARGET]})
    query = {"query": np.hstack([white["a"], white["c"]])}
    expected, items = index.search(query, "target", k=30)
    scores, ids = answers(model, ["a", "c"], white, k=30)
    assert_allclose(scores, expected, atol=1e-10)
    assert_array_equal(ids, items)


def test_the_order_of_query_views_does_not_matter(tuned):
    for model in (tuned, MVCCA(2, reg=0.1, solve="conditional").fit(TRAIN)):
        scores, ids = answers(model, ["a", "b", "c"])
        again, items = answers(model, ["c", "a", "b"])
        assert_allclose(scores, again, atol=1e-10)
        assert_array_equal(ids, items)
    refitted = clone(model).fit(Views(rows_of(TRAIN, ["c", "d", "b", "a"])))
    assert_allclose(answers(refitted, ["a", "b", "c"])[0], scores, atol=1e-10)


def test_batches_files_of_chunks_and_moments_give_the_same_covariance():
    whole = MVCCA(2, reg=0.1, solve="conditional").fit(TRAIN)
    batches = MVCCA(2, reg=0.1, solve="conditional")
    for start in range(0, 200, 40):
        batches.partial_fit(TRAIN[start : start + 40])
    summed = MVCCA(2, reg=0.1, solve="conditional").fit_statistic(Moments.of(TRAIN))
    models = [batches, summed]
    dask = pytest.importorskip("dask.array")
    lazy = {n: dask.from_array(X, chunks=(30, -1)) for n, X in TRAIN.items()}
    models.append(MVCCA(2, reg=0.1, solve="conditional").fit(lazy))
    for model in models:
        assert_allclose(answers(model, ["a", "c"])[0], answers(whole, ["a", "c"])[0], atol=1e-9)


def test_training_parts_of_folds_have_the_covariance_of_their_rows(tuned):
    from mvcca.model_selection.fold_statistics import InnerFolds

    questions, folds = tuned.questions_, InnerFolds.of(TRAIN, None)
    for part in questions.parts:
        rest = folds.without(part.left_out)
        Y = [(TRAIN[n][rest] - questions.means[n]) @ questions.weights[n] for n in NAMES]
        assert_allclose(part.gaussian.covariance, np.cov(np.hstack(Y).T), atol=1e-5)


def test_two_views_are_cca_whatever_is_asked():
    pair = TRAIN.select(("a", TARGET))
    for solve in ("auto", "shared", "conditional"):
        model = MVCCA(None, reg=0.1, solve=solve).fit(pair)
        assert not hasattr(model, "questions_")
        expected = answers(CCA(None, reg=0.1).fit(pair), ["a"])
        assert_allclose(answers(model, ["a"])[0], expected[0], atol=1e-10)


# ---- what folds choose ---------------------------------------------------------------------------


def test_a_noise_view_is_left_out_and_costs_nothing(tuned):
    noise = np.random.default_rng(5)
    noisy, test = (
        Views({**dict(v.items()), "noise": noise.normal(size=(len(v), 40))}) for v in (TRAIN, TEST)
    )
    model = MVCCA(None, reg="cv").fit(noisy)
    query = ("a", "b", "noise")
    assert mrr(model, query, test) > mrr(tuned, query[:2]) - 0.01
    assert model.query_views_used_[query, TARGET] == ("a", "b")
    text = str(evaluate_retrieval(test, estimator=model, directions=[(query, TARGET)]))
    assert "without noise" in text


def in_unlike_units(views):
    """Columns times 10^U(-2, 2), as of a table of measurements."""
    rng = np.random.default_rng(9)
    return Views({n: X * 10 ** rng.uniform(-2, 2, X.shape[1]) for n, X in views.items()})


@pytest.mark.parametrize("seeds", [[1], pytest.param([0, 2], marks=LONG)])
@pytest.mark.parametrize("change", [lambda views: views, in_unlike_units])
def test_units_of_views_do_not_depend_on_noise_beside_them(change, seeds):
    train = change(TRAIN)
    plain = MVCCA(None, reg="cv").fit(train)
    for seed in seeds:
        noise = np.random.default_rng(seed).normal(size=(len(train), 40))
        model = MVCCA(None, reg="cv").fit(train.add("noise", noise))
        assert model.scale_.keys() == {*NAMES, "noise"}
        assert {name: model.scale_[name] for name in NAMES} == plain.scale_
        own, other = (
            m.questions_.best_of_each_kind(("a", "b", "c"), (TARGET,)) for m in (model, plain)
        )
        assert [e.value for e in own[:2]] == pytest.approx([e.value for e in other[:2]], abs=1e-6)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "one column", "few rows", "wide"])
def test_independent_views_are_unrelated_and_others_are_not(kind):
    rng = np.random.default_rng(3)
    n, d = (20 if kind == "few rows" else 200), {"one column": 1, "wide": 250}.get(kind, 12)
    found = []
    for _ in range(20):
        draw = rng.standard_normal if kind != "heavy tails" else partial(rng.standard_t, 3)
        x, noise = draw(size=(n, d)), draw(size=(n, d))
        y = x + draw(size=(n, d))
        views = in_unlike_units(Views({"x": x, "y": y, "noise": noise}))
        model = MVCCA(None, reg=0.1, scale=True)
        rows = model._open_rows(views, None, None)
        found.append(model.problem(rows, model.statistic_of(rows)).related)
    assert all({"x", "y"} <= names for names in found)
    assert sum("noise" in names for names in found) <= 3


def test_what_is_chosen_is_the_best_of_all_ridges():
    noise = np.random.default_rng(7).standard_normal((len(TRAIN), 30))
    model = MVCCA(None, reg="cv").fit(Views({**dict(TRAIN.items()), "noise": noise}))
    questions = model.questions_
    chosen = questions.choice(("a", "b", "c", "noise"), (TARGET,))
    assert "noise" not in chosen.query
    best = max(questions.best_of_each_kind(chosen.query, (TARGET,)), key=lambda own: own.value)
    assert chosen == best


@pytest.mark.parametrize("reg", [{}, {"a": 0.3, "b": 0.01}])
def test_a_ridge_takes_degrees_of_freedom_of_both_query_views(tuned, reg):
    gaussian = tuned.questions_.gaussian
    reg = {**dict.fromkeys(NAMES, 0.1), **reg}
    blocks = [reg[n] * gaussian.units[n] * gaussian.ridges[n] for n in ("a", "b")]
    ridge = linalg.block_diag(*blocks)
    k = len(ridge)
    within = gaussian.covariance[:k, :k] + ridge
    white = Whitener.of(within)
    assert_allclose(white.weights().T @ within @ white.weights(), np.eye(k), atol=1e-10)
    assert_allclose(_share_of(blocks, white), np.trace(np.linalg.solve(within, ridge)), rtol=1e-10)
    assert_allclose(white.squared_norm(), np.trace(np.linalg.inv(within)), rtol=1e-10)


def test_questions_beat_the_shared_space(tuned):
    shared = MVCCA(None, reg="cv", scale=tuned.scale_, solve="shared").fit(TRAIN)
    assert mrr(tuned, ("a", "b", "c")) > mrr(shared, ("a", "b", "c")) - 0.01
    assert_array_equal(tuned.transform(TEST)["a"], shared.transform(TEST)["a"])


def test_questions_are_solved_when_they_are_asked():
    model = MVCCA(None, reg="cv", scale=False).fit(TRAIN[:60])
    assert model.query_views_used_ == {}
    mrr(model, ("a", "b"))
    assert model.query_views_used_.keys() == {(("a", "b"), TARGET)}
    with pytest.raises(AttributeError, match="shared space"):
        _ = MVCCA(2).fit(TRAIN).query_views_used_


def test_a_ridge_that_is_given_is_not_searched():
    assert not hasattr(MVCCA(2, reg=0.1).fit(TRAIN), "questions_")
    model = MVCCA(2, reg={"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, solve="conditional").fit(TRAIN)
    assert mrr(model, ("a", "b", "c")) > 0.5
    assert model.query_views_used_ == {}


# ---- the gallery ---------------------------------------------------------------------------------


def test_items_added_after_a_search_are_found_as_if_they_had_been_there(tuned):
    index = RetrievalIndex(tuned).add(TEST[:50])
    query = rows_of(TEST, ["a", "b"])
    index.search(query, TARGET, k=3)
    index.search(rows_of(TEST, ["c"]), TARGET, k=3)
    index.add(TEST[50:])
    whole = RetrievalIndex(tuned).add(TEST)
    for names in (["a", "b"], ["c"]):
        scores, ids = index.search(rows_of(TEST, names), TARGET, k=80)
        expected, items = whole.search(rows_of(TEST, names), TARGET, k=80)
        assert_array_equal(ids, items)
        assert_allclose(scores, expected, atol=1e-12)
    index.remove([0, 7, 60])
    kept = ~np.isin(items, [0, 7, 60])
    found = index.search(rows_of(TEST, ["c"]), TARGET, k=77)[1]
    assert_array_equal(found, items[kept].reshape(80, 77))


def test_updated_items_and_one_item(tuned):
    index = RetrievalIndex(tuned).add(TEST[:1])
    query = rows_of(TEST[:4], ["a", "b"])
    assert_array_equal(index.search(query, TARGET, k=1)[1], np.zeros((4, 1)))
    index.update({TARGET: TEST[TARGET][3:4]}, ids=[0])
    expected = RetrievalIndex(tuned).add({TARGET: TEST[TARGET][3:4]}).search(query, TARGET, k=1)[0]
    assert_allclose(index.search(query, TARGET, k=1)[0], expected)


def test_an_empty_gallery_and_unknown_views_are_refused(tuned):
    with pytest.raises(ValueError, match="empty"):
        RetrievalIndex(tuned).search(rows_of(TEST, ["a"]), TARGET)
    index = RetrievalIndex(tuned).add(TEST)
    with pytest.raises(ValueError, match="nowhere"):
        index.search({"nowhere": TEST["a"]}, TARGET)
    with pytest.raises(ValueError, match="no view"):
        index.search(rows_of(TEST, ["a"]), "nowhere")
    with pytest.raises(ValueError, match="normalize"):
        index.search(rows_of(TEST, ["a", "b"]), TARGET, normalize=True)


def test_each_query_asks_with_the_views_that_it_has(tuned):
    index = RetrievalIndex(tuned).add(TEST)
    places = np.array([[0, 0], [1, -1], [-1, 1], [2, 2]])
    queries = Views({"a": TEST["a"][[0, 1, 3]], "b": TEST["b"][[0, 2, 3]]}, places)
    scores, ids = index.search(queries, TARGET, k=5)
    for row, names, at in [(0, "ab", 0), (1, "a", 1), (2, "b", 2), (3, "ab", 3)]:
        expected, items = index.search(rows_of(TEST[at : at + 1], list(names)), TARGET, k=5)
        assert_allclose(scores[row], expected[0])
        assert_array_equal(ids[row], items[0])


def test_a_view_about_itself_and_several_targets_are_ranked_in_the_shared_space(tuned):
    shared = clone(tuned).set_params(reg=tuned.reg_, scale=tuned.scale_, solve="shared").fit(TRAIN)
    shared.ranking_ = tuned.ranking_.removesuffix("+csls")
    tuned = copy(tuned)
    tuned.questions_ = replace(tuned.questions_, ranking=shared.ranking_)
    index, other = (RetrievalIndex(model).add(TEST) for model in (tuned, shared))
    for query, target in [(["d"], "d"), (["a", "d"], "d"), (["a", "b"], None)]:
        scores, ids = index.search(rows_of(TEST, query), target, k=20)
        expected, items = other.search(rows_of(TEST, query), target, k=20)
        assert_allclose(scores, expected, atol=1e-9)
        assert_array_equal(ids, items)
    if "profile" in shared.ranking_:
        scores, ids = index.search(rows_of(TEST, ["a"]), ("c", "d"), k=20)
        assert_array_equal(ids, other.search(rows_of(TEST, ["a"]), ("c", "d"), k=20)[1])


def test_vectors_rank_as_the_index_does(tuned):
    items = retrieval_vectors(tuned, rows_of(TEST, [TARGET]), query="a")[TARGET]
    asked = retrieval_vectors(tuned, rows_of(TEST, ["a"]), role="query", target=TARGET)["a"]
    best = (asked @ items.T).argsort(axis=1)[:, ::-1]
    assert_array_equal(best[:, :5], answers(tuned, ["a"], k=5)[1])
    with pytest.raises(ValueError, match="query"):
        retrieval_vectors(tuned, rows_of(TEST, [TARGET]))


def test_faiss_finds_what_exact_search_finds(tuned):
    pytest.importorskip("faiss")
    scores, ids = answers(tuned, ["a", "b"], k=5)
    found = answers(tuned, ["a", "b"], k=5, backend="faiss")
    assert_array_equal(found[1], ids)
    assert_allclose(found[0], scores)


def test_lazy_queries(tuned):
    dask = pytest.importorskip("dask.array")
    index = RetrievalIndex(tuned).add(TEST)
    lazy = {n: dask.from_array(TEST[n], chunks=(30, -1)) for n in ("a", "b")}
    scores, ids = index.search(lazy, TARGET, k=4)
    expected = index.search(rows_of(TEST, ["a", "b"]), TARGET, k=4)
    assert_allclose(scores.compute(), expected[0])
    assert_array_equal(ids.compute(), expected[1])


# ---- files ---------------------------------------------------------------------------------------


def test_a_file_keeps_questions_asked_or_not(tuned, tmp_path):
    asked = answers(tuned, ["a", "b"], k=5)
    save(tuned, tmp_path / "model.mvcca")
    save(RetrievalIndex(tuned).add(TEST), tmp_path / "index.mvcca")
    model, index = load(tmp_path / "model.mvcca"), load(tmp_path / "index.mvcca")
    assert model.query_views_used_ == tuned.query_views_used_
    for found in (answers(model, ["a", "b"], k=5), index.search(rows_of(TEST, "ab"), TARGET, k=5)):
        assert_array_equal(found[1], asked[1])
        assert_allclose(found[0], asked[0])
    assert_array_equal(answers(model, ["b", "c"], k=5)[1], answers(tuned, ["b", "c"], k=5)[1])


# ---- hard inputs ---------------------------------------------------------------------------------


def test_units_of_views_do_not_matter():
    units = {"a": 1e150, "b": 1e-150}
    train, test = (Views({n: X * units.get(n, 1) for n, X in v.items()}) for v in (TRAIN, TEST))
    for reg, query in ((0.1, ["a", "b"]), ("cv", ["b"])):
        kept = MVCCA(None, reg=reg, scale=False, solve="conditional")
        model, plain = (clone(kept).fit(views) for views in (train, TRAIN))
        found, expected = answers(model, query, test), answers(plain, query)
        assert_array_equal(found[1], expected[1])
        assert_allclose(found[0], expected[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["wide", "collinear", "constant column", "float32", "sparse"])
def test_hard_views(kind):
    rng = np.random.default_rng(6)

    def hard(views):
        blocks = dict(views.items())
        if kind == "wide":
            blocks["b"] = blocks["b"] @ np.random.default_rng(7).normal(size=(7, 300))
            blocks["b"] = blocks["b"] + 0.5 * rng.normal(size=blocks["b"].shape)
        elif kind == "collinear":
            blocks["b"] = np.hstack([blocks["b"], blocks["b"][:, :3] * 2])
            blocks["a"] = np.hstack([blocks["a"], blocks["b"]])
        elif kind == "constant column":
            blocks["b"] = np.hstack([blocks["b"], np.full((len(views), 2), 3.0)])
        elif kind == "float32":
            blocks = {n: X.astype(np.float32) for n, X in blocks.items()}
        else:
            blocks = {n: csr_array(np.where(np.abs(X) > 1, X, 0)) for n, X in blocks.items()}
        return Views(blocks)

    train, test = hard(TRAIN), hard(TEST)
    for reg in (0.1, "cv") if kind == "wide" else (0.1,):
        model = MVCCA(None, reg=reg, scale=False, solve="conditional").fit(train)
        pair = CCA(None, reg=0.1).fit(train.select(("b", TARGET)))
        assert mrr(model, ("a", "b", "c") if reg == 0.1 else ("a", "b"), test) > 0.3
        if reg == 0.1:
            assert_allclose(
                mrr(model, ("b",), test), mrr(pair, ("b",), test.select("bd")), atol=1e-6
            )


def test_collinear_views_need_no_ridge():
    with warnings.catch_warnings(action="ignore"):
        train, test = (
            Views({**dict(v.items()), "a": np.hstack([v["a"], v["b"][:, :3]])})
            for v in (TRAIN, TEST)
        )
        model = MVCCA(2, reg=0.0, solve="conditional").fit(train)
        plain = MVCCA(2, reg=0.0, solve="conditional").fit(TRAIN)
        found = answers(model, ["a", "b"], test)
        assert_allclose(found[0], answers(plain, ["a", "b"])[0], atol=1e-8)


def test_confounds_are_removed_from_queries_and_items():
    z = np.random.default_rng(8).normal(size=(280, 2))
    train, test = (
        Views({**{n: X + own @ np.ones((2, X.shape[1])) for n, X in v.items()}, "z": own})
        for v, own in ((TRAIN, z[:200]), (TEST, z[200:]))
    )
    model = MVCCA(2, reg=0.1, solve="conditional", confounds="z").fit(train)
    pair = CCA(None, reg=0.1, confounds="z").fit(train.select(("a", TARGET, "z")))
    directions = [("a", TARGET)]
    for weighting in ("likelihood", "profile-likelihood"):
        found, expected = (
            evaluate_retrieval(
                test.select(names), estimator=m, directions=directions, weighting=weighting
            ).mean()
            for m, names in ((model, test.names), (pair, ("a", TARGET, "z")))
        )
        assert found == pytest.approx(expected)
    tuned = MVCCA(None, reg="cv", scale=False, confounds="z").fit(train)
    assert mrr(tuned, ("a", "b"), test) > 0.5


def test_few_rows():
    for n, scale in ((5, "auto"), (12, False)):
        with warnings.catch_warnings(action="ignore"):
            model = MVCCA(None, reg="cv", scale=scale).fit(TRAIN[:n])
            assert 0 < mrr(model, ("a", "b")) <= 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"reg": "auto"}, "a ridge that adds"), ({"reg": "cv", "cv_goal": "correlation"}, "object")],
)
def test_what_questions_need_is_said(parameters, message):
    with pytest.raises(ValueError, match=message):
        MVCCA(2, solve="conditional", **parameters).fit(TRAIN)


# ---- methods that learn from labels --------------------------------------------------------------


def labelled(n, seed=0):
    """Views of six classes; each view tells some classes from others."""
    rng, fixed = np.random.default_rng(seed), np.random.default_rng(101)
    classes = rng.integers(6, size=n)
    means = {name: fixed.normal(size=(6, 6 + i)) for i, name in enumerate(NAMES)}
    own = rng.normal(size=(n, 4))
    blocks = {
        name: M[classes] + own @ fixed.normal(size=(4, M.shape[1])) + rng.normal(size=(n, len(M.T)))
        for name, M in means.items()
    }
    return Views(blocks), classes


(OF_CLASSES, CLASSES), (NEW, NEW_CLASSES) = labelled(240), labelled(120, seed=1)


def precision(model, query, views=NEW, classes=NEW_CLASSES, **how):
    table = evaluate_retrieval(
        views, classes, estimator=model, directions=[(query, TARGET)], measures="map@50", **how
    )
    return table.mean()["map@50"]


def answered_by(model, query, **how):
    """The model that answers a question by this evidence."""
    model, evidence = copy(model), Evidence(query, **how)
    model.questions_ = replace(model.questions_, chosen={(query, (TARGET,), ""): evidence})
    return model


@pytest.fixture(scope="module")
def by_class():
    return MVMLCCA(None, reg="cv", scale=False).fit(OF_CLASSES, CLASSES)


@pytest.mark.parametrize("ranking", ["likelihood", "profile-likelihood"])
@pytest.mark.parametrize("name", ["a", "c"])
@pytest.mark.parametrize("k", [None, 2])
def test_one_query_view_is_the_label_method_of_the_two(by_class, name, ranking, k):
    how = {"kind": "joint", "reg": {name: 0.1}, "ranking": ranking, "n_components": k}
    pair = MVMLCCA(k, reg=0.1, scale=False).fit(OF_CLASSES.select((name, TARGET)), CLASSES)
    found = answers(answered_by(by_class, (name,), **how), [name], NEW)
    expected = answers(pair, [name], NEW, weighting=ranking)
    assert_array_equal(found[1], expected[1])
    # A likelihood has a constant, which ranks nothing.
    assert_allclose(np.diff(found[0]), np.diff(expected[0]), atol=1e-10)


def test_several_query_views_are_the_label_method_of_them_side_by_side():
    white = {}
    for name in NAMES:
        left, _, _ = np.linalg.svd(OF_CLASSES[name] - OF_CLASSES[name].mean(0), full_matrices=False)
        white[name] = left * np.sqrt(len(OF_CLASSES))
    white, query = Views(white), ("a", "b", "c")
    pair = MVMLCCA(None, reg=0.1, scale=False).fit(side_by_side(white, query), CLASSES)
    index = RetrievalIndex(pair, weighting="profile-likelihood").add({"target": white[TARGET]})
    side = {"query": np.hstack([white[n] for n in query])}
    expected, items = index.search(side, "target", k=30)
    model = MVMLCCA(None, reg="cv", scale=False).fit(white, CLASSES)
    reg = dict.fromkeys(query, 0.1)
    model = answered_by(model, query, kind="joint", reg=reg, ranking="profile-likelihood")
    scores, ids = answers(model, query, white, k=30)
    assert_allclose(scores, expected, atol=1e-10)
    assert_array_equal(ids, items)


def test_folds_choose_by_class_and_the_order_of_query_views_does_not_matter(by_class):
    query = ("a", "b", "c")
    shared = copy(by_class)
    del shared.questions_
    assert precision(by_class, query) > precision(shared, query) - 0.01
    scores, ids = answers(by_class, query, NEW)
    again, items = answers(by_class, query[::-1], NEW)
    assert_allclose(scores, again, atol=1e-10)
    assert_array_equal(ids, items)
    best = by_class.questions_.best_of_each_kind(query, (TARGET,))
    assert {own.kind for own in best} == {"joint", "pairs", "shared"}
    refitted = clone(by_class).fit(OF_CLASSES.select(NAMES[::-1]), CLASSES)
    assert_allclose(answers(refitted, query, NEW)[0], scores, atol=1e-9)


@pytest.mark.slow
def test_a_noise_view_costs_nothing_by_class(by_class):
    noise = np.random.default_rng(5)
    train, test = (
        Views({**dict(v.items()), "noise": noise.normal(size=(len(v), 40))})
        for v in (OF_CLASSES, NEW)
    )
    model = MVMLCCA(None, reg="cv").fit(train, CLASSES)
    query = ("a", "b", "noise")
    assert precision(model, query, test) > precision(by_class, query[:2]) - 0.01
    assert model.query_views_used_[query, TARGET] == ("a", "b")


def test_a_number_of_components_that_is_given_holds_for_questions():
    model = MVMLCCA(3, reg="cv", scale=False).fit(OF_CLASSES, CLASSES)
    found = model.questions_.best_of_each_kind(("a", "b"), (TARGET,))
    assert {own.n_components for own in found} == {3}


def test_label_sets_answer_questions_and_files_keep_them(tmp_path):
    sets = [{f"is {c}"} | ({"even"} if c % 2 == 0 else {"odd"}) for c in CLASSES]
    model = MVMLCCA(None, reg="cv", scale=False).fit(OF_CLASSES, sets)
    expected = answers(model, ["a", "b"], NEW, k=5)
    save(model, tmp_path / "model.mvcca")
    found = load(tmp_path / "model.mvcca")
    assert_array_equal(answers(found, ["a", "b"], NEW, k=5)[1], expected[1])
    assert found.query_views_used_ == model.query_views_used_
    asked = answers(found, ["b", "c"], NEW, k=5)[1]
    assert_array_equal(asked, answers(model, ["b", "c"], NEW, k=5)[1])


@pytest.mark.slow
def test_label_methods_rank_in_the_shared_space_where_questions_have_no_covariance(by_class):
    index = np.tile(np.arange(240)[:, None], 4)
    index[200:, 0] = -1
    partly = Views({n: X[:200] if n == "a" else X for n, X in OF_CLASSES.items()}, index)
    tuned = {"n_components": None, "reg": "cv", "scale": False}
    assert hasattr(by_class, "questions_")
    with pytest.warns(UserWarning, match="too few label sets"):
        of_labels = MVMLCCA(**tuned, within="label").fit(OF_CLASSES, CLASSES)
    refused = [
        of_labels,
        MVMLCCA(**tuned).fit(partly, CLASSES),
        MVMLCCA(**tuned, cv_goal="object").fit(OF_CLASSES, CLASSES),
        clone(by_class).fit(OF_CLASSES, CLASSES).set_params(reg=0.1).fit(OF_CLASSES, CLASSES),
    ]
    for model in refused:
        assert not hasattr(model, "questions_")
    batches = MVMLCCA(2, reg=0.1)
    for rows in (slice(120), slice(120, 240)):
        batches.partial_fit(OF_CLASSES[rows], CLASSES[rows])
    assert not hasattr(batches, "questions_")
