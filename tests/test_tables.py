"""Tables as people have them: each equals the plain table, or gets one line with the remedy."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvcca
from mvcca.blocks import SourceError, read_table
from mvcca.cli import main
from mvcca.views.coding import coded
from mvcca.views.files import open_tables, read_label_vectors

N, D = 40, 4
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 2))
X = (SHARED @ RNG.normal(size=(2, D)) + 0.3 * RNG.normal(size=(N, D))).round(3)
Y = (SHARED @ RNG.normal(size=(2, D)) + 0.3 * RNG.normal(size=(N, D))).round(3)
IDS = [f"S{i:03d}" for i in range(N)]


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        frame(Y, "p").to_csv("y.csv", index_label="sample")
        plain = frame().to_csv(index_label="sample")
        Path("plain.csv").write_text(plain)
        assert main([*FIT, "--view", "x=plain.csv", "-o", "plain.mvcca", "-q"]) == 0
        yield folder


def frame(rows=X, name="g"):
    return pd.DataFrame(rows, index=IDS, columns=[f"{name}{j}" for j in range(rows.shape[1])])


def text(sep="\t", index_label="sample", **options):
    return frame().to_csv(sep=sep, index_label=index_label, **options)


def workbook(**sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'mvcca[files]'")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def cells(ids=IDS):
    return [
        ["sample", *frame().columns],
        *([i, *row] for i, row in zip(ids, X.tolist(), strict=True)),
    ]


def zst(content):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


def parquet(table):
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table(pyarrow), file)
    return file.getvalue()


def arrow_stream():
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    file, table = io.BytesIO(), pyarrow.table({"v": X.tolist()})
    with pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return file.getvalue()


def zipped(contents):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return file.getvalue()


def with_index():
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    file = io.BytesIO()
    frame().to_parquet(file)
    return file.getvalue()


def annotated(_):
    h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'mvcca[files]'")
    file = io.BytesIO()
    with h5py.File(file, "w") as new:
        new["X"] = X
        for name, index in (("obs", IDS), ("var", list(frame().columns))):
            new.create_group(name).attrs["_index"] = "_index"
            new[f"{name}/_index"] = index
    return file.getvalue()


def npz():
    file = io.BytesIO()
    np.savez(file, rows=X, ids=np.array(IDS))
    return file.getvalue()


def json_lines(fields):
    """A line of JSON for each row, as exports of vector stores have them."""
    rows = zip(IDS, X.tolist(), strict=True)
    return "".join(json.dumps({"id": one, **fields(row)}) + "\n" for one, row in rows)


def listed(sep, header, as_text=lambda row: str(row.tolist())):
    """Vectors as lists in a column of text, as pandas writes them."""
    table = {"sample": IDS, "text": "a dog", "vector": map(as_text, X)}
    if header != "text":
        del table["text"]
    return pd.DataFrame(table).to_csv(sep=sep, index=False, header=header is not None)


def word2vec(end=b"\n"):
    rows = [one.encode() + b" " + row.tobytes() + end for one, row in zip(IDS, F4, strict=True)]
    return f"{N} {D}\n".encode() + b"".join(rows)


F4 = X.astype("<f4")


def words(lines):
    return "".join(f"{line}\n" for line in lines)


PLAIN = text(",")
NO_HEADER = PLAIN.split("\n", 1)[1]
FILES = {  # name of the file: what is in it, and options that it needs
    "tabs.txt": lambda: text(),
    "x.csv.gz": lambda: gzip.compress(PLAIN.encode()),
    "x.tsv.bz2": lambda: bz2.compress(text().encode()),
    "packed": lambda: lzma.compress(text().encode()),
    "x.zst": lambda: zst(text().encode()),
    "mark.csv": lambda: PLAIN.encode("utf-8-sig"),
    "wide.txt": lambda: text().encode("utf-16"),
    "wide_be.txt": lambda: text().encode("utf-16-be"),
    "windows.csv": lambda: PLAIN.replace("\n", "\r\n"),
    "old_mac.csv": lambda: PLAIN.replace("\n", "\r"),
    "mixed.csv": lambda: PLAIN.replace("\n", "\r\n", 7),
    "workbook.csv": lambda: workbook(only=cells()),
    "x.xlsx": lambda: workbook(only=[*cells(), [], []]),
    "x.h5ad": lambda: annotated(None),
    "r.txt": lambda: re.sub("^sample ", "", text(" ")),
    "r.csv": lambda: text(",", "", quoting=csv.QUOTE_NONNUMERIC),
    "excel.csv": lambda: "sep=;\n" + text(";", decimal=","),
    "german.csv": lambda: text(";", decimal=","),
    "quoted.csv": lambda: text(",", quoting=csv.QUOTE_ALL),
    "comments.csv": lambda: "# made by\n# us\n" + PLAIN,
    "blank.csv": lambda: PLAIN.replace("\n", "\n\n"),
    "trailing.csv": lambda: PLAIN.replace("\n", ",\n"),
    "bare.csv": lambda: (NO_HEADER, "--id", "x=1"),
    "counted.csv": lambda: frame().set_axis(range(D), axis=1).to_csv(index_label="sample"),
    "years.csv": lambda: frame().set_axis(range(2001, 2001 + D), axis=1).to_csv(index_label="i"),
    "last.csv": lambda: (
        frame().reset_index(names="sample")[[*frame().columns, "sample"]].to_csv(index=False)
    ),
    "x.vec": lambda: f"{N} {D}\n" + NO_HEADER.replace(",", " "),
    "glove.txt": lambda: NO_HEADER.replace(",", " "),
    "word2vec.bin": word2vec,
    "packed.bin": lambda: word2vec(b""),
    "columns.store": lambda: parquet(lambda pa: pa.table({"key": IDS, "vector": X.tolist()})),
    "store.parquet": lambda: parquet(
        lambda pa: pa.table({"key": IDS, "text": ["a"] * N, "vector": X.tolist(), "n": range(N)})
    ),
    "coded.parquet": lambda: parquet(
        lambda pa: pa.table({"key": pa.array(IDS).dictionary_encode(), "vector": X.tolist()})
    ),
    "index.parquet": with_index,
    "x.jsonl": lambda: json_lines(lambda row: dict(zip("abcd", row, strict=True))),
    "store.jsonl": lambda: json_lines(lambda row: {"vector": row, "more": {"text": "a dog"}}),
    "packed.jsonl": lambda: gzip.compress(json_lines(lambda row: {"vector": row}).encode()),
    "lists.csv": lambda: listed(",", "text"),
    "lists.txt": lambda: listed("\t", None),
    "numpy.csv": lambda: listed(",", "sample", lambda row: np.array2string(row, max_line_width=9)),
    "x.npz": npz,
    "turned.tsv": lambda: frame().T.to_csv(sep="\t", index_label="gene"),
    "x.gct": lambda: (
        f"#1.2\n{D}\t{N}\n"
        + frame().T.assign(Description="a gene").to_csv(sep="\t", index_label="Name"),
        *("--skip-lines", "x=2", "--drop", "x=Description"),
    ),
    "title.xlsx": lambda: (workbook(a=[["Expression (log2)"], *cells()]), "--skip-lines", "x=1"),
    "sheets.xlsx": lambda: (workbook(a=[["n"], [1]], b=cells()), "--sheet", "x=b"),
    "latin.csv": lambda: (PLAIN.replace("g0", "µ").encode("cp1252"), "--encoding", "x=cp1252"),
    "columns.csv": lambda: (
        frame().assign(site="b").to_csv(index_label="sample"),
        *("--columns", "x=g0,g1,g2,g3"),
    ),
    "thousands.csv": lambda: (
        (frame() * 1e6).round().astype(int).map("{:,}".format).to_csv(index_label="sample"),
        *("--thousands", "x=,"),
    ),
}
FIT = ["fit", "--method", "cca", "--param", "n_components=2", "--param", "reg=0.1"]
FIT += ["--view", "y=y.csv", "--id", "sample"]


def written(name):
    made = FILES[name]()
    content, *options = made if isinstance(made, tuple) else (made,)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return options


@pytest.mark.parametrize("name", FILES)
def test_a_table_of_any_form_is_the_plain_table(name, capsys):
    options = written(name)
    assert main([*FIT, *options, "--view", f"x={name}", "-o", "m.mvcca"]) == 0
    err = capsys.readouterr().err
    assert f"{name}: read as a " in err
    assert f"{N} objects by " in err
    assert f": {N} in both views (y {N}, x {N}); no row is left over" in err
    model, plain = mvcca.load("m.mvcca"), mvcca.load("plain.mvcca")
    scale = 1e6 if name == "thousands.csv" else 1
    np.testing.assert_allclose(model.weights_["x"] * scale, plain.weights_["x"], rtol=1e-4)
    transform = ["transform", "m.mvcca", "--view", f"x={name}", "--id", "sample", *options]
    turned = ["--transpose", "x"] if name in ("turned.tsv", "x.gct") else []
    assert main([*transform, *turned, "-o", "s.csv"]) == 0
    scores = pd.read_csv("s.csv", index_col=0)
    assert scores.index.tolist() == IDS
    np.testing.assert_allclose(scores, plain.transform({"x": frame()})["x"], rtol=1e-4, atol=1e-5)


COMPARE = ["--methods", "cca", "--no-tune", "--cv", ".5", "--n-components", "2"]
COMMANDS = {
    "compare": ["compare", "--view", "x={}", "--view", "y=y.csv", *COMPARE],
    "test": ["test", "{}", "y.csv", "--permutations", "9", "--components", "1"],
    "migrate": ["migrate", "{}", "y.csv", "-o", "o.parquet", "--force"],
}
FIRST_VIEW = {"compare": "x", "migrate": "old"}  # as options call it; of a test, its file
QUICK = ["r.txt", "x.xlsx", "store.parquet", "turned.tsv"]  # the others are read alike


def figures(found):
    """All numbers in JSON, but for times and memory, and of other units."""
    if isinstance(found, dict):
        skipped = found.get("measure") in ("seconds", "peak bytes")
        values = [] if skipped else [value for key, value in found.items() if key != "read"]
        return [number for value in values for number in figures(value)]
    if isinstance(found, list):
        return [number for value in found for number in figures(value)]
    return [found] if isinstance(found, float) else []


@pytest.fixture(scope="module")
def expected():
    return {}


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FILES],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_it(name, command, expected, capsys):
    options, found = written(name), {}
    view = FIRST_VIEW.get(command, Path(name).stem)
    options = [re.sub("^x=", f"{view}=", word) for word in options]
    for file, more in ((name, options), ("plain.csv", [])):
        if file == name or command not in expected:
            words = [word.format(file) for word in COMMANDS[command]]
            assert main([*words, "--id", "sample", "--json", *more]) == 0, capsys.readouterr().err
            out, err = capsys.readouterr()
            (found[file],) = json.loads(out) if command == "compare" else [json.loads(out)]
            assert found[file]["read"][0].startswith(f"{file}: read as a ")
            assert all(f"mvcca: {line}\n" in err for line in found[file]["read"])
            if command == "migrate":
                assert pd.read_parquet("o.parquet").iloc[:, 0].tolist() == IDS
    plain = expected.setdefault(command, found.get("plain.csv"))
    tolerance = 0.02 if name == "thousands.csv" else 1e-6  # which are rounded
    tolerance = 1e-4 if name.endswith(".bin") else tolerance  # of float32
    np.testing.assert_allclose(figures(found[name]), figures(plain), rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("direction", ["stored", "queries"])
@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv"])
def test_a_store_is_migrated_to_a_store(direction, suffix, capsys):
    written("store.parquet")
    migrate = ["migrate", "store.parquet", "y.csv", "--id", "key", "--force"]
    if direction == "queries":
        assert main([*migrate, "--direction", direction, "-o", "map.mvcca"]) == 0
        rows, command = "y.csv", ["transform", "map.mvcca", "--view", "new=y.csv"]
        assert main([*command, "-o", f"new{suffix}"]) == 0
    else:
        rows = "store.parquet"
        assert main([*migrate, "-o", f"new{suffix}"]) == 0
        assert main([*migrate, "-o", "new.npy"]) == 0
        assert "holds no ids; write .parquet, .npz or .csv to keep" in capsys.readouterr().err
    found = read_table(f"new{suffix}")
    assert found.id_name == ("ids" if suffix == ".npz" else read_table(rows).id_name)
    assert found.ids.tolist() == IDS
    if direction == "stored":
        np.testing.assert_allclose(np.asarray(found.matrix), np.load("new.npy"), rtol=1e-5)


BAD = {  # name, content, options of reading, message
    "a thousand": ("a.csv", 'id,a\nS1,"6,609"\nS2,"1,234"\n', {},
                   "may be 6609 or a decimal comma; give thousands=',' or decimal=','"),
    "text": ("a.csv", PLAIN.replace(str(X[5, 2]), "high"), {},
             "expected a number in line 7 (S005), column 'g2', got 'high'; correct it, or give "
             "drop='g2'"),
    "percent": ("a.csv", PLAIN.replace(str(X[5, 2]), "5%"), {}, "column 'g2', got '5%'"),
    "minus": ("a.csv", PLAIN.replace(str(X[5, 2]), "\u22121"), {}, "column 'g2', got '\u22121'"),
    "boolean": ("a.csv", PLAIN.replace(str(X[5, 2]), "TRUE"), {}, "column 'g2', got 'TRUE'"),
    "date": ("a.csv", PLAIN.replace(str(X[5, 2]), "2020-01-05"), {}, "got '2020-01-05'"),
    "infinity": ("a.csv", PLAIN.replace(str(X[5, 2]), "Inf"), {}, "line 7 (S005), column 'g2'"),
    "short": ("a.csv", PLAIN.replace(f",{X[5, 3]}\n", "\n"), {},
              "line 7 has 4 cells, the others have 5"),
    "words": ("a.csv", "cat,dog\ncat,bird\nowl,dog\n", {},
              "its columns hold texts, such as 'cat'; name one of them, as in columns='2'. Label "
              "sets are a .txt file with a line for each row, its labels separated by commas"),
    "footer": ("a.txt", text() + "n = 40\n", {}, "line 42 has 1 cell, the others have 5"),
    "name twice": ("a.csv", PLAIN.replace("g3", "g1"), {},
                   "columns 3 and 5 have the same name, 'g1'; rename one"),
    "id twice": ("a.csv", PLAIN.replace("S007", "S003"), {"id": "sample"},
                 "id 'S003' is in line 5 and in line 9; keep one of them"),
    "id twice unnamed": ("a.csv", PLAIN.replace("S007", "S003"), {},
                         "correct it, or give drop='sample', or id=1 if it names the rows"),
    "web page": ("a.csv", "<!DOCTYPE html>\n<html><body>404</body></html>\n", {},
                 "it is a web page; download the file itself"),
    "document": ("a.csv", b"%PDF-1.7\n1 0 obj\n", {}, "it is a PDF document; save its table"),
    "old workbook": ("a.xlsx", b"\xd0\xcf\x11\xe0" + bytes(512), {}, "it is an old workbook"),
    "JSON in UTF-16": ("a.txt", '{"id": "S1"}'.encode("utf-16"), {}, "lines of JSON are in UTF-8"),
    "JSON": ("a.json", json.dumps([{"id": one} for one in IDS]), {}, "it is one JSON document"),
    "svmlight": ("a.txt", "1 3:.5 7:1\n0 1:2e-3\n", {}, "it is in svmlight format; read it by"),
    "GEO": ("a.txt", '!Series_title\t"a"\n', {}, "leave out the lines that begin with !"),
    "pickle": ("a.pkl", pickle.dumps(X), {}, "it is a pickle, which is never loaded"),
    "R": ("a.rds", gzip.compress(b"X\n\0\0\0\3\0\4"), {}, "it is a file of R; write its table by"),
    "tensor": ("a.pt", lambda: zipped({"a/data.pkl": "", "a/data/0": ""}), {}, "file of PyTorch"),
    "image": ("a.png", b"\x89PNG\r\n\x1a\n", {}, "it is an image; save a row of features for each"),
    "cut list": ("a.csv", listed(",", "sample").replace(f", {X[7, 3]}]", ", ...]"), {},
                 "line 9, column 'vector': expected a list of numbers, got"),
    "ragged list": ("a.csv", listed(",", "sample").replace(f", {X[7, 3]}]", "]"), {},
                    "line 9, column 'vector': expected a list of 4 numbers, as in the first row"),
    "two lists in text": ("a.csv", "id,a,b\nS1,[1.5],[2]\nS2,[0.5],[3]\n", {},
                          "columns 'a', 'b' hold lists; name the one you mean: columns='a'"),
    "ragged lines": ("a.jsonl", '{"v": [1, 2]}\n{"v": [1]}\n', {}, "row 1 has 1; shorten it"),
    "archive": ("a.zip", lambda: zipped({"a.csv": PLAIN, "b.csv": PLAIN}), {},
                "it is an archive of 'a.csv', 'b.csv'; unpack it"),
    "stream": ("a.arrow", lambda: arrow_stream(), {}, "it is an Arrow stream"),
    "no column": ("a.csv", "a,b\n1.5,2\n2,3\n", {"id": "sample"},
                  "there is no column 'sample'; its columns are 'a', 'b'. Give id='COLUMN'"),
    "byte": ("a.csv", PLAIN.encode() + b"S\xb5,1,2,3,4\n", {},
             "got the byte 0xb5 in line 42; give encoding='cp1252'"),
    "zero": ("a.csv", PLAIN.replace("g1", "g\0"), {}, "got the byte 0x00 in line 1"),
    "cut": ("a.csv.gz", gzip.compress(PLAIN.encode())[:-20], {}, "a.csv.gz: cannot be"),
    "sheets": ("a.xlsx", lambda: workbook(a=cells(), b=cells()), {},
               "it has the sheets 'a', 'b'; give sheet='a'"),
    "title": ("a.xlsx", lambda: workbook(a=[["Expression (log2)"], *cells()]), {},
              "row 1 holds only 'Expression (log2)'; the header seems to be in row 2. Give "
              "skip_lines=1"),
    "cut workbook": ("a.xlsx", lambda: workbook(a=cells())[:-300], {}, "a.xlsx: cannot be read"),
    "nested": ("a.parquet", lambda: parquet(lambda pa: pa.table({"k": IDS, "v": [[[1.0]]] * N})),
               {}, "expected columns of numbers or of lists of numbers, got list<"),
    "ragged": ("a.parquet", lambda: parquet(lambda pa: pa.table(
        {"k": IDS, "v": [[1.0, 2.0]] * (N - 1) + [[1.0]]})), {},
               "row 0; row 39 has 1; shorten it, or leave it out"),
    "null": ("a.parquet", lambda: parquet(lambda pa: pa.table(
        {"k": IDS, "v": [[1.0, 2.0]] * (N - 1) + [None]})), {},
               "values are missing in column 'v', first in row 39"),
    "cut vectors": ("a.bin", word2vec()[:-100], {}, "ends or is damaged in word 36"),
    "claim": ("a.bin", word2vec().replace(b"40 4", b"99999 4"), {}, "it is cut off or damaged"),
    "bad vectors": ("a.bin", word2vec().replace(b"S039 ", b"S039_") + b"_" * 99, {}, "in word 40"),
    "two lists": ("a.parquet", lambda: parquet(lambda pa: pa.table(
        {"k": IDS, "v": X.tolist(), "w": X.tolist()})), {}, "'v', 'w' hold lists; name the one"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_table_gets_one_line_with_place_and_remedy(case):
    name, content, options, message = BAD[case]
    content = content() if callable(content) else content
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SourceError, match=re.escape(message)):
        whole(read_table(name, **options))


@pytest.mark.parametrize("command", ["fit", "transform", *COMMANDS])
@pytest.mark.parametrize("case", BAD)
def test_every_command_refuses_it_in_one_line(case, command, capsys):
    name, content, *_ = BAD[case]
    content = content() if callable(content) else content
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    words = {
        "fit": [*FIT[:-2], "--view", "x={}", "-o", "m.mvcca"],
        "transform": ["transform", "plain.mvcca", "--view", "x={}", "-o", "s.csv"],
        **COMMANDS,
    }[command]
    assert main([word.format(name) for word in [*words, "--id", "sample"]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    said = [line for line in err.splitlines() if not re.search(": read as | by 'sample'", line)]
    assert len(said) == 1
    assert said[0].startswith(f"mvcca: error: {name}")
    assert "=" not in said[0] or "NAME=COLUMN" in said[0] or "=no" in said[0], said


def test_columns_are_named_by_words_or_numbers_as_messages_say():
    rows = PLAIN.splitlines()
    lines = [rows[0] + ",sex", *(f"{row},{'fm'[i % 2]}" for i, row in enumerate(rows[1:]))]
    Path("sex.csv").write_text(words(lines))
    for options in ({"drop": "sex"}, {"drop": D + 2}, {"drop": ["sex"]}, {"columns": range(2, 6)}):
        for own in ({}, {"id": "sample"}, {"id": 1}):
            table = read_table("sex.csv", **options, **own)
            np.testing.assert_array_equal(whole(table), X)
            assert table.ids.tolist() == IDS
    np.testing.assert_array_equal(whole(read_table("sex.csv", columns="g1")), X[:, 1:2])


@pytest.mark.parametrize("names", [("id", "text", "v"), ("text", "v", "id")])
def test_rows_of_a_vector_store_are_named_by_their_id(names):
    columns = {"text": [f"text {i}" for i in range(N)], "id": list(range(N, 2 * N))}
    columns["v"] = X.tolist()
    content = parquet(lambda pa: pa.table({name: columns[name] for name in names}))
    Path("store.parquet").write_bytes(content)
    table = read_table("store.parquet")
    assert table.ids.tolist() == [str(i) for i in columns["id"]]
    assert "ids in column 'id'; left out: 'text'" in table.took


TEXTS = {
    "sentences.txt": ["a red bird, on a tree", "two dogs; one runs", "the sea"],
    "numbers.txt": ["12 dogs run", "3 cats sit", "1 bird sings"],
    "named.txt": ["S1\ta red bird", 'S2\ttwo "dogs', "S3\tthe sea"],
}


@pytest.mark.parametrize("name", TEXTS)
def test_sentences_stay_texts_and_none_is_lost(name):
    Path(name).write_text(words(TEXTS[name]))
    table = read_table(name)
    has_ids = name == "named.txt"
    assert table.matrix[:, 0].tolist() == [line.split("\t")[-1] for line in TEXTS[name]]
    assert (table.ids is not None) == has_ids
    assert table.took.startswith(f"{name}: read as texts: 3, one per line") or has_ids


def whole(table):
    table.check_ids()
    return np.asarray(table.matrix)


def test_a_cell_far_from_a_worksheet_takes_no_memory(monkeypatch):
    monkeypatch.setattr("mvcca.blocks.sources._stream._MOST_EMPTY", 30_000)
    content = workbook(a=cells())
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile("far.xlsx", "w") as new:
        for one in old.namelist():
            part = old.read(one)
            if one.endswith("sheet1.xml"):
                far = b'<row r="20000"><c r="XFD20000"><v>1</v></c></row></sheetData>'
                part = part.replace(b"</sheetData>", far)
            new.writestr(one, part)
    with pytest.raises(SourceError, match="cells up to row 20,000, column 16,384, are nearly all"):
        read_table("far.xlsx")


def test_a_quotation_mark_that_is_never_closed_takes_no_memory(monkeypatch):
    monkeypatch.setattr("mvcca.blocks.sources._text._CHUNK", 2**16)
    monkeypatch.setattr("mvcca.blocks.sources._text._LONGEST", 2**20)
    Path("open.csv.gz").write_bytes(gzip.compress(b'id,a\n"x,' + b"1" * 3 * 2**20))
    with pytest.raises(SourceError, match="line 2 is longer than 1 MiB, or its quotation mark is"):
        read_table("open.csv.gz")


def test_blocks_of_a_large_text_are_read_from_their_places(monkeypatch):
    monkeypatch.setattr("mvcca.blocks.sources._text._CHUNK", 512)
    monkeypatch.setattr("mvcca.blocks.sources._text._KEPT_BYTES", 100)
    for name, content in {
        "big.csv": PLAIN.encode(),
        "big.csv.gz": gzip.compress(PLAIN.encode()),
        "big.txt": text(",", quoting=csv.QUOTE_ALL).encode("utf-16"),
    }.items():
        Path(name).write_bytes(content)
        source = mvcca.open_matrix(name)
        np.testing.assert_array_equal(source.read(0, N), X)
        np.testing.assert_array_equal(source.read(30, 39), X[30:39])
        np.testing.assert_array_equal(source[::-3].read(0, 5), X[::-3][:5])
        assert read_table(name).ids.tolist() == IDS
        assert source.line_of(33) == 35


def test_a_pickled_table_is_read_elsewhere_and_a_changed_one_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("mvcca.blocks.sources._text._KEPT_BYTES", 100)
    Path("sent.csv").write_text(PLAIN)
    source = mvcca.open_matrix("sent.csv")
    pickled = pickle.dumps(source)
    assert len(pickled) < 2_000
    monkeypatch.chdir(tmp_path)
    sent = pickle.loads(pickled)
    np.testing.assert_array_equal(sent.read(3, 9), X[3:9])
    Path(sent.path).write_text(PLAIN + "more,1,2,3,4\n")
    for one in (source, sent):
        with pytest.raises(SourceError, match=r"sent\.csv has changed since it was opened"):
            one.read(0, N)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_of_json_keep_ids_as_they_are_spelled(end):
    ids = ["2024-01-02", "2024-01-03T00:00:00Z", "2024-02-30"]
    for own in (ids, ids[:2], [7, 12, 3]):
        lines = (json.dumps({"key": "k", "id": one, "v": [1, 2.5]}) + end for one in own)
        Path("x.txt").write_bytes(b"\xef\xbb\xbf" + "".join(lines).encode())
        found = read_table("x.txt")
        assert found.ids.tolist() == list(map(str, own))
        assert found.took.endswith("in the lists of 'v', ids in column 'id'; left out: 'key'")
        np.testing.assert_array_equal(found.in_memory().matrix, [[1, 2.5]] * len(own))


def test_word_vectors_are_read_in_blocks_by_words_in_any_script():
    names = ["caf\u00e9", "\u65e5\u672c", "New_York", "a"]
    content = b"4 3\n"
    rows = np.arange(12, dtype="<f4").reshape(4, 3) / 7
    for name, row in zip(names, rows, strict=True):
        content += name.encode() + b" " + row.tobytes() + b"\n"
    Path("v.bin").write_bytes(content)
    table = read_table("v.bin")
    assert table.ids.tolist() == names
    assert "read as a matrix of word vectors: 4 rows, 3 columns of float32, ids" in table.took
    np.testing.assert_array_equal(table.matrix.read(1, 3), rows[1:3])
    sent = pickle.loads(pickle.dumps(mvcca.open_matrix("v.bin")))
    np.testing.assert_array_equal(sent[::-2].read(0, 2), rows[::-2])
    vectors = read_label_vectors("v.bin")
    assert list(vectors) == names
    np.testing.assert_array_equal(vectors["a"], rows[3])


def test_categories_become_indicators_of_all_but_the_first():
    columns = {
        "site": np.array(list("BACABC")),
        "age": np.array(["30", "40", "50", "20", "1", "6"]),
    }
    Z = coded(columns)
    np.testing.assert_array_equal(
        Z, [[1, 0, 30], [0, 0, 40], [0, 1, 50], [0, 0, 20], [1, 0, 1], [0, 1, 6]]
    )
    assert Z.columns == ("site=B", "site=C", "age")


def test_missing_values_are_counted_with_the_first_place():
    Path("holes.csv").write_text(PLAIN.replace(str(X[0, 0]), "NA").replace(str(X[9, 2]), "#N/A"))
    with pytest.raises(SourceError, match=r"2 of 160 values are missing, first in line 2 \(S000\)"):
        open_tables({"x": "holes.csv"})
    holes = open_tables({"x": "holes.csv"}, holes=True)["x"].matrix
    assert np.isnan(holes).sum() == 2


def test_every_file_is_told_in_one_line(capsys):
    """Files beside the views are read by the same reader, and are named in `read`."""
    pairs = [f"p{i // 2}" for i in range(N)]
    Path("y.txt").write_text("".join(f"{'ab'[i % 2]},{'cd'[i % 3 > 0]}\n" for i in range(N)))
    Path("pairs.tsv").write_text("sample\tpair\n" + "".join(
        f"{i}\t{p}\n" for i, p in zip(IDS, pairs, strict=True)))  # fmt: skip
    Path("pairs.txt").write_text("".join(f"{p}\n" for p in pairs))
    np.save("pairs.npy", np.array(pairs))
    views = ("--view", "x=plain.csv", "--view", "y=y.csv")
    compare = ("compare", *views, *COMPARE, "--json")
    expected = None
    for groups, ids in (("pairs.txt", ()), ("pairs.npy", ()), ("pairs.tsv", ("--id", "sample"))):
        assert main([*compare, *ids, "--groups", groups]) == 0
        found = json.loads(capsys.readouterr().out)[0]
        told = [one.partition(": read as")[0] for one in found["read"]]
        assert told == ["plain.csv", "y.csv", groups]
        expected = expected or figures(found)
        assert figures(found) == expected
    assert main([*compare, "--labels", "y.txt"]) == 0
    read = json.loads(capsys.readouterr().out)[0]["read"]
    assert read[2] == f"y.txt: read as texts: {N}, one per line; 4 labels, 2.0 per row"


def test_ids_of_labels_must_agree_with_those_of_the_rows(capsys):
    views = ("--view", "x=plain.csv", "--view", "y=y.csv", "--method", "mvmlcca", "--no-tune")
    for turn, code in ((IDS, 0), (IDS[::-1], 1)):
        lines = (f"{one},{'ab'[k % 2]}\n" for k, one in enumerate(turn))
        Path("labels.csv").write_text("sample,class\n" + "".join(lines))
        assert main(["fit", *views, "--labels", "labels.csv", "-o", "l.mvcca", "-q"]) == code
    assert "row 1 is 'S000' in plain.csv, and 'S039' in labels.csv" in capsys.readouterr().err
