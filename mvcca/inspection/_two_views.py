"""Rows that the tests and intervals of two views take, checked, and their orthonormal bases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from mvcca.blocks.checks import of_view, only_numbers
from mvcca.problem import Whitened
from mvcca.views import Views, as_views, holds_views


def two_paired_views(X: Any, y: Any, who: str) -> Views:
    """Two paired views in memory; `who` begins the error messages."""
    views = paired_views(X, y, who)
    if len(views.names) != 2:
        raise _not_paired(who, "two", views)
    return views


def paired_views(X: Any, y: Any, who: str) -> Views:
    """Two or more paired views in memory; `who` begins the error messages."""
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
    if len(views.names) < 2 or not views.is_paired:
        raise _not_paired(who, "two or more", views)
    return views


def check_no_residuals(who: str, views: Views) -> None:
    """Refuse residuals in place of rows: what was removed from them must be known to count rows."""
    if lost := {name: rank for name, (rank, _) in views.removed.items() if rank}:
        ranks = ", ".join(f"{name!r} (rank {rank:g})" for name, rank in lost.items())
        raise ValueError(
            f"{who} depends on the number of independent rows, but confounds were removed from the "
            f"views {ranks}. Pass the views as they were before Deconfound, and confounds=."
        )


def _not_paired(who: str, how_many: str, views: Views) -> ValueError:
    return ValueError(
        f"{who} takes {how_many} paired views, got {views}, seen as "
        f"{sorted(set(views.pattern.tolist()))}. Select views with views.select, and paired "
        "objects with views[views.seen.all(axis=1)]."
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


def decomposed(name: str, X: Any, *, equilibrate: bool = True) -> Whitened:
    """The centred columns of X, each as long as any other if they are scaled to find directions."""
    try:
        X = only_numbers(X)
    except (ValueError, TypeError) as error:
        raise of_view(name, error) from error
    X = check_array(X, accept_sparse=True, dtype=float, input_name=f"view {name!r}")
    view = Whitened.of_rows(X, equilibrate=equilibrate)
    if not view.rank:
        raise ValueError(f"View {name!r} has no variance: all its rows are equal.")
    return view.unit_lengths() if equilibrate else view


def left_by(name: str, view: Whitened, residuals: Callable[[np.ndarray], np.ndarray]) -> Whitened:
    """A view less its confounds, which `residuals` removes from rows."""
    left = view.after(residuals)
    if not left.rank:
        raise ValueError(
            f"The confounds explain view {name!r} completely. Leave out confounds that are linear "
            "combinations of its columns."
        )
    return left
