"""Every estimator on a frozen set of inputs: what it learned, as arrays to compare with older ones.

`python tests/frozen_models.py REFERENCE.npz` compares the models of this version with a reference
and prints what differs; with `--write` it writes one. Only the public interface is used, so that
any version of the package can be compared with any other.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    Views,
    config_context,
)

WIDTHS = {"image": 6, "text": 5, "sound": 4}
WIDE = {"image": 34, "text": 29, "sound": 26}
N, N_WIDE = 60, 24
LABELS = np.array([[code >> bit & 1 for bit in range(4)] for code in range(1, 16)] * (N // 15))

ESTIMATORS: dict[str, Any] = {
    "CCA": CCA(reg=0),
    "CCA ridge": CCA(reg=0.1),
    "CCA auto": CCA(reg="auto"),
    "MVCCA": MVCCA(reg=0),
    "MVCCA ridge, power": MVCCA(reg=0.1, power=2.0),
    "MVCCA auto": MVCCA(reg="auto"),
    "MVCCA ridge per view": MVCCA(reg={"image": 0.3, "text": 0.01, "sound": 0.1}),
    "PLS": PLS(),
    "PLS scale": PLS(scale=True),
    "PLS canonical": PLS(algorithm="canonical"),
    "PLS regression": PLS(algorithm="regression", scale=True),
    "CFA": CFA(),
    "MLCCA": MLCCA(reg=0),
    "MLCCA ridge": MLCCA(reg=0.1, sigma=0.7),
    "MLCCA auto": MLCCA(reg="auto"),
    "MLCCA cosine": MLCCA(label_similarity="cosine", power=2.0),
    "MLCCA equal": MLCCA(label_similarity="equal"),
    "MLCCA means": MLCCA(label_similarity="equal", weighting="means"),
    "MLCCA neighbors": MLCCA(n_neighbors=5, random_state=0),
    "MLCCA fourier": MLCCA(label_features="fourier", n_label_features=60, random_state=0),
    "MLCCA nystroem": MLCCA(label_features="nystroem", n_label_features=9, random_state=0),
    "MVMLCCA": MVMLCCA(reg=0, within="label"),
    "MVMLCCA ridge": MVMLCCA(reg=0.1, label_similarity="exp", within="label"),
    "MVMLCCA auto": MVMLCCA(reg="auto", within="label"),
    "MVMLCCA sample": MVMLCCA(within="sample", sigma=0.7),
    "MVMLCCA cosine": MVMLCCA(label_similarity="cosine", within="sample"),
    "MVMLCCA fourier": MVMLCCA(
        label_features="fourier", n_label_features=60, random_state=0, within="label"
    ),
    "MVMLCCA nystroem": MVMLCCA(
        label_features="nystroem", n_label_features=9, within="sample", random_state=0
    ),
    "LGCFL": LGCFL(scale=False),
    "LGCFL groups": LGCFL(scale=False, groups={"image": [0, 0, 1, 1, 2, 2]}),
    "JRL": JRL(n_neighbors=5),
    "CMOLRS": CMOLRS(n_epochs=2, random_state=0),
    "KCCA": KCCA(),
    "KCCA ridge": KCCA(gamma=0.005, reg=0.1),
    "KCCA linear": KCCA(kernel="linear"),
    "KCCA poly": KCCA(kernel="poly", gamma=0.01, degree=2),
    "KCCA fourier": KCCA(gamma=0.005, approximation="fourier", n_landmarks=20, random_state=0),
    "KCCA nystroem": KCCA(approximation="nystroem", n_landmarks=20, random_state=0),
    "KCCA cholesky": KCCA(approximation="cholesky", n_landmarks=20),
    "NCCA": NCCA(n_neighbors=8, random_state=0),
}


# ---- inputs --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Input:
    """Arguments of one call of `fit`, or of several of `partial_fit`, and rows to project."""

    batches: list[tuple[Any, Any]]
    probe: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    method: str = "fit"
    block_rows: int | None = None


def _blocks(widths: Mapping[str, int], n: int, max_views: int | None) -> dict[str, np.ndarray]:
    """Views that share what their labels say and more, with components well apart."""
    rng = np.random.default_rng(3)
    latent = LABELS[:n] @ np.diag([4.0, 3.0, 2.0, 1.5]) + rng.standard_normal((n, 4))
    blocks = {
        name: latent @ rng.standard_normal((4, d)) + rng.standard_normal((n, d)) + 1
        for name, d in widths.items()
    }
    return dict(list(blocks.items())[:max_views])


def _max_views(estimator: Any) -> int | None:
    deflating = getattr(estimator, "algorithm", "svd") != "svd"
    return 2 if deflating else estimator.requires.views[1]


def _labels(estimator: Any, labels: Any = LABELS) -> Any:
    return labels if estimator.requires.labels else None


def _dense(estimator: Any, _: Path, widths: Mapping[str, int] = WIDTHS, n: int = N) -> Input:
    X = _blocks(widths, n, _max_views(estimator))
    return Input([(X, _labels(estimator, LABELS[:n]))], {name: B[:4] for name, B in X.items()})


def _mapped(change: Callable[[np.ndarray], Any]) -> Callable[[Any, Path], Input]:
    def made(estimator: Any, folder: Path) -> Input:
        ((X, y),) = _dense(estimator, folder).batches
        X = {name: change(B) for name, B in X.items()}
        return Input([(X, y)], {name: B[:4] for name, B in X.items()})

    return made


def _wide(estimator: Any, folder: Path) -> Input:
    return _dense(estimator, folder, WIDE, N_WIDE)


def _wide_sparse(estimator: Any, folder: Path) -> Input:
    ((X, y),) = _wide(estimator, folder).batches
    X = {name: _sparse(B) for name, B in X.items()}
    return Input([(X, y)], {name: B[:4] for name, B in X.items()})


def _sparse(B: np.ndarray) -> Any:
    return sp.csr_array(np.where(B > 2, B, 0))


def _two_matrices(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    X = given.batches[0][0]
    return Input([(X["image"], X["text"])], {"X": X["image"][:4], "y": X["text"][:4]})


def _unpaired(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    X, y = given.batches[0]
    rows = {"image": slice(0, 50), "text": slice(5, 60), "sound": slice(3, 45)}
    labels = {name: LABELS[rows[name]] for name in X}
    views = Views.unpaired({name: B[rows[name]] for name, B in X.items()})
    return Input([(views, None if y is None else labels)], given.probe)


def _partly_paired(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    X, y = given.batches[0]
    # Objects are held out by the bits of their rows, which must not depend on the processor.
    X = {name: B.round(9) for name, B in X.items()}
    index = np.tile(np.arange(N)[:, None], len(X))
    index[7:20, 0] = index[15:31, 1] = -1
    index[40:50, -1] = -1
    index[:, 1] = np.where(index[:, 1] < 0, -1, np.arange(N)[::-1])  # rows in another order
    return Input([(Views(X, index), y)], given.probe)


def _weighted(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    weights = np.linspace(0.5, 2.5, N)
    weights[10:14] = 0
    return Input(given.batches, given.probe, {"sample_weight": weights})


def _streamed(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    X, y = given.batches[0]
    for name, B in X.items():
        np.save(folder / f"{name}.npy", B)
    files = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in X}
    return Input([(files, y)], given.probe, block_rows=7)


def _in_batches(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    X, y = given.batches[0]
    parts = [slice(0, 25), slice(25, 41), slice(41, N)]
    batches = [
        ({name: B[rows] for name, B in X.items()}, None if y is None else y[rows]) for rows in parts
    ]
    return Input(batches, given.probe, method="partial_fit")


def _classes(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    return Input([(given.batches[0][0], LABELS @ [1, 1, 2, 2])], given.probe)


def _real_labels(estimator: Any, folder: Path) -> Input:
    given = _dense(estimator, folder)
    y = LABELS @ np.random.default_rng(5).standard_normal((4, 3)) + 0.01 * np.arange(N)[:, None]
    return Input([(given.batches[0][0], y)], given.probe)


ANY: dict[str, Callable[[Any, Path], Input]] = {
    "dense": _dense,
    "sparse": _mapped(_sparse),
    "float32": _mapped(lambda B: B.astype(np.float32)),
    "wide": _wide,
    "wide, sparse": _wide_sparse,
    "unpaired": _unpaired,
    "partly paired": _partly_paired,
    "weighted": _weighted,
    "streamed": _streamed,
    "in batches": _in_batches,
}
UNSUPERVISED = {"two matrices": _two_matrices}
SUPERVISED = {"classes": _classes, "real labels": _real_labels}


def cases() -> Iterator[tuple[str, Any, Callable[[Any, Path], Input]]]:
    """Name, estimator, and maker of its input; whether an input is refused is compared, too."""
    for name, estimator in ESTIMATORS.items():
        forms = ANY | (SUPERVISED if estimator.requires.labels else UNSUPERVISED)
        for form, make in forms.items():
            if form == "in batches" and not hasattr(estimator, "partial_fit"):
                continue
            if form == "weighted" and isinstance(estimator, CMOLRS | JRL | NCCA):
                continue  # which repeat rows, and refuse fractions
            yield f"{name}: {form}", estimator, make


# ---- what is compared ----------------------------------------------------------------------------


def learned(estimator: Any, make: Callable[[Any, Path], Input]) -> dict[str, Any]:
    """All public fitted attributes and the scores of some rows; or the type of the refusal."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = make(estimator, Path(folder))
        model = clone(estimator)
        context = config_context(block_rows=given.block_rows) if given.block_rows else nullcontext()
        try:
            with context:
                for X, y in given.batches:
                    getattr(model, given.method)(X, y, **given.options)
        except (ValueError, TypeError) as error:
            return {"refused": [type(error).__name__]}
        hasattr(model, "n_components_")  # batches are solved for when a result is read
        names = {*vars(model), *dir(type(model))}
        names -= {"history_"}  # of deep estimators; it holds how long epochs took
        public = sorted(n for n in names if n.endswith("_") and not n.startswith("_"))
        found = {}
        for name in public:
            if hasattr(model, name):
                found.update(_flat(name, getattr(model, name)))
        if "X" in given.probe:
            scores = dict(zip("Xy", model.transform(*given.probe.values()), strict=True))
        else:
            scores = model.transform(given.probe)
        return found | _flat("transform", scores)


