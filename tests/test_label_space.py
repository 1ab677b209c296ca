"""Methods whose matrices between views are made of label sums are solved in few directions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from sklearn.base import clone

from mvcca import MLCCA, MVMLCCA, Views
from mvcca.linear import label_space

RNG = np.random.default_rng(0)
LABELS = np.unique(RNG.random((14, 6)) < 0.4, axis=0)[RNG.integers(10, size=150)].astype(int)
LABELS[:, 0] |= ~LABELS.any(axis=1)
WIDE = {}
for _name, _width in {"a": 240, "b": 180, "c": 20}.items():
    _noise = random_array((150, _width), density=0.2, rng=RNG).toarray()
    _effect = (RNG.random((6, _width)) < 0.1) * RNG.normal(size=(6, _width))
    WIDE[_name] = (LABELS @ _effect) * (RNG.random((150, _width)) < 0.5) + _noise
SEEN = np.column_stack([np.arange(150) < 120, np.arange(150) > 25, np.arange(150) % 3 > 0])
FORMS = {
    "dense": Views(WIDE),
    "two views": Views({name: WIDE[name] for name in "ab"}),
    "float32": Views({name: X.astype(np.float32) for name, X in WIDE.items()}),
    "partly paired": Views(
        {name: X[seen] for (name, X), seen in zip(WIDE.items(), SEEN.T, strict=True)},
        np.where(SEEN, np.cumsum(SEEN, axis=0) - 1, -1),
    ),
    "unpaired": Views.unpaired({"a": WIDE["a"][:100], "b": WIDE["b"][:150]}),
}
MODELS = {
    "MVMLCCA": MVMLCCA(3, reg=0.2, power=1, within="label"),
    "MVMLCCA, cosine": MVMLCCA(3, reg=0.2, label_similarity="cosine", within="label"),
    "MVMLCCA, auto": MVMLCCA(3, reg="auto", within="label"),
    "MVMLCCA, sample": MVMLCCA(3, reg=0.2),
    "MVMLCCA, sample, cosine": MVMLCCA(3, reg=0.2, label_similarity="cosine", power=1),
    "MVMLCCA, sample, absolute": MVMLCCA(3, reg=0.3, reg_unit="absolute"),
    "MLCCA": MLCCA(3, reg=0.2, weighting="means"),
    "MLCCA, equal": MLCCA(3, reg=0.2, weighting="means", label_similarity="equal"),
    "MLCCA, absolute": MLCCA(3, reg=0.3, weighting="means", reg_unit="absolute"),
}


def labels_of(views: Views) -> np.ndarray | list[np.ndarray]:
    return LABELS if len(views) == len(LABELS) else [LABELS[:100], LABELS]


def fitted(model, views, monkeypatch, *, in_label_space, weights=None):
    """A fit, and whether it was in the space of label sums."""
    calls = []
    monkeypatch.setattr(label_space, "WIDE", 30 if in_label_space else 1000)

    def counting(turn):
        return lambda *arguments: calls.append(arguments) or turn(*arguments)

    for name in ("in_label_space", "in_solved_label_space"):
        for module in ("_mlcca", "_mvmlcca"):
            turn = counting(getattr(label_space, name))
            monkeypatch.setattr(f"mvcca.linear.{module}.{name}", turn, raising=False)
    model.fit(views, labels_of(views), sample_weight=weights)
    assert bool(calls) == in_label_space
    return model


@pytest.mark.filterwarnings("ignore:.*distinct label sets")
@pytest.mark.parametrize("weights", [None, 1 + np.arange(150) % 3.0], ids=["even", "weighted"])
@pytest.mark.parametrize("views", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_space_of_label_sums_gives_the_maps_of_the_features(model, views, weights, monkeypatch):
    if weights is not None and len(views) != len(weights):
        weights = np.concatenate([weights[:100], weights])
    if getattr(model, "within", "label") == "sample":
        views = views.replace({n: csr_array(X) if X.shape[1] > 30 else X for n, X in views.items()})
    arguments = {"views": views, "monkeypatch": monkeypatch, "weights": weights}
    expected = vars(fitted(model, in_label_space=False, **arguments)).copy()
    found = vars(fitted(model, in_label_space=True, **arguments))
    assert found.keys() == expected.keys()
    single = next(iter(views.blocks.values())).dtype == np.float32
    for name in ("eigenvalues_", "weights_", "means_", "expected_correlations_"):
        if name not in expected:
            assert not views.is_paired
            continue
        by_view = isinstance(expected[name], dict)
        for key in expected[name] if by_view else [...]:
            wanted, own = expected[name][key], found[name][key]
            tolerance = (1e-4 if single else 1e-8) * np.abs(wanted).max()
            np.testing.assert_allclose(own, wanted, atol=tolerance, err_msg=name)
    scores = model.transform(views)
    for name, block in views.blocks.items():
        own = (block.matrix - found["means_"][name]) @ found["weights_"][name]
        own *= found["eigenvalues_"] ** model.power
        np.testing.assert_allclose(scores[name], own, atol=1e-4 if single else 1e-9)


SPARSE = Views({name: csr_array(WIDE[name]) for name in "ab"})


@pytest.mark.parametrize(
    "ridge", [{"reg": 1e-9}, {"reg": 1e-12, "reg_unit": "absolute"}], ids=["relative", "absolute"]
)
def test_a_ridge_that_is_too_small_to_factorize_is_solved_by_the_rows(ridge, monkeypatch):
    model = MVMLCCA(3, **ridge)
    expected = clone(model).fit(SPARSE, LABELS).eigenvalues_
    found = fitted(model, SPARSE, monkeypatch, in_label_space=True).eigenvalues_
    np.testing.assert_array_equal(found, expected)


def test_a_view_that_never_varies_is_refused_in_few_directions_too(monkeypatch):
    monkeypatch.setattr(label_space, "WIDE", 30)
    views = Views({"a": SPARSE["a"], "b": csr_array((150, 180))})
    with pytest.raises(ValueError, match="view 'b' has no variance"):
        MVMLCCA(3, reg=0.2).fit(views, LABELS)
