"""Models in other tools compute what `transform` computes, and their tables are read as views."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

import mvcca
from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    PLS,
    RGCCA,
    AffineMap,
    PerView,
    Procrustes,
    RetrievalIndex,
    SparseCCA,
    SparseDiscriminant,
    Views,
    linear,
    open_matrix,
)
from mvcca.base import MultiViewEstimator
from mvcca.blocks import SourceError
from mvcca.interop import (
    affine_map,
    save_dense,
    save_onnx,
    to_linear,
    views_of_modalities,
    write_scores,
)
from mvcca.interop.migration import fit_migration

WIDTHS = {"image": 7, "text": 6}


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 3))
    return {
        name: 5 + points @ np.random.default_rng(width).normal(size=(3, width))
        + 0.5 * rng.normal(size=(n, width))
        for name, width in WIDTHS.items()
    }  # fmt: skip


LINEAR = {
    "CCA": CCA(3),
    "MVCCA with power": MVCCA(3, power=2),
    "PLS": PLS(3),
    "pipeline": make_pipeline(PerView(make_pipeline(StandardScaler(), PCA(5))), CCA(3, reg=0.1)),
}


@pytest.fixture(scope="module", params=LINEAR)
def model(request):
    return LINEAR[request.param].fit(rows())


def projected(model, X, weighted):
    """Scores; weighted ones up to the length of each row, which does not matter to a cosine."""
    scores = model.transform(X)
    last = model[-1] if hasattr(model, "steps") else model
    if not weighted or not hasattr(last, "expected_correlations_") or last.maps_.power:
        return scores
    rho = last.expected_correlations_
    return {name: rows * np.sqrt(rho / (1 - rho**2)) for name, rows in scores.items()}


# ---- affine maps --------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_affine_maps_project_as_the_estimator(model, weighted):
    X = rows(50, seed=1)
    for name in WIDTHS:
        W, b = affine_map(model, name, weighted=weighted)
        expected = projected(model, {name: X[name]}, weighted)[name]
        assert_allclose(X[name] @ W + b, expected, rtol=1e-9, atol=1e-11)


def test_cosines_of_weighted_maps_rank_as_the_index(model):
    X, queries = rows(300, seed=1), rows(20, seed=2)
    last = model[-1] if hasattr(model, "steps") else model
    by = {"weighting": "likelihood-cosine"}
    if not hasattr(last, "expected_correlations_") or last.maps_.power:
        by = {}
    index = RetrievalIndex(model, **by).add({"image": X["image"]})
    maps = {name: affine_map(model, name) for name in WIDTHS}
    items, asked = X["image"] @ maps["image"][0], queries["text"] @ maps["text"][0]
    items, asked = items + maps["image"][1], asked + maps["text"][1]
    cosines = asked @ (items / np.linalg.norm(items, axis=1, keepdims=True)).T
    found = index.search({"text": queries["text"]}, k=6)[1]
    assert_array_equal(np.argsort(-cosines, axis=1)[:, :6], found)


LABELS = np.arange(200) % 3
FITS = {
    "AffineMap": lambda X: AffineMap(3).fit(X),
    "CCA": lambda X: CCA(3, reg=0.1).fit(X),
    "CFA": lambda X: CFA(3).fit(X),
    "CMOLRS": lambda X: CMOLRS(n_epochs=1, random_state=0).fit(X, LABELS),
    "GCCA": lambda X: GCCA(3, reg=0.1).fit(X),
    "JRL": lambda X: JRL().fit(X, LABELS),
    "LGCFL": lambda X: LGCFL().fit(X, LABELS),
    "MLCCA": lambda X: MLCCA(2).fit(X, LABELS),
    "MVCCA": lambda X: MVCCA(3, power=2).fit(X),
    "MVMLCCA": lambda X: MVMLCCA(2, within="label").fit(X, LABELS),
    "PLS": lambda X: PLS(3).fit(X),
    "Procrustes": lambda X: Procrustes().fit(X),
    "RGCCA": lambda X: RGCCA(2, n_features=3).fit(X),
    "SparseCCA": lambda X: SparseCCA(2, n_features=3, tau=0.5).fit(X),
    "SparseDiscriminant": lambda X: SparseDiscriminant(2, n_features=3).fit(X, LABELS),
}
SPREADS = {"1e-12": (1e-12, 0), "1e15": (1e15, 0), "offset 1e8": (1, 1e8), "both": (1e9, 1e6)}


def moved(scale, offset, n=200, seed=0):
    return {name: scale * (X + offset) for name, X in rows(n, seed).items()}


def test_every_linear_estimator_is_tested():
    public = (getattr(home, name) for home in (mvcca, linear) for name in home.__all__)
    estimators = [kind for kind in public if isinstance(kind, type)]
    project = MultiViewEstimator._projection
    found = {kind.__name__ for kind in estimators if getattr(kind, "_projection", None) is project}
    assert found == set(FITS)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", FITS)
def test_affine_maps_are_the_weights_of_the_model_at_any_scale_and_offset(name, spread):
    with warnings.catch_warnings(action="ignore"):  # some doubt these rows
        model = FITS[name](moved(*SPREADS[spread]))
    for view in WIDTHS:
        W, b = affine_map(model, view, weighted=False)
        power = model.eigenvalues_**2 if name == "MVCCA" else 1.0
        assert_array_equal(W, model.weights_[view] * power)
        mean, exact = model.means_[view].astype(np.longdouble), W.astype(np.longdouble)
        rounding = 4 * np.finfo(float).eps * (np.abs(mean) @ np.abs(exact))
        assert (np.abs(b + mean @ exact) <= rounding).all()


class AllButTheFirst(SelectorMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self):
        return np.arange(self.n_features_in_) > 0


def step_by_step(transformer):
    return make_pipeline(PerView(transformer), CCA(3, reg=0.1))


STEPS = {
    "StandardScaler": StandardScaler(),
    "StandardScaler without means": StandardScaler(with_mean=False),
    "StandardScaler without scales": StandardScaler(with_std=False),
    "MinMaxScaler": MinMaxScaler((-1, 2)),
    "MaxAbsScaler": MaxAbsScaler(),
    "RobustScaler": RobustScaler(),
    "RobustScaler of scales": RobustScaler(with_centering=False),
    "PCA": PCA(5),
    "whitened PCA": PCA(5, whiten=True),
    "IncrementalPCA": IncrementalPCA(5),
    "TruncatedSVD": TruncatedSVD(5, random_state=0),
    "GaussianRandomProjection": GaussianRandomProjection(5, random_state=0),
    "SparseRandomProjection": SparseRandomProjection(5, random_state=0),
    "selection": AllButTheFirst(),
    "passthrough": "passthrough",
    "several": make_pipeline(
        StandardScaler(), "passthrough", AllButTheFirst(), PCA(4), MaxAbsScaler()
    ),
}


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e15])
@pytest.mark.parametrize("name", STEPS)
def test_affine_maps_go_through_the_steps_of_a_pipeline(name, scale):
    model = step_by_step(STEPS[name]).fit(moved(scale, 0))
    X = moved(scale, 0, 50, seed=1)
    for view, scores in model.transform(X).items():
        W, b = affine_map(model, view, weighted=False)
        assert_allclose(X[view] @ W + b, scores, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("name", ["StandardScaler", "MinMaxScaler", "RobustScaler", "PCA"])
def test_maps_through_steps_lose_no_more_at_an_offset_than_the_bias_must(name, offset):
    model = step_by_step(STEPS[name]).fit(moved(1, offset))
    X = moved(1, offset, 50, seed=1)
    for view, scores in model.transform(X).items():
        W, b = affine_map(model, view, weighted=False)
        found = X[view].astype(np.longdouble) @ W.astype(np.longdouble) + b
        rounding = 16 * np.finfo(float).eps * (np.abs(X[view]) @ np.abs(W))
        assert (np.abs(found - scores) <= rounding + 1e-12).all()


def test_maps_of_estimators_before_the_last_one_are_multiplied():
    model = make_pipeline(PLS(4), PerView(StandardScaler()), CCA(2)).fit(rows())
    X = rows(50, seed=1)
    for view, scores in model.transform(X).items():
        W, b = affine_map(model, view, weighted=False)
        assert_allclose(X[view] @ W + b, scores, rtol=1e-9, atol=1e-11)


def test_what_is_no_affine_map_is_refused():
    X, y = rows(), np.arange(200) % 3
    with pytest.raises(ValueError, match="KCCA does not map view 'text' by an affine map"):
        affine_map(KCCA(2).fit(X), "text")
    with pytest.raises(ValueError, match="JRL ranks by inner"):
        affine_map(JRL(1e-3).fit(X, y), "text")
    for model in (CCA(2), LINEAR["pipeline"]):
        with pytest.raises(
            ValueError, match=r"Unknown view 'sound'; the views are \['image', 'text'\]"
        ):
            affine_map(model.fit(X), "sound")


class Cubed(StandardScaler):
    def transform(self, X):
        return super().transform(X) ** 3


@pytest.mark.parametrize(
    "transformer",
    [Normalizer(), FunctionTransformer(np.tanh), MinMaxScaler(clip=True), Cubed()],
    ids=lambda transformer: type(transformer).__name__,
)
def test_a_step_whose_map_is_not_known_to_be_affine_is_named(transformer):
    model = step_by_step(transformer).fit(rows())
    with pytest.raises(
        ValueError, match=f"cannot be read from the step {type(transformer).__name__}"
    ):
        affine_map(model, "text")


# ---- torch, ONNX, sentence-transformers ---------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_layer_projects_as_the_estimator(model, weighted):
    torch = pytest.importorskip("torch")
    text = rows(20, seed=1)["text"]
    layer = to_linear(model, "text", weighted=weighted)
    assert isinstance(layer, torch.nn.Linear)
    with torch.no_grad():
        scores = layer(torch.from_numpy(text)).numpy()
    assert_allclose(scores, projected(model, {"text": text}, weighted)["text"], rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_onnx_graph_projects_as_the_estimator(model, weighted, tmp_path):
    onnx = pytest.importorskip("onnx", reason="needs onnx: pip install 'mvcca[onnx]'")
    from onnx.reference import ReferenceEvaluator

    text = rows(20, seed=1)["text"]
    save_onnx(model, "text", tmp_path / "text.onnx", weighted=weighted)
    onnx.checker.check_model(str(tmp_path / "text.onnx"), full_check=True)
    graph = ReferenceEvaluator(str(tmp_path / "text.onnx"))
    [scores] = graph.run(None, {"text": text.astype(np.float32)})
    expected = projected(model, {"text": text}, weighted)["text"]
    assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


def test_an_onnx_graph_keeps_its_digits_under_a_large_mean(tmp_path):
    pytest.importorskip("onnx", reason="needs onnx: pip install 'mvcca[onnx]'")
    from onnx.reference import ReferenceEvaluator

    X = {name: np.round(1e4 * part) / 1e4 for name, part in moved(1, 1000).items()}
    model = CCA(3).fit(X)
    save_onnx(model, "text", tmp_path / "text.onnx", weighted=False)
    text = X["text"].astype(np.float32)
    [scores] = ReferenceEvaluator(str(tmp_path / "text.onnx")).run(None, {"text": text})
    expected = model.transform({"text": text.astype(float)})["text"]
    assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Of the nearest")
def test_the_map_of_a_migration_is_exported(tmp_path):
    pytest.importorskip("onnx", reason="needs onnx: make test-interop")
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(0)
    old = rng.standard_normal((300, 9)) + 5
    new = old @ rng.standard_normal((9, 7)) + 0.1 * rng.standard_normal((300, 7))
    found = fit_migration(old, new, normalize=False)
    save_onnx(found, "old", tmp_path / "map.onnx")
    graph, rows = ReferenceEvaluator(str(tmp_path / "map.onnx")), old.astype(np.float32)
    assert_allclose(graph.run(None, {"old": rows})[0], found.map_items(old), atol=1e-4)


ONNX_RUNTIME = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
[answer] = session.run(["scores"], {"text": np.load(sys.argv[2])})
np.save(sys.argv[3], answer)
"""


