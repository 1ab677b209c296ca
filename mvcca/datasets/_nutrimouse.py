"""Nutrimouse: the file it is kept in and the views made of it."""

from __future__ import annotations

from sklearn.utils import Bunch

from mvcca.datasets._files import DataHome, Dense, Source, read
from mvcca.views import Views

__all__ = ["fetch_nutrimouse"]

NUTRIMOUSE = Source(
    "nutrimouse.npz",
    "Nutrimouse (Martin et al., 'Novel aspects of PPARalpha-mediated regulation of lipid and "
    "xenobiotic metabolism revealed through a nutrigenomic study', Hepatology 45, 2007; data set "
    "nutrimouse of the R package CCA, GPL).",
    {
        "gene": Dense("float64", (40, 120)),
        "lipid": Dense("float64", (40, 21)),
        "diet": Dense("str", (40,)),
        "genotype": Dense("str", (40,)),
        "gene_names": Dense("str", (120,)),
        "lipid_names": Dense("str", (21,)),
    },
)


def fetch_nutrimouse(labels: str = "diet", *, data_home: DataHome = None) -> Bunch:
    """Nutrimouse: gene expressions and fatty acids of 40 mice, more features than objects.

    Parameters
    ----------
    labels : {"diet", "genotype"}, default="diet"
        Which of the two factors of the experiment is the label: five diets of eight mice, or two
        genotypes of twenty.
    data_home : path, optional
        Folder with ``nutrimouse.npz``; see `get_data_home`.

    Returns
    -------
    Bunch
        With the attributes:

        - views : Views of float64, ``gene`` (120) and ``lipid`` (21)
        - labels : ndarray of str, shape (40,)
        - feature_names : dict of str to ndarray of str
        - DESCR : str

    Raises
    ------
    ValueError
        If `labels` is none of the values above.
    FileNotFoundError, OSError
        If the file is missing, or damaged or of another form; the message says how to make it.
    """
    if labels not in ("diet", "genotype"):
        raise ValueError(f"labels must be 'diet' or 'genotype', got {labels!r}.")
    arrays = read(NUTRIMOUSE, data_home)
    names = ("gene", "lipid")
    return Bunch(
        views=Views({name: arrays[name] for name in names}),
        labels=arrays[labels],
        feature_names={name: arrays[f"{name}_names"] for name in names},
        DESCR=NUTRIMOUSE.origin,
    )
