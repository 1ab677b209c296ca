"""`mvcca fit`: a method, fitted to views in files, becomes a model file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from mvcca import __version__
from mvcca.cli.checkpoint import Checkpoint
from mvcca.cli.errors import UsageError
from mvcca.cli.files import path_of
from mvcca.cli.inputs import by_name, files_of, files_of_labels, open_view, read_inputs
from mvcca.cli.labels import Labels
from mvcca.cli.methods import METHODS, Method
from mvcca.cli.models import describe, facts
from mvcca.cli.output import writable
from mvcca.cli.running import on_workers, running
from mvcca.persistence import save
from mvcca.sources import RowSource
from mvcca.views import Views

__all__ = ["run"]


def run(options: Namespace) -> None:
    """Run the command."""
    method = METHODS[options.method]
    model = method.build(_parameters(method, options.params))
    label_files = files_of_labels(options.labels, [name for name, _ in options.views])
    output = writable(options.output, [*files_of(options.views), *label_files])
    views, labels = read_inputs(options.views, options.labels, open_view)
    _check_labels(method, labels)
    checkpoint = Checkpoint.beside(output)
    choices = {"checkpoint": checkpoint.folder, "device": options.device}
    with on_workers(options.workers, options.scheduler), running(options, **choices):
        checkpoint.begin(_asked(options, model, views, label_files), options.resume)
        with checkpoint.kept():
            method.fit(model, views, None if labels is None else labels.vectors)
            save(model, output)
    checkpoint.remove()
    print(describe(facts(str(output))))


def _parameters(method: Method, given: list[tuple[str, Any]]) -> dict[str, Any]:
    """What the user chose; whatever is drawn is drawn alike by every run and by a resumed one."""
    chosen = by_name(given, "--param")
    for name in chosen:
        if name not in method.takes():
            known = ", ".join(sorted(method.takes()))
            raise UsageError(f"--param {name}: {method.name} has the parameters {known}")
    return {"random_state": 0, **chosen}


def _check_labels(method: Method, labels: Labels | None) -> None:
    if method.learns_from == "pairs" and labels is not None:
        raise UsageError(f"--method {method.name} learns from pairs alone; leave out --labels")
    if method.learns_from != "pairs" and labels is None:
        raise UsageError(f"--method {method.name} learns from labels; give --labels")


def _asked(options: Namespace, model: Any, views: Views, label_files: list[Path]) -> dict[str, Any]:
    """All that decides what is added up, by the words of the command line."""
    files = dict(options.views)
    return {
        "version of mvcca": __version__,
        "--method": options.method,
        "--param": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "--block-rows": options.block_rows,
        **{
            f"--view {name}": block.fingerprint()
            if isinstance(block, RowSource)
            else [Path(files[name]).name, *_stamp(path_of(files[name]))]  # with the key, if any
            for name, block in views.items()
        },
        "--labels": [_stamp(path) for path in label_files],
    }


def _stamp(path: Path) -> list[Any]:
    status = path.stat()
    return [str(path.resolve()), status.st_size, status.st_mtime_ns]
