"""Displays of sparse models show the selected features, and predictions their areas."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from mvcca import RGCCA, SparseDiscriminant, Views
from mvcca.plotting import (
    AssociationsDisplay,
    AurocDisplay,
    BiplotDisplay,
    LoadingsDisplay,
)

pytest.importorskip("matplotlib")
rng = np.random.default_rng(0)
z = rng.normal(size=(80, 2))
GENES = np.hstack([z @ rng.normal(size=(2, 5)), np.zeros((80, 15))]) + rng.normal(size=(80, 20))
LIPIDS = np.hstack([np.zeros((80, 8)), z @ rng.normal(size=(2, 4))]) + rng.normal(size=(80, 12))
VIEWS = Views({"genes": pd.DataFrame(GENES).add_prefix("g"), "lipids": LIPIDS})
MODEL = RGCCA(2, n_features=3).fit(VIEWS)
GENE_NAMES = {str(name) for own in MODEL.selected_["genes"] for name in own}
LIPID_NAMES = {f"lipids {i}" for own in MODEL.selected_["lipids"] for i in own}


def names_in(frame):
    """Names of features in the cells of a frame, of either view."""
    texts = {str(value) for column in frame.columns for value in frame[column]} | {*frame.columns}
    return {text for text in texts if re.fullmatch(r"g\d+|lipids \d+", text)}


@pytest.mark.parametrize(
    ("display", "options"),
    [
        (AssociationsDisplay, {}),
        (AssociationsDisplay, {"kind": "heatmap"}),
        (LoadingsDisplay, {}),
        (BiplotDisplay, {}),
    ],
)
def test_features_are_the_selected_ones_under_their_own_names(display, options):
    shown = names_in(display.from_estimator(MODEL, VIEWS, **options).frame())
    assert shown <= GENE_NAMES | LIPID_NAMES
    assert shown & GENE_NAMES
    assert shown & LIPID_NAMES


def test_values_are_those_of_all_features_which_names_ask_for():
    names = {"genes": [f"g{i}" for i in range(20)], "lipids": [f"lipids {i}" for i in range(12)]}
    some = LoadingsDisplay.from_estimator(MODEL, VIEWS)
    every = LoadingsDisplay.from_estimator(MODEL, VIEWS, feature_names=names)
    assert len(every.loadings["genes"]) == 20
    for view, own in some.feature_names.items():
        places = [names[view].index(name) for name in own]
        np.testing.assert_allclose(some.loadings[view], every.loadings[view][places])


def test_areas_of_predictions_are_those_of_each_class():
    y = np.array(["a", "b", "c"])[np.argmax(np.c_[z, -z.sum(axis=1)], axis=1)]
    model = SparseDiscriminant(2, n_features=3).fit(VIEWS[:50], y[:50])
    predicted = {"both": model.predict_proba(VIEWS[50:])}
    predicted["lipids"] = model.predict_proba({"lipids": LIPIDS[50:]})
    frame = AurocDisplay.from_predictions(predicted, y[50:], model.classes_).frame()
    for _, row in frame.iterrows():
        place = list(model.classes_).index(row["label"])
        expected = roc_auc_score(y[50:] == row["label"], predicted[row["view"]][:, place])
        assert row["auroc"] == pytest.approx(expected)
    assert len(frame) == 6
    with pytest.raises(ValueError, match="a column for each of 2 classes"):
        AurocDisplay.from_predictions(predicted, y[50:], model.classes_[:2])
