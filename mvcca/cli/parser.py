"""The argument parser: commands, their options and the functions that run them."""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from textwrap import wrap
from typing import Any, NoReturn

from mvcca.cli import notes, options
from mvcca.machine.printable import printable

_ABOUT = """Multi-view CCA and cross-modal retrieval: which method finds the right items in one view
for a query in another?"""

# title: {name: summary, function that adds the options}
_GROUPS: dict[str, dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "to begin with": {
        "demo": ("compare methods on handwritten digits", options.add_to_demo),
        "methods": ("list all methods", options.add_to_methods),
    },
    "compare methods, fit one, and search": {
        "compare": ("compare methods on data in files", options.add_to_compare),
        "fit": ("fit a method to views in files and save the model", options.add_to_fit),
        "search": ("find the best items of one view for queries in another", options.add_to_search),
        "transform": ("project rows in files into the shared space", options.add_to_transform),
        "info": ("describe a model file", options.add_to_info),
    },
    "ask other questions": {
        "test": ("test whether correlations of two tables are real", options.add_to_test),
        "align": (
            "align two sets of vectors by few known pairs or none",
            options.add_to_align,
        ),
        "migrate": (
            "map stored vectors or queries between an old and a new model",
            options.add_to_migrate,
        ),
        "similarity": (
            "compare layers of networks: how alike are their representations?",
            options.add_to_similarity,
        ),
    },
    "your shell": {
        "completion": ("print a script for completion in a shell", options.add_to_completion),
    },
}
_NOTES = {
    "compare": notes.FILES,
    "fit": notes.FILES,
    "transform": notes.TRANSFORM,
    "search": notes.SEARCH,
    "migrate": notes.MIGRATE,
    "test": notes.TEST,
    "align": notes.ALIGN,
    "similarity": notes.SIMILARITY,
}

_VIEWS = "--view image=image.npy --view text=text.npy"
_SEARCH = "search model.mvcca --gallery image=image.npy --query text=text.npy -k 5"
_EXAMPLES = {
    "": [
        f"compare {_VIEWS}",
        f"fit {_VIEWS} --method cca -o model.mvcca",
        _SEARCH,
    ],
    "demo": ["demo", "demo --parts halves --methods cca,ncca --no-report"],
    "compare": [
        f"compare {_VIEWS} --labels y.npy",
        "compare --view brain=brain.csv --view tests=tests.csv --id subject",
        f"compare {_VIEWS} --methods cca,nkcca --reg 0.01 0.1 1 --report report.html",
    ],
    "test": [
        "test brain.csv behaviour.csv --report report.html",
        "test brain.csv behaviour.csv --id subject --confounds c.csv --groups family",
    ],
    "fit": [
        f"fit {_VIEWS} --method cca -o model.mvcca",
        "fit --view brain=brain.csv --view tests=tests.csv --id subject --method cca -o m.mvcca",
        f"fit {_VIEWS} --method cca --param n_components=10 -o model.mvcca",
    ],
    "transform": [f"transform model.mvcca {_VIEWS} -o 'scores-{{view}}.npy'"],
    "search": [
        _SEARCH,
        "search m.mvcca --gallery brain=brain.csv --query tests=tests.csv --id subject",
    ],
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
    "completion": [
        "completion bash > ~/.local/share/bash-completion/completions/mvcca",
        "completion zsh > ~/.zfunc/_mvcca",
        "completion fish > ~/.config/fish/completions/mvcca.fish",
    ],
}


_TITLE = 30  # characters of a title above a list, at most


