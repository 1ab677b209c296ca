"""Constructors and docstrings of estimators, generated from annotated class attributes."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field, is_dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Generate the constructor of an estimator class and complete its docstring.

    Annotated attributes are parameters; those of the class precede inherited ones in the signature.
    Parameters and attributes missing from the docstring are described as in the parent class.
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    parent = cls.__base__ if is_dataclass(cls.__base__) else object
    inherited = list(inspect.signature(parent).parameters)
    signature = inspect.signature(cls.__init__)
    parameters = sorted(
        signature.parameters.values(),
        key=lambda p: (p.kind, inherited.index(p.name) if p.name in inherited else -1),
    )
    cls.__init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    if cls.__doc__:  # none under python -OO
        cls.__doc__ = _completed(cls.__doc__, parent.__doc__ or "", [p.name for p in parameters])
    return cls


def _completed(doc: str, parent_doc: str, parameters: list[str]) -> str:
    """The docstring with the entries of its parent's sections Parameters and Attributes."""
    sections, inherited = _sections(doc), _sections(parent_doc)
    parts = [sections.pop("")]
    for title in ("Parameters", "Attributes"):
        own, others = (_entries(s.pop(title, "")) for s in (sections, inherited))
        entries = own | {name: entry for name, entry in others.items() if name not in own}
        if title == "Parameters":
            entries = {name: entries[name] for name in parameters if name in entries}
        parts.append("\n".join([title, "-" * len(title), *entries.values()]))
    parts += ["\n".join([title, "-" * len(title), text]) for title, text in sections.items()]
    return "\n\n".join(parts) + "\n"


def _sections(doc: str) -> dict[str, str]:
    """Sections of a numpydoc docstring by title; the text before the first one has the title ""."""
    text, *sections = re.split(r"\n\n(?=[^\n]+\n-{3,}\n)", inspect.cleandoc(doc))
    return {"": text, **{title: rest for title, _, rest in (s.split("\n", 2) for s in sections)}}


def _entries(section: str) -> dict[str, str]:
    """Entries of a section by name: lines that are not indented, with what follows them."""
    entries = re.split(r"\n(?=\S)", section) if section else []
    return {entry.split(" ", 1)[0]: entry for entry in entries}
