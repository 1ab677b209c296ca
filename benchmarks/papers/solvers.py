"""Methods that several papers compare with, as solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers.protocol import Setting, Solver
from mvcca import CCA, CFA, JRL, KCCA, LGCFL, MLCCA, MVCCA, MVMLCCA, NCCA, PLS
from mvcca.linear import with_labels_as_view

Grid = Mapping[str, Sequence[Any]]
RIDGES = tuple(float(f"{reg:.2g}") for reg in np.geomspace(1e-4, 10, 11))
_POWERS = (0.0, 0.5, 1.0, 2.0, 4.0)
# Rates of settings that name none, whatever the package's default becomes.
_RATES = dict.fromkeys(("DCCA", "DCCAE", "DSDCCA", "L0CCA"), 1e-3)
_RATES |= dict.fromkeys(("CorrAE", "CrossCorrAE"), 3e-3) | {"CCAL": 5e-3}


def classical(name: str, cls: type, first: Setting, grid: Grid, note: str = "") -> Solver:
    """A method without networks; those that draw something draw by the seed."""

    def build(setting: Setting, seed: int) -> Any:
        model = cls(**setting)
        return (
            model.set_params(random_state=seed) if "random_state" in model.get_params() else model
        )

    return Solver(name, build, first, grid, note=note)


def network(
    name: str, estimator: str, first: Setting, grid: Grid, *, note: str = "", **others: Any
) -> Solver:
    """An estimator of `mvcca.deep`, by the name of its class."""

    def build(setting: Setting, seed: int) -> Any:
        from mvcca import deep

        own = {"standardize": False} | setting
        if estimator in _RATES:
            own.setdefault("learning_rate", _RATES[estimator])
        if scale := own.pop("scaling_layer_sizes", None):
            own["scaling_layer_sizes"] = tuple(scale)
        return getattr(deep, estimator)(**own, random_state=seed)

    return Solver(name, build, first, grid, is_deep=True, note=note, **others)


def cca(n_components: int, sizes: Sequence[int] = ()) -> Solver:
    grid: dict[str, Any] = {"reg": RIDGES}
    if sizes:
        grid |= {"n_components": sizes}
    return classical("CCA", CCA, {"n_components": n_components, "reg": 1e-2}, grid)


def pls(sizes: Sequence[int]) -> Solver:
    return classical("PLS", PLS, {"n_components": sizes[0]}, {"n_components": sizes})


def cfa(sizes: Sequence[int]) -> Solver:
    return classical("CFA", CFA, {"n_components": sizes[0]}, {"n_components": sizes})


def kcca(n_components: int) -> Solver:
    first = {"n_components": n_components, "reg": 0.1, "gamma": "median"}
    gammas = ("0.3*median", "median", "3*median")
    return classical("KCCA", KCCA, first, {"reg": (1e-2, 1e-1, 1.0), "gamma": gammas})


def approximate(name: str, n_components: int, rank: int) -> Solver:
    """Kernel CCA by Fourier features (FKCCA) or Nyström landmarks (NKCCA)."""
    by, ridges = {
        "FKCCA": ("fourier", (1e-8, 1e-6, 1e-4, 1e-3, 1e-2)),
        "NKCCA": ("nystroem", (1e-4, 1e-3, 1e-2, 1e-1)),
    }[name]
    first = {
        "n_components": n_components,
        "gamma": "median",
        "approximation": by,
        "n_landmarks": rank,
        "reg": ridges[1],
    }
    return classical(name, KCCA, first, {"reg": ridges, "gamma": ("median", "0.5*median")})


def ncca(n_components: int) -> Solver:
    first = {"n_components": n_components, "n_neighbors": 20, "bandwidth": 0.5}
    grid = {"n_neighbors": (10, 20, 40), "bandwidth": (0.3, 0.5, 1.0, 50.0)}

    def build(setting: Setting, seed: int) -> Any:
        from sklearn.decomposition import PCA

        return NCCA(**setting, reducer=PCA(0.8), random_state=seed)

    return Solver("NCCA", build, first, grid)


def lgcfl() -> Solver:
    return classical("LGCFL", LGCFL, {"reg": 1e-2}, {"reg": RIDGES}, "a reconstruction")


def jrl() -> Solver:
    first = {"reg": 1e-2, "n_neighbors": 100}
    grid = {
        "reg": (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
        "n_neighbors": (20, 50, 100, 200),
        "smoothness": (1.0, 10.0, 100.0),
    }
    return classical("JRL", JRL, first, grid)


def cmolrs(n_components: int) -> Solver:
    from mvcca import CMOLRS

    first = {"n_components": n_components, "n_epochs": 20}
    grid = {"learning_rate": (0.3, 1.0, 3.0), "n_components": (10, 20, 40)}
    return classical("CMOLRS", CMOLRS, first, grid, "a reconstruction")


class ThreeViewCCA(MVCCA):
    """`MVCCA` of the views and the labels, which new rows lack."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ThreeViewCCA:
        """Fit to the views and the labels."""
        return super().fit(with_labels_as_view(X, y), sample_weight=sample_weight)


def three_view(n_components: int, sizes: Sequence[int] = ()) -> Solver:
    first = {"n_components": n_components, "reg": 1e-2, "power": 4.0}
    grid = {"reg": RIDGES, "power": _POWERS, "n_components": sizes or (n_components,)}
    return classical("MVCCA", ThreeViewCCA, first, grid, "labels as a view")


def mlcca(n_components: int, sizes: Sequence[int] = (), **fixed: Any) -> Solver:
    first = {"n_components": n_components, "reg": 0.25, **fixed}
    grid = {"reg": RIDGES, "power": _POWERS, "n_components": sizes or (n_components,)}
    return classical("MLCCA", MLCCA, first, grid)


def mvmlcca(within: str, n_components: int, sizes: Sequence[int] = ()) -> Solver:
    """The published constraint smooths by labels; "sample" is that of MLCCA."""
    first = {"n_components": n_components, "reg": 1e-2, "within": within}
    grid = {
        "reg": (*RIDGES, 100.0, 1000.0),
        "power": _POWERS,
        "n_components": sizes or (n_components,),
    }
    note = "as published" if within == "label" else "the default of the package"
    name = "MVMLCCA" if within == "label" else 'MVMLCCA, within="sample"'
    return classical(name, MVMLCCA, first, grid, note)