@pytest.mark.stores
def test_a_graph_runs_in_onnxruntime(tmp_path):
    pytest.importorskip("onnx", reason="needs onnx: make test-interop")
    text, model = rows(20, seed=1)["text"], CCA(3).fit(rows())
    save_onnx(model, "text", tmp_path / "text.onnx", weighted=False)
    np.save(tmp_path / "rows.npy", text.astype(np.float32))
    files = [str(tmp_path / name) for name in ("text.onnx", "rows.npy", "scores.npy")]
    program = [sys.executable, "-c", ONNX_RUNTIME, *files]  # its libraries clash with others'
    run = subprocess.run(program, capture_output=True, text=True)
    if "No module named 'onnxruntime'" in run.stderr:
        pytest.skip("needs onnxruntime: make test-interop")
    assert run.returncode == 0, run.stderr
    expected = model.transform({"text": text})["text"]
    assert_allclose(np.load(tmp_path / "scores.npy"), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_dense_module_holds_what_torch_needs(model, weighted, tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file

    save_dense(model, "text", tmp_path / "dense", weighted=weighted)
    config = json.loads((tmp_path / "dense" / "config.json").read_text())
    layer = torch.nn.Linear(config["in_features"], config["out_features"], bias=config["bias"])
    tensors = load_file(tmp_path / "dense" / "model.safetensors")
    layer.load_state_dict({name.removeprefix("linear."): part for name, part in tensors.items()})
    text = rows(20, seed=1)["text"]
    with torch.no_grad():
        scores = layer(torch.from_numpy(text).float()).numpy()
    expected = projected(model, {"text": text}, weighted)["text"]
    assert_allclose(scores, expected, rtol=1e-4, atol=1e-4)


DENSE = """
import sys, numpy as np, torch
from sentence_transformers.models import Dense
module = Dense.load(sys.argv[1])
rows = torch.from_numpy(np.load(sys.argv[2]))
np.save(sys.argv[3], module({"sentence_embedding": rows})["sentence_embedding"].detach().numpy())
"""


@pytest.mark.stores
def test_sentence_transformers_load_the_dense_module(tmp_path):
    text, model = rows(20, seed=1)["text"], CCA(3).fit(rows())
    save_dense(model, "text", tmp_path / "dense", weighted=False)
    np.save(tmp_path / "rows.npy", text.astype(np.float32))
    files = [str(tmp_path / name) for name in ("dense", "rows.npy", "scores.npy")]
    run = subprocess.run([sys.executable, "-c", DENSE, *files], capture_output=True, text=True)
    if "No module named 'sentence_transformers'" in run.stderr:
        pytest.skip("needs sentence-transformers: make test-interop")
    assert run.returncode == 0, run.stderr
    expected = model.transform({"text": text})["text"]
    assert_allclose(np.load(tmp_path / "scores.npy"), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("library", "call", "extra"),
    [
        ("torch", lambda model, _: to_linear(model, "text"), "deep"),
        ("onnx", lambda model, path: save_onnx(model, "text", path / "x"), "onnx"),
    ],
)
def test_a_missing_library_names_its_extra(library, call, extra, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'mvcca\[{extra}\]'"):
        call(CCA(2).fit(rows()), tmp_path)


# ---- Arrow tables and Hugging Face datasets -----------------------------------------------------


def arrow_table(n=60):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mvcca[files]'")
    X = rows(n)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(X["image"].ravel()), 7)
    return pa, X, pa.table({"id": np.arange(n), "image": fixed, "text": X["text"].tolist()})


def test_columns_of_lists_are_views():
    _, X, table = arrow_table()
    views = Views({"image": table.select(["image"]), "words": table.select(["text"])})
    assert views.is_lazy
    assert views.widths == {"image": 7, "words": 6}
    model = CCA(2, reg=0.1).fit(views)
    expected = CCA(2, reg=0.1).fit({"image": X["image"], "words": X["text"]})
    assert_allclose(model.weights_["words"], expected.weights_["words"], rtol=1e-9)
    chosen = np.array([5, 3, 40, 3])
    assert_array_equal(np.asarray(views[chosen]["words"]), X["text"][chosen])
    assert_array_equal(
        np.asarray(Views({"x": table.slice(10).select(["text"])})["x"]), X["text"][10:]
    )
    copied = pickle.loads(pickle.dumps(views["words"]))
    assert_array_equal(copied.read(3, 9), X["text"][3:9])
    assert copied.fingerprint() == views["words"].fingerprint()


def test_columns_of_numbers_are_read_side_by_side():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1, 2, 3], "b": pa.array([0.5, 1.5, 2.5], pa.float32())})
    block = Views({"x": table, "y": table})["x"]
    assert block.columns == ("a", "b")
    assert_array_equal(np.asarray(block), [[1, 0.5], [2, 1.5], [3, 2.5]])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [3.0]], "expected lists of 2 numbers in column 'x', as in row 0"),
        ([[1.0, 2.0], [3.0, None]], "values are missing in column 'x', first in row 1"),
        ([[1.0], None], "lists of 1 numbers in column 'x'|values are missing"),
        ([1, None], "values are missing in column 'x'"),
        (["a", "b"], "expected columns of numbers or of lists of numbers, got string in 'x'"),
        ([["a"], ["b"]], "got list<.*string> in 'x'"),
    ],
)
def test_columns_that_are_no_matrix_are_refused(column, message):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=message):
        Views({"x": pa.table({"x": column}), "y": np.zeros((2, 1))}).in_memory()


