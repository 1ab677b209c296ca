"""Sheet music and sound of folk tunes, rendered from piano rolls.

Both views are of excerpts of 16 steps. Excerpts do not overlap, are distinct within a part, and
have new notes in at least half of their steps. The parts hold different tunes. Crop, loudness,
timbre, tempo and noise are random.

- Sheet, 40 x 100 pixels: one row per line or space of a grand staff, which the crop moves by up to
  one row. A head marks where a note begins, a bar how long it lasts, and a mark before the head a
  sharp. As in printed music, width grows with the logarithm of a duration, and excerpts are
  stretched to the width of the picture.
- Sound, 136 x 100: logarithm of a spectrogram with 20 bins per octave. Each note has eight
  harmonics with an attack, a decay and a release. A step lasts 5 to 7.8 frames.

Without the vertical moves of the crop, linear CCA solves the task (MRR .94), since pitches then
have fixed heights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from mvcca import Views
from mvcca.deep.encoders import vgg
from mvcca.deep.layers import linear

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


def networks(n_components: int, channels: tuple[int, ...], seed: int, *, learned: bool) -> Any:
    """The published networks; learned projections have another linear layer."""
    generator, built = torch.Generator().manual_seed(seed), {}
    for name, shape in SHAPES.items():
        network = vgg(shape, n_components, channels=channels, generator=generator)
        if learned:
            network.extend(
                [
                    nn.BatchNorm1d(n_components, affine=False),
                    linear(n_components, n_components, generator),
                ]
            )
        built[name] = network.to(memory_format=torch.channels_last)  # faster on a CPU
    return built
