"""Options made of the parameters of public functions.

The numpydoc entry of a parameter gives its name, type, choices, default and help. It is read from
the source: to import the function would load scikit-learn, which takes a second, for ``--help``.
Tests compare the entries with the signature.
"""

from __future__ import annotations

import ast
import re
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Collection
from functools import cache
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any, NamedTuple

from mvcca.cli import values

# Flags that are not the name of their parameter without "n_".
_FLAGS = {"query": "query-view", "random_state": "seed", "rank_gaussian": "rank"}
# Metavariables and converters of types in docstrings, the most special first.
_TYPES: dict[str, tuple[str | None, Callable[[str], Any] | None]] = {
    "int": ("N", values.positive_int),
    "float between 0 and 1": ("F", values.fraction),
    "float": (None, values.non_negative),
    "positive float": (None, values.positive),
    "str or iterable of str": ("NAME,...", values.names),
    "str": ("NAME", None),
}


class Parameter(NamedTuple):
    """A parameter as its docstring describes it."""

    name: str
    type: str
    default: Any
    text: str


@cache
def parameters_of(path: str) -> dict[str, Parameter]:
    """The parameters of a function or class, such as ``mvcca.inspection.study``."""
    text = _docstring(*path.rsplit(".", 1))
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", text, re.DOTALL | re.MULTILINE)
    entries = re.split(r"^(\w.*?) : (.*)$", section[1] if section else "", flags=re.MULTILINE)
    found = {}
    for names, kind, words in zip(entries[1::3], entries[2::3], entries[3::3], strict=True):
        kind, _, default = kind.partition(", default=")
        value = ast.literal_eval(default) if default else None
        for name in names.split(", "):
            found[name] = Parameter(name, kind, value, " ".join(words.split()))
    return found


def add_parameters(
    command: ArgumentParser, group: Any, path: str, *names: str, left: Collection[str] = ()
) -> None:
    """Add an option for each of these parameters of a function.

    Without `names`, they are all that the command has no option for, but those in `left`. Parsed
    options have the names of the parameters.
    """
    added = command.get_default("chosen") or []
    there = {*left, *(action.dest for action in command._actions)}
    known = parameters_of(path)
    for name in names or [name for name in known if name not in there]:
        _add_parameter(group, known[name])
        added = [*added, name]
    command.set_defaults(chosen=added)


def chosen(options: Namespace) -> dict[str, Any]:
    """The values of the options that `add_parameters` made, by parameter."""
    return {name: getattr(options, name) for name in options.chosen}


def _add_parameter(group: Any, of: Parameter) -> None:
    flag = _FLAGS.get(of.name, of.name.removeprefix("n_").replace("_", "-"))
    text, default = _help(of.text), of.default
    metavar: str | None = None
    kind: Callable[[str], Any] | None = None
    more: dict[str, Any] = {}
    if of.name == "random_state":  # a command prints the same figures every time
        metavar, kind, default = "N", values.seed, of.default or 0
    elif choices := re.match(r"\{(.*?)\}", of.type):
        more["choices"] = [ast.literal_eval(one) for one in choices[1].split(", ")]
        if any(isinstance(one, int) for one in more["choices"]):
            kind = _number_or_word
    elif of.type.startswith("bool"):
        if default is not False:
            more["action"] = BooleanOptionalAction
    else:
        known = [_TYPES[one] for one in _TYPES if re.match(rf"{one}\b", of.type)]
        if not known:
            raise LookupError(f"{of.name}: no option has the type {of.type!r}")
        metavar, kind = known[0]
        metavar = metavar or flag.upper()
        if "sequence of float" in of.type:
            more["nargs"] = "+"
        if kind is values.names:
            text += ", separated by commas"
    values.add_option(
        group, f"--{flag}", text, metavar, kind, default=default, dest=of.name, **more
    )


def _number_or_word(text: str) -> int | str:
    return int(text) if text.isdigit() else text.lower()


def _help(text: str) -> str:
    """The first sentence of a description, and what is so by default, as an option says them."""
    text = re.sub(r"(?<!`)`([a-z]+)`", r"--\1", text)
    text = re.sub(r"``?(?:mvcca\.)?(.*?)``?", r"\1", text)
    default = re.search(r"[.;] [Bb]y default (.*?)(?=[;:]|\.(?: |$)|$)", text)
    first = re.split(r"; by default |\.(?: |$)", text.removeprefix("Whether to "))[0]
    first = first if first[1:2].isupper() else first[0].lower() + first[1:]
    if default is None:
        return first
    start = f"{first[:-1]}; " if first.endswith(")") else f"{first} ("
    return f"{start}default: {default[1]})"


def _docstring(module: str, name: str) -> str:
    try:
        return ast.get_docstring(_definition(module, name)) or ""
    except OSError:  # no sources, as in a frozen application
        return getdoc(getattr(import_module(module), name)) or ""


def _definition(module: str, name: str) -> ast.ClassDef | ast.FunctionDef:
    """The definition that a module has, or imports, under a name."""
    place = Path(__file__).parents[2].joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return _definition(str(node.module), name)
    raise LookupError(f"{module} has no {name}")
