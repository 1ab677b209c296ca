"""What all displays have in common, checked over a table of them; and what the newer ones draw."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_linnerud
from sklearn.exceptions import NotFittedError

import mvcca.plotting
from mvcca import CCA, MLCCA, MVCCA
from mvcca.datasets import load_digits_views, make_gaussian_views
from mvcca.inspection import associations, component_correlations, label_auroc, loadings

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from displays import CASES, OF_ROWS, PUBLIC, RED, artists, name_of  # noqa: E402
from matplotlib.artist import Artist  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from mvcca.plotting import (  # noqa: E402
    ArrowsDisplay,
    AssociationsDisplay,
    AurocDisplay,
    BiplotDisplay,
    CorrelationDisplay,
    Display,
    EmbeddingDisplay,
    LoadingsDisplay,
    RecallCurveDisplay,
    RetrievedDisplay,
    SamplesDisplay,
)
from mvcca.plotting.style import COLORS, tidy_axes  # noqa: E402
from mvcca.retrieval import evaluate_retrieval  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Few rows")  # Linnerud's are 20

every_case = pytest.mark.parametrize("case", CASES, ids=name_of)
of_rows = pytest.mark.parametrize("case", OF_ROWS, ids=name_of)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def frames():
    data = load_linnerud(as_frame=True)
    return {"exercise": data.data, "body": data.target}


@pytest.fixture(scope="module")
def three():
    return make_gaussian_views(60, n_features=(4, 3, 3), random_state=0).views


@pytest.fixture(scope="module")
def model(frames):
    return CCA(2).fit(frames)


def has(artist: Artist, keywords: dict[str, Any]) -> bool:
    """Whether an artist has the colour or the transparency that was asked for."""
    if "alpha" in keywords:
        return artist.get_alpha() == keywords["alpha"]
    get: Callable[[], Any] = getattr(artist, "get_color", None) or artist.get_facecolor
    return to_hex(np.ravel(get())[:4] if not isinstance(get(), str) else get()) == RED


def texts_of(figure: Any) -> list[Text]:
    """All texts that a figure shows."""
    found = []
    for ax in figure.axes:
        found += [*ax.texts, ax.title]
        if ax.get_legend():
            found += ax.get_legend().get_texts()
        for axis in (ax.xaxis, ax.yaxis) if ax.axison else ():
            low, high = sorted(axis.get_view_interval())
            places = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
            found += [axis.label, *(text for place, text in places if low <= place <= high)]
    return [text for text in found if text.get_visible() and text.get_text()]


def corners(text: Text) -> np.ndarray:
    """Corners of the box of a text, turned as it is, a pixel smaller."""
    turn, middle = text.get_rotation(), np.mean(Text.get_window_extent(text).get_points(), axis=0)
    text.set_rotation(0)
    box = Text.get_window_extent(text)
    text.set_rotation(turn)
    half = np.array([box.width, box.height]) / 2 - 1
    cos, sin = np.cos(np.deg2rad(turn)), np.sin(np.deg2rad(turn))
    return middle + half * [(1, 1), (-1, 1), (-1, -1), (1, -1)] @ np.array(
        [[cos, sin], [-sin, cos]]
    )


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two rectangles overlap: no side of either has one on each of its sides."""
    for corner in (one, other):
        for direction in np.diff(corner[:3], axis=0):
            first, second = one @ direction, other @ direction
            if first.max() <= second.min() or second.max() <= first.min():
                return False
    return True


