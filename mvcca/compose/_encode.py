"""Frozen encoders as a step of a pipeline."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import HasMethods

from mvcca.blocks.checks import to_array
from mvcca.compose._items import items_of
from mvcca.machine.documentation import Documented


class Encode(TransformerMixin, Documented, BaseEstimator):
    """Embed items, such as sentences, with a frozen encoder.

    Parameters
    ----------
    encoder : object with a method ``encode``, or callable
        Takes a list of items and returns one vector per item, as models of sentence-transformers
        and model2vec do. Clones of this transformer share it.

    See Also
    --------
    PerView : Apply an encoder to each view.
    Tokens : Turn texts into sequences of words, for networks that are trained.

    Notes
    -----
    Nothing is fitted. Use it in `PerView`, before a method that is fitted on the embeddings. A
    model file cannot hold an encoder: save the steps after this one, and pass them embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import Encode
    >>> vectors = {"a dog": [1.0, 0.0], "ein Hund": [0.9, 0.1]}
    >>> encode = Encode(lambda texts: np.array([vectors[text] for text in texts]))
    >>> encode.fit_transform(["a dog", "ein Hund"])
    array([[1. , 0. ],
           [0.9, 0.1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "encoder": [HasMethods(["encode"]), callable]
    }

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the encoder.

        Parameters
        ----------
        X, y
            Not used.

        Returns
        -------
        self
        """
        if isinstance(self.encoder, str):  # which has a method encode
            raise ValueError(f"encoder must be a loaded model, got the name {self.encoder!r}.")
        self._validate_params()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Embed items.

        Parameters
        ----------
        X : sequence of items, or array or DataFrame of shape (n_items, 1)
            Anything that the encoder takes, such as strings. Views are matrices, so that the items
            of a view are a single column.

        Returns
        -------
        ndarray, shape (n_items, n_features)

        Raises
        ------
        ValueError
            If X has several columns, or the encoder does not return one finite vector per item.
        """
        self.fit()
        items = items_of(X, "Encode")
        encode = getattr(self.encoder, "encode", self.encoder)
        vectors = to_array(encode(items))
        if vectors.ndim != 2 or len(vectors) != len(items):
            raise ValueError(
                f"Expected one vector for each of {len(items)} items from the encoder, got an "
                f"array of shape {vectors.shape}."
            )
        return check_array(vectors, dtype=(np.float64, np.float32), input_name="embeddings")

    def __sklearn_clone__(self) -> Encode:
        return type(self)(self.encoder)  # a copy of a network would take its memory again

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.string = True
        return tags
