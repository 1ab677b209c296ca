"""Damaged and hostile model files: python -m faults.model_files [NUMBER] [SEED]

Bytes are flipped, cut and repeated; headers lie about sizes; and parts of the model are replaced by
others, with checksums made valid again. A file must be loaded as it was or refused in one line,
with memory under twice its size and 100 MB, and nothing in it may be executed.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.cluster import FeatureAgglomeration, KMeans
from sklearn.decomposition import NMF, PCA, KernelPCA
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import mvcca
from faults.sandbox import Meter, Outcome, in_fork
from mvcca import CCA, JRL, KCCA, MLCCA, MVMLCCA, NCCA, PerView, RetrievalIndex, Views
from mvcca.cli import main as command
from mvcca.machine import archive as _archive
from mvcca.machine.archive import read_archive, write_archive
from mvcca.persistence._classes import CLASSES
from mvcca.persistence._trial import _row_for

N, WIDTHS = 40, {"image": 5, "text": 4}


def rows(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((N, width)) for name, width in WIDTHS.items()}


def write_originals(folder: Path) -> list[Path]:
    """Models of many kinds, which the others are made of."""
    X, y = rows(), np.arange(N) % 4
    models = {
        "cca": CCA(2).partial_fit(X),
        "mvmlcca": MVMLCCA(2).partial_fit(X, y),
        "mlcca": MLCCA(2).partial_fit(X, y),
        "jrl": JRL(2).fit(X, y),
        "kcca": KCCA(2, approximation="nystroem", n_landmarks=8, random_state=0).fit(X),
        "ncca": NCCA(1, n_neighbors=9, reducer=PCA(2), random_state=0).fit(X),
        "pipeline": make_pipeline(PerView(StandardScaler()), CCA(2)).fit(X),
        "transformers": make_pipeline(
            PerView(
                {
                    "image": make_pipeline(QuantileTransformer(n_quantiles=20), KernelPCA(3)),
                    "text": make_pipeline(PowerTransformer(), KMeans(3, random_state=0, n_init=1)),
                }
            ),
            CCA(2),
        ).fit(X),
        "more transformers": make_pipeline(
            PerView(
                {
                    "image": make_pipeline(
                        MinMaxScaler(clip=True), NMF(2), FunctionTransformer(np.log1p)
                    ),
                    "text": FeatureUnion(
                        [
                            ("best", SelectKBest(k=2)),
                            ("splines", SplineTransformer(3)),
                            ("clusters", FeatureAgglomeration(2)),
                        ]
                    ),
                }
            ),
            CCA(2),
        ).fit(X, y),
        "search": GridSearchCV(
            make_pipeline(PerView(StandardScaler()), CCA(1)),
            {"cca__reg": [0.1, {"image": 0.1, "text": 1.0}]},
            cv=KFold(2, shuffle=True, random_state=np.random.RandomState(0)),
            scoring=mvcca.retrieval_scorer("mrr"),
        ).fit(Views(X)),
        "index": RetrievalIndex(CCA(2).fit(X)).add(X, [f"id {i}" for i in range(N)]),
        "changed index": RetrievalIndex(CCA(2).fit(X), "euclidean").add(X).remove([3]),
        "new": CCA(3),
    }
    try:
        from mvcca.deep import DCCA

        models["deep"] = DCCA(
            2, hidden_layer_sizes=(4,), batch_size=20, max_epochs=1, random_state=0
        ).fit(X)
    except ImportError:
        pass
    for name, model in models.items():
        mvcca.save(model, folder / f"{name}.mvcca")
    return [folder / f"{name}.mvcca" for name in models]


# ---- damage --------------------------------------------------------------------------------------


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Bytes flipped, cut, repeated, blanked or put elsewhere."""
    data = bytearray(raw)
    a, b = sorted(rng.integers(0, len(data), 2).tolist())
    match rng.integers(6):
        case 0:
            for position in rng.integers(0, len(data), rng.integers(1, 9)):
                data[position] ^= int(rng.integers(1, 256))
        case 1:
            del data[a:]
        case 2:
            del data[a:b]
        case 3:
            data[a:a] = data[a:b]
        case 4:
            data[a:b] = bytes(b - a)
        case 5:
            data[a:a] = rng.bytes(int(rng.integers(1, 2000)))
    return bytes(data)


