"""Options whose help states the default, and the conversion of their values from text."""

from __future__ import annotations

import json
import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from mvcca.comparison.registry import METHODS, selected, unknown

_LARGEST = 2**63 - 1  # what the libraries' integers can hold
_LARGEST_SEED = 2**32 - 1
_SHORT_CHOICES = 20  # characters up to which choices are shown in place of a name
_PYTHON = {"None": None, "True": True, "False": False}


def add_option(
    group: Any,  # a parser, or a group of its options
    flags: str,
    text: str,
    metavar: str | None = None,
    kind: Callable[[str], Any] | None = None,
    *,
    default: Any = None,
    choices: Sequence[Any] = (),
    **more: Any,
) -> None:
    """Add an option, whose help states the default; without `metavar` it takes no value.

    Many choices are listed in the text.
    """
    if default is not None and default is not False and default != []:
        text += f" (default: {_shown(default)})"
    if choices:
        more |= {"choices": choices, "type": kind or str.lower}
        if len(",".join(map(str, choices))) > _SHORT_CHOICES:
            more["metavar"] = "NAME"
            text = f"{', '.join(choices[:-1])} or {choices[-1]}: {text}"
    elif metavar is not None:
        more |= {"metavar": metavar, "type": kind}
    elif "action" not in more:
        default, more["action"] = False, "store_true"
    group.add_argument(*flags.split(), default=default, help=text.replace("%", "%%"), **more)


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(default)
    return "yes" if default is True else str(default)


def names(text: str) -> tuple[str, ...]:
    """Distinct names of methods or measures in lower case, separated by commas."""
    return _distinct(text.lower())


def _distinct(text: str) -> tuple[str, ...]:
    """Distinct words separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise ArgumentTypeError(f"expected distinct names separated by commas, got {text!r}")
    return found


def weighting(text: str) -> str | None:
    """A weighting of components, or None for plain scores."""
    text = text.lower()
    if text in ("auto", "none"):
        return None if text == "none" else text
    from mvcca.retrieval.ranking import checked_weighting  # after --help

    try:
        checked_weighting(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return text


def method(text: str) -> str:
    """The name of a method."""
    if text.lower() not in METHODS:
        raise ArgumentTypeError(unknown(text, list(METHODS)))
    return text.lower()


def methods(text: str) -> tuple[str, ...]:
    """Names of methods or of groups of methods."""
    found = names(text)
    try:
        selected(found)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error
    return found


def sizes(text: str) -> tuple[int, ...]:
    """Positive integers separated by commas."""
    return tuple(map(positive_int, text.split(",")))


def fraction(text: str) -> float:
    """A number above 0 and below 1."""
    value = positive(text)
    if value >= 1:
        raise ArgumentTypeError(f"expected a fraction below 1, got {text!r}")
    return value


def named_file(text: str) -> tuple[str, str]:
    """NAME=FILE, as a pair."""
    name, file = _pair(text, "NAME=FILE")
    try:
        name.encode()
    except UnicodeEncodeError:  # models, tables and reports store names as text
        raise ArgumentTypeError(f"expected a name in UTF-8, got {name!r}") from None
    return name, file


def parameter(text: str) -> tuple[str, Any]:
    """NAME=VALUE, as a pair; a value that is not JSON is a string."""
    name, word = _pair(text, "NAME=VALUE")
    if word in _PYTHON:
        return name, _PYTHON[word]
    for read in (partial(json.loads, parse_int=_integer), float):  # JSON does not allow .5
        with suppress(ValueError):
            return name, read(word)
    return name, word


def parameter_values(text: str) -> tuple[str, list[Any]]:
    """NAME=VALUE, as a pair with all values: those of a JSON list, or separated by commas."""
    name, value = parameter(text)
    if isinstance(value, list) and value:
        return name, value
    if isinstance(value, str) and "," in value and value[0] not in "{[":
        return name, [parameter(f"{name}={word}")[1] for word in _distinct(value)]
    return name, [value]


def positive(text: str) -> float:
    """A number above 0."""
    value = _number(text)
    if value <= 0:
        raise ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def positive_int(text: str) -> int:
    """An integer of at least 1."""
    return _integer_within(text, 1, _LARGEST, "of at least 1")


def seed(text: str) -> int:
    """A seed of a random generator."""
    return _integer_within(text, 0, _LARGEST_SEED, f"from 0 to {_LARGEST_SEED}")


def reg(text: str) -> float | str:
    """A ridge: a number of at least 0, "auto" or "oas"."""
    return (
        text.lower() if text.lower() in ("auto", "oas") else non_negative(text, " or auto or oas,")
    )


def non_negative(text: str, other: str = "") -> float:
    """A number of at least 0."""
    value = _number(text)
    if value < 0:
        raise ArgumentTypeError(f"expected a number of at least 0,{other} got {text!r}")
    return value


def folds(text: str) -> float | int:
    """A number of folds of at least 2, or the fraction of a single held-out part."""
    value = positive_int(text) if text.isdecimal() else fraction(text)
    if value == 1:
        raise ArgumentTypeError("expected at least 2 folds, or a fraction below 1, got '1'")
    return value


def _pair(text: str, form: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator and value):
        raise ArgumentTypeError(f"expected {form}, got {text!r}")
    return name, value


def _integer_within(text: str, least: int, most: int, what: str) -> int:
    value = _integer(text) if text.isdecimal() else -1
    if not least <= value <= most:
        raise ArgumentTypeError(f"expected an integer {what}, got {_cut(text)}")
    return value


def _integer(text: str) -> int:
    value = int(text) if len(text) <= 20 else math.inf  # int refuses thousands of digits
    if abs(value) > _LARGEST:
        raise ArgumentTypeError(f"expected integers below 2**63, got {_cut(text)}")
    return int(value)


def _cut(text: str) -> str:
    """The user's text, truncated if it is very long."""
    return repr(text) if len(text) <= 40 else f"{text[:20]!r}... ({len(text)} characters)"


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"expected a number, got {text!r}")
    return value
