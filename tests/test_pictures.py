"""Samples, arrows and pictures of pairs of variables, judged by NumPy, SciPy and the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.stats import chi2
from sklearn.datasets import load_breast_cancer

from mvcca import MVCCA, Views
from mvcca.inspection import associations, label_auroc
from mvcca.plotting._geometry import ellipse, graph_layout, ring, tree

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402

from mvcca.plotting import (  # noqa: E402
    ArrowsDisplay,
    AssociationsDisplay,
    AurocDisplay,
    BiplotDisplay,
    SamplesDisplay,
)
from mvcca.plotting.style import COLORS, NEGATIVE, POSITIVE  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def nuclei():
    """Three views of ten measurements each, of 200 tumours."""
    cancer = load_breast_cancer(as_frame=True).data[:200]
    table = (cancer - cancer.mean()) / cancer.std()
    return {
        view: table.iloc[:, 10 * i : 10 * i + 10].set_axis(
            [f"{view} {name}" for name in cancer.columns[:10].str.replace("mean ", "")], axis=1
        )
        for i, view in enumerate(("mean", "error", "worst"))
    }


@pytest.fixture(scope="module")
def model(nuclei):
    return MVCCA(3, reg=0.1).fit(nuclei)


def largest_pairs(found):
    """All pairs of columns, by the size of their association."""
    return sorted(
        (
            (abs(values[j, k]), f"{p} {j}", f"{q} {k}", values[j, k])
            for (p, q), values in found.items()
            for j in range(len(values))
            for k in range(values.shape[1])
        ),
        reverse=True,
    )


# ---- pairs of variables -------------------------------------------------------------------------


def test_the_fifty_strongest_pairs_are_drawn_or_all_above_the_cut_off(model, nuclei):
    arrays = {name: frame.to_numpy() for name, frame in nuclei.items()}
    expected = largest_pairs(associations(model, arrays))
    drawn = AssociationsDisplay.from_estimator(model, arrays).frame()
    assert len(drawn) == 50
    pairs = [f"{one} - {other}" for one, other in zip(drawn["first"], drawn["second"], strict=True)]
    assert pairs == [f"{p} - {q}" for _, p, q, _ in expected[:50]]
    np.testing.assert_allclose(drawn["value"], [value for *_, value in expected[:50]])
    above = AssociationsDisplay.from_estimator(model, arrays, cutoff=0.3).frame()
    assert len(above) == sum(size >= 0.3 for size, *_ in expected) > 50


@pytest.mark.parametrize("kind", ["circos", "network"])
def test_lines_join_the_two_variables_and_have_the_colour_of_the_sign(kind, model, nuclei):
    drawn = AssociationsDisplay.from_estimator(model, nuclei, kind=kind, cutoff=0.15)
    frame = drawn.frame()
    assert {*(frame["value"] < 0)} == {True, False}
    widths = drawn.line_.get_linewidths()
    order = np.argsort(-np.asarray(widths), kind="stable")
    tones = [to_hex(drawn.line_.get_color()[i]) for i in order]
    assert tones == [NEGATIVE if value < 0 else POSITIVE for value in frame["value"]]
    lines = [drawn.line_.get_segments()[i] for i in order]
    drawn.figure_.canvas.draw()
    ends = list(zip(frame["first_view"], frame["first"], strict=True))
    ends += zip(frame["second_view"], frame["second"], strict=True)
    named = {}  # one place for each variable, and none for two
    for variable, place in zip(
        ends, [*(line[0] for line in lines), *(line[-1] for line in lines)], strict=True
    ):
        np.testing.assert_allclose(named.setdefault(variable, place), place, atol=1e-12)
    assert len({tuple(place.round(9)) for place in named.values()}) == len(named)
    if kind == "network":
        offsets = {
            view: {tuple(place.round(9)) for place in points.get_offsets()}
            for view, points in drawn.scatter_.items()
        }
        assert all(tuple(place.round(9)) in offsets[v] for (v, _), place in named.items())
    else:
        places = {tuple(np.round(text.get_position(), 9)) for text in drawn.text_}
        assert places == {tuple((1.1 * place).round(9)) for place in named.values()}


@pytest.mark.parametrize("kind", ["circos", "network"])
def test_views_keep_their_colours_if_one_of_them_has_no_pair(kind):
    zeros = np.zeros((1, 1))
    pairs = {("mean", "error"): zeros, ("mean", "worst"): zeros + 0.9, ("error", "worst"): zeros}
    drawn = AssociationsDisplay(pairs).plot(kind=kind, cutoff=0.5)
    shapes = drawn.sector_ if kind == "circos" else drawn.scatter_
    tones = {view: to_hex(np.ravel(shape.get_facecolor())[:4]) for view, shape in shapes.items()}
    assert tones == {"mean": COLORS[0], "worst": COLORS[2]}
    texts = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert texts == ["mean", "worst", "positive"]


def test_a_line_of_value_zero_is_in_the_legend():
    drawn = AssociationsDisplay({("x", "y"): [[0.0], [-0.5]]}).plot(cutoff=0.0)
    texts = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert {"positive", "negative"} <= set(texts)


@pytest.mark.parametrize(
    ("found", "names", "message"),
    [
        ({}, None, "Expected a matrix of associations for each pair of views"),
        ({("a", "b"): np.zeros(3)}, None, r"got shapes \{\('a', 'b'\): \(3,\)\}"),
        (
            {("a", "b"): np.eye(2), ("a", "c"): np.eye(3)},
            None,
            "a row or column for each variable",
        ),
        ({("a", "b"): np.eye(2)}, {"a": ["x"]}, "must name all 2 features of view 'a', got 1"),
    ],
)
def test_associations_of_other_variables_are_refused(found, names, message):
    with pytest.raises(ValueError, match=message):
        AssociationsDisplay(found, names)


def test_a_clustered_heat_map_has_the_order_of_two_trees(model, nuclei):
    drawn = AssociationsDisplay.from_estimator(
        model, nuclei, kind="heatmap", views=("worst", "error")
    )
    values = associations(model, nuclei)["error", "worst"].T
    rows, columns = (
        leaves_list(linkage(side, "complete", optimal_ordering=True)) for side in (values, values.T)
    )
    np.testing.assert_allclose(drawn.im_.get_array(), values[np.ix_(rows, columns)])
    shown = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    assert shown == [nuclei["worst"].columns[i] for i in rows]
    assert (drawn.ax_.get_ylabel(), drawn.ax_.get_xlabel()) == ("worst", "error")
    assert len(drawn.line_.get_segments()) == 9 + 9


def test_a_clustered_heat_map_keeps_the_largest_associations(model, nuclei):
    drawn = AssociationsDisplay.from_estimator(model, nuclei, kind="heatmap", n_top=4)
    sizes = np.abs(associations(model, nuclei)["mean", "error"])
    assert drawn.im_.get_array().shape == (4, 4)
    expected = {nuclei["mean"].columns[i] for i in np.argsort(-sizes.max(axis=1))[:4]}
    assert set(drawn.frame()["first"]) == expected
    one = AssociationsDisplay({("x", "y"): [[0.5]]}).plot(kind="heatmap")
    assert one.im_.get_array().item() == 0.5


# ---- objects ------------------------------------------------------------------------------------


def test_panels_have_the_scores_and_ellipses_of_their_view(model, nuclei):
    groups = np.resize(["a", "b", "b"], 200)
    drawn = SamplesDisplay.from_estimator(model, nuclei, groups=groups, components=(2, 0))
    scores = model.transform(nuclei)
    for view, of_view in drawn.scatter_.items():
        for group, scatter in of_view.items():
            expected = np.asarray(scores[view])[groups == group][:, [2, 0]]
            np.testing.assert_allclose(scatter.get_offsets(), expected)
            outline = drawn.ellipse_[view][group].get_xydata()
            centred = outline - expected.mean(axis=0)
            inverse = np.linalg.inv(np.cov(expected.T))
            squares = np.einsum("ij,jk,ik->i", centred, inverse, centred)
            np.testing.assert_allclose(squares, chi2.ppf(0.95, 2))
    assert not any(SamplesDisplay(drawn.points).plot(level=None).ellipse_.values())


def test_an_ellipse_holds_its_share_of_a_normal_distribution():
    points = np.random.default_rng(0).normal(size=(20_000, 2)) @ [[2.0, 0.7], [0.0, 0.5]] + [3, -1]
    for level in (0.5, 0.95):
        inside = matplotlib.path.Path(ellipse(points, level)).contains_points(points)
        assert inside.mean() == pytest.approx(level, abs=0.01)


def test_views_without_common_objects_have_labels_of_their_own():
    views = Views.unpaired({"sound": np.eye(4)[:, :2], "image": np.ones((3, 2))})
    labels = {"sound": list("abab"), "image": list("bbc")}
    drawn = SamplesDisplay(views, labels).plot()
    counts = {
        view: {group: len(s.get_offsets()) for group, s in of_view.items()}
        for view, of_view in drawn.scatter_.items()
    }
    assert counts == {"sound": {"a": 2, "b": 2, "c": 0}, "image": {"a": 0, "b": 2, "c": 1}}


def test_arrows_go_from_view_to_view_or_from_the_mean_to_each():
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=(30, 2)) * [1, 50] for name in "abc"}
    standard = {n: (rows - rows.mean(axis=0)) / rows.std(axis=0) for n, rows in scores.items()}
    (arrows,) = ArrowsDisplay({n: scores[n] for n in "ab"}).plot().arrow_.values()
    np.testing.assert_allclose(arrows.XY, standard["a"])
    np.testing.assert_allclose(np.c_[arrows.U, arrows.V], standard["b"] - standard["a"])
    three = ArrowsDisplay(scores).plot().arrow_
    middle = np.mean(list(standard.values()), axis=0)
    assert list(three) == list("abc")
    for name, arrows in three.items():
        np.testing.assert_allclose(arrows.XY, middle)
        np.testing.assert_allclose(np.c_[arrows.U, arrows.V], standard[name] - middle)


def test_arrows_are_those_of_objects_that_all_views_have():
    index = np.array([[0, 0], [1, -1], [2, 1], [-1, 2], [3, 3]])
    rng = np.random.default_rng(0)
    views = Views({"a": rng.normal(size=(4, 2)), "b": rng.normal(size=(4, 2))}, index)
    drawn = ArrowsDisplay(views, list("uvwxy"))
    assert drawn.groups == ["u", "w", "y"]
    with pytest.raises(ValueError, match="at least two objects that are seen in all views"):
        ArrowsDisplay(Views.unpaired({"a": np.eye(3), "b": np.eye(3)}))
    with pytest.raises(ValueError, match="at least two views, got \\['a'\\]"):
        ArrowsDisplay({"a": np.eye(3)})


@pytest.mark.parametrize("n_views", [2, 3, 5])
def test_no_group_of_a_biplot_has_the_colour_of_a_view_or_the_mark_of_another_group(n_views):
    rng = np.random.default_rng(0)
    loadings = {f"view {i}": rng.uniform(-1, 1, (4, 2)) for i in range(n_views)}
    groups = np.resize([f"group {i}" for i in range(10)], 40)
    drawn = BiplotDisplay({"a": rng.normal(size=(40, 2))}, loadings, groups=groups).plot(n_top=20)
    of_views = {to_hex(arrows.get_facecolor()[0]) for arrows in drawn.arrow_.values()}
    assert of_views == set(COLORS[:n_views])
    marks = {
        (to_hex(s.get_facecolor()[0]), s.get_paths()[0].vertices.tobytes())
        for s in drawn.scatter_.values()
    }
    assert len(marks) == 10
    assert not of_views & {tone for tone, _ in marks}


def test_groups_that_are_numbers_are_in_their_order():
    points = {"a": np.random.default_rng(0).normal(size=(8, 2))}
    drawn = SamplesDisplay(points, [1500, 50, 150, 2000] * 2).plot()
    texts = [text.get_text() for text in drawn.ax_.get_legend().get_texts()]
    assert texts == ["50", "150", "1500", "2000"]  # too few objects for ellipses


# ---- components ---------------------------------------------------------------------------------


def test_rows_of_the_auroc_are_components_of_views_and_columns_labels(model, nuclei):
    labels = np.array(["benign", "malignant"])[load_breast_cancer().target[:200]]
    drawn = AurocDisplay.from_estimator(model, nuclei, labels)
    names = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    found = label_auroc(model.transform(nuclei), labels)
    for row, name in zip(np.asarray(drawn.im_.get_array()), names, strict=True):
        view, component = name.split()
        expected = [found[view][label][int(component) - 1] for label in ("benign", "malignant")]
        np.testing.assert_allclose(row, expected)
    with pytest.raises(ValueError, match="areas of the same labels in each view"):
        AurocDisplay({"a": {"x": np.ones(1)}, "b": {"y": np.ones(1)}})


# ---- layouts ------------------------------------------------------------------------------------


def test_distances_of_a_layout_are_about_those_of_paths():
    chain = np.array([(i, i + 1) for i in range(7)])
    places = graph_layout(chain, 8)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    wanted = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    np.testing.assert_allclose(apart, wanted, atol=0.2)


def test_parts_of_a_graph_that_are_not_joined_lie_apart():
    triangles = np.array([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    places = graph_layout(triangles, 6)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    assert apart[:3, 3:].min() > apart[:3, :3].max()


def test_a_ring_has_room_for_each_item_and_gaps_between_sectors():
    angles, ends = ring([3, 0, 5])
    assert len(angles) == 8
    assert len(ends) == 3
    steps = -np.diff(angles)
    np.testing.assert_allclose(steps[[0, 1, 3, 4, 5, 6]], steps[0])
    assert steps[2] > steps[0]
    assert ends[1][0] == ends[1][1]
    assert 0 < ends[-1][1] - (ends[0][0] - 2 * np.pi) == pytest.approx(steps[2] - steps[0])


def test_a_tree_of_one_row_has_no_lines():
    order, lines = tree(np.ones((1, 3)))
    assert order.tolist() == [0]
    assert lines.shape == (0, 4, 2)
