"""Running a command in a test, and reading what it prints."""

from __future__ import annotations

import re

from mvcca.cli import main


def run(capsys, *arguments):
    """Exit code, standard output, and standard error but for what files are read as."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    return code, out, without_reads(err)


def without_reads(err):
    """What a command says beside the lines of what files are read as."""
    return re.sub(r"^mvcca: .*: read as .*\n", "", err, flags=re.M)


def succeed(capsys, *arguments):
    """Standard output of a command that goes well and says nothing else."""
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, ""), err
    return out


def fail(capsys, *arguments):
    """The one line of a command that cannot be done."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("mvcca: error: ")
    assert err.count("\n") == 1
    return err


def refuse(capsys, *arguments):
    """The one line of a usage error."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    usage, error = err.splitlines()
    assert usage.startswith("usage: mvcca")
    return error


def figures(out):
    """Measures by method, without errors and marks: lines of numbers only."""
    found = re.finditer(r"^(\S.*?)((?:  +\d*\.\d+(?:±[\d.]+)?[*?<]?)+)$", out, re.M)
    return {match[1].strip(): re.findall(r" (\d*\.\d+)", match[2]) for match in found}
