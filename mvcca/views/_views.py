"""`Views`, the container of several feature matrices, indexed by object.

`Views` implements NumPy's row protocol (`shape`, `len`, `views[rows]`), which scikit-learn's
splitters, searches and pipelines need. This module pairs rows and converts other containers;
values are validated where they are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from mvcca.blocks import Block, as_block, is_mapping, stack
from mvcca.blocks.checks import (
    are_positions,
    check_same_rows,
    column_labels,
    common_row_labels,
    few,
    informative,
    of_vectors,
    of_view,
    reject_annotated,
    reject_masks,
    reject_missing_ids,
    repeated,
    row_labels,
)
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import ShownAsTables, Table
from mvcca.machine.warnings import warn
from mvcca.views._table import table_of
from mvcca.views.shared_ids import agreeing, rows_by_id, unmatched, why_unmatched


class Views(ShownAsTables):
    """Feature matrices of the same objects in several views.

    Parameters
    ----------
    blocks : mapping of str to matrix, or sequence of matrices
        One matrix (NumPy, SciPy sparse or DataFrame) per view, of shape (n_rows, n_features), or a
        sequence of texts, which becomes a single column. A sequence of matrices gets the names
        ``view0``, ``view1``, ... Memory-mapped, HDF5, zarr and Dask arrays, Arrow tables, Hugging
        Face data sets, and the sources that `mvcca.open_matrix` returns, are read in blocks. Torch
        tensors and CuPy arrays stay on their device.
    index : array of int, shape (n_objects, n_views), optional
        ``index[i, v]`` is the row of object i in view v, or -1 if i is not seen in v. By default
        row i of every matrix is object i, and pandas DataFrames with contradicting row labels
        raise an error; `Views.aligned` pairs rows by label.

    Attributes
    ----------
    names : tuple of str
        Names of the views.
    widths : dict of str to int
        Number of features of each view.
    seen : ndarray of bool, shape (n_objects, n_views)
        Whether an object is seen in a view.
    pattern : ndarray of str, shape (n_objects,)
        The views each object is seen in, such as ``"image+text"``: pass it to a stratified
        splitter so that every fold holds every view.
    ids : ndarray or None, shape (n_objects,)
        Row labels of the objects, from the index of pandas DataFrames. The index of labels, weights
        and added views is checked against them.
    shape : tuple of int
        (number of objects, total number of features).
    blocks : dict of str to Block
        The rows of each view as `mvcca.blocks.Block`, which methods compute with.
    is_paired : bool
        Whether every object is seen in every view.
    is_lazy : bool
        Whether some view is not in memory but read on demand.
    is_sparse : bool
        Whether some view has sparse rows.
    on_device : bool
        Whether some view is on a device.
    removed : mapping of str to (float, float)
        Of each view whose rows are residuals of a regression, as from `mvcca.compose.Deconfound`:
        the rank of the confounds, and the number of rows that they were removed from. Some of these
        rows lack a share of so many degrees of freedom. Selections of objects, and other matrices
        in place of the rows, keep it.

    Raises
    ------
    ValueError
        If paired views differ in their number of rows or in their row labels, or `index` does not
        match the blocks.

    Examples
    --------
    >>> import numpy as np
    >>> views = Views({"image": np.zeros((4, 3)), "text": np.ones((4, 2))})
    >>> views
    Views(4 objects, image: 3, text: 2)
    >>> views[:2]["text"].shape
    (2, 2)
    """

    __iter__ = None  # ambiguous: use views.names or views[rows]
    removed: Mapping[str, tuple[float, float]] = MappingProxyType({})

    def __init__(self, blocks: Mapping[str, Any] | Sequence[Any], index: Any = None) -> None:
        named, ids = _named_blocks(blocks), None
        heights = {name: block.shape[0] for name, block in named.items()}
        if index is None:
            if len(set(heights.values())) > 1:
                raise ValueError(_different_heights(named))
            seen = np.ones((next(iter(heights.values())), len(heights)), dtype=bool)
            frames = {f"view {n!r}": X.matrix for n, X in named.items() if X.is_frame}
            ids = common_row_labels(frames) if frames else None
        else:
            index = _checked_index(index, heights)
            seen = index >= 0  # rows are paired by index, not by label
            # Now row k of a block is the k-th object seen in that view.
            named = {
                name: block.take(rows[rows >= 0])
                for (name, block), rows in zip(named.items(), index.T, strict=True)
            }
        self._hold(named, seen, ids)

    def _hold(self, blocks: dict[str, Block], seen: np.ndarray, ids: np.ndarray | None) -> None:
        """Set the attributes, once for all: views never change."""
        self.blocks, self.seen, self.ids = blocks, seen, ids
        self.names, self.widths = tuple(blocks), {}
        self.is_paired = bool(seen.all())
        self.is_lazy = self.is_sparse = self.on_device = False
        for name, block in blocks.items():
            self.widths[name] = block.shape[1]
            self.is_lazy |= block.is_lazy
            self.is_sparse |= block.is_sparse
            self.on_device |= block.on_device
        self.shape = seen.shape[0], sum(self.widths.values())

    @classmethod
    def of(
        cls,
        blocks: Mapping[str, Block],
        seen: np.ndarray,
        ids: np.ndarray | None = None,
        removed: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    ) -> Views:
        """Views of checked blocks, whose row k is the k-th object that is seen in the view.

        Parameters
        ----------
        blocks : dict of str to Block
            The rows of each view.
        seen : ndarray of bool, shape (n_objects, n_views)
            Whether each object is seen in each view.
        ids : ndarray, shape (n_objects,), optional
            Row labels of the objects.
        removed : mapping of str to (float, float), optional
            As the attribute; other views may be named.

        Returns
        -------
        Views
        """
        views = cls.__new__(cls)
        views._hold(dict(blocks), seen, ids)
        if removed:
            views.removed = {name: removed[name] for name in blocks if name in removed}
        return views

    @classmethod
    def unpaired(cls, blocks: Mapping[str, Any] | Sequence[Any]) -> Views:
        """Views without common objects: the rows of the views are stacked."""
        named = _named_blocks(blocks)
        heights = np.array([block.shape[0] for block in named.values()])
        seen = np.repeat(np.eye(len(named), dtype=bool), heights, axis=0)
        return cls.of(named, seen, _stacked_ids([row_labels(b.matrix) for b in named.values()]))

    @classmethod
    def aligned(
        cls,
        blocks: Mapping[str, Any] | Sequence[Any],
        on: str | None = None,
        *,
        match_ids: str = "",
    ) -> Views:
        """Pair the rows of DataFrames by label instead of by position.

        Parameters
        ----------
        blocks : mapping of str to DataFrame, or sequence of DataFrames
            One DataFrame per view, with at most one row per object.
        on : str, optional
            Column that identifies the objects, which is excluded from the features. By default the
            index of pandas DataFrames; polars DataFrames need `on`.
        match_ids : str, optional
            What may differ between two spellings of a label, separated by commas: "types",
            "spaces", "case", "zeros" (at the beginning of a number, or .0 at its end),
            "punctuation", a "beginning" or an "ending" that most labels of a DataFrame have.

        Returns
        -------
        Views
            The objects of all DataFrames, in order of first occurrence. ``views.ids`` are their
            labels: ``y.loc[views.ids]`` brings labels into the same order. An object that is
            missing from a DataFrame is not seen in that view; ``views[views.seen.all(axis=1)]``
            selects the complete objects.

        Raises
        ------
        ValueError
            If a view has no row labels, missing labels or duplicate labels, or if no label is in
            two views; with `match_ids`, if two labels of a view are the same.

        Warns
        -----
        UserWarning
            If rows have labels that no other view has, or if labels would match more by some
            `match_ids`. The message counts them.

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
        named, ids = _named_blocks(blocks), {}
        for name, block in named.items():
            matrix = block.matrix
            labels: Any = row_labels(matrix)
            if on is not None:
                labels, matrix = _without_column(name, matrix, on)
                named[name] = as_block(matrix)
            if labels is None:
                raise ValueError(
                    f"View {name!r} has no row labels to align by: expected a pandas DataFrame "
                    f"with an index without missing labels, got {type(matrix).__name__}. Use on= "
                    "to name a column that identifies the objects."
                )
            ids[repr(name)] = list(labels)
            if twice := repeated(labels):
                raise ValueError(
                    f"View {name!r} has several rows with the label {str(twice[0])!r}; alignment "
                    "needs one row per object and view. Pair rows with Views(blocks, index)."
                )
        ids = agreeing(ids, match_ids.split(",")) if match_ids else ids
        every, index = rows_by_id(ids.values())
        headers = {repr(name): column_labels(block.matrix) for name, block in named.items()}
        _check_matches(ids, len(every), headers)
        return cls(named, index).with_ids(every)

    @classmethod
    def concatenate(cls, parts: Sequence[Views]) -> Views:
        """Concatenate the objects of several `Views` with the same names."""
        names = parts[0].names
        for part in parts:
            if part.names != names:
                raise ValueError(f"Expected views {list(names)}, got {list(part.names)}.")
        blocks = {name: as_block(stack([part.blocks[name] for part in parts])) for name in names}
        seen = np.concatenate([part.seen for part in parts])
        removed: dict[str, tuple[float, float]] = {}
        for name in {name for part in parts for name in part.removed}:
            own = [(*part.removed.get(name, (0, 1)), part.blocks[name].shape[0]) for part in parts]
            lost = sum(rank * height / n_rows for rank, n_rows, height in own)
            removed[name] = lost, sum(height for *_, height in own)
        return cls.of(blocks, seen, _stacked_ids([part.ids for part in parts]), removed)

    def with_ids(self, ids: Sequence[Any] | np.ndarray | None) -> Views:
        """The same objects with other row labels, or without row labels."""
        if ids is not None:
            reject_masks(ids)
            ids = _label_array(ids)
            reject_missing_ids(ids)
            if len(ids) != len(self):
                raise ValueError(f"Expected ids of {len(self)} objects, got {len(ids)}.")
        return Views.of(self.blocks, self.seen, ids, self.removed)

    @property
    def pattern(self) -> np.ndarray:
        """The views that each object is seen in, such as ``"image+text"``."""
        kinds, which = np.unique(self.seen, axis=0, return_inverse=True)
        labels = ["+".join(np.array(self.names)[kind]) for kind in kinds]
        return np.array(labels, dtype=str)[which.reshape(-1)]

    def __len__(self) -> int:
        return self.shape[0]

    def __contains__(self, name: object) -> bool:
        return name in self.blocks

    def __getitem__(self, key: Any) -> Any:
        """The matrix of a view, by name, or the `Views` of some objects, by position."""
        if isinstance(key, str):
            return self.block(key).matrix
        if isinstance(key, tuple):  # scikit-learn indexes rows with (rows, ...)
            if len(key) != 2 or key[1] is not Ellipsis:
                raise TypeError(
                    "Views are indexed by the name of a view or by objects (a slice, a mask or "
                    "positions). Select columns with views[name][:, columns]."
                )
            key = key[0]
        # Slices of NumPy blocks are not copied, and slices of files are read at once.
        rows = key if isinstance(key, slice) else np.arange(len(self))[key].reshape(-1)
        seen = self.seen[rows]
        if self.is_paired:
            blocks = {name: block.take(rows) for name, block in self.blocks.items()}
        else:
            blocks = {
                name: block.take(_as_slice(self._positions[rows, v][seen[:, v]]))
                for v, (name, block) in enumerate(self.blocks.items())
            }
        # The default labels 0, ..., n - 1 depend on the selection.
        ids = None if self.ids is None else informative(self.ids)
        return Views.of(blocks, seen, None if ids is None else ids[rows], self.removed)

    def block(self, name: str) -> Block:
        """The rows of a view as `mvcca.blocks.Block`, which methods compute with.

        Parameters
        ----------
        name : str

        Returns
        -------
        Block

        Raises
        ------
        KeyError
            If there is no such view.
        """
        if name not in self.blocks:
            raise KeyError(f"no view named {name!r}; the views are {list(self.names)}")
        return self.blocks[name]

    def checked_once(self) -> Views:
        """Check dense floats now, so that fits to these views and to selections of them need not.

        Returns
        -------
        Views
            With the same rows. Blocks that hold NaN or infinity are checked by every fit.
        """
        return self.replace({name: block.checked_once() for name, block in self.blocks.items()})

    def in_memory(self) -> Views:
        """The same objects with all views read into memory."""
        if not self.is_lazy:
            return self
        return self.replace({name: block.in_memory() for name, block in self.blocks.items()})

    def promoted(self, dtype: np.dtype) -> Views:
        """The same objects with all views in `dtype` or a higher precision."""
        return self.replace({name: block.promoted(dtype) for name, block in self.blocks.items()})

    @cached_property
    def _positions(self) -> np.ndarray:
        """Row of every object in each view in which it is seen, (n_objects, n_views)."""
        return np.cumsum(self.seen, axis=0) - 1

    def objects(self, name: str) -> np.ndarray:
        """Positions of the objects of the rows of ``views[name]``."""
        self.block(name)
        return np.flatnonzero(self.seen[:, self.names.index(name)])

    def rows_of(self, objects: np.ndarray) -> dict[str, np.ndarray]:
        """Rows in which some objects, in order, are seen, by view."""
        found = {}
        for view, name in enumerate(self.names):
            seen = objects[self.seen[objects, view]]
            found[name] = (np.cumsum(self.seen[:, view]) - 1)[seen]
        return found

    def rows_beside(self, name: str, other: str) -> Block:
        """Rows of a view, one for each row of another view of the same objects."""
        rows = self.rows_of(self.objects(other))[name]
        block = self.block(name)
        return block if len(rows) == block.shape[0] else block.take(rows)

    def ids_of(self, name: str) -> np.ndarray | None:
        """Row labels of ``views[name]``, or None."""
        return None if self.ids is None else self.ids[self.objects(name)]

    def informative_ids_of(self, name: str) -> np.ndarray | None:
        """Row labels of ``views[name]`` that identify rows, or None."""
        known = self.ids is not None and informative(self.ids) is not None
        return self.ids_of(name) if known else None

    def keys(self) -> tuple[str, ...]:
        """Names of the views, as `names`."""
        return self.names

    def items(self) -> Iterator[tuple[str, Any]]:
        """Pairs of the name and the matrix of each view."""
        return ((name, block.matrix) for name, block in self.blocks.items())

    def select(self, names: Sequence[str]) -> Views:
        """The same objects in some of the views."""
        return self.replace({name: self.block(name) for name in names})

    def without(self, name: str | None) -> Views:
        """The same objects in all views but one, if there is a view of this name."""
        if name is None or name not in self:
            return self
        return self.select([other for other in self.names if other != name])

    def replace(self, blocks: Mapping[str, Any]) -> Views:
        """The same objects in the named views, with other matrices of the same heights."""
        named = _named_blocks(dict(blocks))
        for name, block in named.items():
            height = self.block(name).shape[0]
            if block.shape[0] != height:
                raise ValueError(f"View {name!r} has {height} rows, got {block.shape[0]}.")
            if (labels := row_labels(block.matrix)) is not None:
                check_same_rows(f"view {name!r}", labels, "the objects", self.ids_of(name))
        columns = [self.names.index(name) for name in named]
        seen = self.seen if tuple(named) == self.names else self.seen[:, columns]
        return Views.of(named, seen, self.ids, self.removed)

    def add(self, name: str, block: Any) -> Views:
        """Add a view in which all objects are seen."""
        if name in self.names:
            raise ValueError(f"A view named {name!r} exists already; choose another name.")
        added = _named_blocks({name: block})
        if added[name].shape[0] != len(self):
            raise ValueError(
                f"View {name!r} has {added[name].shape[0]} rows for {len(self)} objects; all "
                "objects must be seen in an added view."
            )
        check_same_rows(f"view {name!r}", row_labels(block), "the objects", self.ids)
        seen = np.column_stack([self.seen, np.ones(len(self), dtype=bool)])
        return Views.of(self.blocks | added, seen, self.ids, self.removed)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise TypeError(
            "Views contain several matrices and are not one array. Select one with views[name], or "
            "join them with mvcca.JoinViews."
        )

    def __repr__(self) -> str:
        widths = ", ".join(f"{name}: {width}" for name, width in self.widths.items())
        return in_one_line(f"Views({len(self)} objects, {widths})")

    def tables(self) -> list[Table]:
        """Return the table that notebooks show: a line per view."""
        return [table_of(self.blocks, self.seen, self.pattern)]

    def _ipython_key_completions_(self) -> tuple[str, ...]:
        return self.names