NUMBERS = [-1, 0, 1, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, 0.5, "3", None, [], {}]


def with_lying_header(raw: bytes, rng: np.random.Generator) -> bytes:
    """Sizes, types and offsets of arrays are others than those of the bytes."""
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    if names:
        described = header[names[rng.integers(len(names))]]
        match rng.integers(4):
            case 0:
                described["shape"] = [NUMBERS[rng.integers(len(NUMBERS))] for _ in range(2)]
            case 1:
                described["data_offsets"] = [NUMBERS[i] for i in rng.integers(0, 9, 2)]
            case 2:
                kinds = ["F64", "F32", "BF16", "U8", "F8_E4M3", "OBJECT", "", "I64", "C64"]
                described["dtype"] = kinds[rng.integers(len(kinds))]
            case 3:
                header[f"more {rng.integers(9)}"] = dict(described)
    text = json.dumps(header).encode()
    announced = len(text) if rng.integers(4) else int(rng.integers(0, 2**62))
    return struct.pack("<Q", announced) + text + raw[8 + length :]


# ---- forgeries, with checksums that are valid ----------------------------------------------------

HOSTILE = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    10**30,
    0.5,
    "",
    "a",
    "\x1b[2J",
    "../../etc/passwd",
    "/dev/zero",
    "os.system",
    "x" * 10_000,
    [],
    [1],
    [[]] * 1000,
    {},
    {"is": "dict", "items": {}},
    {"is": "float", "value": "nan"},
    {"is": "float", "value": "1e999"},
    {"is": "again", "object": 0},
    {"is": "again", "object": -1},
    {"is": "tuple", "items": [1, 2]},
    {"is": "dtype", "name": "V2000000000"},
    {"is": "slice", "of": [None, None, 0]},
    {"is": "names", "dtype": "str", "shape": [2**62], "of": []},
    {"is": "names", "dtype": "str", "shape": [4000], "of": ["a"] * 3999 + ["b" * 50_000]},
    {"is": "names", "dtype": "object", "shape": [3], "of": [1, None, [2]]},
    {"is": "csr_array", "shape": [2**62, 2**62], "arrays": {}},
    {"is": "os.system", "parts": {"command": "true"}},
    {"is": "FunctionTransformer", "parts": {"func": "os.system"}},
    {"is": "Pipeline", "parts": {"steps": [], "memory": "/tmp/cache"}},
    {"is": "NearestNeighbors", "parts": {"rows": 3}},
    {"is": "sklearn.preprocessing.FunctionTransformer",
     "parts": {"func": {"is": "function", "name": "os.system"}}},
    {"is": "function", "name": "numpy.load"},
    {"is": "function", "name": "numpy.exp"},
    {"is": "type", "name": "object"},
    {"is": "set", "items": [1, [2]]},
    {"is": "dict", "pairs": [[1, 2], [[], 3]]},
    {"is": "sklearn.svm.SVC", "parts": {}},
    {"is": "sklearn.datasets.fetch_openml", "parts": {"data_id": 1}},
    {"is": "sklearn.decomposition.NMF", "parts": {"n_components": 2**31, "_n_components": 2**31}},
    {"is": "sklearn.decomposition.KernelPCA", "parts": {"n_jobs": 2**31}},
    {"is": "sklearn.model_selection.GridSearchCV",
     "parts": {"estimator": None, "param_grid": {}, "pre_dispatch": "9**9**9"}},
    {"is": "RandomState", "parts": {"state": {"is": "dict", "items": {"bit_generator": "PCG64"}}}},
    {"is": "MaskedArray", "parts": {"data": [1], "mask": [[True]], "fill_value": 2**70}},
    {"is": "csc_array", "shape": [2**62, 2**62], "arrays": {}},
]  # fmt: skip
KINDS = [
    *CLASSES, "array", "scalar", "tuple", "dict", "set", "csr_array", "csc_matrix", "names",
    "sklearn.cluster.KMeans", "sklearn.cluster.MiniBatchKMeans", "sklearn.decomposition.NMF",
    "sklearn.decomposition.LatentDirichletAllocation", "sklearn.neighbors.KNeighborsTransformer",
    "sklearn.model_selection.GridSearchCV", "sklearn.impute.KNNImputer",
]  # fmt: skip


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every container and key of a tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, part in list(items):
        yield node, key
        if isinstance(part, dict | list):
            yield from places(part)


