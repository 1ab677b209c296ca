"""Every method that `mvcca.methods` lists, compared on every kind of data.

A method has figures or a row with its reason; which of them is in the table `SKIPPED`.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import mvcca
from mvcca import CMOLRS, JRL, Views
from mvcca.comparison.registry import METHODS
from mvcca.comparison.verdict import verbose_text

N = 150
CLASSES = np.arange(N) % 3
TINY = {
    "n_components": 2,
    "n_epochs": 2,
    "n_neighbors": 10,
    "n_landmarks": 50,
    "max_epochs": 2,
    "hidden_layer_sizes": (8,),
    "width": 8,
    "pretraining_epochs": 1,
}
MEASURES = ("map@50", "mrr")


def planted(n_views=2):
    """Views that share three dimensions and the three classes."""
    rng = np.random.default_rng(0)
    shared = 2 * rng.standard_normal((3, 3))[CLASSES] + rng.standard_normal((N, 3))
    return Views(
        {
            name: shared @ rng.standard_normal((3, width)) + 0.3 * rng.standard_normal((N, width))
            for name, width in (("image", 6), ("text", 5), ("sound", 4))[:n_views]
        }
    )


def unpaired():
    views = planted()
    return {"image": views["image"][:120], "text": views["text"]}


KINDS = {
    "classes": lambda: (planted(), CLASSES),
    "label sets": lambda: (planted(), [{"abc"[i % 3], "de"[i % 2]} for i in range(N)]),
    "real label vectors": lambda: (planted(), np.random.default_rng(1).random((3, 4))[CLASSES]),
    "one class": lambda: (planted(), np.zeros(N, dtype=int)),
    "no labels": lambda: (planted(), None),
    "three views": lambda: (planted(3), CLASSES),
    "unpaired": lambda: (unpaired(), {"image": CLASSES[:120], "text": CLASSES}),
}

LABELLED = tuple(name for name, method in METHODS.items() if method.learns_from != "pairs")
OF_PAIRS = tuple(name for name in METHODS if name not in LABELLED)
TWO_VIEWS = ("cca", "ncca", "corrnet", "ccal", "ds-ranking-cca", "two-branch", "devise", "msds")
# Kind of data -> methods, and the reason that their rows give.
SKIPPED = {
    "real label vectors": [(("cmolrs", "sam", "sm"), r"classes(,| or) label sets.* got real")],
    "one class": [(LABELLED, "^All rows have the same labels")],
    "no labels": [(LABELLED, "^needs labels$")],
    "three views": [(TWO_VIEWS, r"takes 2 views, got 3: \['image', 'text', 'sound'\]")],
    "unpaired": [
        (OF_PAIRS, "^needs objects seen in two views; these are unpaired$"),
        (("cmdn",), "learns from objects seen in all views"),
    ],
}


# Tried on every kind of data in CI, and at once on classes: methods of pairs, of any views, of
# labels, of label sets, and networks of both kinds. CI tries the others on classes only.
REPRESENTATIVES = {"cca", "mvcca", "mvmlcca", "cmolrs", "dcca", "cmdn"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            name,
            kind,
            marks=(
                [pytest.mark.slow, pytest.mark.long],
                [pytest.mark.slow],
                [],
            )[(name in REPRESENTATIVES) + (kind == "classes")],
        )
        for name in METHODS
        for kind in KINDS
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # they are part of the result
def test_every_method_has_figures_or_a_row_with_its_reason(name, kind):
    method = METHODS[name]
    if method.is_deep:
        pytest.importorskip("torch", reason="networks need mvcca[deep]")
    X, y = KINDS[kind]()
    given = {option: value for option, value in TINY.items() if option in method.takes()}
    result = mvcca.compare(name, X, y, cv=2, measures=MEASURES, params=given)
    reasons = [reason for names, reason in SKIPPED.get(kind, ()) if name in names]
    if reasons:
        assert re.search(reasons[0], result.failures[method.title])
        row = f"{method.title} skipped: {result.failures[method.title]}"
        assert row in " ".join(str(result).split())
        return
    assert result.successes == [method.title]
    values = [result.mean(method.title, measure) for measure in MEASURES]
    assert all(0 < value <= 1 for value in values)
    assert re.search(rf"^{re.escape(method.title)} +.*{values[0]:.3f}", verbose_text(result), re.M)
    if not method.is_deep and kind in ("classes", "label sets", "three views"):
        chance = np.mean([table.mean()["map@50"] for table in result.chance])
        assert values[0] > chance + 0.05


@pytest.mark.parametrize(
    ("name", "own_rows", "estimator"),
    [
        ("jrl", "propagate", JRL(reg=0.1, n_neighbors=10)),
        ("cmolrs", "transform", CMOLRS(2, n_epochs=2, random_state=0)),
    ],
)
def test_jrl_and_cmolrs_are_ranked_by_inner_products_of_their_own_rows(name, own_rows, estimator):
    views = planted()
    params = {key: value for key, value in TINY.items() if key in estimator.get_params()}
    result = mvcca.compare(name, views, CLASSES, cv=3, measures="map@50", params=params, tune=False)
    for fold, value in zip(result.folds, result.fold_values(result.best, "map@50"), strict=True):
        model = estimator.fit(views[fold.train], CLASSES[fold.train])
        rows = getattr(model, own_rows)(views[fold.test])
        scores = rows["image"] @ rows["text"].T
        right = CLASSES[fold.test][:, None] == CLASSES[fold.test]
        by_direction = [
            np.mean([average_precision(s, r) for s, r in zip(matrix, right, strict=True)])
            for matrix in (scores, scores.T)
        ]
        assert value == pytest.approx(np.mean(by_direction), abs=1e-12)


def average_precision(scores, is_right):
    """Average precision of the first 50 items, in a loop."""
    hits, total = 0, 0.0
    for rank, item in enumerate(np.argsort(-scores, kind="stable")[:50], start=1):
        if is_right[item]:
            hits += 1
            total += hits / rank
    return total / min(50, is_right.sum())
