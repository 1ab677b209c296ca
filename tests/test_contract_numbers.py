"""What units, constants, few rows and the range of floats do to all estimators.

The table is tests/estimators.py. Oracles of the same are in tests/test_hard_inputs.py and
tests/test_units_and_centering.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import (
    BASELINES,
    BATCHES,
    COMPLETE,
    COMPONENTS,
    COVARYING,
    DEEP,
    ESTIMATORS,
    EVERYTHING,
    FAMILIES,
    GIVEN,
    HAS_ORIGIN,
    HAS_UNITS,
    HOLES,
    LABELS,
    LINEAR,
    LINEAR_VARIANTS,
    OF_CONSTANTS,
    OTHERS,
    SHALLOW_VARIANTS,
    STORAGES,
    N,
    assert_same_model,
    assert_same_scores,
    blocks_for,
    crossed,
    fitted,
    over,
    ridged,
)
from sklearn.base import clone

from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, Views, config_context

# Few rows with holes tell little of the correlations of all pairs of features.
pytestmark = pytest.mark.filterwarnings("ignore:The correlations of pairs of features")

# ---- degenerate rows -----------------------------------------------------------------------------


def widened(X: np.ndarray) -> np.ndarray:
    """25 rows of 30 features."""
    rng = np.random.default_rng(2)
    turned = X[:25] @ rng.standard_normal((X.shape[1], 30))
    return turned + 0.1 * rng.standard_normal(turned.shape)


HARD_ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "a constant column": lambda X: np.insert(X, 2, 0.1, axis=1),
    "every column twice": lambda X: np.tile(X, (1, 2)),
    "fewer rows than features": widened,
    "every row twice": lambda X: np.tile(X, (2, 1)),
    "far from zero": lambda X: X + 1e5,
    "of size 1e150": lambda X: X * 1e150,
    "of size 1e-150": lambda X: X * 1e-150,
    "of size 1e300": lambda X: X * 1e300,
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@crossed("form", STORAGES, [*ESTIMATORS, *OTHERS])
def test_hard_rows_give_numbers_and_where_they_cannot_an_error(estimator, form):
    kinds = [*HARD_ROWS]
    if estimator not in FAMILIES:  # every second kind, which ones moves on with the estimator
        start = [*ESTIMATORS, *OTHERS].index(estimator) % 2
        kinds = kinds[start::2]
    for kind in kinds:
        with np.errstate(all="ignore"):
            blocks = {n: form(HARD_ROWS[kind](X)) for n, X in blocks_for(estimator).items()}
            labels = np.resize(LABELS, (blocks["text"].shape[0], LABELS.shape[1]))
            try:
                scores = clone(estimator).fit(blocks, labels).transform(blocks)
            except (ValueError, ArithmeticError):
                # Units matter to gradients, and squares of 1e300 overflow.
                assert "of size" in kind or estimator in DEEP, kind
            else:
                assert all(np.isfinite(rows).all() for rows in scores.values()), kind


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([*ESTIMATORS, *OTHERS])
def test_two_rows_and_as_many_classes_as_rows_give_numbers_or_an_error(estimator):
    blocks = blocks_for(estimator)
    cases = [({name: X[:2] for name, X in blocks.items()}, LABELS[:2])]
    if estimator.requires.labels:
        cases.append((blocks, np.arange(N)))
    for X, y in cases:
        try:
            scores = clone(estimator).fit(X, y).transform(X)
        except ValueError:
            continue
        assert all(np.isfinite(rows).all() for rows in scores.values())


@pytest.mark.filterwarnings("ignore::UserWarning")
@over([*ESTIMATORS, *OTHERS], needs=[COMPONENTS])
def test_more_components_than_there_are_become_fewer_or_an_error(estimator):
    try:
        model = clone(estimator).set_params(n_components=80).fit(blocks_for(estimator), LABELS)
    except ValueError:
        pass  # of neighbours: as many as there are rows
    else:
        assert model.n_components_ <= 80


@crossed("form", STORAGES, [*LINEAR, *COVARYING, *BASELINES])
def test_a_constant_column_weighs_exactly_nothing(estimator, form):
    for rows in (N, 5) if estimator in LINEAR else (N,):  # five rows are fewer than features
        for value in (0.0, 0.1, -1e6 / 3):
            blocks = {name: X[:rows] for name, X in blocks_for(estimator).items()}
            blocks["text"] = form(np.insert(blocks["text"], 2, value, axis=1))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # five rows are too few for all components
                model = clone(estimator).fit(blocks, LABELS[:rows])
            assert (model.weights_["text"][2] == 0).all()
            assert all(np.isfinite(scores).all() for scores in model.transform(blocks).values())


@over(LINEAR_VARIANTS, needs=[BATCHES], but=[HAS_ORIGIN])
def test_a_constant_column_in_batches_weighs_exactly_nothing(estimator):
    blocks = blocks_for(estimator)
    blocks["text"] = np.insert(blocks["text"], 2, 0.1, axis=1)
    model = clone(estimator)
    for rows in (slice(0, 40), slice(40, N)):
        model.partial_fit(Views(blocks)[rows], LABELS[rows])
    assert (model.weights_["text"][2] == 0).all()


@pytest.mark.filterwarnings("ignore:The loss is not finite after")  # decoders of 1e15
@crossed("form", STORAGES, EVERYTHING, but=[HAS_ORIGIN, OF_CONSTANTS])
def test_a_view_that_never_varies_is_refused_by_name(estimator, form):
    for value in (0.0, 0.1, 1e15):
        blocks = blocks_for(estimator)
        blocks["text"] = form(np.full((N, 5), value))
        with pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"):
            clone(estimator).fit(blocks, LABELS)


@crossed("form", STORAGES, [*SHALLOW_VARIANTS, *OTHERS], but=[HAS_ORIGIN])
def test_a_wide_view_that_never_varies_is_refused_by_name(estimator, form):
    blocks = {name: block[:20] for name, block in blocks_for(estimator).items()}
    blocks["text"] = form(np.full((20, 30), 0.1))
    for block_rows in (None, 7):
        with (
            config_context(block_rows=block_rows),
            pytest.raises(ValueError, match=r"[Vv]iew 'text' has no variance"),
        ):
            clone(estimator).fit(blocks, LABELS[:20])


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@over(COMPLETE, but=[GIVEN])
def test_collinear_columns_change_no_score_and_bound_the_components(estimator):
    blocks = blocks_for(estimator)
    clean = ridged(estimator, 0.0).fit(blocks, LABELS)
    twice = {**blocks, "text": np.c_[blocks["text"], blocks["text"][:, :1]]}
    model = ridged(estimator, 0.0).fit(twice, LABELS)
    assert model.ranks_["text"] == clean.ranks_["text"] == 5
    np.testing.assert_allclose(model.eigenvalues_, clean.eigenvalues_, atol=1e-9)
    for name, scores in model.transform(twice).items():
        assert_same_scores(scores, clean.transform(blocks)[name], 1e-7)
    flat = {"image": blocks["image"], "text": np.outer(blocks["text"][:, 0], np.ones(5))}
    with pytest.warns(UserWarning, match=r"n_components=4 is more .* fitted 1\."):
        model = ridged(estimator, 0.0).set_params(n_components=4).fit(flat, LABELS)
    assert model.n_components_ == 1
    assert model.ranks_ == {"image": 6, "text": 1}
    assert model.transform(flat)["image"].shape == (N, 1)


@over([CCA(), MVCCA(reg=0.0)])
def test_fewer_rows_than_features_are_said_to_correlate_by_construction(estimator):
    for rows in (9, 11):  # 11 = p + q
        blocks = {n: X[:rows] for n, X in list(blocks_for(estimator).items())[:2]}
        with pytest.warns(UserWarning, match=r"n <= p \+ q and reg=0.*by construction"):
            model = clone(estimator).fit(blocks)
        assert model.eigenvalues_[0] > 1.9


@pytest.mark.filterwarnings("ignore:Few rows", "ignore:n <= p")
@over([CCA(1), MVCCA(1, reg=0.0)])
def test_repeated_rows_that_are_fewer_than_features_are_weights_without_a_ridge(estimator):
    rng = np.random.default_rng(0)
    weights = np.r_[1, 3, 1, 2, 1, 1]
    for n_features in (40, 7):  # fewer than the 9 repeated rows, and more
        X, Y = rng.standard_normal((6, n_features)), rng.standard_normal((6, 1))
        expected = clone(estimator).fit([X.repeat(weights, axis=0), Y.repeat(weights, axis=0)])
        model = clone(estimator).fit([X, Y], sample_weight=weights)
        assert_same_model(model, expected, probe={"view0": X, "view1": Y})


# ---- units and origins ---------------------------------------------------------------------------

SCALES = {f"1e{power}": 10.0**power for power in (6, -6, 150, -150, 300, -300)}


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@crossed("scale", SCALES, LINEAR_VARIANTS, but=[HAS_UNITS])
def test_scaling_one_view_or_all_changes_no_score(estimator, scale):
    for form in (np.asarray, sp.csr_array):
        blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
        all_views = {name: X * scale for name, X in blocks.items()}
        if abs(np.log10(scale)) > 200 and (HOLES.holds(estimator) or GIVEN.holds(estimator)):
            with pytest.raises(ValueError, match=r"[Vv]iew 'image'.*[Rr]escale"):
                clone(estimator).fit(all_views, LABELS)
            continue
        for scaled in (all_views, {**blocks, "text": all_views["text"]}):
            model = clone(estimator).fit(scaled, LABELS)
            np.testing.assert_allclose(
                model.eigenvalues_, fitted(estimator).eigenvalues_, rtol=1e-8, atol=1e-8
            )
            for name, scores in model.transform(scaled).items():
                expected = fitted(estimator).transform(blocks_for(estimator))[name]
                assert_same_scores(scores, expected)


@pytest.mark.filterwarnings("ignore:Few rows")  # means of label sets
@over(LINEAR_VARIANTS)
def test_without_a_ridge_columns_scale_and_signs_follow_the_largest_weight(estimator):
    blocks = blocks_for(estimator)
    expected = ridged(estimator, 0.0).fit(blocks, LABELS)
    assert (np.diff(expected.eigenvalues_) <= 0).all()
    for factor in (1e6, 1e-6):
        scaled = {**blocks, "text": blocks["text"] * np.where(np.arange(5) == 2, factor, 1)}
        model = ridged(estimator, 0.0).fit(scaled, LABELS)
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-8)
        for name, scores in model.transform(scaled).items():
            assert_same_scores(scores, expected.transform(blocks)[name])
    for seed in range(2):
        own = blocks_for(estimator, seed=seed)
        model = ridged(estimator, 0.0).fit(own, LABELS)
        turned = ridged(estimator, 0.0).fit({name: -X for name, X in own.items()}, LABELS)
        for name in model.weights_:  # weights, not scores, keep their sign
            np.testing.assert_allclose(turned.weights_[name], model.weights_[name], atol=1e-9)


def test_the_largest_weight_in_deviations_is_positive():
    blocks = blocks_for(CCA())
    model = CCA(n_components=4).fit(blocks)
    stacked = np.concatenate(
        [model.weights_[n] * X.std(axis=0)[:, None] for n, X in blocks.items()]
    )
    assert (stacked[np.abs(stacked).argmax(axis=0), np.arange(4)] > 0).all()


@over(LINEAR_VARIANTS, but=[HAS_ORIGIN])
def test_moving_a_view_changes_no_score_and_far_from_zero_costs_no_more_than_its_digits(estimator):
    blocks, expected = blocks_for(estimator), fitted(estimator)
    moved = {name: X + 10 for name, X in blocks.items()}
    model = clone(estimator).fit(moved, LABELS)
    for name, scores in model.transform(moved).items():
        assert_same_scores(scores, expected.transform(blocks)[name])
    unit = {n: (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0) for n, X in blocks.items()}
    for dtype, tol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        offset = {name: (X + 1e5).astype(dtype) for name, X in unit.items()}
        model = clone(estimator).fit(offset, LABELS)
        rest = {name: X.astype(float) - 1e5 for name, X in offset.items()}  # what rounding left
        wanted = clone(estimator).fit(rest, LABELS)
        np.testing.assert_allclose(model.eigenvalues_, wanted.eigenvalues_, atol=tol)


@over([MLCCA(), MLCCA(n_neighbors=5, random_state=0), MVMLCCA(within="label"), MVMLCCA()])
def test_label_vectors_far_from_zero_in_float32_keep_their_distances(estimator):
    vectors = LABELS @ np.random.default_rng(1).standard_normal((4, 3)) * 4
    vectors = np.round(vectors * 1024) / 1024  # float32 holds them exactly with the offset
    expected = clone(estimator).fit(blocks_for(estimator), vectors)
    blocks = {name: X.astype(np.float32) for name, X in blocks_for(estimator).items()}
    model = clone(estimator).fit(blocks, (vectors + 1e3).astype(np.float32))
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-4)
