"""Single cells: CCA of two data sets against the plain formula, neighbours and labels."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import reduce
from operator import add
from threading import Timer
from types import ModuleType

import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from mvcca import config_context, open_matrix
from mvcca.blocks import as_block
from mvcca.datasets import make_cells
from mvcca.interop import integrate_cells
from mvcca.linear import cell_cca
from mvcca.linear.cell_rows import FeatureMoments, PreparedRows, StandardizedRows
from mvcca.machine import compiled_loops
from mvcca.retrieval import mutual_neighbors, transfer_labels

NAMES = ("reference", "query")


def logarithmic(counts):
    rows = counts.astype(np.float64)
    return sp.csr_array(rows.multiply(1e4 / rows.sum(axis=1)[:, None])).log1p()


@pytest.fixture(scope="module")
def cells():
    """Two data sets of 90 and 70 cells, 120 genes, of which the first two are constant."""
    data = make_cells((90, 70), n_genes=120, n_types=4, n_markers=15, depth=60, random_state=0)
    both = [logarithmic(data.views[name]).tolil() for name in NAMES]
    for rows in both:
        rows[:, 0] = 0
        rows[:, 1] = 2.5
    return [sp.csr_array(rows) for rows in both]


def standardised(X, max_z):
    """Dense rows of mean 0 and norm 1, of z-scores if `max_z` is given."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    if max_z is not None:
        deviation = X.std(axis=0, ddof=1)
        deviation[deviation == 0] = np.inf
        X = np.minimum((X - X.mean(axis=0)) / deviation, max_z)
    X = X - X.mean(axis=1, keepdims=True)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def same_up_to_sign(A, B):
    return np.abs(np.abs(A) - np.abs(B)).max()


@pytest.mark.parametrize("max_z", [None, 10.0, 1.5])
def test_components_are_the_singular_vectors_of_the_correlations_between_cells(cells, max_z):
    shared = cell_cca(*cells, n_components=12, max_z=max_z)
    X, Y = (standardised(rows, max_z) for rows in cells)
    correlations = np.corrcoef(X, Y)[: len(X), len(X) :]
    U, sigma, Vt = np.linalg.svd(correlations)
    np.testing.assert_allclose(shared.singular_values, sigma[:12], rtol=1e-8)
    u, v = (shared.transform(X, n, normalize=False) for X, n in zip(cells, NAMES, strict=True))
    assert same_up_to_sign(u, U[:, :12]) < 1e-8
    assert same_up_to_sign(v, Vt[:12].T) < 1e-8
    np.testing.assert_allclose(np.diag(u.T @ correlations @ v), sigma[:12], rtol=1e-8)


def test_gene_weights_are_the_expression_of_a_component_in_the_other_data_set(cells):
    shared = cell_cca(*cells, n_components=5)
    Y = standardised(cells[1], 10.0)
    v = shared.transform(cells[1], "query", normalize=False)
    np.testing.assert_allclose(
        shared.weights["reference"], Y.T @ v / shared.singular_values, atol=1e-10
    )


def test_signs_are_fixed_by_the_largest_gene_weight(cells):
    shared = cell_cca(*cells, n_components=5)
    stacked = np.concatenate(list(shared.weights.values()))
    assert (stacked[np.abs(stacked).argmax(axis=0), np.arange(5)] > 0).all()


def test_scores_have_norm_one_unless_asked_otherwise(cells):
    shared = cell_cca(*cells, n_components=5)
    scores = shared.transform(cells[0], "reference")
    np.testing.assert_allclose(np.linalg.norm(scores, axis=1), 1)
    plain = shared.transform(cells[0], "reference", normalize=False)
    np.testing.assert_allclose(plain.T @ plain, np.eye(5), atol=1e-8)


