"""Rows that tests and intervals take: views, confounds and groups, checked, counted and decomposed.

Every function that counts independent rows reads them here, so that residuals of `Deconfound` are
told from rows, and confounds are encoded and decomposed, in one place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import (
    check_numbers,
    check_same_rows,
    column_labels,
    few,
    row_labels,
)
from mvcca.machine.printable import in_one_line
from mvcca.machine.warnings import warn
from mvcca.model_selection.groups import Groups
from mvcca.problem import Rows, Whitened
from mvcca.problem.confounds import least_left
from mvcca.problem.units import units_of_rows
from mvcca.views import Views, as_views, holds_views
from mvcca.views.coding import coded, coding_in_words, coding_of
from mvcca.views.validation import checked_sample_weight, repeated_objects

_UNLIKE = 1.1  # times the sum of products of leverages of normal rows, which inflates tests
_ERRORS = 2.33  # standard errors of a correlation, which chance exceeds in 1 % of data sets


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows as arrays; those with a frequency above 1 are repeated.

    Attributes
    ----------
    views : Views
        The views as the user gave them.
    arrays : dict of str to ndarray, shape (n_rows, n_features)
    confounds : tuple of ndarray, shape (n_rows, n_confounds), or None
        Of all views, and of the second one only.
    groups : ndarray of int, shape (n_rows,), or None
    outer : ndarray of int, shape (n_rows,), or None
        The outer group of each row, which holds whole groups; None if there is one level.
    positions : ndarray of int, shape (n_rows,)
        Place of each row in the user's data.
    coding : tuple of str
        How each confound was encoded.
    """

    views: Views
    arrays: dict[str, np.ndarray]
    confounds: tuple[np.ndarray | None, np.ndarray | None]
    groups: np.ndarray | None
    outer: np.ndarray | None
    positions: np.ndarray
    coding: tuple[str, ...]

    @classmethod
    def of(
        cls,
        who: str,
        X: Any,
        y: Any,
        confounds: Any,
        *,
        confounds_y: Any = None,
        groups: Any = None,
        outer: Any = None,
        sample_weight: Any = None,
        only_two: bool = False,
    ) -> GivenRows:
        """Check rows, and find the view that holds confounds; `who` begins the error messages."""
        given = {"confounds": confounds, "confounds_y": confounds_y}
        X, given = taken_out(X, given)
        views = paired_views(X, y, who, only_two=only_two)
        if confounds is None and confounds_y is None:
            check_no_residuals(who, views)
        positions = positions_of(sample_weight, views)
        arrays = {name: numbers_of(f"View {name!r}", block) for name, block in views.items()}
        (Z, coding), (Z_y, coding_y) = (_paired_numbers(*one, views) for one in given.items())
        if coding_y:
            coding = tuple(f"{one} (first view)" for one in coding)
            coding += tuple(f"{one} (second view)" for one in coding_y)
        codes, outer = (
            None if own is None else Groups.given_by(own, views, views.ids).codes
            for own in (groups, outer)
        )
        if codes is not None and outer is not None:
            _check_nested(codes, outer, groups)
        codes, outer = _numbered(codes, positions), _numbered(outer, positions)
        if codes is not None and outer is not None and not outer.any():
            outer = None  # of one outer group, nothing is left to say
        return cls(
            views,
            {name: array[positions] for name, array in arrays.items()},
            (_at(Z, positions), _at(Z_y, positions)),
            codes,
            outer,
            positions,
            coding,
        )

    def warn_of_columns(self) -> None:
        """Warn of columns that are constant, or that repeat another one."""
        for name, array in self.arrays.items():
            _warn_of_columns(name, array, column_labels(self.views[name]))

    def in_units(self) -> GivenRows:
        """Rows whose views in unlike units are standardized, as `CCA` with a ridge does unasked."""
        Z, Z_y = self.confounds
        arrays = dict(self.arrays)
        for place, (name, X) in enumerate(self.arrays.items()):
            own = Z_y if place and Z_y is not None else Z
            views = {name: X} if own is None else {name: X, "": own}
            found = units_of_rows(
                Rows(Views(views)), {name: "auto"}, confounds=None if own is None else ""
            )
            if name in found:
                arrays[name] = X * found[name].factors
        return replace(self, arrays=arrays)

    def with_variables(self, variables: Mapping[str, Any]) -> GivenRows:
        """The same rows of other variables, by view name."""
        if {*variables} != {*self.arrays}:
            raise ValueError(f"Expected variables of {[*self.arrays]}, got {[*variables]}.")
        arrays = {}
        for name in self.arrays:
            V = numbers_of(f"Variables of {name!r}", variables[name])
            if len(V) != len(self.views):
                raise ValueError(
                    f"Expected {len(self.views)} rows of the variables of {name!r}, got {len(V)}."
                )
            arrays[name] = V[self.positions]
        return replace(self, arrays=arrays)

    def within_groups(self, innermost: bool) -> GivenRows:
        """Rows less the mean of their group, or of their outer group."""
        codes = self.groups if innermost else self.outer
        assert codes is not None
        counts = np.bincount(codes)

        def centred(X: np.ndarray) -> np.ndarray:
            sums = sums_of_groups(X, codes)
            found = X - (sums / np.maximum(counts, 1)[:, None])[codes]
            return np.where(found.std(axis=0) > least_left(X.std(axis=0), X.mean(axis=0)), found, 0)

        of_rows = (None if Z is None else centred(Z) for Z in self.confounds)
        # Confounds that do not vary within groups are removed with the means.
        first, second = (None if Z is None or not Z.any() else Z for Z in of_rows)
        arrays = {name: centred(X) for name, X in self.arrays.items()}
        return replace(self, arrays=arrays, confounds=(first, second))

    def with_confounds_of_outer(self) -> GivenRows:
        """Rows with the outer groups among their confounds."""
        codes, (first, second) = self.outer, self.confounds
        assert codes is not None
        indicators = np.eye(codes.max() + 1)[codes, 1:]
        parts = [[] if Z is None else [Z] for Z in (first, second)]
        first, other = (np.hstack([indicators, *own]) for own in parts)
        return replace(self, confounds=(first, None if second is None else other))


