"""Read labels of objects from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.arrays import FORMATS, read_array
from mvcca.cli.errors import CommandError
from mvcca.labels import encode_labels


def read_labels(name: str, n_rows: int | None = None) -> Any:
    """Read labels, in a form that `Labels.of` accepts, from a file.

    A ``.txt`` file has one label set per line, separated by commas; an empty line is an object
    without labels. Other formats contain one class per row, an indicator matrix or real label
    vectors. `n_rows` is the expected number of objects; see `read_array`.
    """
    if name.lower().endswith(".txt"):
        return _read_label_sets(Path(name))
    array = read_array(name, f".txt, {FORMATS}", n_rows)
    array = array if issparse(array) else np.asarray(array)
    if array.ndim == 2 and array.dtype.kind in "US":
        if array.shape[1] > 1:
            raise CommandError(
                f"{name}: expected one column of class names, got {array.shape[1]}; save label "
                "sets in a .txt file, one set per line"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2) or not array.shape[0]:
        raise CommandError(
            f"{name}: expected a class per row or a matrix with one row per object, got an array "
            f"of shape {array.shape}"
        )
    try:
        encode_labels(array)
    except ValueError as error:
        raise CommandError(f"{name}: {error}") from error
    return array


def read_label_vectors(name: str) -> Any:
    """Read word vectors of labels: a mapping by name from a text file, or a matrix.

    A ``.txt`` or ``.vec`` file has a label and its numbers on each line, separated by spaces, as
    word2vec and GloVe write them; labels may contain spaces, and a first line of two integers is
    skipped. Other formats contain one row per label.
    """
    if not name.lower().endswith((".txt", ".vec")):
        return read_array(name, f".txt, .vec, {FORMATS}")
    try:
        lines = [line.split() for line in Path(name).read_text(encoding="utf-8-sig").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name}: cannot be read: {error}") from error
    lines = [line for line in lines if line]
    if lines and len(lines[0]) == 2 and all(word.isdecimal() for word in lines[0]):
        lines = lines[1:]
    n_dims = min(map(_n_numbers_at_end, lines), default=0)
    if n_dims < 1:
        raise CommandError(f"{name}: expected a label and its numbers on each line")
    return {" ".join(line[:-n_dims]): np.array(line[-n_dims:], dtype=float) for line in lines}


def _n_numbers_at_end(line: list[str]) -> int:
    """Number of words at the end of a line that are numbers; the first word is a label."""
    for n_numbers, word in enumerate(reversed(line[1:])):
        try:
            float(word)
        except ValueError:
            return n_numbers
    return len(line) - 1


def _read_label_sets(path: Path) -> list[frozenset[str]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: cannot be read: {error}") from error
    sets = [frozenset(filter(None, map(str.strip, line.split(",")))) for line in lines]
    if not any(sets):
        raise CommandError(f"{path}: expected one label set per line, found no label")
    return sets
