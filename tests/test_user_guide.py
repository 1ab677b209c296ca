"""The examples in the documentation, run."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted([*(DOCS / "user_guide").glob("*.rst"), *DOCS.glob("*.rst")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documentation_prints_what_the_code_returns(page):
    assert not doctest.testfile(str(page), module_relative=False, encoding="utf-8").failed


README = DOCS.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.slow
@pytest.mark.long  # 80 to 100 seconds of CPU time
def test_readme_shows_the_figures_that_compare_returns(capsys):
    exec(BLOCKS[0], {})
    printed = capsys.readouterr().out
    shown = re.findall(r"```text\n(.*?)\n\.\.\.", README.read_text(), re.DOTALL)[0]
    assert shown in printed