def levels_of(groups: Any) -> tuple[Any, Any]:
    """Outer and inner groups of two columns, or None and the only level."""
    if np.ndim(groups) != 2 or np.shape(groups)[1] != 2:
        return None, groups
    columns = groups.iloc if hasattr(groups, "iloc") else np.asarray(groups)
    return columns[:, 0], columns[:, 1]


def check_flag(name: str, value: Any) -> None:
    """Refuse values of rows, such as those of `groups`, for True or False."""
    if not isinstance(value, Integral | np.bool_):
        raise TypeError(
            f"{name} must be True or False, got {type(value).__name__}. Values of rows are groups: "
            f"pass groups=... and {name}=True."
        )


def _check_nested(inner: np.ndarray, outer: np.ndarray, names: Any) -> None:
    """Refuse groups of which rows are in several outer groups."""
    first = outer[np.unique(inner, return_index=True)[1]]
    if (split := first[inner] != outer).any():
        name = np.asarray(names)[split.argmax()]
        raise ValueError(
            f"Group {str(name)!r} is in two outer groups. Each group must lie in one: if names "
            "start again in each outer group, join both, such as site and family in 'A/1'."
        )


def _numbered(groups: np.ndarray | None, positions: np.ndarray) -> np.ndarray | None:
    """Groups of the rows at these positions, from 0; others have no rows, if these weigh 0."""
    return None if groups is None else np.unique(groups[positions], return_inverse=True)[1]


