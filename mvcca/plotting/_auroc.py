"""How well each component separates each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mvcca.inspection import label_auroc, projected
from mvcca.plotting._display import Display, data_frame
from mvcca.plotting._drawing import draw_title
from mvcca.plotting._heatmap import draw_heatmap
from mvcca.plotting.style import DIVERGING
from mvcca.views import as_views
from mvcca.views.typing import LabelsLike, MatrixLike, ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from pandas import DataFrame

_CELL = 0.32  # inches, height of a row of a new figure


class AurocDisplay(Display):
    """Area under the ROC curve of each component for each label against the rest.

    Near 0.5 a component does not know the label. Near 1 (red) rows with the label have the largest
    scores, near 0 (blue) the smallest; the sign of a component has no meaning.

    Parameters
    ----------
    auroc : mapping of str to mapping of str to array, shape (n_components,)
        Result of `mvcca.inspection.label_auroc`, by view and label.

    Attributes
    ----------
    im_ : matplotlib AxesImage
        A row per view and component, a column per label.
    text_ : ndarray of matplotlib Text, or None
        The areas in the cells, if there is space.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Raises
    ------
    ValueError
        If views differ in their labels, or there are none.

    Examples
    --------
    >>> from mvcca import CCA
    >>> from mvcca.datasets import load_digits_views
    >>> from mvcca.plotting import AurocDisplay
    >>> data = load_digits_views()
    >>> model = CCA(3, reg=0.1).fit(data.views[:1200])
    >>> display = AurocDisplay.from_estimator(model, data.views[1200:], data.labels[1200:])
    """

    im_: AxesImage
    text_: np.ndarray | None

    def __init__(self, auroc: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        labels = {tuple(of_labels) for of_labels in auroc.values()}
        if len(labels) != 1 or labels == {()}:
            raise ValueError(
                f"Expected areas of the same labels in each view, got {sorted(labels)}."
            )
        self.auroc, self.labels = auroc, list(labels.pop())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ViewsLike | MatrixLike,
        y: LabelsLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw how well the components of a fitted estimator separate labels.

        Parameters
        ----------
        estimator, X
            See `Display.from_estimator`. Rows are held-out ones of methods that learn from labels.
        y : labels
            One class or label set per object, or the labels of each view's rows by view name.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        AurocDisplay

        Raises
        ------
        ValueError
            If labels are missing, real label vectors, or not one per object.
        """
        if y is None:
            raise ValueError("AurocDisplay needs labels: pass them as y.")
        return cls(label_auroc(projected(estimator, X)[1], y)).plot(ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        probabilities: ViewsLike,
        y: LabelsLike,
        classes: Sequence[Any],
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw how well predicted probabilities separate each class from the others.

        Parameters
        ----------
        probabilities : mapping of str to ndarray, shape (n_objects, n_classes)
            What ``predict_proba`` returns, by a name for each model or each set of views.
        y : labels
            The class of each object.
        classes : sequence
            The class of each column, such as ``model.classes_``.
        ax, **kwargs
            See `plot`.

        Returns
        -------
        AurocDisplay

        Raises
        ------
        ValueError
            If probabilities are not of these classes.

        Examples
        --------
        >>> from mvcca import SparseDiscriminant
        >>> from mvcca.datasets import load_digits_views
        >>> from mvcca.plotting import AurocDisplay
        >>> data = load_digits_views()
        >>> model = SparseDiscriminant(5, n_features=10).fit(data.views[:1200], data.labels[:1200])
        >>> test = data.views[1200:]
        >>> predictions = {"both": model.predict_proba(test)}
        >>> predictions |= {name: model.predict_proba({name: X}) for name, X in test.items()}
        >>> display = AurocDisplay.from_predictions(predictions, data.labels[1200:], model.classes_)
        """
        names = [str(own) for own in classes]
        shapes = {name: np.shape(P) for name, P in as_views(probabilities).items()}
        if any(len(shape) != 2 or shape[1] != len(names) for shape in shapes.values()):
            raise ValueError(f"Expected a column for each of {len(names)} classes, got {shapes}.")
        found = {
            name: {own: areas[[names.index(own)]] for own, areas in of_labels.items()}
            for name, of_labels in label_auroc(probabilities, y).items()
        }
        return cls(found).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Keywords of `matplotlib.axes.Axes.imshow`.

        Returns
        -------
        self
        """
        is_new = ax is None
        of_views = {view: np.array(list(own.values())).T for view, own in self.auroc.items()}
        values = np.concatenate(list(of_views.values()))
        is_one = all(len(own) == 1 for own in of_views.values())
        rows = [
            view if is_one else f"{view} {i + 1}"
            for view, own in of_views.items()
            for i in range(len(own))
        ]
        style = {"cmap": DIVERGING, "vmin": 0, "vmax": 1}
        self.ax_, self.im_, self.text_ = draw_heatmap(
            ax, values, (rows, self.labels), "AUROC", style, kwargs
        )
        if is_new:
            self.figure_.set_size_inches(6.4, max(3.2, _CELL * len(rows) + 1.2))
        for end in np.cumsum([len(own) for own in of_views.values()])[:-1]:
            self.ax_.axhline(end - 0.5, color="black", linewidth=1)
        self.ax_.set(xlabel="Label", ylabel="" if is_one else "Component")
        draw_title(self.ax_, "How well labels are separated")
        return self

    def frame(self) -> DataFrame:
        """One row per view, label and component."""
        return data_frame(
            {"view": view, "label": label, "component": i, "auroc": value}
            for view, own in self.auroc.items()
            for label, values in own.items()
            for i, value in enumerate(values)
        )
