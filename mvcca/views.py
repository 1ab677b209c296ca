"""The container every estimator takes: feature matrices of several views, indexed by object.

`Views` speaks NumPy's row protocol (`shape`, `len`, `views[rows]`), which is all that the
splitters, searches and pipelines of scikit-learn ask of their input. What lives here is the pairing
of rows and the containers a user may pass instead; whether the numbers are usable is checked where
they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as sparse_vstack

from mvcca._backend import is_device_array, namespace, rows_of, to_host
from mvcca._containers import (
    are_positions,
    check_same_rows,
    common_row_labels,
    few,
    reject_masks,
    row_labels,
)
from mvcca._sparse import canonical
from mvcca.sources import RowSource, as_source

__all__ = ["Views"]


class Views:
    """Feature matrices of the same objects in several views.

    Parameters
    ----------
    blocks : mapping of str to matrix, or sequence of matrices
        One matrix (NumPy, SciPy sparse or DataFrame) per view, of shape (n_rows, n_features).
        A sequence gets the names ``view0``, ``view1``, ... Memory-mapped, HDF5, zarr and Dask
        arrays, and what `mvcca.open_matrix` opens, stay where they are and are read in blocks.
        Torch tensors and CuPy arrays stay on their device and are computed with there.
    index : array of int, shape (n_objects, n_views), optional
        ``index[i, v]`` is the row of object i in view v, or -1 where i is not seen in v. Without
        it row i of every matrix is object i, and pandas DataFrames whose row labels say otherwise
        are refused; `Views.aligned` pairs them by label.

    Attributes
    ----------
    names : tuple of str
        The views, in order.
    widths : dict of str to int
        Number of features of each view.
    seen : ndarray of bool, shape (n_objects, n_views)
        Whether an object is seen in a view.
    pattern : ndarray of str, shape (n_objects,)
        The views each object is seen in, such as ``"image+text"``: pass it to a stratified
        splitter so that every fold holds every view.
    ids : ndarray or None, shape (n_objects,)
        Row labels of the objects, from the index of pandas DataFrames. Labels, weights and further
        views that have an index are checked against them.
    shape : tuple of int
        (number of objects, total number of features).

    Raises
    ------
    ValueError
        If paired views differ in their number of rows or in their row labels, or the index does
        not fit the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views({"image": np.zeros((4, 3)), "text": np.ones((4, 2))})
    >>> views
    Views(4 objects, image: 3, text: 2)
    >>> views[:2]["text"].shape
    (2, 2)
    """

    __iter__ = None  # over objects or over views? ask for views.names or views[rows]

    def __init__(self, blocks: Mapping[str, Any] | Sequence[Any], index: Any = None) -> None:
        self._blocks = _named_blocks(blocks)
        heights = {name: block.shape[0] for name, block in self._blocks.items()}
        if index is None:
            if len(set(heights.values())) > 1:
                raise ValueError(_different_heights(self._blocks))
            self._seen = np.ones((next(iter(heights.values())), len(heights)), dtype=bool)
            self._ids = common_row_labels(
                {f"view {name!r}": block for name, block in self._blocks.items()}
            )
        else:
            index = _checked_index(index, heights)
            self._seen, self._ids = index >= 0, None  # the index pairs rows, whatever their labels
            # From here on row k of a block is the k-th object seen in that view.
            self._blocks = {
                name: take_rows(block, rows[rows >= 0])
                for (name, block), rows in zip(self._blocks.items(), index.T, strict=True)
            }

    @classmethod
    def unpaired(cls, blocks: Mapping[str, Any] | Sequence[Any]) -> Views:
        """Views of which no two show the same object: rows stacked, view after view."""
        named = _named_blocks(blocks)
        heights = np.array([block.shape[0] for block in named.values()])
        seen = np.repeat(np.eye(len(named), dtype=bool), heights, axis=0)
        return cls._of(named, seen, _stacked_ids([row_labels(b) for b in named.values()]))

    @classmethod
    def aligned(cls, blocks: Mapping[str, Any] | Sequence[Any], on: str | None = None) -> Views:
        """Views of DataFrames whose rows are paired by label instead of by position.

        Parameters
        ----------
        blocks : mapping of str to DataFrame, or sequence of DataFrames
            One DataFrame per view, in which every object has at most one row.
        on : str, optional
            Column that identifies the objects; it is left out of the features. By default the
            index of pandas DataFrames. polars DataFrames have no index and need `on`.

        Returns
        -------
        Views
            The objects of all DataFrames, in the order in which their labels first occur, which is
            ``views.ids``: bring labels in that order with ``y.loc[views.ids]``. An object that some
            DataFrame lacks is not seen in that view; ``views[views.seen.all(axis=1)]`` are those
            that none lacks.

        Raises
        ------
        ValueError
            If a view has no row labels, a row without one, or two rows with the same one.

        Examples
        --------
        >>> import pandas as pd
        >>> from mvcca import Views
        >>> image = pd.DataFrame({"red": [0.1, 0.7, 0.4]}, index=["a", "b", "c"])
        >>> text = pd.DataFrame({"length": [7.0, 5.0, 9.0]}, index=["c", "a", "b"])
        >>> views = Views.aligned({"image": image, "text": text})
        >>> list(views["text"]["length"])
        [5.0, 9.0, 7.0]
        """
        named, rows = _named_blocks(blocks), {}
        for name, block in named.items():
            labels: Any = row_labels(block)
            if on is not None:
                labels, named[name] = _without_column(name, block, on)
            if labels is None:
                raise ValueError(
                    f"View {name!r} has no row labels to align by: expected a pandas DataFrame "
                    "whose index identifies the objects and misses none, got "
                    f"{type(block).__name__}. Name a column that identifies them, with on=."
                )
            rows[name] = {label: row for row, label in enumerate(labels)}
            if len(rows[name]) < len(labels):
                twice = next(x for row, x in enumerate(labels) if rows[name][x] != row)
                raise ValueError(
                    f"View {name!r} has several rows with the label {str(twice)!r}; aligning needs "
                    "one row per object and view. Pair rows with Views(blocks, index)."
                )
        ids = list(dict.fromkeys(label for own in rows.values() for label in own))
        index = np.array(
            [[own.get(label, -1) for own in rows.values()] for label in ids], dtype=int
        )
        return cls(named, index.reshape(len(ids), len(rows))).with_ids(ids)

    @classmethod
    def concatenate(cls, parts: Sequence[Views]) -> Views:
        """The objects of several `Views` with the same names, one after the other."""
        names = parts[0].names
        for part in parts:
            if part.names != names:
                raise ValueError(f"Expected views {list(names)}, got {list(part.names)}.")
        blocks = {name: _stack_rows([part[name] for part in parts]) for name in names}
        seen = np.concatenate([part.seen for part in parts])
        return cls._of(blocks, seen, _stacked_ids([part.ids for part in parts]))

    @classmethod
    def _of(cls, blocks: dict[str, Any], seen: np.ndarray, ids: np.ndarray | None = None) -> Views:
        views = cls.__new__(cls)
        views._blocks, views._seen, views._ids = blocks, seen, ids
        return views

    def with_ids(self, ids: Sequence[Any] | np.ndarray | None) -> Views:
        """The same objects with other row labels, one per object, or without any."""
        if ids is not None:
            ids = _label_array(ids)
            if len(ids) != len(self):
                raise ValueError(f"Expected ids of {len(self)} objects, got {len(ids)}.")
        return Views._of(self._blocks, self._seen, ids)

    @property
    def names(self) -> tuple[str, ...]:
        """The views, in order."""
        return tuple(self._blocks)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view."""
        return {name: block.shape[1] for name, block in self._blocks.items()}

    @property
    def seen(self) -> np.ndarray:
        """Whether an object is seen in a view, (n_objects, n_views)."""
        return self._seen

    @property
    def ids(self) -> np.ndarray | None:
        """Row labels of the objects, (n_objects,); None if the views have none."""
        return self._ids

    @property
    def pattern(self) -> np.ndarray:
        """The views each object is seen in, such as ``"image+text"``."""
        kinds, which = np.unique(self._seen, axis=0, return_inverse=True)
        labels = ["+".join(np.array(self.names)[kind]) for kind in kinds]
        return np.array(labels, dtype=str)[which.reshape(-1)]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of objects and total number of features."""
        return len(self), sum(self.widths.values())

    def __len__(self) -> int:
        return self._seen.shape[0]

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    def __getitem__(self, key: Any) -> Any:
        """The matrix of a view by its name, or the `Views` of some objects by their positions."""
        if isinstance(key, str):
            if key not in self._blocks:
                raise KeyError(f"no view named {key!r}; the views are {list(self.names)}")
            return self._blocks[key]
        if isinstance(key, tuple):  # scikit-learn indexes rows with (rows, ...)
            if len(key) != 2 or key[1] is not Ellipsis:
                raise TypeError(
                    "Views are indexed by a view's name or by objects (a slice, a mask or "
                    "positions); take columns with views[name][:, columns]."
                )
            key = key[0]
        # A slice of a NumPy block copies nothing, and one of a file is read in one go.
        rows = key if isinstance(key, slice) else np.arange(len(self))[key].reshape(-1)
        seen = self._seen[rows]
        if self.is_paired:
            blocks = {name: take_rows(block, rows) for name, block in self._blocks.items()}
        else:
            blocks = {
                name: take_rows(block, _as_slice(self._positions[rows, v][seen[:, v]]))
                for v, (name, block) in enumerate(self._blocks.items())
            }
        ids = self._informative_ids
        return Views._of(blocks, seen, None if ids is None else ids[rows])

    @cached_property
    def _informative_ids(self) -> np.ndarray | None:
        """Row labels other than the default 0, ..., n - 1: those are positions, and change."""
        return None if self._ids is None or are_positions(self._ids) else self._ids

    @cached_property
    def is_paired(self) -> bool:
        """Whether every object is seen in every view."""
        return bool(self._seen.all())

    @cached_property
    def _positions(self) -> np.ndarray:
        """The row of every object in each view, where it is seen there, (n_objects, n_views)."""
        return np.cumsum(self._seen, axis=0) - 1

    @property
    def is_lazy(self) -> bool:
        """Whether some view is not in memory but read from where it is when asked for."""
        return any(isinstance(block, RowSource) for block in self._blocks.values())

    def in_memory(self) -> Views:
        """The same objects, all of their rows read."""
        if not self.is_lazy:
            return self
        blocks = {name: in_memory(block) for name, block in self.items()}
        return Views._of(blocks, self._seen, self._ids)

    def objects(self, name: str) -> np.ndarray:
        """Positions of the objects that the rows of ``views[name]`` belong to."""
        self[name]
        return np.flatnonzero(self._seen[:, self.names.index(name)])

    def ids_of(self, name: str) -> np.ndarray | None:
        """Row labels of ``views[name]``; None if the objects have none."""
        return None if self._ids is None else self._ids[self.objects(name)]

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of a view's name and its matrix."""
        return iter(self._blocks.items())

    def select(self, names: Sequence[str]) -> Views:
        """The same objects in some of the views."""
        blocks = {name: self[name] for name in names}
        seen = self._seen[:, [self.names.index(name) for name in names]]
        return Views._of(blocks, seen, self._ids)

    def replace(self, blocks: Mapping[str, Any]) -> Views:
        """The same objects with other matrices: one row for each row of ``views[name]``."""
        for name, block in blocks.items():
            if block.shape[0] != self[name].shape[0]:
                raise ValueError(
                    f"View {name!r} has {self[name].shape[0]} rows, got {block.shape[0]}."
                )
            check_same_rows(f"view {name!r}", row_labels(block), "the objects", self.ids_of(name))
        return Views._of(_named_blocks(dict(blocks)), self.select(list(blocks)).seen, self._ids)

    def add(self, name: str, block: Any) -> Views:
        """The same objects with one more view, in which all of them are seen."""
        if name in self:
            raise ValueError(f"There is a view named {name!r} already; choose another name.")
        added = _named_blocks({name: block})
        if added[name].shape[0] != len(self):
            raise ValueError(
                f"View {name!r} has {added[name].shape[0]} rows for {len(self)} objects; an added "
                "view shows every object."
            )
        check_same_rows(f"view {name!r}", row_labels(block), "the objects", self._ids)
        seen = np.column_stack([self._seen, np.ones(len(self), dtype=bool)])
        return Views._of(self._blocks | added, seen, self._ids)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            "Views hold several matrices and are not one array. Take one with views[name], or "
            "join them with mvcca.JoinViews."
        )

    def __repr__(self) -> str:
        widths = ", ".join(f"{name}: {width}" for name, width in self.widths.items())
        return f"Views({len(self)} objects, {widths})"


