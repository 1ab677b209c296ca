"""The checkpoint directory beside a model file, from which an interrupted fit is resumed.

`mvcca.statistics` saves the state of the fit there. This module records the arguments of the fit,
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
from mvcca.cli.console import note
from mvcca.cli.errors import CommandError, Interrupted, in_one_line
from mvcca.passes import is_pass_file

_ARGUMENTS = "fit.json"  # written first and removed last: it identifies a checkpoint directory
_VERSION = "version of mvcca"  # a key of every such file


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint directory of one model file."""

    folder: Path

    @classmethod
    def beside(cls, model: Path) -> Checkpoint:
        """The directory of a model file: its name with the suffix ``.partial``."""
        return cls(model.with_name(f"{model.name}.partial"))

    def begin(self, arguments: dict[str, Any], resume: bool) -> None:
        """Prepare the directory for a fit: empty, unless an earlier fit is resumed.

        `arguments` are all that determines the model, named as on the command line.
        """
        arguments = json.loads(json.dumps(arguments, default=str))
        if resume and self.is_begun:
            self._check_same(arguments)
            return
        if resume:
            note(f"nothing to resume in {self.folder}: starting over")
        self.remove()
        with in_one_line(f"{self.folder}: "):
            self.folder.mkdir()
            with replacing(self.folder / _ARGUMENTS) as file:
                file.write(json.dumps(arguments, indent=2).encode())

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the directory if the body fails after saving state; then advise to resume."""
        advice = f"continue with --resume ({self.folder})"
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
        """Remove the directory, if it exists and contains nothing but a checkpoint."""
        if not self.folder.exists():
            return
        with in_one_line(f"{self.folder}: "):
            files = sorted(self.folder.iterdir())
            arguments = [file for file in files if final_name(file.name) == _ARGUMENTS]
            passes = [file for file in files if is_pass_file(file.name)]
            others = [file for file in files if file not in (*arguments, *passes)]
            if others or (files and not any(map(_is_ours, arguments))):
                raise CommandError(
                    f"{self.folder}: expected a checkpoint, found {(others or files)[0].name}, "
                    "which does not belong to one. Move it away, or choose another --output"
                )
            for file in (*passes, *arguments):
                file.unlink()
            self.folder.rmdir()

    def _check_same(self, arguments: dict[str, Any]) -> None:
        try:
            before = json.loads((self.folder / _ARGUMENTS).read_text(encoding="utf-8"))
            changed = [k for k in {**before, **arguments} if before.get(k) != arguments.get(k)]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise CommandError(
                f"{self.folder}: the arguments of its fit cannot be read; omit --resume to start "
                "over"
            ) from error
        if changed or list(before) != list(arguments):
            what = ", ".join(changed) or "order of views"
            raise CommandError(
                f"--resume: the fit in {self.folder} was started with a different {what} (or a "
                "file has changed since). Repeat the command, or omit --resume to start over"
            )


def _is_saved_pass(file: Path) -> bool:
    return is_pass_file(file.name) and final_name(file.name) == file.name


def _is_ours(arguments: Path) -> bool:
    """Whether a fit wrote this file; a killed fit may have left it incomplete."""
    try:
        return _VERSION in json.loads(arguments.read_text(encoding="utf-8"))
    except ValueError:
        return True
    except TypeError:
        return False
