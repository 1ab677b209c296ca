"""What an alignment found, and how well rows match by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mvcca.machine.axes import tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mvcca.linear import CCA, Procrustes

_IN_WORDS = {
    "n_pseudo_pairs": "pseudo-pairs",
    "gallery_size": "rows that known pairs were searched among",
    "gain": "gain of the mean reciprocal rank by pseudo-pairs",
    "gain_error": "its standard error",
    "found_first": "known pairs that find each other first",
    "found_first_error": "standard error of this share",
    "retraced": "rows that come back to the same row",
}
LEAST_RETRACED = 0.45  # unrelated sets, and alignments of R@1 below .4, come back to less


class AlignmentStep(NamedTuple):
    """One model on the way.

    Attributes
    ----------
    stage : str
        "known pairs", "rotation" or "cca".
    n_pairs : int
        Number of pairs that the model was fitted to.
    """

    stage: str
    n_pairs: int


@dataclass(frozen=True, eq=False)
class Alignment(Result):
    """Two sets of vectors in one space, with what is known of how well they match.

    ``to_frame`` has a row per model on the way: its step, stage and n_pairs. ``plot`` draws the
    number of pairs by step: a good alignment finds more and more of them.

    Attributes
    ----------
    model : CCA or Procrustes
        The fitted model of the views "x" and "y", for `mvcca.RetrievalIndex`, `mvcca.save` and all
        that takes an estimator.
    pairs : ndarray of int, shape (n_pairs, 2)
        Pseudo-pairs that the model was fitted to beside the known pairs: rows of x and of y.
    steps : tuple of AlignmentStep
        The models on the way to this one.
    used_pseudo_pairs : bool
        Whether the model was fitted to pseudo-pairs.
    gain, gain_error : float or None
        Change of the mean reciprocal rank of known pairs by pseudo-pairs, from folds, and its
        standard error; None if there were too few known pairs.
    found_first, found_first_error : float or None
        Share of left-out known pairs whose rows find each other first among `gallery_size` rows,
        mean of both directions, and its standard error; None if there were too few known pairs.
    gallery_size : int
        Number of rows that these were searched among.
    retraced : float or None
        Share of rows whose nearest row is the same under a model that starts again from one in 15
        of the pseudo-pairs (at most 200), mean of three draws. Only without known pairs to measure
        by. An alignment has failed below .45.
    """

    model: CCA | Procrustes
    pairs: np.ndarray
    steps: tuple[AlignmentStep, ...]
    used_pseudo_pairs: bool
    gain: float | None = None
    gain_error: float | None = None
    found_first: float | None = None
    found_first_error: float | None = None
    gallery_size: int = 0
    retraced: float | None = None

    @property
    def has_failed(self) -> bool:
        """Whether the model is of no use, as far as can be told."""
        if self.retraced is not None:
            return self.retraced < LEAST_RETRACED
        if self.found_first is not None and self.found_first_error is not None:
            return self.found_first <= 2 * self.found_first_error
        return False

    def as_dict(self) -> dict[str, Any]:
        """Return the figures that tell how well rows match.

        Returns
        -------
        dict
            Their names and values, those that could not be measured left out.
        """
        names = ("gain", "gain_error", "found_first", "found_first_error", "retraced")
        known = {name: getattr(self, name) for name in names}
        facts = {"n_pseudo_pairs": len(self.pairs), "gallery_size": self.gallery_size}
        return facts | {name: value for name, value in known.items() if value is not None}

    def tables(self) -> list[Table]:
        """Return the models on the way, and the figures that tell how well rows match."""
        steps = [(i, step.stage, step.n_pairs) for i, step in enumerate(self.steps)]
        known = [(_IN_WORDS[name], value) for name, value in self.as_dict().items()]
        return [
            Table.of("Models", ("step", "stage", "n_pairs"), steps, shown=()),
            Table.of("How well rows match", ("figure", "value"), known, spec=".3f"),
            Table.of("Models on the way", ("step", "stage", "pairs"), steps, has_title=True),
        ]

    def sentences(self) -> list[str]:
        """Return the model, and whether the alignment has failed."""
        model = " ".join(str(self.model).split())
        verdict = ["The alignment has failed."] if self.has_failed else []
        return [f"Alignment by {model}.", *verdict]

    def figures(self) -> dict[str, Draw]:
        """Return the figure of the number of pairs by step."""
        return {"Pairs by step": Draw(self._draw)}

    def _draw(self, ax: Axes | None) -> Axes:
        ax = tidy_axes(ax, grid="y")
        for stage in dict.fromkeys(step.stage for step in self.steps):
            numbers = [i for i, step in enumerate(self.steps) if step.stage == stage]
            ax.plot(numbers, [self.steps[i].n_pairs for i in numbers], marker="o", label=stage)
        ax.set(xlabel="Step", ylabel="Pairs")
        ax.legend(frameon=False)
        return ax
