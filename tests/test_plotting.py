"""What the displays draw, read back from the axes and judged by the numbers they stand for."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import load_linnerud
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from mvcca.datasets import load_digits_views, make_gaussian_views, make_multilabel_views
from mvcca.inspection import component_correlations, loadings
from mvcca.linear import CCA, MLCCA, MVCCA
from mvcca.views import Views

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import cbook  # noqa: E402
from matplotlib.collections import LineCollection, PathCollection  # noqa: E402
from matplotlib.colors import to_hex, to_rgb  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from mvcca.plotting import (  # noqa: E402
    CorrelationDisplay,
    EmbeddingDisplay,
    LoadingsDisplay,
    RecallCurveDisplay,
)
from mvcca.plotting.style import COLORS  # noqa: E402
from mvcca.retrieval import evaluate_retrieval, retrieval_vectors  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def views():
    return make_gaussian_views(120, n_features=(5, 4), random_state=0).views


@pytest.fixture(scope="module")
def cca(views):
    return CCA(3).fit(views[:80])


@pytest.fixture(scope="module")
def linnerud():
    data = load_linnerud(as_frame=True)
    return {"exercise": data.data, "body": data.target}


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def scatters(ax):
    return [part for part in ax.collections if isinstance(part, PathCollection)]


def drawn_shape(scatter):
    return scatter.get_paths()[0].vertices.tobytes()


# ---- all displays -------------------------------------------------------------------------------


def test_a_missing_matplotlib_names_what_to_install(monkeypatch, cca, views):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install mvcca\[plot\]"):
        RecallCurveDisplay.from_estimator(cca, views)


# Linear RGB without one kind of cone: Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


@pytest.mark.parametrize("vision", VISION)
def test_all_colours_are_told_apart_with_any_colour_vision(vision):
    encoded = np.array([to_rgb(tone) for tone in COLORS])
    linear = np.where(encoded > 0.04045, ((encoded + 0.055) / 1.055) ** 2.4, encoded / 12.92)
    seen = np.clip(linear @ np.transpose(VISION[vision]), 0, 1)
    to_xyz = np.array(
        [[0.4124, 0.2126, 0.0193], [0.3576, 0.7152, 0.1192], [0.1805, 0.0722, 0.9505]]
    )
    x, y, z = np.cbrt(seen @ to_xyz / [0.9505, 1, 1.089]).T  # none is near black
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
    # A difference of 2.3 is just noticeable; that of neighbours in a legend should be much more.
    assert pdist(lab).min() > 17


# ---- correlations -------------------------------------------------------------------------------


def test_training_and_held_out_correlations_are_the_two_lines(cca, views):
    ax = CorrelationDisplay.from_estimator(cca, views[:80], X_test=views[80:]).ax_
    found = [line.get_ydata() for line in ax.lines]
    for values, rows in zip(found, (views[:80], views[80:]), strict=True):
        expected = component_correlations(cca, rows)["view0", "view1"]
        np.testing.assert_array_equal(values, expected)
    assert legend_texts(ax) == [
        f"training (sum {found[0].sum():.2f})",
        f"held-out (sum {found[1].sum():.2f})",
    ]


def test_of_many_views_the_mean_over_pairs_is_drawn():
    views = make_gaussian_views(100, n_features=(4, 3, 3), random_state=0).views
    model = MVCCA(2).fit(views)
    (line,) = CorrelationDisplay.from_estimator(model, views).ax_.lines
    pairs = component_correlations(model, views).values()
    np.testing.assert_allclose(line.get_ydata(), np.mean(list(pairs), axis=0))


def test_two_lone_matrices_are_two_views(views):
    X, Y = views["view0"], views["view1"]
    model = CCA(2).fit(X, Y)
    (line,) = CorrelationDisplay.from_estimator(model, X, Y).ax_.lines
    np.testing.assert_allclose(line.get_ydata(), model.canonical_correlations_)


def test_negative_correlations_are_inside_the_axes():
    ax = CorrelationDisplay({"held-out": {("a", "b"): np.array([0.5, -0.4])}}).plot().ax_
    assert ax.get_ylim()[0] < -0.4


# ---- recall -------------------------------------------------------------------------------------


def recall_by_hand(queries, gallery, k, scale=normalize):
    scores = scale(queries) @ scale(gallery).T
    return np.mean([i in np.argsort(-row)[:k] for i, row in enumerate(scores)])


def test_recall_curves_are_recall_counted_query_by_query(cca, views):
    scores = retrieval_vectors(cca, views[80:])
    forth, back = RecallCurveDisplay.from_estimator(cca, views[80:], k=20).ax_.lines
    for line, query, target in ((forth, "view0", "view1"), (back, "view1", "view0")):
        expected = [
            recall_by_hand(scores[query], scores[target], k, scale=np.asarray) for k in range(1, 21)
        ]
        np.testing.assert_allclose(line.get_ydata(), expected)
    np.testing.assert_array_equal(forth.get_xdata(), np.arange(1, 21))


def test_methods_are_told_by_colour_and_directions_by_dashes(cca, views):
    ax = RecallCurveDisplay.from_estimator(
        {"loose": cca, "tight": CCA(3, reg=1.0).fit(views)}, views, k=5
    ).ax_
    colors = [to_hex(line.get_color()) for line in ax.lines]
    dashes = [line.get_linestyle() for line in ax.lines]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert dashes[0] == dashes[2] != dashes[1] == dashes[3]
    assert legend_texts(ax) == ["loose", "tight", "view0 → view1", "view1 → view0"]


def test_of_many_views_the_mean_over_directions_is_drawn():
    views = make_gaussian_views(60, n_features=(4, 3, 3), random_state=0).views
    scores = MVCCA(2).fit(views).transform(views)
    (line,) = RecallCurveDisplay({"": curves(scores)}).plot().ax_.lines
    expected = [
        [recall_by_hand(scores[p], scores[q], k) for k in (1, 2, 3)]
        for p in scores.names
        for q in scores.names
        if p != q
    ]
    np.testing.assert_allclose(line.get_ydata(), np.mean(expected, axis=0))


# ---- embedding ----------------------------------------------------------------------------------


def test_the_plane_is_that_of_the_principal_components_of_all_views_together(cca, views):
    scores = cca.transform(views)
    ax = EmbeddingDisplay.from_estimator(cca, views).ax_
    drawn = np.concatenate([np.asarray(part.get_offsets()) for part in scatters(ax)])
    stacked = normalize(np.concatenate([scores["view0"], scores["view1"]]))
    expected = PCA(2).fit_transform(stacked)
    np.testing.assert_allclose(np.abs(drawn), np.abs(expected), atol=1e-8)


def test_euclidean_keeps_the_length_of_rows(cca, views):
    scores = cca.transform(views)
    ax = EmbeddingDisplay(scores, similarity="euclidean").plot().ax_
    drawn = np.concatenate([np.asarray(part.get_offsets()) for part in scatters(ax)])
    expected = PCA(2).fit_transform(np.concatenate([scores["view0"], scores["view1"]]))
    np.testing.assert_allclose(np.abs(drawn), np.abs(expected), atol=1e-8)


def test_views_have_markers_and_labels_have_colours():
    data = make_multilabel_views(60, max_labels=1, n_classes=3, random_state=0)
    model = MLCCA(2, reg=0.1).fit(data.views, data.labels)
    ax = EmbeddingDisplay.from_estimator(model, data.views, groups=data.labels).ax_
    first, second = scatters(ax)
    assert drawn_shape(first) != drawn_shape(second)
    for name, part in zip(data.views.names, (first, second), strict=True):
        labels = [data.labels[i] for i in data.views.objects(name)]
        pairs = {
            (label, to_hex(tone)) for label, tone in zip(labels, part.get_facecolors(), strict=True)
        }
        assert len(pairs) == len({label for label, _ in pairs}) == len({t for _, t in pairs}) == 3
    assert legend_texts(ax) == ["view0", "view1", "0", "1", "2"]


def test_the_ten_most_frequent_labels_have_colours_and_the_rest_is_counted():
    labels = np.repeat(np.arange(12), [9, 8, 8, 8, 8, 8, 8, 8, 8, 8, 2, 1])
    points = {"one": np.random.default_rng(0).normal(size=(len(labels), 2))}
    ax = EmbeddingDisplay(points, labels).plot().ax_
    assert legend_texts(ax)[-1] == "2 others"
    (part,) = scatters(ax)
    tones = [to_hex(tone) for tone in part.get_facecolors()]
    assert len(set(tones)) == 11
    assert tones[-1] == tones[-2] == tones[-3]


def test_label_sets_are_named_by_their_labels():
    points = {"one": np.eye(4)}
    ax = EmbeddingDisplay(points, [{"b", "a"}, {"a"}, set(), {"a"}]).plot().ax_
    assert legend_texts(ax) == ["one", "a", "a + b", "no label"]


def test_lines_join_the_views_of_one_object():
    data = make_multilabel_views(40, paired=0.5, random_state=0)
    model = MLCCA(3, reg=0.1).fit(data.views, data.labels)
    display = EmbeddingDisplay.from_estimator(model, data.views, lines=True)
    (joined,) = (part for part in display.ax_.collections if isinstance(part, LineCollection))
    both = display.points[:20]
    expected = np.stack([both["view0"], both["view1"]], axis=1)
    np.testing.assert_allclose(joined.get_segments(), expected)


def test_neighbours_of_tsne_are_of_the_same_cluster():
    rng = np.random.default_rng(0)
    centres = 10 * np.eye(4)[np.repeat([0, 1, 2], 15)]
    points = Views({name: centres + rng.normal(size=centres.shape) for name in ("a", "b")})
    display = EmbeddingDisplay(points, method="tsne", random_state=0)
    plane = np.concatenate([display.points["a"], display.points["b"]])
    cluster = np.tile(np.repeat([0, 1, 2], 15), 2)
    distances = np.linalg.norm(plane[:, None] - plane, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (cluster[distances.argmin(axis=1)] == cluster).all()


def test_tsne_draws_few_rows():
    points = {"a": np.random.default_rng(0).normal(size=(12, 3))}
    display = EmbeddingDisplay(points, method="tsne", random_state=0)
    assert display.points["a"].shape == (12, 2)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ({"a": np.eye(3)[:, :1]}, {}, "at least 2 components, got 1"),
        ({"a": np.eye(3)}, {"method": "umap"}, "'pca' or 'tsne', got 'umap'"),
        ({"a": np.eye(3)}, {"similarity": "inner"}, "'cosine' or 'euclidean', got 'inner'"),
        ({"a": np.eye(3)}, {"groups": [[0.5, 1.5]] * 3}, "got real label vectors"),
    ],
)
def test_what_cannot_be_drawn_in_the_plane_says_why(scores, options, message):
    with pytest.raises(ValueError, match=message):
        EmbeddingDisplay(scores, **options)


# ---- loadings -----------------------------------------------------------------------------------


def test_bars_are_the_largest_loadings_in_order():
    views = load_digits_views().views
    model = CCA(3, reg=0.1).fit(views)
    ax = LoadingsDisplay.from_estimator(model, views, components=1, n_top=7).ax_
    values = np.concatenate([v[:, 1] for v in loadings(model, views).values()])
    expected = np.sort(values[np.argsort(-np.abs(values))[:7]])
    bars = sorted((bar.get_y(), bar.get_width()) for bar in ax.patches)
    np.testing.assert_allclose([width for _, width in bars], expected)


def test_bars_are_named_by_the_columns_of_data_frames(linnerud):
    model = CCA(2, reg=0.1).fit(linnerud)
    ax = LoadingsDisplay.from_estimator(model, linnerud).ax_
    named = {
        f: value
        for name, values in loadings(model, linnerud).items()
        for f, value in zip(linnerud[name].columns, values[:, 0], strict=True)
    }
    found = [text.get_text() for text in ax.get_yticklabels()]
    assert found == sorted(named, key=named.get)


def test_points_in_the_circle_are_pairs_of_loadings(linnerud):
    model = CCA(2, reg=0.1).fit(linnerud)
    ax = LoadingsDisplay.from_estimator(model, linnerud, kind="circle", components=(1, 0)).ax_
    for part, values in zip(scatters(ax), loadings(model, linnerud).values(), strict=True):
        np.testing.assert_allclose(part.get_offsets(), values[:, [1, 0]])
    assert {text.get_text() for text in ax.texts} - {""} == {
        "Chins", "Situps", "Jumps", "Weight", "Waist", "Pulse",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("view", "names", "message"),
    [
        ("view0", ["a"], "must name all .* features of view 'view0', got 1 names"),
        ("view0", ["a"] * 999, "must name all .* features of view 'view0', got 999 names"),
        ("smell", ["a"], "Unknown view 'smell' in feature_names; the views are"),
    ],
)
def test_feature_names_of_other_features_are_refused(view, names, message):
    views = make_gaussian_views(50, random_state=0).views
    model = CCA(2, reg=0.1).fit(views)
    with pytest.raises(ValueError, match=message):
        LoadingsDisplay.from_estimator(model, views, feature_names={view: names})


def test_given_feature_names_are_used(cca, views):
    names = {"view0": list("abcde"), "view1": list("fghi")}
    ax = LoadingsDisplay.from_estimator(cca, views, feature_names=names).ax_
    assert {text.get_text() for text in ax.get_yticklabels()} == set("abcdefghi")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "pie"}, "'bar', 'circle' or 'heatmap', got 'pie'"),
        ({"kind": "bar", "components": (0, 1)}, "needs 1 component"),
        ({"kind": "circle", "components": 0}, "needs 2 component"),
    ],
)
def test_loadings_that_cannot_be_drawn_say_why(options, message, cca, views):
    with pytest.raises(ValueError, match=message):
        LoadingsDisplay.from_estimator(cca, views, **options)


def test_panels_of_correlations_show_all_components_of_each_method():
    scores = {n: planted_scores(n) for n in (3, 8, 2)}
    figure, axes = plt.subplots(1, 3, sharex=True, sharey=True)
    for ax, of_method in zip(axes, scores.values(), strict=True):
        CorrelationDisplay({"training": correlations(of_method)}).plot(ax)
    alone = CorrelationDisplay(
        {"training": correlations(scores[8]), "held-out": correlations(scores[3])}
    ).plot()
    for ax in (*axes, alone.ax_):
        assert ax.get_xlim() == (0.5, 8.5)
    for ax in axes:
        for line in ax.lines:
            assert line.get_ydata().min() >= ax.get_ylim()[0]
    twice = CorrelationDisplay({"training": correlations(scores[3])}).plot(alone.ax_)
    assert twice.ax_.get_xlim() == (0.5, 8.5)
    plt.close(figure)


def curves(scores):
    return evaluate_retrieval(scores, measures="mr").recall_curves(3)


def correlations(scores):
    return component_correlations(scores, scores)


def planted_scores(n_components):
    """Scores of two views, the last component with a correlation below zero."""
    rng = np.random.default_rng(n_components)
    first = rng.standard_normal((50, n_components))
    second = first + rng.standard_normal(first.shape)
    second[:, -1] *= -1
    return {"image": first, "text": second}


@pytest.mark.parametrize(
    "name",
    [
        "US$ and C$",
        "$",
        *(pytest.param(name, marks=pytest.mark.long) for name in (r"\frac{$", "$x_$", "$$")),
    ],
)
def test_names_with_dollars_are_drawn_as_they_are(name):
    scores = {name: planted_scores(3)["image"], "text": planted_scores(3)["text"]}
    model = CCA(2).fit(scores)
    displays = [
        CorrelationDisplay({name: {("a", "b"): np.ones(3)}}).plot(),
        RecallCurveDisplay({name: curves(scores)}).plot(),
        RecallCurveDisplay({"": curves(scores)}).plot(),
        EmbeddingDisplay(scores, [name] * 50, method="pca").plot(),
        *(
            LoadingsDisplay.from_estimator(
                model,
                scores,
                feature_names={name: [name, "b", "c"], "text": list("abc")},
                kind=kind,
            )
            for kind in ("bar", "circle")
        ),
    ]
    for display in displays:
        display.figure_.canvas.draw()
        texts = display.figure_.findobj(Text)
        shown = [text.get_text().replace(r"\$", "$") for text in texts]
        assert any(name in text for text in shown)
        assert not any(cbook.is_math_text(text.get_text()) for text in texts if "$" in name)
    plt.close("all")
