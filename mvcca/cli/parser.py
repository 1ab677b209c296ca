"""The argument parser, its help and its errors."""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS, Action, ArgumentParser, Namespace, RawTextHelpFormatter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from textwrap import indent, wrap
from typing import Any, NoReturn

from mvcca.cli import options
from mvcca.cli.commands import COMMANDS, GROUPS, SESSION
from mvcca.machine.printable import printable

_ABOUT = """Multi-view CCA and cross-modal retrieval: which method finds the right items in one view
for a query in another?"""

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


def parsed(arguments: Sequence[str]) -> Namespace:
    """The options of a command, with its name and its parser; without a command, of `mvcca`."""
    if arguments and arguments[0] in COMMANDS:
        return parser_of(arguments[0]).parse_args(arguments[1:])
    return program().parse_args(arguments[:1])


def program() -> ArgumentParser:
    """The parser of `mvcca` without a command."""
    parser = _Parser(
        "mvcca",
        usage="mvcca COMMAND [options]",
        description=f"{_ABOUT}\n\n{_listing()}",
        formatter_class=_Help,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("command", metavar="COMMAND", choices=COMMANDS, nargs="?", help=SUPPRESS)
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    parser.add_argument("-h", "--help", action="help", help="show this help and exit")
    parser.set_defaults(quiet=False, parser=parser)
    return parser


def parser_of(name: str) -> ArgumentParser:
    """The parser of a command."""
    command = COMMANDS[name]
    parser = _Parser(
        f"mvcca {name}",
        description=f"{_sentence(command.summary)}\n\nexamples:\n{_lines(command.examples)}",
        epilog=command.notes,
        formatter_class=_Help,
        allow_abbrev=False,
        add_help=False,
    )
    parser._positionals.title = "arguments"
    command.add_options(parser)
    options.add_to_all(parser)
    parser.usage = _usage(parser)
    parser.set_defaults(command=name, parser=parser)
    return parser


def _listing() -> str:
    """All commands in their groups, and a first session."""
    width = max(map(len, COMMANDS)) + 2
    groups = [
        "\n".join(
            [f"{title}:", *(f"  {name.ljust(width)}{of.summary}" for name, of in commands.items())]
        )
        for title, commands in GROUPS.items()
    ]
    session = "`mvcca COMMAND --help` describes the options of a command. A session on your files:"
    return "\n\n".join([*groups, f"{session}\n{_lines(SESSION)}"])


def _usage(command: ArgumentParser) -> str:
    """The command with the arguments that it needs."""
    needed = []
    for action in sorted(command._actions, key=lambda action: bool(action.option_strings)):
        if action.required:
            flag = min(action.option_strings, key=len, default="")
            times = 2 if "at least two" in str(action.help) else 1
            value = action.metavar or f"{{{','.join(action.choices or ())}}}"
            needed += [f"{flag} {value}".strip()] * times
    return " ".join([command.prog, *needed, "[options]"])


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}{'' if summary.endswith('?') else '.'}"


def _lines(examples: str) -> str:
    return indent(examples, "  $ mvcca ")
