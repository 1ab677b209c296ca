"""Labels of rows: distinct label vectors, and a code per row.

Class vectors, indicator matrices, lists of label sets and real label vectors all have this form,
and are encoded once. Similarities between label vectors are in `mvcca.similarity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mvcca.blocks import read_values, stack
from mvcca.blocks.checks import few, informative, row_labels
from mvcca.views._label_forms import as_vocabulary, by_name, distinct_rows, encoded

__all__ = [
    "Labels",
    "common_columns",
    "distinct_rows",
    "rows_by_code",
]


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of rows, encoded: distinct label vectors, and the code of each row.

    Every function and method that takes labels as ``y`` takes `Labels`, and encodes any other form
    by `Labels.of`. Labels that are used several times are encoded once this way. Rows are selected
    as in ``labels[rows]``, so that the tools of scikit-learn for cross-validation split them;
    ``np.asarray(labels)`` is a class vector, an indicator matrix, or real label vectors.

    Attributes
    ----------
    vectors : csr_array of 0/1 or ndarray of float, shape (n_distinct, n_labels)
        Distinct label vectors: sparse for classes, label sets and indicator matrices.
    vocabulary : ndarray or None, shape (n_labels,)
        Names of the columns, if labels are classes, sets, or a DataFrame with column names.
    codes : ndarray of int, shape (n_rows,)
        For every row, the line of its label vector in `vectors`; by default 0, 1, ...
    ids : ndarray or None, shape (n_rows,)
        Index of the pandas object that the labels were, to refuse rows in another order.
    words : ndarray or None, shape (n_labels, n_dims)
        A word vector of length 1 for each label, to compare labels of different vocabularies.
    names : ndarray, shape (n_labels,)
        Names of the columns; their positions if they have no names.
    n_distinct : int
        Number of distinct label vectors.
    n_labels : int
        Number of columns of the label vectors.
    are_sets : bool
        Whether labels are classes or label sets, which define relevant items.

    Examples
    --------
    >>> from mvcca import Labels
    >>> labels = Labels.of([{"cat", "dog"}, {"dog"}, {"dog", "cat"}])
    >>> labels
    Labels(3 rows, 2 labels, 1.7 per row)
    >>> labels.codes
    array([0, 1, 0])
    >>> labels.texts()
    ['cat, dog', 'dog', 'cat, dog']
    """

    vectors: Any
    vocabulary: np.ndarray | None = None
    codes: np.ndarray = None  # type: ignore[assignment]  # see __post_init__
    ids: np.ndarray | None = None
    words: np.ndarray | None = None
    names: np.ndarray = field(init=False)
    n_distinct: int = field(init=False)
    n_labels: int = field(init=False)
    are_sets: bool = field(init=False)

    __iter__ = None  # over rows or labels?

    def __post_init__(self) -> None:
        facts = vars(self)  # the class is frozen
        facts["n_distinct"], facts["n_labels"] = map(int, self.vectors.shape)
        facts["are_sets"] = bool(self.vectors.dtype.kind != "f")
        facts["names"] = np.arange(self.n_labels) if self.vocabulary is None else self.vocabulary
        if self.codes is None:
            facts["codes"] = np.arange(self.n_distinct)

    @classmethod
    def of(cls, y: Any, names: Sequence[Any] | None = None) -> Labels:
        """Encode labels in any accepted form; return `Labels` unchanged.

        Parameters
        ----------
        y : array-like, sparse matrix, list of label sets, or Labels
            A class vector (n,), an indicator matrix (n, n_labels), real label vectors (n, n_dims),
            or n collections of label names; in memory, on a device, in a file or a Dask array. One
            real number per row is a label vector of length one. Columns of a DataFrame are
            identified by name, those of an array by position.
        names : sequence, optional
            Names of the classes 0, 1, ..., or of the columns.

        Returns
        -------
        Labels

        Raises
        ------
        ValueError
            If labels contain NaN or infinity, are masked, are neither one- nor two-dimensional, are
            lists of numbers that could be label sets or label vectors, or have duplicate column
            names; or if `names` are not a different one for each label.
        """
        labels = y
        if not isinstance(y, Labels):
            y = read_values(y)
            vectors, codes, vocabulary = encoded(y)
            labels = cls(vectors, vocabulary, codes, row_labels(y))
        return labels if names is None else labels._named(names)

    @classmethod
    def concatenate(cls, parts: Sequence[Any]) -> Labels:
        """Stack the rows of several labels, in any form but all of the same kind."""
        first, *rest = map(cls.of, parts)
        for other in rest:
            first = first._followed_by(other)
        return first

    @classmethod
    def in_common(cls, parts: Sequence[Any]) -> list[Labels]:
        """Encode several labels of the same kind over the same distinct label vectors."""
        parts = [cls.of(part) for part in parts]
        if len({(id(part.vectors), id(part.vocabulary)) for part in parts}) == 1:
            return parts
        whole = cls.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        split = zip(parts, np.split(whole.codes, ends), strict=True)
        return [replace(whole, codes=codes, ids=part.ids) for part, codes in split]

    # ---- rows ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of ``np.asarray(labels)``."""
        return (len(self),) if self._names_classes else (len(self), self.n_labels)

    def __getitem__(self, rows: Any) -> Labels:
        """The labels of some rows: a slice, a mask or positions."""
        if isinstance(rows, tuple):  # scikit-learn indexes rows with (rows, ...)
            rows, _ = rows
        ids = informative(self.ids)
        codes = self.codes[rows].reshape(-1)
        return replace(self, codes=codes, ids=None if ids is None else ids[rows])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if self._names_classes:
            return np.asarray(self._classes(), dtype=dtype)
        matrix = self.matrix.toarray() if self.are_sets else self.matrix
        return np.asarray(matrix, dtype=dtype)

    def __repr__(self) -> str:
        return f"Labels({len(self)} rows, {self.describe('row')})"

    def used(self) -> Labels:
        """Leave out label vectors without rows, and named labels that are in none of the others."""
        is_used = np.bincount(self.codes, minlength=self.n_distinct) > 0
        if is_used.all():
            return self
        moved = np.cumsum(is_used) - 1
        used = replace(self, vectors=self.vectors[is_used], codes=moved[self.codes])
        if not self.are_sets or self.vocabulary is None:
            return used
        columns = np.unique(used.vectors.indices)
        words = None if self.words is None else self.words[columns]
        vectors, vocabulary = used.vectors[:, columns], self.vocabulary[columns]
        return replace(used, vectors=vectors, vocabulary=vocabulary, words=words)

    # ---- label vectors ---------------------------------------------------------------------------

    @property
    def distinct(self) -> Labels:
        """The distinct label vectors as labels of one row each."""
        return Labels(self.vectors, self.vocabulary)

    @property
    def matrix(self) -> Any:
        """The label vector of each row, (n_rows, n_labels): a csr_array of 0/1, or an array."""
        return self.vectors[self.codes]

    @property
    def are_classes(self) -> bool:
        """Whether every row has exactly one label."""
        return self.are_sets and bool((self.set_sizes == 1).all())

    @property
    def set_sizes(self) -> np.ndarray:
        """Number of labels of each row."""
        return np.diff(self.vectors.indptr)[self.codes]

    def dense(self) -> np.ndarray:
        """The distinct label vectors as a dense float64 array."""
        return self.vectors.toarray().astype(float) if self.are_sets else self.vectors

    def require_sets(self) -> Labels:
        """Return the labels, unless they are real label vectors, which define no relevant items."""
        if self.are_sets:
            return self
        raise ValueError(
            "Relevance needs classes, label sets or an indicator matrix; got real-valued label "
            "vectors. Threshold them, or pass label sets and the word vectors of the labels: "
            "evaluate_retrieval(..., label_vectors=..., measures='wmap@50')."
        )

    def word_sums(self, vectors: Mapping[Any, ArrayLike] | ArrayLike) -> Labels:
        """Real label vectors: the sum of the word vectors of each row's labels.

        Word vectors make views with different vocabularies comparable ("tabby" in one, "cat" in the
        other): a row's label vector is z = Σ v(label) over its labels [1]_; zero without labels.

        Parameters
        ----------
        vectors : mapping of name to array-like, shape (n_dims,), or matrix (n_labels, n_dims)
            The word vector of every name, such as GloVe vectors, or of every column.

        Returns
        -------
        Labels
            ``np.asarray`` gives the label vectors as an array of shape (n_rows, n_dims).

        Raises
        ------
        KeyError
            If a label has no vector; the message lists all such labels.

        References
        ----------
        .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
           Cross-modal Matching and Retrieval", CVPRW 2022, section 3 and eq. (5).

        Examples
        --------
        >>> import numpy as np
        >>> from mvcca import Labels
        >>> labels = Labels.of([{"cat", "dog"}, {"dog"}])
        >>> np.asarray(labels.word_sums({"cat": [1.0, 0.5], "dog": [0.0, 2.0]}))
        array([[1. , 2.5],
               [0. , 2. ]])
        """
        if isinstance(vectors, Mapping):
            missing = sorted(str(name) for name in self.names if name not in vectors)
            if missing:
                raise KeyError(f"no word vector for the labels {missing}; add them to `vectors`")
            if not vectors:
                raise ValueError(
                    "vectors is empty: expected the word vector of at least one label."
                )
            n_dims = len(np.asarray(next(iter(vectors.values()))))
            rows = [np.asarray(vectors[name], dtype=float) for name in self.names]
            vectors = np.array(rows).reshape(-1, n_dims)
        sums, lines = distinct_rows(np.asarray(self.vectors @ vectors, dtype=float))
        return Labels(sums, None, lines[self.codes], self.ids)

    # ---- names -----------------------------------------------------------------------------------

    def present(self) -> list[Any]:
        """Names of the labels that rows have; positions if labels have no names."""
        is_used = np.bincount(self.codes, minlength=self.n_distinct) > 0
        columns = np.unique(self.vectors[is_used].indices).tolist()
        if self.vocabulary is None:
            return [f"column {column}" for column in columns]
        return list(self.vocabulary[columns])

    def texts(self, between: str = ", ", unnamed: str = "label {}") -> list[str]:
        """Names of each row's labels in one string; `unnamed` is for columns without names."""
        of_lines = [between.join(map(str, names)) for names in self._names_of_lines(unnamed)]
        return [of_lines[code] for code in self.codes]

    def with_text_names(self) -> Labels:
        """The same labels with names that are strings."""
        if self.vocabulary is None:
            return self
        return replace(self, vocabulary=as_vocabulary([str(name) for name in self.vocabulary]))

    def sets(self) -> list[frozenset[Any]]:
        """Names of each row's labels."""
        of_lines = [frozenset(names) for names in self._names_of_lines()]
        return [of_lines[code] for code in self.codes]

    def plain(self) -> Any:
        """A class vector, a list of label sets, an indicator matrix, or real label vectors."""
        if not self.are_sets or self.vocabulary is None:
            return self.matrix
        return self._classes() if self.are_classes else self.sets()

    def describe(self, row: str = "object") -> str:
        """A short description of the labels."""
        if not self.are_sets:
            return f"label vectors of length {self.n_labels}"
        if self.are_classes:
            return f"{self.n_labels} classes"
        return f"{self.n_labels} labels, {self.set_sizes.sum() / len(self):.1f} per {row}"

    @property
    def _names_classes(self) -> bool:
        """Whether rows have one named class each."""
        return self.vocabulary is not None and self.are_classes

    def _classes(self) -> np.ndarray:
        """The only label of each row."""
        assert self.vocabulary is not None
        names = self.vocabulary[self.vectors.indices[self.vectors.indptr[self.codes]]]
        plain = np.asarray(names.tolist())
        is_one_type = len(set(map(type, names))) == 1  # NumPy turns numbers among names to strings
        return plain if is_one_type and plain.ndim == 1 else names

    def _names_of_lines(self, unnamed: str = "{}") -> list[list[Any]]:
        if not self.are_sets:
            return [[]] * self.n_distinct
        names: Any = self.vocabulary
        if names is None:
            names = np.array([unnamed.format(j) for j in range(self.n_labels)], dtype=object)
        flat = names[self.vectors.indices].tolist()
        return [flat[start:end] for start, end in pairwise(self.vectors.indptr.tolist())]

    def _named(self, names: Sequence[Any]) -> Labels:
        """Labels with other names, of classes 0, 1, ... or of columns."""
        own = list(names)
        if self.vocabulary is not None:
            last = max(self.vocabulary)
            if last >= len(names):
                raise ValueError(f"Expected names of classes 0 to {last}, got {len(names)} names.")
            own = [names[number] for number in self.vocabulary]
        if len(own) != self.n_labels or len(set(own)) < len(own):
            raise ValueError(
                f"Expected a different name for each of {self.n_labels} labels, got {few(names)}."
            )
        return replace(self, vocabulary=as_vocabulary(own))

    # ---- several labels --------------------------------------------------------------------------

    def _followed_by(self, other: Labels) -> Labels:
        """The rows of self, then those of others."""
        if self.vectors is other.vectors and self.vocabulary is other.vocabulary:
            return replace(self, codes=np.concatenate([self.codes, other.codes]), ids=None)
        a, b, vocabulary = common_columns(self, other)
        vectors, lines = distinct_rows(stack([a, b]))
        mine, theirs = lines[: self.n_distinct], lines[self.n_distinct :]
        codes = np.concatenate([mine[self.codes], theirs[other.codes]])
        return Labels(vectors, vocabulary, codes)


