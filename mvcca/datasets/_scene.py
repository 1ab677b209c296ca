"""Scene: the file it is kept in and the views, one per colour channel, made of it."""

from __future__ import annotations

from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Source, per_split, read
from mvcca.views import Views

__all__ = ["fetch_scene"]

SCENE = Source(
    "scene.npz",
    "Scene images (Boutell, Luo, Shen & Brown, 'Learning multi-label scene classification', "
    "Pattern Recognition 37, 2004; in the collection of Mulan, mulan.sourceforge.net). ch0, ch1, "
    "ch2 are the L, u and v channel: 49 block means, then 49 block variances.",
    {
        "label_names": Dense("str", (6,)),
        **per_split(
            {"train": 1211, "test": 1196},
            {
                "ch0": ("float32", (98,)),
                "ch1": ("float32", (98,)),
                "ch2": ("float32", (98,)),
                "labels": ("uint8", (6,)),
            },
        ),
    },
)


def fetch_scene(*, data_home: DataHome = None) -> Bunch:
    """Scene: colour moments of photographs, a view per colour channel, up to three labels each.

    Parameters
    ----------
    data_home : path, optional
        Folder with ``scene.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - train, test : Bunch of 1,211 and 1,196 objects:
          views : Views of float32, ``L``, ``u`` and ``v``, each the means and then the variances
          of 7 x 7 blocks; labels : ndarray of 0/1 int, shape (n, 6).
        - label_names : ndarray of str, shape (6,)
        - DESCR : str

    Raises
    ------
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.
    """
    arrays = read(SCENE, data_home)

    def part(name: str) -> Bunch:
        views = {"L": "ch0", "u": "ch1", "v": "ch2"}
        blocks = {view: arrays[f"{channel}_{name}"] for view, channel in views.items()}
        return Bunch(views=Views(blocks), labels=arrays[f"labels_{name}"].astype(int))

    return Bunch(
        train=part("train"),
        test=part("test"),
        label_names=arrays["label_names"],
        DESCR=SCENE.origin,
    )
