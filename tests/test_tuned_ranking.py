"""A tuned model ranks as its `ranking_` says, with the bank that it stores, through every door."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import (
    CCA,
    MVCCA,
    PLS,
    PerView,
    RetrievalIndex,
    Views,
    compare,
    evaluate_retrieval,
    load,
    retrieval_scorer,
    save,
)
from mvcca.cli import main
from mvcca.comparison.examples import Shown, examples
from mvcca.persistence import ModelFileError, describe
from mvcca.retrieval import (
    CSLS,
    calibrate_matches,
    ranks,
    retrieval_vectors,
    top_k,
)
from mvcca.retrieval.bank import BANK_ROWS, bank_of
from mvcca.retrieval.ranking import Ranking

NAMES = ("image", "text", "sound")
RANKINGS = ("likelihood+csls", "profile-likelihood+csls", "correlation^2+csls", "cosine+csls")
DTYPES = (np.float64, np.float32)


def views_of(n, n_views=2, seed=0, dtype=np.float64):
    """Rows of common factors with noise, of different widths."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_t(4, size=(n, 5))
    mixing = np.random.default_rng(100)
    return Views(
        {
            name: (
                shared @ mixing.normal(size=(5, 7 + v)) + 0.8 * rng.normal(size=(n, 7 + v))
            ).astype(dtype)
            for v, name in enumerate(NAMES[:n_views])
        }
    )


TRAIN, TEST, NEW = views_of(150), views_of(60, seed=1), views_of(9, seed=2)


def tuned(ranking, n_views=2, dtype=np.float64, power=0):
    """A model with the attributes that a tuned fit sets."""
    train = views_of(150, n_views, dtype=dtype)
    model = CCA(4, reg=0.1) if n_views == 2 else MVCCA(4, reg=0.1, power=power)
    model.fit(train)
    model.ranking_ = ranking
    if ranking.endswith("+csls"):
        model.bank_ = bank_of(model, train)
    return model, train


def explicit(ranking, train):
    """The same ranking as a user would ask for it."""
    name = ranking.removesuffix("+csls")
    how = {"similarity": "cosine"} if name == "cosine" else {"weighting": name}
    return how | ({"hubness": "csls", "bank": train} if ranking.endswith("+csls") else {})


def same_searches(index, other, queries, k=7, rtol=1e-9):
    names = queries.names
    for asked in (*((name,) for name in names), names):
        for target in (*names, None):
            found = index.search(queries.select(asked), target, k)
            expected = other.search(queries.select(asked), target, k)
            assert_array_equal(found[1], expected[1])
            assert_allclose(found[0], expected[0], rtol=rtol, atol=rtol)


# ---- every door against the same ranking asked for ----


@pytest.mark.parametrize("ranking", [*RANKINGS, "likelihood", "likelihood-cosine"])
@pytest.mark.parametrize("n_views", [2, 3])
def test_every_door_ranks_as_the_fit_chose(ranking, n_views):
    model, train = tuned(ranking, n_views)
    test, queries = views_of(60, n_views, seed=1), views_of(9, n_views, seed=2)
    names = test.names
    asked = explicit(ranking, train)
    plain = MVCCA(4, reg=0.1).fit(train) if n_views > 2 else CCA(4, reg=0.1).fit(train)

    table = evaluate_retrieval(test, measures=["mrr", "r@1"], estimator=model)
    expected = evaluate_retrieval(test, measures=["mrr", "r@1"], estimator=plain, **asked)
    for row, other in zip(table.rows, expected.rows, strict=True):
        assert_array_equal(row.per_query["mrr"], other.per_query["mrr"])
    assert table.notes == expected.notes
    mean = expected.mean()["mrr"]
    joint = (names[0], names[1:]), (names[:-1], names[-1])
    options = {"measures": ["p@5:class_means", "map@5"], "directions": [*joint, ("text", "text")]}
    labels = np.arange(60) % 7
    table = evaluate_retrieval(test, labels, estimator=model, **options)
    expected = evaluate_retrieval(test, labels, estimator=plain, **options, **asked)
    assert table.to_frame().equals(expected.to_frame())
    curves, expected_curves = (
        evaluate_retrieval(test, measures="mr", estimator=own, **how).recall_curves(5)
        for own, how in ((model, {}), (plain, asked))
    )
    assert all((curves[key] == expected_curves[key]).all() for key in expected_curves)
    by_scorer = retrieval_scorer("mrr")(model, test)
    assert by_scorer == retrieval_scorer("mrr", **asked)(plain, test) == mean
    calibration, other = (
        calibrate_matches(test, "text", "image", estimator=own, **how)
        for own, how in ((model, {}), (plain, asked))
    )
    assert_allclose(calibration.thresholds, other.thresholds, rtol=1e-9, atol=1e-12)

    index, other = RetrievalIndex(model), RetrievalIndex(plain, **asked)
    for part in (test[:20], test[20:]):  # grown between searches
        index.add(part), other.add(part)
        same_searches(index, other, queries)


