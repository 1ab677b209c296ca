"""Images, sounds, texts, tunes, brains and mice: one function per data set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from mvcca import Views

from ._files import counts, read, unpacked


def fetch_mnist_halves() -> Bunch:
    """MNIST: left and right halves of handwritten digits, the benchmark of deep CCA.

    LeCun, Bottou, Bengio & Haffner 1998; CC BY-SA 3.0. Training images 0-49,999 are `train`,
    50,000-59,999 `valid`. Pixels are divided by 255. The border is black in every image: 353 and
    364 of the 392 pixels vary over the training images. CCA with 50 components reaches a total
    test correlation of 28.9.
    """
    arrays = read("mnist.npz")

    def part(name: str) -> Bunch:
        images = arrays[f"X_{name}"].astype(np.float32) / np.float32(255)
        halves = {"left": images[:, :, :14], "right": images[:, :, 14:]}
        flat = {side: half.reshape(len(images), -1) for side, half in halves.items()}
        return Bunch(views=Views(flat), labels=arrays[f"y_{name}"].astype(int))

    shapes = dict.fromkeys(("left", "right"), (28, 14))
    return Bunch(**{name: part(name) for name in ("train", "valid", "test")}, image_shapes=shapes)


def fetch_mfeat() -> Bunch:
    """Multiple Features: six descriptions of 2,000 handwritten digits, sorted by digit.

    van Breukelen, Duin, Tax & den Hartog 1998; UCI Machine Learning Repository, CC BY 4.0. Profile
    correlations, Fourier and Karhunen-Loeve coefficients, morphological features, pixel averages
    and Zernike moments; their scales differ widely.
    """
    arrays = read("mfeat.npz")
    views = Views({name: arrays[name] for name in ("fac", "fou", "kar", "mor", "pix", "zer")})
    return Bunch(views=views, labels=arrays["y"].astype(int))


def fetch_scene() -> Bunch:
    """Scene: colour moments of photographs, one view per colour channel, one to three labels each.

    Boutell, Luo, Shen & Brown, "Learning multi-label scene classification", Pattern Recognition 37,
    2004; in the collection of Mulan. A view is 49 block means, then 49 block variances.
    """
    arrays = read("scene.npz")

    def part(name: str) -> Bunch:
        channels = {"L": "ch0", "u": "ch1", "v": "ch2"}
        views = Views({view: arrays[f"{channel}_{name}"] for view, channel in channels.items()})
        return Bunch(views=views, labels=arrays[f"labels_{name}"].astype(int))

    return Bunch(train=part("train"), test=part("test"), label_names=arrays["label_names"])


def fetch_wikipedia(views: Sequence[str] = ("sift", "lda")) -> Bunch:
    """Wikipedia featured articles: one image and one text each, in ten classes.

    Rasiwasia et al., "A new approach to cross-modal multimedia retrieval", ACM Multimedia 2010.
    `sift` (histogram over 128 visual words) and `lda` (proportions of 10 topics) are the features
    of the paper; `deep` (128) and `w2v` (100) are later features of the same images and texts.
    Published mean average precision, image to text and text to image: CCA 0.249 and 0.196.
    """
    arrays = read("wikipedia.npz")

    def part(name: str) -> Bunch:
        blocks = {view: arrays[f"{view}_{name}"] for view in views}
        return Bunch(views=Views(blocks), labels=arrays[f"y_{name}"].astype(int) - 1)

    return Bunch(train=part("train"), test=part("test"), label_names=arrays["class_names"])


LANGUAGES = ("en", "de", "fr", "cs")


def fetch_multi30k() -> Bunch:
    """Multi30K: captions of the same pictures in four languages, as four sparse views.

    Elliott et al. 2016-2018, for non-commercial research. Three German and six Czech training rows
    contain no frequent word and are all zero. `coco` is another test set, of pictures from MS-COCO
    with their labels and without Czech; 99 % of them share the label "person", which makes
    retrieval by shared labels uninformative.
    """
    arrays = read("multi30k.npz")

    def part(split: str, languages: Sequence[str] = LANGUAGES, labels: object = None) -> Bunch:
        blocks = {language: counts(arrays, f"{language}_{split}") for language in languages}
        return Bunch(views=Views(blocks), labels=labels)

    coco = part("coco", LANGUAGES[:3], unpacked(arrays["coco_labels"], 80).astype(int))
    return Bunch(
        train=part("train"),
        valid=part("val"),
        test=part("test"),
        coco=coco,
        vocabularies={language: arrays[f"vocab_{language}"] for language in LANGUAGES},
    )


def fetch_multi30k_encoders() -> Bunch:
    """Multi30K through three frozen text encoders: embeddings to align with each other.

    The first 10,000 training sentences, the validation and the test sentences; English by
    MiniLM-L6-v2 (Apache-2.0, 384 features) and WordLlama (MIT, 256), German descriptions of the
    same pictures by multilingual-e5-small in 4 bits (MIT, 384). Vectors of length 1, stored as
    integers: a column times its scale is the original.
    """
    arrays = read("multi30k_encoders.npz")
    names = ("en_minilm", "en_wordllama", "de_e5")

    def part(number: int) -> Bunch:
        rows = arrays["part"] == number
        blocks = {name: arrays[name][rows] * arrays[f"{name}_scale"] for name in names}
        return Bunch(views=Views(blocks), labels=None)

    return Bunch(train=part(0), valid=part(1), test=part(2))


def fetch_spoken_digits() -> Bunch:
    """Spoken digits: spectrograms of six speakers, to relate to handwritten digits by class.

    Free Spoken Digit Dataset (Jackson et al., CC BY-SA 4.0): log10 of the power in 48 frames of 40
    mel bins. Takes 0-4 of every digit and speaker are the test part. No recording belongs to an
    image, so that the views are unpaired.
    """
    arrays = read("spoken_digits.npz")
    low, high = (float(arrays[f"log10_power_{end}"]) for end in ("low", "high"))
    spectrograms = arrays["logmel"].astype(np.float32) * np.float32((high - low) / 255)
    rows = (spectrograms + np.float32(low)).reshape(len(spectrograms), -1)

    def part(chosen: np.ndarray) -> Bunch:
        return Bunch(
            views=Views({"sound": rows[chosen]}),
            labels=arrays["y"][chosen].astype(int),
            speakers=arrays["speaker_names"][arrays["speaker"][chosen]],
        )

    return Bunch(
        train=part(~arrays["is_test"]),
        test=part(arrays["is_test"]),
        spectrogram_shape=spectrograms.shape[1:],
    )


def fetch_nutrimouse(labels: str = "diet") -> Bunch:
    """Nutrimouse: gene expressions and fatty acids of 40 mice, with more features than objects.

    Martin et al., Hepatology 45, 2007; data set of the R package CCA, GPL. Labels are five diets
    of eight mice each, or two genotypes of twenty each.
    """
    arrays = read("nutrimouse.npz")
    names = ("gene", "lipid")
    return Bunch(
        views=Views({name: arrays[name] for name in names}),
        labels=arrays[labels],
        feature_names={name: arrays[f"{name}_names"] for name in names},
    )


def fetch_brain_cognition() -> Bunch:
    """Brain and cognition: thickness of 68 cortical regions and 4 scores of the NIH toolbox.

    139 people; the data of a public tutorial of CCA. The mean thickness of each hemisphere, which
    depends on the others, is left out.
    """
    arrays = read("brain_cognition.npz")
    is_region = np.char.find(arrays["thickness_names"], "MeanThickness") < 0
    return Bunch(
        views=Views({"thickness": arrays["thickness"][:, is_region], "toolbox": arrays["toolbox"]}),
        labels=None,
        feature_names={
            "thickness": arrays["thickness_names"][is_region],
            "toolbox": arrays["toolbox_names"],
        },
    )


def fetch_nottingham() -> Bunch:
    """Nottingham: 1,037 folk tunes as piano rolls, from which audio and score views can be built.

    In the split of Boulanger-Lewandowski, Bengio & Vincent (ICML 2012). A roll says which of 88
    notes sound at each time step; `lowest_note` is the MIDI number of column 0.
    """
    arrays = read("nottingham.npz")

    def part(name: str) -> Bunch:
        ends = np.cumsum(arrays[f"{name}_lengths"])
        rolls = np.split(unpacked(arrays[f"{name}_roll"], 88), ends[:-1])
        return Bunch(views=None, labels=None, rolls=rolls)

    parts = {name: part(name) for name in ("train", "valid", "test")}
    return Bunch(**parts, lowest_note=int(arrays["midi_low"]))
