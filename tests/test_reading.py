"""How much of the package one has to read to follow a call, counted by the interpreter.

`python tests/house.py -v` prints the files and functions that run.
"""

from __future__ import annotations

import house
import pytest

# Files and functions that run, and how many functions wait for each other at most. The goals are
# 50 functions, 8 deep, for CCA; 100 and 11 for MVMLCCA; 100 and 9 for SAM; 70 and 8 for migration;
# 280 and 14 for the command; 400 and 18 for comparisons, of which a busy machine runs a few more.
MOST_RUN = {
    # More files since checks of input, projection, sums, precision, whiteners, ridges and what is
    # expected of new rows have one each, and more functions since folds have one loop.
    "CCA.fit": (29, 103, 11),  # with the test for two wide views; statistics count their rows
    "MVMLCCA.fit": (47, 207, 15),  # units are those of the rows, whatever the constraint
    "SAM.fit": (53, 280, 16),  # views that never vary are refused; the validation share is exact
    "fit_migration": (35, 149, 15),  # units and variances are checked as those of estimators
    "mvcca fit": (100, 548, 25),  # categories of confounds; what projects has no scikit-learn
    'compare("default", cv=5)': (88, 558, 28),
    "index add and search": (21, 88, 13),
}


# The files to read, to understand how CCA of two arrays is fitted.
READ = {
    "base/statistic_estimator.py",
    "base/inputs.py",
    "base/standardizing.py",
    "problem/directions.py",
    "problem/whitener.py",
    "problem/maps.py",
    "problem/precision.py",
    "problem/_problem.py",
    "problem/rows.py",
    "problem/expected.py",
    "statistics/moments.py",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(own, marks=pytest.mark.long if own.startswith("compare") else ())
        for own in MOST_RUN
    ],
)
def test_what_users_call_runs_few_files_and_functions(title):
    if title == "SAM.fit":
        pytest.importorskip("torch")
    ran = house.executed_alone(title)
    n_files, n_functions, depth = MOST_RUN[title]
    assert len(ran.functions) <= n_files, ran
    assert ran.n_functions <= n_functions, ran
    assert ran.depth <= depth, ran
    if title == "CCA.fit":  # what else runs is a handful of helpers per file
        assert ran.functions.keys() >= READ, ran
        assert sum(len(ran.functions[file]) for file in READ) >= 0.6 * ran.n_functions
