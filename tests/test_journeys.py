"""Four users go from files as they have them to a report, by commands, from the wheel.

Each journey runs in an empty folder and ends in a page without links to a network.
"""

from __future__ import annotations

import csv
import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from test_front_page import run, wheel  # noqa: F401

pytestmark = pytest.mark.slow

N = 200
IDS = [f"S{i:03d}" for i in range(N)]


class Journey:
    """Commands in a folder of one user."""

    def __init__(self, installed, folder):
        self.installed, self.folder = installed, folder
        self.rng = np.random.default_rng(0)
        self.shared = self.rng.normal(size=(N, 5))

    def rows(self, width, noise=0.5):
        mixing = self.rng.normal(size=(5, width))
        return self.shared @ mixing + noise * self.rng.normal(size=(N, width))

    def frame(self, width, name, noise=0.5):
        columns = [f"{name}{j}" for j in range(width)]
        return pd.DataFrame(self.rows(width, noise), index=IDS, columns=columns).round(4)

    def run(self, words, status=0):
        ran = run(["-m", "mvcca", *shlex.split(words)], self.installed, self.folder)
        assert ran.returncode == status, ran.stdout + ran.stderr
        assert "Traceback" not in ran.stderr
        return ran.stdout, ran.stderr

    def page(self, name, *texts):
        """The page is there, says these texts, and reads nothing from a network."""
        page = (self.folder / name).read_text("utf-8")
        for text in texts:
            assert text in page
        assert not re.search(r"(src|href)=\"(https?:)?//", page)
        assert "<svg" in page


@pytest.fixture
def user(wheel, tmp_path):  # noqa: F811
    pytest.importorskip("matplotlib")
    return Journey(wheel, tmp_path)


def test_a_vector_store_moves_to_a_new_model(user):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    from pyarrow import parquet

    old, new = user.rows(24, 0.1), user.rows(16, 0.1)
    table = pa.table({"key": IDS, "text": ["a text"] * N, "vector": [*old.astype("f4")]})
    parquet.write_table(table, user.folder / "store.parquet")
    some = user.rng.permutation(N)[:120]
    keys = [IDS[i].lower() for i in some]  # as another program wrote them
    table = pa.table({"key": keys, "vector": [*new[some].astype("f4")]})
    parquet.write_table(table, user.folder / "sample.parquet")
    migrate = "migrate store.parquet sample.parquet --id key"
    _, err = user.run(f"{migrate} -o moved.parquet", status=1)
    assert "none of the 120 ids are in both store.parquet and sample.parquet; 120 would be" in err
    (advice,) = re.findall(r"Give (--match-ids \w+)", err)
    out, err = user.run(f"{migrate} {advice} -o moved.parquet --report page.html")
    assert re.match(r"own migrated row found first among 200 rows: (0\.9\d\d|1\.000) ± ", out)
    assert "left out: 'text'" in err
    user.page("page.html", "Search with this map", "Maps of fewer pairs")
    moved = parquet.read_table(user.folder / "moved.parquet")
    assert moved["key"].to_pylist() == IDS
    mapped = np.array(moved["vector"].to_pylist())
    unseen = np.setdiff1d(np.arange(N), some)
    cosines = (mapped / np.linalg.norm(mapped, axis=1)[:, None]) @ new[unseen].T
    assert (cosines.argmax(axis=0) == unseen).mean() > 0.8


