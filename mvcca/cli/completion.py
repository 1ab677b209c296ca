"""`mvcca completion`: print a script that completes commands, options and values in a shell."""

from __future__ import annotations

import re
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import Self

from mvcca.cli.parser import build_parser, commands_of
from mvcca.comparison.registry import GROUPS, METHODS

_METHODS = {"--method": list(METHODS), "--methods": [*METHODS, *GROUPS]}
_LONGEST = 60  # characters of a description


@dataclass(frozen=True)
class _Option:
    """What a shell needs to know of an option."""

    flags: tuple[str, ...]  # none of an argument
    text: str
    values: tuple[str, ...]  # words to choose from
    metavar: str  # empty of an option without a value
    is_repeated: bool

    @classmethod
    def of(cls, action: Action) -> Self:
        flags = tuple(action.option_strings)
        values = next((_METHODS[flag] for flag in flags if flag in _METHODS), action.choices or ())
        takes = action.nargs != 0
        metavar = str(action.metavar or "VALUE") if takes else ""
        text = " ".join((action.help or "").replace("%%", "%").split())
        if values and action.metavar == "NAME":  # which the text begins with
            text = text.partition(": ")[2] or text
        text = shorten(re.split(r"[;:(]|, such", text)[0], _LONGEST, placeholder="")
        repeated = type(action).__name__ == "_AppendAction" or action.nargs == "+"
        return cls(flags, text, tuple(map(str, values)), metavar, repeated)

    @property
    def is_file(self) -> bool:
        return any(word in self.metavar for word in ("FILE", "MODEL", "LAYERS", "OLD", "NEW"))


def run(options: Namespace) -> None:
    """Run the command."""
    commands = commands_of(build_parser())
    known = {name: (text, list(_options_of(command))) for name, (text, command) in commands.items()}
    print(_SHELLS[options.shell](known), end="")


def _options_of(command: ArgumentParser) -> Iterator[_Option]:
    return map(_Option.of, command._actions)


_Commands = dict[str, tuple[str, list[_Option]]]


def _bash(commands: _Commands) -> str:
    """Words by command; values by command and option; files for everything else."""
    words, values = [], []
    for name, (_, own) in commands.items():
        flags = [flag for option in own for flag in option.flags]
        arguments = [value for option in own if not option.flags for value in option.values]
        words.append(f'    {name}) words="{" ".join([*flags, *arguments])}" ;;')
        for option in own:
            if option.flags and option.values:
                cases = "|".join(f'"{name} {flag}"' for flag in option.flags)
                values.append(f'    {cases}) words="{" ".join(option.values)}"; files= ;;')
    return _BASH.format(
        commands=" ".join(commands), words="\n".join(words), values="\n".join(values)
    )


# A word after "=", as in --view image=FILE, is a word of its own for bash.
_BASH = """\
_mvcca() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words="" files=yes
  [ "$word" = "=" ] && word=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=( $(compgen -W "{commands} --help --version" -- "$word") )
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{words}
  esac
  case "${{COMP_WORDS[1]}} $before" in
{values}
  esac
  COMPREPLY=( $(compgen -W "$words" -- "$word") )
  [[ "$word" != -* && -n "$files" ]] && COMPREPLY+=( $(compgen -f -- "$word") )
}}
complete -o filenames -F _mvcca mvcca
"""


def _zsh(commands: _Commands) -> str:
    names = "\n".join(f"    {_quoted(f'{name}:{text}')}" for name, (text, _) in commands.items())
    cases = []
    for name, (_, own) in commands.items():
        lines = [f"      {spec}" for option in own for spec in _zsh_specs(option)]
        cases.append("\n".join([f"    {name}) _arguments \\", " \\\n".join(lines) + " ;;"]))
    return _ZSH.format(names=names, cases="\n".join(cases))


def _zsh_specs(option: _Option) -> Iterator[str]:
    """Arguments of `_arguments`: one per spelling of an option."""
    value = ""
    if option.values:
        value = f":{option.metavar}:({' '.join(option.values)})"
    elif option.is_file:
        place = "{compset -P '*='; _files}" if "=" in option.metavar else "_files"
        value = f":{_zsh_text(option.metavar)}:{place}"
    elif option.metavar:
        value = f":{_zsh_text(option.metavar)}: "
    if not option.flags:
        yield _quoted(f"*{value}" if option.is_repeated else value)
    for flag in option.flags:
        others = " ".join(option.flags)
        before = "*" if option.is_repeated else f"({others})"
        yield _quoted(f"{before}{flag}[{_zsh_text(option.text)}]{value}")


def _zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


# As a file on fpath, its body is the function; sourced, it is registered.
_ZSH = """\
#compdef mvcca
_mvcca() {{
  local -a commands
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  case $name in
{cases}
  esac
}}
if [ "$funcstack[1]" = "_mvcca" ]; then
  _mvcca "$@"
else
  compdef _mvcca mvcca
fi
"""


def _fish(commands: _Commands) -> str:
    lines = [
        f"complete -c mvcca -n __fish_use_subcommand -f -a {name} -d {_fish_text(text)}"
        for name, (text, _) in commands.items()
    ]
    for name, (_, own) in commands.items():
        seen = f"complete -c mvcca -n '__fish_seen_subcommand_from {name}'"
        for option in own:
            lines += [f"{seen} {part}" for part in _fish_parts(option)]
    return "\n".join(lines) + "\n"


def _fish_parts(option: _Option) -> Iterator[str]:
    words = f"-a {_fish_text(' '.join(option.values))}" if option.values else ""
    if not option.flags:
        if words:
            yield f"-f {words}"
        return
    flags = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
    ]
    takes = ""
    if option.metavar:
        takes = "-r -F" if option.is_file else f"-x {words}".strip()
    yield " ".join(filter(None, [*flags, takes, f"-d {_fish_text(option.text)}"]))


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