@pytest.mark.parametrize("ranking", RANKINGS)
def test_scores_are_csls_of_all_pairs(ranking):
    model, train = tuned(ranking)
    plain = Ranking.of(CCA(4, reg=0.1).fit(train), **explicit(ranking[:-5], train))
    scores = {}  # of the plain ranking, one list at a time
    for key, queries in (("train", train), ("test", TEST)):
        for other, items in (("train", train), ("test", TEST)):
            index = RetrievalIndex(model, **explicit(ranking[:-5], train)).add(items)
            found, ids = index.search(queries.select(["text"]), "image", len(items))
            scores[key, other] = np.take_along_axis(found, np.argsort(ids, axis=1), axis=1)
    assert plain.hubs is None
    nearest_items = np.sort(scores["test", "train"], axis=1)[:, -10:].mean(axis=1)
    nearest_queries = np.sort(scores["train", "test"], axis=0)[-10:].mean(axis=0)
    expected = 2 * scores["test", "test"] - nearest_items[:, None] - nearest_queries
    found, ids = RetrievalIndex(model).add(TEST).search(TEST.select(["text"]), "image", 60)
    assert_array_equal(ids, np.argsort(-expected, axis=1))
    assert_allclose(found, -np.sort(-expected, axis=1), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ranking", RANKINGS)
def test_exported_vectors_find_what_an_index_finds(ranking, dtype):
    for n_views in (2, 3):
        model, _ = tuned(ranking, n_views, dtype)
        test = views_of(60, n_views, seed=1, dtype=dtype)
        index = RetrievalIndex(model).add(test)
        for query, target in (("image", "text"), ("text", "image"), ("text", "text")):
            items = retrieval_vectors(model, test, query=query)[target]
            asked = retrieval_vectors(model, test, role="query", target=target)[query]
            assert items.dtype == asked.dtype == dtype
            _, found = index.search(test.select([query]), target, 5)
            products = asked @ items.T
            best = np.sort(products, axis=1)[:, ::-1][:, :5]
            by_product = np.take_along_axis(products, found, axis=1)
            assert_allclose(by_product, best, rtol=0, atol=20 * np.finfo(dtype).eps)


def test_vectors_of_a_gallery_ask_for_the_view_of_the_queries():
    model, _ = tuned("profile-likelihood+csls")
    with pytest.raises(ValueError, match="view of the queries: pass it as query"):
        retrieval_vectors(model, TEST)
    assert retrieval_vectors(model, TEST, weighting="likelihood-cosine")["text"].shape == (60, 4)
    model.ranking_ = "likelihood+csls"
    with pytest.raises(ValueError, match="pass it as target"):
        retrieval_vectors(model, TEST, role="query")


# ---- where else a model may be ----


def test_pipelines_and_searches_rank_as_their_model():
    scaled = make_pipeline(PerView(StandardScaler()), CCA(4, reg=0.1)).fit(TRAIN)
    model = scaled[-1]
    model.ranking_ = "likelihood+csls"
    model.bank_ = bank_of(model, scaled[:-1].transform(TRAIN))
    table = evaluate_retrieval(TEST, measures="mrr", estimator=scaled)
    asked = {"weighting": "likelihood", "hubness": "csls", "bank": TRAIN}
    expected = evaluate_retrieval(TEST, measures="mrr", estimator=scaled, **asked)
    assert table.mean() == expected.mean()
    assert table.notes == expected.notes

    class Search:
        best_estimator_ = scaled

    assert str(Ranking.of(Search())) == "likelihood, CSLS"


def test_two_lone_matrices_rank_by_the_bank_of_their_model():
    model = CCA(4, reg=0.1).fit(TRAIN["image"], TRAIN["text"])
    model.ranking_ = "profile-likelihood+csls"
    model.bank_ = bank_of(model, Views({"X": TRAIN["image"], "y": TRAIN["text"]}))
    named, _ = tuned("profile-likelihood+csls")
    found = retrieval_scorer("mrr")(model, TEST["image"], TEST["text"])
    assert found == pytest.approx(retrieval_scorer("mrr")(named, TEST), rel=1e-12)
    pair = {"bank": (TRAIN["image"], TRAIN["text"])}
    scorer = retrieval_scorer("mrr", weighting="profile-likelihood+csls", **pair)
    assert scorer(model, TEST["image"], TEST["text"]) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("ranking", ["likelihood+csls", "profile-likelihood+csls"])
def test_a_file_keeps_how_a_model_and_an_index_rank(tmp_path, ranking):
    model, _ = tuned(ranking)
    index = RetrievalIndex(model).add(TEST)
    save(model, tmp_path / "model.mvcca")
    save(index, tmp_path / "index.mvcca")
    again = load(tmp_path / "model.mvcca")
    assert again.ranking_ == ranking
    same_searches(RetrievalIndex(again).add(TEST), index, NEW, rtol=0)
    same_searches(load(tmp_path / "index.mvcca"), index, NEW, rtol=0)
    assert describe(tmp_path / "model.mvcca")["ranking"] == str(Ranking.of(model))
    assert "CSLS" in str(describe(tmp_path / "index.mvcca"))


@pytest.mark.parametrize("ranking", ["likelihod", "cosine+mutual", "likelihood+csls"])
def test_a_file_whose_ranking_cannot_be_is_refused(tmp_path, ranking, monkeypatch):
    model, _ = tuned("likelihood")
    model.ranking_ = ranking  # without a bank
    with pytest.raises(ValueError, match=r"weighting"):
        save(model, tmp_path / "model.mvcca")
    monkeypatch.setattr("mvcca.persistence._models.described", lambda _: {})
    save(model, tmp_path / "model.mvcca")
    with pytest.raises(ModelFileError, match=r"weighting"):
        load(tmp_path / "model.mvcca")


def test_a_file_keeps_a_bank_that_was_given_for_the_weighting(tmp_path):
    model = CCA(4, reg=0.1).fit(TRAIN)
    index = RetrievalIndex(model, weighting="likelihood+csls", bank=TRAIN).add(TEST)
    same_searches(index, RetrievalIndex(tuned("likelihood+csls")[0]).add(TEST), NEW)
    save(index, tmp_path / "index.mvcca")
    same_searches(load(tmp_path / "index.mvcca"), index, NEW, rtol=0)


# ---- what a user asks for comes first ----


def test_what_a_user_asks_for_replaces_what_the_fit_chose():
    model, _ = tuned("likelihood+csls")
    other = views_of(40, seed=5)
    asked = [
        ({}, "likelihood, CSLS"),
        ({"weighting": "likelihood"}, "likelihood"),
        ({"weighting": "likelihood-cosine"}, "likelihood-cosine"),
        ({"weighting": "profile-likelihood+csls"}, "profile-likelihood, CSLS"),
        ({"weighting": None}, "cosine"),
        ({"similarity": "inner"}, "inner"),
        ({"hubness": CSLS(5), "bank": other}, "likelihood, CSLS, 5 neighbours"),
        ({"weighting": "likelihood+csls", "hubness": CSLS(5), "bank": other}, "CSLS, 5 neighb"),
    ]
    for options, text in asked:
        assert text in str(Ranking.of(model, **options))
    given = evaluate_retrieval(TEST, measures="mrr", estimator=model, hubness="csls", bank=other)
    plain = CCA(4, reg=0.1).fit(TRAIN)
    how = {"weighting": "likelihood+csls", "bank": other}
    expected = evaluate_retrieval(TEST, measures="mrr", estimator=plain, **how)
    assert given.mean() == expected.mean()
    assert given.mean() != evaluate_retrieval(TEST, measures="mrr", estimator=model).mean()


def test_errors_say_what_a_correction_lacks():
    plain = CCA(4, reg=0.1).fit(TRAIN)
    with pytest.raises(ValueError, match=r"'likelihood\+csls' compares .*CCA stores none.*bank="):
        RetrievalIndex(plain, weighting="likelihood+csls")
    with pytest.raises(ValueError, match=r"hubness to be 'csls', .*; got 'mutual'"):
        evaluate_retrieval(
            TEST, estimator=plain, weighting="likelihood+csls", hubness="mutual", bank=TRAIN
        )
    with pytest.raises(ValueError, match="with or without"):
        Ranking.of(plain, weighting="likelihod+csls")
    model, _ = tuned("likelihood+csls")
    model.bank_ = {"image": model.bank_["image"]}
    with pytest.raises(ValueError, match=r"no rows of the views \['text'\]"):
        RetrievalIndex(model)


def test_cosines_of_weighted_scores_are_those_of_transform():
    model, train = tuned("cosine+csls", 3, power=4)
    test = views_of(60, 3, seed=1)
    scores, bank = model.transform(test), model.transform(train)
    table = evaluate_retrieval(test, measures="mrr", estimator=model)
    by_hand = ranks(
        scores["text"], scores["sound"], hubness="csls", bank=(bank["text"], bank["sound"])
    )
    assert table["text", "sound"]["mrr"] == pytest.approx(np.mean(1 / by_hand))
    with pytest.raises(ValueError, match="stores none for it"):  # of variates without the power
        Ranking.of(model, weighting="likelihood+csls")


# ---- the bank ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_bank_holds_the_variates_of_random_objects(dtype):
    views = views_of(6000, dtype=dtype)
    model = CCA(2, reg=0.1).fit(views)
    model.ranking_ = "likelihood+csls"
    bank, variates = bank_of(model, views), model.project(views, "variates")
    assert bank.is_paired
    rows = [
        {tuple(row): i for i, row in enumerate(np.round(variates[name], 4).tolist())}
        for name in views.names
    ]
    places = [
        [own[tuple(row)] for row in np.round(bank[name], 4).tolist()]
        for own, name in zip(rows, views.names, strict=True)
    ]
    assert places[0] == places[1]  # rows of the same objects
    assert len(set(places[0])) == BANK_ROWS
    assert 2000 < np.median(places[0]) < 4000
    assert bank["text"].dtype == dtype
    other = bank_of(model, views, random_state=1)
    assert not np.array_equal(other["text"], bank["text"])


def test_a_bank_of_partly_paired_views_holds_the_objects_seen_in_most():
    n, n_paired = BANK_ROWS + 200, 30
    index = np.full((2 * n - n_paired, 2), -1)
    index[:n, 0], index[n - n_paired :, 1] = np.arange(n), np.arange(n)
    rng = np.random.default_rng(0)
    views = Views({name: rng.normal(size=(n, 2)) for name in ("image", "text")}, index)
    model = PLS(2).fit(views)
    model.ranking_ = "cosine+csls"
    bank = bank_of(model, views)
    assert_array_equal(bank.seen.sum(axis=0), BANK_ROWS)
    paired = bank.seen.all(axis=1)
    assert paired.sum() == n_paired
    variates = model.project(views, "variates")
    for name in views.names:
        held = variates[name][n - n_paired :] if name == "image" else variates[name][:n_paired]
        assert_allclose(bank[paired][name], held, rtol=1e-10)


def test_few_bank_rows_are_all_neighbours():
    model, train = tuned("likelihood+csls")
    model.bank_ = bank_of(model, train[:4])
    assert str(Ranking.of(model)) == "likelihood, CSLS, 4 neighbours"
    found = evaluate_retrieval(TEST, measures="mrr", estimator=model)
    how = {"weighting": "likelihood", "hubness": CSLS(4), "bank": train[:4]}
    assert found.mean() == evaluate_retrieval(TEST, measures="mrr", estimator=model, **how).mean()


def test_joint_queries_without_a_common_bank_are_ranked_without_it():
    model, train = tuned("profile-likelihood+csls", 3)
    model.bank_ = Views.unpaired(dict(bank_of(model, train).items()))
    test = views_of(60, 3, seed=1)
    plain = RetrievalIndex(model, weighting="profile-likelihood").add(test)
    index = RetrievalIndex(model).add(test)
    asked = test.select(["image", "text"])
    with pytest.warns(UserWarning, match=r"image\+text -> sound: ranked without CSLS.* are 0"):
        found = index.search(asked, "sound", 5)
    expected = plain.search(asked, "sound", 5)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0])
    image = test.select(["image"])  # single views have their bank
    how = {"weighting": "profile-likelihood"}
    scores = [retrieval_vectors(model, rows, **how) for rows in (test, train)]
    _, items = top_k(
        scores[0]["image"],
        scores[0]["text"],
        5,
        "inner",
        hubness="csls",
        bank=(scores[1]["image"], scores[1]["text"]),
    )
    assert_array_equal(index.search(image, "text", 5)[1], items)


