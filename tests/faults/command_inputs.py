"""Malformed inputs of the command line: python -m faults.command_inputs [NUMBER] [SEED]

Views, labels and models in damaged or absurd files, and absurd arguments, are given to `fit`,
`compare`, `transform`, `search`, `migrate` and `info`. Each must end with exit code 0, 1 or 2 and
at most one line of error, with memory under twice the size of the file and 100 MB.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from faults.model_files import Payload, damaged
from faults.sandbox import Meter, Outcome, in_fork
from mvcca.cli import main as command

N = 60


def prepare() -> None:
    """Inputs that are fine, in the working directory."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5))
    np.save("x.npy", X)
    np.save("text.npy", rng.standard_normal((N, 4)) + X[:, :4])
    np.save("y.npy", np.arange(N) % 3)
    np.savez("x.npz", x=X)
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sp.save_npz(f"{kind}.npz", sp.coo_array(np.round(X)).asformat(kind))
    np.savetxt("x.csv", X, delimiter=",")
    np.savetxt("x.tsv", X, delimiter="\t")
    Path("y.txt").write_text("\n".join("abc"[i % 3] for i in range(N)))
    Path("sets.txt").write_text("\n".join(f"{i}{',a' * (i % 6 == 0)}" for i in range(N)))
    try:
        import h5py

        with h5py.File("x.h5", "w") as file:
            file["x"] = X
    except ImportError:
        pass
    try:
        import pandas as pd

        pd.DataFrame(X).add_prefix("c").to_parquet("x.parquet")
    except ImportError:
        pass
    fit = ["fit", "--view", "image=x.npy", "--view", "text=text.npy", "-o", "model.mvcca"]
    # What is imported and compiled now is not in the memory of the processes that follow.
    for labels in ("y.npy", "x.npy", "csr.npz", "sets.txt"):
        command([*fit, "--method", "mvmlcca", "--labels", labels])
    assert command([*fit, "--method", "cca"]) == 0
    for name in ("x.npz", "csr.npz", "x.csv", "x.h5", "x.parquet"):
        if Path(name).exists():
            rows = ["--view", f"image={name}", "--view", "text=text.npy", "--methods", "cca"]
            assert command(["compare", *rows]) == 0


def header_of_npy(shape: str, descr: str, rest: bytes = b"") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + rest


SHAPES = [
    "(4, 100000000000000000000)",
    "(1000000000, 1000)",
    "(-1, 5)",
    "(60.5, 5)",
    "(60,)",
    "()",
    "(0, 5)",
    "60",
    "(60, 5, 1)",
    "(9223372036854775807, 2)",
    "(True, 5)",
    "('a', 5)",
]
DESCRS = ["'<f8'", "'|O'", "'<U1000000000'", "'<c16'", "'<M8[s]'", "[('a', '<f8')]", "'x'", "3"]


