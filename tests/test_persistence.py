"""Models in files: what comes back is the same model, and what cannot be stored is refused."""

from __future__ import annotations

import mmap
import os
import pickle
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
from estimators import DEEP, LABELS, VARIANTS, blocks_for, confounds_of, over
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import (
    BaseCrossValidator,
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
)
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR, LinearSVC
from sklearn.utils import all_estimators

import mvcca
from mvcca import (
    CCA,
    KCCA,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    FoldSearchCV,
    JoinViews,
    PerView,
    RetrievalIndex,
    SplitViews,
    Views,
    retrieval_scorer,
)
from mvcca.base import MultiViewEstimator
from mvcca.machine.archive import ModelFileError, read_archive, write_archive
from mvcca.persistence import load, save
from mvcca.persistence._classes import CLASSES, models_in
from mvcca.persistence._sklearn import Classes
from mvcca.persistence.maps import load_maps
from mvcca.retrieval.ranking import Ranking

FITTED = [
    *(est for est in VARIANTS if not hasattr(est, "objective")),  # a function: files hold no code
    NCCA(n_neighbors=30, random_state=0),
    NCCA(n_neighbors=30, reducer=PCA(3), random_state=0),
]

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of fits to tiny data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.mvcca"


def there_and_back(model: Any, path: Path, **options: Any) -> Any:
    save(model, path, **options)
    return load(path)


def assert_equal(back: Any, model: Any, where: str = "model") -> None:
    """The same types, numbers and bytes, attribute by attribute."""
    assert type(back) is type(model), where
    if isinstance(model, np.ndarray) and model.dtype.kind != "O":
        assert (back.dtype, back.shape) == (model.dtype, model.shape), where
        assert back.tobytes() == model.tobytes(), where
    elif isinstance(model, np.ndarray | list | tuple):
        assert len(back) == len(model), where
        for i, (b, m) in enumerate(zip(back, model, strict=True)):
            assert_equal(b, m, f"{where}[{i}]")
    elif sp.issparse(model):
        assert back.shape == model.shape, where
        for part in ("data", "indices", "indptr"):
            assert_equal(getattr(back, part), getattr(model, part), f"{where}.{part}")
    elif isinstance(model, Mapping):
        assert list(back) == list(model), where
        for name in model:
            assert_equal(back[name], model[name], f"{where}[{name!r}]")
    elif hasattr(model, "requires_grad"):  # a tensor; torch may not be there
        assert_equal(back.detach().numpy(), model.detach().numpy(), where)
        assert back.requires_grad == model.requires_grad, where
    elif hasattr(model, "load_state_dict") or isinstance(model, BaseCrossValidator):
        assert_equal(vars(back), vars(model), where)
    elif isinstance(model, np.random.RandomState):
        assert_equal(back.get_state(), model.get_state(), where)
    elif isinstance(model, NearestNeighbors):
        assert_equal(back._fit_X, model._fit_X, f"{where}._fit_X")
    elif is_dataclass(model) and not isinstance(model, BaseEstimator):
        for field in fields(model):
            assert_equal(
                getattr(back, field.name), getattr(model, field.name), f"{where}.{field.name}"
            )
    elif isinstance(model, BaseEstimator):
        assert set(vars(back)) == set(vars(model)), where
        for name in vars(back):
            assert_equal(vars(back)[name], vars(model)[name], f"{where}.{name}")
    elif isinstance(model, Views):
        assert_equal(dict(back.items()), dict(model.items()), where)
        assert_equal(back.seen, model.seen, where)
    else:
        assert back == model or (back != back and model != model), where


def fitted(estimator: Any, blocks: Any = None) -> Any:
    blocks = blocks_for(estimator) if blocks is None else blocks
    return clone(estimator).fit(blocks, LABELS)


def assert_same_scores(back: Any, model: Any, blocks: Mapping[str, Any]) -> None:
    expected = model.transform(blocks)
    for name, scores in back.transform(blocks).items():
        np.testing.assert_array_equal(scores, expected[name])


# ---- the same model comes back -------------------------------------------------------------------


@over(FITTED)
def test_a_fitted_model_comes_back_attribute_by_attribute(estimator, path):
    model = fitted(estimator)
    back = there_and_back(model, path)
    assert_equal(back, model)
    assert repr(back) == repr(model)
    assert_same_scores(back, model, blocks_for(estimator, seed=1))


@over(FITTED)
def test_maps_without_the_estimator_rank_as_the_model_does(estimator, path):
    model = fitted(estimator)
    save(model, path)
    maps, views = load_maps(path), Views(blocks_for(estimator, seed=1))
    is_linear = type(model)._projection is MultiViewEstimator._projection
    is_linear &= not isinstance(model, mvcca.JRL)
    assert (maps is not None) == (is_linear and not hasattr(model, "questions_"))
    if maps is None:
        return
    assert not isinstance(maps, BaseEstimator)
    expected, found = (Ranking.of(own).project(views) for own in (model, maps))
    for name, rows in expected.rows.items():
        np.testing.assert_array_equal(found.rows[name], rows)
    assert str(Ranking.of(maps)) == str(Ranking.of(model))
    confounds = {name: np.zeros((1, 2)) for name in confounds_of(estimator)}
    wide = Views({views.names[0]: np.ones((1, 99)), **confounds})
    with pytest.raises(ValueError, match="features") as of_model:
        model.project(wide)
    with pytest.raises(ValueError, match="features") as of_maps:
        maps.project(wide)
    assert str(of_maps.value) == str(of_model.value)


@pytest.mark.parametrize(
    "model",
    [
        CCA(2, reg="cv"),
        CCA(2, reg=0.1, confounds="b"),
        MVCCA(2, reg=0.1, missing="em"),
        MVCCA(2, reg="cv"),
        make_pipeline(PerView(StandardScaler()), CCA(2, reg=0.1)),
    ],
    ids=["bank", "confounds", "holes", "questions", "pipeline"],
)
def test_searches_by_maps_alone_are_those_of_the_model(model, path):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(80, 3))
    blocks = {name: shared @ rng.normal(size=(3, 5)) + rng.normal(size=(80, 5)) for name in "abc"}
    if isinstance(model, Pipeline) or (type(model) is CCA and model.confounds is None):
        del blocks["b"]
    if getattr(model, "missing", "error") == "em":
        blocks["a"][3, 1] = np.nan
    model = clone(model).fit(Views(blocks))
    save(model, path)
    maps, views = load_maps(path), Views(blocks)
    is_plain = not isinstance(model, Pipeline) and not hasattr(model, "questions_")
    assert (maps is not None) == is_plain
    if maps is not None:
        index, expected = (RetrievalIndex(own).add(views) for own in (maps, model))
        assert_equal(index.search(views, "c", 5), expected.search(views, "c", 5))


