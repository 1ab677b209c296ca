"""Deep methods of labels on unpaired views: pairs drawn by label, judged by rows counted by hand.

MLCCA, which compares all rows by their labels, is what they must beat on a planted set.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold

torch = pytest.importorskip("torch")

from deep_estimators import DEEP, Interrupt, assert_equal_scores, small  # noqa: E402

from mvcca import (  # noqa: E402
    MLCCA,
    Views,
    config_context,
    evaluate_retrieval,
    load,
    retrieval_scorer,
    save,
)
from mvcca.deep.callbacks import Callback  # noqa: E402
from mvcca.deep.samplers import Sample, ShuffledBatches  # noqa: E402

OF_LABELS = [estimator for estimator in DEEP if not estimator.requires.pairs]
every_estimator = pytest.mark.parametrize("estimator", OF_LABELS, ids=lambda e: type(e).__name__)
CLASSES = np.array(["dog", "cat", "owl", "fox"])


def planted(n_image=90, n_sound=50, seed=0, noise=0.4):
    """Unpaired views of the same classes, each of which lies on both sides of the mean."""
    rng, maps = np.random.default_rng(seed), np.random.default_rng(7)
    corners = np.array([[2, 2, 2], [2, 2, -2], [2, -2, 2], [-2, 2, 2]])
    blocks, labels = {}, {}
    for name, n, width in (("image", n_image, 6), ("sound", n_sound, 5)):
        y = rng.permutation(np.arange(n) % 4)
        Z = corners[y] * rng.choice([-1, 1], (n, 1)) + noise * rng.standard_normal((n, 3))
        blocks[name] = Z @ maps.standard_normal((3, width)) + 0.1 * rng.standard_normal((n, width))
        labels[name] = CLASSES[y]
    return Views.unpaired(blocks), labels


def fitted(estimator, **parameters):
    return clone(estimator).set_params(**parameters).fit(*planted())


QUERIES = planted(20, 20, seed=3)[0]


def mean_average_precision(model, views, labels):
    return evaluate_retrieval(views, labels, estimator=model, measures="map").mean()["map"]


def test_weights_of_unpaired_rows_are_repetitions():
    views, labels = planted()
    weights = np.random.default_rng(0).integers(0, 4, len(views))
    y = np.concatenate(list(labels.values()))
    objects = np.repeat(np.arange(len(views)), weights)
    expected = small("ACMR").fit(views[objects], y[objects])
    assert_equal_scores(small("ACMR").fit(views, labels, sample_weight=weights), expected, QUERIES)


# ---- the sampler ---------------------------------------------------------------------------------


def batches_of(sampler, codes, seed=0):
    rows = codes or dict.fromkeys("ab", "x")  # without labels there are rows all the same
    views = Views.unpaired({name: np.zeros((len(y), 1)) for name, y in rows.items()})
    rng = np.random.default_rng(seed)
    return [list(sampler(Sample(views, codes), rng)) for _ in range(2)]


CODES = {
    "image": np.repeat([0, 1, 2], [7, 5, 2]),
    "text": np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [3, 9, 2])),
    "sound": np.repeat([2, 1, 0], [4, 4, 4]),
}


def test_pairs_have_equal_labels_and_rows_are_used_equally_often():
    first, second = batches_of(ShuffledBatches(5, last="keep"), CODES)
    assert [len(rows["text"]) for rows in first] == [5, 5, 5, 5]
    pairs = {name: np.concatenate([rows[name] for rows in first]) for name in CODES}
    drawn = {name: CODES[name][rows] for name, rows in pairs.items()}
    for labels in drawn.values():
        np.testing.assert_array_equal(labels, drawn["image"])
        assert np.bincount(labels).tolist() == [7, 9, 4]
    for name, rows in pairs.items():
        counts = np.bincount(rows, minlength=len(CODES[name]))
        for code in range(3):
            times = counts[CODES[name] == code]
            assert times.min() >= 1
            assert times.max() - times.min() <= 1
    again = {name: np.concatenate([rows[name] for rows in second]) for name in CODES}
    links = [{*zip(p["image"].tolist(), p["text"].tolist(), strict=True)} for p in (pairs, again)]
    assert links[0] != links[1]  # other pairs in the next epoch


def test_batches_are_filled_dropped_or_kept_as_those_of_pairs():
    for last, sizes in (("drop", [8, 8]), ("fill", [8, 8, 8]), ("keep", [8, 8, 4])):
        batches = batches_of(ShuffledBatches(8, last), CODES)[0]
        assert [len(rows["sound"]) for rows in batches] == sizes
    with pytest.raises(ValueError, match="last must be one of"):
        ShuffledBatches(8, last="skip")


def test_labels_that_a_view_lacks_are_left_out_and_some_must_be_shared():
    codes = {"image": np.array([0, 1, 1, 2]), "text": np.array([1, 3])}
    (batch,), _ = batches_of(ShuffledBatches(9), codes)
    assert sorted(batch["image"].tolist()) == [1, 2]
    assert batch["text"].tolist() == [0, 0]
    for codes in ({"a": np.array([0]), "b": np.array([1])}, {}):
        with pytest.raises(ValueError, match="no label set occurs in all views"):
            batches_of(ShuffledBatches(9), codes)


# ---- estimators ----------------------------------------------------------------------------------


def test_the_methods_whose_losses_are_of_labels_take_unpaired_views():
    names = {type(estimator).__name__ for estimator in OF_LABELS}
    assert names == {"SAM", "ACMR", "CCL", "DeepSM", "TwoBranch"}


LONGER = {"max_epochs": 40, "batch_size": 50, "learning_rate": 0.02, "hidden_layer_sizes": (32,)}


SELDOM = [pytest.mark.slow, pytest.mark.long]  # these need many epochs


@pytest.mark.parametrize(
    ("name", "least", "parameters"),
    [
        pytest.param("SAM", 0.6, {"optimizer": "adam", "dropout": 0.0}, marks=SELDOM),
        ("ACMR", 0.9, {}),
        pytest.param("CCL", 0.9, {"max_epochs": 150}, marks=SELDOM),
        ("DeepSM", 0.9, {"max_epochs": 20, "learning_rate": 0.01}),
        ("TwoBranch", 0.9, {"max_epochs": 20, "learning_rate": 0.005, "dropout": 0.0}),
    ],
)
def test_classes_that_linear_maps_cannot_tell_are_found(name, least, parameters):
    views, labels = planted(240, 120, seed=1)
    test = planted(80, 60, seed=2)
    size = {} if name == "DeepSM" else {"n_components": 8}
    model = small(name, **size, **LONGER | parameters).fit(views, labels)
    assert mean_average_precision(model, *test) > least
    assert mean_average_precision(MLCCA(3, reg=0.1).fit(views, labels), *test) < 0.35  # chance: .25
    assert model.score(*test) == pytest.approx(mean_average_precision(model, *test), abs=0.02)


@every_estimator
def test_labels_by_view_by_list_and_by_object_are_the_same(estimator):
    views, labels = planted()
    expected = clone(estimator).fit(views, labels)
    blocks = dict(views.items())
    for X, y in ((views, np.concatenate(list(labels.values()))), (blocks, labels)):
        assert_equal_scores(clone(estimator).fit(X, y), expected, QUERIES)
    listed = clone(estimator).fit(list(blocks.values()), list(labels.values()))
    scores = listed.transform(list(blocks.values()))
    for name, own in zip(blocks, scores, strict=True):
        np.testing.assert_array_equal(own, expected.transform(blocks)[name])


def test_partly_paired_views_are_paired_by_their_labels():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 4
    blocks = {name: np.eye(4)[y] + 0.1 * rng.standard_normal((60, 4)) for name in ("a", "b")}
    index = np.c_[np.arange(60), np.where(np.arange(60) < 40, np.arange(60), -1)]
    model = small("CCL", max_epochs=15).fit(Views(blocks, index), y)
    assert np.isfinite(model.history_["loss"]).all()


@every_estimator
def test_equal_seeds_resume_bit_for_bit_and_saved_models_train_on(estimator, tmp_path):
    how = {"validation_fraction": 0.2, "max_epochs": 4}
    whole, other = (fitted(estimator, random_state=seed, **how) for seed in (0, 1))
    torch.manual_seed(5)
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            fitted(estimator, callbacks=[Interrupt(3)], **how)
        parts = fitted(estimator, **how)
    assert_equal_scores(parts, whole, QUERIES)
    with pytest.raises(AssertionError):
        assert_equal_scores(other, whole, QUERIES)
    for column in whole.history_.keys() - {"seconds"}:
        np.testing.assert_array_equal(parts.history_[column], whole.history_[column])
    save(whole, tmp_path / "model.mvcca")
    back = load(tmp_path / "model.mvcca")
    whole.set_params(validation_fraction=None), back.set_params(validation_fraction=None)
    assert_equal_scores(
        *(each.partial_fit(*planted(seed=4)) for each in (whole, back)), rows=QUERIES
    )


@every_estimator
def test_validation_rows_are_unpaired_too(estimator):
    views, labels = planted()
    held_out, held_out_labels = planted(30, 20, seed=5)
    parameters = {"max_epochs": 5, "monitor": "valid_map", "learning_rate": 0.02}
    model = clone(estimator).set_params(**parameters)
    model.fit(views, labels, X_val=held_out, y_val=held_out_labels)
    column = model.history_["valid_map"]
    assert model.best_epoch_ == 1 + np.argmax(column)
    found = mean_average_precision(model, held_out, held_out_labels)
    assert column.max() == pytest.approx(found, abs=1e-6)
    as_list = clone(model).fit(
        list(dict(views.items()).values()),
        list(labels.values()),
        X_val=list(dict(held_out.items()).values()),
        y_val=list(held_out_labels.values()),
    )
    np.testing.assert_array_equal(as_list.history_["valid_loss"], model.history_["valid_loss"])


def test_held_out_rows_are_a_share_of_every_class_and_view():
    views, labels = planted()
    labels["sound"][np.flatnonzero(labels["sound"] == "fox")[1:]] = "dog"  # one fox is left
    seen = {}

    class Noted(Callback):
        def on_train_begin(self, trainer):
            seen["train"], seen["valid"] = trainer.rows, trainer.validation

    small("SAM", validation_fraction=0.3, callbacks=[Noted()]).fit(views, labels)
    for name, y in labels.items():
        rows = {part: seen[part].positions[name] for part in seen}
        assert sorted(np.concatenate(list(rows.values()))) == list(range(len(y)))
        for part, positions in rows.items():
            np.testing.assert_array_equal(seen[part].views[name], views[name][positions])
        for label in CLASSES:
            n = (y == label).sum()
            n_valid = (y[rows["valid"]] == label).sum()
            assert n_valid == (round(0.3 * n) if n > 1 else 0)


def test_the_validation_loss_is_that_of_the_same_pairs_in_every_epoch():
    views, labels = planted()
    model = small("SAM", validation_fraction=0.3, learning_rate=1e-12, max_epochs=3)
    losses = model.fit(views, labels).history_["valid_loss"]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)


def test_a_search_splits_unpaired_views():
    views, labels = planted()
    y = np.concatenate(list(labels.values()))
    folds = list(StratifiedKFold(2).split(np.empty(len(y)), np.char.add(views.pattern, y)))
    rates = {"learning_rate": [1e-6, 0.02]}
    model = small("DeepSM", max_epochs=10)
    search = GridSearchCV(model, rates, cv=folds, scoring=retrieval_scorer("map")).fit(views, y)
    assert search.best_params_ == {"learning_rate": 0.02}


# ---- refusals ------------------------------------------------------------------------------------


def without(name, label):
    """Labels, of which one occurs in the other view only."""
    views, labels = planted()
    labels[name] = np.where(labels[name] == label, "cat", labels[name])
    return views, labels


@every_estimator
@pytest.mark.parametrize("name", ["image", "sound"])
def test_a_class_that_a_view_lacks_is_named(estimator, name):
    message = f"view '{name}' has no row with 1 of 4 label sets: 'owl'. Leave out the rows"
    model = clone(estimator)
    with pytest.raises(ValueError, match=f"{type(estimator).__name__} pairs rows.*{message}"):
        model.fit(*without(name, "owl"))
    assert not hasattr(model, "encoders_")
    known = clone(estimator).partial_fit(*planted())
    with pytest.raises(ValueError, match=message):
        known.partial_fit(*without(name, "owl"))


@every_estimator
def test_unpaired_rows_need_labels_of_all_views(estimator):
    views, labels = planted()
    with pytest.raises(ValueError, match=r"requires y to be passed|learns from pairs"):
        clone(estimator).fit(views)
    with pytest.raises(ValueError, match=r"labels of the views \['image', 'sound'\], got"):
        clone(estimator).fit(views, {"image": labels["image"]})
    with pytest.raises(ValueError, match="'sound' has 50 rows but 49 labels"):
        clone(estimator).fit(views, labels | {"sound": labels["sound"][1:]})
    others = np.char.add("no ", labels["sound"])
    with pytest.raises(ValueError, match="have nothing in common with those of the other views"):
        clone(estimator).fit(views, labels | {"sound": others})
    with pytest.raises(ValueError, match="X_val needs labels"):
        clone(estimator).fit(views, labels, X_val=views)
    with pytest.raises(ValueError, match="correlation is that of paired rows, and these are unp"):
        fitted(estimator, validation_fraction=0.3, monitor="valid_correlation")


NEEDS_PAIRS = [estimator for estimator in DEEP if estimator.requires.pairs]


@pytest.mark.parametrize("estimator", NEEDS_PAIRS, ids=lambda e: type(e).__name__)
def test_losses_of_pairs_refuse_unpaired_rows_with_labels(estimator):
    views, labels = planted()
    message = r"(learns from objects seen in all views|learns from pairs).*MLCCA and MVMLCCA"
    for y in (labels, np.concatenate(list(labels.values()))):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(views, y)


def test_validation_rows_may_lack_pairs_only_where_training_rows_have_labels():
    paired = {"image": np.eye(4)[np.arange(40) % 4], "sound": np.eye(4)[np.arange(40) % 4]}
    held_out = Views.unpaired({"image": np.eye(4), "sound": np.eye(4)})
    y, y_val = np.arange(40) % 4, np.tile(np.arange(4), 2)
    model = small("TwoBranch").fit(paired, y, X_val=held_out, y_val=y_val)
    assert np.isfinite(model.history_["valid_mrr"]).all()
    with pytest.raises(ValueError, match="X_val must hold paired rows of the views"):
        small("TwoBranch").fit(paired, X_val=held_out)
