"""The table of methods that the command line knows by name.

A new method is a new line. The table names classes instead of importing them, so that ``--help``
can list it at no cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from mvcca.cli.errors import in_one_line

if TYPE_CHECKING:
    from mvcca.views import Views

__all__ = ["DEFAULT", "DEFAULT_DEEP", "GROUPS", "METHODS", "Method", "listing"]

_OBJECTS = {"callbacks", "encoders"}  # parameters that no word of a command line can be


@dataclass(frozen=True)
class Method:
    """One line of the table.

    Attributes
    ----------
    name : str
        What the user types.
    title : str
        What results are printed under.
    summary : str
        What it is, for the help.
    home : str
        ``module:class`` of the estimator.
    learns_from : {"pairs", "labels", "labels as a view"}
        What it is fitted to.
    fixed : mapping
        Parameters that make the class this method; the user cannot change them.
    """

    name: str
    title: str
    summary: str
    home: str
    learns_from: Literal["pairs", "labels", "labels as a view"]
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks, which takes torch and time."""
        return self.home.startswith("mvcca.deep")

    def takes(self) -> set[str]:
        """Names of the parameters that the user can set."""
        return set(inspect.signature(self._class()).parameters) - set(self.fixed) - _OBJECTS

    def build(self, options: Mapping[str, Any]) -> Any:
        """The estimator, unfitted, with those options that it has parameters for."""
        mine = {name: options[name] for name in self.takes() & set(options)}
        return self._class()(**mine, **self.fixed)

    def fit(self, estimator: Any, views: Views, y: Any) -> None:
        """Fit to what the method learns from."""
        if self.learns_from == "pairs":
            estimator.fit(views)
        elif self.learns_from == "labels":
            estimator.fit(views, y)
        else:
            from mvcca.linear import with_labels_as_view

            estimator.fit(with_labels_as_view(views, y, name="(labels)"))

    def _class(self) -> Any:
        module, name = self.home.split(":")
        with in_one_line(f"{self.name}: "):  # torch may be missing
            return getattr(import_module(module), name)


_CCA, _MVCCA = "mvcca.linear:CCA", "mvcca.linear:MVCCA"
_KCCA, _NCCA = "mvcca.kernel:KCCA", "mvcca.kernel:NCCA"
_PLS, _CFA = "mvcca.linear:PLS", "mvcca.linear:CFA"
_LGCFL, _JRL, _CMOLRS = "mvcca.linear:LGCFL", "mvcca.linear:JRL", "mvcca.linear:CMOLRS"
_MLCCA, _MVMLCCA = "mvcca.linear:MLCCA", "mvcca.linear:MVMLCCA"

_TABLE = (
    Method("cca", "CCA", "canonical correlation of two views", _CCA, "pairs"),
    Method("mvcca", "MVCCA", "the same for two or more views", _MVCCA, "pairs"),
    Method(
        "three-view-cca",
        "three-view CCA",
        "MVCCA with the labels as one more view",
        _MVCCA,
        "labels as a view",
        {"power": 4},
    ),
    Method("kcca", "KCCA", "CCA of functions of the views, with n x n kernels", _KCCA, "pairs"),
    Method(
        "fkcca",
        "FKCCA",
        "kernel CCA on 500 random Fourier features, for any n",
        _KCCA,
        "pairs",
        {"approximation": "fourier"},
    ),
    Method(
        "nkcca",
        "NKCCA",
        "kernel CCA on 500 landmarks, for any n",
        _KCCA,
        "pairs",
        {"approximation": "nystroem"},
    ),
    Method("ncca", "NCCA", "functions of the views from nearest neighbours", _NCCA, "pairs"),
    Method("pls", "PLS", "largest covariance rather than correlation", _PLS, "pairs"),
    Method("cfa", "CFA", "rotations of two views onto each other", _CFA, "pairs"),
    Method("mlcca", "MLCCA", "all pairs of rows, by how alike their labels are", _MLCCA, "labels"),
    Method(
        "fast-mlcca",
        "Fast MLCCA",
        "MLCCA over each row's 50 nearest by label",
        _MLCCA,
        "labels",
        {"n_neighbors": 50},
    ),
    Method(
        "cluster-cca",
        "cluster-CCA",
        "MLCCA over all pairs of rows with equal labels",
        _MLCCA,
        "labels",
        {"label_similarity": "equal"},
    ),
    Method(
        "mean-cca",
        "mean-CCA",
        "CCA of the mean rows of classes or label sets",
        _MLCCA,
        "labels",
        {"label_similarity": "equal", "weighting": "means"},
    ),
    Method(
        "mvmlcca",
        "MVMLCCA",
        'as published, within="label": needs many label sets',
        _MVMLCCA,
        "labels",
        {"within": "label"},
    ),
    Method(
        "mvmlcca-sample",
        "MVMLCCA sample",
        'MVMLCCA with within="sample": right for few label sets',
        _MVMLCCA,
        "labels",
        {"within": "sample"},
    ),
    Method("lgcfl", "LGCFL", "regression of labels on few features", _LGCFL, "labels"),
    Method("jrl", "JRL", "the same, tied by pairs and nearest neighbours", _JRL, "labels"),
    Method("cmolrs", "CMOLRS", "low-rank similarity from triplets of rows", _CMOLRS, "labels"),
    Method("dcca", "DCCA", "networks whose outputs correlate", "mvcca.deep:DCCA", "pairs"),
    Method(
        "ds-dcca",
        "DS-DCCA",
        "DCCA, the last layer scaled for every row",
        "mvcca.deep:DSDCCA",
        "pairs",
    ),
    Method("dccae", "DCCAE", "DCCA of autoencoders", "mvcca.deep:DCCAE", "pairs"),
    Method("soft-cca", "Soft-CCA", "DCCA by decorrelation", "mvcca.deep:SoftCCA", "pairs"),
    Method("soft-hgr", "Soft-HGR", "DCCA by traces of covariances", "mvcca.deep:SoftHGR", "pairs"),
    Method("l0-cca", "L0-CCA", "DCCA of few features", "mvcca.deep:L0CCA", "pairs"),
    Method("corrnet", "CorrNet", "one autoencoder of two views", "mvcca.deep:CorrNet", "pairs"),
)

METHODS = {method.name: method for method in _TABLE}
GROUPS = {
    "all": tuple(name for name, method in METHODS.items() if not method.is_deep),
    "deep": tuple(name for name, method in METHODS.items() if method.is_deep),
}
DEFAULT_DEEP = ("cca", "nkcca", *GROUPS["deep"])
DEFAULT = ("cca", "mvcca", "three-view-cca", "mlcca", "mvmlcca", "mvmlcca-sample")


def listing() -> str:
    """All methods with what they learn from, a line each, for the help."""
    lines = {
        name: f"  {name:15s}{method.summary} [{method.learns_from}]"
        for name, method in METHODS.items()
    }
    return "\n".join(
        [
            *(lines[name] for name in GROUPS["all"]),
            "of networks, which need torch (pip install mvcca[deep]) and time:",
            *(lines[name] for name in GROUPS["deep"]),
        ]
    )
