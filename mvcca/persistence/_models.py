"""Saving a model and loading it again."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from typing import Any

from mvcca.machine.archive import ModelFileError, not_ours, read_archive, write_archive
from mvcca.persistence._classes import CLASSES, models_in, with_deep
from mvcca.persistence._described import described
from mvcca.persistence._given import Given
from mvcca.persistence._sklearn import Classes
from mvcca.persistence._values import NotStorable, Reader, Writer
from mvcca.persistence.maps import FORMAT, ranking_of_maps

_KIND = "model"  # other archives are checkpoints


def save(model: Any, path: str | os.PathLike[str], *, statistic: bool = True) -> None:
    """Save a model, fitted or not, to a file that `load` reads.

    The file is a safetensors file of arrays and plain parameters with their checksums. It is
    written under another name and renamed once it is on disk: if writing fails or is interrupted,
    the file that was there before is kept.

    Parameters
    ----------
    model : estimator, pipeline, search or index
        An estimator of `mvcca` or `mvcca.deep`, a `RetrievalIndex`, a `FoldSearchCV`, or
        scikit-learn's `Pipeline`, `GridSearchCV` or `RandomizedSearchCV`. It may hold any
        transformer or linear model of scikit-learn whose attributes are numbers, strings, arrays
        and containers of these.
    path : path
        The file, which is replaced if it exists. The cache of a pipeline (`memory`) is not saved.
    statistic : bool, default=True
        Keep what `partial_fit` has accumulated, so that a loaded model takes the next batch. It is
        as large as the covariance of all features, for `MLCCA` as the rows themselves, for deep
        models two or three times the networks. Without it `partial_fit` starts over; transforming
        is the same.

    Raises
    ------
    TypeError
        If the model holds an object that a file cannot: a function of your own, a tree, an object
        of another library. The message names its place in the model. For networks of your own, the
        tensors are stored, and up to eight training rows with their scores: see `encoders` of
        `load`.
    OSError
        If the file cannot be written.

    See Also
    --------
    load : Load the model again.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_linnerud
    >>> import mvcca
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> path = Path(tempfile.mkdtemp()) / "linnerud.mvcca"
    >>> mvcca.save(mvcca.CCA(2, reg=0.1).fit(X, Y), path)
    >>> mvcca.load(path).canonical_correlations_.round(3)
    array([0.515, 0.101])
    """
    table = with_deep(Given()) if "mvcca.deep" in sys.modules else CLASSES
    classes, models = Classes(table), models_in(table)
    if type(model) not in models:
        raise NotStorable(
            f"save takes a model: one of {', '.join(sorted(cls.__name__ for cls in models))}; got "
            f"{type(model).__module__}.{type(model).__qualname__}."
        )
    writer = Writer(classes, skipped=() if statistic else ("_statistic",))
    try:
        root = writer.encode(model, type(model).__name__)
    except NotStorable as error:
        if "._statistic" in str(error):
            error.add_note("Or save without it: save(model, path, statistic=False).")
        raise
    deep = not writer.kinds.isdisjoint(table.keys() - CLASSES.keys())
    content = {
        "kind": _KIND,
        "format": FORMAT,
        "written by": _versions(deep),
        "deep": deep,
        "description": json.dumps(described(model), default=repr),  # in itself: NaN is allowed
        "ranking of maps": ranking_of_maps(model),
        "model": root,
    }
    write_archive(path, writer.arrays, content)


def load(
    path: str | os.PathLike[str],
    *,
    mmap: bool = False,
    verify: bool = True,
    encoders: Any = None,
    objective: Any = None,
) -> Any:
    """Load a model that `save` wrote.

    Every byte is compared with its checksum, and nothing in the file is executed: it names
    parameters and arrays of known classes. Fitted estimators whose transform is cheap are tried on
    one row, so that a model whose parts do not fit together is refused.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool, default=False
        Leave the galleries of a `RetrievalIndex` in the file: they are read as they are searched,
        and processes that map the same file share its memory. The index can be changed; the file
        must not be, but `save` may replace it.
    verify : bool, default=True
        Compare arrays with their checksums. Together with `mmap`, this reads the whole file;
        without, damage to a gallery goes unnoticed.
    encoders : mapping of str to Module, or sequence of Module, optional
        Your own networks, as they were passed to the deep estimator: files hold no code. The model
        gets copies with the tensors of the file. They must give the scores that the saved ones gave
        to a few training rows, up to rounding.
    objective : callable, optional
        Your own loss, as it was passed to `mvcca.deep.EncoderCCA`.

    Returns
    -------
    estimator, pipeline, search or index
        The model with the same parameters, and on the same machine bitwise the same scores.

    Raises
    ------
    ModelFileError
        If the file is damaged, holds no model, or was written by a later version of mvcca; or if
        your own networks are missing, do not have the tensors of the file, or compute something
        else.
    ValueError
        If `encoders` or `objective` are given and not needed.
    ImportError
        If it holds a deep model, and torch is not installed.
    OSError
        If the file cannot be opened.

    See Also
    --------
    save : Save a model; with an example.
    """
    arrays, content = read_archive(path, _is_of_gallery if mmap else None, verify)
    if content.get("kind") != _KIND or "model" not in content:
        not_ours(path, "was written by mvcca but holds no model (a checkpoint holds none)")
    written_by = content.get("written by", {})
    if not isinstance(written_by, dict) or not all(type(v) is str for v in written_by.values()):
        not_ours(path, "does not say by which versions it was written")
    if (found := content.get("format", 1)) != FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)} holds a model in format {found!r}, written by {written_by}; this "
            f"version reads format {FORMAT}. Load it with the version that wrote it, or fit and "
            "save it again."
        )
    deep = bool(content.get("deep"))
    given = Given(encoders=encoders, objective=objective)
    try:
        table = with_deep(given) if deep else CLASSES
    except ImportError as error:
        raise ImportError(f"{os.fspath(path)} holds a deep model, and {error}") from error
    reader = Reader(Classes(table), arrays)
    try:
        model = reader.decode(content["model"])
    except ModelFileError as error:  # of a network that `encoders` should hold
        raise ModelFileError(f"{os.fspath(path)}: {error}.") from error
    except Exception as error:  # the parts of a forged model raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(
            f"{os.fspath(path)} holds a model that cannot be put together here: {reason}. It was "
            f"written by {written_by}, and this is {_versions(deep)}. Update what "
            "is older; if nothing is, use another copy or fit and save again."
        ) from error
    if type(model) not in models_in(table):
        not_ours(path, f"holds {type(model).__name__}, which is not a model")
    given.refuse_unused(os.fspath(path))
    return model


def _is_of_gallery(name: str) -> bool:
    """Whether an array of a file holds rows of a gallery."""
    return name.startswith("RetrievalIndex.views[") and "]['rows'][" in name


def _versions(deep: bool) -> dict[str, str]:
    libraries = ("mvcca", "scikit-learn", "numpy", *(["torch"] if deep else []))
    return {name: version(name) for name in libraries}
