"""Ranked lists for other tools: their figures are ours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mvcca import CCA, save
from mvcca.cli import main
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.runs import strictly_descending

REASON = "needs ir-measures, ranx and pytrec-eval-terrier, which make test-interop installs"
RNG = np.random.default_rng(0)
N = 60
SCORES = {name: RNG.normal(size=(N, 3)) for name in ("image", "text")}
SCORES["text"][10:20] = SCORES["text"][10]  # ties
Y = RNG.random((N, 6)) < 0.25
Y[:3] = False  # no relevant item

# Names of the same measures: ours, ir-measures', ranx's and pytrec-eval's. By labels, our r@K is
# their success or hit rate; recall is their R@K.
MEASURES = {
    "map": ("AP", "map", "map"),
    "map@10:relevant": ("AP@10", "map@10", "map_cut_10"),
    "ndcg": ("nDCG", "ndcg", "ndcg"),
    "ndcg@10": ("nDCG@10", "ndcg@10", "ndcg_cut_10"),
    "ndcg@3:exponential": (None, "ndcg_burges@3", None),  # ir-measures rounds it to 5 digits
    "p@5": ("P@5", "precision@5", "P_5"),
    "recall@10": ("R@10", "recall@10", "recall_10"),
    "mrr:optimistic": ("RR", "mrr", "recip_rank"),
    "r@5:optimistic": ("Success@5", "hit_rate@5", "success_5"),
}


def table_of(relevance, **options):
    direction = [("image", "text")]
    return evaluate_retrieval(
        SCORES,
        Y,
        measures=list(MEASURES),
        directions=direction,
        relevance=relevance,
        keep_run=N,
        **options,
    )


@pytest.fixture(scope="module", params=["labels", "pairs", "within"])
def table(request):
    if request.param == "within":
        return evaluate_retrieval(
            {"image": SCORES["image"]},
            Y,
            measures=list(MEASURES),
            directions="within",
            keep_run=N,
        )
    return table_of(request.param)


def by_ir_measures(run, qrels):
    ir_measures = pytest.importorskip("ir_measures", reason=REASON)
    names = {ours: theirs for ours, (theirs, *_) in MEASURES.items() if theirs}
    parsed = {ours: ir_measures.parse_measure(theirs) for ours, theirs in names.items()}
    values = ir_measures.calc_aggregate(list(parsed.values()), qrels, run)
    return {ours: values[theirs] for ours, theirs in parsed.items()}


def by_ranx(run, qrels):
    ranx = pytest.importorskip("ranx", reason=REASON)
    run, qrels = (ranx.Run(run), ranx.Qrels(qrels)) if isinstance(run, dict) else (run, qrels)
    names = [theirs for _, theirs, _ in MEASURES.values()]
    values = ranx.evaluate(qrels, run, names)
    return dict(zip(MEASURES, [values[name] for name in names], strict=True))


def by_pytrec_eval(run, qrels):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON)
    names = {ours: theirs for ours, (*_, theirs) in MEASURES.items() if theirs}
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {"map", "map_cut", "ndcg", "ndcg_cut.10", "P", "recall", "recip_rank", "success"}
    )
    values = list(evaluator.evaluate(run).values())
    return {ours: np.mean([row[theirs] for row in values]) for ours, theirs in names.items()}


@pytest.mark.filterwarnings("ignore")  # of numba and of their other dependencies
@pytest.mark.parametrize("tool", [by_ir_measures, by_ranx, by_pytrec_eval])
def test_other_tools_measure_the_same(tool, table):
    """These tools order ties differently; strictly descending scores keep our order."""
    theirs = tool(table.to_run(), table.to_qrels())
    ours = table.mean()
    # `mrr` and `r` count ties by share, which no other tool does: compare with our lists.
    lists, relevant = table.to_run(), table.to_qrels()
    first = {
        query: next((j for j, item in enumerate(own, 1) if relevant[query].get(item, 0)), np.inf)
        for query, own in lists.items()
    }
    ours["mrr:optimistic"] = np.mean([1 / rank for rank in first.values()])
    ours["r@5:optimistic"] = np.mean([rank <= 5 for rank in first.values()])
    assert_allclose([theirs[name] for name in theirs], [ours[name] for name in theirs], atol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tool", [by_ir_measures, by_ranx])
def test_ranks_without_ties_are_theirs(tool):
    scores = {name: RNG.normal(size=(N, 3)) for name in ("image", "text")}
    table = evaluate_retrieval(
        scores, measures=list(MEASURES), directions=[("text", "image")], keep_run=N
    )
    theirs = tool(table.to_run(), table.to_qrels())
    ours = table.mean()
    assert_allclose([theirs[name] for name in theirs], [ours[name] for name in theirs], atol=1e-9)


def test_a_run_keeps_the_order_of_lists_and_their_length():
    table = evaluate_retrieval(
        SCORES, Y, measures=["map@50", "r@1"], directions=[("text", "image")], keep_run=7
    )
    run = table.to_run(relevance="labels")
    cosines = [
        [x @ y / np.sqrt((x @ x) * (y @ y)) for y in SCORES["image"]] for x in SCORES["text"]
    ]
    assert list(run) == [str(i) for i in range(N)]
    for (query, items), row in zip(run.items(), cosines, strict=True):
        expected = np.argsort(-np.array(row), kind="stable")[:7]
        assert list(items) == [str(i) for i in expected], query
        assert_allclose(list(items.values()), np.array(row)[expected], rtol=1e-5)


def test_judgements_are_of_the_whole_gallery():
    table = evaluate_retrieval(SCORES, Y, measures=["map@50", "r@1"], directions="all", keep_run=3)
    qrels = table.to_qrels("image", "text", "labels")
    for query in range(N):
        shared = {str(i): int((Y[query] & Y[i]).sum()) for i in range(N) if (Y[query] & Y[i]).any()}
        found = qrels[str(query)]
        if shared:
            assert found == shared
        else:
            assert list(found.values()) == [0]
    assert table.to_qrels("image", "text", "pairs") == {str(i): {str(i): 1} for i in range(N)}
    within = table.to_qrels("text", "text")
    assert all(
        query not in {i for i, grade in own.items() if grade} for query, own in within.items()
    )


def test_given_gains_are_grades():
    gains = RNG.integers(0, 3, size=(N, N))
    options = {"measures": "ndcg@5", "directions": [("image", "text")], "keep_run": 5}
    qrels = evaluate_retrieval(SCORES, gains=gains, **options).to_qrels()
    for query in range(N):
        listed = {item: grade for item, grade in qrels[str(query)].items() if grade}
        assert listed == {str(i): int(g) for i, g in enumerate(gains[query]) if g}
    table = evaluate_retrieval(SCORES, gains=gains / 2, **options)
    with pytest.raises(ValueError, match="integers of at least 0"):
        table.to_qrels()


def test_equal_scores_become_strictly_descending():
    scores = np.array([[1, 1, 1, 0.5], [3, 1 + 1e-12, 1, 1 - 1e-12]])
    lowered = strictly_descending(scores)
    assert lowered.dtype == np.float32
    assert (np.diff(lowered) < 0).all()
    assert_allclose(lowered, scores, rtol=1e-6)
    assert_array_equal(scores[0], [1, 1, 1, 0.5])
    float32 = scores.astype(np.float32)
    strictly_descending(float32)
    assert_array_equal(float32, scores.astype(np.float32))


def test_what_is_missing_is_named():
    with pytest.raises(ValueError, match="keep_run=100"):
        evaluate_retrieval(SCORES, measures="map", directions=[("image", "text")]).to_run()
    table = evaluate_retrieval(SCORES, Y, measures=["map", "r@1"], keep_run=5)
    with pytest.raises(ValueError, match=r"query and a target, one of \[\('image', 'text'\)"):
        table.to_run()
    with pytest.raises(ValueError, match=r"relevance to be one of \['labels', 'pairs'\], got None"):
        table.to_qrels("image", "text")
    with pytest.raises(KeyError, match="no direction"):
        table.to_run("image", "sound")
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="keep_run to be an integer of at least 1"):
            evaluate_retrieval(SCORES, measures="map", keep_run=wrong)


# ---- the command line ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """A run of all galleries' items, written by `mvcca search`, and the judgements of pairs."""
    folder = tmp_path_factory.mktemp("run")
    X = RNG.normal(size=(50, 4)).astype(np.float32)
    views = {"image": X, "text": X[:, :3] + RNG.normal(size=(50, 3)).astype(np.float32)}
    views["text"][:5] = views["text"][0]  # ties
    save(CCA(2, reg=0.1).fit(views), folder / "model.mvcca")
    for name, rows in views.items():
        np.save(folder / f"{name}.npy", rows)
    arguments = ["search", f"{folder}/model.mvcca", "--query", f"image={folder}/image.npy"]
    arguments += ["--gallery", f"text={folder}/text.npy", "-k", "50"]
    assert not main([*arguments, "-o", f"{folder}/run.trec"])
    assert not main([*arguments, "-o", f"{folder}/run.npz"])
    with np.load(folder / "run.npz") as found:
        return folder / "run.trec", dict(found)


