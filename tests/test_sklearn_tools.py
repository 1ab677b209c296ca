"""scikit-learn's tools run on `Views` as on a matrix, and give what the same loop by hand gives.

Paired, unpaired and partly paired views, dense, sparse and DataFrame mixed; folds by hand are plain
indexing of the matrices.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import LONG
from sklearn import config_context
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mvcca import (
    CCA,
    CMOLRS,
    JRL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    Encode,
    FoldSearchCV,
    JoinViews,
    PerView,
    SplitViews,
    Views,
    evaluate_retrieval,
    retrieval_scorer,
)
from mvcca.retrieval import retrieval_vectors

N = 120
CLASSES = np.arange(N) % 8
INDICATORS = np.array([[c >> bit & 1 for bit in range(4)] for c in CLASSES + 1])
FOLDS = KFold(3, shuffle=True, random_state=0)


def blocks(kind: str = "dense") -> dict[str, Any]:
    rng = np.random.default_rng(0)
    latent = np.eye(8)[CLASSES] @ rng.standard_normal((8, 3)) * 2 + rng.standard_normal((N, 3))
    image, text = (
        latent @ rng.standard_normal((3, d)) + rng.standard_normal((N, d)) for d in (5, 4)
    )
    if kind == "sparse":
        return {"image": sp.csr_array(image), "text": sp.csc_array(text)}
    if kind == "mixed":
        return {
            "image": pd.DataFrame(image, columns=list("abcde")),
            "text": sp.csr_array(np.where(text > 0, text, 0)),
        }
    return {"image": image, "text": text}


def paired(kind: str = "dense") -> Views:
    return Views(blocks(kind))


def partly_paired(kind: str = "dense") -> Views:
    """A quarter of the objects without a text, a quarter without an image."""
    index = np.tile(np.arange(N)[:, None], 2)
    quarter = np.arange(N) // 8 % 4  # of all classes alike
    index[quarter == 1, 1] = -1
    index[quarter == 2, 0] = -1
    return Views(blocks(kind), index)


def unpaired(kind: str = "dense") -> Views:
    """Images of the first objects and texts of the others."""
    index = np.tile(np.arange(N)[:, None], 2)
    index[: N // 2, 1] = -1
    index[N // 2 :, 0] = -1
    return Views(blocks(kind), index)


KINDS = ["dense", "sparse", "mixed"]
LABELLED = [MLCCA(), MVMLCCA(within="sample")]
ALL = [CCA(reg=0.01), MVCCA(), *LABELLED]
# A dense view beside a sparse one is tried quickly on all, views of one kind on the first.
everything = pytest.mark.parametrize(
    ("estimator", "views"),
    [
        pytest.param(
            estimator,
            partial(views, kind),
            id=f"{type(estimator).__name__}-{views.__name__}-{kind}",
            marks=() if kind == "mixed" or estimator is ALL[0] else LONG,
        )
        for estimator in ALL
        for views in (paired, partly_paired, unpaired)
        for kind in KINDS
        if estimator.requires.labels or views is not unpaired
    ],
)
every_kind = pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        pytest.param(
            estimator,
            kind,
            id=f"{kind}-{estimator!r}",
            marks=() if kind == "mixed" or estimator is ALL[0] else LONG,
        )
        for estimator in ALL
        for kind in KINDS
    ],
)


def folds(views: Views) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds in which every pattern of views is seen."""
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(views, views.pattern))


def scores_by_hand(estimator: Any, views: Views, y: Any) -> list[float]:
    scores = []
    for train, test in folds(views):
        model = clone(estimator).fit(views[train], y[train])
        scores.append(model.score(views[test], y[test]))
    return scores


# ---- tools that split, fit and score -------------------------------------------------------------


