"""Elements of a self-contained HTML page; all of them escape their text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --faint: #69707a; --line: #d9dde2;
        --page: #fff; --best: #e8f3ee; --right: #1a7f5a; --wrong: #d9480f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --faint: #9aa3ad; --line: #3a4048; --page: #16191d; --best: #1d3329;
          --right: #4cc394; --wrong: #ff8a50; } }
body { max-width: 62rem; margin: 2.5rem auto; padding: 0 1.25rem; color: var(--ink);
       background: var(--page); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.8rem 0 .4rem; }
p, figcaption, li { max-width: 46rem; }
.about, figcaption, .notes, footer { color: var(--faint); font-size: .9rem; }
.about { margin: .1rem 0; }
table { border-collapse: collapse; margin: .9rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .8rem; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
th { font-weight: 600; border-bottom: 2px solid var(--line); }
th:nth-child(-n+2), td:nth-child(-n+2), td.reason, table.facts td { text-align: left; }
td.reason, tr.chance td { color: var(--faint); }
td.reason, table.facts td { white-space: normal; }
tr.best { background: var(--best); font-weight: 600; }
tr.direction td { color: var(--faint); font-size: .88rem; border-bottom-style: dotted; }
table.facts td:first-child { color: var(--faint); vertical-align: top; white-space: nowrap; }
code { font-size: .88em; overflow-wrap: anywhere; }
figure { margin: 0 0 1.6rem; }
figure img { max-width: 100%; background: #fff; border-radius: 6px; padding: .4rem;
             box-sizing: border-box; }
.scroll { overflow-x: auto; }
ol.found { margin: .2rem 0 1.1rem; padding-left: 1.6rem; }
ol.found li::marker { color: var(--faint); }
.right { color: var(--right); } .wrong { color: var(--wrong); }
details { margin: .4rem 0 1rem; } summary { cursor: pointer; color: var(--faint); }
""".strip()

_HTML = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def page(title: str, parts: Iterable[str]) -> str:
    """The whole page."""
    body = "\n".join(part for part in parts if part)
    return _HTML.format(title=escape(title), style=_STYLE, body=body)


def heading(level: int, text: str) -> str:
    """A heading, with a capital letter."""
    return f"<h{level}>{escape(text[0].upper() + text[1:])}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>'


def items(texts: Iterable[str], *, numbered: bool = False) -> str:
    """A list of notes in small print; empty without notes."""
    tag = "ol" if numbered else "ul"
    lines = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<{tag} class="notes">{lines}</{tag}>' if lines else ""


def cell(text: str, *, tag: str = "td", kind: str = "", span: int = 1) -> str:
    """A cell of a table."""
    return f'<{tag} class="{kind}" colspan="{span}">{escape(text)}</{tag}>'


def row(texts: Sequence[str], *, tag: str = "td", kind: str = "") -> str:
    """A row of plain cells."""
    return f'<tr class="{kind}">{"".join(cell(text, tag=tag) for text in texts)}</tr>'


def table(rows: Iterable[str], kind: str = "") -> str:
    """A table that scrolls if it is wider than the page."""
    lines = "\n".join(rows)
    return f'<div class="scroll"><table class="{kind}">\n{lines}\n</table></div>'


def folded(summary: str, parts: Iterable[str]) -> str:
    """Content that is shown when the summary is clicked."""
    content = "\n".join(parts)
    return f"<details><summary>{escape(summary)}</summary>\n{content}\n</details>"


def figure(address: str, width: int, caption: str) -> str:
    """An image with a width in pixels and a caption."""
    text = escape(caption)
    image = f'<img src="{address}" width="{width}" alt="{text}">'
    return f"<figure>{image}\n<figcaption>{text}</figcaption></figure>"
