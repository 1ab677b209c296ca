"""Design of a permutation test: what is tested, and which rows may be exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from mvcca.inspection._rows import check_flag, orthonormal
from mvcca.inspection.permutation._exchange import Exchange, Flips, exchange_of
from mvcca.inspection.permutation._loading_nulls import LOADINGS
from mvcca.inspection.permutation._nuisance import (
    Centred,
    Complement,
    Strata,
    Theil,
    Weighted,
    lengths_of,
    orthonormal_with_ones,
    residuals_of,
)
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import STATISTICS
from mvcca.problem.ridge import reg_of_names

HELD_OUT = "held-out"
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

    def check(self, n_views: int, *, n_levels: int, confounds: Sequence[bool]) -> None:
        """Refuse values that are unknown, and options that exclude each other."""
        groups = n_levels > 0
        for name in ("within", "sign_flips"):
            check_flag(name, getattr(self, name))
        self._check_names()
        if confounds[1] and n_views > 2:
            raise ValueError(f"confounds_y is for two views, got {n_views}. Pass confounds only.")
        if confounds[1] and (not self.is_stepwise or self.loadings == "own-permuted"):
            what = 'loadings="own-permuted"' if self.is_stepwise else "a test by folds"
            raise ValueError(f"{what} needs the same confounds for both views: omit confounds_y.")
        if self.within and not groups:
            raise ValueError("within=True exchanges rows within groups: pass groups.")
        if self.within and self.sign_flips:
            raise ValueError(
                "within=True exchanges rows within groups, and sign_flips flip whole groups: omit "
                "one of them."
            )
        if self.within and n_levels > 1:
            raise ValueError(
                "within=True exchanges rows within groups, whatever holds these: pass one level of "
                "groups, or omit within to exchange whole groups within the outer ones."
            )
        self._check_projection(groups=groups, confounds=any(confounds))
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

    def _check_projection(self, *, groups: bool, confounds: bool) -> None:
        if self.projection == "auto":
            return
        if not confounds:
            raise ValueError(
                f'projection="{self.projection}" says how confounds are removed: pass confounds.'
            )
        if self.sign_flips or (groups and not self.within):
            raise ValueError(
                f'projection="{self.projection}" mixes rows of different groups, or of unlike '
                "variance. Omit it: whole groups and sign_flips remove confounds differently."
            )
        if self.projection == "huh-jhun" and groups:
            raise ValueError(
                'projection="huh-jhun" rotates the rows, which then belong to no group. Use '
                '"theil" with groups.'
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
    exchanges : list of Exchange or Flips
        Of the rows of each side.
    groups, outer : ndarray of int, shape (n_rows,), or None
        Group of each row of the data, and the outer group that holds it.
    dropped_rows : ndarray of int
        Rows of the data that are left out.
    """

    sides: list[Side]
    exchanges: list[Exchange | Flips]
    groups: np.ndarray | None
    outer: np.ndarray | None
    dropped_rows: np.ndarray
    options: Options

    @classmethod
    def of(
        cls,
        arrays: Mapping[str, np.ndarray],
        confounds: Sequence[np.ndarray | None],
        groups: np.ndarray | None,
        outer: np.ndarray | None,
        options: Options,
    ) -> Design:
        """Remove confounds, and check that enough is left to rearrange."""
        names, n_rows = list(arrays), len(next(iter(arrays.values())))
        moved, bases = _bases(names, n_rows, confounds, options)
        left = {id(Z): _complement_of(Z, n_rows, (groups, outer), options) for Z in bases.values()}
        sides = _sides(arrays, {name: left[id(Z)] for name, Z in bases.items()}, options)
        if options.sign_flips:
            lengths = lengths_of([side.basis for side in sides])
            left = {id(Z): Weighted.of(Z, lengths) for Z in bases.values() if Z is not None}
            sides = _sides(arrays, {name: left[id(Z)] for name, Z in bases.items()}, options)
        _check_ranks(sides, options.ridges(names), n_rows, groups if options.within else outer)
        if len(sides) == 2:
            first = moved if moved is not None else min(sides, key=lambda side: side.rank).name
            sides.sort(key=lambda side: side.name != first)
        exchanges = [
            exchange_of(own.complement, groups, outer, within=options.within) for own in sides
        ]
        for exchange in exchanges:
            exchange.check()
        theirs = [side.complement for side in sides if isinstance(side.complement, Theil)]
        dropped = [np.setdiff1d(np.arange(n_rows), own.kept) for own in theirs]
        lost = np.unique(np.concatenate([[], *dropped])).astype(int)
        return cls(sides, exchanges, groups, outer, lost, options)

    @property
    def n_rows(self) -> int:
        """Number of rows that are rearranged."""
        return len(self.sides[0].complement.kept)

    @property
    def groups_of_rows(self) -> np.ndarray | None:
        """Group of each of the rows of the first side; None if they belong to none."""
        own = self.sides[0].complement
        if self.groups is None or isinstance(own, Strata):
            return None
        return np.unique(self.groups[own.kept], return_inverse=True)[1]

    def without(self, variates: np.ndarray) -> tuple[Complement, Exchange | Flips]:
        """What may be done to rows of the first side that have lost some variates, too."""
        own = self.sides[0].complement
        if isinstance(own, Weighted):
            found: Complement = replace(own, Z=np.hstack([own.Z, variates]))
        else:
            gone = own.lift(variates)
            n_rows = len(gone)
            if not isinstance(own, Centred):
                gone = np.hstack([own.Z, gone])
            elif not self.options.within:  # else, groups have lost their means
                gone = np.hstack([orthonormal_with_ones("", None, n_rows), gone])
            found = _complement_of(gone, n_rows, (self.groups, self.outer), self.options)
        return found, exchange_of(found, self.groups, self.outer, within=self.options.within)