@pytest.mark.parametrize("max_z", [None, 10.0])
def test_every_storage_gives_the_same_components(cells, max_z, tmp_path):
    expected = cell_cca(*cells, n_components=6, max_z=max_z)
    score = expected.transform(cells[0], "reference")
    forms = {"dense": [X.toarray() for X in cells]}
    forms["frame"] = [pd.DataFrame(X) for X in forms["dense"]]
    forms["dask"] = [da.from_array(X, chunks=(20, -1)) for X in forms["dense"]]
    for name, X in zip(NAMES, cells, strict=True):
        sp.save_npz(tmp_path / f"{name}.npz", X)
        np.save(tmp_path / f"{name}.npy", X.toarray())
    forms["npz"] = [open_matrix(tmp_path / f"{name}.npz") for name in NAMES]
    forms["memory map"] = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in NAMES]
    for form, (X, Y) in forms.items():
        with config_context(block_rows=16):
            shared = cell_cca(X, Y, n_components=6, max_z=max_z)
            found = shared.transform(X, "reference")
        np.testing.assert_allclose(
            shared.singular_values, expected.singular_values, rtol=1e-10, err_msg=form
        )
        np.testing.assert_allclose(found, score, atol=1e-8, err_msg=form)


def test_float32_counts_are_summed_in_float64(cells):
    X, Y = (rows.astype(np.float32) for rows in cells)
    shared = cell_cca(X, Y, n_components=6)
    wide = cell_cca(X.astype(np.float64), Y.astype(np.float64), n_components=6)
    np.testing.assert_allclose(shared.singular_values, wide.singular_values, rtol=1e-12)


def test_sums_of_batches_are_the_sum_of_all(cells):
    rows = as_block(cells[0])
    moments = reduce(add, [FeatureMoments.of(rows.take(slice(i, i + 25))) for i in (0, 25, 50, 75)])
    whole = FeatureMoments.of(rows)
    np.testing.assert_allclose(moments.mean, whole.mean, atol=1e-14)
    np.testing.assert_allclose(moments.squares, whole.squares, atol=1e-12)
    prepared = PreparedRows.of("cells", rows, None, 10.0)
    parts = [StandardizedRows.of(rows.take(slice(i, i + 25)), prepared) for i in (0, 25, 50, 75)]
    X = standardised(cells[0], 10.0)
    np.testing.assert_allclose(reduce(add, parts).scatter(), X.T @ X, atol=1e-12)


def test_rows_far_from_zero_and_nearly_full_rows_keep_their_digits():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 40), density=0.2, rng=rng, format="csr").toarray()
    X[5] = 1000 + rng.normal(size=40)
    X[6] = 1e-8 * rng.random(40)
    rows = as_block(sp.csr_array(X))
    found = StandardizedRows.of(rows, PreparedRows.of("cells", rows, None, None)).scatter()
    Z = standardised(X, None)
    np.testing.assert_allclose(found, Z.T @ Z, atol=1e-9)


def test_compiled_products_are_those_of_the_matrix():
    X = sp.random_array((30, 17), density=0.3, rng=np.random.default_rng(0), format="csr")
    X.sort_indices()
    columns, sums = X.tocsc(), np.ones((19, 19))
    compiled_loops.add_upper_products(
        columns.indptr, columns.indices, X.indptr, X.indices.view(np.uint32), X.data, sums
    )
    expected = np.ones((19, 19))
    expected[:17, :17] += np.triu(X.toarray().T @ X.toarray())
    np.testing.assert_allclose(sums, expected)


def test_sums_of_float32_columns_are_taken_in_float64():
    X = sp.random_array((40_000, 3), density=0.5, dtype=np.float32, format="csr")
    expected = X.astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(as_block(X).column_sums(), expected, rtol=1e-14)


# ---- genes -------------------------------------------------------------------------------------


def test_genes_are_found_by_name(cells):
    names = [f"g{i}" for i in range(120)]
    order = np.random.default_rng(0).permutation(120)
    used = names[1::2]
    shuffled = cells[1][:, order]
    shared = cell_cca(
        cells[0],
        shuffled,
        5,
        genes=used,
        gene_names=(names, [names[i] for i in order]),
    )
    expected = cell_cca(*(X[:, 1::2] for X in cells), 5)
    np.testing.assert_allclose(shared.singular_values, expected.singular_values, rtol=1e-10)
    np.testing.assert_allclose(
        shared.transform(shuffled, "query"), expected.transform(cells[1][:, 1::2], "query")
    )
    assert shared.genes == tuple(used)