def holds_views(X: Any) -> bool:
    """Whether X is a container of views rather than one matrix."""
    if isinstance(X, Views):
        return True
    reject_annotated(X)
    if is_mapping(X):
        return True
    # A list of matrices is a list of views; a list of rows is one matrix.
    return isinstance(X, list | tuple) and len(X) > 0 and any(_n_dims(item) == 2 for item in X)


def as_views(X: Any, names: Sequence[str] | None = None, *, unpaired: bool = False) -> Views:
    """Convert a container of views to `Views`; `names` are those of the views of a list.

    Raises
    ------
    TypeError
        If X is a single matrix, whose view has no name.
    ValueError
        If there is not one view per name, or as for `Views`.
    """
    if isinstance(X, Views):
        return X
    if not holds_views(X):
        raise TypeError(
            "Expected Views, a mapping or a list of matrices; name the view of a single matrix, "
            f"as in {{'text': X}}. Got {type(X).__name__}."
        )
    if names is not None and isinstance(X, list | tuple):
        if len(X) != len(names):
            raise ValueError(
                f"Expected a list of {len(names)} views {list(names)}, got {len(X)}. To pass only "
                "some of them, use a mapping by name."
            )
        X = dict(zip(names, X, strict=True))
    return Views.unpaired(X) if unpaired else Views(X)


