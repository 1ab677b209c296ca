"""`mvcca compare`: views and labels in the user's files, made into a case.

Files are read by `mvcca.cli.files` and `mvcca.cli.labels`; what is checked here is that they fit
together, in the words of the command line.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.case import Case, split
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.files import read_array
from mvcca.cli.labels import Labels, read_labels
from mvcca.cli.session import run_cases
from mvcca.views import Views

__all__ = ["run"]


def run(options: Namespace, arguments: list[str]) -> None:
    """Run the command."""
    files = _by_name(options.views, "--view")
    if len(files) < 2:
        raise UsageError("--view must be given at least twice")
    label_files = _label_files(options.labels, list(files))
    blocks = {name: _read_view(name, file) for name, file in files.items()}
    if "" in label_files or not label_files:
        views = _paired(blocks, files)
        labels = _stacked(label_files, {"": len(views)})
    else:
        views = Views.unpaired(blocks)
        heights = {name: block.shape[0] for name, block in blocks.items()}
        labels = _stacked({name: label_files[name] for name in files}, heights)
    run_cases([_case(views, labels, options)], options, arguments, options.n_components)


def _case(views: Views, labels: Labels | None, options: Namespace) -> Case:
    try:
        train, test = split(views, options.test_size, options.seed)
    except ValueError as error:
        raise CommandError(f"--test-size {options.test_size}: {error}") from error
    own = (None, None) if labels is None else (labels[train], labels[test])
    return Case(
        " and ".join(views.names),
        views[train],
        views[test],
        {} if own[0] is None else {"labels": own[0]},
        *own,
    )


def _by_name(pairs: list[tuple[str, str]], option: str) -> dict[str, str]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} names {name!r} twice")
    return dict(pairs)


def _label_files(given: list[str], names: list[str]) -> dict[str, str]:
    """File of the labels of each view, or of all objects under the name ""."""
    pairs = []
    for text in given:
        name, separator, file = text.partition("=")
        pairs.append((name, file) if separator and name in names else ("", text))
    if len(pairs) == 1 and pairs[0][0] == "":
        return dict(pairs)
    if any(not name for name, _ in pairs):
        raise UsageError(
            f"--labels is one FILE, or one NAME=FILE for each of the views {', '.join(names)}; got "
            f"{' '.join(given)}"
        )
    files = _by_name(pairs, "--labels")
    missing = [name for name in names if name not in files]
    if files and missing:
        raise UsageError(f"--labels of the views {', '.join(missing)} are missing")
    return files


def _read_view(name: str, file: str) -> Any:
    """A matrix of finite numbers."""
    block = read_array(file)
    if block.ndim != 2:
        raise CommandError(
            f"{file}: view {name!r} must be a matrix with a row per object, got an array of shape "
            f"{block.shape}"
        )
    values = block.data if issparse(block) else block
    if values.dtype.kind in "US":
        raise CommandError(f"{file}: view {name!r} must hold numbers, got text")
    if not min(block.shape):
        raise CommandError(f"{file}: view {name!r} is empty: its shape is {block.shape}")
    if not np.isfinite(values).all():
        raise CommandError(f"{file}: view {name!r} holds NaN or infinity{_first_place(block)}")
    return block


def _first_place(block: Any) -> str:
    if issparse(block):
        return ""
    row, column = np.argwhere(~np.isfinite(block))[0] + 1
    return f", first in row {row}, column {column}"


def _paired(blocks: dict[str, Any], files: dict[str, str]) -> Views:
    heights = {name: block.shape[0] for name, block in blocks.items()}
    if len(set(heights.values())) > 1:
        found = ", ".join(f"{name} {heights[name]} ({file})" for name, file in files.items())
        raise CommandError(
            f"paired views must have the same number of rows, got {found}. For views that are not "
            "paired give one --labels NAME=FILE for each"
        )
    return Views(blocks)


def _stacked(files: dict[str, str], heights: dict[str, int]) -> Labels | None:
    """Labels of all objects, from one file for them or one per view."""
    if not files:
        return None
    parts = {name: read_labels(file) for name, file in files.items()}
    for name, file in files.items():
        n_labels = len(parts[name]) if isinstance(parts[name], list) else parts[name].shape[0]
        if n_labels != heights[name]:
            whose = f"view {name!r} has" if name else "the views have"
            raise CommandError(
                f"{file}: it holds labels of {n_labels} objects, but {whose} {heights[name]} rows"
            )
    try:
        return Labels.of(*parts.values())
    except ValueError as error:
        raise CommandError(f"{', '.join(files.values())}: {error}") from error
