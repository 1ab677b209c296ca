"""How much of the package one has to read to follow a fit, counted by the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mvcca
from mvcca import CCA

PACKAGE = Path(mvcca.__file__).parent
# The files to read, to understand how CCA of two arrays is fitted.
READ = {
    "base.py",
    "problem/linalg.py",
    "linear/_cca.py",
    "problem/_problem.py",
    "problem/_rows.py",
    "statistics/_moments.py",
}


def executed_by(function):
    """Files of the package that run, and the functions of each; comprehensions do not count."""
    ran: dict[str, set[str]] = {}

    def watch(frame, event, _):
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and PACKAGE in path.parents and not code.co_name.startswith("<"):
            ran.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(code.co_qualname)

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return ran


def test_cca_of_two_arrays_runs_few_files_and_functions():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    X, Y = (Z @ rng.normal(size=(3, p)) + rng.normal(size=(200, p)) for p in (8, 6))
    model = CCA(2).fit(X, Y)  # imports and caches
    ran = executed_by(lambda: model.fit(X, Y))
    for file, functions in sorted(ran.items()):
        sys.stdout.write(f"{file:<26}{len(functions):>3}  {', '.join(sorted(functions))}\n")
    n_functions = sum(map(len, ran.values()))
    sys.stdout.write(f"{len(ran)} files, {n_functions} functions\n")
    assert set(ran) >= READ
    assert len(ran) <= 15
    assert n_functions <= 95
    # What else runs is a handful of helpers per file.
    assert sum(len(ran[file]) for file in READ) >= 0.6 * n_functions
