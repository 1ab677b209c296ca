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

# What readers ask, and the titles of the pages that answer.
QUESTIONS = {
    "Which method retrieves best?": (
        "What the default methods find",
        "Any views as a query",
        "Many views: pairs, single views and many-to-many",
        "Partly paired views",
        "Vocabularies that differ",
        "CCA of MNIST halves",
        "Linear methods on Wikipedia, Scene and MS-COCO captions",
    ),
    "How should hits be ranked?": (
        "Rankings by expected correlations",
        "Hubs, and probabilities of matches",
    ),
    "Are the defaults good?": (
        "Settings chosen by folds, against the best of the grid",
        "Regret of the comparison's recommendation",
        "Defaults of compare against an exhaustive evaluation",
        "The constraint of MVMLCCA",
        "Missing cells",
        "Defaults of deep methods",
        "How long deep methods train by default, and at which rate",
        "Where networks start",
        "Validation of deep methods",
    ),
    "Can vectors of another model be used?": (
        "Migration of stored vectors, file to file",
        "Alignment of frozen text encoders",
        "Few known pairs, or none",
        "Similarity of representations",
    ),
    "Is a correlation real, and how large is it?": (
        "Correlations to expect on new rows",
        "Coverage of intervals",
        "Time of a permutation test",
    ),
    "Which features matter?": (
        "Sparse methods",
        "Classes from few features of several views",
        "Sparse CCA beside its peers",
    ),
    "How fast is it, and how much memory does it take?": (
        "Comparison with other packages",
        "Speed and memory of the linear family",
        "Data larger than memory",
        "Reading tables in text",
        "Fits and searches on a GPU",
        "Growth",
        "Changing and loading a large index",
        "Label-weighted covariances by the subsets that label sets share",
        "Label methods on wide sparse views",
        "Ridge CCA of wide sparse views",
        "PLS of wide views",
        "JRL of wide views",
        "Single cells from disk",
        "Time of an epoch of deep methods",
        "Time of tuning",
        "What compare costs, and how far its figures hold for new rows",
    ),
}
OTHERS, PAPERS = "What else was measured?", "Which published figures are reproduced?"


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


def menu_of(sections: Iterable[Section]) -> str:
    """Tables of contents of all pages, by question; papers come last."""
    rest = {section.title: section.slug for section in sections}
    groups = {
        question: [rest.pop(title) for title in titles if title in rest]
        for question, titles in QUESTIONS.items()
    }
    papers = [title for title in rest if re.search("[Pp]aper|[Pp]ublished|^Tables and", title)]
    published = [rest.pop(title) for title in papers]
    groups |= {OTHERS: list(rest.values()), PAPERS: published}
    return "\n".join(
        f"### {question}\n\n```{{toctree}}\n:maxdepth: 1\n\n"
        + "".join(f"/generated/results/{slug}\n" for slug in slugs)
        + "```\n"
        for question, slugs in groups.items()
        if slugs
    )


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
