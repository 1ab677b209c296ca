"""Plots of models, as scikit-learn displays.

A `Display` contains plain arrays: projected rows, or what a function of `mvcca.inspection` or
`mvcca.retrieval` returns. ``plot`` draws them with a title, with keywords of matplotlib, on given
axes or new ones; ``from_estimator`` computes them from a fitted model and rows, and draws them;
``frame`` lists them in a DataFrame. Artists are kept as ``line_``, ``scatter_``, ``im_``,
``text_``, ``ax_`` and ``figure_``. Matplotlib is imported when drawing. Colours and axes for other
figures are in `mvcca.plotting.style`. Training histories, searches and margins are arrays of the
models, which scikit-learn, pandas and matplotlib draw: the guide to plots has the lines.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.plotting._arrows import ArrowsDisplay
from mvcca.plotting._associations import AssociationsDisplay
from mvcca.plotting._auroc import AurocDisplay
from mvcca.plotting._biplot import BiplotDisplay
from mvcca.plotting._correlations import CorrelationDisplay
from mvcca.plotting._display import Display
from mvcca.plotting._embedding import EmbeddingDisplay
from mvcca.plotting._heatmap import (
    draw_heatmap as draw_heatmap,
)
from mvcca.plotting._loadings import LoadingsDisplay
from mvcca.plotting._recall import RecallCurveDisplay
from mvcca.plotting._retrieved import RetrievedDisplay
from mvcca.plotting._samples import SamplesDisplay

__all__ = [
    "ArrowsDisplay",
    "AssociationsDisplay",
    "AurocDisplay",
    "BiplotDisplay",
    "CorrelationDisplay",
    "Display",
    "EmbeddingDisplay",
    "LoadingsDisplay",
    "RecallCurveDisplay",
    "RetrievedDisplay",
    "SamplesDisplay",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
