"""Draw docs/_static/spoken_digits.png, the picture of the landing page.

For every digit, the first held-out recording of the first speaker is the query, and the ten
handwritten digits that MLCCA ranks first among 500 held-out ones are its answers. Prints how many
of the shown ones are right, and the same share over all 300 held-out recordings.

    python docs/spoken_digits_picture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from mvcca import MLCCA, RetrievalIndex
from mvcca.datasets import load_spoken_digits

FOUND = 10
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def bare(axes: Axes) -> Axes:
    """Axes without ticks."""
    axes.set(xticks=[], yticks=[])
    return axes


def main() -> None:
    digits = load_spoken_digits()
    test, labels = digits.test.views, digits.test.labels
    model = MLCCA(n_components=None, reg="cv").fit(digits.train.views, digits.train.labels)
    index = RetrievalIndex(model).add({"image": test["image"]})
    _, found = index.search({"sound": test["sound"]}, target="image", k=FOUND)
    right = labels["image"][found] == labels["sound"][:, None]
    queries = [np.flatnonzero(labels["sound"] == digit)[0] for digit in range(len(WORDS))]
    print(f"{right[queries].sum()} of the {right[queries].size} shown images are right")
    print(f"{right.mean():.2f} over all {len(found)} held-out recordings")

    figure, grid = plt.subplots(
        len(WORDS),
        FOUND + 1,
        figsize=(9.6, 7.4),
        width_ratios=[2.2, *[1] * FOUND],
        gridspec_kw={"left": 0.08, "right": 0.995, "bottom": 0.01, "top": 0.96, "wspace": 0.12},
    )
    shapes = digits.image_shapes
    for query, row in zip(queries, grid, strict=True):
        spectrogram = test["sound"][query].reshape(shapes["sound"]).T
        bare(row[0]).imshow(spectrogram, origin="lower", aspect="auto", cmap="magma")
        word = WORDS[labels["sound"][query]]
        row[0].set_ylabel(word, rotation=0, ha="right", va="center", fontsize=12)
        for axes, item, is_right in zip(row[1:], found[query], right[query], strict=True):
            image = test["image"][item].reshape(shapes["image"])
            bare(axes).imshow(image, cmap="gray_r")
            for spine in axes.spines.values():
                spine.set(
                    color="#1a7f37" if is_right else "#cf222e",
                    linewidth=2,
                    linestyle="-" if is_right else "--",
                )
    grid[0, 0].set_title("spoken query", fontsize=11)
    grid[0, 1].set_title("handwritten digits, best match first", fontsize=11, loc="left")
    figure.savefig(Path(__file__).parent / "_static" / "spoken_digits.png", dpi=110)


if __name__ == "__main__":
    main()
