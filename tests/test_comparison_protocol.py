"""What a comparison promises: exact galleries, honest chance, and a refit of what is printed."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from pandas import DataFrame

import mvcca
from mvcca import CCA
from mvcca.comparison import protocol
from mvcca.retrieval.ranking import Ranking

N = 90
CLASSES = np.arange(N) % 3


def planted(n_views=2, noise=1.0):
    """Views that share two dimensions and three classes."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((3, 2))[CLASSES] + 0.7 * rng.standard_normal((N, 2))
    return {
        name: shared @ rng.standard_normal((2, 5)) + noise * rng.standard_normal((N, 5))
        for name in "abcd"[:n_views]
    }


@pytest.fixture(scope="module")
def result():
    return mvcca.compare("default", planted(), CLASSES, cv=3, budget=None)


@pytest.mark.slow
def test_the_same_data_and_seed_give_the_same_table_whatever_the_deadline(result):
    again = mvcca.compare("default", planted(), CLASSES, cv=3, budget="2h")
    assert str(again) == str(result)


def test_the_default_prints_at_most_25_lines_with_one_command_per_goal(result):
    from mvcca.comparison.next_step import in_words, next_steps

    commands = in_words(next_steps(result, {"a": "a.npy", "b": "b.npy"}, "y.npy"))
    assert len(commands) == len(result.goals) == 2
    assert len(str(result).splitlines()) + 1 + len(commands) <= 25
    for goal, command in zip(result.goals, commands, strict=True):
        assert f"--goal {goal} " in command


def test_a_refit_has_the_settings_that_are_printed(result):
    for goal in result.goals:
        name = result.best_for(goal)
        choice, model = result.choice(name, goal), result.refit(name, goal)
        assert model.get_params().items() >= choice.parameters.items()
        assert model.ranking_ == choice.ranking


def test_in_the_gallery_of_a_fold_recall_is_that_of_its_ranks(result):
    for name in result.ranked_for("object"):
        own = result.standing(name, "object")
        hits = np.concatenate([(ranks <= 1).ravel() for ranks in own.of_folds.values()])
        assert own.gallery == N // 3
        recall, reciprocal = own.at(own.gallery)
        assert recall == pytest.approx(hits.mean())
        assert reciprocal == pytest.approx(own.value)
        assert own.at(10**4)[0] < recall < own.at(5)[0]  # items are harder to find among more


def test_recall_in_a_part_of_a_gallery_is_the_mean_over_all_parts():
    ranks, gallery, part = np.array([1.0, 2.0, 4.0, 6.0]), 6, 3
    for rank, recall, reciprocal in zip(
        ranks,
        protocol.rarefied_recall(ranks, gallery, part),
        protocol.rarefied_reciprocal_rank(ranks, gallery, part),
        strict=True,
    ):
        others = [item for item in range(1, gallery + 1) if item != rank]
        drawn = [1 + sum(item < rank for item in own) for own in combinations(others, part - 1)]
        assert recall == pytest.approx(np.mean(np.array(drawn) == 1))
        assert reciprocal == pytest.approx(np.mean(1 / np.array(drawn)))


def test_labels_in_random_order_are_found_as_often_as_by_chance():
    labels = np.random.default_rng(1).permutation(CLASSES)
    found = mvcca.compare({"CCA": CCA(2, reg=0.1)}, planted(), labels, budget=None)
    own = found.standing("CCA", "class")
    assert own.value == pytest.approx(found.chance_of_goals["class"], abs=own.reach + 0.03)


def test_chance_is_that_of_the_gallery_that_is_named():
    few = {name: rows[:12] for name, rows in planted().items()}
    found = mvcca.compare({"CCA": CCA(1, reg=0.1)}, few, np.zeros(12, int), budget=None)
    in_folds = np.mean([1 / len(fold.test) for fold in found.folds])  # of 2 or 3 items
    assert found.chance_of_goals == {"object": pytest.approx(in_folds), "class": pytest.approx(1)}
    text = str(found)
    assert f"among 2 items (chance {100 * in_folds:.0f} %)" in " ".join(text.split())
    assert "typical error .05 (mAP@50)" in text  # R@1 of 12 items is not told
    labels = np.arange(12) % 2
    found = mvcca.compare({"CCA": CCA(1, reg=0.1)}, few, labels, cv=2, budget=None)
    # Of 5 items of each fold, 2 are right: the mean over all their places.
    exact = [(1 / (i + 1) + 2 / (j + 1)) / 2 for i, j in combinations(range(5), 2)]
    assert found.chance_of_goals["class"] == pytest.approx(np.mean(exact))


