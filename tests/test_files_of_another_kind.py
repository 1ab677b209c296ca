"""Files that are something else than their name says: refused, with the place and a remedy.

Tables of numbers are no texts, whatever a file is called, and real texts are never taken for
tables. Bytes that are no UTF-8 are named at every door that reads text.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvcca
from benchmarks.real import data_home
from mvcca import CCA
from mvcca.blocks import SourceError, read_table
from mvcca.blocks.sources import ReadOptions, read_whole, table_in
from mvcca.cli import main
from mvcca.views.files import open_tables, read_ids, read_label_vectors, read_labels, read_views

N = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def frame(n=N, d=5, seed=0):
    """Numbers below names of genes, with samples as the index."""
    numbers = np.random.default_rng(seed).normal(size=(n, d)).round(2)
    names = [f"gene{j}" for j in range(d)]
    return pd.DataFrame(numbers, index=[f"s{i}" for i in range(n)], columns=names)


def sentences(n=N, seed=0):
    """Texts with numbers, commas and quotation marks."""
    rng = np.random.default_rng(seed)
    words = ["a", "man", ",", "two", '"dogs"', "run", "2", "parks", ";", "12", "people", "-", "."]
    return [" ".join(rng.choice(words, rng.integers(4, 12)).tolist()) + " here" for _ in range(n)]


# ---- texts are no tables -------------------------------------------------------------------------

TEXTS = {
    "sentences": sentences(),
    "with commas": [line.replace(" ", ", ") for line in sentences()],
    "words between commas": [",".join(line.split()) for line in sentences()],
    "words between tabs": ["\t".join(["a", "dog", "and", "a", f"cat{i}"]) for i in range(N)],
    "a number and a comma": [f"{i},{line}" for i, line in enumerate(sentences())],
    "two languages": [
        f"{line}\t{other}" for line, other in zip(sentences(), sentences(), strict=True)
    ],
    "leading numbers": [f"{i} dogs run" for i in range(N)],
    "a name and a number": [f"boeing {700 + i}" for i in range(N)],
    "years": [f"summer of {1950 + i}" for i in range(N)],
    "single words": [f"word{i}" for i in range(N)],
    "hashtags": [f"#cat{i} 3 of 4" for i in range(N)],
    "one": ["12 dogs, 3 cats"],
    "a query with numbers": ["route 66, 95, 101"],
    "prices": [f"milk, {i / 7:.2f} euros a litre, in the shop" for i in range(N)],
}


@pytest.mark.parametrize("texts", TEXTS)
@pytest.mark.parametrize("n", [1, 2, N])
def test_texts_are_never_taken_for_a_table(texts, n):
    lines = TEXTS[texts][:n]
    Path("t.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read_table("t.txt").matrix.ravel().tolist() == lines


@pytest.mark.parametrize("name", ["{}.jpg#1", "{}"])
def test_a_name_and_a_tab_are_ids_of_texts(name):
    ids = [name.format(i) for i in range(N)]
    Path("t.txt").write_text(
        "".join(f"{one}\t{line}\n" for one, line in zip(ids, sentences(), strict=True))
    )
    found = read_table("t.txt")
    assert (found.ids.tolist(), found.matrix.ravel().tolist()) == (ids, sentences())


LABELS = {
    "sets": ["cat,dog", "dog", "", "bird,cat,dog"],
    "sets of one size": ["cat,dog", "dog,bird", "bird,cat"],
    "numbers of one size": ["3,7", "7,12", "1,3"],
    "numbers": ["3", "12,1", "7"],
    "names with spaces": ["traffic light,stop sign", "fire hydrant"],
    "names with numbers": ["route 66", "area 51"],
}


@pytest.mark.parametrize("labels", LABELS)
def test_label_sets_are_read_as_such(labels):
    Path("y.txt").write_text("\n".join(LABELS[labels]) + "\n")
    expected = [{one for one in line.split(",") if one} for line in LABELS[labels]]
    assert read_labels("y.txt").sets() == expected


@pytest.mark.parametrize(
    "lines",
    [
        ["0,1,0", "1,0,0", "1,1,1"],
        ["0,1", "1,0"],
        ["cat,dog", "0,1", "1,0", "1,0"],
        ["0 1 0", "1 0 0"],
        ["0.5,1.2", "3.1,4.0"],
        ["s1\tcat", "s2\tdog"],
        ["3", "7", "3"],
    ],
)
def test_labels_in_a_table_are_the_same_by_any_name(lines):
    found = []
    for name in ("y.txt", "y.csv", "y.dat"):
        Path(name).write_text("\n".join(lines) + "\n")
        found.append(read_labels(name))
    for other in found[1:]:
        np.testing.assert_array_equal(other.codes, found[0].codes)
        np.testing.assert_array_equal(_dense(other.vectors), _dense(found[0].vectors))
        assert str(other.vocabulary) == str(found[0].vocabulary)


@pytest.mark.parametrize(
    "lines", [["2024-01-02", "2024-02-03"], ["#12", "#13"], ["\u0663 12", "1"], ["1:2", "3:4"]]
)
def test_texts_without_a_letter_are_named(lines):
    Path("t.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    is_ascii = all(map(str.isascii, lines))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        open_tables({"a": "t.txt"})
    assert len(found) == is_ascii
    if found:
        assert f"no text has a letter, such as {lines[0]!r}" in str(found[0].message)


SETS = [["cat", "dog"], ["dog"], ["cat"], ["bird", "cat"], []]
WRITTEN = {
    "lists": str,
    "JSON": json.dumps,
    "sets": lambda own: str(set(own)),
    "tuples": lambda own: str(tuple(own)),
    "bars": "|".join,
    "semicolons": ";".join,
    "commas": ", ".join,
}


@pytest.mark.parametrize("how", WRITTEN)
def test_label_sets_in_a_column_are_sets(how):
    table = pd.DataFrame({"id": list("abcde"), "labels": map(WRITTEN[how], SETS)})
    table.to_csv("y.csv", index=False)
    said = []
    found = read_labels("y.csv", ReadOptions(header=True), say=said.append)
    assert found.sets() == list(map(set, SETS))
    assert said[0].endswith("ids in column 1 (id); 3 labels, 1.2 per row")
    np.savez("x.npz", X=np.arange(10.0).reshape(5, 2), id=list("edcba"))
    _, y = read_views(dict.fromkeys("xz", "x.npz"), "y.csv", reading=ReadOptions(id="id"))
    assert y.sets() == list(map(set, SETS[::-1]))


@pytest.mark.parametrize("name", ["y.parquet", "y.jsonl"])
def test_lists_of_texts_are_label_sets(name):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"id": list("abcde"), "labels": SETS})
    if name == "y.jsonl":
        table.to_json(name, orient="records", lines=True)
    else:
        table.to_parquet(name)
    assert read_labels(name).sets() == list(map(set, SETS))


@pytest.mark.parametrize(
    "names",
    [
        ["Noether, Emmy", "Hopper, Grace", "Lamarr, Hedy"],
        ["light, red", "light, green", "sign"],
        ["Bacteria;Firmicutes;Bacilli", "Bacteria;Firmicutes;Clostridia", "Archaea;Halo"],
        ["(a)", "(b)", "(a)"],
    ],
)
def test_names_with_separators_stay_classes(names):
    pd.DataFrame({"label": names * 2}).to_csv("y.csv", index=False)
    assert set(read_labels("y.csv", ReadOptions(header=True)).vocabulary) == set(names)


def test_integers_in_lists_are_sets_unless_they_repeat():
    for rows in ([[3, 7], [7, 12], [1, 3]], [[3, 7], [7, 12], [1, 1]], [[0, 1], [1, 0], [0, 1]]):
        pd.DataFrame({"id": list("abc"), "labels": map(str, rows)}).to_csv("y.csv", index=False)
        found = read_labels("y.csv")
        np.savez("x.npz", X=np.arange(6.0).reshape(3, 2), id=list("abc"))
        _, other = read_views(dict.fromkeys("xz", "x.npz"), "y.csv", reading=ReadOptions(id="id"))
        np.testing.assert_array_equal(_dense(found.vectors), _dense(other.vectors))
        if rows[-1] == [1, 3]:
            assert found.sets() == [set(map(str, row)) for row in rows]
        else:
            np.testing.assert_array_equal(_dense(found.vectors)[found.codes], rows)


@pytest.mark.parametrize("cell", ["['cat' 'dog']", "[cat, dog]", "{'cat': 1}", "[" * 99 + "]"])
def test_a_list_of_labels_that_cannot_be_read_is_named(cell):
    pd.DataFrame({"label": ["['a', 'b']", cell]}).to_csv("y.csv", index=False)
    with pytest.raises(
        SourceError, match=r"y\.csv: expected a list of labels such as \['cat', 'dog'\]"
    ):
        read_labels("y.csv")


def _dense(vectors):
    return vectors.toarray() if hasattr(vectors, "toarray") else vectors


@pytest.mark.parametrize("lines", [["cat;dog", "dog;bird"], ["a cat\tdog", "bird\tcat\tdog"]])
def test_label_sets_must_be_separated_by_commas(lines):
    Path("y.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(SourceError, match=r"y\.txt: expected one label set per line"):
        read_labels("y.txt")


def test_ids_may_hold_commas_and_spaces():
    ids = ["Noether, Emmy", "boeing 747", "a;b", "12"]
    Path("ids.txt").write_text("\n".join(ids) + "\n")
    assert read_ids("ids.txt").tolist() == ids
    pairs = ["1,2", "3,4"]
    Path("ids.csv").write_text("".join(f'"{one}"\n' for one in pairs))
    assert read_ids("ids.csv").tolist() == pairs


@pytest.mark.needs_data("multi30k_tokens.npz")
@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_real_sentences_are_texts(language):
    data = np.load(data_home() / "multi30k_tokens.npz")
    words, tokens = data[f"vocab_{language}"], data[f"{language}_test_tokens"]
    ends = np.cumsum(data[f"{language}_test_length"].astype(int))[:-1]
    texts = [" ".join(one) for one in np.split(words[tokens], ends)]
    for lines in [texts, *([one] for one in texts), *pairwise(texts)]:
        assert table_in(lines) is None


# ---- word vectors --------------------------------------------------------------------------------


def test_a_vector_that_is_cut_off_does_not_shorten_the_others():
    Path("w.vec").write_text("cat .1 .2 .3\ntraffic light .4 .5 .6\ndog .7\n")
    with pytest.raises(SourceError, match="line 3 has 2 cells, the others have 4"):
        read_label_vectors("w.vec")


def test_the_first_line_of_word2vec_tells_labels_from_numbers():
    Path("w.vec").write_text("2 2\nroute 66 .1 .2\narea 51 .3 .4\n")
    assert list(read_label_vectors("w.vec")) == ["route 66", "area 51"]
    Path("w.vec").write_text("2 3\ncat .1 .2\ndog .3 .4\n")
    with pytest.raises(
        SourceError, match="expected a label and the 3 numbers that line 1 announces on each line"
    ):
        read_label_vectors("w.vec")


# ---- bytes that are no text in UTF-8 -------------------------------------------------------------


def test_late_bytes_are_found_with_their_line():
    lines = [f"{i},{i}" for i in range(20_000)]
    Path("t.csv").write_bytes("\n".join(["a,b", *lines, ""]).encode() + b"\xb5,1\n")
    with pytest.raises(SourceError, match="got the byte 0xb5 in line 20002"):
        read_whole("t.csv")


def test_ids_in_arrays_must_be_in_utf_8_and_without_zero_bytes():
    np.savez("a.npz", X=np.eye(2), id=np.array([b"\xb5", b"b"]))
    with pytest.raises(SourceError, match="expected ids in UTF-8, got"):
        read_table("a.npz", id="id")
    np.savez("b.npz", X=np.eye(2), id=np.array(["a\0b", "b"]))
    pytest.importorskip("pyarrow")
    pd.DataFrame({"id": ["a\0b", "b"], "x": [1.0, 2.0]}).to_parquet("c.parquet")
    pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index(["a\0", "b"], name="id")).to_parquet("d.parquet")
    for file in ("b.npz", "c.parquet", "d.parquet"):
        with pytest.raises(SourceError, match="zero byte"):
            read_table(file, id="id")
    np.save("ids.npy", np.array(["a\0b", "b"]))
    with pytest.raises(SourceError, match="zero byte"):
        read_ids("ids.npy")


# ---- arrays --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_format_3_are_read(order):
    X = np.asarray(frame().to_numpy(), order=order)
    for version in ((1, 0), (2, 0), (3, 0)):
        with warnings.catch_warnings(action="ignore"), open("a.npy", "wb") as file:
            np.lib.format.write_array(file, X, version)
        np.testing.assert_array_equal(mvcca.open_matrix("a.npy").read(0, N), X)
        np.testing.assert_array_equal(read_whole("a.npy").matrix, X)


def test_records_with_names_in_unicode_are_still_refused():
    with warnings.catch_warnings(action="ignore"):  # NumPy names the format
        np.save("a.npy", np.zeros(3, dtype=[("\u03b1", "f8")]))
    with pytest.raises(SourceError):
        mvcca.open_matrix("a.npy")
    with pytest.raises(SourceError):
        read_whole("a.npy")


@pytest.fixture
def h5():
    return pytest.importorskip("h5py")


def test_links_of_hdf5_files_are_named(h5):
    with h5.File("far.h5", "w") as file:
        file["X"] = np.eye(3)
    with h5.File("a.h5", "w") as file:
        file["out"] = h5.ExternalLink("far.h5", "/X")
        file["gone"] = h5.SoftLink("/nothing")
    for key in (None, "out", "gone"):
        with pytest.raises(SourceError, match=r"'out' is a link to '/X' in 'far\.h5'") as no:
            mvcca.open_matrix("a.h5", key)
        assert "'gone' is a link to '/nothing', which is not in the file" in str(no.value)
    with h5.File("b.h5", "w") as file:
        file["group/X"] = np.eye(3)
        file["alias"] = h5.SoftLink("/group/X")
    assert mvcca.open_matrix("b.h5").shape == (3, 3)  # the alias is no second matrix
    with pytest.raises(SourceError, match="'alias' is a link to '/group/X'; name that"):
        mvcca.open_matrix("b.h5", "alias")
    with h5.File("c.h5", "w") as file:
        file["X"] = np.eye(3)
        file["id"] = h5.ExternalLink("far.h5", "/X")
    with pytest.raises(SourceError, match=r"no array 'id' of ids; .*'id' is a link to '/X' in"):
        read_table("c.h5", id="id")


@pytest.mark.parametrize("part", ["X", "X/data", "X/indices", "layers", "var", "var/_index"])
def test_links_of_annotated_data_are_named(h5, part):
    from scipy.sparse import csr_array

    X = csr_array(np.eye(4))

    def write(file):
        for place in ("X", "layers/counts"):
            group = file.create_group(place)
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", X.shape
            for name in ("data", "indices", "indptr"):
                group[name] = getattr(X, name)
        file["var/_index"] = ["a", "b", "c", "d"]
        file["var"].attrs["_index"] = "_index"

    key = "layers/counts" if part == "layers" else "X"
    for link in ("external", "dangling"):
        with h5.File("far.h5", "w") as far, h5.File("a.h5ad", "w") as file:
            write(far)
            write(file)
            del file[part]
            is_far = link == "external"
            file[part] = h5.ExternalLink("far.h5", part) if is_far else h5.SoftLink("/nothing")
        where = (
            "in 'far.h5'; links to other files are not followed" if is_far else "not in the file"
        )
        with pytest.raises(SourceError, match=rf"a\.h5ad.*'{part.split('/')[-1]}' is a.*{where}"):
            mvcca.open_matrix("a.h5ad", key)


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("X", "adata.X = adata.X.tocsr()"),
        ("layers/counts", "adata.layers['counts'] = adata.layers['counts'].tocsr()"),
        ("obsm/pca", "adata.obsm['pca'] = adata.obsm['pca'].tocsr()"),
        ("raw/X", "adata = adata.raw.to_adata(); adata.X = adata.X.tocsr()"),
    ],
)
def test_the_advice_on_columns_is_about_this_matrix(h5, key, advice):
    with h5.File("a.h5ad", "w") as file:
        group = file.create_group(key)
        group.attrs["encoding-type"], group.attrs["shape"] = "csc_matrix", (2, 2)
    with pytest.raises(SourceError) as no:
        mvcca.open_matrix("a.h5ad", key)
    assert advice in str(no.value)


def test_a_group_that_is_no_matrix_gets_no_advice_on_columns(h5):
    with h5.File("a.h5ad", "w") as file:
        file.create_group("obs").attrs["encoding-type"] = "dataframe"
    with pytest.raises(SourceError, match="expected a matrix, got a group of the kind 'dataframe'"):
        mvcca.open_matrix("a.h5ad", "obs")


# ---- tables written ------------------------------------------------------------------------------

HARMFUL = ["=1+1", "+1", "-1", "@x", "'q'", '"', "a,b", "a\nb", "#", "x"]


def test_ids_in_hits_and_scores_are_those_of_the_files():
    n = len(HARMFUL)
    for name, seed in (("a", 0), ("b", 1)):
        frame(n, 3, seed).set_axis(HARMFUL).to_csv(f"{name}.csv", index_label="id")
    mvcca.save(CCA(2).fit({"a": frame(d=3), "b": frame(d=3, seed=1)}), "m.mvcca")
    search = ["search", "m.mvcca", "--gallery", "a=a.csv", "--query", "b=b.csv", "--id", "id"]
    assert main([*search, "-k", str(n), "-o", "hits.csv"]) == 0
    hits = pd.read_csv("hits.csv", dtype=str, keep_default_na=False)
    assert set(hits["query"]) == set(hits["item"]) == set(HARMFUL)
    transform = ["transform", "m.mvcca", "--view", "a=a.csv", "--id", "id", "-o", "scores.csv"]
    assert main(transform) == 0
    assert read_table("scores.csv", id="id").ids.tolist() == HARMFUL  # an input again


# ---- speed ---------------------------------------------------------------------------------------


def test_no_name_of_a_column_is_looked_for_among_all_others():
    d, calls = 2_000, 0
    Path("a.csv").write_text(f"{','.join(f'g{j}' for j in range(d))}\n{','.join(['1.5'] * d)}\n")

    def count(_, event, called):
        nonlocal calls
        calls += event == "c_call" and called.__name__ in ("count", "index")

    sys.setprofile(count)
    try:
        columns = read_table("a.csv").columns
    finally:
        sys.setprofile(None)
    assert len(columns) == d > 10 * calls
