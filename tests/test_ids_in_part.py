"""Ids that match in part: every door counts what is shared, warns, and names the likely cause."""

from __future__ import annotations

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

# Other spellings of IDS, and what the message says of them; None if there is nothing to say.
SPELLINGS: dict[str, tuple[list[Any], str | None]] = {
    "equal": (IDS, None),
    "other order": (IDS[::-1], None),
    "a tenth missing": (IDS[:54], None),
    "a trailing space in 52": (
        [f"{one} " if k < 52 else one for k, one in enumerate(IDS)],
        "space",
    ),
    "a trailing space in 3": ([f"{one} " if k < 3 else one for k, one in enumerate(IDS)], "space"),
    "non-breaking spaces": (
        [f"{one}\xa0" if k < 30 else one for k, one in enumerate(IDS)],
        "space",
    ),
    "upper case": ([one.upper() if k < 50 else one for k, one in enumerate(IDS)], "Ignoring case,"),
    "no prefix": (
        [one[4:] if k < 50 else one for k, one in enumerate(IDS)],
        "prefix 'sub-' in 'a'",
    ),
    "another prefix": (
        [f"S{one[4:]}" if k < 50 else one for k, one in enumerate(IDS)],
        "prefix 'sub-' in 'a' and the prefix 'S' in 'b'",
    ),
    "a suffix": ([f"{one}.txt" if k < 50 else one for k, one in enumerate(IDS)], "suffix '.txt'"),
    "fewer zeros": ([f"sub-{k}" if k < 50 else one for k, one in enumerate(IDS)], "leading zeros"),
    "underscores": (
        [one.replace("-", "_") if k < 50 else one for k, one in enumerate(IDS)],
        "punctuation",
    ),
    "case and spaces": (
        [f"{one.upper()} " if k < 50 else one for k, one in enumerate(IDS)],
        "Ignoring case, punctuation",
    ),
    "half of them": (IDS[:30], "Check that the ids"),
    "others": (IDS[:30] + [f"new{k}" for k in range(30)], "Check that the ids"),
    "one": (IDS[:1], "Check that the ids"),
}


def frame(ids, seed=0, width=3):
    z = np.random.default_rng(5).normal(size=(N, 1))[: len(ids)]
    X = z + np.random.default_rng(seed).normal(size=(len(ids), width))
    return pd.DataFrame(X, index=ids, columns=[f"x{seed}{j}" for j in range(width)])


def caught(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [str(one.message) for one in found if "Ids match in part" in str(one.message)]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_aligned_views_say_what_is_left_over_and_why(spelling):
    ids, message = SPELLINGS[spelling]
    found = caught(lambda: Views.aligned({"a": frame(IDS), "b": frame(ids, 1)}))
    assert bool(found) == (message is not None)
    if message is None:
        return
    shared = len({*IDS} & {*ids})
    assert f"{shared} in both views. Rows in no other view: {N - shared} of 60 of 'a'" in found[0]
    assert message in found[0]
    assert "make the ids agree" in found[0] or message.startswith("Check")


def test_ids_on_a_column_are_checked_too():
    a = frame(IDS).reset_index(names="id")
    b = frame([one.upper() for one in IDS[:50]] + IDS[50:], 1).reset_index(names="id")
    (message,) = caught(lambda: Views.aligned({"a": a, "b": b}, on="id"))
    assert "Ignoring case, 60 ids of 'a' and 'b' match instead of 10" in message


def test_three_views_are_counted_by_pairs():
    spaced = [f"{one} " for one in IDS[:52]] + IDS[52:]
    tables = {"a": frame(IDS), "b": frame(spaced, 1), "c": frame(IDS, 2)}
    (message,) = caught(lambda: Views.aligned(tables))
    assert "8 in all views, by pairs a and b 8, a and c 60, b and c 8" in message
    assert "52 of 60 of 'b'" in message
    assert "whitespace" in message


def test_a_spelling_that_makes_two_ids_one_is_no_cause():
    assert unmatched({"a": ["a", "A", *IDS], "b": ["a", "B", *IDS]}) is None


def test_part_of_a_number_is_no_prefix():
    numbers = [str(k) for k in range(60)]
    assert unmatched({"a": numbers[:50], "b": numbers[10:]}) is None


@pytest.mark.parametrize("ids", [[str(k) for k in range(N)], [f"{k:03d}" for k in range(N)]])
def test_ids_of_which_none_is_shared_are_refused(ids):
    numbers = frame(IDS).set_axis(range(N))
    with pytest.raises(ValueError, match=r"No row label is in two views.* 60 ids of 'a' and 'b'"):
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
    assert "8 in both views" in message
    assert "whitespace" in message


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
WARNED = "Ignoring case, 60 ids of "
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
    assert WARNED in err
    assert "8 in both views" in err
    assert "52 of 60" in err


@pytest.mark.usefixtures("files")
def test_a_search_of_several_queries_warns(capsys):
    fit = ["fit", "--view", "a=a.csv", "--view", "c=a.csv", "--view", "b=b.csv", "--id", "id"]
    assert main([*fit, "--method", "mvcca", "--no-tune", "-o", "m.mvcca"]) == 0
    assert "8 in all views, by pairs a and c 60, a and b 8, c and b 8" in capsys.readouterr().err
    search = ["search", "m.mvcca", "--gallery", "c=a.csv", "--id", "id", "-k", "1"]
    assert main([*search, "--query", "a=a.csv", "--query", "b=b.csv"]) == 0
    assert WARNED in capsys.readouterr().err


def test_a_small_sample_of_all_items_is_no_reason_to_warn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame(IDS).to_csv("old.csv", index_label="id")
    frame(IDS[:30], 1).to_csv("new.csv", index_label="id")
    main(["migrate", "old.csv", "new.csv", "--id", "id", "-o", "m.npy", "--force"])
    assert "Ids match in part" not in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_labels_by_id_name_the_cause():
    with pytest.raises(Exception, match=r"60 of 60 objects have no label.*Ignoring case, 60 ids"):
        values_of_ids("y.csv", ReadOptions(id="id"), IDS, "label")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("table", ["turned.csv", "turned-gene.csv"])
@pytest.mark.parametrize("command", ["fit", "test"])
def test_a_transposed_file_is_turned_and_said(table, command, capsys):
    words = [word.replace("b.csv", table) for word in DOORS[command]]
    assert main(words) == 0
    said = f"{table}: 60 of its 60 column names are ids of a.csv: it is turned, columns are the"
    assert said in capsys.readouterr().err
