"""The argument parser: commands, their options and the functions that run them."""

from __future__ import annotations

import re
import sys
from argparse import Action, ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from textwrap import wrap
from typing import Any, NoReturn

from mvcca.cli import options
from mvcca.machine.printable import printable

# name: summary, function that adds the options
_COMMANDS: dict[str, tuple[str, Callable[[ArgumentParser], None]]] = {
    "demo": ("compare methods on handwritten digits", options.add_to_demo),
    "compare": ("compare methods on data in files", options.add_to_compare),
    "test": ("test whether correlations of two tables are real", options.add_to_test),
    "fit": ("fit a method to views in files and save the model", options.add_to_fit),
    "transform": ("project rows in files into the shared space", options.add_to_transform),
    "search": ("find the best items of one view for queries in another", options.add_to_search),
    "migrate": (
        "map stored vectors or queries between an old and a new model",
        options.add_to_migrate,
    ),
    "align": (
        "align two sets of vectors by few known pairs or none",
        options.add_to_align,
    ),
    "similarity": (
        "compare layers of networks by how alike their representations are",
        options.add_to_similarity,
    ),
    "info": ("describe a model file", options.add_to_info),
    "methods": ("list all methods", options.add_to_methods),
    "completion": ("print a script for completion in a shell", options.add_to_completion),
}
_NOTES = {
    "compare": options.FILES_NOTE,
    "fit": options.FILES_NOTE,
    "transform": options.TRANSFORM_NOTE,
    "search": options.SEARCH_NOTE,
    "migrate": options.MIGRATE_NOTE,
    "test": options.TEST_NOTE,
    "align": options.ALIGN_NOTE,
    "similarity": options.SIMILARITY_NOTE,
}

_VIEWS = "--view image=image.npy --view text=text.npy"
_EXAMPLES = {
    "demo": ["demo", "demo --parts halves --methods cca,ncca --no-report"],
    "compare": [
        f"compare {_VIEWS} --labels y.npy",
        f"compare {_VIEWS} --methods cca,nkcca --reg 0.01 0.1 1 --report report.html",
    ],
    "test": [
        "test brain.csv behaviour.csv --report report.html",
        "test brain.csv behaviour.csv --confounds c.csv --groups family --ids subject",
    ],
    "fit": [f"fit {_VIEWS} --method cca --param n_components=10 -o model.mvcca"],
    "transform": [f"transform model.mvcca {_VIEWS} -o 'scores-{{view}}.npy'"],
    "search": ["search model.mvcca --gallery image=image.npy --query text=text.npy -k 5"],
    "migrate": [
        "migrate old.npy new.npy --sample rows.npy -o migrated.npy",
        "migrate old.npy new.npy --sample rows.npy --direction queries -o queries.mvcca",
    ],
    "align": [
        "align english.npy german.npy --pairs pairs.csv -o model.mvcca",
        "align english.npy german.npy -o model.mvcca",
    ],
    "similarity": [
        "similarity layers/",
        "similarity first_network/ --other second_network/ --plot similarity.png",
    ],
    "info": ["info model.mvcca", "info model.mvcca --json"],
    "methods": ["methods"],
    "completion": ["completion bash > ~/.local/share/bash-completion/completions/mvcca"],
}


class _Help(RawTextHelpFormatter):
    """Help wrapped to the terminal; indented lines keep their indentation, commands their line."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(f"{indent}{line}\n" for line in _wrapped(text, width - len(indent)))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of paragraphs and of lists with two columns, which are indented."""
    paragraphs: list[str] = []
    for line in text.splitlines():
        before = paragraphs[-1] if paragraphs else ""
        is_prose = before[:1].strip() and line[:1].strip()
        is_second_column = before[:1] == " " and line.startswith(" " * 8)
        if is_prose or is_second_column:
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line)
    lines = []
    for paragraph in paragraphs:
        if paragraph.startswith("  $"):
            parts = wrap(paragraph, width - 2, subsequent_indent=" " * 6, break_on_hyphens=False)
            lines += [f"{part} \\" for part in parts[:-1]] + parts[-1:]
        else:
            first = re.match(r"\s+(\S+(, \S+)*\s{2,}|\.\w+, \.\w+ )|\s*", paragraph)
            lines += wrap(paragraph, width, subsequent_indent=" " * (first.end() if first else 0))
            lines += [] if paragraph.strip() else [""]
    return lines


class _Parser(ArgumentParser):
    """A parser with errors of two lines, which suggest similar words."""

    def error(self, message: str) -> NoReturn:
        program = re.sub(r"( \[?-).*", "", self.prog)
        print(f"usage: {program} ... (all options: {program} --help)", file=sys.stderr)
        text = printable(" ".join(message.split()))
        self.exit(2, f"{program}: error: {text}{_suggestion(self, message)}\n")


def _suggestion(parser: ArgumentParser, message: str) -> str:
    """Words that are similar to an unknown one."""
    word, known = "", []
    if match := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
        word, known = match[1], re.findall(r"[\w-]+", match[2])
    elif match := re.search(r"unrecognized arguments: (--[\w-]+)", message):
        word, known = match[1], sorted(parser.get_default("flags") or ())
    similar = get_close_matches(word, known, n=2)
    return f"; did you mean {' or '.join(similar)}?" if similar else ""


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
    flags: dict[str, list[str]] = {}
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (summary, add_options) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog="\n\n".join(filter(None, [_examples(name), _NOTES.get(name)])),
            formatter_class=_Help,
            allow_abbrev=False,
        )
        add_options(command)
        options.add_to_all(command)
        command.set_defaults(run=_runner(name), parser=command)
        flags[name] = sorted(command._option_string_actions)
    parser.set_defaults(run=lambda _: parser.print_help(), quiet=False, parser=parser)
    parser.set_defaults(flags=set().union(*flags.values()), flags_of=flags)
    return parser


def _examples(name: str) -> str:
    lines = "\n".join(f"  $ mvcca {text}" for text in _EXAMPLES[name])
    return f"examples:\n{lines}"


def _runner(name: str) -> Callable[[Namespace], None]:
    def run(parsed: Namespace) -> None:
        import_module(f"mvcca.cli.{name}").run(parsed)

    return run