@pytest.mark.stores
def test_datasets_are_read_as_they_are_selected_and_shuffled():
    datasets = pytest.importorskip("datasets", reason="needs datasets: make test-interop")
    _, X, table = arrow_table()
    dataset = datasets.Dataset.from_dict({name: table[name].to_pylist() for name in ("id", "text")})
    chosen = dataset.shuffle(seed=0).select(range(40))
    view = Views([chosen.select_columns(["text"])] * 2)["view0"]
    assert view.shape == (40, 6)
    assert_array_equal(np.asarray(view), X["text"][chosen["id"]])
    assert_array_equal(view.read(7, 9), X["text"][chosen["id"]][7:9])
    assert pickle.loads(pickle.dumps(view)).fingerprint() == view.fingerprint()


def test_a_column_of_a_parquet_file_is_chosen_by_its_name(tmp_path):
    _, X, table = arrow_table()
    from pyarrow import parquet

    parquet.write_table(table.drop_columns(["text"]), tmp_path / "x.parquet")
    assert_array_equal(np.asarray(open_matrix(tmp_path / "x.parquet", key="image")), X["image"])
    with pytest.raises(SourceError, match="no column 'sound'; its columns are 'id', 'image'"):
        open_matrix(tmp_path / "x.parquet", key="sound")


