"""Networks that learn from labels: held-out rows choose how their features are scaled."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from deep_estimators import assert_equal_scores  # noqa: E402

from mvcca import Views, config_context, load, save  # noqa: E402
from mvcca.deep import ACMR, CCL, SAM, DeepSM  # noqa: E402
from mvcca.deep.callbacks import Callback  # noqa: E402
from mvcca.views import Labels  # noqa: E402

METHODS = [SAM, DeepSM, ACMR, CCL]
TINY = {"hidden_layer_sizes": (8,), "max_epochs": 15, "random_state": 0}


def labelled(units: bool, n: int = 300, seed: int = 0) -> tuple[Views, np.ndarray]:
    """Classes in the two columns of the largest variances, or in many of those of the smallest."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    points = np.array([[3, 3], [3, -3], [-3, 3], [-3, -3]])[y]
    points = np.tile(points, 10 if units else 1)
    k = points.shape[1]
    deviations = np.full(60, 50.0 if units else 0.2)
    deviations[:k] = 0.01 if units else 1
    blocks = {}
    for name in ("image", "text"):
        X = rng.standard_normal((n, 60))
        X[:, :k] += points
        blocks[name] = X * deviations
    return Views(blocks), y


PLAIN, UNITS = labelled(False), labelled(True)


@pytest.mark.parametrize("cls", [SAM, DeepSM])
def test_columns_in_unlike_units_are_standardized_one_by_one(cls):
    assert cls(**TINY).fit(*UNITS).standardize_ is True


@pytest.mark.parametrize("cls", [SAM, ACMR])
def test_variances_that_carry_the_classes_are_kept(cls):
    assert cls(**TINY).fit(*PLAIN).standardize_ == "view"


@pytest.mark.parametrize("cls", METHODS)
@pytest.mark.parametrize("data", [PLAIN, UNITS])
def test_the_model_is_that_of_all_rows_with_the_scale_that_was_chosen(cls, data):
    views, y = data
    settings = TINY | {"max_epochs": 2}
    model = cls(**settings).fit(views, y)
    given = cls(**settings, standardize=model.standardize_).fit(views, y)
    assert not hasattr(given, "standardize_")
    assert_equal_scores(model, given, views)


def test_validation_rows_of_the_user_judge_and_are_not_trained_on():
    views, y = UNITS
    rest, held = np.arange(220), np.arange(220, 300)
    model = DeepSM(**TINY).fit(views[rest], y[rest], X_val=views[held], y_val=y[held])
    assert model.standardize_ is True
    assert "valid_map" in model.history_
    given = DeepSM(**TINY, standardize=True)
    given.fit(views[rest], y[rest], X_val=views[held], y_val=y[held])
    assert_equal_scores(model, given, views)
    share = DeepSM(**TINY, validation_fraction=0.2).fit(views, y)
    assert "valid_map" in share.history_


def test_nothing_is_chosen_where_held_out_rows_cannot_tell():
    views, y = PLAIN
    few = np.arange(150)
    settings = TINY | {"max_epochs": 1}
    unpaired = Views.unpaired({n: X[few] for n, X in views.items()})
    by_view = dict.fromkeys(views.names, y[few])
    cases = [
        DeepSM(**settings).fit(views[few], y[few]),
        DeepSM(**settings).fit(unpaired, by_view),
        DeepSM(**settings).partial_fit(views, y),
        DeepSM(**settings).fit(views, Labels.of(np.eye(300)[:, :2] + np.arange(300)[:, None] / 9)),
    ]
    assert not any(hasattr(model, "standardize_") for model in cases)
    again = DeepSM(**settings).fit(views, y)
    assert not hasattr(again.fit(views[few], y[few]), "standardize_")


def test_files_keep_the_scale(tmp_path):
    views, y = PLAIN
    model = SAM(4, **TINY).fit(views, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.standardize_ == model.standardize_ == "view"
    assert_equal_scores(model, loaded, views)
    assert_equal_scores(model.partial_fit(views, y), loaded.partial_fit(views, y), views)


@pytest.mark.parametrize("step", [3, 13, 24])
def test_an_interrupted_choice_resumes(step, tmp_path):
    class Stop(Callback):
        """Ctrl-C in one of the epochs of all trainings, which use copies of a callback."""

        seen = 0

        def on_batch_end(self, trainer):
            Stop.seen += 1
            if Stop.seen == step:
                raise KeyboardInterrupt

    views, y = PLAIN
    settings = TINY | {"max_epochs": 5}  # 10, 10 and 15 steps
    expected = DeepSM(**settings).fit(views, y)
    model = DeepSM(**settings, callbacks=[Stop()])
    with config_context(checkpoint=tmp_path):
        with pytest.raises(KeyboardInterrupt):
            model.fit(views, y)
        resumed = model.set_params(callbacks=[]).fit(views, y)
    assert resumed.standardize_ == expected.standardize_
    assert_equal_scores(resumed, expected, views)
