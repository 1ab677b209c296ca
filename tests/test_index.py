"""The index against rankings of the estimator's own projections, and its checks of queries."""

from __future__ import annotations

import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, MVCCA, PerView, Views, config_context
from mvcca.retrieval import RetrievalIndex, retrieval_vectors, top_k

SIMILARITIES = ("cosine", "euclidean", "inner")
needs_faiss = pytest.mark.skipif(not find_spec("faiss"), reason="needs faiss")
FAISS = pytest.param("faiss", marks=needs_faiss)
FLAT = pytest.param("faiss:Flat", marks=needs_faiss)
backends = pytest.mark.parametrize("backend", ["exact", FLAT])
similarities = pytest.mark.parametrize("similarity", SIMILARITIES)


def objects(n=60, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    widths = {"image": 6, "text": 5, "sound": 4}
    maps = np.random.default_rng(99)
    return {
        name: points @ maps.normal(size=(3, width)) + 0.3 * rng.normal(size=(n, width))
        for name, width in widths.items()
    }


@pytest.fixture(scope="module")
def model():
    return MVCCA(3).fit(objects(200, seed=1))


class Identity:
    """Projects nothing: rows are scores already."""

    def transform(self, X):
        return X


def exact(gallery):
    return RetrievalIndex(Identity(), similarity="inner").add(gallery)


@pytest.mark.parametrize("backend", ["exact", FAISS])
@similarities
def test_any_view_finds_any_other(model, similarity, backend):
    gallery, queries = objects(), objects(7, seed=2)
    index = RetrievalIndex(model, similarity, backend).add(gallery)
    for query in gallery:
        for target in gallery:
            scores, ids = index.search({query: queries[query]}, target=target, k=5)
            expected = top_k(
                model.transform({query: queries[query]})[query],
                model.transform({target: gallery[target]})[target],
                5,
                similarity,
            )
            assert_array_equal(ids, expected[1])
            assert_allclose(scores, expected[0], rtol=1e-9, atol=1e-12)


def test_ids_are_the_users(model):
    names = np.array([f"photo {i}" for i in range(60)])
    numbered = RetrievalIndex(model).add(objects())
    named = RetrievalIndex(model).add(objects(), ids=names)
    query = {"text": objects(3, seed=2)["text"]}
    _, ids = named.search(query, target="image", k=4)
    assert_array_equal(ids, names[numbered.search(query, target="image", k=4)[1]])


@pytest.mark.parametrize("k", [1, 4, 60])
def test_over_all_views_an_object_counts_once_with_its_best_view(model, k):
    gallery, queries = objects(), objects(6, seed=2)
    index = RetrievalIndex(model).add(gallery)
    scores, ids = index.search({"text": queries["text"]}, k=k)
    projected = retrieval_vectors(model, gallery)
    q = retrieval_vectors(model, {"text": queries["text"]})["text"]
    best = np.max([q @ p.T for p in projected.values()], axis=0)
    order = np.argsort(-best, axis=1)[:, :k]
    assert_array_equal(ids, order)
    assert_allclose(scores, np.take_along_axis(best, order, axis=1))


def test_a_joint_query_is_the_sum_of_projections(model):
    gallery, queries = objects(), objects(6, seed=2)
    index = RetrievalIndex(model, "inner").add(gallery)
    joint = {name: queries[name] for name in ("image", "text")}
    projected, rows = model.transform(joint), model.transform({"sound": gallery["sound"]})["sound"]
    summed = projected["image"] + projected["text"]
    _, ids = index.search(joint, target="sound", k=5)
    assert_array_equal(ids, top_k(summed, rows, 5, "inner")[1])
    unit = sum(p / np.linalg.norm(p, axis=1, keepdims=True) for p in projected.values())
    _, ids = index.search(joint, target="sound", k=5, normalize=True)
    assert_array_equal(ids, top_k(unit, rows, 5, "inner")[1])


def test_adding_in_parts_is_adding_at_once(model):
    gallery, query = objects(), {"text": objects(5, seed=2)["text"]}
    at_once = RetrievalIndex(model).add(gallery)
    in_parts = RetrievalIndex(model)
    for part in (slice(0, 13), slice(13, 60)):
        in_parts.add({name: block[part] for name, block in gallery.items()})
        in_parts.search(query, k=1)  # what was prepared must not go stale
    by_view = RetrievalIndex(model)
    for name, block in gallery.items():
        by_view.add({name: block}, ids=np.arange(60))
    for target in (None, "image"):
        expected = at_once.search(query, target, k=10)
        for index in (in_parts, by_view):
            found = index.search(query, target, k=10)
            assert_array_equal(found[1], expected[1])
            assert_allclose(found[0], expected[0])


def test_partly_seen_objects_are_found_in_the_views_they_are_seen_in(model):
    gallery = objects()
    index = np.column_stack([np.arange(60), np.full(60, -1), np.full(60, -1)])
    index[::2, 1] = np.arange(30)
    blocks = {"image": gallery["image"], "text": gallery["text"][::2], "sound": gallery["sound"]}
    views = Views(blocks, index).select(["image", "text"])
    partly = RetrievalIndex(model).add(views)
    query = {"sound": objects(5, seed=2)["sound"]}
    _, ids = partly.search(query, target="text", k=30)
    assert_array_equal(np.sort(ids, axis=1), np.tile(np.arange(0, 60, 2), (5, 1)))
    assert partly.search(query, k=60)[1].shape == (5, 60)
    with pytest.raises(ValueError, match="from 1 to 30"):
        partly.search(query, target="text", k=31)


def test_of_equal_scores_the_object_added_first_comes_first():
    index = exact({"a": np.ones((200, 2))})
    _, ids = index.search({"a": np.ones((1, 2))}, k=7)
    assert ids.tolist() == [list(range(7))]


def test_a_zero_row_has_cosine_zero():
    index = RetrievalIndex(Identity()).add({"a": np.array([[1.0, 0], [0, 0], [-1, 0]])})
    scores, ids = index.search({"a": np.array([[2.0, 0], [0, 0]])}, k=3)
    assert scores.tolist() == [[1, 0, -1], [0, 0, 0]]
    assert ids.tolist() == [[0, 1, 2], [0, 1, 2]]


def test_lists_go_by_the_names_of_their_positions():
    first, second = np.random.default_rng(0).normal(size=(2, 50, 4))
    model = CCA(2).fit([first, second])
    index = RetrievalIndex(model, similarity="cosine").add([first, second])
    _, ids = index.search({"view0": first[:3]}, target="view0", k=1)
    assert ids.ravel().tolist() == [0, 1, 2]


def test_lists_have_the_fitted_views_in_order(model):
    gallery = objects()
    index = RetrievalIndex(model).add(list(gallery.values()))
    with config_context(block_rows=7):  # a list is cut, too
        index.add(list(gallery.values()))
    expected = RetrievalIndex(model).add(gallery).add(gallery)
    same_answers(index, expected, {"image": gallery["image"]})


def test_what_is_passed_is_copied():
    rows = np.eye(3)
    index = exact({"a": rows})
    rows[:] = 7
    assert index.search({"a": np.eye(3)}, k=1)[0].ravel().tolist() == [1, 1, 1]


@similarities
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_cut_of_a_gallery_answers_as_a_gallery_in_one_piece(similarity, dtype):
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(20_000, 5)) + 30).astype(dtype)
    rows[0] = 1e3  # a first row unlike the others
    queries = rows[::2000] + dtype(0.01)
    expected = top_k(queries, rows, 6, similarity)
    with config_context(block_rows=3000):  # `add` projects by blocks
        in_blocks = RetrievalIndex(Identity(), similarity).add({"a": rows})
    index = RetrievalIndex(Identity(), similarity)
    for part in np.split(rows, [1, 2, 40, 41, 8191, 8193, 9000]):
        index.add({"a": part})
    loaded = pickle.loads(pickle.dumps(index))
    for each in (in_blocks, index, loaded):
        scores, ids = each.search({"a": queries}, k=6)
        assert_allclose(scores, expected[0], rtol=3e-3 if dtype == np.float32 else 1e-9, atol=1e-6)
        assert np.mean(ids == expected[1]) > 0.95  # in float32 a few change places
        assert_array_equal(each.search({"a": queries}, k=20_000)[1][:, :6], ids)
    if dtype == np.float64:
        assert_array_equal(index.search({"a": queries}, k=6)[1], expected[1])


