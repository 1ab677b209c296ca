"""Texts as padded sequences of positions in a vocabulary."""

from __future__ import annotations

import re
from collections import Counter
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mvcca.compose._items import items_of
from mvcca.machine.documentation import Documented
from mvcca.views.validation import weights_of_rows

_PADDING, _UNKNOWN, _FIRST = 0, 1, 2  # positions; the vocabulary begins at the last


class Tokens(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Documented, BaseEstimator):
    """Turn texts into sequences of words, as rows of positions in a vocabulary.

    The vocabulary consists of the words of the training texts. A row holds the positions of the
    words of a text, from 2; words outside the vocabulary are 1, and 0 pads the row at its end.
    Networks such as `mvcca.deep.encoders.WCNN` take such rows.

    Parameters
    ----------
    lowercase : bool, default=True
        Convert texts to lower case.
    token_pattern : str, default=r"(?u)\\b\\w+\\b"
        Regular expression of a word, as in scikit-learn's `CountVectorizer`. The default keeps
        words of one letter.
    min_count : int, default=1
        Leave out words with fewer occurrences in the training texts. With 1, no training text has
        an unknown word, and networks learn nothing about them.
    max_words : int, optional
        Keep this many words at most, the most frequent ones.
    min_length : int, default=1
        Minimum length of the rows, for networks that need one.
    max_length : int, optional
        Maximum length of the rows; by default the longest training text determines it. Longer
        texts are cut at the end.

    Attributes
    ----------
    vocabulary_ : dict of str to int
        Positions of words, the most frequent first.
    n_words_ : int
        Size of the vocabulary including padding and unknown words, the ``n_words`` of networks.
    length_ : int
        Length of the rows.

    See Also
    --------
    PerView : Apply a transformer to each view.
    Encode : Embed texts with a frozen encoder.

    Notes
    -----
    Texts that are lists of words are taken as they are: split them yourself if a regular expression
    cannot. The texts of a view are a single column, since views are matrices.

    Examples
    --------
    >>> from mvcca import Tokens
    >>> tokens = Tokens().fit(["A dog runs.", "A dog and a cat"])
    >>> tokens.vocabulary_
    {'a': 2, 'dog': 3, 'and': 4, 'cat': 5, 'runs': 6}
    >>> tokens.transform(["The cat runs", "A dog"])
    array([[1, 5, 6, 0, 0],
           [2, 3, 0, 0, 0]], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "lowercase": ["boolean"],
        "token_pattern": [str],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_words": [Interval(Integral, 1, None, closed="left"), None],
        "min_length": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        *,
        lowercase: bool = True,
        token_pattern: str = r"(?u)\b\w+\b",
        min_count: int = 1,
        max_words: int | None = None,
        min_length: int = 1,
        max_length: int | None = None,
    ) -> None:
        self.lowercase = lowercase
        self.token_pattern = token_pattern
        self.min_count = min_count
        self.max_words = max_words
        self.min_length = min_length
        self.max_length = max_length

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the vocabulary and the length of the rows.

        Parameters
        ----------
        X : sequence of texts, or array or DataFrame of shape (n_texts, 1)
            Strings, or lists of words.
        y : None
            Ignored.
        sample_weight : array-like, shape (n_texts,), optional
            How often each text counts. Texts of weight 0 are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If an item is not a text, no word is left, or `token_pattern` is not a regular
            expression.
        """
        self._fit(X, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Learn the vocabulary and return the rows; see `fit` and `transform`."""
        return self._rows(self._fit(X, sample_weight))

    def transform(self, X: Any) -> np.ndarray:
        """Turn texts into rows of positions.

        Parameters
        ----------
        X : sequence of texts, or array or DataFrame of shape (n_texts, 1)
            Strings, or lists of words.

        Returns
        -------
        ndarray of int32, shape (n_texts, length_)

        Raises
        ------
        ValueError
            If an item is not a text.
        """
        check_is_fitted(self)
        return self._rows(self._split(X))

    def _fit(self, X: Any, sample_weight: Any) -> list[list[str]]:
        self._validate_params()
        if self.max_length is not None and self.max_length < self.min_length:
            raise ValueError(
                f"max_length={self.max_length} is smaller than min_length={self.min_length}."
            )
        texts = self._split(X)
        weights = weights_of_rows(sample_weight, len(texts))
        counts: Counter[str] = Counter()
        learned = [words for words, weight in zip(texts, weights, strict=True) if weight > 0]
        for words, weight in zip(learned, weights[weights > 0], strict=True):
            for word in words:
                counts[word] += weight
        ordered = sorted(counts, key=lambda word: (-counts[word], word))
        kept = [word for word in ordered if counts[word] >= self.min_count][: self.max_words]
        if not kept:
            advice = "Lower min_count." if counts else "The texts are empty, or token_pattern is."
            raise ValueError(
                f"No word is left: {len(learned)} texts have {len(counts)} different words, and "
                f"none occurs min_count={self.min_count} times. {advice}"
            )
        self.vocabulary_ = {word: position for position, word in enumerate(kept, _FIRST)}
        self.n_words_ = _FIRST + len(kept)
        longest = max(map(len, learned))
        self.length_ = max(self.min_length, min(longest, self.max_length or longest))
        return texts

    def _split(self, X: Any) -> list[list[str]]:
        """The words of every text."""
        try:
            analyzer = CountVectorizer(
                lowercase=self.lowercase, token_pattern=self.token_pattern
            ).build_analyzer()
        except re.error as error:
            raise ValueError(
                f"token_pattern={self.token_pattern!r} is not a regular expression: {error}."
            ) from error
        texts = []
        for number, item in enumerate(items_of(X, "Tokens")):
            if isinstance(item, str):
                texts.append(analyzer(item))
            elif isinstance(item, list | tuple | np.ndarray) and all(
                isinstance(word, str) for word in item
            ):
                texts.append(list(map(str, item)))
            else:
                raise ValueError(
                    f"Expected strings or lists of words, got {item!r} in row {number}. Replace "
                    'missing texts by "".'
                )
        return texts

    def _rows(self, texts: list[list[str]]) -> np.ndarray:
        rows = np.full((len(texts), self.length_), _PADDING, dtype=np.int32)
        for row, words in zip(rows, texts, strict=True):
            kept = words[: self.length_]
            row[: len(kept)] = [self.vocabulary_.get(word, _UNKNOWN) for word in kept]
        return rows

    @property
    def _n_features_out(self) -> int:
        return self.length_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.no_validation = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
