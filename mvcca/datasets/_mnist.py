"""MNIST cut into halves: the file it is kept in and the views made of it."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Source, per_split, read
from mvcca.views import Views

__all__ = ["fetch_mnist_halves"]

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
    """MNIST: the left and the right half of a handwritten digit, the benchmark of deep CCA.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``mnist.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 50,000, 10,000 and 10,000 objects:
          views : Views of float32, pixels / 255, ``left`` (columns 0 to 13, 392 pixels) and
          ``right``; labels : ndarray of int, the digits.
        - image_shapes : dict of str to (height, width):
          ``views[name][i].reshape(image_shapes[name])`` is a half to draw.
        - DESCR : str

    Raises
    ------
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.

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
