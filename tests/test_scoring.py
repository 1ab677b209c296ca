"""The scorer against evaluation by hand, and inside scikit-learn's tools."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from every_option import estimators
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.cross_decomposition import PLSSVD
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import (
    CCA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    MLCCA,
    MVCCA,
    MVMLCCA,
    PLS,
    FoldSearchCV,
    PerView,
    SemanticMatching,
    Views,
    compare,
    kernel,
    linear,
    load,
    retrieval_scorer,
    save,
)
from mvcca.base import MultiViewEstimator
from mvcca.retrieval import (
    RetrievalIndex,
    evaluate_retrieval,
    retrieval_vectors,
    top_k,
)


def views(n=90, names=("image", "text"), seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    return {
        name: points @ rng.normal(size=(3, width)) + 0.3 * rng.normal(size=(n, width))
        for width, name in enumerate(names, start=4)
    }


def classes(n=90):
    return np.arange(n) % 4


THREE = views(names=("image", "text", "sound"))
LARGER = ["map@50", "map:hits", "r@1", "mrr:pessimistic"]
SMALLER = ["mr", "mean_rank:optimistic"]  # ranks are negated
DIRECTIONS = {
    ("image", "text"): [("image", "text")],
    ("image", "image"): [("image", "image")],
    ("image", None): [("image", "text"), ("image", "sound")],
    (None, "image"): [("text", "image"), ("sound", "image")],
}


@pytest.mark.parametrize("measure", [*LARGER, *SMALLER])
def test_the_score_is_the_mean_over_directions_and_larger_is_better(measure):
    y = classes()
    model = MVCCA(2).fit(THREE)
    scores = retrieval_vectors(model, THREE)
    table = evaluate_retrieval(scores, y, measures=measure, similarity="inner")
    expected = table.mean()[measure] * (-1 if measure in SMALLER else 1)
    assert retrieval_scorer(measure)(model, THREE, y) == expected
    assert retrieval_scorer(measure)(model, Views(THREE), y) == expected


@pytest.mark.parametrize(("chosen", "pairs"), DIRECTIONS.items())
def test_a_direction_can_be_chosen(chosen, pairs):
    model, how = MVCCA(2).fit(THREE), {"directions": "all", "similarity": "inner"}
    table = evaluate_retrieval(retrieval_vectors(model, THREE), classes(), measures="map", **how)
    expected = np.mean([table[pair]["map"] for pair in pairs])
    assert retrieval_scorer("map", *chosen)(model, THREE, classes()) == expected


def test_other_similarities_and_relevances_are_passed_on():
    X, y = views(), classes()
    model, how = MVCCA(2).fit(X), {"similarity": "euclidean", "relevance": "labels"}
    table = evaluate_retrieval(model.transform(X), y, measures="mrr", **how)
    assert retrieval_scorer("mrr", **how)(model, X, y) == table.mean()["mrr"]


# ---- the similarity that an estimator declares ---------------------------------------------------

ESTIMATORS = [
    cls
    for module in (linear, kernel)
    for cls in (getattr(module, name) for name in module.__all__)
    if isinstance(cls, type) and issubclass(cls, MultiViewEstimator)
]
COMPARED = {  # of JRL and CMOLRS the papers'; see tests/test_retrieval_scores.py of the others
    JRL: (JRL.propagate, "inner"),
    CMOLRS: (CMOLRS.transform, "inner"),
    SemanticMatching: (SemanticMatching.transform, "inner"),
    **dict.fromkeys((CCA, MVCCA, GCCA, KCCA, MLCCA, MVMLCCA), (retrieval_vectors, "inner")),
}


def fitted(cls, X, y):
    model = cls(**{CMOLRS: {"random_state": 0}, JRL: {"n_neighbors": 10}}.get(cls, {}))
    return model.fit(X, y) if model.requires.labels else model.fit(X)


@pytest.mark.filterwarnings("ignore:.*distinct label sets")
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_ranking_goes_by_the_similarity_that_the_estimator_declares(cls):
    X, y = Views(views()), classes()
    model = fitted(cls, X, y)
    rows_of, similarity = COMPARED.get(cls, (cls.transform, "cosine"))
    rows = rows_of(model, X)
    table = evaluate_retrieval(rows, y, measures=["map@10", "mrr"], similarity=similarity)
    assert (
        evaluate_retrieval(X, y, measures=["map@10", "mrr"], estimator=model).mean() == table.mean()
    )
    assert retrieval_scorer("map@10")(model, X, y) == table.mean()["map@10"]
    ranks = evaluate_retrieval(rows, measures="mr", similarity=similarity)["image", "text"]
    assert evaluate_retrieval(X, measures="mr", estimator=model)["image", "text"] == ranks
    expected = top_k(rows["image"], rows["text"], 5, similarity)
    found = RetrievalIndex(model).add(X).search({"image": X["image"]}, "text", 5)
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0])


@pytest.mark.parametrize("cls", [JRL, CMOLRS])
def test_pipelines_and_searches_rank_as_their_last_step_does(cls):
    X, y = Views(views()), classes()
    scale = PerView(StandardScaler()).fit(X)
    model = fitted(cls, scale.transform(X), y)
    rows_of, similarity = COMPARED[cls]
    rows = rows_of(model, scale.transform(X))
    expected = evaluate_retrieval(rows, y, measures="map", similarity=similarity).mean()["map"]
    pipeline = make_pipeline(PerView(StandardScaler()), "passthrough", clone(model)).fit(X, y)
    assert retrieval_scorer("map")(pipeline, X, y) == expected
    search = GridSearchCV(pipeline, {}, scoring=retrieval_scorer("map"), cv=3).fit(X, y)
    assert search.score(X, y) == expected


def test_a_metric_that_is_named_compares_the_projections():
    X, y = Views(views()), classes()
    model = JRL(n_neighbors=10).fit(X, y)
    expected = evaluate_retrieval(model.transform(X), y, measures="map", similarity="cosine").mean()
    table = evaluate_retrieval(X, y, measures="map", similarity="cosine", estimator=model)
    assert table.mean() == expected
    assert table.mean() != evaluate_retrieval(X, y, measures="map", estimator=model).mean()
    assert retrieval_scorer("map", similarity="cosine")(model, X, y) == expected["map"]


def test_a_saved_index_ranks_as_it_did(tmp_path):
    X, y = Views(views()), classes()
    index = RetrievalIndex(JRL(n_neighbors=10).fit(X, y)).add(X)
    save(index, tmp_path / "index.mvcca")
    queries = {"text": X["text"][:7]}
    first, second = (i.search(queries, "image") for i in (index, load(tmp_path / "index.mvcca")))
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[0], second[0])


def test_a_list_of_views_is_scored_as_the_mapping_is():
    X = views()
    model = CCA(2).fit(list(X.values()))
    named = CCA(2).fit(X)
    scorer = retrieval_scorer("mrr")
    assert scorer(model, list(X.values())) == scorer(named, X)


def test_unpaired_lists_are_scored_by_their_labels():
    X = views()
    blocks, labels = [X["image"][:50], X["text"][50:]], [classes()[:50], classes()[50:]]
    model = MLCCA(2).fit(blocks, labels)
    expected = evaluate_retrieval(
        model.transform(Views.unpaired(blocks)),
        dict(zip(("view0", "view1"), labels, strict=True)),
        measures="map",
    ).mean()["map"]
    assert retrieval_scorer("map")(model, blocks, labels) == expected


@pytest.mark.parametrize("estimator", [CCA(2), PLSSVD(2)], ids=lambda e: type(e).__name__)
def test_two_lone_matrices_are_two_views(estimator):
    X, Y = views().values()
    model = clone(estimator).fit(X, Y)
    scores, similarity = dict(zip("Xy", model.transform(X, Y), strict=True)), "cosine"
    if isinstance(model, CCA):
        scores, similarity = retrieval_vectors(model, {"X": X, "y": Y}), "inner"
    expected = evaluate_retrieval(scores, measures="mrr", similarity=similarity).mean()["mrr"]
    assert retrieval_scorer("mrr")(model, X, Y) == expected
    values = cross_val_score(clone(estimator), X, Y, scoring=retrieval_scorer("mrr"), cv=3)
    assert (values > 0.1).all()  # chance is 0.13 for one, and these have learned


def test_one_lone_matrix_is_searched_by_its_labels():
    X, y = views()["image"], classes()
    for model in (PCA(2).fit(X), MLCCA(2).fit(X, y)):
        expected = evaluate_retrieval(
            {"X": model.transform(X)}, y, measures="map", directions="within"
        ).mean()["map"]
        assert retrieval_scorer("map")(model, X, y) == expected


def test_a_pipeline_cannot_take_a_second_matrix_and_says_so():
    X, Y = views().values()
    model = make_pipeline(StandardScaler(), CCA(2)).fit(X, Y)
    with pytest.raises(ValueError, match="Pass both as Views"):
        retrieval_scorer("mrr")(model, X, Y)


class Noise(TransformerMixin, BaseEstimator):
    """Projects onto noise that has nothing to do with the input."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        rng = np.random.default_rng(0)
        return {name: rng.normal(size=(len(X), 5)) for name in X.names}


