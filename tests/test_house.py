"""The structure of the package within its bounds, counted from the source and by the interpreter.

`python tests/house.py -v` prints all figures with the places that they count.
"""

from __future__ import annotations

import house
import pytest


def test_the_package_has_few_entries():
    assert len(house.top_level()) <= 24


def test_only_the_blocks_tell_kinds_of_storage_apart():
    assert not house.storage_tests()


def test_no_estimator_is_copied_to_serve_as_a_model():
    assert not house.copied_estimators()


def test_rooms_import_only_what_other_rooms_offer():
    assert not house.private_imports()


# Files and functions that run, and the goal for each.
MOST_RUN = {
    "CCA.fit": (14, 95),  # 12, 70
    'compare("default", cv=5)': (93, 660),  # 75, 420
    "SAM.fit": (32, 200),  # 28, 150
    "index add and search": (28, 160),  # 15, 70
}


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=pytest.mark.slow if title.startswith("compare") else ())
        for title in MOST_RUN
    ],
)
def test_what_users_call_runs_few_files_and_functions(title):
    if title == "SAM.fit":
        pytest.importorskip("torch")
    ran = house.executed_alone(title)
    n_files, n_functions = MOST_RUN[title]
    assert len(ran) <= n_files, ran
    assert sum(map(len, ran.values())) <= n_functions, ran
