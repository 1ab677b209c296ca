"""The correction for hubs against a double loop over its formula, and what it must not change."""

from __future__ import annotations

import math
import pickle
import tracemalloc
import warnings
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import skew

from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    Procrustes,
    Views,
    config_context,
    evaluate_retrieval,
    load,
    measures,
    retrieval_scorer,
    save,
)
from mvcca.datasets import load_digits_views
from mvcca.measures.lists import average_precision
from mvcca.retrieval import (
    CSLS,
    RetrievalIndex,
    by_labels,
    per_query,
    ranks,
    retrieval_vectors,
    score_blocks,
    top_k,
)
from mvcca.retrieval.search import exact

SIMILARITIES = ("cosine", "euclidean", "inner")
CORRECTIONS = (CSLS(), CSLS(n_neighbors=3))
FAISS = pytest.param(
    "faiss", marks=pytest.mark.skipif(not find_spec("faiss"), reason="needs faiss")
)


def rows(n, width=4, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, width)).astype(dtype)


QUERIES, GALLERY = rows(23), rows(200, seed=1)
BANK = rows(40, seed=2), rows(35, seed=3)  # of the queries' view, of the gallery's view


@pytest.fixture
def small_tiles(monkeypatch):
    """Several tiles and blocks in a small problem."""
    monkeypatch.setattr(exact, "TILE_ROWS", 7)
    monkeypatch.setattr(exact, "TILE_COLUMNS", 48)


def similarity_of(q, g, similarity):
    if similarity == "cosine":
        return q @ g / math.sqrt((q @ q) * (g @ g))
    return q @ g if similarity == "inner" else -((q - g) @ (q - g)) / 2


def similarities(queries, gallery, similarity):
    """All similarities, one at a time."""
    return np.array([[similarity_of(q, g, similarity) for g in gallery] for q in queries])


def corrected(correction, queries, gallery, bank, similarity):
    """Corrected scores of every query and gallery row, from the formula in the docstring."""
    scores = similarities(queries, gallery, similarity)
    of_items, of_queries = (
        np.sort(similarities(*pair, similarity), axis=axis)
        for *pair, axis in ((bank[0], gallery, 0), (queries, bank[1], 1))
    )
    k = correction.n_neighbors
    nearest = of_items[-k:].mean(axis=0), of_queries[:, -k:].mean(axis=1, keepdims=True)
    return 2 * scores - nearest[0] - nearest[1]


@cache
def by_formulas(correction, similarity):
    """Corrected scores of the common queries."""
    found = corrected(correction, QUERIES, GALLERY, BANK, similarity)
    found.setflags(write=False)
    return found


