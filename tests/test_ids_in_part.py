"""Ids that match in part: every door counts what is shared, warns, and names the likely cause."""

from __future__ import annotations

import json
import re
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvcca import Views
from mvcca.blocks.sources import ReadOptions
from mvcca.cli import main
from mvcca.interop import views_of_modalities
from mvcca.views.files import values_of_ids
from mvcca.views.shared_ids import unmatched

N = 60
IDS = [f"sub-{k:03d}" for k in range(N)]

# Other spellings of IDS, and what may differ then; "?" if no spelling matches more, and None if
# there is nothing to say.
SPELLINGS: dict[str, tuple[list[Any], str | None]] = {
    "equal": (IDS, None),
    "other order": (IDS[::-1], None),
    "a tenth missing": (IDS[:54], "?"),
    "a trailing space in 52": (
        [f"{one} " if k < 52 else one for k, one in enumerate(IDS)],
        "spaces",
    ),
    "a trailing space in 3": ([f"{one} " if k < 3 else one for k, one in enumerate(IDS)], "spaces"),
    "non-breaking spaces": (
        [f"{one}\xa0" if k < 30 else one for k, one in enumerate(IDS)],
        "spaces",
    ),
    "upper case": ([one.upper() if k < 50 else one for k, one in enumerate(IDS)], "case"),
    "no prefix": ([one[4:] if k < 50 else one for k, one in enumerate(IDS)], "beginning"),
    "another prefix": (
        [f"S{one[4:]}" if k < 50 else one for k, one in enumerate(IDS)],
        "beginning",
    ),
    "a suffix": ([f"{one}.txt" if k < 50 else one for k, one in enumerate(IDS)], "ending"),
    "fewer zeros": ([f"sub-{k}" if k < 50 else one for k, one in enumerate(IDS)], "zeros"),
    "underscores": (
        [one.replace("-", "_") if k < 50 else one for k, one in enumerate(IDS)],
        "punctuation",
    ),
    "case and spaces": (
        [f"{one.upper()} " if k < 50 else one for k, one in enumerate(IDS)],
        "spaces,case",
    ),
    "case and a suffix": ([f"{one.upper()}-01A" for one in IDS], "case,ending"),
    "half of them": (IDS[:30], "?"),
    "others": (IDS[:30] + [f"new{k}" for k in range(30)], "?"),
    "one": (IDS[:1], "?"),
}
IN_WORDS = {"beginning": "a beginning", "ending": "an ending", "spaces,case": "spaces and case"}
IN_WORDS |= {"case,ending": "case and an ending"}


def frame(ids, seed=0, width=3):
    z = np.random.default_rng(5).normal(size=(N + 1, 1))[: len(ids)]
    X = z + np.random.default_rng(seed).normal(size=(len(ids), width))
    return pd.DataFrame(X, index=ids, columns=[f"x{seed}{j}" for j in range(width)])


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found if re.search("would be if|in part", str(one.message))]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_aligned_views_say_what_is_left_over_and_why(spelling):
    ids, how = SPELLINGS[spelling]
    tables = {"a": frame(IDS), "b": frame(ids, 1)}
    shared, n = len({*IDS} & {*ids}), min(60, len(ids))
    if shared:
        found = caught(lambda: Views.aligned(tables))
    else:
        with pytest.raises(ValueError, match="would be if") as raised:
            Views.aligned(tables)
        found = [str(raised.value)]
    assert len(found) == (how is not None)
    if how == "?":
        said = f"{shared} in both views. Rows in no other view: {N - shared} of 60 of 'a'"
        assert said in found[0]
        assert "Check that the ids" in found[0]
    elif how is not None:
        start = f"{shared} of {n} ids are" if shared else f"None of the {n} ids are"
        said = (
            f"{start} in both 'a' and 'b'; 60 would be if {IN_WORDS.get(how, how)} did not differ: "
        )
        assert said in found[0]
        one, other = re.search(r"differ: '(.*)' in 'a', '(.*)' in 'b'\. Give", found[0]).groups()
        assert IDS.index(one) == ids.index(other.replace("\\xa0", "\xa0"))
        assert found[0].endswith(f"Give match_ids='{how}'")
        assert caught(lambda: Views.aligned(tables, match_ids=how)) == []
        views = Views.aligned(tables, match_ids=how)
        assert views.ids.tolist() == IDS
        np.testing.assert_array_equal(views["b"], tables["b"])