def test_projections_of_blocks_name_the_row_that_is_not_finite():
    rows = np.ones((100, 2))
    rows[77, 1] = np.inf
    with config_context(block_rows=30), pytest.raises(ValueError, match="infinity in row 77"):
        exact({"a": rows})


def test_blocks_in_which_a_view_is_not_seen_are_added():
    gallery = objects()
    model = MVCCA(2).fit(gallery)
    scale = PerView(StandardScaler()).fit(gallery)  # which takes no empty matrix
    views = Views.unpaired(gallery)
    expected = RetrievalIndex(make_pipeline(scale, model)).add(views)
    with config_context(block_rows=25):
        index = RetrievalIndex(make_pipeline(scale, model)).add(views)
    for target in (None, "sound"):
        found = index.search({"image": gallery["image"]}, target, k=9)
        wanted = expected.search({"image": gallery["image"]}, target, k=9)
        assert_array_equal(found[1], wanted[1])


def test_rows_of_both_precisions_are_held_and_found():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    index = exact({"a": rows[:100].astype(np.float32)}).add({"a": rows[100:]})
    index.add({"a": rows[:50].astype(np.float32)})
    scores, _ = index.search({"a": rows}, k=3)
    wanted = rows @ np.concatenate([rows, rows[:50]]).T
    assert scores.dtype == np.float64
    assert_allclose(scores, -np.sort(-wanted, axis=1)[:, :3], rtol=1e-6)


