"""Vectors of `retrieval_vectors` and `mvcca transform --vectors` in the stores of other libraries.

Each store must find the ids that the index finds, with its plain inner product or cosine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mvcca import CCA, JRL, MVCCA, RetrievalIndex, Views, save
from mvcca.cli import main as command
from mvcca.retrieval import retrieval_vectors
from mvcca.retrieval.ranking import WEIGHTINGS

K, N_QUERIES = 8, 12
IDS = np.array([f"item {i * 7 % 1000:03d}" for i in range(1000)])


def rows(n, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 4))
    return {
        name: points @ np.random.default_rng(width).normal(size=(4, width))
        + rng.normal(size=(n, width))
        for name, width in {"image": 7, "text": 6, "sound": 5}.items()
    }


@pytest.fixture(scope="module")
def model():
    return MVCCA(4).fit(rows(500, seed=1))


@pytest.fixture(scope="module")
def gallery():
    return {"image": rows(1000, seed=2)["image"]}


@pytest.fixture(scope="module")
def queries():
    return {"text": rows(N_QUERIES, seed=3)["text"]}


# ---- the vectors themselves ---------------------------------------------------------------------


RANKINGS = [
    *({"similarity": similarity} for similarity in ("cosine", "euclidean", "inner")),
    *({"weighting": name} for name in ("auto", None, *WEIGHTINGS, "correlation^4")),
]


@pytest.mark.parametrize("by", RANKINGS, ids=str)
def test_inner_products_rank_as_the_index(model, gallery, queries, by):
    items = retrieval_vectors(model, gallery, **by)["image"]
    asked = retrieval_vectors(model, queries, role="query", target="image", **by)["text"]
    index = RetrievalIndex(model, **by).add(gallery, IDS)
    best = np.argsort(-(asked @ items.T), axis=1)[:, :K]
    assert_array_equal(IDS[best], index.search(queries, "image", k=K)[1])


def test_vectors_come_in_the_container_of_the_views(model):
    both = {name: block[:9] for name, block in rows(1000, seed=2).items()}
    named = retrieval_vectors(model, both)
    views = retrieval_vectors(model, Views(both))
    listed = retrieval_vectors(model, list(both.values()))
    for place, name in enumerate(both):
        assert_array_equal(views[name], named[name])
        assert_array_equal(listed[place], named[name])
    unit = retrieval_vectors(model, both, weighting="likelihood-cosine")
    assert_allclose(np.linalg.norm(unit["image"], axis=1), 1)


def test_vectors_of_a_method_that_ranks_by_its_own_similarity():
    X = rows(300, seed=1)
    model = JRL(0.01).fit(X, 2 * (X["image"][:, 0] > 0) + (X["text"][:, 1] > 0))
    vectors = retrieval_vectors(model, X)
    index = RetrievalIndex(model).add({"image": X["image"]})
    found = index.search({"text": X["text"][:5]}, k=K)[1]
    best = np.argsort(-(vectors["text"][:5] @ vectors["image"].T), axis=1, kind="stable")[:, :K]
    assert_array_equal(best, found)


def test_bad_vectors_are_refused(model, gallery):
    with pytest.raises(ValueError, match="role to be 'query' or 'gallery', got 'item'"):
        retrieval_vectors(model, gallery, role="item")
    with pytest.raises(ValueError, match="pass it as target"):
        retrieval_vectors(model, gallery, role="query", weighting="likelihood")
    with pytest.raises(TypeError, match="name the view"):
        retrieval_vectors(model, gallery["image"])


# ---- stores -------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["auto", "likelihood", "likelihood-cosine"])
def folder(model, gallery, queries, tmp_path_factory, request):
    """Vectors, as the command writes them for the model's own ranking, and what to find."""
    pytest.importorskip("pyarrow", reason="needs pyarrow: make test-interop")
    folder = tmp_path_factory.mktemp(request.param)
    np.save(folder / "gallery.npy", gallery["image"])
    np.save(folder / "query.npy", queries["text"])
    np.save(folder / "ids.npy", IDS)
    by = {"weighting": request.param}
    if request.param == "auto":
        save(model, folder / "model.mvcca")
        for role, view, ids in (("gallery", "image", ["ids.npy"]), ("query", "text", [])):
            for suffix in ("parquet", "arrow"):
                arguments = ["--view", f"{view}={folder / role}.npy", "--vectors", role]
                arguments += ["--ids", str(folder / ids[0])] if ids else []
                arguments += ["-o", str(folder / f"{role}.{suffix}")]
                assert command(["transform", str(folder / "model.mvcca"), *arguments]) == 0
    else:
        write(folder / "gallery", retrieval_vectors(model, gallery, **by)["image"])
        asked = retrieval_vectors(model, queries, role="query", target="image", **by)["text"]
        write(folder / "query", asked, ids=False)
    found = RetrievalIndex(model, **by).add(gallery, IDS).search(queries, "image", k=K)[1]
    (folder / "metric").write_text("cosine" if "cosine" in request.param else "dot")
    return folder, found


