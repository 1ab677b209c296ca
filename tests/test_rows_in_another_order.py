"""Functions that pair rows by position refuse tables with the same rows in another order."""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mvcca import CCA
from mvcca.interop.migration import fit_migration
from mvcca.interop.representations import LayerSums, compare_representations
from mvcca.measures import class_means, column_correlations, total_correlation
from mvcca.plotting import ArrowsDisplay, BiplotDisplay, EmbeddingDisplay, SamplesDisplay
from mvcca.retrieval import transfer_labels

RNG = np.random.default_rng(0)
NAMES = [f"row {i}" for i in range(40)]
X = pd.DataFrame(RNG.standard_normal((40, 4)), index=NAMES)
Y = X + 0.1 * RNG.standard_normal((40, 4))
CLASSES = pd.Series(RNG.integers(0, 3, 40), index=NAMES)
MIGRATION = fit_migration(X, Y)
VIEWS = {"x": X, "y": Y}
MODEL = CCA(2, reg=0.1).fit(VIEWS)

CALLS = {
    "column_correlations": lambda y: column_correlations(X, y),
    "weighted": lambda y: column_correlations(X, Y, y[0].abs()),
    "total_correlation": lambda y: total_correlation(X, y),
    "class_means": lambda y: class_means(y, CLASSES),
    "transfer_labels": lambda y: transfer_labels(y, CLASSES, X, unassigned=-1, k=3),
    "fit_migration": lambda y: fit_migration(X, y),
    "drift": lambda y: MIGRATION.drift(X, y),
    "compare_representations": lambda y: compare_representations({"x": X, "y": y}),
    "other": lambda y: compare_representations({"x": X}, other={"y": y}),
    **{
        display.__name__: partial(
            lambda display, y: display.from_estimator(MODEL, VIEWS, groups=y[0] > 0), display
        )
        for display in (ArrowsDisplay, BiplotDisplay, EmbeddingDisplay, SamplesDisplay)
    },
    "LayerSums": lambda y: LayerSums().update({"x": X, "y": y}),
}


@pytest.mark.filterwarnings("ignore:Only .* of the queries find their own row")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_rows_are_not_paired_against_their_labels(call):
    call(Y)
    call(Y[::-1].reset_index(drop=True))  # of which nothing tells the order
    with pytest.raises(ValueError, match="same labels in a different order"):
        call(Y[::-1])
    plt.close("all")