def _sides(
    arrays: Mapping[str, np.ndarray], complements: Mapping[str, Complement], options: Options
) -> list[Side]:
    return [
        Side.of(name, X, complements[name], for_ridge=options.has_ridge)
        for name, X in arrays.items()
    ]


def _bases(
    names: Sequence[str],
    n_rows: int,
    confounds: Sequence[np.ndarray | None],
    options: Options,
) -> tuple[str | None, dict[str, np.ndarray | None]]:
    """The view to rearrange, if confounds decide, and a basis of what each view is to lose."""
    Z, W = confounds
    if Z is None and W is None and not options.sign_flips:
        return None, dict.fromkeys(names)
    own = _basis("confounds", Z, n_rows, options)
    if W is None:
        return None, dict.fromkeys(names, own)
    first, second = names
    other = _basis("confounds_y", W, n_rows, options)
    if Z is None:
        return second, {first: own if options.sign_flips else None, second: other}
    return None, {first: own, second: other}


def _complement_of(
    Z: np.ndarray | None,
    n_rows: int,
    levels: tuple[np.ndarray | None, np.ndarray | None],
    options: Options,
) -> Complement:
    """What is left of rows without a basis of confounds and ones; levels are groups and outer."""
    groups, outer = levels
    if Z is None:
        return Centred(n_rows)
    if options.sign_flips:
        return Weighted(Z, np.ones((n_rows, 1)))
    if groups is not None and not options.within:
        return Strata.of(Z, groups, outer)
    return residuals_of(Z, options.projection, groups)


def _basis(name: str, Z: np.ndarray | None, n_rows: int, options: Options) -> np.ndarray:
    """An orthonormal basis of confounds, and of the mean unless groups have lost theirs."""
    if Z is not None and options.within:
        return orthonormal(name, Z)
    return orthonormal_with_ones(name, Z, n_rows)


def _check_ranks(
    sides: Sequence[Side], reg: Mapping[str, float], n_rows: int, groups: np.ndarray | None
) -> None:
    """Refuse views without a ridge that span all that confounds, and means of `groups`, leave."""
    n_left = []
    for side in sides:
        n_means = int(isinstance(side.complement, Centred))
        if isinstance(side.complement, Weighted):
            n_means = side.complement.Z.shape[1]
        elif groups is not None and not isinstance(side.complement, Strata):
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