class _Help(RawTextHelpFormatter):
    """Help wrapped to the terminal; indented lines keep their indentation, commands their line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._max_help_position = max(12, min(24, self._width // 3))

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _wrapped(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(f"{indent}{line}\n" for line in _wrapped(text, width - len(indent)))

    def _format_usage(
        self, usage: str | None, actions: Iterable[Action], groups: Any, prefix: str | None
    ) -> str:
        if usage is None:
            return super()._format_usage(usage, actions, groups, prefix)
        lines = wrap(usage, self._width - 7, break_on_hyphens=False)
        return "usage: " + f"\n{' ' * 7}".join(lines) + "\n\n"


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of paragraphs and of lists with two columns, which are indented."""
    paragraphs: list[str] = []
    for line in text.splitlines():
        before = paragraphs[-1] if paragraphs else ""
        is_title = before.endswith(":") and len(before) < _TITLE
        is_prose = before[:1].strip() and line[:1].strip() and not is_title
        is_second_column = before[:1] == " " and line.startswith(" " * 8)
        if is_prose or is_second_column:
            paragraphs[-1] += f" {line.strip()}"
        else:
            paragraphs.append(line)
    lines = []
    for paragraph in paragraphs:
        if paragraph.startswith("  $"):
            whole = re.sub(
                r"( --?[a-z-]+) (?=[^-\s])", "\\1\0", paragraph
            )  # an option and its value
            parts = wrap(whole, width - 2, subsequent_indent=" " * 6, break_on_hyphens=False)
            parts = [part.replace("\0", " ") for part in parts]
            lines += [f"{part} \\" for part in parts[:-1]] + parts[-1:]
        else:
            first = re.match(r"\s+(\S+(, \S+)*\s{2,}|\.\w+, \.\w+ )|\s*", paragraph)
            indent = " " * min(first.end() if first else 0, width // 2)
            lines += wrap(paragraph, width, subsequent_indent=indent, break_on_hyphens=False)
            lines += [] if paragraph.strip() else [""]
    return lines


class _Parser(ArgumentParser):
    """A parser with errors of two lines, which suggest similar words."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:  # the command knows its options, the program only the commands
            parsed.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed

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
        word, known = match[1], sorted({*parser._option_string_actions} - {"--help"})
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
        usage="mvcca COMMAND [options]",
        description=f"{_ABOUT}\n\n{_listing()}",
        formatter_class=_Help,
        allow_abbrev=False,
        add_help=False,
    )
    commands = parser.add_subparsers(metavar="COMMAND", help=SUPPRESS, prog="mvcca")
    for name, (summary, add_options) in _commands().items():
        command = commands.add_parser(
            name,
            description=f"{_sentence(summary)}\n\n{_examples(name)}",
            epilog=_NOTES.get(name),
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
        )
        command._positionals.title = "arguments"
        add_options(command)
        options.add_to_all(command)
        command.usage = _usage(command)
        command.set_defaults(run=_runner(name), parser=command)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    parser.add_argument("-h", "--help", action="help", help="show this help and exit")
    parser.set_defaults(run=lambda _: parser.print_help(), quiet=False, parser=parser)
    return parser


def commands_of(parser: ArgumentParser) -> dict[str, tuple[str, ArgumentParser]]:
    """The summary and the parser of each command of `build_parser`."""
    found = next(a.choices for a in parser._actions if isinstance(a.choices, dict))
    return {name: (_commands()[name][0], command) for name, command in found.items()}


def _commands() -> dict[str, tuple[str, Callable[[ArgumentParser], None]]]:
    return {name: command for group in _GROUPS.values() for name, command in group.items()}


def _listing() -> str:
    """All commands in their groups, and a first session."""
    width = max(map(len, _commands())) + 2
    groups = [
        "\n".join(
            [f"{title}:", *(f"  {name.ljust(width)}{of[0]}" for name, of in commands.items())]
        )
        for title, commands in _GROUPS.items()
    ]
    session = "`mvcca COMMAND --help` describes the options of a command. A session on your files:"
    return "\n\n".join([*groups, f"{session}\n{_example_lines('')}"])


def _usage(command: ArgumentParser) -> str:
    """The command with the arguments that it needs."""
    needed = []
    for action in sorted(command._actions, key=lambda action: bool(action.option_strings)):
        if not action.required or action.dest == "shell":
            continue
        flag = min(action.option_strings, key=len, default="")
        times = 2 if flag == "--view" and command.prog.split()[-1] in ("fit", "compare") else 1
        needed += [f"{flag} {action.metavar}".strip()] * times
    shells = f" {{{','.join(options.SHELLS)}}}" if command.prog.endswith("completion") else ""
    return " ".join([f"{command.prog}{shells}", *needed, "[options]"])


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}{'' if summary.endswith('?') else '.'}"


def _examples(name: str) -> str:
    return f"examples:\n{_example_lines(name)}"


def _example_lines(name: str) -> str:
    return "\n".join(f"  $ mvcca {text}" for text in _EXAMPLES[name])


def _runner(name: str) -> Callable[[Namespace], None]:
    def run(parsed: Namespace) -> None:
        import_module(f"mvcca.cli.{name}").run(parsed)

    return run
