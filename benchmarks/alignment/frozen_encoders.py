"""Aligning frozen text encoders by few or many pairs: the default against what others would use.

R@1 on the 1,000 test sentences of Multi30K, mean of both directions, with and without CSLS
against the training pairs. The pairs are drawn at random from the 10,000 training sentences, once
per seed. The default, ``CCA(n_components=None, reg="cv")``, sees nothing but its pairs: folds of
them choose its ridge, number of components and ranking, CSLS included. All others choose their
ridge, or k and p, on the 1,014 validation sentences, an advantage for them.

- ridge both ways: regressions of each encoder on the other, by the sum of both cosines;
- Procrustes: the rotation between centred rows of length 1;
- VecMap-like (Artetxe, Labaka and Agirre, AAAI 2018): whitening, rotation, weights √ρ on both
  sides, and the inverse of the whitening in each space;
- CSA (Li, Chinchali and Topcu, ICLR 2025), as we read it: Σ ρ_i a_i b_i / (‖a‖ ‖b‖);
- relative (Moschella et al., ICLR 2023): cosines to all training pairs;
- ASIF (Norelli et al., NeurIPS 2023): the k largest of these, to a power p;
- linear and MLP heads: trained by InfoNCE with Adam in batches of at most 1,024 pairs, the
  temperature and the number of epochs chosen.

    MVCCA_DATA=../shared/data python -m benchmarks.alignment.frozen_encoders [--seeds 3]
        [--pairs 200 ...] [--methods "linear heads" ...]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pairs", type=int, nargs="+", default=[200, 1000, 10_000])
    parser.add_argument("--methods", nargs="+", help="beside the default (default: all)")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from torch import nn

from benchmarks._measure import machine
from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, AffineMap, Procrustes, Views, evaluate_retrieval
from mvcca.deep.encoders import mlp
from mvcca.deep.functional import info_nce
from mvcca.measures import unit_rows

ENCODERS = (("en_minilm", "de_e5"), ("en_wordllama", "de_e5"), ("en_wordllama", "en_minilm"))
CCA_RIDGES = (1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
MAP_RIDGES = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0)
EPOCHS, TEMPERATURES = (10, 30, 100), (0.03, 0.07, 0.15)
ASIF = tuple((k, p) for k in (30, 100, 300, 1000) for p in (1, 2, 4, 8))

Vectors = Callable[[Views], Views]  # whose inner products rank


def recall(vectors: Vectors, views: Views, bank: Views | None = None) -> float:
    """R@1, mean of both directions; with CSLS if there is a bank."""
    correction = {} if bank is None else {"hubness": "csls", "bank": vectors(bank)}
    table = evaluate_retrieval(vectors(views), measures="r@1", similarity="inner", **correction)
    return float(table.mean()["r@1"])


def ridge_both_ways(train: Views, reg: float) -> Vectors:
    """Cosines in both spaces, added."""
    first, second = train.names
    there = AffineMap(reg=reg).fit(train)
    back = AffineMap(reg=reg).fit(train.select((second, first)))

    def vectors(views: Views) -> Views:
        x, y = views[first], views[second]
        forth = there.predict({first: x}, target=second), back.predict({second: y}, target=first)
        own = unit_rows(y - means[second]), unit_rows(x - means[first])
        moved = unit_rows(forth[0] - means[second]), unit_rows(forth[1] - means[first])
        return Views({first: np.hstack([moved[0], own[1]]), second: np.hstack([own[0], moved[1]])})

    means = {name: train[name].mean(axis=0) for name in train.names}
    return vectors


def rotation(train: Views, _: None) -> Vectors:
    """The rotation of rows of length 1."""
    model = Procrustes().fit(train)

    def vectors(views: Views) -> Views:
        return Views({name: unit_rows(rows) for name, rows in model.transform(views).items()})

    return vectors


def canonical(train: Views, reg: float) -> CCA:
    return CCA(min(len(train) - 1, 256), reg=reg).fit(train)


def csa(train: Views, reg: float) -> Vectors:
    """Canonical variates of length 1, then weighted."""
    model = canonical(train, reg)
    roots = np.sqrt(model.canonical_correlations_)

    def vectors(views: Views) -> Views:
        scores = model.transform(views)
        return Views({name: roots * unit_rows(rows) for name, rows in scores.items()})

    return vectors


def vecmap(train: Views, reg: float) -> Vectors:
    """Whiten, rotate, weight by √ρ and undo the whitening of the space that a view came from."""
    means, roots, inverses = {}, {}, {}
    for name in train.names:
        means[name] = train[name].mean(axis=0)
        centred = train[name] - means[name]
        values, axes = np.linalg.eigh(centred.T @ centred / len(train))
        damped = np.maximum(values, 0) + reg * values.mean()
        roots[name] = axes * np.sqrt(damped) @ axes.T
        inverses[name] = axes / np.sqrt(damped) @ axes.T
    first, second = train.names
    between = (train[first] - means[first]).T @ (train[second] - means[second]) / len(train)
    left, rho, right = np.linalg.svd(inverses[first] @ between @ inverses[second], False)
    turns = {first: left * np.sqrt(rho), second: right.T * np.sqrt(rho)}
    # Both sides end in the space of the second view.
    undone = right @ roots[second]

    def vectors(views: Views) -> Views:
        return Views(
            {n: unit_rows((views[n] - means[n]) @ inverses[n] @ turns[n] @ undone) for n in turns}
        )

    return vectors


def to_anchors(train: Views, sparse: tuple[int, int] | None) -> Vectors:
    """Cosines to the training pairs: all of them, or the k largest to the power p."""
    means = {name: train[name].mean(axis=0) for name in train.names}
    anchors = {name: unit_rows(train[name] - means[name]) for name in train.names}

    def vectors(views: Views) -> Views:
        found = {}
        for name in train.names:
            cosines = unit_rows(views[name] - means[name]) @ anchors[name].T
            if sparse is None:
                found[name] = unit_rows(cosines - cosines.mean(axis=1, keepdims=True))
                continue
            k, p = min(sparse[0], len(train)), sparse[1]
            least = np.partition(cosines, -k, axis=1)[:, [-k]]
            found[name] = unit_rows(np.where(cosines >= least, np.maximum(cosines, 0), 0) ** p)
        return Views(found)

    return vectors


def heads(train: Views, setting: tuple[tuple[int, ...], float]) -> list[Vectors]:
    """Networks on both sides after some numbers of epochs, from centred rows of length 1."""
    hidden, temperature = setting
    means = {name: train[name].mean(axis=0) for name in train.names}

    def centred(views: Views, name: str) -> torch.Tensor:
        return torch.tensor(unit_rows(views[name] - means[name]), dtype=torch.float32)

    torch.manual_seed(0)
    nets = nn.ModuleList([mlp(train[name].shape[1], hidden, 256) for name in train.names])
    first, second = (centred(train, name) for name in train.names)
    optimizer = torch.optim.AdamW(nets.parameters(), lr=1e-3, weight_decay=1e-2)
    kept = []
    for epoch in range(1, max(EPOCHS) + 1):
        nets.train()
        for rows in torch.randperm(len(train)).split(1024):
            optimizer.zero_grad()
            info_nce(nets[0](first[rows]), nets[1](second[rows]), temperature).backward()
            optimizer.step()
        if epoch in EPOCHS:
            kept.append(deepcopy(nets).eval())

    def vectors(views: Views, own: nn.ModuleList) -> Views:
        with torch.no_grad():
            found = [net(centred(views, n)) for net, n in zip(own, train.names, strict=True)]
        rows = (unit_rows(F.numpy().astype(float)) for F in found)
        return Views(dict(zip(train.names, rows, strict=True)))

    return [partial(vectors, own=own) for own in kept]


OTHERS: dict[str, tuple[Callable[[Views, Any], Vectors | list[Vectors]], Sequence[Any]]] = {
    "ridge both ways": (ridge_both_ways, MAP_RIDGES),
    "Procrustes": (rotation, (None,)),
    "VecMap-like": (vecmap, CCA_RIDGES),
    "CSA": (csa, CCA_RIDGES),
    "relative": (to_anchors, (None,)),
    "ASIF": (to_anchors, ASIF),
    "linear heads": (heads, [((), temperature) for temperature in TEMPERATURES]),
    "MLP heads": (heads, [((512,), temperature) for temperature in TEMPERATURES]),
}


def figures(
    train: Views, valid: Views, test: Views, methods: Sequence[str] | None
) -> dict[str, float]:
    """R@1 on the test rows of the default, and of the others without and with CSLS."""
    model = CCA(n_components=None, reg="cv").fit(train)
    table = evaluate_retrieval(test, estimator=model, measures="r@1")
    found = {"default": float(table.mean()["r@1"])}
    bank = train[:2000]  # in random order
    for name, (fit, settings) in OTHERS.items():
        if methods is not None and name not in methods:
            continue
        made = [fit(train, each) for each in settings]
        fitted = [v for one in made for v in (one if isinstance(one, list) else [one])]
        for label, rows in ((name, None), (f"{name}, CSLS", bank)):
            chosen = fitted[0]
            if len(fitted) > 1:
                chosen = max(fitted, key=lambda vectors, rows=rows: recall(vectors, valid, rows))
            found[label] = recall(chosen, test, rows)
    return found


def main(options: argparse.Namespace) -> None:
    print(machine(1), "\n")
    warnings.simplefilter("ignore")
    data = fetch_multi30k_encoders()
    for pair in ENCODERS:
        train, valid, test = (data[part].views.select(pair) for part in ("train", "valid", "test"))
        print(f"\n{pair[0]} and {pair[1]}\n")
        print("| method | " + " | ".join(f"{n:,} pairs" for n in options.pairs) + " |")
        print("|---" * (1 + len(options.pairs)) + "|", flush=True)
        columns = []
        for n_pairs in options.pairs:
            runs = []
            # All pairs are the same pairs for every seed.
            for seed in range(options.seeds if n_pairs < len(train) else 1):
                rows = np.random.default_rng(seed).permutation(len(train))[:n_pairs]
                runs.append(figures(train[rows], valid, test, options.methods))
            columns.append({name: [run[name] for run in runs] for name in runs[0]})
        for name in columns[0]:
            cells = []
            for column in columns:
                values, behind = column[name], np.subtract(column["default"], column[name])
                cell = f"{np.mean(values):.3f}"
                if len(values) > 1:
                    error = behind.std(ddof=1) / len(values) ** 0.5
                    cell += f" ({-behind.mean():+.3f} ± {error:.3f})"
                else:
                    cell += f" ({-behind.mean():+.3f})"
                cells.append(cell)
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