def test_a_run_file_has_the_lines_of_trec(run_file):
    path, found = run_file
    lines = [line.split(" ") for line in path.read_text().splitlines()]
    assert len(lines) == 50 * 50
    for number, (query, q0, item, rank, score, tag) in enumerate(lines):
        row, place = divmod(number, 50)
        assert (query, q0, rank, tag) == (str(row), "Q0", str(place + 1), "mvcca")
        assert int(item) == found["items"][row, place]
        assert_allclose(float(score), found["scores"][row, place], rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_a_run_file_goes_through_ir_measures_and_ranx(run_file):
    ir_measures = pytest.importorskip("ir_measures", reason=REASON)
    ranx = pytest.importorskip("ranx", reason=REASON)
    path, found = run_file
    qrels = {str(i): {str(i): 1} for i in range(50)}
    ranks = 1 + np.argmax(found["items"] == np.arange(50)[:, None], axis=1)
    expected = [np.mean(1 / ranks), np.mean(ranks <= 5), np.mean(1 / np.log2(ranks + 1))]
    measures = [ir_measures.RR, ir_measures.R @ 5, ir_measures.nDCG]
    run = list(ir_measures.read_trec_run(str(path)))
    values = ir_measures.calc_aggregate(measures, qrels, run)
    assert_allclose([values[m] for m in measures], expected, atol=1e-9)
    values = ranx.evaluate(
        ranx.Qrels(qrels), ranx.Run.from_file(str(path), kind="trec"), ["mrr", "recall@5", "ndcg"]
    )
    assert_allclose(list(values.values()), expected, atol=1e-9)


def test_items_of_several_galleries_are_named_by_view(run_file, tmp_path, capsys):
    folder = run_file[0].parent
    arguments = ["search", f"{folder}/model.mvcca", "--query", f"image={folder}/image.npy"]
    for name in ("image", "text"):
        arguments += ["--gallery", f"{name}={folder}/{name}.npy"]
    assert not main([*arguments, "-k", "3", "-o", f"{tmp_path}/both.trec"])
    items = [line.split()[2] for line in (tmp_path / "both.trec").read_text().splitlines()]
    assert not main([*arguments, "-k", "3", "-o", f"{tmp_path}/both.npz"])
    with np.load(tmp_path / "both.npz") as found:
        named = zip(found["views"].ravel(), found["items"].ravel(), strict=True)
    assert items == [f"{view}:{row}" for view, row in named]
    assert {"image", "text"} == {item.split(":")[0] for item in items}
    named = ["--gallery", f"a b={folder}/text.npy", "--gallery", f"c={folder}/text.npy"]
    with pytest.raises(SystemExit):
        main([*arguments[:4], *named, "-o", f"{tmp_path}/x.trec"])
    assert "names of galleries must not contain any" in capsys.readouterr().err