def forged_tree(root: Any, arrays: list[str], rng: np.random.Generator) -> None:
    found = list(places(root))
    node, key = found[rng.integers(len(found))]
    match rng.integers(7):
        case 0 | 1:
            node[key] = deepcopy(HOSTILE[rng.integers(len(HOSTILE))])  # later changes go into it
        case 2:
            del node[key]
        case 3:
            other, place = found[rng.integers(len(found))]
            node[key] = json.loads(json.dumps(other[place]))
        case 4:
            kinds = [each for each, place in found if place == "is"]
            if kinds:
                kinds[rng.integers(len(kinds))]["is"] = KINDS[rng.integers(len(KINDS))]
        case 5:
            named = [each for each, place in found if place == "array"]
            if named and arrays:
                named[rng.integers(len(named))]["array"] = arrays[rng.integers(len(arrays))]
        case 6:
            if isinstance(node, dict):
                node[["_x", "x_", "transform", "__class__", "weights_"][rng.integers(5)]] = node[
                    key
                ]


def forged_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    array = array.copy()
    match rng.integers(8):
        case 0:
            return array.reshape(-1)
        case 1:
            return array[..., None]
        case 2:
            return array[:-1] if array.ndim else array
        case 3:
            return array.T
        case 4:
            kinds = ["f4", "i8", "u1", "bool", "f2", "u8"]
            with np.errstate(all="ignore"):
                return array.astype(kinds[rng.integers(len(kinds))])
        case 5:
            return np.zeros((0,) * array.ndim, array.dtype)
        case 6:
            return np.repeat(array[None], 3, axis=0)
    values = {"f": [np.nan, np.inf, 1e300, -1e-300], "b": [True]}
    chosen = values.get(array.dtype.kind, [-1, 10**6, 2**31 - 1, 0])
    flat = array.reshape(-1)
    if flat.size:
        with np.errstate(all="ignore"):
            picked = np.array(chosen[rng.integers(len(chosen))]).astype(array.dtype)
        flat[rng.integers(flat.size)] = picked
    return array


def forged(original: Path, target: Path, rng: np.random.Generator) -> None:
    """Parts of a model are others, and its checksums are those of what it holds."""
    arrays, content = read_archive(original)
    for _ in range(rng.integers(1, 4)):
        if rng.integers(2) and arrays:
            name = list(arrays)[rng.integers(len(arrays))]
            arrays[name] = forged_array(arrays[name], rng)
        else:
            forged_tree(content, list(arrays), rng)
    write_archive(target, arrays, content)


