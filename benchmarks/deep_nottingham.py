"""Retrieval between sheet music and audio of folk tunes: R@1, R@5, R@10 and MRR both ways.

    MVCCA_DATA=../shared/data python benchmarks/deep_nottingham.py [--seeds 5]
        [--methods cca dcca learned ccal] [--shares full tenth] [--output results.csv]

Both views are rendered from excerpts of 16 steps of the piano rolls. Excerpts do not overlap, are
distinct within a part, and have new notes in at least half of their steps. The parts hold different
tunes. Crop, loudness, timbre, tempo and noise are random, with a fixed seed.

- Sheet, 40 x 100 pixels: one row per line or space of a grand staff, which the crop moves by up to
  one row. A head marks where a note begins, a bar how long it lasts, and a mark before the head a
  sharp. As in printed music, width grows with the logarithm of a duration, and excerpts are
  stretched to the width of the picture.
- Audio, 136 x 100: logarithm of a spectrogram with 20 bins per octave. Each note has eight
  harmonics with an attack, a decay and a release. A step lasts 5 to 7.8 frames.

DCCA, LearnedRanking and CCAL share the published networks, with fewer filters, and the optimizer;
LearnedRanking has a linear layer in place of the CCA layer. They train on 2,000 excerpts, or on a
tenth of them, keep the weights of the epoch with the best mean reciprocal rank on 150 validation
excerpts, which also choose the learning rate on the first seed, and rank 1,000 test excerpts by
each other. Linear CCA of 200 principal components, with the ridge chosen on the validation
excerpts, is the reference. A line per share, method and seed is printed, and appended to --output;
then the mean and standard deviation over the seeds, and paired t-tests against CCAL. Needs
nottingham.npz in the directory MVCCA_DATA. ``--mixed-precision`` trains in bfloat16, which is
faster only on processors with instructions for it.

``--channels 16 32 64 64 --components 32 --batch-size 1000 --learning-rates 1e-3 --rows 5000
--epochs 200 400 --device cuda`` comes closer to the published settings.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--shares", nargs="+", help="all by default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2000, help="training excerpts")
    parser.add_argument("--epochs", type=int, nargs=2, default=(16, 60), help="full, tenth")
    parser.add_argument("--batch-size", type=int, default=100)
    parser.add_argument("--learning-rates", type=float, nargs="+", default=[2e-3, 8e-3])
    parser.add_argument("--components", type=int, default=16)
    parser.add_argument("--channels", type=int, nargs=4, default=(4, 8, 16, 32))
    parser.add_argument("--mixed-precision", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch
from _arguments import names_in
from _measure import machine
from _retrieval import figures, noted, report
from real import fetch_nottingham
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from torch import nn

from mvcca import CCA, PerView, Views
from mvcca.deep import CCAL, DCCA, LearnedRanking
from mvcca.deep.encoders import vgg
from mvcca.deep.layers import linear

METHODS = {"cca": CCA, "dcca": DCCA, "learned": LearnedRanking, "ccal": CCAL}
SHARED = {"optimizer": "adam", "weight_decay": 0.0, "monitor": "valid_mrr"}
SHARES = {"full": 1.0, "tenth": 0.1}
RIDGES = (1e-2, 1e-1, 1.0, 10.0)
SHAPES = {"sheet": (1, 40, 100), "audio": (1, 136, 100)}
STEPS = 16  # of an excerpt
LINES = (43, 47, 50, 53, 57, 64, 67, 71, 74, 77)  # of bass and treble staff, as MIDI numbers
LOWEST = 31  # MIDI number at the bottom of both views


def beginnings(rolls):
    """Whether a note begins at a step."""
    before = np.zeros_like(rolls)
    before[:, 1:] = rolls[:, :-1]
    return rolls & ~before


def excerpts(tunes, n_excerpts, rng):
    """Distinct, lively excerpts of tunes in random order, (n, steps, notes) bool."""
    rolls = np.concatenate([t[: len(t) // STEPS * STEPS].reshape(-1, STEPS, 88) for t in tunes])
    rolls = np.unique(rolls, axis=0).astype(bool)
    lively = beginnings(rolls).any(axis=2).sum(axis=1) >= STEPS // 2
    return rng.permutation(rolls[lively])[:n_excerpts]


def engraved(begins):
    """Step at each of 96 columns of pixels, and distance from the left edge of that step."""
    starts = begins.any(axis=2)
    starts[:, 0] = True
    chord = np.cumsum(starts, axis=1) - 1
    durations = (chord[:, :, None] == np.arange(STEPS)).sum(axis=1)  # of chords, in steps
    duration = np.take_along_axis(durations, chord, axis=1)  # (n, steps)
    width = np.log2(1 + duration) / duration
    edges = np.rint(96 * np.cumsum(width, axis=1) / width.sum(axis=1, keepdims=True))
    step = (np.arange(96) >= edges[:, :, None]).sum(axis=1)
    left = np.concatenate([np.zeros((len(edges), 1)), edges], axis=1)
    return step, np.arange(96) - np.take_along_axis(left, step, axis=1)


def sheets(rolls, notes, rng):
    """Pictures of excerpts, (n, 40 * 100); notes are the MIDI numbers of the columns of rolls."""
    degrees = np.array([0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5, 6])  # of the C major scale, by pitch class
    place = 7 * (np.arange(128) // 12) + degrees[np.arange(128) % 12]
    height = 38 + place[LOWEST] - place  # row of the picture, by MIDI number
    on_row = (height[notes][:, None] == np.arange(40)).astype(np.float32)
    begins = beginnings(rolls)
    step, distance = engraved(begins)

    def drawn(mask, columns):
        cells = (mask.astype(np.float32) @ on_row > 0).transpose(0, 2, 1)  # (n, 40, steps)
        return np.take_along_axis(cells, step[:, None], axis=2) & columns[:, None]

    pictures = np.zeros((len(rolls), 40, 100), dtype=np.float32)
    pictures[:, height[list(LINES)]] = 0.25
    inside = pictures[:, :, 2:-2]
    inside[drawn(rolls & ~begins, distance >= 0)] = 0.5
    inside[drawn(begins, distance > 3)] = 0.5
    inside[drawn(begins, (distance >= 1) & (distance <= 3))] = 1.0
    inside[drawn(begins & np.isin(notes % 12, (1, 3, 6, 8, 10)), distance == 0)] = 0.8
    source = np.arange(40) - rng.integers(-1, 2, (len(rolls), 1))  # the rows beyond are empty
    pictures = np.take_along_axis(pictures, source[:, :, None] % 40, axis=1)
    return pictures.reshape(len(rolls), -1)


def spectrograms(rolls, notes, rng):
    """Log spectrograms of performances of excerpts, (n, 136 * 100)."""
    n = len(rolls)
    position = np.arange(100) / 6.25 * rng.uniform(0.8, 1.25, (n, 1))  # in steps, (n, frames)
    steps = np.arange(STEPS + 8)[:, None]
    sounds = np.pad(rolls, ((0, 0), (0, 8), (0, 0)))  # silent after the end
    begun = np.maximum.accumulate(np.where(beginnings(sounds), steps, -np.inf), axis=1)
    ended = np.maximum.accumulate(np.where(sounds, steps + 1, -np.inf), axis=1)
    here = np.arange(n)[:, None], position.astype(int)
    age = position[:, :, None] - begun[here]  # (n, frames, notes)
    released = np.maximum(position[:, :, None] - ended[here], 0)
    envelope = (1 - np.exp(-age / 0.15)) * np.exp(-age / 6 - released / 0.5)
    envelope *= np.exp(0.3 * rng.standard_normal((n, 1, len(notes))))  # loudness

    harmonics = np.arange(1, 9)
    centres = 20 * (np.add.outer(np.log2(harmonics), (notes - LOWEST) / 12))
    peaks = np.exp(-0.5 * ((np.arange(136) - centres[:, :, None]) / 0.8) ** 2)
    amplitudes = rng.uniform(0.5, 0.8, (n, 1)) ** (harmonics - 1)  # timbre
    spectra = np.tensordot(amplitudes, peaks, axes=1)  # (n, notes, bins)
    power = np.matmul(envelope, spectra).transpose(0, 2, 1)
    power += 0.03 * np.abs(rng.standard_normal(power.shape))
    return np.log1p(20 * power).reshape(n, -1).astype(np.float32)


def rendered(data, part, n_excerpts, seed):
    """Views of excerpts of a part."""
    rng = np.random.default_rng(seed)
    notes = np.arange(data.lowest_note, data.lowest_note + 88)
    rolls = excerpts(data[part].rolls, n_excerpts, rng)
    return Views({"sheet": sheets(rolls, notes, rng), "audio": spectrograms(rolls, notes, rng)})


def networks(method, options, seed):
    """The networks of a method by view."""
    generator, k = torch.Generator().manual_seed(seed), options.components
    built = {}
    for name, shape in SHAPES.items():
        network = vgg(shape, k, channels=options.channels, generator=generator)
        if method == "learned":
            network.extend([nn.BatchNorm1d(k, affine=False), linear(k, k, generator)])
        built[name] = network.to(memory_format=torch.channels_last)  # faster on a CPU
    return built


def linear_cca(train, valid, n_components):
    """Linear CCA of principal components, with the ridge that ranks validation rows best."""
    reduced = PerView(PCA(min(200, len(train) - 1), random_state=0)).fit(train)
    models = [CCA(n_components, reg=reg).fit(reduced.transform(train)) for reg in RIDGES]
    found = [np.take(figures(model, reduced.transform(valid)), (3, 7)).mean() for model in models]
    return make_pipeline(reduced, models[int(np.argmax(found))])


def fitted(method, train, valid, epochs, rates, options, seed):
    """The model of the learning rate with the best mean reciprocal rank on validation rows."""
    if method == "cca":
        return linear_cca(train, valid, options.components)
    settings = {} if method == "dcca" else {"margin": 0.7}
    models = [
        METHODS[method](
            options.components,
            encoders=networks(method, options, seed),
            batch_size=options.batch_size,
            learning_rate=rate,
            max_epochs=epochs,
            mixed_precision=options.mixed_precision,
            device=options.device,
            random_state=seed,
            **SHARED,
            **settings,
        )
        for rate in rates
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # batches have fewer than 8 rows per component
        fits = [model.fit(train, X_val=valid) for model in models]
    return max(fits, key=lambda model: model.history_["valid_mrr"].max())


def main(options: argparse.Namespace) -> None:
    options.methods = names_in(options.methods, METHODS)
    options.shares = names_in(options.shares, SHARES)
    torch.set_num_threads(1)
    data = fetch_nottingham()
    train = rendered(data, "train", options.rows, 0)
    valid, test = rendered(data, "valid", 150, 1), rendered(data, "test", 1000, 2)
    print(f"{machine(1)}, torch {torch.__version__}, {options.device}", end="\n\n")
    print(
        "share, method, rate, seed, best epoch, CPU seconds, sheet to audio r@1 r@5 r@10 mrr, ..."
    )
    rates = dict.fromkeys(product(options.shares, options.methods), options.learning_rates)
    results = {share: {method: [] for method in options.methods} for share in options.shares}
    for seed, share, method in product(range(options.seeds), options.shares, options.methods):
        if method == "cca" and seed:  # nothing in it is random
            continue
        epochs = dict(zip(SHARES, options.epochs, strict=True))[share]
        rows = train[: round(SHARES[share] * len(train))]
        start = time.process_time()
        model = fitted(method, rows, valid, epochs, rates[share, method], options, seed)
        seconds = time.process_time() - start
        rates[share, method] = [getattr(model, "learning_rate", 0)]
        label = f"{share}, {method}, {rates[share, method][0]:g}, {seed}"
        row = noted(label, model, seconds, test, options.output)
        results[share][method].append(row)
    for share, found in results.items():
        print(f"\n{share}")
        report(found, test.names)


if __name__ == "__main__":
    main(OPTIONS)