# ---- the formulas -------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("correction", CORRECTIONS, ids=str)
@pytest.mark.usefixtures("small_tiles")
def test_corrected_rankings_equal_a_double_loop(correction, similarity):
    expected = by_formulas(correction, similarity)
    for k in (3, 60):  # merged tiles, and whole rows
        scores, items = top_k(QUERIES, GALLERY, k, similarity, hubness=correction, bank=BANK)
        order = np.argsort(-expected, axis=1, kind="stable")[:, :k]
        assert_array_equal(items, order)
        assert_allclose(scores, np.take_along_axis(expected, order, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=str)
def test_ranks_and_average_precision_equal_those_of_the_dense_scores(correction):
    dense = by_formulas(correction, "cosine")
    relevant = rows(23, 200, seed=9) > 1.5
    options = {"hubness": correction, "bank": BANK}
    assert_array_equal(
        ranks(QUERIES, GALLERY, relevant, **options), measures.relevant_ranks(dense, relevant)
    )
    for k, name in ((None, "map"), (5, "map@5:relevant")):
        assert_allclose(
            per_query(QUERIES, GALLERY, relevant, measure=name, **options),
            measures.average_precision(dense, relevant, k),
        )


@pytest.mark.parametrize("correction", CORRECTIONS, ids=str)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_score_blocks_order_the_gallery_as_the_correction_does(similarity, correction):
    dense = by_formulas(correction, similarity)
    options = {"hubness": correction, "bank": BANK}
    with config_context(block_rows=5):
        blocks = [block for _, block in score_blocks(QUERIES, GALLERY, similarity, **options)]
    assert len(blocks) == 5
    assert_array_equal(np.argsort(-np.vstack(blocks), axis=1), np.argsort(-dense, axis=1))


@pytest.mark.parametrize("correction", CORRECTIONS, ids=str)
def test_a_query_is_left_out_of_its_own_list(correction):
    own = np.arange(200)
    dense = corrected(correction, GALLERY[:40], GALLERY, BANK, "cosine")
    dense[own[:40], own[:40]] = -np.inf
    expected = np.argsort(-dense, axis=1)[:, :6]
    options = {"hubness": correction, "bank": BANK}
    _, items = top_k(GALLERY, GALLERY, 6, exclude_self=True, **options)
    assert_array_equal(items[:40], expected)
    labels = np.random.default_rng(0).integers(3, size=200)
    judged = {"relevance": by_labels(labels, labels), "measure": "map@6:relevant"}
    found = per_query(GALLERY, GALLERY, **judged, exclude_self=True, **options)
    hits = labels[expected] == labels[:40, None]
    by_hand = average_precision(
        hits, np.array([np.sum(labels == label) - 1 for label in labels[:40]]), 6, "relevant"
    )
    assert_allclose(found[:40], by_hand)


@pytest.mark.parametrize("correction", CORRECTIONS, ids=str)
def test_float32_rows_rank_as_float64_rows(correction):
    single = [part.astype(np.float32) for part in (QUERIES, GALLERY, *BANK)]
    options = {"hubness": correction}
    scores, items = top_k(single[0], single[1], 5, bank=tuple(single[2:]), **options)
    exact, expected = top_k(QUERIES, GALLERY, 5, bank=BANK, **options)
    assert scores.dtype == np.float32
    assert np.mean(items == expected) > 0.98
    assert_allclose(scores, exact, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_gallery_on_a_device_ranks_as_in_host_memory(similarity):
    torch = pytest.importorskip("torch")
    found = top_k(
        torch.as_tensor(QUERIES),
        torch.as_tensor(GALLERY),
        5,
        similarity,
        hubness="csls",
        bank=BANK,
    )
    expected = top_k(QUERIES, GALLERY, 5, similarity, hubness="csls", bank=BANK)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)


# ---- what may depend on what --------------------------------------------------------------------


def test_a_further_query_changes_no_ranking_of_the_others():
    scores, items = top_k(QUERIES, GALLERY, 200, hubness="csls", bank=BANK)
    more = np.vstack([QUERIES, GALLERY[:1] * 1.01])
    more_scores, more_items = top_k(more, GALLERY, 200, hubness="csls", bank=BANK)
    assert_array_equal(more_items[:-1], items)
    assert_allclose(more_scores[:-1], scores, rtol=1e-12, atol=1e-14)


def test_a_bank_query_far_from_a_gallery_row_does_not_change_its_csls():
    scores, items = top_k(QUERIES, GALLERY, 200, "inner", hubness="csls", bank=BANK)
    far = np.array([[1000.0, 0, 0, 0]])
    bank = np.vstack([BANK[0], far]), BANK[1]
    more_scores, more_items = top_k(QUERIES, GALLERY, 200, "inner", hubness="csls", bank=bank)
    by_row, more_by_row = np.empty((23, 200)), np.empty((23, 200))
    np.put_along_axis(by_row, items, scores, axis=1)
    np.put_along_axis(more_by_row, more_items, more_scores, axis=1)
    nearest = np.sort(BANK[0] @ GALLERY.T, axis=0)[-10]
    enters = far[0] @ GALLERY.T > nearest
    assert 0 < enters.sum() < 200
    assert_allclose(more_by_row[:, ~enters], by_row[:, ~enters], rtol=1e-12, atol=1e-14)
    assert (more_by_row[:, enters] < by_row[:, enters]).all()


def test_bank_rows_of_the_gallerys_view_shift_csls_of_each_query():
    scores, items = top_k(QUERIES, GALLERY, 200, hubness="csls", bank=BANK)
    bank = BANK[0], np.vstack([BANK[1], QUERIES[:10]])
    more_scores, more_items = top_k(QUERIES, GALLERY, 200, hubness="csls", bank=bank)
    assert_array_equal(more_items, items)
    shifts = scores - more_scores
    assert_allclose(shifts, np.broadcast_to(shifts[:, :1], shifts.shape), atol=1e-12)
    assert (shifts[:10] > 0).all()


def test_multiples_of_a_gallery_row_have_equal_scores():
    gallery = np.vstack([GALLERY, 3 * GALLERY[:50]])
    scores, items = top_k(QUERIES, gallery, 250, hubness="csls", bank=BANK)
    by_row = np.empty((23, 250))
    np.put_along_axis(by_row, items, scores, axis=1)
    assert_array_equal(by_row[:, :50], by_row[:, 200:])


# ---- in evaluation ------------------------------------------------------------------------------


def scores_of(n, seed):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 6))
    return {name: shared + 0.6 * rng.normal(size=(n, 6)) for name in ("image", "text")}


