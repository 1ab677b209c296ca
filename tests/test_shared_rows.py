"""What scores of shared rows tell of new rows is what covariances of their features tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from mvcca import MLCCA, MVMLCCA, Views
from mvcca.problem.shared_rows import SharedRows

RNG = np.random.default_rng(0)
LABELS = (RNG.random((90, 7)) < 0.3).astype(int)
LABELS[:, 0] |= ~LABELS.any(axis=1)
FEATURES = {
    name: LABELS @ RNG.normal(size=(7, width)) + RNG.normal(size=(90, width)) + 3
    for name, width in {"a": 12, "b": 9, "c": 6}.items()
}
WEIGHTS = RNG.integers(1, 4, 90).astype(float)
SEEN = np.column_stack([np.arange(90) < 70, np.arange(90) > 15, np.arange(90) % 3 > 0])
WIDE = {name: X @ RNG.normal(size=(len(X.T), 200)) for name, X in FEATURES.items()}


def partly_paired(features: dict[str, np.ndarray]) -> Views:
    index = np.where(SEEN, np.cumsum(SEEN, axis=0) - 1, -1)
    parts = zip(features.items(), SEEN.T, strict=True)
    return Views({name: X[seen] for (name, X), seen in parts}, index)


VIEWS = {
    "paired": Views(FEATURES),
    "two views": Views(FEATURES).select(("a", "b")),
    "sparse": Views({name: csr_array(np.where(X > 4, X, 0)) for name, X in FEATURES.items()}),
    "float32": Views({name: X.astype(np.float32) for name, X in FEATURES.items()}),
    "partly paired": partly_paired(FEATURES),
    "wide": Views(WIDE),
    "far from zero": Views({name: X + 1e5 for name, X in FEATURES.items()}),
}


@pytest.mark.filterwarnings("ignore:.*distinct label sets")
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["even", "weighted"])
@pytest.mark.parametrize("kind", [MVMLCCA, MLCCA])
@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_expectations_from_scores_equal_those_from_covariances(views, kind, weights, monkeypatch):
    model = kind(2, reg=0.1)
    taken = []
    monkeypatch.setattr(SharedRows, "is_cheaper", lambda self: taken.append(self) or True)
    by_scores = model.fit(views, LABELS, sample_weight=weights).maps_.expected
    assert taken
    monkeypatch.setattr(SharedRows, "is_cheaper", lambda _: False)
    by_features = model.fit(views, LABELS, sample_weight=weights).maps_.expected
    single = {block.dtype for block in views.blocks.values()} == {np.dtype(np.float32)}
    for name in ("mean", "correlations", "deviations"):
        found, expected = getattr(by_scores, name), getattr(by_features, name)
        parts = (expected, found) if isinstance(found, dict) else ({"": expected}, {"": found})
        for key, values in parts[0].items():
            np.testing.assert_allclose(parts[1][key], values, atol=1e-5 if single else 1e-9)


def test_moments_are_taken_where_they_cost_less():
    model, views = MVMLCCA(9, reg=0.1, within="label"), VIEWS["paired"]
    taken = SharedRows.is_cheaper
    results = {}
    for k in (2, 9, None):
        rows = model.set_params(n_components=k)._open_rows(views, LABELS, None)
        results[k] = taken(SharedRows(rows))
    assert results == {2: True, 9: False, None: False}