def in_same_container(X: Any, views: Views, blocks: Mapping[str, Any]) -> Any:
    """Matrices by name, in a container of the type of X; `views` is X as `Views`."""
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


def _named_blocks(blocks: Any) -> dict[str, Block]:
    """The blocks of the matrices of a mapping or a list, by the names of their views."""
    if is_mapping(blocks):
        named = dict(blocks)
    elif isinstance(blocks, list | tuple):
        named = {f"view{number}": block for number, block in enumerate(blocks)}
    else:
        reject_annotated(blocks)
        raise TypeError(
            "Expected a mapping of view names to matrices or a list of matrices, got "
            f"{type(blocks).__name__}."
        )
    if not named:
        raise ValueError("Expected at least one view, got none.")
    for name, rows in named.items():
        if not isinstance(name, str):
            raise TypeError(f"Names of views must be strings, got {name!r}.")
        if isinstance(rows, Block):
            continue
        try:
            block = as_block(rows if len(getattr(rows, "shape", ())) == 2 else _as_matrix(rows))
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error
        if len(block.shape) != 2:
            raise ValueError(
                f"Every view must be a 2-D matrix, got shape {tuple(block.shape)} for {name!r}. "
                "Reshape your data: a single feature with x.reshape(-1, 1), a single row with "
                "x.reshape(1, -1)."
            )
        named[name] = block.canonical() if block.is_sparse else block
    return named