def write(path, vectors, ids=True):
    """What the command writes, for a weighting that it cannot be asked for."""
    import pyarrow as pa
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = pa.table(({"id": IDS} if ids else {}) | {"vector": lists})
    parquet.write_table(table, path.with_suffix(".parquet"))
    with pa.ipc.new_file(path.with_suffix(".arrow"), table.schema) as writer:
        writer.write_table(table)


def vectors_of(path):
    from pyarrow import parquet

    column = parquet.read_table(path)["vector"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), -1).astype(np.float32)


def in_faiss(folder, _):  # vectors of a cosine have length 1
    import faiss

    index = faiss.IndexFlatIP(vectors_of(folder / "gallery.parquet").shape[1])
    index.add(vectors_of(folder / "gallery.parquet"))
    return IDS[index.search(vectors_of(folder / "query.parquet"), K)[1]]


def in_usearch(folder, metric):
    from usearch.index import Index

    items = vectors_of(folder / "gallery.parquet")
    index = Index(ndim=items.shape[1], metric="ip" if metric == "dot" else "cos", dtype="f32")
    index.add(np.arange(len(items)), items)
    return IDS[index.search(vectors_of(folder / "query.parquet"), K, exact=True).keys]


def in_duckdb(folder, metric):
    import duckdb

    function = "array_inner_product" if metric == "dot" else "array_cosine_similarity"
    asked = vectors_of(folder / "query.parquet")
    vector = f"FLOAT[{asked.shape[1]}]"
    question = (
        f"SELECT id FROM '{folder / 'gallery.parquet'}' "
        f"ORDER BY {function}(vector::{vector}, ?::{vector}) DESC LIMIT {K}"
    )
    with duckdb.connect() as store:
        answers = [store.execute(question, [query.tolist()]).fetchall() for query in asked]
    return [[name for (name,) in answer] for answer in answers]


LANCEDB = """
import json, sys, lancedb, numpy as np, pyarrow as pa
folder, metric, k = sys.argv[1], sys.argv[2], int(sys.argv[3])
read = lambda name: pa.ipc.open_file(f"{folder}/{name}.arrow").read_all()
gallery, queries = read("gallery"), read("query")["vector"].to_pylist()
def in_float32(table):
    width = table["vector"].type.list_size
    lists = table["vector"].combine_chunks().cast(pa.list_(pa.float32(), width))
    return table.set_column(table.column_names.index("vector"), "vector", lists)
table = lancedb.connect(f"{folder}/lance").create_table("gallery", in_float32(gallery))
searches = [table.search(query).distance_type(metric).limit(k) for query in queries]
print(json.dumps([search.to_arrow()["id"].to_pylist() for search in searches]))
"""


def in_lancedb(folder, metric):  # which starts threads that do not go with tests that fork
    arguments = [sys.executable, "-c", LANCEDB, str(folder), metric, str(K)]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


def in_qdrant(folder, metric):
    from qdrant_client import QdrantClient
    from qdrant_client.models import Distance, VectorParams

    items = vectors_of(folder / "gallery.parquet")
    distance = Distance.DOT if metric == "dot" else Distance.COSINE
    client = QdrantClient(":memory:")
    client.create_collection("gallery", VectorParams(size=items.shape[1], distance=distance))
    client.upload_collection("gallery", items, [{"id": name} for name in IDS])
    answers = [
        client.query_points("gallery", query, limit=K).points
        for query in vectors_of(folder / "query.parquet")
    ]
    return [[point.payload["id"] for point in answer] for answer in answers]


