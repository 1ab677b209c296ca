"""The argument parser: commands, their options and the functions that run them."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from mvcca.cli import options
from mvcca.cli.console import printable

# name: summary, function that adds the options, epilog
_COMMANDS: dict[str, tuple[str, Callable[[ArgumentParser], None], str]] = {
    "demo": ("compare methods on example data", options.add_to_demo, options.DEMO_NOTE),
    "compare": ("compare methods on data in files", options.add_to_compare, options.FILES_NOTE),
    "fit": (
        "fit a method to views in files and save the model",
        options.add_to_fit,
        options.FILES_NOTE,
    ),
    "transform": (
        "project rows in files into the shared space",
        options.add_to_transform,
        options.TRANSFORM_NOTE,
    ),
    "search": (
        "find the best items of one view for queries in another",
        options.add_to_search,
        options.SEARCH_NOTE,
    ),
    "info": ("describe a model file", options.add_to_info, ""),
}


class _Parser(ArgumentParser):
    """A parser whose error messages are safe to print on a terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class _Version(Action):
    """Print the version, which is looked up only on request."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from mvcca import __version__

        print(f"mvcca {__version__}", flush=True)
        parser.exit()


def build_parser() -> ArgumentParser:
    """Return the parser of `mvcca`; parsed options have the command's function as ``run``."""
    parser = _Parser(
        "mvcca",
        description="Multi-view CCA and cross-modal retrieval: which method finds the right items "
        "in one view for a query in another?",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (summary, add_options, epilog) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=epilog,
            formatter_class=RawTextHelpFormatter,
            allow_abbrev=False,
        )
        add_options(command)
        command.set_defaults(run=_runner(name), parser=command)
    return parser


def _runner(name: str) -> Callable[[Namespace], None]:
    def run(parsed: Namespace) -> None:
        import_module(f"mvcca.cli.{name}").run(parsed)

    return run
