"""`mvcca completion`: print a script that completes commands, options and values in a shell."""

from __future__ import annotations

import re
from argparse import Action, Namespace
from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten

from mvcca.cli.commands import COMMANDS
from mvcca.cli.parser import parser_of
from mvcca.comparison.registry import GROUPS, METHODS

_METHODS = {"method": METHODS, "methods": [*METHODS, *GROUPS]}
_FILES = ("FILE", "MODEL", "LAYERS", "OLD", "NEW")  # in metavariables
_LONGEST = 60  # characters of a description

Actions = Mapping[str, Sequence[Action]]  # of each command


def run(options: Namespace) -> None:
    """Run the command."""
    print(_SHELLS[options.shell]({name: parser_of(name)._actions for name in COMMANDS}), end="")


def values_of(option: Action) -> list[str]:
    """Words that the value of an option is chosen from, or none."""
    return [] if option.nargs == 0 else [*(option.choices or _METHODS.get(option.dest, ()))]


def _metavar(option: Action) -> str:
    return "" if option.nargs == 0 else str(option.metavar or "VALUE")


def _is_file(option: Action) -> bool:
    return any(word in _metavar(option) for word in _FILES)


def _described(option: Action) -> str:
    """The beginning of the help, without the choices that are listed there."""
    text = " ".join((option.help or "").replace("%%", "%").split())
    if values_of(option) and option.metavar == "NAME":
        text = text.partition(": ")[2] or text
    text = re.split(r"[;:(]|, such", text)[0].strip()
    short = shorten(text, _LONGEST, placeholder="")
    return short if short == text else short.rpartition(", ")[0] or short


def _bash(commands: Actions) -> str:
    """Words by command; values by command and option; files for everything else."""
    words, values = [], []
    for name, own in commands.items():
        flags = [word for option in own for word in option.option_strings or values_of(option)]
        words.append(f'    {name}) words="{" ".join(flags)}" ;;')
        for option in own:
            if option.option_strings and values_of(option):
                cases = "|".join(f'"{name} {flag}"' for flag in option.option_strings)
                values.append(f'    {cases}) words="{" ".join(values_of(option))}"; files= ;;')
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


def _zsh(commands: Actions) -> str:
    names = [f"    {_quoted(f'{name}:{of.summary}')}" for name, of in COMMANDS.items()]
    cases = []
    for name, own in commands.items():
        lines = [f"      {spec}" for option in own for spec in _zsh_specs(option)]
        cases.append("\n".join([f"    {name}) _arguments \\", " \\\n".join(lines) + " ;;"]))
    return _ZSH.format(names="\n".join(names), cases="\n".join(cases))


def _zsh_specs(option: Action) -> Iterator[str]:
    """Arguments of `_arguments`: one per spelling of an option."""
    metavar, place = _metavar(option), " "
    if words := values_of(option):
        place = f"({' '.join(words)})"
    elif _is_file(option):
        place = "{compset -P '*='; _files}" if "=" in metavar else "_files"
    value = f":{_zsh_text(metavar)}:{place}" if metavar else ""
    is_repeated = option.nargs == "+" or type(option).__name__ == "_AppendAction"
    if not option.option_strings:
        yield _quoted(f"*{value}" if is_repeated else value)
    for flag in option.option_strings:
        before = "*" if is_repeated else f"({' '.join(option.option_strings)})"
        yield _quoted(f"{before}{flag}[{_zsh_text(_described(option))}]{value}")


def _zsh_text(text: str) -> str:
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def _quoted(text: str, quote: str = "'\\''") -> str:
    return "'" + text.replace("'", quote) + "'"


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


def _fish(commands: Actions) -> str:
    lines = [
        f"complete -c mvcca -n __fish_use_subcommand -f -a {name} -d {_fish_text(of.summary)}"
        for name, of in COMMANDS.items()
    ]
    for name, own in commands.items():
        seen = f"complete -c mvcca -n '__fish_seen_subcommand_from {name}'"
        lines += [f"{seen} {part}" for option in own if (part := _fish_part(option))]
    return "\n".join(lines) + "\n"


def _fish_part(option: Action) -> str:
    words = f"-a {_fish_text(' '.join(values_of(option)))}" if values_of(option) else ""
    if not option.option_strings:
        return f"-f {words}" if words else ""
    flags = [re.sub("^--", "-l ", flag) for flag in option.option_strings]
    flags = [re.sub("^-(?!l )", "-s ", flag) for flag in flags]
    takes = ["-r -F"] if _is_file(option) else ["-x", words] if _metavar(option) else []
    return " ".join(filter(None, [*flags, *takes, f"-d {_fish_text(_described(option))}"]))


def _fish_text(text: str) -> str:
    return _quoted(text.replace("\\", "\\\\"), "\\'")


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
