"""Multiple Features: the file they are kept in and the views made of it."""

from __future__ import annotations

from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Source, read
from mvcca.views import Views

__all__ = ["fetch_mfeat"]

MFEAT = Source(
    "mfeat.npz",
    "Multiple Features (van Breukelen, Duin, Tax & den Hartog 1998; UCI Machine Learning "
    "Repository, archive.ics.uci.edu, CC BY 4.0), rows in the original order.",
    {
        "fac": Dense("float32", (2000, 216)),
        "fou": Dense("float32", (2000, 76)),
        "kar": Dense("float32", (2000, 64)),
        "mor": Dense("float32", (2000, 6)),
        "pix": Dense("float32", (2000, 240)),
        "zer": Dense("float32", (2000, 47)),
        "y": Dense("uint8", (2000,)),
    },
)


def fetch_mfeat(*, data_home: DataHome = None) -> Bunch:
    """Multiple Features: six descriptions of 2,000 handwritten digits.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``mfeat.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float32:
          ``fac`` (216 profile correlations), ``fou`` (76 Fourier coefficients), ``kar`` (64
          Karhunen-Loeve coefficients), ``mor`` (6 morphological features), ``pix`` (240 pixel
          averages), ``zer`` (47 Zernike moments); their scales differ widely.
        - labels : ndarray of int, shape (2000,):
          The digits. Rows are sorted by digit: shuffle before splitting.
        - DESCR : str

    Raises
    ------
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.
    """
    arrays = read(MFEAT, data_home)
    labels = arrays.pop("y").astype(int)
    return Bunch(views=Views(arrays), labels=labels, DESCR=MFEAT.origin)
