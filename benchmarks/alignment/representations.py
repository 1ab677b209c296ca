"""Similarity of layers: figures of encoders, calibration, and one pass over many layers.

- Figures of MiniLM and WordLlama on Multi30K at 1,000 and 10,000 rows, as published and calibrated.
- Moments of CKA by the formula, against permutations.
- Sketches: unbiased CKA of two projections of each encoder, against the layers themselves.
- 24 layers of 1,024 features in one pass over batches, with two sketches of 128 columns each:
  memory of the process, and time against the bare products of rows and of projected rows.

    MVCCA_DATA=../shared/data python -m benchmarks.alignment.representations
        [--layers 24 --width 1024]
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--sketch", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=20, help="of the sketches of encoders")
    parser.add_argument("--permutations", type=int, default=2000)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import resource
import time
from collections.abc import Iterator

import numpy as np

from benchmarks._measure import machine
from benchmarks.real import fetch_multi30k_encoders
from mvcca.interop.representations import MEASURES, LayerSums, compare_representations

ENCODERS = ["en_minilm", "en_wordllama"]
BATCH = 1000


def encoders() -> None:
    """Figures of two encoders, as published and calibrated."""
    data = fetch_multi30k_encoders()
    print("\n| measure | rows | as published | unrelated | calibrated | z |")
    print(f"|{'---|' * 6}")
    for views in (data["test"].views, data["train"].views[:10_000]):
        found = compare_representations(views.select(ENCODERS), measures=MEASURES)
        for name in MEASURES:
            figures = (found.raw, found.expected, found, found.z)
            raw, expected, value, z = (figure[name][0, 1] for figure in figures)
            rows = f"{found.n_rows:,}"
            print(f"| {name} | {rows} | {raw:.4f} | {expected:.4f} | {value:.4f} | {z:.1f} |")


def permutations(n_permutations: int) -> None:
    """Moments of CKA of 60 rows, against permutations."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((60, 20)), rng.standard_t(4, (60, 30))
    options = {"measures": ("cka", "cka_unbiased"), "calibrate": False}
    drawn: dict[str, list[float]] = {"cka": [], "cka_unbiased": []}
    for _ in range(n_permutations):
        found = compare_representations([x], other=[y[rng.permutation(len(y))]], **options)
        for name, values in drawn.items():
            values.append(float(found.raw[name][0, 0]))
    table = compare_representations([x], other=[y], measures=tuple(drawn))
    print(f"\nPermutations ({n_permutations:,}) relative to the formula:")
    for name, values in drawn.items():
        error = (np.mean(values) - table.expected[name][0, 0]) / table.deviation[name][0, 0]
        ratio = np.std(values) / table.deviation[name][0, 0]
        print(f"{name}: mean {error:+.3f} standard deviations, standard deviation x {ratio:.3f}")


def sketches(width: int, n_seeds: int) -> None:
    """Unbiased CKA of two encoders by sketches."""
    views = fetch_multi30k_encoders()["test"].views.select(ENCODERS)
    layers = {name: np.asarray(views[name]) for name in ENCODERS}
    truth = compare_representations(layers)["cka_unbiased"][0, 1]
    print(f"\nUnbiased CKA {truth:.3f}; two sketches of k columns, {n_seeds} seeds:")
    for k in (width // 4, width // 2, width):
        found = [
            compare_representations(LayerSums(sketch=k, random_state=seed).update(layers))
            for seed in range(n_seeds)
        ]
        values = [table["cka_unbiased"][0, 1] for table in found]
        print(f"k = {k}: {np.mean(values):.3f} ± {np.std(values):.3f}")


def many_layers(options: argparse.Namespace) -> None:
    """One pass over batches of many layers, against the bare products."""
    sums, seconds = LayerSums(sketch=options.sketch), 0.0
    for batch in _batches(options):
        start = time.process_time()
        sums.update(batch)
        seconds += time.process_time() - start
    start = time.process_time()
    compare_representations(sums)
    table = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    floor = _bare_products(options)
    shape = f"{options.layers} layers of {options.width}, {options.rows:,} rows in batches"
    print(f"\n{shape} of {BATCH:,}, sketch {options.sketch}:")
    print(f"sums {seconds:.1f} s CPU, {seconds / floor:.2f} x the bare products ({floor:.1f} s)")
    print(f"table {table:.1f} s; process {peak:.2f} GB")


def _bare_products(options: argparse.Namespace) -> float:
    """CPU seconds of projections and of products of the projected rows, without centring."""
    is_sketched = options.width > 2 * options.sketch
    projection, seconds, total = np.ones((options.width, options.sketch)), 0.0, None
    for batch in _batches(options):
        start = time.process_time()
        blocks = list(batch.values())
        if is_sketched:
            blocks = [rows @ projection for rows in blocks for _ in range(2)]
        rows = np.concatenate(blocks, axis=1)
        product = rows.T @ rows
        total = product if total is None else np.add(total, product, out=total)
        seconds += time.process_time() - start
    return seconds


def _batches(options: argparse.Namespace) -> Iterator[dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    for _ in range(max(options.rows // BATCH, 1)):
        rows = rng.standard_normal((BATCH, options.width))
        yield {
            f"layer{number}": rows + number / 8 * rng.standard_normal((BATCH, options.width))
            for number in range(options.layers)
        }


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    many_layers(options)  # first, for its memory
    encoders()
    permutations(options.permutations)
    sketches(options.sketch, options.seeds)


if __name__ == "__main__":
    main(OPTIONS)
