"""Files named on the command line: views with labels, models, and outputs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import repeated
from mvcca.blocks.sources import path_and_key, read_cells
from mvcca.cli.console import note
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.model_files import model_file
from mvcca.cli.reading import ids_in_words, reading_of, readings_of, telling
from mvcca.machine.archive import kind_of
from mvcca.machine.config import config_context
from mvcca.machine.progress import passing_bars
from mvcca.machine.warnings import warn
from mvcca.machine.written_files import check_writable
from mvcca.views import Labels, Views
from mvcca.views.files import read_ids, read_views, values_of_ids
from mvcca.views.shared_ids import left_in_words, matches_in_words

ROWS_IN = (".npy", ".npz", ".parquet", ".arrow", ".csv")  # in which commands write rows


def by_name(pairs: list[tuple[str, str]], option: str) -> dict[str, str]:
    """The values of an option by name, each name once."""
    if twice := repeated(name for name, _ in pairs):
        raise UsageError(f"{option} names {twice[0]!r} twice")
    return dict(pairs)


def files_of_views(options: Namespace) -> dict[str, str]:
    """The file of each view, of at least two."""
    files = by_name(options.views, "--view")
    if len(files) < 2:
        raise UsageError("--view must be given at least twice")
    return files


def files_of_labels(options: Namespace) -> str | dict[str, str] | None:
    """The file of the labels, or one for each view."""
    return _one_or_by_view(options.labels, "--labels", options)


def read_groups(options: Namespace, views: Views) -> Any:
    """The group of each object, or of the rows of each view, in any file of ids; or None."""
    files = _one_or_by_view(options.groups, "--groups", options)
    if files is None:
        return None
    if isinstance(files, str):
        return groups_in(files, options, len(views), views.ids)
    if options.id is not None:
        raise UsageError("--id pairs the rows of views; --groups is one FILE then")
    return {
        name: groups_in(file, options, len(views.objects(name))) for name, file in files.items()
    }


def groups_in(file: str, options: Namespace, n_rows: int, ids: Any = None) -> np.ndarray:
    """The group of each row, by ids from a table of both, else in order."""
    reading = reading_of(options, "groups")
    in_order = replace(reading, id=None)
    with telling(options) as say:
        if reading.id is None or ids is None or read_cells(file, in_order).matrix.shape[1] == 1:
            return read_ids(file, in_order, n_rows=n_rows, say=say)
        cells = values_of_ids(file, reading, np.asarray(ids).tolist(), "group")
        say(cells.took)
    if (width := cells.matrix.shape[1]) > 1:
        raise CommandError(
            f"{file}: expected one column of groups beside {reading.id!r}, got {width}"
        )
    return np.asarray(cells.matrix)[:, 0]


def _one_or_by_view(
    values: list[str], flag: str, options: Namespace
) -> str | dict[str, str] | None:
    """The file of an option, or one for each view."""
    names = [name for name, _ in options.views]
    pairs = [text.partition("=") for text in values]
    named = [(name, file) for name, _, file in pairs if name in names and file]
    if not named and len(values) < 2:
        return values[0] if values else None
    if len(named) < len(values):
        raise UsageError(
            f"{flag} takes one FILE, or one NAME=FILE for each of the views {', '.join(names)}; "
            f"got {' '.join(values)}"
        )
    files = by_name(named, flag)
    if missing := [name for name in names if name not in files]:
        raise UsageError(f"{flag} of the views {', '.join(missing)} are missing")
    return files


def read_inputs(
    options: Namespace, files: dict[str, str], **how: Any
) -> tuple[Views, Labels | None]:
    """Views, and the labels of their objects; see `read_views` for how to read them."""
    label_files = files_of_labels(options)
    if options.id is None and options.complete:
        raise UsageError("--complete needs --id, by which the objects of all views are known")
    if options.id is not None and isinstance(label_files, dict):
        raise UsageError("--id pairs the rows of views; labels are one FILE then")
    with telling(options) as say:
        views, y = read_views(
            files,
            label_files,
            reading={"labels": reading_of(options, "labels"), **readings_of(options, files)},
            say=say,
            **how,
        )
    if options.id is not None:
        counts = ", ".join(f"{name} {X.shape[0]:,}" for name, X in views.items())
        matches = f"{matches_in_words(views.names, views.seen)} ({counts})"
        left = left_in_words(views.names, views.seen)
        note(f"{len(views):,} objects by {ids_in_words(options)}: {matches}; {left}")
        return _complete(views, y) if options.complete else (views, y)
    if label_files is None:
        return views, None
    names, parts = [label_files], [y]
    if isinstance(label_files, dict):
        names, parts = [label_files[name] for name in files], list(y.values())
    try:
        return views, Labels.concatenate(parts)
    except ValueError as error:
        raise CommandError(f"{', '.join(map(str, names))}: {error}") from error


def _complete(views: Views, labels: Labels | None) -> tuple[Views, Labels | None]:
    """The objects that are in all views, and their labels."""
    kept = np.flatnonzero(views.seen.all(axis=1))
    if not len(kept):
        raise CommandError("--complete: no object is in all views")
    return views[kept], None if labels is None else labels[kept]


def confounds_of(model: Any) -> list[str]:
    """The view, if any, that a model or the last step of a pipeline removes from the others."""
    from mvcca.retrieval.ranking import fitted_steps  # which the model has imported

    name = getattr(fitted_steps(model)[-1], "confounds", None)
    return [] if name is None else [name]


def dense_rows(file: str, rows: Any) -> np.ndarray:
    """The rows of a file in memory, which must be dense numbers."""
    block = as_block(rows).in_memory()
    if block.is_sparse or block.holds_texts():
        kind = "sparse ones" if block.is_sparse else "texts"
        raise CommandError(f"{file}: expected dense rows of numbers, got {kind}")
    return np.asarray(block.matrix)


def warn_of_ids(output: Path, ids: np.ndarray | None) -> None:
    """Warn if an output cannot hold the ids of its rows."""
    if ids is not None and output.suffix.lower() == ".npy":
        warn(f"{output}: a .npy file holds no ids; write .parquet, .npz or .csv to keep them")


def checked_output(name: str, inputs: Iterable[str]) -> Path:
    """The path of an output that can be written and is none of the inputs."""
    return check_writable(Path(name), [path_and_key(file)[0] for file in inputs])


def checked_page(name: str, inputs: Iterable[str]) -> Path:
    """The path of a page, as of an output."""
    if not name.lower().endswith((".html", ".htm")):
        raise UsageError(f"--report: expected a name ending in .html, got {name}")
    return checked_output(name, inputs)


def load_model(name: str) -> Any:
    """Load what projects and ranks rows as a model does: its maps, or else the model itself."""
    from mvcca.persistence.maps import load_maps

    if kind_of(model_file(name)) == "migration":
        raise CommandError(f"{name}: contains a migration; `mvcca transform` maps rows by it")
    if (maps := load_maps(name)) is not None:
        return maps
    from mvcca.persistence import load

    model = load(name)
    if not hasattr(model, "transform"):
        raise CommandError(
            f"{name}: contains a {type(model).__name__}; expected a model written by `mvcca fit`"
        )
    return model


@contextmanager
def configured(options: Namespace, **config: Any) -> Iterator[None]:
    """The library's run-time configuration, with a progress bar at a terminal."""
    progress = sys.stderr.isatty() and not options.quiet
    chosen = {"block_rows": getattr(options, "block_rows", None), "progress": progress, **config}
    with passing_bars(), config_context(**chosen):
        yield
