"""A warning names the line of the user that led to it, whatever lies between."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mvcca
from mvcca import CCA, CMOLRS, JRL, LGCFL, MLCCA, MVCCA, MVMLCCA, NCCA, PLS, Views

RNG = np.random.default_rng(0)
N = 60
SHARED = RNG.standard_normal((N, 2))
X, Y = (np.hstack([SHARED, RNG.standard_normal((N, 3))]) for _ in range(2))
CLASSES = np.arange(N) % 4
VIEWS = Views({"a": X, "b": Y})


def without_labels():
    """Indicators of classes, and two rows that have none."""
    indicators = np.eye(4, dtype=int)[CLASSES]
    indicators[:2] = 0
    return indicators


def collinear():
    return np.hstack([X, X[:, :1] + 1e-9 * RNG.standard_normal((N, 1))])


def deep():
    pytest.importorskip("torch")
    from mvcca.deep import DCCA

    return DCCA(
        2, hidden_layer_sizes=(4,), batch_size=10, max_epochs=1, random_state=0, start="random"
    ).fit(VIEWS)


WARNINGS = {
    "components": (lambda: MVCCA(50).fit(VIEWS), "more than these data"),
    "components of PLS": (lambda: PLS(50).fit(X, Y), "more than these data"),
    "components of CMOLRS": (
        lambda: CMOLRS(50, n_epochs=1, random_state=0).fit(VIEWS, CLASSES),
        "more than these data",
    ),
    "certain correlation": (lambda: CCA(1).fit(X[:8], Y[:8]), "mean nothing"),
    "lost digits": (lambda: CCA(1).partial_fit(collinear(), Y).weights_, "collinear"),
    "starting over": (lambda: MVCCA(1).fit(VIEWS).partial_fit(VIEWS), "starts over"),
    "no labels": (lambda: MLCCA(1).fit(VIEWS, without_labels()), "have no labels"),
    "no labels, for a regression": (
        lambda: JRL(n_neighbors=5).fit(VIEWS, without_labels()),
        "have no labels",
    ),
    "few label vectors": (
        lambda: MVMLCCA(1, within="label").fit(VIEWS, CLASSES),
        "too few label sets",
    ),
    "no convergence": (lambda: LGCFL(max_iter=2).fit(VIEWS, CLASSES), "still fell"),
    "neighbours": (lambda: NCCA(1, n_neighbors=80).fit(X, Y), "all of them are neighbours"),
    "fit_transform": (lambda: CCA(50).fit_transform(X, Y), "more than these data"),
    "small batches, noticed below torch": (deep, "Batches of 10 rows"),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_a_warning_of_a_fit_names_the_line_that_called_it(case):
    fit, message = WARNINGS[case]
    with pytest.warns((UserWarning, ConvergenceWarning)) as caught:
        fit()
    assert any(message in str(warning.message) for warning in caught)
    assert {warning.filename for warning in caught} == {__file__}
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert all("fit" in lines[warning.lineno - 1] for warning in caught)


def test_no_module_counts_frames_by_itself():
    """A number of frames is right until a decorator or a helper comes between."""
    package = Path(mvcca.__file__).parent
    for source in package.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "stacklevel":
                assert source.name == "warnings.py", source
