"""Wikipedia articles: the file they are kept in and the views made of it."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Source, per_split, read
from mvcca.views import Views

__all__ = ["fetch_wikipedia"]

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
    """Wikipedia featured articles: an image and a text each, in ten classes.

    Parameters
    ----------
    views : sequence of {"sift", "lda", "deep", "w2v"}, default=("sift", "lda")
        Which features, in which order. Of the image: ``sift``, histogram over 128 visual words, and
        ``deep`` (128). Of the text: ``lda``, shares of 10 topics, and ``w2v`` (100).
    data_home : path, optional
        Folder with ``wikipedia.npz``; see `get_data_home`.

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
        If `views` names other features, or none.
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.

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
