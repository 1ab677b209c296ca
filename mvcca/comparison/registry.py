"""The methods that `mvcca.compare` and the command line know by name.

The table names classes instead of importing them, so that ``mvcca --help`` imports nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_OBJECTS = {"callbacks", "encoders"}  # parameters that text cannot express


@dataclass(frozen=True)
class Method:
    """A method: an estimator with some of its parameters fixed.

    Attributes
    ----------
    name : str
        Name to select it by, in `mvcca.compare` and on the command line.
    title : str
        Name in results.
    summary : str
        One-line description.
    path : str
        ``module:class`` of the estimator.
    learns_from : {"pairs", "labels", "labels as a view"}
        Training data.
    fixed : mapping
        Parameters that define this method; the user cannot change them.
    """

    name: str
    title: str
    summary: str
    path: str
    learns_from: Literal["pairs", "labels", "labels as a view"]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks, which needs torch."""
        return self.path.startswith("mvcca.deep")

    @property
    def reads_words(self) -> bool:
        """Whether it has a network for views whose rows are sequences of words, ``tokens``."""
        return self.is_deep and "tokens" in self.takes()

    def takes(self) -> set[str]:
        """Names of the parameters that the user can set."""
        return set(inspect.signature(self._class()).parameters) - set(self.fixed) - _OBJECTS

    def build(self, parameters: Mapping[str, Any]) -> BaseEstimator:
        """Make the estimator, with those parameters that it has."""
        known = {name: parameters[name] for name in self.takes() & set(parameters)}
        return self._class()(**known, **self.fixed)

    def _class(self) -> Any:
        module, name = self.path.split(":")
        try:
            return getattr(import_module(module), name)
        except ImportError as error:  # of an extra
            raise ImportError(f"{self.name}: {error}") from error


_CCA, _MVCCA = "mvcca.linear:CCA", "mvcca.linear:MVCCA"
_KCCA, _NCCA = "mvcca.kernel:KCCA", "mvcca.kernel:NCCA"
_PLS, _CFA = "mvcca.linear:PLS", "mvcca.linear:CFA"
_LGCFL, _JRL, _CMOLRS = "mvcca.linear:LGCFL", "mvcca.linear:JRL", "mvcca.linear:CMOLRS"
_MLCCA, _MVMLCCA = "mvcca.linear:MLCCA", "mvcca.linear:MVMLCCA"

_TABLE = (
    Method("cca", "CCA", "canonical correlation analysis of two views", _CCA, "pairs"),
    Method("mvcca", "MVCCA", "CCA of two or more views", _MVCCA, "pairs"),
    Method(
        "three-view-cca",
        "three-view CCA",
        "MVCCA with the labels as an additional view",
        "mvcca.comparison.three_view:ThreeViewCCA",
        "labels as a view",
        {"power": 4},
    ),
    Method("kcca", "KCCA", "kernel CCA with n x n kernel matrices", _KCCA, "pairs"),
    Method(
        "fkcca",
        "FKCCA",
        "kernel CCA with 500 random Fourier features",
        _KCCA,
        "pairs",
        {"approximation": "fourier"},
    ),
    Method(
        "nkcca",
        "NKCCA",
        "kernel CCA with 500 Nyström landmarks",
        _KCCA,
        "pairs",
        {"approximation": "nystroem"},
    ),
    Method("ncca", "NCCA", "nonparametric CCA from nearest neighbours", _NCCA, "pairs"),
    Method("pls", "PLS", "maximal covariance instead of correlation", _PLS, "pairs"),
    Method("cfa", "CFA", "cross-modal factor analysis: rotations of two views", _CFA, "pairs"),
    Method(
        "procrustes",
        "Procrustes",
        "rotations under which views are closest",
        "mvcca.linear:Procrustes",
        "pairs",
    ),
    Method(
        "affine",
        "Affine map",
        "ridge regression of the last view on the others",
        "mvcca.linear:AffineMap",
        "pairs",
    ),
    Method("mlcca", "MLCCA", "all pairs of rows, weighted by label similarity", _MLCCA, "labels"),
    Method(
        "fast-mlcca",
        "Fast MLCCA",
        "MLCCA with the 50 nearest rows by label",
        _MLCCA,
        "labels",
        {"n_neighbors": 50},
    ),
    Method(
        "cluster-cca",
        "cluster-CCA",
        "MLCCA with all pairs of rows with equal labels",
        _MLCCA,
        "labels",
        {"label_similarity": "equal"},
    ),
    Method(
        "mean-cca",
        "mean-CCA",
        "CCA of the means of classes or label sets",
        _MLCCA,
        "labels",
        {"label_similarity": "equal", "weighting": "means", "n_neighbors": None},
    ),
    Method(
        "mvmlcca",
        "MVMLCCA",
        'within="label", as published: for many label sets',
        _MVMLCCA,
        "labels",
        {"within": "label"},
    ),
    Method(
        "mvmlcca-sample",
        "MVMLCCA sample",
        'MVMLCCA with within="sample": for few label sets',
        _MVMLCCA,
        "labels",
        {"within": "sample"},
    ),
    Method("lgcfl", "LGCFL", "regression of labels on few features per view", _LGCFL, "labels"),
    Method("jrl", "JRL", "LGCFL with pairs and nearest neighbours", _JRL, "labels"),
    Method("cmolrs", "CMOLRS", "low-rank similarity learned from triplets", _CMOLRS, "labels"),
    Method("dcca", "DCCA", "networks with correlated outputs", "mvcca.deep:DCCA", "pairs"),
    Method(
        "ds-dcca",
        "DS-DCCA",
        "DCCA with a last layer scaled for every row",
        "mvcca.deep:DSDCCA",
        "pairs",
    ),
    Method("dccae", "DCCAE", "DCCA with autoencoders", "mvcca.deep:DCCAE", "pairs"),
    Method("soft-cca", "Soft-CCA", "DCCA with a decorrelation loss", "mvcca.deep:SoftCCA", "pairs"),
    Method("soft-hgr", "Soft-HGR", "DCCA with a trace objective", "mvcca.deep:SoftHGR", "pairs"),
    Method("l0-cca", "L0-CCA", "DCCA with feature selection", "mvcca.deep:L0CCA", "pairs"),
    Method("corrnet", "CorrNet", "one autoencoder of two views", "mvcca.deep:CorrNet", "pairs"),
    Method(
        "learned",
        "Learned ranking",
        "networks with a pairwise ranking loss",
        "mvcca.deep:LearnedRanking",
        "pairs",
    ),
    Method("ccal", "CCAL", "ranking loss through a CCA layer", "mvcca.deep:CCAL", "pairs"),
    Method(
        "ds-ranking-cca",
        "DS-Ranking-CCA",
        "CCAL with a last layer scaled for every row",
        "mvcca.deep:DSRankingCCA",
        "pairs",
    ),
    Method(
        "two-branch",
        "Two-branch",
        "networks with a structure-preserving loss",
        "mvcca.deep:TwoBranch",
        "pairs",
    ),
    Method(
        "devise",
        "DeViSE",
        "linear map into the last view's space",
        "mvcca.deep:DeViSE",
        "pairs",
    ),
    Method("acmr", "ACMR", "adversarial networks of labels", "mvcca.deep:ACMR", "labels"),
    Method("deep-sm", "Deep-SM", "classifiers of each view", "mvcca.deep:DeepSM", "labels"),
    Method("cmdn", "CMDN", "autoencoders with labels, simplified", "mvcca.deep:CMDN", "labels"),
    Method("ccl", "CCL", "contrastive networks of labels, simplified", "mvcca.deep:CCL", "labels"),
    Method("sam", "SAM", "margins that adapt to the labels", "mvcca.deep:SAM", "labels"),
    Method("msds", "MSDS", "networks that find one match among more", "mvcca.deep:MSDS", "pairs"),
    Method("corr-ae", "Corr-AE", "autoencoders with similar codes", "mvcca.deep:CorrAE", "pairs"),
    Method(
        "cross-corr-ae",
        "Cross-Corr-AE",
        "Corr-AE that reconstructs the other view",
        "mvcca.deep:CrossCorrAE",
        "pairs",
    ),
)

