"""Links in HDF5 files: none is followed into another file, and errors name those in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mvcca.blocks.sources._row_source import SourceError

__all__ = ["links_in_words", "reject_links", "reject_other_files"]

_COPY = "Copy them into a data set: file.create_dataset(name, data=old[:])."


def links_in_words(file: Any) -> str:
    """What the links of a file lead to, as sentences that follow an error; "" without links."""
    groups = {"": file}
    file.visititems(lambda name, item: groups.update({f"{name}/": item}))
    found = [
        f" {_link_in_words(prefix + name, link, file)}"
        for prefix, group in groups.items()
        for name, link in _links_of(group)
    ]
    return "".join(found[:3]) + (f" There are {len(found)} links." if len(found) > 3 else "")


def reject_links(name: str, group: Any, key: str) -> None:
    """Raise if a path in a group leads into another file or to nothing; `name` names the file."""
    parts = key.strip("/").split("/")
    for number, part in enumerate(parts, start=1):
        link = dict(_links_of(group)).get(part)
        inner = None if link is not None and _is_external(link) else group.get(part)
        if inner is None and link is not None:
            message = _link_in_words("/".join(parts[:number]), link, group.file)
            raise SourceError(f"{name}: {message}")
        if not hasattr(inner, "keys"):
            return
        group = inner


def reject_other_files(name: str, array: Any) -> None:
    """Raise if the numbers of a data set are stored in other files."""
    if array.external or array.is_virtual:
        raise SourceError(
            f"{name}: its numbers are in other files, which are not followed. {_COPY}"
        )


def _links_of(group: Any) -> Iterator[tuple[str, Any]]:
    """Soft and external links of a group; none of a data set."""
    for name in group if hasattr(group, "keys") else ():
        link = group.get(name, getlink=True)
        if hasattr(link, "path"):
            yield name, link


def _is_external(link: Any) -> bool:
    return hasattr(link, "filename")


def _link_in_words(name: str, link: Any, file: Any) -> str:
    if _is_external(link):
        return (
            f"{name!r} is a link to {link.path!r} in {link.filename!r}; links to other files are "
            f"not followed. {_COPY}"
        )
    if file.get(link.path) is None:
        return f"{name!r} is a link to {link.path!r}, which is not in the file."
    return f"{name!r} is a link to {link.path!r}; name that."
