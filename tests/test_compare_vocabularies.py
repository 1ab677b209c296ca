"""`compare` with word vectors of labels and with directions within views, from Python and files."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mvcca
from mvcca import CCA, MLCCA, Labels, Views, evaluate_retrieval
from mvcca.blocks import SourceError
from mvcca.cli import main
from mvcca.comparison.verdict import sentences
from mvcca.views.files import read_label_vectors

RNG = np.random.default_rng(0)
ENGLISH, GERMAN = ["cat", "dog", "wild boar"], ["Katze", "Hund", "wildes Schwein"]
MEANINGS = RNG.normal(size=(3, 6))
WORDS = {
    word: meaning + 0.2 * RNG.normal(size=6)
    for names in (ENGLISH, GERMAN)
    for word, meaning in zip(names, MEANINGS, strict=True)
}
N = 90
CLASSES = {"image": RNG.integers(3, size=N), "text": RNG.integers(3, size=N)}
ROWS = {
    name: RNG.normal(size=(N, 4)) + 2 * MEANINGS[classes][:, :4]
    for name, classes in CLASSES.items()
}
TAGS = {
    "image": [{ENGLISH[c]} for c in CLASSES["image"]],
    "text": [{GERMAN[c]} for c in CLASSES["text"]],
}
SPLIT = [(np.arange(2 * N)[np.arange(2 * N) % 3 > 0], np.arange(0, 2 * N, 3))]


def learned(tags):
    return {name: Labels.of(own).word_sums(WORDS) for name, own in tags.items()}


def test_weighted_map_of_a_comparison_is_that_of_the_evaluation():
    result = mvcca.compare(
        {"MLCCA": MLCCA(2, reg=0.1)},
        ROWS,
        TAGS,
        fit_labels=learned(TAGS),
        label_vectors=WORDS,
        measures=["wmap@5", "wmap@5:weighted"],
        cv=SPLIT,
        directions="all",
    )
    held_out = np.arange(N) % 3 == 0
    part = lambda own, keep: {n: [x for x, k in zip(own[n], keep, strict=True) if k] for n in own}  # noqa: E731
    train = {name: rows[~held_out] for name, rows in ROWS.items()}
    test = {name: rows[held_out] for name, rows in ROWS.items()}
    model = MLCCA(2, reg=0.1).fit(Views.unpaired(train), learned(part(TAGS, ~held_out)))
    expected = evaluate_retrieval(
        Views.unpaired(test),
        part(TAGS, held_out),
        label_vectors=WORDS,
        measures=["wmap@5", "wmap@5:weighted"],
        directions="all",
        estimator=model,
    )
    found = {(own["direction"], own["measure"]): own["value"] for own in result.records()}
    for row in expected:
        for name, value in row.values.items():
            assert_allclose(found[f"{row.query} -> {row.target}", name], value, rtol=1e-9)
    assert sentences(result)[0].startswith("Labels with similar word vectors: MLCCA has wmap@5")


def test_directions_within_views_are_measured_and_searched():
    views = {"image": ROWS["image"], "text": ROWS["image"][:, :3] + 0.1 * RNG.normal(size=(N, 3))}
    result = mvcca.compare(
        {"CCA": CCA(2)},
        views,
        CLASSES["image"],
        measures="map@5",
        cv=0.3,
        directions="within",
        search={"reg": [0.1, 100.0]},
    )
    directions = [own["direction"] for own in result.records()]
    assert directions[:2] == ["image -> image", "text -> text"]
    assert result.choice("CCA").params["reg"] in (0.1, 100.0)


def test_label_vectors_must_fit_the_labels():
    for labels, vectors, message in (
        (None, WORDS, "need classes or label sets"),
        (CLASSES["image"], np.eye(2), "one word vector per label, got 2 for 3"),
    ):
        with pytest.raises(ValueError, match=message):
            mvcca.compare({"CCA": CCA(2)}, Views(ROWS), labels, label_vectors=vectors, cv=0.3)
    with pytest.raises(KeyError, match="no word vector"):
        mvcca.compare({"CCA": CCA(2)}, Views(ROWS), CLASSES["image"], label_vectors=WORDS, cv=0.3)


# ---- the command line ---------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    for name, rows in ROWS.items():
        np.save(tmp_path / f"{name}.npy", rows)
        text = "\n".join(",".join(tags) for tags in TAGS[name])
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    lines = [f"{name} {' '.join(map(repr, map(float, row)))}" for name, row in WORDS.items()]
    (tmp_path / "words.vec").write_text("\n".join(["6 6", *lines]), encoding="utf-8")
    arguments = ["compare", "--methods", "mlcca", "--n-components", "2", "--json"]
    for name in ROWS:
        arguments += ["--view", f"{name}={tmp_path}/{name}.npy"]
        arguments += ["--labels", f"{name}={tmp_path}/{name}.txt"]
    return tmp_path, arguments


def test_the_command_line_learns_from_word_vectors_and_measures_with_them(files, capsys):
    folder, arguments = files
    vectors = ["--label-vectors", f"{folder}/words.vec", "--directions", "all"]
    assert not main([*arguments, *vectors, "--measures", "wmap@5"])
    (report,) = json.loads(capsys.readouterr().out)
    unit = {name: row / np.linalg.norm(row) for name, row in WORDS.items()}
    sums = {name: Labels.of(tags).word_sums(unit) for name, tags in TAGS.items()}
    expected = mvcca.compare(
        "mlcca", ROWS, TAGS, fit_labels=sums, label_vectors=WORDS, measures="wmap@5",
        directions="all", params={"n_components": 2},
    )  # fmt: skip
    (method,) = report["methods"]
    assert_allclose(method["measures"]["wmap@5"]["mean"], expected.mean("MLCCA", "wmap@5"))
    assert main([*arguments, "--measures", "map@5"]) != 0  # nothing in common
    assert "nothing in common" in capsys.readouterr().err


def test_word_vectors_are_read_by_name(files):
    read = read_label_vectors(str(files[0] / "words.vec"))
    assert list(read) == list(WORDS)
    for name, row in WORDS.items():
        assert_array_equal(read[name], row)
    np.save(files[0] / "words.npy", np.eye(3))
    assert_array_equal(read_label_vectors(str(files[0] / "words.npy")), np.eye(3))
    (files[0] / "empty.vec").write_text("cat\ndog\n")
    with pytest.raises(SourceError, match="a label and its numbers on each line"):
        read_label_vectors(str(files[0] / "empty.vec"))
    with pytest.raises(SourceError, match="no such file"):
        read_label_vectors(str(files[0] / "absent.txt"))