def absurd_npy(rng: np.random.Generator) -> bytes:
    shape, descr = SHAPES[rng.integers(len(SHAPES))], DESCRS[rng.integers(3) * rng.integers(8) // 2]
    return header_of_npy(shape, descr, bytes(int(rng.integers(0, 3000))))


def absurd_sparse(rng: np.random.Generator) -> bytes:
    """Arrays of `save_npz` that do not belong together, or point anywhere."""
    kind = ["csr", "csc", "coo", "bsr", "dia"][rng.integers(5)]
    arrays = dict(np.load(f"{kind}.npz"))
    values: list[Any] = [-1, 10**6, 2**31 - 1, 2**40, 2**62, np.nan, 0.5, 0]
    for _ in range(rng.integers(1, 3)):
        name = list(arrays)[rng.integers(len(arrays))]
        array = arrays[name]
        match rng.integers(6):
            case 0 if array.ndim and array.dtype.kind in "if":
                value = values[rng.integers(len(values))]
                changed = array.astype(float if isinstance(value, float) else np.int64)
                changed.reshape(-1)[rng.integers(changed.size)] = value
                arrays[name] = changed
            case 1:
                arrays[name] = array.reshape(-1)[: array.size // 2]
            case 2:
                arrays[name] = np.array(array)[None]
            case 3 if array.dtype.kind in "if":
                kinds = ["u8", "f8", "i1", "bool", "c16", "U5"]
                arrays[name] = array.astype(kinds[rng.integers(6)])
            case 4:
                del arrays[name]
            case 5:
                arrays["shape"] = np.array([[60, 2**62], [2**62, 5], [60.0, 5.0], [-60, 5], [60, 0],
                                            [60, 5]][rng.integers(6)])  # fmt: skip
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


CELLS = [
    "",
    "nan",
    "1e999",
    "x",
    '"',
    "\0",
    "9" * 400,
    "x" * 200_000,
    "\x1b[31m",
    "1,2",
    "\udcff",
    "−1",
    "1_0",
    "NA",
    "-",
    "0x10",
]


def inflated_sparse(rng: np.random.Generator) -> bytes:
    """Some kB of entries that take 160 MB, and row offsets that do not use them."""
    n = 10**7
    arrays = {"format": np.array(["csr", "csc"][rng.integers(2)]), "shape": np.array([N, N])}
    arrays |= {"data": np.zeros(n), "indices": np.zeros(n, np.int64), "indptr": np.arange(N + 1)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def absurd_hdf5(rng: np.random.Generator) -> bytes:
    """Terabytes that were never written, or numbers in another file."""
    try:
        import h5py
    except ImportError:
        return b""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        shape = [(10**7, 10**6), (10**12, 5), (N, 10**11)][rng.integers(3)]
        match rng.integers(5):
            case 0:
                file.create_dataset("x", shape, "f8")
            case 1:
                file.create_dataset("x", shape, "f8", chunks=(1, 5))[0, 0] = 1
            case 2:
                chunks = {"chunks": (N, 1000), "compression": "gzip"}
                file.create_dataset("x", (10**9, 10**6), "f8", **chunks)[0, 0] = 1
            case 3:
                place = [(str(Path("x.npy").resolve()), 0, h5py.h5f.UNLIMITED)]
                file.create_dataset("x", (N, 5), "f8", external=place)
            case 4:
                layout = h5py.VirtualLayout((N, 5), "f8")
                layout[:] = h5py.VirtualSource(str(Path("x.h5").resolve()), "x", (N, 5))
                file.create_virtual_dataset("x", layout)
    return buffer.getvalue()


def fifo(_: np.random.Generator) -> None:
    """No content: a FIFO that nobody writes to."""


def absurd_text(rng: np.random.Generator) -> bytes:
    lines = [[f"{value:.3f}" for value in row] for row in rng.standard_normal((N, 5))]
    for _ in range(rng.integers(1, 4)):
        lines[rng.integers(N)][rng.integers(5)] = CELLS[rng.integers(len(CELLS))]
    if not rng.integers(4):
        lines[rng.integers(N)].append("1")
    text = "\n".join(",".join(line) for line in lines)
    return text.encode(["utf-8", "utf-16", "latin-1"][rng.integers(3)], "replace")


def another_kind(_: np.random.Generator) -> bytes:
    return pickle.dumps(Payload("touch executed"))


def archive_of_objects(_: np.random.Generator) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "x.npy", header_of_npy("(1,)", "'|O'", pickle.dumps(Payload("touch executed")))
        )
    return buffer.getvalue()


FILES: dict[str, list[Callable[[np.random.Generator], bytes | None]]] = {
    ".npy": [absurd_npy, another_kind],
    ".npz": [absurd_sparse, absurd_sparse, inflated_sparse, archive_of_objects, another_kind],
    ".csv": [absurd_text],
    ".tsv": [absurd_text],
    ".txt": [absurd_text],
    ".h5": [absurd_hdf5, absurd_hdf5, another_kind],
    ".parquet": [another_kind],
}
for kinds in FILES.values():
    kinds.append(fifo)
PARAMETERS = ["reg=nan", "reg=-1", "reg=1" + 400 * "0", "n_components=0", "n_components=1e9",
              "reg={", "x=1", "reg=[[" * 200, "n_components=True", "=", "reg=",
              "random_state=-5"]  # fmt: skip


def make(number: int, seed: int) -> tuple[list[str], str]:
    """A command with one malformed input, which is written to `bad.*`; the file's name."""
    rng = np.random.default_rng([seed, number])
    suffix = list(FILES)[rng.integers(len(FILES))]
    originals = [path for path in Path().glob(f"*{suffix}") if path.stem != "bad"]
    bad = f"bad{suffix}"
    if originals and rng.integers(2):
        original = originals[rng.integers(len(originals))]
        Path(bad).write_bytes(damaged(original.read_bytes(), rng))
    else:
        content = FILES[suffix][rng.integers(len(FILES[suffix]))](rng)
        os.mkfifo(bad) if content is None else Path(bad).write_bytes(content)
    fit = ["fit", "-o", "new.mvcca", "--view", "text=text.npy"]
    match rng.integers(12) if suffix != ".txt" else rng.choice([1, 11]):
        case 0 | 7:
            return [*fit, "--view", f"image={bad}", "--method", "cca"], bad
        case 1:
            return [*fit, "--view", "image=x.npy", "--method", "mvmlcca", "--labels", bad], bad
        case 2:
            return [
                "compare",
                "--view",
                f"image={bad}",
                "--view",
                "text=text.npy",
                "--methods",
                "cca",
            ], bad
        case 3:
            return ["transform", "model.mvcca", "--view", f"image={bad}", "-o", "new.npy"], bad
        case 4:
            return [
                "search",
                "model.mvcca",
                "--gallery",
                f"image={bad}",
                "--query",
                "text=text.npy",
            ], bad
        case 5:
            parameter = PARAMETERS[rng.integers(len(PARAMETERS))]
            return [*fit, "--view", "image=x.npy", "--method", "cca", "--param", parameter], bad
        case 8:
            return ["migrate", bad, "text.npy", "-o", "new.npy"], bad
        case 9:
            return ["migrate", "x.npy", bad, "-o", "new.npy"], bad
        case 10:
            return ["migrate", "x.npy", "text.npy", "--sample", bad, "-o", "new.npy"], bad
        case 11:
            return ["transform", "model.mvcca", "--view", "image=x.npy", "--ids", bad, "-o",
                    "new.csv"], bad  # fmt: skip
    return ["info", bad], bad


def use(arguments: list[str], meter: Meter) -> tuple[int, int]:
    """Exit code of a command, and its memory."""
    warnings.simplefilter("default")
    try:
        code = command(arguments)
    except SystemExit as stop:
        code = stop.code
    return code, meter.growth()


def faults_of(outcome: Outcome, size: int) -> list[str]:
    if outcome.crash:
        return [f"crash: {outcome.crash}: {outcome.err[-400:]}"]
    found = [f"executed: {outcome.events}"] if outcome.events else []
    if Path("executed").exists():
        found.append("executed: a pickle")
    if outcome.answer not in (0, 1, 2):
        found.append(f"exit code {outcome.answer}")
    lines = [
        line
        for line in outcome.err.splitlines()
        if "warning: " not in line and ": read as " not in line
    ]
    if outcome.answer == 1 and (len(lines) != 1 or not lines[0].startswith("mvcca: error: ")):
        found.append(f"not one line: {outcome.err[-400:]!r}")
    if outcome.growth > 2 * size + 100 * 10**6:
        found.append(f"memory: {outcome.growth:,} bytes for a file of {size:,}")
    found += [f"left over: {path}" for path in Path().glob(".*.part")]
    return found


def run(n: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Faults found, and how many commands ended with each exit code."""
    faults, counts = [], Counter()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            prepare()
            for number in range(n):
                arguments, bad = make(number, seed)
                size = Path(bad).stat().st_size
                outcome = in_fork(lambda meter, given=arguments: use(given, meter))
                counts[f"{arguments[0]} ended with {outcome.answer}"] += 1
                counts["peak"] = max(counts["peak"], outcome.growth)
                faults += [
                    f"{number} (seed {seed}), {arguments}: {fault}"
                    for fault in faults_of(outcome, size)
                ]
                Path(bad).unlink()
        finally:
            os.chdir(here)
    return faults, counts


if __name__ == "__main__":
    n, seed = [*map(int, sys.argv[1:]), *(500, 0)[len(sys.argv) - 1 :]]
    faults, counts = run(n, seed)
    print(*faults, dict(sorted(counts.items())), f"{len(faults)} faults", sep="\n")
    sys.exit(bool(faults))
