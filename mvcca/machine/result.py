"""`Result`, the base of results: one renderer of tables and figures to terminal, page and frame."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mvcca.machine.optional import optional
from mvcca.machine.pages import template
from mvcca.machine.pictures import Illustration, Picture
from mvcca.machine.printable import in_one_line, printable_json
from mvcca.machine.replacing import replacing
from mvcca.machine.tables import ShownAsTables, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

_WIDTH = 4.1  # inches of a figure on a page


@dataclass(frozen=True)
class Draw:
    """How a figure of a result is drawn, and what a page says of it.

    Attributes
    ----------
    on : callable
        Draws on axes, or on new ones if they are None, and returns them.
    height : float
        Inches on a page.
    caption, source : str
        How to read it, and what it was measured on.
    """

    on: Callable[..., Axes] = field(repr=False)
    height: float = 3.0
    caption: str = ""
    source: str = ""


class Result(ShownAsTables):
    """Base of results, which shows their tables and figures.

    A subclass defines `tables`, of which the first is that of `to_frame`, and may define `figures`,
    of which `plot` draws the first by default, `sentences` and `remarks`. Every number that is
    shown is a cell of one of the tables.
    """

    _text_width: ClassVar[int | None] = None  # characters; wider tables continue below

    def figures(self) -> Mapping[str, Draw]:
        """Return the figures by name."""
        return {}

    def sentences(self) -> Sequence[str]:
        """Return what was found, in words."""
        return ()

    def remarks(self) -> Sequence[str]:
        """Return what to know of how it was found, in words."""
        return ()

    def as_dict(self) -> dict[str, Any]:
        """Return everything that is shown, in JSON-compatible values."""
        tables = [
            {"caption": table.caption, "rows": table.records(), "notes": list(table.notes)}
            for table in self.tables()
        ]
        return {"sentences": self._words(), "tables": tables}

    def to_json(self) -> str:
        """Return `as_dict` as JSON, in which NaN and infinity are null."""
        return printable_json(self.as_dict(), indent=2)

    def to_frame(self) -> DataFrame:
        """Return the first of `tables` as a pandas DataFrame, with nothing rounded.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return frame_of(self.tables()[0])

    def plot(self, ax: Axes | None = None, *, figure: str | None = None, **kwargs: Any) -> Axes:
        """Draw one of the figures.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        figure : str, optional
            A name in `figures`; by default the first.
        **kwargs
            Options of this figure, if it has any.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError
            If there is no such figure.
        ImportError
            If matplotlib is not installed.
        """
        drawn = self.figures()
        name = next(iter(drawn), "") if figure is None else figure
        if name not in drawn:
            known = f"one of {list(drawn)}" if drawn else "none, since this result has no figures"
            raise ValueError(f"Expected figure to be {known}; got {figure!r}.")
        return drawn[name].on(ax, **kwargs)

    def save_page(self, path: str | Path, *, command: str = "") -> None:
        """Write an HTML page, with figures if matplotlib is installed.

        Parameters
        ----------
        path : str or Path
            A name ending in .html.
        command : str, optional
            The command that made it, to be named.

        Raises
        ------
        ValueError
            If the name ends differently.
        """
        path = Path(path)
        if path.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"Expected a name ending in .html, got {str(path)!r}.")
        tables = self.tables()
        page = template("mvcca.machine", "result.html").render(
            title=self._title(),
            sentences=self.sentences(),
            remarks=self.remarks(),
            tables=[part for table in tables if "page" in table.shown for part in table.parts()],
            illustrations=list(self._illustrations()) if find_spec("matplotlib") else [],
            folded=[list(table.parts()) for table in tables if "folded" in table.shown],
            facts=list(_facts(command)),
        )
        with replacing(path) as file:
            file.write(page.encode(errors="backslashreplace"))

    def __str__(self) -> str:
        parts = [_lines(self.sentences())]
        for table in self.tables():
            if "text" in table.shown:
                title = f"{table.caption}\n" if table.has_title else ""
                parts.append(title + table.as_text(self._text_width))
        return "\n\n".join(filter(None, [*parts, _lines(self.remarks())]))

    def _words(self) -> list[str]:
        return [*self.sentences(), *self.remarks()]

    def _title(self) -> str:
        """The title of the page."""
        return next(table.caption for table in self.tables() if "page" in table.shown)

    def _illustrations(self) -> Iterator[Illustration]:
        for name, draw in self.figures().items():
            picture = Picture.of(draw.on, _WIDTH, draw.height)
            yield Illustration(name, [picture], draw.caption, draw.source)


def frame_of(table: Table) -> DataFrame:
    """A table as a pandas DataFrame."""
    pandas = optional("pandas", "to_frame", "pandas")
    frame = pandas.DataFrame([tuple(row) for row in table.values], columns=list(table.names))
    return frame.set_index(list(table.names[: table.index])) if table.index else frame


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(map(in_one_line, texts))


def _facts(command: str) -> Iterator[tuple[str, str]]:
    """Names and values of what made a page."""
    if command:
        yield "command", command
    libraries = ", ".join(f"{name} {version(name)}" for name in ("mvcca", "numpy", "scikit-learn"))
    yield "versions", f"Python {platform.python_version()}, {libraries}"