def _at(values: np.ndarray | None, positions: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[positions]


def paired_views(X: Any, y: Any, who: str, *, only_two: bool = False) -> Views:
    """Two or more paired views in memory, or `only_two`; `who` begins the error messages."""
    if hasattr(X, "fit"):
        raise TypeError(
            f"{who} takes rows, not a model: pass X and Y, or Views. Got {type(X).__name__} as the "
            "first view."
        )
    if y is None and not holds_views(X):
        raise ValueError(
            f"{who} takes two paired views, got one matrix. Pass the second matrix as y, or both "
            "as Views."
        )
    views = views_of(X, y)
    n_views = len(views.names)
    if n_views < 2 or (only_two and n_views > 2) or not views.is_paired:
        raise ValueError(
            f"{who} takes two {'' if only_two else 'or more '}paired views, got {views}, seen as "
            f"{sorted(set(views.pattern.tolist()))}. Select views with views.select, and paired "
            "objects with views[views.seen.all(axis=1)]."
        )
    return views


def check_no_residuals(who: str, views: Views) -> None:
    """Refuse residuals in place of rows: what was removed from them must be known to count rows."""
    if lost := {name: rank for name, (rank, _) in views.removed.items() if rank}:
        ranks = ", ".join(f"{name!r} (rank {rank:g})" for name, rank in lost.items())
        raise ValueError(
            f"{who} depends on the number of independent rows, but confounds were removed from the "
            f"views {ranks}. Pass the views as they were before Deconfound, and confounds=."
        )


def views_of(X: Any, y: Any, names: tuple[str, ...] | None = None) -> Views:
    """Convert rows to in-memory Views; `names` are those of the views of a list."""
    if not holds_views(X):
        return Views({"X": X} if y is None else {"X": X, "y": as_matrix(y)}).in_memory()
    if y is not None:
        raise ValueError("X is a container of views, so y, the second matrix, must be omitted.")
    return as_views(X, names).in_memory()


def as_matrix(y: Any) -> Any:
    """A matrix, or a vector as a single column, with its row labels."""
    if np.ndim(y) != 1:
        return y
    return y.to_frame() if hasattr(y, "to_frame") else np.reshape(y, (-1, 1))


def taken_out(X: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Views without those that hold confounds, and the confounds."""
    names = [Z for Z in given.values() if isinstance(Z, str)]
    if not names:
        return X, dict(given)
    views = as_views(X) if holds_views(X) else None
    for parameter, Z in given.items():
        if isinstance(Z, str) and (views is None or Z not in views.names):
            known = "one matrix" if views is None else f"the views {list(views.names)}"
            raise ValueError(f"{parameter}={Z!r} names no view of X, which is {known}.")
    assert views is not None
    found = {name: views[Z] if isinstance(Z, str) else Z for name, Z in given.items()}
    return views.select([name for name in views.names if name not in names]), found


def positions_of(sample_weight: Any, views: Views) -> np.ndarray:
    """Places of the rows in the user's data, each as often as its row occurs."""
    if sample_weight is None:
        return np.arange(len(views))
    weights = checked_sample_weight(sample_weight, views, reset=False)
    return repeated_objects(weights, "tests and intervals depend on the number of rows")


def numbers_of(what: str, block: Any, **options: Any) -> np.ndarray:
    """A dense matrix of floats; errors begin with what it is."""
    try:
        checked = check_numbers(block, None, dtype=float, **options)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    return np.asarray(as_block(checked).dense().matrix)


def _paired_numbers(
    name: str, Z: Any, views: Views
) -> tuple[np.ndarray, tuple[str, ...]] | tuple[None, tuple[()]]:
    """Confounds with a row per object, their categories as indicators, and how these are coded."""
    if Z is None:
        return None, ()
    check_same_rows(name, row_labels(Z), "the views", views.ids)
    levels = coding_of(Z, name=name)
    found = numbers_of(name, as_matrix(coded(Z, levels, name=name)))
    if len(found) != len(views):
        raise ValueError(f"Expected {name} of {len(views)} objects, got {len(found)} rows.")
    return found, coding_in_words(Z, levels)


def _warn_of_columns(name: str, X: np.ndarray, labels: Any) -> None:
    """Warn of columns that are constant, or that repeat another one."""
    columns = np.ascontiguousarray(X.T)
    names = labels or range(len(columns))
    constant = (columns == columns[:, :1]).all(axis=1)
    counts = Counter(column.tobytes() for column in columns[~constant])
    repeated = [counts[column.tobytes()] > 1 for column in columns]
    for what, which in (("constant", constant), ("repeated", repeated)):
        if any(which):
            named = few(name for name, own in zip(names, which, strict=True) if own)
            named = named if labels else named.replace("'", "")  # positions
            warn(
                f"View {name!r} has {what} columns: {named}. They do not change the test, but are "
                "worth a look. Drop them to avoid this warning."
            )


# ---- bases ---------------------------------------------------------------------------------------


def decomposed(
    name: str,
    X: np.ndarray,
    less: Callable[[np.ndarray], np.ndarray] | None = None,
    *,
    equilibrate: bool = True,
) -> Whitened:
    """The centred columns of X, less the confounds that `less` removes from rows.

    To find directions, columns are scaled to equal lengths if `equilibrate`; all are then of length
    1.
    """
    view = Whitened.of_rows(X, equilibrate=equilibrate)
    if not view.rank:
        raise ValueError(f"View {name!r} has no variance: all its rows are equal.")
    view = view.unit_lengths() if equilibrate else view
    if less is None:
        return view
    left = view.after(less)
    if not left.rank:
        raise ValueError(
            f"The confounds explain view {name!r} completely. Leave out confounds that are linear "
            "combinations of its columns."
        )
    return left


def orthonormal(name: str, Z: np.ndarray) -> np.ndarray:
    """An orthonormal basis of centred confounds, (n_rows, rank)."""
    n_rows = len(Z)
    basis = np.asarray(Whitened.of_rows(Z).basis)
    if not basis.shape[1]:
        raise ValueError(f"{name} do not vary: all their rows are equal. Omit them.")
    if basis.shape[1] + 2 >= n_rows:
        raise ValueError(
            f"{basis.shape[1]} independent {name} leave nothing of {n_rows} objects to compare. "
            "Reduce the confounds, for example to principal components."
        )
    return basis


def sums_of_groups(X: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Sums of the rows of each group, numbered from 0."""
    sums = np.zeros((groups.max() + 1, X.shape[1]))
    np.add.at(sums, groups, X)
    return sums


def common_scale(U: np.ndarray, V: np.ndarray, explained: float | None = None) -> float:
    """How much the products of leverages of two views exceed those of normal rows; 1 by chance.

    The mean of h k over rows, of leverages h and k, is the product of their means if rows have no
    common scale, but for 2 Σ r² where views are correlated. Rows have one if their lengths √h and
    √k correlate by more than chance and by more than the correlation of views explains: by default
    that of independent rows.
    """
    h, k, n = (U**2).sum(axis=1), (V**2).sum(axis=1), len(U)
    shared = ((U.T @ V) ** 2).sum()
    excess = n * (h @ k) / (h.sum() * k.sum() + 2 * shared)
    if excess <= _UNLIKE:
        return 1.0
    explained = explained_by(shared - h @ k, U, V) if explained is None else explained
    r = np.corrcoef(np.sqrt(h), np.sqrt(k))[0, 1]
    return float(excess) if (r - explained) * np.sqrt(n) > _ERRORS else 1.0


def explained_by(shared: float, U: np.ndarray, V: np.ndarray) -> float:
    """Correlation of the lengths of normal rows whose views have Σ r² = `shared` beyond chance."""
    own = (((W.T @ W) ** 2).sum() - ((W**2).sum(axis=1) ** 2).sum() for W in (U, V))
    return max(shared, 0) / float(np.sqrt(np.prod([*own])))


def effective_share(U: np.ndarray, V: np.ndarray, groups: np.ndarray | None) -> float:
    """Share of the degrees of freedom that rows are worth, given orthonormal bases of two views.

    Permutations of whole groups give ‖UᵀV‖² a mean that is larger by the inverse.
    """
    factor, (p, q), n = common_scale(U, V), (U.shape[1], V.shape[1]), len(U)
    if groups is not None:
        counts = np.bincount(groups)
        if n_pairs := float((counts * (counts - 1.0)).sum()):
            products = (
                (sums_of_groups(basis, groups) ** 2).sum() - (basis**2).sum() for basis in (U, V)
            )
            factor += max(float(np.prod(list(products))) / n_pairs, 0) * n / (p * q)
    return 1 / factor


def residuals(X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Rows less their regression on an orthonormal basis of confounds."""
    return X - Z @ (Z.T @ X)


def of_confounds(coding: Sequence[str]) -> list[str]:
    """The note that says how confounds were encoded; none without confounds."""
    return [in_one_line(f"Confounds: {'; '.join(coding)}.")] if coding else []