def check_texts(figure: Any) -> None:
    """Check that all texts are inside the figure and that no two of them overlap."""
    for _ in range(2):  # as when a figure is shown and then saved
        figure.draw_without_rendering()
    texts = texts_of(figure)
    boxes = [corners(text) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert (box >= -1).all(), text
        assert (box <= np.array(figure.bbox.size) + 1).all(), text
    for i, (text, box) in enumerate(zip(texts, boxes, strict=True)):
        for other, of_other in zip(texts[:i], boxes[:i], strict=True):
            assert not overlap(box, of_other), (text, other)


# ---- all of them --------------------------------------------------------------------------------


def test_the_table_has_every_display():
    assert {case.display.__name__ for case in CASES} == PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_display_has_the_signature_of_scikit_learn(name):
    display = getattr(mvcca.plotting, name)
    of_plot = list(inspect.signature(display.plot).parameters.values())
    assert (of_plot[1].name, of_plot[1].default) == ("ax", None)
    for method in (display.plot, display.from_estimator):
        *_, last = inspect.signature(method).parameters.values()
        assert last.kind is inspect.Parameter.VAR_KEYWORD
    assert inspect.signature(display.from_estimator).parameters["ax"].default is None


@every_case
def test_it_draws_on_given_axes_and_keeps_what_it_drew(case, model, frames):
    figure, grid = plt.subplots(2, 2)
    ax = grid[1, 0]
    place = ax.get_position()
    drawn = case.draw(model, frames, ax=ax)
    panels = list(getattr(drawn, "axes_", {"": ax}).values())
    assert drawn.ax_ is panels[0]
    assert drawn.figure_ is figure
    assert panels == [ax] or not ax.axison
    for panel in panels:  # several of them are inside the axes
        assert place.padded(1e-9).contains(*panel.get_position().min)
        assert place.padded(1e-9).contains(*panel.get_position().max)
    kept = artists(getattr(drawn, case.artist))
    assert kept
    assert all(artist.axes in panels for artist in kept)
    again = drawn.plot(**{k: v for k, v in case.options.items() if k == "kind"})
    assert again is drawn
    assert drawn.figure_ is not figure
    figure.draw_without_rendering()


@every_case
def test_keywords_of_matplotlib_reach_the_artists(case, model, frames):
    plain = case.draw(model, frames)
    assert not any(has(artist, case.keywords) for artist in artists(getattr(plain, case.artist)))
    styled = case.draw(model, frames, **case.keywords)
    assert all(has(artist, case.keywords) for artist in artists(getattr(styled, case.artist)))


@every_case
def test_an_unknown_keyword_raises(case, model, frames):
    with pytest.raises((AttributeError, TypeError), match="colour"):
        case.draw(model, frames, colour="red")


@every_case
def test_the_frame_has_what_is_drawn(case, model, frames):
    pytest.importorskip("pandas")
    drawn = case.draw(model, frames)
    frame = drawn.frame()
    assert len(frame) == case.n_rows
    assert frame.columns.is_unique
    framed, shown = (np.ravel(read) for read in (case.framed(frame), case.shown(drawn)))
    np.testing.assert_allclose(shown.astype(float), framed.astype(float), atol=1e-12)


@every_case
def test_what_cannot_be_drawn_is_refused_in_one_line(case, model, frames):
    with pytest.raises(ValueError, match=case.reason) as error:
        case.wrong(model, frames)
    assert "\n" not in str(error.value)


def own_figure():
    """No axes: a display makes its own."""
    return


def one_of_four():
    """Axes among others."""
    return plt.subplots(2, 2, figsize=(10, 8), layout="constrained")[1][0, 1]


def small_axes():
    """The only axes of a figure of two thirds the default size."""
    return plt.subplots(figsize=(4.4, 3.4), layout="constrained")[1]


@pytest.mark.parametrize(
    "axes", [own_figure, pytest.param(one_of_four, marks=pytest.mark.long), small_axes]
)
@every_case
def test_titles_say_what_is_shown_and_texts_are_inside_and_apart(case, axes, model, frames):
    drawn = case.draw(model, frames, ax=axes())
    panels = list(getattr(drawn, "axes_", {"": drawn.ax_}).values())
    assert all(len(panel.get_title()) >= 10 for panel in panels)
    check_texts(drawn.figure_)


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.5, 3), (10, 8)])
@pytest.mark.parametrize("kind", ["circle", "biplot", "network", "circos"])
def test_long_names_in_a_crowd_are_inside_and_apart(kind, size):
    rng = np.random.default_rng(0)
    values = {"a": np.full((20, 2), 0.6) + 0.02 * rng.normal(size=(20, 2))}
    names = {"a": [f"a rather long name {i}" for i in range(20)]}
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    if kind == "circle":
        drawn = LoadingsDisplay(values, names).plot(ax, kind="circle", n_top=20)
    elif kind == "biplot":
        drawn = BiplotDisplay({"a": rng.normal(size=(30, 2))}, values, names).plot(ax, n_top=20)
    else:
        of_views = {"a": names["a"][:10], "b": names["a"][10:]}
        found = {("a", "b"): rng.normal(size=(10, 10))}
        drawn = AssociationsDisplay(found, of_views).plot(ax, kind=kind, cutoff=0.0)
    check_texts(figure)
    check_note(drawn)
    assert any(text.get_visible() for text in drawn.text_)