@everything
def test_cross_validation_is_the_loop_by_hand(estimator, views):
    X = views()
    expected = scores_by_hand(estimator, X, CLASSES)
    found = cross_validate(estimator, X, CLASSES, cv=folds(X), return_train_score=True)
    np.testing.assert_allclose(found["test_score"], expected, rtol=1e-12)
    np.testing.assert_allclose(cross_val_score(estimator, X, CLASSES, cv=folds(X)), expected)
    assert np.mean(found["train_score"]) > 0.1


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("estimator", ALL, ids=repr)
def test_grid_search_finds_the_best_of_the_loop_by_hand(estimator, n_jobs):
    X = paired("mixed")
    grid = {"reg": [1e-4, 0.1, 10.0], "n_components": [1, 2]}
    search = GridSearchCV(estimator, grid, cv=folds(X), n_jobs=n_jobs).fit(X, CLASSES)
    expected = [
        np.mean(scores_by_hand(clone(estimator).set_params(**params), X, CLASSES))
        for params in search.cv_results_["params"]
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, rtol=1e-9)
    refitted = clone(estimator).set_params(**search.best_params_).fit(X, CLASSES)
    np.testing.assert_allclose(
        search.transform(X)["text"], refitted.transform(X)["text"], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("estimator", [CCA(), *LABELLED], ids=repr)
def test_other_searches_run_too(estimator):
    X = paired()
    for search in (
        RandomizedSearchCV(
            estimator, {"reg": [0.01, 1.0, 9.0]}, n_iter=2, cv=FOLDS, random_state=0
        ),
        HalvingGridSearchCV(estimator, {"reg": [0.01, 1.0]}, cv=FOLDS, random_state=0),
    ):
        search.fit(X, CLASSES)
        expected = clone(estimator).set_params(**search.best_params_).fit(X, CLASSES)
        np.testing.assert_allclose(search.best_estimator_.eigenvalues_, expected.eigenvalues_)


@everything
def test_train_test_split_keeps_objects_and_labels_together(estimator, views):
    X = views()
    train, test, y_train, y_test = train_test_split(
        X, CLASSES, test_size=0.3, random_state=0, stratify=X.pattern
    )
    rows = train_test_split(np.arange(N), test_size=0.3, random_state=0, stratify=X.pattern)
    expected = clone(estimator).fit(X[rows[0]], CLASSES[rows[0]])
    model = clone(estimator).fit(train, y_train)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-12)
    assert model.score(test, y_test) == pytest.approx(expected.score(X[rows[1]], CLASSES[rows[1]]))


@every_kind
def test_learning_and_validation_curves_are_loops_by_hand(estimator, kind):
    X = paired(kind)
    sizes, train_scores, test_scores = learning_curve(
        estimator, X, CLASSES, cv=folds(X), train_sizes=[40, 80]
    )
    assert sizes.tolist() == [40, 80]
    for i, (train, test) in enumerate(folds(X)):
        model = clone(estimator).fit(X[train[:40]], CLASSES[train[:40]])
        assert test_scores[0, i] == pytest.approx(model.score(X[test], CLASSES[test]))
        assert train_scores[0, i] == pytest.approx(model.score(X[train[:40]], CLASSES[train[:40]]))
    _, test_scores = validation_curve(
        estimator, X, CLASSES, param_name="reg", param_range=[0.1, 1.0], cv=folds(X)
    )
    by_hand = scores_by_hand(clone(estimator).set_params(reg=1.0), X, CLASSES)
    np.testing.assert_allclose(test_scores[1], by_hand)


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.parametrize(
    "incremental", [CCA(), MVCCA(), MLCCA(), MVMLCCA(within="sample")], ids=repr
)
def test_learning_curves_can_go_on_from_batch_to_batch(incremental):
    X = paired()
    found = learning_curve(
        incremental,
        X,
        CLASSES,
        cv=folds(X),
        train_sizes=[40, 80],
        exploit_incremental_learning=True,
    )
    anew = learning_curve(incremental, X, CLASSES, cv=folds(X), train_sizes=[40, 80])
    np.testing.assert_allclose(found[2], anew[2], rtol=1e-6)


@pytest.mark.parametrize("estimator", LABELLED, ids=repr)
def test_permuted_labels_score_worse(estimator):
    score, permuted, p_value = permutation_test_score(
        estimator,
        unpaired("mixed"),
        CLASSES,
        cv=folds(unpaired()),
        n_permutations=9,
        random_state=0,
    )
    assert score > permuted.max()
    assert p_value == pytest.approx(0.1)