def test_ids_are_spelled_as_in_the_first_view_that_has_them():
    tables = {
        "a": frame([f"{one}-01A" for one in IDS]),
        "b": frame(IDS[::-1], 1),
        "c": frame([f"{one.upper()}.rna" for one in IDS] + ["more"], 2),
    }
    with pytest.warns(UserWarning, match="Rows in no other view: 1 of 61 of 'c' .such as 'more'"):
        views = Views.aligned(tables, match_ids="case,ending")
    assert views.ids.tolist() == [f"{one}-01A" for one in IDS] + ["more"]
    assert views.seen.sum() == 3 * N + 1
    numbers = {"a": frame(range(N)), "b": frame([str(k) for k in range(N)], 1)}
    with pytest.raises(
        ValueError, match="if types did not differ: int64 '0' in 'a', str '0' in 'b'"
    ):
        Views.aligned(numbers)
    assert Views.aligned(numbers, match_ids="types").ids.tolist() == [*range(N)]


def test_ids_that_become_one_are_refused():
    tables = {"a": frame(IDS), "b": frame(["x", "X", *IDS[2:]], 1)}
    with pytest.raises(ValueError, match="'b': ids 'x' and 'X' are the same if case may differ"):
        Views.aligned(tables, match_ids="case")
    with pytest.raises(ValueError, match="expected some of types, spaces, case, zeros, "):
        Views.aligned(tables, match_ids="end")


def test_ids_on_a_column_are_checked_too():
    a = frame(IDS).reset_index(names="id")
    b = frame([one.upper() for one in IDS[:50]] + IDS[50:], 1).reset_index(names="id")
    (message,) = caught(lambda: Views.aligned({"a": a, "b": b}, on="id"))
    assert "10 of 60 ids are in both 'a' and 'b'; 60 would be if case did not differ" in message


def test_three_views_are_counted_by_pairs():
    spaced = [f"{one} " for one in IDS[:52]] + IDS[52:]
    tables = {"a": frame(IDS), "b": frame(spaced, 1), "c": frame(IDS, 2)}
    (message,) = caught(lambda: Views.aligned(tables))
    assert "8 in all views, by pairs 'a' and 'b' 8, 'a' and 'c' 60, 'b' and 'c' 8" in message
    assert "52 of 60 of 'b'" in message
    assert "8 of 60 ids are in both 'a' and 'b'; 60 would be if spaces" in message


def test_a_spelling_that_makes_two_ids_one_is_no_cause():
    assert unmatched({"a": ["a", "A", *IDS], "b": ["a", "B", *IDS]}) is None


def test_part_of_a_number_is_no_prefix():
    numbers = [str(k) for k in range(60)]
    assert unmatched({"a": numbers[:50], "b": numbers[10:]}) is None


@pytest.mark.parametrize("ids", [[str(k) for k in range(N)], [f"{k:03d}" for k in range(N)]])
def test_ids_of_which_none_is_shared_are_refused(ids):
    numbers = frame(IDS).set_axis(range(N))
    with pytest.raises(ValueError, match=r"No row label is in two views.* 60 would be if"):
        Views.aligned({"a": numbers, "b": frame(ids, 1)})
    with pytest.raises(ValueError, match=r"No row label is in two views.*Views\.unpaired"):
        Views.aligned({"a": frame(IDS), "b": frame([f"q{k}x" for k in range(N)], 1)})


def test_ids_in_a_header_are_a_transposed_table():
    turned = frame(IDS, 1).T
    with pytest.raises(ValueError, match=r"'b' seems to be transposed: .* 60 of 60 ids of 'a'"):
        Views.aligned({"a": frame(IDS), "b": turned})


def test_modalities_whose_names_match_in_part_are_counted():
    spaced = [f"{one} " for one in IDS[:52]] + IDS[52:]
    of_modality = {
        name: SimpleNamespace(X=frame(ids).to_numpy(), obs_names=pd.Index(ids))
        for name, ids in (("rna", IDS), ("protein", spaced))
    }
    every = pd.Index(list(dict.fromkeys([*IDS, *spaced])))
    data = SimpleNamespace(mod=of_modality, obs_names=every)
    (message,) = caught(lambda: views_of_modalities(data))
    assert "8 of 60 ids are in both 'rna' and 'protein'; 60 would be if spaces did not" in message
    assert "match_ids" not in message


# ---- on the command line ------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Tables of which 52 of 60 ids differ in case, and 8 agree."""
    monkeypatch.chdir(tmp_path)
    frame(IDS).to_csv("a.csv", index_label="id")
    frame([one.upper() for one in IDS[:52]] + IDS[52:], 1, 2).to_csv("b.csv", index_label="id")
    frame(IDS, 1, 2).T.to_csv("turned.csv", index_label="id")
    frame(IDS, 1, 2).T.to_csv("turned-gene.csv", index_label="gene")
    pd.DataFrame({"id": [one.upper() for one in IDS], "y": ["p", "q"] * 30}).to_csv(
        "y.csv", index=False
    )


