"""Files that name their rows: tables, archives and folders of texts, matched by ids."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import mvcca
from mvcca import CCA, Views
from mvcca.blocks import RowSource, SourceError, read_table
from mvcca.blocks.sources import ReadOptions, read_cells
from mvcca.cli import main
from mvcca.views.files import read_views

N, IN_BOTH = 60, range(10, 50)
NAMES = np.array([f"n{i:02d}" for i in range(N)])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N, 4))
    a = shared @ rng.standard_normal((4, 6)) + 0.05 * rng.standard_normal((N, 6))
    b = shared @ rng.standard_normal((4, 5)) + 0.05 * rng.standard_normal((N, 5))
    return {"a": (a[:50], NAMES[:50]), "b": (b[10:][::-1], NAMES[10:][::-1])}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def save_csv(name, X, ids, *, delimiter=",", encoding="utf-8", quoting=csv.QUOTE_MINIMAL, first=""):
    with open(name, "w", newline="", encoding=encoding) as file:
        lines = csv.writer(file, delimiter=delimiter, quoting=quoting)
        lines.writerow([first or "id", *(f"x{j}" for j in range(X.shape[1]))])
        lines.writerows([[one, *row] for one, row in zip(ids, X.tolist(), strict=True)])


def frame_of(X, ids):
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame.insert(2, "id", ids)
    return frame


def save_arrow(name, X, ids):
    frame = frame_of(X, ids)
    import pyarrow as pa

    table = pa.Table.from_pandas(frame)
    with pa.ipc.new_file(name, table.schema) as file:
        file.write_table(table, 11)


def save_h5(name, X, ids):
    h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'mvcca[files]'")
    with h5py.File(name, "w") as file:
        file["vectors"] = X
        file["id"] = ids.tolist()


def save_zarr(name, X, ids):
    zarr = pytest.importorskip("zarr", reason="needs zarr: pip install 'mvcca[files]'")
    group = zarr.open_group(name, mode="w")
    group.create_array("vectors", data=X)
    group.create_array("id", data=np.array([int(one.removeprefix("n")) for one in ids]))


FORMATS = {
    "x.csv": save_csv,
    "tabs.tsv": lambda name, X, ids: save_csv(name, X, ids, delimiter="\t"),
    "mark.csv": lambda name, X, ids: save_csv(name, X, ids, encoding="utf-8-sig"),
    "semicolon.csv": lambda name, X, ids: save_csv(name, X, ids, delimiter=";"),
    "quoted.csv": lambda name, X, ids: save_csv(name, X, ids, quoting=csv.QUOTE_ALL),
    "x.parquet": lambda name, X, ids: frame_of(X, ids).to_parquet(name, row_group_size=11),
    "index.parquet": lambda name, X, ids: frame_of(X, ids).set_index("id").to_parquet(name),
    "x.arrow": save_arrow,
    "x.npz": lambda name, X, ids: np.savez(name, vectors=X, id=ids),
    "two.npz:vectors": lambda name, X, ids: np.savez(
        name.partition(":")[0], vectors=X, id=ids, other=X[:2]
    ),
    "x.h5": save_h5,
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_model_and_the_same_hits(capsys, rows, name):
    save_csv("b.csv", *rows["b"])
    FORMATS[name](name, *rows["a"])
    fit = ["fit", "--view", f"a={name}", "--view", "b=b.csv", "--id", "id", "-o", "m.mvcca"]
    assert main([*fit, "--method", "cca", "--param", "n_components=3", "--param", "reg=0.01"]) == 0
    assert "60 objects by 'id': 40 in both views (a 50, b 50)" in capsys.readouterr().err
    (a, of_a), (b, of_b) = rows["a"], rows["b"]
    places = [[{n: i for i, n in enumerate(ids)}.get(n, -1) for ids in (of_a, of_b)] for n in NAMES]
    expected = CCA(3, reg=0.01).fit(Views({"a": a, "b": b}, np.array(places)))
    model = mvcca.load("m.mvcca")
    np.testing.assert_allclose(model.weights_["a"], expected.weights_["a"], atol=1e-9)
    search = ["search", "m.mvcca", "--gallery", f"a={name}", "--query", "b=b.csv", "--id", "id"]
    assert main([*search, "-k", "1"]) == 0
    hits = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [hit["query"] for hit in hits] == of_b.tolist()
    right = [hit["item"] == hit["query"] for hit in hits if int(hit["query"][1:]) < 50]
    assert np.mean(right) > 0.9


def test_whole_numbers_are_the_same_ids_in_every_format(rows):
    numbers = {name: np.array([int(n[1:]) for n in ids]) for name, (_, ids) in rows.items()}
    save_csv("a.csv", rows["a"][0], numbers["a"])
    save_zarr("b.zarr", *rows["b"])
    np.savez("b.npz", vectors=rows["b"][0], id=numbers["b"].astype(float))
    for file in ("b.zarr", "b.npz"):
        views, _ = read_views({"a": "a.csv", "b": file}, reading=ReadOptions(id="id"))
        assert views.seen.all(axis=1).sum() == len(IN_BOTH)
        assert set(views.ids) == {str(i) for i in range(N)}


def test_an_unnamed_index_is_called_index(rows):
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    X, ids = rows["a"]
    pd.DataFrame(X, index=ids).to_csv("a.csv")
    assert read_table("a.csv", id="index").ids.tolist() == ids.tolist()
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    pd.DataFrame(X, index=ids).rename(columns=str).to_parquet("a.parquet")
    found = read_table("a.parquet", id="index")
    assert (found.ids.tolist(), found.matrix.shape) == (ids.tolist(), X.shape)


def test_tables_that_can_be_read_in_blocks_are_not_read_before(rows):
    frame_of(*rows["a"]).to_parquet("a.parquet")
    found = read_table("a.parquet", id="id")
    assert isinstance(found.matrix, RowSource)
    assert found.matrix.columns == tuple(f"x{j}" for j in range(6))


# ---- texts --------------------------------------------------------------------------------------


def write_texts(ids, folder="texts"):
    Path(folder).mkdir()
    for i in range(N):
        words = [f"word{i % 7}", f"thing{i % 5}", f"place{i % 3}"]
        Path(folder, f"{ids[i]}.txt").write_text("\n".join(words), encoding="utf-8")
    Path(folder, "readme.md").write_text("no text of the view")


def features(n=N):
    kinds = [np.eye(m)[np.arange(n) % m] for m in (7, 5, 3)]
    return np.hstack(kinds) + 0.01 * np.random.default_rng(0).standard_normal((n, 15))


def test_a_folder_of_texts_is_a_view_whose_files_are_its_ids(capsys):
    write_texts(NAMES)
    save_csv("a.csv", features()[:50], NAMES[:50])
    fit = ["fit", "--view", "a=a.csv", "--view", "words=texts", "--method", "cca", "-o", "m.mvcca"]
    assert main([*fit, "--id", "id"]) == 0
    assert "60 objects by 'id': 50 in both views (a 50, words 60)" in capsys.readouterr().err
    search = ["search", "m.mvcca", "--gallery", "words=texts", "--query", "a=a.csv", "-k", "1"]
    assert main([*search, "--id", "id"]) == 0
    hits = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert np.mean([hit["item"] == hit["query"] for hit in hits]) > 0.9
    compare = ["compare", *fit[1:5], "--id", "id", "--methods", "cca", "--cv", "2", "-q"]
    assert main(compare) == 0


def test_without_ids_texts_of_a_folder_are_in_the_order_of_their_names(capsys):
    write_texts(NAMES[::-1])  # the text of row 0 is the last one
    np.save("a.npy", features()[::-1])
    fit = ["fit", "--view", "a=a.npy", "--view", "words=texts/", "--method", "cca"]
    assert main([*fit, "-o", "m.mvcca"]) == 0
    search = ["search", "m.mvcca", "--gallery", "words=texts/", "--query", "a=a.npy", "-k", "1"]
    capsys.readouterr()
    assert main(search) == 0
    hits = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert np.mean([hit["item"] == hit["query"] for hit in hits]) > 0.9


def test_a_table_of_ids_and_texts_is_a_view_of_texts(capsys):
    save_csv("a.csv", features(), NAMES)
    lines = [("id", "caption"), *((n, f'a "big" word{i % 7},\nand thing{i % 5}') for i, n in
             enumerate(NAMES))]  # fmt: skip
    with open("captions.csv", "w", newline="") as file:
        csv.writer(file).writerows(lines)
    fit = ["fit", "--view", "a=a.csv", "--view", "words=captions.csv", "--id", "id"]
    assert main([*fit, "--method", "cca", "-o", "m.mvcca"]) == 0
    assert "steps" in capsys.readouterr().out
    found = read_table("captions.csv", id="id")
    assert found.matrix[3, 0] == 'a "big" word3,\nand thing3'


def test_an_empty_text_is_named():
    write_texts(NAMES)
    Path("texts", f"{NAMES[4]}.txt").write_text(" \n")
    with pytest.raises(SourceError, match=r"n04\.txt: .*expected a text, it is empty; leave out"):
        read_table("texts")


# ---- outputs ------------------------------------------------------------------------------------


@pytest.fixture
def model(rows, capsys):
    for name in rows:
        save_csv(f"{name}.csv", *rows[name])
    fit = ["fit", "--view", "a=a.csv", "--view", "b=b.csv", "--id", "id", "-o", "m.mvcca"]
    assert main([*fit, "--method", "cca"]) == 0
    capsys.readouterr()
    return ["search", "m.mvcca", "--gallery", "a=a.csv", "--query", "b=b.csv", "--id", "id"]


def test_hits_name_items_in_tables_json_and_runs(model, capsys):
    assert main([*model, "-k", "2"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    pairs = [(hit["query"], hit["item"]) for hit in table]
    assert main([*model, "-k", "2", "--json"]) == 0
    found = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(hit["query"], hit["item"]) for hit in found] == pairs
    assert main([*model, "-k", "2", "-o", "hits.trec"]) == 0
    lines = [line.split() for line in Path("hits.trec").read_text().splitlines()]
    assert [(line[0], line[2]) for line in lines] == pairs
    pd = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    assert main([*model, "-k", "2", "-o", "hits.parquet"]) == 0
    frame = pd.read_parquet("hits.parquet")
    assert list(zip(frame["query"], frame["item"], strict=True)) == pairs


def test_hits_in_several_galleries_name_the_view_and_the_item(model, capsys):
    assert main([*model, "--gallery", "b=b.csv", "-k", "3"]) == 0
    hits = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {hit["view"] for hit in hits} == {"a", "b"}
    assert all(hit["item"] in NAMES[:50] for hit in hits if hit["view"] == "a")
    assert all(hit["item"] in NAMES[10:] for hit in hits if hit["view"] == "b")


@pytest.mark.usefixtures("model")
def test_joint_galleries_and_queries_are_matched_by_id(capsys):
    joint = ["search", "m.mvcca", "--gallery", "a=a.csv", "--gallery", "b=b.csv", "--joint"]
    joint += ["--query", "b=b.csv", "--query", "a=a.csv", "--id", "id", "-k", "1"]
    assert main([*joint, "--weighting", "profile-likelihood"]) == 0
    hits = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {hit["query"] for hit in hits} == {NAMES[i] for i in IN_BOTH}
    assert all(hit["item"] == hit["query"] for hit in hits)


def test_ids_with_spaces_are_refused_in_runs(rows, model, capsys):
    save_csv("a.csv", rows["a"][0], [f"the {one}" for one in rows["a"][1]])
    assert main([*model, "-k", "1", "-o", "hits.trec"]) == 1
    assert "ids must not contain any, such as 'the n00'" in capsys.readouterr().err


def test_arrays_hold_numbers_of_rows_only(model, capsys):
    with pytest.raises(SystemExit):
        main([*model, "-o", "hits.npy"])
    assert "with --id write .csv, .parquet or .arrow" in capsys.readouterr().err


@pytest.mark.usefixtures("model")
def test_scores_are_written_beside_the_ids_of_each_view(rows):
    views = ["--view", "a=a.csv", "--view", "b=b.csv"]
    assert main(["transform", "m.mvcca", *views, "--id", "id", "-o", "s-{view}.csv"]) == 0
    for name, (X, ids) in rows.items():
        with open(f"s-{name}.csv", newline="") as file:
            lines = list(csv.DictReader(file))
        assert [line["id"] for line in lines] == ids.tolist()
        expected = mvcca.load("m.mvcca").transform({name: X})[name]
        found = [[float(line[f"component{k}"]) for k in range(5)] for line in lines]
        np.testing.assert_allclose(found, expected, atol=1e-6)


# ---- labels, groups and other commands ----------------------------------------------------------


@pytest.mark.usefixtures("model")
def test_labels_are_matched_by_id(capsys):
    fit = ["fit", "--view", "a=a.csv", "--view", "b=b.csv", "--id", "id", "-o", "l.mvcca"]
    fit += ["--method", "mlcca", "--labels", "y.csv"]
    classes = [(n, f"c{i % 3}") for i, n in enumerate(NAMES)]
    indicators = [(n, *np.eye(3, dtype=int)[i % 3]) for i, n in enumerate(NAMES)]
    models = []
    for lines in ([("id", "class"), *classes[::-1]], [("id", "c0", "c1", "c2"), *indicators]):
        with open("y.csv", "w", newline="") as file:
            csv.writer(file).writerows(lines)
        assert main(fit) == 0
        models.append(mvcca.load("l.mvcca"))
    np.testing.assert_allclose(models[0].weights_["a"], models[1].weights_["a"], atol=1e-9)
    Path("y.csv").write_text("id,class\nn00,c0\n")
    capsys.readouterr()
    assert main(fit) == 1
    assert "59 of 60 objects have no label, such as 'n01'; add them" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*fit[:-1], "a=y.csv", "--labels", "b=y.csv"])
    assert "--id pairs the rows of views; labels are one FILE then" in capsys.readouterr().err


@pytest.mark.usefixtures("model")
def test_compare_says_how_many_are_paired_and_its_next_step_reads_the_same_files(capsys):
    with open("groups.csv", "w", newline="") as file:
        lines = [("id", "group"), *((n, i // 2) for i, n in enumerate(NAMES))]
        csv.writer(file).writerows(lines)
    compare = ["compare", "--view", "a=a.csv", "--view", "b=b.csv", "--id", "id"]
    compare += ["--methods", "cca", "--cv", "2", "--groups", "groups.csv", "--verbose"]
    assert main(compare) == 0
    out = capsys.readouterr().out
    assert "60 objects, 40 of them paired" in out
    assert "groups: 30, each in one part of a split" in out
    assert "Next: mvcca fit --view a=a.csv --view b=b.csv --id id --method cca" in out
    assert main([*compare, "--complete", "--methods", "cca", "--no-tune"]) == 0
    out = capsys.readouterr().out
    assert "; 40 paired objects" in out
    assert "--id id --complete --method cca" in out


@pytest.mark.slow
def test_an_alignment_takes_pairs_of_ids(capsys):
    rng = np.random.default_rng(0)
    items = rng.standard_normal((300, 8)) ** 3
    x, y = (items @ rng.standard_normal((8, d)) for d in (12, 10))
    x, y = (X + rng.standard_normal(X.shape) for X in (x, y))
    np.save("x.npy", x)
    np.save("y.npy", y)
    np.savetxt("numbers.csv", np.tile(np.arange(40)[:, None], 2), "%d", ",")
    command = ["align", "x.npy", "y.npy", "--pairs", "numbers.csv", "-o", "m.mvcca", "--force"]
    assert main([*command, "--json"]) == 0
    expected = json.loads(capsys.readouterr().out) | {"read": None}
    ids = np.array([f"v{i}" for i in range(300)])
    save_csv("x.csv", x, ids)
    save_csv("y.csv", y, ids)
    with open("pairs.csv", "w", newline="") as file:
        csv.writer(file).writerows([("x", "y"), *((one, one) for one in ids[:40])])
    command = ["align", "x.csv", "y.csv", "--id", "id", "--pairs", "pairs.csv", *command[5:]]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) | {"read": None} == expected
    words = [f"v{number} v{number}" for number in range(40)]  # a dictionary without a header
    Path("words.txt").write_text("\n".join(words) + "\nv1 v600\n")
    command = ["align", "x.csv", "y.csv", "--pairs", "words.txt", *command[7:]]
    assert main([*command, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) | {"read": None} == expected
    assert "words.txt: read as 41 pairs of ids" in err
    assert "words.txt: 1 pairs are left out: no row of both, such as 'v1' and 'v600'" in err
    Path("words.txt").write_text("".join(f"{one}\nv{one} v1\n" for one in words))
    assert main(command) == 1
    assert "or their ids, if both files name their rows" in capsys.readouterr().err
    Path("words.txt").write_text("v1 v1\nv2 v600\nv3 v601\n")
    assert main(command) == 1
    assert "y.csv: 2 of 3 ids of words.txt are not there" in capsys.readouterr().err


def test_a_migration_matches_the_rows_of_both_models(capsys):
    rng = np.random.default_rng(0)
    old = rng.standard_normal((200, 10))
    ids = np.array([f"v{i}" for i in range(200)])
    save_csv("old.csv", old, ids)
    chosen = rng.permutation(200)[:80]
    new = old @ rng.standard_normal((10, 8)) + 0.01 * rng.standard_normal((200, 8))
    save_csv("new.csv", new[chosen], ids[chosen])
    assert main(["migrate", "old.csv", "new.csv", "--id", "id", "-o", "mapped.npy"]) == 0
    assert "80 items by 'id' are in both files" in capsys.readouterr().err
    np.save("old.npy", old)
    np.save("new.npy", new[chosen])
    np.save("sample.npy", chosen)
    sample = ["--sample", "sample.npy", "-o", "expected.npy"]
    assert main(["migrate", "old.npy", "new.npy", *sample]) == 0
    np.testing.assert_allclose(np.load("mapped.npy"), np.load("expected.npy"), atol=1e-6)


def test_tables_of_subjects_may_be_parquet(capsys, rows):
    frame_of(*rows["a"]).to_parquet("a.parquet")
    save_csv("b.csv", *rows["b"])
    command = ["test", "a.parquet", "b.csv", "--id", "id", "--permutations", "20", "--json"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "40 of 50 subjects are in all files" in err
    save_csv("a.csv", *rows["a"])
    assert main(["test", "a.csv", *command[2:]]) == 0
    one, other = (json.loads(text) for text in (capsys.readouterr().out, out))
    assert one.pop("read")[0].replace("csv", "parquet")[:43] == other.pop("read")[0][:43]
    assert one == other


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_cells_are_chosen_by_name_or_by_number(ending):
    rows = {"sample": ["s1", "s2"], "site": ["a", "b"], "kind": ["p", "q"]}
    if ending == "csv":
        lines = ["sample,site,kind", *map(",".join, zip(*rows.values(), strict=True))]
        Path("y.csv").write_text("\n".join(lines))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(rows), "y.parquet")
    for columns in (("kind",), ("3",)):
        reading = ReadOptions(id="sample", header=True, columns=columns)
        cells = read_cells(f"y.{ending}", reading)
        assert (cells.columns, cells.matrix.tolist()) == (("kind",), [["p"], ["q"]])
        assert cells.ids.tolist() == ["s1", "s2"]
    with pytest.raises(
        SourceError, match="no column '4'; its columns are 'sample', 'site', 'kind'"
    ):
        read_cells(f"y.{ending}", ReadOptions(header=True, columns=("4",)))