def test_folds_by_position_may_lack_a_view_and_then_say_so():
    X = unpaired()
    with pytest.raises(ValueError, match="View 'text': Found array with 0 sample"):
        MLCCA().fit(X[np.arange(N // 2)], CLASSES[: N // 2])


@pytest.mark.parametrize("container", [list, dict])
def test_searches_over_lists_and_dicts_of_views_are_not_what_they_seem(container):
    """The reason for `Views`: a list of two matrices has two rows for scikit-learn.

    The guide quotes what it says then.
    """
    views = blocks() if container is dict else list(blocks().values())
    guide = Path(__file__).parents[1] / "docs" / "user_guide" / "views.rst"
    quoted = " ".join(guide.read_text("utf-8").split())
    with pytest.raises(ValueError, match="inconsistent numbers of samples") as failed:
        cross_val_score(CCA(), views, CLASSES)
    assert str(failed.value).partition(": [2, ")[0].partition(" variables with ")[2] in quoted
    with pytest.raises(ValueError, match="n_samples=2") as failed:
        GridSearchCV(CCA(), {"reg": [0.1, 1.0]}).fit(views)
    assert str(failed.value).rstrip(".") in quoted


def test_a_part_of_a_list_of_views_is_told_from_a_part_of_the_objects():
    train, _ = train_test_split(list(blocks().values()))
    with pytest.raises(ValueError, match=r"got 1\. In cross-validations .*pass mvcca\.Views"):
        CCA().fit(train)


# ---- retrieval measures as scores ----------------------------------------------------------------


@pytest.mark.parametrize("estimator", [CCA(), MVCCA(), *LABELLED], ids=repr)
def test_a_retrieval_measure_scores_a_search(estimator):
    X = paired("mixed")
    scorer = retrieval_scorer("map@50", query="image", target="text")
    search = GridSearchCV(estimator, {"reg": [0.01, 1.0]}, scoring=scorer, cv=folds(X))
    search.fit(X, CLASSES)
    expected = []
    for reg in (0.01, 1.0):
        values = []
        for train, test in folds(X):
            model = clone(estimator).set_params(reg=reg).fit(X[train], CLASSES[train])
            vectors = retrieval_vectors(model, X[test])
            table = evaluate_retrieval(
                vectors, CLASSES[test], measures=["map@50"], similarity="inner"
            )
            values.append(table["image", "text"]["map@50"])
        expected.append(np.mean(values))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected)


@pytest.mark.parametrize("views", [unpaired, partly_paired])
def test_a_retrieval_measure_scores_views_without_pairs(views):
    X = views()
    scorer = retrieval_scorer("map")
    scores = cross_val_score(
        MLCCA(label_similarity="equal"), X, CLASSES, scoring=scorer, cv=folds(X)
    )
    chance = 1 / 8
    assert (scores > 1.5 * chance).all()


def test_a_retrieval_measure_scores_a_pipeline():
    X = paired()
    model = make_pipeline(PerView(StandardScaler()), CCA(2))
    scorer = retrieval_scorer("mrr")
    piped = cross_val_score(model, X, CLASSES, scoring=scorer, cv=folds(X))
    plain = cross_val_score(CCA(2), X, CLASSES, scoring=scorer, cv=folds(X))  # scale-free
    np.testing.assert_allclose(piped, plain, rtol=1e-9)


# ---- pipelines -----------------------------------------------------------------------------------


@everything
def test_a_pipeline_is_its_steps_one_after_the_other(estimator, views):
    X = views()
    scaler = StandardScaler(with_mean=False)
    model = Pipeline([("scale", PerView(scaler)), ("cca", estimator)]).fit(X, CLASSES)
    scaled = PerView(scaler).fit_transform(X)
    by_hand = clone(estimator).fit(scaled, CLASSES)
    scores = model.transform(X)
    assert isinstance(scores, Views)
    np.testing.assert_array_equal(scores.seen, X.seen)
    for name, wanted in by_hand.transform(scaled).items():
        np.testing.assert_allclose(scores[name], wanted, rtol=0, atol=1e-12)
    assert model.score(X, CLASSES) == pytest.approx(by_hand.score(scaled, CLASSES))
    alone = model.transform(Views({"text": X["text"]}))
    np.testing.assert_allclose(alone["text"], scores["text"], atol=1e-12)


@every_kind
@pytest.mark.parametrize("how", ["concat", "mean", "sum"])
def test_a_classifier_learns_from_what_the_views_share(estimator, how, kind):
    X, estimator = paired(kind), clone(estimator).set_params(n_components=3)
    model = make_pipeline(
        PerView(StandardScaler(with_mean=False)), estimator, JoinViews(how), LogisticRegression()
    )
    scores = cross_val_score(model, X, CLASSES, cv=folds(X))
    by_hand = []
    for train, test in folds(X):
        scaler = PerView(StandardScaler(with_mean=False)).fit(X[train])
        maps = clone(estimator).fit(scaler.transform(X[train]), CLASSES[train])
        parts = [dict(maps.transform(scaler.transform(X[rows])).items()) for rows in (train, test)]
        joined = [
            np.hstack(list(part.values())) if how == "concat" else sum(part.values())
            for part in parts
        ]
        if how == "mean":
            joined = [X / 2 for X in joined]
        classifier = LogisticRegression().fit(joined[0], CLASSES[train])
        by_hand.append(classifier.score(joined[1], CLASSES[test]))
    np.testing.assert_allclose(scores, by_hand)
    assert np.mean(scores) > 0.25  # eight classes


def test_nested_parameters_are_searched():
    X = paired()
    model = make_pipeline(
        PerView({"image": PCA(3), "text": "passthrough"}),
        MVCCA(),
        JoinViews(),
        LogisticRegression(),
    )
    grid = {
        "perview__image__n_components": [2, 3],
        "perview__text": ["passthrough", StandardScaler()],
        "mvcca__reg": [0.01],
        "joinviews__how": ["concat", "mean"],
    }
    search = GridSearchCV(model, grid, cv=folds(X), error_score="raise").fit(X, CLASSES)
    assert len(search.cv_results_["params"]) == 8
    best = clone(model).set_params(**search.best_params_)
    assert search.best_score_ == pytest.approx(
        np.mean(cross_val_score(best, X, CLASSES, cv=folds(X)))
    )
    assert model.get_params()["perview__image__n_components"] == 3  # as it was


def test_a_step_may_be_left_out_by_a_search():
    X = paired()
    model = Pipeline([("scale", PerView(StandardScaler())), ("cca", CCA())])
    search = GridSearchCV(model, {"scale": [PerView(StandardScaler()), "passthrough"]}, cv=folds(X))
    scores = search.fit(X, CLASSES).cv_results_["mean_test_score"]
    assert scores[0] == pytest.approx(scores[1])  # CCA does not depend on scale


def test_predictions_out_of_fold_are_those_of_the_loop_by_hand():
    X = paired("mixed")
    model = make_pipeline(MVCCA(3), JoinViews(), LogisticRegression())
    predicted = cross_val_predict(model, X, CLASSES, cv=folds(X))
    for train, test in folds(X):
        by_hand = clone(model).fit(X[train], CLASSES[train]).predict(X[test])
        np.testing.assert_array_equal(predicted[test], by_hand)


def test_a_table_is_split_into_views_inside_the_pipeline():
    dense = blocks()
    table = pd.DataFrame(np.hstack(list(dense.values())), columns=list("abcdefghi"))
    model = make_pipeline(SplitViews({"image": list("abcde"), "text": slice(5, None)}), CCA(2))
    split = ShuffleSplit(2, random_state=0)
    found = cross_val_score(model, table, cv=split)
    np.testing.assert_allclose(found, cross_val_score(CCA(2), Views(dense), cv=split), rtol=1e-12)


def test_joined_and_other_features_stand_side_by_side_in_a_union():
    X = paired()
    union = FeatureUnion(
        [
            ("shared", make_pipeline(CCA(2), JoinViews("mean"))),
            ("raw", FunctionTransformer(lambda views: views["text"])),
        ]
    )
    features = union.fit_transform(X)
    mean = np.mean(list(dict(CCA(2).fit(X).transform(X).items()).values()), axis=0)
    np.testing.assert_allclose(features, np.hstack([mean, X["text"]]), atol=1e-12)


@pytest.mark.parametrize(
    "labels",
    [CLASSES, INDICATORS, INDICATORS * 0.5, pd.Series(CLASSES), list("abcdefgh") * 15],
    ids=["classes", "indicators", "vectors", "Series", "names"],
)
@pytest.mark.parametrize("estimator", LABELLED, ids=repr)
def test_labels_of_every_kind_are_split_with_their_objects(estimator, labels):
    X = paired()
    found = cross_val_score(estimator, X, labels, cv=folds(X), error_score="raise")
    np.testing.assert_allclose(found, scores_by_hand(estimator, X, np.asarray(labels)))


def test_sparse_labels_are_split_with_their_objects():
    X = unpaired("mixed")
    train, _, y_train, _ = train_test_split(X, sp.csr_array(INDICATORS), random_state=0)
    rows, _ = train_test_split(np.arange(N), random_state=0)
    expected = MLCCA().fit(X[rows], INDICATORS[rows])
    np.testing.assert_allclose(MLCCA().fit(train, y_train).eigenvalues_, expected.eigenvalues_)


@pytest.mark.parametrize("estimator", LABELLED, ids=repr)
def test_lists_of_label_sets_are_split_with_their_objects(estimator):
    X = paired()
    sets = [set(np.flatnonzero(row)) | {"any"} for row in INDICATORS.tolist()]
    found = cross_val_score(estimator, X, sets, cv=folds(X), error_score="raise")
    by_hand = []
    for train, test in folds(X):
        model = clone(estimator).fit(X[train], [sets[i] for i in train])
        by_hand.append(model.score(X[test], [sets[i] for i in test]))
    np.testing.assert_allclose(found, by_hand)


def test_sample_weights_are_routed_to_the_folds():
    X = paired()
    weights = np.random.default_rng(0).integers(0, 4, N).astype(float)
    with config_context(enable_metadata_routing=True):
        model = CCA().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = cross_val_score(model, X, cv=FOLDS, params={"sample_weight": weights})
    expected = [
        CCA().fit(X[train], sample_weight=weights[train]).score(X[test])
        for train, test in FOLDS.split(X)
    ]
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("search", [GridSearchCV, FoldSearchCV])
def test_searches_fit_and_score_with_sample_weights(search):
    X, grid = paired(), {"reg": [0.0, 0.1, 1.0]}
    weights = np.random.default_rng(0).integers(0, 4, N)
    with config_context(enable_metadata_routing=True):
        model = CCA().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        results = search(model, grid, cv=FOLDS).fit(X, sample_weight=weights).cv_results_
    for number, (train, test) in enumerate(FOLDS.split(X)):
        repeated, held_out = (X[np.repeat(part, weights[part])] for part in (train, test))
        expected = [CCA(reg=reg).fit(repeated).score(held_out) for reg in grid["reg"]]
        np.testing.assert_allclose(results[f"split{number}_test_score"], expected, atol=1e-9)


SEARCHES = {
    "NCCA": (NCCA(n_neighbors=10), {"bandwidth": [0.3, 1.0]}),
    "JRL": (JRL(n_neighbors=5), {"reg": [0.01, 0.1]}),
    "CMOLRS": (CMOLRS(n_epochs=2, random_state=0), {"learning_rate": [1.0, 3.0]}),
}


@pytest.mark.parametrize("name", [*SEARCHES, "DCCA"])
def test_methods_that_repeat_rows_are_searched_with_sample_weights(name):
    if name == "DCCA":
        pytest.importorskip("torch")
        from deep_estimators import small

        estimator, grid = small(name, max_epochs=1), {"learning_rate": [1e-2]}
    else:
        estimator, grid = SEARCHES[name]
    X, y = paired(), INDICATORS
    weights = np.random.default_rng(0).integers(0, 4, N)
    with config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        search = GridSearchCV(model, grid, cv=FOLDS).fit(X, y, sample_weight=weights)
        params = {"sample_weight": weights}
        crossed = cross_validate(model, X, y, cv=FOLDS, params=params, return_estimator=True)
    [(parameter, values)] = grid.items()
    for number, (train, test) in enumerate(FOLDS.split(X)):
        taught, held_out = (np.repeat(part, weights[part]) for part in (train, test))
        models = [clone(estimator).set_params(**{parameter: value}) for value in values]
        expected = [own.fit(X[taught], y[taught]).score(X[held_out], y[held_out]) for own in models]
        found = search.cv_results_[f"split{number}_test_score"]
        np.testing.assert_allclose(found, expected, atol=1e-6)
        own = crossed["estimator"][number].score(X[test], y[test], sample_weight=weights[test])
        assert crossed["test_score"][number] == pytest.approx(own)
    objects = np.repeat(np.arange(N), weights)
    whole = clone(estimator).set_params(**search.best_params_).fit(X[objects], y[objects])
    for view, scores in whole.transform(X).items():
        np.testing.assert_allclose(search.transform(X)[view], scores, atol=1e-6)


def test_scores_alone_can_be_weighted():
    X, weights = paired(), np.random.default_rng(0).integers(0, 4, N)
    with config_context(enable_metadata_routing=True):
        model = CCA().set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
        search = FoldSearchCV(model, {"reg": [0.1]}, cv=FOLDS).fit(X, sample_weight=weights)
    for number, (train, test) in enumerate(FOLDS.split(X)):
        held_out = X[np.repeat(test, weights[test])]
        expected = CCA(reg=0.1).fit(X[train]).score(held_out)
        found = search.cv_results_[f"split{number}_test_score"][0]
        assert found == pytest.approx(expected, abs=1e-9)


def test_pipelines_route_sample_weights_to_their_steps():
    X, weights = paired(), np.random.default_rng(0).integers(0, 4, N)
    repeated = X[np.repeat(np.arange(N), weights)]
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(
            PerView(StandardScaler()).set_fit_request(sample_weight=True),
            CCA().set_fit_request(sample_weight=True),
        ).fit(X, sample_weight=weights)
    expected = make_pipeline(PerView(StandardScaler()), CCA()).fit(repeated)
    for name, scores in expected.transform(X).items():
        np.testing.assert_allclose(model.transform(X)[name], scores, atol=1e-9)


def test_transformers_without_weights_are_named():
    with pytest.raises(ValueError, match="PCA takes no sample_weight"):
        PerView(PCA(2)).fit(paired(), sample_weight=np.ones(N))
    unlearned = PerView("passthrough").fit(paired(), sample_weight=np.ones(N))
    assert unlearned.transform(paired()).names == paired().names
    column = paired()["text"][:, :1]
    encode = PerView(Encode(lambda items: np.reshape(items, (-1, 1)))).fit(
        {"text": column}, sample_weight=np.ones(N)
    )
    np.testing.assert_array_equal(encode.transform({"text": column})["text"], column)


# ---- output containers ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("views", [paired, partly_paired, unpaired])
def test_pipelines_hand_frames_from_step_to_step_when_asked(views, kind):
    X = views()
    model = make_pipeline(PerView(StandardScaler()), PerView(), MLCCA(power=1.0))
    expected = clone(model).fit_transform(X, CLASSES)
    found = clone(model).set_output(transform=kind).fit_transform(X, CLASSES)
    with config_context(transform_output=kind):
        globally = clone(model).fit_transform(X, CLASSES)
    for name, wanted in expected.items():
        for frame in (found[name], globally[name]):
            assert type(frame).__module__.startswith(kind)
            np.testing.assert_allclose(frame, wanted, atol=1e-12)


def test_set_output_of_a_pipeline_ends_in_one_frame():
    X = Views({n: pd.DataFrame(B, index=range(100, 100 + N)) for n, B in blocks().items()})
    model = make_pipeline(PerView(StandardScaler()), MVCCA(2), JoinViews())
    frame = model.set_output(transform="pandas").fit_transform(X)
    plain = clone(model).set_output(transform="default").fit_transform(X)
    assert list(frame.columns) == [f"{n}__mvcca{i}" for n in ("image", "text") for i in (0, 1)]
    assert list(frame.index) == list(range(100, 100 + N))
    np.testing.assert_allclose(frame, plain)