def inflated(target: Path, rng: np.random.Generator) -> None:
    """A short description of something large, or a long one of nothing."""
    n = int(rng.integers(1, 30)) * 10_000
    k = int(rng.integers(100, 5_000))
    tree: Any = [
        {"is": "names", "dtype": "str", "shape": [k], "of": ["a"] * (k - 1) + ["b" * n]},
        [[]] * n,
        [{}] * n,
        {str(i): None for i in range(n)},
        {"is": "dict", "items": {str(i): {"is": "tuple", "items": []} for i in range(n // 10)}},
        "x" * (10 * n),
        list(range(n)),
        [0.1] * n,
    ][rng.integers(8)]
    root = {"is": "CCA", "parts": {"reg": tree}}
    content = {"kind": "model", "format": 3, "deep": False, "written by": {}, "model": root}
    with patch.object(_archive, "_HEADER_VALUES", 10**9):  # which mvcca would not write
        write_archive(target, {}, content)


class Payload:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def other(target: Path, originals: list[Path], rng: np.random.Generator) -> None:
    """No model at all: links, pipes, pickles, archives."""
    match rng.integers(7):
        case 0:
            target.symlink_to(target)
        case 1:
            os.mkfifo(target)
        case 2:
            target.symlink_to("/dev/zero")
        case 3:
            target.mkdir()
        case 4:
            target.write_bytes(pickle.dumps(Payload(f"touch {target}.ran")))
        case 5:
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("x.npy", bytes(10**7))
        case 6:
            target.symlink_to(originals[rng.integers(len(originals))])


def make(number: int, seed: int, originals: list[Path], target: Path) -> str:
    """Write a file, the same for the same numbers; its kind."""
    rng = np.random.default_rng([seed, number])
    original = originals[rng.integers(len(originals))]
    kind = rng.choice(
        ["damage", "header", "forgery", "inflated", "other"], p=[0.2, 0.15, 0.55, 0.05, 0.05]
    )
    if kind == "damage":
        target.write_bytes(damaged(original.read_bytes(), rng))
    elif kind == "header":
        target.write_bytes(with_lying_header(original.read_bytes(), rng))
    elif kind == "forgery":
        forged(original, target, rng)
    elif kind == "inflated":
        inflated(target, rng)
    else:
        other(target, originals, rng)
    return f"{kind} of {original.stem}"


# ---- what becomes of them ------------------------------------------------------------------------


def use(path: Path, meter: Meter) -> tuple[str, int]:
    """Load a model, and put it to use if that goes well."""
    warnings.simplefilter("ignore")
    try:
        mapped = path.stem.endswith(("1", "3"))  # a fifth of them, with arrays unchecked
        model = mvcca.load(path, mmap=mapped, verify=not mapped)
        answer = "loaded"
    except (mvcca.ModelFileError, OSError) as error:
        answer = str(error)
    growth = meter.growth()
    if answer == "loaded":
        answer = _put_to_use(model)
    command(["info", str(path)])
    return answer, growth


def _put_to_use(model: Any) -> str:
    """What a user would call; compiled loops are reached by partial_fit."""
    answer = "loaded"
    if hasattr(model, "transform"):
        try:
            model.transform(rows(1))
        except (ValueError, MemoryError):
            pass
        except Exception as error:
            if _row_for(model) is not None:  # it was tried on a row when it was loaded
                answer = f"transform failed: {type(error).__name__}: {error}"
    query = {"text": rows(1)["text"]}
    calls: list[Callable[[], Any]] = [
        lambda: model.search(query, target="image", k=3),
        lambda: model.search(query, target=("image", "text"), k=3),
        lambda: model.remove([5]).search(query, k=3),
        lambda: model.partial_fit(rows(1), np.arange(N) % 4),
    ]
    for call in calls:
        with suppress(Exception):  # only a crash is a fault here
            call()
    return answer


def faults_of(path: Path, outcome: Outcome) -> list[str]:
    """What is wrong with what became of a file."""
    size = path.stat().st_size if path.is_file() else 0
    found = []
    if outcome.crash:
        return [f"crash: {outcome.crash}: {outcome.err[-300:]}"]
    if outcome.events:
        found.append(f"executed: {sorted(set(outcome.events))}")
    if outcome.growth > 2 * size + 100 * 10**6:
        found.append(f"memory: {outcome.growth:,} bytes for a file of {size:,}")
    if outcome.answer.startswith("transform failed") or "\n" in outcome.answer:
        found.append(outcome.answer)
    if Path(f"{path}.ran").exists():
        found.append("executed: a pickle")
    lines = [line for line in outcome.err.splitlines() if not line.startswith("mvcca: warning")]
    if len(lines) > 1:
        found.append(f"more than a line: {outcome.err[-300:]}")
    return found


def run(n: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Faults found, and how many files of each kind were loaded."""
    faults, counts = [], Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        originals = write_originals(Path(folder))
        for number in range(n):
            target = Path(folder) / f"{number}.model"
            kind = make(number, seed, originals, target)
            outcome = in_fork(lambda meter, path=target: use(path, meter))
            verdict = "loaded" if outcome.answer == "loaded" else "refused"
            counts[f"{kind.split()[0]} {verdict}"] += 1
            counts["peak"] = max(counts["peak"], outcome.growth)
            found = faults_of(target, outcome)
            faults += [f"{number} (seed {seed}), {kind}: {fault}" for fault in found]
            target.rmdir() if target.is_dir() and not target.is_symlink() else target.unlink()
    return faults, counts


if __name__ == "__main__":
    n, seed = [*map(int, sys.argv[1:]), *(5000, 0)[len(sys.argv) - 1 :]]
    faults, counts = run(n, seed)
    print(*faults, dict(sorted(counts.items())), f"{len(faults)} faults", sep="\n")
    sys.exit(bool(faults))
