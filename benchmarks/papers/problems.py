"""Data sets and splits that stand in for those of the papers.

A seed draws the training rows where there are more than a problem uses, and the division of rows
into validation and test rows where none is published. Seed 0 takes the first rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.papers.protocol import Part, Problem, Split
from benchmarks.real import (
    data_home,
    fetch_coco_captions,
    fetch_coco_label_vectors,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_nottingham,
    fetch_spoken_digits,
    fetch_wikipedia,
)
from mvcca import PerView, Views

_MAX_WORDS = 25  # 99 % of the sentences are not longer


def _drawn(n_all: int, n: int, seed: int) -> np.ndarray:
    """Numbers of n rows: the first ones for seed 0."""
    if n >= n_all or seed == 0:
        return np.arange(min(n, n_all))
    return np.sort(np.random.default_rng(seed).permutation(n_all)[:n])


def _few(split: Split, n_rows: int | None) -> Split:
    """The first rows of each part."""
    if n_rows is None:
        return split

    def first(part: Part) -> Part:
        words = None if part.words is None else part.words[:n_rows]
        return Part(
            part.views[:n_rows], None if part.labels is None else part.labels[:n_rows], words
        )

    return Split(first(split.train), first(split.valid), first(split.test))


def _scaled(views: Sequence[Views], scaler: Any = None) -> list[Views]:
    """Parts, transformed by what is learned from the first."""
    scaler = PerView(scaler or StandardScaler()).fit(views[0])
    return [scaler.transform(part) for part in views]


# ---- halves of digits ----------------------------------------------------------------------------

mnist = cache(fetch_mnist_halves)


def _mnist(n_train: int, n_held_out: int | None, seed: int, n_rows: int | None) -> Split:
    data = mnist()
    rows = _drawn(len(data.train.views), n_train, seed)
    held_out = slice(n_held_out)
    return _few(
        Split(
            Part(data.train.views[rows], data.train.labels[rows]),
            *(
                Part(part.views[held_out], part.labels[held_out])
                for part in (data.valid, data.test)
            ),
        ),
        n_rows,
    )


def _mnist_fold(seed: int, n_rows: int | None) -> Split:
    """A fold of 10,000 test images; of the others a sixth validates."""
    data = mnist()
    parts = (data.train, data.valid, data.test)
    views = Views.concatenate([part.views for part in parts])
    labels = np.concatenate([part.labels for part in parts])
    folds = list(KFold(7, shuffle=True, random_state=0).split(labels))
    rest, test = folds[seed % 7]
    rest = np.random.default_rng(seed).permutation(rest)
    rows = (np.sort(rest[10_000:]), np.sort(rest[:10_000]), test)
    return _few(Split(*(Part(views[own], labels[own]) for own in rows)), n_rows)


def mnist_halves(n_train: int) -> Problem:
    """Left and right halves of digits, 2,000 validation and 2,000 test images."""
    return Problem(
        f"mnist-{n_train}",
        f"MNIST halves, {n_train:,} training, 2,000 validation and 2,000 test images",
        partial(_mnist, n_train, 2000),
        ("mnist.npz",),
        guess=n_train / 100,
    )


MNIST = Problem(
    "mnist",
    "MNIST halves, 50,000 training, 10,000 validation and 10,000 test images",
    partial(_mnist, 50_000, None),
    ("mnist.npz",),
    guess=900.0,
)
MNIST_FOLDS = Problem(
    "mnist-folds",
    "MNIST halves, seven folds of 10,000 test images; 50,000 train and 10,000 validate",
    _mnist_fold,
    ("mnist.npz",),
    guess=900.0,
)


# ---- sentences -----------------------------------------------------------------------------------


@cache
def _sentences() -> dict[str, tuple[Views, Views]]:
    """Word counts and sequences of words, by part."""
    data, languages = fetch_multi30k(), ("en", "de")
    found = {}
    with np.load(data_home() / "multi30k_tokens.npz") as file:
        for name, key in (("train", "train"), ("valid", "val"), ("test", "test")):
            words = {
                n: _padded(file[f"{n}_{key}_tokens"], file[f"{n}_{key}_length"]) for n in languages
            }
            found[name] = data[name].views.select(languages), Views(words)
    return found


def _padded(tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sequences that are concatenated, as rows of `_MAX_WORDS` positions; 0 is padding."""
    rows = np.zeros((len(lengths), max(lengths.max(), _MAX_WORDS)), dtype=np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = tokens
    return rows[:, :_MAX_WORDS]


def _features(n_features: int) -> Any:
    return make_pipeline(
        TfidfTransformer(sublinear_tf=True),
        TruncatedSVD(n_features, random_state=0),
        StandardScaler(),
    )


def _multi30k(n_train: int, seed: int, n_rows: int | None) -> Split:
    parts = _sentences()
    rows = _drawn(len(parts["train"][0]), n_train if n_rows is None else 3 * n_rows, seed)
    counts = [parts["train"][0][rows], parts["valid"][0], parts["test"][0]]
    words = [parts["train"][1][rows], parts["valid"][1], parts["test"][1]]
    pairs = zip(_scaled(counts, _features(300)), words, strict=True)
    return _few(Split(*(Part(views, None, own) for views, own in pairs)), n_rows)


def multi30k(n_train: int) -> Problem:
    """English and German sentences."""
    return Problem(
        f"multi30k-{n_train}",
        f"Multi30k, English and German, {n_train:,} training, 1,014 validation and 1,000 test "
        "sentences: TF-IDF, 300 singular vectors, standardized",
        partial(_multi30k, n_train),
        ("multi30k.npz", "multi30k_tokens.npz"),
        guess=n_train / 50,
    )


@cache
def _captions(names: tuple[str, ...]) -> Any:
    data = fetch_coco_captions()
    train, test = (part.views.select(names) for part in (data.train, data.test))
    return *_scaled([train, test], _features(200)), data.train.labels, data.test.labels


def _caption_split(names: tuple[str, ...], seed: int, n_rows: int | None) -> Split:
    train, test, y, y_test = _captions(names)
    order = np.random.default_rng(seed).permutation(len(train))
    chosen, held_out = np.sort(order[500:]), np.sort(order[:500])
    split = Split(
        Part(train[chosen], y[chosen]), Part(train[held_out], y[held_out]), Part(test, y_test)
    )
    return _few(split, n_rows)


CAPTIONS = Problem(
    "captions",
    "MS-COCO captions, two of each image, 3,500 training, 500 validation and 1,000 test images, "
    "80 labels: TF-IDF, 200 singular vectors, standardized",
    partial(_caption_split, ("cap0", "cap1")),
    ("coco_val2017_captions.npz",),
)


# ---- articles ------------------------------------------------------------------------------------


def _wikipedia(features: str, seed: int, n_rows: int | None) -> Split:
    data = fetch_wikipedia(views=features.split("+"))
    train, rest = _scaled([data.train.views, data.test.views])
    order = np.random.default_rng(seed).permutation(len(rest))
    parts = (np.sort(order[:231]), np.sort(order[231:]))
    held_out = (Part(rest[rows], data.test.labels[rows]) for rows in parts)
    return _few(Split(Part(train, data.train.labels), *held_out), n_rows)


def wikipedia(features: str) -> Problem:
    """Images and texts of Wikipedia articles, the split of the paper on SAM."""
    return Problem(
        f"wikipedia-{features}",
        f"Wikipedia, {features}, 2,173 training, 231 validation and 462 test articles, 10 classes, "
        "standardized",
        partial(_wikipedia, features),
        ("wikipedia.npz",),
    )


# ---- tunes ---------------------------------------------------------------------------------------


def _nottingham(n_train: int, seed: int, n_rows: int | None) -> Split:
    from benchmarks.papers.nottingham import rendered

    data = _tunes()
    train = rendered(data, "train", n_rows or n_train, seed)
    held_out = (
        rendered(data, part, n_rows or n, own)
        for part, n, own in (("valid", 150, 1), ("test", 1000, 2))
    )
    return Split(Part(train), *map(Part, held_out))


_tunes = cache(fetch_nottingham)


def nottingham(n_train: int) -> Problem:
    """Sheets and sounds of excerpts of folk tunes."""
    return Problem(
        f"nottingham-{n_train}",
        f"Nottingham tunes as sheets and sounds, {n_train:,} training, 150 validation and 1,000 "
        "test excerpts",
        partial(_nottingham, n_train),
        ("nottingham.npz",),
        guess=n_train * 0.9,
    )


# ---- many views, and vocabularies ----------------------------------------------------------------

FIVE_CAPTIONS = Problem(
    "captions-5",
    "MS-COCO captions, five of each image, 3,500 training, 500 validation and 1,000 test images, "
    "80 labels: TF-IDF, 200 singular vectors, standardized",
    partial(_caption_split, tuple(f"cap{i}" for i in range(5))),
    ("coco_val2017_captions.npz",),
)


def _mfeat(seed: int, n_rows: int | None) -> Split:
    data = fetch_mfeat()
    order = np.random.default_rng(seed).permutation(len(data.labels))
    parts = [np.sort(rows) for rows in np.split(order, [1200, 1500])]
    views = _scaled([data.views[rows] for rows in parts])
    return _few(
        Split(*(Part(v, data.labels[rows]) for v, rows in zip(views, parts, strict=True))), n_rows
    )


MFEAT = Problem(
    "mfeat",
    "Multiple features, six descriptions of handwritten digits, 1,200 training, 300 validation and "
    "500 test digits, 10 classes, standardized",
    _mfeat,
    ("mfeat.npz",),
)


def _vocabularies(seed: int, n_rows: int | None) -> Split:
    """Labels are pairs: the label set of every row by view, and the word vectors of all labels."""
    data, given = fetch_coco_captions(), fetch_coco_label_vectors()
    names = tuple(f"cap{number}" for number in range(4))
    train, test, y, y_test = _captions(names)
    vectors = dict(zip(given.label_names, given.vectors["word2vec"], strict=True))
    halves = np.array_split(np.random.default_rng(seed).permutation(len(train)), 2)
    cut = [len(half) * 4 // 5 for half in halves]

    def part(views: Views, labels: np.ndarray, images: Sequence[np.ndarray]) -> Part:
        blocks, tags = {}, {}
        for number, name in enumerate(names):
            allowed = np.arange(labels.shape[1]) % 2 == number // 2
            rows = images[number // 2]
            rows = rows[(labels[rows].astype(bool) & allowed).any(axis=1)][:n_rows]
            blocks[name] = np.asarray(views[name])[rows]
            tags[name] = [
                set(data.label_names[labels[i].astype(bool) & allowed].tolist()) for i in rows
            ]
        return Part(Views.unpaired(blocks), (tags, vectors))

    every = [np.arange(len(test))] * 2
    return Split(
        part(train, y, [half[:c] for half, c in zip(halves, cut, strict=True)]),
        part(train, y, [half[c:] for half, c in zip(halves, cut, strict=True)]),
        part(test, y_test, every),
    )


VOCABULARIES = Problem(
    "captions-vocabularies",
    "MS-COCO captions of four people, unpaired between the two vocabularies of 40 labels each",
    _vocabularies,
    ("coco_val2017_captions.npz", "coco_label_vectors.npz"),
)


# ---- handwritten and spoken digits ---------------------------------------------------------------


def _whole_images(part: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The first images of a part, whole, and their digits."""
    halves = [part.views[side][:n_rows].reshape(-1, 28, 14) for side in ("left", "right")]
    return np.concatenate(halves, axis=2).reshape(-1, 784), part.labels[:n_rows]


def _components(rows: np.ndarray) -> Any:
    """Principal components, scaled by one number so that they have variance 1 on average."""
    pca = PCA(100, random_state=0).fit(rows)
    scale = pca.transform(rows).std()
    return lambda rows: (pca.transform(rows) / scale).astype(np.float32)


def _partners(digits: np.ndarray, recorded: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A recording of the digit for each image; all recordings of a digit are used equally often."""
    chosen = np.empty(len(digits), dtype=int)
    for digit in np.unique(digits):
        rows = digits == digit
        chosen[rows] = np.resize(rng.permutation(np.flatnonzero(recorded == digit)), rows.sum())
    return chosen


@cache
def _written() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    data, sizes = mnist(), {"train": 5000, "valid": 600, "test": 2000}
    images = {name: _whole_images(data[name], n) for name, n in sizes.items()}
    reduced = _components(images["train"][0])
    return {name: (reduced(pixels), digits) for name, (pixels, digits) in images.items()}


def _spoken(seed: int, n_rows: int | None) -> Split:
    """Pairs of training and validation rows are drawn by digit; test rows have none."""
    data, written = fetch_spoken_digits(), _written()
    recordings, digits = data.train.views["sound"], data.train.labels
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits))
    kept, held_out = order[300:], order[:300]
    reduced = _components(recordings[kept])

    def paired(name: str, rows: np.ndarray) -> Part:
        image, own = written[name]
        sound = reduced(recordings[rows[_partners(own, digits[rows], rng)]])
        return Part(Views({"image": image[:n_rows], "sound": sound[:n_rows]}), own[:n_rows])

    image, own = written["test"]
    sound, theirs = reduced(data.test.views["sound"]), data.test.labels
    test = Views.unpaired({"image": image[:n_rows], "sound": sound[:n_rows]})
    labels = {"image": own[:n_rows], "sound": theirs[:n_rows]}
    return Split(paired("train", kept), paired("valid", held_out), Part(test, labels))


SPOKEN_DIGITS = Problem(
    "spoken-digits",
    "Handwritten and spoken digits, 5,000 training images with recordings of the same digit, 600 "
    "validation pairs, 2,000 test images and 300 test recordings: 100 principal components each",
    _spoken,
    ("mnist.npz", "spoken_digits.npz"),
)
