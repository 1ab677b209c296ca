"""Write the spoken digits that the package ships, from those of the benchmarks.

Takes 0 to 9 of every digit and speaker, with pairs of the 48 frames averaged.

    PYTHONPATH=. MVCCA_DATA=../shared/data python docs/spoken_digits_data.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.real._files import read

TAKES = 10


def main() -> None:
    arrays = read("spoken_digits.npz")
    kept = arrays["take"] < TAKES
    frames = arrays["logmel"][kept].astype(float)
    pairs = frames.reshape(len(frames), -1, 2, frames.shape[2]).mean(axis=2)
    np.savez_compressed(
        Path(__file__).parents[1] / "mvcca" / "datasets" / "data" / "spoken_digits.npz",
        spectrograms=np.round(pairs).astype(np.uint8),
        digits=arrays["y"][kept].astype(np.uint8),
        speakers=arrays["speaker_names"][arrays["speaker"][kept]],
        takes=arrays["take"][kept].astype(np.uint8),
    )


if __name__ == "__main__":
    main()