def in_memory(block: Any) -> Any:
    """A matrix with all of its rows read."""
    return canonical(block.read(0, block.shape[0])) if isinstance(block, RowSource) else block


def take_rows(block: Any, rows: Any) -> Any:
    """Rows of a matrix of any kind that a view may be, by a slice or an array of positions."""
    if is_device_array(block):
        return rows_of(block, rows)
    return block.iloc[rows] if hasattr(block, "iloc") else block[rows]


def holds_views(X: Any) -> bool:
    """Whether X is a container of views rather than one matrix."""
    if isinstance(X, Views):
        return True
    if issparse(X):  # a dok_array is a dict
        return False
    if isinstance(X, Mapping):
        return True
    # A list of rows is one matrix; a list of matrices is a list of views.
    return isinstance(X, list | tuple) and len(X) > 0 and any(_n_dims(item) == 2 for item in X)


def as_views(X: Any, names: Sequence[str] | None = None, *, unpaired: bool = False) -> Views:
    """`Views` of any container of views; those of a list are `names`, in order, where given."""
    if isinstance(X, Views):
        return X
    if names is not None and isinstance(X, list | tuple):
        if len(X) != len(names):
            raise ValueError(
                f"Expected a list of {len(names)} views {list(names)}, got {len(X)}. Pass a "
                "mapping by name to give only some of them."
            )
        X = dict(zip(names, X, strict=True))
    return Views.unpaired(X) if unpaired else Views(X)