def test_different_genes_are_refused_with_a_remedy_that_works(cells):
    frames = [pd.DataFrame(X.toarray(), columns=[f"g{i}" for i in range(120)]) for X in cells]
    names, other_names = frames[0].columns, frames[1].columns[::-1][:100]
    other = frames[1][other_names]
    message = r"same genes in the same order; .*'g0'.* one of them only\. Use the 100 genes of both"
    with pytest.raises(ValueError, match=message):
        cell_cca(frames[0], other)
    with pytest.raises(ValueError, match="their order differs"):
        cell_cca(frames[0], frames[1][names[::-1]])
    both = [g for g in names if g in other_names]
    assert cell_cca(frames[0], other, 4, genes=both).genes == tuple(both)
    with pytest.raises(ValueError, match="share none"):
        cell_cca(frames[0], frames[1].rename(columns=lambda g: f"{g}-1"))
    with pytest.raises(ValueError, match="120 columns in reference and 100 in query"):
        cell_cca(cells[0], cells[1][:, :100])
    with pytest.raises(ValueError, match="1 of 2 genes are not in query: 'g3'"):
        cell_cca(frames[0], frames[1].drop(columns="g3"), genes=["g2", "g3"])
    twice = (["a", *names[1:-1], "a"], ["a", *names[1:]])
    with pytest.raises(ValueError, match="reference has several columns 'a'"):
        cell_cca(*cells, genes=["a", "g4"], gene_names=twice)
    with pytest.raises(ValueError, match="columns of reference have none"):
        cell_cca(*cells, genes=["g1"])


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_cells_with_equal_genes_are_refused_by_their_rows(cells, form):
    X = cells[0].toarray()[:, 2:]
    X[[7, 31]] = 0
    X[12] = 0.1
    with pytest.raises(ValueError, match=r"reference: .* in 3 of the rows .*\(rows 7, 12, 31\)"):
        cell_cca(form(X), form(cells[1].toarray()[:, 2:]), max_z=None)


def test_bad_values_and_parameters_are_refused(cells):
    X = cells[0].toarray()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match=r"'reference'.*NaN"):
        cell_cca(X, cells[1])
    with pytest.raises(ValueError, match="n_components must be an integer from 1 on, got 0"):
        cell_cca(*cells, 0)
    with pytest.raises(ValueError, match="max_z must be positive or None, got -1"):
        cell_cca(*cells, max_z=-1)
    shared = cell_cca(*cells, 3)
    with pytest.raises(ValueError, match="name must be 'reference' or 'query', got 'x'"):
        shared.transform(cells[0], "x")
    with pytest.raises(ValueError, match="fitted with 120 columns, got 119"):
        shared.transform(cells[0][:, 1:], "query")


def test_fewer_components_than_asked_for_are_warned_of(cells):
    with pytest.warns(UserWarning, match="is more than these data have; fitted 3"):
        shared = cell_cca(cells[0][:3], cells[1], 5, max_z=None)
    assert shared.transform(cells[1], "query").shape == (70, 3)


def test_progress_is_shown_for_every_pass(cells, capsys):
    with config_context(progress=True, block_rows=30):
        cell_cca(*cells, 3)
    assert capsys.readouterr().err.count("100%") == 4


def test_an_interrupted_pass_is_resumed(cells, tmp_path, monkeypatch):
    for name, X in zip(NAMES, cells, strict=True):
        sp.save_npz(tmp_path / f"{name}.npz", X)
    sources = [open_matrix(tmp_path / f"{name}.npz") for name in NAMES]
    expected = cell_cca(*cells, 4)
    check, done = PreparedRows._check_constant, []

    def interrupted(*arguments):  # called for every block
        done.append(1)
        if len(done) == 8:
            raise KeyboardInterrupt
        check(*arguments)

    monkeypatch.setattr(PreparedRows, "_check_constant", interrupted)
    monkeypatch.setattr("mvcca.statistics.passes._checkpoint._SECONDS", 0)
    with config_context(checkpoint=tmp_path / "checkpoint", block_rows=15):
        with pytest.raises(KeyboardInterrupt):
            cell_cca(*sources, 4)
        resumed = cell_cca(*sources, 4)
    assert len(done) == 8 + 4  # of 6 blocks of the reference and 5 of the query
    assert not any((tmp_path / "checkpoint").iterdir())
    np.testing.assert_allclose(resumed.singular_values, expected.singular_values, rtol=1e-10)