METHODS = {method.name: method for method in _TABLE}
_DEEP = [name for name, method in METHODS.items() if method.is_deep]
GROUPS = {
    "default": ("cca", "mvcca", "three-view-cca", "mlcca", "mvmlcca", "nkcca", "ncca", "jrl"),
    "all": tuple(name for name, method in METHODS.items() if not method.is_deep),
    "deep": tuple(_DEEP[: _DEEP.index("corrnet") + 1]),
    "deep-retrieval": tuple(_DEEP[_DEEP.index("corrnet") + 1 :]),
}
DEFAULT_DEEP = ("cca", "nkcca", *GROUPS["deep"])


class MethodTable(dict[str, Method]):
    """Methods by name, printed as a table."""

    def __repr__(self) -> str:
        return listing()


def methods() -> MethodTable:
    """List the methods that `mvcca.compare` and ``mvcca fit`` know by name.

    Returns
    -------
    dict of str to Method
        Each method with its title, what it learns from, and ``build(parameters)``, which makes the
        estimator. Printing it shows a table.

    Examples
    --------
    >>> import mvcca
    >>> mvcca.methods()["nkcca"].build({"n_components": 9})
    KCCA(approximation='nystroem', n_components=9)
    """
    return MethodTable(METHODS)


def selected(names: Iterable[str]) -> list[str]:
    """Names of methods, with groups ("default", "all", "deep") replaced by their members."""
    found: dict[str, None] = {}
    for name in names:
        if name not in GROUPS and name not in METHODS:
            raise ValueError(unknown(name, [*METHODS, *GROUPS]))
        found |= dict.fromkeys(GROUPS.get(name, (name,)))
    return list(found)


def unknown(name: str, known: Sequence[str]) -> str:
    """Error message about an unknown method, with similar names or else all of them."""
    hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
    return f"unknown method {name!r}{hint}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: similar names, if there are any."""
    similar = get_close_matches(name.lower(), sorted(known), n=3)
    return f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def listing() -> str:
    """All methods with what they learn from, one per line."""
    lines = {
        name: f"  {name:15s}{method.summary} [{method.learns_from}]"
        for name, method in METHODS.items()
    }
    return "\n".join(
        [
            *(lines[name] for name in GROUPS["all"]),
            "with networks, which need torch (pip install mvcca[deep]):",
            *(lines[name] for name in _DEEP),
        ]
    )