@pytest.mark.parametrize("kind", ["list", "array", "series"])
@pytest.mark.parametrize("other", [1, None, np.nan, b"b"], ids=repr)
def test_ids_of_mixed_types_are_refused_by_name(model, other, kind):
    X = objects()
    ids = ["a", other] * 30
    if kind == "array":
        ids = np.array(ids, dtype=object)
    elif kind == "series":
        ids = pytest.importorskip("pandas").Series(ids, dtype=object)
    index = RetrievalIndex(model)
    for change in (index.add, index.update):
        with pytest.raises(
            ValueError, match=r"ids must be of one type, got .* and str\. Convert|an id for every"
        ):
            change(X, ids)
    with pytest.raises(ValueError, match=r"ids must be of one type|an id for every"):
        index.remove(ids)
    index.add(X, [np.str_(f"b{i}") if i % 2 else f"a{i}" for i in range(60)])
    assert ": 58" in repr(index.remove(["a0", np.str_("b1")]))


def test_ids_of_growing_length_and_in_any_order_are_kept():
    rng = np.random.default_rng(0)
    numbers = rng.permutation(3000)
    index = RetrievalIndex(Identity(), similarity="euclidean")
    for part in np.split(numbers, np.sort(rng.integers(0, 3000, 40))):
        index.add({"a": part[:, None].astype(float)}, ids=[f"id {n}" for n in part] or part)
    _, ids = index.search({"a": numbers[:, None].astype(float)}, k=1)
    assert ids.ravel().tolist() == [f"id {n}" for n in numbers]
    for known in numbers[[0, 1500, 2999]]:
        with pytest.raises(ValueError, match=f"several rows with the id id {known}"):
            index.add({"a": np.ones((1, 1))}, ids=[f"id {known}"])


# ---- removing and updating ----------------------------------------------------------------------


def same_answers(index, expected, queries, targets=(None, "image", ("image", "text"))):
    """Compare lists of several lengths, also those in which removed rows would have been."""
    for target in targets:
        n = len(expected.search(queries, target, k=1)[0])
        for k in (1, 5, 40):
            found, wanted = (each.search(queries, target, k) for each in (index, expected))
            assert found[1].shape == (n, k)
            assert_array_equal(found[1], wanted[1])
            assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-12)


