"""Every public function that takes rows takes them in every type that `CCA.fit` takes."""

from __future__ import annotations

import inspect
from functools import cache
from importlib import import_module
from numbers import Number

import numpy as np
import pandas as pd
import pytest
from estimators import LONG

import mvcca
from mvcca import (
    CCA,
    RGCCA,
    FoldSearchCV,
    RetrievalIndex,
    Views,
    compose,
    inspection,
    measures,
    model_selection,
    plotting,
    retrieval,
)
from mvcca.interop.alignment import align_unpaired
from mvcca.interop.migration import fit_migration
from mvcca.interop.representations import LayerSums, compare_representations

N = 48
pytestmark = pytest.mark.filterwarnings("ignore")  # few rows, weak maps: types count here


def integers():
    """Two views of small integers, which all types hold."""
    rng = np.random.default_rng(0)
    shared = rng.integers(-2, 3, (N, 2))
    return {
        name: shared @ rng.integers(-2, 3, (2, d)) + rng.integers(-3, 4, (N, d))
        for name, d in (("a", 4), ("b", 3))
    }


def strided(X):
    wide = np.zeros((2 * len(X), 2 * X.shape[1]))
    wide[::2, ::2] = X
    return wide[::2, ::2]


def read_only(X):
    X = X.astype(float)
    X.flags.writeable = False
    return X


def in_torch(name, **options):
    def convert(X):
        torch = pytest.importorskip("torch")
        return torch.tensor(X, dtype=getattr(torch, name), **options)

    return convert


TYPES = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "int64": lambda X: X,
    "int8": lambda X: X.astype(np.int8),
    "uint8": lambda X: (X + 20).astype(np.uint8),
    "bool": lambda X: X > 0,
    "big-endian floats": lambda X: X.astype(">f8"),
    "big-endian integers": lambda X: X.astype(">i4"),
    "object": lambda X: X.astype(float).astype(object),
    "strided": strided,
    "reversed": lambda X: X[::-1, ::-1].astype(float)[::-1, ::-1],
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "list": lambda X: X.astype(float).tolist(),
    "list of integers": lambda X: X.tolist(),
    "DataFrame": lambda X: pd.DataFrame(X.astype(float)),
    "DataFrame of integers": lambda X: pd.DataFrame(X.astype(np.int8)),
    "torch float64": in_torch("float64"),
    "torch float32": in_torch("float32"),
    "torch float16": in_torch("float16"),
    "torch bfloat16": in_torch("bfloat16"),
    "torch int64": in_torch("int64"),
    "torch bool": lambda X: in_torch("bool")(X > 0),
    "torch with gradients": in_torch("float64", requires_grad=True),
}


def as_floats(kind, X):
    """The same numbers in float64."""
    if "bool" in kind:
        return (X > 0).astype(float)
    return X + 20.0 if kind == "uint8" else X.astype(float)


LABELS = (integers()["a"][:, 0] > 0).astype(int)
FLOATS = {name: X.astype(float) for name, X in integers().items()}
MODEL = CCA(n_components=2).fit(FLOATS)
SCORES = MODEL.transform(FLOATS)
RELEVANT = np.arange(N)[:, None] % 3 == np.arange(3)
PAIRS = np.stack([np.arange(30)] * 2, axis=1)


def numbers(table):
    return table.to_frame().select_dtypes("number").to_numpy()


def fitted(estimator, d):
    """Scores, or predictions of those that have none."""
    estimator = estimator.fit(d, LABELS) if takes_labels(estimator) else estimator.fit(d)
    if hasattr(estimator, "transform"):
        return estimator.transform(d)
    return estimator.predict({"a": d["a"]})


def takes_labels(estimator):
    return type(estimator).__name__ in ("MLCCA", "MVMLCCA", "JRL", "LGCFL", "CMOLRS")


def found(index, d):
    return index.add({"a": d["a"]}).search({"b": d["b"]}, k=3)[0]


def twice(d):
    return {"x": d["b"], "y": d["b"]}


def bank(d):
    return (d["b"], d["b"])