def _as_matrix(rows: Any) -> Any:
    """A sequence of texts as a single column, and one of vectors as rows, with the index of pandas.

    What has no shape becomes an array.
    """
    is_sequence = isinstance(rows, list | tuple) or len(getattr(rows, "shape", ())) == 1
    # Arrays of some libraries have no length.
    are_items = is_sequence and isinstance(rows, Collection) and len(rows) > 0
    if are_items and all(isinstance(item, str) for item in rows):
        if hasattr(rows, "to_frame"):
            return rows.to_frame()
        # In an array of strings all would be as long as the longest.
        return (rows if hasattr(rows, "shape") else np.array(rows, dtype=object))[:, None]
    if not hasattr(rows, "shape"):
        return np.asarray(rows)
    vectors = of_vectors(rows) if are_items else None
    if vectors is None:
        return rows
    return rows.to_frame().__class__(vectors, rows.index) if hasattr(rows, "index") else vectors


def _different_heights(blocks: Mapping[str, Any]) -> str:
    """Error message for paired matrices of different heights."""
    found = ", ".join(f"{name}: {block.shape[0]}" for name, block in blocks.items())
    message = f"Paired views must have the same number of rows, got {found}. "
    longest = max(max(block.shape) for block in blocks.values())
    if all(longest in block.shape for block in blocks.values()):
        transposed = [name for name, block in blocks.items() if block.shape[0] != longest]
        return message + f"Objects are rows, but likely columns in {few(transposed)}: transpose."
    return message + "Use Views.unpaired if no object is seen in two views."


