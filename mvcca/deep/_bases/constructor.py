"""Constructors and docstrings of estimators, generated from annotated class attributes."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, is_dataclass
from functools import reduce
from operator import or_
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Generate the constructor of an estimator class and complete its docstring.

    Annotated attributes are parameters; those of the class precede inherited ones in the signature.
    Parameters and attributes missing from the docstring are described as in the parent classes,
    with the defaults of the class, and constraints of parameters are added to theirs.
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    parents = [base for base in cls.__bases__ if is_dataclass(base)]
    inherited = [name for base in parents for name in inspect.signature(base).parameters]
    signature = inspect.signature(cls.__init__)
    parameters = sorted(
        signature.parameters.values(),
        key=lambda p: (p.kind, inherited.index(p.name) if p.name in inherited else -1),
    )
    cls.__init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    constraints = [vars(base).get("_parameter_constraints", {}) for base in reversed(cls.__mro__)]
    cls._parameter_constraints = reduce(or_, constraints)  # type: ignore[attr-defined]
    for base in parents if cls.__doc__ else ():  # none under python -OO
        cls.__doc__ = _completed(str(cls.__doc__), base, parameters)
    return cls


def _completed(doc: str, parent: type, parameters: list[inspect.Parameter]) -> str:
    """The docstring with the entries of its parent's sections Parameters and Attributes."""
    sections, inherited = _sections(doc), _sections(parent.__doc__ or "")
    of_parent = inspect.signature(parent).parameters
    parts = [sections.pop("")]
    for title in ("Parameters", "Attributes"):
        own, others = (_entries(s.pop(title, "")) for s in (sections, inherited))
        entries = own | {name: entry for name, entry in others.items() if name not in own}
        if title == "Parameters":
            for p in parameters:
                if p.name in entries.keys() - own and p.default != of_parent[p.name].default:
                    entries[p.name] = _with_default(entries[p.name], p.default)
            entries = {p.name: entries[p.name] for p in parameters if p.name in entries}
        parts.append("\n".join([title, "-" * len(title), *entries.values()]))
    parts += ["\n".join([title, "-" * len(title), text]) for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _with_default(entry: str, default: object) -> str:
    """The entry of a parameter with another default."""
    header, *rest = entry.split("\n", 1)
    text = f'"{default}"' if isinstance(default, str) else repr(default)
    return "\n".join([re.sub(r"default=.*", f"default={text}", header), *rest])


def _sections(doc: str) -> dict[str, str]:
    """Sections of a numpydoc docstring by title; the text before the first one has the title ""."""
    text, *sections = re.split(r"\n\n(?=[^\n]+\n-{3,}\n)", inspect.cleandoc(doc))
    return {"": text, **{title: rest for title, _, rest in (s.split("\n", 2) for s in sections)}}


def _entries(section: str) -> dict[str, str]:
    """Entries of a section by name: lines that are not indented, with what follows them."""
    entries = re.split(r"\n(?=\S)", section) if section else []
    return {entry.split(" ", 1)[0]: entry for entry in entries}
