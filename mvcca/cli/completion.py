"""`mvcca completion`: print a script that completes commands and options in a shell."""

from __future__ import annotations

from argparse import Namespace

_SCRIPT = """\
_mvcca() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="{commands}" ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{commands}"
  COMPREPLY=( $(compgen -W "$words" -- "$word") )
  [[ "$word" != -* && "$COMP_CWORD" -gt 1 ]] && COMPREPLY+=( $(compgen -f -- "$word") )
}}
complete -o filenames -F _mvcca mvcca
"""


def run(options: Namespace) -> None:
    """Run the command."""
    flags: dict[str, list[str]] = options.flags_of
    cases = "\n".join(f'    {name}) words="{" ".join(of)}" ;;' for name, of in flags.items())
    if options.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(_SCRIPT.format(cases=cases, commands=" ".join(flags)), end="")
