"""How much of the package one has to read to follow a fit, counted by the interpreter."""

from __future__ import annotations

from house import executed_alone

# The files to read, to understand how CCA of two arrays is fitted.
READ = {
    "base/_estimators.py",
    "problem/linalg.py",
    "problem/_maps.py",
    "problem/_problem.py",
    "problem/_rows.py",
    "statistics/_moments.py",
}


def test_cca_of_two_arrays_runs_few_files_and_functions():
    ran = executed_alone("CCA.fit")
    n_functions = sum(map(len, ran.values()))
    assert ran.keys() >= READ, ran
    assert len(ran) <= 14, ran
    assert n_functions <= 95, ran
    # What else runs is a handful of helpers per file.
    assert sum(len(ran[file]) for file in READ) >= 0.6 * n_functions