def test_maps_whose_parts_do_not_fit_are_left_to_load(path):
    save(CCA(2, reg=0.1).fit(*np.random.default_rng(0).normal(size=(2, 30, 4))), path)
    arrays, content = read_archive(path)
    name = content["model"]["parts"]["means_"]["items"]["X"]["array"]
    arrays[name] = arrays[name][:3]
    write_archive(path, arrays, content)
    assert load_maps(path) is None
    with pytest.raises(ModelFileError, match="cannot be put together"):
        load(path)


@over(FITTED)
def test_an_estimator_that_is_not_fitted_comes_back_so(estimator, path):
    assert_equal(there_and_back(estimator, path), estimator)


def kinds_of_views() -> dict[str, Callable[[dict[str, np.ndarray]], Any]]:
    return {
        "float32": lambda blocks: {n: X.astype(np.float32) for n, X in blocks.items()},
        "sparse": lambda blocks: {n: sp.csr_array(X * (X > 1)) for n, X in blocks.items()},
        "sparse matrices": lambda blocks: {
            n: sp.csr_matrix(X * (X > 1)) for n, X in blocks.items()
        },
        "columns first": lambda blocks: {n: np.asfortranarray(X) for n, X in blocks.items()},
        "wide": lambda blocks: {n: np.hstack([X] * 20) + X[:, :1] for n, X in blocks.items()},
        "a list": lambda blocks: list(blocks.values()),
    }


@pytest.mark.parametrize("change", kinds_of_views().values(), ids=kinds_of_views())
@over(
    [
        CCA(reg=0.1),
        MVMLCCA(within="label"),
        KCCA(),
        KCCA(approximation="nystroem", n_landmarks=9),
        NCCA(),
    ]
)
def test_scores_are_bitwise_the_same_whatever_was_fitted(estimator, change, path):
    blocks = change(blocks_for(estimator))
    model = fitted(estimator, blocks)
    scores = there_and_back(model, path).transform(blocks)
    assert_equal(scores, model.transform(blocks))


def test_two_lone_matrices_come_back_as_X_and_y(path):
    X, Y = blocks_for(CCA()).values()
    model = CCA().fit(X, Y)
    assert_equal(there_and_back(model, path).transform(X, Y), model.transform(X, Y))


def test_names_of_views_may_be_any_strings(path):
    names = ["", "a.b", "['a']", "__metadata__", "Σ\n\udc80"]
    rng = np.random.default_rng(0)
    views = {name: rng.standard_normal((30, 3)) for name in names}
    model = MVCCA().fit(views)
    assert_equal(there_and_back(model, path), model)


def test_parameters_are_kept_to_the_type(path):
    model = MVCCA(
        np.int64(3), reg={"image": np.float64(0.1), "text": 1, "sound": 0.0}, power=float("inf")
    )
    assert_equal(there_and_back(model, path), model)


def test_an_array_that_is_there_twice_is_stored_once_and_stays_one(path):
    model = fitted(CCA())
    model.eigenvalues_ = model.canonical_correlations_
    back = there_and_back(model, path)
    assert back.eigenvalues_ is back.canonical_correlations_


def test_names_of_columns_are_checked_as_before(path):
    frames = {n: pd.DataFrame(X).add_prefix(n) for n, X in blocks_for(CCA()).items()}
    back = there_and_back(CCA().fit(frames), path)
    with pytest.raises(ValueError, match="View 'text': the feature names should match"):
        back.transform({"text": frames["text"].add_prefix("other ")})


def test_the_output_container_is_kept(path):
    model = fitted(CCA()).set_output(transform="pandas")
    back = there_and_back(model, path)
    assert isinstance(back.transform(blocks_for(CCA()))["text"], pd.DataFrame)


# ---- partial_fit goes on -------------------------------------------------------------------------


