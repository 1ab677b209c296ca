"""Data sets for learning, testing and benchmarking, all returned as a Bunch of the same layout.

`load_*` functions use data that ship with scikit-learn, `make_*` functions sample from a model with
a known solution, and `fetch_*` functions read real data from files in the data home. Nothing is
downloaded, since most data sets have their own licence: if a file is missing, the error says where
to get the data and in which form to save them.

A data set with a published split has the attributes `train`, `test` and possibly `valid`, each a
Bunch with `views` and `labels`; others have `views` and `labels` themselves. Missing parts are
None. Labels are a class vector, a list of label sets, or a 0/1 matrix with column names
`label_names`.
"""

from mvcca.datasets._coco import (
    fetch_coco_captions,
    fetch_coco_label_vectors,
    fetch_coco_labels,
)
from mvcca.datasets._digits import load_digits_views
from mvcca.datasets._files import get_data_home
from mvcca.datasets._multilabel import make_multilabel_views
from mvcca.datasets._planted import make_gaussian_views, make_nonlinear_views, make_sparse_views
from mvcca.datasets._real import (
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_multi30k_encoders,
    fetch_nottingham,
    fetch_nutrimouse,
    fetch_scene,
    fetch_wikipedia,
)
from mvcca.datasets._spoken_digits import fetch_spoken_digits

__all__ = [
    "fetch_coco_captions",
    "fetch_coco_label_vectors",
    "fetch_coco_labels",
    "fetch_mfeat",
    "fetch_mnist_halves",
    "fetch_multi30k",
    "fetch_multi30k_encoders",
    "fetch_nottingham",
    "fetch_nutrimouse",
    "fetch_scene",
    "fetch_spoken_digits",
    "fetch_wikipedia",
    "get_data_home",
    "load_digits_views",
    "make_gaussian_views",
    "make_multilabel_views",
    "make_nonlinear_views",
    "make_sparse_views",
]
