"""Fits that resume: the checkpoint directory beside a model file.

`mvcca.statistics.passes` saves the state of the fit there. This module records the arguments of
the fit, so that only the same fit resumes it, and creates and removes the directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mvcca.machine.config import config_context
from mvcca.machine.replacing import final_name, replacing
from mvcca.machine.warnings import warn
from mvcca.statistics.passes import checkpoint_until_written, is_pass_file

_ARGUMENTS = "fit.json"  # written first and removed last: it identifies a checkpoint directory
_VERSION = "version of mvcca"  # a key of every such file


@contextmanager
def resumable(
    path: Path, arguments: Mapping[str, Any], *, resume: bool, flag: str = "resume=True"
) -> Iterator[None]:
    """Fit and save a model in the body; after an interruption, the same fit resumes.

    The state of the fit is saved in the directory ``PATH.partial`` after some blocks of rows. It is
    removed at the end of the body, or if it was interrupted before anything was saved.

    Parameters
    ----------
    path : Path
        The model file that the body writes.
    arguments : mapping of str to object
        All that determines the model, in JSON-compatible values; the fit resumes only if they are
        the same, in the same order.
    resume : bool
        Resume the fit, if there is a checkpoint; else start over.
    flag : str, default="resume=True"
        How the user asks to resume, for messages.

    Raises
    ------
    ValueError
        If the directory contains other files, or the checkpoint of a fit with other arguments.
    OSError
        If the directory cannot be written.
    KeyboardInterrupt
        If the body is interrupted; the message says how to resume.

    Warns
    -----
    UserWarning
        If there is nothing to resume.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mvcca
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.persistence import resumable
    >>> path = Path(tempfile.mkdtemp()) / "digits.mvcca"
    >>> views = load_digits_views().views
    >>> with resumable(path, {"n_components": 9}, resume=False):
    ...     mvcca.save(mvcca.CCA(9, reg=0.1).fit(views), path)
    >>> [file.name for file in path.parent.iterdir()]
    ['digits.mvcca']
    """
    folder = path.with_name(f"{path.name}.partial")
    _begin(folder, json.loads(json.dumps({_VERSION: _version(), **arguments})), resume, flag)
    with _kept(folder, flag), config_context(checkpoint=folder), checkpoint_until_written():
        yield


def _begin(folder: Path, arguments: dict[str, Any], resume: bool, flag: str) -> None:
    """Prepare the checkpoint directory for a fit: empty, unless an earlier fit is resumed."""
    if resume and _is_begun(folder):
        _check_same(folder, arguments, flag)
        return
    if resume:
        warn(f"nothing to resume in {folder}: starting over")
    _remove(folder)
    folder.mkdir()
    with replacing(folder / _ARGUMENTS) as file:
        file.write(json.dumps(arguments, indent=2).encode())


@contextmanager
def _kept(folder: Path, flag: str) -> Iterator[None]:
    """Keep the directory if the body fails after saving state; then advise to resume."""
    advice = f"continue with {flag} ({folder})"
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*([advice] if _is_begun(folder) else [])) from None
    except OSError as error:
        if isinstance(error, BrokenPipeError) or not _is_begun(folder):
            raise
        raise OSError(f"{' '.join(str(error).split())}; {advice}") from error
    finally:
        if not _is_begun(folder):
            _remove(folder)


def _is_begun(folder: Path) -> bool:
    """Whether the state of a pass has been saved."""
    return folder.is_dir() and any(map(_is_saved_pass, folder.iterdir()))


def _remove(folder: Path) -> None:
    """Remove the directory, if it exists and contains nothing but a checkpoint."""
    if not folder.exists():
        return
    files = sorted(folder.iterdir())
    arguments = [file for file in files if final_name(file.name) == _ARGUMENTS]
    passes = [file for file in files if is_pass_file(file.name)]
    others = [file for file in files if file not in (*arguments, *passes)]
    if others or (files and not any(map(_is_ours, arguments))):
        raise ValueError(
            f"{folder}: expected a checkpoint, found {(others or files)[0].name}, "
            "which does not belong to one. Move it away, or choose another name of the model"
        )
    for file in (*passes, *arguments):
        file.unlink()
    folder.rmdir()


def _check_same(folder: Path, arguments: dict[str, Any], flag: str) -> None:
    """Refuse to resume a fit with other arguments."""
    try:
        before = json.loads((folder / _ARGUMENTS).read_text(encoding="utf-8"))
        changed = [k for k in {**before, **arguments} if before.get(k) != arguments.get(k)]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{folder}: the arguments of its fit cannot be read; omit {flag} to start over"
        ) from error
    if changed or list(before) != list(arguments):
        what = ", ".join(changed) or "order of views"
        raise ValueError(
            f"{flag}: the fit in {folder} was started with a different {what} (or a "
            f"file has changed since). Repeat it as it was, or omit {flag} to start over"
        )


def _version() -> str:
    from importlib.metadata import version

    return version("mvcca")


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