# ---- comparisons and the command line ----


class Tuned(CCA):
    """CCA with the attributes that a tuned fit sets."""

    def fit(self, X, y=None):
        super().fit(X, y)
        self.ranking_ = "likelihood+csls"
        self.bank_ = bank_of(self, X)
        return self


def test_a_comparison_measures_and_shows_what_an_index_finds():
    views = views_of(120)
    result = compare({"CCA": Tuned(3, reg=0.1)}, views, cv=3, measures="mrr")
    fold = result.folds[0]
    model = Tuned(3, reg=0.1).fit(views[fold.train])
    held_out = views[fold.test]
    assert str(result.runs["CCA"].trials["object"].best.ranking) == "likelihood, CSLS"
    expected = evaluate_retrieval(
        held_out,
        measures="mrr",
        estimator=model,
        weighting="likelihood",
        hubness="csls",
        bank=views[fold.train],
    )
    assert result.fold_values("CCA", "mrr")[0] == expected.mean()["mrr"]
    index = RetrievalIndex(model).add(held_out, ids=fold.test)
    for asked, found in examples(result.data, fold.test, Shown.of(result), 5, 4, seed=0):
        query = views[[asked.object]].select(["image"])
        _, ids = index.search(query, "text", 4)
        assert [item.object for item in found] == ids[0].tolist()


