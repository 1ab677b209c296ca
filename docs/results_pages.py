"""Pages of raw results, written at build time: a page per section of the files in `benchmarks`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Section:
    """A heading of second level, and the text below it."""

    title: str
    text: str

    @property
    def slug(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


def sections_of(text: str) -> list[Section]:
    """Sections of a file, without what precedes the first one."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return [
        Section(title.strip(), body)
        for title, body in zip(parts[::2], parts[1::2], strict=True)
        if body.strip()
    ]


def all_sections(root: Path = ROOT) -> list[Section]:
    """Sections of all files with results."""
    files = [
        root / "benchmarks" / "RESULTS.md",
        *sorted((root / "benchmarks" / "results").glob("*.md")),
    ]
    return [section for file in files for section in sections_of(file.read_text(encoding="utf-8"))]


def write_pages(folder: Path, sections: Iterable[Section], labels: Mapping[str, Section]) -> None:
    """Write a page per section, with a target ``table-NAME`` for each chart drawn from it.

    Pages whose text is as it was are not touched, so that Sphinx does not read them again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kept = set()
    for section in sections:
        targets = [f"(table-{name})=\n" for name, source in labels.items() if source == section]
        body = re.sub(r"^###", "##", section.text, flags=re.MULTILINE)
        text = f"{''.join(targets)}# {section.title}\n{body}"
        page = folder / f"{section.slug}.md"
        if page in kept:
            raise ValueError(f"Two sections of the results are called {section.title!r}.")
        kept.add(page)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
    for page in set(folder.glob("*.md")) - kept:
        page.unlink()
