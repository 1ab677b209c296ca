"""Spoken digits, a second modality for handwritten ones."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Source, read
from mvcca.views import Views

__all__ = ["fetch_spoken_digits"]

SPOKEN_DIGITS = Source(
    "spoken_digits.npz",
    "Free Spoken Digit Dataset (Jackson et al.; github.com/Jakobovski/free-spoken-digit-dataset, "
    "CC BY-SA 4.0) as log-mel spectrograms of 48 frames and 40 bins; log10 power = low + logmel / "
    "255 * (high - low). is_test marks takes 0-4 of every digit and speaker.",
    {
        "logmel": Dense("uint8", (3000, 48, 40)),
        "log10_power_low": Dense("float64", ()),
        "log10_power_high": Dense("float64", ()),
        "y": Dense("uint8", (3000,)),
        "speaker": Dense("uint8", (3000,)),
        "speaker_names": Dense("str", (6,)),
        "is_test": Dense("bool", (3000,)),
    },
)


def fetch_spoken_digits(*, data_home: DataHome = None) -> Bunch:
    """Spoken digits: spectrograms of six speakers, to relate to handwritten digits by class.

    No recording belongs to an image, so that the views are unpaired: methods that learn from labels
    relate them, as in ``Views.unpaired({"image": images, "sound": recordings})``.

    Parameters
    ----------
    data_home : path, optional
        Directory with ``spoken_digits.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch of 2,700 and 300 recordings:
          views : Views of float32, ``sound``, log10 of the power in 48 frames of 40 mel bins (1,920
          features); labels : ndarray of int, the digits; speakers : ndarray of str.
        - spectrogram_shape : (frames, bins)
        - DESCR : str

    Raises
    ------
    OSError
        If the file is missing or damaged; the message says how to make it.
    """
    arrays = read(SPOKEN_DIGITS, data_home)
    low, high = (float(arrays[f"log10_power_{end}"]) for end in ("low", "high"))
    spectrograms = arrays["logmel"].astype(np.float32) * np.float32((high - low) / 255)
    rows = (spectrograms + np.float32(low)).reshape(len(spectrograms), -1)

    def part(chosen: np.ndarray) -> Bunch:
        return Bunch(
            views=Views({"sound": rows[chosen]}),
            labels=arrays["y"][chosen].astype(int),
            speakers=arrays["speaker_names"][arrays["speaker"][chosen]],
        )

    return Bunch(
        train=part(~arrays["is_test"]),
        test=part(arrays["is_test"]),
        spectrogram_shape=spectrograms.shape[1:],
        DESCR=SPOKEN_DIGITS.origin,
    )