ESTIMATORS = {
    name: (lambda d, name=name: fitted(getattr(mvcca, name)(), d))
    for name in ("CCA", "MVCCA", "GCCA", "PLS", "CFA", "KCCA", "NCCA", "Procrustes", "AffineMap",
                 "MLCCA", "MVMLCCA", "JRL", "LGCFL")  # CMOLRS draws at random
}  # fmt: skip
CASES = ESTIMATORS | {
    # estimators and searches
    "CCA.partial_fit": lambda d: CCA(n_components=2).partial_fit(d).weights_,
    "CCA.score": lambda d: MODEL.score(d),
    "CCA.missing": lambda d: CCA(missing="em").fit(d).canonical_correlations_,
    "FoldSearchCV": lambda d: (
        FoldSearchCV(CCA(n_components=1), {"reg": [0.1, 1.0]}, cv=3)
        .fit(d)
        .cv_results_["mean_test_score"]
    ),
    "compare": lambda d: mvcca.compare(["cca"], d, cv=2, tune=False).mean("CCA", "r@1"),
    "RetrievalIndex": lambda d: found(RetrievalIndex(MODEL), d),
    "Views": lambda d: [np.asarray(Views(d).blocks[name].dense().matrix, float) for name in "ab"],
    # compose
    "MomentPCA": lambda d: compose.MomentPCA(n_components=2).fit_transform(d["a"]),
    "RankGaussian": lambda d: compose.RankGaussian().fit_transform(d["a"]),
    "PerView": lambda d: compose.PerView(compose.RankGaussian()).fit_transform(d),
    "JoinViews": lambda d: compose.JoinViews().fit_transform(d),
    "SplitViews": lambda d: dict(
        compose.SplitViews({"p": [0, 1], "q": [2, 3]}).fit_transform(d["a"]).items()
    ),
    # retrieval
    "top_k": lambda d: retrieval.top_k(d["b"], d["b"], 3),
    "top_k inner": lambda d: retrieval.top_k(d["b"], d["b"], 3, "inner"),
    "top_k euclidean": lambda d: retrieval.top_k(d["b"], d["b"], 3, "euclidean")[0],
    "top_k csls": lambda d: retrieval.top_k(d["b"], d["b"], 3, hubness="csls", bank=bank(d))[0],
    "ranks": lambda d: retrieval.ranks(d["b"], d["b"]),
    "ranks of others": lambda d: retrieval.ranks(d["b"], FLOATS["b"]),
    "per_query": lambda d: retrieval.per_query(d["b"], d["b"]),
    "mutual_neighbors": lambda d: retrieval.mutual_neighbors(d["b"], d["b"]),
    "score_blocks": lambda d: [x for _, x in retrieval.score_blocks(d["b"], d["b"])],
    "evaluate_retrieval": lambda d: list(
        retrieval.evaluate_retrieval(twice(d), LABELS, measures="map").mean().values()
    ),
    "calibrate_matches": lambda d: retrieval.calibrate_matches(twice(d), "x", "y").probability(
        np.array([[0.5, 0.2]]), n_items=50, share=0.5
    ),
    "transfer_labels": lambda d: retrieval.transfer_labels(
        d["b"], LABELS, d["b"], k=3, unassigned=-1
    ),
    "retrieval_vectors": lambda d: retrieval.retrieval_vectors(MODEL, {"a": d["a"]}),
    # measures
    "average_precision": lambda d: measures.average_precision(d["b"], RELEVANT),
    "ndcg": lambda d: measures.ndcg(d["b"], RELEVANT.astype(float)),
    "precision_at_k": lambda d: measures.precision_at_k(d["b"], RELEVANT, 2),
    "precision_recall_curve": lambda d: measures.precision_recall_curve(d["b"], RELEVANT),
    "relevant_ranks": lambda d: measures.relevant_ranks(d["b"], RELEVANT),
    "weighted_average_precision": lambda d: measures.weighted_average_precision(
        d["b"], np.abs(FLOATS["b"]) / 9
    ),
    "class_means": lambda d: measures.class_means(d["b"], LABELS),
    "column_correlations": lambda d: measures.column_correlations(d["b"], d["b"]),
    "total_correlation": lambda d: measures.total_correlation(d["b"], d["b"]),
    "unit_rows": lambda d: measures.unit_rows(d["b"]),
    "descending_order": lambda d: measures.descending_order(d["b"]),
    # inspection
    "associations": lambda d: inspection.associations(MODEL, d),
    "component_correlations": lambda d: inspection.component_correlations(MODEL, d),
    "correlation_intervals": lambda d: numbers(
        inspection.correlation_intervals(d, random_state=0)
    ),
    "explained_variance": lambda d: inspection.explained_variance(MODEL, d),
    "label_auroc": lambda d: inspection.label_auroc({"a": d["a"]}, LABELS)["a"],
    "loading_intervals": lambda d: numbers(
        inspection.loading_intervals(d, n_resamples=20, random_state=0)
    ),
    "weight_intervals": lambda d: numbers(
        inspection.weight_intervals(d, n_resamples=20, random_state=0)
    ),
    "loadings": lambda d: inspection.loadings(MODEL, d),
    "associations of scores": lambda d: inspection.associations(
        {"a": d["a"], "b": d["a"]}, FLOATS
    ),
    "component_correlations of scores": lambda d: inspection.component_correlations(twice(d), d),
    "loadings of scores": lambda d: inspection.loadings({"a": d["a"], "b": d["a"]}, FLOATS),
    "parametric_tests": lambda d: numbers(inspection.parametric_tests(d)),
    "permutation_test": lambda d: numbers(
        inspection.permutation_test(d, n_permutations=19, random_state=0)
    ),
    "stability": lambda d: numbers(
        inspection.stability(CCA(n_components=1), d, cv=3, random_state=0)
    ),
    "selection_stability": lambda d: numbers(
        inspection.selection_stability(RGCCA(), d, n_pairs=2, random_state=0)
    ),
    "study": lambda d: numbers(inspection.study(d, n_permutations=19, random_state=0)),
    # model_selection
    "spectrum_decay": lambda d: model_selection.spectrum_decay(d["a"]),
    # interop
    "compare_representations": lambda d: compare_representations(
        d, measures=["cka", "cka_unbiased", "mutual_knn", "mean_correlation"], calibrate=False
    ).raw,
    "LayerSums": lambda d: compare_representations(LayerSums().update(d), measures="cka").raw,
    "fit_migration": lambda d: fit_migration(d["a"], d["b"]).found_in_ten,
    "fit_migration both": lambda d: fit_migration(d["a"], d["b"], direction="both").found_in_ten,
    "fit_migration stored": lambda d: fit_migration(
        FLOATS["a"], FLOATS["b"], stored=d["a"]
    ).found_in_ten,
    "Migration": lambda d: (
        lambda m: [m.map_items(d["a"]), m.drift(d["a"], d["b"])[:3], m.map_queries(d["b"])]
    )(fit_migration(FLOATS["a"], FLOATS["b"])),
    "Migration.transform": lambda d: fit_migration(
        FLOATS["a"], FLOATS["b"], direction="both"
    ).transform({"old": d["a"], "new": d["b"]}),
    "align_unpaired": lambda d: align_unpaired(d["a"], d["b"], pairs=PAIRS).model.weights_,
}  # fmt: skip


