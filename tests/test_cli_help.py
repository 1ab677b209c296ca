"""What the command line says about itself: the list of commands, help, and completion in shells."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys

import pytest

from mvcca.cli import main
from mvcca.cli.commands import COMMANDS
from mvcca.cli.completion import values_of
from mvcca.cli.parser import parsed, parser_of, program
from mvcca.comparison.registry import METHODS

GENERAL = {"-h", "--help", "-q", "--quiet", "--json"}


def help_of(command, monkeypatch, width=80):
    monkeypatch.setenv("COLUMNS", str(width))
    return (parser_of(command) if command else program()).format_help()


# ---- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [120, 80, 50])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_the_terminal(command, width, monkeypatch):
    lines = help_of(command, monkeypatch, width).splitlines()
    assert not [line for line in lines if len(line) > width]
    if width == 120:  # and takes the room that there is
        assert len(lines) <= len(help_of(command, monkeypatch, 50).splitlines())


def test_the_bare_command_lists_the_commands():
    found = subprocess.run([sys.executable, "-m", "mvcca"], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    for name, command in COMMANDS.items():
        listed = re.search(rf"^  {name} +(.*)$", found.stdout, re.MULTILINE)  # each on its line
        assert listed
        assert listed[1] == command.summary


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_examples_and_what_is_needed(command, monkeypatch):
    text = help_of(command, monkeypatch)
    titles = re.findall(r"^(\S[^\n]*):$", text, re.MULTILINE)
    basic = [title for title in titles if title in ("arguments", "options")]
    assert titles[: 1 + len(basic)] == ["examples", *basic]
    first = text.partition("\noptions:")[2].partition("\n\n")[0]
    needed = [action.option_strings[0] for action in parser_of(command)._actions if action.required
              and action.option_strings]  # fmt: skip
    assert all(flag in first for flag in needed)
    assert not GENERAL & set(re.findall(r"^  (-[\w-]+)", first, re.MULTILINE))


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_the_help_parse(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    examples = re.findall(r"^  \$ mvcca (.*)$", out.replace("\\\n", " "), re.M)
    assert examples
    for example in examples:
        words = shlex.split(example.partition(" > ")[0])
        assert parsed(words).command == command


def test_few_choices_are_shown_in_place_of_a_name_and_many_in_the_text(monkeypatch):
    assert "  --method {cca,procrustes}\n" in help_of("align", monkeypatch)
    text = " ".join(help_of("migrate", monkeypatch).split())
    assert "--method NAME affine, local, cca or procrustes: any affine map" in text


SENTENCES = {
    "fit": "usage: mvcca fit --view NAME=FILE --view NAME=FILE --method NAME -o MODEL [options]",
    "test": "--jobs N number of processes for the permutations (default: 1)",
    "align": "--method {cca,procrustes} CCA, or rotations only (default: cca)",
    "migrate": "only rotations (items, queries; default: affine for items, cca otherwise)",
    "search": "near to many queries, with the rows of --bank (default: as the model was tuned)",
    "similarity": "intervals, from a jackknife of ten groups of rows (default: no intervals)",
    "compare": "if available) --directions {cross,within,all} queries for other views,",
}


@pytest.mark.parametrize("command", SENTENCES)
def test_docstrings_become_sentences_of_the_help(command, monkeypatch):
    assert SENTENCES[command] in " ".join(help_of(command, monkeypatch).split())


def test_the_session_of_the_first_page_parses(monkeypatch):
    text = help_of("", monkeypatch).replace("\\\n", " ")
    session = re.findall(r"^  \$ mvcca (.*)$", text, re.M)
    assert [words.split()[0] for words in session] == ["compare", "fit", "search"]
    for words in session:
        assert parsed(shlex.split(words)).command


@pytest.mark.parametrize("command", ["fit", "transform", "search"])
def test_an_unknown_option_is_an_error_of_its_command(command, capsys):
    needed = {
        "fit": ["--view", "a=a.npy", "--method", "cca", "-o", "m.mvcca"],
        "transform": ["m.mvcca", "--view", "a=a.npy", "-o", "s.npy"],
        "search": ["m.mvcca", "--gallery", "a=a.npy", "--query", "b=b.npy"],
    }
    with pytest.raises(SystemExit, match="2"):
        main([command, *needed[command], "--headr", "yes"])
    usage, error = capsys.readouterr().err.splitlines()
    assert usage == f"usage: mvcca {command} ... (all options: mvcca {command} --help)"
    assert "unrecognized arguments: --headr yes; did you mean --header" in error
    assert "--ids" not in error  # of other commands


# ---- completion ---------------------------------------------------------------------------------

SHELLS = {
    "bash": "bash",
    "zsh": "zsh (apt-get install zsh)",
    "fish": "fish (apt-get install fish)",
}


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path, monkeypatch, capsys):
    """A shell, and the file of its script for completion."""
    assert main(["completion", request.param]) == 0
    (tmp_path / "completion").write_text(capsys.readouterr().out)
    (tmp_path / "model.mvcca").touch()
    monkeypatch.chdir(tmp_path)
    return request.param


def installed(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {SHELLS[shell]}")
    return shell


def test_scripts_hold_every_command_option_and_choice(shell, tmp_path):
    script = (tmp_path / "completion").read_text()
    for name in COMMANDS:
        assert name in script
        for option in parser_of(name)._actions:
            for flag in option.option_strings:
                is_short = not flag.startswith("--")
                in_fish = f"-s {flag[1:]}" if is_short else f"-l {flag[2:]}"
                assert (in_fish if shell == "fish" else flag) in script
            assert all(value in script for value in values_of(option))


@pytest.mark.parametrize(
    ("shell", "of_file", "of_number"),
    [
        ("zsh", r"--view\[.*:NAME=FILE:{compset -P '\*='; _files}", r"--block-rows\[.*\]:N:\"\n"),
        ("fish", r'-l view -xka "\(_mvcca_named_files\)"', r"-l block-rows -x -d"),
    ],
    indirect=["shell"],
)
@pytest.mark.usefixtures("shell")
def test_options_that_take_files_complete_files_and_others_do_not(of_file, of_number, tmp_path):
    script = (tmp_path / "completion").read_text()
    assert re.search(of_file, script)
    assert re.search(of_number, script)


def test_the_shell_accepts_its_script(shell):
    found = subprocess.run([installed(shell), "-n", "completion"], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")


LINES = {  # typed words, of which the last is completed: what some of the offers are
    "mvcca comp": {"compare", "completion"},
    "mvcca fit --go": {"--goal"},
    "mvcca fit --goal c": {"class", "correlation"},
    "mvcca align --method p": {"procrustes"},
    "mvcca fit --method mlc": {name for name in METHODS if name.startswith("mlc")},
    "mvcca search --hubness c": {"csls"},
    "mvcca info mod": {"model.mvcca"},
    "mvcca completion f": {"fish"},
}


def offers(shell, line):
    """What a shell offers for the last word of a line."""
    words = line.split(" ")
    if shell == "fish":
        program = f"source completion; complete -C {shlex.quote(line)}"
        found = subprocess.run(["fish", "-c", program], capture_output=True, text=True, check=True)
        return {one.partition("\t")[0] for one in found.stdout.splitlines()}
    program = (
        f"source ./completion; COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}\n"
        "_shtab_mvcca 2>/dev/null; printf '%s\\n' ${COMPREPLY[@]}"
    )
    found = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("shell", ["bash", "fish"], indirect=True)
def test_shells_offer_what_begins_like_the_word(shell, line):
    installed(shell)
    assert offers(shell, line) == LINES[line]


@pytest.mark.parametrize("shell", ["bash", "fish"], indirect=True)
def test_files_are_offered_after_the_name_of_a_view(shell):
    installed(shell)
    if shell == "fish":
        assert offers(shell, "mvcca fit --view a=mod") == {"a=model.mvcca"}
    else:  # for which = separates words
        assert offers(shell, "mvcca fit --view a = mod") == {"model.mvcca"}


ZSH = """
_describe() { for one in "${(@P)2}"; do print -r -- "${one%%%%:*}"; done }
_arguments() { print -l -- "$@"; state=%s; line=(%s) }
_files() { : }
compdef() { : }
source ./completion
words=(mvcca); CURRENT=2
_shtab_mvcca%s
"""


@pytest.mark.parametrize("shell", ["zsh"], indirect=True)
def test_zsh_is_given_commands_and_the_options_of_one(shell):
    def asked(state, line, function):
        command = [installed(shell), "-f", "-c", ZSH % (state, line, function)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert {*COMMANDS} <= {*asked("none", "''", "_commands").split()}
    options = asked("mvcca", "fit", "").splitlines()
    assert any(re.match(r"--goal\[.*:\(object class correlation\)$", o) for o in options)
    assert any(re.match(r"\*--view\[.*:\{compset -P '\*='; _files\}$", o) for o in options)