def batch(estimator: Any, number: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    rows = slice(45 * number, 45 * number + 45)
    return {n: X[rows] for n, X in blocks_for(estimator).items()}, LABELS[rows]


ADDING = [
    est for est in VARIANTS if hasattr(est, "partial_fit") and est not in DEEP
]  # how deep ones go on: test_persistence_deep.py


@over(ADDING)
def test_partial_fit_continues_after_loading_as_before_saving(estimator, path):
    model = clone(estimator).partial_fit(*batch(estimator, 0))
    back = there_and_back(model, path)
    for each in (model, back):
        each.partial_fit(*batch(estimator, 1))
    assert_equal(back, model)


LABEL_KINDS = {
    "numbers": np.arange(90) % 7,
    "names": np.array(["sea", "sky", "land"])[np.arange(90) % 3],
    "sets": [{"a", i % 3} if i % 2 else {"b"} for i in range(90)],
    "real vectors": np.random.default_rng(0).standard_normal((90, 2)),
}


@pytest.mark.parametrize("labels", LABEL_KINDS.values(), ids=LABEL_KINDS)
@over([MLCCA(), MVMLCCA(within="label")])
def test_a_loaded_model_takes_batches_with_labels_of_any_kind(estimator, labels, path):
    blocks = blocks_for(estimator)
    model = clone(estimator).partial_fit(blocks, labels)
    back = there_and_back(model, path)
    assert_equal(back.partial_fit(blocks, labels), model.partial_fit(blocks, labels))


def test_a_loaded_model_takes_batches_of_partly_paired_views(path):
    views = Views.concatenate([Views(blocks_for(CCA())), Views.unpaired(blocks_for(CCA(), seed=1))])
    labels, weights = np.arange(len(views)) % 5, np.linspace(1, 2, len(views))
    model = MLCCA().partial_fit(views, labels, weights)
    back = there_and_back(model, path)
    assert_equal(
        back.partial_fit(views, labels, weights), model.partial_fit(views, labels, weights)
    )


@over([MVCCA(), KCCA(gamma=0.1, approximation="fourier", n_landmarks=20, random_state=0)])
def test_a_loaded_model_takes_batches_of_pairs_of_views(estimator, path):
    index = np.tile(np.arange(90)[:, None], 3)
    index[:20, 0] = index[20:50, 1] = index[50:60, 2] = -1
    views = Views(blocks_for(estimator), index)
    model = clone(estimator).partial_fit(views[:45])
    back = there_and_back(model, path)
    for each in (model, back):
        each.partial_fit(views[45:])
    assert_equal(back, model)


@over(ADDING)
def test_without_its_statistic_a_model_transforms_the_same_and_starts_over(estimator, path):
    model = clone(estimator).partial_fit(*batch(estimator, 0))
    save(model, path)
    size = path.stat().st_size
    back = there_and_back(model, path, statistic=False)
    assert path.stat().st_size < size
    assert_same_scores(back, model, blocks_for(estimator, seed=1))
    with pytest.warns(UserWarning, match="starts over"):
        back.partial_fit(*batch(estimator, 1))


# ---- reducers, steps, pipelines, indexes ---------------------------------------------------------

REDUCERS = [
    PCA(3, whiten=True),
    TruncatedSVD(3),
    StandardScaler(),
    MinMaxScaler(),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer(),
    make_pipeline(StandardScaler(), PCA(0.8)),
]


@pytest.mark.parametrize("reducer", REDUCERS, ids=repr)
def test_a_reducer_comes_back_with_its_model(reducer, path):
    for model in (
        NCCA(n_neighbors=30, reducer={"image": reducer, "text": None}).fit(blocks_for(NCCA())),
        make_pipeline(PerView(reducer), CCA()).fit(blocks_for(CCA())),
    ):
        back = there_and_back(model, path)
        assert_equal(back, model)
        assert_same_scores(back, model, blocks_for(NCCA(), seed=1))


def test_counts_of_words_come_back_with_their_weights(path):
    counts = {n: sp.csr_array(np.round(np.abs(X))) for n, X in blocks_for(CCA()).items()}
    model = make_pipeline(PerView(TfidfTransformer()), CCA(reg=0.1)).fit(counts)
    assert_same_scores(there_and_back(model, path), model, counts)


def test_a_pipeline_from_matrix_to_matrix_comes_back(path):
    X = pd.DataFrame(np.hstack(list(blocks_for(CCA()).values()))).add_prefix("c")
    model = Pipeline(
        [
            ("split", SplitViews({"a": slice(0, 4), "b": ["c4", "c5", "c6"]})),
            ("scale", PerView({"a": StandardScaler(), "b": "passthrough"})),
            ("map", CCA()),
            ("join", JoinViews("mean")),
        ]
    ).fit(X)
    back = there_and_back(model, path)
    assert_equal(back, model)
    np.testing.assert_array_equal(back.transform(X), model.transform(X))


IDS = {
    "none": (None, None),
    "numbers": (np.arange(90) * 2, np.arange(90) * 2 + 1),
    "names": tuple(np.array([f"{kind} {i}" for i in range(90)]) for kind in ("old", "new")),
}


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "inner"])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_an_index_answers_as_before_and_can_be_added_to(similarity, ids, path):
    blocks = blocks_for(CCA())
    index = RetrievalIndex(fitted(CCA()), similarity).add(blocks, ids[0])
    back = there_and_back(index, path)
    assert_same_answers(back, index, blocks)
    for each in (index, back):
        each.add(blocks_for(CCA(), seed=1), ids[1])
    assert_same_answers(back, index, blocks)


def assert_same_answers(back: RetrievalIndex, index: RetrievalIndex, queries: Any) -> None:
    for target in (None, "text"):
        expected = index.search(queries, target, k=5)
        for found, wanted in zip(back.search(queries, target, k=5), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["faiss", "faiss:IVF4,Flat"])
def test_an_index_with_faiss_comes_back_and_can_be_added_to(backend, path):
    pytest.importorskip("faiss")
    blocks = blocks_for(CCA())
    index = RetrievalIndex(fitted(CCA()), backend=backend).add(blocks)
    back = there_and_back(index, path)
    assert back.backend == backend
    assert_same_answers(back, index, blocks)
    for each in (index, back):
        each.add(blocks_for(CCA(), seed=1))
    assert_same_answers(back, there_and_back(index, path), blocks)


def test_an_empty_index_comes_back_empty(path):
    back = there_and_back(RetrievalIndex(fitted(CCA())), path)
    with pytest.raises(ValueError, match="The index is empty"):
        back.search(blocks_for(CCA()))


def large_index(ids: Any = None, similarity: str = "cosine") -> RetrievalIndex:
    """An index of three chunks."""
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(20_000, 4)).astype(np.float32) for name in ("image", "text")}
    return RetrievalIndex(CCA(2).fit(views), similarity).add(views, ids)


def parts_in_file(index: RetrievalIndex, name: str) -> list[bool]:
    """Whether each chunk of a gallery is a part of a mapped file."""
    found = []
    for chunk in index._contents.views[name].rows.chunks:
        while isinstance(chunk.base, np.ndarray):
            chunk = chunk.base
        found.append(isinstance(chunk.base, mmap.mmap))
    return found


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_a_mapped_index_answers_from_the_file_and_can_be_changed(similarity, verify, path):
    index = large_index(similarity=similarity)
    save(index, path)
    before = path.read_bytes()
    mapped = load(path, mmap=True, verify=verify)
    assert parts_in_file(mapped, "text") == [True, True, False]  # the last one is not full
    queries = {"image": np.random.default_rng(1).normal(size=(5, 4))}
    assert_same_answers(mapped, index, queries)
    new = {"text": np.random.default_rng(2).normal(size=(100, 4))}
    for each in (index, mapped):
        each.remove(np.arange(7, 500)).update(new, np.arange(900, 1000)).add(new)
    assert_same_answers(mapped, index, queries)
    assert parts_in_file(mapped, "text")[:2] == [True, True]
    assert path.read_bytes() == before
    assert_same_answers(pickle.loads(pickle.dumps(mapped)), index, queries)
    save(mapped, path)  # which replaces the file that is mapped
    assert_same_answers(load(path), index, queries)
    assert_same_answers(mapped, index, queries)


def test_damage_to_a_mapped_gallery_is_found_where_it_is_looked_for(path):
    index = large_index()
    save(index, path)
    whole = bytearray(path.read_bytes())
    rows = index._contents.views["text"].rows.chunks[0][:10]
    whole[whole.index(rows.tobytes())] ^= 1
    path.write_bytes(whole)
    for mapped in (False, True):
        with pytest.raises(ModelFileError, match="does not match its checksum"):
            load(path, mmap=mapped)
    load(path, mmap=True, verify=False)
    for start in (9, 2000):  # sizes and offsets; the description of the model
        damaged = bytearray(whole)
        damaged[start] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(path, mmap=True, verify=False)
    path.write_bytes(whole[:-100])
    with pytest.raises(ModelFileError):
        load(path, mmap=True, verify=False)


def test_removed_rows_are_not_saved(path):
    index = large_index()
    save(index, path)
    size = path.stat().st_size
    save(index.remove(np.arange(0, 20_000, 5)), path)  # too few to be freed in memory
    assert path.stat().st_size < 0.85 * size
    back = load(path)
    assert_same_answers(back, index, {"image": np.ones((2, 4))})
    with pytest.raises(ValueError, match="no object with the id 5"):
        back.remove([5])


