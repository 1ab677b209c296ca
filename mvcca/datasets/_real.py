"""Real data sets, each as the declaration of its file and a function that makes views of it.

The data sets derived from MS-COCO are in `_coco`; `_files` reads and checks the files.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Packed, Source, Sparse, per_split, read
from mvcca.views import Views

__all__ = [
    "fetch_mfeat",
    "fetch_mnist_halves",
    "fetch_multi30k",
    "fetch_multi30k_encoders",
    "fetch_nottingham",
    "fetch_nutrimouse",
    "fetch_scene",
    "fetch_wikipedia",
]

MNIST = Source(
    "mnist.npz",
    "MNIST handwritten digits (LeCun, Bottou, Bengio & Haffner 1998; yann.lecun.com/exdb/mnist, "
    "CC BY-SA 3.0). Training images 0-49,999 are train, 50,000-59,999 valid, the test images test.",
    per_split(
        {"train": 50_000, "valid": 10_000, "test": 10_000},
        {"X": ("uint8", (28, 28)), "y": ("uint8", ())},
    ),
)


def fetch_mnist_halves(*, data_home: DataHome = None) -> Bunch:
    """MNIST: left and right halves of handwritten digits, the benchmark of deep CCA.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``mnist.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 50,000, 10,000 and 10,000 objects:
          views : Views of float32, pixels / 255, ``left`` (columns 0 to 13, 392 pixels) and
          ``right``; labels : ndarray of int, the digits.
        - image_shapes : dict of str to (height, width):
          ``views[name][i].reshape(image_shapes[name])`` is one half as an image.
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.

    Notes
    -----
    The border is black in every image: 353 and 364 of the 392 pixels vary over the training
    images. CCA with 50 components reaches a total test correlation of 28.9.
    """
    arrays = read(MNIST, data_home)

    def part(name: str) -> Bunch:
        images = arrays[f"X_{name}"].astype(np.float32) / np.float32(255)
        halves = {"left": images[:, :, :14], "right": images[:, :, 14:]}
        flat = {side: half.reshape(len(images), -1) for side, half in halves.items()}
        return Bunch(views=Views(flat), labels=arrays[f"y_{name}"].astype(int))

    return Bunch(
        train=part("train"),
        valid=part("valid"),
        test=part("test"),
        image_shapes={"left": (28, 14), "right": (28, 14)},
        DESCR=MNIST.origin,
    )


MFEAT = Source(
    "mfeat.npz",
    "Multiple Features (van Breukelen, Duin, Tax & den Hartog 1998; UCI Machine Learning "
    "Repository, archive.ics.uci.edu, CC BY 4.0), rows in the original order.",
    {
        "fac": Dense("float32", (2000, 216)),
        "fou": Dense("float32", (2000, 76)),
        "kar": Dense("float32", (2000, 64)),
        "mor": Dense("float32", (2000, 6)),
        "pix": Dense("float32", (2000, 240)),
        "zer": Dense("float32", (2000, 47)),
        "y": Dense("uint8", (2000,)),
    },
)


def fetch_mfeat(*, data_home: DataHome = None) -> Bunch:
    """Multiple Features: six descriptions of 2,000 handwritten digits.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``mfeat.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float32:
          ``fac`` (216 profile correlations), ``fou`` (76 Fourier coefficients), ``kar`` (64
          Karhunen-Loeve coefficients), ``mor`` (6 morphological features), ``pix`` (240 pixel
          averages), ``zer`` (47 Zernike moments); their scales differ widely.
        - labels : ndarray of int, shape (2000,):
          The digits. Rows are sorted by digit: shuffle before splitting.
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(MFEAT, data_home)
    labels = arrays.pop("y").astype(int)
    return Bunch(views=Views(arrays), labels=labels, DESCR=MFEAT.origin)