def test_evaluation_corrects_every_direction_with_its_own_bank():
    test, bank = scores_of(80, 0), scores_of(60, 1)
    table = evaluate_retrieval(test, measures=["r@1", "mrr", "mr"], hubness="csls", bank=bank)
    curves = table.recall_curves(3)
    for query, target in (("image", "text"), ("text", "image")):
        by_hand = ranks(test[query], test[target], hubness="csls", bank=(bank[query], bank[target]))
        assert table[query, target]["mrr"] == pytest.approx(np.mean(1 / by_hand))
        assert_allclose(curves[query, target][0], table[query, target]["r@1"])


def test_several_rows_per_object_and_joint_queries_take_banks_of_the_same_form():
    test, bank = scores_of(40, 0), scores_of(30, 1)
    test["text"] = np.repeat(test["text"], 5, axis=0) + 0.1 * rows(200, 6)
    bank["text"] = np.repeat(bank["text"], 5, axis=0) + 0.1 * rows(150, 6, seed=1)
    table = evaluate_retrieval(test, measures="mrr", hubness="csls", bank=bank)
    by_hand = ranks(test["text"], test["image"], hubness="csls", bank=(bank["text"], bank["image"]))
    assert table["text", "image"]["mrr"] == pytest.approx(np.mean(1 / by_hand))
    test, bank = scores_of(40, 0), scores_of(30, 1)
    table = evaluate_retrieval(
        test,
        measures="mrr",
        directions=[(("image", "text"), "text")],
        hubness="csls",
        bank=bank,
    )
    joint = [part["image"] + part["text"] for part in (test, bank)]
    by_hand = ranks(joint[0], test["text"], hubness="csls", bank=(joint[1], bank["text"]))
    assert table["image+text", "text"]["mrr"] == pytest.approx(np.mean(1 / by_hand))


def test_an_estimator_projects_the_bank():
    data = scores_of(200, 3)
    train = {name: part[:120] for name, part in data.items()}
    test = {name: part[120:] for name, part in data.items()}
    model = CCA(3).fit(train)
    options = {"measures": "mrr", "similarity": "cosine", "hubness": "csls"}
    table = evaluate_retrieval(test, estimator=model, bank=train, **options)
    projected = evaluate_retrieval(model.transform(test), bank=model.transform(train), **options)
    assert table.mean() == projected.mean()
    scorer = retrieval_scorer("mrr", similarity="cosine", hubness="csls", bank=train)
    assert pickle.loads(pickle.dumps(scorer))(model, test) == table.mean()["mrr"]
    pair = CCA(3).fit(train["image"], train["text"])
    scorer = retrieval_scorer(
        "mrr", similarity="cosine", hubness="csls", bank=(train["image"], train["text"])
    )
    assert scorer(pair, test["image"], test["text"]) == pytest.approx(table.mean()["mrr"])


def test_views_of_a_bank_need_not_be_paired():
    test, bank = scores_of(40, 0), {"image": rows(33, 6), "text": rows(57, 6, seed=1)}
    table = evaluate_retrieval(test, measures="mrr", hubness="csls", bank=Views.unpaired(bank))
    by_hand = ranks(test["text"], test["image"], hubness="csls", bank=(bank["text"], bank["image"]))
    assert table["text", "image"]["mrr"] == pytest.approx(np.mean(1 / by_hand))


# ---- in an index --------------------------------------------------------------------------------


