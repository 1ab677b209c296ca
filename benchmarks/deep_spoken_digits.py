"""Handwritten digits find spoken ones and back: deep methods that learn from labels, and MLCCA.

    MVCCA_DATA=../shared/data python benchmarks/deep_spoken_digits.py [--methods ...] [--seeds 5]
                                                                      [--unpaired]

No recording belongs to an image. 5,000 training images are paired with recordings of the same digit
at random, each recording two or three times, once for all epochs; with --unpaired every epoch of
the methods that take unpaired views draws other pairs. The features are 100 principal components of
each view, scaled by one number per view. Each seed draws the pairs, the initial weights and the 300
of 2,700 recordings that, with 600 validation images, choose the best epoch and, on the first seed,
the setting. The figures are the mean average precision of whole lists for 2,000 test images and 300
test recordings, as mean and standard deviation over seeds; an item is relevant if it is the same
digit. Needs mnist.npz and spoken_digits.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
from functools import partial


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--unpaired", action="store_true", help="draw pairs anew in every epoch")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _deep import Split, labelled_methods, report
from _measure import machine
from real import fetch_mnist_halves, fetch_spoken_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from mvcca import Views

_SAM = {"n_components": 64, "hidden_layer_sizes": (256,), "max_epochs": 60}


def images(part, n_rows):
    """The first images of a part, whole, and their digits."""
    rows = [part.views[side][:n_rows].reshape(-1, 28, 14) for side in ("left", "right")]
    return np.concatenate(rows, axis=2).reshape(-1, 784), part.labels[:n_rows]


class Features:
    """Principal components, scaled by one number so that they have variance 1 on average."""

    def __init__(self, rows):
        self.components = PCA(100, random_state=0).fit(rows)
        self.scale = self.components.transform(rows).std()

    def __call__(self, rows):
        return (self.components.transform(rows) / self.scale).astype(np.float32)


def partners(digits, recorded, rng):
    """A recording of the digit for each image; all recordings of a digit are used equally often."""
    chosen = np.empty(len(digits), dtype=int)
    for digit in np.unique(digits):
        rows = digits == digit
        chosen[rows] = np.resize(rng.permutation(np.flatnonzero(recorded == digit)), rows.sum())
    return chosen


def main(options: argparse.Namespace) -> None:
    mnist, spoken = fetch_mnist_halves(), fetch_spoken_digits()
    recordings, spoken_digits = spoken.train.views["sound"], spoken.train.labels
    written = {
        "train": images(mnist.train, 5000),
        "valid": images(mnist.valid, 600),
        "test": images(mnist.test, 2000),
    }
    to_image = Features(written["train"][0])

    def split(seed: int, unpaired: bool) -> Split:
        kept, held_out = train_test_split(
            np.arange(2700), test_size=300, random_state=seed, stratify=spoken_digits
        )
        to_sound, rng = Features(recordings[kept]), np.random.default_rng(seed)
        parts = {}
        for part, rows in (("train", kept), ("valid", held_out)):
            pixels, digits = written[part]
            if unpaired:
                views = {"image": to_image(pixels), "sound": to_sound(recordings[rows])}
                labels = {"image": digits, "sound": spoken_digits[rows]}
                parts[part] = Views.unpaired(views), labels
                continue
            sounds = to_sound(recordings[rows[partners(digits, spoken_digits[rows], rng)]])
            parts[part] = Views({"image": to_image(pixels), "sound": sounds}), digits
        pixels, digits = written["test"]
        test = {"image": to_image(pixels), "sound": to_sound(spoken.test.views["sound"])}
        labels = {"image": digits, "sound": spoken.test.labels}
        return Split(parts["train"], parts["valid"], (Views.unpaired(test), labels))

    methods = labelled_methods(_SAM)
    torch.set_num_threads(1)
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds")
    chosen = {name: methods[name] for name in names_in(options.methods, methods)}
    splits = partial(split, unpaired=options.unpaired)
    report("image to sound", chosen, splits, options.seeds, ("MLCCA", "SAM"))


if __name__ == "__main__":
    main(OPTIONS)
