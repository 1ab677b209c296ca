"""Handwritten digits cut into views: real data that need no file.

The images ship with scikit-learn. The parts of an image are its views; its label is the digit, or
the segments of a seven-segment display that show the digit.
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from mvcca.views import Views

__all__ = ["load_digits_views"]

# Rows and columns of each part in the 8 x 8 image.
PARTS = {
    "halves": {
        "left": (slice(0, 8), slice(0, 4)),
        "right": (slice(0, 8), slice(4, 8)),
    },
    "quadrants": {
        "top_left": (slice(0, 4), slice(0, 4)),
        "top_right": (slice(0, 4), slice(4, 8)),
        "bottom_left": (slice(4, 8), slice(0, 4)),
        "bottom_right": (slice(4, 8), slice(4, 8)),
    },
}

# Segments a (top) to f (clockwise) and g (the middle bar), for the digits 0 to 9.
SEGMENTS = (
    "abcdef",
    "bc",
    "abdeg",
    "abcdg",
    "bcfg",
    "acdfg",
    "acdefg",
    "abc",
    "abcdefg",
    "abcdfg",
)

DESCR = """\
Handwritten digits in views
---------------------------
1,797 greyscale images of 8 x 8 pixels with values 0 to 16: the test part of "Optical Recognition of
Handwritten Digits" (Alpaydin & Kaynak 1998, UCI Machine Learning Repository), as in
sklearn.datasets.load_digits. Every image is cut into parts; each part is a view.
"""


def load_digits_views(parts: str = "halves", labels: str = "digit") -> Bunch:
    """Load scikit-learn's handwritten digits, with the parts of an image as views.

    Parameters
    ----------
    parts : {"halves", "quadrants"}, default="halves"
        The views: ``left`` and ``right`` (32 pixels each), or ``top_left``, ``top_right``,
        ``bottom_left`` and ``bottom_right`` (16 pixels each).
    labels : {"digit", "segments"}, default="digit"
        One class per image, or the set of segments, ``"a"`` to ``"g"``, that show the digit on a
        seven-segment display: real multi-label data, in which 1 and 7 share two labels.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, 1,797 paired objects
        - labels : ndarray of int, shape (1797,), or list of frozenset of str
        - images : ndarray, shape (1797, 8, 8)
        - digits : ndarray of int, shape (1797,)
        - image_shapes : dict of str to (height, width):
          ``views[name][i].reshape(image_shapes[name])`` is one part as an image.
        - DESCR : str

    Raises
    ------
    ValueError
        If `parts` or `labels` is unknown.

    Examples
    --------
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views(labels="segments")
    >>> data.views
    Views(1797 objects, left: 32, right: 32)
    >>> sorted(data.labels[1])
    ['b', 'c']
    """
    if parts not in PARTS:
        raise ValueError(f"parts must be one of {sorted(PARTS)}, got {parts!r}.")
    if labels not in ("digit", "segments"):
        raise ValueError(f"labels must be 'digit' or 'segments', got {labels!r}.")
    source = load_digits()
    images, digits = source.images, source.target
    pieces = {name: images[:, rows, columns] for name, (rows, columns) in PARTS[parts].items()}
    return Bunch(
        views=Views({name: piece.reshape(len(images), -1) for name, piece in pieces.items()}),
        labels=digits if labels == "digit" else [frozenset(SEGMENTS[digit]) for digit in digits],
        images=images,
        digits=digits,
        image_shapes={name: piece.shape[1:] for name, piece in pieces.items()},
        DESCR=DESCR,
    )