def test_noise_scores_at_chance():
    X = Views(views(2000))
    assert retrieval_scorer("r@100")(Noise(), X) == pytest.approx(0.05, abs=0.02)


def test_a_scorer_survives_pickling_and_is_comparable():
    scorer = retrieval_scorer("map@10", "image", "text", relevance="labels")
    assert pickle.loads(pickle.dumps(scorer)) == scorer
    assert scorer != retrieval_scorer("map@10")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measure": "accuracy"}, "Unknown measure"),
        ({"similarity": "manhattan"}, "similarity"),
        ({"relevance": "all"}, "relevance"),
    ],
)
def test_unknown_choices_are_refused_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        retrieval_scorer(**arguments)


def test_an_unknown_view_is_named():
    model = MVCCA(2).fit(views())
    with pytest.raises(ValueError, match="Unknown view 'video'"):
        retrieval_scorer("mrr", "video")(model, views())


# ---- one held-out object -------------------------------------------------------------------------


ONE_ROW = "a correlation, which one object does not have"
ONE_ITEM = "finds the only item of a gallery first"
SCORING = {
    name: cls
    for name, cls in estimators().items()
    if issubclass(cls, MultiViewEstimator) and not issubclass(cls, ClassifierMixin)  # of accuracies
}


def test_all_estimators_have_one_score():
    assert {cls.score for cls in SCORING.values()} == {MultiViewEstimator.score}