def _flat(name: str, value: Any) -> dict[str, Any]:
    """Arrays and lists of words by dotted name; objects of other types are not compared."""
    if isinstance(value, Mapping):
        parts = [_flat(f"{name}.{key}", part) for key, part in value.items()]
        return {key: part for found in parts for key, part in found.items()}
    if sp.issparse(value):
        value = value.toarray()
    try:
        array = np.asarray(value)
    except ValueError:
        return {}
    if array.dtype.kind in "fiub":
        return {name: array}
    return {name: [str(word) for word in value]} if array.dtype.kind in "U" else {}


def differences(
    case: str, found: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float
) -> Iterator[str]:
    """What differs, in units of the largest entry of each array; tied components as subspaces.

    Ties that include the last component may go on beyond it, and then any of them will do. Weights
    of KCCA refer to eigenvectors of a kernel matrix, whose signs are the LAPACK library's choice.
    """
    free_basis = case.startswith("KCCA") and "fourier" not in case
    for name in sorted(expected):  # attributes that came later have no reference
        if free_basis and name.startswith(("weights_", "means_")):
            continue
        if name not in found:
            yield f"{name} is missing"
            continue
        ours, theirs = found[name], expected[name]
        if isinstance(theirs, list):
            if list(ours) != theirs:
                yield f"{name} is {ours}, expected {theirs}"
        elif np.shape(ours) != theirs.shape:
            yield f"{name} has shape {np.shape(ours)}, expected {theirs.shape}"
        else:
            by_component = name.startswith(("weights_", "transform"))
            groups = _tied(expected, theirs, free_basis) if by_component else None
            error = _distance(np.asarray(ours, dtype=float), theirs, groups)
            if not error <= tolerance:
                yield f"{name} differs by {error:.1e}"


