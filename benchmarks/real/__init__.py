"""Real data for benchmarks and tests, read from files in the directory MVCCA_DATA.

The files are NumPy archives that were packed for this project; `_sets` and `_coco` say where the
data come from and which arrays a file holds. `_texts` makes views of what packages ship, and
`PAIRS` has pairs of views of all of these by name. A data set with a published split has the
attributes `train`, `test` and possibly `valid`, each with `views` and `labels`; others have `views`
and `labels` themselves. Missing parts are None.
"""

from ._coco import fetch_coco_captions, fetch_coco_label_vectors, fetch_coco_labels
from ._files import data_home
from ._pairs import PAIRS, Pair
from ._sets import (
    fetch_brain_cognition,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_multi30k_encoders,
    fetch_nottingham,
    fetch_nutrimouse,
    fetch_scene,
    fetch_spoken_digits,
    fetch_wikipedia,
)
from ._texts import fetch_emoji_names, fetch_glyphs, fetch_spelling_and_sound

__all__ = [
    "PAIRS",
    "Pair",
    "data_home",
    "fetch_brain_cognition",
    "fetch_coco_captions",
    "fetch_coco_label_vectors",
    "fetch_coco_labels",
    "fetch_emoji_names",
    "fetch_glyphs",
    "fetch_mfeat",
    "fetch_mnist_halves",
    "fetch_multi30k",
    "fetch_multi30k_encoders",
    "fetch_nottingham",
    "fetch_nutrimouse",
    "fetch_scene",
    "fetch_spelling_and_sound",
    "fetch_spoken_digits",
    "fetch_wikipedia",
]
