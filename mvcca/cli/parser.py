"""The commands, and which function runs each of them.

What a command may be told stands in the modules `arguments_of_*`. Nothing but the standard library
is imported before a command runs.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from mvcca.cli import arguments_of_comparisons as comparisons
from mvcca.cli import arguments_of_files as files
from mvcca.cli.terminal import printable

__all__ = ["build_parser"]

# name: what it does, its arguments, what is said below them
_COMMANDS: dict[str, tuple[str, Callable[[ArgumentParser], None], str]] = {
    "demo": (
        "compare methods on data that are at hand",
        comparisons.add_to_demo,
        comparisons.DEMO_NOTE,
    ),
    "compare": (
        "compare methods on data in files of yours",
        comparisons.add_to_compare,
        files.FILES,
    ),
    "fit": ("fit a method to views in files, and save the model", files.add_to_fit, files.FILES),
    "transform": (
        "project rows in files into the shared space",
        files.add_to_transform,
        files.TRANSFORM_NOTE,
    ),
    "search": (
        "find for queries in one view the best items in another",
        files.add_to_search,
        files.SEARCH_NOTE,
    ),
    "info": ("say what a model file holds", files.add_to_info, ""),
}


class _Parser(ArgumentParser):
    """A parser that repeats what the user wrote in a form that a terminal can show."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class _Version(Action):
    """Prints the version; looked up only when asked for."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from mvcca import __version__

        print(f"mvcca {__version__}", flush=True)
        parser.exit()


def build_parser() -> ArgumentParser:
    """The parser of `mvcca`; a parsed command has its function as ``run``."""
    parser = _Parser(
        "mvcca",
        description="Multi-view CCA and cross-modal retrieval: which method finds, for a query in "
        "one view, the right items in another?",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (summary, add_arguments, epilog) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog,
            formatter_class=RawTextHelpFormatter,
            allow_abbrev=False,
        )
        add_arguments(command)
        command.set_defaults(run=_runner(name), parser=command)
    return parser


def _runner(name: str) -> Callable[[Namespace], None]:
    def run(options: Namespace) -> None:
        import_module(f"mvcca.cli.{name}").run(options)

    return run