def in_same_container(X: Any, views: Views, blocks: Mapping[str, Any]) -> Any:
    """Matrices by name in the container that X, which was opened as `views`, came in."""
    if isinstance(X, Views):
        return views.replace(blocks)
    if isinstance(X, Mapping):
        return dict(blocks)
    return tuple(blocks.values()) if isinstance(X, tuple) else list(blocks.values())


def _n_dims(item: Any) -> int:
    if hasattr(item, "shape"):
        return len(item.shape)
    if isinstance(item, list | tuple):
        return 1 + (_n_dims(item[0]) if len(item) else 0)
    return 0


def _named_blocks(blocks: Any) -> dict[str, Any]:
    if isinstance(blocks, Mapping) and not issparse(blocks):
        named = dict(blocks)
    elif isinstance(blocks, list | tuple):
        named = {f"view{number}": block for number, block in enumerate(blocks)}
    else:
        raise TypeError(
            "Expected a mapping of view names to matrices or a list of matrices, got "
            f"{type(blocks).__name__}."
        )
    if not named:
        raise ValueError("Expected at least one view, got none.")
    for name in named:
        if not isinstance(name, str):
            raise TypeError(f"Names of views must be strings, got {name!r}.")
    return {name: _as_block(name, block) for name, block in named.items()}