def test_omics_tables_are_compared_searched_and_reported(user):
    pytest.importorskip("openpyxl", reason="needs openpyxl: pip install 'mvcca[files]'")
    genes = user.frame(40, "gene")
    genes.T.to_csv(user.folder / "rna.tsv.gz", sep="\t", index_label="gene")  # genes as rows
    proteins = user.frame(12, "protein").iloc[:180]
    proteins.to_excel(user.folder / "proteins.xlsx", index_label="sample")
    views = "--view rna=rna.tsv.gz --view protein=proteins.xlsx --id sample"
    out, err = user.run(f"compare {views} --complete --methods cca,pls --cv 3 --report page.html")
    assert "200 of its 200 column names are ids" in err or "it is turned" in err
    assert out.startswith("Same object: ")
    user.page("page.html", "CCA")
    (following,) = re.findall(r"^Next: mvcca (fit .*)$", out, re.MULTILINE)
    fitted, _ = user.run(following)
    model = re.search(r"^file +(\S+)", fitted, re.MULTILINE)[1]
    query = "--query protein=proteins.xlsx --gallery rna=rna.tsv.gz --transpose rna"
    out, _ = user.run(f"search {model} {query} --id sample -k 1")
    hits = list(csv.DictReader(out.splitlines()))
    assert len(hits) == 180
    assert np.mean([hit["query"] == hit["item"] for hit in hits]) > 0.5
    out, _ = user.run(f"transform {model} --view protein=proteins.xlsx --id sample -o s.csv --json")
    assert json.loads(out)[0]["read"].startswith("proteins.xlsx: read as a table: 180 rows")
    assert pd.read_csv(user.folder / "s.csv", index_col=0).index.tolist() == IDS[:180]


def test_brain_and_behaviour_are_tested_with_confounds_and_missing_values(user):
    brain, behaviour = user.frame(20, "region"), user.frame(6, "test")
    behaviour.iloc[3, 1] = np.nan
    confounds = pd.DataFrame(
        {"age": user.rng.integers(20, 70, N), "site": user.rng.choice(list("ABC"), N)}, index=IDS
    )
    brain.to_csv(user.folder / "brain.csv", sep=";", decimal=",", index_label="subject")
    behaviour.to_csv(user.folder / "behaviour.txt", sep="\t", index_label="subject")
    confounds.to_csv(user.folder / "confounds.csv", index_label="subject")
    test = "test brain.csv behaviour.txt --id subject --confounds confounds.csv --permutations 99"
    _, err = user.run(test, status=1)
    assert "behaviour.txt: 1 of 1,200 values are missing, first in line 5 (S003)" in err
    out, err = user.run(f"{test} --missing drop --report page.html")
    assert "brain.csv: read as a table: 200 rows, 20 columns of numbers, semicolon-separated" in err
    assert re.match(r"\d components? (is|are) significant|The first", out)
    assert "1 of 200 rows were left out: a value is missing in behaviour.txt (1)." in out
    assert "Confounds: age and its square; site: 2 columns, reference A" in out
    user.page("page.html", "1 of 200 rows were left out", "site: 2 columns, reference A")


def test_images_are_found_by_words(user):
    words = np.array(
        ["red", "green", "blue", "round", "small", "large", "dog", "cat", "tree", "house"]
    )
    has = user.rng.random((N, len(words))) < 0.4
    captions = [" ".join(words[own]) or "nothing" for own in has]
    image = has @ user.rng.normal(size=(len(words), 30)) + 0.3 * user.rng.normal(size=(N, 30))
    np.save(user.folder / "img.npy", image)
    (user.folder / "captions.txt").write_text("\n".join(captions) + "\n", "utf-8")
    (user.folder / "queries.txt").write_text("a red dog\n", "utf-8")
    views = "--view image=img.npy --view text=captions.txt"
    out, err = user.run(f"compare {views} --methods cca --cv 3 --report page.html")
    assert "captions.txt: read as texts: 200, one per line" in err
    assert out.startswith("Same object: ")
    user.page("page.html", "CCA")
    user.run(f"fit {views} --method cca -o words.mvcca")
    out, _ = user.run("search words.mvcca --gallery image=img.npy --query text=queries.txt -k 5")
    found = [int(hit["item"]) for hit in csv.DictReader(out.splitlines())]
    right = [{"red", "dog"} <= {*captions[i].split()} for i in found]
    assert np.mean(right) > 0.5
