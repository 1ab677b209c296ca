"""Table of the methods that the command line knows by name.

The table names classes instead of importing them, so that ``--help`` imports nothing.
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

_OBJECTS = {"callbacks", "encoders"}  # parameters that text cannot express


@dataclass(frozen=True)
class Method:
    """A method: an estimator with some of its parameters fixed.

    Attributes
    ----------
    name : str
        Name on the command line.
    title : str
        Name in results.
    summary : str
        Description in the help.
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

    def takes(self) -> set[str]:
        """Names of the parameters that the user can set."""
        return set(inspect.signature(self._class()).parameters) - set(self.fixed) - _OBJECTS

    def build(self, options: Mapping[str, Any]) -> Any:
        """Make the estimator, with those options that are parameters of it."""
        known = {name: options[name] for name in self.takes() & set(options)}
        return self._class()(**known, **self.fixed)

    def fit(self, estimator: Any, views: Views, y: Any) -> None:
        """Fit an estimator to the views, with labels if the method uses them."""
        if self.learns_from == "pairs":
            estimator.fit(views)
        elif self.learns_from == "labels":
            estimator.fit(views, y)
        else:
            from mvcca.linear import with_labels_as_view

            estimator.fit(with_labels_as_view(views, y, name="(labels)"))

    def _class(self) -> Any:
        module, name = self.path.split(":")
        with in_one_line(f"{self.name}: "):  # torch may be missing
            return getattr(import_module(module), name)


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
        _MVCCA,
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
        {"label_similarity": "equal", "weighting": "means"},
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
)

METHODS = {method.name: method for method in _TABLE}
GROUPS = {
    "all": tuple(name for name, method in METHODS.items() if not method.is_deep),
    "deep": tuple(name for name, method in METHODS.items() if method.is_deep),
}
DEFAULT_DEEP = ("cca", "nkcca", *GROUPS["deep"])
DEFAULT = ("cca", "mvcca", "three-view-cca", "mlcca", "mvmlcca", "mvmlcca-sample")


def listing() -> str:
    """List all methods with what they learn from, for the help."""
    lines = {
        name: f"  {name:15s}{method.summary} [{method.learns_from}]"
        for name, method in METHODS.items()
    }
    return "\n".join(
        [
            *(lines[name] for name in GROUPS["all"]),
            "with networks, which need torch (pip install mvcca[deep]):",
            *(lines[name] for name in GROUPS["deep"]),
        ]
    )