@pytest.mark.slow
def test_ctrl_c_is_answered_within_two_seconds():
    rng = np.random.default_rng(0)
    X, Y = (sp.random_array((4000, 2000), density=0.1, rng=rng, format="csr") for _ in range(2))
    cell_cca(X[:100], Y[:100], 2)  # compiles
    for delay in (0.3, 2.0):
        sent = []

        def send(sent=sent):
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = Timer(delay, send)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            cell_cca(X, Y, 10)
        assert time.perf_counter() - sent[0] < 2


# ---- shared components, neighbours and labels ----------------------------------------------------


@pytest.mark.parametrize("batch", [0.0, 1.0])
def test_components_beyond_noise_are_as_many_as_types_need(batch):
    data = make_cells((500, 400), n_genes=500, n_types=6, batch=batch, random_state=1)
    shared = cell_cca(*(logarithmic(data.views[name]) for name in NAMES), 12)
    assert shared.n_shared == 5


def test_no_components_are_shared_by_unrelated_data():
    rng = np.random.default_rng(0)
    X, Y = (rng.normal(size=(300, 100)) for _ in range(2))
    assert cell_cca(X, Y, 10).n_shared == 0


@pytest.fixture(scope="module")
def planted():
    data = make_cells((600, 400), n_genes=500, n_types=5, random_state=0)
    rows = [logarithmic(data.views[name]) for name in NAMES]
    shared = cell_cca(*rows, 20)
    scores = [shared.transform(X, n) for X, n in zip(rows, NAMES, strict=True)]
    return shared, scores, [data.labels[name] for name in NAMES]


def test_labels_are_transferred_to_planted_cells(planted):
    shared, scores, (known, wanted) = planted
    X, Y = (rows[:, : shared.n_shared] for rows in scores)
    found, votes = transfer_labels(X, known, Y)
    assert (found == wanted).mean() > 0.99
    assert ((votes > 0.5) & (votes <= 1 + 1e-12)).all()


def test_a_type_that_the_reference_lacks_is_mostly_unassigned():
    data = make_cells((1200, 800), n_genes=800, n_types=8, random_state=0)
    X, Y = (logarithmic(data.views[name]) for name in NAMES)
    kept = data.labels["reference"] != "type 0"
    known, wanted = data.labels["reference"][kept], data.labels["query"]
    shared = cell_cca(X[kept], Y, 20)
    found, _ = transfer_labels(
        shared.transform(X[kept], "reference"), known, shared.transform(Y, "query")
    )
    lacking = wanted == "type 0"
    assert (found[~lacking] == wanted[~lacking]).mean() > 0.97
    assert (found[lacking] == "unassigned").mean() > 0.8


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_votes_are_those_of_a_loop(similarity):
    rng = np.random.default_rng(0)
    X, Y, labels = rng.normal(size=(40, 3)), rng.normal(size=(15, 3)), rng.integers(3, size=40)
    found, votes = transfer_labels(
        X, labels, Y, k=7, threshold=0.6, unassigned=-1, similarity=similarity
    )
    if similarity == "cosine":
        X, Y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Y))
    for y, label, vote in zip(Y, found, votes, strict=True):
        distances = np.linalg.norm(X - y, axis=1)
        order = np.argsort(distances)[:8]
        d = distances[order]
        of_class = np.zeros(3)
        for i in range(7):
            of_class[labels[order[i]]] += (d[7] - d[i]) / (d[7] - d[0])
        of_class /= of_class.sum()
        assert vote == pytest.approx(of_class.max())
        assert label == (of_class.argmax() if vote >= 0.6 else -1)


def test_one_vote_of_the_nearest_is_that_of_scikit_learn():
    rng = np.random.default_rng(1)
    X, Y, labels = rng.normal(size=(50, 4)), rng.normal(size=(20, 4)), rng.integers(4, size=50)
    found, _ = transfer_labels(X, labels, Y, k=1, unassigned=-1, similarity="euclidean")
    expected = KNeighborsClassifier(1).fit(X, labels).predict(Y)
    np.testing.assert_array_equal(found, expected)


