"""The checkpoint directory beside a model file, from which an interrupted fit is resumed.

`mvcca.statistics` saves the state of the fit in it. This module saves what the fit was asked to do,
so that only the same command resumes it, and creates and removes the directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mvcca._replacing import final_name, replacing
from mvcca.cli.errors import CommandError, Interrupted, in_one_line
from mvcca.cli.notes import note
from mvcca.passes import is_pass_file

__all__ = ["Checkpoint"]

_ASKED = "fit.json"  # written first and removed last: it tells our folders from others
_VERSION = "version of mvcca"  # in every such file


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
            with replacing(self.folder / _ASKED) as file:
                file.write(json.dumps(asked, indent=2).encode())

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
        """Whether the state of a pass has been saved."""
        return self.folder.is_dir() and any(map(_is_saved_pass, self.folder.iterdir()))

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
            files = sorted(self.folder.iterdir())
            asked = [file for file in files if final_name(file.name) == _ASKED]
            passes = [file for file in files if is_pass_file(file.name)]
            others = [file for file in files if file not in (*asked, *passes)]
            if others or (files and not any(map(_is_ours, asked))):
                raise CommandError(
                    f"{self.folder}: expected a checkpoint, found {(others or files)[0].name}, "
                    "which is no part of one. Move it away, or choose another --output"
                )
            for file in (*passes, *asked):
                file.unlink()
            self.folder.rmdir()

    def _check_same(self, asked: dict[str, Any]) -> None:
        try:
            before = json.loads((self.folder / _ASKED).read_text(encoding="utf-8"))
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


def _is_saved_pass(file: Path) -> bool:
    return is_pass_file(file.name) and final_name(file.name) == file.name


def _is_ours(asked: Path) -> bool:
    """Whether a fit wrote this file, which a killed one may have left incomplete."""
    try:
        return _VERSION in json.loads(asked.read_text(encoding="utf-8"))
    except ValueError:
        return True
    except TypeError:
        return False
