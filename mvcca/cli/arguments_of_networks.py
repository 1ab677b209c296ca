"""The options of methods that train networks, for every command that fits.

What is done where an option is left out is decided in `mvcca.cli.networks`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from mvcca.cli import words

__all__ = ["FLAGS", "add_networks", "chosen_for_networks"]

# The estimators' parameters, and the options that set them.
FLAGS = {
    "max_epochs": "--epochs",
    "batch_size": "--batch-size",
    "hidden_layer_sizes": "--hidden",
    "validation_fraction": "--validation-fraction",
    "patience": "--patience",
    "device": "--device",
}

_ABOUT = """\
Where these are left out, the number of training rows n decides. Up to 10,000 rows: hidden layers
of 256,256, batches of 128 and 60 epochs, the scaling of ds-dcca starts at one, and the
decorrelation of soft-cca is 1. For more, as published: 800,800, batches of 750 and 100 epochs.
Batches have 8 rows per component or more, and ds-dcca warms up for half of the epochs. corrnet
has batches of 100 and 50 epochs. The ridge of networks is 1e-4. Rows are taken as they are:
corrnet and dccae want features of about 0 to 1."""


def add_networks(command: ArgumentParser, *, device: bool = True) -> None:
    """Options of networks; `device` is left out where the command has such an option already."""
    group = command.add_argument_group("networks", _ABOUT)

    def add(parameter: str, **described: Any) -> None:
        group.add_argument(FLAGS[parameter], dest=parameter, **described)

    add("max_epochs", type=words.positive_int, metavar="N", help="passes over the rows, at most")
    add("batch_size", type=words.positive_int, metavar="N", help="rows of a step")
    add(
        "hidden_layer_sizes",
        type=words.sizes,
        metavar="N,...",
        help="units of the hidden layers, the same for every view, such as 800,800",
    )
    add(
        "validation_fraction",
        type=words.share,
        metavar="SHARE",
        help="share of the rows to set aside; the epoch that does best on them is the one taken",
    )
    add(
        "patience",
        type=words.positive_int,
        metavar="N",
        help="stop after N epochs that were no better (of a tenth of the rows, unless\n"
        "--validation-fraction says otherwise)",
    )
    if device:
        add("device", metavar="NAME", help="auto, cpu, cuda, cuda:1 or mps (default: auto)")


def chosen_for_networks(options: Namespace) -> dict[str, Any]:
    """The parameters that the user set."""
    return {name: value for name in FLAGS if (value := getattr(options, name)) is not None}