def test_neighbors_at_equal_distances_vote_alike():
    found, votes = transfer_labels(
        np.ones((5, 2)), list("aabbb"), np.ones((1, 2)), k=4, threshold=0.0
    )
    assert votes[0] == 0.5
    assert found[0] == "a"


def test_labels_that_do_not_fit_are_refused():
    X, labels = np.eye(4), ["a", "b", "a", "b"]
    with pytest.raises(ValueError, match=r"one label per reference row, got shape \(3,\)"):
        transfer_labels(X, labels[:3], X, k=2)
    with pytest.raises(ValueError, match="labels are missing, first in row"):
        transfer_labels(X, [*labels[:3], None], X, k=2)
    with pytest.raises(ValueError, match="'a' is a label of the reference"):
        transfer_labels(X, labels, X, k=2, unassigned="a")
    with pytest.raises(ValueError, match="does not have the type of the labels, int64"):
        transfer_labels(X, np.arange(4), X, k=2)
    with pytest.raises(ValueError, match="threshold must lie between 0 and 1, got 2"):
        transfer_labels(X, labels, X, k=2, threshold=2)
    with pytest.raises(ValueError, match="from 1 to 4"):
        transfer_labels(X, labels, X, k=4)
    with pytest.raises(ValueError, match="'cosine' or 'euclidean', got 'inner'"):
        transfer_labels(X, labels, X, k=2, similarity="inner")


def test_mutual_neighbors_are_those_of_scikit_learn(planted):
    _, (X, Y), _ = planted
    pairs, scores = mutual_neighbors(X, Y, k=4)
    of_x = NearestNeighbors(n_neighbors=4).fit(Y).kneighbors(X, return_distance=False)
    of_y = NearestNeighbors(n_neighbors=4).fit(X).kneighbors(Y, return_distance=False)
    expected = [(i, j) for i in range(len(X)) for j in sorted(of_x[i]) if i in of_y[j]]
    assert expected == list(map(tuple, pairs.tolist()))
    np.testing.assert_allclose(scores, (X[pairs[:, 0]] * Y[pairs[:, 1]]).sum(axis=1))


def test_mutual_neighbors_have_the_same_type(planted):
    shared, scores, (known, wanted) = planted
    X, Y = (rows[:, : shared.n_shared] for rows in scores)
    pairs, _ = mutual_neighbors(X, Y, k=10)
    assert (known[pairs[:, 0]] == wanted[pairs[:, 1]]).mean() > 0.98


# ---- AnnData -----------------------------------------------------------------------------------


class Annotated:
    """What `integrate_cells` uses of AnnData, where that is not installed."""

    def __init__(self, X, names):
        self.X, self.var_names = X, pd.Index(names)
        self.obsm, self.layers, self.uns = {}, {"log": X}, {}


@pytest.fixture(params=["AnnData", "its interface"])
def annotated(request, cells):
    names = [f"g{i}" for i in range(120)]
    if request.param == "its interface":
        return [Annotated(X, names) for X in cells]
    anndata = pytest.importorskip("anndata", reason="needs anndata: pip install 'mvcca[anndata]'")
    return [
        anndata.AnnData(X, var=pd.DataFrame(index=names), layers={"log": X.copy()}) for X in cells
    ]


def test_scores_are_written_to_annotated_data(annotated, cells):
    reference, query = annotated
    shared = integrate_cells(reference, query, 5, key="X_shared")
    expected = cell_cca(*cells, 5)
    assert shared.genes == tuple(reference.var_names)
    for data, X, name in zip(annotated, cells, NAMES, strict=True):
        np.testing.assert_allclose(data.obsm["X_shared"], expected.transform(X, name), atol=1e-10)
        assert data.uns["X_shared"]["n_shared"] == expected.n_shared
    again = integrate_cells(reference, query, 5, layer="log", genes=reference.var_names[::-1])
    np.testing.assert_allclose(again.singular_values, expected.singular_values)


def test_other_data_are_refused(annotated):
    with pytest.raises(TypeError, match="query: expected AnnData, got ndarray"):
        integrate_cells(annotated[0], np.eye(3))


# ---- .h5ad files, as their published format has them -------------------------------------------