SCENE = Source(
    "scene.npz",
    "Scene images (Boutell, Luo, Shen & Brown, 'Learning multi-label scene classification', "
    "Pattern Recognition 37, 2004; in the collection of Mulan, mulan.sourceforge.net). ch0, ch1, "
    "ch2 are the L, u and v channel: 49 block means, then 49 block variances.",
    {
        "label_names": Dense("str", (6,)),
        **per_split(
            {"train": 1211, "test": 1196},
            {
                "ch0": ("float32", (98,)),
                "ch1": ("float32", (98,)),
                "ch2": ("float32", (98,)),
                "labels": ("uint8", (6,)),
            },
        ),
    },
)


def fetch_scene(*, data_home: DataHome = None) -> Bunch:
    """Scene: colour moments of photographs, one view per colour channel, one to three labels each.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``scene.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch of 1,211 and 1,196 objects:
          views : Views of float32, ``L``, ``u`` and ``v``, each the means and then the variances
          of 7 x 7 blocks; labels : ndarray of 0/1 int, shape (n, 6).
        - label_names : ndarray of str, shape (6,)
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(SCENE, data_home)

    def part(name: str) -> Bunch:
        channels = {"L": "ch0", "u": "ch1", "v": "ch2"}
        views = Views({view: arrays[f"{channel}_{name}"] for view, channel in channels.items()})
        return Bunch(views=views, labels=arrays[f"labels_{name}"].astype(int))

    return Bunch(
        train=part("train"),
        test=part("test"),
        label_names=arrays["label_names"],
        DESCR=SCENE.origin,
    )


WIKIPEDIA = Source(
    "wikipedia.npz",
    "Wikipedia featured articles (Rasiwasia et al., 'A new approach to cross-modal multimedia "
    "retrieval', ACM Multimedia 2010; Statistical Visual Computing Laboratory, UC San Diego). sift "
    "and lda are the features of the paper; deep and w2v are later image features and "
    "word vectors of the same articles. y counts classes from 1.",
    {
        "class_names": Dense("str", (10,)),
        **per_split(
            {"train": 2173, "test": 693},
            {
                "sift": ("float32", (128,)),
                "lda": ("float64", (10,)),
                "deep": ("float32", (128,)),
                "w2v": ("float32", (100,)),
                "y": ("uint8", ()),
            },
        ),
    },
)


def fetch_wikipedia(views: Sequence[str] = ("sift", "lda"), *, data_home: DataHome = None) -> Bunch:
    """Wikipedia featured articles: one image and one text each, in ten classes.

    Parameters
    ----------
    views : sequence of {"sift", "lda", "deep", "w2v"}, default=("sift", "lda")
        Feature sets, in the order of the views. For the image, ``sift`` (histogram over 128 visual
        words) and ``deep`` (128); for the text, ``lda`` (proportions of 10 topics) and ``w2v``
        (100).
    data_home : path, optional
        Directory with ``wikipedia.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch of 2,173 and 693 objects:
          views : Views of float32, ``lda`` of float64; labels : ndarray of int from 0.
        - label_names : ndarray of str, shape (10,):
          ``label_names[labels[i]]`` is the class of object i.
        - DESCR : str

    Raises
    ------
    ValueError
        If `views` is empty or names an unknown feature set.
    OSError
        If the file is missing or damaged; the message says how to make it.

    Notes
    -----
    Published mean average precision, image to text and text to image: CCA 0.249 and 0.196.
    """
    known = ("sift", "lda", "deep", "w2v")
    if isinstance(views, str) or not views or not set(views) <= set(known):
        raise ValueError(f"views must name some of {list(known)}, got {views!r}.")
    arrays = read(WIKIPEDIA, data_home)

    def part(name: str) -> Bunch:
        blocks = {view: arrays[f"{view}_{name}"] for view in views}
        return Bunch(views=Views(blocks), labels=arrays[f"y_{name}"].astype(int) - 1)

    return Bunch(
        train=part("train"),
        test=part("test"),
        label_names=arrays["class_names"],
        DESCR=WIKIPEDIA.origin,
    )


LANGUAGES = ("en", "de", "fr", "cs")
# The COCO test set has no Czech captions.
SPLITS = {
    "train": (29_000, LANGUAGES),
    "val": (1014, LANGUAGES),
    "test": (1000, LANGUAGES),
    "coco": (461, ("en", "de", "fr")),
}

MULTI30K = Source(
    "multi30k.npz",
    "Multi30K: 31,014 Flickr pictures described in English, German, French and Czech (Elliott, "
    "Frank, Sima'an & Specia 2016; Elliott et al. 2017; Barrault et al. 2018; "
    "github.com/multi30k/dataset, non-commercial research), as counts of frequent words. coco is "
    "the 'ambiguous COCO' test set, with the labels its pictures have in MS-COCO.",
    {
        **{f"vocab_{language}": Dense("str", (f"{language} words",)) for language in LANGUAGES},
        **{
            f"{language}_{split}": Sparse((size, f"{language} words"))
            for split, (size, languages) in SPLITS.items()
            for language in languages
        },
        "coco_ids": Dense("int32", (461,)),
        "coco_labels": Packed((461, 80)),
    },
)


def fetch_multi30k(*, data_home: DataHome = None) -> Bunch:
    """Multi30K: captions of the same pictures in four languages, as four sparse views.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``multi30k.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 29,000, 1,014 and 1,000 objects:
          views : Views of csr_array of float64 word counts, ``en``, ``de``, ``fr``, ``cs``;
          labels : None.
        - coco : Bunch of 461 objects:
          Another test set, of pictures from MS-COCO. views : ``en``, ``de``, ``fr``; labels :
          ndarray of 0/1 int, shape (461, 80), in the columns of `fetch_coco_labels`; ids : ndarray
          of int. 99 % of the pictures share the label "person", which makes retrieval by shared
          labels uninformative.
        - vocabularies : dict of str to ndarray of str, shape (n_words,)
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.

    Notes
    -----
    Three German and six Czech training rows contain no frequent word and are all zero.
    """
    arrays = read(MULTI30K, data_home)

    def part(split: str, labels: np.ndarray | None = None, **more: np.ndarray) -> Bunch:
        blocks = {language: arrays[f"{language}_{split}"] for language in SPLITS[split][1]}
        return Bunch(views=Views(blocks), labels=labels, **more)

    return Bunch(
        train=part("train"),
        valid=part("val"),
        test=part("test"),
        coco=part("coco", arrays["coco_labels"].astype(int), ids=arrays["coco_ids"]),
        vocabularies={language: arrays[f"vocab_{language}"] for language in LANGUAGES},
        DESCR=MULTI30K.origin,
    )


ENCODERS = {"en_minilm": 384, "en_wordllama": 256, "de_e5": 384}

MULTI30K_ENCODERS = Source(
    "multi30k_encoders.npz",
    "Sentences of Multi30K (see multi30k.npz) through frozen text encoders: English by MiniLM-L6-v2"
    " (Apache-2.0) and by WordLlama (MIT), German by multilingual-e5-small in 4 bits (MIT). Vectors"
    " of length 1, rounded to integers; a column times its scale is the original. part is 0 for the"
    " first 10,000 training sentences, 1 for validation, 2 for test.",
    {
        "part": Dense("uint8", (12_014,)),
        **{name: Dense("int8", (12_014, width)) for name, width in ENCODERS.items()},
        **{f"{name}_scale": Dense("float32", (width,)) for name, width in ENCODERS.items()},
    },
)


def fetch_multi30k_encoders(*, data_home: DataHome = None) -> Bunch:
    """Multi30K through three frozen text encoders: embeddings to align with each other.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``multi30k_encoders.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 10,000, 1,014 and 1,000 objects:
          views : Views of float32, ``en_minilm`` (384), ``en_wordllama`` (256) and ``de_e5`` (384);
          labels : None.
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.

    Notes
    -----
    ``en_wordllama`` and ``en_minilm`` embed the same sentences, so that going from one to the other
    is a change of model. ``de_e5`` embeds German descriptions of the same pictures.
    """
    arrays = read(MULTI30K_ENCODERS, data_home)

    def part(number: int) -> Bunch:
        rows = arrays["part"] == number
        blocks = {name: arrays[name][rows] * arrays[f"{name}_scale"] for name in ENCODERS}
        return Bunch(views=Views(blocks), labels=None)

    return Bunch(train=part(0), valid=part(1), test=part(2), DESCR=MULTI30K_ENCODERS.origin)


NUTRIMOUSE = Source(
    "nutrimouse.npz",
    "Nutrimouse (Martin et al., 'Novel aspects of PPARalpha-mediated regulation of lipid and "
    "xenobiotic metabolism revealed through a nutrigenomic study', Hepatology 45, 2007; data set "
    "nutrimouse of the R package CCA, GPL).",
    {
        "gene": Dense("float64", (40, 120)),
        "lipid": Dense("float64", (40, 21)),
        "diet": Dense("str", (40,)),
        "genotype": Dense("str", (40,)),
        "gene_names": Dense("str", (120,)),
        "lipid_names": Dense("str", (21,)),
    },
)


def fetch_nutrimouse(labels: str = "diet", *, data_home: DataHome = None) -> Bunch:
    """Nutrimouse: gene expressions and fatty acids of 40 mice, with more features than objects.

    Parameters
    ----------
    labels : {"diet", "genotype"}, default="diet"
        Experimental factor to use as the label: five diets of eight mice each, or two genotypes of
        twenty each.
    data_home : path, optional
        Directory with ``nutrimouse.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``gene`` (120) and ``lipid`` (21)
        - labels : ndarray of str, shape (40,)
        - feature_names : dict of str to ndarray of str
        - DESCR : str

    Raises
    ------
    ValueError
        If `labels` is unknown.
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    if labels not in ("diet", "genotype"):
        raise ValueError(f"labels must be 'diet' or 'genotype', got {labels!r}.")
    arrays = read(NUTRIMOUSE, data_home)
    names = ("gene", "lipid")
    return Bunch(
        views=Views({name: arrays[name] for name in names}),
        labels=arrays[labels],
        feature_names={name: arrays[f"{name}_names"] for name in names},
        DESCR=NUTRIMOUSE.origin,
    )


