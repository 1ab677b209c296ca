"""Draw docs/_static/spoken_digits.png, the picture of the landing page.

For the digits 1, 4, 5 and 8, the first test recording of each is the query, and the ten handwritten
test digits that MLCCA ranks first are its answers. Nothing is chosen by hand except these digits.

    PYTHONPATH=benchmarks MVCCA_DATA=../shared/data python docs/spoken_digits_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from real import fetch_mnist_halves, fetch_spoken_digits
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from mvcca import MLCCA, PerView, RetrievalIndex, Views

DIGITS = 1, 4, 5, 8
FOUND = 10
WORDS = {1: "one", 4: "four", 5: "five", 8: "eight"}


def whole_images(halves: Views) -> np.ndarray:
    """Images of 28 x 28 pixels, as rows."""
    left, right = (halves[side].reshape(-1, 28, 14) for side in ("left", "right"))
    return np.concatenate([left, right], axis=2).reshape(-1, 784)


def bare(axes: Axes) -> Axes:
    """Axes without ticks."""
    axes.set(xticks=[], yticks=[])
    return axes


def main() -> None:
    mnist, spoken = fetch_mnist_halves(), fetch_spoken_digits()
    sounds = spoken.train
    images = whole_images(mnist.train.views[:5000])
    gallery, gallery_labels = whole_images(mnist.test.views[:2000]), mnist.test.labels[:2000]
    views = Views.unpaired({"image": images, "sound": sounds.views["sound"]})
    labels = {"image": mnist.train.labels[:5000], "sound": sounds.labels}
    model = make_pipeline(
        PerView(PCA(100, random_state=0)), MLCCA(9, label_similarity="equal", power=1, reg=0.01)
    ).fit(views, labels)

    queries = [np.flatnonzero(spoken.test.labels == digit)[0] for digit in DIGITS]
    recordings = spoken.test.views["sound"][queries]
    index = RetrievalIndex(model).add({"image": gallery})
    _, found = index.search({"sound": recordings}, target="image", k=FOUND)

    figure, grid = plt.subplots(
        len(DIGITS),
        FOUND + 1,
        figsize=(9.6, 3.3),
        width_ratios=[2.2, *[1] * FOUND],
        gridspec_kw={"left": 0.07, "right": 0.995, "bottom": 0.02, "top": 0.92, "wspace": 0.12},
    )
    for digit, recording, items, row in zip(DIGITS, recordings, found, grid, strict=True):
        spectrogram = recording.reshape(spoken.spectrogram_shape).T
        bare(row[0]).imshow(spectrogram, origin="lower", aspect="auto", cmap="magma")
        row[0].set_ylabel(f"“{WORDS[digit]}”", rotation=0, ha="right", va="center", fontsize=12)
        for axes, item in zip(row[1:], items, strict=True):
            bare(axes).imshow(gallery[item].reshape(28, 28), cmap="gray_r")
            right = gallery_labels[item] == digit
            colour = "#1a7f37" if right else "#cf222e"
            for spine in axes.spines.values():
                spine.set(color=colour, linewidth=2, linestyle="-" if right else "--")
    grid[0, 0].set_title("spoken query", fontsize=11)
    grid[0, 1].set_title("handwritten digits, best match first", fontsize=11, loc="left")
    figure.savefig(Path(__file__).parent / "_static" / "spoken_digits.png", dpi=130)


if __name__ == "__main__":
    main()