# ---- AnnData and MuData -------------------------------------------------------------------------


def cells():
    anndata = pytest.importorskip("anndata", reason="needs anndata: pip install 'mvcca[anndata]'")
    X = rows(60)
    names = [f"cell {i}" for i in range(60)]
    rna = anndata.AnnData(X["image"], obsm={"X_pca": X["image"][:, :3]})
    protein = anndata.AnnData(X["text"][5:][::-1])
    rna.obs_names, protein.obs_names = names, names[5:][::-1]
    return X, rna, protein


def test_modalities_are_views_and_get_scores_and_weights():
    mudata = pytest.importorskip("mudata", reason="needs mudata: pip install 'mvcca[anndata]'")
    X, rna, protein = cells()
    with warnings.catch_warnings(action="ignore"):  # mudata 0.3 warns of changes to come
        both = mudata.MuData({"rna": rna, "protein": protein})
    views = views_of_modalities(both)
    place = {name: i for i, name in enumerate(views.ids)}
    assert len(views) == 60
    assert views.seen.sum(axis=0).tolist() == [60, 55]
    model = MVCCA(2).fit(views)
    write_scores(both, model)
    expected = model.transform({"rna": X["image"], "protein": X["text"]})
    assert_allclose(both.mod["rna"].obsm["X_mvcca"], expected["rna"], rtol=1e-9)
    assert_allclose(both.mod["protein"].obsm["X_mvcca"], expected["protein"][5:][::-1], rtol=1e-9)
    assert_array_equal(both.mod["rna"].varm["X_mvcca"], model.weights_["rna"])
    assert both.uns["X_mvcca"]["estimator"] == "MVCCA()"
    assert_array_equal(views["rna"][place["cell 7"]], X["image"][7])
    assert {type(value) for value in both.uns["X_mvcca"].values()} == {str, np.ndarray}


