"""Options that say how files are read, for all files or for one of them, as NAME=VALUE."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mvcca.cli.console import note
from mvcca.cli.errors import UsageError
from mvcca.cli.values import add_option, names

if TYPE_CHECKING:
    import numpy as np

    from mvcca.blocks.sources import FileRows, ReadOptions

_IN = "how files are read"
_TEXTS = {  # options with the metavariable and the help of each
    "--columns": ("[NAME=]A,B", "columns to read (default: all)"),
    "--drop": ("[NAME=]A,B", "columns to leave out"),
    "--transpose": (
        "NAME[=no]",
        "columns are the objects, not rows (default: if they are named by the ids of another file)",
    ),
    "--sheet": ("[NAME=]SHEET", "sheet of a workbook"),
    "--decimal": ("[NAME=]MARK", "what separates decimals (default: as the file tells)"),
    "--thousands": ("[NAME=]MARK", "what separates groups of digits"),
    "--skip-lines": ("[NAME=]N", "lines above the table, such as a title"),
    "--encoding": ("[NAME=]NAME", "encoding of a text (default: UTF-8, or UTF-16 if it is)"),
    "--as": ("NAME=KIND", "texts or table: what a text holds (default: as the file tells)"),
}
_READ: dict[str, Callable[[str], Any]] = {  # fields of `ReadOptions` that are no texts
    "columns": lambda text: tuple(filter(None, text.split(","))),
    "drop": lambda text: tuple(filter(None, text.split(","))),
    "skip_lines": int,
    "transpose": lambda text: text != "no",
}
_VIEWS = ("views", "galleries", "queries", "bank")  # options with files of views
_BESIDE = (  # files that are no views
    *("confounds", "confounds_y", "groups", "ids", "label_vectors", "labels", "pairs", "sample"),
)


def add_id(command: Any, text: str) -> None:
    """Add ``--id``."""
    add_option(
        command,
        "--id",
        f"{text}; its name, its number from 1, or index for a first column without a name; "
        "NAME=COLUMN for one file",
        "[NAME=]COLUMN",
        action="append",
    )


def add_reading(command: ArgumentParser, group: Any = None) -> Any:
    """Add all other options, and return their group."""
    group = group or command.add_argument_group(_IN)
    text = "whether the first line of tables in text is a header (default: as the file tells)"
    add_option(group, "--header", text, choices=("yes", "no"))
    text = """what may differ between the ids of two files: spaces, case, zeros (before a number),
punctuation, beginning or ending, separated by commas"""
    add_option(group, "--match-ids", text, "NAME,...", names)
    for flag, (metavar, text) in _TEXTS.items():
        add_option(group, flag, text, metavar, action="append", dest=_dest(flag))
    return group


def readings_of(options: Namespace, names: Iterable[str]) -> dict[str, ReadOptions]:
    """How to read the files of these views; options may name all views of the command."""
    names = list(names)
    files = [pair for own in _VIEWS for pair in getattr(options, own, None) or ()]
    known = {*names, *(name for name, _ in files), *_BESIDE}
    for flag in ("--id", *_TEXTS):
        for name in _given(options, flag):
            if name not in ("", *known):
                raise UsageError(
                    f"{flag} {name}: there is no view {name!r}; the views are {', '.join(names)}"
                )
    return {name: reading_of(options, name) for name in names}


def reading_of(options: Namespace, name: str) -> ReadOptions:
    """How to read one file, by the options for all files and for this one."""
    from mvcca.blocks.sources import ReadOptions  # after --help

    found: dict[str, Any] = {}
    for flag in ("--id", *_TEXTS):
        given = _given(options, flag)
        if {name, ""} & given.keys():
            found[_dest(flag)] = given.get(name, given.get(""))
    header = {"yes": True, "no": False}.get(getattr(options, "header", None) or "")
    if header is False and not found.get("id", "1").isdecimal():
        raise UsageError("--id names a column of the header, but --header says that there is none")
    if (kind := found.get("kind", "table")) not in ("texts", "table"):
        raise UsageError(f"--as: expected texts or table, got {kind}")
    if not (n_lines := found.get("skip_lines", "0")).isdecimal():
        raise UsageError(f"--skip-lines: expected a number of lines, got {n_lines}")
    found |= {field: _READ[field](text) for field, text in found.items() if field in _READ}
    match_ids = ",".join(getattr(options, "match_ids", None) or ())
    return ReadOptions(**found, header=header, match_ids=match_ids)


def _given(options: Namespace, flag: str) -> dict[str, str]:
    """The values of an option by the name of their file; that for all files by ""."""
    found: dict[str, str] = {}
    for text in getattr(options, _dest(flag), None) or ():
        name, mark, value = text.partition("=")
        found |= {name: value or "yes"} if mark or flag == "--transpose" else {"": text}
    return found


def reading_words(options: Namespace) -> list[str]:
    """The options as words of another command."""
    found: list[str] = []
    for flag in ("--id", *_TEXTS):
        for text in getattr(options, _dest(flag), None) or ():
            found += [flag, text]
    if how := getattr(options, "match_ids", None):
        found += ["--match-ids", ",".join(how)]
    header = getattr(options, "header", None)
    return found if header is None else [*found, "--header", header]


def ids_in_words(options: Namespace) -> str:
    """The columns of ids, as in "'sample'"."""
    return ", ".join(repr(text) for text in options.id)


def opened(files: Mapping[str, str], options: Namespace, **more: Any) -> dict[str, FileRows]:
    """Open the files of views as the options say, and tell what they are read as."""
    from mvcca.views.files import open_tables  # after --help

    with telling(options) as say:
        return open_tables(files, readings_of(options, files), say=say, **more)


def rows_together(
    tables: Mapping[str, FileRows], options: Namespace
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Matrices whose rows are the same objects, matched by --id or else in order, and the ids."""
    from mvcca.views.files import check_same_order, common_rows  # after --help

    if options.id is not None:
        return common_rows(tables)
    check_same_order(tables.values())
    ids = (table.ids for table in tables.values() if table.ids is not None)
    return {name: table.matrix for name, table in tables.items()}, next(ids, None)


@contextmanager
def telling(options: Namespace) -> Iterator[Callable[[str], None]]:
    """Note what is told on the way once all is well, and keep it for ``--json``."""
    said: list[str] = []
    yield said.append
    options.read = [*getattr(options, "read", ()), *said]
    for line in said:
        note(line)


def _dest(flag: str) -> str:
    """The attribute of the parsed options that holds the values of a flag."""
    return "kind" if flag == "--as" else flag[2:].replace("-", "_")
