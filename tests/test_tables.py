"""Tables as people have them: each equals the plain table, or gets one line with the remedy."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mvcca
from mvcca.cli import main

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
    "store.parquet": lambda: parquet(
        lambda pa: pa.table({"key": IDS, "text": ["a"] * N, "vector": X.tolist(), "n": range(N)})
    ),
    "coded.parquet": lambda: parquet(
        lambda pa: pa.table({"key": pa.array(IDS).dictionary_encode(), "vector": X.tolist()})
    ),
    "index.parquet": with_index,
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
