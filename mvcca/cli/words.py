"""What a word on the command line may be.

Each function makes a value of a word, or says what was expected.
"""

from __future__ import annotations

import json
import math
from argparse import ArgumentTypeError
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from mvcca.cli.methods import GROUPS, METHODS

__all__ = [
    "method",
    "methods",
    "named_file",
    "names",
    "parameter",
    "positive",
    "positive_int",
    "reg",
    "seed",
    "share",
    "sizes",
    "test_size",
]

_LARGEST = 2**63 - 1  # what whole numbers of the libraries hold
_LARGEST_SEED = 2**32 - 1
_PYTHON = {"None": None, "True": True, "False": False}


def names(text: str) -> tuple[str, ...]:
    """Different names separated by commas."""
    found = tuple(name.strip() for name in text.split(","))
    if not all(found) or len(set(found)) < len(found):
        raise ArgumentTypeError(f"expected different names separated by commas, got {text!r}")
    return found


def method(text: str) -> str:
    """A name in the table of methods."""
    if text not in METHODS:
        raise ArgumentTypeError(f"unknown method {text!r}; known are {', '.join(METHODS)}")
    return text


def methods(text: str) -> tuple[str, ...]:
    """Names in the table of methods, or of groups of them; each once."""
    found = [GROUPS[name] if name in GROUPS else (method(name),) for name in names(text)]
    return tuple(dict.fromkeys(chain(*found)))


def sizes(text: str) -> tuple[int, ...]:
    """Whole numbers separated by commas."""
    return tuple(map(positive_int, text.split(",")))


def share(text: str) -> float:
    """A number above 0 and below 1."""
    value = positive(text)
    if value >= 1:
        raise ArgumentTypeError(f"expected a share below 1, got {text!r}")
    return value


def named_file(text: str) -> tuple[str, str]:
    """NAME=FILE, as the two."""
    name, separator, file = text.partition("=")
    if not (name and separator and file):
        raise ArgumentTypeError(f"expected NAME=FILE, got {text!r}")
    try:
        name.encode()
    except UnicodeEncodeError:  # models, tables and reports hold it as text
        raise ArgumentTypeError(f"expected a name in UTF-8, got {name!r}") from None
    return name, file


def parameter(text: str) -> tuple[str, Any]:
    """NAME=VALUE, as the two: a value of JSON or, where it is none, the word itself."""
    name, separator, word = text.partition("=")
    if not (name and separator and word):
        raise ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    if word in _PYTHON:
        return name, _PYTHON[word]
    for read in (partial(json.loads, parse_int=_whole), float):  # .5 is no number in JSON
        with suppress(ValueError):
            return name, read(word)
    return name, word


def positive(text: str) -> float:
    """A number above 0."""
    value = _number(text)
    if value <= 0:
        raise ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def positive_int(text: str) -> int:
    """A whole number of at least 1."""
    value = _whole(text) if text.isdecimal() else 0
    if value < 1:
        raise ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number that random generators take."""
    value = _whole(text) if text.isdecimal() else -1
    if not 0 <= value <= _LARGEST_SEED:
        raise ArgumentTypeError(
            f"expected a whole number from 0 to {_LARGEST_SEED}, got {_shown(text)}"
        )
    return value


def reg(text: str) -> float | str:
    """A ridge: a number of at least 0, or auto."""
    if text == "auto":
        return text
    value = _number(text)
    if value < 0:
        raise ArgumentTypeError(f"expected a number of at least 0, or auto, got {text!r}")
    return value


def test_size(text: str) -> float | int:
    """A share, or a number of objects."""
    value = positive_int(text) if text.isdecimal() else positive(text)
    if isinstance(value, float) and value >= 1:
        raise ArgumentTypeError(f"expected a share below 1 or a whole number, got {text!r}")
    return value


def _whole(text: str) -> int:
    """A whole number, which is not too large to compute with."""
    value = int(text) if len(text) <= 20 else math.inf  # int refuses thousands of digits
    if abs(value) > _LARGEST:
        raise ArgumentTypeError(f"expected whole numbers below 2**63, got {_shown(text)}")
    return int(value)


def _shown(text: str) -> str:
    """What the user wrote, cut where it is very long."""
    return repr(text) if len(text) <= 40 else f"{text[:20]!r}... ({len(text)} characters)"


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"expected a number, got {text!r}")
    return value