def _tied(
    expected: Mapping[str, Any], array: np.ndarray, free_basis: bool
) -> list[np.ndarray] | None:
    """Columns by equal eigenvalue, if there are ties; None for columns to compare as they are."""
    values = expected.get("eigenvalues_", expected.get("canonical_correlations_"))
    if values is None or array.ndim != 2 or array.shape[1] != len(values):
        return None
    gaps = np.abs(np.diff(values)) > 1e-6 * max(np.abs(values).max(initial=0), 1e-300)
    if gaps.all() and not free_basis:
        return None
    return np.split(np.arange(len(values)), np.flatnonzero(gaps) + 1)


def _distance(ours: np.ndarray, theirs: np.ndarray, groups: list[np.ndarray] | None) -> float:
    if groups is not None:
        *inner, last = groups
        determined = inner if len(last) > 1 else groups
        pairs = [(ours[:, g] @ ours[:, g].T, theirs[:, g] @ theirs[:, g].T) for g in determined]
        return max((_distance(a, b, None) for a, b in pairs), default=0.0)
    size = np.abs(theirs).max(initial=1e-4)  # what is smaller is rounding, such as an error of 0
    return float(np.abs(ours - theirs).max(initial=0) / size)


def tolerance_of(case: str, exact: float, single: float) -> float:
    return single if case.endswith("float32") else exact