NOTTINGHAM = Source(
    "nottingham.npz",
    "Nottingham folk tunes as piano rolls, in the split of Boulanger-Lewandowski, Bengio & Vincent "
    "(ICML 2012). The rolls of a split are stacked, one row per time step; the lengths cut them.",
    {
        "midi_low": Dense("int64", ()),
        "train_roll": Packed(("train steps", 88)),
        "train_lengths": Dense("int32", (694,)),
        "valid_roll": Packed(("valid steps", 88)),
        "valid_lengths": Dense("int32", (173,)),
        "test_roll": Packed(("test steps", 88)),
        "test_lengths": Dense("int32", (170,)),
    },
)


def fetch_nottingham(*, data_home: DataHome = None) -> Bunch:
    """Nottingham: 1,037 folk tunes as piano rolls, from which audio and score views can be built.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``nottingham.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 694, 173 and 170 tunes:
          rolls : list of ndarray of 0/1 uint8, shape (n_steps, 88), whether a note sounds at a
          time step; views : None; labels : None.
        - lowest_note : int:
          MIDI number of column 0.
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(NOTTINGHAM, data_home)

    def part(name: str) -> Bunch:
        ends = np.cumsum(arrays[f"{name}_lengths"])
        rolls = np.split(arrays[f"{name}_roll"], ends[:-1])
        return Bunch(views=None, labels=None, rolls=rolls)

    return Bunch(
        train=part("train"),
        valid=part("valid"),
        test=part("test"),
        lowest_note=int(arrays["midi_low"]),
        DESCR=NOTTINGHAM.origin,
    )
