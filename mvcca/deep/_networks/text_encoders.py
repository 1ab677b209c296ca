"""Networks for views whose rows are sequences of words.

Rows are integers, such as those of `mvcca.compose.Tokens`: 0 is padding, and stands at the end of
short sequences; 1 is an unknown word, as are words beyond the vocabulary. The output does not
depend on the amount of padding, unless a class says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mvcca.deep._networks.weights import convolution_1d, embedding, gru, linear


class _WordNetwork(nn.Module):
    """Base of networks for sequences of words, whose vocabulary may be counted later."""

    takes_integers = True
    n_words: int | None

    def set_n_words(self, n_words: int, generator: torch.Generator | None = None) -> None:
        """Set the size of the vocabulary, with new initial weights of the first layer.

        Parameters
        ----------
        n_words : int
            Size of the vocabulary, including padding (0) and unknown words (1).
        generator : torch.Generator, optional
            Generator of the initial weights; by default torch's global one.
        """
        self.n_words = n_words
        self._new_first_layer(generator)

    def _new_first_layer(self, generator: torch.Generator | None) -> None:
        """Create the layer whose size depends on the vocabulary."""
        raise NotImplementedError

    @property
    def _n_positions(self) -> int:
        """Positions in the first layer; only padding and unknown words before words are counted."""
        return 2 if self.n_words is None else self.n_words

    def _known(self, tokens: Tensor) -> Tensor:
        """Sequences in which words beyond the vocabulary are unknown."""
        if self.n_words is None:
            raise RuntimeError(
                f"{type(self).__name__} does not know the size of the vocabulary yet. Give "
                "n_words, or pass the network in `encoders` to an estimator, which counts the "
                "words of the training rows."
            )
        return torch.where(tokens < self.n_words, tokens, 1)


class WCNN(_WordNetwork):
    """Convolutional network of word vectors: the maximum of every filter over time [1]_, [2]_.

    Vectors of words are convolved by filters of several widths, followed by ReLU and, for each
    filter, the maximum over the windows inside the sequence. A sequence shorter than a filter has
    one window, filled with zeros. Add a linear layer for another number of outputs:
    ``nn.Sequential(WCNN(n_words), nn.Linear(300, k))``.

    Parameters
    ----------
    n_words : int, optional
        Size of the vocabulary, including padding (0) and unknown words (1). By default estimators
        count the words of the training rows.
    widths : sequence of int, default=(3, 4, 5, 6, 7, 8)
        Widths of the filters. [1]_ uses 3 to 8 with 50 filters each, and 1 to 5 with 60 filters for
        short queries: 300 outputs.
    n_filters : int, default=50
        Filters per width.
    embedding_size : int, default=25
        Size of the vectors of words.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    References
    ----------
    .. [1] Wang, He, Kang, Xiang and Pan, "Image-Text Cross-Modal Retrieval via Modality-Specific
       Feature Learning", ICMR 2015.
    .. [2] Kim, "Convolutional Neural Networks for Sentence Classification", EMNLP 2014.

    Examples
    --------
    >>> import torch
    >>> from mvcca.deep.encoders import WCNN
    >>> tokens = torch.tensor([[4, 2, 3, 0, 0], [5, 2, 1, 3, 2]])
    >>> WCNN(10)(tokens).shape
    torch.Size([2, 300])
    """

    def __init__(
        self,
        n_words: int | None = None,
        *,
        widths: Sequence[int] = (3, 4, 5, 6, 7, 8),
        n_filters: int = 50,
        embedding_size: int = 25,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.n_words = n_words
        self.widths = tuple(widths)
        self.n_filters = n_filters
        self.embedding_size = embedding_size
        self._new_first_layer(generator)
        self.filters = nn.ModuleList(
            convolution_1d(embedding_size, n_filters, width, generator) for width in widths
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Map sequences of shape (n_rows, length) to shape (n_rows, n_filters x n_widths)."""
        tokens = self._known(tokens)
        tokens = nn.functional.pad(tokens, (0, max(max(self.widths) - tokens.shape[1], 0)))
        lengths = _lengths(tokens)
        vectors = self.words(tokens).mT
        maxima = []
        for width, convolution in zip(self.widths, self.filters, strict=True):
            windows = convolution(vectors)
            n_windows = (lengths - width + 1).clamp(min=1)
            outside = torch.arange(windows.shape[2], device=tokens.device) >= n_windows[:, None]
            windows = windows.masked_fill(outside[:, None], -torch.inf)
            maxima.append(torch.relu(windows.amax(dim=2)))
        return torch.cat(maxima, dim=1)

    def _new_first_layer(self, generator: torch.Generator | None) -> None:
        self.words = embedding(self._n_positions, self.embedding_size, generator)