@pytest.mark.filterwarnings("ignore")  # of few rows
@pytest.mark.parametrize("name", [own for own in SCORING if "deep" not in SCORING[own].__module__])
def test_one_object_has_no_score(name):
    X, y = Views(views(60)), classes(60)
    model = SCORING[name]().fit(X, y)
    with pytest.raises(ValueError, match=ONE_ROW):
        model.score(X[:1], y[:1])
    with pytest.raises(ValueError, match=ONE_ROW):
        model.score(X[:3], y[:3], sample_weight=[0, 2, 0])
    assert np.isfinite(model.score(X[:2], y[:2]))
    for scorer in (retrieval_scorer("mrr"), retrieval_scorer("map", relevance="labels")):
        with pytest.raises(ValueError, match=ONE_ITEM):
            scorer(model, X[:1], y[:1])
        assert np.isfinite(scorer(model, X[:2], y[[0, 0]]))


def search_of(search, scoring=None):
    def fit(X, cv):
        options = {"error_score": "raise"} if search is GridSearchCV else {}
        return search(CCA(), {"reg": [0.1, 1.0]}, cv=cv, scoring=scoring, **options).fit(X)

    return fit


MRR = retrieval_scorer("mrr")
DOORS = {
    "cross_val_score": partial(cross_val_score, CCA(reg=0.1), error_score="raise"),
    "cross_val_score of ranks": partial(
        *(cross_val_score, CCA(reg=0.1)), error_score="raise", scoring=MRR
    ),
    "learning_curve": lambda X, cv: learning_curve(
        *(CCA(reg=0.1), X, np.zeros(len(X))), cv=cv, error_score="raise", train_sizes=[0.5, 1.0]
    ),
    "GridSearchCV": search_of(GridSearchCV),
    "GridSearchCV of ranks": search_of(GridSearchCV, MRR),
    "FoldSearchCV": search_of(FoldSearchCV),
    "FoldSearchCV of ranks": search_of(FoldSearchCV, MRR),
    "compare": lambda X, cv: compare(["cca"], X, cv=cv),
    "compare without tuning": lambda X, cv: compare(["cca"], X, cv=cv, tune=False),
    "search in compare": lambda X, cv: compare(["cca"], X, cv=cv, search={"reg": [0.1, 1.0]}),
}


@pytest.mark.filterwarnings("ignore")  # of few rows
@pytest.mark.parametrize("cv", [LeaveOneOut(), 12], ids=["LeaveOneOut", "cv=n"])
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_one_held_out_object_at_a_time_is_refused_with_the_remedy(door, cv):
    with pytest.raises(ValueError, match=f"({ONE_ROW}|{ONE_ITEM}).*cv=5 does"):
        door(Views(views(12)), cv=cv)
    door(Views(views(12)), cv=3)


def test_scikit_learn_warns_of_the_reason_where_it_gives_nan():
    with pytest.warns(UserWarning, match=ONE_ROW):
        assert np.isnan(cross_val_score(CCA(reg=0.1), Views(views(12)), cv=LeaveOneOut())).all()


def test_errors_of_predictions_are_defined_on_one_object():
    X = views(30)
    first, second = X["image"], X["text"]
    scoring = "neg_mean_squared_error"
    model = PLS(2, algorithm="regression")
    found = cross_val_score(model, first, second, cv=LeaveOneOut(), scoring=scoring)
    model.fit(first[1:], second[1:])
    assert found[0] == pytest.approx(-np.mean((model.predict(first[:1]) - second[:1]) ** 2))


@pytest.mark.filterwarnings("ignore")  # of few rows
@pytest.mark.parametrize("goal", ["object", "correlation", "class"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 9, 10])
def test_folds_of_few_objects_choose_by_two_or_more_of_each(n, goal):
    X, y = Views(views(n)), np.arange(n) % 2
    if n < 4:
        with pytest.raises(ValueError, match=f"at least 4 objects, got {n}"):
            CCA(reg="cv", cv_goal=goal).fit(X, y)
        return
    results = CCA(reg="cv", cv_goal=goal).fit(X, y).cv_results_
    assert sum(name.startswith("split") for name in results) == min(5, n // 2)
    assert np.isfinite(results["mean_test_score"]).all()
