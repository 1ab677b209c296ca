"""Multi30K: the file it is kept in and the views, one per language, made of it."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Packed, Source, Sparse, read
from mvcca.views import Views

__all__ = ["fetch_multi30k"]

LANGUAGES = ("en", "de", "fr", "cs")

# The pictures from COCO were never described in Czech.
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
    """Multi30K: the same pictures described in four languages, as four sparse views.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``multi30k.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 29,000, 1,014 and 1,000 objects:
          views : Views of csr_array of float64 word counts, ``en``, ``de``, ``fr``, ``cs``;
          labels : None.
        - coco : Bunch of 461 objects:
          Another test set of pictures from MS-COCO, not described in Czech. views : ``en``,
          ``de``, ``fr``; labels : ndarray of 0/1 int, shape (461, 80), in the columns of
          `fetch_coco_labels`; ids : ndarray of int. 99 % of them share the label "person", so
          retrieval by shared labels says nothing here.
        - vocabularies : dict of str to ndarray of str, shape (n_words,)
        - DESCR : str

    Raises
    ------
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.

    Notes
    -----
    Three German and six Czech training rows hold no frequent word and are all zero.
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