def test_chance_of_galleries_of_unlike_sizes_is_that_of_each_direction():
    rng = np.random.default_rng(0)
    a, b = (DataFrame(rng.normal(size=(n, 3))) for n in (240, 60))
    with pytest.warns(UserWarning, match="match in part"):
        views = mvcca.Views.aligned({"a": a, "b": b.set_axis(b.index * 4)})
    found = mvcca.compare({"CCA": CCA(2, reg=1.0)}, views, cv=4, budget=None)
    own = found.standing("CCA", "object")
    assert set(own.galleries.values()) == {(15, 60)}
    assert own.chance() == pytest.approx((1 / 15 + 1 / 60) / 2)
    # Galleries of 240 items on average, in the ratio of 15 and 60.
    assert found.chance_of_goals["object"] == pytest.approx((1 / 96 + 1 / 384) / 2)
    ranks = rng.integers(1, (16, 61), size=(20000, 2)).astype(float)
    random = replace(own, of_folds={0: ranks}, galleries={0: (15, 60)})
    assert random.recall() == pytest.approx(own.chance(), rel=0.05)
    assert random.at(240)[0] == pytest.approx(own.chance(240), rel=0.3)


@pytest.mark.parametrize(("method", "goal"), [("MVCCA", "object"), ("MVMLCCA", "class")])
def test_figures_of_any_views_are_ranked_as_the_refit_ranks(method, goal):
    labels = None if goal == "object" else CLASSES
    found = mvcca.compare(
        [method.lower()], planted(3), labels, cv=0.3, budget=None, params={"scale": False}
    )
    (fold,), fits = found.folds, found.conditions_of_fits
    choice = found.choice(method, goal)
    model = fits.model(found.candidate(method), fold.train, choice, goal=goal)
    assert model.questions_.n_components is None
    value = fits.sample(fold).values_by(Ranking.of(model))[goal].score
    assert found.standing(method, goal).value == value
    run, other = found.runs[method], "class" if goal == "object" else "object"
    run.trials[other] = replace(run.trials[goal], goal=other)  # which has the same settings
    assert run.values(other) == run.trials[other].values[run.trials[other].best]
    assert run.values(goal) != run.values(other)


def test_a_refit_reads_texts():
    words = np.array(["red", "green", "blue", "round"])
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (60, 4))
    texts = [" ".join(np.repeat(words, row)) or "none" for row in counts]
    views = {"image": counts + 0.1 * rng.standard_normal((60, 4)), "text": texts}
    found = mvcca.compare("cca", views, cv=0.3, tune=False, params={"n_components": 2})
    scores = found.refit("CCA").transform(mvcca.Views(views))
    assert scores["text"].shape == (60, 2)
    assert np.corrcoef(scores["image"][:, 0], scores["text"][:, 0])[0, 1] > 0.9


@pytest.mark.parametrize("is_shared", [False, True])
def test_labels_that_no_two_objects_of_a_fold_share_measure_nothing(is_shared):
    """They had a mean average precision of .00."""
    views, names = planted(), np.arange(N)
    if is_shared:
        names[-1] = names[0]  # of which one is held out, the other not
    found = mvcca.compare(["cca"], views, names, cv=[(np.arange(30, N), np.arange(30))])
    assert found.goals == ("object",)
    assert "no two objects of a fold have a label in common" in "".join(found.data.describe())


def test_a_comparison_in_which_nothing_is_relevant_is_refused():
    views = planted()
    unpaired = mvcca.Views.unpaired(views)
    for X, y, options in (
        (views, np.arange(N), {"relevance": "labels"}),
        (unpaired, [str(i) for i in range(2 * N)], {}),
    ):
        with pytest.raises(ValueError, match="No two objects have a label in common"):
            mvcca.compare(["cca"], X, y, **options)
    with pytest.raises(ValueError, match="no object is seen in two views, and there are no labels"):
        mvcca.compare(["cca"], unpaired)