@backends
@similarities
@pytest.mark.parametrize("share", [0.02, 0.2, 0.8])  # the last two are compacted
def test_an_index_after_removals_is_that_of_the_other_objects(model, similarity, backend, share):
    rng = np.random.default_rng(0)
    gallery, queries = objects(300), {"text": objects(6, seed=2)["text"]}
    index = RetrievalIndex(model, similarity, backend).add(gallery)
    index.search(queries, ("image", "text"), k=3)
    removed = rng.permutation(300)[: int(300 * share)]
    for ids in np.array_split(removed, 5):
        index.remove(ids)
        index.search(queries, k=2)  # a faiss index that must notice the next removal
    kept = np.setdiff1d(np.arange(300), removed)
    others = {name: rows[kept] for name, rows in gallery.items()}
    expected = RetrievalIndex(model, similarity, backend).add(others, ids=kept)
    same_answers(index, expected, queries)
    with pytest.raises(ValueError, match=f"from 1 to {len(kept)}"):
        index.search(queries, k=len(kept) + 1)


@backends
@similarities
def test_updated_rows_are_those_that_are_found(model, similarity, backend):
    gallery, queries = objects(300), {"text": objects(6, seed=2)["text"]}
    names = np.array([f"photo {i}" for i in range(300)])
    index = RetrievalIndex(model, similarity, backend).add(gallery, names)
    index.search(queries, ("image", "text"), k=3)
    now, new = {name: rows.copy() for name, rows in gallery.items()}, objects(300, seed=5)
    for ids, views in [
        (np.arange(40), ["image"]),
        (np.arange(20, 250), ["text", "sound"]),
        (np.arange(10), ["image", "text", "sound"]),
    ]:
        new = {name: rows[::-1] for name, rows in new.items()}
        for name in views:
            now[name][ids] = new[name][ids]
        index.update({name: new[name][ids] for name in views}, names[ids])
        expected = RetrievalIndex(model, similarity, backend).add(now, names)
        same_answers(index, expected, queries)


def test_an_update_adds_the_view_that_an_object_lacked():
    gallery = {name: np.random.default_rng(0).normal(size=(5, 2)) for name in "ab"}
    index = exact({"a": gallery["a"]}).update({"b": gallery["b"][3:]}, ids=[3, 4])
    _, ids = index.search({"a": np.ones((1, 2))}, target="b", k=2)
    assert sorted(ids[0]) == [3, 4]
    assert index.search({"a": np.ones((1, 2))}, k=5)[1].shape == (1, 5)  # five objects, not seven


def test_removed_ids_may_be_added_again():
    index = exact({"a": np.eye(3), "b": np.eye(3)})
    index.remove([1, 1]).add({"a": 5 * np.ones((1, 3))}, ids=[1])
    assert index.search({"a": np.ones((1, 3))}, "a", k=1)[1].tolist() == [[1]]
    assert index.search({"a": np.ones((1, 3))}, k=3)[1].shape == (1, 3)
    index.remove([0, 1, 2])
    with pytest.raises(ValueError, match="empty"):
        index.search({"a": np.ones((1, 3))}, k=1)
    _, ids = index.add({"a": np.eye(3)}).search({"a": np.eye(3)}, k=1)
    assert ids.ravel().tolist() == [4, 5, 6]  # numbers are not given again


@needs_faiss
def test_faiss_is_built_anew_where_a_view_was_emptied():
    rng = np.random.default_rng(0)
    index = RetrievalIndex(Identity(), backend="faiss:Flat").add({"a": rng.normal(size=(9, 3))})
    index.search({"a": np.ones((1, 3))}, k=1)
    new = rng.normal(size=(9, 3))
    index.remove(np.arange(9)).add({"a": new})
    assert index.search({"a": new}, k=1)[1].ravel().tolist() == list(range(9, 18))


@needs_faiss
def test_faiss_finds_what_is_left_where_all_it_finds_was_removed():
    rows = np.random.default_rng(0).normal(size=(2000, 3))
    nearest = np.argsort(np.linalg.norm(rows, axis=1))
    index = RetrievalIndex(Identity(), "euclidean", "faiss:Flat").add({"a": rows})
    index.search({"a": np.zeros((1, 3))}, k=1)
    index.remove(nearest[:400])
    found = index.search({"a": np.zeros((1, 3))}, k=5)[1]
    assert_array_equal(found[0], nearest[400:405])