@pytest.mark.slow
def test_ids_that_are_strings_are_stored_as_text(path):
    names = np.array([f"фото {i}" if i % 3 else "" if i == 0 else f"{i}" for i in range(20_000)])
    index = large_index(names)
    back = there_and_back(index, path)
    assert_same_answers(back, index, {"image": np.ones((2, 4))})
    assert int.from_bytes(path.read_bytes()[:8], "little") < 20_000  # not in the header
    found = back.search({"image": np.ones((1, 4))}, "text", k=20_000)[1]
    assert sorted(found[0]) == sorted(names)
    index = RetrievalIndex(index.estimator).add(
        {"text": np.ones((7_000, 4))}, [*names[1:7_000], "x" * 10_000]
    )
    with pytest.raises(ValueError, match="7,000 ids padded to the longest, of 10,000 bytes"):
        save(index, path)


@pytest.mark.parametrize(
    "change",
    [
        {"ends": np.array([3, 2, 6])},
        {"ends": np.array([1, 2, 7])},
        {"ends": np.array([1.0, 2.0, 6.0])},
        {"text": np.array([200] * 6, dtype=np.uint8)},
        {"text": np.zeros((6, 1), dtype=np.uint8)},
    ],
)
def test_forged_ids_are_refused(change, path, monkeypatch):
    index = RetrievalIndex(fitted(CCA(2)))
    index.add({name: rows[:3] for name, rows in blocks_for(CCA()).items()}, ["a", "bc", "def"])
    whole = index.__getstate__()
    text = whole["views"]["text"]
    views = {**whole["views"], "text": text | {"ids": text["ids"] | change}}
    monkeypatch.setattr(RetrievalIndex, "__getstate__", lambda _: whole | {"views": views})
    save(index, path)
    with pytest.raises(ModelFileError, match="cannot be put together here"):
        load(path)


def test_every_public_estimator_can_be_saved():
    public = {getattr(mvcca, name) for name in mvcca.__all__}
    estimators = {cls for cls in public if isinstance(cls, type) and hasattr(cls, "get_params")}
    assert estimators | {RetrievalIndex} <= models_in(CLASSES)


# ---- classes of scikit-learn ---------------------------------------------------------------------

COUNTS = {name: np.abs(X[:, :5]) for name, X in blocks_for(CCA()).items()}
SETTINGS = {  # where the defaults cannot be fitted
    **{name: {"n_components": 1} for name in ("CCA", "PLSCanonical", "PLSSVD")},  # of one label
    "ColumnTransformer": {"transformers": [("a", StandardScaler(), [0, 1])], "remainder": PCA(2)},
    "FeatureUnion": {"transformer_list": [("a", PCA(2)), ("b", StandardScaler())]},
    "FunctionTransformer": {"func": np.log1p, "inverse_func": np.expm1},
    "GaussianRandomProjection": {"n_components": 2},
    "Pipeline": {"steps": [("a", StandardScaler()), ("b", PCA(2))]},
    "RFE": {"estimator": LinearRegression()},
    "RFECV": {"estimator": LogisticRegression(), "cv": KFold(3)},
    "RadiusNeighborsTransformer": {"radius": 9.0},
    "SelectFromModel": {"estimator": LinearSVC()},
    "SelectKBest": {"k": 2},
    "SequentialFeatureSelector": {"estimator": Ridge(), "cv": 2},
    "SparseCoder": {"dictionary": np.eye(5)},
    "SparseRandomProjection": {"n_components": 2},
    "StackingClassifier": {"estimators": [("a", LogisticRegression())]},
    "StackingRegressor": {"estimators": [("a", Ridge())]},
    "VotingClassifier": {"estimators": [("a", LogisticRegression())]},
    "VotingRegressor": {"estimators": [("a", Ridge())]},
}
NOT_OF_MATRICES = [
    "DictVectorizer", "FeatureHasher", "HashingVectorizer", "PatchExtractor",  # of text, of images
    "IsotonicRegression", "KernelCenterer",  # of one feature, of a square matrix
    "LabelBinarizer", "LabelEncoder", "MultiLabelBinarizer",  # of labels
    "TSNE",  # has no transform
]  # fmt: skip
NOT_STORED = {
    "Birch": r"'a'\].(root|dummy_leaf)_ is a sklearn.*_CFNode",  # a tree of clusters
    "BisectingKMeans": r"'a'\]._kmeans_single is a function",  # and a tree of clusters
    "RandomTreesEmbedding": r"'a'\].estimator_ is a sklearn.*ExtraTreeRegressor",  # trees
}
TRANSFORMERS = {
    name: cls for name, cls in all_estimators(type_filter="transformer")
    if name not in NOT_OF_MATRICES
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_any_transformer_of_sklearn_comes_back_bitwise_or_is_refused(name, path):
    parameters = SETTINGS.get(name, {})
    if "random_state" in signature(TRANSFORMERS[name]).parameters:
        parameters = {**parameters, "random_state": 0}
    model = PerView(TRANSFORMERS[name](**parameters)).fit({"a": COUNTS["image"]}, np.arange(90) % 3)
    if name in NOT_STORED:
        with pytest.raises(TypeError, match=NOT_STORED[name]):
            save(model, path)
        return
    back = there_and_back(model, path)
    scores = [each.transform({"a": COUNTS["image"][:20]})["a"] for each in (back, model)]
    assert_equal(*(X.tocsr() if sp.issparse(X) else X for X in scores))
    if name in (
        "KNeighborsTransformer",
        "RadiusNeighborsTransformer",
        "Isomap",
        "LocallyLinearEmbedding",
        "SplineTransformer",
    ):  # hold trees or splines
        return
    assert_equal(back, model)


SENTENCES = ["the red dog", "a blue dog", "the blue cat", "red and blue", "a cat and a dog"]
VECTORIZERS = [
    CountVectorizer(ngram_range=(1, 2), dtype=np.float32),
    TfidfVectorizer(min_df=2, stop_words=["the"], sublinear_tf=True),
    TfidfVectorizer(vocabulary={"cat": 1, "dog": 0}, use_idf=False),
]


@pytest.mark.parametrize("vectorizer", VECTORIZERS, ids=repr)
def test_vectorizers_of_texts_come_back(vectorizer, path):
    model = PerView(make_pipeline(vectorizer, TruncatedSVD(2))).fit({"a": SENTENCES})
    back = there_and_back(model, path)
    new = {"a": ["the cat", "a horse"]}
    assert_equal(*(each.transform(new)["a"] for each in (back, model)))
    assert_equal(*(each.transformers_["a"][0].vocabulary_ for each in (back, model)))


@pytest.mark.parametrize("last", [5, -1, 10**9, 0.0])
def test_positions_of_words_that_compiled_code_would_follow_are_refused(last, path):
    model = PerView(CountVectorizer()).fit({"a": ["red blue cat dog horse"]})
    model.transformers_["a"].vocabulary_["red"] = last
    save(model, path)
    with pytest.raises(ModelFileError, match="cannot be put together here"):
        load(path)


def test_a_forged_vectorizer_opens_no_files(path):
    save(PerView(CountVectorizer()).fit({"a": SENTENCES}), path)
    arrays, content = read_archive(path)
    vectorizer = content["model"]["parts"]["transformers_"]["items"]["a"]["parts"]
    assert vectorizer["input"] == "content"
    vectorizer["input"] = "filename"
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match="would open files"):
        load(path)


