"""The structure of the package within its bounds, counted from the source.

`python tests/house.py -v` prints all figures with the places that they count.
"""

from __future__ import annotations

import house


def test_the_package_has_few_entries():
    assert len(house.top_level()) <= 24


def test_only_the_blocks_tell_kinds_of_storage_apart():
    assert not house.storage_tests()


def test_no_estimator_is_copied_to_serve_as_a_model():
    assert not house.copied_estimators()


def test_rooms_import_only_what_other_rooms_offer():
    assert not house.private_imports()


def test_no_text_is_unfinished():
    assert not house.placeholders()
