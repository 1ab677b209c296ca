"""Labels that mean different things in different views are refused by name, at every door."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvcca
from mvcca import CMOLRS, JRL, LGCFL, MLCCA, MVMLCCA, Views, evaluate_retrieval, retrieval_scorer
from mvcca.cli import main
from mvcca.retrieval import recall_curve

RNG = np.random.default_rng(0)
HEIGHTS = {"image": 40, "text": 30}
BLOCKS = {"image": RNG.normal(size=(40, 5)), "text": RNG.normal(size=(30, 4))}
VIEWS = Views.unpaired(BLOCKS)
CLASSES = {name: RNG.permutation(np.arange(n) % 4) for name, n in HEIGHTS.items()}
COLUMNS = {name: np.eye(4, dtype=int)[codes] for name, codes in CLASSES.items()}
ABCD, EFGH = (np.array(list(names)) for names in ("abcd", "efgh"))


def frames(of_image, of_text):
    named = {"image": list(of_image), "text": list(of_text)}
    return {name: pd.DataFrame(COLUMNS[name], columns=columns) for name, columns in named.items()}


APART = r"nothing in common"
LABELS = {  # labels of each view, and what is said of them
    "DataFrames with other columns": (frames(ABCD, EFGH), rf"'a', 'b'.* {APART} .*'e', 'f'"),
    "sets of other names": (
        {
            "image": [{ABCD[code]} for code in CLASSES["image"]],
            "text": [{EFGH[code], EFGH[code - 1]} for code in CLASSES["text"]],
        },
        rf"'a', 'b'.* {APART} .*'e', 'f'",
    ),
    "other classes": (
        {"image": ABCD[CLASSES["image"]], "text": EFGH[CLASSES["text"]]},
        rf"'a', 'b'.* {APART} .*'e', 'f'",
    ),
    "other numbers of classes": (
        {"image": CLASSES["image"], "text": CLASSES["text"] + 4},
        rf"{APART}",
    ),
    "other columns of an array": (
        {
            "image": np.hstack([COLUMNS["image"], 0 * COLUMNS["image"]]),
            "text": np.hstack([0 * COLUMNS["text"], COLUMNS["text"]]),
        },
        rf"'column 0', 'column 1'.* {APART} .*'column 4', 'column 5'",
    ),
    "columns with and without names": (
        {"image": frames(ABCD, ABCD)["image"], "text": COLUMNS["text"]},
        r"all or none with column names",
    ),
    "more columns in one view": (
        {"image": COLUMNS["image"], "text": COLUMNS["text"][:, :3]},
        r"same length, got 4 and 3",
    ),
}


def score(measure):
    model = MLCCA(2).fit(VIEWS, CLASSES)
    return lambda y: retrieval_scorer(measure, "image", "text")(model, VIEWS, y)


DOORS = {
    "evaluate, map": lambda y: evaluate_retrieval(BLOCKS, y, measures="map"),
    "evaluate, ndcg": lambda y: evaluate_retrieval(BLOCKS, y, measures="ndcg@5"),
    "evaluate, ranks": lambda y: evaluate_retrieval(BLOCKS, y, measures="r@1"),
    "recall_curve": lambda y: recall_curve(BLOCKS, y, k=5),
    "scorer": score("map"),
    **{
        f"fit of {estimator!r}": lambda y, estimator=estimator: estimator.fit(VIEWS, y)
        for estimator in (
            MLCCA(2),
            MLCCA(2, label_features="nystroem", n_label_features=3),
            MVMLCCA(2, reg=0.1, within="label"),
            MVMLCCA(2, reg=0.1, within="sample"),
            LGCFL(),
            JRL(n_neighbors=5),
            CMOLRS(2),
        )
    },
    "fit of a list": lambda y: MVMLCCA(2, within="label").fit([*BLOCKS.values()], [*y.values()]),
}
BLOCKS = {name: rows[:, :4] for name, rows in BLOCKS.items()}  # of one space, for evaluation


@pytest.mark.parametrize("case", LABELS)
@pytest.mark.parametrize("door", DOORS)
def test_labels_that_cannot_be_the_same_are_refused(door, case):
    labels, message = LABELS[case]
    with pytest.raises(ValueError, match=message):
        DOORS[door](labels)


@pytest.mark.parametrize("case", ["other classes", "sets of other names"])
def test_a_comparison_refuses_them(case):
    y = [label for rows in LABELS[case][0].values() for label in rows]
    with pytest.raises(ValueError, match=LABELS[case][1]):
        mvcca.compare({"MLCCA": MLCCA(2, reg=0.1)}, VIEWS, y, cv=2)


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize(
    "case", ["other classes", "other columns of an array", "more columns in one view"]
)
def test_the_command_line_refuses_them(command, case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = []
    for name, labels in LABELS[case][0].items():
        np.save(f"{name}.npy", VIEWS[name])
        np.save(f"y_{name}.npy", labels)
        arguments += ["--view", f"{name}={name}.npy", "--labels", f"{name}=y_{name}.npy"]
    one = ["--method", "mlcca", "-o", "model.mvcca"]
    many = ["--methods", "mlcca", "--cv", "2"]
    assert main([command, *arguments, *(one if command == "fit" else many)]) == 1
    assert "nothing in common" in (err := capsys.readouterr().err) or "same length" in err


def test_names_match_columns_in_any_order():
    labels = frames(ABCD, ABCD)
    moved = labels | {"text": labels["text"][list("dbca")]}
    for door in ("evaluate, map", "scorer"):
        first, second = (DOORS[door](y) for y in (labels, moved))
        assert getattr(first, "rows", first) == getattr(second, "rows", second)
