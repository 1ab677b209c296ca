"""The user guide's examples, run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "user_guide").glob("*.rst"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_user_guide_prints_is_what_comes_out(page):
    assert not doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed
