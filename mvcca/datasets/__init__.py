"""Data to learn, test and measure with, all as Bunches of one build.

`load_*` ships inside scikit-learn, `make_*` draws from a model whose answer is known, and `fetch_*`
reads real data from files in the data home. Nothing here opens a network connection: data sets have
terms of their own, so a missing file is an error that says where to get it and in which form.

Data that come split have `train`, `test` or `valid`, each a Bunch with `views` and `labels`; data
that do not have `views` and `labels` themselves. What a data set lacks is None. Labels are a vector
of classes, a list of label sets, or a 0/1 matrix whose columns `label_names` names.
"""

from mvcca.datasets._coco import (
    fetch_coco_captions,
    fetch_coco_label_vectors,
    fetch_coco_labels,
)
from mvcca.datasets._digits import load_digits_views
from mvcca.datasets._files import get_data_home
from mvcca.datasets._mfeat import fetch_mfeat
from mvcca.datasets._mnist import fetch_mnist_halves
from mvcca.datasets._multi30k import fetch_multi30k
from mvcca.datasets._multilabel import make_multilabel_views
from mvcca.datasets._nottingham import fetch_nottingham
from mvcca.datasets._nutrimouse import fetch_nutrimouse
from mvcca.datasets._planted import make_gaussian_views, make_nonlinear_views, make_sparse_views
from mvcca.datasets._scene import fetch_scene
from mvcca.datasets._wikipedia import fetch_wikipedia

__all__ = [
    "fetch_coco_captions",
    "fetch_coco_label_vectors",
    "fetch_coco_labels",
    "fetch_mfeat",
    "fetch_mnist_halves",
    "fetch_multi30k",
    "fetch_nottingham",
    "fetch_nutrimouse",
    "fetch_scene",
    "fetch_wikipedia",
    "get_data_home",
    "load_digits_views",
    "make_gaussian_views",
    "make_multilabel_views",
    "make_nonlinear_views",
    "make_sparse_views",
]