def _stacked_ids(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Concatenated row labels; None if some are missing or default, which would repeat."""
    known = [ids for ids in parts if ids is not None]
    if len(known) < len(parts) or any(are_positions(ids) for ids in known):
        return None
    same_type = len({ids.dtype for ids in known}) == 1
    return np.concatenate(known if same_type else [ids.astype(object) for ids in known])


def _label_array(labels: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Labels in a one-dimensional array, even if they are tuples."""
    if hasattr(labels, "dtype"):
        return np.asarray(labels)
    if {type(label) for label in labels} in ({int}, {np.int64}, {np.datetime64}):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def _without_column(name: str, block: Any, column: str) -> tuple[list[Any], Any]:
    """Row labels in a column of a DataFrame, and the DataFrame without that column."""
    if column not in getattr(block, "columns", ()):
        raise ValueError(f"View {name!r} has no column {column!r} that identifies the objects.")
    labels = block[column].to_list()
    if any(label is None or label != label for label in labels):
        raise ValueError(f"View {name!r} has rows without a label in column {column!r}.")
    return labels, block.drop(columns=column) if hasattr(block, "iloc") else block.drop(column)


def _check_matches(
    ids: Mapping[str, list[Any]], n_objects: int, headers: Mapping[str, Any]
) -> None:
    """Refuse labels of which none is in two views, and warn of rows that are left over."""
    known = {name: own for name, own in headers.items() if own is not None}
    if len(ids) > 1 and all(ids.values()) and n_objects == sum(map(len, ids.values())):
        firsts = ", ".join(f"{name} has {few(own[:2])}" for name, own in ids.items())
        cause = why_unmatched(ids, known) or "Use Views.unpaired if no object is in two views."
        raise ValueError(f"No row label is in two views: {firsts}. {cause[0].upper()}{cause[1:]}")
    if message := unmatched(ids, known, share=0):
        warn(message)


def _as_slice(rows: np.ndarray) -> Any:
    """Convert consecutive positions to a slice."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


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
                f"index refers to rows {rows.min()} to {rows.max()} of view {name!r}, which has "
                f"rows 0 to {height - 1}; use -1 for objects not seen in the view."
            )
    return index