def test_the_command_line_ranks_as_a_tuned_model(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model, _ = tuned("likelihood+csls")
    save(model, "model.mvcca")
    for name in ("image", "text"):
        np.save(f"{name}.npy", TEST[name])
    files = ["--gallery", "image=image.npy", "--query", "text=text.npy"]
    assert main(["search", "model.mvcca", *files, "-k", "5", "-o", "hits.npy"]) == 0
    _, expected = RetrievalIndex(model).add(TEST).search(TEST.select(["text"]), "image", 5)
    assert_array_equal(np.load("hits.npy"), expected)
    vectors = {
        "items.npy": ["image=image.npy", "--vectors", "gallery", "--query-view", "text"],
        "queries.npy": ["text=text.npy", "--vectors", "query", "--target", "image"],
    }
    for file, options in vectors.items():
        command = ["transform", "model.mvcca", "--view", *options, "--block-rows", "7"]
        assert main([*command, "-o", file]) == 0
    products = np.load("queries.npy") @ np.load("items.npy").T
    assert_array_equal(np.argsort(-products, axis=1)[:, :5], expected)
    capsys.readouterr()
    assert main(["info", "model.mvcca"]) == 0
    assert "ranking                 likelihood, CSLS\n" in capsys.readouterr().out
    command = ["transform", "model.mvcca", "--view", *vectors["items.npy"][:3]]
    assert main([*command, "-o", "items.npy"]) == 1
    assert "give it by --query-view" in capsys.readouterr().err


def test_queries_in_dask_arrays_find_the_same():
    da = pytest.importorskip("dask.array")
    model, _ = tuned("profile-likelihood+csls")
    index = RetrievalIndex(model).add(TEST)
    scores, ids = index.search({"text": da.from_array(NEW["text"], chunks=(4, -1))}, "image", 5)
    expected = index.search(NEW.select(["text"]), "image", 5)
    assert_array_equal(ids.compute(), expected[1])
    assert_allclose(scores.compute(), expected[0], rtol=1e-12)