@pytest.mark.parametrize("name", NOT_OF_MATRICES)
def test_the_other_transformers_take_no_matrix(name):
    public = dict(all_estimators(type_filter="transformer"))
    with pytest.raises((AttributeError, TypeError, ValueError)):
        PerView(public[name]()).fit({"a": COUNTS["image"]}).transform({"a": COUNTS["image"]})


STORED_BESIDE = {
    "sets": {1, "a", None},
    "frozen sets": frozenset({1.5}),
    "keys of any plain kind": {0: "a", None: [1], (1, "b"): {}, "c": float("nan")},
    "masked arrays": np.ma.array([1.0, 2.0, 3.0], mask=[True, False, True]),
    "masked objects": np.ma.array([[1], {"a": 2}, None], mask=[0, 0, 1], dtype=object),
    "lists in an array": np.array([[1, 2], [3, 4], None], dtype=object),
    "columns of a sparse matrix": sp.csc_array(np.eye(3)),
    "types of numbers": [np.float32, np.dtype("int16"), np.bool_, float, int],
    "slices": slice(None, 3),
    "functions of numpy": [np.log1p, np.mean, np.maximum],
}


@pytest.mark.parametrize("value", STORED_BESIDE.values(), ids=STORED_BESIDE)
def test_values_of_any_plain_kind_come_back(value, path):
    model = CCA()
    model._held = value
    back = there_and_back(model, path)._held
    if isinstance(value, np.ma.MaskedArray):
        assert_equal(back.mask, value.mask)
        assert back.tolist() == value.tolist()
        assert back.fill_value == value.fill_value
        assert back.dtype == value.dtype
    else:
        assert_equal(back, value)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_random_states_go_on_where_they_were(make, path):
    source = make(0)
    source.standard_normal(5)
    back = there_and_back(MVCCA(reg=[source, source]), path).reg
    assert back[0] is back[1]
    np.testing.assert_array_equal(back[0].standard_normal(2000), source.standard_normal(2000))


