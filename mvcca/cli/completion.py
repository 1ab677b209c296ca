"""`mvcca completion`: print a script that completes commands, options and values in a shell."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, Namespace

import shtab

from mvcca.cli.commands import COMMANDS
from mvcca.cli.parser import parser_of, program
from mvcca.comparison.registry import GROUPS, METHODS

_METHODS = {"method": METHODS, "methods": [*METHODS, *GROUPS]}
_FILES = ("FILE", "MODEL", "LAYERS", "OLD", "NEW")  # in metavariables

# Bash splits --view image=FILE at "="; fish does not.
_NAMED_FILES = {
    "bash": "_mvcca_named_files",
    "zsh": "{compset -P '*='; _files}",
    "fish": "(_mvcca_named_files)",
    "preamble": {
        "bash": '_mvcca_named_files() { compgen -f -- "${1#=}"; }',
        "fish": """\
function _mvcca_named_files
  set -l parts (string split -m 1 = -- (commandline -ct))
  set -q parts[2]; and printf '%s\\n' $parts[1]=(__fish_complete_path $parts[2])
end""",
    },
}


def run(options: Namespace) -> None:
    """Run the command."""
    print(shtab.complete(_whole(), options.shell))


def values_of(option: Action) -> list[str]:
    """Words that the value of an option is chosen from, or none."""
    return [] if option.nargs == 0 else [*map(str, option.choices or _METHODS.get(option.dest, ()))]


def _whole() -> ArgumentParser:
    """One parser of all commands; that of `mvcca` itself only lists them."""
    parser = ArgumentParser("mvcca")
    for option in program()._get_optional_actions():
        if "--help" not in option.option_strings:
            parser._add_action(option)
    commands = parser.add_subparsers()
    for name, of in COMMANDS.items():
        own = parser_of(name)
        for option in own._actions:
            _complete_values(option)
        commands.add_parser(name, help=of.summary, parents=[own], add_help=False)
    return parser


def _complete_values(option: Action) -> None:
    """Say what completes the values of an option: files, or names of methods; shorten its help."""
    option.help = re.split(r"[;(]", option.help or "")[0].strip()
    metavar = str(option.metavar or "")
    if words := values_of(option):
        option.choices = words
    elif option.nargs != 0 and any(word in metavar for word in _FILES):
        is_named = "=" in metavar
        option.complete = _NAMED_FILES if is_named else shtab.FILE  # type: ignore[attr-defined]
        option.nargs = "+" if is_named else option.nargs