def flat(value):
    """All numbers of a result."""
    if isinstance(value, dict):
        return np.concatenate([flat(value[name]) for name in value])
    if isinstance(value, tuple | list) and not all(isinstance(x, Number) for x in value):
        return np.concatenate([flat(part) for part in value])
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return np.asarray(value, dtype=float).ravel()


FEW_TYPES = ("float16", "int8", "torch bfloat16")
SLOW = ("align_unpaired", "compare")


def pairs():
    """Cases and types; beside a few types, each case takes three that move on with the cases."""
    for position, case in enumerate(CASES):
        for number, kind in enumerate(FEW_TYPES if case in SLOW else TYPES):
            is_tried = kind in FEW_TYPES[-1 if case in SLOW else 0 :] or (
                case not in SLOW and (number - position) % 8 == 0
            )
            yield pytest.param(case, kind, marks=LONG[: case in SLOW] if is_tried else LONG)


@cache
def expected_of(case, like):
    """Results in float64, which many types share."""
    return flat(CASES[case]({name: as_floats(like, X) for name, X in integers().items()}))


@pytest.mark.parametrize(("case", "kind"), [*pairs()])
def test_the_type_of_the_rows_changes_nothing(case, kind):
    expected = expected_of(case, "bool" if "bool" in kind else kind * (kind == "uint8"))
    given = {name: TYPES[kind](X) for name, X in integers().items()}
    tolerance = 2e-3 if "16" in kind or "float32" in kind else 1e-8
    np.testing.assert_allclose(flat(CASES[case](given)), expected, rtol=tolerance, atol=tolerance)


# The data of displays of scores.
SHOWN = {
    "ArrowsDisplay": lambda scores, _: plotting.ArrowsDisplay(scores).points,
    "BiplotDisplay": lambda scores, d: {
        "": plotting.BiplotDisplay(scores, inspection.loadings(scores, d)).points
    },
    "SamplesDisplay": lambda scores, _: plotting.SamplesDisplay(scores).points,
}


@pytest.mark.parametrize("kind", ["float32", "int8", "bool", "torch bfloat16"])
@pytest.mark.parametrize("name", SHOWN)
def test_displays_take_every_type(name, kind):
    exact = {view: as_floats(kind, X) for view, X in integers().items()}
    given = {view: TYPES[kind](X) for view, X in integers().items()}
    shown, expected = (SHOWN[name]({"a": d["a"][:, :3], "b": d["b"]}, d) for d in (given, exact))
    for view, own in expected.items():
        np.testing.assert_allclose(flat(shown[view]), flat(own), rtol=2e-3, atol=2e-3)


# Public functions that take no rows, or rows that are ranked lists already.
WITHOUT_ROWS = {
    "affine_map", "by_labels", "by_pairs", "config_context",
    "get_config", "held_out_sample_size", "hubness", "integrate_cells",
    "label_set_similarity", "load", "mean_rank", "mean_reciprocal_rank", "median_rank", "methods",
    "open_matrix", "recall_at_k",
    "required_correlation", "retrieval_scorer", "sample_size", "save", "save_dense", "save_onnx",
    "set_config", "to_linear", "views_of_modalities", "vip", "write_scores",
}  # fmt: skip
ROOMS = ("", ".retrieval", ".measures", ".inspection", ".interop", ".interop.representations",
         ".interop.migration", ".interop.alignment", ".compose")  # fmt: skip


def test_no_public_function_is_forgotten():
    public = set()
    for room in ROOMS:
        module = import_module(f"mvcca{room}")
        public |= {name for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    assert public - WITHOUT_ROWS - CASES.keys() == set()


def test_masks_are_not_dropped_in_silence():
    masked = np.ma.masked_array(FLOATS["b"], FLOATS["b"] > 2)
    for name in ("unit_rows", "average_precision", "compare_representations", "fit_migration"):
        with pytest.raises(ValueError, match="the mask would be dropped"):
            CASES[name]({"a": masked, "b": masked})