def check_note(drawn):
    """Check that the names that are not shown are counted."""
    n_hidden = sum(not text.get_visible() for text in drawn.text_)
    (note,) = (text for text in drawn.ax_.texts if "no room" in text.get_text())
    assert note.get_visible() == (n_hidden > 0)
    assert note.get_text() == f"{n_hidden} of {len(drawn.text_)} names\nhave no room"


@pytest.mark.parametrize("n_names", [30, 141, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("side", [3, 8])
def test_names_without_room_are_left_out_and_counted(n_names, side):
    values = {"a": 0.7 * np.random.default_rng(0).uniform(-1, 1, (n_names, 2))}
    _, ax = plt.subplots(figsize=(side + 1, side), layout="constrained")
    drawn = LoadingsDisplay(values).plot(ax, kind="circle", n_top=n_names)
    check_texts(drawn.figure_)
    check_note(drawn)
    assert sum(text.get_visible() for text in drawn.text_) >= min(n_names, 12) - 2
    for text in drawn.text_:  # near its point: no line is needed, which others would cross
        assert not text.get_visible() or np.abs(text.get_position()[1]) < 30


@pytest.mark.parametrize("n_names", [12, 100])
def test_a_reader_who_zooms_in_keeps_the_limits_and_the_names_inside(n_names):
    values = {"a": 0.7 * np.random.default_rng(0).uniform(-1, 1, (100, 2))}
    drawn = LoadingsDisplay(values).plot(kind="circle", n_top=n_names)
    drawn.figure_.draw_without_rendering()
    drawn.ax_.set(xlim=(0, 0.6), ylim=(0, 0.6))
    check_texts(drawn.figure_)
    (left, right), (low, high) = drawn.ax_.get_xlim(), drawn.ax_.get_ylim()
    assert -0.5 < left < right < 1
    for text in drawn.text_:
        x, y = text.xy
        assert text.get_visible() == (left <= x <= right and low <= y <= high)


def curves_of(rows, **how):
    return evaluate_retrieval(rows, measures="mr", **how).recall_curves()


def of_projected_rows(case, scores, frames):
    """The display of a case, from scores and rows in place of an estimator."""
    options = {**case.options, **case.labels()}
    if case.display is RecallCurveDisplay:
        return RecallCurveDisplay({"": curves_of(scores)}).plot()
    if case.display is CorrelationDisplay:
        return CorrelationDisplay({"training": component_correlations(scores, frames)}).plot()
    if case.display is AurocDisplay:
        return AurocDisplay(label_auroc(scores, options["y"])).plot()
    names = {name: [*frame] for name, frame in frames.items()}
    if case.display is AssociationsDisplay:
        return AssociationsDisplay(associations(scores, frames), names).plot(**options)
    if case.display is LoadingsDisplay:
        return LoadingsDisplay(loadings(scores, frames), names).plot(**options)
    if case.display is BiplotDisplay:
        return BiplotDisplay(scores, loadings(scores, frames), names).plot(**options)
    return case.display(scores).plot(**options)


@pytest.mark.parametrize(
    "case", [c for c in OF_ROWS if c.display is not RetrievedDisplay], ids=name_of
)
def test_projected_rows_draw_the_same(case, model, frames):
    one = case.draw(model, frames)
    if case.display is RecallCurveDisplay:
        curves = curves_of(frames, similarity="cosine", estimator=model)
        one = RecallCurveDisplay({"": curves}).plot()
    other = of_projected_rows(case, model.transform(frames), frames)
    pairs = zip(*(artists(getattr(display, case.artist)) for display in (one, other)), strict=True)
    for first, second in pairs:
        for read in ("get_xydata", "get_offsets", "get_width", "get_array"):
            if hasattr(first, read) and getattr(first, read)() is not None:
                np.testing.assert_allclose(getattr(first, read)(), getattr(second, read)())
        if hasattr(first, "get_text"):
            assert first.get_text() == second.get_text()


@of_rows
def test_arrays_many_views_and_few_components(case, three):
    X, Y = three["view0"], three["view1"]
    two = (X, Y) if case.takes_matrices else ([X, Y],)
    few, many = CCA(case.n_components).fit(X, Y), MVCCA(3).fit(three)
    for arguments in ((few, *two), (many, three)):
        drawn = case.draw(*arguments, n_objects=60)
        check_texts(drawn.figure_)
        assert artists(getattr(drawn, case.artist))
    assert artists(getattr(case.draw(many, dict(three.items()), n_objects=60), case.artist))


@of_rows
def test_an_estimator_that_is_not_fitted_is_refused(case, frames):
    with pytest.raises(NotFittedError):
        case.draw(CCA(2), frames)


@every_case
def test_figures_can_be_pickled(case, model, frames):
    pickle.loads(pickle.dumps(case.draw(model, frames))).figure_.draw_without_rendering()


@pytest.mark.parametrize("display", [BiplotDisplay, LoadingsDisplay])
def test_columns_of_data_frames_name_the_variables(display, frames):
    drawn = display.from_estimator(
        CCA(2).fit(frames), frames, **({"kind": "circle"} if display is LoadingsDisplay else {})
    )
    expected = {name for frame in frames.values() for name in frame.columns}
    assert {text.get_text() for text in drawn.text_} == expected


@pytest.mark.parametrize(
    ("display", "options", "message"),
    [
        (BiplotDisplay, {"components": (0, 2)}, "numbered from 0 to 1, got 2"),
        (BiplotDisplay, {"groups": [0, 1]}, "Expected 20 groups, one per object, got 2"),
        (BiplotDisplay, {"components": (0,)}, "Expected two components"),
        (BiplotDisplay, {"feature_names": {"mind": []}}, "Unknown view 'mind'"),
        (LoadingsDisplay, {"kind": "heatmap", "components": [5]}, "from 0 to 1, got 5"),
        (RetrievedDisplay, {"query": "mind"}, "Unknown view 'mind'; the views are"),
        (RetrievedDisplay, {"queries": [20]}, "There are 20 queries"),
        (RetrievedDisplay, {"show": (2, 2)}, r"has 3 features, got the shape \(2, 2\)"),
        (RetrievedDisplay, {"show": ["a"]}, "must have 20 rows for view '(body|exercise)', got 1"),
    ],
)
def test_bad_input_says_what_is_wrong(display, options, message, frames):
    with pytest.raises(ValueError, match=message):
        display.from_estimator(CCA(2).fit(frames), frames, **options)


# ---- groups -------------------------------------------------------------------------------------


def test_groups_have_colours_and_the_others_are_counted():
    scores = {name: np.random.default_rng(0).normal(size=(40, 2)) for name in "ab"}
    groups = np.repeat(np.arange(12), [9, *[3] * 9, 2, 2])
    drawn = SamplesDisplay(scores, groups).plot(level=None)
    parts = drawn.scatter_["a"]
    tones = {name: to_hex(part.get_facecolor()[0]) for name, part in parts.items()}
    assert len(set(tones.values())) == 11
    texts = [text.get_text() for text in drawn.axes_["b"].get_legend().get_texts()]
    assert texts == [*sorted(map(str, range(10))), "2 others"]
    assert sum(len(part.get_offsets()) for part in parts.values()) == 40


# ---- loadings, biplot and labels ----------------------------------------------------------------


def test_the_heat_map_has_the_largest_loadings_in_the_order_of_the_views():
    views = load_digits_views().views
    model = CCA(3, reg=0.1).fit(views)
    drawn = LoadingsDisplay.from_estimator(model, views, kind="heatmap", components=[2, 0], n_top=9)
    values = np.concatenate([of_view[:, [2, 0]] for of_view in loadings(model, views).values()])
    top = np.sort(np.argsort(-np.linalg.norm(values, axis=1))[:9])
    np.testing.assert_allclose(drawn.im_.get_array(), values[top])
    shown = [[float(text.get_text()) for text in line] for line in drawn.text_]
    np.testing.assert_allclose(shown, values[top], atol=0.0051)
    names = [*(f"left {i}" for i in range(32)), *(f"right {i}" for i in range(32))]
    found = [text.get_text() for text in drawn.ax_.get_yticklabels()]
    assert found == [names[i] for i in top]


def test_text_in_a_heat_map_is_readable_on_its_cell(three):
    drawn = LoadingsDisplay.from_estimator(MVCCA(2).fit(three), three, kind="heatmap")

    def luminance(tone):
        encoded = np.array(matplotlib.colors.to_rgb(tone))
        linear = np.where(encoded > 0.04045, ((encoded + 0.055) / 1.055) ** 2.4, encoded / 12.92)
        return linear @ [0.2126, 0.7152, 0.0722]

    for value, text in zip(drawn.im_.get_array().flat, np.ravel(drawn.text_), strict=True):
        ground = drawn.im_.cmap(drawn.im_.norm(value))
        low, high = sorted((luminance(ground[:3]), luminance(text.get_color())))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_the_biplot_has_mean_standardized_variates_and_arrows_of_loadings(frames):
    model = CCA(2).fit(frames)
    drawn = BiplotDisplay.from_estimator(model, frames, components=(1, 0))
    scores = [np.asarray(Z)[:, [1, 0]] for Z in model.transform(frames).values()]
    expected = np.mean([(Z - Z.mean(axis=0)) / Z.std(axis=0) for Z in scores], axis=0)
    np.testing.assert_allclose(drawn.scatter_[""].get_offsets(), expected)
    arrows = {n: np.c_[q.U, q.V] for n, q in drawn.arrow_.items()}
    of_view = loadings(model, frames)
    factors = [
        np.linalg.norm(np.sort(arrows[name], axis=0)) / np.linalg.norm(of_view[name])
        for name in frames
    ]
    assert factors[0] == pytest.approx(factors[1])
    for name, values in of_view.items():
        want = factors[0] * values[:, [1, 0]]
        assert {*map(tuple, want.round(9))} == {*map(tuple, arrows[name].round(9))}


# ---- retrieved items ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    data = load_digits_views()
    model = MLCCA(9, reg=0.1).fit(data.views[:900], data.labels[:900])
    return model, data.views[900:1100], data.labels[900:1100]


def test_images_are_the_queries_and_the_items_that_an_index_finds(digits):
    model, views, labels = digits
    drawn = RetrievedDisplay.from_estimator(
        model, views, labels, query="right", queries=[3, 8], k=4, show=(8, 4)
    )
    index = mvcca.RetrievalIndex(model).add(views)
    _, found = index.search({"right": views["right"][[3, 8]]}, target="left", k=4)
    shown = [np.asarray(image.get_array()) for image in drawn.im_]
    expected = [
        image
        for query, items in zip([3, 8], found, strict=True)
        for image in (views["right"][query], *views["left"][items])
    ]
    np.testing.assert_allclose(shown, np.reshape(expected, (10, 8, 4)))
    relevant = labels[found] == labels[[3, 8]][:, None]
    np.testing.assert_array_equal(drawn.relevant, relevant)
    dashed = [frame.get_linestyle() not in ("-", "solid") for frame in drawn.frame_]
    assert dashed == (~relevant).ravel().tolist()


def test_texts_are_ticked_and_only_the_pair_is_relevant_without_labels(digits):
    model, views, _ = digits
    drawn = RetrievedDisplay.from_estimator(
        model, views, queries=3, k=200, show=[f"row {i}" for i in range(200)]
    )
    texts = [text.get_text() for text in drawn.text_]
    assert texts[::201] == ["row 0", "row 1", "row 2"]
    ticked = [text for text in texts if text.startswith("✓")]
    assert ticked == ["✓ row 0", "✓ row 1", "✓ row 2"]
    assert len(texts) == 3 * 201


def test_a_view_of_images_may_retrieve_texts(digits):
    model, views, labels = digits
    show = {"left": (8, 4), "right": [f"digit {label}" for label in labels]}
    drawn = RetrievedDisplay.from_estimator(model, views, labels, show=show, k=3, queries=2)
    assert (len(drawn.im_), len(drawn.text_)) == (2, 6)


def test_row_labels_of_data_frames_name_items(frames):
    named = {
        name: frame.set_axis([f"man {i}" for i in frame.index]) for name, frame in frames.items()
    }
    drawn = RetrievedDisplay.from_estimator(CCA(2).fit(named), named, queries=1, k=2)
    assert drawn.text_[0].get_text() == "man 0"


def test_methods_are_compared_on_one_set_of_rows(frames):
    models = {"loose": CCA(2).fit(frames), "tight": CCA(2, reg=1.0).fit(frames)}
    drawn = CorrelationDisplay.from_estimator(models, frames)
    for name, model in models.items():
        expected = component_correlations(model, frames)["exercise", "body"]
        np.testing.assert_allclose(drawn.line_[name].get_ydata(), expected)
    tones = [line.get_color() for line in drawn.line_.values()]
    assert tones == list(COLORS[:2])
    with pytest.raises(ValueError, match="Pass the held-out rows as X"):
        CorrelationDisplay.from_estimator(models, frames, X_test=frames)


# ---- constructors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BiplotDisplay([np.ones((5, 3))], {"a": np.ones((2, 2))}, components=(0, 2)),
            "from 0 to 1, got 2",
        ),
        (lambda: RetrievedDisplay(["a"], [["b", "c"]], [[True]]), "list of items for each query"),
    ],
)
def test_a_constructor_refuses_what_cannot_be_drawn(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---- frames -------------------------------------------------------------------------------------


def test_frames_have_the_values_that_are_drawn(frames, three):
    pytest.importorskip("pandas")
    model = CCA(2).fit(frames)
    drawn = LoadingsDisplay.from_estimator(model, frames)
    table = drawn.frame().pivot(index="name", columns="component", values="loading")
    for name, values in loadings(model, frames).items():
        np.testing.assert_array_equal(table.loc[list(frames[name].columns)], values)
    drawn = CorrelationDisplay.from_estimator(MVCCA(2).fit(three), three)
    means = drawn.frame().groupby("component")["correlation"].mean()
    np.testing.assert_allclose(means, drawn.line_["training"].get_ydata())
    groups = np.repeat(["a", "b"], 10)
    drawn = EmbeddingDisplay.from_estimator(model, frames, groups=groups)
    of_body = drawn.frame().query("view == 'body'")
    np.testing.assert_array_equal(of_body[["x", "y"]], drawn.scatter_["body"].get_offsets())
    drawn = BiplotDisplay.from_estimator(model, frames, groups=groups)
    assert drawn.frame()["name"].dropna().tolist() == [c for f in frames.values() for c in f]


@pytest.mark.parametrize("kind", ["circos", "network"])
def test_only_the_strongest_associations_are_named(kind, frames):
    model = CCA(2).fit(frames)
    drawn = AssociationsDisplay.from_estimator(model, frames, cutoff=0, kind=kind)
    few = AssociationsDisplay.from_estimator(model, frames, cutoff=0, kind=kind, max_labels=2)
    names = [text.get_text() for text in drawn.text_]
    assert len(names) > 2
    assert {*names} <= {column for frame in frames.values() for column in frame}
    assert [text.get_text() for text in few.text_] == names[:2]


def options_of(function):
    """Defaults of the options of a function by name."""
    found = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in found if one.kind is one.KEYWORD_ONLY}