def write_h5ad(path, X, names, kind="csr"):
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"encoding-type": f"{kind}_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = X.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(X, part)
        var = file.create_group("var")
        var.attrs["_index"] = "_index"
        var["_index"] = np.array(names, dtype=h5py.string_dtype())
        file["layers/dense"] = X.toarray()
    return path


def test_files_of_anndata_are_read_in_blocks_with_the_names_of_their_genes(cells, tmp_path):
    names = [f"g{i}" for i in range(120)]
    paths = [
        write_h5ad(tmp_path / f"{name}.h5ad", X, names)
        for name, X in zip(NAMES, cells, strict=True)
    ]
    reference, query = (open_matrix(path) for path in paths)
    assert reference.is_sparse
    assert reference.columns == tuple(names)
    assert (reference.read(3, 50) != cells[0][3:50]).nnz == 0
    with config_context(block_rows=16):
        shared = cell_cca(reference, query, 5, genes=names[::-2])
        scores = shared.transform(query, "query")
    expected = cell_cca(*(X[:, ::-2] for X in cells), 5)
    np.testing.assert_allclose(shared.singular_values, expected.singular_values, rtol=1e-10)
    np.testing.assert_allclose(scores, expected.transform(cells[1][:, ::-2], "query"), atol=1e-8)
    dense = open_matrix(paths[0], "layers/dense")
    assert not dense.is_sparse
    assert dense.columns == tuple(names)
    with pytest.raises(ValueError, match=r"no matrix 'raw'; there are \['X', 'layers/dense'\]"):
        open_matrix(paths[0], "raw")


def test_matrices_by_columns_and_damaged_files_are_refused(cells, tmp_path):
    names = [f"g{i}" for i in range(120)]
    by_columns = write_h5ad(tmp_path / "csc.h5ad", cells[0].tocsc(), names, kind="csc")
    with pytest.raises(ValueError, match=r"got csc\. Write it again with adata\.X\.?"):
        open_matrix(by_columns)
    damaged = cells[0].copy()
    damaged.indices = damaged.indices.copy()
    damaged.indices[5] = 500
    source = open_matrix(write_h5ad(tmp_path / "damaged.h5ad", damaged, names))
    with pytest.raises(ValueError, match=r"is damaged: rows 0 to 10 name columns .* of 120"):
        source.read(0, 10)
    (tmp_path / "text.h5ad").write_text("cells")
    with pytest.raises(ValueError, match=r"text\.h5ad.*: cannot be read"):
        open_matrix(tmp_path / "text.h5ad")


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_sparse_matrices_of_backed_anndata_are_opened_again(cells, tmp_path, monkeypatch, mode):
    class CSRDataset:
        """What is used of the class, where AnnData is not installed."""

        def __init__(self, group):
            self.group, self.shape = group, tuple(group.attrs["shape"])

    library = ModuleType("anndata.abc")
    library.CSRDataset = library.CSCDataset = CSRDataset
    monkeypatch.setitem(sys.modules, "anndata.abc", library)
    path = write_h5ad(tmp_path / "cells.h5ad", cells[0], [f"g{i}" for i in range(120)])
    with h5py.File(path, mode) as file:
        backed = CSRDataset(file["X"])
        if mode == "r+":
            with pytest.raises(ValueError, match="open for writing"):
                as_block(backed)
            return
        rows = as_block(backed)
        assert rows.is_lazy
        assert rows.is_sparse
        assert (rows.plain().matrix != cells[0]).nnz == 0


def test_backed_anndata_are_read_in_blocks(cells, tmp_path):
    anndata = pytest.importorskip("anndata", reason="needs anndata: pip install 'mvcca[anndata]'")
    backed = []
    for name, X in zip(NAMES, cells, strict=True):
        anndata.AnnData(X).write_h5ad(tmp_path / f"{name}.h5ad")
        backed.append(anndata.read_h5ad(tmp_path / f"{name}.h5ad", backed="r"))
    assert as_block(backed[0].X).is_lazy
    shared = integrate_cells(*backed, 5)
    np.testing.assert_allclose(shared.singular_values, cell_cca(*cells, 5).singular_values)
    assert backed[1].obsm["X_cca"].shape == (70, 5)