CHROMA = """
import json, sys, chromadb, numpy as np, pyarrow.parquet as pq
folder, metric, k = sys.argv[1], sys.argv[2], int(sys.argv[3])
def read(name):
    table = pq.read_table(f"{folder}/{name}.parquet")
    return table, np.array(table["vector"].to_pylist(), dtype=np.float32)
space = {"hnsw": {"space": "ip" if metric == "dot" else "cosine", "ef_search": 1000}}
client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
gallery = client.create_collection("gallery", configuration=space, embedding_function=None)
table, vectors = read("gallery")
gallery.add(ids=table["id"].to_pylist(), embeddings=vectors)
print(json.dumps(gallery.query(query_embeddings=read("query")[1], n_results=k)["ids"]))
"""


def in_chroma(folder, metric):  # which leaves threads and a client for the whole process
    arguments = [sys.executable, "-c", CHROMA, str(folder), metric, str(K)]
    return json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)


STORES = {
    "faiss": in_faiss,
    "usearch": in_usearch,
    "duckdb": in_duckdb,
    "lancedb": in_lancedb,
    "qdrant_client": in_qdrant,
    "chromadb": in_chroma,
}


@pytest.mark.stores
@pytest.mark.parametrize("name", STORES)
def test_a_store_finds_what_the_index_finds(folder, name):
    if not find_spec(name):
        pytest.skip(f"needs {name}: make test-interop")
    place, expected = folder
    if name == "chromadb" and place.name.startswith("likelihood0"):
        pytest.skip("its graph misses items of other lengths; the guide says to use cosines")
    found = STORES[name](place, (place / "metric").read_text())
    assert_array_equal(np.array(found), expected)


def test_lines_for_pgvector_read_as_the_vectors(folder):
    """The lines that COPY takes; the query needs a server, and is not run here."""
    pgvector = pytest.importorskip("pgvector", reason="needs pgvector: make test-interop")
    vectors = vectors_of(folder[0] / "gallery.parquet")[:20]
    lines = [json.dumps(row.tolist()) for row in vectors]
    read = [pgvector.Vector.from_text(line).to_numpy() for line in lines]
    assert_array_equal(np.array(read, dtype=np.float32), vectors)


# ---- the command --------------------------------------------------------------------------------


def test_lists_and_ids_are_read_back(tmp_path, capsys):
    pytest.importorskip("pyarrow")
    from mvcca import open_matrix

    X = {name: block[:50] for name, block in rows(50, seed=0).items() if name != "sound"}
    model = CCA(3, reg=0.1).fit(X)
    save(model, tmp_path / "model.mvcca")
    np.save(tmp_path / "text.npy", X["text"])
    (tmp_path / "ids.txt").write_text("\n".join(IDS[:50]) + "\n")
    base = ["transform", str(tmp_path / "model.mvcca"), "--view", f"text={tmp_path / 'text.npy'}"]
    named = ["--ids", str(tmp_path / "ids.txt")]
    output = str(tmp_path / "out.parquet")
    assert command([*base, *named, "--block-rows", "20", "-o", output]) == 0
    scores = open_matrix(output, key="vector")
    assert_allclose(scores.read(0, 50), model.transform({"text": X["text"]})["text"], rtol=1e-12)
    table = str(tmp_path / "out.csv")
    assert command([*base, *named, "-o", table]) == 0
    assert (tmp_path / "out.csv").read_text().splitlines()[
        0
    ] == "id,component0,component1,component2"
    assert (tmp_path / "out.csv").read_text().splitlines()[2].startswith("item 007,")
    capsys.readouterr()
    (tmp_path / "ids.txt").write_text("one")
    assert command([*base, *named, "-o", output]) == 1
    assert "ids.txt: expected 50 rows, got 1" in capsys.readouterr().err
    (tmp_path / "ids.txt").write_text("\n".join(IDS[:50]) + "\n")
    assert command([*base, *named, "-o", str(tmp_path / "out.npy")]) == 0
    assert "a .npy file holds no ids" in capsys.readouterr().err
