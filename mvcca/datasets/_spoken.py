"""Spoken and handwritten digits: two real modalities without pairs, which need no file."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from mvcca.views import Views

__all__ = ["load_spoken_digits"]

TEST_TAKES = 5  # of each speaker and digit
TRAINING_IMAGES = 1297  # of 1,797

DESCR = """\
Spoken and handwritten digits
-----------------------------
600 recordings of the digits 0 to 9 by six speakers, ten takes each, from the Free Spoken Digit
Dataset (Jackson and contributors, CC BY-SA 4.0): logarithms of the power in 24 frames of 40 mel
bins, scaled to 0 to 255. Takes 0 to 4 of each speaker are the test part. Beside them, the 1,797
handwritten digits of sklearn.datasets.load_digits, the last 500 as the test part. No recording
belongs to an image.
"""


def load_spoken_digits() -> Bunch:
    """Load recordings and images of digits: two views that share classes, but no objects.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch with `views`, the unpaired Views ``sound`` (300 recordings each) and
          ``image`` (1,297 and 500), and `labels`, a dict with the digits of both
        - speakers : dict with the speaker of each recording, for ``"train"`` and ``"test"``
        - image_shapes : dict of str to (height, width):
          ``views[name][i].reshape(image_shapes[name])`` is a spectrogram, frames by bins, or a
          drawing
        - DESCR : str

    Examples
    --------
    >>> from mvcca.datasets import load_spoken_digits
    >>> data = load_spoken_digits()
    >>> data.train.views["sound"].shape, data.test.views["image"].shape
    ((300, 960), (500, 64))
    >>> int(data.test.labels["sound"][0]), str(data.speakers["test"][0])
    (0, 'george')
    """
    with (files("mvcca.datasets") / "data" / "spoken_digits.npz").open("rb") as file:
        stored = dict(np.load(file))
    sounds, images = stored["spectrograms"].astype(float), load_digits()
    is_test = {
        "sound": stored["takes"] < TEST_TAKES,
        "image": np.arange(len(images.data)) >= TRAINING_IMAGES,
    }
    rows = {"sound": sounds.reshape(len(sounds), -1), "image": images.data}
    labels = {"sound": stored["digits"].astype(int), "image": images.target}

    def part(test: bool) -> Bunch:
        chosen = {name: mask == test for name, mask in is_test.items()}
        return Bunch(
            views=Views.unpaired({name: rows[name][chosen[name]] for name in rows}),
            labels={name: labels[name][chosen[name]] for name in rows},
        )

    return Bunch(
        train=part(False),
        test=part(True),
        speakers={
            "train": stored["speakers"][~is_test["sound"]],
            "test": stored["speakers"][is_test["sound"]],
        },
        image_shapes={"sound": sounds.shape[1:], "image": images.images.shape[1:]},
        DESCR=DESCR,
    )