VIEWS = ["--view", "a=a.csv", "--view", "b=b.csv", "--id", "id"]
WARNED = (
    "8 of 60 ids are in both a.csv and b.csv; 60 would be if case did not differ: 'sub-000' in "
    "a.csv, 'SUB-000' in b.csv. Give --match-ids case"
)
DOORS = {
    "fit": ["fit", *VIEWS, "--method", "cca", "--no-tune", "-o", "m.mvcca"],
    "compare": ["compare", *VIEWS, "--complete", "--methods", "cca", "--no-tune", "--cv", "0.5"],
    "test": ["test", "a.csv", "b.csv", "--id", "id", "--permutations", "20", "--components", "1"],
    "migrate": ["migrate", "a.csv", "b.csv", "--id", "id", "-o", "m.npy", "--force"],
}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("door", DOORS)
def test_every_command_that_matches_rows_warns(door, capsys):
    main(DOORS[door])
    err = capsys.readouterr().err
    assert f"mvcca: warning: {WARNED}\n" in err
    assert main([*DOORS[door], "--match-ids", "case"]) in (0, door == "migrate")
    err = capsys.readouterr().err
    assert "did not differ" not in err
    assert re.search("60 in both views|60 items|correlation", err) or door == "test"


@pytest.mark.usefixtures("files")
def test_a_search_of_several_queries_warns(capsys):
    fit = ["fit", "--view", "a=a.csv", "--view", "c=a.csv", "--view", "b=b.csv", "--id", "id"]
    assert main([*fit, "--method", "mvcca", "--no-tune", "-o", "m.mvcca"]) == 0
    assert "8 in all views, by pairs a and c 60, a and b 8, c and b 8" in capsys.readouterr().err
    search = ["search", "m.mvcca", "--gallery", "c=a.csv", "--id", "id", "-k", "1"]
    assert main([*search, "--query", "a=a.csv", "--query", "b=b.csv"]) == 0
    assert WARNED in capsys.readouterr().err
    more = ["--match-ids", "case", "-o", "hits.csv", "--json"]
    assert main([*search, "--query", "a=a.csv", "--query", "b=b.csv", *more]) == 0
    found = capsys.readouterr()
    assert "did not differ" not in found.err
    assert json.loads(found.out)["queries"] == N
    assert [line.partition(":")[0] for line in json.loads(found.out)["read"]] == ["a.csv"] * 2 + [
        "b.csv"
    ]


def test_a_small_sample_of_all_items_is_no_reason_to_warn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame(IDS).to_csv("old.csv", index_label="id")
    frame(IDS[:30], 1).to_csv("new.csv", index_label="id")
    main(["migrate", "old.csv", "new.csv", "--id", "id", "-o", "m.npy", "--force"])
    assert "Ids match in part" not in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_labels_groups_and_confounds_match_by_the_same_option(capsys):
    more = ["--labels", "y.csv", "--match-ids", "case"]
    fit = ["fit", *VIEWS, "--method", "mvmlcca", "--no-tune", "-o", "m.mvcca"]
    assert main([*fit, *more, "--json"]) == 0
    found = capsys.readouterr()
    assert json.loads(found.out)["read"][1].startswith("b.csv: read as a table: 60 rows, 2 columns")
    pd.DataFrame({"id": [one.upper() for one in IDS], "age": range(N)}).to_csv("z.csv", index=False)
    families = {"id": [one.upper() for one in IDS], "family": np.arange(N) // 2}
    pd.DataFrame(families).to_csv("g.csv", index=False)
    test = [*DOORS["test"], "--confounds", "z.csv", "--groups", "g.csv", "--json"]
    assert main([*test, "--match-ids", "case"]) == 0
    assert "did not differ" not in capsys.readouterr().err
    assert main(test) == 1
    assert "Give --match-ids case" in capsys.readouterr().err
    pd.DataFrame({"x": IDS[:20], "y": IDS[:20]}).to_csv("pairs.csv", index=False)
    align = ["align", "a.csv", "b.csv", "--pairs", "pairs.csv", "--id", "id", "-o", "al.mvcca"]
    assert main([*align, "--force"]) == 1
    assert "Give --match-ids case" in capsys.readouterr().err
    assert main([*align, "--force", "--match-ids", "case"]) == 0


@pytest.mark.usefixtures("files")
def test_labels_by_id_name_the_cause():
    with pytest.raises(Exception, match=r"60 of 60 objects have no label.*60 would be if case"):
        values_of_ids("y.csv", ReadOptions(id="id"), IDS, "label")
    reading = ReadOptions(id="id", match_ids="case")
    assert values_of_ids("y.csv", reading, IDS, "label").matrix[:, 0].tolist() == ["p", "q"] * 30


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("table", ["turned.csv", "turned-gene.csv"])
@pytest.mark.parametrize("command", ["fit", "test"])
def test_a_transposed_file_is_turned_and_said(table, command, capsys):
    words = [word.replace("b.csv", table) for word in DOORS[command]]
    assert main(words) == 0
    said = f"{table}: 60 of its 60 column names are ids of a.csv: it is turned, columns are the"
    assert said in capsys.readouterr().err