@of_rows
def test_from_estimator_has_all_options_of_plot_with_their_defaults(case):
    taken = options_of(case.display.from_estimator)
    assert options_of(case.display.plot).items() <= taken.items()
    of_class = inspect.signature(case.display).parameters.values()
    optional = {one.name: one.default for one in of_class if one.default is not one.empty}
    assert optional.items() <= taken.items()


@pytest.mark.parametrize(
    "display", [ArrowsDisplay, BiplotDisplay, EmbeddingDisplay, SamplesDisplay]
)
def test_labels_that_colour_rows_are_groups(display, frames):
    model, labels = CCA(2).fit(frames), np.repeat(["a", "b"], 10)
    assert set(display.from_estimator(model, frames, groups=labels).groups) == {"a", "b"}
    with pytest.raises(ValueError, match="pass labels as groups=y"):
        display.from_estimator(model, frames, labels)


def test_a_missing_pandas_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="frame needs pandas: pip install pandas"):
        LoadingsDisplay({"a": np.ones((2, 3))}).frame()


def test_columns_of_files_name_the_variables(tmp_path, frames):
    pytest.importorskip("pyarrow")
    frames["exercise"].to_parquet(tmp_path / "exercise.parquet", index=False)
    np.save(tmp_path / "body.npy", frames["body"])
    files = {
        "exercise": mvcca.open_matrix(tmp_path / "exercise.parquet"),
        "body": mvcca.open_matrix(tmp_path / "body.npy"),
    }
    drawn = LoadingsDisplay.from_estimator(CCA(2).fit(frames), files)
    names = [*frames["exercise"].columns, "body 0", "body 1", "body 2"]
    assert drawn.frame()["name"].unique().tolist() == names


class Lengths(Display):
    """A display of one's own, made of public names only."""

    def __init__(self, scores):
        self.lengths = {name: np.linalg.norm(rows, axis=1) for name, rows in scores.items()}

    def plot(self, ax=None, **kwargs):
        self.ax_ = tidy_axes(ax)
        self.box_ = self.ax_.boxplot(list(self.lengths.values()), **kwargs)
        return self

    def frame(self):
        return self.lengths


def test_a_display_of_ones_own_gets_from_estimator(frames):
    drawn = Lengths.from_estimator(CCA(2).fit(frames), frames, notch=True)
    assert list(drawn.frame()) == ["exercise", "body"]
    assert drawn.figure_ is drawn.ax_.figure
