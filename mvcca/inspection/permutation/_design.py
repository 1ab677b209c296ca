"""Design of a permutation test: what is tested, and which rows may be exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from mvcca.inspection._rows import orthonormal
from mvcca.inspection.permutation._exchange import Exchange
from mvcca.inspection.permutation._loading_nulls import LOADINGS
from mvcca.inspection.permutation._nuisance import (
    Centred,
    Complement,
    Theil,
    orthonormal_with_ones,
    residuals_of,
)
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import STATISTICS
from mvcca.problem import reg_of_names

HELD_OUT = "held-out"
_UNLIKE = 1.25  # times the sum of products of leverages of normal rows
_PROJECTIONS = ("auto", "huh-jhun", "theil")


@dataclass(frozen=True, eq=False)
class Options:
    """Parameters of `permutation_test` that do not depend on the rows."""

    statistic: str
    n_components: int | None
    reg: Any
    within: bool
    sign_flips: bool
    projection: str
    loadings: str | None

    @property
    def is_stepwise(self) -> bool:
        """Whether components are tested one after the other, if there are two views."""
        return self.statistic != HELD_OUT and self.reg != "cv"

    @property
    def n_steps(self) -> int | None:
        """Number of components to test, None for all.

        With a ridge, sums over all later correlations reject too often after a strong component:
        features that nearly fill the rows leave them hardly any variance.
        """
        return 1 if self.has_ridge and self.statistic != "roy" else self.n_components

    @property
    def has_ridge(self) -> bool:
        """Whether results depend on the units of columns."""
        values = self.reg.values() if isinstance(self.reg, Mapping) else [self.reg]
        return any(value != 0 for value in values)

    def check(self, n_views: int, *, groups: bool, confounds: Sequence[bool]) -> None:
        """Refuse values that are unknown, and options that exclude each other."""
        self._check_names()
        if confounds[1] and n_views > 2:
            raise ValueError(f"confounds_y is for two views, got {n_views}. Pass confounds only.")
        if confounds[1] and (not self.is_stepwise or self.loadings == "own-permuted"):
            what = 'loadings="own-permuted"' if self.is_stepwise else "a test by folds"
            raise ValueError(f"{what} needs the same confounds for both views: omit confounds_y.")
        if self.within and (self.sign_flips or not groups):
            raise ValueError(
                "within=True exchanges rows within groups: pass groups, and no sign_flips, which "
                "flip whole groups."
            )
        has_q = any(confounds) or self.sign_flips
        if self.projection != "auto" and not has_q:
            raise ValueError(
                f'projection="{self.projection}" says how confounds are removed: pass confounds.'
            )
        if self.projection == "huh-jhun" and (groups or self.sign_flips):
            raise ValueError(
                'projection="huh-jhun" rotates the rows, which then belong to no group and are not '
                'independent of each other. Use "theil" with groups and sign_flips.'
            )
        if self.loadings is not None and not (self.is_stepwise and n_views == 2):
            raise ValueError(
                "loadings are tested with components: use two views, a ridge that is a number and "
                f"one of the statistics {', '.join(STATISTICS)}."
            )
        if self.n_components is not None and not (self.is_stepwise and n_views == 2):
            raise ValueError(
                "n_components is the number of components to test one after the other, but more "
                'than two views, statistic="held-out" and reg="cv" have a test of the global null '
                "hypothesis only. Omit it."
            )
        if self.n_steps == 1 and (self.n_components or 1) > 1:
            raise ValueError(
                f'With a ridge, statistic="{self.statistic}" has a test of the global null '
                'hypothesis only. Use statistic="roy" to test components one after the other.'
            )
        if n_views > 2 and not self.is_stepwise:
            raise ValueError(
                f'statistic="held-out" and reg="cv" are for two views, got {n_views}. Test pairs '
                "of views, and multiply p-values as Holm does."
            )

    def _check_names(self) -> None:
        known = {
            "statistic": (*STATISTICS, HELD_OUT),
            "projection": _PROJECTIONS,
            "loadings": (None, *LOADINGS),
        }
        for name, values in known.items():
            value = getattr(self, name)
            if value not in values:
                expected = ", ".join(map(repr, values))
                raise ValueError(f"{name} must be one of {expected}, got {value!r}.")
        if isinstance(self.reg, str) and self.reg != "cv":
            raise ValueError(f'reg must be a number >= 0, by view, or "cv", got {self.reg!r}.')
        n = self.n_components
        if n is not None and not (isinstance(n, Integral) and n > 0):
            raise ValueError(f"n_components must be a positive integer or None, got {n!r}.")

    def ridges(self, names: Sequence[str]) -> dict[str, float]:
        """Ridge of each view; that of "cv" is positive."""
        return reg_of_names(1.0 if self.reg == "cv" else self.reg, names)


@dataclass(frozen=True, eq=False)
class Design:
    """Views without confounds, and what may be done to their rows.

    Attributes
    ----------
    sides : list of Side
        With two views, each permutation rearranges the rows of the first view; if each view has its
        own confounds, it rearranges those of the second view, too. With more views, it rearranges
        the rows of all but the first.
    exchanges : list of Exchange
        Of the rows of each side.
    groups : ndarray of int, shape (m,), or None
        Group of each of the rows of the first side.
    dropped_rows : ndarray of int
        Rows of the data that are left out.
    """

    sides: list[Side]
    exchanges: list[Exchange]
    groups: np.ndarray | None
    dropped_rows: np.ndarray

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, np.ndarray],
        confounds: Sequence[np.ndarray | None],
        groups: np.ndarray | None,
        options: Options,
    ) -> Design:
        """Remove confounds, and check that enough is left to rearrange."""
        names, n_rows = list(arrays), len(next(iter(arrays.values())))
        moved, complements = _complements(names, n_rows, confounds, groups, options)
        sides = [
            Side.of(name, X, complements[name], for_ridge=options.has_ridge)
            for name, X in arrays.items()
        ]
        _check_ranks(sides, options.ridges(names), n_rows, groups if options.within else None)
        if groups is not None and not options.within:
            _check_groups_with_confounds(sides, n_rows, len(np.unique(groups)))
        if len(sides) == 2:
            first = moved if moved is not None else min(sides, key=lambda side: side.rank).name
            sides.sort(key=lambda side: side.name != first)
        codes = [_at(groups, side.complement.kept) for side in sides]
        exchanges = [
            Exchange.of(len(side.basis), own, within=options.within, flips=options.sign_flips)
            for side, own in zip(sides, codes, strict=True)
        ]
        for exchange in exchanges:
            exchange.check()
        theirs = [side.complement for side in sides if isinstance(side.complement, Theil)]
        dropped = [np.setdiff1d(np.arange(n_rows), own.kept) for own in theirs]
        return cls(
            sides, exchanges, codes[0], np.unique(np.concatenate([[], *dropped])).astype(int)
        )

    @property
    def n_rows(self) -> int:
        """Number of rows that are rearranged."""
        return len(self.sides[0].complement.kept)

    @property
    def has_unlike_scale(self) -> bool:
        """Whether large rows of the first two views belong together, more than by chance.

        The sum of h_i k_i over rows, of leverages h and k, is pq / n if rows have a common scale,
        but for 2 Σ r² / n where views are correlated.
        """
        U, V = (side.basis for side in self.sides[:2])
        (n, p), q = U.shape, V.shape[1]
        excess = (
            n * ((U**2).sum(axis=1) @ (V**2).sum(axis=1)) / (p * q + 2 * ((U.T @ V) ** 2).sum())
        )
        error = np.sqrt(((1 + 2 / p) * (1 + 2 / q) - 1) / n)  # of normal rows
        return bool(excess > max(_UNLIKE, 1 + 3 * error))


def most_features(n_rows: int, n_groups: int, n_confounds: int) -> int:
    """Features p + q up to which whole groups may be exchanged once confounds are removed.

    Removing confounds mixes rows of different groups a little, which many features add up.
    """
    return min(n_rows // 10, n_groups // (2 * (1 + n_confounds)))


def _check_groups_with_confounds(sides: Sequence[Side], n_rows: int, n_groups: int) -> None:
    """Refuse whole groups with confounds and so many features that p-values are wrong."""
    ranks = [side.complement.Z.shape[1] for side in sides if isinstance(side.complement, Theil)]
    n_confounds = max(ranks, default=1) - 1  # less the mean
    most, p = most_features(n_rows, n_groups, n_confounds), sum(side.rank for side in sides)
    if n_confounds and p > most and n_groups < n_rows:
        raise ValueError(
            f"With {n_rows} rows in {n_groups} groups and {n_confounds} independent confounds, p-"
            f"values hold for at most {most} independent features of all views together, got {p}; "
            "with many features, half of them are below 0.05 by chance. (At most a tenth of the "
            "rows, and half of groups / (1 + confounds).) Reduce the views to fewer principal "
            "components (n_components of `study`, --components of `mvcca test`), or test "
            "correlations within groups (within=True, --within), which has no such limit."
        )


def _complements(
    names: Sequence[str],
    n_rows: int,
    confounds: Sequence[np.ndarray | None],
    groups: np.ndarray | None,
    options: Options,
) -> tuple[str | None, dict[str, Complement]]:
    """The view to rearrange, if confounds decide, and what is left of each view."""
    Z, W = confounds
    name = options.projection
    if name == "auto":
        name = "huh-jhun" if groups is None and not options.sign_flips else "theil"
    if Z is None and W is None and not options.sign_flips:
        return None, dict.fromkeys(names, Centred(n_rows))
    own, other = (
        _basis(what, confound, n_rows, options)
        for what, confound in (("confounds", Z), ("confounds_y", W))
    )
    if W is None:
        return None, dict.fromkeys(names, residuals_of(own, name, groups))
    first, second = names
    theirs = residuals_of(other, name, groups)
    if Z is None:
        return second, {first: Centred(n_rows), second: theirs}
    return None, {first: residuals_of(own, name, groups), second: theirs}


def _basis(name: str, Z: np.ndarray | None, n_rows: int, options: Options) -> np.ndarray:
    """An orthonormal basis of confounds, and of the mean unless groups have lost theirs."""
    if Z is not None and options.within:
        return orthonormal(name, Z)
    return orthonormal_with_ones(name, Z, n_rows)


def _at(groups: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    """Groups of some rows, numbered from 0."""
    return None if groups is None else np.unique(groups[rows], return_inverse=True)[1]


def _check_ranks(
    sides: Sequence[Side], reg: Mapping[str, float], n_rows: int, groups: np.ndarray | None
) -> None:
    """Refuse views without a ridge that span all that confounds, and means of groups, leave."""
    n_left = []
    for side in sides:
        n_means = int(isinstance(side.complement, Centred))
        if groups is not None:
            n_means = len(np.unique(groups[side.complement.kept]))
        n_left.append(len(side.basis) - n_means)
    free = min(n_left)
    ranks = sum(side.rank for side in sides if not reg[side.name])
    if ranks <= free:
        return
    n_confounds = n_rows - 1 - free
    without = (
        f", {n_confounds} independent confounds, means of groups or dropped rows"
        if n_confounds
        else ""
    )
    raise ValueError(
        f"With {n_rows} objects{without} and {ranks} independent features, correlations are 1 by "
        "construction. Reduce the views first, for example by PCA, or pass a ridge, reg."
    )