def test_arrays_of_one_anndata_are_views():
    X, rna, _ = cells()
    rna.obsm["protein"] = X["text"]
    use = {"rna": "X_pca", "protein": "protein"}
    views = views_of_modalities(rna, use)
    assert views.ids.tolist() == rna.obs_names.tolist()
    model = make_pipeline(PerView(StandardScaler()), CCA(2)).fit(views)
    write_scores(rna, model, use=use, key="cca")
    expected = model.transform({"rna": X["image"][:, :3], "protein": X["text"]})
    for name in use:
        assert_allclose(rna.obsm[f"cca_{name}"], expected[name], rtol=1e-9)
    assert "cca_rna" not in rna.varm
    assert_allclose(rna.uns["cca"]["canonical_correlations"], model[-1].canonical_correlations_)


TAKES_VIEWS = {
    "Views": Views,
    "fit": lambda X: CCA(2).fit(X),
    "compare": lambda X: mvcca.compare("cca", X),
    "evaluate_retrieval": lambda X: mvcca.evaluate_retrieval(X),
    "aligned": Views.aligned,
}


@pytest.mark.parametrize("taken_by", TAKES_VIEWS)
def test_containers_of_cells_are_refused_where_views_are_taken(taken_by):
    _, rna, protein = cells()
    with pytest.raises(TypeError, match=r"View 'rna': .*got AnnData.* by .*views_of_modalities"):
        TAKES_VIEWS[taken_by]({"rna": rna, "protein": protein})
    mudata = pytest.importorskip("mudata", reason="needs mudata: pip install 'mvcca[anndata]'")
    with warnings.catch_warnings(action="ignore"):
        both = mudata.MuData({"rna": rna, "protein": protein})
    with pytest.raises(TypeError, match=r"got MuData. Pass mvcca\.interop\.views_of_modalities"):
        TAKES_VIEWS[taken_by](both)


def test_a_container_of_cells_is_no_lone_matrix_either():
    X, rna, protein = cells()
    with pytest.raises(TypeError, match=r"got AnnData.* data\.X or data\.obsm"):
        CCA(2).fit(rna, protein)
    model = CCA(2, reg=0.1).fit({"rna": X["image"], "protein": X["text"]})
    with pytest.raises(TypeError, match="got AnnData"):
        model.transform({"rna": rna})


def test_what_is_not_there_is_named():
    _, rna, _ = cells()
    with pytest.raises(ValueError, match=r"AnnData needs `use`.* its keys are \['X_pca'\]"):
        views_of_modalities(rna)
    with pytest.raises(ValueError, match=r"no 'X_umap' in \.obsm"):
        views_of_modalities(rna, {"rna": "X_umap"})
    with pytest.raises(TypeError, match="Expected MuData or AnnData, got dict"):
        views_of_modalities({"rna": np.ones((2, 2))})
