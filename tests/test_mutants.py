"""Mutants are other code, at the place that they name, and are found again in another checkout."""

from __future__ import annotations

import ast
import random

import mutations
import pytest
from mutants import ROOT, sets_of

SOURCE = '''
def of(x, y: "a[1]" = 2) -> "b[0]":
    """Text 1 + 1."""
    if x[0] + 1.5 < len(y) and not y:
        raise ValueError(f"{x + 1}")
    warn("no", stacklevel=2)
    return f"{x * 2}" + "text"
'''


def lines_of(tmp_path, source):
    (tmp_path / "mvcca").mkdir(exist_ok=True)
    (tmp_path / "mvcca" / "room.py").write_text(source, encoding="utf-8")
    return mutations.all_mutants(tmp_path)


def test_signs_comparisons_indices_and_constants_change_and_texts_do_not(tmp_path):
    assert {own.change for own in lines_of(tmp_path, SOURCE)} == {
        "x[0] + 1.5 < len(y) and (not y)  ->  x[0] + 1.5 < len(y) or not y",
        "x[0] + 1.5 < len(y)  ->  x[0] + 1.5 <= len(y)",
        "x[0] + 1.5  ->  x[0] - 1.5",
        "0  ->  1",
        "1.5  ->  2.25",
        "not y  ->  y",
    }


def test_a_mutant_changes_only_its_place(tmp_path):
    source = "def of(x):\n    é = x[1]; return é * 2\n"
    found = {own.written(source.encode()).decode() for own in lines_of(tmp_path, source)}
    expected = (source.replace("1", "(-2)"), source.replace("é * 2", "(é / 2)"))
    assert found == {*expected, source.replace("2", "(3)")}


def test_a_moved_function_keeps_its_mutants_and_a_changed_statement_loses_them(tmp_path):
    old = lines_of(tmp_path, SOURCE)
    (tmp_path / "mvcca" / "room.py").rename(tmp_path / "mvcca" / "other.py")
    moved = mutations.all_mutants(tmp_path)
    assert mutations.found_again(old, moved) == {own: i for i, own in enumerate(moved)}
    (tmp_path / "mvcca" / "other.py").unlink()
    assert not mutations.found_again(old, lines_of(tmp_path, SOURCE.replace("1.5", "1.6")))


@pytest.fixture(scope="module")
def mutants():
    """All mutants of the package."""
    return mutations.all_mutants(ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("probe", [None, 3])
def test_mutants_of_the_package_are_python_and_have_one_name_each(probe, mutants):
    assert len({own[:6] for own in mutants}) == len(mutants)
    for own in random.Random(0).sample(mutants, 40):
        source = (ROOT / "mvcca" / own.file).read_bytes()
        assert ast.dump(ast.parse(own.written(source, probe))) != ast.dump(ast.parse(source))


@pytest.mark.slow
def test_lines_are_drawn_of_each_room_in_proportion(mutants):
    drawn = mutations.drawn(mutants, 60, seed=0)
    assert drawn == mutations.drawn(mutants, 60, seed=0) != mutations.drawn(mutants, 60, seed=1)
    assert len({(own.file, own.line) for own in drawn}) == 60
    share = len({(o.file, o.line) for o in mutants if o.room == "problem"})
    share /= len({(own.file, own.line) for own in mutants})
    assert abs(sum(own.room == "problem" for own in drawn) - 60 * share) <= 1


def test_the_cheapest_test_comes_first_and_its_other_parameters_last(tmp_path):
    (own, *_) = lines_of(tmp_path, SOURCE)
    reached = {"a[1]": 1.0, "a[2]": 2.0, "b": 3.0, "a[3]": 0.5}
    assert sets_of(own, reached, tmp_path)[0] == ("not slow", ["a[3]", "b", "a[1]", "a[2]"])
