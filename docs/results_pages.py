"""Pages of raw results, written at build time.

There is a page for each section of ``benchmarks/RESULTS.md``, and for each file of
``benchmarks/results``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Section:
    """A title, and the text of its page, with headings of second level and below."""

    title: str
    text: str

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def sections_of(text: str) -> list[Section]:
    """Sections of a file by its headings of second level, without what precedes the first one."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return [
        Section(title.strip(), re.sub(r"^###", "##", body, flags=re.MULTILINE))
        for title, body in zip(parts[::2], parts[1::2], strict=True)
        if body.strip()
    ]


def whole(file: Path) -> Section:
    """A file as one section, with its own title or its name."""
    text = file.read_text(encoding="utf-8")
    title = re.match(r"# (.+)\n", text)
    if title is None:
        return Section(f"Tables and figures of {file.stem.upper()}", text)
    return Section(title[1], text[title.end() :])


def all_sections(root: Path = ROOT) -> list[Section]:
    """Sections of all files with results, whose links to files lead to the pages of these."""
    folder = root / "benchmarks"
    files = {file.name: whole(file) for file in sorted((folder / "results").glob("*.md"))}
    text = (folder / "RESULTS.md").read_text(encoding="utf-8")
    for name, section in files.items():
        text = text.replace(f"](results/{name})", f"]({section.slug}.md)")
    return [*sections_of(text), *files.values()]


def write_pages(folder: Path, sections: Iterable[Section], labels: Mapping[str, Section]) -> None:
    """Write a page per section, with a target ``table-NAME`` for each chart drawn from it.

    Pages whose text is as it was are not touched, so that Sphinx does not read them again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = set()
    for section in sections:
        targets = [f"(table-{name})=\n" for name, source in labels.items() if source == section]
        text = f"{''.join(targets)}# {section.title}\n\n{section.text.strip()}\n"
        page = folder / f"{section.slug}.md"
        if page in kept:
            raise ValueError(f"Two sections of the results are called {section.title!r}.")
        kept.add(page)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for page in set(folder.glob("*.md")) - kept:
        page.unlink()