def _as_block(name: str, block: Any) -> Any:
    try:
        reject_masks(block)
    except ValueError as error:
        raise ValueError(f"View {name!r}: {error}") from error
    if not hasattr(block, "shape"):
        block = np.asarray(block)
    elif (source := as_source(block)) is not None:
        return source
    if len(block.shape) != 2:
        raise ValueError(
            f"Every view must be a 2-D matrix, got shape {tuple(block.shape)} for {name!r}. "
            "Reshape your data: a single feature with x.reshape(-1, 1), a single row with "
            "x.reshape(1, -1)."
        )
    return canonical(block)


def _different_heights(blocks: Mapping[str, Any]) -> str:
    """Why matrices cannot be paired, and what to do."""
    found = ", ".join(f"{name}: {block.shape[0]}" for name, block in blocks.items())
    message = f"Paired views must have the same number of rows, got {found}. "
    longest = max(max(block.shape) for block in blocks.values())
    if all(longest in block.shape for block in blocks.values()):
        turned = [name for name, block in blocks.items() if block.shape[0] != longest]
        return message + f"Rows are objects, so transpose {few(turned)}: they are columns there."
    return message + "Use Views.unpaired if no object is seen in two views."


def _stacked_ids(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Row labels one after the other; default ones would repeat, and say nothing."""
    known = [ids for ids in parts if ids is not None]
    if len(known) < len(parts) or any(are_positions(ids) for ids in known):
        return None
    same_type = len({ids.dtype for ids in known}) == 1
    return np.concatenate(known if same_type else [ids.astype(object) for ids in known])


def _label_array(labels: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Labels in an array of one dimension, even if they are tuples."""
    if hasattr(labels, "dtype"):
        return np.asarray(labels)
    if {type(label) for label in labels} in ({int}, {np.int64}, {np.datetime64}):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _without_column(name: str, block: Any, column: str) -> tuple[list[Any], Any]:
    """Labels of rows in a column of a DataFrame, and the rest of it."""
    if column not in getattr(block, "columns", ()):
        raise ValueError(f"View {name!r} has no column {column!r} that identifies the objects.")
    labels = block[column].to_list()
    if any(label is None or label != label for label in labels):
        raise ValueError(f"View {name!r} has rows without a label in column {column!r}.")
    return labels, block.drop(columns=column) if hasattr(block, "iloc") else block.drop(column)


def _as_slice(rows: np.ndarray) -> Any:
    """Rows that follow each other as a slice, others as they are."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _stack_rows(blocks: list[Any]) -> Any:
    if all(is_device_array(block) for block in blocks):
        return namespace(blocks[0]).concat(blocks, axis=0)
    blocks = [to_host(in_memory(block)) for block in blocks]
    if any(issparse(block) for block in blocks):
        return csr_array(sparse_vstack(blocks, format="csr"))
    return np.concatenate([np.asarray(block) for block in blocks])


def _checked_index(index: Any, heights: dict[str, int]) -> np.ndarray:
    reject_masks(index)
    index = np.asarray(index)
    if index.ndim != 2 or index.shape[1] != len(heights) or index.dtype.kind not in "iu":
        raise ValueError(
            f"index must be an integer array of shape (n_objects, {len(heights)}), one column per "
            f"view, got {index.dtype} of shape {index.shape}."
        )
    index = index.astype(np.intp)
    for (name, height), rows in zip(heights.items(), index.T, strict=True):
        if rows.size and (rows.max() >= height or rows.min() < -1):
            raise ValueError(
                f"index names rows {rows.min()} to {rows.max()} of view {name!r}, which has rows "
                f"0 to {height - 1}; -1 stands for an object not seen in the view."
            )
    return index