class _OneHotNetwork(_WordNetwork):
    """Base of networks that begin with convolutions of one-hot words."""

    def __init__(
        self,
        n_words: int | None,
        n_components: int,
        length: int,
        n_filters: int,
        hidden_size: int,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.n_words = n_words
        self.n_components = n_components
        self.length, self.n_steps = length, length // 3 - 4
        if self.n_steps < 1:
            raise ValueError(f"length must be at least 15, got {length}.")
        self.n_filters = n_filters
        self.hidden_size = hidden_size
        self.convolutions = nn.ModuleDict()
        self._new_first_layer(generator)
        self.convolutions["others"] = nn.Sequential(
            nn.BatchNorm1d(n_filters),
            nn.ELU(),
            nn.MaxPool1d(3),
            convolution_1d(n_filters, n_filters, 3, generator),
            nn.BatchNorm1d(n_filters),
            nn.ELU(),
            convolution_1d(n_filters, n_filters, 3, generator),
            nn.BatchNorm1d(n_filters),
            nn.ELU(),
        )

    def _new_first_layer(self, generator: torch.Generator | None) -> None:
        first = convolution_1d(self._n_positions, self.n_filters, 3, generator)
        self.convolutions["first"] = first

    def _convolved(self, tokens: Tensor) -> Tensor:
        """Map sequences of shape (n_rows, length) to shape (n_rows, n_filters, n_steps)."""
        tokens = self._known(tokens)
        if tokens.shape[1] > self.length:
            raise ValueError(
                f"Expected sequences of at most length={self.length} words, got "
                f"{tokens.shape[1]}. Cut them, or raise length."
            )
        tokens = nn.functional.pad(tokens, (1, self.length - tokens.shape[1] + 1))
        words, first = (tokens > 0)[..., None], self.convolutions["first"]
        out = first.bias
        for step in range(3):  # of the window: the word there picks a column of the weights
            window = slice(step, step + self.length)
            picked = nn.functional.embedding(tokens[:, window], first.weight[:, :, step].T)
            out = out + picked * words[:, window]
        return self.convolutions["others"](out.mT)


class WordCNN(_OneHotNetwork):
    """Convolutional network of one-hot words, for zero-shot retrieval [1]_.

    Convolution of width 3 (same length) → batch norm → ELU → maximum of 3 words → twice
    (convolution of width 3 → batch norm → ELU) → fully connected → batch norm → ELU → linear. The
    convolution of one-hot words is a sum of rows of its weights, so that they are never formed.

    Sequences are padded to `length`, and padding counts as words without entries, as in [1]_.

    Parameters
    ----------
    n_words : int, optional
        Size of the vocabulary, including padding (0) and unknown words (1). By default estimators
        count the words of the training rows.
    n_components : int, default=64
        Width of the output.
    length : int, default=30
        Number of words of a sequence, at least 15.
    n_filters : int, default=256
        Filters of each convolution.
    hidden_size : int, default=1024
        Width of the fully connected layer.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, table 9.
    """

    def __init__(
        self,
        n_words: int | None = None,
        n_components: int = 64,
        *,
        length: int = 30,
        n_filters: int = 256,
        hidden_size: int = 1024,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(n_words, n_components, length, n_filters, hidden_size, generator)
        self.last = nn.Sequential(
            nn.Flatten(),
            linear(n_filters * self.n_steps, hidden_size, generator),
            nn.BatchNorm1d(hidden_size),
            nn.ELU(),
            linear(hidden_size, n_components, generator),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Map sequences of shape (n_rows, at most `length`) to shape (n_rows, n_components)."""
        return self.last(self._convolved(tokens))


class WordCNNRNN(_OneHotNetwork):
    """Convolutions as in `WordCNN`, then a recurrent layer averaged over time [1]_.

    Parameters
    ----------
    n_words : int, optional
        Size of the vocabulary, including padding (0) and unknown words (1). By default estimators
        count the words of the training rows.
    n_components : int, default=64
        Width of the output.
    length : int, default=30
        Number of words of a sequence, at least 15.
    n_filters : int, default=256
        Filters of each convolution.
    hidden_size : int, default=512
        Units of the gated recurrent layer.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, table 9.
    """

    def __init__(
        self,
        n_words: int | None = None,
        n_components: int = 64,
        *,
        length: int = 30,
        n_filters: int = 256,
        hidden_size: int = 512,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(n_words, n_components, length, n_filters, hidden_size, generator)
        self.recurrent = gru(n_filters, hidden_size, generator)
        self.last = linear(hidden_size, n_components, generator)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map sequences of shape (n_rows, at most `length`) to shape (n_rows, n_components)."""
        states, _ = self.recurrent(self._convolved(tokens).mT)
        return self.last(states.mean(dim=1))


def _lengths(tokens: Tensor) -> Tensor:
    """Number of words before the padding at the end."""
    positions = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    return ((tokens != 0) * positions).amax(dim=1)
