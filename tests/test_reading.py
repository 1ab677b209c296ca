"""How much of the package one has to read to follow a call, counted by the interpreter.

`python tests/house.py -v` prints the files and functions that run.
"""

from __future__ import annotations

import house
import pytest

# Files and functions that run.
MOST_RUN = {
    # 13 and 71 before views at the edges of floats were scaled by powers of two, columns in unlike
    # units warned, and batches that do not suffice for components said why.
    "CCA.fit": (16, 81),
    # 66 and 414 before it chose settings and kept a budget; 86 and 655 before label similarities by
    # shared subsets, scores in place of covariances of features, and JRL by its rows; 695 before
    # messages named cells by the ids of their rows, as do those of the others. On a busy machine a
    # few more run, which measure its speed. 91 since the space of label sums has a separate file;
    # 710 before units of columns, equal galleries and ids that match in part were checked.
    'compare("default", cv=5)': (94, 745),
    "SAM.fit": (27, 154),  # 151 before units of columns were checked
    # 15 and 76 before cosines of integers were exact and tensors of every type were taken.
    "index add and search": (16, 82),
}


# The files to read, to understand how CCA of two arrays is fitted.
READ = {
    "base/_estimators.py",
    "problem/linalg.py",
    "problem/_maps.py",
    "problem/_problem.py",
    "problem/_rows.py",
    "statistics/_moments.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("title", MOST_RUN)
def test_what_users_call_runs_few_files_and_functions(title):
    if title == "SAM.fit":
        pytest.importorskip("torch")
    ran = house.executed_alone(title)
    n_files, n_functions = MOST_RUN[title]
    assert len(ran) <= n_files, ran
    assert sum(map(len, ran.values())) <= n_functions, ran
    if title == "CCA.fit":  # what else runs is a handful of helpers per file
        assert ran.keys() >= READ, ran
        assert sum(len(ran[file]) for file in READ) >= 0.6 * sum(map(len, ran.values()))
