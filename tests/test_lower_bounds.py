"""The lowest versions that are tested are the lowest that the project allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="needs the source tree")
def test_the_oldest_constraints_are_the_lower_bounds_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [*project["dependencies"], *project["optional-dependencies"]["test-core"]]
    pinned = (ROOT / "tests" / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    lowest = {re.sub(r"\[.*?\]", "", bound).replace(">=", "==") for bound in bounds}
    assert {line for line in pinned if line and line[0] != "#"} == lowest
