"""`mvcca migrate`: map stored vectors of an old embedding model to the space of a new one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.arrays import path_of, read_array
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError, in_one_line
from mvcca.cli.inputs import open_view
from mvcca.cli.output import checked_suffix, replacing, writable, write_npy
from mvcca.cli.projection import Projection
from mvcca.cli.running import running
from mvcca.linear import AffineMap, Procrustes
from mvcca.measures import unit_rows
from mvcca.retrieval import top_k
from mvcca.views import Views

_OLD, _NEW = "old", "new"
_NEAREST = 10
_LEAST = 10  # pairs


def run(options: Namespace) -> None:
    """Run the command."""
    checked_suffix(options.output, "vectors", (".npy",))
    files = [options.old, options.new, *([options.sample] if options.sample else [])]
    output = writable(options.output, map(path_of, files))
    with running(options):
        pairs = _pairs(options)
        rng = np.random.default_rng(options.seed)
        fitted_to, held_out = _split(pairs, options.test_size, rng)
        reg = _best_reg(fitted_to, options, rng)
        own, kept = _recall(_fitted(fitted_to, options, reg), held_out)
        predict = _fitted(pairs, options, reg).predictor(_OLD, _NEW)
        if not options.json:
            _report(options, len(fitted_to), len(held_out), reg, own, kept)

        def migrated(views: Any) -> dict[str, np.ndarray]:
            rows = predict(views[_OLD])
            return {_OLD: unit_rows(rows) if options.normalize else rows}

        projection = Projection.open(migrated, _OLD, options.old)
        shape = len(projection), projection.width
        with replacing(output) as file:
            write_npy(file, projection.blocks(), shape, projection.dtype)
    facts = {"file": str(output), "rows": shape[0], "features": shape[1], "found_first": own}
    text = f"{output}: {shape[0]:,} rows, {shape[1]} features"
    show(options, text, {**facts, "neighbors_kept": kept, "reg": reg})


def _pairs(options: Namespace) -> Views:
    """The sample: rows of both models that embed the same items."""
    old, new = open_view(_OLD, options.old), open_view(_NEW, options.new)
    if options.sample is None:
        rows = np.arange(new.shape[0])
        if len(rows) > old.shape[0]:
            raise CommandError(
                f"{options.new}: {len(rows)} rows, but {options.old} has only {old.shape[0]}"
            )
    else:
        rows = _row_numbers(options.sample, old.shape[0])
        if len(rows) != new.shape[0]:
            raise CommandError(
                f"{options.sample}: {len(rows)} row numbers for the {new.shape[0]} rows of "
                f"{options.new}"
            )
    if len(rows) < _LEAST:
        raise CommandError(f"{options.new}: {len(rows)} pairs, but at least {_LEAST} are needed")
    with in_one_line():
        pairs = Views({_OLD: Views({_OLD: old})[rows].in_memory()[_OLD], _NEW: new}).in_memory()
    for name, block in pairs.items():
        if issparse(block):
            raise CommandError(f"{getattr(options, name)}: expected dense rows, got sparse ones")
    return pairs


def _row_numbers(file: str, n_rows: int) -> np.ndarray:
    """Distinct row numbers from 0, in the order of the rows of the new model."""
    found = read_array(file)
    if issparse(found) or found.dtype.kind not in "iuf" or found.size != max(found.shape):
        raise CommandError(f"{file}: expected one row number per line")
    numbers = found.ravel()
    if (numbers != np.floor(numbers)).any() or numbers.min() < 0 or numbers.max() >= n_rows:
        raise CommandError(f"{file}: expected row numbers from 0 to {n_rows - 1}")
    if len(np.unique(numbers)) < len(numbers):
        raise CommandError(f"{file}: a row number is there twice; name every row once")
    return numbers.astype(np.int64)


def _split(pairs: Views, size: float | int, rng: np.random.Generator) -> tuple[Views, Views]:
    """Pairs to fit, and pairs held out."""
    n_pairs = len(pairs)
    n_held_out = size if isinstance(size, int) else max(2, round(size * n_pairs))
    if n_held_out > n_pairs - 2:
        raise CommandError(f"--test-size {size}: too few of {n_pairs} pairs are left to fit")
    order = rng.permutation(n_pairs)
    return pairs[np.sort(order[n_held_out:])], pairs[np.sort(order[:n_held_out])]


def _best_reg(pairs: Views, options: Namespace, rng: np.random.Generator) -> float | None:
    """Of several ridges the one that ranks best on a fifth of the pairs; None for rotations."""
    if options.method == "procrustes":
        return None
    if len(options.reg) == 1:
        return options.reg[0]
    rest, validation = _split(pairs, 0.2, rng)
    return max(options.reg, key=lambda reg: _recall(_fitted(rest, options, reg), validation))


def _fitted(pairs: Views, options: Namespace, reg: float | None) -> AffineMap | Procrustes:
    if options.method == "procrustes":
        return Procrustes(options.n_components).fit(pairs)
    assert reg is not None
    return AffineMap(options.n_components, reg=reg).fit(pairs)


def _recall(model: AffineMap | Procrustes, pairs: Views) -> tuple[float, float]:
    """How well rows of the new model find migrated rows.

    The share of rows that find their own migrated row first, and the share of their nearest rows
    under the new model that are also among the nearest migrated ones.
    """
    new = pairs[_NEW]
    migrated = model.predict({_OLD: pairs[_OLD]}, target=_NEW)
    k = min(_NEAREST, len(new))
    found, exact = top_k(new, migrated, k)[1], top_k(new, new, k)[1]
    own = np.mean(found[:, 0] == np.arange(len(new)))
    shared = (found[:, :, None] == exact[:, None, :]).any(axis=2)
    return float(own), float(shared.mean())


def _report(
    options: Namespace,
    n_fitted: int,
    n_held_out: int,
    reg: float | None,
    own: float,
    kept: float,
) -> None:
    name = options.method if reg is None else f"{options.method}, reg={reg:g}"
    k = min(_NEAREST, n_held_out)
    print(f"{name}: fitted to {n_fitted:,} pairs, measured on {n_held_out:,} held-out pairs")
    print(f"queries of the new model that find their own migrated row first: {own:.3f}")
    print(f"their {k} nearest rows that are still among the {k} nearest: {kept:.3f}", flush=True)
