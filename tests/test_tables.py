"""Tables of subjects: ids, groups and categories beside columns of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca.blocks import SourceError
from mvcca.views.coding import coded
from mvcca.views.files import matched, read_table


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


@pytest.mark.filterwarnings("ignore:Ids match in part")
def test_rows_are_matched_by_ids_in_the_order_of_the_first_table(write):
    first = read_table(write("a.csv", "subject,x,y\ns1,1,2\ns2,3,4\ns3,5,6\n"))
    second = read_table(write("b.tsv", "z\tsubject\n1\ts3\n3\ts1\n5\ts4\n"))
    X, Z = (table.numbers() for table in matched([first, second], "subject"))
    np.testing.assert_array_equal(X, [[1, 2], [5, 6]])
    np.testing.assert_array_equal(Z, [[3], [1]])
    assert (X.columns, Z.columns) == (("x", "y"), ("z",))


def test_categories_become_indicators_of_all_but_the_first(write):
    table = read_table(write("c.csv", "site,age\nB,30\nA,40\nC,50\nA,20\nB,10\nC,60\n"))
    Z = coded(table.confounds())
    np.testing.assert_array_equal(
        Z, [[1, 0, 30], [0, 0, 40], [0, 1, 50], [0, 0, 20], [1, 0, 10], [0, 1, 60]]
    )
    assert Z.columns == ("site=B", "site=C", "age")


def test_a_matrix_without_names_has_numbered_columns(write, tmp_path):
    np.save(tmp_path / "brain.npy", np.eye(2) / 3)
    for file in (str(tmp_path / "brain.npy"), write("brain.csv", "0.25,1e-3\n3,4\n")):
        assert read_table(file).numbers().columns == ("brain 0", "brain 1")
    np.testing.assert_array_equal(read_table(str(tmp_path / "brain.npy")).numbers(), np.eye(2) / 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x\n1,\n2,3\n4,NA\n", r"column 'x' misses 2 of 3 values, first in row 0 \(line 2\)"),
        ("id,x\n1,2\n2,three\n", r"expected a number in row 1 \(line 3\), column 'x', got 'three'"),
        ("x,x\n1,2\n", "two columns have the name 'x'"),
        ("id,x\n", "no rows under its header"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(write, text, message):
    with pytest.raises(SourceError, match=message):
        read_table(write("a.csv", text)).numbers()


def test_ids_must_identify_rows(write):
    table = read_table(write("a.csv", "id,x\n1,2\n1,3\n"))
    with pytest.raises(SourceError, match=r"id '1' is in row 0 \(line 2\) and in row 1 \(line 3\)"):
        matched([table], "id")
    with pytest.raises(SourceError, match=r"no column 'subject'; its columns are 'id', 'x'"):
        matched([table], "subject")
    other = read_table(write("b.csv", "id,x\n7,2\n"))
    with pytest.raises(SourceError, match="no value of 'id' is in all of"):
        matched([other, read_table(write("c.csv", "id,x\n8,2\n"))], "id")
