"""The map between an old and a new model, with what it keeps, in memory and in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mvcca.blocks.checks import common_row_labels, matrix_of_numbers, to_array
from mvcca.interop.row_maps import CentredMap, LocalMaps, RowMap
from mvcca.machine.archive import not_ours, read_archive, write_archive
from mvcca.machine.axes import tidy_axes
from mvcca.machine.result import Draw, Result
from mvcca.machine.tables import Table
from mvcca.measures import unit_rows
from mvcca.views import as_views
from mvcca.views.typing import ViewsLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND, _FORMAT = "migration", 1
_PARTS = ("center", "W", "offset")
_CENTERS = "centers"  # of local maps
_MAPS = ("items", "queries")
_VIEWS = {"old": "items", "new": "queries"}
_WORN = 3.0  # standard errors
_MOST = 0.5  # of the queries, that a map should find the row of


class CurvePoint(NamedTuple):
    """A point of the learning curve: `found_first` of a map of fewer pairs, and its error."""

    n_pairs: int
    found_first: float
    found_first_error: float


class Drift(NamedTuple):
    """Whether new pairs fit a map as well as those that it was fitted to.

    Attributes
    ----------
    cosine : float
        Mean cosine of the mapped rows of the new pairs.
    expected : float
        Mean cosine of pairs left out of the fit.
    z : float
        Their difference in standard errors; negative if the new pairs fit worse.
    has_drifted : bool
        Whether the new pairs fit worse by more than three standard errors.
    """

    cosine: float
    expected: float
    z: float
    has_drifted: bool


@dataclass(frozen=True, eq=False)
class Migration(Result):
    """A map between the vectors of an old model and those of a new one, with what it keeps.

    All figures compare by cosine and are of pairs that the map was not fitted to. The functions of
    `mvcca.interop` that export maps (`mvcca.interop.affine_map`, `mvcca.interop.to_linear`,
    `mvcca.interop.save_onnx`, `mvcca.interop.save_dense`) take a migration; its views are "old" and
    "new".

    ``to_frame`` and ``plot`` show `found_first` by number of pairs: a row or bar for each point of
    the learning curve, and the last one for all pairs. Bars are of two standard errors.

    Attributes
    ----------
    direction : {"items", "queries", "both"}
        What is mapped: stored rows of the old model, new queries, or both into a shared space.
    method : {"affine", "local", "procrustes", "cca"}
        Kind of the map; "affine" where local maps were asked for and did not help.
    reg : float or None
        Ridge, chosen if several were given.
    normalize : bool
        Whether mapped rows are scaled to length 1.
    found_first : float
        Share of vectors of the new model that find their own old row first in the gallery.
    found_first_error : float
        Standard error of `found_first`, never zero: two hits and two misses are added for it.
    found_first_permuted : float
        The same share for a map fitted to permuted pairs, from at most 200 queries.
    found_in_ten : float
        Share of vectors of the new model that find their own row among the first 10.
    gallery_size : int
        Number of stored rows that each of them was compared with.
    n_stored : int
        Number of stored rows. The gallery is smaller if it is a random draw, or if rows are equal,
        which count once.
    n_pairs, n_queries : int
        Number of pairs, and of those whose new vectors were the queries.
    neighbors_kept : float
        Share of the nearest rows of a new vector, under the new model, that are also the nearest
        ones of the map. Measured among held-out pairs: of the 10 nearest among many more rows,
        fewer stay, and few pairs do not tell how many.
    neighbors_kept_before : float
        The same share for the old model, whose vectors are both queries and rows.
    nearest_share : float
        Share of rows that count as nearest for these two figures.
    cosine, cosine_deviation : float
        Mean cosine of the mapped rows of left-out pairs, and its standard deviation over pairs.
    learning_curve : tuple of CurvePoint
        `found_first` of maps fitted to fewer pairs; empty unless asked for.
    """

    direction: str
    method: str
    reg: float | None
    normalize: bool
    found_first: float
    found_first_error: float
    found_first_permuted: float
    found_in_ten: float
    gallery_size: int
    n_stored: int
    n_pairs: int
    n_queries: int
    neighbors_kept: float
    neighbors_kept_before: float
    nearest_share: float
    cosine: float
    cosine_deviation: float
    learning_curve: tuple[CurvePoint, ...]
    _items: RowMap | None = field(repr=False)
    _queries: RowMap | None = field(repr=False)

    def sentences(self) -> list[str]:
        """Return the report that `mvcca migrate` prints."""
        mapped = {"items": "migrated row", "queries": "row", "both": "row"}[self.direction]
        lines = [
            f"own {mapped} found first among {self.gallery_in_words}: {self.found_first:.3f} ± "
            f"{2 * self.found_first_error:.3f} ({self.n_queries:,} queries)",
            f"nearest {self.nearest_share:.1%} of rows that are still nearest: "
            f"{self.neighbors_kept:.3f} (old model: {self.neighbors_kept_before:.3f})",
            f"{self._name}: fitted to {self.n_pairs:,} pairs; the figures are of pairs left out of "
            "the fit",
        ]
        lines += [
            f"with {point.n_pairs:,} pairs: own row first {point.found_first:.3f} ± "
            f"{2 * point.found_first_error:.3f}"
            for point in self.learning_curve
        ]
        return lines

    @property
    def _name(self) -> str:
        """The method and its ridge."""
        return self.method if self.reg is None else f"{self.method}, reg={self.reg:.3g}"

    @property
    def gallery_in_words(self) -> str:
        """What each query was compared with."""
        if self.gallery_size == self.n_stored:
            return f"{self.gallery_size:,} rows"
        return f"{self.gallery_size:,} different rows of {self.n_stored:,}"

    @property
    def is_useful(self) -> bool:
        """Whether more queries find their own row first than with permuted pairs.

        The difference must be more than two standard errors.
        """
        by_chance = self.found_first_permuted
        variance = self.found_first_error**2 + by_chance * (1 - by_chance) / self.n_queries
        return bool(self.found_first - by_chance > 2 * np.sqrt(variance))

    @property
    def views(self) -> dict[str, int]:
        """Number of features of the rows that are mapped, by "old" or "new"."""
        maps = {"old": self._items, "new": self._queries}
        return {name: own.n_features for name, own in maps.items() if own is not None}

    @property
    def is_good(self) -> bool:
        """Whether the map finds most rows, and keeps as many neighbors as the old model has."""
        keeps = self.neighbors_kept >= self.neighbors_kept_before
        return self.is_useful and self.found_first >= _MOST and keeps

    @property
    def verdict(self) -> str:
        """What the map is good for, in a sentence or two."""
        among = f"{self.found_first:.3f} of the queries find their own row first among "
        among += self.gallery_in_words
        permuted = f"a map of permuted pairs finds {self.found_first_permuted:.3f}"
        if not self.is_useful:
            return (
                f"Only {among}, where {permuted}: it has learned nothing that the pairs share. "
                "Check that rows of both models show the same items, or embed more pairs."
            )
        if self.found_first < _MOST:
            return f"Only {among}. Embed more pairs before you search with this map."
        kept = f"the nearest {self.nearest_share:.1%} of rows, the map keeps "
        kept += f"{self.neighbors_kept:.3f}, and the old model by itself "
        kept += f"{self.neighbors_kept_before:.3f}"
        if not self.is_good:
            return (
                f"Of {kept}: for neighbors beyond a query's own row, the old model is better. "
                "Embed more pairs to gain from the new one."
            )
        return f"Search with this map: {among}, where {permuted}; of {kept}."

    def map_items(self, rows: Any) -> np.ndarray:
        """Map stored vectors of the old model; with direction "queries" they stay as they are.

        Parameters
        ----------
        rows : array-like, shape (n_rows, n_features of the old model)
            Vectors of the old model.

        Returns
        -------
        ndarray, shape (n_rows, n_outputs)
            In the precision of `rows`.

        Raises
        ------
        ValueError
            If the rows have another shape, or a number is NaN or infinite.
        """
        return self._mapped(self._items, rows, "old")

    def map_queries(self, rows: Any) -> np.ndarray:
        """Map vectors of the new model; with direction "items" they stay as they are.

        Parameters
        ----------
        rows : array-like, shape (n_rows, n_features of the new model)
            Vectors of the new model.

        Returns
        -------
        ndarray, shape (n_rows, n_outputs)
            In the precision of `rows`.

        Raises
        ------
        ValueError
            If the rows have another shape, or a number is NaN or infinite.
        """
        return self._mapped(self._queries, rows, "new")

    def transform(self, views: ViewsLike) -> dict[str, np.ndarray]:
        """Map rows of the views "old" and "new" as `map_items` and `map_queries` do.

        Parameters
        ----------
        views : Views, mapping or list
            Rows of one or both models, by the names "old" and "new"; they need not be paired.

        Returns
        -------
        dict of str to ndarray

        Raises
        ------
        ValueError
            If a view has another name, or a number is NaN or infinite.
        TypeError
            If it is a matrix, which does not say whose rows it holds; see `map_items`.
        """
        views = as_views(views, tuple(_VIEWS), unpaired=True)
        maps = {"old": self.map_items, "new": self.map_queries}
        for name in views.names:
            if name not in maps:
                raise ValueError(f"Unknown view {name!r}; the views are {list(maps)}.")
        return {name: maps[name](rows) for name, rows in views.items()}

    def drift(self, old: np.ndarray, new: np.ndarray) -> Drift:
        """Check on new pairs whether the map still fits.

        Parameters
        ----------
        old, new : array-like, shape (n_pairs, n_features)
            Vectors of both models for items that were not among the pairs of the fit.

        Returns
        -------
        Drift

        Raises
        ------
        ValueError
            If there are fewer than 2 pairs, or different numbers of rows.
        """
        common_row_labels({"old": old, "new": new})  # raises if they differ
        old, new = to_array(old), to_array(new)
        if len(old) != len(new) or len(old) < 2:
            raise ValueError(
                f"Expected at least 2 pairs, with as many rows of both models; got {len(old)} "
                f"rows of the old model and {len(new)} of the new one."
            )
        items, queries = unit_rows(self.map_items(old)), unit_rows(self.map_queries(new))
        cosines = np.einsum("ij,ij->i", items, queries, dtype=float)
        error = np.hypot(
            self.cosine_deviation / np.sqrt(self.n_queries), cosines.std(ddof=1) / len(old) ** 0.5
        )
        difference = float(cosines.mean()) - self.cosine
        z = difference / max(float(error), np.finfo(float).tiny)
        return Drift(float(cosines.mean()), self.cosine, z, z < -_WORN)

    def figures(self) -> dict[str, Draw]:
        """Return the figure of the learning curve."""
        caption = (
            "Queries that find their own row first, by the number of pairs that the map was fitted "
            "to. If the curve still rises, embed more pairs. Bars: two standard errors."
        )
        source = f"pairs left out of the fit, among {self.gallery_in_words}"
        return {"Own row found first": Draw(self._draw, caption=caption, source=source)}

    def _draw(self, ax: Axes | None) -> Axes:
        ax = tidy_axes(ax, grid="y")
        n_pairs, first, errors = np.array(self._curve()).T
        ax.errorbar(n_pairs, first, 2 * errors, marker="o", capsize=3)
        ax.set(xlabel="Pairs", ylabel=f"Own row found first among {self.gallery_in_words}")
        return ax

    def _curve(self) -> list[CurvePoint]:
        """The learning curve with all pairs at its end."""
        whole = CurvePoint(self.n_pairs, self.found_first, self.found_first_error)
        return [*self.learning_curve, whole]

    def centred_map(self, view: str) -> CentredMap:
        """The affine map of the view "old" or "new", before any scaling to length 1."""
        if view not in _VIEWS:
            raise ValueError(f"Unknown view {view!r}; the views are {list(_VIEWS)}.")
        found = self._items if view == "old" else self._queries
        if found is None:
            raise ValueError(
                f"A migration of {self.direction} leaves rows of the {view} model as they are; "
                "there is no map to export."
            )
        if not isinstance(found, CentredMap):
            raise ValueError(
                "Local maps are not one affine map. Use map_items, or fit with method='affine' to "
                "export."
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the maps and the figures to one file, which `load` reads.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        arrays = {
            f"{name}.{part}": array
            for name, own in zip(_MAPS, (self._items, self._queries), strict=True)
            for part, array in _arrays_of(own).items()
        }
        content = {"kind": _KIND, "migration": _FORMAT, "figures": self.as_dict()}
        write_archive(path, arrays, content)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Migration:
        """Load a migration that `save` wrote.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Migration

        Raises
        ------
        mvcca.persistence.ModelFileError
            If the file is damaged, or holds something else.
        OSError
            If it cannot be opened.
        """
        arrays, content = read_archive(path)
        if content.get("kind") != _KIND or content.get("migration") != _FORMAT:
            not_ours(path, "does not hold a migration that this version of mvcca can read")
        maps: dict[str, Any] = {f"_{name}": _map_of(arrays, name) for name in _MAPS}
        figures: dict[str, Any] = dict(content["figures"])
        figures["learning_curve"] = tuple(map(_curve_point, figures["learning_curve"]))
        return cls(**figures, **maps)

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the maps, as numbers and text."""
        names = [field.name for field in fields(self) if not field.name.startswith("_")]
        found = {name: getattr(self, name) for name in names}
        return found | {"learning_curve": [point._asdict() for point in self.learning_curve]}

    def tables(self) -> list[Table]:
        """Return the learning curve, and the table of what the map keeps."""
        error = 2 * self.found_first_error
        nearest = f"nearest {self.nearest_share:.1%} of rows that are still nearest"
        figures = [
            (
                f"own row found first among {self.gallery_in_words}",
                f"{self.found_first:.3f} ± {error:.3f}",
            ),
            ("the same, by a map of permuted pairs", f"{self.found_first_permuted:.3f}"),
            ("own row found among the first 10", f"{self.found_in_ten:.3f}"),
            (nearest, f"{self.neighbors_kept:.3f}"),
            ("the same, by the old model", f"{self.neighbors_kept_before:.3f}"),
            ("cosine of mapped rows", f"{self.cosine:.3f} ± {self.cosine_deviation:.3f}"),
        ]
        note = (
            f"Fitted to {self.n_pairs:,} pairs; measured on {self.n_queries:,} queries that were "
            "left out of the fit. ±: two standard errors; of the cosine, its standard deviation."
        )
        caption = f"Migration of {self.direction}: {self._name}"
        shown = ("notebook", "page")  # in text, sentences say it
        found = [
            Table.of("Learning curve", CurvePoint._fields, self._curve(), shown=()),
            Table.of(
                caption,
                ("figure", "value"),
                figures,
                [self.verdict, note],
                words=("figure",),
                shown=shown,
            ),
        ]
        if self.learning_curve:
            columns = ("pairs", "own row first", "± two standard errors")
            points = [
                (p.n_pairs, p.found_first, 2 * p.found_first_error) for p in self.learning_curve
            ]
            found.append(Table.of("Maps of fewer pairs", columns, points, spec=".3f", shown=shown))
        return found

    def _mapped(self, own: RowMap | None, rows: Any, name: str) -> np.ndarray:
        rows = to_array(rows)
        if own is None:
            return rows
        if rows.ndim != 2 or rows.shape[1] != own.n_features:
            raise ValueError(
                f"Expected rows of the {name} model of shape (n_rows, {own.n_features}), got shape "
                f"{rows.shape}. A single vector is a row: vector[None]."
            )
        return own.apply(matrix_of_numbers(name, rows), name, to_unit=self.normalize)


def _curve_point(stored: Mapping[str, Any]) -> CurvePoint:
    return CurvePoint(*(stored[name] for name in CurvePoint._fields))


def _arrays_of(own: RowMap | None) -> dict[str, np.ndarray]:
    """What a file keeps of a map."""
    if isinstance(own, CentredMap):
        return {part: getattr(own, part) for part in _PARTS}
    if isinstance(own, LocalMaps):
        stacked = {part: np.stack([getattr(each, part) for each in own.maps]) for part in _PARTS}
        return stacked | {_CENTERS: own.centers}
    return {}


def _map_of(arrays: Mapping[str, np.ndarray], name: str) -> RowMap | None:
    """The map that `_arrays_of` took apart."""
    if f"{name}.W" not in arrays:
        return None
    parts = [arrays[f"{name}.{part}"] for part in _PARTS]
    if f"{name}.{_CENTERS}" not in arrays:
        return CentredMap(*parts)
    maps = tuple(CentredMap(*each) for each in zip(*parts, strict=True))
    return LocalMaps(arrays[f"{name}.{_CENTERS}"], maps)
