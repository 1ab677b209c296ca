"""What a comparison searches for a method, the method's own "cv" searches."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca import Views
from mvcca.comparison.registry import METHODS
from mvcca.model_selection import Choice, Space
from mvcca.model_selection.tuning import chosen, tunable
from mvcca.problem import Rows
from mvcca.views.labels_by_view import LabelsByView

RNG = np.random.default_rng(0)
Y = RNG.integers(3, size=80)
SHARED = 2 * np.eye(3, 5)[Y] + RNG.normal(size=(80, 5))
VIEWS = Views(
    {"a": SHARED + RNG.normal(size=(80, 5)), "b": SHARED[:, :4] + RNG.normal(size=(80, 4))}
)
LABELS = LabelsByView.of(VIEWS, Y)
TUNABLE = [
    name
    for name, method in METHODS.items()
    if not method.is_deep
    and name not in ("kcca", "fkcca")  # the class of nkcca
    and tunable(method.build({})) is not None
]


def in_a_comparison(name):
    """A method whose settings `compare` searches."""
    estimator = METHODS[name].build({"random_state": 0})
    return estimator.set_params(**tunable(estimator))


def with_one_cv(name):
    """The method with "cv" for one parameter, beside the number of components."""
    estimator = METHODS[name].build({"random_state": 0})
    asked = tunable(estimator)
    first = next(own for own in ("reg", "n_components", "n_neighbors") if asked.get(own) == "cv")
    return estimator.set_params(**{n: asked[n] for n in {first, "n_components"} & {*asked}})


def settings_of(results):
    return {repr(sorted(own.items(), key=str)) for own in results["params"]}


@pytest.mark.parametrize("name", TUNABLE)
def test_one_cv_asks_for_what_a_comparison_asks(name):
    spaces = [
        Space.offered_by(own, Rows(VIEWS, labels=LABELS)).of(own)
        for own in (with_one_cv(name), in_a_comparison(name))
    ]
    assert spaces[0].values.keys() == spaces[1].values.keys()
    assert repr(spaces[0].values) == repr(spaces[1].values)
    assert spaces[0].has_prefixes == spaces[1].has_prefixes


QUICK = {"affine", "cca", "gcca", "jrl", "lgcfl", "mlcca", "pls"}  # at once; CI tries all


@pytest.mark.filterwarnings("ignore")  # of few rows; what is chosen counts
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in TUNABLE],
)
def test_a_fit_and_the_search_of_a_comparison_choose_alike(name):
    model = with_one_cv(name).fit(VIEWS, Y)
    labels = LABELS if model.requires.labels else None
    rows = Rows(VIEWS, labels=labels)
    found, own = chosen(in_a_comparison(name), rows, {}), Choice.of(model)
    assert settings_of(found.cv_results) == settings_of(model.cv_results_)
    assert found.ranking == own.ranking
    assert {n: value for n, value in found.params.items() if n != "n_components"} == own.params
    assert found.n_components in (None, own.n_components)
    assert found.value == pytest.approx(own.value, abs=1e-9)
