"""The folder beside a model file in which an interrupted fit waits to be gone on with.

What is added up is kept in it by `mvcca.statistics`; here is what the fit was asked to do, so that
it is gone on with by the same command alone, and how the folder comes and goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvcca.cli.errors import CommandError, Interrupted, in_one_line
from mvcca.cli.notes import note

__all__ = ["Checkpoint"]

# The second is of a process that was killed; the last says to the end what the others are of.
_OURS = ("pass*.mvcca", ".*.part", "fit.json")


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of the fit of one model file."""

    folder: Path

    @classmethod
    def beside(cls, model: Path) -> Checkpoint:
        """The folder of a model file: its name and ``.partial``."""
        return cls(model.with_name(f"{model.name}.partial"))

    def begin(self, asked: dict[str, Any], resume: bool) -> None:
        """Make the folder ready for a fit, empty unless an earlier fit is gone on with.

        Parameters
        ----------
        asked : dict
            All that decides what comes out, by the words of the command line.
        resume : bool
            Whether to go on with the earlier fit.

        Raises
        ------
        CommandError
            If the earlier fit was asked something else, or the folder cannot be used.
        """
        asked = json.loads(json.dumps(asked, default=str))
        if resume and self.is_begun:
            self._check_same(asked)
            return
        if resume:
            note(f"there is nothing in {self.folder} to go on from: starting over")
        self.remove()
        with in_one_line(f"{self.folder}: "):
            self.folder.mkdir()
            (self.folder / "fit.json").write_text(json.dumps(asked, indent=2), encoding="utf-8")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Around fit and writing: cut short, they leave the folder, unless there is nothing in it.

        Raises
        ------
        Interrupted
            On Ctrl-C, with the advice to resume.
        CommandError
            If a file cannot be read or written, a disk being full for one, with the same advice.
        """
        advice = f"go on with --resume ({self.folder})"
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted(advice if self.is_begun else "") from None
        except OSError as error:
            if isinstance(error, BrokenPipeError) or not self.is_begun:
                raise
            raise CommandError(f"{' '.join(str(error).split())}; {advice}") from error
        finally:
            if not self.is_begun:
                self.remove()

    @property
    def is_begun(self) -> bool:
        """Whether some of the rows have been added up and kept."""
        return any(self.folder.glob("pass*.mvcca"))

    def remove(self) -> None:
        """Remove the folder, if there is one.

        Raises
        ------
        CommandError
            If it holds other things than a checkpoint.
        """
        if not self.folder.exists():
            return
        with in_one_line(f"{self.folder}: "):
            ours = list(self._files())
            others = sorted(set(self.folder.iterdir()) - set(ours))
            if others:
                raise CommandError(
                    f"{self.folder}: expected a checkpoint, found {others[0].name}, which is no "
                    "part of one. Move it away, or choose another --output"
                )
            for file in ours:
                file.unlink()
            self.folder.rmdir()

    def _files(self) -> Iterator[Path]:
        for pattern in _OURS:
            yield from self.folder.glob(pattern)

    def _check_same(self, asked: dict[str, Any]) -> None:
        try:
            before = json.loads((self.folder / "fit.json").read_text(encoding="utf-8"))
            changed = [key for key in {**before, **asked} if before.get(key) != asked.get(key)]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CommandError(
                f"{self.folder}: it does not say which fit it is of; leave out --resume to start "
                "over"
            ) from error
        if changed or list(before) != list(asked):
            what = ", ".join(changed) or "order of views"
            raise CommandError(
                f"--resume: the fit in {self.folder} was begun with another {what} (a file may "
                "have changed since). Give the same, or leave out --resume to start over"
            )
