"""MS-COCO 2014 without its images: labels, captions and word vectors of the label names.

Lin et al., "Microsoft COCO: common objects in context", ECCV 2014; cocodataset.org, CC BY 4.0.
"""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca import Views

from ._files import counts, read, unpacked

N_LABELS = 80


def fetch_coco_labels() -> Bunch:
    """Label sets of 123,287 images, in order of their ids.

    The 82,783 training images have 18,956 distinct label sets; 702 training and 367 validation
    images have no label. `subsets` holds image ids: the splits of Karpathy & Fei-Fei 2015 and the
    2017 validation set (all within `valid`), and the retrieval split of HashNet (Cao et al. 2017,
    from both parts).
    """
    arrays = read("coco2014_labels.npz")
    subsets = ("karpathy_val", "karpathy_test", "val2017", "hashnet_train", "hashnet_query")

    def part(name: str) -> Bunch:
        labels = unpacked(arrays[f"labels_{name}"], N_LABELS).astype(int)
        return Bunch(views=None, labels=labels, ids=arrays[f"ids_{name}"])

    return Bunch(
        train=part("train"),
        valid=part("val"),
        label_names=arrays["label_names"],
        subsets=Bunch(**{name: arrays[f"{name}_ids"] for name in subsets}),
    )


def fetch_coco_captions() -> Bunch:
    """Five captions of each of 5,000 images by five people: sparse word counts, cap0 to cap4.

    The images are those of the 2017 validation set; 1,000 of them are the test part. 48 of the
    5,000 have no label. `vocabulary` names the columns of every view.
    """
    arrays = read("coco_val2017_captions.npz")
    views = Views({name: counts(arrays, name) for name in [f"cap{i}" for i in range(5)]})
    labels = unpacked(arrays["labels"], N_LABELS).astype(int)
    is_test = arrays["is_test"].astype(bool)

    def part(rows: np.ndarray) -> Bunch:
        return Bunch(views=views[rows], labels=labels[rows], ids=arrays["ids"][rows])

    return Bunch(
        train=part(~is_test),
        test=part(is_test),
        label_names=arrays["label_names"],
        vocabulary=arrays["vocab"],
    )


def fetch_coco_label_vectors() -> Bunch:
    """Word vectors of the 80 COCO and 20 Pascal VOC category names, for differing vocabularies.

    GloVe (Pennington et al. 2014) as prepared for ML-GCN (Chen et al. 2019) and for zero-shot
    detection, word2vec (Mikolov et al. 2013) and fastText (Bojanowski et al. 2017).
    """
    arrays = read("coco_label_vectors.npz")
    kinds = ("glove_mlgcn", "glove_zsd", "word2vec", "fasttext")
    return Bunch(
        vectors={kind: arrays[kind] for kind in kinds},
        label_names=arrays["names"],
        voc_vectors={"glove_mlgcn": arrays["voc_glove_mlgcn"]},
        voc_label_names=arrays["voc_names"],
    )
