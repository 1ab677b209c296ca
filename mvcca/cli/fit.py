"""`mvcca fit`: a method, fitted to views in files, becomes a model file."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from mvcca import __version__
from mvcca.cli import networks
from mvcca.cli.arguments_of_networks import FLAGS, chosen_for_networks
from mvcca.cli.checkpoint import Checkpoint
from mvcca.cli.errors import UsageError
from mvcca.cli.files import path_of
from mvcca.cli.inputs import by_name, files_of, files_of_labels, open_view, read_inputs
from mvcca.cli.labels import Labels
from mvcca.cli.methods import METHODS, Method
from mvcca.cli.models import describe, facts
from mvcca.cli.output import writable
from mvcca.cli.progress import Progress
from mvcca.cli.running import on_workers, running
from mvcca.cli.terminal import printable
from mvcca.passes import checkpoint_until_written
from mvcca.persistence import save
from mvcca.sources import RowSource
from mvcca.views import Views

__all__ = ["run"]


def run(options: Namespace) -> None:
    """Run the command."""
    method = METHODS[options.method]
    chosen = _chosen(method, options)
    label_files = files_of_labels(options.labels, [name for name, _ in options.views])
    output = writable(options.output, [*files_of(options.views), *label_files])
    views, labels = read_inputs(options.views, options.labels, open_view)
    _check_labels(method, labels)
    model = method.build({**networks.usual(method, chosen, len(views)), **chosen})
    checkpoint = Checkpoint.beside(output)
    choices: dict[str, Any] = {"checkpoint": checkpoint.folder, "device": options.device}
    if method.is_deep:  # the device is a parameter, and progress is told of epochs
        choices |= {"device": None, "progress": False}
    with on_workers(options.workers, options.scheduler), running(options, **choices):
        checkpoint.begin(_asked(options, model, views, label_files), options.resume)
        with checkpoint.kept(), checkpoint_until_written():
            with networks.told(model, Progress().keep):
                method.fit(model, views, None if labels is None else labels.vectors)
            save(model, output)
    print(printable(describe(facts(str(output)))))


def _chosen(method: Method, options: Namespace) -> dict[str, Any]:
    """What the user chose; whatever is drawn is drawn alike by every run and by a resumed one."""
    chosen = by_name(options.params, "--param")
    for name in chosen:
        if name not in method.takes():
            known = ", ".join(sorted(method.takes()))
            raise UsageError(f"--param {name}: {method.name} has the parameters {known}")
    of_networks = chosen_for_networks(options)
    if not method.is_deep:
        of_networks.pop("device", None)
    for name in of_networks:
        if name not in method.takes():
            raise UsageError(f"{FLAGS[name]} is no parameter of {method.name}")
        if name in chosen:
            raise UsageError(f"{FLAGS[name]} and --param {name} are the same; give one of them")
    if method.is_deep and (options.workers or options.scheduler):
        raise UsageError(
            f"--workers and --scheduler spread statistics of rows, and {method.name} trains "
            "networks, in one process; leave them out"
        )
    return {"random_state": 0, **chosen, **of_networks}


def _check_labels(method: Method, labels: Labels | None) -> None:
    if method.learns_from == "pairs" and labels is not None:
        raise UsageError(f"--method {method.name} learns from pairs alone; leave out --labels")
    if method.learns_from != "pairs" and labels is None:
        raise UsageError(f"--method {method.name} learns from labels; give --labels")


def _asked(options: Namespace, model: Any, views: Views, label_files: list[Path]) -> dict[str, Any]:
    """All that decides what is added up, by the words of the command line."""
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
