"""Settings that a search tries: values of parameters, one parameter after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mvcca.model_selection.search import Choice, Trials
from mvcca.problem import Rows

RIDGES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # in units of the mean variance
FIRST_RIDGES = (1e-2, 0.1, 1.0)  # with which ways to scale columns are compared
SEARCHED = "cv"  # value of a parameter that folds choose
AUTOMATIC = "auto"  # value of a parameter that folds choose if they choose another one


class Scales(dict[str, bool]):
    """Whether the columns of each view are standardized; a value of the parameter ``scale``."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    @classmethod
    def first(cls, names: Sequence[str]) -> list[Scales]:
        """What a search compares first: all views, of two views each, none, which wins a tie."""
        chosen = [set(names), *([{names[1]}, {names[0]}] if len(names) == 2 else []), set()]
        return [cls((name, name in own) for name in names) for own in chosen]

    def flipped(self, *names: str) -> Scales:
        """The same but for these views."""
        return Scales(self | {name: not self[name] for name in names})

    @property
    def order(self) -> tuple[int, list[str]]:
        """Place among equally good ones, of which the last wins: scaled less."""
        scaled = sorted(name for name, is_scaled in self.items() if is_scaled)
        return -len(scaled), scaled


@dataclass(frozen=True)
class Space:
    """Values of the parameters of a method.

    The values of the first parameter are tried with the middle ones of the others, those of the
    second with the best of the first, and so on.

    Attributes
    ----------
    values : mapping of str to tuple
        Values of each parameter, in increasing order.
    solves_ridges : bool
        Whether models with different ``reg`` are solved from one decomposition.
    leaves_one_out : bool
        Whether the estimator has scores of left-out rows for any ``reg``, ``left_out_scores``.
    has_prefixes : bool
        Whether the first components of a solution solve the problem with fewer components.
    prefers_all : bool
        Whether fewer components than all must win by a standard error.
    most_components : int or None
        Number of components above which none is searched.
    beyond : mapping of str to callable
        Functions that take a value at an end, and whether it is the last one, and return the next.
    rankings : tuple of str
        Similarities that rows are ranked by, if not by the one that the estimator declares.
    n_folds : int
        Number of folds of a bare fit.
    scales : tuple of str
        Views whose columns are tried as they are and standardized, before everything else.
    """

    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    solves_ridges: bool = False
    leaves_one_out: bool = False
    has_prefixes: bool = False
    prefers_all: bool = False
    most_components: int | None = None
    beyond: Mapping[str, Callable[[Any, bool], Any]] = field(default_factory=dict)
    rankings: tuple[str, ...] = ()
    n_folds: int = 5
    scales: tuple[str, ...] = ()

    @classmethod
    def offered_by(cls, estimator: Any, rows: Rows) -> Space:
        """What a search of an estimator can try on these rows."""
        if hasattr(estimator, "search_space"):
            return estimator.search_space(rows)
        scales = rows.views.without(estimator.confounds).names
        return cls(
            {"reg": RIDGES}, solves_ridges=True, has_prefixes=True, prefers_all=True, scales=scales
        )

    @staticmethod
    def numbers_of_components(most: int) -> list[int | None]:
        """1, 2, 3, 5, 8, 12, ... and all of them."""
        numbers: list[int | None] = []
        k = 1
        while 1.5 * k <= most:
            numbers.append(k)
            k = max(k + 1, int(1.5 * k + 0.5))
        return [*numbers, None]

    def of(self, estimator: Any) -> Space:
        """What is searched for an estimator: its parameters that are "cv"."""
        asked = searched(estimator)
        values = {name: own for name, own in self.values.items() if name in asked}
        has_prefixes = self.has_prefixes and (
            estimator.n_components is None or "n_components" in asked
        )
        scales = self.scales if "scale" in asked else ()
        return replace(
            self,
            values=values,
            leaves_one_out=self.leaves_one_out and "reg" in values,
            has_prefixes=has_prefixes,
            scales=scales,
        )

    def choice(self, trials: Trials, estimator: Any) -> Choice:
        """The best settings; the number of components is one of them if it is "cv" by itself."""
        choice = trials.choose()
        if "n_components" not in {*searched(estimator)} - self.values.keys():
            return choice
        return replace(choice, params={**choice.params, "n_components": choice.n_components})

    @property
    def components(self) -> dict[str, Any]:
        """Number of components of models, the first of which are those of smaller ones."""
        return {"n_components": self.most_components} if self.has_prefixes else {}

    @property
    def start(self) -> dict[str, Any]:
        """The middle value of each parameter, of columns as they are."""
        found = {name: own[len(own) // 2] for name, own in self.values.items()}
        return {"scale": Scales.first(self.scales)[-1], **found} if self.scales else found

    @property
    def first_ridges(self) -> list[Any]:
        """Ridges with which ways to scale columns are compared, if ridges are searched."""
        ridges = self.values.get("reg", ())
        return [reg for reg in ridges if reg in FIRST_RIDGES] or list(ridges)


def searched(estimator: Any) -> list[str]:
    """Parameters of an estimator that folds choose: "cv", and those that are "auto" beside one."""
    params = estimator.get_params(deep=False).items()
    names = {name: value for name, value in params if isinstance(value, str)}
    if SEARCHED not in names.values():
        return []
    along = getattr(estimator, "automatic", {})
    return [
        name
        for name, value in names.items()
        if value == SEARCHED or (value == AUTOMATIC and name in along)
    ]


def plain_value(estimator: Any, name: str, value: Any = AUTOMATIC) -> Any:
    """The value of a parameter without folds: "auto", and no other one, stands for another."""
    is_automatic = isinstance(value, str) and value == AUTOMATIC
    return getattr(estimator, "automatic", {}).get(name, value) if is_automatic else value
