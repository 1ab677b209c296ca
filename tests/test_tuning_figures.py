"""Fits, rankings and searches against plain NumPy (`benchmarks/defaults/tuning_oracle.py`)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from benchmarks.defaults import tuning_oracle as oracle
from mvcca import CCA, MLCCA, MVCCA, evaluate_retrieval
from mvcca.datasets import load_digits_views

RANKINGS = ["profile-likelihood", "likelihood", "profile-likelihood+csls", "likelihood+csls"]


def parts(layout):
    """Training views, test views and both labels of some digits."""
    data = load_digits_views(layout)
    order = np.random.RandomState(0).permutation(len(data.views))
    rows = order[:150], order[150:300]
    return [data.views[own] for own in rows], [np.asarray(data.labels)[own] for own in rows]


def arrays(views):
    return [np.asarray(X, float) for _, X in views.items()]


def label_similarities(labels):
    return (labels[:, None] == labels).astype(float)


@pytest.mark.parametrize(("layout", "method"), [("halves", CCA), ("quadrants", MVCCA)])
@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_are_those_of_full_matrices(layout, method, name):
    (train, test), (_, labels) = parts(layout)
    ((_, plain),) = oracle.ridge_cca(arrays(train), [0.1])
    ours = method(plain.weights[0].shape[1], reg=0.1).fit(train)
    weighting, _, csls = name.partition("+")
    bank = {"hubness": "csls", "bank": train} if csls else {}
    table = evaluate_retrieval(
        test, labels, estimator=ours, weighting=weighting, measures=["mrr", "map@50"], **bank
    )
    scores, of_bank = plain.scores(arrays(test)), plain.scores(arrays(train))
    k, relevant = ours.n_components_, labels[:, None] == labels
    measures = {
        "mrr": oracle.mean_reciprocal_rank,
        "map@50": lambda found: oracle.mean_average_precision(found, relevant),
    }
    for measure, function in measures.items():
        expected = oracle.average_over_pairs(name, plain, scores, of_bank, k, function)
        assert table.mean()[measure] == pytest.approx(expected, abs=1e-6)


def searched(model, goal, rankings, fit):
    """Results of the tuned model's search, and the oracle's by length of the lists and setting."""
    (train, _), (classes, _) = parts("halves")
    X = arrays(train)
    strata = classes if goal == "class" else np.zeros(len(classes))
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(X[0], strata)
    held_out = [rows for _, rows in folds]

    def measure_of(rows, length):
        if goal == "object":
            return oracle.mean_reciprocal_rank
        relevant = classes[rows][:, None] == classes[rows]
        if length == 50:
            return lambda found: oracle.mean_average_precision(found, relevant)
        others = ~np.eye(len(rows), dtype=bool)
        return lambda found: oracle.mean_average_precision(
            np.where(others, found, -np.inf), relevant & others, length
        )

    expected = {
        length: oracle.search(
            X,
            held_out,
            lambda rows: fit([view[rows] for view in X], classes[rows]),
            rankings,
            partial(measure_of, length=length),
            goal == "class",
        )
        for length in ([50, 5] if goal == "class" else [50])
    }
    return model.fit(train, classes if goal == "class" else None).cv_results_, expected


def by_setting(results, column):
    return {
        (own["reg"], own["ranking"], own["n_components"] or 0): mean
        for own, mean in zip(results["params"], results[column], strict=True)
    }


def of_mlcca(views, classes):
    return oracle.ridge_mlcca(views, label_similarities(classes))


def of_cca(views, _):
    return oracle.ridge_cca(views)


@pytest.mark.parametrize(
    ("model", "goal", "fit"),
    [
        (CCA(None, reg="cv", scale=False), "object", of_cca),
        (CCA(None, reg="cv", cv_goal="class", scale=False), "class", of_cca),
        (MLCCA(None, reg="cv", label_similarity="equal", scale=False), "class", of_mlcca),
    ],
)
def test_a_search_by_statistics_scores_what_a_search_by_rows_scores(model, goal, fit):
    results, expected = searched(model, goal, RANKINGS[:2], fit)
    columns = ["mean_test_score", "mean_test_head"][: len(expected)]
    for column, values in zip(columns, expected.values(), strict=True):
        ours = by_setting(results, column)
        assert ours.keys() >= values.keys()
        for setting, own in values.items():
            if setting[1:] == ("profile-likelihood", 1):
                continue  # ± 1 for all pairs: the order is arbitrary
            # Lists of a class goal are sorted by fewer bits of a score.
            tolerance = 2e-3 if goal == "class" else 1e-6
            assert ours[setting] == pytest.approx(own.mean(), abs=tolerance), setting
    means = {
        setting: np.mean([own[setting] for own in expected.values()], axis=0)
        for setting in expected[50]
    }
    whole = (model.reg_, model.ranking_, 0)
    chosen = means.get((*whole[:2], model.n_components_), means[whole])
    assert chosen.mean() == pytest.approx(means[oracle.chosen(means)].mean(), abs=1e-3)
