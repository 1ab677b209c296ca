"""Nottingham tunes: the file they are kept in and the piano rolls made of it."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Packed, Source, read

__all__ = ["fetch_nottingham"]

NOTTINGHAM = Source(
    "nottingham.npz",
    "Nottingham folk tunes as piano rolls, in the split of Boulanger-Lewandowski, Bengio & Vincent "
    "(ICML 2012). The rolls of a split are stacked, one row per time step; the lengths cut them.",
    {
        "midi_low": Dense("int64", ()),
        "train_roll": Packed(("train steps", 88)),
        "train_lengths": Dense("int32", (694,)),
        "valid_roll": Packed(("valid steps", 88)),
        "valid_lengths": Dense("int32", (173,)),
        "test_roll": Packed(("test steps", 88)),
        "test_lengths": Dense("int32", (170,)),
    },
)


def fetch_nottingham(*, data_home: DataHome = None) -> Bunch:
    """Nottingham: 1,037 folk tunes as piano rolls, music to build audio and score views from.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``nottingham.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, valid, test : Bunch of 694, 173 and 170 tunes:
          rolls : list of ndarray of 0/1 uint8, shape (n_steps, 88), whether a note sounds at a
          time step; views : None; labels : None.
        - lowest_note : int:
          MIDI number of column 0.
        - DESCR : str

    Raises
    ------
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.
    """
    arrays = read(NOTTINGHAM, data_home)

    def part(name: str) -> Bunch:
        ends = np.cumsum(arrays[f"{name}_lengths"])
        rolls = np.split(arrays[f"{name}_roll"], ends[:-1])
        return Bunch(views=None, labels=None, rolls=rolls)

    return Bunch(
        train=part("train"),
        valid=part("valid"),
        test=part("test"),
        lowest_note=int(arrays["midi_low"]),
        DESCR=NOTTINGHAM.origin,
    )