# ---- the file ------------------------------------------------------------------------------------


def write(path: str | Path, only: str | None = None) -> None:
    """One array of all numbers and one JSON text that says what is where.

    With `only`, models of cases whose name matches it are written anew, and others kept.
    """
    index: dict[str, dict[str, Any]] = {}
    numbers: list[np.ndarray] = []
    start = 0
    old = {} if only is None else read(path)
    for case, estimator, make in cases():
        index[case] = {}
        kept = only is not None and not re.search(only, case)
        for name, value in (old[case] if kept else learned(estimator, make)).items():
            if isinstance(value, list):
                index[case][name] = value
                continue
            index[case][name] = {"shape": value.shape, "start": start}
            numbers.append(np.asarray(value, dtype=float).ravel())
            start += value.size
    np.savez_compressed(path, numbers=np.concatenate(numbers), index=json.dumps(index))


def read(path: str | Path) -> dict[str, dict[str, Any]]:
    with np.load(path) as file:
        numbers, index = file["numbers"], json.loads(str(file["index"]))
    for found in index.values():
        for name, entry in found.items():
            if isinstance(entry, dict):
                shape, start = tuple(entry["shape"]), entry["start"]
                size = int(np.prod(shape))
                found[name] = numbers[start : start + size].reshape(shape)
    return index


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("-k", default="", help="only cases whose name matches this pattern")
    parser.add_argument("--tolerance", type=float, default=1e-10)
    chosen = parser.parse_args()
    if chosen.write:
        write(chosen.reference, chosen.k or None)
        print(os.path.getsize(chosen.reference), "bytes")
        return 0
    expected = read(chosen.reference)
    total, n_wrong = 0, 0
    for case, estimator, make in cases():
        if not re.search(chosen.k, case):
            continue
        total += 1
        tolerance = tolerance_of(case, chosen.tolerance, 1e-5)
        found = list(differences(case, learned(estimator, make), expected[case], tolerance))
        n_wrong += bool(found)
        for line in found:
            print(f"{case}: {line}")
    print(f"{n_wrong} of {total} models differ")
    return int(n_wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