class Identity:
    """Projects nothing: rows are scores already."""

    def transform(self, X):
        return X


def index_of(gallery, backend="exact", similarity="cosine", **options):
    return RetrievalIndex(Identity(), similarity, backend, **options).add(gallery)


def same_answers(index, other, queries, k=7, **options):
    for name in queries:
        for target in (*queries, None, tuple(queries)):
            found = index.search({name: queries[name]}, target, k, **options)
            expected = other.search({name: queries[name]}, target, k, **options)
            assert_array_equal(found[1], expected[1])
            assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("backend", ["exact", FAISS])
def test_an_index_ranks_as_top_k_with_the_same_bank(backend, similarity):
    gallery, bank, queries = scores_of(150, 0), scores_of(60, 1), scores_of(12, 2)
    index = index_of(gallery, backend, similarity, hubness="csls", bank=bank)
    for name, target in (("image", "text"), ("text", "image"), ("text", "text")):
        scores, ids = index.search({name: queries[name]}, target, k=6)
        expected = top_k(
            queries[name],
            gallery[target],
            6,
            similarity,
            hubness="csls",
            bank=(bank[name], bank[target]),
        )
        assert_array_equal(ids, expected[1])
        assert_allclose(scores, expected[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
def test_joint_queries_and_joint_targets_are_compared_with_joint_banks(normalize):
    gallery, bank, queries = scores_of(150, 0), scores_of(60, 1), scores_of(12, 2)
    index = index_of(gallery, hubness="csls", bank=bank)
    both = ("image", "text")

    def joint(part):
        unit = {
            n: v / np.linalg.norm(v, axis=1, keepdims=True) if normalize else v
            for n, v in part.items()
        }
        return unit["image"] + unit["text"]

    found = index.search(queries, both, 6, normalize)
    expected = top_k(
        joint(queries), joint(gallery), 6, hubness="csls", bank=(joint(bank), joint(bank))
    )
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-9)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_rows_added_between_searches_have_the_terms_of_a_new_index(similarity):
    gallery, bank, queries = scores_of(9000, 0), scores_of(60, 1), scores_of(5, 2)
    options = {"similarity": similarity, "hubness": "csls", "bank": bank}
    index = RetrievalIndex(Identity(), **options)
    for start, stop in ((0, 100), (100, 2000), (2000, 8192), (8192, 9000)):
        index.add({name: part[start:stop] for name, part in gallery.items()})
        index.search({"text": queries["text"]}, "image", 3)
    same_answers(index, RetrievalIndex(Identity(), **options).add(gallery), queries)


def test_removed_and_updated_rows_count_as_in_a_new_index():
    gallery, bank, queries = scores_of(300, 0), scores_of(60, 1), scores_of(5, 2)
    options = {"hubness": "csls", "bank": bank}
    index = index_of(gallery, **options)
    index.search({"text": queries["text"]}, "image", 3)
    new = scores_of(20, 4)
    removed = index.search({"text": queries["text"]}, "image", 8)[1][:, 0]  # among them hubs
    kept = np.setdiff1d(np.arange(300), removed)
    index.remove(np.unique(removed)).update(new, kept[:20])
    order = np.append(kept[20:], kept[:20])
    held = {name: np.vstack([part[kept[20:]], new[name]]) for name, part in gallery.items()}
    fresh = RetrievalIndex(Identity(), "cosine", **options).add(held, ids=order)
    same_answers(index, fresh, queries)


@pytest.mark.parametrize("correction", [CSLS(), CSLS(4)], ids=str)
def test_an_index_keeps_its_correction_and_bank_in_a_file_and_a_pickle(tmp_path, correction):
    model = CCA(3).fit(scores_of(100, 5))
    gallery, bank, queries = scores_of(150, 0), scores_of(60, 1), scores_of(12, 2)
    index = RetrievalIndex(model, hubness=correction, bank=bank).add(gallery)
    save(index, tmp_path / "index.mvcca")
    same_answers(load(tmp_path / "index.mvcca"), index, queries)
    again = pickle.loads(pickle.dumps(index))
    assert again.hubness == correction
    same_answers(again.add(scores_of(9, 6)), index.add(scores_of(9, 6)), queries)


# ---- hubness ------------------------------------------------------------------------------------


def test_hubness_is_the_skewness_of_how_often_items_are_found():
    test = scores_of(100, 0)
    table = evaluate_retrieval(test, measures=["hubness@10", "r@1"])
    _, items = top_k(test["image"], test["text"], 10)
    counts = np.bincount(items.ravel(), minlength=100)
    assert table["image", "text"]["hubness@10"] == pytest.approx(skew(counts))
    assert measures.hubness(counts) == pytest.approx(skew(counts))
    assert measures.hubness([2, 2, 2]) == 0
    assert any("skewness" in note and "first 10" in note for note in table.notes)


def test_csls_reduces_the_hubness_of_a_gallery_with_hubs():
    rng = np.random.default_rng(0)
    centre = 3 * rng.normal(size=40)
    shared = {part: rng.normal(size=(400, 40)) for part in ("test", "bank")}
    test, bank = (
        {view: points + 0.5 * rng.normal(size=points.shape) for view in ("image", "text")}
        for points in shared.values()
    )
    for part in (test, bank):  # some items near to all queries
        pull = rng.uniform(size=(400, 1))
        part["text"] = part["text"] + pull * centre
        part["image"] = part["image"] + centre
    names = ["hubness@10", "r@1"]
    plain = evaluate_retrieval(test, measures=names)["image", "text"]
    assert plain["hubness@10"] > 2
    table = evaluate_retrieval(test, measures=names, hubness="csls", bank=bank)
    values = table["image", "text"]
    assert values["hubness@10"] < 0.8 * plain["hubness@10"]
    assert values["r@1"] > plain["r@1"]


# ---- errors -------------------------------------------------------------------------------------


def test_a_correction_needs_a_bank_that_is_not_the_queries():
    test = scores_of(30, 0)
    with pytest.raises(ValueError, match=r"needs a bank.*training rows"):
        evaluate_retrieval(test, hubness="csls")
    with pytest.raises(ValueError, match="bank is the rows to evaluate"):
        evaluate_retrieval(test, hubness="csls", bank=test)
    with pytest.raises(ValueError, match="only to correct for hubs"):
        evaluate_retrieval(test, bank=scores_of(30, 1))
    with pytest.raises(ValueError, match=r"needs a bank"):
        retrieval_scorer(hubness="csls")


def test_errors_say_what_a_bank_lacks():
    test = scores_of(30, 0)
    with pytest.raises(ValueError, match=r"needs bank rows of view 'image'.*holds \['text'\]"):
        evaluate_retrieval(test, hubness="csls", bank={"text": rows(30, 6)})
    with pytest.raises(ValueError, match="bank rows of the queries' view and of the gallery's"):
        top_k(QUERIES, GALLERY, 3, hubness="csls", bank=BANK[0])
    with pytest.raises(ValueError, match=r"10 neighbours .* only 9 rows"):
        top_k(QUERIES, GALLERY, 3, hubness="csls", bank=(BANK[0][:9], BANK[1]))
    with pytest.raises(ValueError, match="have 3 components, the gallery has 4"):
        top_k(QUERIES, GALLERY, 3, hubness="csls", bank=(BANK[0], BANK[1][:, :3]))
    with pytest.raises(ValueError, match=r"bank .* finite"):
        top_k(QUERIES, GALLERY, 3, hubness="csls", bank=(BANK[0] * np.nan, BANK[1]))
    with pytest.raises(ValueError, match="bank is empty"):
        top_k(QUERIES, GALLERY, 3, hubness="csls", bank=(BANK[0], BANK[1][:0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CSLS(0), "n_neighbors to be a positive integer, got 0"),
        (lambda: CSLS(2.5), "n_neighbors to be a positive integer, got 2.5"),
        (lambda: CSLS(True), "n_neighbors to be a positive integer, got True"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("name", ["clsl", "qb_norm", 10])
def test_an_unknown_correction_is_an_error_that_names_csls(name):
    with pytest.raises(ValueError, match=rf"to be 'csls', an instance of CSLS.*got {name!r}"):
        top_k(QUERIES, GALLERY, 3, hubness=name, bank=BANK)


def test_memory_is_bounded_by_blocks():
    queries, gallery, bank = rows(3000, 8), rows(4000, 8, seed=1), rows(3500, 8, seed=2)
    options = {"hubness": "csls", "bank": (bank, bank)}
    with config_context(block_rows=64):
        top_k(queries[:70], gallery, 5, **options)  # compile
        tracemalloc.start()
        top_k(queries, gallery, 5, **options)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 20e6  # all similarities take 96 MB, those of the bank 112 MB


# ---- every estimator with a ranking -------------------------------------------------------------


def transform(model, rows):
    return model.transform(rows)


def estimators():
    """Estimators, the rows and the similarity by which they rank, and whether they weight."""
    weighted, cosine = (retrieval_vectors, "inner", True), (transform, "cosine", False)
    table = [
        (CCA(3, reg=0.1), *weighted),
        (MVCCA(3, reg=0.1), *weighted),
        (MVCCA(3, reg=0.1, power=1), transform, "cosine", True),
        (KCCA(3, reg=0.1), *weighted),
        (NCCA(3), *cosine),
        (PLS(3), *cosine),
        (CFA(3), *cosine),
        (Procrustes(), *cosine),
        (MLCCA(3), *weighted),
        (MVMLCCA(3, reg=1, within="label"), *weighted),
        (LGCFL(), *cosine),
        (JRL(n_neighbors=5), JRL.propagate, "inner", False),
        (CMOLRS(3), transform, "inner", False),
    ]
    if find_spec("torch"):
        from mvcca import deep

        short = {"max_epochs": 2, "batch_size": 50, "random_state": 0}
        table += [
            (deep.DCCA(3, hidden_layer_sizes=(8,), **short, start="random"), *weighted),
            (deep.CCAL(3, hidden_layer_sizes=(8,), **short, start="random"), *weighted),
            (deep.ACMR(3, **short), transform, "euclidean", False),
        ]
    return [pytest.param(*row, id=repr(row[0])[:40]) for row in table]


@pytest.fixture(scope="module")
def digits():
    data = load_digits_views()
    return data.views[:150], data.labels[:150], data.views[150:170]


def fitted(estimator, train, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer components than asked for, and short training
        takes_labels = estimator.__sklearn_tags__().target_tags.required
        return estimator.fit(train, labels) if takes_labels else estimator.fit(train)


@pytest.mark.parametrize(("estimator", "compared", "similarity", "is_weighted"), estimators())
def test_every_estimator_with_a_ranking_takes_corrections_and_weightings(
    estimator, compared, similarity, is_weighted, digits
):
    train, labels, test = digits
    model, few = fitted(estimator, train, labels), train[:40]
    bank, rows = (
        {name: np.asarray(block, float) for name, block in compared(model, part).items()}
        for part in (few, test)
    )
    for correction in (CSLS(), CSLS(3)):
        expected = corrected(
            correction, rows["left"], rows["right"], (bank["left"], bank["right"]), similarity
        )
        index = RetrievalIndex(model, hubness=correction, bank=few).add(test)
        scores, _ = index.search({"left": test["left"]}, "right", k=20)
        assert_allclose(scores, -np.sort(-expected, axis=1), rtol=2e-4, atol=2e-4)
        options = {"estimator": model, "hubness": correction, "bank": few}
        table = evaluate_retrieval(test, measures="mrr", directions=[("left", "right")], **options)
        own = expected.diagonal()[:, None]  # deep estimators have float32, JRL has ties
        least, most = (expected > own + 1e-3).sum(axis=1) + 1, (expected > own - 1e-3).sum(axis=1)
        found = 1 / table.rows[0].per_query["mrr"]
        assert ((least - 1e-9 < found) & (found < most + 1e-9)).all()
        assert (most - least).mean() < 2

    for weighting in ("likelihood", "profile-likelihood", "likelihood-cosine", "correlation^2"):
        options = {"estimator": model, "weighting": weighting, "hubness": "csls", "bank": few}
        if is_weighted:
            table = evaluate_retrieval(test, measures="mrr", **options)
            assert table.notes[0].endswith(f"{weighting}, CSLS")
        else:
            with pytest.raises(ValueError, match=f"{type(model).__name__} has no expected_"):
                evaluate_retrieval(test, measures="mrr", **options)