def test_a_change_that_is_refused_leaves_the_index_as_it_was():
    index = exact({"a": np.eye(3), "b": np.eye(3)})
    query = {"a": np.eye(3)}
    before = index.search(query, ("a", "b"), k=3)
    for change, message in [
        (lambda: index.remove([0, 7]), "no object with the id 7"),
        (lambda: index.remove([[0, 1]]), r"shape \(n_objects,\)"),
        (lambda: index.remove(["0"]), "no object with the id"),
        (lambda: index.update({"a": np.ones((2, 3))}, [0, 7]), "no object with the id 7"),
        (lambda: index.update({"a": np.ones((2, 3))}, [0]), "2 ids"),
        (lambda: index.update({"a": np.ones((2, 3))}, [0, 0]), "several rows with the id 0"),
        (lambda: index.update({"a": np.eye(2, 3) + np.inf}, [0, 1]), "finite"),
        (lambda: index.update({"c": np.eye(2, 3), "a": np.eye(2)}, [0, 1]), "3 components"),
    ]:
        with pytest.raises(ValueError, match=message):
            change()
    for found, expected in zip(index.search(query, ("a", "b"), k=3), before, strict=True):
        assert_array_equal(found, expected)


def test_a_large_index_keeps_its_place_through_many_changes():
    rng = np.random.default_rng(0)
    index, held, number = RetrievalIndex(Identity(), "euclidean"), {}, 0
    for step in range(60):
        if step % 3 == 2:
            known = rng.permutation(list(held))
            gone, moved = known[: len(known) // 9], known[len(known) // 9 : len(known) // 5]
            index.remove(gone)
            for key in gone:
                del held[key]
            held |= {key: held[key] + 0.013 for key in moved}
            index.update({"a": np.array([[held[key]] for key in moved])}, moved)
        else:
            new = {f"id {number + i}": float(number + i) for i in range(700)}
            index.add({"a": np.array(list(new.values()))[:, None]}, ids=list(new))
            held, number = held | new, number + 700
    values = np.array(list(held.values()))
    scores, ids = index.search({"a": values[:, None]}, k=1)
    assert_array_equal(ids.ravel(), list(held))
    assert_allclose(scores, 0, atol=1e-9)


# ---- several views as one -----------------------------------------------------------------------


def summed(model, views, normalize):
    """Sums of projections over the views in which an object is seen, by a plain loop."""
    scores = model.transform(views)
    total = np.zeros((len(views), 3))
    for v, name in enumerate(views.names):
        for row, i in enumerate(np.flatnonzero(views.seen[:, v])):
            own = scores[name][row]
            total[i] += own / np.linalg.norm(own) if normalize else own
    return total


def partly(views, seed):
    """Views in which about a third of the rows are missing, but not all of an object."""
    rng = np.random.default_rng(seed)
    n = len(next(iter(views.values())))
    index = np.where(rng.random((n, len(views))) < 0.35, -1, np.arange(n)[:, None])
    nowhere = np.flatnonzero((index < 0).all(axis=1))
    index[nowhere, 0] = nowhere
    return Views(views, index)


@backends
@pytest.mark.parametrize("normalize", [False, True])
@similarities
def test_joint_queries_and_targets_sum_the_views_that_are_there(
    model, similarity, normalize, backend
):
    gallery, queries = objects(80), objects(9, seed=2)
    items = partly({name: gallery[name] for name in ("image", "text")}, seed=0)
    asked = partly({name: queries[name] for name in ("sound", "text", "image")}, seed=1)
    index = RetrievalIndex(model, similarity, backend).add(items)
    scores, ids = index.search(asked, ("image", "text"), k=7, normalize=normalize)
    expected = top_k(
        summed(model, asked, normalize),
        summed(model, items, normalize),
        7,
        similarity,
    )
    assert_array_equal(ids, expected[1])
    assert_allclose(scores, expected[0], rtol=1e-9, atol=1e-12)


def test_a_joint_target_follows_every_change(model):
    gallery, queries = objects(60), {"sound": objects(5, seed=2)["sound"]}
    target = ["text", "image"]
    index = RetrievalIndex(model).add({"image": gallery["image"][:40]})
    index.add({"text": gallery["text"][:30]}, ids=np.arange(30))
    index.search(queries, target, k=3)
    index.add({"text": gallery["text"][30:]}, ids=np.arange(30, 60))
    index.add({"image": gallery["image"][40:]}, ids=np.arange(40, 60))
    index.update({"text": gallery["text"][5:9] + 1}, ids=np.arange(5, 9)).remove([50, 3])
    now = {name: rows.copy() for name, rows in gallery.items() if name != "sound"}
    now["text"][5:9] += 1
    kept = np.setdiff1d(np.arange(60), [50, 3])
    other = RetrievalIndex(model).add({n: rows[kept] for n, rows in now.items()}, ids=kept)
    same_answers(index, other, queries, targets=[target])
    one = index.search(queries, ("text",), k=4)
    assert_array_equal(one[1], index.search(queries, "text", k=4)[1])


# ---- lazy queries -------------------------------------------------------------------------------


@backends
@pytest.mark.parametrize("target", [None, "image", ("image", "text")])
def test_dask_queries_give_lazy_arrays_of_the_index_as_it_was(model, target, backend):
    da = pytest.importorskip("dask.array")
    queries = {name: objects(50, seed=2)[name] for name in ("text", "sound")}
    names = [f"photo {i}" for i in range(60)]
    index = RetrievalIndex(model, backend=backend).add(objects(), ids=names)
    expected = index.search(queries, target, k=4)
    lazy = {
        "text": da.from_array(queries["text"], chunks=(20, 2)),
        "sound": da.from_array(queries["sound"], chunks=(17, -1)),
    }
    scores, ids = index.search(lazy, target, k=4)
    assert (scores.shape, scores.dtype) == ((50, 4), np.float64)
    assert (ids.shape, ids.dtype) == ((50, 4), expected[1].dtype)
    index.remove(names[:50])
    found = da.compute(scores, ids)
    assert_array_equal(found[1], expected[1])
    assert_allclose(found[0], expected[0], rtol=1e-9)
    mixed, _ = index.search({"text": lazy["text"], "sound": queries["sound"]}, target, k=4)
    assert mixed.compute().shape == (50, 4)
    with pytest.raises(ValueError, match="from 1 to 10"):
        index.search(lazy, target, k=11)


# ---- threads ------------------------------------------------------------------------------------


def in_threads(*functions):
    """Run functions side by side, with as many changes of thread as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(functions)) as pool:
            return [future.result() for future in [pool.submit(f) for f in functions]]
    finally:
        sys.setswitchinterval(before)


def answers_meanwhile(index, changes, n_threads, *search):
    """Answers of threads that search while another one makes changes, in lists, one per thread."""
    done = threading.Event()

    def change_all():
        try:
            for name, *arguments in changes:
                getattr(index, name)(*arguments)
                time.sleep(0.002)
        finally:
            done.set()

    def search_on():
        answers = []
        while not done.is_set():
            answers.append(index.search(*search))
        return answers

    return in_threads(change_all, *[search_on] * n_threads)[1:]


def states_of(index, changes, *search):
    """Number and scores of the state after every change, by the ids that are found."""
    states = {}
    for number, (name, *arguments) in enumerate([("search", *search), *changes]):
        getattr(index, name)(*arguments)
        scores, ids = index.search(*search)
        states[ids.tobytes()] = number, scores
    assert len(states) > len(changes) / 2
    return states


@pytest.mark.parametrize("target", ["a", None])
@pytest.mark.parametrize(
    ("backend", "similarity"),
    [
        *(("exact", name) for name in SIMILARITIES),
        pytest.param("faiss:Flat", "cosine", marks=needs_faiss),
    ],
)
def test_every_answer_while_rows_are_added_is_that_of_a_state_that_existed(
    similarity, backend, target
):
    rng = np.random.default_rng(0)
    n_states, n_rows, k = 20, 300, 25  # which passes the end of a chunk
    # Every state has better answers than the one before: nearer ones, or longer ones.
    parts = [
        {name: length + spread * rng.normal(size=(n_rows, 4)) for name in "ab"}
        for spread, length in zip(
            np.linspace(2, 0.1, n_states),
            np.linspace(1, 20 if similarity == "inner" else 1, n_states),
            strict=True,
        )
    ]
    search = {"a": np.ones((2, 4))}, target, k
    changes = [("add", part) for part in parts[1:]]
    alone, index = (RetrievalIndex(Identity(), similarity, backend).add(parts[0]) for _ in range(2))
    states = states_of(alone, changes, *search)
    for of_one_thread in answers_meanwhile(index, changes, 4, *search):
        numbers = []
        for scores, ids in of_one_thread:
            number, expected = states[ids.tobytes()]
            assert_allclose(scores, expected, rtol=1e-9)
            numbers.append(number)
        assert numbers == sorted(numbers)
    assert_array_equal(index.search(*search)[1], alone.search(*search)[1])


@pytest.mark.parametrize("target", ["a", None, ("a", "b")])
@backends
def test_every_answer_while_rows_change_is_that_of_a_state_that_existed(backend, target):
    rng = np.random.default_rng(0)
    n, k = 3000, 20
    first = {name: rng.normal(size=(n, 4)) for name in "ab"}
    changes, alive = [], np.arange(n)
    for step in range(24):  # each change takes away or brings what the query finds first
        chosen = rng.permutation(alive)[:90]
        if step % 2:
            changes.append(("remove", chosen))
            alive = np.setdiff1d(alive, chosen)
        else:
            near = {name: (0.1 - 0.002 * step) * rng.normal(size=(90, 4)) for name in "ab"}
            changes.append(("update", near, chosen))

    search = {"a": np.zeros((2, 4))}, target, k
    alone, index = (RetrievalIndex(Identity(), "euclidean", backend).add(first) for _ in range(2))
    states = states_of(alone, changes, *search)
    for of_one_thread in answers_meanwhile(index, changes, 3, *search):
        for scores, ids in of_one_thread:
            assert_allclose(scores, states[ids.tobytes()][1], rtol=1e-9)
    assert_array_equal(index.search(*search)[1], alone.search(*search)[1])


def test_rows_added_by_several_threads_are_all_there():
    index = RetrievalIndex(Identity(), similarity="euclidean").add({"a": np.zeros((1, 1))})

    def adder(first):
        def add():
            for value in range(first, first + 100):
                index.add({"a": np.full((1, 1), float(value))})

        return add

    in_threads(*[adder(1 + 100 * number) for number in range(6)])
    values = np.arange(601.0)[:, None]
    scores, ids = index.search({"a": values}, k=1)
    assert_allclose(scores, 0, atol=1e-9)
    assert_array_equal(np.sort(ids.ravel()), np.arange(601))


# ---- faiss --------------------------------------------------------------------------------------


@needs_faiss
@pytest.mark.parametrize("description", ["Flat", "HNSW16", "IVF8,Flat"])
@similarities
def test_faiss_finds_most_of_what_exact_search_finds(similarity, description):
    rng = np.random.default_rng(0)
    gallery, queries = {"a": rng.normal(size=(400, 8))}, {"a": rng.normal(size=(20, 8))}
    expected = RetrievalIndex(Identity(), similarity).add(gallery).search(queries, k=10)
    index = RetrievalIndex(Identity(), similarity, f"faiss:{description}").add(gallery)
    scores, ids = index.search(queries, k=10)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, expected[1], strict=True)])
    assert recall >= (0.2 if description.startswith("IVF") else 0.9)
    assert (np.diff(scores) <= 0).all()
    assert (ids >= 0).all()


@needs_faiss
def test_where_faiss_finds_too_few_the_search_is_exact():
    rng = np.random.default_rng(0)
    gallery, queries = {"a": rng.normal(size=(400, 8))}, {"a": rng.normal(size=(20, 8))}
    index = RetrievalIndex(Identity(), backend="faiss:IVF16,Flat").add(gallery)
    expected = RetrievalIndex(Identity()).add(gallery).search(queries, k=300)
    assert_array_equal(index.search(queries, k=300)[1], expected[1])


def test_a_missing_faiss_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install mvcca\[index\]"):
        RetrievalIndex(Identity(), backend="faiss")


# ---- bad queries and galleries ------------------------------------------------------------------


TEXT = objects(3, seed=2)["text"]
BAD = [
    ({"text": TEXT[:, :4]}, "image", 1, "expecting 5 features"),
    ({"text": np.where(np.arange(5) == 2, np.nan, TEXT)}, "image", 1, "NaN"),
    ({"text": TEXT}, "image", 21, "from 1 to 20"),
    ({"text": TEXT}, None, 21, "from 1 to 20"),
    ({"text": TEXT}, "image", 0, "from 1 to 20"),
    ({"text": TEXT}, "video", 1, "no view 'video'"),
    ({"text": TEXT, "image": objects(4)["image"]}, "sound", 1, "same number of rows"),
    (
        Views({"text": TEXT, "image": TEXT[:, [0] * 6]}, [[0, -1], [-1, -1]]),
        *("sound", 1, "Query 1 is seen in no view"),
    ),
    ({"text": TEXT}, ["image", "image"], 1, "one or more different views"),
    ({"text": TEXT}, [], 1, "one or more different views"),
]


@pytest.mark.parametrize("backend", ["exact", FAISS])
def test_bad_queries_are_refused(model, backend):
    index = RetrievalIndex(model, backend=backend).add(objects(20))
    for query, target, k, message in BAD:
        with pytest.raises(ValueError, match=message):
            index.search(query, target, k)
    scaled = make_pipeline(PerView(StandardScaler()), MVCCA(3)).fit(objects())
    for one in (index, RetrievalIndex(scaled).add(objects())):
        with pytest.raises(TypeError, match="name the view"):
            one.search(TEXT, target="image")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_projections_that_are_not_finite_are_refused(value):
    good, bad = np.ones((2, 3)), np.ones((2, 3))
    bad[1, 0] = value
    with pytest.raises(ValueError, match="finite"):
        exact({"a": bad})
    with pytest.raises(ValueError, match="finite"):
        exact({"a": good}).search({"a": bad}, k=1)


def test_projections_of_another_width_are_refused():
    with pytest.raises(ValueError, match="2 components, the gallery has 3"):
        exact({"a": np.ones((2, 3))}).search({"b": np.ones((2, 2))}, k=1)


def test_an_empty_index_says_so(model):
    with pytest.raises(ValueError, match="empty"):
        RetrievalIndex(model).search({"text": objects(2)["text"]})


def test_a_gallery_that_is_refused_leaves_the_index_as_it_was():
    index = exact({"a": np.eye(3), "b": np.eye(3)})
    query = {"a": np.eye(3)}
    before = index.search(query, k=3)[1]
    for views, ids, message in [
        ({"a": np.eye(3)}, [0, 7, 8], "several rows with the id 0"),
        ({"a": np.eye(3)}, [7, 8], "3 ids"),
        ({"a": np.eye(3)}, ["x", "y", "z"], "ids of view 'a'"),
        ({"c": np.eye(3), "a": np.full((3, 3), np.nan)}, [7, 8, 9], "finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            index.add(views, ids=ids)
    assert_array_equal(index.search(query, k=3)[1], before)
    assert index.add({"a": np.eye(1, 3)}).search(query, "a", k=4)[1].max() == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"similarity": "x"}, "similarity"),
        ({"backend": "x"}, "backend"),
        ({"backend": "exact:x"}, "backend"),
    ],
)
def test_unknown_choices_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RetrievalIndex(Identity(), **arguments)


@similarities
@pytest.mark.parametrize("scale", [1e-60, 1e-20, 1e25, 1e60])
def test_faiss_finds_neighbours_beyond_the_range_of_float32(similarity, scale):
    pytest.importorskip("faiss", reason="needs mvcca[index]")
    rng = np.random.default_rng(0)
    X, Q = scale * rng.standard_normal((500, 6)), scale * rng.standard_normal((40, 6))
    exact, approximate = (
        RetrievalIndex(Identity(), similarity=similarity, backend=backend).add({"image": X})
        for backend in ("exact", "faiss")
    )
    expected = exact.search({"image": Q}, "image", k=5)[1]
    found = approximate.search({"image": Q}, "image", k=5)[1]
    assert np.mean([np.isin(a, b).mean() for a, b in zip(found, expected, strict=True)]) > 0.95


def test_a_query_that_faiss_cannot_tell_in_float32_is_refused():
    pytest.importorskip("faiss", reason="needs mvcca[index]")
    X = np.random.default_rng(0).standard_normal((500, 6))
    index = RetrievalIndex(Identity(), similarity="euclidean", backend="faiss").add({"image": X})
    with pytest.raises(ValueError, match=r"A query is .* as large as the gallery.*backend='exact'"):
        index.search({"image": 1e30 * X[:3]}, "image", k=5)
