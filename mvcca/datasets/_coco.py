"""MS-COCO without its images: labels, captions and word vectors of the label names."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Packed, Source, Sparse, read
from mvcca.views import Views

__all__ = ["fetch_coco_captions", "fetch_coco_label_vectors", "fetch_coco_labels"]

_COCO = (
    "MS-COCO 2014 (Lin et al., 'Microsoft COCO: common objects in context', ECCV 2014; "
    "cocodataset.org, CC BY 4.0)"
)

COCO_LABELS = Source(
    "coco2014_labels.npz",
    f"Object labels of {_COCO}: which of 80 categories an image's instances have, images in order "
    "of their ids. The other ids are the splits of Karpathy & Fei-Fei 2015, the 2017 validation "
    "set, and the retrieval split of HashNet (Cao et al. 2017).",
    {
        "label_names": Dense("str", (80,)),
        "labels_train": Packed((82_783, 80)),
        "ids_train": Dense("int32", (82_783,)),
        "labels_val": Packed((40_504, 80)),
        "ids_val": Dense("int32", (40_504,)),
        "karpathy_val_ids": Dense("int32", (5000,)),
        "karpathy_test_ids": Dense("int32", (5000,)),
        "val2017_ids": Dense("int32", (5000,)),
        "hashnet_train_ids": Dense("int32", (10_000,)),
        "hashnet_query_ids": Dense("int32", (5000,)),
    },
)

COCO_CAPTIONS = Source(
    "coco_val2017_captions.npz",
    f"Five captions of each of the 5,000 images of the 2017 validation set of {_COCO}: "
    "counts of frequent words. is_test marks 1,000 test images.",
    {
        "label_names": Dense("str", (80,)),
        "vocab": Dense("str", ("words",)),
        "ids": Dense("int32", (5000,)),
        "is_test": Dense("uint8", (5000,)),
        "labels": Packed((5000, 80)),
        **{f"cap{number}": Sparse((5000, "words")) for number in range(5)},
    },
)

COCO_LABEL_VECTORS = Source(
    "coco_label_vectors.npz",
    "Word vectors of the 80 COCO and 20 Pascal VOC category names: GloVe (Pennington et al. 2014) "
    "as prepared for ML-GCN (Chen et al. 2019) and for zero-shot detection, word2vec (Mikolov et "
    "al. 2013) and fastText (Bojanowski et al. 2017). Any vectors of these names will do.",
    {
        "names": Dense("str", (80,)),
        "glove_mlgcn": Dense("float32", (80, 300)),
        "glove_zsd": Dense("float32", (80, 300)),
        "word2vec": Dense("float32", (80, 300)),
        "fasttext": Dense("float32", (80, 300)),
        "voc_names": Dense("str", (20,)),
        "voc_glove_mlgcn": Dense("float32", (20, 300)),
    },
)


def fetch_coco_labels(*, data_home: DataHome = None) -> Bunch:
    """MS-COCO 2014: label sets of 123,287 images, without the images.

    A realistic distribution of label sets for benchmarking label similarities: the 82,783 training
    images have 18,956 distinct label sets. 702 training and 367 validation images have no label.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``coco2014_labels.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid : Bunch of 82,783 and 40,504 objects:
          views : None; labels : ndarray of 0/1 int, shape (n, 80); ids : ndarray of int,
          ascending.
        - label_names : ndarray of str, shape (80,)
        - subsets : Bunch of ndarray of int:
          Image ids of common splits: ``karpathy_val``, ``karpathy_test`` and ``val2017`` (all
          within `valid`), ``hashnet_train`` and ``hashnet_query`` (from both parts).
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(COCO_LABELS, data_home)
    subsets = ("karpathy_val", "karpathy_test", "val2017", "hashnet_train", "hashnet_query")
    return Bunch(
        train=Bunch(views=None, labels=arrays["labels_train"].astype(int), ids=arrays["ids_train"]),
        valid=Bunch(views=None, labels=arrays["labels_val"].astype(int), ids=arrays["ids_val"]),
        label_names=arrays["label_names"],
        subsets=Bunch(**{name: arrays[f"{name}_ids"] for name in subsets}),
        DESCR=COCO_LABELS.origin,
    )


def fetch_coco_captions(*, data_home: DataHome = None) -> Bunch:
    """MS-COCO: five captions of each image by five people, as five sparse views.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``coco_val2017_captions.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch of 4,000 and 1,000 objects:
          views : Views of csr_array of float64 word counts, ``cap0`` to ``cap4``;
          labels : ndarray of 0/1 int, shape (n, 80); ids : ndarray of int.
        - label_names : ndarray of str, shape (80,)
        - vocabulary : ndarray of str, shape (n_words,):
          Columns of every view.
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.

    Notes
    -----
    48 of the 5,000 images have no label.
    """
    arrays = read(COCO_CAPTIONS, data_home)
    views = Views({f"cap{number}": arrays[f"cap{number}"] for number in range(5)})
    is_test = arrays["is_test"].astype(bool)

    def part(rows: np.ndarray) -> Bunch:
        labels = arrays["labels"][rows].astype(int)
        return Bunch(views=views[rows], labels=labels, ids=arrays["ids"][rows])

    return Bunch(
        train=part(~is_test),
        test=part(is_test),
        label_names=arrays["label_names"],
        vocabulary=arrays["vocab"],
        DESCR=COCO_CAPTIONS.origin,
    )


def fetch_coco_label_vectors(*, data_home: DataHome = None) -> Bunch:
    """Word vectors of the MS-COCO and Pascal VOC category names, for differing vocabularies.

    Label sets over different vocabularies become comparable as sums of their labels' word vectors.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``coco_label_vectors.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - vectors : dict of str to ndarray of float32, shape (80, 300):
          ``glove_mlgcn`` and ``glove_zsd`` (GloVe), ``word2vec`` and ``fasttext``.
        - label_names : ndarray of str, shape (80,):
          In the order of `fetch_coco_labels`.
        - voc_vectors : dict of str to ndarray of float32, shape (20, 300):
          ``glove_mlgcn``, comparable with the same entry of `vectors`.
        - voc_label_names : ndarray of str, shape (20,)
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(COCO_LABEL_VECTORS, data_home)
    kinds = ("glove_mlgcn", "glove_zsd", "word2vec", "fasttext")
    return Bunch(
        vectors={kind: arrays[kind] for kind in kinds},
        label_names=arrays["names"],
        voc_vectors={"glove_mlgcn": arrays["voc_glove_mlgcn"]},
        voc_label_names=arrays["voc_names"],
        DESCR=COCO_LABEL_VECTORS.origin,
    )
