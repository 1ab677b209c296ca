"""`mvcca fit`: fit a method to views in files and save the model."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from mvcca import __version__
from mvcca.cli.arrays import path_of
from mvcca.cli.checkpoint import Checkpoint
from mvcca.cli.console import Progress, show
from mvcca.cli.errors import UsageError, in_one_line
from mvcca.cli.inputs import by_name, files_of, files_of_labels, open_view, read_inputs
from mvcca.cli.models import describe, facts
from mvcca.cli.options import NETWORK_FLAGS, network_parameters
from mvcca.cli.output import writable
from mvcca.cli.running import on_workers, running
from mvcca.comparison.labels import Labels
from mvcca.comparison.progress import epochs_reported
from mvcca.comparison.registry import METHODS, Method
from mvcca.passes import checkpoint_until_written
from mvcca.persistence import save
from mvcca.sources import RowSource
from mvcca.views import Views


def run(options: Namespace) -> None:
    """Run the command."""
    method = METHODS[options.method]
    with in_one_line():  # torch may be missing
        method.takes()
    chosen = _parameters(method, options)
    label_files = files_of_labels(options.labels, [name for name, _ in options.views])
    output = writable(options.output, [*files_of(options.views), *label_files])
    views, labels = read_inputs(options.views, options.labels, open_view)
    _check_labels(method, labels)
    model = method.build(chosen)
    checkpoint = Checkpoint.beside(output)
    config: dict[str, Any] = {"checkpoint": checkpoint.folder, "device": options.device}
    if method.is_deep:  # the device is a parameter of the estimator; progress is logged per epoch
        config |= {"device": None, "progress": False}
    with on_workers(options.workers, options.scheduler), running(options, **config):
        checkpoint.begin(_arguments(options, model, views, label_files), options.resume)
        with checkpoint.kept(), checkpoint_until_written():
            with epochs_reported(model, Progress().log):
                model.fit(views, None if labels is None else labels.vectors)
            save(model.as_mvcca() if hasattr(model, "as_mvcca") else model, output)
    found = facts(str(output))
    show(options, describe(found), found)


def _parameters(method: Method, options: Namespace) -> dict[str, Any]:
    """The user's parameters, and a fixed seed so that a resumed fit gives the same model."""
    chosen = by_name(options.params, "--param")
    for name in chosen:
        if name not in method.takes():
            known = ", ".join(sorted(method.takes()))
            raise UsageError(f"--param {name}: {method.name} has the parameters {known}")
    of_networks = network_parameters(options)
    if not method.is_deep:
        of_networks.pop("device", None)
    for name in of_networks:
        if name not in method.takes():
            raise UsageError(f"{NETWORK_FLAGS[name]} is not a parameter of {method.name}")
        if name in chosen:
            flag = NETWORK_FLAGS[name]
            raise UsageError(f"{flag} and --param {name} are the same; give only one of them")
    if method.is_deep and (options.workers or options.scheduler):
        raise UsageError(
            f"--workers and --scheduler are not available for {method.name}, which trains networks "
            "in one process"
        )
    return {"random_state": 0, **chosen, **of_networks}


def _check_labels(method: Method, labels: Labels | None) -> None:
    if method.learns_from == "pairs" and labels is not None:
        raise UsageError(f"--method {method.name} learns from pairs only; omit --labels")
    if method.learns_from != "pairs" and labels is None:
        raise UsageError(f"--method {method.name} learns from labels; give --labels")


def _arguments(
    options: Namespace, model: Any, views: Views, label_files: list[Path]
) -> dict[str, Any]:
    """All that determines the model, named as on the command line."""
    files = dict(options.views)
    parameters = model.get_params(deep=False).items()
    return {
        "version of mvcca": __version__,
        "--method": options.method,
        "--param": {name: repr(value) for name, value in parameters if name != "device"},
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