SEARCHES = {
    "default score": GridSearchCV(CCA(1), {"reg": [0.1, 1.0], "n_components": [1, 2]}, cv=3),
    "a measure": GridSearchCV(
        make_pipeline(PerView(), CCA(1)),
        {"perview__transformer": ["passthrough", StandardScaler(), PowerTransformer()]},
        scoring=retrieval_scorer("mrr"),
        cv=ShuffleSplit(2, random_state=np.random.RandomState(3)),
    ),
    "several measures": GridSearchCV(
        CCA(1),
        {"reg": [{"image": 0.1, "text": 1.0}, 1.0]},
        scoring={"mrr": retrieval_scorer("mrr"), "rank": retrieval_scorer("mean_rank")},
        refit="mrr",
        return_train_score=True,
        cv=KFold(3, shuffle=True, random_state=0),
        n_jobs=1,
    ),
    "by fold statistics": FoldSearchCV(
        CCA(1), {"ranking": ["likelihood", "likelihood+csls"]}, scoring=retrieval_scorer("mrr")
    ),
    "random": RandomizedSearchCV(
        CCA(1), {"reg": [0.1, 0.3, 1.0]}, n_iter=2, cv=2, random_state=0, pre_dispatch="n_jobs"
    ),
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_a_search_comes_back_with_its_results(search, path):
    views = Views(blocks_for(CCA()))
    search = clone(search).fit(views)
    back = there_and_back(search, path)
    assert list(back.cv_results_) == list(search.cv_results_)
    for name, column in search.cv_results_.items():
        if isinstance(column, np.ma.MaskedArray):
            assert repr(back.cv_results_[name]) == repr(column)
        else:
            assert_equal(back.cv_results_[name], column)
    assert_equal(back.best_estimator_, search.best_estimator_)
    assert_equal(back.best_params_, search.best_params_)
    assert back.score(views) == search.score(views)
    assert_same_scores(back, search, dict(views.items()))
    again, expected = (clone(each).fit(views).best_params_ for each in (back, search))
    assert_equal(again, expected)
    index = RetrievalIndex(back).add(views)
    assert_same_answers(there_and_back(index, path), index, dict(views.items()))


def test_a_pipeline_may_end_in_a_classifier(path):
    views = Views(blocks_for(CCA()))
    model = make_pipeline(PerView(), CCA(), JoinViews(), LogisticRegression()).fit(
        views, np.arange(90) % 3
    )
    assert_equal(there_and_back(model, path).predict(views), model.predict(views))


def test_the_names_of_classes_are_those_that_sklearn_makes_public():
    known = Classes(CLASSES)
    for name, cls in all_estimators():
        if key := known.name_of(cls):
            assert known[key].type is cls
            assert key in (name, f"{cls.__module__.split('._')[0]}.{name}")


# ---- what cannot be stored is refused by name, before anything is written ------------------------


class Mine(CCA):
    pass


def gaussian(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.exp(-np.sum((x - y) ** 2)))


def nested_in_itself() -> GridSearchCV:
    search = GridSearchCV(CCA(), {})
    return search.set_params(estimator=search)


def list_in_itself() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def with_attribute(**attributes: Any) -> CCA:
    model = fitted(CCA())
    vars(model).update(attributes)
    return model


REFUSED = {
    "a kernel": (KCCA(kernel=gaussian), "KCCA.kernel is a function .gaussian., and files hold no"),
    "a kernel of a view": (
        KCCA(kernel={"image": "rbf", "text": gaussian}),
        r"KCCA.kernel\['text'\] is a function",
    ),
    "a similarity": (
        MLCCA(label_similarity=lambda a, b: a @ b.T),
        "MLCCA.label_similarity is a function",
    ),
    "a similarity in a pipeline": (
        make_pipeline(PerView(), MVMLCCA(label_similarity=np.dot, within="label")),
        r"Pipeline.steps\[1\]\[1\].label_similarity is a function",
    ),
    "a choice of columns": (
        SplitViews({"a": lambda X: [X.shape[1] - 1]}),
        r"SplitViews.columns\['a'\] is a function",
    ),
    "a generator of another kind": (
        NCCA(random_state=np.random.Generator(np.random.Philox(0))),
        r"Generator\(Philox\).* is not stored. Give an integer random_state",
    ),
    "a step of another library": (
        PerView(SVR()),
        "PerView.transformer is a sklearn.*SVR.*only estimators of mvcca, and the transformers",
    ),
    "a reducer of another library": (
        NCCA(reducer=partial(PCA, 3)),
        r"NCCA.reducer is a function",
    ),
    "a transformer alone": (PCA(), "save takes a model: one of .*CCA, .*; got sklearn"),
    "a search with a function": (
        GridSearchCV(CCA(), {}, scoring=lambda *_: 0.0),
        "GridSearchCV.scoring is a function",
    ),
    "a search over distributions": (
        RandomizedSearchCV(CCA(), {"reg": scipy.stats.uniform()}),
        r"RandomizedSearchCV.param_distributions\['reg'\] is a scipy.*files hold numbers",
    ),
    "a transformer with a function": (
        PerView(FunctionTransformer(gaussian)),
        r"PerView.transformer.func is a function .gaussian.",
    ),
    "a search in itself": (nested_in_itself(), "is nested more than 200 deep, or holds itself"),
    "a list in itself": (MVCCA(reg=list_in_itself()), "is nested more than 200 deep"),
    "a warm start": (
        PerView(SelectFromModel(Lasso(warm_start=True))),
        "PerView.transformer.estimator cannot be stored: it has warm_start=True",
    ),
    "a reader of files": (
        PerView(TfidfVectorizer(input="filename")),
        "PerView.transformer cannot be stored: it has input='filename', and would open files",
    ),
    "a class": (CCA, "save takes a model"),
    "an array": (np.ones(3), "save takes a model"),
    "a class of one's own": (Mine(), "got test_persistence.Mine"),
    "an attribute of one's own": (with_attribute(note="tuned"), "CCA.note is neither a parameter"),
    "an attribute that hides a method": (
        with_attribute(_scores_="x", fit_transform=1),
        "CCA.fit_t",
    ),
    "dates": (with_attribute(days_=np.array(["2020-01-01"], "M8[D]")), "CCA.days_ is an array of"),
    "objects": (with_attribute(held_=np.array([1j], object)), r"CCA.held_\[0\] is a builtins.com"),
    "keys": (MVCCA(reg={1j: 1.0}), r"MVCCA.reg \(key\) is a builtins.complex"),
}


@pytest.mark.parametrize(("model", "message"), REFUSED.values(), ids=REFUSED)
def test_what_only_pickle_could_hold_is_refused_by_name(model, message, path):
    with pytest.raises(TypeError, match=message):
        save(model, path)
    assert os.listdir(path.parent) == []


def test_a_statistic_that_cannot_be_stored_may_be_left_out(path):
    days = [np.datetime64("2020-01-01") + i % 3 for i in range(90)]
    model = MVMLCCA(within="label").partial_fit(blocks_for(MVMLCCA(within="label")), np.array(days))
    with pytest.raises(TypeError, match=r"MVMLCCA\._statistic.*datetime") as caught:
        save(model, path)
    assert "statistic=False" in caught.value.__notes__[0]
    assert_same_scores(
        there_and_back(model, path, statistic=False),
        model,
        blocks_for(MVMLCCA(within="label"), seed=1),
    )


# ---- a hostile or damaged file is an error and runs nothing --------------------------------------


def test_a_changed_byte_of_a_model_is_refused_or_changes_nothing(path):
    model = CCA(1).fit([np.eye(3)[:, :1], np.eye(3)[:, 1:2]])
    save(model, path)
    raw = bytearray(path.read_bytes())
    for position in range(0, len(raw), 7):  # every byte of a file: test_archive.py
        changed = raw.copy()
        changed[position] ^= 0x20
        path.write_bytes(changed)
        with suppress(ModelFileError):
            assert_equal(load(path), model)


def node(kind: str, **parts: Any) -> dict[str, Any]:
    return {"is": kind, "parts": parts}


def arrays(*names: str) -> dict[str, Any]:
    return {"is": "csr_array", "shape": [2, 2], "arrays": dict(zip(CSR, names, strict=True))}


CSR = ("data", "indices", "indptr")
ARRAYS = {
    "data": np.ones(2),
    "indices": np.array([0, 1]),
    "outside": np.array([0, 10**6]),
    "indptr": np.array([0, 1, 2]),
    "rows": np.ones((3, 2)),
    "seen": np.ones((3, 1), bool),
    "codes": np.array([0, 1, 0]),
    "far": np.array([0, 10**6, 0]),
    "few": np.array([0, 1]),
}


def array(name: str) -> dict[str, Any]:
    return {"is": "array", "array": name}


def labelled_rows(codes: str) -> dict[str, Any]:
    blocks = {"is": "dict", "items": {"a": array("rows")}}
    return node(
        "LabelledRows",
        views=node("Views", blocks=blocks, seen=array("seen")),
        labels=node(
            "LabelsByView",
            distinct=node("Labels", vectors=arrays("data", "indices", "indptr"), vocabulary=None),
            codes={"is": "dict", "items": {"a": array(codes)}},
        ),
        sample_weight=None,
    )


def function(name: Any) -> dict[str, Any]:
    return {"is": "function", "name": name}


def masked(data: Any, mask: Any) -> dict[str, Any]:
    mask = array(mask) if isinstance(mask, str) else mask
    return node("MaskedArray", data=array(data), mask=mask, fill_value=0.0)


def random_state(position: int) -> dict[str, Any]:
    words = items(key=array("codes"), pos=position)
    state = items(bit_generator="MT19937", state=words, has_gauss=0, gauss=0.0)
    return node("RandomState", state=state)


def items(**parts: Any) -> dict[str, Any]:
    return {"is": "dict", "items": parts}


SCALE, SEARCH = "sklearn.preprocessing", "sklearn.model_selection"
CV = {"estimator": node("CCA"), "param_grid": items()}
CSC = {"is": "csc_matrix"}

deep: Any = 0
for _ in range(900):
    deep = [deep]
nested_searches = node("CCA")
for _ in range(250):
    nested_searches = node(f"{SEARCH}.GridSearchCV", estimator=nested_searches, param_grid=items())

HOSTILE = {
    "a class of the system": node("os.system", command="true"),
    "a class by its module": node("subprocess.Popen", args=["true"]),
    "a class of sklearn without its module": node("GridSearchCV", estimator=node("CCA")),
    "a class of sklearn that is refused": node("sklearn.svm.SVC"),
    "neighbours of labels": node("sklearn.neighbors.KNeighborsClassifier"),
    "a private class of sklearn": node("sklearn.decomposition._nmf.NMF"),
    "a class imported by sklearn": node("sklearn.pipeline.Bunch"),
    "a base class of sklearn": node("sklearn.linear_model._base.LinearModel"),
    "a function of sklearn": node("sklearn.datasets.fetch_openml", data_id=1),
    "a module of sklearn": node("sklearn.experimental"),
    "a module beside sklearn": node("decomposition.NMF"),
    "a class of numpy": node("numpy.memmap", filename="/etc/passwd"),
    "a method of sklearn's hidden": node(f"{SCALE}.StandardScaler", transform="x"),
    "a property of sklearn's hidden": node(f"{SCALE}.StandardScaler", _repr_html_="x"),
    "a magic name in sklearn's": node(f"{SCALE}.StandardScaler", __class__="x"),
    "a function of the system": node(f"{SCALE}.FunctionTransformer", func=function("os.system")),
    "a function of numpy": node(f"{SCALE}.FunctionTransformer", func=function("numpy.load")),
    "a ufunc by another path": node(f"{SCALE}.FunctionTransformer", func=function("numpy.ma.exp")),
    "a function of no name": node(f"{SCALE}.FunctionTransformer", func=function(3)),
    "a function of a class": node(f"{SCALE}.FunctionTransformer", func=node("function")),
    "what joblib evaluates": node(f"{SEARCH}.GridSearchCV", pre_dispatch="__import__('os')", **CV),
    "a power to be evaluated": node(f"{SEARCH}.GridSearchCV", pre_dispatch="9**9**9*n_jobs", **CV),
    "a million threads": node("sklearn.decomposition.KernelPCA", n_jobs=10**6),
    "threads in words": node("sklearn.decomposition.KernelPCA", n_jobs="all"),
    "a scorer that is unknown": node(
        f"{SEARCH}.GridSearchCV", scoring="os.system", multimetric_=False, **CV
    ),
    "a scorer by an unknown measure": node(
        "RetrievalScorer", measure="x", query=None, target=None, relevance=None, similarity=None
    ),
    "a search that is its own estimator": node(
        f"{SEARCH}.GridSearchCV", estimator={"is": "again", "object": 0}, param_grid={}
    ),
    "searches nested too deeply": nested_searches,
    "a warm start": node("sklearn.linear_model.Lasso", warm_start=True, coef_=array("few")),
    "centers of another width": node(
        "sklearn.cluster.KMeans", cluster_centers_=array("rows"), n_features_in_=5, _n_threads=1
    ),
    "threads for centers": node(
        "sklearn.cluster.KMeans", cluster_centers_=array("rows"), n_features_in_=2, _n_threads=10**6
    ),
    "labels that take memory": node(
        "sklearn.cluster.FeatureAgglomeration", labels_=array("far"), n_features_in_=3
    ),
    "a mask of another shape": node("CCA", t_=masked("rows", "seen")),
    "a mask of an absurd shape": node(
        "CCA",
        t_=masked(
            "rows", {"is": "names", "dtype": "object", "shape": [2**40, 2**20], "of": [True]}
        ),
    ),
    "a random state outside of its words": node("CCA", t_=random_state(10**6)),
    "a random state before its words": node("CCA", t_=random_state(-1)),
    "a random state of few words": node("CCA", t_=random_state(1)),
    "a spline of few knots": node(
        "CCA", t_=node("BSpline", t=array("few"), c=array("data"), k=3, extrapolate=True, axis=0)
    ),
    "keys that cannot be": node("CCA", reg={"is": "dict", "pairs": [[[1], 2]]}),
    "a set of what cannot be in one": node("CCA", reg={"is": "set", "items": [[1]]}),
    "a type that is no number": node("CCA", t_={"is": "type", "name": "O"}),
    "columns outside": node("CCA", weights_=arrays("data", "outside", "indptr") | CSC),
    "a method hidden": node("CCA", transform="x"),
    "a private method hidden": node("CCA", _projection="x"),
    "a magic name": node("CCA", __class__="x"),
    "the dictionary": node("CCA", __dict__={"is": "dict", "items": {}}),
    "no identifier": node("CCA", **{"a b_": 1}),
    "an unknown parameter": node("CCA", gamma=1),
    "indices outside": node("CCA", weights_=arrays("data", "outside", "indptr")),
    "codes outside": node("MLCCA", _statistic=labelled_rows("far")),
    "codes too few": node("MLCCA", _statistic=labelled_rows("few")),
    "an array that is not there": node("CCA", weights_=array("missing")),
    "an array by number": node("CCA", weights_={"is": "array", "array": [3]}),
    "a type that is none": node("CCA", t_={"is": "dtype", "name": "V2000000000"}),
    "names of a type": node("CCA", t_={"is": "names", "dtype": "str", "shape": [2], "of": []}),
    "a huge shape": node("CCA", t_={"is": "names", "dtype": "str", "shape": [2**62], "of": []}),
    "fields missing": node("CCA", t_=node("Moments")),
    "fields too many": node("CCA", t_=node("Kernel", name="rbf", run="x")),
    "rows not seen": node(
        "CCA",
        t_=node("Views", blocks={"is": "dict", "items": {"a": array("few")}}, seen=array("seen")),
    ),
    "neighbours of nothing": node("NCCA", t_=node("NearestNeighbors", rows=array("data"))),
    "neighbours without rows": node("NCCA", t_=node("NearestNeighbors")),
    "an index of no known similarity": node(
        "RetrievalIndex", estimator=None, similarity="x", backend="exact"
    ),
    "no kind": {"parts": {}},
    "a kind that is a list": {"is": [], "parts": {}},
    "parts that are a list": {"is": "CCA", "parts": []},
    "nested too deeply": node("CCA", reg=deep),
    "no model": 3,
    "a part of a model": node("Kernel", name="rbf"),
}


@pytest.mark.parametrize("root", HOSTILE.values(), ids=HOSTILE)
def test_a_forged_model_is_refused(root, path):
    write_archive(path, ARRAYS, {"kind": "model", "format": 3, "model": root})
    with pytest.raises(ModelFileError, match=r"model\.mvcca"):
        load(path)


def test_the_parts_of_the_forgeries_are_fine_themselves(path):
    root = node("MLCCA", _statistic=labelled_rows("codes"))
    write_archive(path, ARRAYS, {"kind": "model", "format": 3, "model": root})
    assert len(load(path)._statistic.views) == 3


ODD = {
    "weights of another width": lambda m: m.weights_.update(image=np.ones((7, 2))),
    "weights of another number": lambda m: m.weights_.update(image=np.ones((5, 3))),
    "weights of a view missing": lambda m: m.weights_.pop("image"),
    "weights in a list": lambda m: m.weights_.update(image=[[1.0, 2.0]] * 5),
    "weights in words": lambda m: m.weights_.update(image=np.full((5, 2), "a")),
    "weights of a number each": lambda m: m.weights_.update(image=np.ones(5)),
    "means missing": lambda m: delattr(m, "means_"),
    "means as a column": lambda m: m.means_.update(image=np.ones((5, 1))),
    "means of another width": lambda m: m.means_.update(image=np.ones(3)),
    "views of no name": lambda m: setattr(m, "view_names_", ()),
    "views not in weights": lambda m: setattr(m, "view_names_", ("image", "smell")),
    "views in a list of numbers": lambda m: setattr(m, "view_names_", [1, 2]),
    "more components": lambda m: setattr(m, "n_components_", 10**9),
    "components of a half": lambda m: setattr(m, "n_components_", 0.5),
    "correlations of two axes": lambda m: setattr(m, "canonical_correlations_", np.ones((2, 2))),
    "correlations in words": lambda m: setattr(m, "canonical_correlations_", "high"),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
@over([CCA(2), MVMLCCA(2, within="label"), PLS(2)])
def test_a_model_whose_parts_do_not_go_together_is_refused(estimator, change, path):
    model = fitted(estimator)
    change(model)
    save(model, path)
    with pytest.raises(ModelFileError, match="cannot be put together here"):
        load(path)


@pytest.mark.parametrize("form", [None, 1, 2, "three"])
def test_a_model_of_another_format_is_refused_with_the_remedy(form, path):
    save(CCA(1), path)
    arrays, content = read_archive(path)
    content["format"] = form
    if form is None:  # as in the first format
        del content["format"]
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match=r"a model in format .* or fit and save it again"):
        load(path)


@pytest.mark.slow
@over(FITTED)
def test_a_fitted_model_without_any_one_of_its_attributes_projects_or_is_refused(estimator, path):
    model = fitted(estimator)
    blocks = blocks_for(estimator)
    for name in [name for name in vars(model) if name.endswith("_")]:
        odd = copy(model)
        delattr(odd, name)
        with suppress(ModelFileError, AttributeError):
            save(odd, path)
            load(path).transform(blocks)


@pytest.mark.parametrize(
    ("step", "change"),
    [
        (StandardScaler(), {"mean_": np.ones(9)}),
        (StandardScaler(), {"scale_": np.ones((9, 1))}),
        (PCA(2), {"components_": np.ones((2, 9))}),
        (TruncatedSVD(2), {"components_": np.ones((2, 9))}),
        (TfidfTransformer(), {"idf_": np.ones(2)}),
        (MinMaxScaler(), {"scale_": "much"}),
    ],
    ids=repr,
)
def test_a_step_whose_parts_do_not_go_together_is_refused(step, change, path):
    counts = {name: np.abs(np.round(X)) for name, X in blocks_for(CCA()).items()}
    model = make_pipeline(PerView(step), CCA(1)).fit(counts)
    vars(model[0].transformers_["text"]).update(change)
    save(model, path)
    with pytest.raises(ModelFileError, match="cannot be put together here"):
        load(path)


def test_steps_that_do_not_go_together_are_refused(path):
    blocks = blocks_for(CCA())
    model = make_pipeline(PerView(PCA(3)), CCA(1)).fit(blocks)
    model.steps[1] = ("cca", CCA(1).fit(blocks))
    save(model, path)
    with pytest.raises(ModelFileError, match="has 3 features"):
        load(path)


def test_rows_of_an_index_that_do_not_go_together_are_refused(path, monkeypatch):
    index = RetrievalIndex(fitted(CCA(2))).add(blocks_for(CCA()))
    whole = index.__getstate__()
    text = whole["views"]["text"]
    views = {**whole["views"], "text": text | {"ids": text["ids"][1:]}}
    monkeypatch.setattr(RetrievalIndex, "__getstate__", lambda _: whole | {"views": views})
    save(index, path)
    with pytest.raises(ModelFileError, match="rows and ids of view 'text'"):
        load(path)


class Executed:
    """An object whose unpickling leaves a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.folder),)


def test_a_cache_named_by_a_file_is_not_used(path, tmp_path):
    pipeline = make_pipeline(PerView(PCA(3)), CCA(1), memory=str(tmp_path / "cache"))
    blocks = blocks_for(CCA())
    pipeline.fit(blocks)
    for file in (tmp_path / "cache").rglob("output.pkl"):
        file.write_bytes(pickle.dumps(Executed(tmp_path / "ran")))
    save(pipeline, path)
    _, content = read_archive(path)
    assert content["model"]["parts"]["memory"] is None
    content["model"]["parts"]["memory"] = str(tmp_path / "cache")
    write_archive(path, read_archive(path)[0], content)
    back = load(path)
    assert back.memory is None
    back.fit(blocks)
    assert not (tmp_path / "ran").exists()


def test_strings_that_would_be_padded_beyond_all_bounds_are_refused(path):
    names = {"is": "names", "dtype": "str", "shape": [5000], "of": ["a"] * 4999 + ["b" * 100_000]}
    write_archive(path, {}, {"kind": "model", "format": 3, "model": node("CCA", _names=names)})
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="padded to the longest would take 2,000,000,000"):
        load(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()
    model = CCA()
    model._names = np.array(["a"] * 200 + ["b" * 100_000])
    with pytest.raises(TypeError, match=r"CCA\._names is an array of 201 strings .* dtype object"):
        save(model, path)
    model._names = model._names.astype(object)
    assert_equal(there_and_back(model, path), model)


def test_a_pickled_model_is_refused_and_not_run(path, tmp_path):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    path.write_bytes(pickle.dumps(Payload()))
    with pytest.raises(ModelFileError, match=r"written by mvcca\.save; pickles"):
        load(path)
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_is_no_model(path):
    write_archive(path, {"state": np.ones(3)}, {"fingerprint": "x", "blocks": 3})
    with pytest.raises(ModelFileError, match="holds no model"):
        load(path)


def test_a_disk_that_is_full_leaves_the_model_that_was_there(path, monkeypatch):
    save(fitted(CCA()), path)
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(fitted(CCA(1)), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
