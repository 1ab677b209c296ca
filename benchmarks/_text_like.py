"""Sparse views that look like texts about the same objects, for measurements of wide views.

Words are drawn from a few topics per object, which all views share, and from a background. The
frequencies of topics, of words within a topic, and of words in the background follow Zipf's law.
Rows are tf-idf weighted and have unit length. About 45 of 50 draws of a row are distinct words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array, vstack

_BLOCK = 50_000  # rows drawn at a time
_TOPICS_OF_OBJECT = 3
_POPULARITY = 0.7  # exponent of Zipf's law of the topics


def text_like(
    n_rows: int,
    widths: Sequence[int],
    *,
    n_topics: int = 100,
    n_words: int = 50,
    of_topics: float = 0.5,
    exponent: float = 1.0,
    seed: int = 0,
    dtype: type = np.float64,
) -> list[csr_array]:
    """Draw one sparse view per width.

    Parameters
    ----------
    n_rows : int
        Number of objects.
    widths : sequence of int
        Vocabulary size of each view.
    n_topics : int
        Number of topics; each object has up to three of them, in all views.
    n_words : int
        Draws per row, with repetition.
    of_topics : float
        Share of words that are drawn from topics, not from the background.
    exponent : float
        Of Zipf's law, p(rank) ∝ rank^-exponent.
    seed : int
        Of all random numbers.
    dtype : dtype
        Of the rows.
    """
    rng = np.random.default_rng(seed)
    # An object's draws come from its topics in proportion to these shares.
    popularity = np.arange(1, n_topics + 1) ** -_POPULARITY
    popularity /= popularity.sum()
    topics = rng.choice(n_topics, (n_rows, _TOPICS_OF_OBJECT), p=popularity)
    shares = np.cumsum(rng.dirichlet(np.ones(_TOPICS_OF_OBJECT), n_rows), axis=1)
    views = []
    for width in widths:
        cumulative = np.cumsum(np.arange(1, width + 1) ** -exponent)
        cumulative /= cumulative[-1]
        words = np.empty((n_topics + 1, width), np.int32)  # the last are those of the background
        for own in words:
            own[:] = rng.permutation(width)
        starts = range(0, n_rows, _BLOCK)
        counts = vstack(
            [
                _counts(rng, topics[i : i + _BLOCK], shares[i : i + _BLOCK], words, cumulative,
                        n_words, of_topics)
                for i in starts
            ],
            format="csr",
        )  # fmt: skip
        views.append(_tf_idf(csr_array(counts)).astype(dtype))
    return views


def _counts(
    rng: np.random.Generator,
    topics: np.ndarray,
    shares: np.ndarray,
    words: np.ndarray,
    cumulative: np.ndarray,
    n_words: int,
    of_topics: float,
) -> csr_array:
    """How often each word occurs in each row."""
    n_rows = len(topics)
    place = (rng.random((n_rows, n_words))[:, :, None] > shares[:, None, :-1]).sum(axis=2)
    topic = np.take_along_axis(topics, place, axis=1)
    topic[rng.random((n_rows, n_words)) > of_topics] = len(words) - 1
    rank = np.searchsorted(cumulative, rng.random((n_rows, n_words)))
    columns = words[topic, np.minimum(rank, words.shape[1] - 1)].ravel()
    ends = np.arange(0, n_rows * n_words + 1, n_words, dtype=np.int32)
    counts = csr_array((np.ones(len(columns)), columns, ends), (n_rows, words.shape[1]))
    counts.sum_duplicates()
    return counts


def _tf_idf(counts: csr_array) -> csr_array:
    """Rows (1 + log count) · log(n / document frequency), of unit length; in place."""
    n_rows, n_words = counts.shape
    frequency = np.bincount(counts.indices, minlength=n_words)
    inverse = np.log((1 + n_rows) / (1 + frequency)) + 1
    counts.data = (1 + np.log(counts.data)) * inverse[counts.indices]
    lengths = np.sqrt(np.add.reduceat(counts.data**2, counts.indptr[:-1]))
    counts.data /= np.repeat(lengths, np.diff(counts.indptr))
    return counts