def common_columns(a: Labels, b: Labels) -> tuple[Any, Any, np.ndarray | None]:
    """The distinct vectors of two labels in the same columns, and the names of the columns."""
    if (a.vocabulary is None) != (b.vocabulary is None):
        named = a.vocabulary if b.vocabulary is None else b.vocabulary
        assert named is not None
        raise ValueError(
            "All labels must be of the same kind: classes or label sets, indicator matrices, or "
            "real label vectors, and all or none with column names. Got labels with names "
            f"({few(named)}) and columns without names."
        )
    both_sets = a.are_sets and b.are_sets
    if a.vocabulary is None or b.vocabulary is None:
        if a.n_labels != b.n_labels:
            raise ValueError(
                f"All label vectors must have the same length, got {a.n_labels} and "
                f"{b.n_labels}. If vocabularies differ between views, pass word vectors "
                "(mvcca.Labels.word_sums)."
            )
    elif not both_sets and not np.array_equal(a.vocabulary, b.vocabulary):
        different = sorted({*a.vocabulary} ^ {*b.vocabulary}, key=by_name)
        raise ValueError(
            "All real label vectors must have the same columns; columns on one side only: "
            f"{few(different)}."
        )
    if not both_sets:
        return a.dense(), b.dense(), a.vocabulary  # real label vectors may consist of 0 and 1
    if a.vocabulary is None or b.vocabulary is None:
        return a.vectors, b.vectors, None
    names = sorted({*a.vocabulary, *b.vocabulary}, key=by_name)
    column = {name: number for number, name in enumerate(names)}
    return _spread(a, column), _spread(b, column), as_vocabulary(names)


def _spread(labels: Labels, column: dict[Any, int]) -> csr_array:
    """The distinct label vectors with each name in its column."""
    assert labels.vocabulary is not None
    move = np.array([column[name] for name in labels.vocabulary], dtype=np.int32)
    old = labels.vectors
    shape = (old.shape[0], len(column))
    moved = csr_array((old.data.copy(), move[old.indices], old.indptr.copy()), shape=shape)
    moved.sort_indices()
    return moved


def rows_by_code(codes: np.ndarray, order: np.ndarray | None = None) -> dict[int, np.ndarray]:
    """Positions of the rows of every code that occurs, as they come or by a given order."""
    rows = np.lexsort((codes,) if order is None else (order, codes))
    present, starts = np.unique(codes[rows], return_index=True)
    return dict(zip(present.tolist(), np.split(rows, starts[1:]), strict=False))
