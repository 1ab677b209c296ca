"""Base class of the displays whose `plot` takes axes and keywords of artists, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display(ABC):
    """A display on one axes, which a subclass draws in `_draw`."""

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of matplotlib, as for `from_estimator`.

        Returns
        -------
        self
        """
        self.ax_ = self._draw(ax, kwargs)
        self.figure_ = self.ax_.figure
        return self

    @abstractmethod
    def _draw(self, ax: Axes | None, given: dict[str, Any]) -> Axes:
        """Draw on the axes, or on new ones, with the given keywords over the defaults."""
